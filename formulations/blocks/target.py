"""The target: requirements on the sum of leaf values (ocean, (13)-(14); fcca, (8)-(9); box, (8))."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ocf.formulations.blocks.cells import linear
from ocf.problem.requirements import Requirements


def reaches_target(requirements: Requirements, leaves: Sequence[Any]) -> pyo.Constraint:
    """Constraint for each requirement row: the gains of the chosen leaves reach the need.

    Parameters
    ----------
    requirements : Requirements
    leaves : sequence of variables, one per leaf
    """

    def rule(_: pyo.Block, r: int) -> Any:
        gain = requirements.gain[:, r]
        terms = [(float(gain[k]), leaves[k]) for k in np.flatnonzero(gain).tolist()]
        need = float(requirements.need[r])
        if not terms and need <= 0:
            return pyo.Constraint.Feasible
        # what no leaf adds to cannot be met: such a row stays, with a coefficient of 0
        return (need, linear(terms or [(0.0, leaves[0])]), None)

    return pyo.Constraint(range(len(requirements.need)), rule=rule)

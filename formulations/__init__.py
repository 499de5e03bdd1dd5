"""Mathematical models of the counterfactual problem, one file for each paper.

Adding a formulation is one file with ``build(cells: CellProblem) -> Formulated`` and one line in `FORMULATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from ocf.errors import ProblemError
from ocf.support.messages import nearest

if TYPE_CHECKING:
    from ocf.cells.cell_problem import CellProblem
    from ocf.cells.partition import Partition
    from ocf.formulations.base import Formulated
    from ocf.formulations.blocks.columns import MoveColumns
    from ocf.formulations.blocks.splits import Global
    from ocf.problem.problem import Problem
    from ocf.problem.requirements import Requirements

#: Name -> module that has `build`.
FORMULATIONS = {
    "interval": "ocf.formulations.interval",
    "ocean": "ocf.formulations.ocean",
    "oae": "ocf.formulations.oae",
    "fcca": "ocf.formulations.fcca",
}

#: Name -> module whose `build` has the values themselves in the place of cells; see `ocf.solve.leaf_search`.
VALUE_FORMULATIONS = {
    "oblique": "ocf.formulations.oblique",
    "hyperplanes": "ocf.formulations.hyperplanes",
    "ocean_hyperplanes": "ocf.formulations.ocean_hyperplanes",
}

#: A formulation over cells -> the one over values that is the same paper's, for trees with oblique splits.
WITH_VALUES = {"ocean": "ocean_hyperplanes"}

#: Instead of the name of a formulation or of a solver. Of formulations it stands for "oblique" with oblique splits in a
#: single tree and "hyperplanes" in several, "oblique" too where something is asked that only a model of a single tree
#: knows, and "interval" otherwise; see `ocf.solve.method`.
AUTO = "auto"


def check_formulation(name: str) -> None:
    """Refuse a name that is no formulation.

    Raises
    ------
    ProblemError
        Unknown name.
    """
    known = {AUTO: "", **FORMULATIONS, **VALUE_FORMULATIONS}
    if name not in known:
        raise ProblemError(f"unknown formulation {nearest(name, known)}")


def get_formulation(name: str) -> Callable[[CellProblem], Formulated]:
    """The `build` function of a formulation.

    Raises
    ------
    ProblemError
        Unknown name, or a formulation that has no model over cells.
    """
    if name in VALUE_FORMULATIONS:
        raise ProblemError(f"the formulation {name!r} has no model over cells: use 'interval' or 'ocean' here")
    if name not in FORMULATIONS:
        raise ProblemError(f"unknown formulation {nearest(name, FORMULATIONS)}")
    build: Callable[[CellProblem], Formulated] = import_module(FORMULATIONS[name]).build
    return build


def get_value_formulation(name: str) -> Callable[[Problem, Requirements, Partition, MoveColumns | None], Global]:
    """The `build` function of a formulation that has all trees in one model, with values in the place of cells.

    Parameters
    ----------
    name : {"hyperplanes", "ocean_hyperplanes"}
    """
    build: Callable[[Problem, Requirements, Partition, MoveColumns | None], Global]
    build = import_module(VALUE_FORMULATIONS[name]).build
    return build

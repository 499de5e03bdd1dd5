"""What every formulation returns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem

if TYPE_CHECKING:
    import pyomo.environ as pyo

#: A Pyomo variable's data object.
Var = Any

#: What to ask for in the place of a formulation over cells where the model has oblique splits.
OVER_VALUES = "use formulation='hyperplanes', or 'oblique' for a single tree"


@dataclass(frozen=True)
class Formulated:
    """A mathematical model of a problem over cells, and where its parts stand in it.

    Attributes
    ----------
    model : pyomo.environ.ConcreteModel
    leaves : tuple of variables, one per leaf
        1 exactly when the point lies in the leaf.
    steps : tuple of tuples of variables, one per feature
        Of an ordered feature with m cells: m - 1 variables, the j-th 1 exactly when the point lies beyond cell j.
        Empty for features that have `levels`.
    levels : tuple of tuples of variables, one per feature
        One variable per cell: of unordered features and, where a formulation prefers them to steps, of ordered ones.
    """

    model: pyo.ConcreteModel
    leaves: tuple[Var, ...]
    steps: tuple[tuple[Var, ...], ...]
    levels: tuple[tuple[Var, ...], ...]

    def decode(self, cells: CellProblem) -> IntArray | None:
        """Choice of cells at the model's current variable values; see `decode`."""
        import pyomo.environ as pyo

        return decode(np.array([pyo.value(y) for y in self.leaves], np.float64), cells)


def decode(leaf_values: FloatArray, cells: CellProblem) -> IntArray | None:
    """Cheapest choice of cells within the leaf of each tree that has the largest value.

    Parameters
    ----------
    leaf_values : (n_leaves,) float64
        Values of the leaf variables in a solution.
    cells : CellProblem

    Returns
    -------
    (n_features,) int64 or None
        Counted within the features. None when the leaves have no open cell in common, which a solver's tolerances
        may bring about but no exact solution.
    """
    part = cells.partition
    offsets = part.ensemble.leaf_offsets
    values = np.where(cells.live, leaf_values, -1.0)
    chosen = np.array([a + values[a:b].argmax() for a, b in pairwise(offsets)])
    return cells.cheapest_within(chosen)

"""What is asked of one leaf, or of one leaf per tree, and its answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray

#: A leaf, or one leaf per tree.
Leaves = int | tuple[int, ...]


@dataclass(frozen=True, eq=False)
class LeafAnswer:
    """The cheapest point of one leaf.

    Attributes
    ----------
    leaf : int
    point : (n_features,) float64 or None
        Coded; the tree sends it to the leaf.
    cost : float
        Of the point; inf without one.
    bound : float
        No admissible point of the leaf is cheaper; inf where there is none at all.
    claim : {"solved", "pruned", "empty", "open"}
        ``"pruned"``: it cannot beat the best leaf. ``"open"``: a limit or the solver's tolerances left it undecided.
    """

    leaf: Leaves
    point: FloatArray | None
    cost: float
    bound: float
    claim: str


#: No leaf's answer: there is no admissible point.
EMPTY = LeafAnswer(-1, None, np.inf, np.inf, "empty")


@dataclass(frozen=True, eq=False)
class LeafTask:
    """One leaf's problem: its hyperplanes, as in `ocf.solve.leaf_planes.PathRows`, and bounds of the columns."""

    leaf: Leaves
    eps: float
    place: IntArray
    sign: FloatArray
    side: FloatArray
    total: FloatArray
    lower: FloatArray
    upper: FloatArray

    def is_open(self, integer: BoolArray) -> bool:
        """Whether some integer column is not fixed; `integer` tells which they are, (n_columns,)."""
        return bool((integer & (self.lower < self.upper)).any())

    def fixed(self, x: FloatArray, integer: BoolArray) -> LeafTask:
        """The same with the integer columns fixed at a solution's values.

        Parameters
        ----------
        x : (n_columns,) float64
            The solution; rounded to whole numbers where it is taken.
        integer : (n_columns,) bool
        """
        whole = np.rint(x)
        return replace(self, lower=np.where(integer, whole, self.lower), upper=np.where(integer, whole, self.upper))

    def without(self, rows: BoolArray) -> LeafTask:
        """The same without some of its hyperplanes.

        Parameters
        ----------
        rows : (m,) bool
        """
        kept = ~rows
        return replace(self, place=self.place[kept], sign=self.sign[kept], side=self.side[kept], total=self.total[kept])

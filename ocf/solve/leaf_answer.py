"""What is asked of one leaf, or of one leaf per tree, and its answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray

#: A leaf, or one leaf per tree.
Leaves = int | tuple[int, ...]


class LeafClaim(Enum):
    """What is known of a leaf.

    - ``SOLVED``: nothing in it is cheaper than its point.
    - ``PRUNED``: it cannot beat the best leaf.
    - ``EMPTY``: it has no admissible point.
    - ``OPEN``: a limit or the solver's tolerances left it undecided.
    """

    SOLVED = "solved"
    PRUNED = "pruned"
    EMPTY = "empty"
    OPEN = "open"


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
    claim : LeafClaim
    """

    leaf: Leaves
    point: FloatArray | None
    cost: float
    bound: float
    claim: LeafClaim

    @classmethod
    def solved(cls, leaf: Leaves, point: FloatArray, cost: float) -> LeafAnswer:
        """Nothing in the leaf is cheaper than a point.

        Parameters
        ----------
        leaf : int or tuple of int
        point : (n_features,) float64
        cost : float
        """
        return cls(leaf, point, cost, cost, LeafClaim.SOLVED)

    @classmethod
    def pruned(cls, leaf: Leaves, bound: float) -> LeafAnswer:
        """Nothing in the leaf is cheaper than a bound, which is too dear.

        Parameters
        ----------
        leaf : int or tuple of int
        bound : float
        """
        return cls(leaf, None, np.inf, bound, LeafClaim.PRUNED)

    @classmethod
    def empty(cls, leaf: Leaves) -> LeafAnswer:
        """The leaf has no admissible point."""
        return cls(leaf, None, np.inf, np.inf, LeafClaim.EMPTY)

    @classmethod
    def open(cls, leaf: Leaves, bound: float) -> LeafAnswer:
        """No point of the leaf is known; if it has one, it costs no less than a bound.

        Parameters
        ----------
        leaf : int or tuple of int
        bound : float
        """
        return cls(leaf, None, np.inf, bound, LeafClaim.OPEN)

    def bounded(self, bound: float) -> LeafAnswer:
        """The same where nothing in the leaf is cheaper than a bound: solved if its point costs as much, else open."""
        solved = self.point is not None and bound == self.cost
        return replace(self, bound=bound, claim=LeafClaim.SOLVED if solved else LeafClaim.OPEN)

    def searched(self, bound: float, cutoff: float) -> LeafAnswer:
        """The same after a search below a cutoff, inf for none, that has ended with a bound.

        Parameters
        ----------
        bound : float
        cutoff : float
        """
        if self.point is not None or bound < cutoff:
            return self.bounded(bound)
        return self.pruned(self.leaf, bound) if np.isfinite(cutoff) else self.empty(self.leaf)


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

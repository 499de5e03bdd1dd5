"""Conditions on scores that hold within a box of them, and how such a box is split around a refused point.

Spatial branch and bound (Falk and Soland 1969; see `ocf.problem.totals`): a refused point is cut off by a tangent, or
by those of the parts into which its box is split.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.problem.requirements import Requirements, ScoreBox, never
from ocf.trees.ensemble import Ensemble

#: Of a score that nothing bounds.
_ALL = (-math.inf, math.inf)

#: Most boxes that one refused point splits a box into, less one. Isotonic forests of three folds on breast cancer took
#: about a fifth longer with 3.
_SPLITS = 6


def score_ends(ensemble: Ensemble) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest scores that the library can give, whatever the leaves, each (n_outputs,)."""
    starts = ensemble.leaf_offsets[:-1]
    low = np.minimum.reduceat(ensemble.contributions, starts).sum(axis=0) + ensemble.base_score - 2 * ensemble.rounding
    high = np.maximum.reduceat(ensemble.contributions, starts).sum(axis=0) + ensemble.base_score + 2 * ensemble.rounding
    return low, high


@dataclass(frozen=True, eq=False)
class BoxedCurve:
    """A condition on scores within a box of them.

    Attributes
    ----------
    ensemble : Ensemble
    low, high : tuple of float
        The library's own scores, those of `outputs`, lie between them.
    """

    ensemble: Ensemble
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def outputs(self) -> Sequence[int]:
        """Columns of the scores that the intervals are of."""
        raise NotImplementedError

    def over(self, ensemble: Ensemble) -> Self:
        """The same of an ensemble with more trees."""
        return replace(self, ensemble=ensemble)

    @property
    def box(self) -> ScoreBox:
        """Between which numbers the rows hold scores."""
        return dict(zip(self.outputs, zip(self.low, self.high, strict=True), strict=True))

    def within(self, box: ScoreBox) -> Self:
        """The same where other rows hold scores in a box; in an empty one any bounds will do."""
        lows, highs = np.array([box.get(output, _ALL) for output in self.outputs]).T
        low, high = np.maximum(self.low, lows), np.minimum(self.high, highs)
        return self if (low > high).any() else self.at(low, high)

    def at(self, low: FloatArray, high: FloatArray) -> Self:
        """The same in another box.

        Parameters
        ----------
        low, high : (n_intervals,) float64
        """
        return replace(self, low=tuple(low.tolist()), high=tuple(high.tolist()))

    def cuts(self, leaves: IntArray) -> Sequence[Requirements]:
        """Rows that a refused choice of leaves, (n_trees,), does not meet; several are alternatives."""
        raise NotImplementedError


class BranchingCurve(BoxedCurve):
    """A condition that tangents hold from outside, nearer in smaller boxes."""

    def tangent(self, point: FloatArray) -> Requirements:
        """A requirement of one row that holds wherever the condition does.

        Parameters
        ----------
        point : (n_intervals,) float64
            Scores within the box.
        """
        raise NotImplementedError

    def rows(self, *refused: FloatArray) -> Requirements:
        """The box, and tangents at some scores."""
        raise NotImplementedError

    def shrunk(self) -> Self | None:
        """The same in a smaller box; None where it holds nowhere."""
        raise NotImplementedError

    def split(self, point: FloatArray) -> tuple[Self, Self] | None:
        """Two parts of the box; None where that leads no further."""
        raise NotImplementedError

    def halves(self, k: int, last: float) -> tuple[Self, Self]:
        """The two parts of the box, split at a score.

        Parameters
        ----------
        k : int
            Number of its interval.
        last : float
            Of the lower part.
        """
        upper = (*self.high[:k], last, *self.high[k + 1 :])
        lower = (*self.low[:k], math.nextafter(last, math.inf), *self.low[k + 1 :])
        return replace(self, high=upper), replace(self, low=lower)

    def branches(self, leaves: IntArray, point: FloatArray) -> Sequence[Requirements]:
        """Tangents at a refused point, in the parts of the box between which the condition is split.

        Parameters
        ----------
        leaves : (n_trees,) int64
            Of the point.
        point : (n_intervals,) float64
            Its scores.
        """
        parts: list[Requirements] = []
        here = self
        for splits in range(_SPLITS + 1):
            inside = np.clip(point, here.low, here.high)
            row = here.tangent(inside)
            if row.gain[leaves].sum() < row.need[0]:
                return [here.rows(inside) if splits else replace(row, curve=here), *parts]
            halves = here.split(inside) if splits < _SPLITS else None
            if halves is None:
                return [here.rows(inside), *parts] if splits else []
            own = 0 if all(a <= b for a, b in zip(inside, halves[0].high, strict=True)) else 1
            other, shrunk = halves[1 - own].shrunk(), halves[own].shrunk()
            if other is not None:
                parts.append(other.rows())
            if shrunk is None:
                return parts or [replace(never(self.ensemble), curve=self)]
            here = shrunk
        raise AssertionError  # the last round returns

"""A condition on features as the boxes of a regional forest see it, and the probability of an answer under it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from ocf.regional.forest import CellBox, RegionalForest


# -- probabilities -----------------------------------------------------------------------------------------


def probability(counts: IntArray) -> float:
    """The estimate from what `RegionalForest.counts` gives."""
    return float((counts[:, 1] / np.maximum(counts[:, 0], 1)).mean())


def exact_probability(counts: IntArray) -> Fraction:
    """The estimate without rounding."""
    shares = (Fraction(int(k), int(n)) for n, k in counts.tolist() if n)
    return sum(shares, Fraction(0)) / len(counts)


def reaches(counts: IntArray, level: float) -> bool:
    """Whether the estimate is at least `level`, read as a decimal; no rounding decides.

    Parameters
    ----------
    counts : (n_trees, 2) int64
        Training rows in each tree's cell, and those of them whose answer is wanted.
    level : float
        Probability in [0, 1].
    """
    value = probability(counts)
    if abs(value - level) > 1e-9:
        return value > level
    return exact_probability(counts) >= Fraction(str(level))


@dataclass(frozen=True, eq=False)
class ProbabilityQuery:
    """What is held, what may change and to where, and which answers are wanted.

    Attributes
    ----------
    forest : RegionalForest
    held : CellBox
        The row's cells, or the region R: what holds for the features that do not change.
    free : CellBox
        Admissible cells of the features that change.
    wanted : (n,) bool
        Which training rows have an answer in the target.
    """

    forest: RegionalForest
    held: CellBox
    free: CellBox
    wanted: BoolArray

    def with_free(self, free: CellBox) -> ProbabilityQuery:
        """Copy with other admissible cells."""
        return replace(self, free=free)

    def cuts(self, i: int, met: Iterable[int], boxes: Iterable[CellBox] = ()) -> IntArray:
        """Cuts of an ordered feature between its admissible cells, in order: of splits, and at the ends of boxes.

        Parameters
        ----------
        i : int
            The feature.
        met : iterable of int
            Cuts of the splits; the last cell on the left of each.
        boxes : iterable of CellBox
        """
        ends = (end for box in boxes for end in (box.low[i] - 1, box.high[i]))
        cuts = np.unique(np.fromiter((*met, *ends), np.int64))
        return cuts[(self.free.low[i] <= cuts) & (cuts < self.free.high[i])]

    def met_cuts(self, features: Iterable[int], boxes: Iterable[CellBox] = ()) -> dict[int, IntArray]:
        """Cuts of each ordered feature of a set at splits that some box on it meets, and at the ends of boxes.

        Parameters
        ----------
        features : iterable of int
            The set S.
        boxes : iterable of CellBox
        """
        features, boxes = list(features), list(boxes)
        node = self.forest.arrays.trees.node
        met = self.forest.met_nodes(self.forest.mix(self.free, self.held, features))
        ordered = [i for i in features if self.forest.partition.ordered[i]]
        return {i: self.cuts(i, node[met & (node[:, 0] == i), 1], boxes) for i in ordered}

    def cdp_counts(self, features: Iterable[int]) -> IntArray:
        """Counts behind CDP_S, (n_trees, 2)."""
        return self.crp_counts(features, self.free)

    def crp_counts(self, features: Iterable[int], box: CellBox, least: float = 0.0) -> IntArray:
        """Counts behind CRP_S of a box, (n_trees, 2); see `RegionalForest.counts` for `least`.

        Parameters
        ----------
        features : iterable of int
            The set S.
        box : CellBox
        least : float
            Counting may stop once the probability cannot reach this.
        """
        return self.forest.counts(self.forest.mix(box, self.held, features), self.wanted, least)

    def precise(self, features: Iterable[int], box: CellBox, level: float) -> bool:
        """Whether CRP_S of a box reaches a level.

        Parameters
        ----------
        features : iterable of int
            The set S.
        box : CellBox
        level : float
            Probability in [0, 1].
        """
        return reaches(self.crp_counts(features, box, level), level)

    def cdp(self, features: Iterable[int]) -> float:
        """CDP_S (definition 2.1): probability of the target when S changes and the rest is held."""
        return probability(self.cdp_counts(features))

    def crp(self, features: Iterable[int], box: CellBox) -> float:
        """CRP_S (definition 2.3): probability of the target when S lies in the box and the rest is held.

        Parameters
        ----------
        features : iterable of int
            The set S.
        box : CellBox
        """
        return probability(self.crp_counts(features, box))

    def weights(self, features: Iterable[int]) -> FloatArray:
        """Weights given what is held outside S, (n,): the estimate of the distribution of X_S."""
        return self.forest.weights(self.forest.mix(self.free, self.held, features))

    def captured(self, features: Iterable[int], box: CellBox) -> float:
        """Estimate of P(X_S in the box | what is held): the weight that a box captures.

        Parameters
        ----------
        features : iterable of int
            The set S.
        box : CellBox
        """
        features = list(features)
        return float(self.weights(features)[self.forest.inside(box, features)].sum())

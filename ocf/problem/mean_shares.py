r"""What a target asks of a mean of shares: several models of several classes, each calibrated and divided by its sum.

With ``c_fj >= 0`` what calibrator j of fold f makes of its score, and ``u`` a weight per class (1 and -1 for one class
against another, ``1 - p`` and ``-p`` for a probability), the target asks that ``sum_f N_f / S_f >= 0``, where
``N_f = sum_j u_j c_fj`` and ``S_f = sum_j c_fj``. In a box of scores S lies between two numbers ``L`` and ``U``, and
``N / S <= max(N / L, N / U)``, whose chord over the range of N is linear in N. So the condition is held from outside by
a sum of functions of one score each, as in `ocf.problem.totals`, which comes nearer as the box is split (after the
linear-fractional programs of Falk and Palocsay 1992).

=========  ===========================================================================================
symbol     meaning
=========  ===========================================================================================
``c_fj``   total j of round f of the decision
``[l, u]`` box of the library's own scores, one interval per total
=========  ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.problem.requirements import Requirements, joined_requirements, never, score_row, scores_at
from ocf.problem.score_boxes import BranchingCurve, score_ends
from ocf.problem.totals import TotalThreshold
from ocf.trees.ensemble import Ensemble
from ocf.trees.totals import Term, Total

#: What the library's divisions and mean may add, with room to spare.
_ROUNDING = 2.0**-40

#: How far beside a point a box is split, against the range of the score: wide enough for a solver's tolerances.
_BESIDE = 1e-6

#: Range of a calibrated score, against the sum of its round, that is not worth a branch.
_NARROW = 1e-9


def mean_share_rows(ensemble: Ensemble, weights: Sequence[float]) -> Requirements:
    """``sum over rounds of (weights . c) / sum(c) >= 0``.

    Parameters
    ----------
    ensemble : Ensemble
        Whose decision has several rounds of totals, each of one score of its own.
    weights : sequence of float
        One per class.
    """
    terms = tuple(total.terms[0] for totals in ensemble.decision.rounds for total in totals)
    low, high = (end[[term.output for term in terms]] for end in score_ends(ensemble))
    return MeanOfShares(ensemble, tuple(low.tolist()), tuple(high.tolist()), terms, tuple(weights)).rows(first=True)


@dataclass(frozen=True)
class MeanOfShares(BranchingCurve):
    """A mean of shares reaches a value, within a box of the scores of its terms.

    Attributes
    ----------
    terms : tuple of Term
        Of each class in each round; each sees another score and is not negative.
    weights : tuple of float
        One per class.
    """

    terms: tuple[Term, ...]
    weights: tuple[float, ...]

    @property
    def outputs(self) -> list[int]:
        """Columns of the scores that the terms see."""
        return [term.output for term in self.terms]

    # -- the relaxation ------------------------------------------------------------------------------------

    @cached_property
    def ranges(self) -> tuple[FloatArray, FloatArray]:
        """Least and most that each term can be, (n_rounds, n_classes)."""
        ends = [
            term.between(np.array([a]), np.array([b]), False)
            for term, a, b in zip(self.terms, self.low, self.high, strict=True)
        ]
        least, most = (np.maximum([e[k][0] for e in ends], 0.0).reshape(-1, len(self.weights)) for k in (0, 1))
        return least, most

    @cached_property
    def places(self) -> IntArray:
        """Places of the terms whose classes have a weight."""
        return np.flatnonzero(np.tile(self.weights, len(self.terms) // len(self.weights)))

    @cached_property
    def outer(self) -> TotalThreshold:
        """A sum of functions of one score each that is at least 0 wherever the mean is, in this box."""
        least, most = self.ranges
        weights = np.array(self.weights)
        lines = [_chord(weights, first, last) for first, last in zip(least, most, strict=True)]
        slopes = np.repeat([slope for slope, _ in lines], len(weights)) * np.tile(weights, len(lines))
        terms = tuple(self.terms[k].times(float(slopes[k])) for k in self.places)
        total = Total(terms, sum(height for _, height in lines) + _ROUNDING, replayed=False)
        low, high = (tuple(np.array(end)[self.places].tolist()) for end in (self.low, self.high))
        return TotalThreshold(self.ensemble, low, high, total, 0.0, False)

    def tangent(self, point: FloatArray) -> Requirements:
        """A requirement of one row that holds wherever the condition does.

        Parameters
        ----------
        point : (n_terms,) float64
            Scores within the box.
        """
        return self.outer.tangent(point[self.places])

    def shrunk(self) -> MeanOfShares | None:
        """The same in a smaller box; None where it holds nowhere."""
        inner = self.outer.shrunk()
        if inner is None:
            return None
        low, high = np.array(self.low), np.array(self.high)
        low[self.places], high[self.places] = inner.low, inner.high
        return self.at(low, high)

    def rows(self, *refused: FloatArray, first: bool = False) -> Requirements:
        """The box, and tangents at some scores, or where the relaxation just passes.

        Parameters
        ----------
        refused : (n_terms,) float64
            Scores at which tangents are wanted.
        first : bool
            Whether the rows tell what has the target beyond doubt.
        """
        box = self.shrunk()
        if box is None:
            return replace(never(self.ensemble), curve=self)
        parts, known = [], score_ends(self.ensemble)
        sure = box.sure_part() if first else (np.array(box.low), np.array(box.high))
        for k, term in enumerate(box.terms):
            for sign, end, widest, beyond in (
                (1.0, box.low[k], known[0], sure[0][k]),
                (-1.0, box.high[k], known[1], sure[1][k]),
            ):
                if end != widest[term.output] or end != beyond:
                    unit = np.zeros(self.ensemble.n_outputs)
                    unit[term.output] = sign
                    parts.append(score_row(self.ensemble, unit, sign * end, sign * float(beyond)))
        points = [np.clip(point, box.low, box.high)[box.places] for point in refused] or [box.outer.just_passing()]
        return joined_requirements([*(box.outer.tangent(point) for point in points), *parts], box)

    def sure_part(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest scores of a part of the box in which the mean passes; infinite where none is found."""
        weights = np.tile(self.weights, len(self.terms) // len(self.weights))
        low, high = np.array(self.low), np.array(self.high)

        def part(share: float) -> tuple[FloatArray, FloatArray]:
            first = np.where(weights > 0, low + share * (high - low), low)
            return first, np.where(weights < 0, high - share * (high - low), high)

        def passes(share: float) -> bool:
            least, most = self.at(*part(share)).ranges
            first = (np.where(np.array(self.weights) > 0, least, most) * self.weights).sum(axis=1)
            size = np.where(first >= 0, most.sum(axis=1), least.sum(axis=1))
            return bool((size > 0).all() and (first / size).sum() > _ROUNDING)

        if not passes(1.0):
            return np.where(weights > 0, np.inf, low), np.where(weights < 0, -np.inf, high)
        bad, good = 0.0, 1.0
        for _ in range(40):
            half = (bad + good) / 2
            bad, good = (bad, half) if passes(half) else (half, good)
        return part(good)

    # -- branching -----------------------------------------------------------------------------------------

    def cuts(self, leaves: IntArray) -> Sequence[Requirements]:
        """Tangents at a refused point, in the parts of the box between which the condition is split.

        None where the mean passes at the point, as far as rounding tells.
        """
        point = scores_at(self.ensemble, leaves)[self.outputs]
        there = self.at(point, point)
        return [] if there.shrunk() is not None else self.branches(leaves, point)

    def split(self, point: FloatArray) -> tuple[MeanOfShares, MeanOfShares] | None:
        """Two boxes, split beside the point at the score whose term may vary most; None where none does.

        Parameters
        ----------
        point : (n_terms,) float64
            Scores within the box.
        """
        least, most = self.ranges
        spread = ((most - least) / np.maximum(most.sum(axis=1, keepdims=True), 1e-300)).ravel()
        first, last = score_ends(self.ensemble)
        for k in np.argsort(-spread, kind="stable").tolist():
            output = self.terms[k].output
            room = _BESIDE * float(last[output] - first[output])
            above, below = float(point[k]) + room, float(point[k]) - room
            at = above if above < self.high[k] else below if below >= self.low[k] else None
            if spread[k] > _NARROW and at is not None:
                return self.halves(k, at)
        return None


def _chord(weights: FloatArray, least: FloatArray, most: FloatArray) -> tuple[float, float]:
    """Slope and height of a line in N that is at least N / S, in one round.

    Parameters
    ----------
    weights : (n_classes,) float64
    least, most : (n_classes,) float64
        Of what is divided by its sum.
    """
    lowest, highest = float(least.sum()), float(most.sum())
    if lowest <= 1e-9 * highest:
        return 0.0, float(weights.max())  # a share is a mean of the weights
    first = float(np.where(weights > 0, least, most) @ weights)
    last = float(np.where(weights > 0, most, least) @ weights)
    if first >= 0 or last <= 0 or first == last:
        return 1 / (lowest if last > 0 else highest), 0.0
    slope = (last / lowest - first / highest) / (last - first)
    return slope, last / lowest - slope * last

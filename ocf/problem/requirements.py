"""What a target asks of the scores: linear rows over leaves, with a bound on rounding."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from ocf.arrays import FloatArray, IntArray
from ocf.trees.ensemble import Ensemble

#: Error bound of a requirement that no score certainly meets, or only one so far out that its link is flat.
BOUNDLESS = 1e3

#: Relative rounding of the coefficients of a tangent.
TANGENT = 1e-13


@dataclass(frozen=True)
class Requirements:
    """``sum over trees of gain[leaf] >= need`` for each row: an alternative of a target, in terms of leaves.

    They hold for every point to which the library itself, with its rounding, can give the target; points within
    rounding of a tie satisfy them too, and the user's model decides about those.

    Attributes
    ----------
    gain : (n_leaves, n_rows) float64
    need : (n_rows,) float64
    error_bound : (n_rows,) float64
        A point that exceeds ``need + error_bound`` in every row certainly has the target; 0 where arithmetic is exact.
    curve : ScoreCurve or None
        A condition that is not linear and that the rows hold from outside.
    """

    gain: FloatArray
    need: FloatArray
    error_bound: FloatArray
    curve: ScoreCurve | None = None

    def tightened(self, leaves: IntArray) -> tuple[Requirements, ...]:
        """These with more rows, which cut off a point that the model has refused or bring a cut nearer.

        Several are alternatives: every point that meets these, and may have the target, meets one of them. None where
        no row can cut.

        Parameters
        ----------
        leaves : (n_trees,) int64
        """
        if self.curve is None:
            return ()
        return tuple(joined_requirements([self, rows], rows.curve) for rows in self.curve.cuts(leaves))


class ScoreCurve(Protocol):
    """A condition on scores that is not linear."""

    @property
    def ensemble(self) -> Ensemble:
        """Whose scores it sees."""

    def over(self, ensemble: Ensemble) -> ScoreCurve:
        """The same of an ensemble with more trees, which add nothing to the scores."""

    def cuts(self, leaves: IntArray) -> Sequence[Requirements]:
        """Rows that a refused choice of leaves does not meet; several are alternatives."""

    @property
    def box(self) -> ScoreBox:
        """Between which numbers the rows hold scores."""

    def within(self, box: ScoreBox) -> ScoreCurve:
        """The same where other rows hold scores in a box."""


#: Lowest and highest of some scores, by their column.
ScoreBox = Mapping[int, tuple[float, float]]


@dataclass(frozen=True)
class CurvesAtOnce:
    """Several conditions on scores that are not linear, all of which must hold.

    Attributes
    ----------
    curves : tuple of ScoreCurve
        Of one ensemble.
    """

    curves: tuple[ScoreCurve, ...]

    @property
    def ensemble(self) -> Ensemble:
        """Whose scores they see."""
        return self.curves[0].ensemble

    @property
    def box(self) -> ScoreBox:
        """Between which numbers the rows hold scores."""
        return {k: ends for curve in self.curves for k, ends in curve.box.items()}

    def over(self, ensemble: Ensemble) -> CurvesAtOnce:
        """The same of an ensemble with more trees."""
        return CurvesAtOnce(tuple(curve.over(ensemble) for curve in self.curves))

    def within(self, box: ScoreBox) -> CurvesAtOnce:
        """The same where other rows hold scores in a box."""
        return CurvesAtOnce(tuple(curve.within(box) for curve in self.curves))

    def cuts(self, leaves: IntArray) -> Sequence[Requirements]:
        """Cuts of the first condition that has some; where it branches, the others learn of it."""
        for k, curve in enumerate(self.curves):
            parts = curve.cuts(leaves)
            if parts:
                return [replace(part, curve=self._beside(k, part.curve)) for part in parts]
        return []

    def _beside(self, k: int, curve: ScoreCurve | None) -> CurvesAtOnce:
        assert curve is not None
        others = tuple(c.within(curve.box) for c in self.curves)
        return CurvesAtOnce((*others[:k], curve, *others[k + 1 :]))


@dataclass(frozen=True)
class SoftmaxThreshold:
    """A softmax probability of class k reaches a threshold: ``s_k - log(sum over others of exp(s)) >= odds``.

    The left side is concave in the scores, so its tangents are valid requirements, and the tangent at a point that
    misses the threshold cuts it off (Kelley's cutting planes).

    Attributes
    ----------
    ensemble : Ensemble
    index : int
        Class k.
    low, high : float
        Log odds that every point with the target reaches, and beyond which every point has it.
    """

    ensemble: Ensemble
    index: int
    low: float
    high: float

    box: ClassVar[ScoreBox] = {}

    def over(self, ensemble: Ensemble) -> SoftmaxThreshold:
        """The same of an ensemble with more trees."""
        return replace(self, ensemble=ensemble)

    def within(self, box: ScoreBox) -> SoftmaxThreshold:
        """The same: its tangents need no box."""
        return self

    def cuts(self, leaves: IntArray) -> Sequence[Requirements]:
        """The tangent at a refused point, where that point misses it."""
        row = self.tangent(scores_at(self.ensemble, leaves))
        return [replace(row, curve=self)] if row.gain[leaves].sum() < row.need[0] else []

    def miss(self, scores: FloatArray) -> float:
        """By how much scores fall short of what all points with the target reach; not above 0 where they do not."""
        others = np.delete(scores, self.index)
        return float(self.low - scores[self.index] + logsumexp(others))

    def tangent(self, scores: FloatArray) -> Requirements:
        """The tangent at some scores, as a requirement of one row."""
        return score_row(self.ensemble, *self.tangent_at(scores))

    def tangent_at(self, scores: FloatArray) -> tuple[FloatArray, float, float]:
        """Weights of the scores in the tangent at some of them, and what it must reach: at least, and for sure."""
        others = np.arange(len(scores)) != self.index
        weight = np.where(others, softmax(np.where(others, scores, -np.inf)), 0.0)
        coefficients = others * -weight
        coefficients[self.index] = 1.0
        # of the tangent of log-sum-exp at the scores, the part that is constant
        constant = float(logsumexp(scores[others]) - weight @ np.where(others, scores, 0.0))
        slack = TANGENT * (1.0 + float(np.abs(scores).max()) + reach(self.ensemble))
        return coefficients, self.low + constant - slack, self.low + constant + slack

    def rows(self) -> Requirements:
        """Class k against each other one, and the tangent where the others score the same.

        A point where k beats each of the others by the odds and the logarithm of their number has the target.
        """
        n = self.ensemble.n_outputs
        pairs = [
            score_row(self.ensemble, _versus(n, self.index, other), self.low, self.high + math.log(n - 1))
            for other in range(n)
            if other != self.index
        ]
        return joined_requirements([*pairs, self.tangent(np.zeros(n))], self)


def scores_at(ensemble: Ensemble, leaves: IntArray) -> FloatArray:
    """Scores of a choice of one leaf per tree, (n_outputs,).

    Parameters
    ----------
    ensemble : Ensemble
    leaves : (n_trees,) int64
    """
    scores: FloatArray = ensemble.base_score + ensemble.contributions[leaves].sum(axis=0)
    return scores


# -- rows ------------------------------------------------------------------------------------------------------


def beats_row(ensemble: Ensemble, index: int, others: Sequence[int]) -> Requirements:
    """A class wins against others, with the library's own rule for ties.

    Parameters
    ----------
    ensemble : Ensemble
    index : int
        Of the class that should win.
    others : sequence of int
        Indices of the classes that it should beat.
    """
    rule = ensemble.decision
    if rule.kind == "threshold":
        sign = 1.0 if index == 1 else -1.0
        coefficients = np.array([[sign]])
        need = np.array([sign * rule.threshold])
        tie_wins = np.array([rule.tie_is_positive == (index == 1)])
    else:
        coefficients = np.array([_versus(ensemble.n_outputs, index, k) for k in others])
        need = np.zeros(len(others))
        tie_wins = np.array([k > index for k in others])
    need = need - coefficients @ ensemble.base_score
    exact = _exact_requirements(ensemble, coefficients, need, tie_wins)
    if exact is not None:
        return exact
    gain = ensemble.contributions @ coefficients.T
    rounding = row_rounding(ensemble, coefficients)
    return Requirements(gain, need - rounding, 2 * rounding)


def _versus(n: int, index: int, other: int) -> FloatArray:
    coefficients = np.zeros(n)
    coefficients[index], coefficients[other] = 1.0, -1.0
    return coefficients


def row_rounding(ensemble: Ensemble, coefficients: FloatArray) -> FloatArray:
    """Rounding of combinations of scores, (n_rows,).

    Parameters
    ----------
    ensemble : Ensemble
    coefficients : (n_rows, n_outputs) float64
    """
    # forming a difference of two scores rounds once more per leaf, which the factor covers
    rounding: FloatArray = np.abs(coefficients).sum(axis=-1) * ensemble.rounding * 1.5 + 1e-300
    return rounding


def score_row(ensemble: Ensemble, coefficients: FloatArray, low: float, high: float) -> Requirements:
    """``coefficients . scores >= low``, certainly met from `high` on; either may be infinite.

    Parameters
    ----------
    ensemble : Ensemble
    coefficients : (n_outputs,) float64
    low, high : float
        On the scale of the scores.
    """
    gain = (ensemble.contributions @ coefficients)[:, None]
    if math.isinf(low):
        # met by all or by none, in numbers that arithmetic can bear
        never = np.array([math.copysign(reach(ensemble) * float(np.abs(coefficients).sum()) + 1.0, low)])
        return Requirements(gain, never, np.zeros(1))
    rounding = float(row_rounding(ensemble, coefficients))
    need = low - float(coefficients @ ensemble.base_score) - rounding
    between = high - low if math.isfinite(high) else BOUNDLESS
    return Requirements(gain, np.array([need]), np.array([between + 2 * rounding]))


def reach(ensemble: Ensemble) -> float:
    """Bound on the absolute value of any score, without the base."""
    largest = np.maximum.reduceat(np.abs(ensemble.contributions).max(axis=1), ensemble.leaf_offsets[:-1])
    return float(largest.sum())


def mean_row(ensemble: Ensemble, coefficients: FloatArray, value: float) -> Requirements:
    """``coefficients . mean of the leaves >= value``; exact where sums are, as for votes of pure leaves.

    Parameters
    ----------
    ensemble : Ensemble
    coefficients : (n_outputs,) float64
    value : float
        On the scale of the leaves.
    """
    quantum = _quantum(ensemble)
    if abs(value) > 2 * reach(ensemble):
        return score_row(ensemble, coefficients, math.copysign(math.inf, value), math.inf)
    if quantum is None:
        return score_row(ensemble, coefficients, value, value)
    gain = (ensemble.leaf_values @ coefficients)[:, None]
    # the smallest sum whose mean, rounded as the library rounds it, reaches the value
    least = math.floor(value * ensemble.n_trees / quantum) - 2
    while least * quantum / ensemble.n_trees < value:
        least += 1
    return Requirements(gain, np.array([(least - 0.5) * quantum]), np.zeros(1))


def nothing_needed(ensemble: Ensemble) -> Requirements:
    """Requirements that every choice of leaves meets."""
    return score_row(ensemble, np.zeros(ensemble.n_outputs), -math.inf, -math.inf)


def never(ensemble: Ensemble) -> Requirements:
    """Requirements that no choice of leaves meets."""
    return score_row(ensemble, np.zeros(ensemble.n_outputs), math.inf, math.inf)


def joined_requirements(parts: Sequence[Requirements], curve: ScoreCurve | None = None) -> Requirements:
    """Requirements that hold where all parts hold.

    Parameters
    ----------
    parts : sequence of Requirements
        Over the same leaves.
    curve : ScoreCurve, optional
        What the parts are a relaxation of.
    """
    return Requirements(
        np.hstack([part.gain for part in parts]),
        np.concatenate([part.need for part in parts]),
        np.concatenate([part.error_bound for part in parts]),
        curve,
    )


def _exact_requirements(
    ensemble: Ensemble, coefficients: FloatArray, need: FloatArray, tie_wins: NDArray[Any]
) -> Requirements | None:
    """Requirements without error where a tie is a true tie: half a quantum separates winning from losing."""
    quantum = _quantum(ensemble)
    if quantum is None or np.any(need):
        return None  # thresholds are of other quanta
    half = np.where(tie_wins, -quantum / 2, quantum / 2)
    return Requirements(ensemble.leaf_values @ coefficients.T, half, np.zeros(len(half)))


def _quantum(ensemble: Ensemble) -> float | None:
    """What all sums of leaf values are multiples of, where floating-point addition makes no error; else None.

    That is so when all leaf values are multiples of a power of two that is not too small against their sum.
    """
    weights = ensemble.tree_weights
    if np.any(weights != weights[0]) or weights[0] <= 0 or ensemble.decision.slack > 0 or np.any(ensemble.base_score):
        return None  # base scores are of other quanta
    values = ensemble.leaf_values
    bits = 24 if ensemble.precision == "float32" else 53
    largest = np.maximum.reduceat(np.abs(values).max(axis=1), ensemble.leaf_offsets[:-1]).sum()
    if largest == 0:
        return None
    least = float(2.0 ** (np.ceil(np.log2(largest)) - bits + 2))
    quantum = _greatest_power(values[values != 0])
    return quantum if quantum >= least else None


def _greatest_power(values: FloatArray) -> float:
    """The greatest power of two that numbers other than 0 are multiples of."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    return float(np.ldexp((whole & -whole).astype(np.float64), exponent - 53).min())

"""A sum of functions of one score each that a target asks for, for kernels.

Rows hold such a sum from outside (`ocf.problem.totals`). Where each function is linear between points, as those of
isotonic calibrators are, a search can know it as it is: a box in which the best score of each function together miss
the need holds nothing, however far the rows are from it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.problem.requirements import Requirements, reach, row_rounding
from ocf.problem.totals import TotalThreshold
from ocf.support.numba_cache import helper

#: Relative rounding of sums of gains, and of functions, that is allowed for.
_ROUNDING = 1e-12


class ScoreSum(NamedTuple):
    """Rising functions of the totals of some rows, whose sum must reach a number.

    Attributes
    ----------
    term : (n_rows,) int64
        Number of the function of each row's total, -1 for none.
    start : (n_terms + 1,) int64
        The points of function k are ``start[k]:start[k + 1]``.
    x, y : (n,) float64
        A function is linear between its points and constant beyond them; at least what the library may show.
    need : (1,) float64
        No sum below it has the target.
    """

    term: IntArray
    start: IntArray
    x: FloatArray
    y: FloatArray
    need: FloatArray


def score_sum(requirements: Requirements) -> ScoreSum:
    """The sum that requirements hold from outside; without functions where they hold none, or not one of this kind."""
    curve = requirements.curve
    term = np.full(len(requirements.need), -1, np.int64)
    nothing = ScoreSum(term.copy(), np.zeros(1, np.int64), np.zeros(0), np.zeros(0), np.full(1, -np.inf))
    if not isinstance(curve, TotalThreshold):
        return nothing
    points = curve.points()
    if points is None:
        return nothing
    xs, ys, ensemble = [], [], curve.ensemble
    for k, (own, (x, y)) in enumerate(zip(curve.total.terms, points, strict=True)):
        sign = 1.0 if own.rises else -1.0
        rows = np.flatnonzero((requirements.gain == sign * ensemble.contributions[:, [own.output]]).all(axis=0))
        if not len(rows):
            return nothing
        term[rows[0]] = k
        unit = np.zeros(ensemble.n_outputs)
        unit[own.output] = 1.0
        base = float(ensemble.base_score[own.output])
        error = float(row_rounding(ensemble, unit)) + _ROUNDING * (reach(ensemble) + abs(base))
        xs.append(np.sort(sign * (x - base)) - error)
        ys.append(np.maximum.accumulate(y if own.rises else y[::-1]))
    size = sum(float(np.abs(y).max()) for y in ys)
    need = curve.need - _ROUNDING * (size + abs(curve.need))
    start = np.cumsum([0, *(len(x) for x in xs)]).astype(np.int64)
    return ScoreSum(term, start, np.concatenate(xs), np.concatenate(ys), np.full(1, need))


def hold_sum(requirements: Requirements) -> bool:
    """Whether kernels know what requirements hold from outside."""
    return len(score_sum(requirements).start) > 1


@helper
def has_terms(sums: ScoreSum) -> bool:
    """Whether there are functions at all."""
    return len(sums.start) > 1


@helper
def term_value(sums: ScoreSum, k: int, total: float) -> float:
    """Function k of a total.

    Parameters
    ----------
    sums : ScoreSum
    k : int
    total : float
    """
    a, b = sums.start[k], sums.start[k + 1] - 1
    if total <= sums.x[a]:
        return float(sums.y[a])
    if total >= sums.x[b]:
        return float(sums.y[b])
    while b - a > 1:
        half = (a + b) // 2
        if sums.x[half] <= total:
            a = half
        else:
            b = half
    share = (total - sums.x[a]) / (sums.x[b] - sums.x[a])
    return float(sums.y[a] + share * (sums.y[b] - sums.y[a]))


@helper
def least_total(sums: ScoreSum, k: int, value: float) -> float:
    """Least total for which function k reaches a value; infinite where all do, or none.

    Parameters
    ----------
    sums : ScoreSum
    k : int
    value : float
    """
    j, end = sums.start[k], sums.start[k + 1]
    if sums.y[j] >= value:
        return -np.inf
    while j < end and sums.y[j] < value:
        j += 1
    if j == end:
        return np.inf
    share = (value - sums.y[j - 1]) / (sums.y[j] - sums.y[j - 1])
    return float(sums.x[j - 1] + share * (sums.x[j] - sums.x[j - 1]))

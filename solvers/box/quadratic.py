r"""The least value of a convex quadratic form over a box, by an active set, and a bound that rounding cannot break.

.. math::

    f(t) = \sum_k (F t)_k^2 + \sum_i q_i t_i^2 + p_i(t_i), \qquad
    f(t) \ge \sum_i \bigl((2 F' s + 2 q \circ z)_i\, t_i + q_i (t_i - z_i)^2 - q_i z_i^2 + p_i(t_i)\bigr) - \|s\|^2

with p of one slope on each side of 0. The second holds for any s and z, whatever the point that they come from: it is
a sum over features, of which a box, and each cell by itself, has its least value. With s and z of the least point of
the box it is the least value there. Only the diagonal q is followed exactly, so that q should be large.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.support.numba_cache import helper

#: What is added to the diagonal, which is 1, so that a singular form can be factored; steps are repeated until it no
#: longer matters.
RIDGE = 1e-12

#: Steps that are repeated for that, at most.
REPEATED = 4

#: Part of the largest slope that counts as rounding.
FLAT = 1e-11

#: Unit roundoff of float64, with room to spare.
EPS = float(np.finfo(float).eps)


class Quadratic(NamedTuple):
    """A form over the features that it couples, in units in which each costs about 1 by itself.

    Attributes
    ----------
    matrix : (m, m) float64
        ``F'F`` and the diagonal q.
    forms : (n_forms, m) float64
        ``F``.
    diagonal, up, down : (m,) float64
        ``q``, and what a unit of increase and of decrease costs besides, at least 0.
    """

    matrix: FloatArray
    forms: FloatArray
    diagonal: FloatArray
    up: FloatArray
    down: FloatArray


class ActiveSet(NamedTuple):
    """ActiveSet arrays of `minimise`, and what it leaves behind.

    Attributes
    ----------
    slope : (m,) float64
        Of the form at the least point, afterwards: of the bound, without what a feature costs besides.
    sums : (n_forms,) float64
        ``s``, afterwards.
    gradient, piece, first, last, step : (m,) float64
    factor : (m, m) float64
    free : (m,) int64
    state : (m,) int64
    """

    slope: FloatArray
    sums: FloatArray
    gradient: FloatArray
    piece: FloatArray
    first: FloatArray
    last: FloatArray
    step: FloatArray
    factor: FloatArray
    free: IntArray
    state: IntArray


def new_active_set(quadratic: Quadratic) -> ActiveSet:
    """ActiveSet of the sizes that a form needs."""
    n_forms, m = quadratic.forms.shape
    slope, gradient, piece, first, last, step = (np.zeros(m) for _ in range(6))
    free, state = np.zeros(m, np.int64), np.zeros(m, np.int64)
    return ActiveSet(slope, np.zeros(n_forms), gradient, piece, first, last, step, np.zeros((m, m)), free, state)


@helper
def minimise(quadratic: Quadratic, low: FloatArray, high: FloatArray, t: FloatArray, scratch: ActiveSet) -> float:
    """Find the least point of a box; returns what no point of it is below.

    Parameters
    ----------
    quadratic : Quadratic
    low, high : (m,) float64
    t : (m,) float64
        Where to start; overwritten with the least point.
    scratch : ActiveSet
        Overwritten.
    """
    _start_in_box(quadratic, low, high, t, scratch)
    repeated = 0
    for _ in range(6 * len(t) + 20):
        size = _gradient(quadratic, t, scratch)
        if _step(quadratic, t, scratch):
            continue
        size = _gradient(quadratic, t, scratch)
        if _release(quadratic, low, high, t, scratch, FLAT * size):
            continue
        repeated += 1
        if repeated > REPEATED or not _has_slope(scratch, FLAT * size):
            break
    return lower_bound(quadratic, low, high, t, scratch)


@helper
def _start_in_box(quadratic: Quadratic, low: FloatArray, high: FloatArray, t: FloatArray, scratch: ActiveSet) -> None:
    """Move the start into the box, and free what lies inside."""
    for i in range(len(t)):
        t[i] = min(max(t[i], low[i]), high[i])
        bent = quadratic.up[i] + quadratic.down[i] > 0
        scratch.state[i] = 0
        if low[i] < t[i] < high[i] and not (bent and t[i] == 0.0):
            _free(quadratic, low, high, i, t[i] > 0, scratch)


@helper
def _free(quadratic: Quadratic, low: FloatArray, high: FloatArray, i: int, above: bool, scratch: ActiveSet) -> None:
    """Let a feature move, on its side of 0 if what it costs bends there."""
    scratch.state[i] = 1
    scratch.first[i], scratch.last[i] = low[i], high[i]
    if quadratic.up[i] + quadratic.down[i] == 0:
        scratch.piece[i] = 0.0
    elif above:
        scratch.piece[i], scratch.first[i] = quadratic.up[i], max(low[i], 0.0)
    else:
        scratch.piece[i], scratch.last[i] = -quadratic.down[i], min(high[i], 0.0)


@helper
def _gradient(quadratic: Quadratic, t: FloatArray, scratch: ActiveSet) -> float:
    """Write the slopes of the form, without those of the pieces; returns a number of their size."""
    size = 0.0
    for i in range(len(t)):
        total = largest = 0.0
        for j in range(len(t)):
            term = 2.0 * quadratic.matrix[i, j] * t[j]
            total += term
            largest = max(largest, abs(term))
        scratch.gradient[i] = total
        size = max(size, largest + quadratic.up[i] + quadratic.down[i])
    return size


@helper
def _step(quadratic: Quadratic, t: FloatArray, scratch: ActiveSet) -> bool:
    """Move to the least point of the free features or, in its direction, to where the first meets its end: True."""
    n = 0
    for i in range(len(t)):
        if scratch.state[i] == 1:
            scratch.free[n] = i
            n += 1
    _solve(quadratic, n, scratch)
    share, blocking = 1.0, -1
    for k in range(n):
        i, d = scratch.free[k], scratch.step[k]
        end = scratch.last[i] if d > 0 else scratch.first[i]
        if (d > 0 and t[i] + d > end) or (d < 0 and t[i] + d < end):
            part = max((end - t[i]) / d, 0.0)
            if part < share or blocking < 0:
                share, blocking = part, i
    for k in range(n):
        i = scratch.free[k]
        t[i] = min(max(t[i] + share * scratch.step[k], scratch.first[i]), scratch.last[i])
        if i == blocking:
            t[i] = scratch.last[i] if scratch.step[k] > 0 else scratch.first[i]
            scratch.state[i] = 0
    return blocking >= 0


@helper
def _solve(quadratic: Quadratic, n: int, scratch: ActiveSet) -> None:
    """Newton's step of the free features, by Cholesky's factors."""
    factor, step = scratch.factor, scratch.step
    for a in range(n):
        i = scratch.free[a]
        for b in range(a + 1):
            factor[a, b] = quadratic.matrix[i, scratch.free[b]]
        step[a] = -0.5 * (scratch.gradient[i] + scratch.piece[i])
    solve_by_factors(factor, step, n, RIDGE)


@helper
def solve_by_factors(factor: FloatArray, step: FloatArray, n: int, ridge: float) -> None:
    """Solve a system of n equations, whose matrix is positive semidefinite, in the place of its right side.

    Parameters
    ----------
    factor : (n, n) float64
        The matrix, of which the lower half is read; overwritten with its factor. It may be larger.
    step : (n,) float64
        The right side; overwritten. It may be larger.
    n : int
    ridge : float
        Added to the diagonal, so that the matrix can be factored.
    """
    for a in range(n):
        for b in range(a + 1):
            total = factor[a, b]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            factor[a, b] = np.sqrt(max(total + ridge, 0.5 * ridge)) if a == b else total / factor[b, b]
    for a in range(n):
        total = step[a]
        for c in range(a):
            total -= factor[a, c] * step[c]
        step[a] = total / factor[a, a]
    for a in range(n - 1, -1, -1):
        total = step[a]
        for c in range(a + 1, n):
            total -= factor[c, a] * step[c]
        step[a] = total / factor[a, a]


@helper
def _release(
    quadratic: Quadratic, low: FloatArray, high: FloatArray, t: FloatArray, scratch: ActiveSet, flat: float
) -> bool:
    """Free the feature at an end whose move pays most; False when none does."""
    most, chosen, above = flat, -1, False
    for i in range(len(t)):
        if scratch.state[i] == 1:
            continue
        gradient = scratch.gradient[i]
        right = gradient + (quadratic.up[i] if t[i] >= 0 else -quadratic.down[i])
        left = gradient + (quadratic.up[i] if t[i] > 0 else -quadratic.down[i])
        if t[i] < high[i] and -right > most:
            most, chosen, above = -right, i, t[i] >= 0
        if t[i] > low[i] and left > most:
            most, chosen, above = left, i, t[i] > 0
    if chosen >= 0:
        _free(quadratic, low, high, chosen, above, scratch)
    return chosen >= 0


@helper
def _has_slope(scratch: ActiveSet, flat: float) -> bool:
    """Whether the free features still have a slope."""
    most = 0.0
    for i in range(len(scratch.state)):
        if scratch.state[i] == 1:
            most = max(most, abs(scratch.gradient[i] + scratch.piece[i]))
    return most > flat


@helper
def lower_bound(quadratic: Quadratic, low: FloatArray, high: FloatArray, t: FloatArray, scratch: ActiveSet) -> float:
    """What no point of a box is below, by the tangent at t; leaves its slopes and sums.

    Parameters
    ----------
    quadratic : Quadratic
    low, high : (m,) float64
    t : (m,) float64
    scratch : ActiveSet
        Its slopes and sums are overwritten.
    """
    forms, slope, sums = quadratic.forms, scratch.slope, scratch.sums
    out = rounding = 0.0
    for k in range(len(forms)):
        total = 0.0
        for i in range(len(t)):
            total += forms[k, i] * t[i]
        sums[k] = total
        out -= total * total
    for i in range(len(t)):
        total, size = 2.0 * quadratic.diagonal[i] * t[i], 0.0
        for k in range(len(forms)):
            term = 2.0 * forms[k, i] * sums[k]
            total += term
            size += abs(term)
        size += abs(2.0 * quadratic.diagonal[i] * t[i]) + quadratic.up[i] + quadratic.down[i]
        slope[i] = total
        rounding += size * max(abs(low[i]), abs(high[i]))
        out += least_between(quadratic.up[i], quadratic.down[i], total, low[i], high[i])
        out -= quadratic.diagonal[i] * t[i] * t[i]
        rounding += abs(quadratic.diagonal[i] * t[i] * t[i])
    rounding += abs(out)
    return out - (len(forms) + len(t) + 8) * EPS * rounding


@helper
def least_between(up: float, down: float, slope: float, low: float, high: float) -> float:
    """Least value of a line and what the feature costs besides, between two numbers.

    Parameters
    ----------
    up, down : float
        What a unit of increase and of decrease costs besides, at least 0.
    slope : float
        Of the line, which is 0 at 0.
    low, high : float
    """
    first = slope * low + (up * low if low > 0 else -down * low)
    last = slope * high + (up * high if high > 0 else -down * high)
    return min(first, last, 0.0) if low < 0 < high else min(first, last)

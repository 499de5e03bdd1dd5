r"""The least of separable squares over a box whose sums lie in ranges: by Newton's method on the dual.

.. math::

    f(t) = \sum_i \bigl(q_i t_i^2 + p_i(t_i)\bigr) \ge
    \sum_i \min_{t_i} \bigl(q_i t_i^2 + p_i(t_i) + (A' v)_i\, t_i\bigr) - \sum_k \max_{a_k \le s \le b_k} v_k s

for every t of the box with sums in their ranges, p of one slope on each side of 0, every q positive, and any v. The
right side is concave and, along any line, of pieces of parabolas: Newton's step is that of the piece in which v lies,
in the multipliers that are not 0 or whose sums are off their ranges, and it ends where a multiplier comes to 0 or the
right side is greatest on its line (a semismooth method, which ends after finitely many pieces). A multiplier stops at
the price of its sum, with which sums that cannot be in their ranges cost more than any change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.solvers.box.quadratic import EPS, least_between, solve_by_factors
from ocf.solvers.box.sums import Slopes, SumCosts
from ocf.support.loops import fill
from ocf.support.numba_cache import helper

#: Steps, at most; the bound holds after any number of them.
STEPS = 50

#: Part of the bound that a step must promise to be taken.
GAIN = 1e-12

#: What is added to the diagonal of the matrix of a step, in parts of its largest entry.
RIDGE = 1e-12


class DualTable(NamedTuple):
    """Arrays of `least_squares`.

    Attributes
    ----------
    active : (n_forms,) int64
        Sums whose multipliers a step moves.
    open : (n_forms,) bool
        Sums that are not left out.
    end, miss, step : (n_forms,) float64
        For each active sum: the end of its range that it is to reach, by how much it is beyond that, and how its
        multiplier moves.
    matrix : (n, n) float64
        Of a step; no more than n sums are active.
    speed : (m,) float64
        How the slopes of changes move in a step.
    piece : (m,) int64
        Where a change is, as its slope grows: 0 at its upper end, 1 above 0, 2 at 0, 3 below, 4 at its lower end.
    """

    active: IntArray
    open: BoolArray
    end: FloatArray
    miss: FloatArray
    step: FloatArray
    matrix: FloatArray
    speed: FloatArray
    piece: IntArray


def new_dual_table(n_forms: int, m: int) -> DualTable:
    """A table of the size that forms need.

    Parameters
    ----------
    n_forms, m : int
        Numbers of forms and of features.
    """
    most = min(n_forms, 2 * m)
    end, miss, step = (np.zeros(n_forms) for _ in range(3))
    names = np.zeros(n_forms, np.int64), np.zeros(n_forms, bool)
    return DualTable(*names, end, miss, step, np.zeros((most, most)), np.zeros(m), np.zeros(m, np.int64))


@helper
def least_squares(
    costs: SumCosts,
    square: FloatArray,
    low: FloatArray,
    high: FloatArray,
    t: FloatArray,
    slopes: Slopes,
    table: DualTable,
) -> float:
    """Find the least point of a box; returns what no point of it is below.

    Parameters
    ----------
    costs : SumCosts
    square : (m,) float64
        What the square of a change costs, positive.
    low, high : (m + n_forms,) float64
        Ends of the features, and of the ranges of sums.
    t : (m + n_forms,) float64
        The changes are overwritten with those of the least point, where the sums have no such point with those from
        which they are least far away. See `ocf.solvers.box.sums.sum_within`.
    slopes : Slopes
        Its signs are where to start; overwritten with those of the bound, to which a change adds ``2 q t``.
    table : DualTable
        Overwritten.
    """
    m = len(costs.up)
    n = 0
    for k in range(len(slopes.sign)):
        table.open[k] = costs.binds[k] or low[m + k] > costs.low[k] or high[m + k] < costs.high[k]
        slopes.sign[k] = min(max(slopes.sign[k], -costs.price[k]), costs.price[k]) if table.open[k] else 0.0
        n += slopes.sign[k] != 0.0
    if n > m:
        fill(slopes.sign, 0.0)
    for _ in range(STEPS):
        bound = _place(costs, square, low, high, t, slopes, table)
        n = _solve(costs, square, _activate(costs, low, high, t, slopes, table), slopes, table)
        promised = 0.0
        for a in range(n):
            promised += 0.5 * table.miss[a] * table.step[a]
        if promised <= GAIN * abs(bound):
            break
        _move(costs, square, low, high, n, slopes, table)
    return _bound(costs, square, low, high, t, slopes, table)


@helper
def _boundary(up: float, down: float, square: float, low: float, high: float, piece: int) -> float:
    """Slope at which a change goes from one piece to the next; see `DualTable`."""
    if piece < 2:
        return -up - 2.0 * square * max(high if piece == 0 else low, 0.0) if high > 0 else -np.inf
    return down - 2.0 * square * min(high if piece == 2 else low, 0.0) if low < 0 else np.inf


@helper
def _place(
    costs: SumCosts,
    square: FloatArray,
    low: FloatArray,
    high: FloatArray,
    t: FloatArray,
    slopes: Slopes,
    table: DualTable,
) -> float:
    """Write the slopes at the multipliers, and the changes and pieces that are least with them; the bound, rounded."""
    m, out = len(costs.up), 0.0
    for i in range(m):
        slopes.slope[i] = 0.0
    for k in range(len(slopes.sign)):
        v = slopes.sign[k]
        if v != 0.0:
            out += least_between(0.0, 0.0, -v, low[m + k], high[m + k])
            for i in range(m):
                slopes.slope[i] += costs.forms[k, i] * v
    for i in range(m):
        slope, piece = slopes.slope[i], 0
        while piece < 4 and slope > _boundary(costs.up[i], costs.down[i], square[i], low[i], high[i], piece):
            piece += 1
        if piece == 1:
            t[i] = -(slope + costs.up[i]) / (2.0 * square[i])
        elif piece == 3:
            t[i] = -(slope - costs.down[i]) / (2.0 * square[i])
        else:
            t[i] = high[i] if piece == 0 else low[i] if piece == 4 else 0.0
        t[i] = min(max(t[i], low[i]), high[i])
        table.piece[i] = piece
        out += (slope + square[i] * t[i] + (costs.up[i] if t[i] > 0 else -costs.down[i])) * t[i]
    return out


@helper
def _activate(
    costs: SumCosts, low: FloatArray, high: FloatArray, t: FloatArray, slopes: Slopes, table: DualTable
) -> int:
    """Write which sums a step is about; how many. Multipliers that are not 0 come first, then what is missed most."""
    m, n = len(costs.up), 0
    for k in range(len(slopes.sign)):
        table.step[k] = 0.0
        if not table.open[k]:
            continue
        total = 0.0
        for i in range(m):
            total += costs.forms[k, i] * t[i]
        v = slopes.sign[k]
        if v != 0.0:
            table.active[n] = k
            table.end[n] = high[m + k] if v > 0 else low[m + k]
            table.miss[n] = total - table.end[n]
            n += 1
        else:
            table.step[k] = max(total - high[m + k], 0.0) + min(total - low[m + k], 0.0)
    while n < len(table.matrix):
        most = 0.0
        for k in range(len(slopes.sign)):
            if abs(table.step[k]) > most:
                most, table.active[n] = abs(table.step[k]), k
        if most == 0.0:
            break
        k = table.active[n]
        table.miss[n], table.step[k] = table.step[k], 0.0
        table.end[n] = high[m + k] if table.miss[n] > 0 else low[m + k]
        n += 1
    return n


@helper
def _solve(costs: SumCosts, square: FloatArray, n: int, slopes: Slopes, table: DualTable) -> int:
    """Write the step of the active sums, without those whose multipliers may not move that way; how many are left."""
    while n > 0:
        _newton(costs, square, n, table)
        kept = 0
        for a in range(n):
            k, step = table.active[a], table.step[a]
            v = slopes.sign[k]
            turns = v == 0.0 and step * table.miss[a] < 0
            if turns or (v >= costs.price[k] and step > 0) or (v <= -costs.price[k] and step < 0):
                continue
            table.active[kept], table.end[kept] = k, table.end[a]
            table.miss[kept], table.step[kept] = table.miss[a], step
            kept += 1
        if kept == n:
            break
        n = kept
    return n


@helper
def _newton(costs: SumCosts, square: FloatArray, n: int, table: DualTable) -> None:
    """Newton's step of the active sums, by Cholesky's factors."""
    largest = 0.0
    for a in range(n):
        one = table.active[a]
        for b in range(a + 1):
            other, total = table.active[b], 0.0
            for i in range(len(square)):
                if table.piece[i] == 1 or table.piece[i] == 3:
                    total += costs.forms[one, i] * costs.forms[other, i] / (2.0 * square[i])
            table.matrix[a, b] = total
        largest = max(largest, table.matrix[a, a])
        table.step[a] = table.miss[a]
    solve_by_factors(table.matrix, table.step, n, RIDGE * max(largest, 1e-100))


@helper
def _move(
    costs: SumCosts, square: FloatArray, low: FloatArray, high: FloatArray, n: int, slopes: Slopes, table: DualTable
) -> None:
    """Move the multipliers of n active sums to where the bound is greatest, or the first comes to 0 or to its price."""
    rate, farthest, stopped = 0.0, np.inf, -1
    fill(table.speed, 0.0)
    for a in range(n):
        k, step = table.active[a], table.step[a]
        rate += table.miss[a] * step
        for i in range(len(square)):
            table.speed[i] += costs.forms[k, i] * step
        if step != 0.0:
            length = (_stop(costs, k, step, slopes) - slopes.sign[k]) / step
            if length < farthest:
                farthest, stopped = length, k
    length = _length(costs, square, low, high, rate, farthest, slopes, table)
    for a in range(n):
        k, step = table.active[a], table.step[a]
        if k == stopped and length == farthest:
            slopes.sign[k] = _stop(costs, k, step, slopes)
        else:
            slopes.sign[k] = min(max(slopes.sign[k] + length * step, -costs.price[k]), costs.price[k])


@helper
def _stop(costs: SumCosts, k: int, step: float, slopes: Slopes) -> float:
    """Where a multiplier that moves stops: at 0, or at its price."""
    if slopes.sign[k] * step < 0:
        return 0.0
    return costs.price[k] if step > 0 else -costs.price[k]


@helper
def _length(
    costs: SumCosts,
    square: FloatArray,
    low: FloatArray,
    high: FloatArray,
    rate: float,
    farthest: float,
    slopes: Slopes,
    table: DualTable,
) -> float:
    """How far a step goes on until the bound, which grows at a rate, is greatest; moves the pieces along."""
    length = curve = 0.0
    for i in range(len(square)):
        curve += _curve(square, i, table)
    while True:
        nearest, bent = farthest, -1
        for i in range(len(square)):
            speed, piece = table.speed[i], table.piece[i]
            if speed != 0.0 and piece != (4 if speed > 0 else 0):
                between = piece if speed > 0 else piece - 1
                bend = _boundary(costs.up[i], costs.down[i], square[i], low[i], high[i], between)
                at = max((bend - slopes.slope[i]) / speed, length)
                if at < nearest:
                    nearest, bent = at, i
        fall = curve * (nearest - length)
        if rate <= fall and curve > 0:
            return length + rate / curve
        rate, length = rate - fall, nearest
        if bent < 0:
            return length
        curve -= _curve(square, bent, table)
        table.piece[bent] += 1 if table.speed[bent] > 0 else -1
        curve = max(curve, 0.0) + _curve(square, bent, table)


@helper
def _curve(square: FloatArray, i: int, table: DualTable) -> float:
    """What a change takes off the growth of the bound, per unit of a step."""
    return table.speed[i] ** 2 / (2.0 * square[i]) if table.piece[i] == 1 or table.piece[i] == 3 else 0.0


@helper
def _bound(
    costs: SumCosts,
    square: FloatArray,
    low: FloatArray,
    high: FloatArray,
    t: FloatArray,
    slopes: Slopes,
    table: DualTable,
) -> float:
    """What no point of a box is below, by any v; leaves its slopes, and the changes that are least with them."""
    m, rounding = len(costs.up), 0.0
    out = _place(costs, square, low, high, t, slopes, table)
    for k in range(len(slopes.sign)):
        v = slopes.sign[k]
        slopes.slope[m + k] = -v
        rounding += abs(v) * max(abs(low[m + k]), abs(high[m + k]))
        if v != 0.0:
            for i in range(m):
                rounding += abs(costs.forms[k, i] * v) * max(abs(low[i]), abs(high[i]))
    for i in range(m):
        far = max(abs(low[i]), abs(high[i]))
        rounding += (costs.up[i] + costs.down[i] + square[i] * far) * far
        slopes.slope[i] += 2.0 * square[i] * t[i]
    out -= 2.0 * (len(slopes.slope) + 8) * EPS * rounding
    if not np.isfinite(out):  # beyond the numbers of float64 nothing is known, which signs of 0 say
        fill(slopes.sign, 0.0)
        fill(slopes.slope, 0.0)
        fill(t[:m], 0.0)
        return 0.0
    return out

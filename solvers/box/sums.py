r"""What linear forms over a box lie off their ranges, priced, at least: by the simplex method, and a bound that holds.

.. math::

    f(t) &= \sum_k M_k\, d\bigl((A t)_k, [a_k, b_k]\bigr) + \sum_i p_i(t_i) \\
    f(t) &\ge \sum_i \bigl((A' v)_i\, t_i + p_i(t_i)\bigr) - \sum_k \max_{a_k \le s \le b_k} v_k s

with p of one slope on each side of 0, and d the distance of a sum from its range. The second holds for any v between -M
and M, whatever the point that it comes from: it is a sum over features and sums, of which a box, and each cell by
itself, has its least value. With v of the least point of the box it is the least value there. An absolute value is a
sum whose range is 0 and whose price is 1; of sums that must not leave their ranges, any price gives a bound.

The least point is found as Barrodale and Roberts (1973) fit by least absolute deviations: along an edge a step goes on
past every bend while the whole still falls, so that few steps are taken. ``t`` and the sums ``s = A t`` are one list of
variables here, t first, and the *inner* ones of them stand in the columns of a table that gives all others, the *outer*
ones, of which each has a row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.solvers.box.quadratic import EPS, FLAT, least_between
from ocf.support.loops import fill
from ocf.support.numba_cache import helper

#: Steps for each variable, at most; the bound holds after any number of them.
STEPS = 6

#: Part of the largest entry of a column that counts as 0.
TINY = 1e-11


class SumCosts(NamedTuple):
    """Linear forms of changes, and what they and the changes cost.

    Attributes
    ----------
    forms : (n_forms, m) float64
        ``A``.
    price : (n_forms,) float64
        ``M``.
    low, high : (n_forms,) float64
        The widest range of each.
    binds : (n_forms,) bool
        Whether a sum may be off its widest range; others are left out of what has that.
    up, down : (m,) float64
        What a unit of increase and of decrease costs besides, at least 0.
    """

    forms: FloatArray
    price: FloatArray
    low: FloatArray
    high: FloatArray
    binds: BoolArray
    up: FloatArray
    down: FloatArray


def absolute_values(forms: FloatArray, up: FloatArray, down: FloatArray) -> SumCosts:
    """The costs of absolute values of forms.

    Parameters
    ----------
    forms : (n_forms, m) float64
    up, down : (m,) float64
        As in `SumCosts`.
    """
    none = np.zeros(len(forms))
    return SumCosts(forms, none + 1.0, none, none, np.ones(len(forms), bool), up, down)


class Slopes(NamedTuple):
    """What tells a bound at the least point of a box, and what it costs beside that.

    Attributes
    ----------
    sign : (n_forms,) float64
        ``v``.
    slope : (m + n_forms,) float64
        ``A' v`` and ``-v``.
    """

    sign: FloatArray
    slope: FloatArray


def new_slopes(n_forms: int, m: int) -> Slopes:
    """Slopes of the size that forms need.

    Parameters
    ----------
    n_forms, m : int
        Numbers of forms and of features.
    """
    return Slopes(np.zeros(n_forms), np.zeros(m + n_forms))


class SimplexTable(NamedTuple):
    """Arrays of `least_sum`.

    Attributes
    ----------
    rows : (n_forms, m) float64
        The outer variables by the inner ones; those that are not left out come first, as in all that is of outer ones.
    value : (m + n_forms,) float64
    outer : (n_forms,) int64
    inner : (m,) int64
    cost : (n_forms,) float64
        What an outer variable costs per unit.
    gradient : (m,) float64
        What outer variables cost per unit of an inner one.
    n_outer : (1,) int64
        Outer variables.
    length, target, jump, after : (n_forms + 1,) float64
        Of a step: how far each outer variable, and last the one that moves, is from its next bend, where that lies, by
        how much the slope of the whole grows there, and what the variable costs per unit beyond it.
    """

    rows: FloatArray
    value: FloatArray
    outer: IntArray
    inner: IntArray
    cost: FloatArray
    gradient: FloatArray
    n_outer: IntArray
    length: FloatArray
    target: FloatArray
    jump: FloatArray
    after: FloatArray


def new_table(n_forms: int, m: int) -> SimplexTable:
    """A table of the size that forms need.

    Parameters
    ----------
    n_forms, m : int
        Numbers of forms and of features.
    """
    names = np.zeros(n_forms, np.int64), np.zeros(m, np.int64)
    of_step = (np.zeros(n_forms + 1) for _ in range(4))
    rows, value = np.zeros((n_forms, m)), np.zeros(m + n_forms)
    return SimplexTable(rows, value, *names, np.zeros(n_forms), np.zeros(m), np.zeros(1, np.int64), *of_step)


@helper
def least_sum(
    costs: SumCosts, low: FloatArray, high: FloatArray, t: FloatArray, slopes: Slopes, table: SimplexTable
) -> float:
    """Find the least point of a box; returns what no point of it is below.

    Parameters
    ----------
    costs : SumCosts
    low, high : (m + n_forms,) float64
        Ends of the features, and of the ranges of sums.
    t : (m + n_forms,) float64
        Where to start; the changes are overwritten with those of the least point. See `sum_within`.
    slopes : Slopes
        Overwritten with those of the bound.
    table : SimplexTable
        Overwritten.
    """
    m = len(costs.up)
    _start_in_box(costs, low, high, t, table)
    fill(slopes.sign, 0.0)
    n = table.n_outer[0]
    for _ in range(STEPS * (m + n)):
        size = _price(costs, low, high, table)
        j, direction, rate = _steepest(costs, low, high, FLAT * size, table)
        if j < 0 or not _step(costs, low, high, j, direction, rate, table):
            break
    _price(costs, low, high, table)
    for k in range(n):
        if table.outer[k] >= m:
            slopes.sign[table.outer[k] - m] = table.cost[k]
    for j in range(m):
        if table.inner[j] >= m:
            k = table.inner[j] - m
            slopes.sign[k] = min(max(-table.gradient[j], -costs.price[k]), costs.price[k])
    for i in range(m):
        t[i] = min(max(table.value[i], low[i]), high[i])
    return _bound_of_signs(costs, low, high, slopes)


@helper
def sum_within(costs: SumCosts, low: FloatArray, high: FloatArray, t: FloatArray) -> None:
    """Write the sums of changes, each moved into its range.

    Parameters
    ----------
    costs : SumCosts
    low, high, t : (m + n_forms,) float64
        As in `least_sum`; the sums are overwritten.
    """
    m = len(costs.up)
    for k in range(len(costs.price)):
        total = 0.0
        for i in range(m):
            total += costs.forms[k, i] * t[i]
        t[m + k] = min(max(total, low[m + k]), high[m + k])


@helper
def _start_in_box(costs: SumCosts, low: FloatArray, high: FloatArray, t: FloatArray, table: SimplexTable) -> None:
    """The changes inside, moved into the box, and the sums outside that may be off their ranges."""
    m = len(costs.up)
    for i in range(m):
        table.value[i] = min(max(t[i], low[i]), high[i])
        table.inner[i] = i
    n = 0
    for k in range(len(costs.price)):
        if not costs.binds[k] and low[m + k] <= costs.low[k] and high[m + k] >= costs.high[k]:
            continue
        total = 0.0
        for i in range(m):
            table.rows[n, i] = costs.forms[k, i]
            total += costs.forms[k, i] * table.value[i]
        table.value[m + k] = total
        table.outer[n] = m + k
        n += 1
    table.n_outer[0] = n


@helper
def _slopes(costs: SumCosts, low: FloatArray, high: FloatArray, variable: int, value: float) -> tuple[float, float]:
    """What a variable costs per unit on its way up to where it stands, and on from there."""
    m = len(costs.up)
    if variable < m:
        up, down = costs.up[variable], costs.down[variable]
        return up if value > 0 else -down, up if value >= 0 else -down
    a, b, price = low[variable], high[variable], costs.price[variable - m]
    before = -price if value <= a else price if value > b else 0.0
    return before, -price if value < a else price if value >= b else 0.0


@helper
def _price(costs: SumCosts, low: FloatArray, high: FloatArray, table: SimplexTable) -> float:
    """Write the prices of outer variables, and gradients by the inner ones; a number of their size.

    At a bend the price is 0, which is one of the slopes there.
    """
    size = 1.0
    fill(table.gradient, 0.0)
    for k in range(table.n_outer[0]):
        before, after = _slopes(costs, low, high, table.outer[k], table.value[table.outer[k]])
        cost = table.cost[k] = before if before == after else 0.0
        if cost != 0.0:
            for j in range(len(table.inner)):
                table.gradient[j] += table.rows[k, j] * cost
    for j in range(len(table.inner)):
        size = max(size, abs(table.gradient[j]))
    return size


@helper
def _steepest(
    costs: SumCosts, low: FloatArray, high: FloatArray, flat: float, table: SimplexTable
) -> tuple[int, float, float]:
    """Inner variable, direction and rate at which the whole falls most; -1 where it does not."""
    chosen, direction, rate = -1, 0.0, -flat
    for j in range(len(table.inner)):
        i, gradient = table.inner[j], table.gradient[j]
        before, after = _slopes(costs, low, high, i, table.value[i])
        is_sum = i >= len(costs.up)
        rising = gradient + after if is_sum or table.value[i] < high[i] else np.inf
        falling = -gradient - before if is_sum or table.value[i] > low[i] else np.inf
        if rising < rate:
            chosen, direction, rate = j, 1.0, rising
        if falling < rate:
            chosen, direction, rate = j, -1.0, falling
    return chosen, direction, rate


@helper
def _is_ahead(bend: float, start: float, rises: bool, passed: bool) -> bool:
    """Whether one comes to a bend that way from a start, which one has passed or not."""
    if bend == start:
        return not passed
    return (bend > start) == rises


@helper
def _find_bend(
    costs: SumCosts,
    low: FloatArray,
    high: FloatArray,
    k: int,
    variable: int,
    speed: float,
    start: float,
    passed: bool,
    slope: float,
    table: SimplexTable,
) -> None:
    """Write how long a variable takes to its next bend, where that lies, and by how much the slope grows there.

    Looked for from `start` on, with what stands there unless it is passed; until there the variable costs `slope`.
    """
    m, rises = len(costs.up), speed > 0
    near, far = (low[variable], high[variable]) if rises else (high[variable], low[variable])
    table.length[k], table.after[k] = np.inf, slope
    if variable >= m:
        if near != far and _is_ahead(near, start, rises, passed):
            table.target[k], table.after[k] = near, 0.0
        elif _is_ahead(far, start, rises, passed):
            table.target[k], table.after[k] = far, costs.price[variable - m] * (1.0 if rises else -1.0)
        else:
            return
    else:
        up, down = costs.up[variable], costs.down[variable]
        bends = up + down > 0 and low[variable] <= 0 <= high[variable]
        if bends and _is_ahead(0.0, start, rises, passed):
            table.target[k], table.after[k] = 0.0, up if rises else -down
        else:
            table.target[k], table.after[k] = far, np.inf if rises else -np.inf
    table.length[k] = max((table.target[k] - table.value[variable]) / speed, 0.0)
    table.jump[k] = max((table.after[k] - slope) * speed, 0.0)


@helper
def _step(
    costs: SumCosts, low: FloatArray, high: FloatArray, j: int, direction: float, rate: float, table: SimplexTable
) -> bool:
    """Move an inner variable, and the outer ones with it, as far as the whole falls; False if that has no end."""
    n, largest, moving = table.n_outer[0], 0.0, table.inner[j]
    for k in range(n):
        largest = max(largest, abs(table.rows[k, j]))
    for k in range(n):
        speed, variable = direction * table.rows[k, j], table.outer[k]
        table.length[k] = np.inf
        if abs(speed) > TINY * largest:
            start = table.value[variable]
            _find_bend(costs, low, high, k, variable, speed, start, False, table.cost[k], table)
    before, after = _slopes(costs, low, high, moving, table.value[moving])
    slope = after if direction > 0 else before
    _find_bend(costs, low, high, n, moving, direction, table.value[moving], True, slope, table)
    while True:
        bent = 0
        for k in range(n + 1):
            if table.length[k] < table.length[bent]:
                bent = k
        if table.length[bent] == np.inf:
            return False
        rate += table.jump[bent]
        if rate >= 0.0:
            break
        variable, speed = (moving, direction) if bent == n else (table.outer[bent], direction * table.rows[bent, j])
        _find_bend(costs, low, high, bent, variable, speed, table.target[bent], True, table.after[bent], table)
    length = table.length[bent]
    if length == 0.0 and bent < n and table.jump[bent] < np.inf:
        _separate(costs, low, high, j, direction, table)
        return True
    table.value[moving] += direction * length
    for k in range(n):
        table.value[table.outer[k]] += direction * table.rows[k, j] * length
    if bent == n:
        table.value[moving] = table.target[bent]
    else:
        table.value[table.outer[bent]] = table.target[bent]
        _exchange(bent, j, table)
    return True


@helper
def _separate(
    costs: SumCosts, low: FloatArray, high: FloatArray, j: int, direction: float, table: SimplexTable
) -> None:
    """Move what stands at a bend a little off it, each as it would go, so that one of several bends first."""
    far, n, m = 0.0, table.n_outer[0], len(costs.up)
    for i in range(m):
        far = max(far, abs(low[i]), abs(high[i]))
    for k in range(n):
        i = table.outer[k]
        before, after = _slopes(costs, low, high, i, table.value[i])
        if before != after and (i >= m or low[i] < 0.0 < high[i]):
            towards = 1.0 if direction * table.rows[k, j] >= 0 else -1.0
            table.value[i] += towards * TINY * far * (1.0 + k / n)


@helper
def _exchange(k: int, j: int, table: SimplexTable) -> None:
    """Let an outer and an inner variable change places."""
    rows, pivot = table.rows, table.rows[k, j]
    for i in range(len(table.inner)):
        rows[k, i] /= -pivot
    rows[k, j] = 1.0 / pivot
    for other in range(table.n_outer[0]):
        part = rows[other, j]
        if other != k and part != 0.0:
            rows[other, j] = 0.0
            for i in range(len(table.inner)):
                rows[other, i] += part * rows[k, i]
    table.outer[k], table.inner[j] = table.inner[j], table.outer[k]


@helper
def _bound_of_signs(costs: SumCosts, low: FloatArray, high: FloatArray, slopes: Slopes) -> float:
    """What no point of a box is below, by any v; leaves its slopes."""
    sign, slope, m = slopes.sign, slopes.slope, len(costs.up)
    out = rounding = 0.0
    fill(slope, 0.0)
    for k in range(len(sign)):
        if sign[k] != 0.0:
            slope[m + k] = -sign[k]
            rounding += abs(sign[k]) * max(abs(low[m + k]), abs(high[m + k]))
            out += least_between(0.0, 0.0, -sign[k], low[m + k], high[m + k])
            for i in range(m):
                term = costs.forms[k, i] * sign[k]
                slope[i] += term
                rounding += abs(term) * max(abs(low[i]), abs(high[i]))
    for i in range(m):
        up, down = costs.up[i], costs.down[i]
        rounding += (up + down) * max(abs(low[i]), abs(high[i]))
        out += least_between(up, down, slope[i], low[i], high[i])
    out -= (len(slope) + 8) * EPS * rounding
    if not np.isfinite(out):  # beyond the numbers of float64 nothing is known, which signs of 0 say
        fill(sign, 0.0)
        fill(slope, 0.0)
        return 0.0
    return out

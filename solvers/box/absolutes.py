r"""The least sum of absolute values of linear forms over a box, by the simplex method, and a bound that always holds.

.. math::

    f(t) = \sum_k |(A t)_k| + \sum_i p_i(t_i), \qquad f(t) \ge \sum_i \bigl((A' v)_i\, t_i + p_i(t_i)\bigr)

with p of one slope on each side of 0. The second holds for any v between -1 and 1, whatever the point that it comes
from: it is a sum over features, of which a box, and each cell by itself, has its least value. With v of the least point
of the box it is the least value there.

The least point is found as Barrodale and Roberts (1973) fit by least absolute deviations: along an edge a step goes on
past every sum that becomes 0 while the whole still falls, so that few steps are taken. ``t`` and the sums ``s = A t``
are one list of variables here, t first, and the *inner* ones of them stand in the columns of a table that gives all
others, the *outer* ones, of which each has a row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.solvers.box.quadratic import EPS, FLAT, least_between
from ocf.support.loops import fill
from ocf.support.numba_cache import helper

#: Steps for each variable, at most; the bound holds after any number of them.
STEPS = 6

#: Part of the largest entry of a column that counts as 0.
TINY = 1e-11


class SimplexTable(NamedTuple):
    """Arrays of `least_sum`, and what it leaves behind.

    Attributes
    ----------
    sign : (n_forms,) float64
        ``v``, afterwards.
    rows : (n_forms, m) float64
        The outer variables by the inner ones.
    value : (m + n_forms,) float64
    outer : (n_forms,) int64
    inner : (m,) int64
    cost : (n_forms,) float64
        What an outer variable costs per unit.
    gradient : (m,) float64
        What outer variables cost per unit of an inner one.
    length, target, jump : (n_forms + 1,) float64
        Of a step: how far each outer variable, and last the one that moves, is from its next bend, where that lies,
        and by how much the slope grows there.
    """

    sign: FloatArray
    rows: FloatArray
    value: FloatArray
    outer: IntArray
    inner: IntArray
    cost: FloatArray
    gradient: FloatArray
    length: FloatArray
    target: FloatArray
    jump: FloatArray


def new_table(n_forms: int, m: int) -> SimplexTable:
    """A table of the size that forms need.

    Parameters
    ----------
    n_forms, m : int
        Numbers of forms and of features.
    """
    numbers = np.zeros(n_forms), np.zeros((n_forms, m)), np.zeros(m + n_forms)
    names = np.zeros(n_forms, np.int64), np.zeros(m, np.int64)
    return SimplexTable(*numbers, *names, np.zeros(n_forms), np.zeros(m), *(np.zeros(n_forms + 1) for _ in range(3)))


@helper
def least_sum(
    forms: FloatArray,
    up: FloatArray,
    down: FloatArray,
    low: FloatArray,
    high: FloatArray,
    t: FloatArray,
    table: SimplexTable,
    slope: FloatArray,
) -> float:
    """Find the least point of a box; returns what no point of it is below.

    Parameters
    ----------
    forms : (n_forms, m) float64
        ``A``.
    up, down : (m,) float64
        What a unit of increase and of decrease costs besides, at least 0.
    low, high : (m,) float64
    t : (m,) float64
        Where to start; overwritten with the least point.
    table : SimplexTable
        Overwritten.
    slope : (m,) float64
        Overwritten with ``A' v``.
    """
    _start_in_box(forms, low, high, t, table)
    for _ in range(STEPS * len(table.value)):
        size = _price(up, down, table)
        j, direction, rate = _steepest(up, down, low, high, FLAT * size, table)
        if j < 0 or not _step(up, down, low, high, j, direction, rate, table):
            break
    _price(up, down, table)
    for k in range(len(forms)):
        if table.outer[k] >= len(t):
            table.sign[table.outer[k] - len(t)] = table.cost[k]
    for j in range(len(t)):
        if table.inner[j] >= len(t):
            table.sign[table.inner[j] - len(t)] = min(max(-table.gradient[j], -1.0), 1.0)
    for i in range(len(t)):
        t[i] = min(max(table.value[i], low[i]), high[i])
    return _bound_of_signs(forms, up, down, low, high, table.sign, slope)


@helper
def _start_in_box(forms: FloatArray, low: FloatArray, high: FloatArray, t: FloatArray, table: SimplexTable) -> None:
    """The changes inside, moved into the box, and the sums outside."""
    m = len(t)
    for i in range(m):
        table.value[i] = min(max(t[i], low[i]), high[i])
        table.inner[i] = i
    for k in range(len(forms)):
        total = 0.0
        for i in range(m):
            table.rows[k, i] = forms[k, i]
            total += forms[k, i] * table.value[i]
        table.value[m + k] = total
        table.outer[k] = m + k


@helper
def _slope_at(up: FloatArray, down: FloatArray, variable: int, value: float) -> float:
    """What a variable costs per unit where it stands; at 0 nothing, which is one of its slopes there."""
    if value == 0.0:
        return 0.0
    if variable >= len(up):
        return 1.0 if value > 0 else -1.0
    return up[variable] if value > 0 else -down[variable]


@helper
def _price(up: FloatArray, down: FloatArray, table: SimplexTable) -> float:
    """Write the prices of outer variables, and gradients by the inner ones; a number of their size."""
    size = 1.0
    fill(table.gradient, 0.0)
    for k in range(len(table.outer)):
        cost = table.cost[k] = _slope_at(up, down, table.outer[k], table.value[table.outer[k]])
        if cost != 0.0:
            for j in range(len(table.inner)):
                table.gradient[j] += table.rows[k, j] * cost
    for j in range(len(table.inner)):
        size = max(size, abs(table.gradient[j]))
    return size


@helper
def _steepest(
    up: FloatArray, down: FloatArray, low: FloatArray, high: FloatArray, flat: float, table: SimplexTable
) -> tuple[int, float, float]:
    """Inner variable, direction and rate at which the whole falls most; -1 where it does not."""
    chosen, direction, rate = -1, 0.0, -flat
    for j in range(len(table.inner)):
        i, gradient = table.inner[j], table.gradient[j]
        rising, falling = gradient + 1.0, 1.0 - gradient
        if i < len(up):
            value = table.value[i]
            rising = gradient + (up[i] if value >= 0 else -down[i]) if value < high[i] else np.inf
            falling = -gradient - (up[i] if value > 0 else -down[i]) if value > low[i] else np.inf
        if rising < rate:
            chosen, direction, rate = j, 1.0, rising
        if falling < rate:
            chosen, direction, rate = j, -1.0, falling
    return chosen, direction, rate


@helper
def _find_bend(
    up: FloatArray,
    down: FloatArray,
    low: FloatArray,
    high: FloatArray,
    k: int,
    variable: int,
    speed: float,
    passed: bool,
    table: SimplexTable,
) -> None:
    """Write how long a variable takes to its next bend, where that lies, and by how much the slope grows there."""
    value = table.value[variable]
    table.length[k], table.target[k], table.jump[k] = np.inf, 0.0, 0.0
    if variable >= len(up):
        if not passed and value * speed <= 0:
            table.length[k], table.jump[k] = -value / speed, (2.0 if value != 0.0 else 1.0) * abs(speed)
        return
    beyond, before = (up[variable], down[variable]) if speed > 0 else (down[variable], up[variable])
    if beyond + before > 0 and not passed and value * speed <= 0 and low[variable] <= 0 <= high[variable]:
        table.length[k] = -value / speed
        table.jump[k] = (beyond if value == 0.0 else beyond + before) * abs(speed)
    else:
        table.target[k] = high[variable] if speed > 0 else low[variable]
        table.length[k], table.jump[k] = max((table.target[k] - value) / speed, 0.0), np.inf


@helper
def _step(
    up: FloatArray,
    down: FloatArray,
    low: FloatArray,
    high: FloatArray,
    j: int,
    direction: float,
    rate: float,
    table: SimplexTable,
) -> bool:
    """Move an inner variable, and the outer ones with it, as far as the whole falls; False if that has no end."""
    n, largest, moving = len(table.outer), 0.0, table.inner[j]
    for k in range(n):
        largest = max(largest, abs(table.rows[k, j]))
    for k in range(n):
        speed, table.length[k] = direction * table.rows[k, j], np.inf
        if abs(speed) > TINY * largest:
            _find_bend(up, down, low, high, k, table.outer[k], speed, False, table)
    # a sum inside is 0, where its cost bends, and so may a change be
    _find_bend(up, down, low, high, n, moving, direction, table.value[moving] == 0.0, table)
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
        _find_bend(up, down, low, high, bent, variable, speed, True, table)
    length = table.length[bent]
    if length == 0.0 and bent < n and table.jump[bent] < np.inf:
        _separate(low, high, j, direction, table)
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
def _separate(low: FloatArray, high: FloatArray, j: int, direction: float, table: SimplexTable) -> None:
    """Move what bends at 0 a little apart, each as it would go, so that one of several bends first."""
    far = 0.0
    for i in range(len(low)):
        far = max(far, abs(low[i]), abs(high[i]))
    n = len(table.outer)
    for k in range(n):
        i = table.outer[k]
        if table.value[i] == 0.0 and (i >= len(low) or low[i] < 0.0 < high[i]):
            towards = 1.0 if direction * table.rows[k, j] >= 0 else -1.0
            table.value[i] = towards * TINY * far * (1.0 + k / n)


@helper
def _exchange(k: int, j: int, table: SimplexTable) -> None:
    """Let an outer and an inner variable change places."""
    rows, pivot = table.rows, table.rows[k, j]
    for i in range(len(table.inner)):
        rows[k, i] /= -pivot
    rows[k, j] = 1.0 / pivot
    for other in range(len(table.outer)):
        part = rows[other, j]
        if other != k and part != 0.0:
            rows[other, j] = 0.0
            for i in range(len(table.inner)):
                rows[other, i] += part * rows[k, i]
    table.outer[k], table.inner[j] = table.inner[j], table.outer[k]


@helper
def _bound_of_signs(
    forms: FloatArray,
    up: FloatArray,
    down: FloatArray,
    low: FloatArray,
    high: FloatArray,
    sign: FloatArray,
    slope: FloatArray,
) -> float:
    """What no point of a box is below, by any v; leaves its slopes."""
    out = rounding = 0.0
    for i in range(len(slope)):
        total = size = 0.0
        for k in range(len(forms)):
            term = forms[k, i] * sign[k]
            total += term
            size += abs(term)
        slope[i] = total
        rounding += (size + up[i] + down[i]) * max(abs(low[i]), abs(high[i]))
        out += least_between(up[i], down[i], total, low[i], high[i])
    out -= (len(forms) + len(slope) + 8) * EPS * rounding
    if not np.isfinite(out):  # beyond the numbers of float64 nothing is known, which signs of 0 say
        fill(sign, 0.0)
        fill(slope, 0.0)
        return 0.0
    return out

"""Squares over a box whose sums lie in ranges: least points carry their own proof, and linear programs know of none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy.optimize import linprog

from ocf.arrays import FloatArray
from ocf.solvers.box.squares import least_squares, new_dual_table
from ocf.solvers.box.sums import Slopes, SumCosts, new_slopes

#: Times of the largest slope that a sum costs off its range.
DEAR = 1e4


@njit
def found_in(costs: Any, square: Any, low: Any, high: Any, t: Any, slopes: Any, table: Any) -> float:
    return least_squares(costs, square, low, high, t, slopes, table)


def value(costs: SumCosts, square: FloatArray, t: FloatArray) -> float:
    return float(square @ t**2 + costs.up @ np.maximum(t, 0) + costs.down @ np.maximum(-t, 0))


def made(rng: np.random.Generator, kind: str) -> tuple[SumCosts, FloatArray, FloatArray, FloatArray]:
    """Costs, squares and ends of a box; of kind "empty" no point of it has its sums in their ranges, mostly."""
    m, n = int(rng.integers(1, 12)), int(rng.integers(0, 20))
    forms = rng.normal(size=(n, m))
    if kind == "ties":
        forms = rng.integers(-1, 2, (n, m)).astype(float)
    middle, half = rng.uniform(-1, 1, m), rng.uniform(0, 1, m) * (rng.random(m) < 0.9)
    low, high = middle - half, middle + half
    if kind == "around":
        low, high = np.minimum(low, 0), np.maximum(high, 0)
    size = np.abs(forms).sum(axis=1)
    sums = forms @ (low + (high - low) * rng.random(m)) + size * rng.normal(size=n) * (kind == "empty")
    width = rng.uniform(0, 0.3, n) * size * (rng.random(n) < 0.9)
    square, bent = 10.0 ** rng.uniform(-1, 1, m), rng.random() < 0.5
    up, down = rng.random(m) * bent, rng.random(m) * bent
    price = np.full(n, DEAR * (2 * square + up + down).max())
    costs = SumCosts(forms, price, np.full(n, -np.inf), np.full(n, np.inf), rng.random(n) < 0.5, up, down)
    return costs, square, np.concatenate([low, sums - width]), np.concatenate([high, sums + width])


@pytest.mark.parametrize("kind", ["some", "around", "ties", "empty"])
@pytest.mark.parametrize("started", [False, True])
def test_least_points_are_proved_or_there_are_none(kind: str, started: bool) -> None:
    rng, empty, moved = np.random.default_rng(len(kind) + started), 0, 0
    for _ in range(150):
        costs, square, low, high = made(rng, kind)
        n, m = costs.forms.shape
        sign = rng.normal(size=n) * 10.0 ** rng.uniform(-3, 2) * started
        t, slopes = np.zeros(m + n), Slopes(sign, np.zeros(m + n))
        bound = found_in(costs, square, low, high, t, slopes, new_dual_table(n, m))
        t, sums = t[:m], costs.forms @ t[:m]
        assert ((low[:m] <= t) & (t <= high[:m])).all()
        off = np.maximum(np.maximum(low[m:] - sums, sums - high[m:]), 0)
        cost = value(costs, square, t)
        assert bound <= (cost + costs.price @ off) * (1 + 1e-12)
        if off.max(initial=0) > 1e-6:
            both = np.concatenate([costs.forms, -costs.forms])
            ends = [*zip(low[:m], high[:m], strict=True)]
            inside = linprog(np.zeros(m), both, np.concatenate([high[m:], -low[m:]]), bounds=ends)
            assert inside.status == 2
            empty += 1
        else:
            assert bound == pytest.approx(cost, rel=1e-6, abs=1e-9)
            moved += bool(sign.any())
        slope = np.concatenate([costs.forms.T @ sign + 2 * square * t, -sign])
        np.testing.assert_allclose(slopes.slope, slope, atol=1e-9 * (1 + np.abs(sign).sum()))
    assert (empty, moved) >= (50, 0) if kind == "empty" else (-empty, moved) >= (0, 50)


def test_sums_that_may_be_anything_are_left_out() -> None:
    forms, ends = np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([-1.0, -1.0, 1.5, 1.0])
    costs = SumCosts(
        forms, np.full(2, 1e4), np.array([1.5, -np.inf]), np.array([2.0, np.inf]), np.zeros(2, bool), *np.zeros((2, 2))
    )
    slopes, t = new_slopes(2, 2), np.zeros(4)
    assert found_in(
        costs, np.ones(2), ends, np.array([1.0, 1.0, 2.0, 2.0]), t, slopes, new_dual_table(2, 2)
    ) == pytest.approx(0.5, rel=1e-9)
    assert slopes.sign[0] == 0
    np.testing.assert_allclose(t[:2], 0.5)


def test_numbers_beyond_all_numbers_are_bounded_by_nothing() -> None:
    costs = SumCosts(
        np.ones((1, 1)),
        np.full(1, 1e308),
        *(np.full(1, end) for end in (-np.inf, np.inf)),
        *[np.zeros(1, bool), np.zeros(1), np.zeros(1)],
    )
    slopes, t = Slopes(np.full(1, 1e308), np.zeros(2)), np.zeros(2)
    low, high = np.array([-1e300, -1e300]), np.array([1e300, 1e300])
    assert found_in(costs, np.full(1, 1e-300), low, high, t, slopes, new_dual_table(1, 1)) <= 0
    assert np.isfinite(slopes.slope).all()

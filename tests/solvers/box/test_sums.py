"""What sums of changes are off their ranges, priced, at least over a box, against a linear program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy.optimize import linprog

from ocf.arrays import FloatArray
from ocf.solvers.box.sums import SumCosts, absolute_values, least_sum, new_slopes, new_table, sum_within


@njit
def found_in(costs: Any, low: Any, high: Any, t: Any, slopes: Any, table: Any) -> float:
    least = least_sum(costs, low, high, t, slopes, table)
    sum_within(costs, low, high, t)
    return least


def value(costs: SumCosts, low: FloatArray, high: FloatArray, t: FloatArray) -> float:
    sums, m = costs.forms @ t, len(t)
    off = np.maximum(low[m:] - sums, 0) + np.maximum(sums - high[m:], 0)
    return float(costs.price @ off + costs.up @ np.maximum(t, 0) + costs.down @ np.maximum(-t, 0))


def optimum(costs: SumCosts, low: FloatArray, high: FloatArray) -> float:
    """Of what sums are off their ranges, and of the parts of each change above and below 0, which cost something."""
    n, m = costs.forms.shape
    one = np.eye(m)
    cost = np.concatenate([np.zeros(m), costs.price, costs.up, costs.down])
    beside = np.zeros((n, 2 * m))
    above = np.block([[costs.forms, -np.eye(n), beside], [-costs.forms, -np.eye(n), beside]])
    split = np.block([one, np.zeros((m, n)), -one, one])
    bounds = [*zip(low[:m], high[:m], strict=True), *[(0, None)] * (n + 2 * m)]
    return float(linprog(cost, above, np.concatenate([high[m:], -low[m:]]), split, np.zeros(m), bounds).fun)


@pytest.mark.parametrize("kind", ["whole", "singular", "more", "none", "equal"])
@pytest.mark.parametrize("ranges", ["absolute", "some", "point"])
@pytest.mark.parametrize("bent", [False, True])
def test_the_least_point_is_that_of_a_linear_program(kind: str, ranges: str, bent: bool) -> None:
    rng, loose = np.random.default_rng(len(kind) + bent), 0
    for _ in range(36):
        m = int(rng.integers(1, 9))
        n = {"whole": m, "singular": max(m // 2, 1), "more": 2 * m, "none": 0, "equal": m}[kind]
        forms = rng.normal(size=(n, m)) * 10.0 ** rng.uniform(-2, 2, (n, 1))
        if kind == "equal":  # ties in every step
            forms = rng.integers(-1, 2, (n, m)).astype(float)
        centre, half = rng.integers(-2, 3, m).astype(float), np.abs(rng.integers(0, 3, m)).astype(float)
        up, down = (rng.uniform(0, 1, m) * bent * (rng.random(m) < 0.7) for _ in range(2))
        costs, middle, width = absolute_values(forms, up, down), np.zeros(n), np.zeros(n)
        if ranges != "absolute":
            size = np.abs(forms).sum(axis=1)
            middle, width = rng.uniform(-1, 1, n) * size, rng.uniform(0, 1, n) * size * (ranges == "some")
            widest = np.where(rng.random(n) < 0.3, 0.0, np.inf)  # some are left out
            price, binds = rng.uniform(0.1, 10, n), rng.random(n) < 0.5
            costs = SumCosts(forms, price, middle - width - widest, middle + width + widest, binds, up, down)
        low, high = np.concatenate([centre - half, middle - width]), np.concatenate([centre + half, middle + width])
        start, slopes = np.concatenate([rng.normal(size=m), np.zeros(n)]), new_slopes(n, m)
        bound = found_in(costs, low, high, start, slopes, new_table(n, m))
        left_out = ~costs.binds & (low[m:] <= costs.low) & (high[m:] >= costs.high)
        asked = costs._replace(price=np.where(left_out, 0.0, costs.price))
        known, at = optimum(asked, low, high), value(asked, low, high, start[:m])
        assert ((low <= start) & (start <= high)).all()
        assert at == pytest.approx(known, rel=1e-8, abs=1e-8)
        assert bound <= at
        loose += bound < known - 1e-8 * (1 + known)
        assert (np.abs(slopes.sign) <= asked.price).all()
        slope = np.concatenate([forms.T @ slopes.sign, -slopes.sign])
        np.testing.assert_allclose(slopes.slope, slope, atol=1e-9 * (1 + np.abs(forms).sum()))
    assert loose <= (2 if kind == "equal" else 0), "where many ties meet, steps may end in the least point too early"


def test_nothing_moves_from_the_row_itself() -> None:
    forms, nothing = np.random.default_rng(0).normal(size=(4, 4)), np.zeros(4)
    low, high, at = (np.concatenate([np.full(4, end), np.zeros(4)]) for end in (-1.0, 2.0, 0.0))
    costs = absolute_values(forms, nothing, nothing)
    assert found_in(costs, low, high, at, new_slopes(4, 4), new_table(4, 4)) == pytest.approx(0, abs=1e-12)
    assert not at.any()

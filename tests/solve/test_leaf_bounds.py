"""Lower bounds on the cost of a hyperplane."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from ocf.solve.leaf_bounds import demand_of, priced_demands


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000))
def test_a_hyperplane_costs_at_least_what_the_relaxation_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 4))
    sizes = rng.integers(1, 4, rng.integers(1, 4))
    w, room = rng.uniform(0, 2, (1, n)) * (rng.random((1, n)) < 0.8), rng.uniform(0, 2, (1, n))
    linear, square = rng.uniform(0, 1, n) * (rng.random(n) < 0.8), np.zeros(n)
    levels = [(rng.normal(size=(1, k)), rng.uniform(-0.2, 1, k)) for k in sizes]
    need = rng.normal(scale=2.0, size=1)
    bound = priced_demands(need, w, room, linear, square, levels)[0]
    totals, prices = np.hstack([t[0] for t, _ in levels]), np.hstack([c for _, c in levels])
    one = np.zeros((len(sizes), n + len(totals)))
    for i, end in enumerate(np.cumsum(sizes)):
        one[i, n + end - sizes[i] : n + end] = 1
    cost, row = np.append(linear, prices), np.append(-w[0], totals)
    ends = [*zip(np.zeros(n), room[0], strict=True), *[(0, 1)] * len(totals)]
    best = linprog(cost, row[None], -need, one, np.ones(len(sizes)), ends)
    if best.status == 2:
        assert bound == np.inf
        return
    assert bound == pytest.approx(best.fun, rel=1e-6, abs=1e-6)
    assert bound <= best.fun + 1e-9
    # squares cost more: never above the cheapest of all choices of levels
    square = rng.uniform(0, 1, n)
    curved = priced_demands(need, w, room, linear, square, levels)[0]
    assert curved >= bound - 1e-6 * max(1.0, abs(bound))
    choices = itertools.product(*[range(k) for k in sizes])
    assert curved <= min(_cheapest_moves(need[0], w[0], room[0], linear, square, levels, c) for c in choices) + 1e-7


def _cheapest_moves(need: float, w: Any, room: Any, linear: Any, square: Any, levels: Any, choice: Any) -> float:
    """Least cost once the levels are chosen, by SciPy."""
    need += sum(float(total[0, k]) for (total, _), k in zip(levels, choice, strict=True))
    paid = sum(float(cost[k]) for (_, cost), k in zip(levels, choice, strict=True))
    if need <= 0:
        return paid
    if w @ room < need:
        return np.inf
    found = minimize(
        lambda m: linear @ m + square @ (m * m), room.copy(), jac=lambda m: linear + 2 * square * m, method="SLSQP",
        bounds=[*zip(np.zeros(len(w)), room, strict=True)], options={"ftol": 1e-12},
        constraints={"type": "ineq", "fun": lambda m: w @ m - need, "jac": lambda m: w},
    )  # fmt: skip
    return paid + float(found.fun)


def test_a_slow_move_beside_a_fast_one_that_is_stuck() -> None:
    """What the fast one cannot supply the slow one pays for, however much that is."""
    none = np.zeros(2)
    for dear in (1.0, 1e6, 1e16, 1e24):
        for room in (np.array([0.5, np.inf]), np.array([0.5, 2.0])):
            bound = demand_of(1.0, np.ones(2), room, none, np.array([1e-3, dear]))
            assert bound == pytest.approx(1e-3 * 0.25 + dear * 0.25, rel=2e-3)
            assert bound <= 1e-3 * 0.25 + dear * 0.25

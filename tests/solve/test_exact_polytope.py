"""Exact arithmetic where numbers of float64 do not suffice: points that weak duality proves, whatever their sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

from ocf import Explainer
from ocf.solve.exact_polytope import is_exactly_solvable, solve_exactly
from ocf.solve.polytope import Polytope


def sized_polytope(seed: int, square: float) -> Polytope:
    """Numbers between 1e-8 and 1e8, in whose units everything is about 1."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    unit = 10.0 ** rng.integers(-8, 9, n)
    rows, xbar = rng.normal(size=(m, n)) / unit, rng.normal(size=n) * unit
    lo = np.where(rng.random(n) < 0.3, -np.inf, -3 * unit)
    sides = rng.normal(size=m)
    return Polytope(rows, sides, lo, 3 * unit, xbar, 1 / unit, 2 / unit, square / unit**2, square / unit**2)


@pytest.mark.parametrize("square", [0.0, 0.5])
def test_weak_duality_proves_what_is_found(square: float) -> None:
    found = 0
    for seed in range(60):
        p = sized_polytope(seed, square)
        assert is_exactly_solvable(p)
        solved = solve_exactly(p)
        if solved is None:
            # no point in units of the columns, as another solver sees it
            unit = 1 / p.a_down
            bounds = np.column_stack([p.lo / unit, p.hi / unit])
            assert linprog(np.zeros(len(unit)), p.G * unit, p.h, bounds=bounds).status == 2
            continue
        x, y = solved
        found += 1
        assert (y >= 0).all()
        assert ((p.lo <= x) & (x <= p.hi)).all()
        assert p.is_met_by(x - p.xbar)
        # no cheaper point is farther away, so that rounding in a slope costs no more than its part of the cost
        assert p.within(p.cost(x)).bound(y, x) == pytest.approx(p.cost(x), rel=1e-12)
    assert found > 30


def test_large_ones_and_changes_that_are_paid_for_are_left_to_others() -> None:
    p = sized_polytope(0, 0.0)
    assert not is_exactly_solvable(replace(p, a_up=-p.a_up))
    many = np.ones(16)
    large = Polytope(np.ones((1, 16)), many[:1], -many, many, 0 * many, many, many, 0 * many, 0 * many)
    assert not is_exactly_solvable(large)


def sized_table(seed: int) -> tuple[Any, pd.DataFrame, pd.DataFrame]:
    """A Pipeline that adds up columns of very different sizes, their table and a rejected row of it."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 5))
    z = rng.normal(size=(60, k)) @ rng.normal(size=(k, k))
    table = pd.DataFrame(z * 10.0 ** rng.integers(-8, 9, size=k), columns=[f"c{i}" for i in range(k)])
    forest = RandomForestClassifier(int(rng.integers(1, 4)), max_depth=3, random_state=seed)
    model = make_pipeline(PCA(k), forest).fit(table, z[:, 0] + z[:, 1] > 0)
    return model, table, table[~model.predict(table)].head(1)


@pytest.mark.parametrize(
    ("seed", "norm"), [(131, "l1"), (176, "l1"), (240, "l1"), (240, "l2"), (253, "l2"), (720, "l2")]
)
def test_columns_of_very_different_sizes_are_proved(seed: int, norm: str) -> None:
    model, table, row = sized_table(seed)
    explainer = Explainer(model, table)
    found = explainer.explain(row, True, norm=norm)[0]
    assert found.status == "optimal"
    assert model.predict(found.counterfactual)[0]
    assert explainer.explain(row, True, norm=norm, solver="scip")[0].cost == pytest.approx(found.cost, rel=1e-9)


def test_highs_does_not_go_round_in_a_circle() -> None:
    """Squares of columns of 1e-3 beside others of 1e5, on which HiGHS's own method for squares does not end."""
    model, table, row = sized_table(863)
    explainer = Explainer(model, table)
    found = explainer.explain(row, True, norm="l2", solver="highs", time_limit=60)[0]
    assert found.status == "optimal"
    assert found.cost == pytest.approx(explainer.explain(row, True, norm="l2")[0].cost, rel=1e-9)

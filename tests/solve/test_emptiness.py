"""Proofs that a polytope holds no point, and what comes of a solver that calls one empty that is not."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from ocf import Explainer
from ocf.oblique import ObliqueTree
from ocf.solve.emptiness import is_proven_empty
from ocf.solve.exact_polytope import solve_exactly
from ocf.solve.polytope import Polytope


def a_polytope(seed: int) -> Polytope:
    """Half-spaces around a point, or a hair away from each other, in units of any size."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    units = 10.0 ** rng.integers(-4, 5, n)
    G = rng.integers(-3, 4, (m, n)) / units
    point = rng.normal(size=n) * units
    h = G @ point + rng.choice([0.0, 1e-9, 1e-3, 1.0], m) * rng.choice([-1.0, 1.0], m)
    low, high = point - rng.integers(0, 3, n) * units, point + rng.integers(0, 3, n) * units
    low[rng.random(n) < 0.2], high[rng.random(n) < 0.2] = -np.inf, np.inf
    prices = np.ones(n)
    return Polytope(G, h, low, high, rng.normal(size=n) * units, prices, prices, 0 * prices, 0 * prices)


def test_what_is_proven_empty_is_empty_and_what_is_by_far_in_a_finite_box_is_proven() -> None:
    polytopes = [a_polytope(seed) for seed in range(250)]
    proven = np.array([is_proven_empty(p) for p in polytopes])
    empty = np.array([solve_exactly(p) is None for p in polytopes])
    far = [solve_exactly(replace(p, h=p.h + 1e-6 * np.abs(p.h))) is None for p in polytopes]
    finite = [bool(np.isfinite([p.lo, p.hi]).all()) for p in polytopes]
    assert 60 < empty.sum() < 190
    assert not (proven & ~empty).any()
    assert proven[np.array(far) & finite].all()
    assert (np.array(far) & finite).sum() > 20


def test_numbers_that_no_sum_holds_prove_nothing() -> None:
    one, zeros = np.ones(1), np.zeros(1)
    for size, weight in ((1e308, 3.0), (1e10, 1e300), (1.0, 5e-324)):
        wide = Polytope(weight * one[None], -one, -size * one, size * one, zeros, one, one, zeros, zeros)
        assert not is_proven_empty(wide)


def test_products_that_cancel_prove_nothing() -> None:
    """Half-spaces whose weighted sum is 0 but for 7e-21, which 1e12 make more of than their sides are apart."""
    rng, zeros = np.random.default_rng(0), np.zeros(1)
    found = 0
    for _ in range(2000):
        y = np.append(rng.random(2) + 0.5, 1.0)
        G = np.array([[rng.random() + 0.5], [-rng.random() - 0.5], [0.0]])
        G[2] = -float(y[:2].astype(np.longdouble) @ G[:2, 0])
        exact = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(y, G[:, 0], strict=True))
        far = np.full(1, 1e12)
        p = Polytope(G, np.array([0.0, 0.0, -abs(float(exact)) * 5e11]), -far, far, zeros, zeros, zeros, zeros, zeros)
        assert Fraction(p.bound(y)) <= -abs(exact) * Fraction(1e12) - Fraction(float(p.h[2]))
        found += exact != 0
    assert found > 100


def test_relations_count() -> None:
    zeros, one = np.zeros(1), np.ones(1)
    box = Polytope(one[None], 2 * one, -9 * one, 9 * one, 5 * one, one, one, zeros, zeros)
    assert not is_proven_empty(box)
    fall = {"K_down": one[None], "K_up": zeros[None]}
    related = [
        Polytope(one[None], 2 * one, -9 * one, 9 * one, 5 * one, one, one, zeros, zeros, **fall, k=np.array([most]))
        for most in (2.9, 3.1)
    ]
    assert [is_proven_empty(p) for p in related] == [True, False]


def test_a_half_space_that_rounding_leaves_open_contradicts_nothing() -> None:
    one, zeros = np.ones(1), np.zeros(1)
    G, h = np.array([[1.0], [-1.0]]), np.array([1.0, -2.0])
    assert is_proven_empty(Polytope(G, h, -9 * one, 9 * one, zeros, one, one, zeros, zeros))
    assert not is_proven_empty(Polytope(G, np.array([np.inf, -2.0]), -9 * one, 9 * one, zeros, one, one, zeros, zeros))


@pytest.mark.parametrize("solver", ["auto", "highs", "scip"])
@pytest.mark.parametrize("before", [1e-9, 2.4e-8, 5e-8, 1e-7, 2e-6])
@pytest.mark.parametrize("weights", [(0.1, 0.1), (0.1, -0.1, 0.1, -0.1)])
def test_whole_numbers_a_hair_before_a_hyperplane(weights: tuple[float, ...], before: float, solver: str) -> None:
    names, at = list("abcd"[: len(weights)]), [3, 3, 5, 5][: len(weights)]
    side = float(np.dot(weights, at)) - before
    tree = ObliqueTree(
        [list(weights), [0.0] * len(at), [0.0] * len(at)],
        [side, 0, 0],
        [1, -1, -1],
        [2, -1, -1],
        [[0, 0], [1, 0], [0, 1]],
        classes=["in", "out"],
        feature_names=tuple(names),
    )
    grid = np.array(list(itertools.product(range(7), repeat=len(at))), float)
    given = tree.predict(grid)
    data = pd.DataFrame(grid[given == "out"].astype(int), columns=names)
    explainer = Explainer(tree, data, {name: {"bounds": (0, 6), "scale": 1.0} for name in names})
    row = pd.DataFrame([at], columns=names)
    answer = explainer.explain(row, target="in", solver=solver)[0]
    cheapest = np.abs(grid[given == "in"] - at).sum(axis=1).min()
    assert (answer.status, answer.cost) == ("optimal", cheapest)


@pytest.mark.parametrize("seed", [1, 4, 6])
def test_numbers_and_whole_numbers_a_hair_before_a_hyperplane(seed: int) -> None:
    from sklearn.decomposition import PCA
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.pipeline import make_pipeline

    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"k": rng.integers(0, 9, 100), "x": rng.normal(size=100), "j": rng.integers(0, 9, 100)})
    wanted = (data["k"] + 2 * data["x"] - data["j"] > 0).astype(int)
    model = make_pipeline(PCA(2), GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0))
    model.fit(data, wanted)
    for row in (data.iloc[[i]] for i in range(6)):
        now = model.predict(row)[0]
        line = pd.concat([row.assign(x=x) for x in np.linspace(data["x"].min(), data["x"].max(), 100)])
        turns = np.flatnonzero(np.diff(model.predict(line)))
        if not len(turns) or model.predict(line)[turns[0]] != now:
            continue
        near, far = line["x"].iloc[turns[0]], line["x"].iloc[turns[0] + 1]
        for _ in range(60):
            middle = (near + far) / 2
            near, far = (middle, far) if model.predict(row.assign(x=middle))[0] == now else (near, middle)
        hair = row.assign(x=near - 3e-7)
        if model.predict(hair)[0] != now:
            continue
        others = data[model.predict(data) == now]
        answer = Explainer(model, data=others).explain(hair, target=1 - now)[0]
        scale = float(others["x"].max() - others["x"].min())
        assert answer.status == "optimal"
        assert answer.cost <= 4e-7 / scale

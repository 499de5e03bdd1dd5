"""Oblique trees over grids whose totals fall upon thresholds, by the tree's own answers on every point of the grid."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from solve.oblique_cases import NORMS, assert_same

from ocf import Cost, Explainer
from ocf.oblique.tree import ObliqueTree
from ocf.solve import leaf_branching

#: Weights of the hyperplanes: sums of the first two kinds are exact in float64, those of tenths round.
WEIGHTS = {
    "whole": lambda rng, n: rng.integers(-3, 4, n).astype(float),
    "quarters": lambda rng, n: rng.integers(-4, 5, n) / 4,
    "tenths": lambda rng, n: rng.integers(-9, 10, n) / 10,
    "any": lambda rng, n: rng.normal(size=n),
}


def tree_through_the_grid(rng: np.random.Generator, n: int, depth: int, kind: str) -> ObliqueTree:
    """A complete tree, most of whose hyperplanes hold points of whole numbers."""
    n_inner = 2**depth - 1
    n_nodes = 2 * n_inner + 1
    weights, threshold = np.zeros((n_nodes, n)), np.zeros(n_nodes)
    for v in range(n_inner):
        weights[v] = WEIGHTS[kind](rng, n)
        weights[v, rng.integers(n)] += not weights[v].any()
        threshold[v] = weights[v] @ rng.integers(-2, 5, n) if rng.random() < 0.8 else 3 * rng.normal()
    inner = np.arange(n_nodes) < n_inner
    left, right = np.where(inner, 2 * np.arange(n_nodes) + 1, -1), np.where(inner, 2 * np.arange(n_nodes) + 2, -1)
    return ObliqueTree(weights, threshold, left, right, np.eye(2)[rng.integers(2, size=n_nodes)], classes=(0, 1))


def least(tree: ObliqueTree, grid: np.ndarray, row: np.ndarray, target: int, norm: Any, ranges: Any = 6) -> float:
    """Cost of the cheapest point of a grid that the tree gives the target."""
    d, cost = np.abs(grid - row) / ranges, Cost.parse(norm)
    prices = cost.l0 * (d > 0).sum(axis=1) + cost.l1 * d.sum(axis=1) + cost.l2 * (d * d).sum(axis=1)
    return float(prices[tree.predict(grid) == target].min(initial=np.inf))


def check(kind: str, seed: int, solver: str) -> None:
    """Two rows of a random grid against the tree's own answers on all of it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    tree = tree_through_the_grid(rng, n, int(rng.integers(1, 4)), kind)
    names, halves = [f"x{j}" for j in range(n)], rng.random(n) < 0.4
    table = pd.DataFrame(np.vstack([np.full(n, -2), np.full(n, 4), rng.integers(-2, 5, (20, n))]), columns=names)
    table = table.astype({name: float for name, half in zip(names, halves, strict=True) if half})
    grid = np.array(list(itertools.product(*(np.arange(-2, 4.1, 0.5 if half else 1) for half in halves))))
    explainer = Explainer(tree, data=table, features={name: {"step": 0.5} for name in table.columns[halves]})
    for k in (3, 4):
        row = table.iloc[[k]]
        target, norm = 1 - int(tree.predict(row)[0]), NORMS[rng.integers(len(NORMS))]
        found = explainer.explain(row, target=target, norm=norm, solver=solver)[0]
        assert_same(found, least(tree, grid, row.to_numpy(float)[0], target, norm))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("solver", ["auto", "highs", "scip"])
def test_every_point_of_a_grid_is_on_its_own_side(solver: str, kind: str, seed: int) -> None:
    check(kind, seed, solver)


@pytest.mark.parametrize(("kind", "seed"), [("tenths", 22), ("tenths", 40), ("any", 49)])
def test_a_choice_that_the_tree_refuses_leaves_those_beside_it(kind: str, seed: int) -> None:
    check(kind, seed, "auto")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("kind", WEIGHTS)
def test_every_point_of_many_grids_is_on_its_own_side(kind: str, seed: int) -> None:
    check(kind, seed, "auto")


def test_a_number_without_limits_beside_the_grid_stays_out_of_its_totals() -> None:
    # x0 + x1 of whole numbers falls upon its threshold; x2, without limits, has a hyperplane of its own
    tree = ObliqueTree(
        np.array([[1.0, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]), [2.0, 7.5, 0, 0, 0],
        [1, 3, -1, -1, -1], [2, 4, -1, -1, -1], np.eye(2)[[0, 0, 1, 0, 1]], classes=(0, 1),
    )  # fmt: skip
    table = pd.DataFrame({"x0": [0, 4, 1], "x1": [0, 4, 1], "x2": [0.0, 10, 0.25]})
    settings = {"x2": {"bounds": (-np.inf, np.inf), "scale": 1.0}}
    explainer = Explainer(tree, data=table, features=settings)
    for norm, cost in (("l1", 1 / 4), ("l2", 1 / 16)):
        assert_same(explainer.explain(table.iloc[[2]], target=1, norm=norm)[0], cost)


def knapsack() -> tuple[Explainer, pd.DataFrame]:
    """Ten whole numbers whose weighted sum must rise above a threshold, dearer the farther each goes."""
    rng = np.random.default_rng(0)
    weights = rng.integers(11, 40, 10).astype(float)
    tree = ObliqueTree(
        np.vstack([weights, np.zeros((2, 10))]), [301.0, 0, 0], [1, -1, -1], [2, -1, -1], np.eye(2)[[0, 0, 1]],
        classes=(0, 1),
    )  # fmt: skip
    table = pd.DataFrame(np.vstack([np.zeros(10), np.full(10, 6), np.ones(10)]).astype(int))
    table.columns = [f"x{j}" for j in range(10)]
    return Explainer(tree, data=table), table.iloc[[0]]


def test_a_search_that_ends_early_claims_no_more_than_it_has_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    explainer, row = knapsack()
    whole = explainer.explain(row, target=1, norm="l2")[0]
    assert whole.status == "optimal"
    assert "branch and bound" in whole.method["solver"]
    bounds = []
    for most in (1, 10, 100):
        monkeypatch.setattr(leaf_branching, "MOST_BOXES", most)
        found = explainer.explain(row, target=1, norm="l2")[0]
        assert found.status in ("feasible", "unknown", "optimal")
        assert found.bound <= whole.cost * (1 + 1e-9)
        assert not found.found or found.cost >= whole.cost * (1 - 1e-9)
        bounds.append(found.bound)
    assert bounds[0] < whole.cost * (1 - 1e-6)
    assert bounds == sorted(bounds)


def test_a_point_whose_side_rounding_decides_is_put_to_the_model() -> None:
    # 0.1 + 0.2 is more than 0.3 in float64, and neither feature can stand anywhere else
    table = pd.DataFrame({"a": [0, 1, 0], "b": [0, 1, 1]})
    tree = ObliqueTree([[0.1, 0.2], [0, 0], [0, 0]], [0.3, 0, 0], [1, -1, -1], [2, -1, -1], np.eye(2)[[0, 0, 1]],
                       classes=(0, 1))  # fmt: skip
    assert_same(Explainer(tree, data=table).explain(table.iloc[[0]], target=1)[0], 2.0)
    over = ObliqueTree(tree.weights, [0.1 + 0.2, 0, 0], tree.left, tree.right, tree.value, classes=(0, 1))
    assert_same(Explainer(over, data=table).explain(table.iloc[[0]], target=1)[0], np.inf)


@pytest.mark.parametrize("weights", [[0.0, -1.0], [0.0, -0.1], [0.1, 0.2], [0.3, 0.6]])
@pytest.mark.parametrize("kind", ["classes", "values", "class costs"])
def test_a_row_upon_a_threshold_does_not_stand_for_the_leaf_beyond(kind: str, weights: list[float]) -> None:
    table = pd.DataFrame({"a": [0, 1, 1] * 20, "b": [0, 1, 0] * 20})
    row = table.iloc[[1]]
    total = float(row.to_numpy(float)[0] @ weights)
    shape = ([weights, [0, 0], [0, 0]], [total, 0, 0], [1, -1, -1], [2, -1, -1])
    for threshold in (total, np.nextafter(total, -1), np.nextafter(total, 1), 0.3 if total > 0 else total):
        shape = (shape[0], [threshold, 0, 0], *shape[2:])
        stump = ObliqueTree(*shape, [[0.0], [0.0], [1.0]])
        here = float(stump.predict(row)[0])
        others = pd.DataFrame(list(itertools.product([0, 1], repeat=2)), columns=["a", "b"])
        d = np.abs(others.to_numpy(float) - row.to_numpy(float)).sum(axis=1)
        optimum = float(d[stump.predict(others) == 1 - here].min(initial=np.inf))
        if kind == "values":
            found = Explainer(stump, data=table).explain(row, target=(0.5, None) if here == 0 else (None, 0.5))[0]
            assert_same(found, optimum)
            continue
        classes = ObliqueTree(*shape, np.eye(2)[[0, 0, 1]], classes=(0, 1))
        if kind == "classes":
            assert_same(Explainer(classes, data=table).explain(row, target=int(1 - here))[0], optimum)
            continue
        found = Explainer(classes, data=table).explain(row, class_costs={int(here): 5.0, int(1 - here): 0.1})[0]
        # the model is not asked about sides here, as it knows no leaves: what rounding decides stays open
        assert found.status in ("optimal", "feasible", "unknown")
        if found.status == "optimal":
            assert (found.cost, found.decided) == ((optimum, 1 - here) if optimum + 0.1 < 5 else (0.0, here))


def test_one_point_in_several_columns_is_tried_once() -> None:
    values = [[0.4, 0.6, 0.8, 1.0, 1.2, 1.4], [0, 0.01, 0.02, 0.03, 0.04, 0.05], [-4, -3, -2, -1, 0, 1]]
    table = pd.DataFrame(list(itertools.product(*values)), columns=["a", "b", "c"])
    weights = [
        [-0.32, 0.12, 0.62],
        [0.31, -1.97, -2.46],
        [0, 0, 0],
        [0, 0, 0],
        [0.34, -1.57, -0.69],
        [0, 0, 0],
        [0, 0, 0],
    ]
    row = pd.DataFrame({"a": [1.4], "b": [0.0], "c": [-1]})
    threshold = [float(row.to_numpy(float)[0] @ np.array(weights[0])), 2.89, 0, 0, -0.3, 0, 0]
    shape = [1, 2, -1, -1, 5, -1, -1], [4, 3, -1, -1, 6, -1, -1], np.eye(3)[[2, 2, 1, 2, 0, 0, 2]]
    tree = ObliqueTree(weights, threshold, *shape, classes=(0, 1, 2), feature_names=("a", "b", "c"))
    d = np.abs(table.to_numpy() - row.to_numpy(float))
    prices = (d / [1, 0.05, 5]).sum(axis=1) + 0.1 * (d > 1e-12).sum(axis=1)
    explainer = Explainer(tree, table, features={"a": {"step": 0.2}, "b": {"step": 0.01}})
    for target in {0, 1, 2} - {int(tree.predict(row)[0])}:
        best = float(prices[tree.predict(table) == target].min(initial=np.inf))
        for formulation in ("oblique", "hyperplanes"):
            found = explainer.explain(row, target=target, norm={"l0": 0.1, "l1": 1}, formulation=formulation)[0]
            assert_same(found, best)


def around(tree: ObliqueTree, others: np.ndarray) -> np.ndarray:
    """Values from 0 to 1 of the first feature near the crossings of hyperplanes, the other features being given."""
    sums, slopes = others @ tree.weights[:, 1:].T, tree.weights[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = ((tree.threshold - sums) / slopes).ravel()
    steps = 2.0 ** np.arange(-70, -30)
    near = crossings[np.isfinite(crossings), None] + np.concatenate([[0.0], steps, -steps])
    return np.append(np.unique(np.clip(near, 0.0, 1.0)), [0.0, 1.0])


def check_beside_a_number(kind: str, seed: int, dtype: Any = np.float64) -> None:
    """Rows of a number and of whole numbers, against the tree's answers on every side of every hyperplane."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 4))
    names = ["number", *(f"x{j}" for j in range(n))]
    table = pd.DataFrame(np.vstack([np.full(n, -2), np.full(n, 4), rng.integers(-2, 5, (20, n))]), columns=names[1:])
    table.insert(0, "number", np.concatenate([[0.0, 1.0], rng.uniform(size=20).round(int(rng.integers(1, 17)))]))
    table["number"] = table["number"].astype(dtype)
    tree = tree_through_the_grid(rng, n + 1, int(rng.integers(1, 4)), kind)
    inner = tree.left >= 0
    tree.weights[inner, 0] *= rng.random(inner.sum()) < 0.6
    through = table.to_numpy(float)[rng.integers(2, 22, len(inner))]
    tree.threshold[inner] = [float(tree.weights[v] @ through[v]) for v in np.flatnonzero(inner)]
    grid = np.array(list(itertools.product(*([np.arange(-2.0, 5.0)] * n))))
    for k in (3, 4):
        row = table.iloc[[k]]
        target, norm, here = 1 - int(tree.predict(row)[0]), NORMS[rng.integers(len(NORMS))], row.to_numpy(float)[0]
        optimum = np.inf
        for others in grid:
            values = np.append(around(tree, others), here[0]).astype(dtype)
            beside = [np.nextafter(values, dtype(side)) for side in (0, 1)]
            values = np.concatenate([values, *beside]).astype(float)
            points = np.column_stack([values, np.tile(others, (len(values), 1))])
            optimum = min(optimum, least(tree, points, here, target, norm, [1.0] + [6.0] * n))
        found = Explainer(tree, data=table).explain(row, target=target, norm=norm)[0]
        assert_same(found, optimum)


@pytest.mark.parametrize("seed", [0, 1, 8, 48, 59, 68])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_a_number_beside_whole_ones_upon_thresholds(kind: str, seed: int) -> None:
    # by one of them the side is decided once for all values of the number, or few or tiny values are left
    check_beside_a_number(kind, seed)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_narrow_number_beside_whole_ones_upon_thresholds(dtype: Any, seed: int) -> None:
    check_beside_a_number("tenths", seed, dtype)

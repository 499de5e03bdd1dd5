"""Across files: models whose values are multiples of others': what they decide is the same, and so are the answers."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from solve.oblique_cases import random_tree

from ocf import Explainer
from ocf.oblique.tree import ObliqueTree
from ocf.solvers import StandardForm, Status, get_solver

#: Multiples of all values: powers of two change no digit.
FACTORS = [2.0**50, 2.0**90, 2.0**300]


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"solver": "highs"},
        {"solver": "scip"},
        {"solver": "highs", "cuts": "root"},
        {"formulation": "ocean", "solver": "highs", "reduce": False},
        {"formulation": "interval", "solver": "scip", "reduce": False},
    ],
    ids=str,
)
def test_leaf_values(settings: dict[str, object], factor: float) -> None:
    table, values = load_diabetes(return_X_y=True, as_frame=True)
    table = table[["bmi", "bp", "s5"]]
    costs = []
    for own in (1.0, factor):
        model = GradientBoostingRegressor(n_estimators=8, max_depth=3, random_state=0).fit(table, values * own)
        row, wanted = table.iloc[[int(np.argmin(values))]], (200.0 * own, None)
        found = Explainer(model, data=table).explain(row, wanted, progress=False, **settings)[0]
        assert (found.status, found.verified) == ("optimal", True)
        costs.append(found.cost)
    assert costs[1] == pytest.approx(costs[0], rel=1e-9)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("solver", ["auto", "highs", "scip"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_weights_of_hyperplanes(norm: str, solver: str, factor: float) -> None:
    rng = np.random.default_rng(5)
    tree = random_tree(rng, 3, 2, 2, axis=0.0)
    table = pd.DataFrame(rng.random((30, 3)), columns=list("abc"))
    row = table.iloc[[0]]
    target = 1 - int(tree.predict(row)[0])
    costs = []
    for own in (1.0, factor):
        model = ObliqueTree(tree.weights * own, tree.threshold * own, tree.left, tree.right, tree.value, classes=(0, 1))
        found = Explainer(model, data=table).explain(row, target, norm, solver=solver, progress=False)[0]
        assert (found.status, found.verified) == ("optimal", True)
        costs.append(found.cost)
    assert costs[1] == pytest.approx(costs[0], rel=1e-7)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("solver", ["auto", "highs", "scip"])
@pytest.mark.parametrize("norm", ["l1", "l2", {"l0": 0.3, "l2": 1.0}, {"l0": 0.1, "l1": 1.0}], ids=str)
def test_features_in_units_of_any_size(norm: object, solver: str, seed: int) -> None:
    """Bytes in the place of gigabytes, and kilometres in that of micrometres."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 3, 2, 2, axis=0.0)
    table = pd.DataFrame(rng.random((30, 3)), columns=list("abc"))
    table.iloc[1], table.iloc[2] = 0.0, 1.0
    row = table.iloc[[0]]
    target = 1 - int(tree.predict(row)[0])
    costs = []
    for units in (np.ones(3), 2.0 ** rng.permutation([-20, 3, 20])):
        model = ObliqueTree(tree.weights / units, tree.threshold, tree.left, tree.right, tree.value, classes=(0, 1))
        explainer = Explainer(model, data=table * units)
        found = explainer.explain(row * units, target, norm, solver=solver, progress=False)[0]
        assert found.status == "optimal"
        costs.append(found.cost)
    assert costs[1] == pytest.approx(costs[0], rel=1e-6)


@pytest.mark.parametrize("size", [1e3, 1e9, 1e12])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("norm", "cost"), [("l1", 0.5), ("l2", 0.2), ({"l0": 0.1, "l1": 1}, 0.6)], ids=str)
def test_a_weight_as_small_as_its_feature_is_large(norm: object, cost: float, whole: bool, size: float) -> None:
    """The class is 1 where x / size + y / 2 exceeds 0.9: from (0.3 size, 0.2) on, half a range more."""
    tree = ObliqueTree(
        [[1 / size, 0.5], [0, 0], [0, 0]], [0.9, 0, 0], [1, -1, -1], [2, -1, -1], np.eye(2)[[0, 0, 1]], classes=(0, 1)
    )
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.random(50) * size, "y": rng.random(50)})
    table.iloc[0], table.iloc[1], table.iloc[2] = [0.0, 0.0], [size, 1.0], [0.3 * size, 0.2]
    table = table.astype({"x": "int64"}) if whole else table
    found = Explainer(tree, data=table).explain(table.iloc[[2]], 1, norm, progress=False)[0]
    one_more = 2 / size if whole else 1e-6
    assert (found.status, found.verified) == ("optimal", True)
    assert cost * (1 - 1e-6) <= found.cost <= cost + one_more


@pytest.mark.parametrize(("solver", "seed"), [*(("auto", seed) for seed in range(12)), ("scip", 2), ("highs", 3)])
def test_whole_numbers_beside_a_continuous_one(solver: str, seed: int) -> None:
    """Whole numbers up to 1e9 and a number up to 1, against the whole numbers next to the best number of the plane."""
    rng = np.random.default_rng(seed)
    scale = np.array([10.0 ** rng.integers(3, 10), 1.0])
    weights = rng.uniform(0.2, 2.0, 2) / scale
    row = np.array([np.floor(rng.uniform(0.1, 0.5) * scale[0]), rng.uniform(0.1, 0.5)])
    short = float(rng.uniform(0.05, 0.3) * weights @ scale)
    value, nothing = np.eye(2)[[0, 0, 1]], [0.0, 0.0]
    threshold = [weights @ row + short, 0.0, 0.0]
    tree = ObliqueTree([weights, nothing, nothing], threshold, [1, -1, -1], [2, -1, -1], value, classes=(0, 1))
    table = pd.DataFrame([nothing, scale, *[row] * 3], columns=["x", "y"]).astype({"x": "int64"})
    # SCIP sees no end of such squares: the branching has the second half of the time
    explainer = Explainer(tree, data=table)
    found = explainer.explain(table.iloc[[2]], 1, "l2", solver=solver, time_limit=4, progress=False)[0]
    slope = weights * scale
    middle = np.round(short * slope[0] / (slope @ slope) * scale[0])
    moves = np.clip(middle + np.arange(-60.0, 61.0), -row[0], scale[0] - row[0])
    rest = np.maximum((short - weights[0] * moves) / weights[1], 0.0)
    best = float(((moves / scale[0]) ** 2 + rest**2)[row[1] + rest <= 1.0].min())
    assert (found.status, found.verified) == ("optimal", True)
    assert found.cost == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("exponent", [29, 31, 33])
@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_a_huge_leaf_beside_small_ones(solver: str, exponent: int) -> None:
    """Trees that say 0 or 1, and two that nearly cancel: what the small ones say still counts."""
    n, big = 10, 2.0**exponent
    form = StandardForm(
        c=np.arange(1.0, n + 2),
        c0=0.0,
        A=sp.csr_array([[*np.ones(n), big]]),
        row_lower=[6.0],
        row_upper=[100.0],
        lower=np.zeros(n + 1),
        upper=np.ones(n + 1),
        integer=np.ones(n + 1, bool),
    )
    result = get_solver(solver).solve(form)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(21.0)  # the huge one is too much: the six cheapest of the others


def few_units_short(seed: int) -> tuple[ObliqueTree, pd.DataFrame, float]:
    """A hyperplane a few units away from the row in the middle of ranges of up to 1e12, and the cost by enumeration."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(1, 13, 2)
    middle, weights = np.floor(scale / 2), rng.choice([-3.0, -2, -1, 1, 2, 3], 2)
    short = float(rng.integers(1, 6)) - 0.5
    threshold = float(weights @ middle) + short
    value, nothing = np.eye(2)[[0, 0, 1]], [0.0, 0.0]
    tree = ObliqueTree([weights, nothing, nothing], [threshold, 0, 0], [1, -1, -1], [2, -1, -1], value, classes=(0, 1))
    table = pd.DataFrame([nothing, scale, *[middle] * 3], columns=["x", "y"]).astype("int64")
    moves = np.array(list(itertools.product(range(-8, 9), repeat=2)), float)
    moves = moves[(np.abs(moves) <= scale / 2).all(axis=1) & (moves @ weights > short)]
    return tree, table, float(((moves / scale) ** 2).sum(axis=1).min())


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 31, 46, 72, 77, 120, 147])
@pytest.mark.parametrize("solver", ["auto", "highs", "scip"])
def test_rows_a_few_units_short_of_a_hyperplane(solver: str, seed: int) -> None:
    tree, table, best = few_units_short(seed)
    found = Explainer(tree, data=table).explain(table.iloc[[2]], 1, "l2", solver=solver, progress=False)[0]
    assert (found.status, found.verified) == ("optimal", True)
    assert found.cost == pytest.approx(best, rel=1e-9, abs=0)


def few_units_from_thresholds(seed: int) -> tuple[RandomForestClassifier, pd.DataFrame]:
    """A forest with thresholds a few units around 0, the last row, and others as far as 1e12."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(1, 13, 2)
    near, far = rng.integers(-6, 7, (60, 2)), np.floor((rng.random((20, 2)) - 0.5) * scale)
    values = np.vstack([near, far]) + 0.25 * rng.integers(0, 2, (80, 2))
    table = pd.DataFrame(np.vstack([values, [[0.0, 0.0]]]), columns=["x", "y"])
    labels = (table.sum(axis=1) > rng.integers(0, 4)) ^ (rng.random(81) < 0.1)
    return RandomForestClassifier(3, max_depth=4, random_state=seed).fit(table, labels), table


@pytest.mark.parametrize("seed", range(24))
def test_a_quadratic_form_a_few_units_from_the_thresholds(seed: int) -> None:
    model, table = few_units_from_thresholds(seed)
    explainer, costs = Explainer(model, data=table), []
    for solver in ("box", "highs", "scip"):
        found = explainer.explain(table.iloc[[-1]], norm="mahalanobis", solver=solver, progress=False)[0]
        assert (found.status, found.verified) == ("optimal", True)
        costs.append(found.cost)
    assert costs == pytest.approx([costs[0]] * 3, rel=1e-7, abs=0)

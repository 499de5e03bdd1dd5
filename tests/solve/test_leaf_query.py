"""One row's query of leaves: rounding, and relations between features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from ocf import Cost, Explainer
from ocf.oblique.tree import ObliqueTree
from ocf.problem.constraints import Budget, Implication, Linear, MaxChanges
from ocf.problem.rows import satisfied

from .oblique_cases import Fixed, assert_same, brute_force, colours_one_hot, frame, mixed_table, price, random_tree


def test_a_leaf_thinner_than_rounding_is_no_answer() -> None:
    # left of x + y <= 1 and right of x + y <= 1 - 1e-16: no float64 point is surely inside
    tree = ObliqueTree(
        [[1.0, 1.0], [1.0, 1.0], [0, 0], [0, 0], [0, 0]],
        [1.0, 1.0 - 1e-16, 0, 0, 0],
        [1, 3, -1, -1, -1],
        [2, 4, -1, -1, -1],
        np.eye(2)[[0, 0, 0, 0, 1]],
        classes=(0, 1),
    )
    table = frame(np.random.default_rng(0), 2)
    found = Explainer(tree, data=table).explain(table.iloc[[3]], target=1)[0]
    assert not found.found or found.verified
    assert found.status in ("unknown", "infeasible", "feasible", "optimal")
    if found.status == "infeasible":
        grid = np.linspace(0, 1, 401)
        points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
        assert not (tree.predict(points) == 1).any()


def test_numbers_that_rounding_leaves_open_are_put_to_the_model() -> None:
    # blue leaves a leaf thinner than rounding, near the row; red opens a wide one, far away
    encoder = colours_one_hot()
    tree = ObliqueTree(
        [[0, 0, -1.0, 1.0, 0, 1.0], [0, 0, 0, 1.0, 0, 1.0], *np.zeros((3, 6))], [1.0, 1.0 - 1e-16, 0, 0, 0],
        [1, 3, -1, -1, -1], [2, 4, -1, -1, -1], np.eye(2)[[0, 0, 0, 0, 1]], classes=(0, 1),
    )  # fmt: skip
    table = mixed_table(np.random.default_rng(0))
    model = make_pipeline(encoder, Fixed(tree)).fit(table, np.zeros(len(table)))
    explainer = Explainer(model, data=table, features={"number": {"scale": 1.0, "bounds": [0, 3]}, "flag": {}})
    row = pd.DataFrame({"number": [0.7], "count": [1], "colour": ["blue"], "flag": [0]})
    found = explainer.explain(row, target=1, norm="l2", features_to_vary=["number", "colour"])[0]
    # of the few numbers that are left by blue the model takes 1.0 alone
    near = [row.assign(number=[value]) for value in (1.0, np.nextafter(1.0, 2), np.nextafter(1.0, 0))]
    assert [int(model.predict(point)[0]) for point in near] == [1, 0, 0]
    assert found.counterfactual is not None
    assert found.counterfactual["number"].item() == 1.0
    assert_same(found, 0.09)


@pytest.mark.parametrize("norm", ["l1", "l2", "l0"])
@pytest.mark.parametrize("seed", range(4))
def test_linear_relations_equal_brute_force(norm: str, seed: int) -> None:
    rng = np.random.default_rng(400 + seed)
    n = 3
    tree, table = random_tree(rng, n, 2, 2), frame(rng, n)
    explainer = Explainer(tree, data=table)
    origin = table.to_numpy()[4]
    target = 1 - int(tree.predict(origin[None])[0])
    row = [float(c) for c in np.round(rng.normal(size=n), 2)]
    side = round(float(np.dot(row, origin)) - 0.05, 3)
    wish = Linear(dict(zip(table.columns, row, strict=True)), "<=", side)
    optimum = brute_force(tree, origin, {target}, Cost.parse(norm), [(0.0, 1.0)] * n, extra=(row, side))
    for formulation in ("oblique", "hyperplanes"):
        found = explainer.explain(table.iloc[[4]], target, norm, constraints=[wish], formulation=formulation)[0]
        assert_same(found, optimum)


CONSTRAINTS: list[Any] = [
    MaxChanges(1),
    Budget(0.9, {"x0": 1.0, "x1": (2.0, 0.5), "x2": 1.0}),
    Linear({"x0": 1.0, "x1": -1.0}, "=", 0.25),
    [MaxChanges(2), Linear({"x0": 1.0, "x2": 1.0}, ">=", 0.6)],
]


@pytest.mark.parametrize("wish", CONSTRAINTS, ids=str)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_relations_leave_no_cheaper_point_among_many(norm: str, wish: Any) -> None:
    rng = np.random.default_rng(12)
    tree, table = random_tree(rng, 3, 2, 2), frame(rng, 3)
    explainer = Explainer(tree, data=table)
    answers = []
    for k in (2, 5, 7):
        row = table.iloc[[k]]
        target = 1 - int(tree.predict(row)[0])
        both = [
            explainer.explain(row, target, norm, constraints=wish, formulation=f)[0] for f in ("oblique", "hyperplanes")
        ]
        assert [e.status for e in both] in (["optimal"] * 2, ["infeasible"] * 2), [e.message for e in both]
        if both[0].found:
            assert all(e.verified for e in both), both[0].checks
            assert both[0].cost == pytest.approx(both[1].cost, rel=1e-9, abs=1e-12)
            assert both[0].cost >= explainer.explain(row, target, norm)[0].cost * (1 - 1e-9)
        answers.append(both[0])
        # random points that keep the constraints, many of them with few changes, are no cheaper
        points = np.where(rng.random((4000, 3)) < 0.5, table.to_numpy()[k], rng.uniform(size=(4000, 3)))
        hits = points[tree.predict(points) == target]
        rows = [
            r
            for c in (wish if isinstance(wish, list) else [wish])
            for r in c.rows(explainer.space, table.to_numpy()[k])
        ]
        kept = [p for p in hits if satisfied(rows, explainer.space, p)]
        cheapest = min((price(Cost.parse(norm), table.to_numpy()[k], p, None) for p in kept), default=np.inf)
        assert (np.inf if both[0].cost is None else both[0].cost) <= cheapest
    assert any(e.found for e in answers)


def test_own_costs_and_relations_that_bend_elsewhere() -> None:
    rng = np.random.default_rng(11)
    tree, table = random_tree(rng, 3, 2, 2), frame(rng, 3)
    row = table.iloc[[2]]
    target = 1 - int(tree.predict(row)[0])
    priced = Explainer(tree, data=table, features={"x0": {"cost": [3.0, 0.5]}})
    both = [priced.explain(row, target, formulation=f)[0] for f in ("oblique", "hyperplanes")]
    assert all(e.status == "optimal" and e.verified for e in both), [e.message for e in both]
    assert both[0].cost == pytest.approx(both[1].cost)
    stepped = Implication({"x0": (0.5, None)}, {"x1": (0.5, None)})
    refused = priced.explain(row, target, constraints=[stepped])[0]
    assert refused.status == "error"
    assert "no line" in refused.message


@pytest.mark.parametrize("solver", ["auto", "highs", "scip"])
@pytest.mark.parametrize(("weight", "threshold", "margin"), [(0.5, 0.5, 0.5), (0.5, 1.5, 0.5), (2.0, 3.0, 1.0)])
def test_totals_of_whole_numbers_may_lie_on_the_margin_itself(
    weight: float, threshold: float, margin: float, solver: str
) -> None:
    """To the right of both splits: a whole number by the first, and another column by the second."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"i": np.arange(30) % 5, "c": np.round(rng.normal(size=30) * 10, 3)})
    planes = [[weight, 0], [0, 0], [0, 2.0], [0, 0], [0, 0]]
    classes = [[1, 0], [1, 0], [1, 0], [1, 0], [0, 1]]
    sides = [1, -1, 3, -1, -1], [2, -1, 4, -1, -1]
    tree = ObliqueTree(planes, [threshold, 0, 5.3, 0, 0], *sides, classes, classes=[0, 1], feature_names=("i", "c"))
    row = pd.DataFrame({"i": [0], "c": [0.0]})
    found = Explainer(tree, data=table).explain(row, 1, split_margin=margin, solver=solver)[0]
    assert found.status == "optimal"
    whole, other = found.counterfactual.iloc[0]
    assert whole == min(i for i in range(5) if weight * i >= threshold + margin)
    assert 2 * other == pytest.approx(5.3 + margin)

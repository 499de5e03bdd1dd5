"""What a known point leaves of a problem over values."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline

from ocf import Explainer
from ocf.arrays import BoolArray, FloatArray
from ocf.oblique.tao import TAOClassifier
from ocf.problem.problem import Problem
from ocf.solve.narrowed import Narrowing, NumberBox

MODELS = {
    "oblique": BaggingClassifier(TAOClassifier(2, init="random"), 3, random_state=0),
    "components": make_pipeline(PCA(2), RandomForestClassifier(4, max_depth=3, random_state=0)),
}


@pytest.mark.parametrize("norm", ["l0", "l1", "l2"])
@pytest.mark.parametrize("name", MODELS)
def test_every_cheaper_point_with_the_target_stays(name: str, norm: str) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    explainer = Explainer(MODELS[name].fit(X, y), data=X)
    problem = explainer.problem(X.iloc[[0]], 1, norm)
    assert isinstance(problem, Problem)
    model, (requirements,) = explainer.query(problem).model, problem.alternatives
    rng = np.random.default_rng(0)
    ends = X.min().to_numpy(), X.max().to_numpy()
    anywhere = rng.uniform(*ends, (4000, 4))
    points = problem.origin + rng.uniform(0, 1, (4000, 1)) * (anywhere - problem.origin)
    points = np.where(rng.random(points.shape) < 0.4, problem.origin, points)
    leaves = problem.trees.apply(points)
    with_target = (requirements.gain[leaves].sum(axis=1) >= requirements.need).all(axis=1)
    costs = problem.costs(points)
    assert with_target.sum() > 20
    best = explainer.explain(X.iloc[[0]], 1, norm, solver="scip")[0]
    assert best.cost is not None
    narrowing = Narrowing.of(model, requirements)
    assert narrowing is not None
    assert best.counterfactual is not None
    answer = problem.space.from_frame(best.counterfactual)
    for limit in (float(np.quantile(costs[with_target], 0.3)), 1.01 * best.cost):
        cheaper = with_target & (costs < limit)
        kept = np.vstack([points[cheaper], answer])
        price, own_leaves = np.append(costs[cheaper], best.cost), problem.trees.apply(kept)
        boxes = [narrowing.whole(limit)]
        for depth in range(7):
            inside = np.zeros(len(kept), bool)
            for box in boxes:
                assert box is not None
                here = within(box, narrowing, problem, kept) & box.live[own_leaves].all(axis=1)
                assert (price[here] >= box.least - 1e-9).all()
                inside |= here
            assert inside.all(), depth
            boxes = [half for box in boxes if box is not None for half in narrowing.halves(box, limit)]
    assert all(narrowing.whole(0.99 * best.cost * share) is None for share in (0.0, 1e-3)) or norm == "l0"
    narrower = narrowing.whole(limit)
    assert narrower is not None
    columns = narrowing.columns(narrower)
    assert (columns.upper - columns.lower < model.columns.upper - model.columns.lower).any() or norm == "l0"


def within(box: NumberBox, narrowing: Narrowing, problem: Problem, points: FloatArray) -> BoolArray:
    """Which points lie within a box, and within the bounds of its columns."""
    columns, change = narrowing.columns(box), np.zeros((2, *points.shape))  # least and most
    for j in range(columns.n):
        if columns.role[j] != "moved":
            own = np.sort(columns.unit[j] * np.array([columns.lower[j], columns.upper[j]]))
            change[:, :, columns.feature[j]] += own[:, None]
    moved = points - problem.origin
    by_columns = ((change[0] - 1e-9 <= moved) & (moved <= change[1] + 1e-9)).all(axis=1)
    by_box = ((box.low - 1e-9 <= points) & (points <= box.high + 1e-9)).all(axis=1)
    return np.asarray(by_columns & by_box)


def test_halves_are_smaller_and_end() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    explainer = Explainer(MODELS["oblique"].fit(X, y), data=X)
    problem = explainer.problem(X.iloc[[0]], 1)
    assert isinstance(problem, Problem)
    best = explainer.explain(X.iloc[[0]], 1, solver="scip")[0].cost
    narrowing = Narrowing.of(explainer.query(problem).model, problem.alternatives[0])
    assert narrowing is not None
    box, widths = narrowing.whole(best * 1.001), list[float]()
    for _ in range(200):
        assert box is not None
        halves = narrowing.halves(box, best * 1.001)
        if halves == [box]:
            break
        assert halves
        assert all((half.low >= box.low).all() and (half.high <= box.high).all() for half in halves)
        assert not any(half.live[~box.live].any() for half in halves)
        box = max(halves, key=lambda half: float((half.high - half.low).sum()))
        widths.append(float((box.high - box.low).sum()))
    assert halves == [box]  # at a billionth of the width at last
    assert widths == sorted(widths, reverse=True)


def test_a_box_shrinks_around_a_point() -> None:
    box = NumberBox.of(np.array([0.0, -np.inf, 2.0]), np.array([4.0, np.inf, 2.0]), np.ones(3, bool), 0.5)
    half = box.towards(np.array([1.0, 7.0, 2.0]), 0.5)
    assert half.low.tolist() == [0.5, -np.inf, 2.0]
    assert half.high.tolist() == [2.5, np.inf, 2.0]
    assert (half.size, half.least) == (3, 0.5)


def test_nothing_is_learnt_of_boxes_alone() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    explainer = Explainer(RandomForestClassifier(3, max_depth=2, random_state=0).fit(X, y), data=X)
    problem = explainer.problem(X.iloc[[0]], 1)
    assert isinstance(problem, Problem)
    assert Narrowing.of(explainer.query(problem).model, problem.alternatives[0]) is None

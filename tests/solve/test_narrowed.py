"""What a known point leaves of a problem over values."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline

from ocf import Explainer
from ocf.arrays import FloatArray
from ocf.oblique.tao import TAOClassifier
from ocf.problem.problem import Problem
from ocf.solve.narrowed import Narrowed, narrowed

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
    for limit in (float(np.quantile(costs[with_target], 0.3)), 1.01 * best.cost):
        left = narrowed(model, requirements, limit)
        assert left is not None
        cheaper = with_target & (costs < limit)
        assert_within(left, problem, points[cheaper])
        assert left.live[leaves[cheaper]].all()
    assert best.counterfactual is not None
    answer = problem.space.from_frame(best.counterfactual)
    assert_within(left, problem, answer)
    assert left.live[problem.trees.apply(answer)].all()
    narrower = left.columns.upper - left.columns.lower < model.columns.upper - model.columns.lower
    assert narrower.any() or norm == "l0"


def assert_within(left: Narrowed, problem: Problem, points: FloatArray) -> None:
    """Points lie within the bounds that are left."""
    columns, change = left.columns, np.zeros((2, *points.shape))  # least and most
    for j in range(columns.n):
        if columns.role[j] != "moved":
            own = np.sort(columns.unit[j] * np.array([columns.lower[j], columns.upper[j]]))
            change[:, :, columns.feature[j]] += own[:, None]
    moved = points - problem.origin
    assert ((change[0] - 1e-9 <= moved) & (moved <= change[1] + 1e-9)).all()


def test_without_a_point_nothing_is_learnt() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    explainer = Explainer(MODELS["oblique"].fit(X, y), data=X)
    problem = explainer.problem(X.iloc[[0]], 1)
    assert isinstance(problem, Problem)
    assert narrowed(explainer.query(problem).model, problem.alternatives[0], np.inf) is None

"""First points for trees with hyperplanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer, Linear
from ocf.problem.problem import Problem
from ocf.solve.first_points import LEAST_GAIN, PARTS, leaves_at, meets, pulled_back, ways
from ocf.solvers.result import SolveResult, Status
from ocf.solvers.scip import ScipSolver

isotree = pytest.importorskip("isotree")


def case(quantile: float) -> tuple[Explainer, Any, dict[str, Any]]:
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, y)
    forest = isotree.IsolationForest(ntrees=5, ndim=2, sample_size=24, random_seed=1, nthreads=1, missing_action="fail")
    wish = {"forest": forest.fit(X[model.predict(X) == 2]), "quantile": quantile}
    return Explainer(model, data=X), X, wish


def problem_of(explainer: Explainer, X: Any, wish: dict[str, Any], k: int = 0) -> Problem:
    problem = explainer.problem(X.iloc[[k]], 2, plausibility=wish)
    assert isinstance(problem, Problem)
    return problem


def test_leaves_are_those_of_all_trees_together() -> None:
    explainer, X, wish = case(0.3)
    problem, points = problem_of(explainer, X, wish), X.to_numpy()
    assert (leaves_at(problem, points) == problem.trees.apply(points)).all()


@pytest.mark.parametrize("k", [0, 60])
def test_points_with_the_target_are_found_and_pulled_back_as_far_as_one_feature_goes(k: int) -> None:
    explainer, X, wish = case(0.3)
    problem = problem_of(explainer, X, wish, k)
    (requirements,) = problem.alternatives
    found = list(ways(problem, requirements, X.to_numpy(), problem.origin))
    assert found
    for point in found:
        back = pulled_back(problem, requirements, point)
        assert meets(problem, requirements, np.stack([point, back])).all()
        cost = problem.costs(back[None])[0]
        assert cost <= problem.costs(point[None])[0]
        for i in np.flatnonzero(back != problem.origin).tolist():
            nearer = np.repeat(back[None], len(PARTS), axis=0)
            nearer[:, i] = problem.origin[i] + PARTS * (back[i] - problem.origin[i])
            gained = problem.costs(nearer) < cost * (1 - LEAST_GAIN)
            assert not (meets(problem, requirements, nearer) & gained).any()
    assert min(problem.costs(np.stack([pulled_back(problem, requirements, p) for p in found]))) < min(
        problem.costs(np.stack(found))
    )


def test_a_point_that_is_plausible_without_the_isolation_forest_is_the_answer() -> None:
    explainer, X, wish = case(0.0)
    plain = explainer.explain(X.iloc[[60]], target=2)[0]
    found = explainer.explain(X.iloc[[60]], target=2, plausibility=wish)[0]
    assert found.verified, found.checks
    assert found.status == "optimal"
    assert found.cost == plain.cost
    assert found.method["formulation"] == "hyperplanes"
    assert "highs" not in found.method["solvers"]
    # the solver that was asked for, and no other
    assert "box" not in explainer.explain(X.iloc[[60]], 2, plausibility=wish, solver="scip")[0].method["solvers"]


def test_the_bound_without_the_isolation_forest_holds_where_a_solver_finds_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explainer, X, wish = case(0.6)
    row = X.iloc[[60]]
    plain, best = (explainer.explain(row, target=2, plausibility=own)[0] for own in (None, wish))
    assert best.status == "optimal"
    assert best.cost > 1.01 * plain.cost  # or the bound would be the answer

    def solve(self: ScipSolver, *_: Any, **__: Any) -> SolveResult:
        return SolveResult(Status.UNKNOWN, bound=0.0, solver="scip", message="time limit")

    monkeypatch.setattr(ScipSolver, "solve", solve)
    found = explainer.explain(row, target=2, plausibility=wish)[0]
    assert (found.status, found.bound, found.verified) == ("feasible", plain.cost, True)
    assert found.cost >= best.cost * (1 - 1e-9)


@pytest.mark.parametrize(
    "asked",
    [
        {"constraints": [Linear({"petal length (cm)": 1.0, "petal width (cm)": 1.0}, "<=", 6.5)]},
        {"norm": "mahalanobis"},
        {"norm": "l0"},
        {"target": [1, 2]},
    ],
    ids=str,
)
def test_whatever_is_asked_the_answer_is_that_of_the_model_alone(asked: dict[str, Any]) -> None:
    explainer, X, wish = case(0.5)
    asked = {"target": 2, "plausibility": wish, **asked}
    found, alone = (explainer.explain(X.iloc[[60]], **asked, solver="scip", reduce=r)[0] for r in (True, False))
    assert found.status == alone.status == "optimal", (found.message, alone.message)
    assert found.verified, found.checks
    assert found.cost == pytest.approx(alone.cost, rel=1e-6)

"""Explanations of outcomes that are made by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from ocf import Explainer
from ocf.explain.answers import from_finding
from ocf.explain.explanation import Explanation
from ocf.features.inference import infer_space
from ocf.features.space import FeatureSpace
from ocf.models.user_model import UserModel, as_user_model
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassTarget
from ocf.solve.engine import Finding
from ocf.solve.method import Way
from ocf.solve.outcome import Outcome
from ocf.solve.task import AskedRow
from ocf.solvers.result import Progress, Status


def solved(
    model: UserModel,
    space: FeatureSpace,
    original: pd.DataFrame,
    point: np.ndarray | None,
    *,
    status: Status = Status.OPTIMAL,
    norm: str = "l1",
    slack: float = 0.0,
) -> Explanation:
    """Explanation of an outcome made by hand."""
    origin = space.from_frame(original)[0]
    predicted = int(model.decide(original[list(space.columns)])[0])
    problem = Problem(model.trees.ensemble, space, origin, ClassTarget(1 - predicted), Cost.parse(norm))
    if len(space) != model.trees.ensemble.n_features:
        pytest.fail("the space has groups: lift the ensemble first")
    return explained(problem, model, original, predicted, point, status, slack)


def explained(
    problem: Problem,
    model: UserModel,
    original: pd.DataFrame,
    predicted: int,
    point: np.ndarray | None,
    status: Status,
    slack: float = 0.0,
) -> Explanation:
    cost = None if point is None else problem.cost.total(problem.space, problem.origin, point)
    bound = math.inf if cost is None else cost - slack
    outcome = Outcome(
        status, point, cost, bound, {"incumbent": 0.1, "solve": 0.2}, nodes=3, proved_by="highs",
        sizes={"leaves": 40}, history=(Progress(0.1, -math.inf, math.inf), Progress(0.2, bound, math.inf)),
    )  # fmt: skip
    method = {"formulation": "interval", "solver": "highs", "options": {"gap": 0.0}, "reduction": True}
    found = Finding(problem, outcome, Way("interval", "highs"), method, {"build": 0.5})
    row = AskedRow(original.index[0], original, problem.origin, predicted)
    return from_finding(found, row, model, model.trees.ensemble.decision.classes)


def hostile() -> Explanation:
    """Names and levels that try to leave their place."""
    evil = '<script>alert("x")</script>'
    table = pd.DataFrame({evil: ["$a$", f"{evil}'\""] * 10})
    forest = make_pipeline(OrdinalEncoder(), RandomForestClassifier(3, random_state=0))
    model = as_user_model(forest.fit(table, np.where(table[evil] == "$a$", "<b>no", "yes&")))
    space = infer_space(table)
    return solved(model, space, table.iloc[[0]], 1 - space.from_frame(table.iloc[[0]])[0])


def raised_sum() -> tuple[Explanation, RandomForestRegressor]:
    """An answer of several changes about a regressor."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((200, 3)).round(2), columns=["a", "b", "c"])
    model = RandomForestRegressor(5, max_depth=5, random_state=0).fit(table, table.sum(axis=1))
    lowest = table.iloc[[int(table.sum(axis=1).to_numpy().argmin())]]
    return Explainer(model, table).explain(lowest, (2.2, None))[0], model

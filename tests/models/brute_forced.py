"""The answers about a table by brute force, through the user's own model."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ocf.explain.explainer import Explainer
from ocf.explain.explanation import Explanation

WAYS: list[dict[str, Any]] = [
    {},
    {"reduce": False, "solver": "highs"},
    {"solver": "box"},
    {"reduce": False, "solver": "highs", "formulation": "ocean"},
]


def cheapest(explainer: Explainer, row: pd.DataFrame, target: Any, values: Iterable[Iterable[float]]) -> float:
    """Cost of the cheapest point of a product of coded values that the user's own model gives the target."""
    problem = explainer.problem(row, target)
    points = np.array(list(itertools.product(*values)), np.float64)
    points = np.where(np.isnan(problem.origin), np.nan, points)

    def cost(point: np.ndarray) -> float:
        return problem.cost.total(problem.space, problem.origin, point)

    # l1 adds up over features: the cheapest points come first, and the model is asked until it gives one the target
    about = np.zeros(len(points))
    for i, column in enumerate(points.T):
        held, place = np.unique(column, return_inverse=True)
        alone = np.tile(problem.origin, (len(held), 1))
        alone[:, i] = held
        about += np.array([cost(point) for point in alone])[place.ravel()]
    order = np.argsort(about, kind="stable")
    for some in np.array_split(order, len(order) // 4000 + 1):
        met = some[explainer.model.meets(problem.target, problem.space.to_frame(points[some]))]
        if len(met):
            return min(cost(points[k]) for k in met if about[k] <= about[met[0]] * (1 + 1e-9))
    return np.inf


def assert_true(found: Explanation, best: float) -> None:
    """The answer is proven, and it is the best that brute force knows."""
    assert found.status == ("optimal" if np.isfinite(best) else "infeasible"), found.message
    if np.isfinite(best):
        assert found.cost == pytest.approx(best, rel=1e-9)
        assert found.verified, found.checks


def numbers(seed: int = 0, n: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"a": rng.normal(50, 10, n), "b": rng.exponential(3, n), "c": rng.normal(size=n)})
    return table, ((table.a > 50) ^ (table.b > 2) ^ (rng.random(n) < 0.1)).to_numpy(int)


def scaled_forest(table: pd.DataFrame, labels: np.ndarray, scaler: Any = None) -> Any:
    forest = RandomForestClassifier(15, max_depth=5, random_state=0, n_jobs=1)
    return make_pipeline(scaler or StandardScaler(), forest).fit(table, labels)


def holes(kind: str) -> tuple[pd.DataFrame, np.ndarray, Any, float]:
    """A step that sends one value of the feature elsewhere, which no row of the data has."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"a": rng.uniform(1, 100, 300), "b": rng.normal(size=300)})
    labels = (table.a < 20).to_numpy(int)
    if kind == "imputer":
        imputer = SimpleImputer(missing_values=0, strategy="constant", fill_value=5.0)
        return table, labels, imputer, 0.0
    return table, labels, FunctionTransformer(lambda x: np.where(np.asarray(x) == 99, 0.0, x)), 99.0

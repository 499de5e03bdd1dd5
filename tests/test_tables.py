"""Reading a table: no false `optimal` and no false `infeasible`, by brute force through the user's own model."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from xgboost import XGBClassifier

from ocf.explainer import Explainer
from ocf.explanation import Explanation

RNG = np.random.default_rng(0)
N = 300
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
    met = explainer.model.meets(problem.target, problem.space.to_frame(points))
    costs = [problem.cost.total(problem.space, problem.origin, point) for point in points[met]]
    return min(costs, default=np.inf)


def assert_true(found: Explanation, best: float) -> None:
    """The answer is proven, and it is the best that brute force knows."""
    assert found.status == ("optimal" if np.isfinite(best) else "infeasible"), found.message
    if np.isfinite(best):
        assert found.cost == pytest.approx(best, rel=1e-9)
        assert found.verified, found.checks


# -- splits that are decided, and a first feature without an order ---------------------------------------------

COLOURS = ["red", "green", "blue", "grey", "white"]


def coloured(n_colours: int = 5) -> tuple[pd.DataFrame, np.ndarray]:
    """A category in front of two whole numbers, which have gaps, and labels."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "colour": pd.Categorical(rng.choice(COLOURS[:n_colours], N), COLOURS[:n_colours]),
            "a": rng.integers(0, 6, N).astype(float),
            "b": rng.integers(0, 6, N).astype(float),
        }
    )
    labels = (table.colour.isin(["red", "blue"]) ^ (table.a > 2)) | (table.b > 4)
    labels ^= rng.random(N) < 0.1
    return table.mask(pd.DataFrame(rng.random((N, 3)) < [0.0, 0.2, 0.0], columns=table.columns)), labels.to_numpy(int)


BOOSTED = {
    "lightgbm": lambda: LGBMClassifier(
        n_estimators=8, min_child_samples=5, min_data_per_group=1, cat_smooth=1.0, verbose=-1, n_jobs=1
    ),
    "histgb": lambda: HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=5, categorical_features="from_dtype"),
    "xgboost": lambda: XGBClassifier(
        n_estimators=8, max_depth=3, enable_categorical=True, max_cat_to_onehot=1, n_jobs=1
    ),
}
WHOLE = {name: {"kind": "integer"} for name in ("a", "b")}


@pytest.mark.parametrize("way", WAYS, ids=["auto", "no_reduction", "box", "ocean"])
@pytest.mark.parametrize("library", BOOSTED)
def test_nan_rows_where_the_first_feature_is_an_unordered_category(library: str, way: dict[str, Any]) -> None:
    table, labels = coloured()
    model = BOOSTED[library]().fit(table, labels)
    explainer = Explainer(model, table, WHOLE)
    for k in np.flatnonzero(table.a.isna())[:6]:
        row = table.iloc[[k]]
        best = cheapest(explainer, row, "opposite", [range(5), range(6), range(6)])
        assert_true(explainer.explain(row, **way)[0], best)


@pytest.mark.parametrize("way", WAYS, ids=["auto", "no_reduction", "box", "ocean"])
def test_one_hot_level_that_the_background_data_lacks(way: dict[str, Any]) -> None:
    table, labels = coloured()
    table = table.fillna(0).astype({"colour": str})
    columns = ColumnTransformer([("c", OneHotEncoder(), ["colour"])], remainder="passthrough")
    model = make_pipeline(columns, RandomForestClassifier(10, max_depth=5, random_state=0, n_jobs=1))
    model.fit(table, labels)
    background = table[table.colour != "grey"]
    explainer = Explainer(model, background, WHOLE)
    for k in range(0, 60, 10):
        row = background.iloc[[k]]
        best = cheapest(explainer, row, "opposite", [range(4), range(6), range(6)])
        assert_true(explainer.explain(row, **way)[0], best)

"""Splines that repeat themselves along the line: within the bounds of their feature, and nowhere else."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracle.table_check import check_table
from oracle.tables import TableInstance
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, SplineTransformer
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer
from ocf.errors import DataError, UnsupportedModelError

RNG = np.random.default_rng(3)
#: Hours of three days; what is asked for happens at noon.
TABLE = pd.DataFrame({"hour": np.round(RNG.uniform(0.5, 71.5, 150), 2), "load": np.round(RNG.normal(5, 2, 150), 2)})
LABELS = ((np.abs(TABLE.hour % 24 - 12) < 4) & (TABLE.load > 3)).to_numpy(int)
KNOTS = np.column_stack([np.linspace(0, 24, 5), np.linspace(0, 24, 5)])


def spline(degree: int = 3) -> SplineTransformer:
    return SplineTransformer(degree=degree, knots=KNOTS, extrapolation="periodic")


TREE = DecisionTreeClassifier(max_depth=4, random_state=0)


def fitted(step: Any, model: Any = TREE) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(step, clone(model)).fit(TABLE, LABELS)


@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("place", [4, 17])
def test_each_period_is_known(degree: int, place: int) -> None:
    model = fitted(spline(degree), RandomForestClassifier(3, max_depth=3, random_state=0))
    row = TABLE.iloc[[place]].reset_index(drop=True)
    question = {"target": int(1 - model.predict(row)[0]), "norm": "l1"}
    instance = TableInstance("periodic", place, model, True, TABLE, row, row, {}, question)
    assert check_table(instance) == "optimal"


def test_the_nearest_noon_is_found() -> None:
    """The row stands in the second night: both noons beside it are near, and the nearer one is taken."""
    explainer = Explainer(fitted(spline()), TABLE)
    late, early = (pd.DataFrame({"hour": [hour], "load": [5.0]}) for hour in (44.0, 52.0))
    (found,), (other,) = (explainer.explain(row, target=1, progress=False) for row in (late, early))
    assert found.status == other.status == "optimal"
    assert 36 < found.counterfactual.hour.iloc[0] < 44
    assert 52 < other.counterfactual.hour.iloc[0] < 60


@pytest.mark.parametrize(
    ("step", "features"),
    [
        (spline(), {"hour": {"bounds": [-np.inf, np.inf], "scale": 1.0}}),
        (spline(0), {}),
        (make_pipeline(FunctionTransformer(np.abs), spline()), {}),
    ],
)
def test_what_has_no_end_is_refused(step: Any, features: dict[str, Any]) -> None:
    with pytest.raises(
        UnsupportedModelError, match=r"'splinetransformer' repeats .* bounds, such as bounds = \[0, 24\]"
    ):
        Explainer(fitted(step), TABLE, features)


def test_a_row_beyond_the_bounds_is_refused() -> None:
    explainer = Explainer(fitted(spline()), TABLE, {"hour": {"bounds": [0, 48]}})
    row = pd.DataFrame({"hour": [60.0], "load": [5.0]})
    (answer,) = explainer.explain(row, progress=False)
    assert answer.status == "error"
    assert (
        "feature 'hour' may go from 0 to 60, and a step before the model is read from 0 to 48: set bounds"
        in answer.message
    )
    with pytest.raises(DataError, match="set bounds that hold the row"):
        explainer.problem(row)

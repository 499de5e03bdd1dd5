"""From an outcome to an explanation: what is verified, what is claimed, and what failed."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from ocf.explain.answer import TIMES
from ocf.explain.answers import failed
from ocf.explain.explanation import Explanation
from ocf.features.inference import infer_space
from ocf.models.user_model import UserModel, as_user_model
from ocf.solvers.result import Status

from .made import solved


def test_from_finding(example: Explanation) -> None:
    assert example.status == "optimal"
    assert example.verified, example.checks
    assert (example.predicted, example.target, example.decided) == ("refused", "granted", "granted")
    assert example.gap == 0
    assert set(example.times) == set(TIMES)
    assert example.times["total"] == pytest.approx(0.8 + example.times["verify"])
    assert example.counterfactual is not None
    assert list(example.counterfactual.index) == ["r<7>"]
    pd.testing.assert_series_equal(example.counterfactual.dtypes, example.original.dtypes)
    pd.testing.assert_frame_equal(example.counterfactual.drop(columns="age"), example.original.drop(columns="age"))


def test_a_wrong_outcome_is_not_verified(model: UserModel, data: pd.DataFrame) -> None:
    space = infer_space(data)
    young = data.iloc[[0]].assign(age=20, owner=False)
    point = space.from_frame(young)[0]
    point[0] = 21
    e = solved(model, space, young, point)
    assert not e.verified
    assert any("not the wanted" in check for check in e.checks)
    assert "NOT VERIFIED" in str(e).splitlines()[0]
    assert "no smaller change" not in str(e)
    assert "not verified" in e.to_html()


def test_stopping_at_a_gap_is_not_optimal(model: UserModel, data: pd.DataFrame) -> None:
    space = infer_space(data)
    young = data.iloc[[0]].assign(age=20, owner=False)
    point = space.from_frame(young)[0]
    point[0] = 85
    e = solved(model, space, young, point, slack=0.1)
    assert (e.status, e.verified) == ("feasible", True)
    assert "gap" in e.message
    assert "not proven optimal" in str(e)


def test_infeasible(model: UserModel, data: pd.DataFrame) -> None:
    e = solved(model, infer_space(data), data.iloc[[3]], None, status=Status.INFEASIBLE)
    assert (e.counterfactual, e.cost, e.gap, e.checks) == (None, None, math.inf, ())
    assert e.changes.empty
    assert "no admissible change" in str(e)
    assert Explanation.from_json(e.to_json()) == e


@pytest.mark.parametrize("status", ["error", "interrupted"])
def test_failed(status: str, data: pd.DataFrame) -> None:
    e = failed(5, data.iloc[[5]], status, "the cause")
    assert (e.status, e.message, e.times) == (status, "the cause", dict.fromkeys(TIMES, 0.0))
    assert "the cause" in str(e)
    assert Explanation.from_json(e.to_json()) == e
    assert pickle.loads(pickle.dumps(e)) == e
    e.to_html()


def test_unknown_status() -> None:
    with pytest.raises(ValueError, match="not one of"):
        failed(0, pd.DataFrame({"a": [1]}), "fine", "")


def test_pipeline_with_text_and_missing_values() -> None:
    table = pd.DataFrame({"job": ["a", "b", "c"] * 20})
    pipeline = make_pipeline(OrdinalEncoder(), RandomForestClassifier(3, random_state=0))
    model = as_user_model(pipeline.fit(table, (table["job"] == "c").astype(int)))
    e = solved(model, infer_space(table), table.iloc[[0]], np.array([2.0]))
    assert e.verified, e.checks
    assert e.changes.to_numpy(object)[0][:3].tolist() == ["job", "a", "c"]
    assert Explanation.from_json(e.to_json()) == e

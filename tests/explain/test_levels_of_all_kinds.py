"""Across files: levels that are neither words nor numbers, from the user's table through files and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer, Explanations
from ocf.models.user_model import as_user_model
from ocf.problem.problem import Problem
from ocf.verify.files import verify_file

LEVELS: dict[str, list[Any]] = {
    "intervals": list(pd.interval_range(0, 3)),
    "years": list(pd.period_range("2020", "2022", freq="Y")),
    "moments": list(pd.date_range("2020-01-01", periods=3)),
    "dates": [date(2020, 1, 1), date(2021, 1, 1), date(2022, 1, 1)],
}


def native(table: pd.DataFrame) -> Any:
    return HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")


def encoded(table: pd.DataFrame) -> Any:
    encoder = make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough")
    return make_pipeline(encoder, RandomForestClassifier(5, max_depth=3, random_state=0))


@pytest.mark.parametrize("make", [native, encoded])
@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS)
def test_answers_that_were_saved_are_those_that_were_given(
    levels: list[Any], make: Callable[[pd.DataFrame], Any], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    codes, x = rng.integers(0, 3, 200), rng.integers(0, 6, 200)
    table = pd.DataFrame({"c": pd.Categorical.from_codes(codes, categories=levels), "x": x})
    model = make(table).fit(table, ((codes == 1) & (x > 2)).astype(int))
    rows = table[(model.predict(table) == 0) & (table.x > 2)].iloc[:3]
    explainer = Explainer(model, table)
    found = explainer.explain(rows, target=1, checkpoint=tmp_path / "kept.jsonl", box=True)
    assert found.to_json() == explainer.explain(rows, target=1, checkpoint=tmp_path / "kept.jsonl", box=True).to_json()
    found.to_json(tmp_path / "answers.json")
    for fresh, again in zip(found, Explanations.from_json(tmp_path / "answers.json"), strict=True):
        assert fresh.counterfactual is not None
        assert fresh.counterfactual.c.iloc[0] == levels[1]
        pd.testing.assert_frame_equal(again.counterfactual, fresh.counterfactual)
        assert model.predict(again.counterfactual) == 1
    assert all(check.ok for _, check in verify_file(tmp_path / "answers.json", as_user_model(model)))
    problem = found[0].problem
    assert isinstance(problem, Problem)
    assert Problem.from_json(problem.to_json()).to_json() == problem.to_json()


@pytest.mark.parametrize("asked", [{}, {"plausibility": {"trees": 5}}, {"margin": 0.05}], ids=["plain", "deep", "far"])
def test_false_ranges_of_the_same_cost_are_found(asked: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 9, 150), "b": rng.integers(0, 9, 150) / 2, "c": rng.integers(0, 2, 150)})
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, table.a + 2 * table.b + 3 * table.c > 10)
    row = table[~model.predict(table)].iloc[[0]]
    record = Explainer(model, table).explain(row, target=True, **asked)[0].to_dict()
    assert [check.ok for check in verified(record, model, tmp_path)] == [True]
    record["ranges"] = [{"c": [0, 1]}]
    (found,) = verified(record, model, tmp_path)
    assert "At a point of the ranges: The changes cost" in found.problems[0]


def days(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(d=(table.d - pd.Timestamp("2020-06-01", tz=table.d.dt.tz)).dt.total_seconds() / 86400)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["s", "us"])
def test_dates_of_all_units_and_their_ranges(unit: str, zone: str | None, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    moments = pd.date_range("2020-01-01", periods=400, tz=zone).as_unit(unit)
    table = pd.DataFrame({"d": moments[rng.integers(0, 400, 150)], "b": rng.integers(0, 9, 150)})
    model = make_pipeline(FunctionTransformer(days), DecisionTreeClassifier(max_depth=2)).fit(table, days(table).d > 60)
    explainer = Explainer(model, table, monotone={"functiontransformer": "increasing"})
    record = explainer.explain(table[~model.predict(table)].iloc[[0]])[0].to_dict()
    assert record["status"] == "optimal"
    assert [check.ok for check in verified(record, model, tmp_path)] == [True]
    feature = next(f for f in record["features"]["features"] if f["name"] == "d")
    record["ranges"] = [{"d": {"lowest": feature["lower"], "highest": feature["upper"]}}]
    (found,) = verified(record, model, tmp_path)
    assert any("At a point of the ranges" in problem for problem in found.problems)


def verified(record: dict[str, Any], model: Any, folder: Path) -> list[Any]:
    path = folder / "answer.json"
    path.write_text(json.dumps(record))
    return [check for _, check in verify_file(path, as_user_model(model))]

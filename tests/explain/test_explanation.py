"""One explanation and several: sequences, tables and JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.errors import DataError
from ocf.explain.answers import failed
from ocf.explain.explanation import Explanation, Explanations
from ocf.models.user_model import UserModel
from ocf.verify.files import verify_file


def test_to_frame(several: Explanations, data: pd.DataFrame) -> None:
    table = several.to_frame()
    assert list(table.index) == ["r<7>", 3, 4]
    own = ["status", "cost", "before", "after", "bound", "gap", "verified", "seconds"]
    assert list(table.columns) == [*data.columns, *own]
    assert list(failed(4, data.iloc[[4]], "error", "the cause").to_frame().columns)[5:7] == ["status", "cost"]
    assert table["age"].isna().tolist() == [False, True, True]
    assert table["status"].tolist() == ["optimal", "infeasible", "error"]
    one = several[:1].to_frame()
    assert one[list(data.columns)].dtypes.to_dict() == data.dtypes.to_dict()
    assert one.index.name == "who"
    assert several[1:].to_frame()["age"].isna().all()
    assert Explanations().to_frame().empty


def test_names_that_collide_get_a_prefix() -> None:
    table = failed(0, pd.DataFrame({"cost": [1.0]}), "error", "").to_frame()
    assert list(table.columns)[:3] == ["cost", "ocf_status", "ocf_cost"]


def test_sequence(several: Explanations, example: Explanation) -> None:
    assert several[0] is example
    assert isinstance(several[1:], Explanations)
    assert len(several[1:]) == 2
    assert [e.row for e in several] == ["r<7>", 3, 4]
    with pytest.raises(TypeError):
        several[0] = example  # type: ignore[index]


def test_summary(several: Explanations) -> None:
    summary = several.summary()
    assert summary["rows"].to_dict() == {"optimal": 1, "infeasible": 1, "error": 1}
    assert summary.loc["optimal", "verified"] == 1
    assert Explanations().summary().empty


def strict(text: str) -> Any:
    def refuse(name: str) -> None:
        pytest.fail(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_round_trip(example: Explanation, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    data = strict(example.to_json(path))
    assert data["schema"] == "ocf.explanation/1"
    for again in (Explanation.from_json(path), Explanation.from_dict(data)):
        assert again == example
        assert again.problem is None
        pd.testing.assert_frame_equal(again.changes, example.changes)
        pd.testing.assert_series_equal(again.original.dtypes, example.original.dtypes)
        assert str(again) == str(example)


def test_round_trip_of_several(several: Explanations, tmp_path: Path, model: UserModel) -> None:
    path = tmp_path / "many.json"
    data = strict(several.to_json(path))
    assert data["schema"] == "ocf.explanations/1"
    assert "features" not in data["rows"][0]
    assert Explanations.from_json(path) == several
    assert Explanations.from_dict(data) == several
    assert Explanations.from_json(Explanations().to_json()) == Explanations()
    assert Explanations.from_json(several[0].to_json()) == several[:1]
    with pytest.raises(DataError, match=r"Explanations\.from_json"):
        Explanation.from_json(path)
    assert [v.ok for _, v in verify_file(path, model)] == [True, True, True]


def test_verify_file_catches_tampering(example: Explanation, tmp_path: Path, model: UserModel) -> None:
    path = tmp_path / "one.json"
    data = example.to_dict()
    data["counterfactual"]["values"]["age"] = 84
    path.write_text(json.dumps(data))
    [(row, verification)] = verify_file(path, model)
    assert row == "r<7>"
    assert any("as claimed" in problem for problem in verification.problems)


@pytest.mark.parametrize(
    ("tamper", "sentence"),
    [
        (lambda changes: changes.pop(), "changes and is not among the changes"),
        (lambda changes: changes[0].update(to=1e9), "is listed as going from"),
        (lambda changes: changes.append({**changes[0], "feature": "luck"}), "'luck' is among the changes and does not"),
    ],
)
def test_verify_file_holds_the_list_of_changes_against_the_rows(
    example: Explanation, tmp_path: Path, model: UserModel, tamper: Any, sentence: str
) -> None:
    path = tmp_path / "one.json"
    data = example.to_dict()
    path.write_text(json.dumps(data))
    [(_, verification)] = verify_file(path, model)
    assert verification.ok
    tamper(data["changes"])
    path.write_text(json.dumps(data))
    [(_, verification)] = verify_file(path, model)
    assert any(sentence in problem for problem in verification.problems)
    data["changes"] = [{"feature": "luck"}]
    path.write_text(json.dumps(data))
    with pytest.raises(DataError, match="from"):
        verify_file(path, model)


def test_unequal(example: Explanation, several: Explanations) -> None:
    assert example != several[1]
    assert example != 3
    assert several != several[1:]
    assert several != 3


FLOATS = st.floats(allow_infinity=False, allow_nan=False, width=64)


@settings(deadline=None, max_examples=60)
@given(FLOATS, st.floats(width=32, allow_infinity=False), st.integers(-(2**63), 2**63 - 1), st.text())
def test_every_value_round_trips(double: float, single: float, whole: int, text: str) -> None:
    original = pd.DataFrame(
        {
            "double": [double],
            "single": np.array([single], np.float32),
            "whole": np.array([whole], np.int64),
            "text": np.array([text], object),
            "missing": [np.nan],
            "perhaps": pd.array([None], dtype="Int64"),
        },
        index=[("a", 1)],
    )
    e = failed(("a", 1), original, "error", text)
    again = Explanation.from_json(e.to_json())
    pd.testing.assert_frame_equal(
        again.original.reset_index(drop=True), original.reset_index(drop=True), rtol=0, atol=0
    )
    assert again.row == ("a", 1)
    assert again == e
    strict(e.to_json())


@pytest.mark.parametrize("value", [5e-324, 1.7976931348623157e308, math.nextafter(1, 2), 0.1 + 0.2, -math.inf])
def test_bounds_round_trip(value: float) -> None:
    e = Explanation(row=0, status="unknown", original=pd.DataFrame({"x": [1.0]}), bound=value)
    assert Explanation.from_json(e.to_json()).bound == value


def test_damaged(example: Explanation) -> None:
    data = example.to_dict()
    del data["times"]
    with pytest.raises(DataError, match="incomplete or damaged"):
        Explanation.from_dict(data)
    with pytest.raises(DataError, match="schema"):
        Explanation.from_dict({"schema": "ocf.problem/1"})


def test_probabilities_that_the_model_does_not_give_are_found(
    example: Explanation, model: UserModel, tmp_path: Path
) -> None:
    data = example.to_dict()
    path = tmp_path / "one.json"
    for which, name in enumerate(("original", "counterfactual")):
        false = json.loads(json.dumps(data))
        false["probabilities"][which][0] += 0.01
        path.write_text(json.dumps(false))
        assert [name in p for p in verify_file(path, model)[0][1].problems] == [True]
    path.write_text(json.dumps(data | {"probabilities": None}))
    assert verify_file(path, model)[0][1].ok


def test_a_way_that_the_model_does_not_go_is_found(credit, tmp_path: Path) -> None:
    table, fitted, explainer = credit
    rows = table[fitted.predict(table) == "refused"].iloc[:6]
    e = max(explainer.explain(rows, "granted", norm="l2", probability=0.8), key=lambda e: len(e.path))
    path = tmp_path / "one.json"
    data = e.to_dict()
    path.write_text(json.dumps(data))
    assert verify_file(path, explainer.model)[0][1].ok
    data["partway"][0][0] += 0.01
    path.write_text(json.dumps(data))
    (problem,) = verify_file(path, explainer.model)[0][1].problems
    assert problem.startswith("After 1 of the changes the model gives ")
    path.write_text(json.dumps(data | {"partway": []}))
    (problem,) = verify_file(path, explainer.model)[0][1].problems
    assert "after 0 changes are claimed" in problem

"""Rows with a fault of their own: each has an error, and the others are answered as without them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from ocf import Explainer, Explanations
from ocf.errors import DataError, OcfError, ProblemError
from ocf.explain.faulty_rows import SPREAD, faulty_rows
from ocf.explain.linear import LinearExplainer

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": RNG.normal(40, 10, 80).round(1),
        "job": RNG.choice(["clerk", "smith", "cook"], 80),
        "amount": RNG.integers(0, 5000, 80),
    }
)
LABELS = ((TABLE["age"] > 40) ^ (TABLE["job"] == "smith")).astype(int)
ROWS = TABLE.iloc[:8].set_axis(list("abcdefgh")).astype({"age": object})
FAULTS = {
    1: ({"age": np.inf}, "column 'age' holds an infinite value; replace it"),
    2: ({"job": "smit"}, "column 'job': unknown level 'smit' (did you mean 'smith'?)"),
    5: ({"age": "old"}, "column 'age' should hold numbers, as in the data: "),
    6: ({"age": np.nan}, "missing"),
}
WHOLE = [0, 3, 4, 7]


def with_faults(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows 1, 2, 5 and 6 with a fault each."""
    rows = rows.copy()
    for place, (fault, _) in FAULTS.items():
        for column, value in fault.items():
            rows.iloc[place, rows.columns.get_loc(column)] = value
    return rows


@pytest.fixture(scope="module")
def explainers() -> dict[str, Any]:
    encode = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    strict = FunctionTransformer(validate=True)  # refuses missing values, which the forest would take
    trees = make_pipeline(encode, strict, RandomForestClassifier(3, max_depth=3, random_state=0)).fit(TABLE, LABELS)
    linear = make_pipeline(encode, LogisticRegression(max_iter=500)).fit(TABLE, LABELS)
    return {"trees": Explainer(trees, TABLE), "linear": LinearExplainer(linear, TABLE)}


@pytest.mark.parametrize(
    ("kind", "settings"),
    [("trees", {}), ("trees", {"norm": "l2", "cross_check": True}), ("linear", {}), ("linear", {"n_jobs": 2})],
)
def test_each_faulty_row_has_an_error_of_its_own(explainers: dict[str, Any], kind: str, settings: Any) -> None:
    explainer = explainers[kind]
    found = explainer.explain(with_faults(ROWS), **settings)
    assert [e.row for e in found] == list(ROWS.index)
    assert [k for k, e in enumerate(found) if e.status == "error"] == sorted(FAULTS)
    for place, (_, words) in FAULTS.items():
        assert words in found[place].message
        assert not any(said in found[place].message for said in ("row 0", "position 0"))
    alone = explainer.explain(ROWS.iloc[WHOLE], **settings)
    assert [found[k].cost for k in WHOLE] == [e.cost for e in alone]
    assert all(found[k].verified for k in WHOLE)
    again = Explanations.from_json(found.to_json())
    assert again == found
    assert found[1:].to_dict()["shared"]["features"] == alone.to_dict()["shared"]["features"]


def test_several_answers_to_rows_beside_faulty_ones(explainers: dict[str, Any]) -> None:
    found = explainers["trees"].explain(with_faults(ROWS), n_explanations=2).by_row()
    alone = explainers["trees"].explain(ROWS.iloc[WHOLE], n_explanations=2).by_row()
    assert [len(own) for k, own in enumerate(found) if k in FAULTS] == [1] * 4
    assert [[e.cost for e in found[k]] for k in WHOLE] == [[e.cost for e in own] for own in alone]


@pytest.mark.parametrize("kind", ["trees", "linear"])
def test_a_batch_with_faulty_rows_goes_on_from_its_checkpoint(
    explainers: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    first, again = (explainers[kind].explain(with_faults(ROWS), checkpoint=tmp_path / "rows.jsonl") for _ in range(2))
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert len(lines) == 1 + len(WHOLE)
    assert [e.to_dict() for e in first] == [e.to_dict() for e in again]


@pytest.mark.parametrize("kind", ["trees", "linear"])
@pytest.mark.parametrize(
    ("change", "settings", "error", "words"),
    [
        (lambda t: t.iloc[[1, 2, 5]], {}, DataError, "'age' should hold numbers"),
        (lambda t: t.iloc[[2]], {}, DataError, "column 'job': unknown level 'smit'"),
        (lambda t: t.drop(columns="age"), {}, DataError, "the table misses age"),
        (lambda t: t.assign(wage=1), {}, DataError, "has the unknown wage"),
        (lambda t: t.assign(age=pd.Timestamp("2020-01-01")), {}, DataError, "'age' should hold numbers.*dates"),
        (lambda t: t.iloc[WHOLE], {"norm": "l7"}, ProblemError, "l7"),
        (lambda t: t.iloc[WHOLE], {"target": "granted"}, ProblemError, "granted"),
    ],
)
def test_faults_of_the_table_or_the_question_are_refused(
    explainers: dict[str, Any], kind: str, change: Callable[[Any], Any], settings: Any, error: Any, words: str
) -> None:
    with pytest.raises(error, match=words):
        explainers[kind].explain(change(with_faults(ROWS)), **settings)


def test_words_in_indicator_columns_are_told_as_they_are() -> None:
    table = pd.get_dummies(TABLE, dtype=int)
    explainer = Explainer(RandomForestClassifier(3, max_depth=3, random_state=0).fit(table, LABELS), table)
    rows = table.iloc[:3].astype({"job_cook": object})
    rows.iloc[1, rows.columns.get_loc("job_cook")] = "yes"
    found = explainer.explain(rows)
    assert [e.status for e in found] == ["optimal", "error", "optimal"]
    assert "job_cook holds yes; mend the row" in found[1].message


def count(refused: set[int], calls: list[int]) -> Callable[[pd.DataFrame], None]:
    def read(frame: pd.DataFrame) -> None:
        calls.append(len(frame))
        if bad := refused & set(frame["x"]):
            raise DataError(f"no {min(bad)}")

    return read


@pytest.mark.parametrize("refused", [{0}, {999}, {1, 2, 500}, set(range(300, 400)), set(range(1, 1000)), set()])
def test_faults_are_found_by_halves(refused: set[int]) -> None:
    calls: list[int] = []
    frame = pd.DataFrame({"x": range(1000)})
    assert faulty_rows(frame, count(refused, calls)) == {k: f"no {k}" for k in refused}
    assert len(calls) <= 3 + SPREAD + 2 * 10 * max(1, len(refused))


def test_a_table_of_faulty_rows_is_not_read_row_by_row() -> None:
    calls: list[int] = []
    frame = pd.DataFrame({"x": range(10_000)})
    assert faulty_rows(frame, count(set(range(10_000)), calls)) == {}
    assert len(calls) == 2 + SPREAD


def test_a_fault_of_a_table_without_rows_is_the_tables() -> None:
    def read(frame: pd.DataFrame) -> None:
        raise OcfError(f"{len(frame)}")

    assert faulty_rows(pd.DataFrame({"x": range(3)}), read) == {}

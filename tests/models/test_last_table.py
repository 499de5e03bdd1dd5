"""What the steps of a Pipeline make of a table is made once for all that is asked about it, and forgotten with it."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ocf import Explainer
from ocf.models.last_table import MOST_ROWS, LastTable
from ocf.models.user_model import as_user_model


class Turned(Pipeline):
    """A Pipeline with an answer of its own."""

    def predict(self, X: Any, **params: Any) -> Any:
        return 1 - super().predict(X, **params)


def people(n: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(["u", "v", "w"], n)})
    return table, (table.a + (table.c == "v") > 0.3).to_numpy(np.int64)


def steps() -> Any:
    return make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b"]), (OneHotEncoder(), ["c"])
    )


def test_a_table_is_gone_through_once_and_forgotten_with_it() -> None:
    calls: list[int] = []

    def make(table: pd.DataFrame) -> np.ndarray:
        calls.append(len(table))
        return table.to_numpy()

    last = LastTable(make)
    table = pd.DataFrame({"a": [1.0]})
    assert last(table) is last(table)
    assert last(table.copy()) is not last(table)  # alike, but another one
    assert calls == [1, 1, 1]
    made = weakref.ref(last(table))
    del table
    gc.collect()
    assert made() is None
    many = pd.DataFrame({"a": np.zeros(MOST_ROWS + 1)})
    assert last(many) is not last(many)


def test_a_copy_is_handed_out() -> None:
    table, y = people()
    model = as_user_model(make_pipeline(steps(), RandomForestClassifier(3, max_depth=3, random_state=0)).fit(table, y))
    rows = table.iloc[:4]
    first = model.encode(rows)
    wanted, decided = first.copy(), model.decide(rows)
    first[:] = np.nan
    np.testing.assert_array_equal(model.encode(rows), wanted)
    np.testing.assert_array_equal(model.decide(rows), decided)


@pytest.mark.parametrize("nested", [False, True])
def test_answers_are_those_of_the_pipeline(nested: bool) -> None:
    table, y = people()
    forest = RandomForestClassifier(5, max_depth=4, random_state=0)
    last = make_pipeline("passthrough", StandardScaler(with_mean=False), forest) if nested else forest
    pipeline = make_pipeline(steps(), last).fit(table, y)
    model = as_user_model(pipeline)
    assert model.probabilities is not None
    for rows in (table, table.iloc[[3]], table.iloc[:7][["c", "b", "a"]]):
        own = rows[["a", "b", "c"]]
        np.testing.assert_array_equal(model.decide(rows), pipeline.predict(own))
        np.testing.assert_array_equal(model.probabilities(rows), pipeline.predict_proba(own))


def test_a_pipeline_with_an_answer_of_its_own_gives_that() -> None:
    table, y = people()
    forest = RandomForestClassifier(5, max_depth=4, random_state=0)
    turned = Turned([("before", steps()), ("forest", forest)]).fit(table, y)
    np.testing.assert_array_equal(as_user_model(turned).decide(table), turned.predict(table))
    plain = make_pipeline(steps(), forest).fit(table, y)
    plain.predict = lambda X: np.zeros(len(X), int)  # type: ignore[method-assign]
    assert not as_user_model(plain).decide(table).any()


@pytest.mark.parametrize("check", [True, False])
def test_the_steps_are_called_once_for_a_row(check: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """For row and answer together, whatever is asked about them."""
    table, y = people()
    pipeline = make_pipeline(steps(), RandomForestClassifier(5, max_depth=4, random_state=0)).fit(table, y)
    explainer = Explainer(pipeline, data=table, check=check)
    rows = table[pipeline.predict(table) == 0]
    explainer.explain(rows.iloc[[0]])
    calls: list[int] = []
    transform = type(pipeline[0]).transform

    def counted(self: Any, X: Any, **params: Any) -> Any:
        calls.append(len(X))
        return transform(self, X, **params)

    monkeypatch.setattr(type(pipeline[0]), "transform", counted)
    found = explainer.explain(rows.iloc[[1]])[0]
    assert found.verified
    assert found.probabilities is not None
    assert calls == [2]
    calls.clear()
    assert all(e.verified for e in explainer.explain(rows.iloc[2:12]))
    assert sum(calls) <= 40  # row, answer, and the rows between them
    assert len(calls) <= 4

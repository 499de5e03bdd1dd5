"""Isolation forests must be read to the depth that their library reckons with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import IsolationForest, RandomForestClassifier

from ocf.errors import ConformanceError, ModelError, UnsupportedModelError
from ocf.readers import isolation
from ocf.readers.isolation import is_isolation_forest, read_isolation_forest


def check(forest: Any, rows: Any) -> None:
    read = read_isolation_forest(forest)
    depth, _ = read.measure(rows)
    total = read.ensemble.scores(np.asarray(rows, np.float64))[:, 0]
    np.testing.assert_allclose(depth * read.ensemble.n_trees, total, rtol=0, atol=read.error_bound)
    np.testing.assert_allclose(read.recount(rows), depth, rtol=1e-12)
    assert read.error_bound < 1e-10 * total.min()


@pytest.mark.parametrize(
    "settings",
    [{}, {"max_samples": 16}, {"max_features": 0.5, "bootstrap": True}, {"max_samples": 2}, {"contamination": 0.1}],
    ids=str,
)
def test_scikit_learns_depths(rows: np.ndarray, settings: dict[str, Any]) -> None:
    check(IsolationForest(n_estimators=20, random_state=0, **settings).fit(rows), rows)


def test_scikit_learns_depths_of_a_table_and_of_missing_values(rows: np.ndarray) -> None:
    table = pd.DataFrame(rows, columns=list("abcd"))
    table.loc[::3, "b"] = np.nan
    forest = IsolationForest(n_estimators=20, random_state=0).fit(table)
    assert read_isolation_forest(forest).names == tuple("abcd")
    check(forest, table)


@pytest.mark.parametrize(
    "settings",
    [{}, {"max_depth": 4}, {"scoring_metric": "adj_depth"}, {"sample_size": 30, "ncols_per_tree": 2}],
    ids=str,
)
@pytest.mark.parametrize("named", [True, False])
def test_isotrees_depths(rows: np.ndarray, settings: dict[str, Any], named: bool) -> None:
    isotree = pytest.importorskip("isotree")
    given = pd.DataFrame(rows, columns=list("abcd")) if named else rows
    check(isotree.IsolationForest(ntrees=20, ndim=1, nthreads=1, **settings).fit(given), given)


def test_what_is_no_sum_of_depths_is_refused(rows: np.ndarray) -> None:
    isotree = pytest.importorskip("isotree")
    table = pd.DataFrame(rows, columns=list("abcd")).assign(e=pd.Categorical(["x", "y", "z"] * 100))
    for words, settings, given in (
        ("penalize_range", {"ndim": 1, "penalize_range": True}, rows),
        ("density", {"ndim": 1, "scoring_metric": "density"}, rows),
        ("categorical", {"ndim": 1}, table),
    ):
        with pytest.raises(UnsupportedModelError, match=words):
            read_isolation_forest(isotree.IsolationForest(ntrees=3, nthreads=1, **settings).fit(given))
    with pytest.raises(ModelError, match="not fitted"):
        read_isolation_forest(isotree.IsolationForest(ndim=1))


def test_other_models_are_refused(rows: np.ndarray) -> None:
    with pytest.raises(ModelError, match="not fitted"):
        read_isolation_forest(IsolationForest())
    with pytest.raises(ModelError, match="single row"):
        read_isolation_forest(IsolationForest(n_estimators=3, max_samples=1).fit(rows))
    assert not is_isolation_forest(RandomForestClassifier())
    with pytest.raises(UnsupportedModelError, match="isolation forest of scikit-learn or isotree"):
        read_isolation_forest(RandomForestClassifier())


def test_a_wrong_reading_is_noticed(rows: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    forest = IsolationForest(n_estimators=5, random_state=0).fit(rows)
    true = isolation.average_path_length
    monkeypatch.setattr(isolation, "average_path_length", lambda n: true(n) + 1e-9 * (np.size(n) > 1))
    with pytest.raises(ConformanceError, match="average depth"):
        read_isolation_forest(forest)

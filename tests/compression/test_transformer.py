"""Thresholds as transformers: scikit-learn's own checks, Pipelines, and files."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from ocf import CounterfactualDiscretizer, GuessingThresholds, ThresholdBinarizer
from ocf.errors import DataError, ProblemError

from .small import small


@parametrize_with_checks([CounterfactualDiscretizer(small()), GuessingThresholds(small())])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_in_a_pipeline_and_cross_validation(cancer):
    X, y = cancer
    pipeline = make_pipeline(CounterfactualDiscretizer(small(), p1=0.8), DecisionTreeClassifier(max_depth=2))
    assert cross_val_score(pipeline, X, y, cv=2).mean() > 0.8
    shown = clone(pipeline[0]).set_output(transform="pandas").fit(X, y).transform(X)
    assert shown.columns.str.contains(" > ").all()
    assert shown.index.equals(X.index)


@pytest.mark.parametrize("make", [CounterfactualDiscretizer, GuessingThresholds])
def test_tables_of_polars_are_taken_by_their_names(cancer, make):
    polars = pytest.importorskip("polars")
    X, y = cancer
    other = polars.from_pandas(X)
    own, same = make(small()).fit(X, y), make(small()).fit(other, y)
    assert same.get_feature_names_out().tolist() == own.get_feature_names_out().tolist()
    assert np.array_equal(same.transform(other), own.transform(X))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names", "ignore:X has feature names")
@pytest.mark.parametrize("names", [["a", "b"], ["x1", "x0"], [0, 1]])
def test_columns_of_an_array_are_those_of_the_fit_in_order(names):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)) * [1, 100], columns=names)
    y = (table[names[0]] + table[names[1]] / 100 > 0).astype(int)
    fitted = CounterfactualDiscretizer(small(), p0=0, progress=False).fit(table, y)
    guessed = GuessingThresholds(small()).fit(table, y)
    for own in (fitted, guessed, ThresholdBinarizer(fitted.to_dict()).fit()):
        expected = fitted if isinstance(own, ThresholdBinarizer) else own
        assert np.array_equal(own.transform(table.to_numpy()), expected.transform(table))
        assert own.metrics(table.to_numpy(), y) == expected.metrics(table, y)


def test_numbers_as_names_are_names(cancer):
    X, y = cancer
    fitted = CounterfactualDiscretizer(small()).fit(X.set_axis(range(X.shape[1]), axis=1), y)
    with pytest.raises(DataError, match=r"the table lacks columns of the fit: 0$"):
        fitted.transform(X.set_axis(range(1, 1 + X.shape[1]), axis=1))


@pytest.mark.parametrize("make", [CounterfactualDiscretizer, GuessingThresholds])
def test_two_columns_of_one_name_are_refused(cancer, make):
    X, y = cancer
    with pytest.raises(DataError, match="two columns of the table are named 'mean radius': give each a name"):
        make(small()).fit(pd.concat([X, X[["mean radius"]]], axis=1), y)


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_a_table_is_taken_in_order_where_the_fit_was_of_an_array(cancer):
    X, y = cancer
    fitted = CounterfactualDiscretizer(small()).fit(X.to_numpy(), y)
    assert np.array_equal(fitted.transform(X), fitted.transform(X.to_numpy()))


@pytest.mark.parametrize("make", [CounterfactualDiscretizer, GuessingThresholds])
def test_names_say_of_the_rows_what_the_bits_say(make):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"a": rng.normal(size=40).round(2), "b": 1e6 + rng.normal(size=40) / 1e3})
        y = (X.a + 1e3 * (X.b - 1e6) + rng.normal(size=40) > 0).astype(int)
        forest = RandomForestClassifier(4, max_depth=3, random_state=seed)
        fitted = make(forest, **({"p0": 0} if make is CounterfactualDiscretizer else {})).fit(X, y)
        for own in (fitted, ThresholdBinarizer(json.loads(fitted.to_json())).fit()):
            names = own.get_feature_names_out()
            parts = [name.split(" > ") for name in names]
            assert np.array_equal(own.transform(X), np.column_stack([X[f] > float(v) for f, v in parts]))
            assert names.tolist() == fitted.get_feature_names_out().tolist()
        document = fitted.to_dict()
        for threshold in document["thresholds"]:
            del threshold["digits"]  # as files of earlier versions
        assert np.array_equal(ThresholdBinarizer(document).fit().transform(X), fitted.transform(X))


def test_thresholds_in_a_file_do_the_same_without_the_model(data, fitted, tmp_path):
    X, y = data
    path = tmp_path / "thresholds.json"
    fitted.set_params(Q=0.5).to_json(path)
    applied = ThresholdBinarizer.from_json(path)
    assert np.array_equal(applied.transform(X), fitted.transform(X))
    assert applied.get_feature_names_out().tolist() == fitted.get_feature_names_out().tolist()
    assert applied.metrics(X, y) == fitted.metrics(X, y)
    fitted.set_params(Q=0.0)
    damaged = json.loads(path.read_text())
    damaged["thresholds"][0]["feature"] = "nothing"
    path.write_text(json.dumps(damaged))
    with pytest.raises((DataError, ProblemError), match="nothing"):
        ThresholdBinarizer.from_json(path)
    for value, words in ((float("nan"), "NaN is no number"), ("3", r"at thresholds\[0\]\.value: expected `float`")):
        damaged["thresholds"][0]["value"] = value
        path.write_text(json.dumps(damaged))
        with pytest.raises(DataError, match=words) as caught:
            ThresholdBinarizer.from_json(path)
        assert str(path) in str(caught.value)
    path.write_text("{}")
    with pytest.raises(DataError, match="no thresholds that ocf wrote"):
        ThresholdBinarizer.from_json(path)
    with pytest.raises(DataError, match="cannot read"):
        ThresholdBinarizer.from_json(tmp_path / "none.json")

"""Across files: pipelines and rows that do not fit: errors that name the step or the feature, and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracle.transformer_cases import LABELS, TABLE, columns
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer
from ocf.errors import ConformanceError, DataError, ModelError, OcfError, UnsupportedModelError


def tree() -> DecisionTreeClassifier:
    return DecisionTreeClassifier(max_depth=4, random_state=0)


NUMBERS = TABLE[["size", "dose"]]


class Doubler(TransformerMixin, BaseEstimator):
    """A transformer of no library that is read."""

    def fit(self, X: Any, y: Any = None) -> Doubler:
        self.fitted_ = True
        return self

    def transform(self, X: Any) -> Any:
        return X * 2


def test_an_unfitted_step() -> None:
    fitted = tree().fit(NUMBERS.to_numpy(), LABELS)
    model = Pipeline([("scale", StandardScaler()), ("tree", fitted)])
    with pytest.raises(ModelError, match=r"the step 'scale' \(StandardScaler\) is not fitted: call fit"):
        Explainer(model, NUMBERS)


@pytest.mark.parametrize("inside", [False, True])
def test_a_step_of_a_library_that_is_not_read(inside: bool) -> None:
    step = ColumnTransformer([("twice", Doubler(), ["size"])], remainder="passthrough") if inside else Doubler()
    model = Pipeline([("twice", step), ("tree", tree())]).fit(NUMBERS, LABELS)
    with pytest.raises(
        UnsupportedModelError, match=r"the step 'twice' \(Doubler\) is not read: ocf knows no reader of"
    ):
        Explainer(model, NUMBERS)


def test_a_pipeline_fitted_on_other_columns() -> None:
    model = make_pipeline(StandardScaler(), tree()).fit(NUMBERS, LABELS)
    with pytest.raises(DataError, match="misses columns that the model was fitted on: dose"):
        Explainer(model, TABLE[["size", "grade"]])
    unnamed = make_pipeline(StandardScaler(), tree()).fit(NUMBERS.to_numpy(), LABELS)
    with pytest.raises(OcfError, match=r"'standardscaler' refuses the first row of the table .*3 features"):
        Explainer(unnamed, TABLE[["size", "dose", "grade"]])


def test_a_category_that_the_encoder_never_saw() -> None:
    model = make_pipeline(columns(OneHotEncoder(), "colour"), tree()).fit(TABLE, LABELS)
    table = TABLE.copy()
    table.loc[3, "colour"] = "violet"
    with pytest.raises(
        DataError, match=r"feature 'colour': the preprocessing refuses the level 'violet' .*leave it out"
    ):
        Explainer(model, table)
    table.loc[0, "colour"] = "violet"
    with pytest.raises(DataError, match=r"the step 'own' \(OneHotEncoder\) refuses the first row"):
        Explainer(model, table.iloc[[0, 1]])


def test_an_encoder_that_ignores_what_it_never_saw() -> None:
    model = make_pipeline(columns(OneHotEncoder(handle_unknown="ignore"), "colour"), tree()).fit(TABLE, LABELS)
    table = TABLE.copy()
    table.loc[3, "colour"] = "violet"
    assert Explainer(model, table).explain(table.iloc[[3]])[0].status in ("optimal", "infeasible")


def test_a_row_of_the_wrong_dtype() -> None:
    model = make_pipeline(columns(OrdinalEncoder(), "colour"), tree()).fit(TABLE, LABELS)
    explainer = Explainer(model, TABLE)
    with pytest.raises(DataError, match="column 'size' should hold numbers"):
        explainer.explain(TABLE.iloc[[0]].assign(size="large"))
    with pytest.raises(DataError, match="column 'colour': unknown level"):
        explainer.explain(TABLE.iloc[[0]].assign(colour=7))


def test_two_columns_of_one_name() -> None:
    model = make_pipeline(StandardScaler(), tree()).fit(NUMBERS, LABELS)
    twice = pd.concat([NUMBERS, NUMBERS[["size"]]], axis=1)
    with pytest.raises(DataError, match="two columns of the table are named 'size': give each a name of its own"):
        Explainer(model, twice)


@pytest.mark.parametrize("kind", ["ordinal", "categorical"])
def test_numbers_that_an_encoder_takes_for_categories(kind: str) -> None:
    model = make_pipeline(columns(OneHotEncoder(), "grade"), tree()).fit(TABLE[["size", "grade"]], LABELS)
    with pytest.raises(UnsupportedModelError, match=r"feature 'grade' for categories.*describe the feature as kind"):
        Explainer(model, TABLE[["size", "grade"]])
    explainer = Explainer(model, TABLE[["size", "grade"]], {"grade": {"kind": kind}})
    assert explainer.explain(TABLE[["size", "grade"]].iloc[[0]])[0].status == "optimal"


def test_nan_where_the_pipeline_has_no_imputer() -> None:
    model = make_pipeline(PolynomialFeatures(1), RandomForestClassifier(3, max_depth=3, random_state=0))
    explainer = Explainer(model.fit(NUMBERS, LABELS), NUMBERS)
    with pytest.raises(DataError, match=r"feature 'size' is missing \(NaN\), and the preprocessing refuses it"):
        explainer.explain(NUMBERS.iloc[[0]].assign(size=np.nan))


def test_an_imputer_behind_a_logarithm_fills_what_that_makes_nan() -> None:
    model = make_pipeline(FunctionTransformer(np.log), SimpleImputer(), tree())
    model.fit(NUMBERS.abs() + 0.1, LABELS)
    with pytest.raises(UnsupportedModelError, match="'simpleimputer' fills what a step before it makes NaN"):
        Explainer(model, NUMBERS.abs() + 0.1)


def test_squares_of_whole_numbers_wrap_round() -> None:
    table = TABLE[["grade"]].astype("int8")
    model = make_pipeline(FunctionTransformer(np.square), tree()).fit(table, LABELS)
    with pytest.raises(UnsupportedModelError, match="feature 'grade' in int8, where large products wrap round"):
        Explainer(model, table)


def test_words_on_functions() -> None:
    model = make_pipeline(FunctionTransformer(np.sin), tree()).fit(NUMBERS, LABELS)
    with pytest.raises(DataError, match="'functiontransformer' is said to be increasing, but within the bounds"):
        Explainer(model, NUMBERS, monotone={"functiontransformer": "increasing"})
    with pytest.raises(DataError, match="say 'increasing' or 'decreasing'"):
        Explainer(model, NUMBERS, monotone={"functiontransformer": "rising"})
    with pytest.raises(DataError, match="there is no FunctionTransformer 'scaler'"):
        Explainer(model, NUMBERS, monotone={"scaler": "increasing"})
    with pytest.raises(DataError, match=r"monotone is a mapping of step names, .* not 'increasing'"):
        Explainer(model, NUMBERS, monotone="increasing")  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["int32", "int64", "float64"])
@pytest.mark.parametrize(
    "function",
    [
        lambda t: t + 7,
        lambda t: t * 100,
        lambda t: t**2,
        lambda t: t.astype(int),
        lambda t: (t * 1e17).astype("int64"),
        lambda t: t.clip(lower=0) % 32,
    ],
    ids=["plus", "times", "square", "int", "large", "modulo"],
)  # fmt: skip
def test_a_word_that_is_true_of_the_numbers_within_the_bounds_alone(function: Any, dtype: str) -> None:
    """Beyond them whole numbers wrap round, squares turn; one row of many is sent to the target, and must be found."""
    n = 3000
    table = pd.DataFrame({"a": np.arange(n) % 15, "b": np.arange(n) % 7}).astype(dtype)
    table.loc[n // 2, "a"] = 15
    model = make_pipeline(FunctionTransformer(function), tree()).fit(table, table["a"] > 14)
    row = table.iloc[[3]]
    answer = Explainer(model, table, monotone={"functiontransformer": "increasing"}).explain(row, True)[0]
    grid = row.loc[row.index.repeat(16)].assign(a=np.arange(16).astype(dtype))
    cost = (grid["a"] - 3).abs()[model.predict(grid)].min() / 15
    assert answer.status == "optimal"
    assert answer.cost <= cost + 1e-12
    assert model.predict(answer.counterfactual)[0]
    if dtype != "float64":
        assert answer.cost == pytest.approx(cost)


def test_a_row_where_a_word_is_not_true_is_refused() -> None:
    table = pd.DataFrame({"a": np.arange(60.0)})
    model = make_pipeline(FunctionTransformer(lambda t: t**2), tree()).fit(table, table["a"] > 40)
    explainer = Explainer(model, table, monotone={"functiontransformer": "increasing"})
    said = explainer.explain(pd.DataFrame({"a": [-50.0, 30.0]}), True)
    assert [e.status for e in said] == ["error", "optimal"]
    assert "'a' may go from -50 to 59, and a step before the model is read" in said[0].message


@pytest.mark.parametrize(
    "function",
    [
        lambda t: t[["dose", "size"]],
        lambda t: t.cumsum(axis=1),
        lambda t: t - t.mean(),
        lambda t: t.rank(),
    ],
    ids=["order", "sums", "centred", "ranks"],
)  # fmt: skip
def test_a_word_on_what_follows_other_columns_or_rows(function: Any) -> None:
    model = make_pipeline(FunctionTransformer(function), tree()).fit(NUMBERS, LABELS)
    with pytest.raises(DataError, match=r"what it makes of feature '(size|dose)' follows other columns or rows too"):
        Explainer(model, NUMBERS, monotone={"functiontransformer": "increasing"})


@pytest.mark.parametrize(
    "function",
    [
        lambda t: t.assign(dose=t.dose + 0.1 * t.old),
        lambda t: t.assign(dose=t.dose * np.where(t.colour == "red", 1.01, 1.0)),
        lambda t: t.assign(dose=t.dose + t.old * (t.colour == "red")),
        lambda t: t.assign(old=t.old & (t.dose < 1)),
        lambda t: t.assign(colour=t.colour.where(~t.old, "red")),
    ],
    ids=["truth", "category", "both", "truth on number", "category on truth"],
)
def test_a_word_on_what_mixes_categories_or_truth_values(function: Any) -> None:
    table = TABLE[["dose", "colour"]].assign(old=np.arange(len(TABLE)) > len(TABLE) - 3)
    encoder = ColumnTransformer([("colour", OneHotEncoder(), ["colour"])], remainder="passthrough")
    model = make_pipeline(FunctionTransformer(function), encoder, tree()).fit(table, LABELS)
    with pytest.raises(DataError, match=r"what it makes of feature '\w+' follows other columns or rows too"):
        Explainer(model, table, monotone={"functiontransformer": "increasing"})


def test_a_word_beside_categories_is_taken() -> None:
    """Codes of categories are those of the data in a single row too, and a category that is alone has no other."""
    words = pd.Categorical(np.array(["low", "mid", "high"])[np.arange(90) % 3], ["low", "mid", "high"])
    table = pd.DataFrame({"level": words, "land": pd.Categorical(["here"] * 90), "x": np.arange(90) / 90})
    codes = FunctionTransformer(lambda t: t.assign(level=t.level.cat.codes, land=t.land.cat.codes, x=t.x + 1))
    model = make_pipeline(codes, tree()).fit(table, (words == "mid") | (table.x > 0.9))
    rows = table[(table.level != "mid") & (table.x < 0.3)].head(4)
    for answer in Explainer(model, table, monotone={"functiontransformer": "increasing"}).explain(rows, True):
        assert answer.status == "optimal"
        assert answer.cost == pytest.approx((0.9 - answer.original.x.iloc[0]) / np.ptp(table.x), abs=0.02)


def _third(values: Any) -> Any:
    return -np.asarray(values) / 3


def test_answers_say_on_whose_word_they_rest() -> None:
    inner = ColumnTransformer([("third", FunctionTransformer(_third), ["size"])], remainder="passthrough")
    model = Pipeline([("columns", inner), ("tree", tree())]).fit(NUMBERS, LABELS)
    for name in ("third", "columns__third"):
        found = Explainer(model, NUMBERS, monotone={name: "decreasing"}).explain(NUMBERS.iloc[[0]])[0]
        assert found.status == "optimal"
        assert f"rests on your word that the step '{name}' is decreasing" in found.message
        assert found.message.endswith(found.method["rests_on"])


def test_a_step_of_another_version_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_pipeline(columns(OneHotEncoder(), "colour"), tree()).fit(TABLE, LABELS)
    monkeypatch.setattr("ocf.readers.transformers.encoders.widths", lambda step: [4])
    with pytest.raises(ConformanceError, match=r"'own' \(OneHotEncoder\) gives 5 columns, and ocf reads 4"):
        Explainer(model, TABLE)

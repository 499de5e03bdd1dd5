"""Across files: what users get wrong about tables and Pipelines, and that the message has the cause and the remedy."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, StackingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer
from ocf.errors import DataError, ModelError, OcfError, ProblemError, UnsupportedModelError
from ocf.oblique.tao import TAOClassifier
from ocf.problem.constraints import Budget, Implication, Linear

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": RNG.normal(40, 10, 80).round(1),
        "job": RNG.choice(["clerk", "smith"], 80),
        "code": RNG.choice([11, 22, 35], 80),
        "amount": RNG.integers(0, 5000, 80) * 1000,
    }
)
LABELS = ((TABLE["age"] > 40) ^ (TABLE["job"] == "smith")).astype(int)
ROW, NUMBERS = TABLE.iloc[[0]], TABLE[["age", "amount"]]


class Unknown(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A step of no library that is read."""

    def fit(self, X: Any, y: Any = None) -> Unknown:
        self.fitted_ = True
        return self

    def transform(self, X: Any) -> Any:
        return X


def pipeline(encoder: Any, trees: Any = None) -> Any:
    trees = DecisionTreeClassifier(max_depth=3, random_state=0) if trees is None else trees
    columns = make_column_transformer((encoder, ["job"]), remainder="passthrough")
    return make_pipeline(columns, trees).fit(TABLE, LABELS)


def standing_beside() -> Any:
    """A stack under a linear model that is given the table, too, behind an imputer."""
    parts = [("trees", DecisionTreeClassifier(max_depth=2, random_state=0))]
    stack = StackingClassifier(parts, LogisticRegression(), cv=2, passthrough=True)
    return make_pipeline(SimpleImputer(), StandardScaler(), stack).fit(NUMBERS, LABELS)


MODEL = pipeline(OneHotEncoder())
STRICT = pipeline(OrdinalEncoder(), GradientBoostingClassifier(n_estimators=3, random_state=0))
EXPLAINER = Explainer(MODEL, TABLE, {"code": {"kind": "categorical"}})


def behind(step: Any, column: str) -> Any:
    return make_pipeline(step, DecisionTreeClassifier(max_depth=2)).fit(TABLE[[column]], LABELS)


def calibrated() -> Any:
    return CalibratedClassifierCV(LogisticRegression(), cv=2).fit(TABLE[["age"]], LABELS)


@pytest.mark.parametrize(
    ("error", "words", "ask"),
    [
        (
            ModelError,
            r"'standardscaler' is not fitted: call fit on the Pipeline first",
            lambda: Explainer(make_pipeline(StandardScaler(), STRICT[-1]), TABLE),
        ),
        (
            UnsupportedModelError,
            r"'unknown' is not read: .*Unknown.*give ocf the table after that step",
            lambda: Explainer(behind(Unknown(), "age"), TABLE[["age"]]),
        ),
        (
            DataError,
            r"misses columns .*: age; it has others: years: give it with the names of the table",
            lambda: Explainer(MODEL, TABLE.rename(columns={"age": "years"})),
        ),
        (
            DataError,
            r"columns that the model does not take: extra; drop them",
            lambda: Explainer(MODEL, TABLE.assign(extra=1)),
        ),
        (
            DataError,
            r"'job': the preprocessing refuses the level 'pilot' \(Found unknown.*leave it out .* or fit the Pipeline",
            lambda: Explainer(MODEL, pd.concat([TABLE, ROW.assign(job="pilot")])),
        ),
        (
            DataError,
            r"refuses rows of the data at every level of 'job' \(could not convert.*'old'.*give all columns in",
            lambda: Explainer(MODEL, TABLE.assign(amount=np.where(TABLE["age"] > 40, "old", "young"))),
        ),
        (
            DataError,
            r"'job': the preprocessing refuses the level 'pilot' \(Found unknown.*leave it out .* or fit the Pipeline",
            lambda: Explainer(STRICT, TABLE, {"job": {"levels": ["clerk", "smith", "pilot"]}}),
        ),
        (
            UnsupportedModelError,
            r"takes the numbers of feature 'code' for categories.*describe the feature as kind 'categorical'",
            lambda: Explainer(behind(OneHotEncoder(), "code"), TABLE[["code"]]),
        ),
        (
            UnsupportedModelError,
            r"CalibratedClassifierCV .* no sum of trees: linear models are explained by ocf.LinearExplainer",
            lambda: Explainer(calibrated(), TABLE[["age"]]),
        ),
        (
            DataError,
            r"'age' is missing \(NaN\), and the model has no rule for it: fill in a value",
            lambda: Explainer(STRICT, TABLE).explain(ROW.assign(age=np.nan)),
        ),
        (
            DataError,
            r"'age' is missing \(NaN\), and no rule for that is read in a model .* sums .*: fill in a value",
            lambda: Explainer(standing_beside(), NUMBERS).explain(NUMBERS.iloc[[0]].assign(age=np.nan)),
        ),
        (DataError, "two columns .* named 'age': give each", lambda: Explainer(MODEL, TABLE[["age", "age", "job"]])),
        (DataError, r"step 0.5 should be a whole number", lambda: Explainer(MODEL, TABLE, {"amount": {"step": 0.5}})),
        (
            DataError,
            r"'age' must be \(lowest, highest\), and \(60, 20\) is the other way round",
            lambda: Explainer(MODEL, TABLE, {"age": {"permitted_range": (60, 20)}}),
        ),
        (
            DataError,
            r"'age': bounds is a pair of numbers, such as \[0, 100\], not \['9', 'nan'\]",
            lambda: Explainer(MODEL, TABLE, {"age": {"bounds": ["9", "nan"]}}),
        ),
        (
            DataError,
            r"'age': bounds is a pair of numbers, such as \[0, 100\], not None: leave the setting out",
            lambda: Explainer(MODEL, TABLE, {"age": {"bounds": [None, None]}}),
        ),
        (
            DataError,
            r"'age': bounds is a pair, the lowest and the highest value, not 'all'",
            lambda: Explainer(MODEL, TABLE, {"age": {"bounds": "all"}}),
        ),
        (
            DataError,
            r"'age': bounds is a pair, the lowest and the highest value, not \[1\]",
            lambda: Explainer(MODEL, TABLE, {"age": {"bounds": [1]}}),
        ),
        (DataError, r"'job': scale is a number, not None", lambda: Explainer(MODEL, TABLE, {"job": {"scale": None}})),
        (
            DataError,
            r"'age': weight is a number, or a pair of them, not 'high'",
            lambda: Explainer(MODEL, TABLE, {"age": {"weight": "high"}}),
        ),
        (ProblemError, r"a norm is one of l0, l1.*not None", lambda: EXPLAINER.explain(ROW, norm=None)),
        (ProblemError, r"n_jobs is a number of processes.*not '2'", lambda: EXPLAINER.explain(ROW, n_jobs="2")),
        (
            DataError,
            r"imputations: column 'age' should hold numbers, as in the data: .*['\"]old['\"]",
            lambda: Explainer(STRICT, TABLE).explain(
                ROW.assign(age=np.nan), imputations=pd.DataFrame({"age": ["old", "young"]})
            ),
        ),
        (
            UnsupportedModelError,
            r"DecisionTreeClassifier is a class, and no model: .* DecisionTreeClassifier\(...\).fit\(X, y\)",
            lambda: Explainer(DecisionTreeClassifier, TABLE),
        ),
    ],
)  # fmt: skip
def test_models_and_data(error: type[OcfError], words: str, ask: Callable[[], Any]) -> None:
    with pytest.raises(error, match=words):
        ask()


@pytest.mark.parametrize(
    ("words", "row"),
    [
        (r"'job': unknown level 'pilot'; known: clerk, smith", ROW.assign(job="pilot")),
        (r"'job': unknown level 3; known", ROW.assign(job=3)),
        (r"'code': unknown level 12; known: 11, 22, 35", ROW.assign(code=12)),
        (r"'code': unknown level 12\.5; known", ROW.assign(code=12.5)),
        (r"'age' should hold numbers, as in the data: .*['\"]old['\"].*give the rows as", ROW.assign(age="old")),
        (r"'age' should hold numbers, as in the data: .*['\"]old['\"].*give the rows as", ["old", "clerk", 11, 1000]),
        (r"'age' should hold numbers.* and holds dates.*give the rows as", ROW.assign(age=pd.Timestamp("2020-01-01"))),
        (r"'amount' should hold numbers.* and holds dates.*give", ROW.assign(amount=pd.Timedelta(days=3))),
        (r"'age' should hold numbers.* and holds complex numbers", ROW.assign(age=1j)),
        (r"the table misses job, amount; the model was given: age, job, code, amount", {"age": 1.0, "code": 11}),
        (r"has the unknown wage", {**ROW.iloc[0].to_dict(), "wage": 1}),
        (r"no rows to explain", TABLE.iloc[:0]),
        (r"no rows to explain", []),
        (r"occur twice: age; rename or drop one", ROW[["age", "age", "job", "code", "amount"]]),
    ],
)
def test_rows(words: str, row: Any) -> None:
    with pytest.raises(DataError, match=words):
        EXPLAINER.explain(row)


def test_data_without_rows() -> None:
    table = TABLE.assign(job=TABLE["job"].astype("category"))
    with pytest.raises(DataError, match="the data table is empty"):
        Explainer(MODEL, data=table.iloc[:0])


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        (r"'job': give a list, such as \['smith'\], not 'smith'", {"job": "smith"}),
        (r"'job': no such level 'smit' \(did you mean 'smith'\?\)", {"job": ["smit"]}),
        (r"'code': give a list, such as \[22\], not 22", {"code": 22}),
        (r"'code': no such level 23; known: 11, 22, 35", {"code": np.array([22, 23])}),
        (r"'age' must be \(lowest, highest\), and \(60, 20\) is the other way round", {"age": (60, 20)}),
        (r"'age': give two numbers, or None for no end, not \('low', 'high'\)", {"age": ("low", "high")}),
        (r"'age' must be \(lowest, highest\), not \(1, 2, 3\)", {"age": (1, 2, 3)}),
    ],
)
def test_permitted_ranges(words: str, allowed: dict[str, Any]) -> None:
    with pytest.raises(ProblemError, match=words):
        EXPLAINER.explain(ROW, permitted_range=allowed)


def brief(value: Any) -> str:
    return str(value)[:20]


@pytest.mark.parametrize("said", [None, "abc", True, np.nan, pd.NA, pd.NaT, 10**400], ids=brief)
@pytest.mark.parametrize(
    "asked",
    [
        lambda v: {"weights": {"age": v}},
        lambda v: {"norm": {"l1": v}},
        lambda v: {"norm": {"mahalanobis": v}},
        lambda v: {"n_explanations": 2, "diversity": "distance", "min_distance": v},
        lambda v: {"margin": v},
        lambda v: {"margin": {"age": v}},
        lambda v: {"split_margin": v},
        lambda v: {"probability": v if v is not None else 2},
        lambda v: {"round_to": v if v is not None else 0},
        lambda v: {"constraints": [Implication({"job": "clerk"}, {"age": {"max": v if v is not None else "abc"}})]},
        lambda v: {"constraints": [Budget(v, {"age": 1})]},
        lambda v: {"constraints": [Linear({"age": v}, "<=", 3)]},
        lambda v: {"missing": {"may_become_missing": ["age"], "cost_of_becoming_missing": v}},
    ],
)  # fmt: skip
def test_what_is_no_number(asked: Callable[[Any], dict[str, Any]], said: Any) -> None:
    with pytest.raises(OcfError):
        EXPLAINER.explain(ROW, **asked(said))


SETTINGS = ["scale", "step", "weight", "bounds", "special_values", "cost", "actionability"]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        *itertools.product(SETTINGS, ["abc", np.nan, pd.NA, pd.NaT, 10**400]),
        *itertools.product(["scale", "step"], [0, -3]),
        *itertools.product(["special_values", "cost", "actionability"], [True]),
    ],
    ids=brief,
)
def test_settings_that_are_no_numbers(key: str, said: Any) -> None:
    given = {"bounds": (said, 9), "special_values": [said]}.get(key, said)
    with pytest.raises(OcfError):
        Explainer(MODEL, TABLE, {"age": {key: given}})


@pytest.mark.parametrize("said", [pd.NaT, np.nan, "abc", 10**400], ids=brief)
def test_no_dates(said: Any) -> None:
    table = pd.DataFrame({"since": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(80), "D")})
    days = FunctionTransformer(lambda t: (t - pd.Timestamp("2020-01-01")) / pd.Timedelta("1D"))
    model = make_pipeline(days, DecisionTreeClassifier(max_depth=2)).fit(table, np.arange(80) > 30)
    explainer = Explainer(model, table, monotone={"functiontransformer": "increasing"})
    with pytest.raises(OcfError, match="since"):
        explainer.explain(table.iloc[[0]], constraints=[Implication({}, {"since": {"min": said}})])
    with pytest.raises(OcfError, match="since"):
        explainer.explain(table.iloc[[0]], permitted_range={"since": (said, "2020-02-20")})
    if not pd.isna(said):
        with pytest.raises(OcfError, match="since"):
            Explainer(model, table, {"since": {"bounds": (said, "2020-02-20")}})


def test_a_weight_is_a_number_or_a_pair() -> None:
    with pytest.raises(ProblemError, match=r"weight of 'age' is a number of at least 0, or a pair .*not \(1, 2, 3\)"):
        EXPLAINER.explain(ROW, weights={"age": (1, 2, 3)})


def test_what_may_become_missing_must_be_taken_by_the_steps() -> None:
    words = r"'job' is or may become missing \(NaN\), and the preprocessing refuses it.*list the others in may_become"
    with pytest.raises(DataError, match=words):
        EXPLAINER.explain(ROW, missing={"may_become_missing": True, "cost_of_becoming_missing": 0.1})


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("34,600", r"'amount' holds text, such as '34,600' in row 3: write numbers plainly"),
        (None, r"'amount' holds \w+ values, such as 'many' in row 0: put an encoder before the model"),
    ],
)
def test_a_cell_that_is_no_number_is_shown(cell: str | None, words: str) -> None:
    amounts = pd.Series([str(v) for v in range(len(TABLE))] if cell else ["many"] * len(TABLE), dtype=object)
    amounts[3] = cell or "many"
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(TABLE[["amount"]], LABELS)
    with pytest.raises(DataError, match=words):
        Explainer(model, pd.DataFrame({"amount": amounts}))


def test_counting_changes_of_a_number_without_limits_names_what_to_do() -> None:
    table = TABLE[["age", "amount"]].astype(float)
    standing = (table - table.mean()) / table.std()
    model = TAOClassifier(1, random_state=0).fit(table, standing.sum(axis=1) > 0)
    explainer = Explainer(model, table, {"age": {"bounds": [-np.inf, np.inf]}})
    (found,) = explainer.explain(table.iloc[[0]], norm="l0")
    assert found.status == "error"
    assert re.search(r"finite bounds, and feature 'age' has none: .*take a norm without l0", found.message)


def test_ordered_categories_that_lightgbm_does_not_place() -> None:
    grade = pd.Categorical.from_codes(np.arange(80) % 3, categories=["low", "mid", "high"], ordered=True)
    table = pd.DataFrame({"grade": grade, "own": TABLE["age"] > 40})
    model = LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1).fit(table, LABELS)
    with pytest.raises(
        DataError,
        match=r"'grade' holds category values, such as 'low' in row 0: .*LightGBM .* fit it on unordered ones",
    ):
        Explainer(model, table)


@pytest.mark.parametrize("dtype", ["int64", "Int64", "int32", object])
def test_a_step_of_whole_numbers(dtype: Any) -> None:
    """Of amounts in thousands, in the column's own dtype; the nearest multiple that the model gives the target."""
    table = TABLE[["amount"]].astype(dtype)
    model = DecisionTreeClassifier(max_depth=2, random_state=0).fit(table.astype("int64"), TABLE["amount"] > 2_345_000)
    (e,) = Explainer(model, table, {"amount": {"step": 10_000}}).explain(table.iloc[[0]])
    (amount,) = e.counterfactual["amount"]
    every = np.arange(0, 5_000_001, 10_000)
    said = model.predict(pd.DataFrame({"amount": every})) == e.target
    assert amount == every[said][np.abs(every[said] - TABLE["amount"][0]).argmin()]
    assert (e.status, e.verified) == ("optimal", True)
    assert e.counterfactual["amount"].dtype == table["amount"].dtype


def test_what_a_model_says_of_gaps_is_told_as_such() -> None:
    gappy = TABLE.assign(age=TABLE["age"].mask(TABLE.index < 3))
    with pytest.raises(DataError, match=r"misses values \(NaN\) of age, and the Pipeline .* has no rule.*fill them in"):
        Explainer(STRICT, TABLE).model.decide(gappy)

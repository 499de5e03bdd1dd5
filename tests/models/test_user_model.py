"""Which steps of a Pipeline are read, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

from ocf.errors import UnsupportedModelError
from ocf.explain.explainer import Explainer

from .brute_forced import holes, numbers


def test_a_function_with_a_hole_is_refused() -> None:
    table, labels, step, _ = holes("function")
    model = make_pipeline(step, StandardScaler(), RandomForestClassifier(8, random_state=0)).fit(table, labels)
    with pytest.raises(UnsupportedModelError, match=r"'functiontransformer' is not read: its function may do anything"):
        Explainer(model, table)


def test_interactions_whose_first_row_holds_a_zero() -> None:
    table, labels = numbers()
    table.iloc[0] = 0.0
    steps = PolynomialFeatures(2, interaction_only=True)
    model = make_pipeline(steps, RandomForestClassifier(8, random_state=0, n_jobs=1)).fit(table, labels)
    with pytest.raises(UnsupportedModelError, match=r"'polynomialfeatures' multiplies several columns"):
        Explainer(model, table)


TREE = DecisionTreeClassifier(max_depth=3, random_state=0)
SCALED = make_pipeline(StandardScaler(), TREE)
BESIDE = StackingClassifier([("a", TREE)], LogisticRegression(), cv=2, passthrough=True)


@pytest.mark.parametrize(
    "model",
    [
        StackingClassifier([("a", TREE), ("b", SCALED)], cv=2, passthrough=True),
        StackingClassifier([("a", TREE), ("b", SCALED)], TREE, cv=2, passthrough=True),
        StackingClassifier([("a", BESIDE), ("b", SCALED)], cv=2),
        VotingClassifier([("a", BESIDE), ("b", SCALED)], voting="soft"),
        VotingClassifier([("a", make_pipeline(StandardScaler(), BESIDE)), ("b", TREE)], voting="soft"),
    ],
)
def test_the_table_as_it_is_beside_models_behind_steps(model: Any) -> None:
    table, labels = numbers()
    with pytest.raises(UnsupportedModelError, match=r"gives its final model the table as it is .* put their steps bef"):
        Explainer(clone(model).fit(table, labels), table)


class LooksLikeAScaler(StandardScaler):
    """A subclass may do something else."""


UNKNOWN = {
    "a subclass": LooksLikeAScaler(),
    "a function": FunctionTransformer(lambda x: x),
    "arguments": FunctionTransformer(np.tanh, kw_args={"where": True}),
    "nested": FeatureUnion([("same", "passthrough"), ("inner", make_pipeline(StandardScaler(), LooksLikeAScaler()))]),
    "on some columns": ColumnTransformer([("all", LooksLikeAScaler(), ["a"])], remainder="passthrough"),
}

KNOWN = {
    "standard": StandardScaler(),
    "clipped": MinMaxScaler(clip=True),
    "absolute": MaxAbsScaler(),
    "robust": RobustScaler(),
    "binary": Binarizer(threshold=1.0),
    "power": PowerTransformer(),
    "quantile": QuantileTransformer(n_quantiles=20),
    "bins": KBinsDiscretizer(4, encode="ordinal"),
    "imputer": SimpleImputer(add_indicator=True),
    "neighbours": KNNImputer(),
    "identity": FunctionTransformer(),
    "logarithm": FunctionTransformer(np.cbrt),
    "selection": SelectKBest(k=2),
    "union": FeatureUnion([("a", StandardScaler()), ("b", "passthrough"), ("c", "drop")]),
    "columns": ColumnTransformer(
        [("a", make_pipeline(SimpleImputer(), StandardScaler()), ["a", "c"]), ("b", "drop", ["b"])]
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_steps_that_are_not_read(name: str) -> None:
    table, labels = numbers()
    model = Pipeline([("first", UNKNOWN[name]), ("second", StandardScaler()), ("last", RandomForestClassifier(3))])
    with pytest.raises(
        UnsupportedModelError, match=r"the step '\w+'( \(\w+\))? is not read: .* the table after that step"
    ):
        Explainer(model.fit(table, labels), table)


@pytest.mark.parametrize("name", KNOWN)
def test_steps_that_are_known_keep_their_proofs(name: str) -> None:
    table, labels = numbers()
    model = Pipeline([("first", KNOWN[name]), ("last", RandomForestClassifier(5, max_depth=4, random_state=0))])
    found = Explainer(model.fit(table, labels), table).explain(table.iloc[:3])
    assert {e.status for e in found} <= {"optimal", "infeasible"}, [e.message for e in found]


def test_values_filled_from_other_columns_are_known_where_nothing_is_missing() -> None:
    table, labels = numbers()
    explainer = Explainer(
        make_pipeline(KNNImputer(), RandomForestClassifier(3, random_state=0)).fit(table, labels), table
    )
    assert explainer.explain(table.iloc[[0]])[0].status == "optimal"
    with pytest.raises(UnsupportedModelError, match="fills missing values from the other columns"):
        explainer.explain(table.iloc[[0]].assign(a=np.nan))

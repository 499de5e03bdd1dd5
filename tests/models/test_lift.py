"""Splits pulled back through whatever encodes the table, leaf for leaf."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.instances import LIBRARIES, Spec, make, specs
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)

from ocf.errors import ConformanceError
from ocf.explain.explainer import Explainer
from ocf.models.lift import check_lift, lift
from ocf.trees.ensemble import SplitKind

from .lifting import LABELS, RNG, TABLE, N, assert_same_leaves, cube, forest, lifted, log, with_holes

SCALERS = {
    "standard": StandardScaler(),
    "minmax": MinMaxScaler(),
    "power": PowerTransformer(),
    "quantile": QuantileTransformer(n_quantiles=20),
    "log": FunctionTransformer(log),
    "cube": FunctionTransformer(cube),
    "size": FunctionTransformer(np.abs),
    "square": make_pipeline(StandardScaler(), FunctionTransformer(np.square), MinMaxScaler()),
    "powers": PolynomialFeatures(3, interaction_only=False, include_bias=False),
    "hats": SplineTransformer(4, degree=1, extrapolation="linear"),
    "decreasing": FunctionTransformer(np.negative),
    "steps": FunctionTransformer(np.floor),
    "chain": make_pipeline(StandardScaler(), FunctionTransformer(np.tanh), MinMaxScaler((-1, 1))),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", SCALERS)
def test_thresholds_go_back_through_scalers(name: str, dtype: str) -> None:
    table = TABLE[["debt"] if name == "powers" else ["income", "debt"]].astype(dtype)
    pipe = Pipeline([("scale", SCALERS[name]), ("model", forest())]).fit(table, LABELS)
    ensemble, over_features, encoding, space = lifted(pipe, table)
    assert_same_leaves(ensemble, over_features, encoding, space)
    check_lift(over_features, ensemble, encoding)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(list(LIBRARIES)).flatmap(specs).filter(lambda s: "array" not in s.layout))
def test_random_layouts_reach_the_same_leaves(spec: Spec) -> None:
    instance = make(spec)
    explainer = Explainer(instance.model, data=instance.data, features=instance.features)
    encoding = explainer.prepared.encoding_of(explainer.space)
    over_features = lift(explainer.prepared.ensemble, encoding)
    assert_same_leaves(explainer.prepared.ensemble, over_features, encoding, explainer.space)


def test_thresholds_behind_a_scaler_are_found_in_few_rounds() -> None:
    """A column that is linear but for rounding tells where its thresholds are, among all numbers of float64."""
    ensemble, _, encoding, space = lifted(make_pipeline(StandardScaler(), forest()).fit(TABLE, LABELS), TABLE)
    asked: list[int] = []

    def counted(table: pd.DataFrame) -> np.ndarray:
        asked.append(len(table))
        return encoding.encode(table)

    found = lift(ensemble, replace(encoding, encode=counted))
    assert_same_leaves(ensemble, found, encoding, space)
    assert len(asked) < 32


def test_plain_tables_keep_the_readers_thresholds() -> None:
    ensemble, over_features, *_ = lifted(forest().fit(TABLE, LABELS), TABLE)
    np.testing.assert_array_equal(over_features.ensemble.threshold, ensemble.threshold)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_narrow_integers_do_not_wrap_around(dtype: str) -> None:
    table = TABLE[["debt", "age"]].astype({"age": dtype})
    ensemble, over_features, encoding, space = lifted(forest().fit(table, LABELS), table)
    assert_same_leaves(ensemble, over_features, encoding, space)
    check_lift(over_features, ensemble, encoding)


WORDS = pd.DataFrame(
    {
        "colour": RNG.choice(["red", "green", "blue", "grey"], N),
        "size": RNG.choice(["low", "middle", "high"], N),
        "debt": TABLE.debt,
    }
)

WORD_LABELS = ((WORDS.colour.isin(["red", "grey"]) ^ (WORDS["size"] == "high")) | (WORDS.debt > 1)).astype(int)
SIZES = {"size": {"kind": "ordinal", "levels": ["low", "middle", "high"]}}


@pytest.mark.parametrize(
    "encoder",
    [OneHotEncoder(), OneHotEncoder(drop="first"), OneHotEncoder(sparse_output=False), OrdinalEncoder()],
    ids=["onehot", "drop", "dense", "codes"],
)
def test_levels_go_back_through_encoders(encoder: Any) -> None:
    sizes = OrdinalEncoder(categories=[["low", "middle", "high"]])
    columns = ColumnTransformer([("c", encoder, ["colour"]), ("s", sizes, ["size"])], remainder="passthrough")
    pipe = Pipeline([("encode", columns), ("model", forest())]).fit(WORDS, WORD_LABELS)
    ensemble, over_features, encoding, space = lifted(pipe, WORDS, settings=SIZES)
    assert_same_leaves(ensemble, over_features, encoding, space)
    trees = over_features.ensemble
    on_sizes = (trees.feature == 1) & (trees.kind != SplitKind.LEAF)
    assert (trees.kind[on_sizes] == SplitKind.AXIS).all()


def test_splits_on_sets_of_levels_stay_sets() -> None:
    table = WORDS.astype({"colour": "category", "size": "category"})
    model = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=3).fit(table, WORD_LABELS)
    ensemble, over_features, encoding, space = lifted(model, table)
    assert_same_leaves(ensemble, over_features, encoding, space)
    assert (over_features.ensemble.kind == SplitKind.SUBSET).any()


@pytest.mark.parametrize("indicator", [False, True])
def test_missing_values_go_through_an_imputer(indicator: bool) -> None:
    table = with_holes()
    imputer = SimpleImputer(strategy="median", add_indicator=indicator)
    pipe = make_pipeline(imputer, StandardScaler(), forest()).fit(table, LABELS)
    check_missing(pipe, table)


def test_missing_values_go_where_the_model_sends_them() -> None:
    table = with_holes()
    check_missing(HistGradientBoostingClassifier(max_iter=20).fit(table, LABELS), table)


def check_missing(model: Any, table: pd.DataFrame) -> None:
    ensemble, _, encoding, space = lifted(model, table)
    for pattern in ({0}, {1, 2}, {0, 1, 2}):
        rows = space.from_frame(table.fillna(table.median()))
        rows[:, list(pattern)] = np.nan
        over_features = lift(ensemble, encoding, frozenset(pattern))
        expected = ensemble.apply(encoding.encode(space.to_frame(rows)))
        np.testing.assert_array_equal(over_features.apply(rows), expected)
        trees = over_features.ensemble
        cut = np.isfinite(trees.threshold) & np.isin(trees.feature, list(pattern))
        assert not cut.any()


def test_products_that_no_tree_splits_do_no_harm() -> None:
    table = TABLE[["income", "debt"]]
    steps = make_pipeline(PolynomialFeatures(2, interaction_only=True, include_bias=False), SelectKBest(k=2))
    pipe = make_pipeline(steps, forest()).fit(table, (table.income > 20) & (table.debt > 0))
    steps.steps[1][1].scores_ = np.array([1.0, 1.0, 0.0])
    pipe[-1].fit(steps.transform(table), LABELS)
    assert_same_leaves(*lifted(pipe, table))


def test_bins_are_refused_or_exact() -> None:
    bins = KBinsDiscretizer(5, encode="ordinal", strategy="uniform")
    table = TABLE[["income", "debt"]]
    pipe = make_pipeline(bins, forest()).fit(table, LABELS)
    assert_same_leaves(*lifted(pipe, table))


@pytest.mark.parametrize("shift", [-1, 1])
def test_check_finds_a_threshold_that_is_one_number_off(shift: int) -> None:
    ensemble, over_features, encoding, _ = lifted(forest().fit(TABLE, LABELS), TABLE)
    trees = over_features.ensemble
    roots = trees.tree_offsets[:-1]  # which every point passes
    node = roots[trees.feature[roots] == 1][0]
    threshold = trees.threshold.copy()
    threshold[node] = np.nextafter(threshold[node], shift * np.inf)
    object.__setattr__(trees, "threshold", threshold)
    with pytest.raises(ConformanceError, match="'debt'"):
        check_lift(over_features, ensemble, encoding)

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
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)

from ocf.errors import ConformanceError, DataError, UnsupportedModelError
from ocf.explain.explainer import Explainer
from ocf.features.inference import infer_space
from ocf.features.space import FeatureSpace
from ocf.models.encoding import Encoding
from ocf.models.lift import Lifted, check_lift, lift
from ocf.models.user_model import as_user_model
from ocf.trees.ensemble import Ensemble, SplitKind

RNG = np.random.default_rng(0)
N = 120
TABLE = pd.DataFrame({"income": RNG.lognormal(3, 1, N), "debt": RNG.normal(size=N), "age": RNG.integers(18, 90, N)})
LABELS = (np.log(TABLE.income) - TABLE.debt + 0.02 * TABLE.age + RNG.normal(0, 0.3, N) > 4).astype(int)


def forest() -> RandomForestClassifier:
    return RandomForestClassifier(20, max_depth=6, random_state=0)


def lifted(
    model: Any, table: pd.DataFrame, missing: frozenset[int] = frozenset(), settings: Any = None
) -> tuple[Ensemble, Lifted, Encoding, FeatureSpace]:
    """Ensemble over model columns and over features, and how they hang together."""
    user = as_user_model(model)
    functions = [name for name, step in user.preprocessing.steps if getattr(step, "func", None) in WORDED]
    user = user.saying(dict.fromkeys(functions, "increasing"))
    space = infer_space(table, settings)
    coded = space.from_frame(table)
    base = coded[~np.isnan(coded).any(axis=1)][0]
    encoding = Encoding(space, user.encode, base, user.preprocessing.read)
    return user.trees.ensemble, lift(user.trees.ensemble, encoding, missing), encoding, space


def assert_same_leaves(ensemble: Ensemble, over_features: Lifted, encoding: Encoding, space: FeatureSpace) -> None:
    """On the data's rows and on random ones at, next to and between the thresholds."""
    rng = np.random.default_rng(1)
    trees = over_features.ensemble
    columns = []
    for i, feature in enumerate(space.features):
        if feature.discrete:
            pool = np.arange(len(feature.levels), dtype=float)
        else:
            own = (trees.feature == i) & np.isfinite(trees.threshold)
            cuts = trees.threshold[own].astype(feature.float_dtype)
            inf = cuts.dtype.type(np.inf)
            near = [cuts, np.nextafter(cuts, inf), np.nextafter(cuts, -inf)]
            pool = np.concatenate([*near, rng.uniform(feature.lower, feature.upper, 30)]).astype(cuts.dtype)
            if feature.kind == "integer":
                pool = np.round(pool)
        columns.append(rng.choice(pool, 400).astype(float))
    points = np.column_stack(columns)
    expected = ensemble.apply(encoding.encode(space.to_frame(points)))
    np.testing.assert_array_equal(over_features.apply(points), expected)


def log(x: np.ndarray) -> np.ndarray:
    return np.log1p(np.maximum(x, 0.0))


def cube(x: np.ndarray) -> np.ndarray:
    return x * x * x


#: Functions that the user says are increasing.
WORDED = (log, cube)

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


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(list(LIBRARIES)).flatmap(specs).filter(lambda s: "array" not in s.layout))
def test_random_layouts_reach_the_same_leaves(spec: Spec) -> None:
    instance = make(spec)
    explainer = Explainer(instance.model, data=instance.data, features=instance.features)
    encoding = explainer.prepared.encoding_of(explainer.space)
    over_features = lift(explainer.ensemble, encoding)
    assert_same_leaves(explainer.ensemble, over_features, encoding, explainer.space)


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


# -- discrete features -----------------------------------------------------------------------------------------

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


# -- missing values --------------------------------------------------------------------------------------------


def with_holes() -> pd.DataFrame:
    return TABLE.astype({"age": float}).mask(np.random.default_rng(2).random(TABLE.shape) < 0.2)


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


def test_missing_values_that_are_filled_from_several_features_are_refused() -> None:
    table = with_holes()
    ensemble, _, encoding, _ = lifted(make_pipeline(KNNImputer(), forest()).fit(table, LABELS), table)
    with pytest.raises(UnsupportedModelError, match=r"'knnimputer' fills missing values from the other columns"):
        lift(ensemble, encoding, frozenset({0}))


def test_missing_values_that_the_preprocessing_refuses() -> None:
    refusing = FunctionTransformer(validate=True)
    ensemble, _, encoding, _ = lifted(make_pipeline(refusing, forest()).fit(TABLE, LABELS), TABLE)
    with pytest.raises(DataError, match=r"features 'income', 'age' are missing .* the preprocessing refuses"):
        lift(ensemble, encoding, frozenset({0, 2}))


def test_missing_values_without_a_rule_are_refused() -> None:
    ensemble, _, encoding, _ = lifted(GradientBoostingClassifier(n_estimators=3).fit(TABLE, LABELS), TABLE)
    with pytest.raises(DataError, match=r"'income' is missing .* no rule for it: fill in a value"):
        lift(ensemble, encoding, frozenset({0}))


# -- what cannot be told per feature ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mixing", "what"),
    [
        (PolynomialFeatures(2, interaction_only=True), "'polynomialfeatures' multiplies several columns"),
        (Normalizer(), "'normalizer' divides each row by its own length"),
    ],
)
def test_columns_of_several_features_are_refused(mixing: Any, what: str) -> None:
    pipe = make_pipeline(mixing, forest()).fit(TABLE, LABELS)
    with pytest.raises(UnsupportedModelError, match=f"{what}.* several features at once: give ocf the table after"):
        lifted(pipe, TABLE)


def test_products_that_no_tree_splits_do_no_harm() -> None:
    table = TABLE[["income", "debt"]]
    steps = make_pipeline(PolynomialFeatures(2, interaction_only=True, include_bias=False), SelectKBest(k=2))
    pipe = make_pipeline(steps, forest()).fit(table, (table.income > 20) & (table.debt > 0))
    steps.steps[1][1].scores_ = np.array([1.0, 1.0, 0.0])
    pipe[-1].fit(steps.transform(table), LABELS)
    assert_same_leaves(*lifted(pipe, table))


@pytest.mark.parametrize("bent", [FunctionTransformer(lambda x: (x - 0.1) ** 2), FunctionTransformer(np.sin)])
def test_functions_that_are_not_read_are_refused(bent: Any) -> None:
    pipe = make_pipeline(bent, forest()).fit(TABLE[["debt"]], LABELS)
    with pytest.raises(UnsupportedModelError, match=r"'functiontransformer' is not read: .* say so by monotone="):
        lifted(pipe, TABLE[["debt"]])


def test_bins_are_refused_or_exact() -> None:
    bins = KBinsDiscretizer(5, encode="ordinal", strategy="uniform")
    table = TABLE[["income", "debt"]]
    pipe = make_pipeline(bins, forest()).fit(table, LABELS)
    assert_same_leaves(*lifted(pipe, table))


def test_categories_described_as_numbers_are_refused() -> None:
    table = pd.DataFrame({"code": RNG.integers(0, 6, N), "debt": TABLE.debt})
    model = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=3, categorical_features=["code"])
    model.fit(table, (table.code % 2 == 0) ^ (table.debt > 1))
    with pytest.raises(DataError, match="describe it as kind 'categorical'"):
        lifted(model, table)


def test_wrong_width() -> None:
    *_, encoding, _ = lifted(forest().fit(TABLE, LABELS), TABLE)
    with pytest.raises(DataError, match="encodes to 3 model columns, but the model was fitted on 2"):
        encoding.check_width(("a", "b"))


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

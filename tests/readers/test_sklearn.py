"""scikit-learn's models, read and compared with the library at, just above and around every threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from ocf.errors import DataError, ModelError, UnsupportedModelError
from ocf.readers import read_model
from ocf.readers.base import TreeModel
from ocf.readers.conformance import check_conformance
from ocf.trees.ensemble import Ensemble, SplitKind

CLASSIFIERS = {
    "tree": DecisionTreeClassifier(max_depth=5, random_state=0),
    "best first tree": DecisionTreeClassifier(max_leaf_nodes=9, random_state=0),
    "extra tree": ExtraTreeClassifier(max_depth=5, random_state=0),
    "forest": RandomForestClassifier(7, max_depth=4, random_state=0),
    "extra trees": ExtraTreesClassifier(7, max_depth=4, random_state=0),
    "bagging": BaggingClassifier(n_estimators=7, random_state=0),
    "bagging columns": BaggingClassifier(
        DecisionTreeClassifier(max_depth=4), 9, max_samples=6, max_features=0.6, bootstrap_features=True, random_state=0
    ),
    "boosting": GradientBoostingClassifier(n_estimators=6, random_state=0),
    "boosting zero": GradientBoostingClassifier(n_estimators=6, init="zero", random_state=0),
    "boosting uniform": GradientBoostingClassifier(n_estimators=3, init=DummyClassifier(strategy="uniform")),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=3, random_state=0),
    "adaboost": AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=7, random_state=0),
    "adaboost extra": AdaBoostClassifier(ExtraTreeClassifier(max_depth=3), n_estimators=7, random_state=0),
}
REGRESSORS = {
    "tree": DecisionTreeRegressor(max_depth=5, random_state=0),
    "absolute tree": DecisionTreeRegressor(max_depth=3, criterion="absolute_error", random_state=0),
    "extra tree": ExtraTreeRegressor(max_depth=5, random_state=0),
    "forest": RandomForestRegressor(7, max_depth=4, random_state=0),
    "extra trees": ExtraTreesRegressor(7, max_depth=4, random_state=0),
    "bagging": BaggingRegressor(n_estimators=7, max_features=0.6, bootstrap_features=True, random_state=0),
    **{
        f"boosting {loss}": GradientBoostingRegressor(n_estimators=4, loss=loss, random_state=0)
        for loss in ("squared_error", "absolute_error", "huber", "quantile")
    },
    **{
        f"histogram boosting {loss}": HistGradientBoostingRegressor(
            max_iter=4, loss=loss, quantile=0.7, min_samples_leaf=3, random_state=0
        )
        for loss in ("squared_error", "absolute_error", "quantile", "poisson", "gamma")
    },
}
#: (centre, spread) of the data; the spread of the second is 16 neighbouring float32 numbers
SCALES = {
    "unit": (0.0, 1.0),
    "neighbours": (1.0, 2.0**-19),
    "thousand": (1e3, 1e-3),
    "timestamps": (1.7e9, 1e5),
    "tiny": (0.0, 1e-30),
    "huge": (0.0, 1e30),
}


def table(n: int = 120, d: int = 4, scale: str = "unit", seed: int = 0) -> np.ndarray:
    centre, spread = SCALES[scale]
    return centre + spread * np.random.default_rng(seed).normal(size=(n, d))


def labels(x: np.ndarray, n_classes: int, seed: int = 0) -> np.ndarray:
    noise = np.random.default_rng(seed).random(len(x))
    rank = np.argsort(np.argsort(x[:, 0])) / len(x) + 0.5 * noise
    return np.array(["low", "mid", "top"])[np.minimum((rank * n_classes / 1.5).astype(int), n_classes - 1)]


def fit(estimator: Any, x: Any, y: np.ndarray, **options: Any) -> Any:
    return type(estimator)(**estimator.get_params(deep=False)).fit(x, y, **options)


def threshold_points(ensemble: Ensemble, x: np.ndarray) -> np.ndarray:
    """Rows of x with one column put on a threshold of the ensemble, and on the next float64, for each threshold."""
    points = [x]
    tested = ensemble.kind == SplitKind.AXIS
    for j in range(ensemble.n_features):
        cuts = np.unique(ensemble.threshold[tested & (ensemble.feature == j)])
        cuts = cuts[np.isfinite(cuts)]
        for values in (cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf)):
            rows = x[np.arange(len(values)) % len(x)].copy()
            rows[:, j] = values
            points.append(rows)
    return np.concatenate(points)


def native_leaves(model: Any, x: np.ndarray) -> np.ndarray | None:
    """Node that the library's own trees send each row to, (n, n_trees)."""
    if not hasattr(model, "tree_") and not hasattr(model, "estimators_"):
        return None
    trees = np.ravel(getattr(model, "estimators_", model))
    columns = getattr(model, "estimators_features_", [slice(None)] * len(trees))
    pairs = zip(trees, columns, strict=True)
    return np.column_stack([tree.tree_.apply(x[:, chosen].astype(np.float32)) for tree, chosen in pairs])


def assert_agrees(model: TreeModel, x: np.ndarray) -> None:
    ensemble = model.ensemble
    points = threshold_points(ensemble, x)
    scores = ensemble.scores(points)
    assert np.abs(model.scores(points) - scores).max() <= 2 * ensemble.rounding
    leaves = native_leaves(model.native, points)
    if leaves is not None:
        nodes = np.flatnonzero(ensemble.kind == SplitKind.LEAF)[ensemble.apply(points)]
        np.testing.assert_array_equal(nodes - ensemble.tree_offsets[:-1], leaves)
    if ensemble.decision.kind == "value":
        return
    ranked = np.sort(np.column_stack([scores, np.full(len(points), ensemble.decision.threshold)]), axis=1)
    if ensemble.decision.kind == "argmax":
        ranked = np.sort(scores, axis=1)
    sure = ranked[:, -1] - ranked[:, -2] > 4 * ensemble.rounding
    np.testing.assert_array_equal(model.decide(points)[sure], ensemble.decide(scores)[sure])
    # scikit-learn does not split a feature whose values differ by less than 1e-7: such a tree ties everywhere
    assert sure.mean() > 0.3 or not np.any(ensemble.kind == SplitKind.AXIS)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classifier(kind: str, n_classes: int, named: bool) -> None:
    x = table()
    y = labels(x, n_classes)
    given_x = pd.DataFrame(x, columns=list("abcd")) if named else x
    model = read_model(fit(CLASSIFIERS[kind], given_x, y))
    assert model.ensemble.decision.classes == ("low", "mid", "top")[:n_classes]
    assert model.ensemble.feature_names == (tuple("abcd") if named else ("x0", "x1", "x2", "x3"))
    assert_agrees(model, x)
    check_conformance(model, x)
    decided = np.array(model.ensemble.decision.classes)[model.decide(given_x)]
    np.testing.assert_array_equal(decided, model.native.predict(given_x))


@pytest.mark.parametrize("kind", REGRESSORS)
def test_regressor(kind: str) -> None:
    x = table()
    model = read_model(fit(REGRESSORS[kind], x, 50 + 9 * x[:, 0] + x[:, 1] ** 2))
    assert_agrees(model, x)
    check_conformance(model)
    np.testing.assert_array_equal(model.decide(x), model.native.predict(x))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    "kind", ["forest", "extra trees", "boosting", "histogram boosting", "adaboost", "bagging columns"]
)
def test_scales(kind: str, scale: str) -> None:
    x = table(scale=scale)
    model = read_model(fit(CLASSIFIERS[kind], x, labels(x, 2)))
    assert_agrees(model, x)
    check_conformance(model, x)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    scale=st.sampled_from(sorted(SCALES)),
    kind=st.sampled_from(["tree", "extra tree", "forest", "boosting", "histogram boosting"]),
    n_classes=st.sampled_from([2, 3]),
    weighted=st.booleans(),
    rounded=st.booleans(),
)
def test_any_data(seed: int, scale: str, kind: str, n_classes: int, weighted: bool, rounded: bool) -> None:
    x = table(60, 3, scale, seed)
    if rounded:  # many thresholds halfway between float32 neighbours
        x = x.astype(np.float32).astype(np.float64)
    weight = np.random.default_rng(seed).random(60) + 0.1 if weighted else None
    model = read_model(fit(CLASSIFIERS[kind], x, labels(x, n_classes, seed), sample_weight=weight))
    assert_agrees(model, x)
    check_conformance(model)


@pytest.mark.parametrize("kind", ["tree", "extra tree", "forest", "extra trees", "bagging", "histogram boosting"])
def test_missing_values_in_training(kind: str) -> None:
    x = table()
    y = labels(x, 2)
    x[np.random.default_rng(1).random(x.shape) < 0.2] = np.nan
    x[:, 1] = np.where(y == "low", np.nan, 1.0)  # a split of the missing from all others
    model = read_model(fit(CLASSIFIERS[kind], x, y))
    assert model.ensemble.missing_left is not None
    assert_agrees(model, x)
    check_conformance(model, x)
    check_conformance(model)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_missing_rule_is_there_exactly_when_the_library_takes_nan(kind: str) -> None:
    x = table()
    model = read_model(fit(CLASSIFIERS[kind], x, labels(x, 2)))
    x[3, 2] = np.nan
    if model.ensemble.missing_left is None:
        with pytest.raises(ValueError, match="NaN"):
            model.native.predict(x)
    else:
        np.testing.assert_allclose(model.scores(x), model.ensemble.scores(x), rtol=0, atol=1e-12)


def test_monotone_forest() -> None:
    x = table()
    model = read_model(RandomForestClassifier(5, max_depth=3, monotonic_cst=[1, 0, 0, 0]).fit(x, labels(x, 2)))
    assert_agrees(model, x)
    check_conformance(model)


@pytest.mark.parametrize(
    ("estimator", "winner"),
    [
        (DecisionTreeClassifier(), 0),
        (GradientBoostingClassifier(n_estimators=2, init="zero"), 1),
        (HistGradientBoostingClassifier(max_iter=2), 0),
    ],
)
def test_tie(estimator: Any, winner: int) -> None:
    x, y = np.zeros((40, 1)), np.arange(40) % 2
    model = read_model(estimator.fit(x, y))
    scores = model.ensemble.scores(x[:1])
    assert model.decide(x[:1])[0] == model.ensemble.decide(scores)[0] == winner


def test_trees_of_adaboost_vote_for_the_classes_of_the_model() -> None:
    x = table()
    model = fit(CLASSIFIERS["adaboost"], x, labels(x, 3))
    model.estimators_[2].classes_ = model.classes_[::-1].copy()
    with pytest.raises(ModelError, match="votes for other classes"):
        read_model(model)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["forest", "boosting", "histogram boosting", "adaboost"])
def test_link_gives_the_probability(kind: str, n_classes: int) -> None:
    x = table()
    model = read_model(fit(CLASSIFIERS[kind], x, labels(x, n_classes)))
    scores = model.ensemble.scores(x)
    link = model.ensemble.decision.link
    if link == "logistic":
        positive = 1 / (1 + np.exp(-scores))
        probability = np.hstack([1 - positive, positive])
    elif link == "softmax":
        probability = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    else:
        probability = scores
    np.testing.assert_allclose(probability, model.native.predict_proba(x), rtol=0, atol=1e-12)


def test_link_of_the_exponential_loss() -> None:
    x = table()
    native = GradientBoostingClassifier(loss="exponential", n_estimators=5).fit(x, labels(x, 2))
    model = read_model(native)
    probability = 1 / (1 + np.exp(-model.ensemble.scores(x)[:, 0]))
    np.testing.assert_allclose(probability, native.predict_proba(x)[:, 1], rtol=0, atol=1e-12)
    assert_agrees(model, x)


def test_bagged_tree_that_misses_a_class() -> None:
    x = table()
    y = labels(x, 3)
    native = BaggingClassifier(n_estimators=20, max_samples=3, random_state=0).fit(x, y)
    assert min(len(np.unique(tree.tree_.value.argmax(axis=2))) for tree in native.estimators_) < 3
    assert_agrees(read_model(native), x)


def test_the_oracle_treelite_agrees() -> None:
    treelite = pytest.importorskip("treelite")
    x = table()
    for kind in ("forest", "boosting"):
        native = fit(CLASSIFIERS[kind], x, labels(x, 3))
        model = read_model(native)
        points = threshold_points(model.ensemble, x)
        # treelite does not cast, so it gets what scikit-learn's cast makes of the points
        oracle = treelite.gtil.predict(
            treelite.sklearn.import_model(native), points.astype(np.float32), pred_margin=True
        )
        np.testing.assert_allclose(np.squeeze(oracle), model.ensemble.scores(points), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("estimator", [*CLASSIFIERS.values(), *REGRESSORS.values()], ids=repr)
def test_unfitted(estimator: Any) -> None:
    with pytest.raises(ModelError, match="not fitted: call its fit"):
        read_model(type(estimator)(**estimator.get_params(deep=False)))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (AdaBoostRegressor(n_estimators=2), "weighted median"),
        (IsolationForest(n_estimators=2), "plausibility"),
        (BaggingClassifier(LogisticRegression(), 2), "built on LogisticRegression"),
        (BaggingClassifier(RandomForestClassifier(2), 2), "built on RandomForestClassifier"),
        (GradientBoostingClassifier(init=RandomForestClassifier(2), n_estimators=2), "init=RandomForestClassifier"),
        (
            GradientBoostingClassifier(init=DummyClassifier(strategy="stratified"), n_estimators=2),
            "init=DummyClassifier",
        ),
        (SVC(), r"no reader for sklearn\.svm.*RandomForest.*For any model with predict CounterfactualRules"),
        (make_pipeline(StandardScaler(), DecisionTreeClassifier()), r"Pipeline.*Explainer"),
    ],
)
def test_unsupported(estimator: Any, message: str) -> None:
    x = table()
    with pytest.raises(UnsupportedModelError, match=message):
        read_model(estimator.fit(x, (x[:, 0] > 0).astype(int)))


def test_several_outputs() -> None:
    x = table()
    for estimator in (RandomForestClassifier(2), DecisionTreeRegressor()):
        with pytest.raises(UnsupportedModelError, match="2 targets"):
            read_model(estimator.fit(x, (x[:, :2] > 0).astype(int)))


def test_single_class() -> None:
    with pytest.raises(ModelError, match="single class"):
        read_model(RandomForestClassifier(2).fit(table(), np.ones(120)))


def test_model_of_another_version() -> None:
    model = RandomForestClassifier(2).fit(table(), labels(table(), 2))
    del model.classes_, model.n_features_in_
    with pytest.raises(ModelError, match="another version"):
        read_model(model)


def test_not_a_model() -> None:
    with pytest.raises(UnsupportedModelError, match=r"no reader for builtins\.int.*the model comes first"):
        read_model(3)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros((2, 3)), "3 columns.*4"),
        (np.zeros(4), "two-dimensional"),
        (pd.DataFrame(np.zeros((2, 2)), columns=["a", "c"]), "lacks column.*'b', 'd'"),
    ],
)
def test_rows_that_do_not_fit(rows: Any, message: str) -> None:
    x = pd.DataFrame(table(), columns=list("abcd"))
    model = read_model(RandomForestClassifier(2).fit(x, labels(table(), 2)))
    with pytest.raises(DataError, match=message):
        model.decide(rows)


def test_columns_in_another_order() -> None:
    x = pd.DataFrame(table(), columns=list("abcd"))
    model = read_model(RandomForestClassifier(2).fit(x, labels(table(), 2)))
    np.testing.assert_array_equal(model.scores(x[list("dbca")].assign(extra=1)), model.scores(x))

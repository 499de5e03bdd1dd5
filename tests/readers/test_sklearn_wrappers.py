"""Searches, thresholds and calibrated models: read, compared with the library, and refused where they must be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import calibration
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from ocf.errors import ConformanceError, ModelError, UnsupportedModelError
from ocf.models.user_model import as_user_model
from ocf.readers import read_model
from ocf.readers.conformance import check_conformance
from ocf.trees.links import show

FOREST = RandomForestClassifier(4, max_depth=3, random_state=0)
BOOSTING = GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0)
EXPONENTIAL = GradientBoostingClassifier(n_estimators=4, max_depth=2, loss="exponential", random_state=0)
HIST = HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=3, random_state=0)
ADA = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=4, random_state=0)


def table(n: int = 60, n_classes: int = 2) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(n, 3)).round(1), columns=["a", "b", "c"])
    score = x["a"] + x["b"] * x["c"] + rng.normal(size=n) / 3
    return x, np.array(["no", "yes", "perhaps"])[(score.rank().to_numpy() * n_classes / (n + 1)).astype(int)]


def xgboost_model() -> Any:
    xgboost = pytest.importorskip("xgboost")
    return xgboost.XGBClassifier(n_estimators=4, max_depth=2, random_state=0)


def lightgbm_model() -> Any:
    lightgbm = pytest.importorskip("lightgbm")
    return lightgbm.LGBMClassifier(n_estimators=4, num_leaves=4, min_child_samples=3, verbose=-1, random_state=0)


SEARCHES = {
    "grid": GridSearchCV(FOREST, {"max_depth": [1, 2]}, cv=2),
    "random": RandomizedSearchCV(BOOSTING, {"max_depth": [1, 2]}, n_iter=2, cv=2, random_state=0),
    "halving": HalvingGridSearchCV(FOREST, {"max_depth": [1, 2]}, cv=2, random_state=0, min_resources=20),
    "of thresholds": GridSearchCV(FixedThresholdClassifier(HIST, threshold=0.4), {}, cv=2),
}
THRESHOLDS = {
    "forest": FixedThresholdClassifier(FOREST, threshold=0.3),
    "first class": FixedThresholdClassifier(FOREST, threshold=0.3, pos_label="no"),
    "margin": FixedThresholdClassifier(EXPONENTIAL, threshold=0.1, response_method="decision_function"),
    "first margin": FixedThresholdClassifier(
        BOOSTING, threshold=0.1, response_method="decision_function", pos_label="no"
    ),
    "auto": FixedThresholdClassifier(ADA),
    "tuned": TunedThresholdClassifierCV(HIST, cv=2, thresholds=10),
    "tuned pipeline": TunedThresholdClassifierCV(make_pipeline(StandardScaler(), BOOSTING), cv=2, thresholds=10),
    "of a search": FixedThresholdClassifier(GridSearchCV(FOREST, {"max_depth": [2]}, cv=2), threshold=0.7),
}
#: Scikit-learn 1.8 has temperatures.
METHODS = ("sigmoid", "isotonic", *(("temperature",) if hasattr(calibration, "_TemperatureScaling") else ()))
CALIBRATED = {
    f"{method} {name} {'folds' if folds else 'one'}": CalibratedClassifierCV(model, method=method, cv=2, ensemble=folds)
    for method in METHODS
    for name, model in {"forest": FOREST, "exponential": EXPONENTIAL, "hist": HIST, "ada": ADA}.items()
    for folds in (True, False)
} | {
    "pipelines": CalibratedClassifierCV(make_pipeline(StandardScaler(), FOREST), cv=3),
    "thresholds": FixedThresholdClassifier(CalibratedClassifierCV(BOOSTING, cv=2), threshold=0.7, pos_label="no"),
    "frozen": CalibratedClassifierCV(FrozenEstimator(clone(FOREST).fit(*table())), method="isotonic"),
}


@pytest.mark.parametrize("name", [*SEARCHES, *THRESHOLDS, *CALIBRATED, "xgboost", "xgboost folds", "lightgbm"])
@pytest.mark.parametrize("named", [True, False])
def test_the_read_model_decides_and_shows_as_the_library_does(name: str, named: bool) -> None:
    x, y = table()
    of_libraries = {
        "xgboost": lambda: FixedThresholdClassifier(xgboost_model(), threshold=0.6),
        "xgboost folds": lambda: CalibratedClassifierCV(xgboost_model(), cv=2),
        "lightgbm": lambda: CalibratedClassifierCV(lightgbm_model(), cv=2, method="isotonic"),
    }
    known = SEARCHES | THRESHOLDS | CALIBRATED
    model = clone(known[name]) if name in known else of_libraries[name]()
    if name in of_libraries and not named:
        pytest.skip("those of a table cover these")
    if name == "frozen" and not named:
        pytest.skip("it was fitted on a table before")
    given = x if named else x.to_numpy()
    labels = (y == "yes").astype(int) if "xgboost" in name else y
    model.fit(given, labels)
    user = as_user_model(model)
    columns = user.encode(x)
    check_conformance(user.trees, columns)
    shown = user.trees.ensemble.decide(user.trees.ensemble.scores(columns))
    np.testing.assert_array_equal(np.array(user.classes)[shown], model.predict(given))
    np.testing.assert_array_equal(user.decide(x), shown)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("folds", [False, True])
@pytest.mark.parametrize("name", ["forest", "boosting", "hist", "ada", "pipeline", "search"])
def test_calibrated_models_of_three_classes_are_read(method: str, name: str, folds: bool) -> None:
    models = {
        "forest": FOREST,
        "boosting": BOOSTING,
        "hist": HIST,
        "ada": ADA,
        "pipeline": make_pipeline(StandardScaler(), FOREST),
        "search": GridSearchCV(make_pipeline(StandardScaler(), BOOSTING), {}, cv=2),
    }
    x, y = table(n_classes=3)
    model = CalibratedClassifierCV(clone(models[name]), method=method, cv=2, ensemble=folds).fit(x, y)
    user = as_user_model(model)
    columns = user.encode(x)
    check_conformance(user.trees, columns)
    ensemble = user.trees.ensemble
    np.testing.assert_array_equal(np.array(user.classes)[ensemble.decide(ensemble.scores(columns))], model.predict(x))
    np.testing.assert_allclose(show(ensemble, ensemble.scores(columns)), model.predict_proba(x), atol=1e-12)


@pytest.mark.parametrize("folds", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_a_wrong_calibrator_of_three_classes_is_noticed(method: str, folds: bool) -> None:
    x, y = table(n_classes=3)
    read = read_model(CalibratedClassifierCV(FOREST, cv=2, method=method, ensemble=folds).fit(x, y))
    rule = read.ensemble.decision
    term = rule.totals[1].terms[0]
    wrong = replace(rule.totals[1], terms=(replace(term, weight=1 + 1e-9),))
    ensemble = replace(read.ensemble, decision=replace(rule, totals=(rule.totals[0], wrong, *rule.totals[2:])))
    with pytest.raises(ConformanceError, match="shows the probabilities"):
        check_conformance(replace(read, ensemble=ensemble), x.to_numpy())


def test_a_wrong_calibrator_is_noticed() -> None:
    x, y = table()
    read = read_model(CalibratedClassifierCV(FOREST, cv=2).fit(x, y))
    rule = read.ensemble.decision
    first = rule.totals[1].terms[0]
    bent = replace(first, maps=(replace(first.maps[0], x=(first.maps[0].x[0] * (1 + 1e-9), first.maps[0].x[1])),))
    bent = replace(bent, maps=(*bent.maps, *first.maps[1:]))
    wrong = replace(rule.totals[1], terms=(bent, *rule.totals[1].terms[1:]))
    ensemble = replace(read.ensemble, decision=replace(rule, totals=(rule.totals[0], wrong)))
    with pytest.raises(ConformanceError, match="shows the probabilities"):
        check_conformance(replace(read, ensemble=ensemble))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (GridSearchCV(FOREST, {}), "not fitted"),
        (GridSearchCV(FOREST, {}, cv=2, refit=False).fit(*table()), "refit=False"),
        (FixedThresholdClassifier(FOREST), "not fitted"),
        (TunedThresholdClassifierCV(FOREST), "not fitted"),
        (CalibratedClassifierCV(FOREST), "not fitted"),
        (make_pipeline(StandardScaler(), GridSearchCV(FOREST, {})), "not fitted"),
    ],
)
def test_unfitted_models_are_refused(model: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        as_user_model(model)


@pytest.mark.parametrize(
    ("model", "classes", "message"),
    [
        (GridSearchCV(LogisticRegression(), {}, cv=2), 2, "LogisticRegression is no sum of trees"),
        (FixedThresholdClassifier(LogisticRegression()), 2, "FixedThresholdClassifier holds a model that is not read"),
        (
            CalibratedClassifierCV(LogisticRegression(), cv=2),
            2,
            "CalibratedClassifierCV holds a model .* linear models are",
        ),
        (CalibratedClassifierCV(make_pipeline(StandardScaler(), LogisticRegression()), cv=2), 2, "holds a model"),
        (
            CalibratedClassifierCV(OneVsOneClassifier(FOREST), cv=2, ensemble=False),
            3,
            "decision function of a OneVsOneClassifier is no single score",
        ),
        (CalibratedClassifierCV(CalibratedClassifierCV(FOREST, cv=2), cv=2), 2, "through one more curve"),
    ],
)
def test_what_is_no_sum_of_curves_is_refused_with_the_reason(model: Any, classes: int, message: str) -> None:
    try:
        model.fit(*table(n_classes=classes))
    except ValueError:
        pytest.skip("this scikit-learn does not know the method")
    with pytest.raises(UnsupportedModelError, match=message):
        as_user_model(model)


def test_a_search_of_a_regressor_predicts_values() -> None:
    x, _ = table()
    search = GridSearchCV(RandomForestRegressor(3, max_depth=3, random_state=0), {}, cv=2).fit(x, x["a"] * x["b"])
    read = read_model(search)
    check_conformance(read, x.to_numpy())
    assert read.native is search


def test_a_member_of_category_columns_is_refused_by_name() -> None:
    x, y = table()
    x["c"] = pd.Categorical(np.where(x["c"] > 0, "up", "down"))
    model = HistGradientBoostingClassifier(max_iter=3, categorical_features="from_dtype", min_samples_leaf=3)
    model = FixedThresholdClassifier(model).fit(x, y)
    with pytest.raises(UnsupportedModelError, match="category columns of its own: put an encoder before it"):
        as_user_model(model)

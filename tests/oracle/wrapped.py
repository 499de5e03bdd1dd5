"""Random small models that hold other models, each with a question about one row, for brute force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from oracle.instances import Instance, Spec
from sklearn import calibration
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier, XGBRegressor

from ocf.readers.outputs import one_output

Rng = np.random.Generator
#: Scikit-learn 1.8 has temperatures.
METHODS = ["sigmoid", "isotonic", *(["temperature"] if hasattr(calibration, "_TemperatureScaling") else [])]


def forest(rng: Rng, trees: int = 3) -> Any:
    kind = [RandomForestClassifier, ExtraTreesClassifier][rng.integers(2)]
    depth = [None, 2, 3][rng.integers(3)]
    return kind(int(rng.integers(2, trees + 1)), max_depth=depth, max_leaf_nodes=6, random_state=int(rng.integers(99)))


def boosting(rng: Rng) -> Any:
    seed = int(rng.integers(99))
    return [
        GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=seed),
        GradientBoostingClassifier(n_estimators=3, max_depth=2, loss="exponential", random_state=seed),
        HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=4, min_samples_leaf=3, random_state=seed),
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=3, random_state=seed),
    ][rng.integers(4)]


def base(rng: Rng) -> Any:
    """A model of trees, perhaps behind a scaler."""
    model = [forest, boosting][rng.integers(2)](rng)
    if rng.random() < 0.6:
        return model
    scaler = [StandardScaler, MinMaxScaler][rng.integers(2)]()
    if rng.random() < 0.5:
        return make_pipeline(scaler, model)
    return make_pipeline(ColumnTransformer([("scaled", scaler, ["b", "a"])], remainder="passthrough"), model)


def base_of_arrays(rng: Rng) -> Any:
    """A model of trees that knows no names, perhaps behind a scaler."""
    model = [forest, boosting][rng.integers(2)](rng)
    return make_pipeline(StandardScaler(), model) if rng.random() < 0.4 else model


def threshold(rng: Rng) -> Any:
    return FixedThresholdClassifier(
        base(rng),
        threshold=float(rng.choice([0.3, 0.5, 2 / 3, 0.8])),
        pos_label=[None, "no", "yes"][rng.integers(3)],
        response_method="predict_proba",
    )


def margin_threshold(rng: Rng) -> Any:
    return FixedThresholdClassifier(
        boosting(rng),
        threshold=float(rng.normal() / 3),
        pos_label=["no", "yes"][rng.integers(2)],
        response_method="decision_function",
    )


def calibrated(rng: Rng, ensemble: bool = False) -> Any:
    method = METHODS[rng.integers(len(METHODS))]
    return CalibratedClassifierCV(base(rng), method=method, cv=2 + int(rng.integers(2)), ensemble=ensemble)


def calibrated_classes(rng: Rng, ensemble: bool = False) -> Any:
    """Of several classes; the exponential loss is one of two."""
    model = calibrated(rng, ensemble)
    return model.set_params(estimator=forest(rng)) if "exponential" in repr(model) else model


class Prefit:
    """Fits what is calibrated first, and then the calibrator."""

    def __init__(self, rng: Rng) -> None:
        self.model, self.method = base(rng), ["sigmoid", "isotonic"][rng.integers(2)]

    def fit(self, x: pd.DataFrame, y: Any) -> Any:
        return CalibratedClassifierCV(FrozenEstimator(self.model.fit(x, y)), method=self.method).fit(x, y)


def votes(rng: Rng, voting: str) -> Any:
    members = [(f"m{k}", base(rng)) for k in range(2 + int(rng.integers(2)))]
    weights = [None, [1, 2, 1][: len(members)], [0.1, 0.2, 0.3][: len(members)]][rng.integers(3)]
    return VotingClassifier(members, voting=voting, weights=weights)


def value(rng: Rng) -> Any:
    seed = int(rng.integers(99))
    model = [
        RandomForestRegressor(3, max_depth=2, random_state=seed),
        GradientBoostingRegressor(n_estimators=3, max_depth=2, random_state=seed),
        HistGradientBoostingRegressor(max_iter=3, loss="poisson", min_samples_leaf=3, max_leaf_nodes=4),
    ][rng.integers(3)]
    return make_pipeline(StandardScaler(), model) if rng.random() < 0.4 else model


class OneOutput:
    """Fits a model of several outputs, one of which has the labels or values."""

    def __init__(self, rng: Rng, values: bool) -> None:
        self.number = int(rng.integers(3))
        forests = (RandomForestRegressor if values else RandomForestClassifier)(3, max_depth=3, random_state=0)
        holders = (MultiOutputRegressor if values else MultiOutputClassifier)(value(rng) if values else base(rng))
        self.model = [forests, holders, make_pipeline(MinMaxScaler().set_output(transform="pandas"), holders)][
            rng.integers(3)
        ]

    def fit(self, x: pd.DataFrame, y: Any) -> Any:
        columns = [np.resize(y[::-1], len(y)), np.roll(y, 7), np.roll(y, 3)]
        columns[self.number] = y
        return one_output(self.model.fit(x, np.column_stack(columns)), self.number)


def final_trees(rng: Rng, classes: int = 2) -> Any:
    """A final model of trees."""
    seed = int(rng.integers(99))
    kinds = [
        DecisionTreeClassifier(max_depth=3, random_state=seed),
        RandomForestClassifier(3, max_depth=3, random_state=seed),
        HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=4, min_samples_leaf=3, random_state=seed),
        GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=seed),
        XGBClassifier(n_estimators=3, max_depth=2),
    ]
    return kinds[rng.integers(len(kinds))]


def stack_of_trees(rng: Rng) -> Any:
    """Trees over what trees show; over the table as well where no member has a Pipeline of its own."""
    passthrough = rng.random() < 0.6
    model = [forest, boosting] if passthrough else [base]
    members = [(name, model[rng.integers(len(model))](rng)) for name in "mn"]
    stack = StackingClassifier(members, final_trees(rng), cv=2, passthrough=passthrough)
    return make_pipeline(StandardScaler(), stack) if rng.random() < 0.3 else stack


def stack_of_values(rng: Rng) -> Any:
    seed, passthrough = int(rng.integers(99)), rng.random() < 0.5
    final = [
        RandomForestRegressor(3, max_depth=3, random_state=seed),
        GradientBoostingRegressor(n_estimators=3, max_depth=2, random_state=seed),
    ][rng.integers(2)]
    members = [
        (n, RandomForestRegressor(3, max_depth=2, random_state=k) if passthrough else value(rng))
        for k, n in enumerate("mn")
    ]
    return StackingRegressor(members, final, cv=2, passthrough=passthrough)


def transformed(rng: Rng) -> Any:
    """A regressor of logarithms, or of scaled values."""
    regressor = XGBRegressor(n_estimators=3, max_depth=2, n_jobs=1) if rng.random() < 0.3 else value(rng)
    if rng.random() < 0.5:
        pairs = [(np.log, np.exp), (np.log1p, np.expm1), (None, None)]
        func, back = pairs[rng.integers(3)]
        return TransformedTargetRegressor(positive(regressor), func=func, inverse_func=back, check_inverse=False)
    scalers = [StandardScaler(), StandardScaler(with_mean=False), MinMaxScaler(), RobustScaler(), MaxAbsScaler()]
    return TransformedTargetRegressor(positive(regressor), transformer=scalers[rng.integers(5)])


def positive(regressor: Any) -> Any:
    """The regressor, with a loss that takes negative targets."""
    return regressor.set_params(**{k: "squared_error" for k, v in regressor.get_params().items() if v == "poisson"})


#: By name, how an unfitted model is drawn.
WRAPPERS: dict[str, Callable[[Rng], Any]] = {
    "search": lambda rng: GridSearchCV(base(rng), {}, cv=2),
    "pipeline around a search": lambda rng: make_pipeline(
        StandardScaler().set_output(transform="pandas"), GridSearchCV(base(rng), {}, cv=2)
    ),
    "threshold": threshold,
    "threshold of a margin": margin_threshold,
    "tuned threshold": lambda rng: TunedThresholdClassifierCV(base(rng), cv=2, thresholds=20),
    "calibrated": calibrated,
    "calibrated before": Prefit,
    "calibrated folds": lambda rng: calibrated(rng, ensemble=True),
    "three classes calibrated": calibrated_classes,
    "three classes calibrated by folds": lambda rng: calibrated_classes(rng, ensemble=True),
    "threshold of calibrated folds": lambda rng: FixedThresholdClassifier(
        calibrated(rng, ensemble=True), threshold=float(rng.choice([0.4, 0.6]))
    ),
    "soft vote": lambda rng: votes(rng, "soft"),
    "hard vote": lambda rng: votes(rng, "hard"),
    "stack": lambda rng: StackingClassifier([("m", base(rng)), ("n", base(rng))], cv=2),
    "stack under trees": stack_of_trees,
    "stack of values under trees": stack_of_values,
    "three classes in a stack": lambda rng: StackingClassifier(
        [("m", forest(rng)), ("n", forest(rng))], [None, final_trees(rng)][rng.integers(2)], cv=2
    ),
    "vote of values": lambda rng: VotingRegressor([("m", value(rng)), ("n", value(rng))]),
    "transformed values": transformed,
    "stack of values": lambda rng: StackingRegressor([("m", value(rng)), ("n", value(rng))], cv=2),
    "three classes one by one": lambda rng: OneVsRestClassifier(base(rng)),
    "three classes one against one": lambda rng: OneVsOneClassifier(base_of_arrays(rng)),
    "three classes' curves one by one": lambda rng: OneVsRestClassifier(XGBClassifier(n_estimators=3, max_depth=2)),
    "one output": lambda rng: OneOutput(rng, values=False),
    "one output of values": lambda rng: OneOutput(rng, values=True),
    "soft vote of three classes": lambda rng: VotingClassifier([("m", forest(rng)), ("n", forest(rng))], voting="soft"),
}


def make(name: str, seed: int) -> Instance:
    """The instance of a wrapper and a seed.

    Parameters
    ----------
    name : str
        As in `WRAPPERS`.
    seed : int
    """
    rng = np.random.default_rng([seed, *map(ord, name)])
    table = pd.DataFrame(rng.normal(size=(40, 3)).round(1), columns=["a", "b", "c"])
    if rng.random() < 0.3:
        table["c"] = rng.integers(0, 4, 40)
    score = table.to_numpy() @ rng.normal(size=3) + rng.normal(size=40) / 3
    y: Any = np.where(score > np.median(score), "yes", "no")
    if "three" in name:
        y = np.where(score > np.quantile(score, 0.7), "more", y)
    if "values" in name:
        y = np.exp(score / 2)
    model = WRAPPERS[name](rng).fit(table, y)
    row = table.iloc[[int(rng.integers(40))]]
    question: dict[str, Any] = {"target": ["yes", "no"][rng.integers(2)], "norm": ["l1", "l0", "l2"][rng.integers(3)]}
    if "values" in name:
        question["target"] = [(float(np.quantile(y, 0.7)), None), (None, float(np.quantile(y, 0.3)))][rng.integers(2)]
    sums = (
        isinstance(model, StackingClassifier) and len(model.classes_) > 2 and hasattr(model.final_estimator_, "coef_")
    )
    shows = hasattr(model, "predict_proba") and not isinstance(model, OneVsRestClassifier) and not sums
    if rng.random() < 0.5 and shows:
        shown = model.predict_proba(table)[:, list(model.classes_).index(question["target"])]
        # often exactly what some row is shown, or next to it
        question["probability"] = float(rng.choice([0.5, 0.7, *shown[shown > 0], *np.nextafter(shown[shown > 0], 1.0)]))
        question["probability"] = min(question["probability"], 1.0)
    return Instance(Spec(name, "wrapped", seed), model, table, row, {}, question)

"""Random small instances: a table, a model trained on it, and a question about one row.

An instance is made from its `Spec` alone, so ``make(Spec("forest", "pipeline", 7))`` replays a failure. To extend the
harness, add a line to `LIBRARIES` (a model), a maker to `COLUMNS` (a kind of feature) or a layout to `LAYOUTS` (a way
in which a table reaches the model).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

Rng = np.random.Generator


class Spec(NamedTuple):
    """Everything that an instance depends on.

    `shrink` counts how often trees were taken away to keep the instance small enough for brute force.
    """

    library: str
    layout: str
    seed: int
    shrink: int = 0


class Size(NamedTuple):
    """Of a model to be trained."""

    trees: int
    depth: int
    seed: int


@dataclass(frozen=True)
class Instance:
    """A trained model and a question about one row.

    Attributes
    ----------
    spec : Spec
    model : estimator
        The library's own object or a Pipeline.
    data : DataFrame or array
        As the model was trained on.
    row : DataFrame or array
        One row, in the container and columns of `data`.
    features : dict
        Settings, as `ocf.Explainer` takes them.
    question : dict
        Keyword arguments of `ocf.Explainer.explain`.
    """

    spec: Spec
    model: Any
    data: pd.DataFrame | np.ndarray
    row: pd.DataFrame | np.ndarray
    features: dict[str, dict[str, Any]]
    question: dict[str, Any]


@dataclass(frozen=True)
class Column:
    """One random feature.

    Attributes
    ----------
    name : str
    values : Series
    setting : dict
        What the user says of it.
    encoder : transformer or None
        For Pipelines.
    dummies : DataFrame or None
        Indicator columns that take the place of `values`.
    """

    name: str
    values: pd.Series
    setting: dict[str, Any] = field(default_factory=dict)
    encoder: Any = "passthrough"
    dummies: pd.DataFrame | None = None

    def table(self) -> pd.DataFrame:
        return self.values.to_frame() if self.dummies is None else self.dummies

    def signal(self, rng: Rng) -> np.ndarray:
        """What the labels depend on."""
        codes = self.values.fillna(self.values.mode()[0]).rank(method="dense").to_numpy(float)
        effect = rng.permutation(int(codes.max()) + 1)[codes.astype(int)] if rng.random() < 0.3 else codes
        return (effect - effect.mean()) / (effect.std() + 1e-9)


# -- models ----------------------------------------------------------------------------------------------------


def _xgboost(size: Size) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(
        n_estimators=size.trees, max_depth=size.depth, learning_rate=0.5, random_state=size.seed, n_jobs=1,
        enable_categorical=True, max_cat_to_onehot=1 + 9 * (size.seed % 2),
    )  # fmt: skip


def _lightgbm(size: Size) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=size.trees, max_depth=size.depth, num_leaves=2**size.depth, learning_rate=0.5,
        min_child_samples=3, min_data_in_bin=1, random_state=size.seed, n_jobs=1, verbose=-1,
        min_data_per_group=1, cat_smooth=0.1, cat_l2=0.0, max_cat_to_onehot=1 + 9 * (size.seed % 2),
    )  # fmt: skip


def _hist_regressor(size: Size) -> Any:
    loss = ("squared_error", "absolute_error", "poisson", "gamma")[size.seed % 4]
    return HistGradientBoostingRegressor(
        loss=loss, max_iter=size.trees, max_depth=size.depth, learning_rate=0.5, min_samples_leaf=3,
        random_state=size.seed, early_stopping=False,
    )  # fmt: skip


def _xgboost_regressor(size: Size) -> Any:
    from xgboost import XGBRegressor

    objective = ("reg:squarederror", "count:poisson", "reg:gamma", "reg:tweedie")[size.seed % 4]
    return XGBRegressor(
        objective=objective, n_estimators=size.trees, max_depth=size.depth, learning_rate=0.5, random_state=size.seed,
        n_jobs=1,
    )  # fmt: skip


def _lightgbm_regressor(size: Size) -> Any:
    from lightgbm import LGBMRegressor

    objective = ("regression", "poisson", "gamma", "regression")[size.seed % 4]
    return LGBMRegressor(
        objective=objective, reg_sqrt=size.seed % 4 == 3, n_estimators=size.trees, max_depth=size.depth,
        num_leaves=2**size.depth, learning_rate=0.5, min_child_samples=3, min_data_in_bin=1, random_state=size.seed,
        n_jobs=1, verbose=-1,
    )  # fmt: skip


#: Name -> maker of an unfitted regressor.
REGRESSORS: dict[str, Callable[[Size], Any]] = {
    "tree_regressor": lambda s: DecisionTreeRegressor(max_depth=s.depth + 2, random_state=s.seed),
    "forest_regressor": lambda s: RandomForestRegressor(s.trees, max_depth=s.depth, random_state=s.seed, n_jobs=1),
    "extra_trees_regressor": lambda s: ExtraTreesRegressor(s.trees, max_depth=s.depth, random_state=s.seed, n_jobs=1),
    "gradient_boosting_regressor": lambda s: GradientBoostingRegressor(
        n_estimators=s.trees, max_depth=s.depth, learning_rate=0.5, random_state=s.seed
    ),
    "hist_gradient_boosting_regressor": _hist_regressor,
    "xgboost_regressor": _xgboost_regressor,
    "lightgbm_regressor": _lightgbm_regressor,
}

#: Name -> maker of an unfitted classifier.
LIBRARIES: dict[str, Callable[[Size], Any]] = {
    "tree": lambda s: DecisionTreeClassifier(max_depth=s.depth + 2, random_state=s.seed),
    "forest": lambda s: RandomForestClassifier(s.trees, max_depth=s.depth, random_state=s.seed, n_jobs=1),
    # pure leaves vote with whole numbers, so that an even number of trees ties exactly
    "pure_forest": lambda s: RandomForestClassifier(s.trees + s.trees % 2, random_state=s.seed, n_jobs=1),
    "extra_trees": lambda s: ExtraTreesClassifier(s.trees, max_depth=s.depth, random_state=s.seed, n_jobs=1),
    "bagging": lambda s: BaggingClassifier(
        DecisionTreeClassifier(max_depth=s.depth), s.trees, max_features=0.8, random_state=s.seed
    ),
    "gradient_boosting": lambda s: GradientBoostingClassifier(
        n_estimators=s.trees, max_depth=s.depth, learning_rate=0.5, random_state=s.seed
    ),
    "hist_gradient_boosting": lambda s: HistGradientBoostingClassifier(
        max_iter=s.trees, max_depth=s.depth, learning_rate=0.5, min_samples_leaf=3, random_state=s.seed,
        early_stopping=False,
    ),
    "adaboost": lambda s: AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=s.depth), n_estimators=s.trees, random_state=s.seed
    ),
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
}  # fmt: skip

#: Libraries with a rule for missing values.
TAKES_MISSING = (
    "tree", "forest", "extra_trees", "hist_gradient_boosting", "xgboost", "lightgbm", "tree_regressor",
    "forest_regressor", "hist_gradient_boosting_regressor", "xgboost_regressor", "lightgbm_regressor",
)  # fmt: skip
#: Libraries that want class labels 0, 1, ….
WANTS_CODES = ("xgboost",)


# -- columns ---------------------------------------------------------------------------------------------------


def _numeric(rng: Rng, n: int, name: str) -> Column:
    scale = 10.0 ** rng.integers(-2, 4)
    values = rng.normal(rng.choice([0.0, 3.0]), 1.0, n)
    setting: dict[str, Any] = {}
    kind = rng.integers(4)
    if kind == 0:  # on a grid of decimals, which most floats are not
        step = float(rng.choice([0.01, 0.1, 0.25, 0.3]))
        values, setting["step"] = np.round(values / step) * step, step
    elif kind == 1:
        values = np.round(values, 1) * scale
    elif kind == 2:
        values = values * scale
        setting["step"] = float(10.0 ** np.floor(np.log10(np.ptp(values) / 10)))
    else:
        values = values * scale
    if rng.random() < 0.2:
        spread = float(np.ptp(values))
        setting["bounds"] = (float(values.min() - 0.3 * spread), float(values.max() + 0.1 * spread))
    return Column(name, pd.Series(values, name=name), setting, _scaler(rng))


def _scaler(rng: Rng) -> Any:
    scalers = ["passthrough", StandardScaler(), MinMaxScaler(), RobustScaler(), FunctionTransformer(np.negative)]
    return scalers[rng.integers(len(scalers))]


def _integer(rng: Rng, n: int, name: str) -> Column:
    dtype, scaler = str(rng.choice(["int64", "int32", "int8", "uint8"])), _scaler(rng)
    if dtype == "uint8" and isinstance(scaler, FunctionTransformer):
        scaler = "passthrough"  # minus 1 is 255 there, which no threshold can follow
    values = rng.integers(0, rng.integers(3, 9), n).astype(dtype)
    return Column(name, pd.Series(values, name=name), {"kind": "integer"}, scaler)


def _binary(rng: Rng, n: int, name: str) -> Column:
    values = pd.Series(rng.permutation(np.arange(n) % 2), name=name)
    return Column(name, values.astype(bool) if rng.random() < 0.3 else values)


def _ordinal(rng: Rng, n: int, name: str) -> Column:
    levels = [0, 1, 5, 6, 10][: rng.integers(3, 6)]
    values = pd.Series(np.array(levels)[rng.permutation(np.arange(n) % len(levels))], name=name)
    return Column(name, values, {"kind": "ordinal"}, _scaler(rng))


def _words(rng: Rng, n: int, name: str) -> Column:
    levels = ["none", "low", "middle", "high"][: rng.integers(3, 5)]
    values = pd.Series(np.array(levels)[rng.permutation(np.arange(n) % len(levels))], name=name)
    return Column(name, values, {"kind": "ordinal", "levels": levels}, OrdinalEncoder(categories=[levels]))


def _category(rng: Rng, n: int, name: str) -> Column:
    levels = ["red", "green", "blue", "grey"][: rng.integers(2, 5)]
    values = pd.Series(np.array(levels)[rng.permutation(np.arange(n) % len(levels))], name=name)
    drop = "first" if rng.random() < 0.2 else None
    encoder = OneHotEncoder(drop=drop, sparse_output=bool(rng.random() < 0.5))
    return Column(name, values, {}, OrdinalEncoder() if rng.random() < 0.2 else encoder)


def _dummies(rng: Rng, n: int, name: str) -> Column:
    plain = _category(rng, n, name)
    levels = sorted(plain.values.unique())
    table = pd.get_dummies(plain.values, prefix=name, dtype=rng.choice(["uint8", "bool", "float64"]))
    setting: dict[str, Any] = {"kind": "categorical"}
    if rng.random() < 0.4:
        table = table.iloc[:, 1:]
        setting |= {"base": levels[0], "columns": {level: f"{name}_{level}" for level in levels[1:]}}
    elif rng.random() < 0.5:
        setting["columns"] = list(table.columns)
    else:
        setting["columns"] = {level: f"{name}_{level}" for level in levels}
    return Column(name, plain.values, setting, dummies=table)


def _native_category(rng: Rng, n: int, name: str) -> Column:
    plain = _category(rng, n, name)
    return Column(name, plain.values.astype("category"))


#: Kind of a feature -> maker of a random column.
COLUMNS: dict[str, Callable[[Rng, int, str], Column]] = {
    "numeric": _numeric,
    "integer": _integer,
    "binary": _binary,
    "ordinal": _ordinal,
    "words": _words,
    "category": _category,
    "dummies": _dummies,
    "native_category": _native_category,
}

_PLAIN = ("numeric", "numeric", "integer", "binary", "ordinal")

#: Name of a way to give a table to a model -> kinds of features that it can hold.
LAYOUTS = {
    "frame": _PLAIN,
    "frame32": _PLAIN,
    "array": _PLAIN,
    "array32": _PLAIN,
    "dummies": ("numeric", "integer", "binary", "dummies", "dummies"),
    "pipeline": ("numeric", "numeric", "integer", "binary", "ordinal", "words", "category", "category"),
    "pipeline32": ("numeric", "numeric", "integer", "ordinal"),
    "native": ("numeric", "integer", "native_category", "native_category"),
}

#: Libraries whose own splits on categories ocf takes as they are.
NATIVE = ("hist_gradient_boosting", "hist_gradient_boosting_regressor", "xgboost", "lightgbm")


def specs(library: str) -> st.SearchStrategy[Spec]:
    """Hypothesis strategy of instances of a library."""
    return st.builds(
        Spec, st.just(library), st.sampled_from(layouts_of(library)), st.integers(0, 2**32 - 1), st.just(0)
    )


def layouts_of(library: str) -> list[str]:
    """Layouts in which a library can be given a table."""
    return [name for name in LAYOUTS if name != "native" or library in NATIVE]


# -- instances -------------------------------------------------------------------------------------------------


def make(spec: Spec) -> Instance:
    """Make the instance of a spec."""
    rng = np.random.default_rng([spec.seed, sum(map(ord, spec.library + spec.layout))])
    n_rows = int(rng.integers(20, 61))
    if spec.library == "pure_forest":
        n_rows = int(rng.integers(14, 22))
    kinds = LAYOUTS[spec.layout]
    stem = "x" if "array" in spec.layout else "f"  # how ocf names the columns of an array
    columns = [
        COLUMNS[kinds[rng.integers(len(kinds))]](rng, n_rows, f"{stem}{j}") for j in range(int(rng.integers(2, 5)))
    ]
    labels = _labels(rng, columns, n_rows, codes=spec.library in WANTS_CODES)
    if spec.library in REGRESSORS:
        labels = _values(rng, columns, n_rows)
    if spec.library in TAKES_MISSING and rng.random() < 0.35:
        columns = [_with_missing(rng, c) for c in columns]
    data = _container(pd.concat([c.table() for c in columns], axis=1), spec.layout)
    size = Size(int(rng.integers(1, 7)), int(rng.integers(1, 4)), int(rng.integers(1000)))
    model = _train(spec, size, columns, data, labels)
    row = _row(rng, columns, data)
    question = _question(rng, columns, model, labels, row)
    question |= _aim(rng, model, data, question["target"])
    features = {c.name: s for c in columns if (s := c.setting | _wishes(rng, c))}
    return Instance(spec, model, data, row, features, question)


def _labels(rng: Rng, columns: list[Column], n: int, *, codes: bool) -> np.ndarray:
    n_classes = int(rng.choice([2, 2, 3]))
    score = sum(c.signal(rng) * rng.normal() for c in columns) + rng.normal(0, 0.4, n)
    index = np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
    return index if codes or rng.random() < 0.5 else np.array(["no", "perhaps", "yes"])[index]


def _values(rng: Rng, columns: list[Column], n: int) -> np.ndarray:
    """Positive values, which every loss takes; whole numbers at times, so that means tie."""
    score = sum(c.signal(rng) * rng.normal() for c in columns) + rng.normal(0, 0.4, n)
    values = np.exp(score / (score.std() + 1e-9)) * 10.0 ** rng.integers(-1, 4)
    return np.ceil(values) if rng.random() < 0.3 else values


def _with_missing(rng: Rng, column: Column) -> Column:
    if not pd.api.types.is_float_dtype(column.values) or rng.random() < 0.5:
        return column
    values = column.values.mask(rng.random(len(column.values)) < 0.15)
    encoder = column.encoder
    if rng.random() < 0.5:
        encoder = make_pipeline(SimpleImputer(add_indicator=bool(rng.random() < 0.5)), StandardScaler())
    elif isinstance(encoder, FunctionTransformer):
        encoder = "passthrough"
    return Column(column.name, values, column.setting, encoder)


def _container(table: pd.DataFrame, layout: str) -> pd.DataFrame | np.ndarray:
    if layout in ("frame32", "array32", "pipeline32"):
        table = table.astype(np.float32)
    return table.to_numpy(np.float32 if layout == "array32" else np.float64) if "array" in layout else table


def _train(spec: Spec, size: Size, columns: list[Column], data: Any, labels: np.ndarray) -> Any:
    shrunk = Size(max(1, size.trees - spec.shrink), max(1, size.depth - spec.shrink // 4), size.seed)
    model = (LIBRARIES | REGRESSORS)[spec.library](shrunk)
    if spec.shrink and spec.library == "pure_forest":
        model.set_params(n_estimators=2, max_features=1.0)
    if spec.layout.startswith("pipeline"):
        encoders = ColumnTransformer([(c.name, c.encoder, [c.name]) for c in columns], sparse_threshold=0.0)
        model = Pipeline([("encode", encoders), ("model", model)])
    return model.fit(data, labels)


def _row(rng: Rng, columns: list[Column], data: Any) -> Any:
    """A row of the data, some of its numbers moved off the grid or out of the data's range."""
    missing = np.flatnonzero(pd.DataFrame(data).isna().any(axis=1))
    k = int(rng.choice(missing) if len(missing) and rng.random() < 0.5 else rng.integers(len(data)))
    row = data[[k]].copy() if isinstance(data, np.ndarray) else data.iloc[[k]].copy()
    for j, column in enumerate(columns):
        if not pd.api.types.is_float_dtype(column.values) or column.dummies is not None or rng.random() < 0.6:
            continue
        low, high = column.values.min(), column.values.max()
        moved = rng.uniform(low - 0.3 * (high - low), high + 0.3 * (high - low))
        if isinstance(row, np.ndarray):
            row[0, j] = moved
        else:
            row[column.name] = np.array([moved]).astype(data[column.name].dtype)
    return row


def _wishes(rng: Rng, column: Column) -> dict[str, Any]:
    """Random actionability, weights, scale and permitted range of a feature."""
    out: dict[str, Any] = {}
    ordered = column.setting.get("kind") != "categorical" and column.values.dtype.kind in "ifub"
    if rng.random() < 0.3:
        out["actionability"] = str(rng.choice(["fixed", "increasing", "decreasing"] if ordered else ["fixed", "free"]))
    if rng.random() < 0.3:
        out["weight"] = (float(rng.integers(0, 4)), float(rng.integers(1, 4)))
    if rng.random() < 0.2:
        out["scale"] = float(rng.choice([0.5, 2.0, 10.0]))
    if rng.random() < 0.2:
        out["permitted_range"] = _permitted(rng, column)
    return out


def _permitted(rng: Rng, column: Column) -> tuple[Any, ...]:
    values = column.values.dropna()
    if column.setting.get("kind") in (None, "integer") and values.dtype.kind in "iuf" and values.nunique() > 2:
        low, high = sorted(rng.choice(values.to_numpy(float), 2))
        return float(low), float(high)
    levels = [v.item() if isinstance(v, np.generic) else v for v in sorted(values.unique())]
    chosen = [v for v in levels if rng.random() < 0.6]
    return tuple(chosen or levels[:1])


def _question(rng: Rng, columns: list[Column], model: Any, labels: np.ndarray, row: Any) -> dict[str, Any]:
    norms: list[Any] = ["l0", "l1", "l2", {"l0": 0.1, "l1": 1.0}, {"l0": 1.0, "l1": 0.3, "l2": 2.0}]
    predicted = model.predict(row)[0] if hasattr(model, "classes_") else None
    classes = [c for c in np.unique(labels).tolist() if c != predicted or rng.random() < 0.1]
    question: dict[str, Any] = {"target": classes[rng.integers(len(classes))], "norm": norms[rng.integers(len(norms))]}
    if rng.random() < 0.2:
        question["features_to_vary"] = [c.name for c in columns if rng.random() < 0.8]
    if rng.random() < 0.2:
        question["weights"] = {columns[0].name: (2.0, 0.5)}
    return question


def _aim(rng: Rng, model: Any, data: Any, target: Any) -> dict[str, Any]:
    """A target of any kind that the model knows, now and then one that only just can be reached."""
    if not hasattr(model, "classes_"):
        return {"target": _interval(rng, np.asarray(model.predict(data), float))}
    draw, aim = rng.random(), {"target": target}
    if draw < 0.35 and len(model.classes_) > 2:
        others = [c for c in model.classes_.tolist() if c != target]
        aim["target"] = [target, others[rng.integers(len(others))]]
    if 0.2 < draw < 0.6 and hasattr(model, "predict_proba"):
        shown = np.asarray(model.predict_proba(data), float)[:, model.classes_.tolist().index(target)]
        reached = float(rng.choice(shown))
        aim["probability"] = reached if rng.random() < 0.4 and reached > 0 else float(rng.choice([0.3, 0.55, 0.7, 0.9]))
    return aim


def _interval(rng: Rng, predicted: np.ndarray) -> tuple[float | None, float | None]:
    """Bounds at predictions or off them, one side open or not, or a single value."""
    low, high = sorted(float(v) for v in rng.choice(predicted, 2))
    if rng.random() < 0.5:
        low, high = low - 0.01 * abs(low), high + 0.01 * abs(high)
    kinds: list[tuple[float | None, float | None]] = [(low, high), (high, None), (None, low), (high, high)]
    return kinds[rng.integers(len(kinds))]

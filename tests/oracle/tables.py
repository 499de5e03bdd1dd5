"""Random tables, the models trained on them, and a question about one row, for an oracle that starts from the table.

An instance is made from its theme and seed alone: ``make("far rows", 7)`` replays a failure. To extend the oracle, add
a line to `COLUMNS` (a kind of column), `NUMBER_STEPS` or `LEVEL_STEPS` (a preprocessing of one), `MODELS` or `HOLDERS`,
`ROWS` (a way in which a row is given) or `THEMES` (what is drawn more often together).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from catboost import CatBoostClassifier, CatBoostError
from category_encoders import OneHotEncoder as CategoryOneHot
from category_encoders import OrdinalEncoder as CategoryOrdinal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.random_projection import GaussianRandomProjection
from sklearn.tree import DecisionTreeClassifier

Rng = np.random.Generator


@dataclass(frozen=True)
class TableInstance:
    """A trained model, the table that describes its features, and a question about one row.

    Attributes
    ----------
    theme : str
    seed : int
    model : estimator
        The library's own object or a Pipeline.
    named : bool
        Whether it was fitted on a DataFrame; otherwise it takes arrays.
    data : DataFrame
        What ocf is told of the table: some of the training rows.
    row : DataFrame, Series, or list
        As it is given to ocf.
    frame : DataFrame
        The same row as a table that the model takes.
    features, question : dict
        Settings, as `ocf.Explainer` and `ocf.Explainer.explain` take them.
    monotone : dict
        The user's word on functions, as `ocf.Explainer` takes it.
    library : str
        Of `LIBRARIES`: in what tables ocf is told of data and row, and, if the model was fitted on such, the model.
    whole : bool
        Whether the columns of the tables that ocf and the model get are labelled by numbers, and not by their texts.
    """

    theme: str
    seed: int
    model: Any
    named: bool
    data: pd.DataFrame
    row: Any
    frame: pd.DataFrame
    features: dict[str, dict[str, Any]]
    question: dict[str, Any]
    monotone: dict[str, str] = field(default_factory=dict)
    library: str = "pandas"
    whole: bool = False

    def given(self, table: pd.DataFrame) -> Any:
        """A table as the model takes it."""
        return for_model(table, self.library) if self.named and not self.whole else numbered(table)

    @property
    def told(self) -> Any:
        """The data as ocf is told of it."""
        return LIBRARIES[self.library](numbered(self.data) if self.whole else self.data)

    def predict(self, table: pd.DataFrame) -> np.ndarray:
        """What the user's own model says of a table."""
        return np.ravel(self.model.predict(self.given(table)))

    def batch(self) -> pd.DataFrame:
        """The row, first, and some of the data in its dtypes, as far as these hold them."""
        others = self.data.iloc[[len(self.data) // 3, -1]][list(self.frame.columns)]
        try:
            held = others.astype(self.frame.dtypes.to_dict())
        except (ValueError, TypeError):
            return self.frame
        together = pd.concat([self.frame, held[(held.isna() == others.isna()).all(axis=1)]], ignore_index=True)
        return together if together.dtypes.equals(self.frame.dtypes) else self.frame

    def encode(self, table: pd.DataFrame) -> np.ndarray:
        """What the trees get to see of a table without native categories, (n, n_model_columns)."""
        given = self.given(table)
        encoded = self.model[:-1].transform(given) if isinstance(self.model, Pipeline) else given
        encoded = encoded.toarray() if hasattr(encoded, "toarray") else encoded
        encoded = encoded.to_pandas() if isinstance(encoded, pl.DataFrame) else encoded
        return np.column_stack([_floats(column) for column in pd.DataFrame(encoded).items()])

    def describe(self) -> str:
        """How to see this instance again, and what is in it."""
        kinds = ", ".join(f"{name}: {dtype}" for name, dtype in self.data.dtypes.items())
        return (
            f"oracle.tables.make({self.theme!r}, {self.seed})\n  {self.library}: {kinds}; {len(self.data)} rows\n"
            f"  row: {self.frame.iloc[0].to_dict()} as {type(self.row).__name__}"
            f" of {', '.join(map(str, self.frame.dtypes))}\n  features: {self.features}\n  question: {self.question}\n"
            f"  model: {' '.join(repr(self.model).split())}"
        )


def _floats(column: tuple[Any, pd.Series]) -> np.ndarray:
    values = column[1]
    if not pd.api.types.is_numeric_dtype(values.dtype):  # categories, objects, text
        try:
            return values.astype("Float64").to_numpy(np.float64, na_value=np.nan)
        except (TypeError, ValueError):
            return np.zeros(len(values))  # levels of a native category: they have no thresholds
    return values.to_numpy(np.float64, na_value=np.nan)


# -- tables of other libraries ---------------------------------------------------------------------------------


def _structured(table: pd.DataFrame) -> np.ndarray:
    records = table.to_records(index=False)
    return np.array(records.tolist(), dtype=records.dtype)


#: Library -> a table of pandas as one of the library's.
LIBRARIES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda table: table,
    "polars": pl.from_pandas,
    "pyarrow": lambda table: pl.from_pandas(table).to_arrow(),
    "structured": _structured,
    "dicts": lambda table: [{str(k): v for k, v in row.items()} for row in table.to_dict("records")],
}


def numbered(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose columns are labelled by their places: scikit-learn sees no names."""
    return table.set_axis(range(table.shape[1]), axis=1)


def for_model(table: pd.DataFrame, library: str) -> Any:
    """A table as a model is fitted on it: scikit-learn takes those of pandas and polars."""
    return LIBRARIES[library](table) if library == "polars" else table


# -- columns ---------------------------------------------------------------------------------------------------


def _coded(rng: Rng, n: int) -> np.ndarray:
    """Measurements of which some are codes: 0 and 99."""
    values = np.round(rng.normal(40, 15, n), 2)
    values[rng.random(n) < 0.15] = 0.0
    values[rng.random(n) < 0.15] = 99.0
    return values


def _words(rng: Rng, n: int) -> np.ndarray:
    levels = np.array(["ash", "birch", "cedar", "date", "elm", "fir"], dtype=object)[: rng.integers(2, 7)]
    return levels[np.minimum(rng.integers(0, len(levels) + 1, n), len(levels) - 1)]


def _dates(rng: Rng, n: int) -> np.ndarray:
    return np.datetime64("2021-05-01") + rng.integers(0, 400, n).astype("timedelta64[D]")


#: Name -> maker of n values.
COLUMNS: dict[str, Callable[[Rng, int], pd.Series]] = {
    "float64": lambda rng, n: pd.Series(rng.normal(rng.normal(0, 10), 10.0 ** rng.integers(-2, 4), n)),
    "float32": lambda rng, n: pd.Series(rng.normal(rng.normal(0, 10), 10.0 ** rng.integers(-2, 3), n), dtype="float32"),
    "coarse": lambda rng, n: pd.Series(rng.integers(0, 9, n) / 4),
    "coded": lambda rng, n: pd.Series(_coded(rng, n)),
    "skewed": lambda rng, n: pd.Series(rng.exponential(3.0, n)),
    "int64": lambda rng, n: pd.Series(rng.integers(-20, 60, n)),
    "int8": lambda rng, n: pd.Series(rng.integers(-5, 8, n), dtype="int8"),
    "Int64": lambda rng, n: pd.Series(rng.integers(0, 12, n), dtype="Int64"),
    "Float64": lambda rng, n: pd.Series(np.round(rng.normal(0, 5, n), 1), dtype="Float64"),
    "bool": lambda rng, n: pd.Series(rng.random(n) < 0.5),
    "flag": lambda rng, n: pd.Series(rng.integers(0, 2, n)),
    "text": lambda rng, n: pd.Series(_words(rng, n), dtype=object),
    "category": lambda rng, n: pd.Series(_words(rng, n)).astype("category"),
    "colour": lambda rng, n: pd.Series(rng.choice(["blue", "green", "grey", "pink", "red", "white"], n), dtype=object),
    "object": lambda rng, n: pd.Series(np.round(rng.normal(30, 9, n), 1), dtype=object),
    "whole object": lambda rng, n: pd.Series(rng.integers(0, 30, n), dtype=object),
    "Float32": lambda rng, n: pd.Series(rng.normal(2, 5, n), dtype="Float32"),
    "arrow": lambda rng, n: pd.Series(np.round(rng.normal(5, 2, n), 2), dtype="double[pyarrow]"),
    "whole arrow": lambda rng, n: pd.Series(rng.integers(0, 40, n), dtype="int16[pyarrow]"),
    "date": lambda rng, n: pd.Series(_dates(rng, n)),
    "date object": lambda rng, n: pd.Series(list(_dates(rng, n).astype(object)), dtype=object),
    "zone": lambda rng, n: pd.Series(_dates(rng, n).astype("datetime64[us]")).dt.tz_localize("UTC"),
    "ordered": lambda rng, n: pd.Series(
        pd.Categorical(rng.choice(["low", "mid", "high"], n), categories=["low", "mid", "high"], ordered=True)
    ),
}
LEVELS = ("text", "colour", "category", "ordered")
FLAGS = ("bool", "flag")
DATES = ("date", "date object", "zone")
#: Columns that are told to be numbers, or dates, by more than NumPy's dtypes.
HELD_OTHERWISE = ("object", "whole object", "Float32", "arrow", "whole arrow")
NUMBERS = tuple(name for name in COLUMNS if name not in LEVELS + FLAGS + DATES + HELD_OTHERWISE)
#: Those that can hold a missing value and keep their dtype.
GAPPY = ("float64", "float32", "coarse", "coded", "skewed", "Int64", "Float64", *LEVELS)


# -- preprocessing ---------------------------------------------------------------------------------------------


def _array(values: Any) -> np.ndarray:
    out = np.asarray(values)
    return out.astype(np.float64) if out.dtype == object else out


def without_code(values: Any) -> np.ndarray:
    """Numbers with the code 99 made 0."""
    return np.where(_array(values) == 99, 0, _array(values))


def steps_with_hole(values: Any) -> np.ndarray:
    """Tens, but a value of its own for exactly 0."""
    return np.where(_array(values) == 0, 7.0, np.floor(_array(values) / 10))


def tens(values: Any) -> np.ndarray:
    """Tens, rounded down."""
    return np.floor(_array(values) / 10)


def log_of_size(values: Any) -> np.ndarray:
    """Logarithm, of the size of negative numbers: not monotone."""
    return np.log1p(np.abs(_array(values)))


def days(values: Any) -> np.ndarray:
    """Days since 1970 of dates, in tables of any library."""
    table = values.to_pandas() if isinstance(values, pl.DataFrame) else pd.DataFrame(values)
    moments = table.apply(lambda column: pd.to_datetime(column, utc=True))
    return ((moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)).to_numpy(np.float64)


#: Name -> maker of a transformer of one number column.
NUMBER_STEPS: dict[str, Callable[[Rng], Any]] = {
    "passthrough": lambda rng: "passthrough",
    "standard": lambda rng: StandardScaler(),
    "minmax": lambda rng: MinMaxScaler(clip=bool(rng.integers(2))),
    "maxabs": lambda rng: MaxAbsScaler(),
    "robust": lambda rng: RobustScaler(),
    "mean": lambda rng: SimpleImputer(add_indicator=bool(rng.integers(2))),
    "frequent": lambda rng: SimpleImputer(strategy="most_frequent", add_indicator=bool(rng.integers(2))),
    "constant": lambda rng: SimpleImputer(strategy="constant", fill_value=0),
    "zero": lambda rng: SimpleImputer(missing_values=0, add_indicator=bool(rng.integers(2))),
    "mean_standard": lambda rng: make_pipeline(SimpleImputer(), StandardScaler()),
    "bins": lambda rng: KBinsDiscretizer(
        3,
        encode=("ordinal", "onehot")[rng.integers(2)],
        strategy="uniform",
    ),
    "binary": lambda rng: Binarizer(threshold=float(np.round(rng.normal(), 2))),
    "power": lambda rng: PowerTransformer(),
    "quantile": lambda rng: QuantileTransformer(n_quantiles=10),
    "log": lambda rng: FunctionTransformer(log_of_size),
    "code": lambda rng: FunctionTransformer(without_code),
    "hole": lambda rng: FunctionTransformer(steps_with_hole),
    "drop": lambda rng: "drop",
    "onehot": lambda rng: OneHotEncoder(handle_unknown="ignore", max_categories=6),
    "codes": lambda rng: SimpleImputer(missing_values=99.0, strategy="constant", fill_value=-1.0),
    "indicator": lambda rng: make_pipeline(SimpleImputer(), MissingIndicator(missing_values=0.0, features="all")),
    "neighbours": lambda rng: KNNImputer(add_indicator=bool(rng.integers(2))),
    "size": lambda rng: FunctionTransformer((np.abs, np.square)[rng.integers(2)]),
    "cube_root": lambda rng: make_pipeline(FunctionTransformer(np.cbrt), StandardScaler()),
    "powers": lambda rng: PolynomialFeatures(int(rng.integers(2, 4))),
    "splines": lambda rng: SplineTransformer(
        int(rng.integers(3, 5)),
        degree=int(rng.integers(1, 4)),
        extrapolation=("constant", "linear", "continue")[rng.integers(3)],
    ),
    "union": lambda rng: FeatureUnion(
        [("same", "passthrough"), ("bins", KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"))],
        transformer_weights={"same": 2.0},
    ),
    "tens": lambda rng: FunctionTransformer(tens),
    "days": lambda rng: FunctionTransformer(days),
}

#: Those that are read; the others are functions that may do anything.
READ = tuple(name for name in NUMBER_STEPS if name not in ("log", "code", "hole", "days"))

#: Name -> maker of a transformer of one column of levels.
LEVEL_STEPS: dict[str, Callable[[Rng], Any]] = {
    "onehot": lambda rng: OneHotEncoder(handle_unknown="ignore"),
    "onehot_drop": lambda rng: OneHotEncoder(drop=("first", "if_binary")[rng.integers(2)]),
    "onehot_rare": lambda rng: OneHotEncoder(min_frequency=0.3, handle_unknown="infrequent_if_exist"),
    "ordinal": lambda rng: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    "target": lambda rng: TargetEncoder(random_state=int(rng.integers(2**31))),
    "filled": lambda rng: make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    ),
    "onehot_few": lambda rng: OneHotEncoder(max_categories=2, handle_unknown="infrequent_if_exist"),
    "category_ordinal": lambda rng: CategoryOrdinal(),
    "category_onehot": lambda rng: CategoryOneHot(),
    "named": lambda rng: make_pipeline(SimpleImputer(strategy="constant", fill_value="ash"), OrdinalEncoder()),
}


# -- models ----------------------------------------------------------------------------------------------------


def _xgboost(trees: int, depth: int, seed: int) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(
        n_estimators=trees, max_depth=depth, learning_rate=0.5, random_state=seed, n_jobs=1, enable_categorical=True,
        max_cat_to_onehot=1 + 9 * (seed % 2),
    )  # fmt: skip


def _lightgbm(trees: int, depth: int, seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(
        n_estimators=trees, max_depth=depth, num_leaves=2**depth, learning_rate=0.5, min_child_samples=3,
        min_data_in_bin=1, random_state=seed, n_jobs=1, verbose=-1, min_data_per_group=1, cat_smooth=0.1, cat_l2=0.0,
        max_cat_to_onehot=1 + 9 * (seed % 2),
    )  # fmt: skip


#: Name -> maker of an unfitted classifier of some trees, depth and seed.
MODELS: dict[str, Callable[[int, int, int], Any]] = {
    "tree": lambda trees, depth, seed: DecisionTreeClassifier(max_depth=depth + 1, random_state=seed),
    "forest": lambda trees, depth, seed: RandomForestClassifier(trees, max_depth=depth, random_state=seed),
    "extra": lambda trees, depth, seed: ExtraTreesClassifier(trees, max_depth=depth, random_state=seed),
    "boosting": lambda trees, depth, seed: GradientBoostingClassifier(
        n_estimators=trees, max_depth=depth, learning_rate=0.5, random_state=seed
    ),
    "hist": lambda trees, depth, seed: HistGradientBoostingClassifier(
        max_iter=trees, max_depth=depth, learning_rate=0.5, min_samples_leaf=3, random_state=seed, early_stopping=False,
        categorical_features="from_dtype",
    ),
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
}  # fmt: skip
NATIVE = ("hist", "xgboost", "lightgbm")


def _catboost(trees: int, depth: int, seed: int) -> Any:
    return CatBoostClassifier(
        iterations=trees, depth=depth, learning_rate=0.5, random_seed=seed, thread_count=1, verbose=0,
        allow_writing_files=False, one_hot_max_size=2 + 8 * (seed % 2),
    )  # fmt: skip


def _forest(trees: int, depth: int, seed: int) -> Any:
    """A forest, of one or two trees where others stand beside it."""
    return RandomForestClassifier(min(trees, 2), max_depth=depth, random_state=seed)


def _pair(trees: int, depth: int, seed: int) -> list[tuple[str, Any]]:
    return [("a", _forest(trees, depth, seed)), ("b", MODELS[("boosting", "hist", "xgboost")[seed % 3]](2, 2, seed))]


#: As `MODELS`, of models that hold others, and of those that take category columns by name.
HOLDERS: dict[str, Callable[[int, int, int], Any]] = {
    "catboost": _catboost,
    "calibrated": lambda trees, depth, seed: CalibratedClassifierCV(
        _forest(trees, depth, seed), method=("sigmoid", "isotonic")[seed % 2], cv=2, ensemble=seed % 3 > 0
    ),
    "vote": lambda trees, depth, seed: VotingClassifier(
        _pair(trees, depth, seed), voting=("soft", "hard")[seed % 5 == 0], weights=(None, [1, 2], [0.3, 0.1])[seed % 3]
    ),
    "stack": lambda trees, depth, seed: StackingClassifier(_pair(trees, depth, seed), cv=2),
    "threshold": lambda trees, depth, seed: TunedThresholdClassifierCV(_forest(trees, depth, seed), cv=2),
    "search": lambda trees, depth, seed: GridSearchCV(_forest(trees, depth, seed), {"max_leaf_nodes": [4, 6]}, cv=2),
}


# -- what is drawn together ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """What an instance is drawn from.

    Attributes
    ----------
    columns : tuple of str
        Of `COLUMNS`, in order.
    way : {"pipeline", "whole", "plain"}
        What stands between the table and the trees: a step for each column, one for all of them, or nothing.
    models, numbers, levels, rows : tuple of str
        Of `MODELS` or `HOLDERS`, `NUMBER_STEPS`, `LEVEL_STEPS` and `ROWS`: one of them is taken.
    gaps : bool
        Whether values are missing.
    data : {"all", "few", "lacks a level"}
        Which training rows ocf gets.
    after : {"", "standard", "best", "products", "components", "whitened", "projected"}
        A step on all encoded columns.
    tight : bool
        Whether bounds are narrower than the data.
    library : str
        Of `LIBRARIES`.
    names : {"text", "whole", "hidden", "whole, hidden"}
        Whether columns are labelled by numbers, and whether the Pipeline begins with "passthrough".
    wishes : bool
        Whether missing values may be supplied, and others go missing.
    """

    columns: tuple[str, ...]
    way: str
    models: tuple[str, ...]
    rows: tuple[str, ...]
    numbers: tuple[str, ...] = READ
    levels: tuple[str, ...] = tuple(LEVEL_STEPS)
    gaps: bool = False
    data: str = "all"
    after: str = ""
    tight: bool = False
    library: str = "pandas"
    names: str = "text"
    wishes: bool = False


def _draw(rng: Rng, names: tuple[str, ...], low: int, high: int) -> tuple[str, ...]:
    return tuple(str(name) for name in rng.choice(names, rng.integers(low, high + 1)))


def _any(rng: Rng) -> Plan:
    way = str(rng.choice(["pipeline", "pipeline", "plain", "whole"]))
    levels = {"pipeline": LEVELS, "plain": ("category",), "whole": ()}[way]
    first = _draw(rng, levels, 0, 1) if levels else ()
    columns = first + _draw(rng, NUMBERS + FLAGS + levels, 1, 4 - len(first))
    return Plan(
        columns=columns,
        way=way,
        models=NATIVE if way == "plain" and "category" in columns else tuple(MODELS),
        rows=tuple(ROWS),
        gaps=rng.random() < 0.3,
        data=str(rng.choice(["all", "all", "few", "lacks a level"])),
        after=str(rng.choice(["", "", "", "standard", "best", "products"])),
        tight=rng.random() < 0.2,
    )


def _missing_beside_category(rng: Rng) -> Plan:
    columns = ("category", *_draw(rng, (*NUMBERS, "category"), 1, 3))
    return Plan(columns, "plain", NATIVE, ("missing",), gaps=True)


def _missing_in_the_row(rng: Rng) -> Plan:
    columns = _draw(rng, (*NUMBERS, *FLAGS, *FLAGS, "category"), 2, 4)
    models = NATIVE if "category" in columns else tuple(MODELS)
    return Plan(columns, "plain", models, ("missing alone",), gaps=rng.random() < 0.3)


def _absent_level(rng: Rng) -> Plan:
    columns = (*_draw(rng, ("colour", "colour", "category"), 1, 1), *_draw(rng, ("float64", "int64"), 0, 2))
    levels = ("onehot", "onehot", "onehot", "onehot_rare")
    models = ("tree", "forest", "extra", "boosting", "xgboost")
    return Plan(columns, "pipeline", models, ("known",), ("passthrough", "standard"), levels, data="lacks a level")


def _float32(rng: Rng) -> Plan:
    columns = _draw(rng, ("float32",), 1, 3)
    models = ("tree", "forest", "extra", "boosting")
    scaler = str(rng.choice(["standard", "standard", "minmax", "robust", "power"]))
    rows = ("wider", "wider", "list", "between")
    return Plan(columns, str(rng.choice(["whole", "pipeline"])), models, rows, (scaler,))


def _far_rows(rng: Rng) -> Plan:
    numbers = ("standard", "minmax", "robust", "maxabs", "mean_standard", "quantile", "power")
    columns = _draw(rng, ("float64", "float32", "int64", "coarse"), 1, 3)
    rows = ("far", "known", "between")
    return Plan(columns, "pipeline", tuple(MODELS), rows, numbers, data=str(rng.choice(["all", "few"])), tight=True)


def _holes(rng: Rng) -> Plan:
    columns = _draw(rng, ("coded", "int64", "coarse"), 1, 3)
    numbers = ("zero", "codes", "indicator", "onehot") if rng.random() < 0.8 else ("zero", "code", "hole", "log")
    return Plan(columns, "pipeline", tuple(MODELS), ("known",), numbers)


def _turning(rng: Rng) -> Plan:
    columns = _draw(rng, ("coarse", "float64", "float32", "int8", "skewed"), 1, 2)
    numbers = ("size", "powers", "splines", "bins", "union", "tens")
    models = ("tree", "forest", "boosting", "hist", "xgboost", "lightgbm")
    return Plan(columns, "pipeline", models, ("known", "between"), numbers, tight=bool(rng.integers(2)))


def _products(rng: Rng) -> Plan:
    columns = _draw(rng, ("coarse", "int8", "coded"), 2, 3)
    numbers = ("passthrough", "standard")
    return Plan(columns, "pipeline", ("tree", "forest", "boosting"), ("known",), numbers, data="few", after="products")


def _sums(rng: Rng) -> Plan:
    columns = _draw(rng, ("coarse", "float64", "float64", "int64", "float32", "colour"), 2, 3)
    numbers = ("passthrough", "standard", "maxabs", "mean_standard")
    after = str(rng.choice(["components", "whitened", "projected"]))
    models = ("tree", "forest", "boosting", "hist", "xgboost", "lightgbm")
    levels = ("onehot", "ordinal", "target")
    return Plan(columns, "pipeline", models, ("known", "between"), numbers, levels, after=after)


def _other_libraries(rng: Rng) -> Plan:
    library = str(rng.choice([name for name in LIBRARIES if name != "pandas"]))
    plain = ("float64", "float32", "coarse", "int64", "int8")
    held = plain if library == "structured" else (*plain, "coded", "skewed", "Int64", *FLAGS, *LEVELS, "date")
    columns = _draw(rng, held, 1, 4)
    numbers = set(columns) <= set(plain)
    return Plan(
        columns,
        str(rng.choice(["pipeline", "whole", "plain"])) if numbers else "pipeline",
        ("tree", "forest", "boosting", "hist") if numbers else tuple(MODELS),
        ("known", "between", "far", "wider"),
        gaps=library != "structured" and rng.random() < 0.3,
        library=library,
    )


def _held_otherwise(rng: Rng) -> Plan:
    first = _draw(rng, HELD_OTHERWISE + DATES + DATES, 1, 2)
    columns = first + _draw(rng, ("float64", "int64", "text", "bool"), 0, 2)
    numbers = ("passthrough", "standard", "minmax", "mean", "bins", "quantile")
    rows = ("known", "between", "list", "series", "record")
    return Plan(columns, "pipeline", ("tree", "forest", "boosting", "xgboost", "lightgbm"), rows, numbers)


def _models_that_hold_others(rng: Rng) -> Plan:
    way = str(rng.choice(["pipeline", "pipeline", "plain"]))
    levels = LEVELS if way == "pipeline" else ("category",)
    first = _draw(rng, levels, 0, 1)
    columns = first + _draw(rng, NUMBERS + FLAGS, 1, 3 - len(first))
    models = ("catboost",) if way == "plain" and "category" in columns else tuple(HOLDERS)
    return Plan(columns, way, models, tuple(ROWS), gaps=rng.random() < 0.3)


def _no_names(rng: Rng) -> Plan:
    columns = _draw(rng, ("float32", "float32", "int8", "coarse", "Int64", "Float32", "bool"), 2, 3)
    numbers = ("standard", "minmax", "robust", "power", "quantile", "size", "cube_root", "mean_standard", "passthrough")
    models = ("tree", "forest", "extra", "boosting", "hist", "xgboost", "lightgbm", "vote", "calibrated")
    way, names = (
        str(rng.choice(["pipeline", "pipeline", "whole"])),
        str(rng.choice(["whole", "hidden", "whole, hidden"])),
    )
    gaps = rng.random() < 0.3
    return Plan(columns, way, models, ("known", "between", "wider", "far"), numbers, gaps=gaps, names=names)


def _wishes(rng: Rng) -> Plan:
    rows = ("known", "known", "missing", "missing alone", "between", "record")
    if rng.random() < 0.5:  # scalers compute in float32 as long as no column is of another dtype
        columns, way = _draw(rng, ("float32",), 2, 3), str(rng.choice(["pipeline", "whole"]))
        scalers = (str(rng.choice(["standard", "minmax", "robust", "power"])),)
        return Plan(columns, way, ("tree", "forest", "extra"), rows, scalers, gaps=True, wishes=True)
    way = str(rng.choice(["pipeline", "pipeline", "plain"]))
    levels = LEVELS if way == "pipeline" else ("category",)
    first = _draw(rng, levels, 0, 1)
    columns = first + _draw(rng, (*NUMBERS, *FLAGS), 1, 3 - len(first))
    models = NATIVE if way == "plain" and "category" in columns else tuple(MODELS)
    return Plan(columns, way, models, rows, gaps=rng.random() < 0.8, wishes=True)


#: Name -> drawer of plans. All but the first have once led to false answers.
THEMES: dict[str, Callable[[Rng], Plan]] = {
    "any": _any,
    "missing beside a category": _missing_beside_category,
    "absent level": _absent_level,
    "float32": _float32,
    "far rows": _far_rows,
    "holes": _holes,
    "products": _products,
    "turning": _turning,
    "sums": _sums,
    "other libraries": _other_libraries,
    "missing in the row alone": _missing_in_the_row,
    "held otherwise": _held_otherwise,
    "models that hold others": _models_that_hold_others,
    "no names": _no_names,
    "wishes about what is missing": _wishes,
}


# -- rows ------------------------------------------------------------------------------------------------------


def _numeric(table: pd.DataFrame) -> list[str]:
    return [
        str(name)
        for name, dtype in table.dtypes.items()
        if (pd.api.types.is_numeric_dtype(dtype) or _holds_numbers(table[name]))
        and not pd.api.types.is_bool_dtype(dtype)
        and table[name].nunique() > 2
    ]


def _holds_numbers(column: pd.Series) -> bool:
    return column.dtype == object and pd.api.types.infer_dtype(column) in ("integer", "floating", "mixed-integer-float")


def _far(rng: Rng, table: pd.DataFrame, row: pd.DataFrame) -> pd.DataFrame:
    """Some numbers far outside the data."""
    out = row.copy()
    for name in _numeric(table):
        if rng.random() < 0.6:
            low, high = float(table[name].min()), float(table[name].max())
            value = (low if rng.random() < 0.5 else high) + rng.choice([-100, -8, -4, 4, 8, 100]) * (high - low)
            out[name] = _held(value, table[name].dtype)
    return out


def _held(value: float, dtype: Any) -> pd.Series:
    """Column of one number, as near as its dtype allows."""
    if not pd.api.types.is_integer_dtype(dtype):
        return pd.Series([value], dtype=dtype)
    ends = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
    return pd.Series([int(np.clip(round(value), ends.min, ends.max))], dtype=dtype)


def _between(rng: Rng, table: pd.DataFrame, row: pd.DataFrame) -> pd.DataFrame:
    """Values of different rows, the numbers between those of the data."""
    out = pd.concat([table[[name]].sample(1, random_state=int(rng.integers(2**31))).reset_index(drop=True)
                     for name in table.columns], axis=1)  # fmt: skip
    for name in _numeric(table):
        value = float(table[name].min()) + rng.random() * float(table[name].max() - table[name].min())
        out[name] = _held(value, table[name].dtype)
    return out


def _wider(rng: Rng, table: pd.DataFrame, row: pd.DataFrame) -> pd.DataFrame:
    """Every number as float64, some of them between two numbers of the column's dtype."""
    out = row.copy()
    for name in _numeric(table):
        value = float(row[name].iloc[0])
        exact = pd.api.types.is_integer_dtype(table[name].dtype) or rng.random() < 0.5
        out[name] = pd.Series([value if exact else np.nextafter(value, np.inf)])
    return out


def _missing(rng: Rng, table: pd.DataFrame, row: pd.DataFrame) -> pd.DataFrame:
    """Values taken out where the column can do without."""
    out = row.copy()
    gappy = [name for name in table.columns[::-1] if table[name].isna().any()]
    for name in gappy[: rng.integers(1, max(2, len(table.columns)))]:  # the first column most often stays
        out[name] = pd.Series([None], dtype=table[name].dtype)
    return out


def _alone(rng: Rng, table: pd.DataFrame, row: pd.DataFrame) -> pd.DataFrame:
    """Values taken out, whether the column can do without or not: NumPy's own dtypes make way."""
    out = row.copy()
    for name in rng.permutation(table.columns.to_numpy())[: rng.integers(1, 3)].tolist():
        dtype = table[name].dtype
        plain = isinstance(dtype, np.dtype) and dtype.kind in "biuf"
        out[name] = pd.Series([np.nan]) if plain else pd.Series([None], dtype=dtype)
    return out


Given = tuple[Any, pd.DataFrame]

#: Name -> maker of a row, as it is given to ocf and as a table, from the training table and one of its rows.
ROWS: dict[str, Callable[[Rng, pd.DataFrame, pd.DataFrame], Given]] = {
    "known": lambda rng, table, row: (row, row),
    "far": lambda rng, table, row: (far := _far(rng, table, row), far),
    "between": lambda rng, table, row: (new := _between(rng, table, row), new),
    "wider": lambda rng, table, row: (wide := _wider(rng, table, row), wide),
    "missing": lambda rng, table, row: (gappy := _missing(rng, table, row), gappy),
    "missing alone": lambda rng, table, row: (alone := _alone(rng, table, row), alone),
    "list": lambda rng, table, row: ([None if pd.isna(v) else v for v in row.iloc[0].tolist()], _of_array(row)),
    "series": lambda rng, table, row: (row.iloc[0], row.iloc[0].to_frame().T.infer_objects()),
    "shuffled": lambda rng, table, row: (row[rng.permutation(row.columns.to_numpy()).tolist()], row),
    "record": lambda rng, table, row: (made := pd.DataFrame(row.to_dict("records")), made),
}


def _of_array(row: pd.DataFrame) -> pd.DataFrame:
    """A row of a list: numbers in one dtype; with words among them the table's own dtypes."""
    array = np.asarray(row.iloc[0].tolist())
    return pd.DataFrame(array[None, :], columns=row.columns) if array.dtype.kind in "fi" else row


# -- instances -----------------------------------------------------------------------------------------------


def spread(n: int, seed: int, themes: Sequence[str] = tuple(THEMES)) -> Iterator[tuple[str, int]]:
    """Themes and seeds of `n` instances: every other one of the first theme, which is all of them together."""
    for k in range(n):
        theme = themes[0] if k % 2 == 0 else themes[k // 2 % len(themes)]
        yield theme, seed * 1_000_000 + k


def make(theme: str, seed: int) -> TableInstance:
    """The instance of a theme and a seed; draws again until the libraries themselves accept what was drawn."""
    for attempt in range(100):
        rng = np.random.default_rng([seed, attempt, *map(ord, theme)])
        plan = THEMES[theme](rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return _instance(theme, seed, rng, plan)
            except (ValueError, TypeError, AttributeError, CatBoostError):
                continue  # no model: a scaler of text, missing values without a rule, labels of one class, …
    raise RuntimeError(f"theme {theme!r}, seed {seed}: a hundred draws and no model")


def _instance(theme: str, seed: int, rng: Rng, plan: Plan) -> TableInstance:
    table = _table(rng, plan)
    labels = _of_gaps(rng, table, _labels(rng, table)) if plan.wishes else _labels(rng, table)
    named = plan.way == "pipeline" or not all(d in ("float64", "int64", "float32") for d in map(str, table.dtypes))
    named = named or rng.random() < 0.7
    model = _model(rng, plan, table)
    whole = plan.names.startswith("whole")
    model.fit(numbered(table) if whole else for_model(table, plan.library) if named else table.to_numpy(), labels)
    data = _told(rng, plan, table)
    start = data.sample(1, random_state=int(rng.integers(2**31))).reset_index(drop=True)
    row, frame = ROWS[str(rng.choice(plan.rows))](rng, table, start)
    row = row if plan.library == "pandas" else LIBRARIES[plan.library](frame)
    row = numbered(row) if whole else row
    made = TableInstance(theme, seed, model, named, data, row, frame, {}, {}, _declared(model), plan.library, whole)
    current = made.predict(frame)[0]  # a row that the model refuses is drawn again
    others = [label for label in np.unique(labels).tolist() if label != current]
    question = {"target": others[rng.integers(len(others))], **_options(rng, data, frame)}
    made = replace(made, question=question, features=_settings(rng, plan, data))
    if plan.wishes:
        made = replace(made, question={**question, "missing": _wish(rng, data)})
    if not np.isin(made.question["target"], labels):
        raise ValueError("no such class")
    return made


def _table(rng: Rng, plan: Plan) -> pd.DataFrame:
    n = int(rng.integers(50, 120))
    whole = plan.names.startswith("whole")
    columns = {str(j) if whole else f"{kind}_{j}": COLUMNS[kind](rng, n) for j, kind in enumerate(plan.columns)}
    table = pd.DataFrame(columns)
    for name, kind in zip(table.columns, plan.columns, strict=True):
        if plan.gaps and kind in GAPPY and rng.random() < 0.7:
            table[name] = table[name].mask(rng.random(n) < 0.2)
    return table


def _labels(rng: Rng, table: pd.DataFrame) -> np.ndarray:
    score = rng.normal(0, 0.3, len(table))
    for name in table.columns:
        ranks = table[name].rank(method="dense").to_numpy(np.float64, na_value=np.nan)
        known = np.nan_to_num(ranks, nan=float(rng.integers(0, 3)))
        shuffled = rng.permutation(int(known.max()) + 1)[known.astype(int)] if known.max() < 10 else known
        score += rng.normal() * (shuffled - shuffled.mean()) / (shuffled.std() + 1e-9)
    classes = 3 if rng.random() < 0.2 else 2
    codes = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    return codes if rng.random() < 0.7 else codes * 10


def _of_gaps(rng: Rng, table: pd.DataFrame, labels: np.ndarray) -> np.ndarray:
    """Labels of which some need a value that is missing, or one that is there, beside others."""
    name = str(rng.choice(list(table.columns)))
    needed = table[name].isna() == bool(rng.integers(2))
    return np.where(needed, labels, labels.min()) if table[name].isna().any() else labels


def _model(rng: Rng, plan: Plan, table: pd.DataFrame) -> Any:
    name = str(rng.choice(plan.models))
    model = {**MODELS, **HOLDERS}[name](int(rng.integers(1, 7)), int(rng.integers(2, 4)), int(rng.integers(2**16)))
    if name == "catboost" and plan.way == "plain":
        model.set_params(cat_features=[c for c, kind in zip(table, plan.columns, strict=True) if kind in LEVELS])
    if plan.way == "plain":
        return model
    off = [("off", "passthrough")] if plan.names.endswith("hidden") else []
    if plan.way == "whole":
        return _after(off, make_pipeline(NUMBER_STEPS[str(rng.choice(plan.numbers))](rng), model))
    steps = []
    for column, kind in zip(table.columns, plan.columns, strict=True):
        makers: Mapping[str, Callable[[Rng], Any]] = LEVEL_STEPS if kind in LEVELS else NUMBER_STEPS
        allowed = plan.levels if kind in LEVELS else plan.numbers
        allowed = ("passthrough", "standard") if kind in FLAGS else ("days",) if kind in DATES else allowed
        own = int(column) if plan.names.startswith("whole") else column
        steps.append((column, makers[str(rng.choice(allowed))](rng), [own]))
    first = ColumnTransformer(steps, sparse_threshold=float(rng.choice([0.0, 0.3])))
    after = {
        "standard": StandardScaler(with_mean=False),
        "best": SelectKBest(k=min(2, len(steps))),
        "products": PolynomialFeatures(interaction_only=True, include_bias=False),
        "components": PCA(2, random_state=0),
        "whitened": make_pipeline(PCA(2, whiten=True, random_state=0), StandardScaler()),
        "projected": GaussianRandomProjection(2, random_state=0),
    }
    return _after(off, make_pipeline(first, *([after[plan.after]] if plan.after else []), model))


def _after(steps: list[tuple[str, Any]], model: Pipeline) -> Pipeline:
    return Pipeline([*steps, *model.steps])


def _declared(model: Any) -> dict[str, str]:
    """That the functions which are tens, or days, are increasing."""
    steps = model.steps if isinstance(model, Pipeline) else []
    inner = [s[:2] for _, step in steps for s in getattr(step, "transformers", [])]
    return {name: "increasing" for name, step in [*steps, *inner] if getattr(step, "func", None) in (tens, days)}


def _told(rng: Rng, plan: Plan, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the table that ocf gets to see."""
    if plan.data == "few":
        return table.sample(int(rng.integers(2, 9)), random_state=int(rng.integers(2**31))).reset_index(drop=True)
    told = table
    for name in table.columns:
        if plan.data == "lacks a level" and name not in _numeric(table) and table[name].nunique() > 2:
            left_out = table[name].dropna().unique()[0]
            told = told[told[name].isna() | (told[name] != left_out)]
            if isinstance(told[name].dtype, pd.CategoricalDtype) and rng.random() < 0.5:
                told = told.assign(**{name: told[name].cat.remove_unused_categories()})
            break
    return told.reset_index(drop=True)


def _settings(rng: Rng, plan: Plan, data: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """What the user says of the features."""
    said: dict[str, dict[str, Any]] = {}
    for name in _numeric(data):
        if plan.tight:
            middle = float(data[name].sample(1, random_state=int(rng.integers(2**31))).fillna(0).iloc[0])
            span = rng.random() ** 3 * float(data[name].max() - data[name].min())
            said[name] = {"bounds": (float(np.floor(middle - span / 2)), float(np.ceil(middle + span / 2)))}
        if rng.random() < 0.1:
            said.setdefault(name, {})["actionability"] = str(rng.choice(["increasing", "decreasing"]))
    if len(data.columns) > 1 and rng.random() < 0.1:
        said.setdefault(str(rng.choice(list(data.columns))), {})["actionability"] = "fixed"
    return said


def _options(rng: Rng, data: pd.DataFrame, frame: pd.DataFrame) -> dict[str, Any]:
    """How the question is asked."""
    options: dict[str, Any] = {
        "norm": str(rng.choice(["l1", "l1", "l2", "l0"])),
        "solver": str(rng.choice(["auto", "box", "highs"])),
        "reduce": bool(rng.random() < 0.6),
    }
    name = str(rng.choice(list(data.columns)))
    if rng.random() < 0.15 and not frame[name].isna().iloc[0] and name.rpartition("_")[0] not in DATES:
        values = data[name].dropna()
        if name in _numeric(data):
            low, high = sorted(float(v) for v in values.sample(2, replace=True, random_state=int(rng.integers(2**31))))
            options["permitted_range"] = {name: (low, high)}
        else:
            options["permitted_range"] = {name: [values.iloc[0], *values[values != values.iloc[0]].iloc[:1]]}
    return options


def _wish(rng: Rng, data: pd.DataFrame) -> dict[str, Any]:
    """What may be supplied, and what may go missing."""
    names = [str(name) for name in data.columns if rng.random() < 0.6]
    going = {"may_become_missing": names, "cost_of_becoming_missing": float(rng.choice([0.0, 0.01, 0.3]))}
    price = float(rng.choice([np.nan, 0.0, 0.02, 0.4]))
    return ({} if np.isnan(price) else {"cost_of_supplying": price}) | (going if names else {})

"""The cheapest change of a row of a table by brute force, through nothing but the user's own model.

Nothing here shares code with ocf's reading of a table. Thresholds come from each library's own dump; the values of a
feature at which the encoded row crosses one are bisected through the user's own Pipeline, from several rows, over all
admissible numbers of the column's dtype; all combinations of what is found are put to the user's own ``predict``. What
is found is a true counterfactual, so its cost bounds the optimum from above, whatever was missed.

Of ocf only the description of the features is used (kind, bounds, levels, scale), which is part of what it says.
"""

from __future__ import annotations

import datetime
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from oracle.tables import TableInstance
from sklearn.pipeline import Pipeline

FloatArray = np.ndarray

#: Most combinations that are put to the model; the cheapest ones are.
LIMIT = 20_000
#: Most combinations whose costs are compared.
PRODUCT = 2_000_000
#: Rows of the data from which features are varied, besides the row asked about.
BASES = 2
#: Numbers that preprocessing likes to treat in a way of their own.
SPECIAL = (0.0, 1.0, -1.0, 99.0, 0.5)


# -- thresholds, by each library's own dump ------------------------------------------------------------------------


def thresholds(model: Any) -> dict[int, FloatArray]:
    """Per model column the largest float64 on the lower side of each split, sorted.

    Parameters
    ----------
    model : estimator
        The last step of a Pipeline.
    """
    dumps = {"lightgbm": _of_lightgbm, "xgboost": _of_xgboost, "catboost": _of_catboost}
    found: dict[int, set[float]] = {}
    for member in _members(model):
        splits = dumps.get(type(member).__module__.partition(".")[0], _of_sklearn)
        for column, bound in splits(member):
            found.setdefault(int(column), set()).add(float(bound))
    return {column: np.array(sorted(bounds)) for column, bounds in found.items()}


def _members(model: Any) -> Iterator[Any]:
    """The models of trees that see the columns which the whole is given."""
    kind = type(model).__name__
    if kind == "CalibratedClassifierCV":
        held = [fold.estimator for fold in model.calibrated_classifiers_]
    elif kind.startswith(("Voting", "Stacking")):
        held = model.estimators_
    elif kind in ("TunedThresholdClassifierCV", "GridSearchCV"):
        held = [model.best_estimator_ if kind == "GridSearchCV" else model.estimator_]
    else:
        yield model
        return
    for member in held:
        yield from _members(member)


def _of_sklearn(model: Any) -> Iterator[tuple[int, float]]:
    if hasattr(model, "_predictors"):
        yield from _of_hist(model)
        return
    estimators = [model] if hasattr(model, "tree_") else np.ravel(model.estimators_)
    for estimator in estimators:
        tree = estimator.tree_
        for node in np.flatnonzero(tree.children_left != tree.children_right):
            yield tree.feature[node], last_rounded(tree.threshold[node], strict=False)


def _of_hist(model: Any) -> Iterator[tuple[int, float]]:
    is_category = model.is_categorical_
    order = np.arange(model.n_features_in_)
    if is_category is not None and getattr(model, "_preprocessor", None) is not None:
        order = np.concatenate([np.flatnonzero(is_category), np.flatnonzero(~is_category)])  # as it is trained
    for predictor in np.ravel(model._predictors):
        for node in predictor.nodes:
            if not node["is_leaf"] and not node["is_categorical"]:
                yield order[node["feature_idx"]], node["num_threshold"]


def _of_lightgbm(model: Any) -> Iterator[tuple[int, float]]:
    def walk(node: dict[str, Any]) -> Iterator[tuple[int, float]]:
        if "split_feature" in node:
            if node["decision_type"] == "<=":
                yield node["split_feature"], node["threshold"]
            yield from walk(node["left_child"])
            yield from walk(node["right_child"])

    for tree in model.booster_.dump_model()["tree_info"]:
        yield from walk(tree["tree_structure"])


def _of_xgboost(model: Any) -> Iterator[tuple[int, float]]:
    saved = json.loads(model.get_booster().save_raw("json"))
    for tree in saved["learner"]["gradient_booster"]["model"]["trees"]:
        for node, left in enumerate(tree["left_children"]):
            if left >= 0 and not tree["split_type"][node]:
                bound = np.float32(tree["split_conditions"][node])
                yield tree["split_indices"][node], last_rounded(float(bound), strict=True)


def _of_catboost(model: Any) -> Iterator[tuple[int, float]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        saved = json.loads(path.read_text(encoding="utf-8"))
    for feature in saved["features_info"]["float_features"]:
        for border in feature["borders"] or []:
            yield feature["flat_feature_index"], last_rounded(float(np.float32(border)), strict=False)


def last_rounded(threshold: float, *, strict: bool) -> float:
    """Largest float64 whose nearest float32 is at most, or below, a threshold."""
    near = np.float32(threshold)
    # a NumPy scalar would compare with a Python float in float32
    if float(near) > threshold or (strict and float(near) == threshold):
        near = np.nextafter(near, np.float32(-np.inf))
    middle = (float(near) + float(np.nextafter(near, np.float32(np.inf)))) / 2
    return middle if np.float32(middle) <= near else float(np.nextafter(middle, -np.inf))


# -- the numbers of a column -----------------------------------------------------------------------------------------


class Grid(NamedTuple):
    """The numbers that a feature may take, by whole numbers in their order."""

    dtype: np.dtype[Any] | None

    def keys(self, values: FloatArray) -> np.ndarray:
        """Of the nearest numbers of the grid."""
        if self.dtype is None:
            return np.clip(np.rint(values), -(2.0**53), 2.0**53).astype(np.int64)
        with np.errstate(over="ignore"):
            bits = np.asarray(values, np.float64).astype(self.dtype).view(f"i{self.dtype.itemsize}").astype(np.int64)
        lowest = np.iinfo(f"i{self.dtype.itemsize}").min
        return np.where(bits >= 0, bits, lowest - bits)

    def values(self, keys: np.ndarray) -> FloatArray:
        if self.dtype is None:
            return keys.astype(np.float64)
        lowest = np.iinfo(f"i{self.dtype.itemsize}").min
        bits = np.where(keys >= 0, keys, lowest - keys).astype(f"i{self.dtype.itemsize}")
        return bits.view(self.dtype).astype(np.float64)


def middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Mean of whole numbers, rounded down, without overflow."""
    return (low & high) + ((low ^ high) >> 1)


def sixteenths(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Whole numbers that cut each way from `low` to `high` into sixteen parts, ends included, (17, n)."""
    keys = np.stack([low, high])
    for _ in range(4):
        finer = np.empty((2 * len(keys) - 1, len(low)), np.int64)
        finer[::2], finer[1::2] = keys, middle(keys[:-1], keys[1:])
        keys = finer
    return keys


# -- the question ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A question about a row of a table, ready for brute force.

    Attributes
    ----------
    instance : TableInstance
    features : tuple of ocf.features.feature.Feature
        As ocf describes them.
    """

    instance: TableInstance
    features: tuple[Any, ...]

    @cached_property
    def origin(self) -> FloatArray:
        """The row's numbers, and the indices of its levels; NaN where it has none."""
        return self.coded(self.instance.frame)[0]

    def coded(self, table: pd.DataFrame) -> FloatArray:
        """Numbers, and indices of levels, of a table; NaN also for levels that ocf does not know."""
        out = np.full((len(table), len(self.features)), np.nan)
        for i, feature in enumerate(self.features):
            for k, value in enumerate(table[feature.name]):
                if not pd.isna(value):
                    out[k, i] = _index(feature.levels, value) if feature.levels else _number(value)
        return out

    @cached_property
    def conventions(self) -> tuple[tuple[Any, ...], ...]:
        """Dtypes of the columns: those of the row, and those of the data where they differ."""
        names = [f.name for f in self.features]
        row, data = (tuple(t.dtypes[n] for n in names) for t in (self.instance.frame, self.instance.data))
        return (row,) if list(map(str, row)) == list(map(str, data)) else (row, data)

    @cached_property
    def dates(self) -> list[bool]:
        """Which features are dates: their numbers are days."""
        columns = (self.instance.data[f.name] for f in self.features)
        return [pd.api.types.infer_dtype(c) in ("date", "datetime64", "datetime") for c in columns]

    def grid(self, i: int, *, wide: bool = False) -> Grid:
        """The numbers that a feature may take, in the dtype of the data or of the row: the narrower, or the wider."""
        feature = self.features[i]
        if feature.kind == "integer":
            return Grid(None)
        said = (feature.dtype, str(self.instance.frame.dtypes[feature.name]))
        dtypes = [np.dtype(d.lower() if d.lower() in ("float16", "float32") else np.float64) for d in said]
        return Grid((max if wide else min)(dtypes, key=lambda d: d.itemsize))

    def limits(self, i: int) -> tuple[float, float]:
        """Lowest and highest admissible number of a feature."""
        feature, origin = self.features[i], float(self.origin[i])
        low, high = min(feature.lower, origin), max(feature.upper, origin)
        permitted = self.instance.question.get("permitted_range", {}).get(feature.name)
        if permitted is not None:
            low, high = max(low, float(permitted[0])), min(high, float(permitted[1]))
        low = origin if feature.action in ("fixed", "increasing") and origin > low else low
        high = origin if feature.action in ("fixed", "decreasing") and origin < high else high
        return low, high

    def levels(self, i: int) -> FloatArray:
        """Indices of the admissible levels of a feature."""
        feature, origin = self.features[i], self.origin[i]
        permitted = self.instance.question.get("permitted_range", {}).get(feature.name)
        codes = [k for k, v in enumerate(feature.levels) if permitted is None or v in list(permitted)]
        fits = {
            "free": lambda k: True,
            "fixed": lambda k: k == origin,
            "increasing": lambda k: k >= origin,
            "decreasing": lambda k: k <= origin,
        }[feature.action]
        return np.array([k for k in codes if fits(k)], np.float64)

    def supplied(self, i: int) -> bool:
        """Whether the row misses a value that may be supplied."""
        priced = "cost_of_supplying" in self.instance.question.get("missing", {})
        return priced and self.features[i].action != "fixed" and math.isnan(self.origin[i])

    def goes_missing(self, i: int) -> bool:
        """Whether the row's value may go missing."""
        feature, wish = self.features[i], self.instance.question.get("missing", {})
        return feature.name in wish.get("may_become_missing", ()) and feature.action != "fixed"

    def costs(self, i: int, values: FloatArray) -> FloatArray:
        """Cost of moving a feature from the row's value to each of `values`."""
        wish, norm, gone = self.instance.question.get("missing", {}), self.instance.question["norm"], np.isnan(values)
        prices = {
            key: 1.0 if norm == "l0" else wish.get(f"cost_of_{key}", 0.0) for key in ("supplying", "becoming_missing")
        }
        if math.isnan(self.origin[i]):
            return np.where(gone, 0.0, prices["supplying"])
        return np.where(gone, prices["becoming_missing"], self._distances(i, np.where(gone, self.origin[i], values)))

    def _distances(self, i: int, values: FloatArray) -> FloatArray:
        """Cost of moving a feature that has a value to each of `values`."""
        feature, origin = self.features[i], self.origin[i]
        if feature.kind in ("categorical", "binary"):
            distance = (values != origin).astype(np.float64)
        elif feature.kind == "ordinal":
            places = np.arange(len(feature.levels), dtype=np.float64)  # words by their index, numbers by themselves
            if all(isinstance(level, int | float | np.number) for level in feature.levels):
                places = np.array(feature.levels, np.float64)
            distance = np.abs(places[values.astype(int)] - places[int(origin)]) / feature.scale
        else:
            distance = np.abs(values - origin) / feature.scale
        count = (values != origin).astype(np.float64)
        return {"l0": count, "l1": distance, "l2": distance**2}[self.instance.question["norm"]]

    def frames(self, rows: FloatArray, dtypes: tuple[Any, ...]) -> Iterator[tuple[np.ndarray, pd.DataFrame]]:
        """Tables of coded rows, each with the places of its rows.

        A column of a row is in its dtype where that holds its value exactly, and wider otherwise. Rows that differ in
        this stand in tables of their own, for libraries compute in the dtype that the columns have in common.
        """
        fits = np.column_stack([_fits(rows[:, i], dtypes[i], f) for i, f in enumerate(self.features)])
        kinds, kind_of = np.unique(fits, axis=0, return_inverse=True)
        for k, kind in enumerate(kinds):
            at = np.flatnonzero(np.ravel(kind_of) == k)
            columns = {
                f.name: self._column(i, rows[at, i], dtypes[i], bool(kind[i])) for i, f in enumerate(self.features)
            }
            yield at, pd.DataFrame(columns)[list(self.instance.data.columns)]

    def _column(self, i: int, codes: FloatArray, dtype: Any, fits: bool) -> pd.Series:
        feature = self.features[i]
        if not feature.levels:
            if self.dates[i]:
                return _of_days(codes, self.instance.frame[feature.name])
            column = pd.Series(codes)
            return column.astype(dtype) if fits else column
        words = np.empty(len(codes), object)
        words[:] = [None if math.isnan(c) else feature.levels[int(c)] for c in codes]
        words[np.isnan(codes)] = self._gap(feature.name)
        if isinstance(dtype, pd.CategoricalDtype):
            absent = [v for v in feature.levels if v not in dtype.categories and v in set(words)]
            dtype = pd.CategoricalDtype([*dtype.categories, *absent], dtype.ordered)
        if isinstance(dtype, np.dtype) and dtype.kind in "biu" and np.isnan(codes).any():
            dtype = np.dtype(float)  # truth values would take a missing one for True
        return pd.Series(words, dtype=object).astype(dtype)

    def _gap(self, name: str) -> Any:
        """What stands in the data where a word is missing: the model is shown that, whatever stands in the row."""
        column = self.instance.data[name]
        return next(iter(column[column.isna()]), np.nan)

    def encode(self, rows: FloatArray, dtypes: tuple[Any, ...]) -> FloatArray:
        """Model columns of coded rows."""
        parts = [(at, self.instance.encode(table)) for at, table in self.frames(rows, dtypes)]
        out = np.empty((len(rows), parts[0][1].shape[1]))
        for at, encoded in parts:
            out[at] = encoded
        return out

    def meets(self, rows: FloatArray) -> np.ndarray:
        """Which coded rows the user's own model gives the target, in every convention."""
        out = np.ones(len(rows), bool)
        for dtypes in self.conventions:
            for at, table in self.frames(rows, dtypes):
                out[at] &= self.instance.predict(table) == self.instance.question["target"]
        return out


def _number(value: Any) -> float:
    """A number itself, or the days since 1970 of a date."""
    if isinstance(value, datetime.date):
        moment = pd.Timestamp(value)
        naive = moment if moment.tzinfo is None else moment.tz_convert(None)
        return (naive - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return float(value)


def _of_days(values: FloatArray, like: pd.Series) -> pd.Series:
    """A column of dates, as those of another are held."""
    moments = pd.Series(pd.Timestamp(0) + pd.to_timedelta(values, unit="D"))
    if like.dtype == object:
        return pd.Series(list(moments.dt.date), dtype=object)
    return (moments if like.dt.tz is None else moments.dt.tz_localize("UTC")).astype(like.dtype)


def _index(levels: tuple[Any, ...], value: Any) -> float:
    return float(levels.index(value)) if value in levels else math.nan


def _fits(values: FloatArray, dtype: Any, feature: Any) -> np.ndarray:
    """Whether a dtype of numbers holds each value exactly."""
    if feature.levels or str(dtype) == "object":
        return np.ones(len(values), bool)
    if pd.api.types.is_float_dtype(dtype):
        narrow = np.dtype(getattr(dtype, "numpy_dtype", dtype))
        with np.errstate(over="ignore"):
            return (values.astype(narrow).astype(np.float64) == values) | np.isnan(values)
    if not pd.api.types.is_integer_dtype(dtype):
        return np.zeros(len(values), bool)
    ends = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
    nullable = np.isnan(values) & isinstance(dtype, pd.api.extensions.ExtensionDtype)
    return nullable | ((values == np.rint(values)) & (ends.min <= values) & (values <= ends.max))


# -- candidates ------------------------------------------------------------------------------------------------------


class _Crossing(NamedTuple):
    """Two neighbouring probes of a feature between which a model column crosses a threshold."""

    base: int
    feature: int
    low: int
    high: int
    column: int
    bound: float


def candidates(asked: Asked) -> list[FloatArray] | None:
    """Values of each feature that may make a difference, nearest first; None where one has no admissible value."""
    n = len(asked.features)
    out: list[FloatArray] = []
    for i, feature in enumerate(asked.features):
        if math.isnan(asked.origin[i]) and not asked.supplied(i):
            out.append(np.zeros(0))
        else:
            out.append(asked.levels(i) if feature.levels else _probes(asked, i))
    numbers = [i for i in range(n) if not asked.features[i].levels and len(out[i])]
    if numbers:
        model = asked.instance.model
        bounds = thresholds(model[-1] if isinstance(model, Pipeline) else model)
        _refine(asked, bounds, out, numbers)
    for i in range(n):
        if math.isnan(asked.origin[i]) or asked.goes_missing(i):
            out[i] = np.append(out[i], np.nan)
        if not len(out[i]):
            return None
    return [values[np.argsort(asked.costs(i, values), kind="stable")] for i, values in enumerate(out)]


def _probes(asked: Asked, i: int) -> FloatArray:
    """Admissible numbers of a feature all over its range, in order; the row's own among them if it may stay."""
    low, high = asked.limits(i)
    grid, origin = asked.grid(i), asked.origin[i]
    if low > high:
        return np.zeros(0)
    data = asked.coded(asked.instance.data)[:, i]
    ends = [low, high] if math.isnan(origin) else [low, high, origin]
    values = np.concatenate([np.linspace(low, high, 33), data[~np.isnan(data)], SPECIAL, ends])
    keys = np.unique(grid.keys(values))
    beside = grid.keys(np.array([*SPECIAL, *ends]))
    keys = np.unique(np.concatenate([keys, beside - 1, beside + 1]))
    numbers = np.append(grid.values(keys), ends[2:])  # the row's own number may be off the grid
    return np.unique(numbers[(low <= numbers) & (numbers <= high)])


def _bases(asked: Asked) -> FloatArray:
    """The row asked about, some of the data with the same values missing, and the row with others missing or none."""
    data = asked.coded(asked.instance.data)
    gaps = np.isnan(asked.origin)
    filled = data[~np.isnan(data).any(axis=1)][:BASES]
    data[:, gaps] = np.nan
    data = data[~np.isnan(data[:, ~gaps]).any(axis=1)]
    picked = np.linspace(0, len(data) - 1, BASES).astype(int) if len(data) else []
    n = len(asked.origin)
    going = np.diag([asked.goes_missing(i) for i in range(n)]).astype(bool)
    supplied = [gaps & np.array([asked.supplied(i) for i in range(n)])]
    others = [np.where(gone, np.nan, asked.origin) for gone in going if gone.any()]
    others += [np.where(given, full, asked.origin) for given in supplied for full in filled if given.any()]
    return np.vstack([asked.origin, data[picked], *others])


def _refine(asked: Asked, bounds: dict[int, FloatArray], out: list[FloatArray], numbers: list[int]) -> None:
    """Add the numbers on both sides of every crossing, and keep the nearest of each behaviour."""
    bases = _bases(asked)
    for dtypes in asked.conventions:
        encode = _varied(asked, bases, dtypes)
        crossings = list(_crossings(asked, bounds, encode, out, numbers, len(bases)))
        for i, low, high in _bisected(asked, encode, crossings):
            out[i] = np.append(out[i], asked.grid(i).values(np.array([low, high])))
    for i in numbers:
        low, high = asked.limits(i)
        out[i] = np.unique(out[i][(low <= out[i]) & (out[i] <= high)])
        out[i] = _distinct(asked, bases, bounds, out[i], i)


#: Encodes rows: place of the base, feature that differs from it, and its value.
Varied = Callable[[np.ndarray, np.ndarray, FloatArray], FloatArray]


def _varied(asked: Asked, bases: FloatArray, dtypes: tuple[Any, ...]) -> Varied:
    def encode(base: np.ndarray, feature: np.ndarray, values: FloatArray) -> FloatArray:
        rows = bases[base].copy()
        rows[np.arange(len(rows)), feature] = values
        return asked.encode(rows, dtypes)

    return encode


def _sides(encoded: FloatArray, bounds: dict[int, FloatArray]) -> np.ndarray:
    """How many thresholds of each column lie below, (n, n_model_columns); -1 for missing."""
    out = np.zeros(encoded.shape, np.int64)
    for column, cuts in bounds.items():
        found = np.searchsorted(cuts, encoded[:, column], side="left")
        out[:, column] = np.where(np.isnan(encoded[:, column]), -1, found)
    return out


def _sides_of(
    encode: Varied, n_bases: int, values: FloatArray, i: int, bounds: dict[int, FloatArray]
) -> list[np.ndarray]:
    """`_sides` of each base with feature i at each of some values."""
    base = np.repeat(np.arange(n_bases), len(values))
    encoded = encode(base, np.full(len(base), i), np.tile(values, n_bases))
    return np.split(_sides(encoded, bounds), n_bases)


def _crossings(
    asked: Asked,
    bounds: dict[int, FloatArray],
    encode: Varied,
    probes: list[FloatArray],
    numbers: list[int],
    n_bases: int,
) -> Iterator[_Crossing]:
    for i in numbers:
        values, grid = probes[i], asked.grid(i)
        for base, sides in enumerate(_sides_of(encode, n_bases, values, i, bounds)):
            for k, column in np.argwhere(sides[1:] != sides[:-1]):
                low, high = (int(key) for key in grid.keys(values[[k, k + 1]]))
                first, last = sorted((sides[k, column], sides[k + 1, column]))
                for cut in range(max(first, 0), max(last, 0)):
                    yield _Crossing(base, i, low, high, int(column), float(bounds[int(column)][cut]))
                if first == -1:  # a number that is encoded as a missing one
                    yield _Crossing(base, i, low, high, int(column), math.inf)


def _bisected(asked: Asked, encode: Varied, crossings: list[_Crossing]) -> Iterator[tuple[int, int, int]]:
    """Feature and keys of the two neighbouring numbers of each crossing."""
    if not crossings:
        return
    base, feature, low, high, column = (np.array([c[k] for c in crossings], np.int64) for k in range(5))
    bound = np.array([c.bound for c in crossings])

    def holds(keys: np.ndarray) -> np.ndarray:
        values = np.empty(keys.shape)
        for i in np.unique(feature):
            values[:, feature == i] = asked.grid(int(i)).values(keys[:, feature == i])
        n = len(keys)
        encoded = encode(np.tile(base, n), np.tile(feature, n), values.ravel())
        return encoded[np.arange(values.size), np.tile(column, n)].reshape(keys.shape) <= bound

    all_, at_low = np.arange(len(low)), holds(low[None])
    while (low + 1 < high).any():
        keys = sixteenths(low, high)  # a call of the user's steps costs more than its rows
        other = np.vstack([holds(keys[1:-1]) != at_low, np.ones((1, len(low)), bool)]).argmax(axis=0)
        low, high = keys[other, all_], keys[other + 1, all_]
    yield from zip(feature.tolist(), low.tolist(), high.tolist(), strict=True)


def _distinct(asked: Asked, bases: FloatArray, bounds: dict[int, FloatArray], values: FloatArray, i: int) -> FloatArray:
    """Of the values on either side of the row's own, the nearest of each behaviour."""
    parts = []
    for dtypes in asked.conventions:
        encode = _varied(asked, bases, dtypes)
        parts += _sides_of(encode, len(bases), values, i, bounds)
    behaviour = np.hstack(parts)
    origin = asked.origin[i]
    if math.isnan(origin):  # what is supplied costs the same everywhere
        return values[np.unique(behaviour, axis=0, return_index=True)[1]]
    kept = []
    for side in (values[::-1] <= origin, values >= origin):
        order = np.arange(len(values))[::-1][side] if len(kept) == 0 else np.flatnonzero(side)
        _, first = np.unique(behaviour[order], axis=0, return_index=True)
        kept.append(values[order[first]])
    return np.unique(np.concatenate(kept))


# -- search ----------------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """The cheapest counterfactual of all combinations that were tried; `cost` is infinite where there is none."""

    cost: float
    table: pd.DataFrame | None


def cheapest(asked: Asked, below: float = math.inf) -> Found:
    """The cheapest admissible point that has the target, of cost less than `below`, as far as brute force finds one."""
    values = candidates(asked)
    if values is None:
        return Found(math.inf, None)
    costs = [asked.costs(i, v) for i, v in enumerate(values)]
    while math.prod(map(len, values)) > PRODUCT:
        longest = max(range(len(values)), key=lambda i: len(values[i]))
        keep = np.unique(np.append(np.arange(5), np.arange(5, len(values[longest]), 2)))
        values[longest], costs[longest] = values[longest][keep], costs[longest][keep]
    total = sum(np.meshgrid(*costs, indexing="ij")).ravel()
    affordable = np.flatnonzero(total < below)
    order = affordable[np.argsort(total[affordable], kind="stable")][:LIMIT]
    for part in np.split(order, range(500, len(order), 2000)):
        places = np.unravel_index(part, [len(v) for v in values])
        rows = np.column_stack([v[place] for v, place in zip(values, places, strict=True)])
        met = np.flatnonzero(asked.meets(rows)) if len(rows) else []
        if len(met):
            table = next(asked.frames(rows[met[:1]], asked.conventions[0]))[1]
            return Found(float(total[part[met[0]]]), table)
    return Found(math.inf, None)

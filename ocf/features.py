"""Features as the user knows them: kinds, units, bounds, grids, what may change and what a change costs.

Inside ocf a row is a vector of *coded* values, one per feature: the value itself for numeric and integer features,
the index of the level (0, 1, …) for binary, ordinal and categorical ones. `FeatureSpace` turns the user's table
into coded rows and back, in the user's columns, words and dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, cast, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ocf.curves import Curve
from ocf.ensemble import FloatArray
from ocf.errors import DataError, ProblemError
from ocf.words import listed, nearest

Kind = Literal["numeric", "integer", "binary", "ordinal", "categorical"]
Action = Literal["free", "fixed", "increasing", "decreasing"]


@dataclass(frozen=True)
class Feature:
    """One thing about a row that a user can name and perhaps change.

    Attributes
    ----------
    name : str
    kind : {"numeric", "integer", "binary", "ordinal", "categorical"}
    columns : tuple of str
        Columns of the user's table that hold it: one, or one indicator per level.
    base : bool
        With indicator columns: whether the first level has none (all indicators zero mean the first level).
    dtype : str
        NumPy or pandas dtype of the column; a counterfactual value is always representable in it.
    levels : tuple
        Values of binary, ordinal and categorical features, in order; empty for the others.
    lower, upper : float
        Bounds of numeric and integer features, in the user's units.
    step : float or None
        Grid of a numeric feature: admissible values are multiples of `step`.
    scale : float
        Distances are divided by it: for ordinal features with numeric levels and for numeric ones it is in the
        user's units, for the others in levels. Default: the range of the data.
    action : {"free", "fixed", "increasing", "decreasing"}
    weight_down, weight_up : float
        Weight of a change to a lower and to a higher value; a change of category costs `weight_up`.
    permitted : tuple or None
        Where a counterfactual may lie: ``(lowest, highest)`` for numeric and integer features, a tuple of levels
        for the others. Unlike the bounds it may exclude the row's own value.
    cost : Curve or None
        What a change costs, in place of the norm and the weights; negative for states that are preferred.
    """

    name: str
    kind: Kind
    columns: tuple[str, ...] = ()
    base: bool = False
    dtype: str = "float64"
    levels: tuple[Any, ...] = ()
    lower: float = -math.inf
    upper: float = math.inf
    step: float | None = None
    scale: float = 1.0
    action: Action = "free"
    weight_down: float = 1.0
    weight_up: float = 1.0
    permitted: tuple[Any, ...] | None = None
    cost: Curve | None = None

    def __post_init__(self) -> None:
        def fail(what: str) -> None:
            raise DataError(f"feature {self.name!r}: {what}")

        if not self.columns:
            object.__setattr__(self, "columns", (self.name,))
        for attribute, allowed in (("kind", get_args(Kind)), ("action", get_args(Action))):
            if getattr(self, attribute) not in allowed:
                fail(f"{attribute} {getattr(self, attribute)!r} is not one of {', '.join(allowed)}")
        if self.discrete:
            if len(set(self.levels)) != len(self.levels) or not self.levels:
                fail("needs its distinct levels, for example levels = ['low', 'high']")
            if self.kind == "binary" and len(self.levels) != 2:
                fail(f"a binary feature has two levels, not {len(self.levels)}")
            if self.kind == "ordinal" and self.numeric_levels and list(self.levels) != sorted(self.levels):
                fail("numeric levels of an ordinal feature must increase")
        elif self.levels:
            fail(f"levels belong to binary, ordinal and categorical features, not to {self.kind} ones")
        if self.kind == "categorical" and self.action in ("increasing", "decreasing"):
            fail(f"categories have no order, so the feature cannot be {self.action}: use 'free' or 'fixed'")
        if len(self.columns) > 1 and len(self.columns) != len(self.levels) - self.base:
            fail(f"{len(self.columns)} indicator columns for {len(self.levels)} levels")
        if not (math.isfinite(self.scale) and self.scale > 0):
            fail(f"scale {self.scale} must be positive and finite")
        if self.step is not None and (self.kind != "numeric" or not (math.isfinite(self.step) and self.step > 0)):
            fail(f"step {self.step} must be positive, on a numeric feature")
        for weight in (self.weight_down, self.weight_up):
            if not (math.isfinite(weight) and weight >= 0):
                fail(f"weight {weight} must be finite and at least 0")
        if self.cost is not None:
            if (self.weight_down, self.weight_up) != (1.0, 1.0):
                fail("a cost of its own takes the place of norm and weight: give one of them")
            self.cost.check(self)
        if math.isnan(self.lower) or math.isnan(self.upper) or self.lower > self.upper:
            fail(f"bounds [{self.lower}, {self.upper}] hold no value")

    @property
    def discrete(self) -> bool:
        """Whether coded values are indices of levels."""
        return self.kind in ("binary", "ordinal", "categorical")

    @cached_property
    def numeric_levels(self) -> bool:
        """Whether the levels are numbers, so that distances between them have a meaning."""
        return all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in self.levels)

    @cached_property
    def positions(self) -> FloatArray:
        """Where each level lies for distances: its number, or its index. (n_levels,)."""
        if self.kind == "ordinal" and self.numeric_levels:
            return np.array(self.levels, np.float64)
        return np.arange(len(self.levels), dtype=np.float64)

    @cached_property
    def codes(self) -> dict[Any, int]:
        """Index of each level."""
        return {level: code for code, level in enumerate(self.levels)}

    # -- the grid of admissible coded values ---------------------------------------------------------------

    def at_most(self, value: ArrayLike) -> FloatArray:
        """Largest admissible coded value <= `value`, bounds aside."""
        v = np.asarray(value, np.float64)
        if self.discrete or self.kind == "integer":
            return np.floor(v)
        if self.step is not None:
            k = np.floor(v / self.step)
            k = np.where(self._multiple(k) > v, k - 1, k)
            k = np.where(self._multiple(k + 1) <= v, k + 1, k)
            return self._multiple(k)
        return self._representable(v, above=False)

    def above(self, value: ArrayLike) -> FloatArray:
        """Smallest admissible coded value > `value`, bounds aside."""
        v = np.asarray(value, np.float64)
        if self.discrete or self.kind == "integer":
            return np.floor(v) + 1
        if self.step is not None:
            k = np.floor(v / self.step) + 1
            k = np.where(self._multiple(k - 1) > v, k - 1, k)
            k = np.where(self._multiple(k) <= v, k + 1, k)
            return self._multiple(k)
        return self._representable(v, above=True)

    def at_least(self, value: ArrayLike) -> FloatArray:
        """Smallest admissible coded value >= `value`, bounds aside."""
        below = self.at_most(value)
        return np.where(below == value, below, self.above(value))

    @cached_property
    def _step_ratio(self) -> tuple[float, float]:
        """The step as a fraction of whole numbers, if it is the float64 of a short decimal; else over 1."""
        assert self.step is not None
        exact = Fraction(repr(self.step))
        if exact.numerator < 2**31 and exact.denominator < 2**31:
            return float(exact.numerator), float(exact.denominator)
        return self.step, 1.0

    def _multiple(self, k: FloatArray) -> FloatArray:
        # 7 / 100 is the float64 that the decimal 0.07 reads as; 7 * 0.01 is not
        numerator, denominator = self._step_ratio
        value = np.asarray(k * numerator / denominator)
        with np.errstate(over="ignore"):
            return value.astype(self.float_dtype).astype(np.float64)

    @property
    def float_dtype(self) -> np.dtype[Any]:
        """In which counterfactual values are representable: float64 unless the column is narrower."""
        return np.dtype(self.dtype if self.dtype in ("float16", "float32") else np.float64)

    def _representable(self, v: FloatArray, *, above: bool) -> FloatArray:
        dtype = self.float_dtype
        up, down = np.array(np.inf, dtype), np.array(-np.inf, dtype)
        with np.errstate(over="ignore"):
            near = v.astype(dtype)
            if above:
                return np.where(near > v, near, np.nextafter(near, up)).astype(np.float64)
            return np.where(near <= v, near, np.nextafter(near, down)).astype(np.float64)

    def permitted_codes(self) -> set[int] | None:
        """Codes of the permitted levels; None when all are or the feature is not discrete."""
        if self.permitted is None or not self.discrete:
            return None
        unknown = [v for v in self.permitted if v not in self.codes]
        if unknown:
            raise ProblemError(f"permitted range of {self.name!r}: no such level {nearest(unknown[0], self.levels)}")
        return {self.codes[v] for v in self.permitted}

    def limits(self, origin: float) -> tuple[float, float]:
        """Lowest and highest coded value that a counterfactual of a row with value `origin` may take.

        The bounds are widened to the row's own value; the permitted range and the action are not.
        """
        if self.discrete:
            low, high = 0.0, float(len(self.levels) - 1)
        else:
            low, high = min(self.lower, origin), max(self.upper, origin)
            if self.permitted is not None:
                low, high = max(low, float(self.permitted[0])), min(high, float(self.permitted[1]))
        if self.action in ("fixed", "increasing"):
            low = max(low, origin)
        if self.action in ("fixed", "decreasing"):
            high = min(high, origin)
        return low, high

    def nearest(
        self,
        lower: FloatArray,
        upper: FloatArray,
        origin: float,
        cost: Callable[[FloatArray], FloatArray] | None = None,
    ) -> FloatArray:
        """Admissible value nearest to the origin in each interval ``(lower, upper]``; NaN where there is none.

        Parameters
        ----------
        lower, upper : (n,) float64
            Coded values.
        origin : float
            The row's own coded value; it is always admissible as far as the grid goes.
        cost : callable, optional
            Of coded values. Permitted levels may leave a choice on both sides of the origin, with other weights; the
            cheapest is taken. Default: the distance in levels.
        """
        low, high = self.limits(origin)
        left = np.maximum(self.above(lower), self.at_least(low) if np.isfinite(low) else low)
        right = np.minimum(self.at_most(upper), self.at_most(high) if np.isfinite(high) else high)
        value = np.where(left > origin, left, np.where(right < origin, right, origin))
        value = np.where(left <= right, value, np.nan)
        stays = (lower < origin) & (origin <= upper) & (low <= origin) & (origin <= high)
        value = np.where(stays, origin, value)
        codes = self.permitted_codes()
        if codes is not None:
            value = self._nearest_code(codes, lower, upper, low, high, cost or (lambda code: np.abs(code - origin)))
        return value

    def _nearest_code(
        self,
        codes: set[int],
        lower: FloatArray,
        upper: FloatArray,
        low: float,
        high: float,
        cost: Callable[[FloatArray], FloatArray],
    ) -> FloatArray:
        allowed = np.array([c for c in sorted(codes) if low <= c <= high], np.float64)
        out = np.full(len(lower), np.nan)
        for code in allowed[np.argsort(-cost(allowed), kind="stable")]:  # the cheapest is written last
            out[(lower < code) & (code <= upper)] = code
        return out

    def distance(self, origin: float, value: ArrayLike) -> FloatArray:
        """Signed distance from the origin in units of `scale`; 1 for any change of category."""
        v = np.asarray(value, np.float64)
        if self.kind in ("categorical", "binary"):
            change = np.where(np.isnan(v), np.nan, np.sign(v - origin))
            return np.abs(change) if self.kind == "categorical" else change
        if self.kind == "ordinal":
            place = np.append(self.positions, np.nan)[np.where(np.isnan(v), len(self.levels), v).astype(int)]
            return np.asarray((place - self.positions[int(origin)]) / self.scale)
        return (v - origin) / self.scale

    def label(self, code: float) -> Any:
        """Coded value in the user's words and dtype."""
        if math.isnan(code):
            return None
        if self.discrete:
            return self.levels[int(code)]
        return int(code) if self.kind == "integer" and float(code).is_integer() else float(code)


@dataclass(frozen=True)
class FeatureSpace:
    """The features of a table, and the way from table to coded rows and back.

    Attributes
    ----------
    features : tuple of Feature
    columns : tuple of str
        Columns of the user's table, in the user's order.
    """

    features: tuple[Feature, ...]
    columns: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if not self.columns:
            object.__setattr__(self, "columns", tuple(c for f in self.features for c in f.columns))
        held = [c for f in self.features for c in f.columns]
        twice = sorted({c for c in held if held.count(c) > 1})
        if twice:
            raise DataError(f"columns {twice} belong to two features")
        if sorted(held) != sorted(self.columns):
            raise DataError("features and table columns do not match")

    def __len__(self) -> int:
        return len(self.features)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f.name for f in self.features)

    def index(self, name: str) -> int:
        """Position of a feature by name."""
        try:
            return self.names.index(name)
        except ValueError:
            raise ProblemError(f"no such feature: {nearest(name, self.names)}") from None

    def updated(self, changes: Mapping[str, Mapping[str, Any]]) -> FeatureSpace:
        """Space with some attributes of some features replaced."""
        features = list(self.features)
        for name, change in changes.items():
            i = self.index(name)
            features[i] = replace(features[i], **change)
        return replace(self, features=tuple(features))

    # -- table to coded rows -------------------------------------------------------------------------------

    def from_frame(self, rows: pd.DataFrame | ArrayLike) -> FloatArray:
        """Coded rows of a table.

        Parameters
        ----------
        rows : DataFrame or array-like (n, n_columns)
            A DataFrame may have its columns in any order; an array has them in the order of `columns`.

        Returns
        -------
        (n, n_features) float64

        Raises
        ------
        DataError
            Missing or extra columns, wrong width, infinite values, unknown levels, indicators that are not one-hot.
        """
        frame = self._as_frame(rows)
        coded = np.empty((len(frame), len(self)), np.float64)
        for i, feature in enumerate(self.features):
            if len(feature.columns) > 1 or feature.base:
                coded[:, i] = self._one_hot(frame, feature)
            elif feature.discrete:
                coded[:, i] = self._level_codes(frame[feature.columns[0]], feature)
            else:
                coded[:, i] = self._numbers(frame[feature.columns[0]], feature)
        return coded

    def _as_frame(self, rows: pd.DataFrame | ArrayLike) -> pd.DataFrame:
        if isinstance(rows, pd.DataFrame):
            if rows.columns.has_duplicates:
                twice = sorted({str(c) for c in rows.columns[rows.columns.duplicated()]})
                raise DataError(f"the table has columns that occur twice: {', '.join(twice)}; rename or drop one")
            frame = rows.rename(columns=str)
            missing = [c for c in self.columns if c not in frame.columns]
            extra = [c for c in frame.columns if c not in self.columns]
            if missing or extra:
                parts = []
                if missing:
                    parts.append(f"misses {listed(missing)}")
                if extra:
                    parts.append(f"has the unknown {listed(extra)}")
                raise DataError(f"the table {' and '.join(parts)}; the model was given: {listed(self.columns)}")
            return frame[list(self.columns)]
        array = np.asarray(rows)
        if array.ndim == 1:
            array = array[None, :]
        if array.ndim != 2 or array.shape[1] != len(self.columns):
            raise DataError(f"rows have shape {array.shape}; expected (n, {len(self.columns)})")
        return pd.DataFrame(array, columns=list(self.columns))

    @staticmethod
    def _numbers(column: pd.Series[Any], feature: Feature) -> FloatArray:
        try:
            values = pd.to_numeric(column).to_numpy(np.float64, na_value=np.nan)
        except (ValueError, TypeError) as error:
            raise DataError(f"column {column.name!r} should hold numbers: {error}") from None
        if np.isinf(values).any():
            raise DataError(
                f"column {column.name!r} holds an infinite value in row {int(np.flatnonzero(np.isinf(values))[0])}; "
                "replace it by a number"
            )
        return values

    @staticmethod
    def _level_codes(column: pd.Series[Any], feature: Feature) -> FloatArray:
        codes = column.map(lambda v: feature.codes.get(v, -1), na_action="ignore").astype(object)
        values = np.array([np.nan if pd.isna(c) else float(c) for c in codes])
        if (values == -1).any():
            row = int(np.flatnonzero(values == -1)[0])
            raise DataError(
                f"column {column.name!r}, row {row}: unknown level {nearest(column.iloc[row], feature.levels)}"
            )
        return values

    @staticmethod
    def _one_hot(frame: pd.DataFrame, feature: Feature) -> FloatArray:
        values = frame[list(feature.columns)].to_numpy(np.float64)
        sums = values.sum(axis=1)
        ok = np.isin(values, (0.0, 1.0)).all(axis=1) & ((sums == 1) | (feature.base & (sums == 0)))
        if not ok.all():
            row = int(np.flatnonzero(~ok)[0])
            raise DataError(
                f"feature {feature.name!r}, row {row}: its indicator columns must hold 0 and a single 1; "
                f"found {values[row].tolist()}"
            )
        codes = values.argmax(axis=1) + int(feature.base)
        return np.where(sums == 0, 0, codes).astype(np.float64)

    def to_frame(self, coded: ArrayLike) -> pd.DataFrame:
        """Table of coded rows, in the user's columns, order, words and dtypes.

        Parameters
        ----------
        coded : (n, n_features) float64
        """
        coded = np.atleast_2d(np.asarray(coded, np.float64))
        out: dict[str, Any] = {}
        for i, feature in enumerate(self.features):
            if len(feature.columns) > 1 or feature.base:
                for k, column in enumerate(feature.columns):
                    out[column] = _as_dtype(coded[:, i] == k + feature.base, feature.dtype)
            elif feature.discrete:
                missing = np.isnan(coded[:, i])
                codes = np.where(missing, 0, coded[:, i]).astype(int)
                levels = pd.Series(list(feature.levels), dtype=object).to_numpy()[codes]
                levels[missing] = None
                out[feature.columns[0]] = _as_dtype(levels, feature.dtype)
            else:
                out[feature.columns[0]] = _as_dtype(coded[:, i], feature.dtype)
        return pd.DataFrame(out)[list(self.columns)]

    # -- JSON ----------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict; `from_dict` is its inverse."""
        return {"columns": list(self.columns), "features": [dict(f) for f in self._described]}

    @cached_property
    def _described(self) -> tuple[dict[str, Any], ...]:
        return tuple(_feature_to_dict(f) for f in self.features)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FeatureSpace:
        """Space from what `to_dict` wrote."""
        return cls(tuple(_feature_from_dict(f) for f in data["features"]), tuple(data["columns"]))


def _feature_to_dict(feature: Feature) -> dict[str, Any]:
    cost = None if feature.cost is None else feature.cost.to_plain()
    out: dict[str, Any] = _plain(asdict(replace(feature, cost=None)) | {"cost": cost})
    return out


def _feature_from_dict(data: Mapping[str, Any]) -> Feature:
    fields: dict[str, Any] = dict(data)
    for name in ("columns", "levels", "permitted"):
        if fields.get(name) is not None:
            fields[name] = tuple(fields[name])
    for name in ("lower", "upper"):
        fields[name] = float(fields[name])  # "inf" and "-inf" are written as words, for JSON has none
    if fields.get("permitted") is not None and fields.get("kind") in ("numeric", "integer"):
        low, high = fields["permitted"]
        fields["permitted"] = (float(low), float(high))
    if fields.get("cost") is not None:
        fields["cost"] = Curve.parse(fields["cost"])
    return Feature(**fields)


def _plain(value: Any) -> Any:
    """Value with NumPy scalars made Python's and infinities made words."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _as_dtype(values: NDArray[Any], dtype: str) -> pd.Series[Any]:
    series = pd.Series(values)
    try:
        if dtype in ("float16", "float32") and not np.array_equal(
            series.to_numpy(np.float64), series.to_numpy(dtype).astype(np.float64), equal_nan=True
        ):
            return series  # a value of the row itself that the dtype cannot hold stays exact
        typed = series.astype(cast(Any, dtype))  # a dtype's name, which the stubs do not know
        if dtype.startswith(("int", "uint")) and not np.array_equal(typed.to_numpy(np.float64), values.astype(float)):
            return series  # halves would be cut off, and large numbers wrap around
        return typed
    except (TypeError, ValueError):
        return series

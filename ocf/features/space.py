"""The features of a table together: names, order, coding of rows and back."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ocf.arrays import BoolArray, FloatArray
from ocf.errors import DataError, ProblemError
from ocf.features.curve import Curve
from ocf.features.feature import Feature
from ocf.features.number_dtypes import holds_gaps, recast, recast_level
from ocf.features.numbers import column_of, in_dtype, numbers_of
from ocf.features.reading import Reading, lines_of
from ocf.features.special import Special
from ocf.support.amounts import plain_value
from ocf.support.documents import fit
from ocf.support.json_dtypes import plain
from ocf.support.messages import listed, nearest
from ocf.support.schemas import FeatureSchema, SpaceSchema


def counterfactual_frame(
    space: FeatureSpace, original: pd.DataFrame, origin: FloatArray, point: FloatArray
) -> pd.DataFrame:
    """The user's own row with only what changes overwritten; the rest is taken over bit by bit.

    Parameters
    ----------
    space : FeatureSpace
    original : DataFrame (1, n_columns)
        As the user gave it: own order of columns, own dtypes.
    origin, point : (n_features,) float64
        The row and the point, coded.
    """
    table = original.copy()
    places = {str(c): k for k, c in enumerate(table.columns.tolist())}
    dtypes = table.dtypes.tolist()
    origin, point = space.without_missing(origin), space.without_missing(point)
    for i in np.flatnonzero((point != origin) & ~(np.isnan(point) & np.isnan(origin))):
        feature = space.features[i]
        for k, column in enumerate(feature.columns):
            if len(feature.columns) > 1 or feature.base:
                value: Any = int(point[i] == k + feature.base)
            else:
                value = feature.label(point[i])
            place = places[column]
            old: Any = table.iat[0, place]
            if value is None or pd.isna(old) or old != value:
                _write(table, place, feature.gap if value is None else value, dtypes[place])
    return table


def in_order(columns: Sequence[str]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """What gives tables these columns in this order, named by text; a table that has them so is given back itself.

    Parameters
    ----------
    columns : sequence of str
    """
    wanted = list(columns)

    def ordered(table: pd.DataFrame) -> pd.DataFrame:
        return table if table.columns.tolist() == wanted else table.rename(columns=str)[wanted]

    return ordered


def _write(table: pd.DataFrame, place: int, value: Any, dtype: Any) -> None:
    """Overwrite a column of a table of one row; its dtype stays where that holds the value exactly."""
    if type(value) in (int, float) and isinstance(dtype, np.dtype) and dtype.kind in "iuf" and value == value:
        with np.errstate(over="ignore"), suppress(OverflowError):
            typed = dtype.type(value)
            # a NumPy scalar compares with a Python float in its own, lower precision; a Python number does not
            if typed.item() == value:
                table.iat[0, place] = typed
                return
    # as a Series, since pandas guesses the dtype of an array of objects anew
    table.isetitem(place, _held(value, dtype).set_axis(table.index))


def _held(value: Any, dtype: Any) -> Any:
    """Column of one value, in the given dtype if that holds it exactly; None and NaN are missing values."""
    if value is None or value != value:
        blank = pd.Series([value], dtype=object)
        return blank.astype(dtype if holds_gaps(str(dtype)) else np.float64)
    if isinstance(dtype, pd.CategoricalDtype):
        categories = list(dtype.categories)
        known = categories if value in categories else [*categories, value]
        return pd.Series(pd.Categorical([value], categories=known, ordered=dtype.ordered))
    try:
        column = pd.Series([value], dtype=dtype)
        held = column.iloc[0]
        # a NumPy scalar compares with a Python float in its own, lower precision; a Python number does not
        if plain_value(held) == value:
            return column
    except (TypeError, ValueError, OverflowError):
        pass
    return pd.Series([value])


def _with_codes(feature: Feature, numbers: FloatArray, dtype: str) -> FloatArray:
    """Numbers of rows with the codes as the data hold them, where the rows hold them in another dtype."""
    codes = () if feature.special is None else feature.special.codes
    for code in codes:
        other = recast(code, feature.dtype, dtype)
        if other != code:
            numbers = np.where(numbers == other, code, numbers)
    return numbers


def _broken(frame: pd.DataFrame, feature: Feature) -> dict[int, str]:
    """What is wrong with rows in which a feature's indicator columns are not one-hot, by their places."""
    own = frame[list(feature.columns)]
    values = _indicators(own)
    sums = values.sum(axis=1)
    ok = np.isin(values, (0.0, 1.0)).all(axis=1) & ((sums == 1) | (feature.base & (sums == 0)))
    said = (
        f"its indicator columns {listed(feature.columns, 6)} must hold 0 and {'at most ' * feature.base}a single 1, "
        "as in the data, but "
    )
    remedy = "; mend the row, or have the columns read one by one (groups=False)"
    return {int(row): f"{said}{_ones(own.iloc[row], values[row])}{remedy}" for row in np.flatnonzero(~ok)}


def _indicators(columns: pd.DataFrame) -> FloatArray:
    """Numbers that indicator columns hold; NaN where it is something else."""
    try:
        return columns.to_numpy(np.float64)
    except (TypeError, ValueError):
        return columns.apply(pd.to_numeric, errors="coerce").to_numpy(np.float64, na_value=np.nan)


def _ones(row: pd.Series[Any], values: FloatArray) -> str:
    """What indicator columns of a row hold that they should not, in words."""
    held = zip(row.index, row, values.tolist(), strict=True)
    odd = [f"{c} holds {own if v != v else f'{v:g}'}" for c, own, v in held if v not in (0.0, 1.0)]
    ones = [c for c, v in zip(row.index, values.tolist(), strict=True) if v == 1]
    return listed(odd or [f"{c} holds 1" for c in ones], 6) if odd or ones else "none of them holds 1"


def names_to_vary(said: Iterable[Hashable] | Literal["all"]) -> tuple[Hashable, ...] | Literal["all"]:
    """Names of the features that may vary, in a tuple: an iterator is spent once it is read.

    Raises
    ------
    ProblemError
        A text, or something else, stands where a list is due.
    """
    if isinstance(said, str) and said == "all":
        return "all"
    if isinstance(said, str) or not isinstance(said, Iterable):
        raise ProblemError(f"features_to_vary is 'all' or a list of feature names, not {said!r}")
    return tuple(said)


@dataclass(frozen=True)
class FeatureSpace:
    """The features of a table, and the way from table to coded rows and back.

    Attributes
    ----------
    features : tuple of Feature
    columns : tuple of str
        Columns of the user's table, in the user's order.
    reading : Reading or None
        Where the description comes from, if that is a table. Printing the space tells of it.
    """

    features: tuple[Feature, ...]
    columns: tuple[str, ...] = field(default=())
    reading: Reading | None = field(default=None, compare=False, repr=False)

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

    def __str__(self) -> str:
        return "\n".join(lines_of(self.features, len(self.columns), self.reading))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(f.name for f in self.features)

    @cached_property
    def least_cost(self) -> float:
        """What no change costs less than: nothing, or -inf where a state is preferred."""
        return -np.inf if any(f.cost is not None and f.cost.rewards for f in self.features) else 0.0

    @cached_property
    def discrete(self) -> BoolArray:
        """Which features are discrete, (n_features,)."""
        return np.array([feature.discrete for feature in self.features], bool)

    def index(self, name: Hashable) -> int:
        """Position of a feature by name; a label of a column that is no string, such as a number, by its text."""
        try:
            return self.names.index(str(name))
        except ValueError:
            raise ProblemError(self._no_such(str(name))) from None

    def _no_such(self, name: str) -> str:
        for feature in self.features:
            if name in feature.columns:
                return (
                    f"{name!r} is a column of the feature {feature.name!r}, one category: name that, with levels such "
                    f"as {feature.levels[-1]!r}, or have its columns read one by one (groups=False)"
                )
        return f"no such feature: {nearest(name, self.names)}"

    def updated(self, changes: Mapping[str, Mapping[str, Any]]) -> FeatureSpace:
        """Space with some attributes of some features replaced."""
        features = list(self.features)
        for name, change in changes.items():
            i = self.index(name)
            features[i] = replace(features[i], **change)
        return replace(self, features=tuple(features))

    def varying(self, names: Iterable[Hashable] | Literal["all"]) -> FeatureSpace:
        """Space in which all other features than those that are named are fixed.

        Parameters
        ----------
        names : "all" or iterable of str

        Raises
        ------
        ProblemError
            There is no such feature, or a text stands where a list is due.
        """
        names = names_to_vary(names)
        if names == "all":
            return self
        vary = {self.index(name) for name in names}
        return self.updated({n: {"action": "fixed"} for k, n in enumerate(self.names) if k not in vary})

    def with_missing(self, coded: FloatArray) -> FloatArray:
        """Coded rows, (..., n_features), with the code of a missing value in the place of NaN, where it is a value."""
        codes = [f.missing_code if f.special is not None and f.special.missing else np.nan for f in self.features]
        return np.where(np.isnan(coded), codes, coded)

    def without_missing(self, coded: FloatArray) -> FloatArray:
        """Coded rows, (..., n_features), with NaN in the place of the code of a missing value."""
        return np.where(coded == [f.missing_code for f in self.features], np.nan, coded)

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
                column = frame[feature.columns[0]]
                coded[:, i] = _with_codes(feature, numbers_of(column, feature.dtype), str(column.dtype))
        return coded

    def _as_frame(self, rows: pd.DataFrame | ArrayLike) -> pd.DataFrame:
        if isinstance(rows, pd.DataFrame):
            if rows.columns.tolist() == list(self.columns):
                return rows
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
    def _level_codes(column: pd.Series[Any], feature: Feature) -> FloatArray:
        place, words = pd.factorize(column)
        dtype = str(column.dtype)
        known = [feature.codes.get(recast_level(v, dtype, feature.dtype), -1) for v in words]
        codes = np.array([*known, np.nan])  # the last is that of missing values
        values = codes[place]
        if (values == -1).any():
            row = int(np.flatnonzero(values == -1)[0])
            where = f", row {row}" if len(column) > 1 else ""
            raise DataError(f"column {column.name!r}{where}: unknown level {nearest(column.iloc[row], feature.levels)}")
        return values

    def broken_rows(self, rows: pd.DataFrame | ArrayLike) -> dict[int, str]:
        """What is wrong with rows whose indicator columns are not one-hot, by their places.

        Parameters
        ----------
        rows : DataFrame or array-like (n, n_columns)
            As in `from_frame`, which refuses such rows.
        """
        frame = self._as_frame(rows)
        grouped = [f for f in self.features if len(f.columns) > 1 or f.base]
        said: dict[int, str] = {}
        for feature in grouped:
            for row, wrong in _broken(frame, feature).items():
                said.setdefault(row, f"feature {feature.name!r}: {wrong}")
        return said

    @staticmethod
    def _one_hot(frame: pd.DataFrame, feature: Feature) -> FloatArray:
        for row, said in _broken(frame, feature).items():
            where = f", row {row}" if len(frame) > 1 else ""
            raise DataError(f"feature {feature.name!r}{where}: {said}")
        values = _indicators(frame[list(feature.columns)])
        codes = values.argmax(axis=1) + int(feature.base)
        return np.where(values.sum(axis=1) == 0, 0, codes).astype(np.float64)

    def to_frame(self, coded: ArrayLike) -> pd.DataFrame:
        """Table of coded rows, in the user's columns, order, words and dtypes.

        Parameters
        ----------
        coded : (n, n_features) float64
        """
        coded = self.without_missing(np.atleast_2d(np.asarray(coded, np.float64)))
        out: dict[str, Any] = {}
        for i, feature in enumerate(self.features):
            if len(feature.columns) > 1 or feature.base:
                for k, column in enumerate(feature.columns):
                    out[column] = in_dtype(coded[:, i] == k + feature.base, feature.dtype)
            elif feature.discrete:
                missing = np.isnan(coded[:, i])
                codes = np.where(missing, 0, coded[:, i]).astype(int)
                levels = pd.Series(list(feature.levels), dtype=object).to_numpy()[codes]
                levels[missing] = feature.gap
                if feature.dtype == "category":  # of all levels, whichever are there
                    out[feature.columns[0]] = pd.Categorical(levels, list(feature.levels))
                else:
                    out[feature.columns[0]] = in_dtype(levels, feature.dtype)
            else:
                out[feature.columns[0]] = column_of(
                    coded[:, i], feature.dtype, whole=feature.kind == "integer", gap=feature.gap
                )
        return pd.DataFrame({column: out[column] for column in self.columns})

    # -- JSON ----------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict; `from_dict` is its inverse."""
        return {"columns": list(self.columns), "features": [dict(f) for f in self._described]}

    @cached_property
    def _described(self) -> tuple[dict[str, Any], ...]:
        return tuple(_feature_to_dict(f) for f in self.features)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FeatureSpace:
        """Space from what `to_dict` wrote.

        Raises
        ------
        DataError
            It is something else.
        """
        return cls.from_schema(fit(data, SpaceSchema, "the features"))

    @classmethod
    def from_schema(cls, found: SpaceSchema) -> FeatureSpace:
        """Space from plain values that are known to have the right types."""
        return cls(tuple(map(_feature_from_schema, found.features)), tuple(found.columns))


def _feature_to_dict(feature: Feature) -> dict[str, Any]:
    cost = None if feature.cost is None else feature.cost.to_plain()
    out: dict[str, Any] = plain(asdict(replace(feature, cost=None)) | {"cost": cost})
    return out


def _feature_from_schema(found: FeatureSchema) -> Feature:
    permitted = None if found.permitted is None else tuple(found.permitted)
    if permitted is not None and found.kind in ("numeric", "integer"):
        low, high = permitted
        permitted = (float(low), float(high))  # type: ignore[arg-type]
    made = msgspec.structs.asdict(found) | {
        "columns": tuple(found.columns),
        "levels": tuple(found.levels),
        "lower": float(found.lower),  # "inf" and "-inf" are written as words, for JSON has none
        "upper": float(found.upper),
        "permitted": permitted,
        "cost": None if found.cost is None else Curve.parse(found.cost),
        "special": None if found.special is None else Special(**msgspec.structs.asdict(found.special)),
    }
    return Feature(**made)

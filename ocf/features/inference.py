"""Feature descriptions inferred from a table, overridden by what the user says."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ocf.errors import DataError, ProblemError
from ocf.features import times
from ocf.features.curve import Curve, exact
from ocf.features.feature import Feature, Kind
from ocf.features.frames import plain_columns, table_of
from ocf.features.indicators import indicator_groups
from ocf.features.number_dtypes import held, held_level, number_dtype
from ocf.features.numbers import DECIMAL, decimal_places, dtype_of, numbers_of
from ocf.features.reading import Reading, code_like
from ocf.features.space import FeatureSpace
from ocf.features.special import Special
from ocf.support.amounts import plain_value
from ocf.support.messages import nearest

logger = logging.getLogger(__name__)

#: What a user may say of a feature (in a dict or in the ``[features.NAME]`` table of a problem file).
SETTINGS = (
    "kind", "columns", "base", "levels", "bounds", "step", "scale", "actionability", "weight", "permitted_range",
    "cost", "special_values",
)  # fmt: skip

#: What settings look like.
EXAMPLE = "{'age': {'actionability': 'fixed'}}"


def as_table(data: Any, names: tuple[str, ...] | None = None) -> pd.DataFrame:
    """Table of `data`; the columns of an array are named after the model's, or x0, x1, ….

    Parameters
    ----------
    data : table or (n, n_columns) array_like
        A DataFrame of pandas, polars or another library, a structured array, a dict of columns or a list of dicts.
    names : tuple of str, optional
        Columns as the model knows them.
    """
    found = table_of(data)
    if found is not None:
        if found.columns.nlevels > 1:
            raise DataError(
                f"the columns of the table have names of {found.columns.nlevels} levels, such as {found.columns[0]!r}: "
                "give each one name, such as by table.columns = ['_'.join(map(str, c)) for c in table.columns], and "
                "fit the model on that table"
            )
        table = found.rename(columns=str)
        if not table.columns.is_unique:
            twice = table.columns[table.columns.duplicated()][0]
            raise DataError(f"two columns of the table are named {twice!r}: give each a name of its own")
        return table
    array = np.asarray(data)
    if array.ndim != 2:
        raise DataError(f"data must be a table (n_rows, n_columns), not an array of shape {array.shape}")
    if names is None or len(names) != array.shape[1]:
        names = tuple(f"x{j}" for j in range(array.shape[1]))
    return plain_columns(pd.DataFrame(array, columns=list(names)))


def infer_space(
    data: pd.DataFrame | ArrayLike,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    special_values: Sequence[float] | Mapping[str, Sequence[float]] | None = None,
    *,
    groups: bool = False,
) -> FeatureSpace:
    """Describe the features of a table.

    Text and category columns become categorical; bool columns and number columns that hold just 0 and 1 binary;
    whole-number dtypes integer, and so are floats that are whole wherever there is a value and float because there are
    gaps; other numbers numeric, also those of Decimals, with the last of their digits as step. Columns of Python's
    objects are what they hold. Dates, times and durations are ordered numbers of days: integer where all are whole
    days, otherwise numeric on a grid of hours, minutes, …; settings may give them as dates and durations. Bounds are
    the lowest and highest value in the data, the scale their difference.

    Parameters
    ----------
    data : DataFrame or array-like (n, n_columns)
        Ideally the training data.
    settings : mapping of feature name to mapping, optional
        Any of `SETTINGS`. A categorical feature that the table holds as indicator columns is described by
        ``{"job": {"kind": "categorical", "columns": {"clerk": "job_clerk", "smith": "job_smith"}}}``; levels
        without an indicator go in ``base``: ``{"base": "none", …}``.
    special_values : sequence of number, or mapping of feature name to such, optional
        Codes that stand for something else than their number; a sequence is that of every number column. Bounds and
        scales are those of the other values.
    groups : bool
        Whether to recognise indicator columns of one category (`ocf.features.indicators`). They get the stem of their
        names as name. Settings that name one of the columns by itself keep its group from being read as one.

    Returns
    -------
    FeatureSpace
    """
    table = as_table(data)
    if table.empty:
        raise DataError("the data table is empty: give at least one row")
    said = _mappings(settings or {})
    recognised = _recognised(table, said) if groups else {}
    settings = {**said, **{name: {**own, **said.get(name, {})} for name, own in recognised.items()}}
    settings = _with_special(table, settings, special_values)
    held = {name: s for name, s in settings.items() if isinstance(s.get("columns"), Mapping | list | tuple)}
    grouped = {column: name for name, s in held.items() for column in _columns(s)}
    for name, setting in settings.items():
        for key in setting:
            if key not in SETTINGS:
                raise DataError(f"feature {name!r}: unknown setting {nearest(key, SETTINGS)}")
        if name not in held and name not in table.columns:
            raise DataError(f"settings for a feature that the data does not have: {nearest(name, table.columns)}")
    for column in grouped:
        if column not in table.columns:
            raise DataError(f"feature {grouped[column]!r}: no column {nearest(column, table.columns)}")
    features: list[Feature] = []
    done: set[str] = set()
    for column in table.columns:
        name = grouped.get(column, column)
        if name not in done:
            done.add(name)
            setting = settings.get(name, {})
            feature = _one_hot(name, setting, table) if name in held else _single(table[column], setting)
            features.append(_permitting(feature, setting.get("permitted_range")))
    return FeatureSpace(tuple(features), tuple(table.columns), _reading(table, features, said, recognised))


def _mappings(settings: Any) -> Mapping[str, Mapping[str, Any]]:
    """Settings, if they are mappings of names, or labels of columns, to mappings."""
    if not isinstance(settings, Mapping):
        raise DataError(f"features is a mapping of names to settings, such as {EXAMPLE}, not {settings!r}")
    for name, own in settings.items():
        if not isinstance(own, Mapping):
            raise DataError(f"the settings of feature {name!r} are a mapping, such as in {EXAMPLE}, not {own!r}")
    return {str(name): own for name, own in settings.items()}


def _recognised(table: pd.DataFrame, said: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Groups of indicator columns of which settings name no column."""
    named = {*said, *(column for s in said.values() if "columns" in s for column in _columns(s))}
    found = indicator_groups(table)
    for name, own in found.items():
        if column := next((c for c in own["columns"].values() if c in said and "columns" not in said[c]), None):
            logger.warning(
                "features names %r, an indicator column of %r: its columns are read one by one, and answers may set "
                "several of them or none; say it of %r to keep one category",
                column,
                name,
                name,
            )
    return {
        name: own
        for name, own in found.items()
        if not named & {*own["columns"].values()} and "columns" not in said.get(name, {})
    }


def _reading(
    table: pd.DataFrame,
    features: Sequence[Feature],
    said: Mapping[str, Mapping[str, Any]],
    recognised: Collection[str],
) -> Reading:
    """Where the description of the features comes from."""
    plain = [f for f in features if not f.discrete and not f.is_time]
    whole = (
        f.name
        for f in plain
        if f.kind == "integer" and "kind" not in said.get(f.name, {}) and _is_float(table[f.columns[0]])
    )
    looked = {f.name: code_like(numbers_of(table[f.columns[0]].dropna(), f.dtype)) for f in plain if not f.special}
    return Reading(
        len(table),
        told=tuple(name for name, s in said.items() if "bounds" in s),
        groups=tuple(f.name for f in features if f.name in recognised),
        whole=tuple(whole),
        suspects=tuple((name, codes) for name, codes in looked.items() if codes),
    )


def _is_float(column: pd.Series[Any]) -> bool:
    """Whether the dtype of a column is one of floats."""
    number = number_dtype(str(column.dtype))
    return number is not None and number.kind == "f"


def _with_special(
    table: pd.DataFrame,
    settings: Mapping[str, Mapping[str, Any]],
    special: Sequence[float] | Mapping[str, Sequence[float]] | None,
) -> dict[str, Mapping[str, Any]]:
    """Settings with the special values; what a feature's own setting says goes first."""
    out = dict(settings)
    if special is None:
        return out
    if not isinstance(special, Mapping):
        codes = _codes_of(special)
        held = {
            c for s in settings.values() if isinstance(s.get("columns"), Mapping | list | tuple) for c in _columns(s)
        }
        plain = [c for c in table.columns if c not in held and _has_numbers(table[c].dropna(), settings.get(c, {}))]
        special = dict.fromkeys(plain, codes)
    for name, own in special.items():
        out[name] = {"special_values": own, **out.get(name, {})}
    return out


def _codes_of(said: Any) -> list[Any]:
    """Special values, as Python's own numbers."""
    if isinstance(said, str | bytes) or not isinstance(said, Iterable):
        raise DataError(f"special_values is a list of numbers such as [-9, -8], or such lists by feature, not {said!r}")
    return [plain_value(v) for v in said]


def _has_numbers(values: pd.Series[Any], setting: Mapping[str, Any]) -> bool:
    """Whether a column is, or would be, a feature with a line of numbers."""
    if values.empty:
        return False
    dtype, numeric = dtype_of(values)
    return not times.is_time(dtype) and (setting.get("kind") or _kind(values, dtype, numeric, setting)) in (
        "numeric",
        "integer",
    )


def _columns(setting: Mapping[str, Any]) -> list[str]:
    columns = setting["columns"]
    return [str(c) for c in (columns.values() if isinstance(columns, Mapping) else columns)]


def _one_hot(name: str, setting: Mapping[str, Any], table: pd.DataFrame) -> Feature:
    columns = _columns(setting)
    unfit = {"levels", "bounds", "step", "special_values"} & set(setting)
    if unfit:
        raise DataError(f"feature {name!r}: {', '.join(sorted(unfit))} does not fit indicator columns")
    if isinstance(setting["columns"], Mapping):
        levels = list(setting["columns"])
    else:
        levels = [c.removeprefix(f"{name}_") for c in columns]
    if "base" in setting:
        levels.insert(0, setting["base"])
    return Feature(
        name,
        cast(Kind, setting.get("kind", "categorical")),
        columns=tuple(columns),
        base="base" in setting,
        dtype=str(table[columns[0]].dtype),
        levels=tuple(levels),
        **_common(name, setting, default_scale=max(len(levels) - 1.0, 1.0)),
    )


def _single(column: pd.Series[Any], setting: Mapping[str, Any]) -> Feature:
    name = str(column.name)
    values = column.dropna()
    if "base" in setting:
        raise DataError(f"feature {name!r}: 'base' belongs to features with indicator columns")
    if values.empty and not {"bounds", "levels"} & set(setting):
        raise DataError(f"column {name!r} holds no value: give it bounds or levels, or fit the model without it")
    special = None
    dtype, numeric = dtype_of(values)
    if "special_values" in setting:
        special = Special(tuple(_codes_of(setting["special_values"])))
        for fault in special.faults():
            raise DataError(f"feature {name!r}: {fault}")
        special = replace(special, codes=tuple(held(c, dtype) for c in special.codes))
    kind = cast(Kind, setting.get("kind") or _kind(values, dtype, numeric, setting))
    if kind == "numeric" and not {"kind", "step"} & set(setting) and 0 < len(values) < len(column) and _whole(values):
        kind = "integer"
    unfit = {"levels"} if kind in ("numeric", "integer") else {"bounds", "step"}
    if unfit & set(setting):
        raise DataError(f"feature {name!r}: {', '.join(sorted(unfit & set(setting)))} does not fit kind {kind!r}")
    if kind in ("numeric", "integer"):
        return _of_numbers(values, dtype, kind, setting, special, _holds_none(column))
    if times.is_time(dtype):
        raise DataError(
            f"feature {name!r}: dates and durations are ordered numbers, not {kind}: leave the kind out, or make the "
            "column text, such as by astype(str), before the model is fitted"
        )
    truth = (False, True) if kind == "binary" and pd.api.types.is_bool_dtype(values.infer_objects()) else None
    said = tuple(held_level(v, dtype) for v in setting.get("levels", ()))
    levels = said or truth or tuple(_sorted_levels(values))
    span = len(levels) - 1.0
    if kind == "ordinal" and all(isinstance(v, int | float) and not isinstance(v, bool) for v in levels):
        ordinary = [v for v in levels if special is None or v not in special.codes]
        span = float(ordinary[-1] - ordinary[0]) if ordinary else span
    return Feature(
        name,
        kind,
        dtype=str(column.dtype),
        levels=levels,
        special=special,
        none=_holds_none(column),
        **_common(name, setting, default_scale=1.0 if kind == "binary" else span),
    )


def _holds_none(column: pd.Series[Any]) -> bool:
    """Whether None, and not NaN, stands in a column of objects where a value is missing."""
    return bool(column.dtype == object and any(v is None for v in column))


def _of_numbers(
    values: pd.Series[Any], dtype: str, kind: Kind, setting: Mapping[str, Any], special: Special | None, none: bool
) -> Feature:
    """Feature of a column of numbers, dates or durations, none of them missing; `none` as in `Feature`."""
    name = str(values.name)
    numbers, step = numbers_of(values, dtype), setting.get("step")
    if special is not None:
        if times.is_time(dtype):
            raise DataError(f"feature {name!r}: special values are numbers, but the column holds dates or durations")
        numbers = numbers[~np.isin(numbers, special.codes)]
        if not len(numbers) and "bounds" not in setting:
            raise DataError(f"column {name!r} holds nothing but special values: drop it, or give it bounds")
    if step is not None and not times.is_time(dtype):
        step = _number(name, "step", step)
    if times.is_time(dtype):
        setting = _in_days(name, setting, dtype)
        step = setting.get("step") or (1.0 if kind == "integer" else 1 / times.parts_of(numbers))
        kind, step = ("integer", None) if step == 1 else ("numeric", step)
    elif kind == "integer" and step is not None:
        if not step.is_integer():
            raise DataError(
                f"feature {name!r}: step {step} should be a whole number, as the column holds whole numbers"
            )
        kind = "numeric"
    elif dtype == DECIMAL and step is None and kind == "numeric" and 0 <= (places := decimal_places(values)) <= 9:
        step = float(f"1e-{places}")
    said = setting["bounds"] if "bounds" in setting else (numbers.min(), numbers.max())
    lower, upper = (held(end, dtype) for end in _pair(name, said))
    spread = _spread(float(numbers.min()), float(numbers.max())) if len(numbers) else 0.0
    return Feature(
        name,
        kind,
        dtype=dtype,
        lower=lower,
        upper=upper,
        step=step,
        special=special,
        none=none,
        # the width of the bounds, where the data hold one value at most
        **_common(name, setting, default_scale=spread or upper - lower),
    )


def _two(name: str, key: str, said: Any) -> tuple[Any, Any]:
    """The two ends that a setting gives."""
    if isinstance(said, str) or not hasattr(said, "__len__") or len(said) != 2:
        raise DataError(f"feature {name!r}: {key} is a pair, the lowest and the highest value, not {said!r}")
    return said[0], said[1]


def _pair(name: str, said: Any) -> tuple[float, float]:
    """Bounds as numbers; words are dates, and those are days before they come here."""
    ends, what = _two(name, "bounds", said), "a pair of numbers, such as [0, 100]"
    if any(isinstance(end, str) for end in ends):
        raise _no_number(name, "bounds", said, what)
    low, high = (_number(name, "bounds", end, what) for end in ends)
    return low, high


def _number(name: str, key: str, said: Any, what: str = "a number") -> float:
    """A setting as a number."""
    try:
        return float(said)
    except (TypeError, ValueError, OverflowError):
        raise _no_number(name, key, said, what) from None


def _no_number(name: str, key: str, said: Any, what: str) -> DataError:
    return DataError(f"feature {name!r}: {key} is {what}, not {said!r}: leave the setting out for that of the data")


def _spread(low: float, high: float) -> float:
    """How far two decimals are apart, not more: 3.03 from -1.1 to 1.93, whose floats are 3.0300000000000002 apart."""
    apart = exact(high) - exact(low)
    try:
        nearest_float = float(apart)
    except OverflowError:
        return high - low
    return math.nextafter(nearest_float, 0) if exact(nearest_float) > apart else nearest_float


def _in_days(name: str, setting: Mapping[str, Any], dtype: str) -> dict[str, Any]:
    """Settings of dates or durations with days in the place of dates and durations."""
    out = dict(setting)
    if "bounds" in out:
        out["bounds"] = tuple(times.days(v, dtype, name) for v in _two(name, "bounds", out["bounds"]))
    for key in ("scale", "step"):
        if out.get(key) is not None:
            out[key] = times.days(out[key], times.DURATIONS, name)
    return out


def _kind(values: pd.Series[Any], dtype: str, numeric: bool, setting: Mapping[str, Any]) -> str:
    if values.empty:
        return "numeric" if "bounds" in setting else "categorical"
    if not numeric:
        return "categorical"
    if times.is_time(dtype):
        return "numeric"
    if pd.api.types.is_bool_dtype(values) or all(isinstance(v, bool | np.bool_) for v in values.unique()):
        return "binary"
    if set(values.unique()) == {0, 1}:
        return "binary"
    if dtype == "object":
        return "integer" if pd.api.types.infer_dtype(values) == "integer" else "numeric"
    return "integer" if pd.api.types.is_integer_dtype(values) else "numeric"


def _whole(values: pd.Series[Any]) -> bool:
    """Whether floats are whole numbers, each of which the dtype tells from the next."""
    number = number_dtype(str(values.dtype))
    if number is None or number.kind != "f":
        return False
    numbers = values.to_numpy(np.float64)
    return bool((numbers == np.floor(numbers)).all() and (np.abs(numbers) < 2.0 ** np.finfo(number).nmant).all())


def _sorted_levels(values: pd.Series[Any]) -> list[Any]:
    if isinstance(values.dtype, pd.CategoricalDtype):
        return list(values.cat.categories)
    unique = [plain_value(v) for v in values.unique()]
    try:
        return sorted(unique)
    except TypeError:
        return sorted(unique, key=str)


def _permitting(feature: Feature, allowed: Any) -> Feature:
    try:
        return feature if allowed is None else replace(feature, permitted=feature.permitting(allowed))
    except ProblemError as error:
        raise DataError(str(error)) from None


def _curve(said: Any) -> Curve | None:
    try:
        return None if said is None else Curve.parse(said)
    except ProblemError as error:
        raise DataError(f"the cost {said!r} of a feature cannot be read: {error}") from None


def _common(name: str, setting: Mapping[str, Any], default_scale: float) -> dict[str, Any]:
    weight = setting.get("weight", 1.0)
    down, up = _two(name, "weight", weight) if isinstance(weight, list | tuple) else (weight, weight)
    if not default_scale > 0:
        default_scale = 1.0  # a feature that is constant in the data is measured in its own units
    return {
        "scale": _number(name, "scale", setting.get("scale", default_scale)),
        "action": setting.get("actionability", "free"),
        "weight_down": _number(name, "weight", down, "a number, or a pair of them"),
        "weight_up": _number(name, "weight", up, "a number, or a pair of them"),
        "cost": _curve(setting.get("cost")),
    }

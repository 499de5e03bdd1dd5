"""Columns of one-row tables as strict JSON: plain values, and dtypes from which the same values come back.

Numbers, words and truth values stand for themselves. All else stands as its text, and its kind beside it says how to
read that: intervals, periods, dates and decimals are levels of categories as well as words are.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from ocf.errors import DataError
from ocf.support.amounts import plain_value
from ocf.support.schemas import CategoriesSchema

#: Names of dtypes; what makes an array of elements of any size is none.
_DTYPE = re.compile(r"[A-Za-z_]+\d{0,3}(\[[^\[\]]*\])?(\[pyarrow\])?")

#: Kinds of pandas that hold no plain values, and of which a column or its categories may be.
_KIND = re.compile(r"(interval|period|datetime64|timedelta64)\[[^\]]*\]?(, \w+\])?")

#: Python's own objects in columns that pandas calls object: by their words, and how their texts are read.
OBJECTS: dict[str, tuple[type, Any]] = {
    "decimal": (Decimal, Decimal),
    "date": (date, date.fromisoformat),
    "datetime": (datetime, datetime.fromisoformat),
    "timedelta": (timedelta, lambda text: pd.Timedelta(text).to_pytimedelta()),
    "time": (time, time.fromisoformat),
    "bytes": (bytes, ast.literal_eval),
}

#: Dtype of a column of objects that holds NaN, where another might hold None: imputers tell them apart.
_NAN = "object[nan]"

#: How the dtype of a column of objects begins that holds a value of pandas' own; its kind follows.
_OBJECT_OF = "object of "


def plain(value: Any) -> Any:
    """Value in types that strict JSON has; missing values become None, infinities words."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return None if math.isnan(value) else value if math.isfinite(value) else str(value)
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    return value if isinstance(value, bool | int | str) else str(value)


def dtype_record(column: pd.Series[Any]) -> Any:
    """What a one-row column must be read back with, beside its plain value.

    Parameters
    ----------
    column : Series of length 1

    Raises
    ------
    DataError
        It, or one of its categories, is of a kind that no text says.
    """
    dtype, value = column.dtype, column.iloc[0]
    if isinstance(dtype, pd.CategoricalDtype):
        levels = list(dtype.categories)
        record = {"categories": plain(levels), "ordered": bool(dtype.ordered)}
        kind = _kind_of(levels, dtype.categories.dtype, column.name)
        return record | {"kind": kind} if kind else record
    if dtype != "object":
        return str(dtype)
    if isinstance(value, float) and math.isnan(value):
        return _NAN
    kind = _kind_of([value], dtype, column.name)
    return "object" if not kind else kind if kind in OBJECTS else _OBJECT_OF + kind


def column_of(value: Any, dtype: Any) -> Any:
    """The array of length 1 that a plain value and what `dtype_record` wrote stand for.

    Parameters
    ----------
    value : object
        Plain.
    dtype : str or CategoriesSchema

    Raises
    ------
    DataError
        They fit no column.
    """
    if isinstance(dtype, CategoriesSchema):
        levels: Any = _read(dtype.categories, dtype.kind) if dtype.kind else dtype.categories
        code = dtype.categories.index(value) if value in dtype.categories else -1
        return pd.Categorical.from_codes([code], categories=levels, ordered=dtype.ordered)
    if dtype.startswith(_OBJECT_OF) or dtype in ("object", _NAN, *OBJECTS):
        held = np.empty(1, dtype=object)
        kind = dtype.removeprefix(_OBJECT_OF)
        held[0] = math.nan if dtype == _NAN else value if kind == "object" or value is None else _read([value], kind)[0]
        return held
    if dtype.startswith("interval") and value is not None:
        return _read([value], dtype).array
    if not _DTYPE.fullmatch(dtype):
        raise DataError(f"{dtype[:40]!r} is no dtype of a column")
    if value is None and dtype.startswith("float"):
        value = np.nan
    try:
        held = (
            pd.array([value], dtype=dtype) if value is None else pd.Series([_native(value, dtype)], dtype=dtype).array
        )
    except DataError:
        raise
    except Exception:  # of damaged names pandas raises anything, from assertions to zones that do not exist
        raise DataError(f"{dtype[:40]!r} is no dtype of a column that holds {value!r}") from None
    return held


def stand_as_texts(column: pd.Series[Any]) -> bool:
    """Whether the values of a column, or its categories, are written as texts that stand for something else."""
    held = column.dtype.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
    return not all(_is_plain(value) for value in held)


def value_like(value: Any, column: pd.Series[Any]) -> Any:
    """What a plain value stands for in a column like another.

    Parameters
    ----------
    value : object
        Plain.
    column : Series
        Not empty.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return next((level for level in column.dtype.categories if plain(level) == value), value)
    kind = dtype_record(column)
    return column_of(value, kind)[0] if kind in OBJECTS or kind.startswith(_OBJECT_OF) else value


def _is_plain(value: Any) -> bool:
    value = plain_value(value)
    return isinstance(value, bool | int | float | str) or value is None or value is pd.NA or value is pd.NaT


def _kind_of(values: Sequence[Any], dtype: Any, name: Any) -> str:
    """How the texts of values are to be read; "" where they stand for themselves."""
    held = [plain_value(v) for v in values]
    others = [v for v in held if not _is_plain(v)]
    if not others:
        return ""
    word = next((word for word, (kind, _) in OBJECTS.items() if all(type(v) is kind for v in held)), "")
    kind = word or str(pd.Index(held).dtype if dtype == "object" else dtype)
    try:
        same = list(_read(plain(held), kind)) == held
    except (DataError, TypeError):
        same = False
    if not same:
        raise DataError(
            f"column {name!r} holds values of type {type(others[0]).__name__}, which a file of answers cannot hold: "
            "make them text before the model is fitted"
        )
    return kind


def _read(texts: Sequence[Any], kind: str) -> Any:
    """Values of a kind from their texts: a list, or an index of pandas."""
    try:
        if kind in OBJECTS:
            return [OBJECTS[kind][1](text) for text in texts]
        dtype = pd.api.types.pandas_dtype(kind) if _KIND.fullmatch(kind) else None
        if isinstance(dtype, pd.IntervalDtype) and dtype.closed:
            ends = np.array([text[1:-1].split(", ") for text in texts], object)
            left, right = (_read(side, str(dtype.subtype)) for side in ends.T)
            return pd.IntervalIndex.from_arrays(left, right, closed=dtype.closed)
        if isinstance(dtype, pd.PeriodDtype):
            return pd.PeriodIndex(list(texts), dtype=dtype)
        if isinstance(dtype, pd.DatetimeTZDtype):
            return pd.to_datetime(pd.Index(texts), utc=True, format="ISO8601").tz_convert(dtype.tz).as_unit(dtype.unit)
        if dtype is not None:
            return pd.Index([(pd.Timestamp if dtype.kind == "M" else pd.Timedelta)(t) for t in texts]).astype(dtype)
        if kind in ("int64", "uint64", "float64"):
            return pd.Index([(float if kind == "float64" else int)(text) for text in texts], dtype=kind)
    except Exception:  # of damaged texts pandas raises anything
        pass
    raise DataError(f"{', '.join(map(str, texts))[:40]!r} are no values of a column of kind {kind[:40]!r}")


def _native(value: Any, dtype: str) -> Any:
    """A value as a column of a dtype takes it.

    Raises
    ------
    DataError
        pandas would make a truth value or a number of it, and another than it says.
    """
    kind = pd.api.types.pandas_dtype(dtype)
    if pd.api.types.is_bool_dtype(kind) and value not in (False, True):
        raise DataError(f"{value!r} is no truth value, which a column of {dtype} holds")
    if isinstance(value, str) and dtype.lower().startswith("float") and value in ("inf", "-inf"):
        return float(value)  # written as a word
    if isinstance(value, str) and pd.api.types.is_numeric_dtype(kind):
        raise DataError(f"{value!r} is text, and a column of {dtype} holds numbers")
    return float(value) if dtype.lower().startswith("float") else value

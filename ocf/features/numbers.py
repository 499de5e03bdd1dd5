"""Columns of numbers as the user holds them: to float64 and back.

Numbers come as NumPy's dtypes, as pandas' and Arrow's nullable ones, as Python objects (of a mixed table that went
through an array, or Decimals), and as dates and durations (`ocf.features.times`). Whatever they come as, they are
numbers: a column of objects is no reason to take ages for categories.
"""

from __future__ import annotations

from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.errors import DataError
from ocf.features import times
from ocf.features.number_dtypes import number_dtype

#: Columns of Decimals, which pandas calls object.
DECIMAL = "decimal"

#: What pandas calls the contents of a column of objects -> what ocf calls its dtype.
_OBJECTS = {
    "integer": "object",
    "floating": "object",
    "mixed-integer-float": "object",
    "boolean": "object",
    "decimal": DECIMAL,
    "date": times.DATES,
    "datetime": times.MOMENTS,
    "datetime64": times.MOMENTS,
    "timedelta": times.DURATIONS,
    "timedelta64": times.DURATIONS,
}


def dtype_of(column: pd.Series[Any]) -> tuple[str, bool]:
    """Name of a column's dtype, and whether it holds numbers, truth values, dates or durations.

    Returns
    -------
    (str, bool)
        Columns of Python's objects get the words of `ocf.features.times`, ``"decimal"`` or ``"object"``.
    """
    name = str(column.dtype)
    if name.startswith("decimal") and name.endswith("[pyarrow]"):
        return DECIMAL, True
    if name != "object":
        return name, number_dtype(name) is not None or times.is_time(name)
    said = pd.api.types.infer_dtype(column, skipna=True)
    if said in ("mixed", "mixed-integer") and all(_is_number(v) for v in column.dropna()):
        said = "floating"
    return _OBJECTS.get(said, name), said in _OBJECTS


def _is_number(value: Any) -> bool:
    return isinstance(value, Number | np.number) and not isinstance(value, bool | np.bool_ | complex)


def numbers_of(column: pd.Series[Any], dtype: str) -> FloatArray:
    """Numbers that a column holds, (n,) float64; NaN where it is missing.

    Parameters
    ----------
    column : Series
    dtype : str
        Of the feature.

    Raises
    ------
    DataError
        It holds something else, or infinities.
    """
    if times.is_time(dtype):
        return times.days_of(column, dtype)
    own = dtype_of(column)[0]
    if times.is_time(own) or own.startswith("complex"):
        what = "complex numbers" if own.startswith("complex") else "dates, times or durations"
        raise DataError(
            f"column {column.name!r} should hold numbers, as in the data, and holds {what} ({own}): give the rows as "
            "the data is given"
        )
    try:
        is_plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiu"
        held = column if is_plain else pd.to_numeric(column)
        values = held.to_numpy(np.float64, na_value=np.nan)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(
            f"column {column.name!r} should hold numbers, as in the data: {_fault(column, error)}; give the rows "
            "as the data is given"
        ) from None
    if np.isinf(values).any():
        where = f" in row {int(np.flatnonzero(np.isinf(values))[0])}" if len(column) > 1 else ""
        raise DataError(f"column {column.name!r} holds an infinite value{where}; replace it by a number")
    return values


def _fault(column: pd.Series[Any], error: Exception) -> str:
    """Why a column cannot be read as numbers: the first word in it, with the remedy, or the error."""
    for place, value in enumerate(column):
        if isinstance(value, str) and value and np.isnan(pd.to_numeric(value, errors="coerce")):
            where = f" in row {place}" if len(column) > 1 else ""
            return f"{value!r}{where} is none; write numbers such as 14.25, and nothing where one is missing"
    return str(error).removesuffix(" at position 0") if len(column) == 1 else str(error)


def column_of(coded: FloatArray, dtype: str, *, whole: bool = False, gap: Any = None) -> pd.Series[Any] | NDArray[Any]:
    """Numbers as a column of a dtype; as they are where it does not hold them exactly.

    Parameters
    ----------
    coded : (n,) float64
        NaN where it is missing.
    dtype : str
        Of the feature.
    whole : bool
        Whether objects are Python's whole numbers.
    gap : None or NaN
        What stands among objects where a number is missing.
    """
    if times.is_time(dtype):
        return times.column_of(coded, dtype)
    if dtype in ("object", DECIMAL):
        return pd.Series([gap if v != v else _object(v, dtype, whole) for v in coded.tolist()], dtype=object)
    return in_dtype(coded, dtype)


def _object(value: float, dtype: str, whole: bool) -> Any:
    if dtype == DECIMAL:
        return Decimal(repr(value))
    return int(value) if whole and value.is_integer() else value


def in_dtype(values: NDArray[Any], dtype: str) -> pd.Series[Any] | NDArray[Any]:
    """Values as a column of a dtype; as they are, truth values as floats, where it does not hold them exactly.

    Parameters
    ----------
    values : (n,) array
        Numbers, truth values or levels; NaN or None where one is missing.
    dtype : str
    """
    if dtype == "bool" and pd.isna(values).any():  # it would make True of NaN
        return np.asarray(pd.Series(values, dtype=object), np.float64)
    number = number_dtype(dtype) is not None and values.dtype != object
    # NumPy's own dtypes need no Series on the way into a table
    held: Any = values
    if not number or dtype != str(number_dtype(dtype)):
        # pandas would choose a dtype other than that of objects by itself, and with it what stands for a missing value
        held = pd.Series(values, dtype=object if dtype == "object" else None)
    try:
        with np.errstate(all="ignore"):
            typed = held.astype(dtype)
        # halves would be cut off, large numbers wrap around, a value of the row itself stays exact; all hold 0 and 1
        if number and values.dtype != bool and not np.array_equal(_floats(typed), _floats(held), equal_nan=True):
            return held
        return typed
    except (TypeError, ValueError, OverflowError):
        return held


def _floats(values: Any) -> FloatArray:
    if isinstance(values, np.ndarray):
        return np.asarray(values, np.float64)
    return np.asarray(values.to_numpy(np.float64, na_value=np.nan), np.float64)


def decimal_places(values: pd.Series[Any]) -> int:
    """Most digits behind the point of Decimals."""
    return max((-int(v.as_tuple().exponent) for v in values if v.is_finite()), default=0)

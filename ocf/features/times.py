"""Dates, times and durations as numbers: days, counted from the first of January 1970.

A column of them has an order, and a difference of two is a number of days. The whole day is the unit; times of day are
fractions of it, whole microseconds each, so that every moment has a float64 of its own and comes back as it was.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.errors import DataError

#: Microseconds of a day.
DAY = 86_400_000_000

#: Parts of a day of which moments are usually whole multiples: days, hours, minutes, seconds, milli- and microseconds.
PARTS = (1, 24, 1440, 86_400, 86_400_000, DAY)

#: Columns of Python's own objects, which pandas calls object, by what they hold.
DATES, MOMENTS, DURATIONS = "date", "datetime", "timedelta"

#: Days that a dtype of nanoseconds can hold on either side of 1970, and those that a date can.
_NANOSECONDS, _YEARS = (-106_751.0, 106_751.0), (-719_162.0, 2_932_896.0)


def is_time(dtype: str) -> bool:
    """Whether a column of a dtype of this name holds dates, times or durations."""
    if dtype.endswith("[pyarrow]"):
        return dtype.startswith(("timestamp[", "date32[", "date64[", "duration["))
    return dtype in (DATES, MOMENTS, DURATIONS) or dtype.startswith(("datetime64[", "timedelta64["))


def is_duration(dtype: str) -> bool:
    """Whether it holds durations."""
    return dtype.startswith(("timedelta", "duration"))


def zone(dtype: str) -> str | None:
    """The time zone in the name of a dtype, if it has one."""
    inside = dtype.partition("[")[2].partition("]")[0]
    return inside.partition(",")[2].strip().removeprefix("tz=") or None


def ends(dtype: str) -> tuple[float, float]:
    """First and last day that a column can hold."""
    return _NANOSECONDS if "[ns" in dtype else _YEARS


def days_of(column: pd.Series[Any], dtype: str) -> FloatArray:
    """Days that a column holds, (n,) float64; NaN where it is missing.

    Parameters
    ----------
    column : Series
        Of a dtype of times, or of objects or words that can be read as such.
    dtype : str
        How the feature's own column holds them.

    Raises
    ------
    DataError
        It holds something else, times with a zone where there should be none or the other way round, or parts of a
        microsecond.
    """
    values = _naive(column, dtype)
    missing = values.isna().to_numpy()
    exact = values.astype("timedelta64[us]" if is_duration(dtype) else "datetime64[us]")
    if not (exact.astype(values.dtype)[~missing] == values[~missing]).all():
        raise DataError(f"{_called(column)} holds parts of a microsecond: round it, such as by dt.floor('us')")
    count = np.asarray(exact.astype("int64"), np.int64)
    days = from_microseconds(count)
    if (microseconds(days) != count)[~missing].any():
        raise DataError(
            f"{_called(column)} holds times of day too far from 1970 for float64: round it to days, "
            "such as by dt.floor('D')"
        )
    return np.where(missing, np.nan, days)


def _called(column: pd.Series[Any]) -> str:
    return "it" if column.name is None else f"column {column.name!r}"


def _naive(column: pd.Series[Any], dtype: str) -> pd.Series[Any]:
    """A column as pandas' own durations, or as moments without a zone, in UTC where they have one."""
    try:
        plain = column.astype(object) if str(column.dtype).endswith("[pyarrow]") else column
        if is_duration(dtype):
            return pd.to_timedelta(plain)
        values: pd.Series[Any] = pd.to_datetime(plain)
        if values.dtype == object:  # moments of several zones
            values = pd.to_datetime(plain, utc=True)
    except (ValueError, TypeError) as error:
        kind = "durations" if is_duration(dtype) else "dates"
        raise DataError(f"{_called(column)} should hold {kind}, such as the data's: {error}") from None
    known, wanted = getattr(values.dtype, "tz", None) is not None, zone(dtype) is not None
    if known != wanted and not values.isna().all() and dtype != MOMENTS:
        raise DataError(
            f"{_called(column)} holds times {'with' if known else 'without'} a time zone, and the data's are "
            f"{'with one' if wanted else 'without one'}: use dt.tz_localize"
        )
    return values.dt.tz_convert("UTC").dt.tz_localize(None) if known else values


def microseconds(days: FloatArray) -> NDArray[np.int64]:
    """The nearest whole microseconds of days."""
    whole = np.floor(days)
    return np.asarray(whole.astype(np.int64) * DAY + np.rint((days - whole) * DAY).astype(np.int64))


def from_microseconds(count: NDArray[np.int64]) -> FloatArray:
    """Days of microseconds."""
    # the float64 nearest to the quotient, as the multiples of a part of a day are; whole days beyond stay exact
    return np.where(np.abs(count) < 2**53, count / DAY, count // DAY + (count % DAY) / DAY)


def column_of(days: FloatArray, dtype: str) -> pd.Series[Any]:
    """Column of a dtype of times that holds days.

    Parameters
    ----------
    days : (n,) float64
        NaN where it is missing.
    dtype : str
    """
    missing = np.isnan(days)
    count = microseconds(np.where(missing, 0.0, days))
    held: pd.Series[Any] = pd.Series(count.view("timedelta64[us]" if is_duration(dtype) else "datetime64[us]"))
    held = held.mask(missing) if missing.any() else held
    if zone(dtype) is not None:
        held = held.dt.tz_localize("UTC")
    if dtype in (DATES, MOMENTS, DURATIONS):
        python = held.dt.date if dtype == DATES else held.astype(object)
        return python.astype(object).where(~missing, None)
    return held.astype(dtype)  # type: ignore[call-overload]


def days(value: Any, dtype: str, name: str | None = None) -> float:
    """Days of a single date, time or duration, given as an object or a word; numbers are days themselves.

    Parameters
    ----------
    value : object
    dtype : str
    name : str, optional
        Of the feature, for the message.
    """
    if isinstance(value, int | float | np.integer | np.floating):
        try:
            return float(value)
        except OverflowError:
            whose = "" if name is None else f"column {name!r}: "
            raise DataError(f"{whose}{value!r} days are beyond all dates") from None
    if not is_duration(dtype) and zone(dtype) is not None:
        with suppress(ValueError, TypeError):  # what is no date is told below, as what has a zone of its own
            value = pd.Timestamp(value).tz_localize(zone(dtype))
    return float(days_of(pd.Series([value], dtype=object, name=name), dtype)[0])


def parts_of(values: FloatArray) -> int:
    """The coarsest of `PARTS` of a day of which all values, in days, are whole multiples."""
    count = microseconds(values)
    return next(parts for parts in PARTS if not (count % (DAY // parts)).any())


def step_of(parts: int) -> Fraction:
    """A part of a day, exactly."""
    return Fraction(1, parts)

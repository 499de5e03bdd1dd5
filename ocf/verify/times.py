"""The check's own reading of dates, times and durations: nothing of it is shared with `ocf.features.times`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pandas as pd

#: How dtypes of durations and of dates and times begin.
DURATIONS = ("timedelta", "duration")
TIMES = ("datetime", "date", "timestamp", *DURATIONS)


def is_time(feature: Mapping[str, Any]) -> bool:
    """Whether the numbers of a feature's description are days."""
    return not feature["levels"] and feature.get("dtype", "").startswith(TIMES)


def days(cell: Any, dtype: str) -> float:
    """Days since the first of January 1970, or days that a duration lasts.

    Parameters
    ----------
    cell : object
        A cell of the user's table, or the words of a record, which mean the column's time zone if they name none.
    dtype : str
        Of the column.
    """
    if dtype.startswith(DURATIONS):
        cell = pd.Timedelta(cell) if isinstance(cell, str) else cell
    else:
        moment, zone = pd.Timestamp(cell), dtype.partition(",")[2].partition("]")[0].strip().removeprefix("tz=")
        moment = moment.tz_localize(zone) if zone and moment.tzinfo is None else moment
        start = pd.Timestamp(0) if moment.tzinfo is None else pd.Timestamp(0, tz="UTC")
        cell = moment.to_pydatetime(warn=False) - start.to_pydatetime()
    span = cell if type(cell) is timedelta else pd.Timedelta(cell).to_pytimedelta()
    return span / timedelta(days=1)


def moment_within(value: float, like: Any, dtype: str, low: float, high: float) -> Any:
    """The cell that is so many days, of the kind of another; the other where that falls out of a range of days.

    Parameters
    ----------
    value : float
    like : object
        A cell of the column.
    dtype : str
        Of the column.
    low, high : float
    """
    try:
        cell = like + timedelta(days=value - days(like, dtype))
    except (OverflowError, ValueError):
        return like
    return cell if low <= days(cell, dtype) <= high else like

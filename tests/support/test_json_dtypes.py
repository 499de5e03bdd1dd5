"""Columns of all kinds come back from strict JSON with the same values."""

from __future__ import annotations

import json
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf.errors import DataError
from ocf.support.json_dtypes import column_of, value_like
from ocf.support.json_records import table_from_record, table_to_record

DAY = pd.Timestamp("2020-01-01")

LEVELS: dict[str, list[Any]] = {
    "words": ["a", "b"],
    "numbers": [1.5, 2.5, np.pi],
    "whole numbers": [3, 2**60 + 1],
    "truth values": [True, False],
    "intervals": list(pd.interval_range(0, 3)),
    "intervals of fractions": list(pd.interval_range(0.1, 3.1, closed="left")),
    "intervals of moments": list(pd.interval_range(DAY, periods=3)),
    "years": list(pd.period_range("2020", "2022", freq="Y")),
    "quarters": list(pd.period_range("2020-01", "2020-12", freq="Q")),
    "weeks": list(pd.period_range("2020-01", "2020-03", freq="W")),
    "moments": [DAY, DAY + pd.Timedelta(1, "us")],
    "moments of a zone": [
        pd.Timestamp("2020-01-01", tz="Europe/Berlin"),
        pd.Timestamp("2021-07-01", tz="Europe/Berlin"),
    ],
    "durations": [pd.Timedelta(1, "D"), pd.Timedelta(2, "s")],
    "dates": [date(2020, 1, 1), date(2021, 1, 1)],
    "moments of Python": [datetime(2020, 1, 1, 3)],
    "times of day": [time(1), time(2, 30)],
    "decimals": [Decimal("1.10"), Decimal("1.1000000000000000000001")],
    "bytes": [b"a", b"it's"],
}


@pytest.mark.parametrize("how", ["categories", "objects", "own"])
@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS)
def test_levels_of_all_kinds_come_back(levels: list[Any], how: str) -> None:
    for level in levels:
        column = {
            "categories": lambda level=level: pd.Series(pd.Categorical([level], categories=levels, ordered=True)),
            "objects": lambda level=level: pd.Series([level], dtype=object),
            "own": lambda level=level: pd.Series([level]),
        }[how]()
        table = pd.DataFrame({"x": column})
        again = table_from_record(json.loads(json.dumps(table_to_record(table))), 0)
        pd.testing.assert_frame_equal(again, table)
        assert type(again.x.iloc[0]) is type(table.x.iloc[0])
        assert again.x.iloc[0] == level


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.Categorical([np.nan], categories=LEVELS["intervals"])),
        pd.Series([pd.NaT], dtype="period[M]"),
        pd.Series([None], dtype=pd.IntervalDtype("float64", "right")),
    ],
    ids=lambda column: str(column.dtype),
)
def test_missing_ones_do_too(column: pd.Series[Any]) -> None:
    table = pd.DataFrame({"x": column})
    pd.testing.assert_frame_equal(table_from_record(table_to_record(table), 0), table)


def test_what_no_text_says_is_refused_by_name() -> None:
    for held in ([object()], ["a", date(2020, 1, 1)], [1 + 2j]):
        table = pd.DataFrame({"x": pd.Series(pd.Categorical(held[:1], categories=held))})
        with pytest.raises(DataError, match=r"column 'x' holds values of type .*make them text before"):
            table_to_record(table)


@pytest.mark.parametrize(
    ("value", "kind"),
    [("(1, x]", "interval[int64, right]"), ("2020", "period[nonsense]"), ("a", "decimal"), ("2 a", "timedelta64[ns]")],
)
def test_damaged_texts_are_refused(value: str, kind: str) -> None:
    for dtype in (kind, {"categories": [value], "ordered": False, "kind": kind}):
        with pytest.raises(DataError):
            table_from_record({"values": {"x": value}, "dtypes": {"x": dtype}}, 0)
    with pytest.raises(DataError):
        column_of(value, f"object of {kind}")


def test_a_plain_value_is_read_as_its_column_holds_them() -> None:
    for name in ("intervals", "dates", "words", "years"):
        levels = LEVELS[name]
        for column in (pd.Series(pd.Categorical(levels)), pd.Series(levels, dtype=object)):
            assert value_like(str(levels[1]), column) == levels[1]

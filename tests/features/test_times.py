"""Dates, times and durations as days, and back without loss."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf.errors import DataError
from ocf.features.inference import infer_space
from ocf.features.lattice import Lattice
from ocf.features.times import DAY, PARTS, column_of, days, days_of, from_microseconds, is_time, microseconds, zone

DTYPES = (
    "datetime64[s]", "datetime64[ms]", "datetime64[us]", "datetime64[ns]", "datetime64[us, Europe/Berlin]",
    "timedelta64[s]", "timedelta64[ns]", "timestamp[us][pyarrow]", "timestamp[us, tz=UTC][pyarrow]",
    "duration[us][pyarrow]", "date", "datetime", "timedelta", "date32[day][pyarrow]",
)  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_days_come_back(dtype: str) -> None:
    assert is_time(dtype)
    whole = np.array([0.0, 1.0, -1.0, 20_000.0, -50_000.0, np.nan])
    found = days_of(column_of(whole, dtype), dtype)
    np.testing.assert_array_equal(found, whole)


@pytest.mark.parametrize("dtype", ["int64", "float64", "object", "category", "str", "Int64", "double[pyarrow]"])
def test_what_is_no_time(dtype: str) -> None:
    assert not is_time(dtype)


def test_every_microsecond_of_these_decades_is_a_number_of_its_own() -> None:
    rng = np.random.default_rng(0)
    count = rng.integers(-25_000 * DAY, 25_000 * DAY, 10_000)
    np.testing.assert_array_equal(microseconds(from_microseconds(count)), count)
    steps = from_microseconds(np.array([10**15, 10**15 + 1]))
    assert steps[0] < steps[1]


def test_moments_in_a_zone_are_counted_in_utc() -> None:
    column = pd.Series(pd.to_datetime(["2024-01-01 01:00", "2024-07-01 02:00"])).dt.tz_localize("Europe/Berlin")
    assert days_of(column, str(column.dtype)).tolist() == [19_723.0, 19_905.0]
    back = column_of(np.array([19_723.0]), str(column.dtype))
    assert back.iloc[0] == column.iloc[0]
    assert zone(str(column.dtype)) == "Europe/Berlin"


@pytest.mark.parametrize(
    ("values", "dtype", "words"),
    [
        (["soon"], "datetime64[us]", "should hold dates"),
        (["2020-01-01T00:00Z"], "datetime64[us]", "with a time zone, and the data's are without one"),
        (["2020-01-01"], "datetime64[us, UTC]", "without a time zone, and the data's are with one"),
        ([pd.Timestamp("2020-01-01 00:00:00.000000001")], "datetime64[ns]", "parts of a microsecond: round it"),
        ([pd.Timestamp("9999-12-31 23:59:59")], "datetime64[us]", "too far from 1970|without overflow"),
    ],
)
def test_what_cannot_be_counted(values: list[Any], dtype: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        days_of(pd.Series(values, name="when"), dtype)


@pytest.mark.parametrize(
    ("unit", "kind"), [("D", "integer"), ("h", "numeric"), ("m", "numeric"), ("s", "numeric"), ("us", "numeric")]
)
def test_the_grid_is_the_coarsest_that_holds_the_data(unit: str, kind: str) -> None:
    per_day = {"D": 1, "h": 24, "m": 1440, "s": 86_400, "us": DAY}[unit]
    count = 17_001 * per_day + np.arange(7, 12)
    column = pd.Series(count.astype(f"datetime64[{unit}]").astype("datetime64[us]"))
    (feature,) = infer_space(pd.DataFrame({"when": column})).features
    assert feature.kind == kind
    coded = days_of(column, "datetime64[us]")
    np.testing.assert_array_equal(feature.at_most(coded), coded)
    np.testing.assert_array_equal(feature.at_least(coded), coded)
    np.testing.assert_array_equal(feature.above(coded[:-1]), coded[1:])
    assert feature.label(coded[0]) == column.iloc[0]
    assert (feature.step is None) == (kind == "integer") or feature.step in [1 / parts for parts in PARTS]


def test_settings_may_be_dates_and_durations() -> None:
    table = pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2020-03-01"])})
    settings = {"bounds": ("2019-01-01", dt.date(2021, 1, 1)), "scale": pd.Timedelta(days=30), "step": 7}
    (feature,) = infer_space(table, {"when": {**settings, "permitted_range": ["2020-02-01", "2020-06-01"]}}).features
    assert (feature.lower, feature.upper, feature.scale, feature.step) == (17_897, 18_628, 30, 7)
    assert feature.permitted == (18_293, 18_414)
    assert days("2024-01-01", "datetime64[us, Europe/Berlin]") == 19_723 - 1 / 24
    with pytest.raises(DataError, match="ordered numbers, not categorical"):
        infer_space(table, {"when": {"kind": "categorical"}})


def test_the_lattice_of_a_feature_of_dates_ends_where_its_dtype_does() -> None:
    column = pd.Series(pd.to_datetime(["2020-01-01", "2020-03-01"])).astype("datetime64[ns]")
    (feature,) = infer_space(pd.DataFrame({"when": column})).features
    lattice = Lattice.of(feature)
    for end in lattice.ends:
        assert days_of(column_of(np.array([end]), feature.dtype), feature.dtype)[0] == end
    keys = lattice.keys(np.array([18_000.25]))
    assert lattice.values(keys + 1)[0] - lattice.values(keys)[0] == pytest.approx(1 / DAY)

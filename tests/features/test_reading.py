"""How a table was read, in a few lines."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf.errors import DataError
from ocf.features.inference import infer_space
from ocf.features.reading import Reading, code_like
from ocf.features.space import FeatureSpace

RNG = np.random.default_rng(0)
N = 40
TABLE = pd.DataFrame(
    {
        "rate": RNG.random(N),
        "months": np.where(np.arange(N) % 4 == 0, np.nan, RNG.integers(0, 90, N)),
        "risk": np.where(np.arange(N) % 5 == 0, -9, RNG.integers(40, 90, N)),
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, N), unit="D"),
        "owner": np.arange(N) % 2,
        "size": RNG.choice(["small", "large"], N),
    }
).assign(job_clerk=np.arange(N) % 3 == 0, job_smith=np.arange(N) % 3 != 0)


def test_the_lines_say_all_that_was_decided() -> None:
    settings = {
        "rate": {"bounds": (0, 1), "actionability": "increasing"},
        "size": {"kind": "ordinal", "levels": ["small", "large"]},
        "owner": {"actionability": "fixed"},
    }
    assert str(infer_space(TABLE, settings, groups=True)).splitlines() == [
        "read by 40 rows of data: 8 columns as 7 features",
        "  numbers: rate; whole numbers: risk; whole numbers with gaps: months (kind='numeric' gives them fractions); "
        "dates and durations: since",
        "  one category each: job (2 columns), recognised (groups=False reads columns one by one); "
        "ordered levels: size; two values: owner",
        "  bounds, scales and levels: those of the 40 rows of data; bounds that you set: rate 0 to 1",
        "  fixed: owner; only up: rate; "
        "with numbers that look like codes: risk (-9; special_values=[-9] reads them so)",
    ]


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        (["2024-01-05", "2024-01-06", "2023-12-31"], "dates in words: a (pd.to_datetime makes them dates)"),
        (["2024-01-05 10:00", "2024-01-06T11:00:00Z", "2023-12-31"], "dates in words: a"),
        (["5.1.2024", "6.1.2024", "31/12/2023"], "dates in words: a"),
        (["7", "-0.5", "1e3"], "numbers in words: a (pd.to_numeric makes them numbers)"),
        (["00501", "10001", "94105"], ""),
        (["1", "2", "many"], ""),
        (["1", "2"], ""),
    ],
)
def test_words_that_stand_for_dates_or_numbers_are_told(levels: list[str], said: str) -> None:
    reading = str(infer_space(pd.DataFrame({"a": levels * 20})))
    assert "categories: a" in reading
    assert said in reading
    assert ("of them" in reading) == bool(said)


def test_a_space_that_comes_from_no_table_prints_too() -> None:
    space = infer_space(TABLE, special_values={"risk": [-9]})
    again = FeatureSpace.from_dict(space.to_dict())
    assert again == space
    assert "bounds, scales and levels as described" in str(again)
    assert "with codes: risk" in str(again)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.0, 7.0, np.nan], "integer"),
        (pd.array([1.0, 7.0, None], dtype="Float64"), "integer"),
        (np.array([1, 7, np.nan], np.float32), "integer"),
        ([1.0, 7.0, 2.0], "numeric"),
        ([1.0, 7.5, np.nan], "numeric"),
        ([1.0, 2.0**60, np.nan], "numeric"),
        (np.array([1, 2**24, np.nan], np.float32), "numeric"),
    ],
)
def test_whole_numbers_with_gaps_are_whole(values: object, kind: str) -> None:
    table = pd.DataFrame({"x": values})
    assert infer_space(table).features[0].kind == kind
    assert infer_space(table, {"x": {"kind": "numeric"}}).features[0].kind == "numeric"
    assert infer_space(table, {"x": {"step": 0.5}}).features[0].step == 0.5
    reading = infer_space(table).reading
    assert reading is not None
    assert reading.whole == (("x",) if kind == "integer" else ())


@pytest.mark.parametrize(
    ("numbers", "codes"),
    [
        ([40, 90, -9, -9, -8], (-9, -8)),
        ([3, 12, 999, 999], (999,)),
        ([3, 12, 999], ()),
        ([600, 700, 999, 999], ()),
        ([5, -7, -4], ()),
        ([2, -1, 1], ()),
        ([5, 60], ()),
        ([], ()),
    ],
)
def test_numbers_that_look_like_codes(numbers: list[float], codes: tuple[float, ...]) -> None:
    assert code_like(np.array(numbers, float)) == codes


def test_a_reading_is_kept_in_json() -> None:
    whole = Reading(80, ("age",), ("job",), ("rooms",), (("days", (-7.0, -9.0)),), asked=True)
    for reading in (whole, Reading(7), Reading(0, groups=("job",))):
        assert Reading.from_dict(json.loads(json.dumps(reading.to_dict()))) == reading
    assert Reading(7).to_dict() == {"rows": 7, "groups": []}


@pytest.mark.parametrize("data", [{}, {"rows": "many"}, {"rows": -1}, {"rows": 3, "suspects": {"days": 9}}, [], None])
def test_what_is_no_reading(data: Any) -> None:
    with pytest.raises(DataError, match="how the table was read"):
        Reading.from_dict(data)

"""Values that are no points on the line: codes, and missing values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf.errors import DataError
from ocf.features.feature import Feature
from ocf.features.inference import infer_space
from ocf.features.space import FeatureSpace, counterfactual_frame
from ocf.features.special import Special

#: What pandas makes of words: a dtype of their own since its version 3.
TEXT = str(pd.Series(["x"]).dtype)

TABLE = pd.DataFrame(
    {
        "score": [-9.0, 10.0, 30.0, -8.0, 50.0],
        "count": [-9, 0, 1, 1, 0],
        "grade": [-9, 1, 2, 3, 2],
        "word": ["x", "y", "x", "y", "x"],
    }
)


def test_bounds_and_scales_are_those_of_the_numbers() -> None:
    space = infer_space(TABLE, {"grade": {"kind": "ordinal", "special_values": [-9]}}, [-9, -8])
    score, count, grade, word = space.features
    assert (score.lower, score.upper, score.scale) == (10.0, 50.0, 40.0)
    assert (count.kind, count.lower, count.upper) == ("integer", 0.0, 1.0)
    assert (grade.scale, grade.levels) == (2.0, (-9, 1, 2, 3))
    assert score.special == count.special == Special((-9.0, -8.0))
    assert word.special is None
    assert FeatureSpace.from_dict(space.to_dict()) == space


def test_codes_of_one_feature_leave_the_others_alone() -> None:
    space = infer_space(TABLE, special_values={"score": [-9, -8]})
    assert space.features[0].lower == 10.0
    assert space.features[1].lower == -9.0
    assert space.features[1].special is None


@pytest.mark.parametrize(
    ("special", "said"),
    [
        (["a"], "is no number"),
        ([True], "is no number"),
        ([math.nan], "is no number"),
        ([-9, -9.0], "twice"),
        ("-9", "list of numbers"),
        (-9, "list of numbers"),
        ({"word": [-9]}, "beside each other anyway"),
        ({"none": [-9]}, "does not have"),
        ({"score": [-9, -8, 10, 30, 50]}, "nothing but special values"),
    ],
)
def test_bad_codes_are_refused(special: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        infer_space(TABLE, special_values=special)


def number(**said: Any) -> Feature:
    return Feature("x", "integer", lower=0.0, upper=9.0, scale=9.0, special=Special((-9.0, 5.0), **said))


CELLS = np.array([-np.inf, np.nextafter(-9, -10), -9.0, 2.0, np.nextafter(5, 4), 5.0])
ENDS = np.append(CELLS[1:], np.inf)


def test_a_number_goes_to_no_code_and_through_none() -> None:
    near = number().nearest(CELLS, ENDS, 3.0)
    assert np.array_equal(near, [np.nan, np.nan, 2.0, 3.0, np.nan, 6.0], equal_nan=True)


def test_a_number_may_become_a_code_at_its_price() -> None:
    near = number(becoming=0.5).nearest(CELLS, ENDS, 3.0)
    assert np.array_equal(near, [np.nan, -9.0, 2.0, 3.0, 5.0, 6.0], equal_nan=True)


def test_a_code_stays_unless_a_value_may_be_supplied() -> None:
    stays = number(becoming=0.5).nearest(CELLS, ENDS, -9.0)
    assert np.array_equal(stays, [np.nan, -9.0, np.nan, np.nan, np.nan, np.nan], equal_nan=True)
    moves = number(supplying=0.5).nearest(CELLS, ENDS, -9.0)
    assert np.array_equal(moves, [np.nan, -9.0, 2.0, 4.0, np.nan, 6.0], equal_nan=True)


def test_what_is_supplied_lies_within_bounds_and_permitted_range() -> None:
    feature = Feature("x", "numeric", lower=2.0, upper=8.0, permitted=(4.0, 20.0), special=Special((), True, 1.0))
    near = feature.nearest(np.array([-np.inf, 3.0, 5.0, 9.0]), np.array([3.0, 5.0, 9.0, np.inf]), math.inf)
    assert np.isnan(near[0])
    assert near[1] == 5.0
    assert 5.0 < near[2] <= 8.0
    assert near[3] == math.inf


@pytest.mark.parametrize("dtype", ["float64", "int64", "Int64", "object", TEXT, "category"])
def test_a_value_that_goes_missing_stands_in_its_column(dtype: str) -> None:
    words = dtype in ("object", TEXT, "category")
    row = pd.DataFrame({"x": pd.Series(["a" if words else 3], dtype=dtype)})
    kind = {"kind": "categorical", "levels": ("a", "b")} if words else {"kind": "integer", "upper": 5.0}
    space = FeatureSpace((Feature("x", dtype=dtype, special=Special((), True, None, 1.0), **kind),))
    feature = space.features[0]
    code = np.array([feature.missing_code])
    changed = counterfactual_frame(space, row, space.from_frame(row)[0], code)
    assert changed["x"].isna().all()
    assert space.with_missing(space.from_frame(changed))[0] == code
    assert space.to_frame(code)["x"].isna().all()
    back = counterfactual_frame(space, changed, code, np.zeros(1))
    assert back["x"].iloc[0] == ("a" if words else 0)


@pytest.mark.parametrize("gap", [None, math.nan])
def test_gaps_in_words_are_those_of_the_data(gap: Any) -> None:
    data = pd.DataFrame({"w": pd.Series(["a", gap, "b"], dtype=object)})
    space = infer_space(data)
    held = space.to_frame(space.from_frame(data))["w"].iloc[1]
    assert held is None if gap is None else math.isnan(held)


def test_a_column_of_codes_alone_may_be_told_its_bounds() -> None:
    table = pd.DataFrame({"score": [-9, -9, -8]})
    told = {"score": {"bounds": (0, 10), "special_values": [-9, -8]}}
    (feature,) = infer_space(table, told).features
    assert (feature.lower, feature.upper, feature.scale) == (0, 10, 10)
    assert feature.special is not None
    with pytest.raises(DataError, match="give it bounds"):
        infer_space(table, {"score": {"special_values": [-9, -8]}})

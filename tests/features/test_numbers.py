"""Columns of numbers in all dtypes: what they are, and what a counterfactual value becomes in them."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf.errors import DataError
from ocf.features.inference import infer_space
from ocf.features.number_dtypes import is_nullable, number_dtype
from ocf.features.numbers import column_of, dtype_of, numbers_of
from ocf.features.space import FeatureSpace


@pytest.mark.parametrize(
    ("values", "dtype", "kind"),
    [
        (pd.Series([1.5, 2.0], dtype=object), "object", "numeric"),
        (pd.Series([1, 2, None, 4], dtype=object), "object", "integer"),
        (pd.Series([1, 2.5], dtype=object), "object", "numeric"),
        (pd.Series([Decimal("1.5"), 2], dtype=object), "object", "numeric"),
        (pd.Series([Decimal("1.50"), None], dtype=object), "decimal", "numeric"),
        (pd.Series([True, False, None], dtype=object), "object", "binary"),
        (pd.Series([True, True]), "bool", "binary"),
        (pd.Series([False, None], dtype="boolean"), "boolean", "binary"),
        (pd.Series([0, 1], dtype=object), "object", "binary"),
        (pd.Series([1, 2, None], dtype="Int64"), "Int64", "integer"),
        (pd.Series([1.5, None], dtype="Float32"), "Float32", "numeric"),
        (pd.Series([1, 2, None], dtype="int16[pyarrow]"), "int16[pyarrow]", "integer"),
        (pd.Series([1.5, None], dtype="float[pyarrow]"), "float[pyarrow]", "numeric"),
        (pd.Series([True, None], dtype="bool[pyarrow]"), "bool[pyarrow]", "binary"),
        (pd.Series([dt.date(2020, 1, 1), None], dtype=object), "date", "integer"),
        (pd.Series([pd.Timedelta(hours=1), None]).astype("timedelta64[us]"), "timedelta64[us]", "numeric"),
        (pd.Series([1, "one"], dtype=object), "object", "categorical"),
        (pd.Series(["1", "2"], dtype=object), "object", "categorical"),
        (pd.Series(["a", None], dtype="string"), "string", "categorical"),
        (pd.Series(["a", None], dtype="string[pyarrow]"), "string", "categorical"),
    ],
)
def test_columns_are_what_they_hold(values: pd.Series[Any], dtype: str, kind: str) -> None:
    (feature,) = infer_space(pd.DataFrame({"x": values})).features
    assert (feature.dtype, feature.kind) == (dtype, kind)
    space = FeatureSpace((feature,))
    coded = space.from_frame(pd.DataFrame({"x": values}))
    back = space.to_frame(coded)["x"]
    assert str(back.dtype) == str(values.dtype)
    assert [None if pd.isna(v) else v for v in back] == [None if pd.isna(v) else v for v in values]
    assert {type(v) for v in back.dropna()} <= {type(v) for v in values.dropna()} | {float}


def test_a_constant_truth_value_has_both_levels() -> None:
    (feature,) = infer_space(pd.DataFrame({"x": [True, True]})).features
    assert feature.levels == (False, True)


def test_the_last_digit_of_decimals_is_their_step() -> None:
    (feature,) = infer_space(pd.DataFrame({"x": [Decimal("1.50"), Decimal("2.125")]})).features
    assert feature.step == 0.001
    assert feature.label(1.123) == Decimal("1.123")


@pytest.mark.parametrize(
    ("name", "numbers", "nullable"),
    [
        ("int8", "int8", False), ("Int8", "int8", True), ("UInt32", "uint32", True), ("Float32", "float32", True),
        ("float32", "float32", False), ("boolean", "bool", True), ("bool", "bool", False),
        ("double[pyarrow]", "float64", True), ("halffloat[pyarrow]", "float16", True),
        ("bool[pyarrow]", "bool", True),
    ],
)  # fmt: skip
def test_dtypes_of_numbers(name: str, numbers: str, nullable: bool) -> None:
    assert number_dtype(name) == np.dtype(numbers)
    assert is_nullable(name) is nullable


@pytest.mark.parametrize(
    "name",
    [
        "object",
        "str",
        "string",
        "category",
        "datetime64[ns]",
        "datetime64[us, UTC]",
        "date",
        "dictionary<values=string, indices=int32, ordered=0>[pyarrow]",
    ],
)
def test_dtypes_of_other_things(name: str) -> None:
    assert number_dtype(name) is None


def test_a_value_that_a_dtype_cannot_hold_keeps_its_own() -> None:
    for dtype in ("Float32", "float32", "Int64", "int8", "float[pyarrow]"):
        held = pd.Series(column_of(np.array([0.1]), dtype))
        assert held.iloc[0] == 0.1, dtype
    assert str(pd.Series(column_of(np.array([0.5, np.nan]), "Float32")).dtype) == "Float32"


def test_words_are_no_numbers() -> None:
    with pytest.raises(DataError, match=r"'x' should hold numbers.*give the rows as the data is given"):
        numbers_of(pd.Series([1, "many"], dtype=object, name="x"), "int64")
    for word in ("?", "14,25", "€14.25", "nan"):
        with pytest.raises(DataError, match=rf"{re.escape(repr(word))} in row 1 is none; write numbers such as 14\.25"):
            numbers_of(pd.Series(["", word], name="x"), "float64")
    assert dtype_of(pd.Series([1, "many"], dtype=object)) == ("object", False)

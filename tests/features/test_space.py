"""Rows of a table as coded rows and back, in the user's own dtypes."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf.errors import DataError, ProblemError
from ocf.features.feature import Feature
from ocf.features.inference import infer_space
from ocf.features.space import FeatureSpace, counterfactual_frame

from .tables import TABLE


def moved(original: pd.DataFrame, space: FeatureSpace, **changes: float) -> pd.DataFrame:
    origin = space.from_frame(original)[0]
    point = origin.copy()
    for name, value in changes.items():
        point[space.index(name)] = value
    return counterfactual_frame(space, original, origin, point)


@pytest.mark.parametrize(
    ("column", "code", "expected"),
    [
        (pd.Series([3, 9], dtype="int64"), 7.0, 7),
        (pd.Series([3, 9], dtype="Int64"), 7.0, 7),
        (pd.Series([0.5, 0.1], dtype="float32"), float(np.float32(0.3)), np.float32(0.3)),
        (pd.Series([0.5, 0.1], dtype="float64"), 0.3, 0.3),
        (pd.Series([True, False]), 0.0, False),
        (pd.Series([True, False], dtype="boolean"), 0.0, False),
        (pd.Series(["b", "a"], dtype="category"), 0.0, "a"),
        (pd.Series(["b", "a"], dtype="str"), 0.0, "a"),
        (pd.Series(["b", "a"], dtype="string"), 0.0, "a"),
        (pd.Series(["b", "a"], dtype=object), 0.0, "a"),
    ],
)
def test_dtypes_are_kept(column: pd.Series, code: float, expected: Any) -> None:
    table = pd.DataFrame({"x": column, "other": [1.5, 2.5]}).set_index(pd.Index([10, 11]))
    out = moved(table.iloc[[0]], infer_space(table), x=code)
    assert out["x"].iloc[0] == expected
    pd.testing.assert_series_equal(out.dtypes, table.dtypes)
    assert list(out.index) == [10]
    again = moved(table.iloc[[0]], infer_space(table))
    pd.testing.assert_frame_equal(again, table.iloc[[0]])


@pytest.mark.parametrize(
    ("dtype", "value"), [("float32", 0.1), ("int64", 3.5), ("int8", 300.0), ("float32", math.nextafter(0.5, 1))]
)
def test_exactness_goes_before_dtype(dtype: str, value: float) -> None:
    space = FeatureSpace((Feature("x", "numeric"),))
    out = moved(pd.DataFrame({"x": np.array([0], dtype)}), space, x=value)
    assert float(out["x"].iloc[0]) == value
    assert out["x"].dtype == np.float64


def test_a_level_that_the_rows_categories_lack() -> None:
    space = FeatureSpace((Feature("x", "categorical", levels=("a", "b")),))
    out = moved(pd.DataFrame({"x": pd.Categorical(["a"])}), space, x=1)
    assert out["x"].iloc[0] == "b"
    assert list(out["x"].cat.categories) == ["a", "b"]


def test_untouched_values_are_bit_identical() -> None:
    big = 2**62 + 1  # no float64 holds it
    table = pd.DataFrame({"x": [1.0], "big": [big], "minus": [-0.0], "gone": [np.nan]})
    space = FeatureSpace(tuple(Feature(c, "numeric") for c in table.columns))
    out = moved(table, space, x=2.0)
    assert out["big"].iloc[0] == big
    assert math.copysign(1, out["minus"].iloc[0]) == -1
    assert np.isnan(out["gone"].iloc[0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "Float32", "float[pyarrow]"])
def test_a_gap_keeps_the_precision_of_its_column(dtype: str) -> None:
    row = pd.DataFrame({"x": pd.Series([0.5], dtype=dtype), "y": [1.0]})
    space = FeatureSpace((Feature("x", "numeric", dtype=dtype), Feature("y", "numeric")))
    gone = moved(row, space, x=np.nan)
    assert gone.x.isna().all()
    assert str(gone.dtypes["x"]) == dtype


@pytest.mark.parametrize("base", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "bool"])
def test_one_hot_groups(base: bool, dtype: str) -> None:
    table = pd.DataFrame({"job_a": [1, 0], "n": [5, 6], "job_b": [0, 1]}).astype({"job_a": dtype, "job_b": dtype})
    setting: dict[str, Any] = {"columns": ["job_a", "job_b"]} | ({"base": "none"} if base else {})
    space = infer_space(table, {"job": setting})
    out = moved(table.iloc[[0]], space, job=1 + base)
    assert out[["job_a", "job_b"]].to_numpy(int).tolist() == [[0, 1]]
    pd.testing.assert_series_equal(out.dtypes, table.dtypes)
    if base:
        assert moved(table.iloc[[0]], space, job=0)[["job_a", "job_b"]].to_numpy(int).tolist() == [[0, 0]]


def test_column_order_and_labels_that_are_no_text() -> None:
    space = FeatureSpace((Feature("0", "numeric"), Feature("1", "numeric")))
    out = moved(pd.DataFrame([[5.0, 6.0]], columns=[1, 0]), space, **{"0": 7.0})
    assert out.columns.tolist() == [1, 0]
    assert out.to_numpy().tolist() == [[5.0, 7.0]]


def test_columns_belong_to_one_feature() -> None:
    with pytest.raises(DataError, match="belong to two features"):
        FeatureSpace((Feature("x", "numeric"), Feature("y", "numeric", columns=("x",))))
    with pytest.raises(DataError, match="do not match"):
        FeatureSpace((Feature("x", "numeric"),), ("x", "y"))


def test_coded_rows_and_back(space: FeatureSpace) -> None:
    coded = space.from_frame(TABLE)
    assert coded[:, space.index("job")].tolist() == [0.0, 1.0, 2.0]
    assert coded[:, space.index("size")].tolist() == [0.0, 2.0, 1.0]
    again = space.to_frame(coded)
    assert list(again.columns) == list(TABLE.columns)
    pd.testing.assert_frame_equal(again, TABLE, check_categorical=False, check_dtype=False)
    for column in ("age", "rooms", "owner", "job_smith", "narrow", "colour"):
        assert again[column].dtype == TABLE[column].dtype
    np.testing.assert_array_equal(space.from_frame(again), coded)


def test_categories_are_all_there_in_every_part_of_a_table() -> None:
    table = pd.DataFrame({"c": pd.Categorical(["low", "high", None], ["low", "mid", "high"])})
    space = infer_space(table)
    again = space.to_frame(space.from_frame(table.iloc[1:]))
    assert again.c.dtype == table.c.dtype
    assert again.c.cat.codes.tolist() == [2, -1]


def test_columns_may_come_in_any_order(space: FeatureSpace) -> None:
    np.testing.assert_array_equal(space.from_frame(TABLE[TABLE.columns[::-1]]), space.from_frame(TABLE))


def test_missing_values_stay_missing() -> None:
    table = pd.DataFrame({"x": [1.5, np.nan], "c": ["a", None], "d": ["b", "a"]})
    space = infer_space(table)
    coded = space.from_frame(table)
    assert np.isnan(coded[1, :2]).all()
    assert space.to_frame(coded).iloc[1, :2].isna().all()


def test_arrays_are_taken_in_the_order_of_the_columns() -> None:
    space = infer_space(np.array([[0.5, 1.0], [2.5, 3.0]]))
    assert space.columns == ("x0", "x1")
    assert space.from_frame([0.5, 3.0]).tolist() == [[0.5, 3.0]]


def with_(column: str, value: Any) -> pd.DataFrame:
    return TABLE.astype({column: object}).assign(**{column: [value, *TABLE[column][1:]]})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE.drop(columns=["age", "rooms"]), "misses age, rooms"),
        (TABLE.assign(extra=1), "unknown extra"),
        (TABLE.rename(columns={"age": "Age"}), "misses age and has the unknown Age"),
        (pd.concat([TABLE, TABLE[["age"]]], axis=1), "occur twice: age"),
        (np.zeros((2, 3)), r"shape \(2, 3\); expected \(n, 8\)"),
        (np.zeros((2, 2, 2)), "expected"),
        (with_("age", np.inf), "'age' holds an infinite value in row 0"),
        (with_("age", "old"), "'age' should hold numbers"),
        (with_("colour", "gren"), "row 0: unknown level 'gren' .did you mean 'green'"),
        (with_("owner", "maybe"), "'owner', row 0: unknown level"),
        (TABLE.assign(job_smith=1), "'job', row 2: .* a single 1"),
        (TABLE.assign(job_smith=0.5), "'job', row 0"),
    ],
)
def test_tables_that_do_not_fit(space: FeatureSpace, table: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        space.from_frame(table)


def test_indicators_without_a_base_need_a_one() -> None:
    table = pd.DataFrame({"c_a": [1, 0], "c_b": [0, 1]})
    space = infer_space(table, {"c": {"kind": "categorical", "columns": ["c_a", "c_b"]}})
    assert space.features[0].levels == ("a", "b")
    with pytest.raises(DataError, match="a single 1"):
        space.from_frame(pd.DataFrame({"c_a": [0], "c_b": [0]}))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
@pytest.mark.parametrize("value", [300.0, -5.0, 2.5])
def test_numbers_never_wrap_around_or_lose_their_fraction(dtype: str, value: float) -> None:
    feature = Feature("n", "integer", dtype=dtype)
    assert FeatureSpace((feature,)).to_frame([[value]])["n"].iloc[0] == value


def test_a_number_that_float32_cannot_hold_stays_exact() -> None:
    feature = Feature("x", "numeric", dtype="float32")
    assert FeatureSpace((feature,)).to_frame([[0.1]])["x"].iloc[0] == 0.1


def test_json_round_trip(space: FeatureSpace) -> None:
    changed = space.updated({"colour": {"permitted": ("red",)}, "age": {"lower": -math.inf, "step": 0.01}})
    again = FeatureSpace.from_dict(json.loads(json.dumps(changed.to_dict(), allow_nan=False)))
    assert again == changed


def test_names_that_do_not_exist(space: FeatureSpace) -> None:
    with pytest.raises(ProblemError, match="did you mean 'colour'"):
        space.index("color")
    with pytest.raises(ProblemError, match="no such feature"):
        space.updated({"zzz": {}})


def test_labels_are_the_users_words(space: FeatureSpace) -> None:
    rooms, colour = space.features[1], space.features[space.index("colour")]
    assert (rooms.label(2.0), colour.label(0.0), colour.label(math.nan)) == (2, "green", None)
    assert rooms.label(2.5) == 2.5

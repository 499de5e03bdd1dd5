"""Features, their grids, the way from table to coded rows and back, and what is inferred from a table."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import brute_force

from ocf.errors import DataError, ProblemError
from ocf.features.feature import Feature
from ocf.features.inference import as_table, infer_space
from ocf.features.space import FeatureSpace
from ocf.problem.costs import Cost

# -- grids -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "k", "value"),
    [
        (0.01, 7, 0.07),
        (0.01, 29, 0.29),
        (0.1, 3, 0.3),
        (0.3, 12, 3.6),
        (0.05, 21, 1.05),
        (2.5, 3, 7.5),
        (1e-6, 7, 7e-6),
    ],
)
def test_multiples_of_a_decimal_step_are_the_decimals_themselves(step: float, k: int, value: float) -> None:
    feature = Feature("x", "numeric", step=step)
    for sign in (1, -1):
        near = sign * value
        assert feature.at_most(near) == near
        assert feature.at_least(near) == near
        assert feature.above(np.nextafter(near, -np.inf)) == near
        assert feature.at_most(np.nextafter(near, -np.inf)) == pytest.approx(near - step)
        assert feature.above(near) == pytest.approx(near + step)


def test_step_that_is_no_short_decimal_is_multiplied() -> None:
    step = math.pi
    assert Feature("x", "numeric", step=step).at_most(10.0) == 3 * step


def test_float32_grid_is_representable() -> None:
    feature = Feature("x", "numeric", step=0.01, dtype="float32")
    value = feature.at_most(0.075).item()
    assert value == float(np.float32(0.07))
    table = FeatureSpace((feature,)).to_frame([[value]])
    assert table["x"].dtype == np.float32


@given(st.floats(-1e6, 1e6), st.sampled_from(["float32", "float64"]))
def test_continuous_neighbours_are_neighbours_of_the_dtype(value: float, dtype: str) -> None:
    feature = Feature("x", "numeric", dtype=dtype)
    below, above = feature.at_most(value).item(), feature.above(value).item()
    assert below <= value < above
    assert np.nextafter(np.array(below, dtype), np.array(np.inf, dtype)) == np.array(above, dtype)


def test_integers_above_and_below() -> None:
    feature = Feature("n", "integer", dtype="int64")
    assert feature.at_most([2.0, 2.5, -0.5]).tolist() == [2.0, 2.0, -1.0]
    assert feature.above([2.0, 2.5, -0.5]).tolist() == [3.0, 3.0, 0.0]
    assert feature.at_least([2.0, 2.5, -0.5]).tolist() == [2.0, 3.0, 0.0]


# -- the nearest admissible value ------------------------------------------------------------------------------

ACTIONS = st.sampled_from(["free", "fixed", "increasing", "decreasing"])
WEIGHTS = st.sampled_from([0.5, 1.0, 4.0])


@st.composite
def listed_features(draw: st.DrawFn) -> Feature:
    """Features with finitely many values."""
    kind = draw(st.sampled_from(["numeric", "integer", "ordinal", "binary", "categorical"]))
    common: dict[str, Any] = {"weight_down": draw(WEIGHTS), "weight_up": draw(WEIGHTS)}
    if kind in ("numeric", "integer"):
        low = draw(st.integers(-5, 5))
        common |= {"lower": float(low), "upper": float(low + draw(st.integers(0, 5))), "action": draw(ACTIONS)}
        if draw(st.booleans()):
            first = draw(st.floats(-6, 6))
            common["permitted"] = (first, first + draw(st.floats(-0.5, 4)))
        if kind == "numeric":
            common["step"] = draw(st.sampled_from([0.1, 0.25, 0.3, 1.0]))
            common["dtype"] = draw(st.sampled_from(["float64", "float32"]))
        return Feature("x", kind, **common)
    levels = {"binary": (0, 1), "ordinal": (0, 1, 5, 6, 20), "categorical": ("a", "b", "c", "d")}[kind]
    if kind != "categorical":
        common["action"] = draw(ACTIONS)
    if draw(st.booleans()):
        common["permitted"] = tuple(draw(st.sets(st.sampled_from(levels), min_size=1)))
    return Feature("x", kind, levels=levels, **common)


@given(st.data(), listed_features(), st.sampled_from(["l0", "l1", "l2"]))
def test_nearest_is_the_cheapest_of_all(data: st.DataObject, feature: Feature, norm: str) -> None:
    if feature.discrete:
        origin = float(data.draw(st.integers(0, len(feature.levels) - 1)))
    else:
        origin = data.draw(st.floats(-8, 8, width=32) | st.integers(-8, 8).map(float))
    cuts = np.unique(data.draw(st.lists(st.floats(-10, 25), max_size=6)))
    lower, upper = np.append(-np.inf, cuts), np.append(cuts, np.inf)
    cost = Cost.parse(norm)
    found = feature.nearest(lower, upper, origin, lambda v: cost.of(feature, origin, v))
    admissible = brute_force.listed_values(feature, origin)
    for low, high, value in zip(lower, upper, found, strict=True):
        inside = admissible[(low < admissible) & (admissible <= high)]
        if not len(inside):
            assert np.isnan(value)
            continue
        assert value in inside
        least = min(brute_force.cost_of_change(feature, cost, origin, v) for v in inside)
        assert brute_force.cost_of_change(feature, cost, origin, value) == pytest.approx(least, rel=1e-12)


@given(
    st.lists(st.floats(-10, 10), max_size=5),
    st.floats(-12, 12, width=32),
    ACTIONS,
    st.sampled_from(["float32", "float64"]),
    st.none() | st.tuples(st.floats(-9, 9), st.floats(-9, 9)),
)
def test_nearest_continuous_value(
    cuts: list[float], origin: float, action: Any, dtype: str, permitted: tuple[float, float] | None
) -> None:
    feature = Feature("x", "numeric", lower=-8.0, upper=8.0, action=action, dtype=dtype, permitted=permitted)
    ends = np.unique(cuts)
    lower, upper = np.append(-np.inf, ends), np.append(ends, np.inf)
    found = feature.nearest(lower, upper, origin)
    candidates = brute_force.continuous_values(feature, origin, ends)
    if dtype == "float32":
        candidates = candidates[(candidates == candidates.astype(np.float32)) | (candidates == origin)]
    for low, high, value in zip(lower, upper, found, strict=True):
        inside = candidates[(low < candidates) & (candidates <= high)]
        if len(inside):
            assert abs(value - origin) == np.abs(inside - origin).min()
        else:
            assert np.isnan(value)


def test_bounds_are_widened_to_the_row_but_the_permitted_range_is_not() -> None:
    feature = Feature("x", "numeric", lower=0.0, upper=1.0)
    assert feature.limits(3.0) == (0.0, 3.0)
    permitted = Feature("x", "numeric", lower=0.0, upper=1.0, permitted=(0.25, 0.5))
    assert permitted.limits(3.0) == (0.25, 0.5)


def test_unknown_permitted_level() -> None:
    feature = Feature("c", "categorical", levels=("red", "green"), permitted=("gren",))
    with pytest.raises(ProblemError, match="did you mean 'green'"):
        feature.permitted_codes()


# -- descriptions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "real"}, "kind 'real' is not one of numeric"),
        ({"kind": "numeric", "action": "up"}, "action 'up' is not one of free"),
        ({"kind": "categorical"}, "needs its distinct levels"),
        ({"kind": "ordinal", "levels": ("a", "a")}, "needs its distinct levels"),
        ({"kind": "binary", "levels": (0, 1, 2)}, "two levels, not 3"),
        ({"kind": "ordinal", "levels": (1, 0)}, "must increase"),
        ({"kind": "numeric", "levels": (0, 1)}, "levels belong to"),
        ({"kind": "categorical", "levels": ("a", "b"), "action": "increasing"}, "categories have no order"),
        ({"kind": "categorical", "levels": ("a", "b", "c"), "columns": ("x", "y")}, "2 indicator columns for 3"),
        ({"kind": "numeric", "scale": 0.0}, "scale 0.0 must be positive"),
        ({"kind": "numeric", "scale": math.inf}, "must be positive and finite"),
        ({"kind": "integer", "step": 2.0}, "on a numeric feature"),
        ({"kind": "numeric", "step": -1.0}, "step -1.0 must be positive"),
        ({"kind": "numeric", "weight_up": -1.0}, "weight -1.0"),
        ({"kind": "numeric", "weight_down": math.nan}, "weight nan"),
        ({"kind": "numeric", "lower": 2.0, "upper": 1.0}, "hold no value"),
        ({"kind": "numeric", "lower": math.nan}, "hold no value"),
    ],
)
def test_descriptions_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        Feature("x", **settings)
    assert "'x'" in str(error.value)


def test_columns_belong_to_one_feature() -> None:
    with pytest.raises(DataError, match="belong to two features"):
        FeatureSpace((Feature("x", "numeric"), Feature("y", "numeric", columns=("x",))))
    with pytest.raises(DataError, match="do not match"):
        FeatureSpace((Feature("x", "numeric"),), ("x", "y"))


# -- tables ----------------------------------------------------------------------------------------------------

TABLE = pd.DataFrame(
    {
        "age": [20.5, 31.0, 45.25],
        "rooms": np.array([1, 2, 3], np.int8),
        "owner": [True, False, True],
        "size": pd.Categorical(["low", "high", "middle"], categories=["low", "middle", "high"], ordered=True),
        "colour": ["red", "green", "red"],
        "job_smith": np.array([0, 1, 0], np.uint8),
        "job_clerk": np.array([0, 0, 1], np.uint8),
        "narrow": np.array([0.1, 0.2, 0.3], np.float32),
    }
)
SETTINGS = {
    "size": {"kind": "ordinal"},
    "job": {"kind": "categorical", "base": "none", "columns": {"smith": "job_smith", "clerk": "job_clerk"}},
}


@pytest.fixture
def space() -> FeatureSpace:
    return infer_space(TABLE, SETTINGS)


def test_kinds_are_inferred(space: FeatureSpace) -> None:
    kinds = {f.name: f.kind for f in space.features}
    assert kinds == {
        "age": "numeric", "rooms": "integer", "owner": "binary", "size": "ordinal", "colour": "categorical",
        "job": "categorical", "narrow": "numeric",
    }  # fmt: skip
    age, job, size = (space.features[space.index(n)] for n in ("age", "job", "size"))
    assert (age.lower, age.upper, age.scale) == (20.5, 45.25, 24.75)
    assert job.levels == ("none", "smith", "clerk")
    assert size.levels == ("low", "middle", "high")


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


# -- inference -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0, 1, 1], "binary"),
        ([0.0, 1.0, np.nan], "binary"),
        ([True, False], "binary"),
        ([0, 2], "integer"),
        ([1, 1], "integer"),
        ([0.0, 2.0], "numeric"),
        (["a", "b"], "categorical"),
        ([1, "b"], "categorical"),
        (pd.Categorical([3, 5]), "categorical"),
        (pd.array([1, 2, None], dtype="Int64"), "integer"),
    ],
)
def test_kind_of_a_column(values: Any, kind: str) -> None:
    assert infer_space(pd.DataFrame({"x": values})).features[0].kind == kind


def test_settings_override_what_is_inferred() -> None:
    table = pd.DataFrame({"x": [0.0, 4.0], "n": [1, 9]})
    space = infer_space(
        table,
        {
            "x": {"bounds": (0, 10), "step": 0.5, "weight": 2, "actionability": "increasing"},
            "n": {"kind": "ordinal", "weight": (1, 3), "scale": 2.0, "permitted_range": [9]},
        },
    )
    x, n = space.features
    assert (x.lower, x.upper, x.scale, x.step, x.weight_down, x.action) == (0, 10, 10, 0.5, 2, "increasing")
    assert (n.levels, n.weight_down, n.weight_up, n.scale, n.permitted) == ((1, 9), 1, 3, 2, (9,))


def test_constant_features_are_measured_in_their_own_units() -> None:
    assert infer_space(pd.DataFrame({"x": [3.5, 3.5]})).features[0].scale == 1.0


@pytest.mark.parametrize(
    ("table", "settings", "message"),
    [
        (TABLE.iloc[:0], {}, "empty"),
        (TABLE, {"agee": {}}, "did you mean 'age'"),
        (TABLE, {"age": {"bound": (0, 1)}}, "did you mean 'bounds'"),
        (TABLE, {"job": {"columns": ["job_smith", "job_clrk"]}}, "did you mean 'job_clerk'"),
        (TABLE, {"colour": {"kind": "numeric"}}, "'colour' should hold numbers"),
        (TABLE.assign(age=np.nan), {}, "'age' holds no value"),
        (TABLE.assign(age=np.inf), {}, "infinite"),
        (TABLE, {"age": {"bounds": (3, 1)}}, "hold no value"),
        (TABLE, {"age": {"levels": [1, 2]}}, "does not fit kind 'numeric'"),
        (TABLE, {"colour": {"step": 0.1}}, "does not fit kind 'categorical'"),
        (TABLE, {"age": {"base": "x"}}, "'base' belongs to"),
        (TABLE, {"job": {**SETTINGS["job"], "levels": [1]}}, "does not fit indicator columns"),
    ],
)
def test_tables_and_settings_that_do_not_fit(table: pd.DataFrame, settings: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        infer_space(table, settings)


def test_data_must_be_a_table() -> None:
    with pytest.raises(DataError, match="must be a table"):
        as_table(np.zeros(3))
    assert list(as_table(np.zeros((1, 2)), ("a", "b")).columns) == ["a", "b"]


def test_ends_of_a_permitted_range_are_numbers_that_the_column_can_hold() -> None:
    feature = Feature("x", "numeric", dtype="float32", lower=-10.0, upper=10.0, permitted=(0.1, 0.7))
    low, high = feature.limits(5.0)
    assert 0.1 <= low <= 0.1 + 1e-8
    assert 0.7 - 1e-7 <= high <= 0.7
    assert (np.float32(low), np.float32(high)) == (low, high)
    assert feature.limits(0.1)[0] == 0.1  # a row's own value may stay

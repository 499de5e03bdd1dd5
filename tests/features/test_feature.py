"""Features: their grids, and the nearest admissible value."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import brute_force

from ocf.errors import DataError, ProblemError
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace
from ocf.problem.costs import Cost


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


@pytest.mark.parametrize("step", [None, 1.0, 0.1, 0.25, 3.0, 0.7, 100.0])
def test_grids_of_a_narrow_column_hold_what_it_does(step: float | None) -> None:
    """Against all numbers of float16; from 2,048 on it does not hold all whole ones. Without a step: whole numbers."""
    feature = Feature("x", "numeric" if step else "integer", step=step, dtype="float16")
    numbers = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(float)
    if step is None:
        grid = numbers[numbers == np.floor(numbers)]
    else:
        exact = Fraction(repr(step))
        k = np.arange(int(65519 / step) + 1, dtype=float)
        grid = np.unique((k * exact.numerator / exact.denominator).astype(np.float16).astype(float))
    grid = np.unique(np.concatenate([-grid, grid]))
    rng = np.random.default_rng(0)
    ends = [np.nextafter(grid, sign * np.inf) for sign in (1, -1)]
    v = np.concatenate([grid, *ends, numbers, rng.uniform(-65504, 65504, 2000), rng.uniform(-3000, 3000, 2000)])
    v = v[(v >= grid[0]) & (v < grid[-1])]
    place = np.searchsorted(grid, v, side="right")
    np.testing.assert_array_equal(feature.at_most(v), grid[place - 1])
    np.testing.assert_array_equal(feature.above(v), grid[place])
    np.testing.assert_array_equal(feature.at_least(v), np.where(grid[place - 1] == v, v, grid[place]))
    for low, high in ((1000.5, 1011.0), (-3.0, 2.0), (2047.0, 2100.0), (-65504.0, -60000.0), (5.0, 4.0)):
        np.testing.assert_array_equal(feature.between(low, high), grid[(low <= grid) & (grid <= high)])
    assert feature.at_most(grid[-1]) == feature.at_most(65519.0) == feature.at_most(1e9) == grid[-1]
    for end in (-np.inf, np.inf):
        assert feature.above(end) == feature.at_most(end) == end


@given(st.floats(-1e6, 1e6), st.sampled_from(["float32", "float64"]))
def test_continuous_neighbours_are_neighbours_of_the_dtype(value: float, dtype: str) -> None:
    feature = Feature("x", "numeric", dtype=dtype)
    below, above = feature.at_most(value).item(), feature.above(value).item()
    assert below <= value < above
    assert np.nextafter(np.array(below, dtype), np.array(np.inf, dtype)) == np.array(above, dtype)


@pytest.mark.parametrize(
    "feature", [Feature("x", "numeric"), Feature("x", "numeric", dtype="float32"), Feature("x", "numeric", step=0.1)]
)
def test_no_end_stays_none(feature: Feature) -> None:
    for grid in (feature.above, feature.at_least, feature.at_most):
        assert grid([-np.inf, np.inf]).tolist() == [-np.inf, np.inf]


def test_what_lies_above_huge_whole_numbers_is_the_next_float() -> None:
    feature = Feature("n", "integer")
    for value in (2.0**53 - 1, 2.0**53, 2.0**60, -(2.0**60)):
        assert feature.above(value) == np.nextafter(value, np.inf)
    assert feature.above([np.inf, -np.inf]).tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize(
    "feature", [Feature("n", "integer"), Feature("x", "numeric"), Feature("x", "numeric", step=0.5)]
)
def test_beyond_the_largest_number_there_is_no_ordinary_value(feature: Feature) -> None:
    most = np.finfo(float).max
    found = feature.nearest(np.array([2.0, most]), np.array([most, np.inf]), 1.0)
    assert found[0] == feature.above(2.0)
    assert np.isnan(found[1])


def test_integers_above_and_below() -> None:
    feature = Feature("n", "integer", dtype="int64")
    assert feature.at_most([2.0, 2.5, -0.5]).tolist() == [2.0, 2.0, -1.0]
    assert feature.above([2.0, 2.5, -0.5]).tolist() == [3.0, 3.0, 0.0]
    assert feature.at_least([2.0, 2.5, -0.5]).tolist() == [2.0, 3.0, 0.0]


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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "real"}, "kind 'real' is not one of numeric"),
        ({"kind": "numeric", "action": "up"}, "actionability 'up' is not one of free"),
        ({"kind": "categorical"}, "needs its distinct levels"),
        ({"kind": "ordinal", "levels": ("a", "a")}, "needs its distinct levels"),
        ({"kind": "binary", "levels": (0, 1, 2)}, "two levels, not 3"),
        ({"kind": "ordinal", "levels": (1, 0)}, "must increase"),
        ({"kind": "numeric", "levels": (0, 1)}, "levels belong to"),
        ({"kind": "categorical", "levels": ("a", "b"), "action": "increasing"}, "categories have no order"),
        ({"kind": "categorical", "levels": ("a", "b", "c"), "columns": ("x", "y")}, "2 indicator columns for 3"),
        ({"kind": "numeric", "scale": 0.0}, "scale 0.0 must be positive"),
        ({"kind": "numeric", "scale": math.inf, "lower": 0, "upper": 1}, "must be positive and finite$"),
        ({"kind": "numeric", "scale": math.inf}, "without an end it cannot be told, so set it"),
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


def test_ends_of_a_permitted_range_are_numbers_that_the_column_can_hold() -> None:
    feature = Feature("x", "numeric", dtype="float32", lower=-10.0, upper=10.0, permitted=(0.1, 0.7))
    low, high = feature.limits(5.0)
    assert 0.1 <= low <= 0.1 + 1e-8
    assert 0.7 - 1e-7 <= high <= 0.7
    assert (np.float32(low), np.float32(high)) == (low, high)
    assert feature.limits(0.1)[0] == 0.1  # a row's own value may stay


def test_a_permitted_range_may_have_one_end() -> None:
    feature = Feature("x", "numeric", lower=-10.0, upper=10.0)
    assert feature.permitting((None, 3)) == (-math.inf, 3)
    assert feature.permitting((3, None)) == (3, math.inf)
    assert replace(feature, permitted=feature.permitting((3, None))).limits(5.0) == (3, 10)
    since = Feature("since", "integer", dtype="datetime64[us]", lower=0.0, upper=900.0)
    assert since.permitting(("1970-01-11", None)) == (10, math.inf)

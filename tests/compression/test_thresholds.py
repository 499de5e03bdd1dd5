"""Thresholds: what a change gives, what they say and how they apply; the metrics by brute force."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ocf.compression.thresholds import (
    Threshold,
    binarize,
    compression_rate,
    inconsistency_rate,
    metrics,
    names_of,
    of_change,
    sides_of,
    sides_of_name,
)
from ocf.errors import DataError
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace

NUMBER = Feature("x", "numeric", lower=0, upper=10)
CUTS = np.array([1.0, 4.0, 7.0])


@pytest.mark.parametrize(
    ("origin", "value", "crossed"),
    [
        (0.5, np.nextafter(1.0, 2), 1.0),
        (0.5, np.nextafter(4.0, 5), 4.0),
        (9.0, 7.0, 7.0),
        (9.0, 1.0, 1.0),
        (5.0, 4.0, 4.0),
    ],
)
def test_a_change_gives_the_split_that_it_crosses_last(origin, value, crossed):
    (threshold,) = of_change(NUMBER, 3, CUTS, origin, value)
    assert threshold == Threshold(3, crossed)
    assert (origin > crossed) != (value > crossed)


def test_a_change_that_crosses_nothing_gives_nothing():
    assert of_change(NUMBER, 0, CUTS, 0.2, 0.4) == []
    assert of_change(NUMBER, 0, CUTS, 9.0, 8.0) == []
    assert of_change(NUMBER, 0, CUTS, 1.5, 3.0) == []  # a limit of the user's made it move
    assert of_change(NUMBER, 0, CUTS, 3.5, 2.0) == []
    assert of_change(NUMBER, 0, np.zeros(0), 3.5, 2.0) == []  # no split is of this feature


@pytest.mark.parametrize("value", [6.5, 3.5])
def test_without_splits_the_threshold_lies_at_the_value_and_parts_it_from_the_origin(value):
    (threshold,) = of_change(NUMBER, 0, None, 5.0, value)
    assert (threshold.value < 5.0) == (value < 5.0)
    assert (threshold.value < value) == (value > 5.0)
    assert threshold.value == pytest.approx(value)


def test_levels_and_categories():
    binary = Feature("b", "binary", levels=(0, 1))
    sex = Feature("sex", "binary", levels=("f", "m"), dtype="object")
    size = Feature("size", "ordinal", levels=("s", "m", "l"), dtype="object")
    grade = Feature("grade", "ordinal", levels=(1, 2, 5))
    job = Feature("job", "categorical", levels=("clerk", "smith", "cook"), dtype="object")
    space = FeatureSpace((binary, sex, size, grade, job))
    found = [
        *of_change(binary, 0, np.array([0.5]), 1.0, 0.0),
        *of_change(sex, 1, np.array([0.5]), 0.0, 1.0),
        *of_change(size, 2, np.array([0.5, 1.5]), 0.0, 2.0),
        *of_change(grade, 3, np.array([0.5]), 2.0, 0.0),
        *of_change(job, 4, None, 0.0, 2.0),
    ]
    names = ["b > 0", "sex = m", "size > m", "grade > 1", "job = clerk", "job = cook"]
    assert names_of(found, space) == names
    table = pd.DataFrame(
        {"b": [0, 1], "sex": ["f", "m"], "size": ["l", "m"], "grade": [1, 5], "job": ["clerk", "smith"]}
    )
    assert binarize(found, space, table).tolist() == [[0, 0, 1, 0, 1, 0], [1, 1, 0, 1, 0, 0]]
    with pytest.raises(DataError, match="unknown level"):
        binarize(found, space, table.assign(job=["clerk", "baker"]))


def test_indicator_columns_count_as_one_categorical_feature():
    job = Feature("job", "categorical", columns=("j1", "j2"), base=True, levels=("none", "clerk", "cook"))
    space = FeatureSpace((job,))
    table = pd.DataFrame({"j1": [0, 1, 0], "j2": [0, 0, 1]})
    found = of_change(job, 0, None, 0.0, 2.0)
    assert names_of(found, space) == ["job = none", "job = cook"]
    assert binarize(found, space, table).tolist() == [[1, 0], [0, 0], [0, 1]]


def test_names_have_as_many_digits_as_tell_them_apart():
    space = FeatureSpace((NUMBER,))
    near = [Threshold(0, 1.0), Threshold(0, np.nextafter(1.0, 2)), Threshold(0, 2.5)]
    assert len(set(names_of(near, space))) == 3
    assert sides_of(near[2], space)[1] == names_of(near, space)[2] == "x > 2.5"


@pytest.mark.parametrize(
    ("feature", "value", "said"),
    [
        (Feature("x", "integer", lower=0, upper=2e7, scale=2e7), 10004543.5, "10004543"),
        (Feature("x", "integer", lower=0, upper=100, scale=100), 37.5, "37.5"),
        (Feature("x", "numeric", lower=1.6e9, upper=1.6e9 + 10, scale=10), 1.6e9 + 1 / 3, "1600000000.3333"),
        (Feature("x", "numeric", lower=0, upper=1, scale=1), 1 / 3, "0.333333"),
        (Feature("x", "numeric", lower=0, upper=2e6, scale=2e6, step=0.01), 1234567.005, "1234567"),
    ],
)
def test_names_have_as_many_digits_as_a_reader_needs(feature, value, said):
    assert names_of([Threshold(0, value)], FeatureSpace((feature,))) == [f"x > {said}"]


def test_a_name_of_another_with_several_signs_is_not_taken_apart():
    assert sides_of_name("age > 30") == ("age <= 30", "age > 30")
    assert sides_of_name("job = clerk") == ("job is not clerk", "job = clerk")
    assert sides_of_name("size 10") == ("size 10 is 0", "size 10 is 1")
    for name in ("debt > income = yes", "band = inc > 50K", "a > b > c"):
        assert sides_of_name(name) == (f"{name} is 0", f"{name} is 1")


def test_missing_and_unreadable_values_are_refused():
    space = FeatureSpace((NUMBER,))
    with pytest.raises(DataError, match=r"'x', row 1: a missing value"):
        binarize([Threshold(0, 1.0)], space, pd.DataFrame({"x": [1.0, np.nan]}))
    with pytest.raises(DataError, match="should hold numbers"):
        binarize([Threshold(0, 1.0)], space, pd.DataFrame({"x": ["a", "b"]}))


def test_a_missing_category_is_none_of_the_levels():
    space = FeatureSpace((Feature("job", "categorical", levels=("clerk", "smith"), dtype="object"),))
    both = [Threshold(0, 0.0), Threshold(0, 1.0)]
    assert binarize(both, space, pd.DataFrame({"job": ["smith", None]})).tolist() == [[0, 1], [0, 0]]


@given(
    hnp.arrays(np.int8, st.tuples(st.integers(1, 12), st.integers(0, 3)), elements=st.integers(0, 1)),
    st.integers(1, 3),
    st.integers(0, 2**16),
)
def test_rates_by_brute_force(bits, n_classes, seed):
    y = np.random.default_rng(seed).integers(0, n_classes, len(bits))
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, label in zip(bits.tolist(), y.tolist(), strict=True):
        groups.setdefault(tuple(row), []).append(label)
    wrong = sum(len(g) - max(g.count(c) for c in set(g)) for g in groups.values())
    assert compression_rate(bits) == (len(bits) - len(groups)) / len(bits)
    assert inconsistency_rate(bits, y) == wrong / len(bits)


def test_metrics_of_a_hand_made_table():
    bits = [[0, 1], [0, 1], [0, 1], [1, 1]]
    assert metrics(bits, ["a", "a", "b", "b"], [4, 4]) == {
        "features": 1,
        "thresholds": 2,
        "compression": 0.5,
        "inconsistency": 0.25,
    }
    assert metrics(np.zeros((4, 0)), list("aabb"), [])["inconsistency"] == 0.5
    with pytest.raises(DataError, match="at least one row"):
        compression_rate(np.zeros((0, 2)))
    with pytest.raises(DataError, match="4 rows, but 2 labels"):
        inconsistency_rate(bits, [0, 1])


def test_whole_numbers_are_told_by_whole_numbers() -> None:
    """Just below 2 in float32, as XGBoost keeps ``x < 2``: the same rows lie above 1."""
    space = FeatureSpace((Feature("n", "integer"), Feature("x", "numeric", step=0.5, scale=9.0)))
    near = float(np.nextafter(np.float32(2), np.float32(0)))
    assert names_of([Threshold(0, near), Threshold(0, 2.5), Threshold(1, near)], space) == [
        "n > 1",
        "n > 2.5",
        "x > 1.5",
    ]
    assert names_of([Threshold(0, 10_000_000 - 0.5)], space) == ["n > 9999999"]

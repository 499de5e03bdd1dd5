from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.brute_force import cost_of_change

from ocf import Explainer
from ocf.errors import ProblemError
from ocf.features.curve import Curve
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace
from ocf.problem.costs import Cost

from .borrowers import SETTINGS

FEATURES = [
    Feature("age", "numeric", lower=0, upper=10, scale=4.0, weight_down=0.5, weight_up=2.0),
    Feature("rooms", "integer", dtype="int64", lower=0, upper=9, scale=9.0, weight_up=0.0),
    Feature("owner", "binary", levels=("no", "yes"), weight_down=3.0),
    Feature("size", "ordinal", levels=(0, 1, 5, 10), scale=10.0, weight_down=2.0),
    Feature("mood", "ordinal", levels=("low", "middle", "high"), scale=2.0),
    Feature("colour", "categorical", levels=("red", "green", "blue"), scale=2.0, weight_down=9.0, weight_up=1.5),
]
MIXES = ["l0", "l1", "l2", {"l0": 0.1, "l1": 1.0}, {"l0": 1, "l1": 0.5, "l2": 3}]


def values_of(feature: Feature) -> st.SearchStrategy[float]:
    if feature.discrete:
        return st.integers(0, len(feature.levels) - 1).map(float)
    return st.integers(0, 9).map(float) if feature.kind == "integer" else st.floats(0, 10)


@given(st.data(), st.sampled_from(FEATURES), st.sampled_from(MIXES))
def test_cost_is_the_formula(data: st.DataObject, feature: Feature, norm: object) -> None:
    cost = Cost.parse(norm)  # type: ignore[arg-type]
    origin, value = data.draw(values_of(feature)), data.draw(values_of(feature))
    found = cost.of(feature, origin, np.array([value, origin, np.nan]))
    assert found[0] == pytest.approx(cost_of_change(feature, cost, origin, value), rel=1e-12)
    assert found[1] == 0
    assert np.isnan(found[2])


def test_weights_follow_the_direction_of_the_change() -> None:
    age = FEATURES[0]
    assert Cost.parse("l1").of(age, 4.0, [2.0, 6.0]).tolist() == [0.5 * 0.5, 2.0 * 0.5]
    assert Cost.parse("l2").of(age, 4.0, [2.0, 6.0]).tolist() == [0.5 * 0.25, 2.0 * 0.25]


def test_a_change_of_category_counts_once_at_its_upward_weight() -> None:
    colour = FEATURES[-1]
    for origin in range(3):
        found = Cost.parse("l1").of(colour, origin, np.arange(3.0))
        assert found.tolist() == [0.0 if j == origin else 1.5 for j in range(3)]


def test_ordinal_distances_are_in_the_levels_own_numbers() -> None:
    assert Cost.parse("l1").of(FEATURES[3], 1.0, [0.0, 2.0, 3.0]).tolist() == [0.2, 0.4, 0.9]
    assert Cost.parse("l1").of(FEATURES[4], 0.0, [1.0, 2.0]).tolist() == [0.5, 1.0]


def test_l0_counts_changes_that_the_scale_makes_vanish() -> None:
    feature = Feature("x", "numeric", scale=1e300)
    assert Cost.parse("l0").of(feature, 0.0, [1e-300, 0.0]).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("norm", "scale", "weight"), [("l2", 1.0, 1.0), ("l1", 1e-300, 1.0), ({"l0": 1e305}, 1.0, 1.0), ("l1", 1.0, 1e200)]
)
def test_what_a_sum_cannot_hold_is_refused(norm: Any, scale: float, weight: float) -> None:
    feature = Feature("x", "numeric", scale=scale, weight_up=weight)
    with pytest.raises(ProblemError, match=r"a change of 'x' from -1e\+200 costs more than 1e\+300.* larger scale"):
        Cost.parse(norm).of(feature, -1e200, [0.0])


@pytest.mark.parametrize("norm", [{}, {"l1": -1}, {"l0": 0, "l2": 0.0}])
def test_a_norm_that_is_none_says_which_coefficients_it_has(norm: Any) -> None:
    said = ", ".join(f"l{k} = {norm.get(f'l{k}', 0):g}" for k in (0, 1, 2))
    with pytest.raises(ProblemError, match=f"not all 0: {said}$"):
        Cost.parse(norm)


@pytest.mark.filterwarnings("error")
def test_l0_asks_for_no_distance() -> None:
    """Whose overflow would be none of its concern."""
    feature = Feature("x", "numeric", scale=5e-324)
    assert Cost.parse("l0").of(feature, -1e200, [0.0, -1e200, np.nan]).tolist()[:2] == [1.0, 0.0]


def test_an_own_cost_that_a_sum_cannot_hold_is_refused() -> None:
    feature = Feature("x", "numeric", cost=Curve.parse([1e308, 1e308]))
    with pytest.raises(ProblemError, match=r"'x' from 0\.0 costs more than"):
        Cost.parse("l1").of(feature, 0.0, [10.0])


def test_total_adds_up_and_skips_missing_features() -> None:
    space = FeatureSpace((FEATURES[0], FEATURES[2]))
    cost = Cost.parse("l1")
    assert cost.total(space, np.array([4.0, 0.0]), np.array([6.0, 1.0])) == 2.0
    assert cost.total(space, np.array([np.nan, 0.0]), np.array([np.nan, 1.0])) == 1.0


def test_parse() -> None:
    assert Cost.parse("l1") == Cost(l1=1.0) == Cost.parse({"l1": 1}) == Cost.parse(Cost(l1=1.0))
    assert Cost(**Cost.parse({"l0": 0.5, "l2": 2}).to_dict()) == Cost(0.5, 0.0, 2.0)


@pytest.mark.parametrize(
    ("norm", "message"),
    [
        ("l3", "unknown norm 'l3'.*l2"),
        ("cosine", "known: l0, l1, l2, mahalanobis, mahalanobis_l1"),
        ("mahalanobis", "of models of trees: give l0, l1, l2"),
        ("L1", "known: l0, l1, l2"),
        ({"l1": 1, "linf": 1}, "unknown norm 'linf'"),
        ({"l1": 0.0}, "not all 0"),
        ({}, "not all 0"),
        ({"l1": -1.0}, "at least 0"),
        ({"l1": float("nan")}, "at least 0"),
        ({"l1": None}, "coefficient of 'l1' in a norm is a number of at least 0, not None"),
        ({"l1": float("inf")}, "at least 0"),
    ],
)
def test_bad_norms_are_refused(norm: object, message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        Cost.parse(norm)  # type: ignore[arg-type]


def test_costs_by_level_and_between_levels_and_preferred_states(table: pd.DataFrame, explainer: Explainer) -> None:
    model = explainer.model.native
    priced = SETTINGS | {
        "job": SETTINGS["job"] | {"cost": {"smith": -0.25, "clerk": 5}},
        "school": SETTINGS["school"] | {"cost": {"between": [0.5, 2]}},
    }
    asked = Explainer(model, data=table, features=priced)
    rows = table[(explainer.model.decide(table) == 0) & (table.job_smith == 0)].iloc[:3]
    for solver in ("highs", "box"):
        for e in asked.explain(rows, solver=solver):
            assert e.verified, e.checks
            assert e.status == "optimal"
            costs = dict(zip(e.changes.feature, e.changes.cost, strict=True))
            assert costs["job"] == -0.25
            assert e.cost == pytest.approx(sum(costs.values()))

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_problems import random_space

from ocf.errors import ProblemError
from ocf.features.space import FeatureSpace
from ocf.problem.costs import Cost
from ocf.rules.points import IsolationTrees, RuleInterval, annealed_point, cheapest_point, most_plausible_point
from ocf.solvers import SolverOptions


def question(seed: int) -> tuple[IsolationTrees, FeatureSpace, np.ndarray, list[RuleInterval]]:
    """A small isolation forest, a row, and a box around some other row on two or three features."""
    rng = np.random.default_rng(seed)
    space, rows = random_space(rng)
    trees = IsolationTrees.fit(space, rows, seed=seed, n_estimators=5, max_samples=8)
    origin, other = rows[rng.choice(len(rows), 2, replace=False)]
    intervals = []
    for i in rng.choice(len(space), int(rng.integers(2, 4)), replace=False).tolist():
        if space.features[i].action == "fixed":
            continue
        if space.features[i].kind == "categorical":
            codes = {int(other[i]), int(rng.integers(4))}
            intervals.append(RuleInterval(i, levels=tuple(sorted(codes))))
            continue
        low, high = space.features[i].limits(origin[i])
        inside = np.clip(other[i], low, high)
        intervals.append(RuleInterval(i, inside - rng.uniform(0.1, 2), inside + rng.uniform(0, 2)))
    return trees, space, origin, intervals


def candidates(space: FeatureSpace, trees: IsolationTrees, origin: np.ndarray, interval: RuleInterval) -> np.ndarray:
    """Admissible values of the interval: one in each cell of the isolation forest."""
    i = interval.feature
    feature, span = space.features[i], trees.partition.cells_of(i)
    cuts = trees.partition.upper[span][:-1]
    if interval.levels is not None:
        return np.array(interval.levels, float)
    ends = np.concatenate([cuts, [interval.upper, origin[i]], feature.above(np.append(cuts, interval.lower))])
    values = feature.at_most(ends)
    low, high = feature.limits(origin[i])
    return np.unique(values[interval.holds(values) & (low <= values) & (values <= high)])


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from(["highs", "scip"]))
def test_no_choice_of_values_is_deeper_than_the_model_says(seed: int, solver: str) -> None:
    trees, space, origin, intervals = question(seed)
    if not intervals:
        return
    best = -np.inf
    for values in product(*(candidates(space, trees, origin, t) for t in intervals)):
        point = origin.copy()
        point[[t.feature for t in intervals]] = values
        best = max(best, float(trees.depth(point)[0]))
    found = most_plausible_point(trees, origin, intervals, solver=solver)
    assert found.depth == pytest.approx(best, abs=1e-9)
    assert found.bound == found.depth
    inside(space, origin, intervals, found.point)


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_annealing_stays_in_the_rule_and_below_the_optimum(seed: int) -> None:
    trees, space, origin, intervals = question(seed)
    if not intervals:
        return
    found = annealed_point(trees, origin, intervals, iterations=50, seed=seed)
    inside(space, origin, intervals, found.point)
    assert found.depth <= most_plausible_point(trees, origin, intervals).depth + 1e-9
    again = annealed_point(trees, origin, intervals, iterations=50, seed=seed)
    np.testing.assert_array_equal(found.point, again.point)


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.sampled_from(["l1", "l2", "l0"]))
def test_cheapest_point_beats_every_value_that_can_be_tried(seed: int, norm: str) -> None:
    trees, space, origin, intervals = question(seed)
    cost = Cost.parse(norm)
    point = cheapest_point(space, origin, intervals, cost)
    inside(space, origin, intervals, point)
    for t in intervals:
        values = candidates(space, trees, origin, t)
        feature = space.features[t.feature]
        paid, prices = (cost.of(feature, origin[t.feature], v) for v in (point[t.feature], values))
        assert paid <= prices.min()


def inside(space: FeatureSpace, origin: np.ndarray, intervals: list[RuleInterval], point: np.ndarray) -> None:
    changed = {t.feature for t in intervals}
    kept = [i for i in range(len(space)) if i not in changed]
    np.testing.assert_array_equal(point[kept], origin[kept])
    assert all(t.holds(point[[t.feature]])[0] for t in intervals)
    np.testing.assert_array_equal(space.from_frame(space.to_frame(point))[0], point)


def test_score_is_the_library_s() -> None:
    trees, _, _, _ = question(0)
    depth = trees.depth(trees.rows)
    np.testing.assert_allclose(-(2 ** (-depth / trees.normaliser)), trees.scores(trees.rows), rtol=1e-9)


def test_an_interval_without_an_admissible_value_is_refused() -> None:
    trees, space, origin, _ = question(1)
    i = space.index("integer")
    with pytest.raises(ProblemError, match="no admissible value of 'integer'"):
        cheapest_point(space, origin, [RuleInterval(i, 2.2, 2.8)], Cost(l1=1.0))
    with pytest.raises(ProblemError, match="no admissible value of 'integer'"):
        most_plausible_point(trees, origin, [RuleInterval(i, 2.2, 2.8)])


def test_where_the_time_is_too_short_the_cheapest_point_is_given() -> None:
    trees, space, origin, intervals = question(3)
    found = most_plausible_point(trees, origin, intervals, options=SolverOptions(time_limit=1e-6))
    np.testing.assert_array_equal(found.point, cheapest_point(space, origin, intervals, Cost(l1=1.0)))
    assert found.depth == trees.depth(found.point)[0] <= found.bound

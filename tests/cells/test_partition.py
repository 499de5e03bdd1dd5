"""Cells and leaf boxes, against the trees themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import brute_force
from oracle.harness import prepare
from oracle.instances import LIBRARIES, Spec, layouts_of, specs

from ocf.cells.cell_problem import CellProblem
from ocf.cells.forms import to_cells
from ocf.cells.partition import Partition, partition
from ocf.errors import DataError
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassTarget
from ocf.trees.ensemble import Decision, Ensemble, SplitKind

SPECS = st.sampled_from(list(LIBRARIES)).flatmap(specs)
FEW = settings(max_examples=25, deadline=None)


def random_coded(part: Partition, space: FeatureSpace, rng: np.random.Generator, n: int) -> np.ndarray:
    """Coded rows at, next to and between the cuts."""
    columns = []
    for i, feature in enumerate(space.features):
        cuts = part.upper[part.cells_of(i)][:-1]
        if feature.discrete:
            pool = np.arange(len(feature.levels), dtype=float)
        else:
            pool = np.concatenate([cuts, np.nextafter(cuts, np.inf), rng.normal(0, 100, 20)])
        columns.append(rng.choice(pool, n))
    return np.column_stack(columns)


@FEW
@given(SPECS)
def test_boxes_hold_the_points_that_reach_their_leaf(spec: Spec) -> None:
    case = prepare(spec)
    part, space = case.cells.partition, case.problem.space
    points = random_coded(part, space, np.random.default_rng(0), 60)
    missing = np.isnan(case.problem.origin)
    points[:, missing] = np.nan
    leaves = part.ensemble.apply(points)
    cells = part.locate(points)
    for point, choice, reached in zip(points, cells, leaves, strict=True):
        np.testing.assert_array_equal(part.leaves_at(choice), reached)
        span = part.offsets[:-1] + choice
        inside = (part.lower[span] < point) & (point <= part.upper[span])
        assert inside[~missing].all()


@FEW
@given(SPECS)
def test_values_of_cells_are_admissible_and_the_cheapest(spec: Spec) -> None:
    case = prepare(spec)
    cells, question = case.cells, case.question
    choices = brute_force.cell_choices(question)
    for i, (feature, origin) in enumerate(zip(question.space.features, question.origin, strict=True)):
        span = cells.partition.cells_of(i)
        found = sorted(cells.cost[span][cells.open[span]].tolist())
        assert found == pytest.approx(sorted(choices[i][1].tolist()), rel=1e-12)
        if not np.isnan(origin):
            for value in cells.value[span][cells.open[span]]:
                assert brute_force.is_admissible(feature, origin, value)


@FEW
@given(SPECS)
def test_a_permitted_origin_is_the_free_point_of_its_cells(spec: Spec) -> None:
    case = prepare(spec)
    cells, origin = case.cells, case.problem.origin
    choice = cells.partition.locate(origin[None, :])[0]
    stays = np.array(
        [
            np.isnan(value) or brute_force.is_admissible(feature, value, value)
            for feature, value in zip(case.problem.space.features, origin, strict=True)
        ]
    )
    flat = (cells.partition.offsets[:-1] + choice)[stays]
    assert not cells.cost[flat].any()
    np.testing.assert_array_equal(cells.point(choice)[stays], origin[stays])


def chain(thresholds: list[float], feature: Feature, sets: np.ndarray | None = None) -> CellProblem:
    """Problem over one tree that goes on splitting to the right; its leaves are numbered from the left."""
    n = len(thresholds)
    kind = np.tile([SplitKind.SUBSET if sets is not None else SplitKind.AXIS, SplitKind.LEAF], n)
    kind = np.append(kind, SplitKind.LEAF).astype(np.uint8)
    inner = kind != SplitKind.LEAF
    place = np.arange(2 * n + 1)
    ensemble = Ensemble(
        feature_names=(feature.name,),
        tree_offsets=np.array([0, 2 * n + 1]),
        kind=kind,
        feature=np.where(inner, 0, -1).astype(np.int32),
        threshold=np.where(inner & (sets is None), np.repeat([*thresholds, 0.0], 2)[:-1], np.nan),
        left=np.where(inner, place + 1, -1).astype(np.int32),
        right=np.where(inner, place + 2, -1).astype(np.int32),
        leaf=np.where(inner, -1, np.cumsum(~inner) - 1).astype(np.int32),
        leaf_values=np.linspace(-1, 1, n + 1)[:, None],
        tree_weights=np.ones(1),
        base_score=np.zeros(1),
        decision=Decision("threshold", (0, 1)),
        set_index=np.where(inner & (sets is not None), place // 2, -1).astype(np.int32),
        sets=np.zeros((0, 0), bool) if sets is None else sets,
    )
    return to_cells(Problem(ensemble, FeatureSpace((feature,)), np.zeros(1), ClassTarget(1), Cost(l1=1.0)))


def test_cells_of_a_known_tree() -> None:
    cells = chain([1.0, 2.0], Feature("x", "numeric", lower=0.0, upper=9.0))
    part = cells.partition
    assert part.upper.tolist() == [1.0, 2.0, np.inf]
    assert (part.low[:, 0].tolist(), part.high[:, 0].tolist()) == ([0, 1, 2], [0, 1, 2])
    assert cells.value.tolist() == [0.0, np.nextafter(1.0, 2.0), np.nextafter(2.0, 3.0)]
    assert cells.cost_of(np.array([1])) == cells.value[1]
    assert part.leaves_at(np.array([2])).tolist() == [2]
    # leaves are worth -1, 0 and 1, so half of that separates a win from a tie
    assert cells.margins(np.array([2])).tolist() == [0.5]


def test_leaves_below_contradictory_splits_are_unreachable() -> None:
    cells = chain([2.0, 1.0], Feature("x", "numeric", lower=0.0, upper=9.0))
    assert cells.partition.reachable.tolist() == [True, False, True]
    assert cells.live.tolist() == [True, False, True]


def test_infinite_thresholds_cut_nothing() -> None:
    part = chain([-np.inf, 3.0, np.inf], Feature("x", "numeric", lower=0.0, upper=9.0)).partition
    assert part.n_cells == 2
    assert part.reachable.tolist() == [False, True, True, False]


def test_sets_of_levels_give_a_cell_per_level() -> None:
    feature = Feature("c", "categorical", levels=("a", "b", "c"))
    cells = chain([0.0, 0.0], feature, np.array([[True, False, True], [False, True, False]]))
    part = cells.partition
    assert not part.ordered[0]
    assert part.members_of(0).tolist() == [[True, False, True], [False, True, False], [False, False, False]]
    assert part.reachable.tolist() == [True, True, False]
    assert cells.cost.tolist() == [0.0, 1.0, 1.0]
    assert [part.leaves_at(np.array([j])).tolist() for j in range(3)] == [[0], [1], [0]]


def test_sets_on_a_numeric_feature_are_refused() -> None:
    with pytest.raises(DataError, match="describe it as kind 'categorical'"):
        chain([0.0], Feature("x", "numeric"), np.array([[True, False]]))


def test_cells_without_an_admissible_value_are_closed() -> None:
    cells = chain([0.2, 0.8, 1.5], Feature("n", "integer", lower=0.0, upper=1.0))
    assert cells.open.tolist() == [True, False, True, False]
    assert np.isinf(cells.cost[~cells.open]).all()
    assert not cells.infeasible
    empty = chain([0.5], Feature("n", "integer", lower=0.0, upper=1.0, permitted=(5.0, 6.0)))
    assert empty.infeasible


def test_a_missing_value_stays_and_costs_nothing() -> None:
    feature = Feature("x", "numeric", lower=0.0, upper=1.0)
    cells = chain([np.inf], feature)
    problem = cells.problem
    missing = to_cells(Problem(problem.ensemble, problem.space, np.array([np.nan]), problem.target, problem.cost))
    assert missing.cost.tolist() == [0.0]
    assert np.isnan(missing.point(np.array([0]))).all()


@pytest.mark.parametrize("library", LIBRARIES)
def test_partition_depends_on_the_ensemble_alone(library: str) -> None:
    case = prepare(Spec(library, layouts_of(library)[0], 1))
    part = case.cells.partition
    again = partition(part.ensemble, case.problem.space.updated({case.problem.space.names[0]: {"weight_up": 3.0}}))
    np.testing.assert_array_equal(part.upper, again.upper)
    np.testing.assert_array_equal(part.low, again.low)

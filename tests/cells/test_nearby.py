"""Trees within a ball say of its points what the whole trees say, and hold no leaf that the ball misses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_problems import exhaustive, random_problem

from ocf.cells.cell_problem import CellProblem
from ocf.cells.nearby import Pruner
from ocf.trees.ensemble import SplitKind

MOST = 100_000


def random_limit(cells: CellProblem, seed: int) -> float:
    """A cost of some choice of cells, or next to one."""
    rng = np.random.default_rng(seed)
    costs = exhaustive(cells).cost
    limit = float(rng.choice(costs[np.isfinite(costs)]))
    return limit * float(rng.choice([1.0, 1.0, 0.7, 1.3])) + float(rng.choice([0.0, 1e-6]))


@pytest.mark.parametrize("seed", range(60))
def test_points_of_the_ball_reach_the_same_leaves(seed: int) -> None:
    cells = random_problem(seed)
    limit, everything = random_limit(cells, seed), exhaustive(cells)
    near = Pruner(cells.partition).within(cells.cost, limit, MOST)
    inside = everything.choices[everything.cost < limit]
    if near is None:
        assert not len(inside)
        return
    points = np.array([cells.point(choice) for choice in inside]).reshape(len(inside), -1)
    whole = cells.partition.ensemble
    np.testing.assert_array_equal(near.leaf[near.ensemble.apply(points)], whole.apply(points))
    np.testing.assert_allclose(near.ensemble.scores(points), whole.scores(points), rtol=0, atol=0)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_left_meets_the_ball(seed: int) -> None:
    cells = random_problem(seed)
    limit = random_limit(cells, seed)
    near = Pruner(cells.partition).within(cells.cost, limit, MOST)
    boxes = cells.partition.all_boxes
    least = np.zeros(cells.partition.ensemble.n_leaves)
    for i in range(cells.partition.n_features):
        index = np.arange(cells.partition.widths[i])
        admits = (boxes.low[:, [i]] <= index) & (index <= boxes.high[:, [i]])
        if not cells.partition.ordered[i]:
            admits &= cells.partition.members_of(i)
        least += np.where(admits, cells.cost[cells.partition.cells_of(i)], np.inf).min(axis=1)
    meets = np.flatnonzero(least < limit * (1 - 1e-8))
    may = np.flatnonzero(least < limit * (1 + 1e-8) + 1e-300)
    left = np.zeros(0, np.int64) if near is None else near.leaf
    assert set(meets) <= set(left)
    assert set(left) <= set(may)
    assert len(left) < cells.partition.ensemble.n_leaves or len(may) == len(left)


def test_no_node_with_a_single_child_is_left() -> None:
    cells = random_problem(3)
    near = Pruner(cells.partition).within(cells.cost, random_limit(cells, 3), MOST)
    assert near is not None
    inner = near.ensemble.kind != SplitKind.LEAF
    assert near.ensemble.n_leaves == near.ensemble.n_trees + inner.sum()


def test_choices_of_leaves_outside_are_dropped() -> None:
    cells = random_problem(3)
    near = Pruner(cells.partition).within(cells.cost, np.inf, MOST)
    assert near is not None
    everything = (np.array([0, 1]), near.leaf[[0, -1]])
    np.testing.assert_array_equal(near.translated(everything)[-1], [0, len(near.leaf) - 1])
    small = Pruner(cells.partition).within(cells.cost, float(np.nextafter(cells.cost.min(), 1)) + 1e-9, MOST)
    assert small is not None
    gone = np.setdiff1d(near.leaf, small.leaf)
    assert small.translated((gone[:1], small.leaf[:1])) == (np.array([0]),)


def test_choices_of_leaves_are_found_in_whatever_order_they_stand() -> None:
    cells = random_problem(3)
    near = Pruner(cells.partition).within(cells.cost, np.inf, MOST)
    assert near is not None
    rng = np.random.default_rng(0)
    mixed = replace(near, leaf=rng.permutation(near.leaf))
    choice = rng.permutation(near.leaf)[:3]
    (found,) = mixed.translated((choice,))
    np.testing.assert_array_equal(mixed.leaf[found], choice)


def test_too_many_nodes_are_none() -> None:
    cells = random_problem(3)
    assert Pruner(cells.partition).within(cells.cost, np.inf, MOST) is not None
    assert Pruner(cells.partition).within(np.full(len(cells.cost), np.inf), 1.0, MOST) is None

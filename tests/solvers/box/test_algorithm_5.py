"""The paper's search as it is written, and what each improvement may and may not change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_problems import exhaustive, random_problem

from ocf.solvers.box import Improvements, algorithm_5
from ocf.solvers.box.algorithm_5 import least_of_leaves
from ocf.solvers.result import Status

from .cases import check

SEEDS = st.integers(0, 10**6)
EVERYTHING = Improvements(nearest_first=True, far_leaves=True, sums=True)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.booleans(), st.booleans(), st.booleans())
def test_equals_brute_force(seed: int, nearest_first: bool, far_leaves: bool, sums: bool) -> None:
    cells = random_problem(seed)
    check(cells, algorithm_5(cells, Improvements(nearest_first, far_leaves, sums)), exhaustive(cells).optimum)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.booleans())
def test_what_drops_more_looks_at_no_more_and_finds_the_same(seed: int, nearest_first: bool) -> None:
    cells = random_problem(seed)
    plain = Improvements(nearest_first=nearest_first)
    base = algorithm_5(cells, plain)
    for improved in (replace(plain, sums=True), replace(plain, far_leaves=True)):
        result = algorithm_5(cells, improved)
        assert result.nodes <= base.nodes
        assert result.cost == base.cost


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.floats(0.1, 0.5))
def test_dead_leaves_closed_cells_and_cutoffs(seed: int, share: float) -> None:
    cells = random_problem(seed)
    rng = np.random.default_rng(seed)
    cells = replace(cells, live=cells.live & (rng.random(len(cells.live)) > share / 4))
    optimum = exhaustive(cells).optimum
    if cells.infeasible:
        return
    for improvements in (Improvements(), EVERYTHING):
        check(cells, algorithm_5(cells, improvements), optimum)
        if np.isfinite(optimum):
            assert algorithm_5(cells, improvements, cutoff=optimum).cost == pytest.approx(optimum)
        if 0 < optimum < np.inf:
            below = algorithm_5(cells, improvements, cutoff=optimum * (1 - 1e-6))
            assert (below.status, below.message) == (Status.INFEASIBLE, "cutoff")


@pytest.mark.parametrize("seed", range(5))
def test_a_limit_of_tasks_leaves_a_bound(seed: int) -> None:
    cells = random_problem(seed)
    whole = algorithm_5(cells)
    for limit in sorted({1, whole.nodes // 2, whole.nodes - 1} & set(range(1, whole.nodes))):
        part = algorithm_5(cells, task_limit=limit)
        assert part.message == "tasks"
        assert part.status in (Status.FEASIBLE, Status.UNKNOWN)
        assert part.nodes == limit
        assert part.bound <= (np.inf if whole.cost is None else whole.cost)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_the_nearest_point_of_a_leaf(seed: int) -> None:
    cells = random_problem(seed)
    everything = exhaustive(cells)
    leaves = np.array([cells.partition.leaves_at(c) for c in everything.choices])
    least = least_of_leaves(cells)
    for leaf in range(len(cells.live)):
        costs = everything.cost[(leaves == leaf).any(axis=1)]
        assert least[leaf] == pytest.approx(costs.min() if len(costs) else np.inf)

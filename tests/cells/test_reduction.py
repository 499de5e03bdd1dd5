"""Reduction against brute force over all choices of cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from small_problems import exhaustive, random_problem

from ocf.cells.cell_problem import CellProblem
from ocf.cells.forms import to_cells
from ocf.cells.partition import partition
from ocf.cells.reduction import TOLERANCE, Reduction, reduce
from ocf.features.inference import infer_space
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassTarget
from ocf.readers.sklearn import read
from ocf.support.limits import within

SEEDS = st.integers(0, 10**6)


def check(cells: CellProblem, upper: float) -> Reduction:
    """Whatever is cheaper than `upper` at best stays; what the result claims is true."""
    optimum = exhaustive(cells).optimum
    result = reduce(cells, upper)
    left = exhaustive(result.cells)
    assert not (result.cells.open & ~cells.open).any()
    assert not (result.cells.live & ~cells.live).any()
    assert result.cells_open == (cells.open.sum(), result.cells.open.sum())
    assert result.leaves == (cells.live.sum(), result.cells.live.sum())
    assert result.bound <= min(optimum, upper) or result.bound == pytest.approx(min(optimum, upper), rel=1e-9)
    if optimum < upper * (1 - 2 * TOLERANCE):
        assert not result.proved
        assert left.optimum == pytest.approx(optimum, rel=1e-12, abs=1e-15)
    if result.proved:
        assert optimum >= upper * (1 - 2 * TOLERANCE)
        assert result.bound == upper
    return result


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_optimum_survives(seed: int) -> None:
    cells = random_problem(seed)
    everything = exhaustive(cells)
    optimum = everything.optimum
    uppers = [np.inf]
    if np.isfinite(optimum):
        feasible = np.sort(everything.cost[everything.feasible])
        uppers += [optimum, optimum * 1.0000001, float(feasible[len(feasible) // 2]), float(feasible[-1])]
    for upper in uppers:
        check(cells, upper)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_reducing_a_reduced_problem_again(seed: int) -> None:
    cells = random_problem(seed)
    optimum = exhaustive(cells).optimum
    first = reduce(cells, optimum * 2 if np.isfinite(optimum) else np.inf)
    if not first.proved:
        check(first.cells, optimum * 1.01 if np.isfinite(optimum) else np.inf)


def test_what_ran_out_of_time_goes_on_later() -> None:
    shrunk = 0
    for seed in range(20):
        cells = random_problem(seed)
        with within(0.0):
            unfinished = reduce(cells, merge=False)
        assert unfinished.rounds == 0
        later, whole = reduce(unfinished.cells, merge=False), reduce(cells, merge=False)
        assert later.proved == whole.proved
        if not whole.proved:
            assert later.bound == whole.bound
            assert (later.cells.open == whole.cells.open).all()
            assert (later.cells.live == whole.cells.live).all()
            assert reduce(later.cells, merge=False).rounds == 0  # nothing is left to do
        shrunk += later.rounds > 0
    assert shrunk > 10


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.floats(0.05, 0.5))
def test_dead_leaves_and_closed_cells_stay_so(seed: int, share: float) -> None:
    cells = random_problem(seed)
    rng = np.random.default_rng(seed)
    cells = replace(cells, live=cells.live & (rng.random(len(cells.live)) > share))
    optimum = exhaustive(cells).optimum
    check(cells, optimum * 1.5 if np.isfinite(optimum) else np.inf)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("boosted", [False, True])
def test_models_of_scikit_learn(seed: int, boosted: bool) -> None:
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=80), rng.integers(0, 5, 80), rng.integers(0, 2, 80)]).astype(float)
    y = (x[:, 0] + 0.5 * x[:, 1] + rng.normal(size=80) > 1).astype(int) + (x[:, 2] * (x[:, 0] > 1)).astype(int)
    kind = GradientBoostingClassifier if boosted else RandomForestClassifier
    model = kind(n_estimators=4, max_depth=2, random_state=seed).fit(x, y)
    space = infer_space(x, {"x1": {"kind": "integer"}})
    ensemble = read(model).ensemble
    part = partition(ensemble, space)
    current = int(model.predict(x[:1])[0])
    for target in set(range(3)) - {current}:
        cells = to_cells(Problem(ensemble, space, x[0], ClassTarget(target), Cost.parse("l1")), part)
        everything = exhaustive(cells)
        feasible = everything.cost[everything.feasible]
        check(cells, np.inf)
        if len(feasible):
            check(cells, float(feasible.min()))
            check(cells, float(np.median(feasible)))


def test_the_optimum_often_proves_itself() -> None:
    proved = 0
    for seed in range(60):
        cells = random_problem(seed)
        optimum = exhaustive(cells).optimum
        proved += reduce(cells, optimum).proved
    assert proved > 30


def test_infeasible_cells_are_recognised() -> None:
    cells = random_problem(3)
    closed = cells.open.copy()
    closed[cells.partition.cells_of(0)] = False
    result = reduce(replace(cells, open=closed))
    assert result.proved
    assert result.bound == np.inf


def test_cells_that_no_leaf_tells_apart_are_merged() -> None:
    merged = 0
    for seed in range(40):
        cells = random_problem(seed)
        result = reduce(cells)
        if result.proved:
            continue
        part, live = cells.partition, result.cells.live
        for i in range(part.n_features):
            inside = np.flatnonzero(result.cells.open[part.cells_of(i)])
            if part.ordered[i]:
                admits = (part.low[live, i, None] <= inside) & (inside <= part.high[live, i, None])
            else:
                admits = part.members_of(i)[live][:, inside]
            different = np.unique(admits, axis=1).shape[1]
            # classes of an ordered feature are runs: two cells may look alike with another between them
            assert len(inside) <= (different if not part.ordered[i] else 2 * different)
            merged += int(cells.open[part.cells_of(i)].sum() > len(inside))
    assert merged > 0


def test_deterministic() -> None:
    cells = random_problem(11)
    first, second = reduce(cells, 1.0), reduce(cells, 1.0)
    assert np.array_equal(first.cells.open, second.cells.open)
    assert np.array_equal(first.cells.live, second.cells.live)
    assert first.bound == second.bound

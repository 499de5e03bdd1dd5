"""The depth-first kernel over bitsets: bounds, verdicts, what it leaves open, and several threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_problems import exhaustive, random_ensemble, random_problem, random_space

from ocf.arrays import IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.forms import to_cells
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassTarget
from ocf.solvers.box import backtrack, solve_cells, worker
from ocf.solvers.box.bitsets import make_bits, new_scratch, new_stack, pop, push
from ocf.solvers.box.dive import EXHAUSTED, INTERRUPTED, dive
from ocf.solvers.box.instance import copied, make_instance, whole
from ocf.solvers.box.relaxation import no_relaxation
from ocf.solvers.result import SolverOptions, Status

SEEDS = st.integers(0, 10**6)


def large(seed: int, n_trees: int = 30, depth: int = 4) -> CellProblem:
    rng = np.random.default_rng(seed)
    space, rows = random_space(rng)
    ensemble = random_ensemble(rng, space, rows, n_trees, depth, int(rng.integers(2, 4)))
    return to_cells(Problem(ensemble, space, rows[0], ClassTarget(int(rng.integers(2))), Cost(l1=1)))


def search(cells: CellProblem, budget: int, limit: float = np.inf) -> tuple[float, int]:
    """Cheapest cost by dives of a few boxes each, and their number; uncertain points pass."""
    instance = make_instance(cells)
    bits = make_bits(instance)
    stack, scratch = new_stack(instance, bits), new_scratch(instance, bits)
    shared, x, domain = np.array([limit]), np.zeros(len(instance.ordered), np.int64), whole(instance)
    none = np.zeros((0, len(instance.trees) - 1), np.int64)
    multipliers = no_relaxation(instance)
    error_bound = np.full(len(instance.need), -1e-6)  # ties are put before nobody
    open_boxes, dives, best = [(0.0, copied(domain))], 0, np.inf
    while open_boxes:
        bound, box = open_boxes.pop()
        push(stack, bits, box, bound)
        ended, boxes, cost = dive(
            instance, bits, stack, scratch, multipliers, error_bound, none, shared, 1e-10, budget, False, x
        )
        assert boxes <= budget
        if np.isfinite(cost):
            assert cells.cost_of(x) == pytest.approx(cost)
            assert (cells.margins(cells.partition.leaves_at(x)) >= -1e-6).all()
            best = min(best, cost)
        assert (ended == INTERRUPTED) == (stack.size[0] > 0)
        assert ended in (EXHAUSTED, INTERRUPTED)
        while stack.size[0]:
            open_boxes.append((pop(stack, bits, domain), copied(domain)))
            assert open_boxes[-1][0] >= bound
        dives += 1
    return best, dives


@settings(max_examples=80, deadline=None)
@given(SEEDS, st.integers(1, 40))
def test_dives_of_any_length_find_the_optimum(seed: int, budget: int) -> None:
    cells = random_problem(seed)
    assert search(cells, budget)[0] == pytest.approx(exhaustive(cells).optimum)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.floats(0.3, 3.0))
def test_nothing_dearer_than_the_limit(seed: int, factor: float) -> None:
    cells = random_problem(seed)
    optimum = exhaustive(cells).optimum
    if np.isfinite(optimum) and optimum > 0:
        found = search(cells, 10, optimum * factor)[0]
        assert found == (pytest.approx(optimum) if factor > 1.000001 else np.inf)


@pytest.mark.parametrize("seed", range(8))
def test_bits_are_the_leaves_that_meet_a_cell(seed: int) -> None:
    cells = large(seed)
    instance = make_instance(cells)
    bits = make_bits(instance)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        x = np.array([rng.integers(a, b) for a, b in zip(instance.offsets[:-1], instance.offsets[1:], strict=True)])
        words = np.bitwise_and.reduce(bits.first[x] & bits.last[x], axis=0)
        inside = np.unpackbits(words.view(np.uint8), bitorder="little", count=len(bits.leaf)).astype(bool)
        choice = instance.cell[x]
        assert sorted(instance.leaf[bits.leaf[inside]]) == sorted(cells.partition.leaves_at(choice))
    tree = np.repeat(np.arange(len(instance.trees) - 1), np.diff(instance.trees))
    for t in range(len(instance.trees) - 1):
        assert (np.diff(bits.gain[tree == t, 0]) <= 0).all()
    for domain in (whole(instance),):
        domain.live[:] = rng.random(len(domain.live)) < 0.5
        stack, back = new_stack(instance, bits), copied(whole(instance))
        push(stack, bits, domain, 1.5)
        assert pop(stack, bits, back) == 1.5
        assert all(np.array_equal(a, b) for a, b in zip(domain, back, strict=True))


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_backtracking_gives_an_upper_bound(seed: int) -> None:
    cells = random_problem(seed)
    optimum = exhaustive(cells).optimum
    x = backtrack(cells)
    if x is None:
        assert not np.isfinite(optimum)
        return
    assert (cells.margins(cells.partition.leaves_at(x)) >= 0).all()
    assert cells.open[cells.partition.offsets[:-1] + x].all()
    assert cells.cost_of(x) >= optimum * (1 - 1e-9)


def test_backtracking_gives_up_at_its_limit() -> None:
    cells = large(3)
    assert backtrack(cells, node_limit=0) is None


@pytest.mark.parametrize("seed", range(12))
def test_threads_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BOXES", 5)  # many dives, so that the threads take turns
    cells = large(seed)
    one = solve_cells(cells)
    for threads in (2, 3):
        many = solve_cells(cells, SolverOptions(threads=threads))
        assert many.status is one.status
        assert many.cost == one.cost or many.cost == pytest.approx(one.cost, rel=1e-9)
        assert many.bound == one.bound or many.bound == pytest.approx(one.bound, rel=1e-9)
    assert threading.active_count() < 20


def test_a_failing_model_stops_every_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BOXES", 5)
    cells = large(1)
    wide = np.full(len(cells.requirements.need), 1e6)
    uncertain = type(cells.requirements)(cells.requirements.gain, cells.requirements.need, wide)

    def confirm(x: IntArray) -> bool:
        raise RuntimeError("the model is gone")

    with pytest.raises(RuntimeError, match="gone"):
        solve_cells(cells.with_(requirements=uncertain), SolverOptions(threads=3), confirm=confirm)


@pytest.mark.parametrize("threads", [1, 2])
def test_limits_stop_dives(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BOXES", 3)
    for seed in range(30):
        cells = large(seed, 40, 5)
        proved = solve_cells(cells)
        for limit in ({"node_limit": 7}, {"memory_limit": 1e-9}):
            result = solve_cells(cells, SolverOptions(threads=threads, options=limit))
            if result.status in (Status.FEASIBLE, Status.UNKNOWN):
                assert result.message == next(iter(limit)).replace("_", " ")
                assert proved.cost is None or result.bound <= proved.cost * (1 + 1e-9)
                assert (result.cells is None) == (result.status is Status.UNKNOWN)
            else:
                assert result.status is proved.status
                assert result.cost == proved.cost or result.cost == pytest.approx(proved.cost)

"""The depth-first kernel over bitsets: bounds, verdicts, and what it leaves open."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_problems import exhaustive, large_problem, random_problem

from ocf.cells.cell_problem import CellProblem
from ocf.solvers.box import backtrack
from ocf.solvers.box.bitsets import make_bits, new_scratch, new_stack, pop, push
from ocf.solvers.box.dive import EXHAUSTED, INTERRUPTED, dive
from ocf.solvers.box.instance import copied, make_instance, whole
from ocf.solvers.box.relaxation import no_relaxation

SEEDS = st.integers(0, 10**6)


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
            instance, bits, stack, scratch, multipliers, error_bound, none, shared, np.inf, 0, 1e-10, budget, False, x
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
    cells = large_problem(3)
    assert backtrack(cells, node_limit=0) is None

"""The decomposition into pure boxes against brute force over all choices of cells."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_problems import exhaustive, random_problem

from ocf.cells.cell_problem import CellProblem
from ocf.cells.reduction import reduce
from ocf.solvers.box import PureBox, decompose

SEEDS = st.integers(0, 10**6)


def choices_of(boxes: list[PureBox]) -> list[tuple[int, ...]]:
    return [tuple(map(int, choice)) for box in boxes for choice in product(*box.cells)]


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_boxes_partition_the_space(seed: int) -> None:
    cells = random_problem(seed)
    boxes = list(decompose(cells))
    widths = [int(cells.open[cells.partition.cells_of(i)].sum()) for i in range(cells.partition.n_features)]
    assert sum(box.volume for box in boxes) == np.prod(widths)
    choices = choices_of(boxes)
    assert len(set(choices)) == len(choices) == np.prod(widths)
    assert len({box.leaves.tobytes() for box in boxes}) <= len(boxes)


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_leaves_scores_and_costs_are_those_of_the_points(seed: int) -> None:
    cells = random_problem(seed)
    part = cells.partition
    for box in list(decompose(cells))[:50]:
        corners = [np.array([c[0] for c in box.cells]), np.array([c[-1] for c in box.cells])]
        for corner in corners:
            assert np.array_equal(part.leaves_at(corner), box.leaves)
        expected = part.ensemble.base_score + part.ensemble.contributions[box.leaves].sum(axis=0)
        assert box.scores == pytest.approx(expected)
        assert np.array_equal(box.margins, cells.margins(box.leaves))
        cheapest = [int(c[np.argmin(cells.cost[part.cells_of(i)][c])]) for i, c in enumerate(box.cells)]
        assert box.cost == pytest.approx(cells.cost_of(np.array(cheapest)), rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.floats(0.0, 2.0))
def test_boxes_of_the_target_within_a_radius(seed: int, radius: float) -> None:
    cells = random_problem(seed)
    everything = exhaustive(cells)
    boxes = list(decompose(cells, radius=radius, target_only=True))
    found = set(choices_of(boxes))
    assert all(box.cost <= radius * (1 + 1e-9) for box in boxes)
    within = everything.feasible & (everything.cost <= radius * (1 - 1e-9))
    assert {tuple(c) for c in everything.choices[within].tolist()} <= found
    assert found <= {tuple(c) for c in everything.choices[everything.feasible].tolist()}


def test_the_cheapest_box_is_the_optimum() -> None:
    for seed in range(60):
        cells = random_problem(seed)
        least = min((box.cost for box in decompose(cells, target_only=True)), default=np.inf)
        assert least == pytest.approx(exhaustive(cells).optimum, rel=1e-12)


def test_reduced_problems_and_limits() -> None:
    cells = random_problem(5)
    boxes = list(decompose(cells))
    assert len(list(decompose(cells, limit=3))) == min(3, len(boxes))
    assert not list(decompose(cells, limit=0))
    assert not list(decompose(_without(cells)))
    reduced = reduce(cells, np.inf).cells
    assert sum(box.volume for box in decompose(reduced)) <= sum(box.volume for box in boxes)


def _without(cells: CellProblem) -> CellProblem:
    closed = cells.open.copy()
    closed[cells.partition.cells_of(0)] = False
    return replace(cells, open=closed)

"""Boxes by increasing cost against the decomposition, which looks at all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_problems import exhaustive, random_problem

from ocf.cells.cell_problem import CellProblem
from ocf.solve.compile import compile_formulation
from ocf.solvers.box import NearestBoxes, decompose
from ocf.solvers.result import SolverOptions


def costs_of(cells: CellProblem, radius: float) -> dict[bytes, float]:
    """Least cost of each choice of leaves that meets the target, by the decomposition."""
    least: dict[bytes, float] = {}
    for box in decompose(cells, radius=radius, target_only=True):
        key = box.leaves.tobytes()
        least[key] = min(box.cost, least.get(key, np.inf))
    return least


@pytest.mark.parametrize("bounded", [False, True], ids=["propagation", "LP"])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), radius=st.one_of(st.floats(0.0, 2.0), st.just(np.inf)))
def test_all_boxes_come_once_the_nearest_first(bounded: bool, seed: int, radius: float) -> None:
    cells = random_problem(seed)
    compiled = compile_formulation("interval", cells) if bounded and not cells.infeasible else None
    search = NearestBoxes(cells, radius, None, compiled)
    boxes = list(search)
    assert search.complete_to == np.inf
    costs = [box.cost for box in boxes]
    assert costs == sorted(costs)
    found = {box.leaves.tobytes(): box.cost for box in boxes}
    assert len(found) == len(boxes)
    assert found == pytest.approx(costs_of(cells, radius), rel=1e-12)
    for box in boxes:
        assert (box.margins >= 0).all()
        for choice in ([c[0] for c in box.cells], [c[-1] for c in box.cells]):
            assert np.array_equal(cells.partition.leaves_at(np.array(choice)), box.leaves)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_nothing_below_the_bound_is_missing_when_a_limit_ends_it(seed: int, nodes: int) -> None:
    cells = random_problem(seed)
    search = NearestBoxes(cells, 2.0, SolverOptions(options={"node_limit": nodes}))
    found = {box.leaves.tobytes(): box.cost for box in search}
    everything = costs_of(cells, 2.0)
    assert found == pytest.approx({key: everything[key] for key in found}, rel=1e-12)
    assert {k for k, v in everything.items() if v < search.complete_to} <= set(found)
    assert search.stopped in ("", "node limit")
    assert bool(search.stopped) == (search.complete_to < np.inf)


def test_the_first_box_is_the_optimum() -> None:
    for seed in range(40):
        cells = random_problem(seed)
        first = next(iter(NearestBoxes(cells, np.inf)), None)
        assert (np.inf if first is None else first.cost) == pytest.approx(exhaustive(cells).optimum, rel=1e-12)

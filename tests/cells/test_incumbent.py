"""Incumbents, against brute force over all choices of cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from small_problems import exhaustive, random_problem, sums_at

from ocf import Explainer
from ocf.arrays import FloatArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.forms import to_cells
from ocf.cells.incumbent import Incumbent, find_incumbent, incumbent_task, pull_back

SEEDS = st.integers(0, 10**6)


def find(cells: CellProblem, **options: object) -> Incumbent | None:
    return find_incumbent(cells, **{"effort": 500, **options})  # type: ignore[arg-type]


@settings(max_examples=50, deadline=None)
@given(SEEDS, st.booleans())
def test_incumbents_are_feasible_and_mostly_optimal(seed: int, with_candidates: bool) -> None:
    cells = random_problem(seed)
    everything = exhaustive(cells)
    rng = np.random.default_rng(seed)
    candidates = everything.choices[everything.feasible][rng.permutation(everything.feasible.sum())[:10]]
    found = find(cells, candidates=candidates if with_candidates else None)
    if found is None:
        assert not with_candidates or len(candidates) == 0
        return
    part = cells.partition
    leaves = part.leaves_at(found.cells)
    assert cells.open[part.offsets[:-1] + found.cells].all()
    assert (cells.margins(leaves) >= 0).all()
    assert np.array_equal(found.point, cells.point(found.cells))
    assert found.cost == cells.cost_of(found.cells)
    assert found.cost >= everything.optimum - 1e-12
    # no single feature can be moved to a cheaper cell
    certain = cells.requirements.need + cells.requirements.error_bound
    clear = (everything.sums >= certain).all(axis=1) & everything.feasible
    near = (everything.choices != found.cells).sum(axis=1) <= 1
    assert everything.cost[near & clear].min(initial=np.inf) >= found.cost - 1e-12


@pytest.mark.parametrize("seed", [32, 81, 146])
def test_leaves_that_nothing_reaches_are_not_entered(seed: int) -> None:
    """Splits on "is it missing?" of a forest that learned from missing values, in a row that misses none.

    Behind them lie leaves without a cell; a point in one would lie beyond the cells of the last feature.
    """
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"a": rng.integers(0, 5, 60), "b": rng.integers(0, 9, 60).astype(float)})
    table.loc[rng.random(60) < 0.3, "b"] = np.nan
    classes = ((table["a"] > 2).astype(int) ^ (table["b"].fillna(3) > 4)).to_numpy()
    model = RandomForestClassifier(4, max_depth=3, random_state=seed).fit(table, classes)
    explainer, unreached = Explainer(model, data=table), 0
    for k in np.flatnonzero(table["b"].notna())[:12]:
        row = table.iloc[[k]]
        target = int(1 - model.predict(row)[0])
        cells = to_cells(explainer.problem(row, target))
        unreached += int((~cells.partition.reachable).sum())
        for start in range(20):
            found = find_incumbent(cells, seed=start)
            assert found is None or (found.cells < cells.partition.widths).all()
        assert {e.status for e in explainer.explain(row, target, n_explanations=2)} <= {"optimal", "infeasible"}
    assert unreached > 0


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_pulling_back_ends_where_no_feature_can_move_alone(seed: int) -> None:
    cells = random_problem(seed)
    everything = exhaustive(cells)
    task = incumbent_task(cells, cells.requirements.need)
    clear = everything.feasible & (everything.sums >= cells.requirements.need + 1e-9).all(axis=1)
    for x in everything.choices[clear][:: 1 + clear.sum() // 20]:
        end = x.copy()
        pull_back(task, end, np.ones(len(x)), np.zeros(1, np.int64))
        assert sums_at(cells, end) == pytest.approx(np.maximum(sums_at(cells, end), cells.requirements.need), abs=1e-12)
        assert cells.cost_of(end) <= cells.cost_of(x)
        near = (everything.choices != end).sum(axis=1) <= 1
        assert everything.cost[near & clear].min(initial=np.inf) >= cells.cost_of(end) - 1e-12


def test_almost_always_optimal_on_small_problems() -> None:
    gaps = []
    for seed in range(80):
        cells = random_problem(seed)
        optimum = exhaustive(cells).optimum
        found = find(cells)
        if np.isfinite(optimum):
            gaps.append(np.inf if found is None else found.cost - optimum)
    assert np.mean(np.array(gaps) < 1e-9) > 0.95


def test_rows_outside_the_open_cells_are_used_as_far_as_they_go() -> None:
    cells = random_problem(8)
    everything = exhaustive(cells)
    closed = cells.open & (np.arange(len(cells.open)) % 5 > 0)
    rows = everything.choices[everything.feasible][:20]
    narrow = replace(cells, open=closed)
    found = find(narrow, candidates=rows)
    if found is not None:
        assert closed[cells.partition.offsets[:-1] + found.cells].all()


def test_dead_leaves_are_avoided() -> None:
    used = 0
    for seed in range(30):
        cells = random_problem(seed)
        live = cells.live & (np.random.default_rng(seed).random(len(cells.live)) > 0.2)
        cells = replace(cells, live=live)
        found = find(cells)
        if found is not None:
            used += 1
            assert live[cells.partition.leaves_at(found.cells)].all()
    assert used > 5


def test_a_refused_point_gives_way_to_the_next() -> None:
    for seed in range(0, 200, 10):
        cells, first = feasible_problem(seed)
        asked: list[FloatArray] = []

        def confirm(point: FloatArray, asked: list[FloatArray] = asked) -> bool:
            asked.append(point)
            return len(asked) > 1

        second = find(cells, confirm=confirm, candidates=exhaustive(cells).choices[::7])
        assert np.array_equal(asked[0], first.point)
        if second is not None:
            assert not np.array_equal(second.point, first.point)
            assert second.cost >= first.cost
            return
    pytest.fail("no problem gave a second point")


def feasible_problem(seed: int) -> tuple[CellProblem, Incumbent]:
    """The first problem from `seed` on that has a solution which costs something, and its incumbent."""
    while True:
        cells = random_problem(seed)
        found = find(cells)
        if found is not None and found.cost > 0:
            return cells, found
        seed += 1


def test_excluded_leaves_are_not_offered() -> None:
    for seed in range(0, 100, 10):
        cells, first = feasible_problem(seed)
        excluded = cells.partition.leaves_at(first.cells)
        second = find(replace(cells, excluded=(excluded,)), candidates=exhaustive(cells).choices[::7])
        assert second is None or not np.array_equal(cells.partition.leaves_at(second.cells), excluded)


def test_deterministic() -> None:
    cells, _ = feasible_problem(21)
    first, second = find(cells, seed=4), find(cells, seed=4)
    assert first is not None
    assert second is not None
    assert np.array_equal(first.cells, second.cells)


def test_nothing_feasible() -> None:
    cells = random_problem(2)
    requirements = cells.requirements
    unreachable = type(requirements)(requirements.gain, requirements.need + 1e6, requirements.error_bound)
    assert find(replace(cells, requirements=unreachable)) is None

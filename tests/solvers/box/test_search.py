"""The box search against brute force over all choices of cells, with and without LP bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from small_problems import (
    changes_least,
    exhaustive,
    large_problem,
    random_problem,
    refusing,
    whole_numbers,
    with_ties,
)

from ocf.arrays import IntArray
from ocf.cells.forms import to_cells
from ocf.cells.partition import partition
from ocf.cells.reduction import reduce
from ocf.features.inference import infer_space
from ocf.problem.costs import Cost
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassTarget
from ocf.readers.sklearn import read
from ocf.solvers.box import open_boxes, solve_cells
from ocf.solvers.result import STALLED, Progress, SolverOptions, Status

from .cases import check, compiled

SEEDS = st.integers(0, 10**6)


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_without_lp_equals_brute_force(seed: int) -> None:
    cells = random_problem(seed)
    check(cells, solve_cells(cells), exhaustive(cells).optimum)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_with_lp_equals_brute_force(seed: int) -> None:
    cells = random_problem(seed)
    check(cells, solve_cells(cells, relaxation=compiled(cells)), exhaustive(cells).optimum)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.booleans())
def test_cutoffs_and_reduction_before(seed: int, use_lp: bool) -> None:
    cells = random_problem(seed)
    everything = exhaustive(cells)
    costs = np.unique(everything.cost[everything.feasible])
    if not len(costs):
        return
    formulation = compiled(cells) if use_lp else None
    for cutoff in (costs[0], costs[0] * 1.000001 + 1e-9, costs[len(costs) // 2], costs[-1] * 1.5 + 1):
        reduced = reduce(cells, cutoff)
        if reduced.proved:
            continue
        result = solve_cells(reduced.cells, cutoff=cutoff, relaxation=formulation)
        check(cells, result, costs[0], cutoff)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.floats(0.05, 0.4), st.booleans())
def test_dead_leaves_and_closed_cells(seed: int, share: float, use_lp: bool) -> None:
    cells = random_problem(seed)
    rng = np.random.default_rng(seed)
    cells = replace(
        cells,
        live=cells.live & (rng.random(len(cells.live)) > share),
        open=cells.open & (rng.random(len(cells.open)) > share),
    )
    if not cells.infeasible:
        result = solve_cells(cells, relaxation=compiled(cells) if use_lp else None)
        check(cells, result, exhaustive(cells).optimum)


@pytest.mark.parametrize("use_lp", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_excluded_choices_of_leaves(seed: int, use_lp: bool) -> None:
    """The optimum's leaves are excluded again and again; the next best must follow."""
    cells = random_problem(seed)
    everything = exhaustive(cells)
    formulation = compiled(cells) if use_lp else None
    leaves = np.array([cells.partition.leaves_at(c) for c in everything.choices])
    feasible = everything.feasible.copy()
    for _ in range(4):
        optimum = everything.cost[feasible].min(initial=np.inf)
        result = solve_cells(cells, relaxation=formulation)
        check(cells, result, optimum)
        if result.cells is None:
            return
        chosen = cells.partition.leaves_at(result.cells)
        feasible &= (leaves != chosen).any(axis=1)
        cells = replace(cells, excluded=(*cells.excluded, chosen))


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.booleans())
def test_points_near_a_tie_are_asked_of_the_model(seed: int, use_lp: bool) -> None:
    """With a wide error bound, a model that refuses by leaves shapes the answer."""
    cells = random_problem(seed)
    wide = np.full(len(cells.requirements.need), 0.7)
    requirements = type(cells.requirements)(cells.requirements.gain, cells.requirements.need, wide)
    cells = replace(cells, requirements=requirements)
    everything = exhaustive(cells)
    leaves = np.array([cells.partition.leaves_at(c) for c in everything.choices])

    def refuses(chosen: IntArray) -> bool:
        return bool(chosen.sum() % 2)

    def confirm(x: IntArray) -> bool:
        chosen = cells.partition.leaves_at(x)
        assert (cells.margins(chosen) < 0.7).any()
        return not refuses(chosen)

    uncertain = (everything.sums - cells.requirements.need < 0.7).any(axis=1)
    refused = np.array([refuses(row) for row in leaves])
    feasible = everything.feasible & ~(uncertain & refused)
    optimum = everything.cost[feasible].min(initial=np.inf)
    check(cells, solve_cells(cells, confirm=confirm, relaxation=compiled(cells) if use_lp else None), optimum)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("use_lp", [False, True])
def test_one_proof_finds_the_fewest_changes_too(use_lp: bool, threads: int) -> None:
    """With and without an incumbent: of the points that cost the same none changes less."""
    taken = {True: 0, False: 0}
    for cells, everything in (*with_ties(range(40)), *whole_numbers(15)):
        options = SolverOptions(threads=threads)
        asked: dict[str, Any] = {"relaxation": compiled(cells) if use_lp else None, "fewest": True}
        result = solve_cells(cells, options, **asked)
        check(cells, result, everything.optimum)
        feasible = everything.choices[everything.feasible]
        assert result.fewest
        assert changes_least(cells, result.cells, feasible)
        by_cost = feasible[np.argsort(everything.cost[everything.feasible], kind="stable")]
        equal = by_cost[: (everything.cost[everything.feasible] <= everything.optimum * (1 + 1e-12)).sum()]
        for start in (max(equal, key=cells.count_changes), by_cost[0], by_cost[len(by_cost) // 2]):
            found = solve_cells(cells, options, cutoff=cells.cost_of(start), incumbent=start, **asked)
            answer = start if found.cells is None else found.cells
            assert found.fewest
            assert cells.cost_of(answer) == pytest.approx(everything.optimum, rel=1e-9)
            assert changes_least(cells, answer, feasible)
            if cells.cost_of(start) == pytest.approx(everything.optimum, rel=1e-9):
                taken[found.cells is not None] += 1
    assert min(taken.values()) > 10


@pytest.mark.parametrize("use_lp", [False, True])
def test_the_fewest_changes_are_not_claimed_where_the_search_stops(use_lp: bool) -> None:
    """However early: what is claimed is true, and the optimum is claimed no less."""
    claimed = {(True, True): 0, (True, False): 0, (False, False): 0}
    for cells, everything in whole_numbers(6):
        formulation = compiled(cells) if use_lp else None
        feasible = everything.choices[everything.feasible]
        dearest = feasible[np.argmax(everything.cost[everything.feasible])]
        for most in range(1, 40, 2):
            options = SolverOptions(options={"node_limit": most})
            found = solve_cells(
                cells, options, cutoff=cells.cost_of(dearest), incumbent=dearest, relaxation=formulation, fewest=True
            )
            proved = found.status is Status.OPTIMAL
            assert found.bound <= everything.optimum * (1 + 1e-9)
            assert not proved or found.cost == pytest.approx(everything.optimum, rel=1e-9)
            assert changes_least(cells, found.cells, feasible) or not (found.fewest and proved)
            claimed[proved, found.fewest] += 1
    assert min(claimed.values()) > 0


@pytest.mark.parametrize("use_lp", [False, True])
def test_fewest_changes_of_points_that_the_model_accepts(use_lp: bool) -> None:
    """A model that refuses by leaves: what it refuses neither counts nor hides what changes less."""
    refused = 0
    for cells, everything in whole_numbers(12):
        cells, admitted, confirm = refusing(cells, everything)
        found = solve_cells(cells, confirm=confirm, relaxation=compiled(cells) if use_lp else None, fewest=True)
        check(cells, found, everything.cost[admitted].min(initial=np.inf))
        refused += found.refused
        assert found.fewest
        assert changes_least(cells, found.cells, everything.choices[admitted])
    assert refused > 5


@pytest.mark.parametrize("boosted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_models_of_scikit_learn(seed: int, boosted: bool) -> None:
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=80), rng.integers(0, 5, 80), rng.integers(0, 2, 80)]).astype(float)
    y = (x[:, 0] + 0.5 * x[:, 1] + rng.normal(size=80) > 1).astype(int) + (x[:, 2] * (x[:, 0] > 1)).astype(int)
    kind = GradientBoostingClassifier if boosted else RandomForestClassifier
    model = kind(n_estimators=6, max_depth=3, random_state=seed).fit(x, y)
    space = infer_space(x, {"x1": {"kind": "integer"}})
    ensemble = read(model).ensemble
    part = partition(ensemble, space)
    current = int(model.predict(x[:1])[0])
    for target in sorted(set(range(3)) - {current}):
        cells = to_cells(Problem(ensemble, space, x[0], ClassTarget(target), Cost.parse("l1")), part)
        optimum = exhaustive(cells).optimum
        check(cells, solve_cells(cells), optimum)
        check(cells, solve_cells(cells, relaxation=compiled(cells)), optimum)


@pytest.mark.parametrize("seed", range(4))
def test_limits_give_valid_bounds(seed: int) -> None:
    cells = large_problem(seed)
    proved = solve_cells(cells, relaxation=compiled(cells))
    for use_lp in (False, True):
        for n in (0, 1, 5):
            options = SolverOptions(options={"node_limit": n})
            result = solve_cells(cells, options, relaxation=compiled(cells) if use_lp else None)
            assert result.nodes <= n
            if proved.cost is not None:
                assert result.bound <= proved.cost * (1 + 1e-9)
                assert result.status in (Status.OPTIMAL, Status.FEASIBLE, Status.UNKNOWN)
            if result.status in (Status.FEASIBLE, Status.UNKNOWN):
                assert result.message == "node limit"
                assert (result.cells is not None) == (result.status is Status.FEASIBLE)


def test_time_and_memory_limits() -> None:
    cells = large_problem(1)
    assert solve_cells(cells, SolverOptions(time_limit=1e-9)).message in ("time limit", "")
    result = solve_cells(cells, SolverOptions(options={"memory_limit": 1e-9}))
    assert result.message in ("memory limit", "")


def test_a_stall_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = large_problem(5)
    whole, asked = solve_cells(cells), []
    assert whole.cost is not None

    def stalls(history: list[Progress], now: float, busy: float, seconds: float | None, cutoff: float) -> bool:
        asked.append((seconds, cutoff))
        return True

    monkeypatch.setattr(open_boxes, "stalls", stalls)
    result = solve_cells(cells, SolverOptions(stall_limit=1e-9), cutoff=2 * whole.cost)
    assert (result.status, result.message) == (Status.UNKNOWN, STALLED)
    assert result.bound <= whole.cost
    assert set(asked) == {(1e-9, 2 * whole.cost)}


@pytest.mark.parametrize("seed", range(6))
def test_gap_history_and_determinism(seed: int) -> None:
    cells = large_problem(seed)
    first, second = (solve_cells(cells, relaxation=compiled(cells)) for _ in range(2))
    assert (first.status, first.cost, first.nodes, first.lp_solves) == (
        second.status,
        second.cost,
        second.nodes,
        second.lp_solves,
    )
    bounds = [p.bound for p in first.history]
    assert bounds == sorted(bounds)
    if first.cost is None:
        return
    assert max(bounds) <= first.cost
    loose = solve_cells(cells, SolverOptions(mip_gap=0.2), relaxation=compiled(cells))
    assert loose.status is Status.OPTIMAL
    assert loose.cost is not None
    assert loose.bound <= first.cost * (1 + 1e-9)
    assert loose.cost <= loose.bound / (1 - 0.2) * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 2000, 500))
def test_thousands_of_problems(start: int) -> None:
    for seed in range(start, start + 500):
        cells = random_problem(seed)
        optimum = exhaustive(cells).optimum
        check(cells, solve_cells(cells), optimum)
        check(cells, solve_cells(cells, relaxation=compiled(cells)), optimum)

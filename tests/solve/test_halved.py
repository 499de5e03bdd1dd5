"""Solvers of matrices that get small boxes, against brute force, the box search and the solvers on whole matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from small_problems import changes_least, exhaustive, random_problem, refusing, whole_numbers, with_ties

from ocf import Explainer, Explanation
from ocf.arrays import IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.problem.constraints import Linear
from ocf.solve import cell_forms, halved
from ocf.solve.compile import compile_formulation
from ocf.solve.halved import HalvedSolver, can_be_halved, gets_boxes
from ocf.solve.method import Way
from ocf.solvers import get_solver
from ocf.solvers.highs import HighsSolver
from ocf.solvers.result import SolveResult, SolverOptions, Status
from ocf.solvers.scip import ScipSolver

#: Leaves, beyond one a tree, of the boxes that a solver ends: decided ones alone, those of all but the largest, all.
SMALL = (0, 6, 10**9)


def solved(
    cells: CellProblem, solver: str = "highs", options: SolverOptions | None = None, **asked: Any
) -> SolveResult:
    return HalvedSolver(solver).solve_cells(cells, options, relaxation=compile_formulation("interval", cells), **asked)


def holds(cells: CellProblem, result: SolveResult, optimum: float, cutoff: float = np.inf) -> None:
    """What a result says is true."""
    if optimum >= cutoff or not np.isfinite(optimum):
        assert (result.status, result.x) == (Status.INFEASIBLE, None)
        return
    assert result.status is Status.OPTIMAL
    assert result.x is not None
    choice = result.x.astype(np.int64)
    leaves = cells.partition.leaves_at(choice)
    assert result.objective == pytest.approx(optimum, rel=1e-9, abs=1e-300)
    assert cells.cost_of(choice) == result.objective
    assert cells.open[cells.partition.offsets[:-1] + choice].all()
    assert cells.live[leaves].all()
    assert not cells.is_excluded(leaves)
    assert (cells.margins(leaves) >= 0).all()


@pytest.fixture
def matrices(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many matrices each solver is given."""
    given: Counter[str] = Counter()
    for solver in (HighsSolver, ScipSolver):

        def counting(self: Any, *args: Any, solve: Any = solver.solve, **more: Any) -> SolveResult:
            given[self.name] += 1
            result: SolveResult = solve(self, *args, **more)
            return result

        monkeypatch.setattr(solver, "solve", counting)
    return given


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(SMALL), st.sampled_from(["highs", "scip"]), st.sampled_from([1, 2]))
def test_optima_and_cutoffs_equal_brute_force(seed: int, small: int, solver: str, threads: int) -> None:
    cells = random_problem(seed)
    assume(cells.partition.reachable.all())
    everything, options = exhaustive(cells), SolverOptions(threads=threads)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(halved, "SMALL", small)
        result = solved(cells, solver, options)
        holds(cells, result, everything.optimum)
        if result.x is None or everything.optimum <= 0:
            return
        for cutoff in (everything.optimum * (1 - 1e-6), everything.optimum * (1 + 1e-6), everything.optimum * 1.5):
            holds(cells, solved(cells, solver, options, cutoff=cutoff), everything.optimum, cutoff)
        leaves = np.array([cells.partition.leaves_at(choice) for choice in everything.choices])
        own = cells.partition.leaves_at(result.x.astype(np.int64))
        left = everything.feasible & (leaves != own).any(axis=1)
        closed = replace(cells, excluded=(own,))
        holds(closed, solved(closed, solver, options), everything.cost[left].min(initial=np.inf))


@pytest.mark.parametrize("small", SMALL)
@pytest.mark.parametrize(("solver", "threads"), [("highs", 1), ("highs", 2), ("scip", 1)])
def test_one_proof_finds_the_fewest_changes_too(
    solver: str, threads: int, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without an incumbent: of the points that cost the same none changes less."""
    monkeypatch.setattr(halved, "SMALL", small)
    taken, options = {True: 0, False: 0}, SolverOptions(threads=threads)
    for cells, everything in (*with_ties(range(8)), *whole_numbers(3)):
        if not cells.partition.reachable.all():
            continue
        result = solved(cells, solver, options, fewest=True)
        holds(cells, result, everything.optimum)
        feasible, cost = everything.choices[everything.feasible], everything.cost[everything.feasible]
        assert result.fewest
        assert changes_least(cells, _choice(result), feasible)
        equal = feasible[cost <= everything.optimum * (1 + 1e-12)]
        for start in (max(equal, key=cells.count_changes), feasible[len(feasible) // 2]):
            found = solved(cells, solver, options, fewest=True, cutoff=cells.cost_of(start), incumbent=start)
            answer = start if found.x is None else _choice(found)
            assert found.fewest
            assert cells.cost_of(answer) == pytest.approx(everything.optimum, rel=1e-9)
            assert changes_least(cells, answer, feasible)
            taken[found.x is not None] += 1
    assert min(taken.values()) > 3


def _choice(result: SolveResult) -> IntArray:
    assert result.x is not None
    return result.x.astype(np.int64)


@pytest.mark.parametrize("small", SMALL)
def test_points_that_the_model_refuses_are_left_out(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halved, "SMALL", small)
    asked = 0
    for cells, everything in whole_numbers(6):
        cells, admitted, accepts = refusing(cells, everything)

        def confirm(x: IntArray, accepts: Callable[[IntArray], bool] = accepts) -> bool:
            nonlocal asked
            asked += 1
            return accepts(x)

        holds(cells, solved(cells, confirm=confirm), everything.cost[admitted].min(initial=np.inf))
    assert asked > 10


@pytest.mark.parametrize("status", [Status.UNKNOWN, Status.ERROR])
def test_what_a_solver_does_not_end_is_halved(status: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def failing(self: ScipSolver, *args: object, **more: object) -> SolveResult:
        nonlocal asked
        asked += 1
        return SolveResult(status, bound=-np.inf, message="no luck")

    monkeypatch.setattr(ScipSolver, "solve", failing)
    monkeypatch.setattr(halved, "SMALL", 10**9)
    for cells, everything in whole_numbers(3):
        for fewest in (False, True):
            before, result = asked, solved(cells, "scip", fewest=fewest)
            holds(cells, result, everything.optimum)
            failed = status is Status.ERROR and asked > before
            assert result.message == ("scip failed on a box (no luck), which was halved on" if failed else "")
            assert result.solver == "highs"  # whose the LPs are
            assert "0 boxes ended by scip" in result.raw_status
    assert asked > 20


@pytest.mark.parametrize("fewest", [False, True])
def test_without_a_matrix_boxes_are_dived_in(fewest: bool) -> None:
    for cells, everything in whole_numbers(3):
        for relaxation in (None, lambda: None):
            holds(
                cells, HalvedSolver("scip").solve_cells(cells, relaxation=relaxation, fewest=fewest), everything.optimum
            )


@pytest.mark.parametrize("seed", [3, 523553002, 746301136])
def test_leaves_that_cost_something(seed: int) -> None:
    """Also where HiGHS's presolve calls points optimal that are not."""
    cells = random_problem(seed)
    rng = np.random.default_rng(2)
    for _ in range(12):
        cells = replace(
            cells, leaf_cost=np.round(rng.uniform(0, 0.3, cells.partition.ensemble.n_leaves), rng.integers(1, 6))
        )
        everything = exhaustive(cells)
        of_leaves = [cells.leaf_cost[cells.partition.leaves_at(choice)].sum() for choice in everything.choices]
        optimum = (everything.cost + np.array(of_leaves))[everything.feasible].min(initial=np.inf)
        for solver in ("highs", "scip"):
            holds(cells, solved(cells, solver), optimum)
            by_matrix = get_solver(solver).solve(compile_formulation("interval", cells).instance(cells).form)
            assert by_matrix.objective == pytest.approx(None if optimum == np.inf else optimum)


@pytest.fixture(scope="module")
def forest() -> tuple[Explainer, pd.DataFrame]:
    """A forest of numbers whose rows take LPs and branching, and rows that it refuses."""
    table, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(40, max_depth=4, random_state=0).fit(table, classes)
    return Explainer(model, data=table), table[model.predict(table) == 0].iloc[:3]


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_a_forest_by_boxes_as_by_the_whole_matrix(
    solver: str, forest: tuple[Explainer, pd.DataFrame], matrices: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The solver ends what is small, and the answer says what it was and how large the model."""
    monkeypatch.setattr(halved, "SMALL", 60)
    explainer, rows = forest
    for position in range(len(rows)):
        row = rows.iloc[[position]]
        by_box, by_boxes = (explainer.explain(row, 1, solver=name)[0] for name in ("box", solver))
        before = matrices.copy()
        with monkeypatch.context() as patch:
            patch.setattr(cell_forms, "gets_boxes", lambda *asked: False)
            whole = explainer.explain(row, 1, solver=solver)[0]
        assert matrices[solver] - before[solver] <= 2
        for other in (by_box, whole):
            assert by_boxes.cost == pytest.approx(other.cost, rel=1e-9)
            assert by_boxes.bound == pytest.approx(other.bound, rel=1e-9)
            assert len(by_boxes.changes) == len(other.changes)
        assert by_boxes.method["solver"] == solver
        proved_by = by_boxes.method["proved_by"]
        assert proved_by in (solver, "highs", "reduction")
        if proved_by != "reduction":
            assert by_boxes.sizes["rows"] > 0
        if proved_by == solver:
            assert by_boxes.method["options"]
    assert matrices[solver] > 4


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_more_trees_than_leaves_of_a_small_box(solver: str, matrices: Counter[str]) -> None:
    """A tree whose leaf is decided does not count."""
    table, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(120, max_depth=3, random_state=0).fit(table, classes)
    rows = table[model.predict(table) == 0].iloc[:3]
    proved_by = {e.method["proved_by"] for e in Explainer(model, data=table).explain(rows, 1, solver=solver)}
    assert matrices[solver] > 0
    assert solver in proved_by


@pytest.mark.parametrize(
    "asked",
    [{"options": {"highs": 1}}, {"cuts": "root"}, {"formulation": "ocean"}, {"constraints": 1}],
    ids=lambda asked: next(iter(asked)),
)
def test_whoever_means_the_solver_itself_gets_it(
    asked: dict[str, Any], forest: tuple[Explainer, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its options, cuts at the root, another formulation, and values within cells: the matrix goes to it as it is."""
    explainer, rows = forest
    made: list[str] = []
    make = HalvedSolver.__init__

    def watched(self: HalvedSolver, name: str) -> None:
        made.append(name)
        make(self, name)

    monkeypatch.setattr(HalvedSolver, "__init__", watched)
    first, second = rows.columns[:2]
    settings: dict[str, Any] = asked
    if "options" in asked:
        settings = {"options": {"mip_max_nodes": 10**6}}
    if "constraints" in asked:
        settings = {
            "constraints": [Linear({first: 1.0, second: 1.0}, "<=", float(rows[[first, second]].sum(axis=1).max()))]
        }
    answer: Explanation = explainer.explain(rows.iloc[[0]], 1, solver="highs", **settings)[0]
    assert answer.status == "optimal"
    assert not made
    explainer.explain(rows.iloc[[0]], 1, solver="highs")
    assert made == ["highs"]


def test_a_cross_check_has_the_whole_matrix(
    forest: tuple[Explainer, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second way shares nothing with the search by boxes."""
    monkeypatch.setattr(HalvedSolver, "__init__", lambda self, name: pytest.fail("the check went by boxes"))
    explainer, rows = forest
    answer = explainer.explain(rows.iloc[[1]], 1, solver="box", cross_check=True)[0]
    assert answer.method["cross_check"]["verdict"] == "agrees"


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_without_time_the_bound_is_true(solver: str, forest: tuple[Explainer, pd.DataFrame]) -> None:
    explainer, rows = forest
    for position in range(len(rows)):
        row = rows.iloc[[position]]
        proved = explainer.explain(row, 1, solver="box")[0]
        stopped = explainer.explain(row, 1, solver=solver, time_limit=0.02)[0]
        assert stopped.bound <= proved.cost * (1 + 1e-9)
        assert stopped.cost is None or stopped.cost >= proved.cost * (1 - 1e-9)


def test_boxes_need_kernels_at_hand_and_the_solver_of_the_lps(monkeypatch: pytest.MonkeyPatch) -> None:
    way, options, cells = Way("interval", "scip"), SolverOptions(), (random_problem(0),)
    assert gets_boxes(way, options)
    assert not gets_boxes(Way("interval", "box"), options)
    monkeypatch.setattr(halved, "usable_solver", lambda name: None)
    assert not gets_boxes(way, options)
    for ready in (False, True):
        monkeypatch.setattr(halved, "at_hand", lambda kernel, ready=ready: ready)
        assert can_be_halved(cells) == ready

"""Turns of several solvers, of which some err, and the fewest changes among the points that cost the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from small_problems import beside, whole_numbers, with_ties

from ocf import Explainer
from ocf.arrays import IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.incumbent import Incumbent
from ocf.errors import SolverError
from ocf.problem.constraints import Linear
from ocf.solve import fewest, reduced_run
from ocf.solve.cell_run import CellRun
from ocf.solve.compile import compile_formulation
from ocf.solve.reduced_run import Terms
from ocf.solve.turns import FIRST_STALL, FIRST_TURN
from ocf.solvers import CellSolver, Solver
from ocf.solvers.box.solver import BoxSolver
from ocf.solvers.cell_form import Compiled
from ocf.solvers.highs import HighsSolver
from ocf.solvers.result import STALLED, SolveResult, SolverOptions, Status
from ocf.solvers.scip import ScipSolver

NUMBERS = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["c", "d"])
FOREST = RandomForestClassifier(5, max_depth=3, random_state=0).fit(NUMBERS, (NUMBERS.c + NUMBERS.d > 0).astype(int))
ROW = NUMBERS[FOREST.predict(NUMBERS) == 0].iloc[[0]]
#: Whose first point, found without a solver, is not known to be the best before one has been asked.
HARD = NUMBERS[FOREST.predict(NUMBERS) == 0].iloc[[1]]
#: Couples the features, so that the box search refuses the problem and SCIP comes first.
TOGETHER = Linear({"c": 1.0, "d": -1.0}, "<=", 1.0)


def spoil(monkeypatch: pytest.MonkeyPatch, how: str, solver: type[HighsSolver | ScipSolver]) -> None:
    """Make a solver err."""

    def solve(self: HighsSolver | ScipSolver, *args: object, **settings: object) -> SolveResult:
        if how == "raises":
            raise SolverError(f"{self.name} refuses the problem")
        return SolveResult(Status.ERROR, solver=self.name, message="the solver's point violates the problem by 3.9e-06")

    monkeypatch.setattr(solver, "solve", solve)


@pytest.mark.parametrize("how", ["raises", "answers"])
def test_another_solver_goes_on(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (wanted,) = Explainer(FOREST, data=NUMBERS).explain(ROW, constraints=TOGETHER, reduce=False, solver="highs")
    spoil(monkeypatch, how, ScipSolver)
    (e,) = Explainer(FOREST, data=NUMBERS).explain(ROW, constraints=TOGETHER, reduce=False)
    assert (e.status, e.verified, e.proved_by) == ("optimal", True, "highs")
    assert (e.method["proved_by"], e.method["solvers"][-1]) == ("highs", "highs")
    assert e.cost == pytest.approx(wanted.cost, rel=1e-9)
    assert e.message.startswith("scip failed (")
    assert "highs went on" in str(e)
    (e,) = Explainer(FOREST, data=NUMBERS).explain(ROW, constraints=TOGETHER, reduce=False, solver="scip")
    assert e.status == "error"
    assert "scip" in e.message.lower() or "violates" in e.message


def test_the_box_search_goes_on_where_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS comes first where a formulation was asked for."""
    spoil(monkeypatch, "answers", HighsSolver)
    spoil(monkeypatch, "answers", ScipSolver)
    (e,) = Explainer(FOREST, data=NUMBERS).explain(ROW, formulation="ocean", reduce=False)
    assert (e.status, e.verified, e.proved_by) == ("optimal", True, "box")
    (e,) = Explainer(FOREST, data=NUMBERS).explain(ROW, reduce=False, constraints=TOGETHER)
    assert e.status == "error"  # there is nothing left that knows relations
    assert e.message.count("violates the problem") == 2


def stall(monkeypatch: pytest.MonkeyPatch, solver: type, method: str, turns: int) -> list[float | None]:
    """Make a solver find nothing in its first turns; the time limits that it is given."""
    limits: list[float | None] = []
    own = getattr(solver, method)

    def solve(self: object, what: object, options: SolverOptions, *args: object, **settings: object) -> SolveResult:
        limits.append(options.time_limit)
        if len(limits) > turns:
            return own(self, what, options, *args, **settings)
        return SolveResult(Status.UNKNOWN, solver=self.name, message="time")  # type: ignore[attr-defined]

    monkeypatch.setattr(solver, method, solve)
    return limits


def test_another_solver_goes_on_where_the_first_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    explainer = Explainer(FOREST, data=NUMBERS)
    (wanted,) = explainer.explain(ROW, solver="scip", reduce=False)
    box = stall(monkeypatch, BoxSolver, "solve_cells", 99)
    (e,) = explainer.explain(ROW, reduce=False)
    assert (e.status, e.verified, e.proved_by) == ("optimal", True, "highs")
    assert e.cost == pytest.approx(wanted.cost, rel=1e-9)
    assert e.method["solvers"] == ["box", "highs"]
    assert e.message == "box found nothing in 5 s; highs went on"
    assert box == [FIRST_TURN]
    (e,) = explainer.explain(ROW, reduce=False, solver="box")
    assert (e.status, e.counterfactual) == ("unknown", None)  # who was asked for is not replaced
    assert e.message.startswith("the time limit of 60 s was reached: give it more (time_limit=600)")
    assert "features_to_vary" in e.message
    assert box[1] == pytest.approx(60, abs=5)


def test_turns_grow_until_one_finds_something(monkeypatch: pytest.MonkeyPatch) -> None:
    box = stall(monkeypatch, BoxSolver, "solve_cells", 2)
    highs = stall(monkeypatch, HighsSolver, "solve", 1)
    (e,) = Explainer(FOREST, data=NUMBERS).explain(ROW, reduce=False, time_limit=None)
    assert (e.status, e.proved_by) == ("optimal", "highs")
    assert box == [FIRST_TURN, 4 * FIRST_TURN]
    assert highs[:2] == [2 * FIRST_TURN, 8 * FIRST_TURN]
    assert e.message.count("went on") == 2


def test_the_first_goes_on_with_what_another_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    explainer = Explainer(FOREST, data=NUMBERS)
    (wanted,) = explainer.explain(ROW, solver="scip", reduce=False)
    box = stall(monkeypatch, BoxSolver, "solve_cells", 1)
    own = HighsSolver.solve

    def solve(self: HighsSolver, *args: object, **settings: object) -> SolveResult:
        found = own(self, *args, **settings)  # type: ignore[arg-type]
        return replace(found, status=Status.FEASIBLE, bound=0.0)

    monkeypatch.setattr(HighsSolver, "solve", solve)
    (e,) = explainer.explain(ROW, reduce=False)
    assert (e.status, e.proved_by) == ("optimal", "box")
    assert e.cost == pytest.approx(wanted.cost, rel=1e-9)
    assert (len(box), box[0]) == (2, FIRST_TURN)
    assert box[1] is not None
    assert box[1] > 2 * FIRST_TURN  # all that is left


@pytest.mark.parametrize(("solver", "method"), [(BoxSolver, "solve_cells"), (ScipSolver, "solve")])
def test_another_solver_goes_on_where_a_proof_stalls(
    solver: type[BoxSolver | ScipSolver], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer = Explainer(FOREST, data=NUMBERS)
    asked = {} if solver is BoxSolver else {"constraints": TOGETHER}
    (wanted,) = explainer.explain(HARD, solver="highs", reduce=False, **asked)
    own, limits = getattr(solver, method), []

    def stalled(self: object, what: object, options: SolverOptions, *args: object, **settings: object) -> SolveResult:
        found = own(self, what, options, *args, **settings)
        limits.append(options.stall_limit)
        return replace(found, status=Status.UNKNOWN, x=None, objective=None, bound=0.5 * wanted.cost, message=STALLED)

    monkeypatch.setattr(solver, method, stalled)
    monkeypatch.setattr(CellRun, "shrink", lambda self, max_pairs=0: None)  # which may prove by itself
    (e,) = explainer.explain(HARD, break_ties=False, **asked)
    name, then = solver.name, "highs"
    assert (e.status, e.verified, e.proved_by) == ("optimal", True, then)
    assert e.cost == pytest.approx(wanted.cost, rel=1e-9)
    assert e.method["solvers"] == [name, then]
    assert e.message == f"{name} stalled; {then} went on"
    assert limits == [FIRST_STALL]
    (e,) = explainer.explain(HARD, solver=name, break_ties=False, **asked)
    assert (e.status, e.bound) == ("feasible", 0.5 * wanted.cost)  # who was asked for is not replaced
    assert limits == [FIRST_STALL, None]


def test_an_answer_without_proof_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    stall(monkeypatch, BoxSolver, "solve_cells", 99)
    (e,) = Explainer(FOREST, data=NUMBERS).explain(ROW, reduce=False, solver="box", time_limit=math.inf)
    assert e.message.startswith("a limit was reached: give it more")
    assert e.bound == 0.0  # no state is preferred
    monkeypatch.undo()
    own = BoxSolver.solve_cells

    def solve(self: BoxSolver, *args: object, **settings: object) -> SolveResult:
        found = own(self, *args, **settings)  # type: ignore[arg-type]
        if found.x is None:
            return SolveResult(Status.UNKNOWN, solver="box", message="time")
        return replace(found, status=Status.FEASIBLE, bound=0.0)

    monkeypatch.setattr(BoxSolver, "solve_cells", solve)
    (e,) = Explainer(FOREST, data=NUMBERS).explain(ROW, reduce=False, time_limit=30)
    assert (e.status, e.verified) == ("feasible", True)
    assert "the time limit of 30 s was reached: give it more (time_limit=300), or be content with a gap" in str(e)


def run_from(start: IntArray, cells: CellProblem, solver: Solver | CellSolver, matrix: Compiled) -> CellRun:
    """A finished run that has begun with a choice of cells, and is to find the fewest changes."""
    run = CellRun(cells, Terms(SolverOptions(), judge(cells), 0.0, fewest=True), solver, tuple)
    placed = cells.place(start)
    assert placed is not None
    run.adopt(Incumbent(start, placed.point, placed.cost))
    while not run.finished:
        run.step(lambda: matrix)
    return run


def judge(cells: CellProblem) -> Callable[[np.ndarray], bool]:
    """Whether a point has the target."""

    def has_target(point: np.ndarray) -> bool:
        leaves = cells.partition.leaves_at(cells.partition.locate(point[None])[0])
        return bool((cells.margins(leaves) >= 0).all())

    return has_target


@pytest.mark.parametrize("solver", [HighsSolver(), ScipSolver(), BoxSolver()], ids=["highs", "scip", "box"])
def test_one_proof_shows_that_the_start_is_the_best_and_changes_least(
    solver: HighsSolver | ScipSolver | BoxSolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never claimed where something that costs as little changes less; nothing is reduced.

    A solver of matrices claims it where the start was the best and nothing in other leaves costs as little. A start
    need not be the cheapest point of its own leaves, which are closed while others are asked for.
    """
    monkeypatch.setattr(reduced_run, "reduce", lambda cells, *rest, **more: SimpleNamespace(cells=cells))
    claimed = {True: 0, False: 0}
    for cells, everything in (*with_ties(range(40)), *whole_numbers(8)):
        matrix = compile_formulation("interval" if cells.partition.reachable.all() else "ocean", cells)
        feasible = np.flatnonzero(everything.feasible)
        by_cost = everything.choices[feasible[np.argsort(everything.cost[feasible], kind="stable")]]
        for start in (by_cost[0], by_cost[len(by_cost) // 2]):
            run = run_from(start, cells, solver, matrix)
            found = run.outcome()
            assert found.status is Status.OPTIMAL
            assert found.cost == pytest.approx(everything.optimum, rel=1e-9)
            assert found.point is not None
            choice = cells.partition.locate(found.point[None])[0]
            less = any(cells.changes_less(other, choice, everything.optimum) for other in by_cost)
            tied = beside(cells, everything, cells.partition.leaves_at(choice), found.cost)
            assert not (found.fewest and less)
            assert found.fewest or (solver.name != "box" and (tied or start is not by_cost[0]))
            claimed[found.fewest] += 1
    assert claimed[True] > 5
    assert claimed[False] > 5 or solver.name == "box"


@pytest.mark.parametrize(
    ("formulation", "solver"),
    [("interval", HighsSolver()), ("ocean", ScipSolver()), ("oae", HighsSolver()), ("fcca", ScipSolver())],
    ids=["interval", "ocean", "oae", "fcca"],
)
def test_the_fewest_changes_are_asked_for_once_the_cost_is_proven(
    formulation: str, solver: HighsSolver | ScipSolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the start with the most changes of those that cost the same; nothing is reduced or told by sums of costs."""
    monkeypatch.setattr(reduced_run, "reduce", lambda cells, *rest, **more: SimpleNamespace(cells=cells))
    monkeypatch.setattr(fewest, "may_tie", lambda *_: True)
    monkeypatch.setattr(fewest, "stands_alone", lambda *_: False)
    fewer = 0
    for cells, everything in whole_numbers(8):
        matrix = compile_formulation(formulation, cells)
        feasible = everything.choices[everything.feasible]
        equal = everything.choices[everything.feasible & (everything.cost <= everything.optimum * (1 + 1e-12))]
        start = max(equal, key=cells.count_changes)
        run = run_from(start, cells, solver, matrix)
        run.settle(lambda matrix=matrix: matrix)
        found = run.outcome()
        assert (found.status, found.fewest) == (Status.OPTIMAL, True)
        assert found.cost == pytest.approx(everything.optimum, rel=1e-9)
        assert found.point is not None
        choice = cells.partition.locate(found.point[None])[0]
        assert any((choice == other).all() for other in equal)
        assert not any(cells.changes_less(other, choice, everything.optimum) for other in feasible)
        fewer += cells.count_changes(choice) < cells.count_changes(start)
    assert fewer > 3


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("formulation", ["interval", "ocean"])
def test_predictions_that_miss_the_target_by_less_than_a_solvers_tolerance(formulation: str, solver: str) -> None:
    grid = pd.DataFrame(np.stack(np.meshgrid(range(6), range(6)), -1).reshape(-1, 2), columns=["a", "b"])
    for seed in range(8):
        wanted = np.random.default_rng(seed).normal(size=len(grid))
        model = GradientBoostingRegressor(n_estimators=6, max_depth=2, random_state=0).fit(grid, wanted)
        explainer = Explainer(model, data=grid, features={name: {"scale": 5.0} for name in grid})
        given = model.predict(grid)
        row = grid.iloc[[int(given.argmin())]]
        cost = np.abs(grid.to_numpy() - row.to_numpy()).sum(axis=1) / 5
        levels = np.unique(given)
        for k, miss in enumerate((3e-8, 1e-7, 3e-7, 5e-7, 8e-7) * 2):
            least = levels[1 + k % (len(levels) - 2)] + miss
            answer = explainer.explain(row, (least, None), formulation=formulation, solver=solver, reduce=False)[0]
            assert (answer.status, answer.verified) == ("optimal", True)
            assert answer.cost == pytest.approx(cost[given >= least].min(), rel=1e-9)

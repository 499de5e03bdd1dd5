"""What all adapters share, on every solver: options, limits, starts, cutoffs, and the way to a verdict."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from ocf.errors import ProblemError, SolverError
from ocf.solvers import SolverOptions, StandardForm, Status, get_solver
from ocf.solvers import adapter as solver_base
from ocf.solvers.adapter import Claim, RawAnswer, SolverQuestion, conclude
from ocf.solvers.result import CUTOFF, STALLED, SolveResult

from .forms import brute_force, check, knapsack, random_form

INF = np.inf


@pytest.mark.parametrize("limit", [0.001, 0.03, 0.2])
def test_a_time_limit_leaves_a_valid_bound(solver, hard, optimum, limit):
    result = solver.solve(hard, SolverOptions(time_limit=limit))
    check(result, hard)
    assert result.status in (Status.FEASIBLE, Status.UNKNOWN, Status.OPTIMAL)
    assert result.bound <= optimum.objective + 1e-9
    if result.status is Status.UNKNOWN:
        assert result.gap == INF
    else:
        assert result.objective >= optimum.objective - 1e-9


def test_a_time_limit_ends_what_would_not_end(solver, market_split):
    result = solver.solve(market_split, SolverOptions(time_limit=0.2))
    assert result.status in (Status.FEASIBLE, Status.UNKNOWN)
    assert result.seconds >= 0.1


def test_a_stall_ends_what_would_not_end(solver, market_split):
    """Sums of 0 are asked for, and no bound above 0 is in reach."""
    result = solver.solve(market_split, SolverOptions(stall_limit=0.2), cutoff=0.5)
    assert (result.status, result.message) == (Status.UNKNOWN, STALLED)
    assert result.bound <= 0.5
    asked = SolverOptions(stall_limit=1e6, time_limit=0.3)
    assert solver.solve(market_split, asked, cutoff=0.5).message == ""


def test_one_solver_object_serves_many_solves(solver, hard, optimum):
    solver.solve(hard, SolverOptions(time_limit=0.02))
    other = random_form(0)
    assert solver.solve(other).objective == pytest.approx(brute_force(other))
    # Neither the time spent nor the options of an earlier solve count against this one.
    assert solver.solve(hard, SolverOptions(time_limit=1e6)).objective == pytest.approx(optimum.objective, rel=1e-9)
    assert solver.solve(hard, cutoff=optimum.objective - 0.01).message == CUTOFF
    assert solver.solve(hard, warm_start=optimum.x).status is Status.OPTIMAL


def test_threads_may_change_between_solves(solver):
    form = random_form(0)
    for threads in (1, 2, 1):
        assert solver.solve(form, SolverOptions(threads=threads)).status is Status.OPTIMAL


def test_never_worse_than_the_start(solver, hard, optimum):
    greedy = np.ones(hard.n_cols)
    for j in np.argsort(-hard.c):
        greedy[j] = 0.0
        if (hard.activity(greedy) < 1).any():
            greedy[j] = 1.0
    for start in (greedy, optimum.x):
        result = solver.solve(hard, SolverOptions(time_limit=0.001), warm_start=start)
        check(result, hard)
        assert result.status in (Status.FEASIBLE, Status.OPTIMAL)
        assert result.objective <= hard.objective(start)


def test_an_infeasible_start_does_no_harm(solver, hard, optimum):
    for start in (np.zeros(hard.n_cols), np.full(hard.n_cols, 0.3), np.full(hard.n_cols, np.nan)):
        result = solver.solve(hard, warm_start=start)
        assert result.objective == pytest.approx(optimum.objective, rel=1e-9)
    with pytest.raises(ProblemError, match=r"warm start has shape \(3,\)"):
        solver.solve(hard, warm_start=[0, 1, 0])


@pytest.mark.parametrize("distance", [1e-7, 1e-5, 1e-2])
@pytest.mark.parametrize("with_start", [False, True])
def test_cutoff(solver, hard, optimum, distance, with_start):
    start = np.ones(hard.n_cols) if with_start else None
    above = solver.solve(hard, warm_start=start, cutoff=optimum.objective + distance)
    check(above, hard)
    assert above.status is Status.OPTIMAL
    assert above.objective == pytest.approx(optimum.objective, rel=1e-9)

    below = solver.solve(hard, warm_start=start, cutoff=optimum.objective - distance)
    check(below, hard)
    assert (below.status, below.message) == (Status.INFEASIBLE, CUTOFF)
    assert below.bound == optimum.objective - distance
    assert below.x is None


def test_cutoff_on_random_forms(solver):
    for seed in range(30):
        form = random_form(seed, c0=(-10.0, 0.0, 10.0)[seed % 3])
        best = brute_force(form)
        if math.isinf(best):
            assert solver.solve(form, cutoff=0.0).status is Status.INFEASIBLE
            continue
        assert solver.solve(form, cutoff=best + 0.01).objective == pytest.approx(best, abs=1e-9)
        assert solver.solve(form, cutoff=best - 0.01).message == CUTOFF


def test_cutoff_on_a_linear_problem(solver):
    form = StandardForm([1, 2], 0, sp.csr_array([[1.0, 1.0]]), [1.5], [INF], [0, 0], [1, 1], [False, False])
    assert solver.solve(form, cutoff=2.1).objective == pytest.approx(2.0)
    assert solver.solve(form, cutoff=1.9).message == CUTOFF


def test_a_gap_lets_the_solver_stop_early(solver, hard, optimum):
    result = solver.solve(hard, SolverOptions(mip_gap=0.5))
    assert result.status is Status.OPTIMAL
    assert result.gap <= 0.5
    assert result.bound <= optimum.objective + 1e-9


def test_history_leads_to_the_result(solver, hard):
    result = solver.solve(hard)
    check(result, hard)
    assert len(result.history) >= 2
    last = result.history[-1]
    assert last.incumbent == pytest.approx(result.objective)
    assert last.bound <= result.objective


def test_raw_options(solver):
    form = random_form(0)
    name = {"highs": "mip_max_nodes", "scip": "limits/nodes"}[solver.name]
    result = solver.solve(form, SolverOptions(seed=3, options={name: 1000}))
    assert result.options[name] == 1000
    with pytest.raises(SolverError, match=f"did you mean '{name}'"):
        solver.solve(form, SolverOptions(options={name[:-1]: 1000}))
    with pytest.raises(SolverError, match="does not take the option"):
        solver.solve(form, SolverOptions(options={name: "many"}))
    solver.check_options({name: 1000})
    with pytest.raises(SolverError, match=f"did you mean '{name}'"):
        solver.check_options({name[:-1]: 1000})


def test_presolve_can_be_turned_off(solver):
    """What the user sets himself comes after it."""
    name, off, own = {"highs": ("presolve", "off", "choose"), "scip": ("presolving/maxrounds", 0, 5)}[solver.name]
    form = random_form(0)
    assert name not in solver.solve(form).options
    assert solver.solve(form, SolverOptions(presolve=False)).options[name] == off
    assert solver.solve(form, SolverOptions(presolve=False, options={name: own})).options[name] == own


def test_strong_branching_is_scips_own_way():
    branching, form = "branching/pscost/priority", random_form(0)
    assert branching in get_solver("scip").solve(form).options
    assert branching not in get_solver("scip").solve(form, SolverOptions(strong_branching=True)).options


def test_log_goes_to_standard_output_only_when_asked(solver, capfd):
    solver.solve(random_form(0))
    assert capfd.readouterr() == ("", "")
    solver.solve(random_form(0), SolverOptions(log=True))
    assert capfd.readouterr().out


def test_claims_are_not_taken_at_face_value(hard):
    """A solver that calls a wrong point optimal, or leaves a gap, is found out."""
    question = solver_base.ask(hard, None, None, None)

    def conclude(**answer):
        claimed = {"claim": solver_base.Claim.OPTIMAL, "raw_status": "done", "seconds": 0.0, **answer}
        return solver_base.conclude(question, solver_base.RawAnswer(**claimed), "test", "1", {})

    ones = np.ones(hard.n_cols)
    wrong = conclude(x=np.zeros(hard.n_cols), bound=0.0)
    assert (wrong.status, wrong.x) == (Status.ERROR, None)
    assert "violates the problem" in wrong.message
    gap = conclude(x=ones, bound=hard.objective(ones) - 1e-3)
    assert gap.status is Status.FEASIBLE
    assert "leaves a gap" in gap.message
    assert conclude(x=None, bound=0.0).status is Status.ERROR
    assert conclude(x=ones, bound=INF).status is Status.OPTIMAL


@pytest.mark.parametrize("name", ["highs", "scip"])
@pytest.mark.parametrize("failures", [1, 2, 3])
def test_a_solver_is_asked_again_by_safer_options(name: str, failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first points violate the problem, or the solver breaks down; there are two remedies."""
    asked: list[dict[str, Any]] = []

    def failing(
        question: SolverQuestion, answer: RawAnswer, solver: str, version: str, raw: dict[str, Any]
    ) -> SolveResult:
        asked.append(raw)
        if len(asked) <= failures:
            answer = RawAnswer(Claim.OPTIMAL, np.zeros(3), 0.0, "done", 1.0, 1)
            if failures == 2:
                answer = RawAnswer(Claim.FAILED, None, -np.inf, "numerical trouble", 1.0, 1)
        return conclude(question, answer, solver, version, raw)

    monkeypatch.setattr(f"ocf.solvers.{name}.conclude", failing)
    own = {"presolve": "choose"} if name == "highs" else {"presolving/maxrounds": 5}
    result = get_solver(name).solve(knapsack(), SolverOptions(options=own))
    assert len({tuple(sorted(raw.items())) for raw in asked}) >= min(failures, 2)
    assert all(own.items() <= raw.items() for raw in asked)  # what the user set stays
    if failures == 3:
        assert (result.status, len(asked)) == (Status.ERROR, 3)
    else:
        assert (result.status, result.objective, len(asked)) == (Status.OPTIMAL, 3.0, failures + 1)
        assert result.seconds >= failures

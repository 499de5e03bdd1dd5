from __future__ import annotations

from dataclasses import replace

import numpy as np
from small_problems import random_problem

from ocf.cells.incumbent import Incumbent
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace
from ocf.solve.outcome import ANOTHER, AT_GAP, ROUNDED, Outcome, Run, advised, no_dearer_than_its_point
from ocf.solvers.result import SolveResult, SolverOptions, Status


def point(cost: float) -> Incumbent:
    return Incumbent(np.zeros(0, np.int64), np.array([cost]), cost)


def test_a_run_keeps_the_cheapest_point_and_what_it_took() -> None:
    run = Run(SolverOptions(), ("reduce",))
    assert not run.finished
    assert run.upper == np.inf
    for best in (point(3.0), None, point(2.0), point(2.5)):
        run.adopt(best)
    assert run.upper == 2.0
    asked: list[float] = []
    assert run.ask(lambda p: asked.append(p[0]) is None, np.array([7.0]))
    assert asked == [7.0]
    run.note(SolveResult(Status.OPTIMAL, np.array([2.0]), 2.0, 2.0, seconds=0.5, nodes=3, solver="highs"))
    run.close(Status.OPTIMAL, 2.1, "highs")
    outcome = run.outcome()
    assert (outcome.status, outcome.cost, outcome.bound, outcome.proved_by) == (Status.OPTIMAL, 2.0, 2.0, "highs")
    assert (outcome.nodes, len(outcome.results), outcome.times["solve"]) == (3, 1, 0.5)
    assert set(outcome.times) == {"reduce", "solve", "confirm"}
    assert outcome.history[-1][1:] == (2.0, 2.0)


def test_a_run_ends_when_its_time_is_over() -> None:
    assert Run(SolverOptions(), ()).seconds_left() is None
    over = Run(SolverOptions(time_limit=5.0), (), start=-1e9)
    assert over.seconds_left() is not None
    assert over.remaining() is None
    ahead = Run(SolverOptions(time_limit=5.0), (), start=1e15).remaining()
    assert ahead is not None
    assert ahead.time_limit is not None
    assert ahead.time_limit > 5.0


def test_an_infeasible_run_has_no_finite_bound() -> None:
    run = Run(SolverOptions(), ())
    run.close(Status.INFEASIBLE, np.inf, "reduction")
    assert run.outcome().bound == np.inf
    assert run.outcome().point is None


def test_a_gap_that_was_asked_for_is_no_limit() -> None:
    found = Outcome(Status.FEASIBLE, np.zeros(1), 1.0, 0.8 - 1e-12, {})
    assert advised(found, SolverOptions(mip_gap=0.2)).message == AT_GAP
    assert "limit" in advised(found, SolverOptions(mip_gap=0.1)).message
    assert "limit" in advised(replace(found, point=None, cost=None), SolverOptions(mip_gap=0.2)).message


def test_a_failure_is_not_blamed_on_a_limit() -> None:
    failed = SolveResult(Status.ERROR, solver="scip", message="scip failed: numerics")
    left = Outcome(Status.FEASIBLE, np.zeros(1), 2.0, 1.0, {}, results=(failed,), message=failed.message)
    assert advised(left, SolverOptions(time_limit=60)).message == f"scip failed: numerics; {ANOTHER}"
    stopped = SolveResult(Status.UNKNOWN, solver="highs", message="time limit")
    went_on = advised(replace(left, results=(failed, stopped)), SolverOptions(time_limit=60)).message
    assert "the time limit of 60 s was reached" in went_on
    assert ANOTHER not in went_on


def test_what_rounding_leaves_open_is_not_blamed_on_the_time() -> None:
    near = Outcome(Status.FEASIBLE, np.zeros(1), 1.0, 1.0 - 1e-7, {}, message="odd")
    assert advised(near, SolverOptions()).message == (
        "odd; no answer is cheaper by more than 1e-07 of its cost; rounding leaves that open"
    )
    for other in (replace(near, bound=0.9), replace(near, bound=-np.inf), replace(near, point=None, cost=None)):
        assert "limit" in advised(other, SolverOptions()).message
        told = replace(other, message=f"{ROUNDED} leaves it open")
        assert advised(told, SolverOptions()) == advised(
            told, SolverOptions(), FeatureSpace((Feature("x", "numeric"),))
        )
        assert advised(told, SolverOptions()) == told
        for dtype, digits in (("float32", 7), ("float16", 4)):
            narrow = Feature("y", "numeric", dtype=dtype)
            said = advised(told, SolverOptions(), FeatureSpace((Feature("x", "numeric"), narrow))).message
            assert said.startswith(f"{told.message}; columns of {dtype} hold {digits} digits")
    assert advised(replace(near, status=Status.OPTIMAL), SolverOptions()).message == "odd"


def test_a_limit_that_the_message_names_is_not_named_again() -> None:
    late = Outcome(Status.FEASIBLE, np.zeros(1), 1.0, 0.5, {}, message="the time limit leaves less than it takes")
    said = advised(late, SolverOptions(time_limit=0.5)).message
    assert said.startswith("the time limit leaves less than it takes: give it more (time_limit=5)")
    assert said.count("time limit") == 1


def test_the_cost_is_that_of_the_point_where_the_first_one_was_dearer_within_a_tolerance() -> None:
    problem = random_problem(0).problem
    at = problem.origin.copy()
    i = int(np.flatnonzero([f.kind == "numeric" for f in problem.space.features])[0])
    at[i] += 0.25
    cost = float(problem.costs(at[None])[0])
    assert cost > 0
    first = Outcome(Status.OPTIMAL, at, cost * (1 + 2e-9), cost * (1 + 2e-9), {})
    own = no_dearer_than_its_point(problem, first)
    assert (own.cost, own.bound, own.point is at) == (cost, cost, True)
    assert no_dearer_than_its_point(problem, own) is own
    for cheaper in (cost * (1 - 2e-9), None):
        other = replace(first, cost=cheaper)
        assert no_dearer_than_its_point(problem, other) is other

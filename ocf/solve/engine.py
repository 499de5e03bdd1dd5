"""Engines: from a problem to an outcome, each by its own kind of model; the first that accepts a task serves.

=======  ================================================================  =========================================
cells    reduction, then a model over cells or the box search              `ocf.solve.cell_engine`, `cell_search`
leaves   a model over values: one tree leaf by leaf, or all trees at once  `ocf.solve.leaf_engine`, `leaf_search`,
                                                                           `ensemble_search`
linear   a model over values of a score that is a sum over features        `ocf.solve.linear_engine`, `linear_search`
=======  ================================================================  =========================================

The searches of the last two, and Pyomo with them, are imported when they are needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from ocf.arrays import FloatArray, IntArray
from ocf.errors import MemoryLimitError, OcfError, ProblemError, TimeLimitError
from ocf.problem.linear_problem import LinearProblem
from ocf.problem.problem import Problem
from ocf.solve.cross_check import compare, judged
from ocf.solve.halved import gets_boxes
from ocf.solve.method import AUTO, BOUNDS_FROM, Way
from ocf.solve.outcome import Outcome, advised
from ocf.solve.stand_in import STAND_IN
from ocf.solve.task import Task
from ocf.solvers.result import Status

#: Whether the user's own model gives the target to a coded point.
Judge = Callable[[FloatArray], bool]

#: The kind of problem that an engine solves.
P = TypeVar("P", Problem, LinearProblem)


@dataclass(frozen=True)
class Finding(Generic[P]):
    """What an engine found.

    Attributes
    ----------
    problem : Problem or LinearProblem
        Whose target the answer meets; with class costs it is the class that the answer ends in.
    outcome : Outcome
    way : Way
        The formulation and what solved it.
    method : dict
        How the outcome came about, in the words of `Explanation.method`.
    built : dict
        Seconds of ``build`` and ``compile``.
    ties : sequence of (n_features,) float64
        Other points of the same cost.
    ties_complete : bool or None
        Whether these are all; None where nobody asked.
    ranges : sequence of mappings
        Of all points, the outcome's first; see `ocf.solve.ties.same_cost`.
    """

    problem: P
    outcome: Outcome
    way: Way
    method: dict[str, Any]
    built: dict[str, float]
    ties: Sequence[FloatArray] = ()
    ties_complete: bool | None = None
    ranges: Sequence[Mapping[str, Any]] = field(default=())


@dataclass(frozen=True, eq=False)
class Request(Generic[P]):
    """What an engine is asked.

    Attributes
    ----------
    problem : Problem or LinearProblem
    task : Task
    judge : callable
        Whether the user's own model gives the target to a coded point.
    excluded : tuple of (n_trees,) int64
        Choices of leaves that the answer may not lie in.
    way : Way or None
        In which to solve it; None: the engine chooses, by what the task says.
    """

    problem: P
    task: Task
    judge: Judge
    excluded: tuple[IntArray, ...] = ()
    way: Way | None = None


class Engine(ABC, Generic[P]):
    """One kind of model, from a problem to an outcome.

    Attributes
    ----------
    by_kernels : bool
        Whether it needs the kernels of cells, which are compiled once on a machine.
    """

    by_kernels = False

    @abstractmethod
    def accepts(self, task: Task) -> str:
        """Why it does not take on a task, whatever the row; empty when it does."""

    @abstractmethod
    def solve(self, request: Request[P]) -> Finding[P]:
        """Solve a problem."""

    def completed(self, finding: Finding[P], request: Request[P]) -> Outcome:
        """The outcome of a finding, with a point from elsewhere where a limit left it without one.

        Parameters
        ----------
        finding : Finding
        request : Request
            That it answers.
        """
        return finding.outcome

    @abstractmethod
    def second_way(self, request: Request[P]) -> Way:
        """A way that is independent of the request's, in which it was solved, to check the answer by.

        Raises
        ------
        SolverError
            There is none here.
        """


def engine_for(engines: Sequence[Engine[P]], task: Task) -> Engine[P]:
    """The first engine that accepts a task.

    Parameters
    ----------
    engines : sequence of Engine
        In the order in which they are asked.
    task : Task

    Raises
    ------
    ProblemError
        None does; the message is the last one's, which the task came to because the others are for other formulations.
    """
    refusal = ""
    for engine in engines:
        refusal = engine.accepts(task)
        if not refusal:
            return engine
    raise ProblemError(refusal)


def make_ready(engine: Engine[P], task: Task) -> None:
    """Compile, before the clock of a row starts, what is no part of its time.

    Parameters
    ----------
    engine : Engine
    task : Task
    """
    by_box = task.compiles_ahead and task.solver in (AUTO, "box")
    by_l1_and_l2 = not (task.cost.l0 or task.cost.beyond_norms)
    isolated = task.plausibility is not None and task.plausibility.has_hyperplanes  # SCIP comes first there
    if by_box and task.formulation == "hyperplanes" and by_l1_and_l2 and (task.solver == "box" or not isolated):
        STAND_IN.compile_ahead(couples=True)
    # hyperplanes of an isolation forest alone are left out first, and then there are cells
    if (engine.by_kernels or task.plausibility is not None) and task.compiles_ahead:
        interval = task.formulation in (AUTO, BOUNDS_FROM)
        halves = interval and task.reduce and gets_boxes(Way(BOUNDS_FROM, task.solver), task.options)
        branches = halves or (interval and task.solver == "scip")  # on cells, as the search does
        STAND_IN.compile_ahead(searches=task.solver == "box" or branches, couples=task.cost.couples and by_box)


def answer(engine: Engine[P], problem: P, task: Task, judge: Judge, excluded: tuple[IntArray, ...] = ()) -> Finding[P]:
    """Solve a problem and, where that is asked for, check it by a second, independent way.

    Parameters
    ----------
    engine : Engine
    problem : Problem or LinearProblem
    task : Task
    judge : callable
        Whether the user's own model gives the target to a coded point.
    excluded : tuple of (n_trees,) int64
        Choices of leaves that no answer may lie in.
    """
    request = Request(problem, task, judge, excluded)
    first = _found(engine, request, TimeLimitError)  # full memory is for the user to know
    first = replace(first, outcome=advised(engine.completed(first, request), task.options, problem.space))
    if not task.cross_check:
        return first
    unaided = replace(task, reduce=False, n_optimal=1, break_ties=False)
    other = replace(request, task=unaided, way=engine.second_way(replace(request, way=first.way)))
    with task.within_limits(anew=True):
        second = _found(engine, other, TimeLimitError, MemoryLimitError)
    asked_twice = {r.solver for r in first.outcome.results} & {r.solver for r in second.outcome.results}
    if second.way.formulation == first.way.formulation and asked_twice:
        way = first.way
        raise ProblemError(f"nothing here checks {way.solver!r} on {way.formulation!r} independently")
    check = compare(first.way, first.outcome, second.way, second.outcome)
    method = {**first.method, "cross_check": check}
    return replace(first, outcome=judged(first.outcome, check), method=method)


def infeasible(engine: Engine[P], problem: P, task: Task, judge: Judge) -> bool | None:
    """Whether a problem is proven infeasible; None where that stays open. Any point will do against it.

    Parameters
    ----------
    engine : Engine
    problem : Problem or LinearProblem
    task : Task
        Its gap does not matter, nor how many optimal points it asks for.
    judge : callable
        Whether the user's own model gives the target to a coded point.
    """
    loose = replace(task, options=replace(task.options, mip_gap=1e9), n_optimal=1)
    with task.within_limits(anew=True):
        outcome = _found(engine, Request(problem, loose, judge), TimeLimitError, MemoryLimitError).outcome
    return None if outcome.status in (Status.UNKNOWN, Status.ERROR) else outcome.status is Status.INFEASIBLE


def _found(engine: Engine[P], request: Request[P], *limits: type[OcfError]) -> Finding[P]:
    """What an engine finds, which is nothing where one of these limits strikes before it knows anything."""
    try:
        return engine.solve(request)
    except limits as error:
        task = request.task
        way = request.way or Way(task.formulation, task.solver)
        outcome = Outcome(Status.UNKNOWN, None, None, request.problem.space.least_cost, {}, message=str(error))
        return Finding(request.problem, outcome, way, task.method(way, outcome), {"build": 0.0, "compile": 0.0})

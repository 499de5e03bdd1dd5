"""Engines: from a problem to an outcome, each by its own kind of model; the first that accepts a task serves.

=======  ================================================================  =========================================
cells    reduction, then a model over cells or the box search              `ocf.solve.cell_search`
leaves   a model over values: one tree leaf by leaf, or all trees at once  `ocf.solve.leaf_search`, `ensemble_search`
linear   a model over values of a score that is a sum over features        `ocf.solve.linear_search`
=======  ================================================================  =========================================

The modules of the last two, and Pyomo with them, are imported when they are needed.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem, cell_values
from ocf.cells.forms import to_alternatives
from ocf.cells.nearby import Nearby, Pruner
from ocf.cells.partition import Partition
from ocf.errors import ProblemError, SolverError
from ocf.formulations import VALUE_FORMULATIONS
from ocf.problem.linear_problem import LinearProblem
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassTarget
from ocf.problem.tie_breaking import among_equals, breakers, count_changes, may_tie
from ocf.solve.cell_search import solve_alternatives
from ocf.solve.class_costs import class_offsets
from ocf.solve.coupled_balls import CoupledBalls
from ocf.solve.cross_check import compare, judged
from ocf.solve.fewest import stands_alone
from ocf.solve.growing_ball import MOST_NODES, GrowingBall
from ocf.solve.halved import HalvedSolver, can_be_halved, gets_boxes
from ocf.solve.known_point import with_known_point
from ocf.solve.method import (
    AUTO,
    BOUNDS_FROM,
    Way,
    choose,
    other_linear_way,
    other_solvers,
    second_value_way,
    second_way,
)
from ocf.solve.outcome import Outcome, advised, after_ties, joined, no_dearer_than_its_point
from ocf.solve.prepared import KeptMatrices, Matrices, PreparedModel
from ocf.solve.stand_in import STAND_IN
from ocf.solve.task import Task
from ocf.solve.ties import same_cost, tied_points
from ocf.solvers import CellSolver, Solver, matrix_solver, other_matrix_solvers
from ocf.solvers.result import SolverOptions, Status
from ocf.support.limits import seconds_left
from ocf.support.tolerances import with_ties

if TYPE_CHECKING:
    from ocf.solve.leaf_query import Query
    from ocf.solve.outcome import Run

#: Part of the time that a problem without its isolation forest may take.
BARE_SHARE = 0.5

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
    # hyperplanes of an isolation forest alone are left out first, and then there are cells
    if (engine.by_kernels or task.plausibility is not None) and task.compiles_ahead:
        interval = task.formulation in (AUTO, BOUNDS_FROM)
        halves = interval and task.reduce and gets_boxes(Way(BOUNDS_FROM, task.solver), task.options)
        branches = halves or (interval and task.solver == "scip")  # on cells, as the search does
        STAND_IN.compile_ahead(
            searches=task.solver == "box" or branches, couples=task.cost.couples and task.solver in (AUTO, "box")
        )


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
    first = engine.solve(request)
    first = replace(first, outcome=advised(engine.completed(first, request), task.options))
    if not task.cross_check:
        return first
    unaided = replace(task, reduce=False, n_optimal=1, break_ties=False)
    with task.within_limits(anew=True):
        second = engine.solve(replace(request, task=unaided, way=engine.second_way(replace(request, way=first.way))))
    asked_twice = {r.solver for r in first.outcome.results} & {r.solver for r in second.outcome.results}
    if second.way.formulation == first.way.formulation and asked_twice:
        way = first.way
        raise ProblemError(f"nothing here checks {way.solver!r} on {way.formulation!r} independently")
    check = compare(first.way, first.outcome, second.way, second.outcome)
    method = {**first.method, "cross_check": check}
    return replace(first, outcome=judged(first.outcome, check), method=method)


def infeasible(engine: Engine[P], problem: P, task: Task, judge: Judge) -> bool:
    """Whether a problem is proven infeasible; any point will do against it.

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
        return engine.solve(Request(problem, loose, judge)).outcome.status is Status.INFEASIBLE


# -- trees over cells ------------------------------------------------------------------------------------------


class _TreeEngine(Engine[Problem]):
    """Of trees, whose data are at hand.

    Parameters
    ----------
    prepared : PreparedModel

    Attributes
    ----------
    doubted : tuple of Status
        Claims that rest on a solver's tolerances, and are held against the rows of the data.
    """

    doubted: tuple[Status, ...] = ()

    def __init__(self, prepared: PreparedModel) -> None:
        self._prepared = prepared

    def completed(self, finding: Finding[Problem], request: Request[Problem]) -> Outcome:
        """With the nearest row of the data, unless the solver is to be seen alone or more is asked than the target."""
        outcome, task = finding.outcome, request.task
        wanted = (Status.UNKNOWN,) if task.reduce else ()
        if outcome.status not in (*wanted, *self.doubted) or request.excluded or task.class_costs or task.split_margin:
            return outcome
        return with_known_point(outcome, request.problem, self._prepared.known_points(request.problem), request.judge)


class CellEngine(_TreeEngine):
    """Incumbent, reduction and a solver, over cells."""

    by_kernels = True

    def accepts(self, task: Task) -> str:
        """All formulations over cells."""
        if task.formulation in VALUE_FORMULATIONS:
            return f"the formulation {task.formulation!r} has values in the place of cells"
        return ""

    def second_way(self, request: Request[Problem]) -> Way:
        """Another formulation by another solver."""
        assert request.way is not None
        return second_way(self._prepared.alternatives(request.problem)[0], request.way)

    def solve(self, request: Request[Problem]) -> Finding[Problem]:
        """Solve the alternatives of the target together; tied points afterwards, where they are asked for."""
        prepared, problem, task = self._prepared, request.problem, request.task
        pruner = prepared.pruner(problem) if task.reduce else None
        if pruner is not None:
            return self._solve_in_balls(request, pruner)
        cells = _CellForms(prepared.alternatives(problem), request, prepared)
        known = prepared.known_cells(problem, cells.partition)
        if problem.cost.couples and task.reduce:
            return cells.with_ties(cells.finding(cells.search_in_balls(known, prepared.known_points(problem))))
        fewest = _counts_changes(problem, _stages(problem, task))
        found = cells.finding(cells.search(known, fewest=fewest))
        return cells.with_ties(found if cells.couples else self._of_equals(request, found, cells.cost, cells))

    def _solve_in_balls(self, request: Request[Problem], pruner: Pruner) -> Finding[Problem]:
        """Solve a problem of trees so large that only those near the row are looked at."""
        prepared, problem, task = self._prepared, request.problem, request.task
        known, fewest = prepared.known_points(problem), _counts_changes(problem, _stages(problem, task))
        part = prepared.tree_partition(problem)
        run = GrowingBall(problem, part, pruner, task.options, request.judge, request.excluded)
        searched: list[_CellForms] = []

        def cells_of(near: Nearby, options: SolverOptions) -> _CellForms:
            own = replace(problem, ensemble=near.ensemble)
            asked = replace(request, task=replace(task, options=options), excluded=near.translated(request.excluded))
            return _CellForms(to_alternatives(own), asked, prepared, shared=False)

        def search(near: Nearby, limit: float, options: SolverOptions) -> Outcome:
            searched.append(cells_of(near, options))
            found: IntArray = np.unique(searched[-1].partition.locate(known), axis=0)
            return searched[-1].search(found, limit, fewest=fewest)

        outcome = run.solve(known, search)
        if not searched:
            way = request.way or Way(task.formulation, task.solver)
            found = Finding(problem, outcome, way, task.method(way, outcome), {"build": 0.0, "compile": 0.0})
            return found if problem.constraints else self._of_equals(request, found, run.cost)
        found, last = searched[-1].finding(outcome), searched[-1] if run.holds_ties else None
        found = found if searched[-1].couples else self._of_equals(request, found, run.cost, last)
        near = run.ball_of_ties() if task.n_optimal > 1 else None
        return found if near is None else cells_of(near, task.options).with_ties(found)

    def _of_equals(
        self, request: Request[Problem], found: Finding[Problem], cost: FloatArray, cells: _CellForms | None = None
    ) -> Finding[Problem]:
        """The finding with the best of the points that cost the same, by `ocf.problem.tie_breaking`.

        Parameters
        ----------
        request : Request
        found : Finding
        cost : (n_cells,) float64
            Of the cells of the problem.
        cells : _CellForms, optional
            With all points that cost as little as the one that was found.
        """
        problem, task, outcome = request.problem, request.task, found.outcome
        optimal = outcome.status is Status.OPTIMAL and outcome.proved_by != "origin"
        stages = _stages(problem, task) if optimal else []
        by_sums = _counts_changes(problem, stages)
        before, proven = [problem], True
        for stage in stages:
            begin, point = time.perf_counter(), outcome.point
            assert point is not None
            assert outcome.cost is not None
            changes = count_changes(problem, point)
            certain = (by_sums and outcome.fewest) or (stage.cost.l0 > 0 and changes < 2)
            if by_sums and not certain:
                certain = not may_tie(cost, self._prepared.tree_partition(problem).offsets, outcome.cost, changes)
            # sums of costs take less time than a reduction
            first = outcome.point is found.outcome.point
            if not certain and first and cells is not None and cells.leaves_alone(outcome):
                outcome = after_ties(outcome, begin)
                break
            if by_sums and not certain and (cells is None or not task.reduce):
                outcome = self._settled(request, outcome, cost)
                certain = outcome.fewest
            if not certain:
                assert outcome.point is not None
                among = among_equals(stage, before, outcome.point)
                best = self._best_of_equals(request, among, outcome, cost)
                proven = proven and best is not None and best.status is Status.OPTIMAL
                if best is not None:
                    outcome = joined(outcome, best)
            outcome = after_ties(outcome, begin)
            before.append(stage)
        if not stages:
            return found
        said = {"ties": {"broken_by": [stage.cost.words for stage in stages], "proven": proven}}
        if outcome.point is not found.outcome.point:
            outcome = no_dearer_than_its_point(problem, outcome)
        return replace(found, outcome=outcome, method={**found.method, **said})

    def _settled(self, request: Request[Problem], outcome: Outcome, cost: FloatArray) -> Outcome:
        """The same with the fewest changes among all points near the row that cost as little, if there is time."""
        assert outcome.point is not None
        assert outcome.cost is not None
        asked = replace(request, task=replace(request.task, reduce=True))  # the cost is proven without
        cells = self._near(asked, request.problem, outcome, cost, with_ties(outcome.cost))
        if cells is None:
            return outcome
        found = cells.search(cells.partition.locate(outcome.point[None]), fewest=True)
        return replace(joined(outcome, found), fewest=found.fewest)

    def _best_of_equals(
        self, request: Request[Problem], among: Problem, outcome: Outcome, cost: FloatArray
    ) -> Outcome | None:
        """The best point among those that cost the same, in the time that is left; None if there is none."""
        assert outcome.point is not None
        assert outcome.cost is not None
        cells = self._near(request, among, outcome, cost, with_ties(outcome.cost))
        if cells is None:
            return None
        return cells.search(cells.partition.locate(outcome.point[None]))

    def _near(
        self, request: Request[Problem], asked: Problem, outcome: Outcome, cost: FloatArray, most: float
    ) -> _CellForms | None:
        """A problem over the cells within so much cost, in the time that an outcome has left; None if there is none."""
        prepared, problem = self._prepared, request.problem
        left = request.task.seconds_after(sum(outcome.times.values()))
        if left == 0 or seconds_left() == 0:
            return None
        task = replace(request.task, options=replace(request.task.options, time_limit=left))
        excluded = request.excluded
        pruner = prepared.pruner(problem, small=True)
        if pruner is not None and problem.cuts_cells:  # the pruner knows the cells of the trees alone
            cost = cell_values(problem, prepared.tree_partition(problem))[1]
        near = None if pruner is None else pruner.within(cost, most, MOST_NODES)
        if near is not None:
            asked, excluded = replace(asked, ensemble=near.ensemble), near.translated(excluded)
        if seconds_left() == 0:
            return None
        own = replace(request, task=task, problem=asked, excluded=excluded)
        return _CellForms(to_alternatives(asked), own, prepared, shared=False)


def _stages(problem: Problem, task: Task) -> list[Problem]:
    """By what ties are broken, one after the other."""
    return breakers(problem) if task.break_ties and task.options.mip_gap == 0 else []


def _counts_changes(problem: Problem, stages: Sequence[Problem]) -> bool:
    """Whether ties are broken by the number of changes alone, which is no matter where an answer stands alone."""
    return len(stages) == 1 and stages[0].cost.l0 > 0 and not problem.cuts_cells


class _CellForms:
    """The alternatives of a problem over cells, and the way in which they are solved.

    Parameters
    ----------
    alternatives : tuple of CellProblem
    request : Request
        Its problem may have more trees than the alternatives.
    prepared : PreparedModel
    shared : bool
        Whether other rows have the same cells and can use the matrices that this one makes.
    """

    def __init__(
        self,
        alternatives: tuple[CellProblem, ...],
        request: Request[Problem],
        prepared: PreparedModel,
        *,
        shared: bool = True,
    ) -> None:
        self._alternatives = tuple(cells.with_(excluded=request.excluded) for cells in alternatives)
        self._request, self._prepared = request, prepared
        task = request.task
        self._way = request.way or choose(self._alternatives[0], task.formulation, task.solver, task.options.cuts)
        name = self._way.formulation
        if shared:
            self._matrices = prepared.matrices(name, self._alternatives)
        else:
            self._matrices = Matrices(name, self._alternatives, KeptMatrices(), ())

    @property
    def cost(self) -> FloatArray:
        """Of the cells, (n_cells,)."""
        return self._alternatives[0].cost

    @property
    def couples(self) -> bool:
        """Whether values inside cells matter."""
        return self._alternatives[0].couples

    @property
    def partition(self) -> Partition:
        """The cells."""
        return self._alternatives[0].partition

    def leaves_alone(self, outcome: Outcome) -> bool:
        """Whether reduction, where it is asked for, leaves nothing beside an optimal point that costs as little."""
        if outcome.cost is None or not self._request.task.reduce or self._request.problem.cuts_cells:
            return False
        return stands_alone(self._alternatives, outcome.cost)

    def search_in_balls(self, known: IntArray, rows: FloatArray) -> Outcome:
        """The cheapest point by a cost that couples features.

        Parameters
        ----------
        known : (n, n_features) int64
            Cells of rows of the data that have the target.
        rows : (m, n_features) float64
            These rows, coded.
        """
        request = self._request
        balls = CoupledBalls(self._alternatives, request.task.options, request.judge)
        balls.find_incumbent(rows)
        balls.grow(partial(self.search, known))
        return balls.outcome()

    def search(
        self, known: IntArray, limit: float = np.inf, options: SolverOptions | None = None, *, fewest: bool = False
    ) -> Outcome:
        """The cheapest point, if it costs less than a limit.

        Parameters
        ----------
        known : (n, n_features) int64
            Cells of rows of the data that have the target.
        limit : float
        options : SolverOptions, optional
            By default those of the task.
        fewest : bool
            See `ocf.solve.cell_search.solve_alternatives`.
        """
        first, task, way = self._alternatives[0], self._request.task, self._way

        def others() -> list[Solver | CellSolver]:
            return [self._prepared.solver(name) for name in other_solvers(first, way)]

        asked = options or task.options
        halves = task.reduce and gets_boxes(way, asked) and can_be_halved(self._alternatives)
        outcome = solve_alternatives(
            self._alternatives,
            self._matrices.all,
            HalvedSolver(way.solver) if halves else self._prepared.solver(way.solver),
            asked,
            confirm=self._request.judge,
            candidates=known,
            use_reduction=task.reduce,
            others=others if task.solver == AUTO else tuple,
            limit=limit,
            fewest=fewest,
        )
        if first.values is not None and not outcome.message:
            outcome = replace(outcome, message=first.values.remark())
        return outcome

    def finding(self, outcome: Outcome) -> Finding[Problem]:
        """What was found, and how."""
        request, way = self._request, self._way
        return Finding(request.problem, outcome, way, request.task.method(way, outcome), self._matrices.seconds)

    def with_ties(self, found: Finding[Problem]) -> Finding[Problem]:
        """The finding with other points of the same cost, where they are asked for."""
        task = self._request.task
        if task.n_optimal == 1 or found.outcome.status is not Status.OPTIMAL or task.options.mip_gap > 0:
            return found
        begin = time.perf_counter()
        points, complete = tied_points(
            found.outcome,
            self._alternatives,
            self._matrices.all,
            self._prepared.solver(self._way.solver),
            task.options,
            confirm=self._request.judge,
            limit=task.n_optimal,
        )
        first = self._alternatives[0]
        ranges = [] if first.couples else [same_cost(first, point) for point in points]
        outcome = after_ties(found.outcome, begin)
        return replace(found, outcome=outcome, ties=points[1:], ties_complete=complete, ranges=ranges)


# -- trees over values -----------------------------------------------------------------------------------------


class LeafEngine(_TreeEngine):
    """One tree leaf by leaf, or all trees at once, with values in the place of cells: oblique splits."""

    doubted = (Status.INFEASIBLE,)

    def accepts(self, task: Task) -> str:
        """One answer a row by a formulation over values."""
        if task.formulation not in VALUE_FORMULATIONS:
            return f"the formulation {task.formulation!r} has cells, which trees with hyperplanes have not"
        this = f"the formulation {task.formulation!r}, which splits over several columns need,"
        if task.cost.absolutes:
            return f"{this} knows no absolute values of sums of changes: take the norm 'mahalanobis', or weights of l1"
        if any(f.special is not None for f in task.space.features):
            return (
                f"{this} knows no special values and supplies none that are missing: "
                "leave out special_values and cost_of_supplying"
            )
        if task.margins is not None and task.margins.any():
            return f"{this} takes a margin for single trees only, as split_margin"
        if task.imputations is not None:
            return f"{this} knows no completions of missing values: leave out imputations, or give a complete row"
        if task.cross_check and (task.split_margin > 0 or task.class_costs):
            return "class costs and split margins have one model, leaf by leaf, and nothing to check it by"
        if task.several.n > 1 or task.n_optimal > 1:
            return f"{this} gives one answer a row; ocf.explain_leaves gives several"
        return ""

    def second_way(self, request: Request[Problem]) -> Way:
        """All trees at once for a single tree leaf by leaf, and the other way round; for several the other solver."""
        task = request.task
        single = self._prepared.ensemble.n_trees == 1 and task.plausibility is None
        return second_value_way(Way(task.formulation, task.solver), single)

    def query(self, problem: Problem, options: SolverOptions, solver: str) -> Query:
        """The question of one row to the leaves; see `ocf.solve.leaf_query`.

        Parameters
        ----------
        problem : Problem
            Its plausibility, if any, is a least depth without a weight.
        options : SolverOptions
        solver : str
            As in `ocf.solve.leaf_query.Query`.
        """
        from ocf.solve.leaf_query import Query

        if problem.penalty is not None:
            raise ProblemError("a plausibility with a weight has no model with hyperplanes: ask for a least depth")
        return Query(self._prepared.tree_search(problem), problem, options, solver)

    def solve(self, request: Request[Problem]) -> Finding[Problem]:
        """Solve over values; no choice of leaves can be excluded, for there is one answer a row."""
        problem, task, judge = request.problem, request.task, request.judge
        way = request.way or Way(task.formulation, task.solver)
        query = self.query(problem, task.options, way.solver)
        if way.formulation == "oblique":
            outcome, problem = self._leaf_by_leaf(query, problem, task, judge)
        else:
            from ocf.solve.ensemble_search import solve_globally

            known = self._prepared.known_points(problem) if task.reduce else None
            relaxed = self._without_isolation(request, way, query.run) if task.reduce else None
            outcome = solve_globally(query, judge, way.formulation, known, relaxed)
        return self.finding(query, problem, outcome, task, way.formulation)

    def finding(
        self, query: Query, problem: Problem, outcome: Outcome, task: Task, formulation: str = "oblique"
    ) -> Finding[Problem]:
        """What a question to the leaves has found, and how.

        Parameters
        ----------
        query : Query
        problem : Problem
            Whose target the answer meets.
        outcome : Outcome
        task : Task
        formulation : str
            By which it was found.
        """
        way = Way(formulation, query.run.method_name)
        method = task.method(way, outcome)
        model, matrix = query.model, query.model.matrix
        built = {"build": matrix.build_seconds, "compile": matrix.compile_seconds}
        return Finding(
            problem,
            outcome,
            way,
            {**method, "solver_version": query.run.version or method["solver_version"]},
            dict.fromkeys(built, 0.0) if model.matrix_is_old else built,
        )

    def _without_isolation(self, request: Request[Problem], way: Way, run: Run) -> Outcome | None:
        """The answer of a model over cells where only its isolation forest has hyperplanes: without that forest.

        A point that is plausible as it is is the answer; of all others it is a bound. On diabetes, 100 trees of depth
        5 beside 20 of an extended forest, it was the answer of six rows in eight.
        """
        problem, task = request.problem, request.task
        free = problem.ensemble.is_oblique or problem.plausibility is None or problem.completions is not None
        if way.formulation != "hyperplanes" or free or run.seconds_left() == 0:
            return None
        bare = replace(problem, plausibility=None)

        def by_the_trees(point: FloatArray) -> bool:
            leaves = bare.ensemble.apply(point[None])[0]
            return any((own.gain[leaves].sum(axis=0) >= own.need).all() for own in bare.alternatives)

        options = run.remaining() or task.options
        if options.time_limit is not None:
            options = replace(options, time_limit=options.time_limit * BARE_SHARE)
        plain = replace(task, formulation=BOUNDS_FROM, options=options, break_ties=False)
        try:
            return CellEngine(self._prepared).solve(Request(bare, plain, by_the_trees)).outcome
        except ProblemError:  # what has no cells has values all the same
            return None

    def _leaf_by_leaf(self, query: Query, problem: Problem, task: Task, judge: Judge) -> tuple[Outcome, Problem]:
        """The answer of a single tree, and the problem whose target it meets."""
        from ocf.solve.leaf_search import solve_leaves

        classes = self._prepared.classes
        offsets = class_offsets(classes, problem, dict(task.class_costs)) if task.class_costs else None
        answers, outcome = solve_leaves(query, judge, eps=task.split_margin, offsets=offsets)
        if offsets is not None and outcome.point is not None:
            # the answer is the cheapest change into its own class, of which it can be verified
            tree = problem.ensemble
            decided = int(tree.decide(tree.base_score + tree.contributions)[answers[0].leaf])
            problem = replace(problem, target=ClassTarget(decided))
        return outcome, problem


# -- linear models ---------------------------------------------------------------------------------------------


class LinearEngine(Engine[LinearProblem]):
    """Linear models: a score that is a sum over features."""

    def accepts(self, task: Task) -> str:
        """Any solver that takes a matrix."""
        try:
            matrix_solver(_solver_of(task))
        except SolverError as error:
            return f"linear models: {error}"
        return ""

    def second_way(self, request: Request[LinearProblem]) -> Way:
        """The same model by the other solver."""
        assert request.way is not None
        return other_linear_way(request.way)

    def solve(self, request: Request[LinearProblem]) -> Finding[LinearProblem]:
        """Solve over values; there are no leaves to exclude."""
        from ocf.solve.linear_search import solve_linear

        problem, task = request.problem, request.task
        way = request.way or Way("linear", _solver_of(task))
        going_on = partial(other_matrix_solvers, way.solver) if task.solver == AUTO else tuple
        outcome = solve_linear(
            problem, matrix_solver(way.solver), task.options, request.judge, task.split_margin, going_on
        )
        method = task.method(way, outcome) | {"reduction": False}
        return Finding(problem, outcome, way, method, {})


def _solver_of(task: Task) -> str:
    """The solver that a linear model goes to."""
    return "highs" if task.solver == AUTO else task.solver

"""Trees over values: one tree leaf by leaf, or all trees at once, with oblique splits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ocf.arrays import FloatArray
from ocf.errors import ProblemError, SolverError
from ocf.formulations import VALUE_FORMULATIONS
from ocf.problem.problem import Problem
from ocf.problem.targets import ClassTarget
from ocf.solve.cell_engine import CellEngine
from ocf.solve.class_costs import class_offsets
from ocf.solve.engine import Finding, Judge, Request
from ocf.solve.method import AUTO, BOUNDS_FROM, Way, second_value_way
from ocf.solve.outcome import Outcome
from ocf.solve.task import Task
from ocf.solve.tree_engine import TreeEngine
from ocf.solvers import CELL_SOLVERS, matrix_solver
from ocf.solvers.result import SolverOptions, Status

if TYPE_CHECKING:
    from ocf.solve.leaf_query import Query
    from ocf.solve.outcome import Run

#: Part of the time that a problem without its isolation forest may take.
BARE_SHARE = 0.5


class LeafEngine(TreeEngine):
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
                f"{this} knows no special values, and no value that may be supplied or become missing: leave out "
                "special_values, cost_of_supplying, may_become_missing and missing=True"
            )
        if task.margins is not None and task.margins.any():
            return f"{this} takes a margin for single trees only, as split_margin"
        if task.imputations is not None:
            return f"{this} knows no completions of missing values: leave out imputations, or give a complete row"
        if task.cross_check and (task.split_margin > 0 or task.class_costs):
            return "class costs and split margins have one model, leaf by leaf, and nothing to check it by"
        if task.several.n > 1 or task.n_optimal > 1:
            single = self._prepared.ensemble.n_trees == 1
            instead = "ocf.explain_leaves gives several" if single else "leave out n_explanations and n_optimal"
            return f"{this} gives one answer a row: {instead}"
        try:
            if task.solver != AUTO and (task.solver not in CELL_SOLVERS or task.formulation != "hyperplanes"):
                matrix_solver(task.solver)
        except SolverError as error:
            return f"{this} takes a matrix: {error}"
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

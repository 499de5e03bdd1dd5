"""Trees over cells: incumbent, reduction and a solver, in balls around the row where trees are large."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ocf.arrays import IntArray
from ocf.cells.forms import to_alternatives
from ocf.cells.nearby import Nearby, Pruner
from ocf.formulations import VALUE_FORMULATIONS
from ocf.problem.problem import Problem
from ocf.solve.cell_forms import CellForms
from ocf.solve.engine import Finding, Request
from ocf.solve.equals import TieBreaker, counts_changes, stages_of
from ocf.solve.growing_ball import GrowingBall
from ocf.solve.method import Way, second_way
from ocf.solve.outcome import Outcome
from ocf.solve.task import Task
from ocf.solve.tree_engine import TreeEngine
from ocf.solvers.result import SolverOptions


class CellEngine(TreeEngine):
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
        cells = CellForms(prepared.alternatives(problem), request, prepared)
        known = prepared.known_cells(problem, cells.partition)
        if problem.cost.couples and task.reduce:
            return cells.with_ties(cells.finding(cells.search_in_balls(known, prepared.known_points(problem))))
        fewest = counts_changes(problem, stages_of(problem, task))
        found = cells.finding(cells.search(known, fewest=fewest))
        if not cells.couples:
            found = TieBreaker(request, prepared, cells.cost, cells).best(found)
        return cells.with_ties(found)

    def _solve_in_balls(self, request: Request[Problem], pruner: Pruner) -> Finding[Problem]:
        """Solve a problem of trees so large that only those near the row are looked at."""
        prepared, problem, task = self._prepared, request.problem, request.task
        known, fewest = prepared.known_points(problem), counts_changes(problem, stages_of(problem, task))
        part = prepared.tree_partition(problem)
        run = GrowingBall(problem, part, pruner, task.options, request.judge, request.excluded)
        searched: list[CellForms] = []

        def cells_of(near: Nearby, options: SolverOptions) -> CellForms:
            own = replace(problem, ensemble=near.ensemble)
            asked = replace(request, task=replace(task, options=options), excluded=near.translated(request.excluded))
            return CellForms(to_alternatives(own), asked, prepared, shared=False)

        def search(near: Nearby, limit: float, options: SolverOptions) -> Outcome:
            searched.append(cells_of(near, options))
            found: IntArray = np.unique(searched[-1].partition.locate(known), axis=0)
            return searched[-1].search(found, limit, fewest=fewest)

        outcome = run.solve(known, search)
        if not searched:
            way = request.way or Way(task.formulation, task.solver)
            found = Finding(problem, outcome, way, task.method(way, outcome), {"build": 0.0, "compile": 0.0})
            return found if problem.constraints else TieBreaker(request, prepared, run.cost).best(found)
        found, last = searched[-1].finding(outcome), searched[-1] if run.holds_ties else None
        if not searched[-1].couples:
            found = TieBreaker(request, prepared, run.cost, last).best(found)
        near = run.ball_of_ties() if task.n_optimal > 1 else None
        return found if near is None else cells_of(near, task.options).with_ties(found)

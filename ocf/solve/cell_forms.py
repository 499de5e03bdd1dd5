"""The alternatives of a problem over cells, and the way in which they are solved."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.partition import Partition
from ocf.problem.problem import Problem
from ocf.solve.cell_search import solve_alternatives
from ocf.solve.coupled_balls import CoupledBalls
from ocf.solve.engine import Finding, Request
from ocf.solve.fewest import stands_alone
from ocf.solve.halved import HalvedSolver, can_be_halved, gets_boxes
from ocf.solve.matrices import KeptMatrices, Matrices
from ocf.solve.method import AUTO, choose, other_solvers
from ocf.solve.outcome import Outcome, after_ties
from ocf.solve.prepared import PreparedModel
from ocf.solve.ties import same_cost, tied_points
from ocf.solvers import CellSolver, Solver
from ocf.solvers.result import SolverOptions, Status


class CellForms:
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
        self._alternatives = tuple(replace(cells, excluded=request.excluded) for cells in alternatives)
        self._request, self._prepared = request, prepared
        task = request.task
        self._way = request.way or choose(self._alternatives[0], task.formulation, task.solver, task.options.cuts)
        name = self._way.formulation
        if shared:
            self._matrices = prepared.matrices(name, self._alternatives)
        else:
            self._matrices = Matrices(name, self._alternatives, KeptMatrices())

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
            others=others if task.solver == AUTO else None,
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

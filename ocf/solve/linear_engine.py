"""Linear models: a score that is a sum over features."""

from __future__ import annotations

from functools import partial

from ocf.errors import SolverError
from ocf.problem.linear_problem import LinearProblem
from ocf.solve.engine import Engine, Finding, Request
from ocf.solve.method import AUTO, Way, other_linear_way
from ocf.solve.task import Task
from ocf.solvers import matrix_solver, other_matrix_solvers


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
        going_on = partial(other_matrix_solvers, way.solver) if task.solver == AUTO else None
        outcome = solve_linear(
            problem, matrix_solver(way.solver), task.options, request.judge, task.split_margin, going_on
        )
        method = task.method(way, outcome) | {"reduction": False}
        return Finding(problem, outcome, way, method, {})


def _solver_of(task: Task) -> str:
    """The solver that a linear model goes to."""
    return "highs" if task.solver == AUTO else task.solver

"""Models of which little is left to decide, by their linear relaxation or by a solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ocf.errors import MemoryLimitError, SolverError
from ocf.solvers import Solver, matrix_solver
from ocf.solvers.result import SolveResult, SolverOptions, Status
from ocf.solvers.standard_form import StandardForm


def solve_small(
    solver: Solver,
    form: StandardForm,
    options: SolverOptions,
    cutoff: float | None,
    interrupt: Callable[[], bool] | None,
) -> SolveResult:
    """What HiGHS says of the linear relaxation of a model, or a solver of the model where that leaves it open.

    Parameters
    ----------
    solver : Solver
    form : StandardForm
    options : SolverOptions
        The time limit is for both.
    cutoff : float or None
    interrupt : callable or None
        See `ocf.solvers.Solver.solve`.

    Returns
    -------
    SolveResult
        With the status ERROR also where a solver raises an error, or there is no memory for the model.
    """
    try:
        highs = matrix_solver("highs")
        first = highs.solve(form.relaxed(), options, cutoff=cutoff, interrupt=interrupt)
        left = None if options.time_limit is None else options.time_limit - first.seconds
        if first.status is Status.INFEASIBLE:
            return first
        if left is not None and left <= 0:
            return replace(first, status=Status.UNKNOWN, x=None, objective=None)
        result = solver.solve(form, replace(options, time_limit=left), cutoff=cutoff, interrupt=interrupt)
    except (SolverError, MemoryLimitError) as error:
        return SolveResult(Status.ERROR, solver=solver.name, version=solver.version, message=str(error))
    return replace(result, seconds=first.seconds + result.seconds)

"""Models of which little is left to decide, by their linear relaxation or by a solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np
import scipy.sparse as sp

from ocf.errors import MemoryLimitError, SolverError
from ocf.solvers import Solver, get_solver
from ocf.solvers.result import SolveResult, SolverOptions, Status
from ocf.solvers.standard_form import Reduced, StandardForm


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
        reduced = without_decided(form)
        highs = cast(Solver, get_solver("highs"))
        first = highs.solve(reduced.form.relaxed(), options, cutoff=cutoff, interrupt=interrupt)
        left = None if options.time_limit is None else options.time_limit - first.seconds
        if first.status is Status.INFEASIBLE:
            return first
        if left is not None and left <= 0:
            return replace(first, status=Status.UNKNOWN, x=None, objective=None)
        result = solver.solve(reduced.form, replace(options, time_limit=left), cutoff=cutoff, interrupt=interrupt)
    except (SolverError, MemoryLimitError) as error:
        return SolveResult(Status.ERROR, solver=solver.name, version=solver.version, message=str(error))
    x = None if result.x is None else reduced.restore(result.x)
    return replace(result, x=x, seconds=first.seconds + result.seconds)


def without_decided(form: StandardForm) -> Reduced:
    """A model without the columns that cannot move, and the rows that say nothing of the others.

    Parameters
    ----------
    form : StandardForm
    """
    free = np.flatnonzero(form.lower < form.upper)
    P = sp.csr_array((np.ones(len(free)), (free, np.arange(len(free)))), (form.n_cols, len(free)))
    reduced = form.substitute(P, np.where(form.lower < form.upper, 0.0, form.lower))
    return replace(reduced, form=reduced.form.tidy())

"""HiGHS for continuous problems that differ in sides and bounds: each starts where the last one ended.

Unlike the adapters this one gives the rows' multipliers, from which a caller can prove a bound by itself.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import highspy
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocf.errors import ProblemError
from ocf.solvers.adapter import Claim, SolverQuestion
from ocf.solvers.highs_api import (
    CLAIMS,
    ProgressListener,
    highs_version,
    pass_form,
    raw_options,
    run_and_free_threads,
    set_options,
)
from ocf.solvers.interrupt import run_interruptible
from ocf.solvers.result import SolverOptions
from ocf.solvers.scaling import costs_of, objective_scale, row_units, units_of
from ocf.solvers.standard_form import StandardForm

Vector = NDArray[np.float64]

#: Steps of HiGHS's method for quadratic programmes, and more of them for each row and column: with columns of 1e-3
#: beside others of 1e5 it may go round in a circle.
QP_STEPS, QP_STEPS_EACH = 1000, 10


@dataclass(frozen=True)
class Relaxed:
    """The answer to a continuous problem, as HiGHS gives it: nothing is checked.

    Attributes
    ----------
    claim : Claim
    x : (n_cols,) float array or None
    multipliers : (n_rows,) float array or None
        By how much the optimum rises when a row's upper side falls (positive) or its lower side rises (negative).
    seconds : float
    raw_status : str
    """

    claim: Claim
    x: Vector | None
    multipliers: Vector | None
    seconds: float
    raw_status: str


class WarmHighs:
    """A continuous problem, LP or convex QP, to be solved for several sides and bounds.

    Parameters
    ----------
    form : StandardForm
        Without integer columns.
    options : SolverOptions, optional
    """

    name = "highs"

    def __init__(self, form: StandardForm, options: SolverOptions | None = None) -> None:
        if form.integer.any():
            raise ProblemError("continuous problems have no integer columns")
        self.form = form
        self._options = options or SolverOptions()
        self._units, self._factors = units_of(form)
        self._scale = objective_scale(costs_of(form.in_units(self._units)))
        self._highs: Any = None

    @property
    def version(self) -> str:
        """Version of HiGHS."""
        return highs_version()

    def solve(
        self,
        row_upper: Vector | None = None,
        lower: Vector | None = None,
        upper: Vector | None = None,
        time_limit: float | None = None,
    ) -> Relaxed:
        """Solve with other upper sides or bounds; those of the form, or of the last call, where None.

        Parameters
        ----------
        row_upper : (n_rows,) float array, optional
        lower, upper : (n_cols,) float array, optional
        time_limit : float, optional
            Seconds.
        """
        form = self.form
        self.form = replace(
            form,
            row_upper=form.row_upper if row_upper is None else np.asarray(row_upper, float),
            lower=form.lower if lower is None else np.asarray(lower, float),
            upper=form.upper if upper is None else np.asarray(upper, float),
        )
        if self.form.contradicts_itself():
            return Relaxed(Claim.INFEASIBLE, None, None, 0.0, "settled without the solver")
        highs = self._prepared()
        if time_limit is not None:
            # HiGHS counts the seconds of all runs of an object
            highs.setOptionValue("time_limit", highs.getRunTime() + max(time_limit, 0.0))
        listener = ProgressListener(self._scale)
        listener.attach(highs)
        began = time.perf_counter()
        run_interruptible(lambda: run_and_free_threads(highs), listener.stop)
        seconds = time.perf_counter() - began
        listener.detach(highs)
        status = highs.getModelStatus()
        claim = CLAIMS.get(status.name, Claim.FAILED)
        if status.name == "kUnboundedOrInfeasible":
            claim = Claim.INFEASIBLE if not np.isinf(self.form.lower).any() else Claim.UNBOUNDED
        x = multipliers = None
        if claim is Claim.OPTIMAL:
            solution = highs.getSolution()
            x = self._units * np.array(solution.col_value)
            multipliers = -np.array(solution.row_dual) * self._factors / self._scale
        self._highs = highs
        return Relaxed(claim, x, multipliers, seconds, highs.modelStatusToString(status))

    def append_rows(self, A: Any, row_lower: ArrayLike, row_upper: ArrayLike) -> None:
        """Add rows below the present ones; the next solve starts where the last one ended all the same.

        Parameters
        ----------
        A, row_lower, row_upper
            As in `ocf.solvers.standard_form.StandardForm.append_rows`.
        """
        before = self.form.n_rows
        self.form = self.form.append_rows(A, row_lower, row_upper)
        self._factors = np.append(self._factors, row_units(self.form.in_units(self._units))[before:])
        if self._highs is not None:
            form = self.form.in_units(self._units, self._factors)
            added, lower, upper = form.A[before:], form.row_lower[before:], form.row_upper[before:]
            self._highs.addRows(len(lower), lower, upper, added.nnz, added.indptr[:-1], added.indices, added.data)

    def _prepared(self) -> Any:
        """The HiGHS object with the form as it is now; it keeps its basis when only sides and bounds changed."""
        highs = self._highs
        # taken out while it runs: after a Ctrl-C that HiGHS does not heed, the object must not be used again
        self._highs = None
        if highs is None:
            highs = highspy.Highs()
            question = SolverQuestion(self.form, self._options, None, False, None, self.form, self._units)
            raw = raw_options(question, self._scale)
            if self.form.Q is not None:
                raw = {"qp_iteration_limit": QP_STEPS + QP_STEPS_EACH * (self.form.n_rows + self.form.n_cols)} | raw
            set_options(highs, raw)
            pass_form(highs, self.form.in_units(self._units, self._factors), self._scale)
            return highs
        form = self.form
        rows, columns = np.arange(form.n_rows, dtype=np.int32), np.arange(form.n_cols, dtype=np.int32)
        if form.n_rows:
            lower, upper = form.row_lower * self._factors, form.row_upper * self._factors
            highs.changeRowsBounds(form.n_rows, rows, lower, upper)
        highs.changeColsBounds(form.n_cols, columns, form.lower / self._units, form.upper / self._units)
        return highs


#: A multiplier below this, relative to the largest, is noise of the solver.
NOISE = 1e-12


def cleaned(multipliers: Vector) -> Vector:
    """Multipliers of rows with upper sides only: the wrong sign and noise become 0."""
    size = float(np.abs(multipliers).max(initial=0.0))
    return np.where(multipliers > NOISE * size, multipliers, 0.0) if math.isfinite(size) else np.zeros_like(multipliers)

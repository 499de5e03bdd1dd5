"""Any solver of matrices for continuous problems that differ in sides and bounds, as `ocf.solvers.highs_warm` is one.

It starts anew each time and knows a point only: who needs multipliers finds them from that.
"""

from __future__ import annotations

from dataclasses import replace

from ocf.solvers.adapter import Claim
from ocf.solvers.highs_warm import Relaxed, Vector
from ocf.solvers.protocols import Solver
from ocf.solvers.result import SolveResult, SolverOptions, Status
from ocf.solvers.standard_form import StandardForm


class ColdSolver:
    """A continuous problem, LP or convex QP, to be solved for several sides and bounds.

    Parameters
    ----------
    form : StandardForm
        Without integer columns.
    solver : Solver
    options : SolverOptions, optional
    """

    def __init__(self, form: StandardForm, solver: Solver, options: SolverOptions | None = None) -> None:
        self.form, self.name = form, solver.name
        self.version = ""
        self._solver, self._options = solver, options or SolverOptions()

    def solve(self, row_upper: Vector, lower: Vector, upper: Vector, time_limit: float | None = None) -> Relaxed:
        """Solve with other upper sides and bounds.

        Parameters
        ----------
        row_upper : (n_rows,) float array
        lower, upper : (n_cols,) float array
        time_limit : float, optional
            Seconds.
        """
        form = replace(self.form, row_upper=row_upper, lower=lower, upper=upper)
        result = self._solver.solve(form, replace(self._options, time_limit=time_limit))
        self.version = result.version
        return Relaxed(_claim(result), result.x, None, result.seconds, result.raw_status)


def _claim(result: SolveResult) -> Claim:
    """What a result says of the search, within the solver's tolerances."""
    if result.status is Status.INFEASIBLE:
        return Claim.INFEASIBLE
    if result.ended:
        return Claim.OPTIMAL
    return Claim.FAILED if result.status is Status.ERROR else Claim.LIMIT

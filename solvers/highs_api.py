"""Calls of HiGHS: options, callbacks, models and hints."""

from __future__ import annotations

import math
import time
from difflib import get_close_matches
from functools import cache
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp
from highspy import HighsStatus, cb

from ocf.errors import SolverError
from ocf.solvers.adapter import Claim, SolverQuestion
from ocf.solvers.result import Progress
from ocf.solvers.standard_form import StandardForm

Event = cb.HighsCallbackType

#: By name, since not every version of HiGHS has all of them.
CLAIMS = {
    "kOptimal": Claim.OPTIMAL,
    "kInfeasible": Claim.INFEASIBLE,
    "kObjectiveBound": Claim.INFEASIBLE,
    "kUnbounded": Claim.UNBOUNDED,
    "kObjectiveTarget": Claim.LIMIT,
    "kTimeLimit": Claim.LIMIT,
    "kIterationLimit": Claim.LIMIT,
    "kSolutionLimit": Claim.LIMIT,
    "kMemoryLimit": Claim.LIMIT,
    "kInterrupt": Claim.LIMIT,
    "kHighsInterrupt": Claim.LIMIT,
    "kUnknown": Claim.LIMIT,
}


#: Where a point is known, and it is the proof that takes the time: no search for points, no cuts below the root, and
#: pseudo-costs from the start in the place of LPs that try branches out. See `raw_options`.
PROOF = {
    "mip_allow_cut_separation_at_nodes": False,
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_feasibility_jump": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_root_reduced_cost": False,
    "mip_pscost_minreliable": 0,
}


@cache
def highs_version() -> str:
    """Version of HiGHS."""
    return str(highspy.Highs().version())


class ProgressListener:
    """Listens to HiGHS while it runs: records progress, passes on the wish to stop.

    The callback is called from HiGHS's thread, so it must not raise: a failure here only costs the history.
    """

    #: kCallbackMipLogging only fires while HiGHS logs; the interrupt event carries the same numbers.
    MIP_EVENTS = (Event.kCallbackMipInterrupt, Event.kCallbackMipImprovingSolution)
    LP_EVENTS = (Event.kCallbackSimplexInterrupt, Event.kCallbackIpmInterrupt)

    def __init__(self, scale: float) -> None:
        self.records: list[Progress] = []
        self._scale = scale
        self._stop = False
        self._began = time.perf_counter()
        self._last = (-math.inf, math.inf)

    def stop(self) -> None:
        """Ask HiGHS to stop at its next event."""
        self._stop = True

    def attach(self, highs: Any) -> None:
        """Start listening."""
        highs.setCallback(self, None)
        for event in (*self.MIP_EVENTS, *self.LP_EVENTS):
            highs.startCallback(event)

    def detach(self, highs: Any) -> None:
        """Stop listening."""
        highs.setCallback(None, None)

    def __call__(self, event: Any, message: str, out: Any, into: Any, data: object) -> None:
        """Take an event of HiGHS."""
        if self._stop and into is not None:
            into.user_interrupt = True
        if Event(int(event)) not in self.MIP_EVENTS:
            return
        now = (out.mip_dual_bound / self._scale, out.mip_primal_bound / self._scale)
        if now != self._last:
            self._last = now
            self.records.append(Progress(time.perf_counter() - self._began, *now))


def raw_options(question: SolverQuestion, scale: float, over_cells: bool = False) -> dict[str, Any]:
    """Translate to HiGHS's own options; the user's raw ones come last.

    The tolerances stay at HiGHS's defaults. Tightened to 1e-9 it reported an optimum that was not one on 2 of 5 runs
    of a counterfactual problem of 4,500 columns (0.3210 and 0.3249 for 0.3199); at its defaults on none of 6. What the
    defaults let through, the exact cells and the user's model catch; the scaled objective keeps the proof exact.

    Restarts are off: on the reduced interval models of random forests of 100 trees of depth 5 (one thread, one run) the
    rows took, in seconds in all with and without restarts: breast cancer 55 and 34 (11 rows), students 22 and 12 (8),
    spambase 17 and 5 (6), credit_default 2.3 and 1.1 (6). Symmetry detection does not matter.

    On models over cells a cutoff is the cost of a point that a local search has found, mostly the cheapest. There
    heuristics of sub-problems, which run whatever the effort is, and trying branches out took most of the time. Seconds
    of the processor with and without (20 rows each, 11 of spambase): breast cancer 106 and 44, spambase 18.6 and 5.4,
    students 22.7 and 11.3, credit_default 2.3 and 1.5, german_credit 1.0 and 0.6. Cuts at the nodes took an eighth of
    what was left: breast cancer 25.9 and 22.3 (14 rows), students 7.5 and 6.6 (12), spambase 3.0 and 2.6 (6).

    Parameters
    ----------
    question : SolverQuestion
    scale : float
        By which the objective is multiplied.
    over_cells : bool
        Whether the form is a model over cells.
    """
    options = question.options
    raw: dict[str, Any] = {
        "output_flag": bool(options.log),
        "threads": int(options.threads),
        "random_seed": int(options.seed),
        "mip_rel_gap": float(options.mip_gap),
        "mip_abs_gap": 0.0,
        "mip_allow_restart": False,
    }
    if options.time_limit is not None:
        raw["time_limit"] = float(options.time_limit)
    if not options.presolve or has_wide_integers(question.form):
        raw["presolve"] = "off"
    if question.limit is not None and question.form.integer.any():
        raw["objective_bound"] = question.limit * scale
        if over_cells:
            known = highspy.HighsOptions()
            raw |= {name: value for name, value in PROOF.items() if hasattr(known, name)}
    return {**raw, **options.options}


def has_wide_integers(form: StandardForm) -> bool:
    """Whether an integer column can take more than two values."""
    return bool((form.upper - form.lower > 1)[form.integer].any())


def pass_form(highs: Any, form: StandardForm, scale: float) -> None:
    """Hand the arrays over, the objective scaled.

    Parameters
    ----------
    highs : highspy.Highs
    form : StandardForm
    scale : float
        By which the objective is multiplied.
    """
    status = highs.passModel(
        form.n_cols,
        form.n_rows,
        form.A.nnz,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        form.c0 * scale,
        form.c * scale,
        form.lower,
        form.upper,
        form.row_lower,
        form.row_upper,
        form.A.indptr,
        form.A.indices,
        form.A.data,
        form.integer.astype(np.int32),
    )
    if status == HighsStatus.kError:
        raise SolverError("HiGHS refuses the problem: are there costs or coefficients beyond 1e15?")
    if form.Q is not None:
        _pass_hessian(highs, form, scale)


def _pass_hessian(highs: Any, form: StandardForm, scale: float) -> None:
    """Hand over the lower triangle of Q by columns, which is the upper one by rows."""
    upper = sp.triu(form.Q, format="csr")
    hessian = highspy.HighsHessian()
    hessian.dim_, hessian.format_ = form.n_cols, highspy.HessianFormat.kTriangular
    hessian.start_, hessian.index_ = upper.indptr.astype(np.int32), upper.indices.astype(np.int32)
    hessian.value_ = upper.data * scale
    if highs.passHessian(hessian) == HighsStatus.kError:
        raise SolverError("HiGHS refuses the quadratic objective: is Q symmetric and positive semidefinite?")


def set_options(highs: Any, raw: dict[str, Any]) -> None:
    """Set options by name, from the defaults; refuse one that HiGHS does not take.

    Parameters
    ----------
    highs : highspy.Highs
    raw : mapping of str to object
        HiGHS's own names.
    """
    highs.resetOptions()
    highs.setOptionValue("output_flag", False)  # before an error message is printed
    for name, value in raw.items():
        if highs.setOptionValue(name, value) == HighsStatus.kError:
            raise SolverError(f"HiGHS does not take the option {name} = {value!r}{_hint(highs, name)}")


def _hint(highs: Any, name: str) -> str:
    known = [option for option in dir(highs.getOptions()) if not option.startswith("_")]
    if name in known:
        return ": the value is out of range or of another type"
    near = get_close_matches(name, known, n=1)
    return f": did you mean {near[0]!r}?" if near else ": there is no such option"


def run_and_free_threads(highs: Any) -> None:
    """Run, and give the threads of the scheduler back."""
    highs.run()
    highs.resetGlobalScheduler(False)

"""HiGHS: mixed-integer and linear problems, and convex quadratic ones without integers.

Traps that this file deals with (HiGHS 1.15):

- The default relative gap is 1e-4: both gaps are set to 0.
- Presolve tightens coefficients as if the bounds of integer columns were whole, also those that rows imply, and then
  reports wrong optima without a gap (its issues 3073, 3271, 3274): in one of 250 random problems with integers beyond
  0 and 1, none in 9000 where all were binary. Presolve is off for the former. Fractional bounds are rounded for all
  solvers (`ocf.solvers.base.ask`).
- Presolve also declares feasible problems infeasible, where some columns are binary and the others are so by
  implication (its issues 3090 and 3296): what presolve alone claims to be infeasible, or ends as a solve
  error, is solved again without it.
- Nodes within `mip_feasibility_tolerance` (absolute) of the incumbent are pruned: the tolerance is tightened and the
  objective scaled by a power of two.
- With an `objective_bound` below the optimum it may report "Optimal" with a point above that bound and a dual bound
  that is false: nothing it says above the cutoff is believed (`ocf.solvers.base.conclude`).
- The number of threads is fixed by the first solve of a thread: each solve runs in a thread of its own, and the
  scheduler goes with it.
- Python's Ctrl-C does not reach a running solve: it runs in a thread and looks at a flag.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import highspy
import numpy as np
import scipy.sparse as sp
from highspy import HighsModelStatus as ModelStatus
from highspy import HighsStatus, cb
from numpy.typing import ArrayLike

from ocf.errors import ProblemError, SolverError
from ocf.solvers.base import (
    Answer,
    Claim,
    Question,
    ask,
    conclude,
    costs_of,
    objective_scale,
    run_interruptible,
    settle,
    with_remedies,
)
from ocf.solvers.result import Progress, SolveResult, SolverOptions
from ocf.solvers.standard_form import StandardForm

if TYPE_CHECKING:
    from ocf.cells import CellProblem

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

#: Where a solve errs, or its point violates the problem: without presolve, whose way back may lose digits, and then
#: with tighter tolerances.
REMEDIES = (
    {"presolve": "off"},
    {
        "presolve": "off",
        "mip_feasibility_tolerance": 1e-9,
        "primal_feasibility_tolerance": 1e-9,
        "dual_feasibility_tolerance": 1e-9,
    },
)

_FEASIBLE_POINT = 2  # SolutionStatus::kSolutionStatusFeasible


class HighsSolver:
    """Adapter of HiGHS. Keeps one HiGHS object for all its solves; see `ocf.solvers.base.Solver`."""

    name = "highs"

    def __init__(self) -> None:
        self._highs: Any = None

    @property
    def version(self) -> str:
        """Version of HiGHS."""
        return _version()

    def refuses(self, cells: CellProblem) -> str:
        """Nothing: what a problem says is in its matrix."""
        return ""

    def solve(
        self,
        form: StandardForm,
        options: SolverOptions | None = None,
        warm_start: ArrayLike | None = None,
        cutoff: float | None = None,
        interrupt: Callable[[], bool] | None = None,
    ) -> SolveResult:
        """Solve a form; see `ocf.solvers.base.Solver.solve`."""
        if form.Q is not None and form.integer.any():
            raise SolverError("HiGHS does not solve quadratic objectives with integers: use solver='scip'")

        def once(options: SolverOptions) -> SolveResult:
            question = ask(form, options, warm_start, cutoff)
            scale = objective_scale(costs_of(form), question.reference)
            raw = raw_options(question, scale)
            answer = settle(question.form) or self._run(question, scale, raw, interrupt)
            return conclude(question, answer, self.name, self.version, raw)

        return with_remedies(once, options or SolverOptions(), REMEDIES)

    def solve_relaxation(self, form: StandardForm, options: SolverOptions | None = None) -> SolveResult:
        """Solve the form without integrality; the result's bound is the LP bound."""
        return self.solve(replace(form, integer=np.zeros(form.n_cols, dtype=bool)), options)

    def _run(
        self, question: Question, scale: float, raw: dict[str, Any], interrupt: Callable[[], bool] | None
    ) -> Answer:
        form = question.form
        # Taken out of self while it runs: after a Ctrl-C that HiGHS does not heed, the object must not be used again.
        highs, self._highs = self._highs or highspy.Highs(), None
        _set_options(highs, raw)
        _pass_form(highs, form, scale)
        if question.start is not None:
            columns = np.arange(form.n_cols, dtype=np.int32)
            highs.setSolution(form.n_cols, columns, question.start)

        watch = _Watch(scale)
        watch.attach(highs)
        began = time.perf_counter()
        run_interruptible(lambda: _run_and_free_threads(highs), watch.stop, interrupt)
        seconds = time.perf_counter() - began
        watch.detach(highs)

        answer = _read(highs, form, scale, seconds, watch.records)
        status = highs.getModelStatus()
        self._highs = highs
        if status == ModelStatus.kUnboundedOrInfeasible:
            return self._unbounded_or_infeasible(question, answer, raw, interrupt)
        # after presolve alone claims infeasibility, or its postsolve spoils the point
        by_presolve = status == ModelStatus.kSolveError or (status == ModelStatus.kInfeasible and answer.nodes == 0)
        if by_presolve and form.integer.any() and raw.get("presolve") != "off":
            return self._without_presolve(question, scale, answer, raw, interrupt)
        return answer

    def _without_presolve(
        self,
        question: Question,
        scale: float,
        answer: Answer,
        raw: dict[str, Any],
        interrupt: Callable[[], bool] | None,
    ) -> Answer:
        """Ask again, for the rest of the time."""
        raw = {**raw, "presolve": "off"}
        if "time_limit" in raw:
            raw["time_limit"] = max(raw["time_limit"] - answer.seconds, 0.0)
        again = self._run(question, scale, raw, interrupt)
        later = [p._replace(seconds=p.seconds + answer.seconds) for p in again.records]
        return replace(again, seconds=again.seconds + answer.seconds, records=later)

    def _unbounded_or_infeasible(
        self, question: Question, answer: Answer, raw: dict[str, Any], interrupt: Callable[[], bool] | None
    ) -> Answer:
        """Tell the two apart: without costs nothing is unbounded."""
        flat = replace(question, form=question.form.with_costs(np.zeros(question.form.n_cols)))
        without_costs = {k: v for k, v in raw.items() if k != "objective_bound"}
        claim = self._run(flat, 1.0, without_costs, interrupt).claim
        claim = Claim.UNBOUNDED if claim is Claim.OPTIMAL else claim
        return replace(answer, claim=claim, x=None, bound=-math.inf)


@cache
def _version() -> str:
    return str(highspy.Highs().version())


class _Watch:
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
        self._stop = True

    def attach(self, highs: Any) -> None:
        highs.setCallback(self, None)
        for event in (*self.MIP_EVENTS, *self.LP_EVENTS):
            highs.startCallback(event)

    def detach(self, highs: Any) -> None:
        highs.setCallback(None, None)

    def __call__(self, event: Any, message: str, out: Any, into: Any, data: object) -> None:
        if self._stop and into is not None:
            into.user_interrupt = True
        if Event(int(event)) not in self.MIP_EVENTS:
            return
        now = (out.mip_dual_bound / self._scale, out.mip_primal_bound / self._scale)
        if now != self._last:
            self._last = now
            self.records.append(Progress(time.perf_counter() - self._began, *now))


def raw_options(question: Question, scale: float) -> dict[str, Any]:
    """Translate to HiGHS's own options; the user's raw ones come last.

    The tolerances stay at HiGHS's defaults. Tightened to 1e-9 it reported an optimum that was not one on 2 of 5 runs
    of a counterfactual problem of 4,500 columns (0.3210 and 0.3249 for 0.3199); at its defaults on none of 6. What the
    defaults let through, the exact cells and the user's model catch; the scaled objective keeps the proof exact.

    Restarts are off: on the reduced interval models of random forests of 100 trees of depth 5 (one thread, one run) the
    rows took, in seconds in all with and without restarts: breast cancer 55 and 34 (11 rows), students 22 and 12 (8),
    spambase 17 and 5 (6), credit_default 2.3 and 1.1 (6). More or less heuristic effort, no symmetry detection and no
    cuts below the root changed less.
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
    if _has_wide_integers(question.form):
        raw["presolve"] = "off"
    if question.limit is not None and question.form.integer.any():
        raw["objective_bound"] = question.limit * scale
    return {**raw, **options.options}


def _has_wide_integers(form: StandardForm) -> bool:
    """Whether an integer column can take more than two values."""
    return bool((form.upper - form.lower > 1)[form.integer].any())


def write_model(form: StandardForm, path: Path) -> None:
    """Write a form to an ``.mps`` or ``.lp`` file; see `StandardForm.write`."""
    if path.suffix not in (".mps", ".lp"):
        raise ProblemError(f"cannot write {path.name!r}: the name must end in .mps or .lp")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    _pass_form(highs, form, 1.0)
    for names, pass_name in ((form.column_names, highs.passColName), (form.row_names, highs.passRowName)):
        for i, name in enumerate(_safe_names(names or (), path.suffix)):
            pass_name(i, name)
    if highs.writeModel(str(path)) == HighsStatus.kError:
        raise SolverError(f"HiGHS could not write {str(path)!r}: does the folder exist?")


def _safe_names(names: tuple[str, ...], suffix: str) -> list[str]:
    """Replace what a format reads as syntax, and number the names that this makes equal."""
    forbidden = r"\s" if suffix == ".mps" else r"[^A-Za-z0-9_.(),]"
    out: dict[str, None] = {}
    for name in names:
        safe = re.sub(forbidden, "_", name)
        candidate, n = safe, 1
        while candidate in out:
            n += 1
            candidate = f"{safe}_{n}"
        out[candidate] = None
    return list(out)


def _pass_form(highs: Any, form: StandardForm, scale: float) -> None:
    """Hand the arrays over, the objective scaled."""
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


def _set_options(highs: Any, raw: dict[str, Any]) -> None:
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


def _run_and_free_threads(highs: Any) -> None:
    highs.run()
    highs.resetGlobalScheduler(False)


def _read(highs: Any, form: StandardForm, scale: float, seconds: float, records: list[Progress]) -> Answer:
    """Read status, point and bound, and undo the scaling."""
    info, status = highs.getInfo(), highs.getModelStatus()
    claim = CLAIMS.get(status.name, Claim.FAILED)
    x = None
    if info.primal_solution_status == _FEASIBLE_POINT and claim in (Claim.OPTIMAL, Claim.LIMIT):
        x = np.array(highs.getSolution().col_value)
    if form.integer.any():
        bound, nodes = info.mip_dual_bound / scale, max(int(info.mip_node_count), 0)
    else:  # the dual bound of an LP is its optimum; before that HiGHS tells none
        bound, nodes = (info.objective_function_value / scale if claim is Claim.OPTIMAL else -math.inf), 0
    if claim is Claim.INFEASIBLE:
        bound = math.nan  # HiGHS says -inf or 0; what it proved is for the verdict to say
    return Answer(claim, x, bound, highs.modelStatusToString(status), seconds, nodes, records)

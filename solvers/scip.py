"""SCIP: mixed-integer and linear problems, and mixed-integer ones with a convex quadratic objective, by PySCIPOpt.

SCIP solves on one thread; `SolverOptions.threads` is accepted and has no effect.

Separation is off by default. On the tight interval formulation the relaxation is already close to the hull, and SCIP
without cutting planes was measured 2 to 4 times faster than with them. To have them back, pass
``options={"separating/maxrounds": -1, "separating/maxroundsroot": -1}``. Measured on the reduced interval models of
random forests of 100 trees of depth 5, in seconds in all without, with, and with five rounds at the root: breast cancer
26, 64, 39 (11 rows), students 9, 27, 11 (8), spambase 2.9, 25, 8.6 (6), credit_default 0.4, 3.4, 0.8 (6).

Dual reductions are off: SCIP 10.0 was caught cutting off optima of OCEAN's model by the dual presolving of linear
constraints, and by others where that was off (``tests/oracle``, "scip_dual_presolving", "scip_dual_reductions").

Presolving loses points that a row leaves 1e-9 of room (``tests/oracle``, "scip_presolve_side"): models of hyperplanes
ask for none. They take less time so: forests of 20, 30 and 50 trees behind a PCA of breast cancer, four rows each, 6.0,
19.0 and 24.3 s of the processor with presolving, and 4.5, 17.7 and 21.4 without.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyscipopt
import scipy.sparse as sp
from numpy.typing import ArrayLike
from pyscipopt import SCIP_EVENTTYPE, SCIP_PARAMSETTING, Eventhdlr, Expr, Model
from pyscipopt.scip import ExprCons, Term

from ocf.errors import SolverError
from ocf.solvers.adapter import Claim, RawAnswer, SolverQuestion, StallWatch, ask, conclude, settle, solve_by
from ocf.solvers.interrupt import run_interruptible
from ocf.solvers.result import Progress, SolveResult, SolverOptions
from ocf.solvers.scaling import costs_of, objective_scale
from ocf.solvers.scip_branching import PRIORITY, CellBranching
from ocf.solvers.standard_form import StandardForm

if TYPE_CHECKING:
    from ocf.cells.cell_problem import CellProblem
    from ocf.solvers.cell_form import CellModel

logger = logging.getLogger(__name__)

#: Primal and dual feasibility tolerance.
TOLERANCE = 1e-9

#: Where a solve errs: SCIP's own tolerances, since its LP solver may fail with tight ones, and then no presolving.
REMEDIES = (
    {"numerics/feastol": 1e-6, "numerics/dualfeastol": 1e-7},
    {"numerics/feastol": 1e-6, "numerics/dualfeastol": 1e-7, "presolving/maxrounds": 0},
)

#: What SCIP itself takes for infinite.
INFINITY = 1e20

CLAIMS = {
    "optimal": Claim.OPTIMAL,
    "gaplimit": Claim.OPTIMAL,
    "infeasible": Claim.INFEASIBLE,
    "unbounded": Claim.UNBOUNDED,
    "timelimit": Claim.LIMIT,
    "userinterrupt": Claim.LIMIT,
    "terminate": Claim.LIMIT,
    "nodelimit": Claim.LIMIT,
    "totalnodelimit": Claim.LIMIT,
    "stallnodelimit": Claim.LIMIT,
    "memlimit": Claim.LIMIT,
    "sollimit": Claim.LIMIT,
    "bestsollimit": Claim.LIMIT,
    "restartlimit": Claim.LIMIT,
    "primallimit": Claim.LIMIT,
    "duallimit": Claim.LIMIT,
}


class ScipSolver:
    """Adapter of SCIP; see `ocf.solvers.protocols.Solver`."""

    name = "scip"

    @property
    def version(self) -> str:
        """Version of SCIP."""
        return _version()

    def refuses(self, cells: CellProblem) -> str:
        """Nothing: what a problem says is in its matrix."""
        return ""

    def check_options(self, raw: Mapping[str, Any]) -> None:
        """Refuse raw options that SCIP does not take.

        Parameters
        ----------
        raw : mapping of str to object
            SCIP's own names.
        """
        _set_options(Model(), dict(raw), log=False)

    def solve(
        self,
        form: StandardForm,
        options: SolverOptions | None = None,
        warm_start: ArrayLike | None = None,
        cutoff: float | None = None,
        interrupt: Callable[[], bool] | None = None,
        over: CellModel | None = None,
    ) -> SolveResult:
        """Solve a form; see `ocf.solvers.protocols.Solver.solve`.

        Parameters
        ----------
        form, options, warm_start, cutoff, interrupt, over
            See `ocf.solvers.protocols.Solver.solve`.
        """

        def once(start: ArrayLike | None, options: SolverOptions) -> SolveResult:
            question = ask(form, options, start, cutoff)
            scale = objective_scale(costs_of(question.form), question.reference)
            raw = raw_options(question.options, quadratic=form.Q is not None)
            answer = settle(question.form) or self._run(question, scale, raw, interrupt, over)
            return conclude(question, answer, self.name, self.version, raw)

        return solve_by(once, REMEDIES, form, options, warm_start, cutoff)

    def solve_relaxation(self, form: StandardForm, options: SolverOptions | None = None) -> SolveResult:
        """Solve the form without integrality; the result's bound is the LP bound.

        Parameters
        ----------
        form : StandardForm
        options : SolverOptions, optional
        """
        return self.solve(form.relaxed(), options)

    def _run(
        self,
        question: SolverQuestion,
        scale: float,
        raw: dict[str, Any],
        interrupt: Callable[[], bool] | None,
        over: CellModel | None = None,
    ) -> RawAnswer:
        model, variables = build_model(question.form, scale, question.reference)
        with _freed(model) as at_work:
            _prepare(model, variables, question, scale, raw, over)
            history = _History(scale)
            model.includeEventhdlr(history, "history", "bound and incumbent over time")

            began = time.perf_counter()
            failure: list[str] = []

            def optimise() -> None:
                try:
                    with at_work:
                        model.optimizeNogil()
                except Exception as error:  # PySCIPOpt raises bare ones, such as "SCIP: error in LP solver!"
                    failure.append(str(error))

            watch = StallWatch(question, history.records, interrupt)
            run_interruptible(optimise, model.interruptSolve, watch)
            if failure:
                return RawAnswer(Claim.FAILED, None, -math.inf, failure[0], time.perf_counter() - began)
            answer = _read(model, variables, scale, time.perf_counter() - began, history.records)
        answer = replace(answer, stalled=watch.stalled)
        if answer.raw_status == "inforunbd":
            return self._unbounded_or_infeasible(question, answer, raw, interrupt)
        return answer

    def _unbounded_or_infeasible(
        self, question: SolverQuestion, answer: RawAnswer, raw: dict[str, Any], interrupt: Callable[[], bool] | None
    ) -> RawAnswer:
        """Tell the two apart: without costs nothing is unbounded."""
        form = question.form.with_costs(np.zeros(question.form.n_cols))
        claim = self._run(replace(question, form=form, cutoff=None), 1.0, raw, interrupt).claim
        claim = Claim.UNBOUNDED if claim is Claim.OPTIMAL else claim
        return replace(answer, claim=claim, x=None, bound=-math.inf)


@cache
def _version() -> str:
    return f"{Model().version()} (PySCIPOpt {pyscipopt.__version__})"


class _History(Eventhdlr):
    """Records bound and incumbent whenever one of them moves."""

    EVENTS = SCIP_EVENTTYPE.BESTSOLFOUND | SCIP_EVENTTYPE.DUALBOUNDIMPROVED

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.records: list[Progress] = []
        self._scale = scale
        self._began = time.perf_counter()

    def eventinit(self) -> None:
        self.model.catchEvent(self.EVENTS, self)

    def eventexit(self) -> None:
        self.model.dropEvent(self.EVENTS, self)

    def eventexec(self, event: Any) -> None:
        # Called from inside SCIP, where an exception ends the process: losing a record is the lesser evil.
        try:
            bound = _unscale(self.model.getDualbound(), self._scale)
            incumbent = _unscale(self.model.getPrimalbound(), self._scale)
        except Exception:
            logger.debug("no record of SCIP's progress", exc_info=True)
            return
        self.records.append(Progress(time.perf_counter() - self._began, bound, incumbent))


def raw_options(options: SolverOptions, *, quadratic: bool = False) -> dict[str, Any]:
    """Translate to SCIP's own parameters; the user's raw ones come last.

    Quadratic objectives are met by tangents: there SCIP keeps its own tolerances and its cuts, since tangents that
    differ by 1e-9 break its LP solver.

    Parameters
    ----------
    options : SolverOptions
    quadratic : bool
        Whether the objective is.
    """
    raw: dict[str, Any] = {
        "limits/gap": float(options.mip_gap),
        "limits/absgap": 0.0,
        "randomization/randomseedshift": int(options.seed),
        "numerics/feastol": TOLERANCE,
        "numerics/dualfeastol": TOLERANCE,
        "separating/maxrounds": 0,
        "separating/maxroundsroot": 0,
        "constraints/linear/dualpresolving": False,
        "misc/allowweakdualreds": False,
        "misc/allowstrongdualreds": False,
        "lp/threads": 1,
        # SCIP would swallow Ctrl-C and carry on returning a result.
        "misc/catchctrlc": False,
    }
    if quadratic:
        for name in ("numerics/feastol", "numerics/dualfeastol", "separating/maxrounds", "separating/maxroundsroot"):
            del raw[name]
        # tangents alone solve convex problems; Ipopt, which SCIP would call for a good point, can crash in a thread
        raw["nlp/disable"] = True
    if not options.presolve:
        raw["presolving/maxrounds"] = 0
    if not options.strong_branching:
        # trying branches out took most of the time. Seconds with pseudo-costs alone and without: 100 trees of depth 5,
        # interval, breast cancer 13 and 20 (3 rows), students 5 and 9 (8); without the reduction OCEAN's model of
        # students 15 and 27 (3), FCCA's of adult 21 and 33 (3); behind a PCA of breast cancer 2.0 and 6.3 (30 trees, 4)
        raw["branching/pscost/priority"] = 100_000
    if options.time_limit is not None:
        raw["limits/time"] = float(options.time_limit)
    return {**raw, **options.options}


def build_model(form: StandardForm, scale: float = 1.0, size: float | None = None) -> tuple[Model, list[Any]]:
    """Build a SCIP model of a form.

    Parameters
    ----------
    form : StandardForm
    scale : float
        The objective is multiplied by it.
    size : float, optional
        A cost of the size of the optimum, in whose units squares count.

    Returns
    -------
    tuple of Model and list of Variable
        The model and its variables in the order of the columns.
    """
    model = Model()
    binary = form.integer & (form.lower >= 0) & (form.upper <= 1)
    kinds = np.where(binary, "B", np.where(form.integer, "I", "C")).tolist()
    columns = zip(kinds, form.lower.tolist(), form.upper.tolist(), (form.c * scale).tolist(), strict=True)
    variables = [
        model.addVar(vtype=kind, lb=_open(lower), ub=_open(upper), obj=cost) for kind, lower, upper, cost in columns
    ]
    model.addObjoffset(form.c0 * scale)
    if form.Q is not None:
        _add_quadratic(model, variables, form.Q, scale, size)

    # An expression made of terms straight away: summing products of variables is ten times slower.
    terms = [Term(variable) for variable in variables]
    starts, indices, data = form.A.indptr.tolist(), form.A.indices.tolist(), form.A.data.tolist()
    sides = zip(form.row_lower.tolist(), form.row_upper.tolist(), strict=True)
    for i, (lower, upper) in enumerate(sides):
        row = slice(starts[i], starts[i + 1])
        if row.start == row.stop or (_open(lower) is None and _open(upper) is None):
            continue
        body = Expr(dict(zip([terms[j] for j in indices[row]], data[row], strict=True)))
        model.addCons(ExprCons(body, _open(lower), _open(upper)), name=str(i))
    return model, variables


@contextmanager
def _freed(model: Model) -> Iterator[threading.Lock]:
    """Free a model in the end, unless the lock says that SCIP is at work on it still.

    PySCIPOpt's models and their plugins hold each other. Left to the garbage collector, they would keep their memory,
    and SCIP would call them in the middle of whatever runs then, be it at the limit of recursion.
    """
    at_work = threading.Lock()
    try:
        yield at_work
    finally:
        if at_work.acquire(blocking=False):
            model.free()


def _prepare(
    model: Model,
    variables: list[Any],
    question: SolverQuestion,
    scale: float,
    raw: dict[str, Any],
    over: CellModel | None,
) -> None:
    """Tell a model what bears on the search: branching, parameters, a limit of the objective, a point to start from."""
    if over is not None and question.limit is not None and CellBranching.fits(over):
        _branch_on_cells(model, CellBranching(over, variables, scale))
    _set_options(model, raw, question.options.log)
    if question.limit is not None:
        model.setObjlimit(question.limit * scale)
    if question.start is not None:
        _add_start(model, variables, question.start)


def _branch_on_cells(model: Model, rule: CellBranching) -> None:
    """Branch on cells, of the columns and rows as they are; the points that heuristics would look for are known."""
    model.setPresolve(SCIP_PARAMSETTING.OFF)
    model.setHeuristics(SCIP_PARAMSETTING.OFF)
    model.includeBranchrule(rule, "cells", "cuts of features", PRIORITY, -1, 1.0)


def _add_quadratic(model: Model, variables: list[Any], Q: Any, scale: float, size: float | None) -> None:
    """Add ``x'Qx / 2`` to the objective by variables above it, for SCIP's own objective is linear.

    Squares of single columns have one each, which tangents meet far sooner than their sum.
    """
    # in units in which the optimum is about 1, or of the largest coefficient, so that tolerances mean the same
    size = size if size and size > 0 else float(np.abs(Q.data).max(initial=0.0)) or 1.0
    Q, scale = Q / size, scale * size
    upper = sp.triu(Q, format="coo")
    entries = list(zip(upper.row.tolist(), upper.col.tolist(), upper.data.tolist(), strict=True))
    separate = (upper.row == upper.col).all()
    for own in [[entry] for entry in entries] if separate else [entries]:
        above = model.addVar(vtype="C", lb=0.0, obj=scale)
        terms = {Term(variables[i], variables[j]): value / 2 if i == j else value for i, j, value in own}
        model.addCons(ExprCons(Expr(terms | {Term(above): -1.0}), None, 0.0))


def _open(side: float) -> float | None:
    """None, PySCIPOpt's word for infinite."""
    return None if abs(side) >= INFINITY else side


def _unscale(value: float, scale: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= INFINITY else value / scale


def _set_options(model: Model, raw: dict[str, Any], log: bool) -> None:
    model.hideOutput(not log)
    for name, value in raw.items():
        try:
            model.setParam(name, value)
        except (ValueError, TypeError, KeyError, OSError, OverflowError) as error:
            known = model.getParams()  # thousands: read only where it says what is wrong
            if name in known:
                raise SolverError(f"SCIP does not take the option {name} = {value!r}: {error}") from error
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "there is no such parameter"
            raise SolverError(f"SCIP does not know the option {name!r}: {hint}") from None


def _add_start(model: Model, variables: list[Any], start: Any) -> None:
    solution = model.createSol()
    for variable, value in zip(variables, start.tolist(), strict=True):
        model.setSolVal(solution, variable, value)
    model.addSol(solution)


def _read(model: Model, variables: list[Any], scale: float, seconds: float, records: list[Progress]) -> RawAnswer:
    """Read status, point and bound, and undo the scaling."""
    status = str(model.getStatus())
    claim = CLAIMS.get(status, Claim.FAILED)
    x = None
    if claim in (Claim.OPTIMAL, Claim.LIMIT) and model.getNSols() > 0:
        best = model.getBestSol()
        x = np.array([model.getSolVal(best, variable) for variable in variables], dtype=float)
    bound = math.nan if claim is Claim.INFEASIBLE else _unscale(model.getDualbound(), scale)
    # a copy: SCIP may report while it is freed, too
    return RawAnswer(claim, x, bound, status, seconds, int(model.getNTotalNodes()), list(records))

"""HiGHS: mixed-integer and linear problems, and convex quadratic ones without integers.

Traps that this file deals with (HiGHS 1.15):

- The default relative gap is 1e-4: both gaps are set to 0.
- Presolve tightens coefficients as if the bounds of integer columns were whole, also those that rows imply, and then
  reports wrong optima without a gap (its issues 3073, 3271, 3274): in one of 250 random problems with integers beyond
  0 and 1, none in 9000 where all were binary. Presolve is off for the former. Fractional bounds are rounded for all
  solvers (`ocf.solvers.adapter.ask`).
- Presolve also declares feasible problems infeasible, and points optimal that are not, where some columns are binary
  and the others are so by implication (its issues 3090 and 3296), or numbers that rows tie within 1e-6: what presolve
  alone claims to be infeasible, or optimal where some columns are continuous, or ends as a solve error, is solved again
  without it. (Without presolve digits are lost, so an optimum stands where none is cheaper.) Without integers it loses
  points within 1e-7 of a row's side: `0.1 a - 0.1 b + 0.1 c - 0.1 d <= -2e-8`, at least cost, is "infeasible". So it
  does of binary columns alone, and calls the next best optimal: models of hyperplanes ask for no presolve. Without it
  numbers of 1e12 are "infeasible": there presolve has to say so, too.
- Where a node's LP has a point that is whole and beyond a row's side by less than the tolerances, what is left of the
  node may be lost, and a point that is a quarter dearer called optimal: what few nodes end with, without presolve, is
  asked again with a tighter tolerance, and stands where nothing cheaper is found.
- Nodes within `mip_feasibility_tolerance` (absolute) of the incumbent are pruned: the tolerance is tightened and the
  objective scaled by a power of two.
- With an `objective_bound` below the optimum it may report "Optimal" with a point above that bound and a dual bound
  that is false: nothing it says above the cutoff is believed (`ocf.solvers.adapter.conclude`).
- The number of threads is fixed by the first solve of a thread: each solve runs in a thread of its own, and the
  scheduler goes with it.
- Python's Ctrl-C does not reach a running solve: it runs in a thread and looks at a flag.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import highspy
import numpy as np
from highspy import HighsModelStatus as ModelStatus
from numpy.typing import ArrayLike

from ocf.errors import SolverError
from ocf.solvers.adapter import Claim, RawAnswer, SolverQuestion, StallWatch, ask, conclude, settle, solve_by
from ocf.solvers.highs_api import (
    CLAIMS,
    ProgressListener,
    has_wide_integers,
    highs_version,
    pass_form,
    raw_options,
    run_and_free_threads,
    set_options,
)
from ocf.solvers.interrupt import run_interruptible
from ocf.solvers.result import Progress, SolveResult, SolverOptions
from ocf.solvers.scaling import costs_of, objective_scale
from ocf.solvers.standard_form import StandardForm

if TYPE_CHECKING:
    from ocf.cells.cell_problem import CellProblem
    from ocf.solvers.cell_form import CellModel


#: The tolerance within which a column is whole, and what it is at a second opinion.
TIGHT, TIGHTER = "mip_feasibility_tolerance", 1e-9

#: Nodes of a problem with integers beyond 0 and 1 that are gone through twice, to be sure.
FEW_NODES = 1_000

#: Where a solve errs, or its point violates the problem: without presolve, whose way back may lose digits, and then
#: with tighter tolerances.
REMEDIES = (
    {"presolve": "off"},
    {
        "presolve": "off",
        TIGHT: TIGHTER,
        "primal_feasibility_tolerance": 1e-9,
        "dual_feasibility_tolerance": 1e-9,
    },
)

#: Part of an optimum by which another one is cheaper, and not less exact.
DIGITS = 1e-9

_FEASIBLE_POINT = 2  # SolutionStatus::kSolutionStatusFeasible


class HighsSolver:
    """Adapter of HiGHS. Keeps one HiGHS object for all its solves; see `ocf.solvers.protocols.Solver`."""

    name = "highs"

    def __init__(self) -> None:
        self._highs: Any = None

    @property
    def version(self) -> str:
        """Version of HiGHS."""
        return highs_version()

    def refuses(self, cells: CellProblem) -> str:
        """Nothing: what a problem says is in its matrix."""
        return ""

    def check_options(self, raw: Mapping[str, Any]) -> None:
        """Refuse raw options that HiGHS does not take.

        Parameters
        ----------
        raw : mapping of str to object
            HiGHS's own names.
        """
        set_options(highspy.Highs(), dict(raw))

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
        if form.Q is not None and form.integer.any():
            raise SolverError("HiGHS does not solve quadratic objectives with integers: use solver='scip'")

        def once(start: ArrayLike | None, options: SolverOptions) -> SolveResult:
            question = ask(form, options, start, cutoff)
            scale = objective_scale(costs_of(question.form), question.reference)
            raw = raw_options(question, scale, over is not None)
            answer = settle(question.form) or self._run(question, scale, raw, interrupt)
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
        *,
        doubting: bool = True,
    ) -> RawAnswer:
        form = question.form
        # Taken out of self while it runs: after a Ctrl-C that HiGHS does not heed, the object must not be used again.
        highs, self._highs = self._highs or highspy.Highs(), None
        set_options(highs, raw)
        pass_form(highs, form, scale)
        if question.start is not None:
            columns = np.arange(form.n_cols, dtype=np.int32)
            highs.setSolution(form.n_cols, columns, question.start)

        listener = ProgressListener(scale)
        listener.attach(highs)
        began = time.perf_counter()
        watch = StallWatch(question, listener.records, interrupt)
        run_interruptible(lambda: run_and_free_threads(highs), listener.stop, watch)
        seconds = time.perf_counter() - began
        listener.detach(highs)

        answer = replace(_read(highs, form, scale, seconds, listener.records), stalled=watch.stalled)
        status = highs.getModelStatus()
        self._highs = highs
        if status == ModelStatus.kUnboundedOrInfeasible:
            return self._unbounded_or_infeasible(question, answer, raw, interrupt)
        other = _second_opinion(question, status, answer.nodes, raw) if doubting else {}
        return self._again(question, scale, answer, {**raw, **other}, interrupt) if other else answer

    def _again(
        self,
        question: SolverQuestion,
        scale: float,
        answer: RawAnswer,
        raw: dict[str, Any],
        interrupt: Callable[[], bool] | None,
    ) -> RawAnswer:
        """Ask a second time, for the rest of the time."""
        if "time_limit" in raw:
            raw["time_limit"] = max(raw["time_limit"] - answer.seconds, 0.0)
        again = self._run(question, scale, raw, interrupt, doubting=False)
        if _keeps(question.form, answer, again):
            return replace(answer, seconds=answer.seconds + again.seconds)
        later = [p._replace(seconds=p.seconds + answer.seconds) for p in again.records]
        return replace(again, seconds=again.seconds + answer.seconds, records=later)

    def _unbounded_or_infeasible(
        self, question: SolverQuestion, answer: RawAnswer, raw: dict[str, Any], interrupt: Callable[[], bool] | None
    ) -> RawAnswer:
        """Tell the two apart: without costs nothing is unbounded."""
        flat = replace(question, form=question.form.with_costs(np.zeros(question.form.n_cols)))
        without_costs = {k: v for k, v in raw.items() if k != "objective_bound"}
        again = self._run(flat, 1.0, without_costs, interrupt)
        claim = Claim.UNBOUNDED if again.claim is Claim.OPTIMAL else again.claim
        return replace(answer, claim=claim, x=None, bound=-math.inf, seconds=answer.seconds + again.seconds)


def _keeps(form: StandardForm, answer: RawAnswer, again: RawAnswer) -> bool:
    """Whether the first optimum stands, of more digits with presolve: the second is no cheaper, or there is none."""
    if answer.x is None or answer.claim is not Claim.OPTIMAL:
        return False
    if again.x is None or again.claim is not Claim.OPTIMAL:
        return again.claim is Claim.INFEASIBLE  # the point speaks against that
    cost, other = form.objective(answer.x), form.objective(again.x)
    return cost <= other + DIGITS * abs(other)


def _second_opinion(
    question: SolverQuestion, status: ModelStatus, nodes: int, raw: Mapping[str, Any]
) -> dict[str, Any]:
    """What is set otherwise for a second opinion on what is said after so many nodes; nothing where it is believed."""
    form, options = question.form, question.options
    wide, at_root = has_wide_integers(form), status == ModelStatus.kSolveError or nodes == 0
    if raw.get("presolve") != "off":
        return {"presolve": "off"} if at_root and status in _doubted(form, wide) else {}
    chosen = options.presolve or "presolve" in options.options
    if status == ModelStatus.kInfeasible and at_root and not (wide or chosen):
        return {"presolve": "choose"}
    ended = status in (ModelStatus.kOptimal, ModelStatus.kInfeasible) and TIGHT not in options.options
    few = (wide and nodes <= FEW_NODES) or (form.integer.any() and nodes <= 1 and not chosen)
    return {TIGHT: TIGHTER} if ended and few else {}


def _doubted(form: StandardForm, wide: bool) -> set[ModelStatus]:
    """What presolve may say of a form that is not so, or its postsolve spoil; see the traps above."""
    if not form.integer.any():
        return {ModelStatus.kInfeasible}
    optima = {ModelStatus.kOptimal} if wide or not form.integer.all() else set[ModelStatus]()
    return {ModelStatus.kInfeasible, ModelStatus.kSolveError} | optima


def _read(highs: Any, form: StandardForm, scale: float, seconds: float, records: list[Progress]) -> RawAnswer:
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
    return RawAnswer(claim, x, bound, highs.modelStatusToString(status), seconds, nodes, records)

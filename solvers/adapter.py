"""What every solver adapter shares: the interface, running under Ctrl-C, scaling, and the one way to a verdict.

An adapter translates: a form into its solver's calls, the solver's return code into a `Claim`. What the claim is
worth is decided here, once for all solvers, by looking at the point itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from ocf.errors import ProblemError
from ocf.solvers.presolve import whole_bounds
from ocf.solvers.result import (
    CUTOFF,
    STALLED,
    Progress,
    SolveResult,
    SolverOptions,
    Status,
    monotone,
    relative_gap,
    stalls,
)
from ocf.solvers.scaling import LARGEST, costs_of, units_of
from ocf.solvers.standard_form import StandardForm
from ocf.support.limits import REMEDY, reserve
from ocf.support.tolerances import PROOF_TOLERANCE

Vector = NDArray[np.float64]

#: Violation, relative to the side where that exceeds 1, up to which a solver's point counts as feasible.
SOLUTION_TOLERANCE = 1e-6

#: The same for a warm start that is to serve as an answer of its own.
START_TOLERANCE = 1e-9

#: Part of the largest cost by which bound and objective may differ through rounding alone.
NOISE = 1e-12

#: How many times cheaper than a cost that was known an optimum is that squares are sized for, and how often at most.
FAR_CHEAPER, MOST_SIZES = 64.0, 4

#: Bytes that a solver takes, with its presolve and first LP, for an entry of the matrix, and for a row or a column.
ENTRY, SIDE = 250, 1000

#: What keeps a claim of infeasibility from being believed.
TOO_WIDE = (
    "its tolerances do not tell whole numbers beyond 1e9 apart: round to a larger step, or let the feature be numeric"
)

#: Message of an ERROR result that no other options would help.
UNBOUNDED = "the problem is unbounded: give the columns bounds"


class Claim(Enum):
    """What a solver says about its search: done with a point, done without one, stopped, unbounded, failed."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    LIMIT = "limit"
    UNBOUNDED = "unbounded"
    FAILED = "failed"


@dataclass(frozen=True)
class RawAnswer:
    """A solver's raw answer, in the units of the question's form."""

    claim: Claim
    x: Vector | None
    bound: float
    raw_status: str
    seconds: float
    nodes: int = 0
    records: list[Progress] = field(default_factory=list)
    stalled: bool = False


@dataclass(frozen=True)
class SolverQuestion:
    """A form with everything that bears on how its answer is to be read.

    Attributes
    ----------
    form : StandardForm
        As the solver gets it: in other units, with whole bounds of integer columns.
    options : SolverOptions
    start : (n_cols,) float64 or None
        In the units of the form.
    start_usable : bool
    cutoff : float or None
    original : StandardForm
        As the caller gave it, by which an answer is judged.
    units : (n_cols,) float64
        What the columns of the form count.
    reference : float or None
        A cost of the size of the optimum, without the constant, when one is known.
    """

    form: StandardForm
    options: SolverOptions
    start: Vector | None
    start_usable: bool
    cutoff: float | None
    original: StandardForm
    units: Vector
    reference: float | None = None

    @property
    def limit(self) -> float | None:
        """The cutoff that the solver has to be told: a usable start below it says the same and more."""
        return None if self.start_usable else self.cutoff


def ask(
    form: StandardForm, options: SolverOptions | None, warm_start: ArrayLike | None, cutoff: float | None
) -> SolverQuestion:
    """Check what the caller passes to `Solver.solve`, round the bounds of integer columns, and choose units.

    Parameters
    ----------
    form : StandardForm
    options : SolverOptions, optional
    warm_start : (n_cols,) array, optional
    cutoff : float, optional
        Only cheaper points are of use.

    Raises
    ------
    ProblemError
        When the warm start has another length or the cutoff is NaN.
    """
    entries = form.A.nnz
    reserve(
        ENTRY * entries + SIDE * (form.n_rows + form.n_cols),
        f"solving {form.n_rows} rows and {form.n_cols} columns with {entries} entries",
        f"ask for solver='box' where it knows the question, {REMEDY}",
    )
    if cutoff is not None and math.isnan(cutoff):
        raise ProblemError("the cutoff is NaN")
    if cutoff is not None and math.isinf(cutoff) and cutoff > 0:
        cutoff = None
    start, violation = None, math.inf
    if warm_start is not None:
        start = np.asarray(warm_start, dtype=float)
        if start.shape != (form.n_cols,):
            raise ProblemError(f"the warm start has shape {start.shape} where ({form.n_cols},) is needed")
        start = _whole(form, start) if np.isfinite(start).all() else None
    if start is not None:
        violation = _violation(form, start)
    cost = math.inf if start is None else form.objective(start)
    usable = violation <= START_TOLERANCE and (cutoff is None or cost < cutoff)
    # HiGHS 1.15 presolves integer columns with fractional bounds to wrong optima (its issues 3271 and 3274).
    lower, upper = whole_bounds(form.lower, form.upper, form.integer)
    form = form.with_bounds(lower, upper)
    known = cost if usable else cutoff
    near = _without_idle_costs(form if form.Q is None or known is None else _affordable(form, known))
    # a point that a solver calls one tells the size of squares, if not which points are dearer
    sized = cost if form.Q is not None and violation <= SOLUTION_TOLERANCE else known
    reference = None if sized is None else sized - form.c0
    columns, rows = units_of(near, reference if form.Q is not None and reference and reference > 0 else None)
    start = None if start is None else start / columns
    return SolverQuestion(
        near.in_units(columns, rows), options or SolverOptions(), start, usable, cutoff, form, columns, reference
    )


def _affordable(form: StandardForm, cost: float) -> StandardForm:
    """The same without the ends of columns whose own square is dearer than a cost, unless there are cross terms."""
    q, c = form.Q.diagonal() / 2, form.c
    curved = q > 0
    ends = np.where(c > 0, form.lower, form.upper)
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.clip(np.where(curved, -c / (2 * q), np.where(c == 0, 0.0, ends)), form.lower, form.upper)
        least = q * turn**2 + c * turn
    if form.Q.nnz > np.count_nonzero(q) or not np.isfinite(least).all():
        return form
    spent = cost - form.c0 - least.sum()
    room = np.maximum(spent, 0.0) + least + 1e-9 * (abs(cost) + abs(form.c0) + np.abs(least).sum())
    q, c, room = q[curved], c[curved], room[curved]
    # roots of q x**2 + c x = room without the difference of numbers that may be alike
    t = -(c + np.copysign(np.sqrt(np.maximum(c**2 + 4 * q * room, 0.0)), c)) / 2
    ends = np.sort([t / q, -room / np.where(t == 0, 1.0, t)], axis=0)
    ends += np.abs(ends) * [[-1e-9], [1e-9]]
    lower, upper = form.lower.copy(), form.upper.copy()
    lower[curved] = np.maximum(lower[curved], ends[0])
    upper[curved] = np.minimum(upper[curved], ends[1])
    return form.with_bounds(*whole_bounds(lower, upper, form.integer))


def _without_idle_costs(form: StandardForm) -> StandardForm:
    """The same without the costs of columns that stand at 0: the greatest cost bounds the scale of the optimum's."""
    moves = (form.lower != 0) | (form.upper != 0)
    kept = sp.diags_array(moves.astype(float))
    return replace(form, c=np.where(moves, form.c, 0.0), Q=None if form.Q is None else kept @ form.Q @ kept)


def settle(form: StandardForm) -> RawAnswer | None:
    """Answer the forms that need no solver, and that solvers disagree about: contradictions and no columns."""
    empty = np.diff(form.A.indptr) == 0
    broken = (form.row_lower[empty] > 0).any() or (form.row_upper[empty] < 0).any()
    # An infinity on the wrong side is a contradiction as well, and no solver takes it.
    broken = broken or (form.lower == np.inf).any() or (form.upper == -np.inf).any()
    if form.contradicts_itself() or broken:
        return RawAnswer(Claim.INFEASIBLE, None, math.inf, "settled without the solver", 0.0)
    if form.n_cols == 0:
        return RawAnswer(Claim.OPTIMAL, np.zeros(0), form.c0, "settled without the solver", 0.0)
    return None


def conclude(
    question: SolverQuestion, answer: RawAnswer, solver: str, version: str, options: Mapping[str, Any]
) -> SolveResult:
    """Turn a solver's answer into a result that claims no more than the point and the bound support.

    Parameters
    ----------
    question : SolverQuestion
    answer : RawAnswer
        Of the solver.
    solver, version : str
    options : mapping
        The solver's own options, as they were set.
    """
    form, cutoff = question.original, question.cutoff
    result = SolveResult(
        status=Status.UNKNOWN,
        seconds=answer.seconds,
        nodes=answer.nodes,
        solver=solver,
        version=version,
        options=dict(options),
        raw_status=answer.raw_status,
        message=STALLED if answer.stalled else "",
    )
    bound = -math.inf if math.isnan(answer.bound) else answer.bound
    if cutoff is not None and answer.claim is not Claim.INFEASIBLE:
        bound = min(bound, cutoff)  # whatever costs more than the cutoff may have been pruned unseen
    x, complaint = _best_point(question, answer)
    objective = None if x is None else form.objective(x)
    history = monotone([r._replace(bound=_cap(r.bound, objective, cutoff)) for r in answer.records])
    result = replace(result, history=history)

    if answer.claim is Claim.INFEASIBLE and math.isnan(answer.bound) and _reach_beyond(question.form):
        return replace(result, status=Status.ERROR, message=f"{solver} claims infeasibility, but {TOO_WIDE}")
    if answer.claim is Claim.UNBOUNDED:
        return replace(result, status=Status.ERROR, message=UNBOUNDED)
    if answer.claim is Claim.FAILED:
        return replace(result, status=Status.ERROR, message=f"{solver} failed: {answer.raw_status}")
    if x is None or objective is None:
        return _without_point(result, answer, bound, cutoff, complaint)
    if answer.claim is Claim.INFEASIBLE and question.limit is None:
        message = f"{solver} claims infeasibility but the warm start is feasible: tolerances contradict each other"
        return replace(result, status=Status.FEASIBLE, x=x, objective=objective, message=message)

    bound = min(bound, objective)
    gap = relative_gap(objective, bound, NOISE * float(np.abs(costs_of(form)).max(initial=0.0)))
    result = replace(result, status=Status.FEASIBLE, x=x, objective=objective, bound=bound, gap=gap)
    if answer.claim is Claim.OPTIMAL:
        if gap <= max(question.options.mip_gap * (1 + PROOF_TOLERANCE), PROOF_TOLERANCE):
            return replace(result, status=Status.OPTIMAL)
        message = f"{solver} stopped as if optimal, but its bound leaves a gap of {gap:.1e}"
        return replace(result, message=message)
    if gap == 0.0:  # the limit struck between the proof and the report
        return replace(result, status=Status.OPTIMAL)
    return result


class StallWatch:
    """Stops a solver that asks it whether to stop: when the caller wishes so, or when the search stalls.

    Parameters
    ----------
    question : SolverQuestion
    records : sequence of Progress
        That grow while the solver runs.
    interrupt : callable, optional
        The caller's wish.

    Attributes
    ----------
    stalled : bool
        Whether it has stopped the solver because of a stall.
    """

    def __init__(
        self, question: SolverQuestion, records: Sequence[Progress], interrupt: Callable[[], bool] | None
    ) -> None:
        self.stalled = False
        self._limit, self._interrupt, self._records = question.options.stall_limit, interrupt, records
        self._cutoff = math.inf if question.cutoff is None else question.cutoff
        self._began, self._processor = time.perf_counter(), time.process_time()

    def __call__(self) -> bool:
        """Whether to stop."""
        now, busy = time.perf_counter() - self._began, time.process_time() - self._processor
        self.stalled = self.stalled or stalls(self._records, now, busy, self._limit, self._cutoff)
        return self.stalled or (self._interrupt is not None and self._interrupt())


def with_remedies(
    solve: Callable[[SolverOptions], SolveResult], options: SolverOptions, remedies: Sequence[Mapping[str, Any]]
) -> SolveResult:
    """Solve; where the solver errs, solve again by other options of its own, as long as there is time.

    Parameters
    ----------
    solve : callable
    options : SolverOptions
    remedies : sequence of mapping
        Raw options, to be tried in turn; those that the user has set stay as they are.
    """
    result = solve(options)
    for remedy in remedies:
        left = None if options.time_limit is None else options.time_limit - result.seconds
        if result.status is not Status.ERROR or result.message == UNBOUNDED or (left is not None and left <= 0):
            break
        again = solve(replace(options, time_limit=left, options={**remedy, **options.options}))
        if again.status is Status.ERROR:
            again = replace(again, message=result.message)  # the first is that of the options that were asked for
        result = _joined(result, again)
    return result


def solve_by(
    once: Callable[[ArrayLike | None, SolverOptions], SolveResult],
    remedies: Sequence[Mapping[str, Any]],
    form: StandardForm,
    options: SolverOptions | None,
    warm_start: ArrayLike | None,
    cutoff: float | None,
) -> SolveResult:
    """Solve, with remedies; where squares count and the optimum is far cheaper than was known, again from its point.

    Solvers hold squares to absolute tolerances, so that those of an optimum of 1e-8 are free of charge beside a first
    cost of 1.

    Parameters
    ----------
    once : callable
        One call of the solver, given a point to start from, and options.
    remedies : sequence of mapping
        See `with_remedies`.
    form, options, warm_start, cutoff
        As in `Solver.solve`.
    """
    options = options or SolverOptions()
    result = with_remedies(partial(once, warm_start), options, remedies)
    known = 1.0 if cutoff is None else cutoff - form.c0
    for _ in range(MOST_SIZES):
        left = None if options.time_limit is None else options.time_limit - result.seconds
        if form.Q is None or result.x is None or result.objective is None or (left is not None and left <= 0):
            break
        cost = result.objective - form.c0
        if not form.noise(result.x) < cost < known / FAR_CHEAPER:
            break
        again = with_remedies(partial(once, result.x), replace(options, time_limit=left), remedies)
        if again.x is None:
            again = replace(result, status=Status.FEASIBLE, bound=-math.inf, gap=math.inf, message=again.message)
        result, known = _joined(result, again), cost
    return result


def _joined(first: SolveResult, again: SolveResult) -> SolveResult:
    """A result that stands in the place of another, with what both took."""
    history = [p._replace(seconds=p.seconds + first.seconds) for p in again.history]
    return replace(
        again,
        seconds=first.seconds + again.seconds,
        nodes=first.nodes + again.nodes,
        history=monotone([*first.history, *history]),
    )


def _without_point(
    result: SolveResult, answer: RawAnswer, bound: float, cutoff: float | None, complaint: str
) -> SolveResult:
    """Conclude when there is no point, or none below the cutoff."""
    if complaint:
        return replace(result, status=Status.ERROR, bound=bound, message=complaint)
    if answer.claim is Claim.LIMIT:
        return replace(result, status=Status.UNKNOWN, bound=bound)
    # A flagged or contradictory form is empty whatever the cutoff; a solver cannot tell the two apart.
    if cutoff is None or answer.bound == math.inf:
        return replace(result, status=Status.INFEASIBLE, bound=math.inf)
    return replace(result, status=Status.INFEASIBLE, bound=cutoff, message=CUTOFF)


def _best_point(question: SolverQuestion, answer: RawAnswer) -> tuple[Vector | None, str]:
    """Pick the cheaper of the solver's point and the start; complain about a solver's point that is none."""
    form, cutoff = question.original, question.cutoff
    complaint = ""
    points = [question.start * question.units] if question.start is not None and question.start_usable else []
    if answer.x is not None:
        x = _whole(form, answer.x * question.units)
        violation = _violation(form, x)
        if violation <= SOLUTION_TOLERANCE:
            points.append(x)
        elif answer.claim is Claim.OPTIMAL:
            complaint = f"the solver's point violates the problem by {violation:.1e}: rescale the rows"
    elif answer.claim is Claim.OPTIMAL and not points:
        complaint = "the solver claims an optimum but gives no point"
    points = [x for x in points if cutoff is None or form.objective(x) < cutoff]
    return min(points, key=form.objective, default=None), complaint


def _whole(form: StandardForm, x: Vector) -> Vector:
    """Round the integer columns, into their bounds, and clip the others."""
    return np.clip(np.where(form.integer, np.rint(x), x), form.lower, form.upper)


def _violation(form: StandardForm, x: Vector) -> float:
    """Largest violation at `x`, each row relative to its side where that exceeds 1."""
    activity = form.activity(x)
    below = (form.row_lower - activity) / np.maximum(1.0, np.abs(_finite(form.row_lower)))
    above = (activity - form.row_upper) / np.maximum(1.0, np.abs(_finite(form.row_upper)))
    fraction = np.abs(x - np.rint(x))[form.integer]
    parts = (below, above, form.lower - x, x - form.upper, fraction)
    return max([0.0, *(float(part.max()) for part in parts if part.size)])


def _reach_beyond(form: StandardForm) -> bool:
    """Whether whole numbers reach further than a solver tells them apart."""
    reach = np.maximum(np.abs(form.lower), np.abs(form.upper))[form.integer]
    return bool((reach[np.isfinite(reach)] > LARGEST).any())


def _finite(values: Vector) -> Vector:
    return np.where(np.isfinite(values), values, 0.0)


def _cap(bound: float, objective: float | None, cutoff: float | None) -> float:
    """A bound in the history may not pass the final objective, nor the cutoff above which nothing was searched."""
    return min(v for v in (bound, objective, cutoff) if v is not None)

"""What a solve arrives at, and the state on the way there that every driver of solvers keeps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ocf.arrays import FloatArray
from ocf.cells.incumbent import Incumbent
from ocf.solvers.result import Progress, SolveResult, SolverOptions, Status, relative_gap
from ocf.solvers.standard_form import StandardForm
from ocf.support import limits
from ocf.support.messages import with_remark

if TYPE_CHECKING:
    from ocf.features.space import FeatureSpace
    from ocf.problem.problem import Problem

#: Part of a cost that rounding of its sum may be.
ROUNDING = 1e-12

#: A relative gap that numbers of many digits leave open, and more time seldom closes.
CLOSE = 1e-6

#: How a message begins where no limit ended the search.
ROUNDED = "rounding (a narrow dtype, or a solver's tolerance)"

#: What is said where the gap ended the search.
AT_GAP = "stopped at the gap that was asked for"

#: What is said where a solver's failure ended the search.
ANOTHER = "no limit was reached, so another solver may go on from here (solver=…)"


@dataclass(frozen=True)
class Outcome:
    """The answer to one problem.

    Attributes
    ----------
    status : Status
    point : (n_features,) float64 or None
        Coded row, confirmed by the user's model.
    cost : float or None
    bound : float
        No admissible point is cheaper; inf when proven infeasible.
    times : dict
        Seconds in ``incumbent``, ``reduce``, ``instance`` (cutting the matrix down), ``solve`` and ``confirm``.
    nodes : int
        Of the solvers' branch-and-bound trees.
    refused : int
        Points that a solver found and the user's model refused; each was cut off.
    proved_by : str
        What gave the bound: ``"origin"``, ``"reduction"``, a solver's name, or "" where nothing is proven.
    results : tuple of SolveResult
        One per call of the solver.
    sizes : dict
        Leaves and cells before and after the reduction; rows, columns, nonzeros and binaries given to the solver.
    history : tuple of Progress
        Bound and incumbent over time.
    message : str
        What went wrong, where something did.
    fewest : bool
        Whether the search for the point has shown, too, that none that costs as little changes fewer features.
    """

    status: Status
    point: FloatArray | None
    cost: float | None
    bound: float
    times: dict[str, float]
    nodes: int = 0
    refused: int = 0
    proved_by: str = ""
    results: tuple[SolveResult, ...] = ()
    sizes: dict[str, int] = field(default_factory=dict)
    history: tuple[Progress, ...] = ()
    message: str = ""
    fewest: bool = False


def unproven(outcome: Outcome, why: str) -> Outcome:
    """The same without a claim that rests on the reading of the model: no bound, neither optimal nor infeasible.

    A row that is free as it is keeps its proof, for nothing but the user's own model has judged it.

    Parameters
    ----------
    outcome : Outcome
    why : str
        What to say of it.
    """
    if outcome.proved_by == "origin" or outcome.status not in (Status.OPTIMAL, Status.INFEASIBLE, Status.FEASIBLE):
        return outcome
    return replace(
        outcome,
        status=Status.UNKNOWN if outcome.point is None else Status.FEASIBLE,
        bound=-np.inf,
        proved_by="",
        history=tuple(p._replace(bound=-np.inf) for p in outcome.history),
        message=with_remark(outcome.message, why),
    )


def joined(first: Outcome, second: Outcome) -> Outcome:
    """The first with the point of the second, if it has one, and with the work that finding it took.

    Parameters
    ----------
    first : Outcome
        Optimal.
    second : Outcome
        Of the points that cost as much.
    """
    return replace(
        first,
        point=first.point if second.point is None else second.point,
        nodes=first.nodes + second.nodes,
        refused=first.refused + second.refused,
        results=(*first.results, *second.results),
    )


def after_ties(outcome: Outcome, begin: float) -> Outcome:
    """The same with the seconds that its ties have taken.

    Parameters
    ----------
    outcome : Outcome
    begin : float
        By `time.perf_counter`: from when on they were looked at.
    """
    seconds = outcome.times.get("ties", 0.0) + time.perf_counter() - begin
    return replace(outcome, times={**outcome.times, "ties": seconds})


def no_dearer_than_its_point(problem: Problem, outcome: Outcome) -> Outcome:
    """The same at the cost of its point, where that took the place of one that was dearer within a solver's tolerance.

    Parameters
    ----------
    problem : Problem
    outcome : Outcome
        With a point, and the cost of the one that was found first.
    """
    plain = problem.plausibility is None and problem.completions is None and not problem.has_own_costs
    if not plain or outcome.point is None or outcome.cost is None:
        return outcome
    if np.isinf(problem.origin).any() or not np.isfinite(outcome.point).all():  # something is missing, or special
        return outcome
    own = float(problem.costs(outcome.point[None])[0])
    if own >= outcome.cost - ROUNDING * abs(outcome.cost):
        return outcome
    return replace(outcome, cost=own, bound=min(outcome.bound, own))


def advised(outcome: Outcome, options: SolverOptions, space: FeatureSpace | None = None) -> Outcome:
    """The same with what to do next, where a limit ended the search before its proof, or rounding leaves that open.

    Parameters
    ----------
    outcome : Outcome
    options : SolverOptions
        That it was found with.
    space : FeatureSpace, optional
        Whose columns may be why rounding decides.
    """
    if outcome.status not in (Status.FEASIBLE, Status.UNKNOWN):
        return outcome
    gap = relative_gap(outcome.cost, outcome.bound)
    if outcome.point is not None and gap <= CLOSE:
        left = f"no answer is cheaper by more than {gap:.1g} of its cost; rounding leaves that open"
        return replace(outcome, message=with_remark(outcome.message, left))
    if outcome.message.startswith(ROUNDED):
        return replace(outcome, message=with_remark(outcome.message, _on_narrow_columns(space)))
    if options.mip_gap > 0 and outcome.point is not None and gap <= options.mip_gap + CLOSE:
        return replace(outcome, message=with_remark(outcome.message, AT_GAP))
    if outcome.results and outcome.results[-1].status is Status.ERROR:
        return replace(outcome, message=with_remark(outcome.message, ANOTHER))
    limit = options.time_limit
    struck = "a limit was reached" if limit is None or options.options else f"the time limit of {limit:g} s was reached"
    more = "give it more" if limit is None or options.options else f"give it more (time_limit={10 * limit:g})"
    if outcome.point is not None:
        more += ", or be content with a gap (mip_gap=0.05)"
    else:
        more += ", or let fewer features vary (features_to_vary=[…])"
    if outcome.message.startswith("the time limit"):  # says already what struck
        return replace(outcome, message=f"{outcome.message}: {more}")
    return replace(outcome, message=with_remark(outcome.message, f"{struck}: {more}"))


def _on_narrow_columns(space: FeatureSpace | None) -> str:
    """What columns of narrow floats mean for the optimum; empty where there are none."""
    numbers = [f.float_dtype for f in space.features if not f.discrete] if space else []
    narrowest = min(numbers, key=lambda dtype: dtype.itemsize, default=np.dtype(np.float64))
    if narrowest == np.float64:
        return ""
    digits = 1 + np.finfo(narrowest).precision
    return (
        f"columns of {narrowest} hold {digits} digits, and the optimum is known no better than that: train on float64"
    )


class Run:
    """State of a solve: the best point, the bound, and what they took; the same for every engine.

    Parameters
    ----------
    options : SolverOptions
        The time limit holds from `start` on.
    phases : sequence of str
        What takes time, besides ``solve`` and ``confirm``.
    start : float, optional
        By `time.perf_counter`; by default now.
    least : float
        What no point costs less than.
    """

    def __init__(
        self, options: SolverOptions, phases: Sequence[str], start: float | None = None, least: float = -np.inf
    ) -> None:
        self.start, self.options = time.perf_counter() if start is None else start, options
        self.times = dict.fromkeys((*phases, "solve", "confirm"), 0.0)
        self.best: Incumbent | None = None
        self.bound = least
        self.status: Status | None = None
        self.settled = False
        self.proved_by = self.message = ""
        self.refused = 0
        self.results: list[SolveResult] = []
        self.history: list[Progress] = []
        self.sizes: dict[str, int] = {}

    @property
    def finished(self) -> bool:
        """Whether there is an answer."""
        return self.status is not None

    @property
    def upper(self) -> float:
        """Cost of the best point; inf without one."""
        return self.best.cost if self.best else np.inf

    def ask(self, judge: Callable[[FloatArray], bool], point: FloatArray) -> bool:
        """Ask the user's own model about a point, on the clock.

        Parameters
        ----------
        judge : callable
            Whether the model gives the target to a coded point.
        point : (n_features,) float64
            Coded.
        """
        with self.timed("confirm"):
            return judge(point)

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add what is done within to a phase's seconds.

        Parameters
        ----------
        phase : str
            Of `times`.
        """
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.times[phase] += time.perf_counter() - begin

    def note(self, result: SolveResult) -> None:
        """Keep what a call of a solver took."""
        self.times["solve"] += result.seconds
        self.sizes |= result.sizes
        self.results.append(result)

    def adopt(self, best: Incumbent | None) -> None:
        """Take over a point if it is better than what is at hand."""
        if best is not None and best.cost < self.upper:
            self.best = best

    def say(self, words: str) -> None:
        """Add to the message."""
        self.message = with_remark(self.message, words)

    def blame_rounding(self, status: Status) -> None:
        """Say of an answer without proof that rounding leaves it open, where no limit does and nothing is said yet.

        Parameters
        ----------
        status : Status
            Of the answer.
        """
        limited = self.is_late or self.options.mip_gap > 0 or self.options.options
        if status not in (Status.FEASIBLE, Status.UNKNOWN) or self.message or limited:
            return
        left_open = "a gap to the proven bound" if status is Status.FEASIBLE else "open whether there is a point"
        self.message = f"{ROUNDED} leaves {left_open}"

    def close(self, status: Status, bound: float, by: str) -> None:
        """End with a status, a bound and who proved it.

        Parameters
        ----------
        status : Status
        bound : float
            A higher one that is known already stays.
        by : str
            See `Outcome.proved_by`; "" where nothing is proven.
        """
        self.status, self.bound, self.proved_by = status, max(self.bound, bound), by
        self.record()

    def prove(self, by: str) -> None:
        """End with the proof that nothing is better than the best point, or that there is none at all.

        Parameters
        ----------
        by : str
            As in `close`.
        """
        if self.best:
            self.close(Status.OPTIMAL, self.best.cost, by)
        else:
            self.close(Status.INFEASIBLE, np.inf, by)

    def record(self) -> None:
        """Note bound and incumbent."""
        self.history.append(Progress(time.perf_counter() - self.start, min(self.bound, self.upper), self.upper))

    def measure(self, form: StandardForm) -> None:
        """Note the size of what a solver is given."""
        self.sizes |= form.sizes

    def seconds_left(self) -> float | None:
        """Seconds until the time limit, of the options or around, is reached; None where there is none."""
        own = math.inf if self.options.time_limit is None else self.options.time_limit
        left = min(own - (time.perf_counter() - self.start), limits.seconds_left())
        return None if left == math.inf else left

    @property
    def is_late(self) -> bool:
        """Whether no time is left."""
        left = self.seconds_left()
        return left is not None and left <= 0

    def remaining(self) -> SolverOptions | None:
        """Options with the time that is left; None when there is none."""
        left = self.seconds_left()
        if left is None:
            return self.options
        return replace(self.options, time_limit=left) if left > 0 else None

    def outcome(self) -> Outcome:
        """The answer."""
        assert self.status is not None
        return Outcome(
            self.status,
            self.best.point if self.best else None,
            self.best.cost if self.best else None,
            self.bound if self.status is Status.INFEASIBLE else min(self.bound, self.upper),
            dict(self.times),
            sum(r.nodes for r in self.results),
            self.refused,
            self.proved_by,
            tuple(self.results),
            self.sizes,
            tuple(self.history),
            self.message,
            self.status is Status.OPTIMAL and self.settled,
        )

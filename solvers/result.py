"""What a solver is asked (`SolverOptions`) and what it answers (`SolveResult`), the same for every solver."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocf.errors import ProblemError
from ocf.support.tolerances import PROOF_TOLERANCE

#: Message of an INFEASIBLE result that only says that nothing is cheaper than the given cutoff.
CUTOFF = "cutoff"

#: Message of a result whose bound is of points that columns may hold beside those that were tried.
LEFT_OPEN = "rounding leaves open which numbers are the cheapest"

#: Message of a result whose search was ended by `SolverOptions.stall_limit`.
STALLED = "stalled"

#: Part of its gap that a search must close within the seconds of the stall limit: with less it would take twenty times
#: as long, were it to go on like that.
LEAST_CLOSED = 0.05

#: What `SolverOptions.cuts` may be.
CUTS = ("none", "root")


class Status(Enum):
    """How a solve ended. Each member is a statement about the problem, not about the solver's return code.

    - ``OPTIMAL``: `x` is feasible and no point is cheaper by more than the gap that was asked for.
    - ``FEASIBLE``: a limit was hit; `x` is feasible, `bound` holds.
    - ``INFEASIBLE``: proven that no point exists (or, with message ``"cutoff"``, none below the cutoff).
    - ``UNKNOWN``: a limit was hit and no point was found; `bound` holds.
    - ``ERROR``: the solver failed or the problem is unbounded; `message` says which.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"
    ERROR = "error"


class Progress(NamedTuple):
    """One record of a solve's history: seconds since its start, proven lower bound, cost of the incumbent."""

    seconds: float
    bound: float
    incumbent: float


@dataclass(frozen=True)
class SolverOptions:
    """One vocabulary of options for all solvers.

    Parameters
    ----------
    time_limit : float, optional
        Wall seconds; None for no limit.
    mip_gap : float
        Relative gap at which the solver may stop. The default, 0, asks for a proof.
    threads : int
        Threads that may be used. The box search takes nodes from one queue by all of them, and proves the same, and
        so do HiGHS and SCIP where they get boxes (`ocf.solve.halved`, `ocf.solve.parts`); SCIP uses one for a matrix
        of its own.
    seed : int
        Seed of the solver's own random choices.
    log : bool
        Print the solver's log; where it gets boxes, of each matrix.
    options : mapping
        Raw options under the solver's own names. They are set last, so they override everything else.
    memory_limit : float, optional
        Bytes that the process may hold; None for no limit but that around.
    cuts : str
        Before a solver of matrices gets a model over cells: ``"none"``, or ``"root"`` for cuts between trees
        (`ocf.solvers.root_cuts`). No effect on other solvers and models.
    stall_limit : float, optional
        Seconds of the processor: a search that closes less than a twentieth of its gap in as many ends as at a limit;
        see `stalls`.
    presolve : bool
        Whether a solver of matrices may reduce the problem first. Reductions lose points within a tolerance of a row's
        side, and next to a hyperplane there may be no others that flip the model.
    strong_branching : bool
        Whether SCIP tries branches out with LPs until it relies on what they cost. No effect on other solvers.

    Raises
    ------
    ProblemError
        When a value makes no sense.
    """

    time_limit: float | None = None
    mip_gap: float = 0.0
    threads: int = 1
    seed: int = 0
    log: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    memory_limit: float | None = None
    cuts: str = "none"
    stall_limit: float | None = None
    presolve: bool = True
    strong_branching: bool = False

    def __post_init__(self) -> None:
        limit = self.time_limit
        if limit is not None and not (_is_number(limit) and limit > 0):
            raise ProblemError(f"time_limit must be a positive number of seconds or None, not {limit!r}")
        if self.memory_limit is not None and not (_is_number(self.memory_limit) and self.memory_limit > 0):
            raise ProblemError(f"memory_limit must be a positive number of bytes or None, not {self.memory_limit!r}")
        if not (_is_number(self.mip_gap) and 0 <= self.mip_gap < math.inf):
            raise ProblemError(f"mip_gap must be a relative gap of at least 0, not {self.mip_gap!r}")
        if not (_is_integer(self.threads) and self.threads >= 1):
            raise ProblemError(f"threads must be a whole number of at least 1, not {self.threads!r}")
        if not (_is_integer(self.seed) and 0 <= self.seed < 2**31):
            raise ProblemError(f"seed must be a whole number from 0 to 2**31 - 1, not {self.seed!r}")
        if not isinstance(self.log, bool | np.bool_):
            raise ProblemError(f"log must be True or False, not {self.log!r}")
        if self.cuts not in CUTS:
            raise ProblemError(f"cuts is one of {', '.join(map(repr, CUTS))}, not {self.cuts!r}")
        if not isinstance(self.options, Mapping) or not all(isinstance(k, str) for k in self.options):
            raise ProblemError(f"options must map the solver's own option names to values, not {self.options!r}")
        object.__setattr__(self, "options", dict(self.options))  # whoever gave them may change his own


@dataclass(frozen=True)
class SolveResult:
    """The answer of one solve.

    Attributes
    ----------
    status : Status
    x : (n_cols,) float array or None
        Values of the columns; only when a feasible point is known. Integer columns hold whole numbers.
    objective : float or None
        Cost of `x`, recomputed from the form and not copied from the solver.
    bound : float
        Proven lower bound on the cost of every point: ``+inf`` when infeasible, ``-inf`` when nothing is known.
    gap : float
        ``(objective - bound) / |objective|``, 0 when proven (see `relative_gap`), inf when there is none.
    seconds : float
        Wall time of the solver, without building and compiling the model.
    nodes : int
        Nodes of the branch and bound tree.
    history : tuple of Progress
        Bound and incumbent over time; seconds and bound never fall, the incumbent never rises.
    solver, version : str
        Name as in the registry and version as the solver reports it.
    options : mapping
        The raw options that were set.
    raw_status : str
        The solver's own word for how it ended.
    message : str
        Remark for the user; empty when there is nothing to say.
    fewest : bool
        Whether it was asked for and shown that no point that costs as little as `x` changes fewer features, or as the
        incumbent where that is the best.
    sizes : mapping of str to int
        `StandardForm.sizes` of the matrix, where the solver has made it itself.
    """

    status: Status
    x: NDArray[np.float64] | None = None
    objective: float | None = None
    bound: float = -math.inf
    gap: float = math.inf
    seconds: float = 0.0
    nodes: int = 0
    history: tuple[Progress, ...] = ()
    solver: str = ""
    version: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    raw_status: str = ""
    message: str = ""
    fewest: bool = False
    sizes: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        has_point = self.status in (Status.OPTIMAL, Status.FEASIBLE)
        if has_point != (self.x is not None) or has_point != (self.objective is not None):
            raise ValueError(f"status {self.status.name} and the presence of x and objective do not agree")

    @property
    def feasible(self) -> bool:
        """Whether a point was found."""
        return self.x is not None

    @property
    def ended(self) -> bool:
        """Whether the solver searched to its end, if only within its own tolerances."""
        return self.status is Status.OPTIMAL or (self.feasible and self.raw_status.lower() == "optimal")

    @property
    def proven(self) -> bool:
        """Whether nothing is left to search: optimal or infeasible."""
        return self.status in (Status.OPTIMAL, Status.INFEASIBLE)


def relative_gap(objective: float | None, bound: float, noise: float = 0.0) -> float:
    """Relative distance of a lower bound from an objective value.

    Parameters
    ----------
    objective : float or None
        Cost of the incumbent, None when there is none.
    bound : float
        Proven lower bound.
    noise : float
        Absolute distance that rounding alone explains; it matters when the objective is 0.

    Returns
    -------
    float
        0 when they agree within `PROOF_TOLERANCE` (relative) or `noise`, inf without an incumbent.
    """
    if objective is None or not math.isfinite(objective):
        return math.inf
    distance = max(objective - bound, 0.0)
    if distance <= max(PROOF_TOLERANCE * abs(objective), noise):
        return 0.0
    return distance / abs(objective) if objective else math.inf


def stalls(
    history: Sequence[Progress], now: float, busy: float, seconds: float | None, cutoff: float = math.inf
) -> bool:
    """Whether a search has closed next to nothing of its gap within the last seconds.

    Seconds count as far as the search had the processor: where others have it half of the time, it is looked at over
    twice as long.

    Where there is neither a point nor a cutoff there is no gap, and the search does not stall, whatever it does.

    Parameters
    ----------
    history : sequence of Progress
        Of the search so far.
    now : float
        Seconds since its start.
    busy : float
        Seconds of the processor since then, of all threads.
    seconds : float or None
        Over which it is looked at; None: it never stalls.
    cutoff : float
        Cost that points must beat.
    """
    if seconds is None or busy <= 0 or min(now, busy) < seconds:
        return False
    begin = now - seconds * max(1.0, now / busy)
    known = bisect_right(history, begin, key=lambda p: p.seconds)
    then = history[known - 1] if known else Progress(0.0, -math.inf, math.inf)
    last = history[-1] if history else then
    before, after = (min(p.incumbent, cutoff) - p.bound for p in (then, last))
    if math.isinf(before):
        return min(last.incumbent, cutoff) < math.inf and math.isinf(after)
    return after > (1.0 - LEAST_CLOSED) * before


def monotone(records: list[Progress]) -> tuple[Progress, ...]:
    """Sort records by time, make the bound rise and the incumbent fall, and drop those that say nothing new."""
    out: list[Progress] = []
    bound, incumbent = -math.inf, math.inf
    for record in sorted(records, key=lambda r: r.seconds):
        better_bound, better_incumbent = max(bound, record.bound), min(incumbent, record.incumbent)
        if (better_bound, better_incumbent) != (bound, incumbent):
            bound, incumbent = better_bound, better_incumbent
            out.append(Progress(record.seconds, bound, incumbent))
    return tuple(out)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)

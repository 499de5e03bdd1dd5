"""Branch-and-bound over boxes of cells: best-first with plunging, propagation and LP bounds (box, algorithm 5).

Nomenclature
------------
=====================  =============================================================================
symbol                 meaning
=====================  =============================================================================
node                   a box of ranks and the leaves that may hold something of use in it
``limit``              cost from which on a point is of no use: just below the incumbent or cutoff
``bound``              no point of a node that is of use is cheaper
plunging               going on with a child of the last node instead of the best node of all, so
                       that the LP changes little
worker                 a thread; workers share the queue of open nodes and the incumbent
=====================  =============================================================================

::

    node ──▶ propagate ──▶ cheapest point feasible? ──▶ LP, multipliers, propagate ──▶ round ──▶ branch
                │                    │ yes: done                   │ without an LP: dive
                ▼ nothing left       ▼                             ▼ bound ≥ limit

The paper builds its search tree dimension by dimension and prunes by distance; here any feature may be split at any
node, and a node is pruned by the sum over trees of the best live leaf and by bounds of LP strength. Without LP bounds
a node is searched by `ocf.solvers.box.dive` for a number of boxes and what is left of it goes back into the queue: the
paper's mixture of strategies (section VII.F), best-first between dives and depth-first within.

Workers share the queue, see `ocf.solvers.box.open_boxes`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ocf.arrays import IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.kernels import log_compilation
from ocf.cells.reduction import TOLERANCE
from ocf.cells.reduction import reduce as reduce_cells
from ocf.solvers.box.dive import dive
from ocf.solvers.box.open_boxes import visit_all
from ocf.solvers.box.propagation import propagate
from ocf.solvers.box.shared import Shared
from ocf.solvers.box.worker import Worker
from ocf.solvers.cell_form import Compiled
from ocf.solvers.result import CUTOFF, Progress, SolverOptions, Status, monotone
from ocf.support.tolerances import with_ties

#: Pairs of leaves that the first reduction probes at most: some 10 ms.
PAIRS = 200_000


@dataclass(frozen=True)
class BoxResult:
    """The answer of a box search.

    Attributes
    ----------
    status : Status
        INFEASIBLE with message ``"cutoff"`` says that nothing is cheaper than the given cutoff.
    cells : (n_features,) int64 or None
        The choice of cells, counted within the features.
    cost : float or None
    bound : float
        No admissible point is cheaper (relative rounding of `ocf.cells.reduction.TOLERANCE` apart); inf when there is
        none.
    nodes, lp_solves : int
        Boxes that were looked at, and LPs.
    seconds, lp_seconds : float
        The latter summed over the threads.
    refused : int
        Points that `confirm` refused.
    history : tuple of Progress
        Bound and incumbent over time.
    message : str
        Which limit stopped the search, or ``"cutoff"``.
    fewest : bool
        Whether it was asked for and shown that no point that costs as little changes less.
    sizes : dict
        `StandardForm.sizes` of the first LP, or of the first matrix where boxes are ended without one; else empty.
    """

    status: Status
    cells: IntArray | None = None
    cost: float | None = None
    bound: float = -np.inf
    nodes: int = 0
    seconds: float = 0.0
    history: tuple[Progress, ...] = ()
    lp_solves: int = 0
    lp_seconds: float = 0.0
    refused: int = 0
    message: str = ""
    fewest: bool = False
    sizes: dict[str, int] = field(default_factory=dict)


def solve_cells(
    cells: CellProblem,
    options: SolverOptions | None = None,
    *,
    cutoff: float = np.inf,
    confirm: Callable[[IntArray], bool] | None = None,
    relaxation: Compiled | Callable[[], Compiled | None] | None = None,
    fewest: bool = False,
    incumbent: IntArray | None = None,
    worker: Callable[[Shared], Worker] = Worker,
) -> BoxResult:
    """Find the cheapest choice of open cells that meets the target, with proof.

    Parameters
    ----------
    cells : CellProblem
        Its closed cells, dead leaves and excluded choices of leaves are respected.
    options : SolverOptions, optional
        Besides the common ones, ``options={"node_limit": n, "memory_limit": megabytes}``. With one thread the same
        question is searched in the same way every time.
    cutoff : float
        Only points cheaper than this are of interest.
    confirm : callable, optional
        Whether the user's model gives the target at a choice of cells. Asked about points within rounding of a tie,
        by one thread at a time; the leaves of a refused point are excluded.
    relaxation : ocf.solvers.cell_form.Compiled, or a function that gives one, optional
        A formulation for LP bounds; without it, or without highspy, the search dives over bitsets instead. The
        function is called when a first dive has left something open.
    fewest : bool
        Whether to find, of the points that cost the same, one in which the fewest cells cost something, and to show
        that. One proof serves for both: a box is done when its cheapest point is admissible, which changes least, too;
        and one in which no fewer features change than in the best point is of no use unless it is cheaper. Leaves must
        cost nothing, and there must be no gap that serves.
    incumbent : (n_features,) int64, optional
        Cells of a point that costs the cutoff: with `fewest` what costs as little and changes less is of interest, too.
    worker : callable
        Makes what visits boxes, one for each thread.

    Returns
    -------
    BoxResult
    """
    shared = Shared(cells, options or SolverOptions(), cutoff, confirm, relaxation, fewest=fewest, incumbent=incumbent)
    beside = fewest and incumbent is not None
    reduction = reduce_cells(cells, with_ties(cutoff) if beside else cutoff, max_pairs=PAIRS)
    if not reduction.proved:
        log_compilation(propagate)
        log_compilation(dive)
        shared.start(reduction.cells, reduction.bound)
        visit_all(shared, [worker(shared) for _ in range(shared.options.threads)])
    return _result(shared)


def concluded(
    best: IntArray | None, upper: float, bound: float, cutoff: float, options: SolverOptions, stopped: str
) -> tuple[Status, float, str]:
    """How a search over boxes has ended: status, bound and message.

    Parameters
    ----------
    best : (n_features,) int64 or None
        Cells of the best point.
    upper : float
        Cost of that.
    bound : float
        No point that is of use is cheaper.
    cutoff : float
        Points had to beat it.
    options : SolverOptions
        A gap that they allow leaves the bound where it is.
    stopped : str
        By what, where boxes are left; else "".
    """
    if stopped:
        return Status.UNKNOWN if best is None else Status.FEASIBLE, bound, stopped
    if best is None:
        return Status.INFEASIBLE, cutoff, CUTOFF if np.isfinite(cutoff) else ""
    return Status.OPTIMAL, upper if options.mip_gap <= TOLERANCE else bound, ""


def _result(shared: Shared) -> BoxResult:
    least = min(shared.upper, shared.cutoff)
    bound = min(shared.bound(), shared.limit, least)
    unfinished = bool(shared.stopped and shared.queue)
    stopped = shared.stopped if unfinished and not (shared.fewest and bound >= shared.equals.limit) else ""
    cost = np.inf if shared.best is None else shared.cells.cost_of(shared.best)
    status, bound, message = concluded(shared.best, cost, bound, shared.cutoff, shared.options, stopped)
    shared.record(bound)
    return BoxResult(
        status,
        shared.best,
        None if shared.best is None else cost,
        float(bound),
        shared.nodes,
        time.perf_counter() - shared.begin,
        monotone(shared.history),
        shared.lp_solves,
        shared.lp_seconds,
        shared.refused,
        message,
        shared.fewest and not unfinished and with_ties(least) <= shared.widest,
        shared.sizes,
    )

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

Workers look at different nodes at the same time (section VII.C) and prune by the same incumbent. One worker visits
the nodes in the same order every time; several do not, but prove the same cost.
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ocf.cells import CellProblem
from ocf.compiled import Compiled
from ocf.ensemble import IntArray
from ocf.kernels import log_compilation
from ocf.reduction import TOLERANCE
from ocf.reduction import reduce as reduce_cells
from ocf.solvers.box.dive import dive, exclusions
from ocf.solvers.box.instance import Packed, copied, make_instance, pack, unite, whole
from ocf.solvers.box.propagation import Multipliers, propagate
from ocf.solvers.box.relaxation import Basis, Relaxation, no_relaxation
from ocf.solvers.box.worker import Node, Worker
from ocf.solvers.result import CUTOFF, Progress, SolverOptions, Status, monotone

logger = logging.getLogger(__name__)

#: Options of the search itself, in `SolverOptions.options`.
NODE_LIMIT, MEMORY_LIMIT = "node_limit", "memory_limit"

#: Pairs of leaves that the first reduction probes at most: some 10 ms.
PAIRS = 200_000

#: The LP is loaded anew when the boxes that are open hold less than this share of its leaves.
SMALLER = 0.85

#: Visits before the first local search for a better incumbent; then whenever they have doubled.
FIRST_IMPROVEMENT = 8


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
        No admissible point is cheaper (relative rounding of `ocf.reduction.TOLERANCE` apart); inf when there is none.
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


def solve_cells(
    cells: CellProblem,
    options: SolverOptions | None = None,
    *,
    cutoff: float = np.inf,
    confirm: Callable[[IntArray], bool] | None = None,
    relaxation: Compiled | Callable[[], Compiled | None] | None = None,
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
    relaxation : ocf.compiled.Compiled, or a function that gives one, optional
        A formulation for LP bounds; without it, or without highspy, the search dives over bitsets instead. The
        function is called when a first dive has left something open.

    Returns
    -------
    BoxResult
    """
    return Shared(cells, options or SolverOptions(), cutoff, confirm, relaxation).run()


class Shared:
    """What the workers of one search share.

    Attributes
    ----------
    cells : CellProblem
        After reduction.
    instance : Instance
    shared : (1,) float64
        The limit, where kernels in other threads see it.
    tolerance : float
        What is cheaper than the incumbent by less than this, relatively, is of no use.
    """

    def __init__(
        self,
        cells: CellProblem,
        options: SolverOptions,
        cutoff: float,
        confirm: Callable[[IntArray], bool] | None,
        relaxation: Compiled | Callable[[], Compiled | None] | None,
    ) -> None:
        self.begin = time.perf_counter()
        self.cells, self.options, self.cutoff = cells, options, cutoff
        self.confirm, self._relaxation = confirm, relaxation
        self.tolerance = max(TOLERANCE, options.mip_gap)
        self.shared = np.array([cutoff - TOLERANCE * abs(cutoff) if np.isfinite(cutoff) else np.inf])
        self.best: IntArray | None = None
        self.upper = np.inf
        self.refused = self.nodes = self.visits = self.created = self.generation = 0
        self.excluded: set[bytes] = set()
        self.history: list[Progress] = []
        self.queue: list[Node] = []
        self.active: dict[int, Node] = {}
        self.workers: list[Worker] = []
        self.stopped = ""
        self.failure: BaseException | None = None
        self.turn = threading.Condition(threading.RLock())
        self._loading = threading.Lock()
        self._lp_solves, self._lp_seconds = 0, 0.0
        self._improved = False

    @property
    def limit(self) -> float:
        """Cost from which on a point is of no use."""
        return float(self.shared[0])

    # -- running -------------------------------------------------------------------------------------------

    def run(self) -> BoxResult:
        """Search until nothing is left or a limit is hit."""
        reduction = reduce_cells(self.cells, self.cutoff, max_pairs=PAIRS)
        if reduction.proved:
            return self._result()
        log_compilation(propagate)
        log_compilation(dive)
        self.cells = reduction.cells
        self.instance = make_instance(self.cells)
        self.hull = whole(self.instance)
        self.workers = [Worker(self) for _ in range(self.options.threads)]
        self.queue = [self.node(reduction.bound, no_relaxation(self.instance), pack(self.instance, self.hull), None)]
        helpers = [
            threading.Thread(target=self._help, args=(k,), name=f"ocf-box-{k}", daemon=True)
            for k in range(1, len(self.workers))
        ]
        for helper in helpers:
            helper.start()
        try:
            self._work(0)
        except BaseException:
            with self.turn:
                self.stopped = "interrupted"
                self.turn.notify_all()
            raise
        finally:
            for helper in helpers:
                helper.join()
        if self.failure is not None:
            raise self.failure
        return self._result()

    def _help(self, number: int) -> None:
        try:
            self._work(number)
        except BaseException as error:  # raised in the main thread
            with self.turn:
                self.failure, self.stopped = error, "failure"
                self.turn.notify_all()

    def _work(self, number: int) -> None:
        """Visit nodes until none is left or a limit is hit: what one worker does."""
        worker, own = self.workers[number], None
        try:
            while True:
                with self.turn:
                    node = self._next(number, own)
                    if node is None:
                        return
                    visits = self.visits
                    self._shrink_hull()
                if visits >= FIRST_IMPROVEMENT and visits & (visits - 1) == 0:
                    worker.improve(visits)
                left = worker.visit(node)
                with self.turn:
                    del self.active[number]
                    # a worker with an LP plunges; after a dive the best of all is next
                    own = left.pop(0) if left and worker.relaxation is not None else None
                    if own is not None:
                        self.active[number] = own
                    for child in left:
                        heapq.heappush(self.queue, child)
                    self.turn.notify_all()
        finally:
            self._retire(worker)

    def _next(self, number: int, own: Node | None) -> Node | None:
        """The node that a worker visits next, None when the search is over. Waits while others may still find some."""
        while not self.stopped:
            if own is None and self.queue:
                own = heapq.heappop(self.queue)
                if own.bound >= self.limit:
                    self.queue.clear()
                    own = None
            if own is not None:
                self.active[number] = own
                self.stopped = self._limit_hit()
                if self.stopped:
                    break
                self.visits += 1
                self.nodes += 1
                self._record(self._bound())
                return own
            if not self.active:
                break
            self.turn.wait()
        if own is not None:
            self.active.pop(number, None)
            heapq.heappush(self.queue, own)
        self.turn.notify_all()
        return None

    def _bound(self) -> float:
        """No point that is of use is cheaper."""
        return min([*(n.bound for n in self.queue[:1]), *(n.bound for n in self.active.values())], default=np.inf)

    def _limit_hit(self) -> str:
        """Name of the limit that ends the search; empty while none does."""
        options = self.options.options
        if self.options.time_limit is not None and time.perf_counter() - self.begin >= self.options.time_limit:
            return "time limit"
        if self.nodes >= options.get(NODE_LIMIT, np.inf):
            return "node limit"
        if MEMORY_LIMIT in options:
            size = len(self.instance.leaf) + len(self.instance.cell)
            # with LPs, half of the nodes have multipliers and a basis of their own
            each = 300 + size / 8 + 8 * len(self.instance.ordered) + (8 * size if self._lp_solves else 0)
            if len(self.queue) * each > options[MEMORY_LIMIT] * 1e6:
                return "memory limit"
        return ""

    def _record(self, bound: float) -> None:
        self.history.append(Progress(time.perf_counter() - self.begin, min(bound, self.upper), self.upper))

    # -- LPs -----------------------------------------------------------------------------------------------

    def _shrink_hull(self) -> None:
        """Look for a smaller box around everything that is open: after improvements and when visits have doubled."""
        if self.generation and (self._improved or self.visits & (self.visits - 1) == 0):
            self._improved = False
            hull = copied(self.hull)
            unite((n.domain for n in (*self.queue, *self.active.values()) if n.bound < self.limit), hull)
            if hull.live.sum() < SMALLER * self.hull.live.sum():
                self.hull = hull
                self.generation += 1

    @property
    def has_relaxation(self) -> bool:
        """Whether there are LP bounds; True until that is tried."""
        return self._relaxation is not None

    def load(self, worker: Worker) -> None:
        """Give a worker the LP over the hull, if there is one and it has not got it yet."""
        if self._relaxation is None or (worker.relaxation and worker.relaxation.generation == self.generation):
            return
        self._retire(worker)
        with self._loading:
            if self._relaxation is not None and not isinstance(self._relaxation, Compiled):
                self._relaxation = self._relaxation()
            with self.turn:
                self.generation = max(self.generation, 1)
                hull, generation, compiled = self.hull, self.generation, self._relaxation
        if compiled is None:
            return
        assert isinstance(compiled, Compiled)
        relaxation = Relaxation(compiled, self.cells, self.instance, hull, generation)
        if relaxation.decided:
            return
        try:
            if not relaxation.infeasible:
                relaxation.start(self.upper if np.isfinite(self.upper) else self.cutoff)
            worker.relaxation = relaxation
        except ImportError:
            logger.info("highspy is missing: the box search goes on without LP bounds")
            self._relaxation = None

    def _retire(self, worker: Worker) -> None:
        if worker.relaxation is not None:
            self._lp_solves += worker.relaxation.solves
            self._lp_seconds += worker.relaxation.seconds
            worker.relaxation = None

    # -- what workers ask ----------------------------------------------------------------------------------

    def node(self, bound: float, multipliers: Multipliers, domain: Packed, basis: Basis | None) -> Node:
        """A new open node."""
        with self.turn:
            self.created += 1
            return Node(bound, -self.created, domain, multipliers, basis)

    def seconds_left(self) -> float | None:
        """Of the time limit, but never quite nothing; None without one."""
        if self.options.time_limit is None:
            return None
        return max(self.options.time_limit - (time.perf_counter() - self.begin), 0.01)

    def boxes_left(self, most: int) -> int:
        """Of the node limit, at most so many."""
        return int(min(most, max(self.options.options.get(NODE_LIMIT, np.inf) - self.nodes, 0)))

    def count(self, boxes: int) -> None:
        """Count the boxes of a dive. The first of them was counted when its node was visited."""
        with self.turn:
            self.nodes += boxes

    def rejected(self) -> IntArray:
        """What `ocf.solvers.box.dive.dive` is to take for excluded: also points that fail by a hair."""
        with self.turn:
            choices = [*self.cells.excluded, *(np.frombuffer(key, np.int64) for key in sorted(self.excluded))]
        return exclusions(self.cells, choices)

    def offer(self, x: IntArray, leaves: IntArray) -> bool:
        """Judge a point and its leaves; whether it is admissible. Keep it if it is the best."""
        with self.turn:
            key = leaves.tobytes()
            if key in self.excluded or self.cells.is_excluded(leaves):
                return False
            margins = self.cells.margins(leaves)
            if not (self.cells.live[leaves].all() and (margins >= 0).all()):
                self.excluded.add(key)
                return False
            doubtful = bool((margins < self.cells.requirements.doubt).any())
            if doubtful and self.confirm is not None and not self.confirm(x.copy()):
                self.excluded.add(key)
                self.refused += 1
                return False
            cost = self.cells.cost_of(x)
            if cost < min(self.upper, self.cutoff):
                self.best, self.upper, self._improved = x.copy(), cost, True
                self.shared[0] = min(self.shared[0], cost - self.tolerance * abs(cost))
            return True

    # -- the answer ----------------------------------------------------------------------------------------

    def _result(self) -> BoxResult:
        bound = min(self._bound(), self.limit)
        message = self.stopped
        if self.stopped and self.queue:
            status = Status.UNKNOWN if self.best is None else Status.FEASIBLE
        elif self.best is None:
            status, bound = Status.INFEASIBLE, self.cutoff
            message = CUTOFF if np.isfinite(self.cutoff) else ""
        else:
            status, message = Status.OPTIMAL, ""
            if self.options.mip_gap <= TOLERANCE:
                bound = self.upper
        self._record(bound)
        return BoxResult(
            status,
            self.best,
            None if self.best is None else self.upper,
            float(bound),
            self.nodes,
            time.perf_counter() - self.begin,
            monotone(self.history),
            self._lp_solves,
            self._lp_seconds,
            self.refused,
            message,
        )

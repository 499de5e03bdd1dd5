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
=====================  =============================================================================

::

    node ──▶ propagate ──▶ cheapest point feasible? ──▶ LP, multipliers, propagate ──▶ round ──▶ branch
                │                    │ yes: done                   │
                ▼ nothing left       ▼                             ▼ bound ≥ limit

The paper builds its search tree dimension by dimension and prunes by distance; here any feature may be split at any
node, and a node is pruned by the sum over trees of the best live leaf and by bounds of LP strength.
"""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ocf.cells import CellProblem
from ocf.ensemble import IntArray
from ocf.kernels import log_compilation
from ocf.reduction import TOLERANCE
from ocf.reduction import reduce as reduce_cells
from ocf.solvers.box.branching import CANDIDATES, candidate_cuts, restrict, try_cuts
from ocf.solvers.box.instance import Packed, copied, make_instance, pack, unpack, whole
from ocf.solvers.box.points import LEVELS, best_rounding, cheapest_point, make_evaluator, meets_target
from ocf.solvers.box.propagation import Multipliers, new_workspace, propagate, relaxed_bound
from ocf.solvers.box.relaxation import Relaxation, no_relaxation
from ocf.solvers.result import CUTOFF, Progress, SolverOptions, Status, monotone

if TYPE_CHECKING:
    from ocf.compiled import Compiled

logger = logging.getLogger(__name__)

#: Options of the search itself, in `SolverOptions.options`.
NODE_LIMIT, MEMORY_LIMIT = "node_limit", "memory_limit"


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
    seconds, lp_seconds : float
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
    relaxation: Compiled | None = None,
) -> BoxResult:
    """Find the cheapest choice of open cells that meets the target, with proof.

    Parameters
    ----------
    cells : CellProblem
        Its closed cells, dead leaves and excluded choices of leaves are respected.
    options : SolverOptions, optional
        Besides the common ones, ``options={"node_limit": n, "memory_limit": megabytes}``. One thread is used, and
        no random numbers, so that the same question is searched in the same way every time.
    cutoff : float
        Only points cheaper than this are of interest.
    confirm : callable, optional
        Whether the user's model gives the target at a choice of cells. Asked about points within rounding of a tie;
        the leaves of a refused point are excluded.
    relaxation : ocf.compiled.Compiled, optional
        A formulation for LP bounds; without it, or without highspy, the search uses its combinatorial bounds.

    Returns
    -------
    BoxResult
    """
    return _Search(cells, options or SolverOptions(), cutoff, confirm, relaxation).run()


class _Node(NamedTuple):
    """An open node; the order is that of the queue: by bound, the latest first among equals."""

    bound: float
    number: int
    domain: Packed
    multipliers: Multipliers


class _Search:
    """State of one search."""

    def __init__(
        self,
        cells: CellProblem,
        options: SolverOptions,
        cutoff: float,
        confirm: Callable[[IntArray], bool] | None,
        compiled: Compiled | None,
    ) -> None:
        self.begin = time.perf_counter()
        self.cells, self.options, self.cutoff = cells, options, cutoff
        self.confirm, self.compiled = confirm, compiled
        self.best: IntArray | None = None
        self.upper = np.inf
        self.refused = self.nodes = self.created = 0
        self.excluded: set[bytes] = set()
        self.history: list[Progress] = []
        self.relaxation: Relaxation | None = None
        self.queue: list[_Node] = []

    @property
    def limit(self) -> float:
        """Cost from which on a point is of no use."""
        limit = self.cutoff - TOLERANCE * abs(self.cutoff) if np.isfinite(self.cutoff) else np.inf
        if self.best is None:
            return limit
        return min(limit, self.upper - max(TOLERANCE, self.options.mip_gap) * abs(self.upper))

    def run(self) -> BoxResult:
        """Search until nothing is left or a limit is hit."""
        reduction = reduce_cells(self.cells, self.cutoff)
        if reduction.proved:
            return self._result(np.inf, "")
        self._prepare(reduction.cells)
        if self.relaxation is not None and self.relaxation.infeasible:
            return self._result(np.inf, "")
        root = whole(self.instance)
        node: _Node | None = self._node(reduction.bound, no_relaxation(self.instance), pack(self.instance, root))
        while node is not None:
            stopped = self._limit_hit()
            bound = min([node.bound, *(n.bound for n in self.queue[:1])])
            if stopped:
                return self._result(bound, stopped)
            self._record(bound)
            self.nodes += 1
            child = self._visit(node)
            while child is None and self.queue:
                best = heapq.heappop(self.queue)
                if best.bound >= self.limit:
                    self.queue.clear()
                else:
                    child = best
            node = child
        return self._result(np.inf, "")

    def _prepare(self, cells: CellProblem) -> None:
        """Pack what is left; load the LP."""
        log_compilation(propagate)
        self.instance = make_instance(cells)
        self.evaluator = make_evaluator(cells)
        self.work = new_workspace(self.instance)
        self.domain = whole(self.instance)
        self.scratch = copied(self.domain)
        self.x = np.zeros(len(self.instance.ordered), np.int64)
        if self.compiled is not None:
            try:
                self.relaxation = Relaxation(self.compiled, cells, self.instance)
                if self.relaxation.decided:
                    self.relaxation = None
                elif not self.relaxation.infeasible:
                    self.relaxation.start(self.cutoff)
            except ImportError:
                logger.info("highspy is missing: the box search goes on without LP bounds")
                self.relaxation = None

    def _node(self, bound: float, multipliers: Multipliers, domain: Packed) -> _Node:
        self.created += 1
        return _Node(bound, -self.created, domain, multipliers)

    def _limit_hit(self) -> str:
        """Name of the limit that ends the search; empty while none does."""
        options = self.options.options
        if self.options.time_limit is not None and time.perf_counter() - self.begin >= self.options.time_limit:
            return "time limit"
        if self.nodes >= options.get(NODE_LIMIT, np.inf):
            return "node limit"
        if MEMORY_LIMIT in options:
            size = len(self.instance.leaf) + len(self.instance.cell)
            # half of the nodes have multipliers of their own
            each = 300 + size / 8 + 8 * len(self.x) + 4 * size
            if len(self.queue) * each > options[MEMORY_LIMIT] * 1e6:
                return "memory limit"
        return ""

    def _record(self, bound: float) -> None:
        self.history.append(Progress(time.perf_counter() - self.begin, min(bound, self.upper), self.upper))

    def _visit(self, node: _Node) -> _Node | None:
        """Bound a node and split it; returns the child to go on with, None when nothing is left of the node."""
        domain, instance = self.domain, self.instance
        unpack(node.domain, domain)
        multipliers = node.multipliers
        bound = max(node.bound, propagate(instance, domain, multipliers, self.limit, self.work))
        if bound >= self.limit or self._cheapest_is_best():
            return None
        share = np.ones(len(instance.cell))
        if self.relaxation is not None:
            relaxed = self.relaxation.solve(domain, self.limit, self._seconds_left())
            if relaxed is None:
                return None
            if relaxed.ray is not None and relaxed_bound(instance, domain, relaxed.ray, self.work) > 0:
                return None
            if relaxed.multipliers is not None:
                multipliers = relaxed.multipliers
                bound = max(bound, propagate(instance, domain, multipliers, self.limit, self.work))
                if bound >= self.limit:
                    return None
            share = relaxed.share
            self._round(share)
            if bound >= self.limit:
                return None
        return self._branch(bound, multipliers, share)

    def _seconds_left(self) -> float | None:
        if self.options.time_limit is None:
            return None
        return max(self.options.time_limit - (time.perf_counter() - self.begin), 0.01)

    def _branch(self, bound: float, multipliers: Multipliers, share: np.ndarray) -> _Node | None:
        """Split the box of `self.domain`; returns the better half and queues the other."""
        domain, instance = self.domain, self.instance
        while True:
            features, cuts = candidate_cuts(instance, domain, share, CANDIDATES)
            if not len(features):
                self._cheapest_is_best()  # a single point: propagation may have come upon it unseen
                return None
            limit = self.limit
            m, before, beyond = try_cuts(
                instance, domain, multipliers, bound, limit, features, cuts, self.scratch, self.work
            )
            if np.isfinite(before) and np.isfinite(beyond):
                return self._split(features[m], cuts[m], before, beyond, multipliers)
            if before == np.inf and beyond == np.inf:
                return None
            restrict(instance, domain, features[m], cuts[m], before == np.inf)
            bound = max(bound, propagate(instance, domain, multipliers, limit, self.work))
            if bound >= limit or self._cheapest_is_best():
                return None

    def _split(self, f: int, j: int, before: float, beyond: float, multipliers: Multipliers) -> _Node:
        halves = []
        for side, bound in ((False, before), (True, beyond)):
            unpacked = self.scratch
            for target, source in zip(unpacked, self.domain, strict=True):
                target[:] = source
            restrict(self.instance, unpacked, f, j, side)
            halves.append(self._node(bound, multipliers, pack(self.instance, unpacked)))
        halves.sort()
        heapq.heappush(self.queue, halves[1])
        return halves[0]

    def _cheapest_is_best(self) -> bool:
        """Whether the cheapest point of the box is admissible: then nothing else in the box is of use."""
        cheapest_point(self.instance, self.domain, self.x)
        found = bool(meets_target(self.evaluator, self.x)) and self._offer(self.x)
        return found and self.cells.leaf_cost is None  # else a dearer cell may lie in cheaper leaves

    def _round(self, share: np.ndarray) -> None:
        """Look for a better incumbent near the LP's point."""
        cost, x = best_rounding(self.evaluator, self.instance, self.domain, share, LEVELS, self.limit)
        if np.isfinite(cost):
            meets_target(self.evaluator, x)
            self._offer(x)

    def _offer(self, x: IntArray) -> bool:
        """Judge a point whose leaves are in ``evaluator.at``; whether it is admissible. Keep it if it is the best."""
        leaves = self.evaluator.at.leaf
        margins = self.cells.margins(leaves)
        if not (self.cells.live[leaves].all() and (margins >= 0).all()):
            return False
        if leaves.tobytes() in self.excluded or self.cells.is_excluded(leaves):
            return False
        doubtful = bool((margins < self.cells.requirements.doubt).any())
        if doubtful and self.confirm is not None and not self.confirm(x.copy()):
            self.excluded.add(leaves.tobytes())
            self.refused += 1
            return False
        cost = self.cells.cost_of(x)
        if cost < self.upper:
            self.best, self.upper = x.copy(), cost
        return True

    def _result(self, bound: float, stopped: str) -> BoxResult:
        """The answer, given the least bound of what is left (inf when nothing is left) and the limit that was hit."""
        bound = min(bound, self.limit)
        message = stopped
        if stopped:
            status = Status.UNKNOWN if self.best is None else Status.FEASIBLE
        elif self.best is None:
            status, bound = Status.INFEASIBLE, self.cutoff
            message = CUTOFF if np.isfinite(self.cutoff) else ""
        else:
            status = Status.OPTIMAL
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
            self.relaxation.solves if self.relaxation else 0,
            self.relaxation.seconds if self.relaxation else 0.0,
            self.refused,
            message,
        )

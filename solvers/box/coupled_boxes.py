"""Boxes of cells, bounded by what couples their features (`ocf.solvers.box.coupled_bounds`), split until all are done.

A box is done with when nothing in it is of use, or when its least point has the target and is, placed exactly, as cheap
as its bound. All others are split, down to a single choice of cells or of leaves.
"""

from __future__ import annotations

import heapq
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.cells.reduction import TOLERANCE
from ocf.errors import TimeLimitError
from ocf.solvers.box.branching import restrict
from ocf.solvers.box.coupled_bounds import Box, Coupling, bound_box, choose_cut
from ocf.solvers.box.instance import Instance, Packed, assign, copied, pack, range_minima, unpack, whole
from ocf.solvers.box.points import make_evaluator, meets_target
from ocf.solvers.box.propagation import Multipliers, new_workspace
from ocf.solvers.box.quadratic import new_active_set
from ocf.solvers.box.search import BoxResult, concluded
from ocf.solvers.box.squares import new_dual_table
from ocf.solvers.box.sums import new_table
from ocf.solvers.result import LEFT_OPEN, Progress, SolverOptions, monotone
from ocf.support.limits import current
from ocf.support.tolerances import falls_short

if TYPE_CHECKING:
    from ocf.cells.cell_problem import CellProblem


class OpenBox(NamedTuple):
    """A box that is left; the order is that of the queue: by bound, the latest first among equals.

    Attributes
    ----------
    bound : float
        No point of the box that is of use is cheaper.
    number : int
        Negative, of the order of creation.
    domain : Packed
    t : (m,) float64
        Where to start looking for its least point.
    """

    bound: float
    number: int
    domain: Packed
    t: FloatArray


def new_box(coupling: Coupling, instance: Instance) -> Box:
    """A box in numbers, of the sizes that an instance needs.

    Parameters
    ----------
    coupling : Coupling
    instance : Instance
    """
    m, size = len(coupling.quadratic.up), len(coupling.feature)
    t, low, high, inner_t, inner_low, inner_high = (np.zeros(size) for _ in range(6))
    low[m:], high[m:] = coupling.sums.low, coupling.sums.high
    rest, price = np.zeros(len(instance.ordered)), np.zeros(len(instance.leaf))
    scratch, table, inner = new_active_set(coupling.quadratic), new_table(size - m, m), new_table(size - m, m)
    slope = table.slope if size > m else scratch.slope
    dual, inner_dual = (new_dual_table(own.sign, own.slope) for own in (table, inner))
    ends = low, high, slope, rest, price, inner_t, inner_low, inner_high
    return Box(t, *ends, scratch, table, dual, inner, inner_dual)


class CoupledBoxes(ABC):
    """State of a search.

    Parameters
    ----------
    cells : CellProblem
        Not infeasible.
    coupling : Coupling
    instance : Instance
        Of the cells, which cost what the coupling does not.
    options : SolverOptions
        As in `ocf.solvers.box.search.solve_cells`; one thread.
    cutoff : float
        Only points cheaper than this are of interest.
    """

    def __init__(
        self,
        cells: CellProblem,
        coupling: Coupling,
        instance: Instance,
        options: SolverOptions,
        cutoff: float = np.inf,
    ) -> None:
        self.begin = time.perf_counter()
        self.cells, self.options, self.cutoff = cells, options, cutoff
        self.coupling, self.instance = coupling, instance
        cost = instance.cost.copy()
        self.priced = instance._replace(cost=cost, table=range_minima(cost, int(np.diff(instance.offsets).max())))
        self.box, self.work = new_box(coupling, instance), new_workspace(instance)
        self.nothing = Multipliers(-np.inf, np.zeros(len(instance.leaf)), np.zeros(len(instance.cell)))
        self.domain = whole(instance)
        self.half = copied(self.domain)
        self.evaluator = make_evaluator(cells)
        self.x = np.zeros(len(instance.ordered), np.int64)
        self.tolerance = max(TOLERANCE, options.mip_gap)
        self.limit = cutoff - TOLERANCE * abs(cutoff) if np.isfinite(cutoff) else np.inf
        self.best: IntArray | None = None
        self.upper = np.inf
        self.refused = self.nodes = self.created = 0
        self.closed: set[bytes] = set()  # choices of leaves that nothing is left of
        self.left_open = np.inf  # bound of choices in which cheaper numbers may be than those that were tried
        self.queue: list[OpenBox] = []
        self.history: list[Progress] = []
        self._around = current()

    @abstractmethod
    def look(self) -> float:
        """Cost of the cheapest point near a box's least one, if it is admissible; else inf."""

    @abstractmethod
    def is_done(self) -> bool:
        """Whether nothing is left of a box but what has been judged."""

    @abstractmethod
    def offer(self, x: IntArray) -> float:
        """Judge a choice of cells, and keep it if it is the best; its cost, inf where it is not admissible.

        Parameters
        ----------
        x : (n_features,) int64
            Cells of the partition.
        """

    def run(self) -> BoxResult:
        """Search until nothing is left or a limit is hit."""
        own: OpenBox | None = self._open(-np.inf, pack(self.instance, self.domain))
        stopped = ""
        while own is not None or self.queue:
            if own is None:
                own = heapq.heappop(self.queue)
            if own.bound >= self.limit:
                own = None
                continue
            stopped = self._limit_hit()
            if stopped:
                heapq.heappush(self.queue, own)
                break
            self.nodes += 1
            try:
                left = self._visit(own)
            except TimeLimitError:  # of a point that is placed in exact arithmetic: the box stays open
                stopped = "time limit"
                heapq.heappush(self.queue, own)
                break
            own = left.pop(0) if left else None
            for box in left:
                heapq.heappush(self.queue, box)
            if self.nodes & (self.nodes - 1) == 0:
                self._record(own)
        return self._result(stopped)

    # -- boxes ---------------------------------------------------------------------------------------------

    def _open(self, bound: float, domain: Packed) -> OpenBox:
        self.created += 1
        return OpenBox(bound, -self.created, domain, self.box.t.copy())

    def _visit(self, node: OpenBox) -> list[OpenBox]:
        """Bound a box and split it; returns what is left of it, the better half first."""
        domain, instance, box = self.domain, self.instance, self.box
        unpack(node.domain, domain)
        box.t[:] = node.t
        bound, whole_look = node.bound, True
        while True:
            bound = max(bound, self._bounded(whole_look))
            if bound >= self.limit or self.is_done():
                return []
            cost = self.look()
            if bound >= self.limit or cost <= bound + self.tolerance * abs(bound):
                return []
            asked = self.coupling, instance, domain, bound, self.limit, self.half, box
            f, j, before, beyond, shrank = choose_cut(*asked)
            if before == np.inf:
                return []
            if f >= 0:
                break
            if not shrank:  # a single choice of cells; what was looked at may have been one next to it
                if meets_target(self.evaluator, self.x):
                    self.offer(self.x)
                return []
            whole_look = False
        halves = [self._open(at, self._half(f, j, side)) for side, at in ((False, before), (True, beyond))]
        return sorted(halves, key=lambda half: half[:2])

    def _bounded(self, with_leaves: bool) -> float:
        """Shrink the box of `self.domain`; what no point of it is below."""
        asked = self.coupling, self.instance, self.priced, self.domain, self.nothing, self.limit, self.work, self.box
        return float(bound_box(*asked, with_leaves))

    def _half(self, f: int, j: int, beyond: bool) -> Packed:
        assign(self.half, self.domain)
        restrict(self.instance, self.half, f, j, beyond)
        return pack(self.instance, self.half)

    # -- limits --------------------------------------------------------------------------------------------

    def _limit_hit(self) -> str:
        """Name of the limit that ends the search; empty while none does."""
        limit = self.options.time_limit
        if limit is not None and time.perf_counter() - self.begin >= limit:
            return "time limit"
        if self._around.full:
            return "memory limit"
        return "node limit" if self.nodes >= self.options.options.get("node_limit", np.inf) else ""

    def _bound(self, own: OpenBox | None = None) -> float:
        """No point that is of use is cheaper."""
        least = min([*(box.bound for box in self.queue[:1]), *([own.bound] if own else [])], default=np.inf)
        return float(min(least, self.limit, self.upper, self.cutoff, self.left_open))

    def _record(self, own: OpenBox | None) -> None:
        self.history.append(Progress(time.perf_counter() - self.begin, self._bound(own), self.upper))

    def _result(self, stopped: str) -> BoxResult:
        least = min(self.upper, self.cutoff)
        gap = 0.0 if self.best is None else self.options.mip_gap
        if not stopped and falls_short(self.left_open, least, gap):
            stopped = LEFT_OPEN
        status, bound, message = concluded(self.best, self.upper, self._bound(), self.cutoff, self.options, stopped)
        self._record(None)
        return BoxResult(
            status,
            self.best,
            None if self.best is None else self.upper,
            bound,
            self.nodes,
            time.perf_counter() - self.begin,
            monotone(self.history),
            refused=self.refused,
            message=message,
        )

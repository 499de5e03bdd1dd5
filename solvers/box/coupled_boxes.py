"""Boxes of cells, bounded by what couples their features (`ocf.solvers.box.coupled_bounds`), split until all are done.

A box is done with when nothing in it is of use, or when its least point has the target and is, placed exactly, as cheap
as its bound. All others are split, down to a single choice of cells or of leaves.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.solvers.box.branching import restrict
from ocf.solvers.box.coupled_bounds import Box, Coupling, bound_box, choose_cut, least_around
from ocf.solvers.box.instance import Instance, Packed, assign, copied, pack, range_minima, unpack, whole
from ocf.solvers.box.open_boxes import BoxWorker, OpenBoxes, visit_all
from ocf.solvers.box.points import make_evaluator, meets_target
from ocf.solvers.box.propagation import Multipliers, new_workspace
from ocf.solvers.box.quadratic import new_active_set
from ocf.solvers.box.search import BoxResult, concluded
from ocf.solvers.box.squares import new_dual_table
from ocf.solvers.box.sums import new_slopes, new_table
from ocf.solvers.result import LEFT_OPEN, SolverOptions, monotone
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
    scratch, slopes = new_active_set(coupling.quadratic), new_slopes(size - m, m)
    slope = slopes.slope if size > m else scratch.slope
    ends = low, high, slope, rest, price, inner_t, inner_low, inner_high
    tables = new_table(size - m, m), new_dual_table(size - m, m)
    return Box(t, *ends, slopes, new_slopes(size - m, m), scratch, *tables)


class CoupledBoxes(OpenBoxes[OpenBox]):
    """State of a search.

    Parameters
    ----------
    cells : CellProblem
        Not infeasible.
    coupling : Coupling
    instance : Instance
        Of the cells, which cost what the coupling does not.
    options : SolverOptions
        As in `ocf.solvers.box.search.solve_cells`; no other solver does better, so that nothing counts as a stall.
    cutoff : float
        Only points cheaper than this are of interest.

    Attributes
    ----------
    closed : set of bytes
        Choices of leaves that nothing is left of.
    left_open : float
        Bound of choices in which cheaper numbers may be than those that were tried.
    judging : threading.RLock
        Held by the worker that judges a choice.
    """

    def __init__(
        self,
        cells: CellProblem,
        coupling: Coupling,
        instance: Instance,
        options: SolverOptions,
        cutoff: float = np.inf,
    ) -> None:
        super().__init__(replace(options, stall_limit=None), cutoff)
        self.cells, self.coupling, self.instance = cells, coupling, instance
        self.closed: set[bytes] = set()
        self.left_open = np.inf
        self.judging = threading.RLock()

    @abstractmethod
    def worker(self) -> CoupledWorker:
        """What visits boxes, for one thread."""

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
        workers = [self.worker() for _ in range(self.options.threads)]
        self.queue = [self.open(-np.inf, pack(self.instance, whole(self.instance)), workers[0].box.t)]
        visit_all(self, workers)
        return self._result()

    def open(self, bound: float, domain: Packed, t: FloatArray) -> OpenBox:
        """A new open box.

        Parameters
        ----------
        bound : float
            No point of the box that is of use is cheaper.
        domain : Packed
        t : (m,) float64
            Where to start looking for its least point.
        """
        with self.turn:
            self.created += 1
            return OpenBox(bound, -self.created, domain, t.copy())

    def keep(self, x: IntArray, cost: float) -> None:
        """Let a choice of cells be the best.

        Parameters
        ----------
        x : (n_features,) int64
            Cells of the partition.
        cost : float
        """
        with self.turn:
            self.best, self.upper = x.copy(), cost
            self.lower_limit(cost - self.tolerance * abs(cost))

    def bound(self) -> float:
        """No point that is of use is cheaper."""
        return float(min(super().bound(), self.limit, self.upper, self.cutoff, self.left_open))

    def _result(self) -> BoxResult:
        least = min(self.upper, self.cutoff)
        gap = 0.0 if self.best is None else self.options.mip_gap
        stopped = self.stopped if any(own.bound < self.limit for own in self.queue[:1]) else ""
        if not stopped and falls_short(self.left_open, least, gap):
            stopped = LEFT_OPEN
        status, bound, message = concluded(self.best, self.upper, self.bound(), self.cutoff, self.options, stopped)
        self.record(self.bound())
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


class CoupledWorker(BoxWorker[OpenBox]):
    """One thread's part of a search.

    Parameters
    ----------
    search : CoupledBoxes
        What all workers share.
    """

    def __init__(self, search: CoupledBoxes) -> None:
        self.search, self.coupling, self.instance = search, search.coupling, search.instance
        cost = self.instance.cost.copy()
        most = int(np.diff(self.instance.offsets).max())
        self.priced = self.instance._replace(cost=cost, table=range_minima(cost, most))
        self.box, self.work = new_box(self.coupling, self.instance), new_workspace(self.instance)
        self.nothing = Multipliers(-np.inf, np.zeros(len(self.instance.leaf)), np.zeros(len(self.instance.cell)))
        self.domain = whole(self.instance)
        self.half = copied(self.domain)
        self.evaluator = make_evaluator(search.cells)
        self.x = np.zeros(len(self.instance.ordered), np.int64)
        self.number = np.full(len(search.cells.live), -1, np.int64)  # of live leaves
        self.number[self.instance.leaf] = np.arange(len(self.instance.leaf))

    @abstractmethod
    def look(self) -> float:
        """Cost of the cheapest point near a box's least one, if it is admissible; else inf."""

    @abstractmethod
    def is_done(self) -> bool:
        """Whether nothing is left of a box but what has been judged."""

    def visit(self, node: OpenBox) -> list[OpenBox]:
        """Bound a box and split it; returns what is left of it, the better half first."""
        search, domain, instance, box = self.search, self.domain, self.instance, self.box
        unpack(node.domain, domain)
        box.t[:] = node.t
        bound, whole_look = node.bound, True
        while True:
            bound = max(bound, self._bounded(whole_look))
            if bound >= search.limit or self.is_done():
                return []
            cost = self.look()
            if bound >= search.limit or cost <= bound + search.tolerance * abs(bound):
                return []
            asked = self.coupling, instance, domain, bound, search.limit, self.half, box
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
        halves = [search.open(at, self._half(f, j, side), box.t) for side, at in ((False, before), (True, beyond))]
        return sorted(halves, key=lambda half: half[:2])

    def offer(self, x: IntArray) -> float:
        """Put a choice of cells with the target before the search; its cost, inf where it is not admissible.

        Parameters
        ----------
        x : (n_features,) int64
            Cells of the partition.
        """
        return self.search.offer(x)

    def around(self, x: IntArray) -> float:
        """Least cost in the leaves of a choice of cells, which is overwritten with the cells in which it is.

        Parameters
        ----------
        x : (n_features,) int64
            Cells of the partition.
        """
        meets_target(self.evaluator, x)
        leaves = self.number[self.evaluator.at.leaf]
        return float(least_around(self.coupling, self.instance, leaves, self.half, self.box, x))

    def _bounded(self, with_leaves: bool) -> float:
        """Shrink the box of `self.domain`; what no point of it is below."""
        limit = self.search.limit
        asked = self.coupling, self.instance, self.priced, self.domain, self.nothing, limit, self.work, self.box
        return float(bound_box(*asked, with_leaves))

    def _half(self, f: int, j: int, beyond: bool) -> Packed:
        assign(self.half, self.domain)
        restrict(self.instance, self.half, f, j, beyond)
        return pack(self.instance, self.half)

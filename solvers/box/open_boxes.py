"""What searches over boxes have in common: the queue of open ones, the workers that visit them, and the limits.

Workers look at different boxes at the same time (section VII.C of algorithm 5's paper) and prune by the same incumbent.
One worker visits the boxes in the same order every time; several do not, but prove the same cost.
"""

from __future__ import annotations

import heapq
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextvars import copy_context
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from ocf.arrays import IntArray
from ocf.cells.reduction import TOLERANCE
from ocf.errors import TimeLimitError
from ocf.solvers.result import STALLED, Progress, SolverOptions, stalls
from ocf.support.interruption import raise_if_asked
from ocf.support.limits import current

#: Name of the limit on the boxes that are looked at, in `SolverOptions.options`.
NODE_LIMIT = "node_limit"


class AnyNode(Protocol):
    """An open box; the order is that of the queue: by bound, the latest first among equals."""

    @property
    def bound(self) -> float:
        """No point of the box that is of use is cheaper."""

    def __lt__(self, other: Any, /) -> bool: ...


Node = TypeVar("Node", bound=AnyNode)


class OpenBoxes(ABC, Generic[Node]):
    """What the workers of one search share.

    Parameters
    ----------
    options : SolverOptions
    cutoff : float
        Only points cheaper than this are of interest.

    Attributes
    ----------
    shared : (1,) float64
        The limit, where kernels in other threads see it.
    tolerance : float
        What is cheaper than the incumbent by less than this, relatively, is of no use.
    best : (n_features,) int64 or None
        Cells of the best point.
    upper : float
        Its cost.
    active : dict
        The boxes that workers are at.
    turn : threading.Condition
        Held by who changes any of this.
    """

    def __init__(self, options: SolverOptions, cutoff: float) -> None:
        self.begin, self._processor = time.perf_counter(), time.process_time()
        self.options, self.cutoff = options, cutoff
        self.tolerance = max(TOLERANCE, options.mip_gap)
        self.shared = np.array([cutoff - TOLERANCE * abs(cutoff) if np.isfinite(cutoff) else np.inf])
        self.best: IntArray | None = None
        self.upper = np.inf
        self.refused = self.nodes = self.visits = self.created = 0
        self.history: list[Progress] = []
        self.queue: list[Node] = []
        self.active: dict[int, Node] = {}
        self.stopped = ""
        self.failure: BaseException | None = None
        self.turn = threading.Condition(threading.RLock())
        self._stalled = False
        self._around = current()

    @property
    def limit(self) -> float:
        """Cost from which on a point is of no use, however little it changes."""
        return float(self.shared[0])

    def lower_limit(self, limit: float) -> None:
        """Let points from some cost on be of no use.

        Parameters
        ----------
        limit : float
        """
        self.shared[0] = min(self.shared[0], limit)

    # -- the queue -----------------------------------------------------------------------------------------

    def stop(self, reason: str, failure: BaseException | None = None) -> None:
        """End the search of all workers; the first reason stays.

        Parameters
        ----------
        reason : str
        failure : BaseException, optional
            To be raised by the search.
        """
        with self.turn:
            self.failure, self.stopped = self.failure or failure, self.stopped or reason
            self.turn.notify_all()

    def take(self, number: int, own: Node | None) -> Node | None:
        """The box that a worker visits next, None when the search is over. Waits while others may still find some.

        Parameters
        ----------
        number : int
            Of the worker.
        own : object, optional
            The box that it has kept.
        """
        with self.turn:
            while not self.stopped:
                if own is None and self.queue:
                    own = heapq.heappop(self.queue)
                if own is not None and own.bound >= self.limit:
                    self.active.pop(number, None)
                    own = None
                    continue
                if own is not None:
                    self.active[number] = own
                    self.stopped = self.limit_hit()
                    if self.stopped:
                        break
                    self.visits += 1
                    self.nodes += 1
                    self.record(self.bound())
                    return own
                if not self.active:
                    break
                self.turn.wait()
            if own is not None:
                self.active.pop(number, None)
                heapq.heappush(self.queue, own)
            self.turn.notify_all()
            return None

    def give(self, number: int, left: list[Node], *, plunge: bool) -> Node | None:
        """Take back what a worker has left of its box; with `plunge` the first of it stays its own.

        Parameters
        ----------
        number : int
        left : list of boxes
            The most promising first.
        plunge : bool
        """
        with self.turn:
            del self.active[number]
            own = left.pop(0) if left and plunge else None
            if own is not None:
                self.active[number] = own
            for child in left:
                heapq.heappush(self.queue, child)
            self.turn.notify_all()
            return own

    def bound(self) -> float:
        """No point that is of use is cheaper."""
        return min([*(n.bound for n in self.queue[:1]), *(n.bound for n in self.active.values())], default=np.inf)

    def record(self, bound: float) -> None:
        """Note the bound and the incumbent of this moment."""
        self.history.append(Progress(time.perf_counter() - self.begin, min(bound, self.upper), self.upper))

    # -- limits --------------------------------------------------------------------------------------------

    def limit_hit(self) -> str:
        """Name of the limit that ends the search; empty while none does."""
        if self.late:
            return STALLED if self._stalled else "time limit"
        if self._around.full:
            return "memory limit"
        return "node limit" if self.nodes >= self.options.options.get(NODE_LIMIT, np.inf) else ""

    @property
    def late(self) -> bool:
        """Whether the time limit is reached, or the search stalls."""
        raise_if_asked()
        own, watched, now = self.options.time_limit, self.options.stall_limit, time.perf_counter() - self.begin
        if watched is not None and now >= watched:  # the processor's clock takes a millisecond on some machines
            busy = time.process_time() - self._processor
            self._stalled = self._stalled or stalls(self.history, now, busy, watched, self.cutoff)
        return self._stalled or (own is not None and now >= own)


class BoxWorker(ABC, Generic[Node]):
    """One thread's part of a search."""

    @property
    def plunges(self) -> bool:
        """Whether it goes on with a part of the box that it has visited, and not with the best of all."""
        return True

    @abstractmethod
    def visit(self, node: Node) -> list[Node]:
        """Bound a box and split it; returns what is left of it, the part to go on with first.

        Parameters
        ----------
        node : object
        """

    def retire(self) -> None:
        """Give back what others may use."""


def visit_all(boxes: OpenBoxes[Node], workers: Sequence[BoxWorker[Node]]) -> None:
    """Search until nothing is left or a limit is hit, the first worker in this thread, whose limits hold for all.

    Parameters
    ----------
    boxes : OpenBoxes
    workers : sequence of BoxWorker
        A thread each.
    """
    helpers = [
        threading.Thread(
            target=copy_context().run, args=(_work_in_thread, boxes, worker, k), name=f"ocf-box-{k}", daemon=True
        )
        for k, worker in enumerate(workers[1:], 1)
    ]
    for helper in helpers:
        helper.start()
    try:
        _work(boxes, workers[0], 0)
    except BaseException:
        boxes.stop("interrupted")
        raise
    finally:
        for helper in helpers:
            helper.join()
    if boxes.failure is not None:
        raise boxes.failure


def _work_in_thread(boxes: OpenBoxes[Node], worker: BoxWorker[Node], number: int) -> None:
    try:
        _work(boxes, worker, number)
    except BaseException as error:  # raised in the main thread
        boxes.stop("failure", error)


def _work(boxes: OpenBoxes[Node], worker: BoxWorker[Node], number: int) -> None:
    """Visit boxes until none is left or a limit is hit: what one worker does."""
    own = None
    try:
        while True:
            node = boxes.take(number, own)
            if node is None:
                return
            try:
                left = worker.visit(node)
            except TimeLimitError:  # of a point that is placed in exact arithmetic: the box stays open
                left = [node]
                boxes.stop("time limit")
            own = boxes.give(number, left, plunge=worker.plunges)
    finally:
        worker.retire()

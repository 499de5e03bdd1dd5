"""All boxes with the target by increasing cost: the box search that goes on where it has found something.

The search of `ocf.solvers.box.search` ends with the cheapest point. Here the radius is the limit all the time: the
largest box around a point that was found, on which every tree keeps its leaf, is taken out of the node at hand, and
what is left of the node, a few boxes beside it, is searched like any other. Propagation, bounds of LP strength and
strong branching are those of the search. The node with the least bound is the next, so that the boxes come by
increasing cost, and whenever the enumeration is stopped, all that lies below the least bound is known.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ocf.arrays import BoolArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.reduction import reduce as reduce_cells
from ocf.solvers.box.decomposition import PureBox
from ocf.solvers.box.instance import assign, pack, unpack
from ocf.solvers.box.points import cheapest_point, meets_target
from ocf.solvers.box.propagation import MOST_ROUNDS, propagate
from ocf.solvers.box.shared import OpenNode, Shared
from ocf.solvers.box.worker import Worker
from ocf.solvers.cell_form import Compiled
from ocf.solvers.result import SolverOptions

#: Room for rounding at the radius.
_ROOM = 1e-12


class _Ranks(NamedTuple):
    """A pure box in the ranks of an instance.

    Attributes
    ----------
    lo, hi : (n_features,) int64
        First and last rank of ordered features.
    level : (n_open,) bool
        Whether each rank is in the box; only that of unordered features is looked at.
    """

    lo: IntArray
    hi: IntArray
    level: BoolArray


class NearestBoxes:
    """The pure boxes of a problem that meet the target, by increasing cost.

    Parameters
    ----------
    cells : CellProblem
        Its closed cells and dead leaves are respected.
    radius : float
        Only boxes whose cheapest point costs at most this.
    options : SolverOptions, optional
        As in `ocf.solvers.box.search.solve_cells`; `threads` is not used.
    relaxation : ocf.solvers.cell_form.Compiled, or a function that gives one, optional
        A formulation for LP bounds.

    Attributes
    ----------
    complete_to : float
        All boxes that cost less than this have been yielded; inf when the search has come to its end.
    stopped : str
        Which limit ended the search; empty while none has.
    """

    def __init__(
        self,
        cells: CellProblem,
        radius: float,
        options: SolverOptions | None = None,
        relaxation: Compiled | Callable[[], Compiled | None] | None = None,
    ) -> None:
        self.cells = cells
        self.complete_to = 0.0
        self.stopped = ""
        self._most = radius * (1 + _ROOM) + _ROOM
        self._shared = Shared(cells, options or SolverOptions(), 2 * self._most, None, relaxation)
        self._shared.shared[0] = np.nextafter(self._most, np.inf)

    def __iter__(self) -> Iterator[PureBox]:
        """Boxes as they are found; a limit ends the iteration after those that are known beyond the bound."""
        cells, shared = self.cells, self._shared
        if not cells.infeasible:
            # cells beyond the radius stay open: they may be part of a box
            live = cells.live & reduce_cells(cells, self._most * (1 + 1e-6) + 1e-9).cells.live
            cells = replace(cells, live=live)
        if not cells.infeasible:
            shared.start(cells, 0.0)
            worker = _Enumerator(shared)
            while (node := shared.take(0, None)) is not None:
                self.complete_to = min(shared.bound(), shared.limit)
                yield from worker.known_below(self.complete_to)
                shared.give(0, worker.visit(node), plunge=False)
            worker.retire()
            self.stopped = shared.stopped
            yield from worker.known_below(np.inf)
        self.complete_to = shared.bound() if self.stopped else np.inf


class _Enumerator(Worker):
    """Visits nodes as the search does, and takes out of them what it has found.

    Parameters
    ----------
    search : Shared
        Over all cells that may be part of a box.
    """

    def __init__(self, search: Shared) -> None:
        super().__init__(search)
        self._seen: dict[bytes, _Ranks] = {}
        self._found: list[tuple[float, int, PureBox]] = []

    def known_below(self, cost: float) -> Iterator[PureBox]:
        """Boxes that were found and not yielded yet, by increasing cost, as far as they cost at most so much."""
        while self._found and self._found[0][0] <= cost:
            yield heapq.heappop(self._found)[2]

    def visit(self, node: OpenNode) -> list[OpenNode]:
        """Bound a node, take a box out of it or split it; returns what is left of it."""
        search, domain, instance = self.search, self.domain, self.instance
        unpack(node.domain, domain)
        multipliers = node.multipliers
        bound = max(node.bound, propagate(instance, domain, multipliers, search.limit, self.work, MOST_ROUNDS))
        if bound >= search.limit:
            return []
        box = self._box_at_cheapest()
        if box is not None:
            return self._remainder(box, node, bound)
        self.load()
        if search.late:
            return [node]
        if self.relaxation is None:
            return self.branch(self.without_shares(bound, multipliers))
        relaxed = self._relaxed(node, bound, multipliers)
        return [] if relaxed is None else self.branch(relaxed)

    def _box_at_cheapest(self) -> _Ranks | None:
        """The pure box around the cheapest point of the domain, noted down; None where the point misses the target."""
        cheapest_point(self.instance, self.domain, self.x)
        if not meets_target(self.evaluator, self.x):
            return None
        leaves = self.evaluator.at.leaf.copy()
        key = leaves.tobytes()
        if key not in self._seen:
            cells = self.search.cells
            within = cells.open_within(leaves)
            self._seen[key] = self._ranks(within)
            if cells.live[leaves].all() and (cells.margins(leaves) >= 0).all() and not cells.is_excluded(leaves):
                box = _pure_box(cells, leaves, within)
                heapq.heappush(self._found, (box.cost, len(self._seen), box))
        return self._seen[key]

    def _cheapest_is_best(self) -> bool:
        """Note the box around the cheapest point down; what lies beside it is still of use."""
        self._box_at_cheapest()
        return False

    def _ranks(self, within: list[BoolArray]) -> _Ranks:
        """The box of some cells of each feature, of which ordered ones are a run."""
        instance, n = self.instance, len(within)
        feature = np.repeat(np.arange(n), np.diff(instance.offsets))
        level = np.concatenate([within[f][instance.cell[feature == f]] for f in range(n)])
        ranks = [np.flatnonzero(level[feature == f]) for f in range(n)]
        return _Ranks(np.array([r[0] for r in ranks]), np.array([r[-1] for r in ranks]), level)

    def _remainder(self, box: _Ranks, node: OpenNode, bound: float) -> list[OpenNode]:
        """What is left of the domain beside a box that holds its cheapest point: at most two boxes a feature."""
        domain, instance = self.domain, self.instance
        left: list[OpenNode] = []

        def keep() -> None:
            at = max(
                bound, propagate(instance, self.scratch, node.multipliers, self.search.limit, self.work, MOST_ROUNDS)
            )
            if at < self.search.limit:
                left.append(self.search.node(at, node.multipliers, pack(instance, self.scratch), node.basis))

        for f in range(len(instance.ordered)):
            if instance.ordered[f]:
                if domain.lo[f] < box.lo[f]:
                    assign(self.scratch, domain)
                    self.scratch.hi[f] = box.lo[f] - 1
                    keep()
                    domain.lo[f] = box.lo[f]
                if domain.hi[f] > box.hi[f]:
                    assign(self.scratch, domain)
                    self.scratch.lo[f] = box.hi[f] + 1
                    keep()
                    domain.hi[f] = box.hi[f]
                continue
            span = slice(instance.offsets[f], instance.offsets[f + 1])
            outside = domain.level[span] & ~box.level[span]
            if outside.any():
                assign(self.scratch, domain)
                self.scratch.level[span] = outside
                keep()
                domain.level[span] &= box.level[span]
        return left


def _pure_box(cells: CellProblem, leaves: IntArray, within: list[BoolArray]) -> PureBox:
    """The largest box that lies in some leaves, of the open cells within them."""
    part, ensemble = cells.partition, cells.problem.ensemble
    own = tuple(np.flatnonzero(inside) for inside in within)
    cost = sum(float(cells.cost[part.cells_of(i)][choice].min()) for i, choice in enumerate(own))
    scores = part.ensemble.contributions[leaves, : ensemble.n_outputs].sum(axis=0)
    return PureBox(own, leaves, cells.margins(leaves), ensemble.base_score + scores, cost)

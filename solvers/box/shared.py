"""What the workers of a search over cells share: the incumbent, and the hull that their LPs are over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ocf.arrays import IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.solvers.box.bitsets import exclusions
from ocf.solvers.box.instance import Domain, Packed, copied, count_changes, make_instance, pack, unite, whole
from ocf.solvers.box.open_boxes import NODE_LIMIT, OpenBoxes
from ocf.solvers.box.partial_lp import Basis
from ocf.solvers.box.propagation import Multipliers
from ocf.solvers.box.relaxation import no_relaxation
from ocf.solvers.cell_form import Compiled
from ocf.solvers.result import SolverOptions
from ocf.support.tolerances import equal_cost, with_ties

#: Options of the search itself, in `SolverOptions.options`.
OPTIONS = NODE_LIMIT, MEMORY_LIMIT = NODE_LIMIT, "memory_limit"

#: The LP is loaded anew when the boxes that are open hold less than this share of its leaves.
SMALLER = 0.6


class OpenNode(NamedTuple):
    """An open node; the order is that of the queue: by bound, the latest first among equals.

    Attributes
    ----------
    bound : float
        No point of the node that is of use is cheaper.
    number : int
        Negative, of the order of creation.
    domain : Packed
    multipliers : Multipliers
        Of the parent's LP.
    basis : Basis or None
        Of the parent's LP. Starting there, and not where the last LP ended, saves half of the simplex iterations.
    """

    bound: float
    number: int
    domain: Packed
    multipliers: Multipliers
    basis: Basis | None


@dataclass
class LocalSearches:
    """When the next local search around the LP's points is due: soon after one that found something, else ever later.

    One takes 40 ms, as long as two or three visits. The first point of a hard row may be twice its optimum: spambase's
    hardest (100 x 5) takes 22 s so, and 27 s with three searches from the origin at 8, 64 and 512 visits.
    """

    due: int = 48
    wait: int = 16

    def tell(self, visits: int, found: bool) -> None:
        """Note how the search after so many visits has ended.

        Parameters
        ----------
        visits : int
        found : bool
            Whether it has found a better point.
        """
        self.wait = LocalSearches.wait if found else 2 * self.wait
        self.due = visits + self.wait


class Equals(NamedTuple):
    """When a point that costs as little as the best is of use: where it changes less.

    Attributes
    ----------
    limit : float
        Cost from which on a point is of no use that changes as much.
    changes : int
        Cells of the best point that cost something.
    """

    limit: float
    changes: int


class Shared(OpenBoxes[OpenNode]):
    """What the workers of one search share.

    Attributes
    ----------
    cells : CellProblem
        After reduction.
    instance : Instance
    fewest : bool
        Whether a point that costs as little as the best and changes less takes its place.
    known : (n_features,) int64 or None
        Cells of a point that costs the cutoff.
    widest : float
        The first limit.
    equals : Equals
        As it is at this moment; without a best point, and without `fewest`, nothing that costs as little is of use.
    generation : int
        Of the hull that the LPs are over; 0 before the first.
    first_basis : Basis or None
        Of the first LP over that hull.
    searches : LocalSearches
    sizes : dict
        `StandardForm.sizes` of the first LP, or of the first matrix where boxes are ended without one.
    """

    def __init__(
        self,
        cells: CellProblem,
        options: SolverOptions,
        cutoff: float,
        confirm: Callable[[IntArray], bool] | None,
        relaxation: Compiled | Callable[[], Compiled | None] | None,
        *,
        fewest: bool = False,
        incumbent: IntArray | None = None,
    ) -> None:
        super().__init__(options, cutoff)
        self.cells, self.confirm, self.relaxation = cells, confirm, relaxation
        self.fewest, self.known = fewest, incumbent
        self.equals = Equals(self.limit, 0)
        if fewest and incumbent is not None:
            self.equals = Equals(self.limit, cells.count_changes(incumbent))
            self.shared[0] = with_ties(cutoff)
        self.widest = self.limit
        self.generation = 0
        self.excluded: set[bytes] = set()
        self.loading = threading.Lock()
        self.lp_solves, self.lp_seconds = 0, 0.0
        self.searches = LocalSearches()
        self.first_basis: Basis | None = None
        self.sizes: dict[str, int] = {}
        self._improved = False

    def limit_in(self, domain: Domain) -> float:
        """Cost from which on a point of a box is of no use.

        Parameters
        ----------
        domain : Domain
        """
        equals = self.equals
        if self.fewest and count_changes(self.instance, domain) >= equals.changes:
            return min(equals.limit, self.limit)
        return self.limit

    def start(self, cells: CellProblem, bound: float) -> None:
        """Open the first node: all cells that reduction has left.

        Parameters
        ----------
        cells : CellProblem
            After reduction.
        bound : float
            No point of use is cheaper.
        """
        self.cells = cells
        self.instance = make_instance(cells)
        self.hull = whole(self.instance)
        self.queue = [self.node(bound, no_relaxation(self.instance), pack(self.instance, self.hull), None)]

    def take(self, number: int, own: OpenNode | None) -> OpenNode | None:
        """As in `OpenBoxes`; the hull may shrink.

        Parameters
        ----------
        number : int
        own : OpenNode, optional
        """
        with self.turn:
            node = super().take(number, own)
            if node is not None:
                self.shrink_hull()
            return node

    def limit_hit(self) -> str:
        """Name of the limit that ends the search; empty while none does."""
        options, hit = self.options.options, super().limit_hit()
        if not hit and MEMORY_LIMIT in options:
            size = len(self.instance.leaf) + len(self.instance.cell)
            # with LPs, half of the nodes have multipliers and a basis of their own
            each = 300 + size / 8 + 8 * len(self.instance.ordered) + (8 * size if self.lp_solves else 0)
            if len(self.queue) * each > options[MEMORY_LIMIT] * 1e6:
                return "memory limit"
        return hit

    # -- LPs -----------------------------------------------------------------------------------------------

    def shrink_hull(self) -> None:
        """Look for a smaller box around everything that is open: after improvements and when visits have doubled."""
        if self.generation and (self._improved or self.visits & (self.visits - 1) == 0):
            self._improved = False
            hull = copied(self.hull)
            unite((n.domain for n in (*self.queue, *self.active.values()) if n.bound < self.limit), hull)
            if hull.live.sum() < SMALLER * self.hull.live.sum():
                self.hull, self.first_basis = hull, None
                self.generation += 1

    def start_hull(self, domain: Domain) -> None:
        """Let the first LP be that of the first node, where all that is open lies in it.

        Parameters
        ----------
        domain : Domain
            Of a node that is being visited.
        """
        with self.turn:
            if self.visits == 1 and not self.generation:
                self.hull = copied(domain)

    def note(self, basis: Basis | None) -> None:
        """Keep where the first solve of an LP ended, for the LPs of other threads over the same hull.

        Parameters
        ----------
        basis : Basis or None
        """
        if basis is not None and basis.generation == self.generation:
            self.first_basis = self.first_basis or basis

    @property
    def has_relaxation(self) -> bool:
        """Whether there are LP bounds; True until that is tried."""
        return self.relaxation is not None

    def compiled(self) -> Compiled | None:
        """The formulation of the LP bounds, made when it is first asked for; None if there is none."""
        with self.loading:
            if self.relaxation is not None and not isinstance(self.relaxation, Compiled):
                self.relaxation = self.relaxation()
            return self.relaxation

    # -- what workers ask ----------------------------------------------------------------------------------

    def node(self, bound: float, multipliers: Multipliers, domain: Packed, basis: Basis | None) -> OpenNode:
        """A new open node.

        Parameters
        ----------
        bound : float
            No point of the node that is of use is cheaper.
        multipliers : Multipliers
        domain : Packed
        basis : Basis or None
        """
        with self.turn:
            self.created += 1
            return OpenNode(bound, -self.created, domain, multipliers, basis)

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

    def refusals(self) -> tuple[IntArray, ...]:
        """Choices of leaves that are excluded or were refused, also of points that fail by a hair."""
        with self.turn:
            return (*self.cells.excluded, *(np.frombuffer(key, np.int64) for key in sorted(self.excluded)))

    def rejected(self) -> IntArray:
        """The same as `ocf.solvers.box.dive.dive` takes it."""
        return exclusions(self.cells, self.refusals())

    def is_closed(self, leaves: IntArray) -> bool:
        """Whether a choice of leaves, (n_trees,), is excluded or was refused, or belongs to the best point."""
        return leaves.tobytes() in self.excluded or self.cells.is_excluded(leaves)

    def offer(self, x: IntArray, leaves: IntArray, fits: bool = True) -> bool:
        """Judge a point and its leaves; whether it is admissible. Keep it if it is the best.

        Parameters
        ----------
        x : (n_features,) int64
            Cells of the partition.
        leaves : (n_trees,) int64
            Leaves of the ensemble.
        fits : bool
            Whether it has the target as far as kernels tell.
        """
        with self.turn:
            if self.is_closed(leaves):
                return False
            key = leaves.tobytes()
            margins = self.cells.margins(leaves)
            if not (fits and self.cells.live[leaves].all() and (margins >= 0).all()):
                self.excluded.add(key)
                return False
            uncertain = bool((margins < self.cells.requirements.error_bound).any())
            if uncertain and self.confirm is not None and not self.confirm(x.copy()):
                self.excluded.add(key)
                self.refused += 1
                return False
            if self.fewest:
                cheapest = self.cells.cheapest_within(leaves)
                self._offer_fewest(x if cheapest is None else cheapest)
                return True
            cost = self.cells.cost_of(x)
            if cost < min(self.upper, self.cutoff):
                self.best, self.upper, self._improved = x.copy(), cost, True
                self.lower_limit(cost - self.tolerance * abs(cost))
            return True

    def _offer_fewest(self, x: IntArray) -> None:
        """Keep a point if it is cheaper, or costs the same and changes less, or is neither worse.

        What is cheaper by a hair does not take the place of what changes less. So boxes that were given up because as
        many features change in them hold nothing that costs as little as any later best point: that is clearly cheaper.
        """
        cost, least, changes = self.cells.cost_of(x), min(self.upper, self.cutoff), self.cells.count_changes(x)
        room = 0.0 if self.best is None and self.known is None else equal_cost(least) - least
        most = self.equals.changes
        cheaper = cost < self.equals.limit - room
        if cheaper or (changes < most and cost <= least + room) or (changes == most and cost < least):
            self.best, self.upper, self._improved = x.copy(), min(cost, least), True
            self.equals = Equals(self.upper - self.tolerance * abs(self.upper), changes)
            self.lower_limit(with_ties(self.upper))

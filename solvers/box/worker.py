"""One thread of the box search: its scratch space, its LP, and what it does with a node."""

from __future__ import annotations

import logging
from typing import NamedTuple

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.cells.incumbent import find_incumbent
from ocf.solvers.box.bitsets import Bits, make_bits, new_scratch, new_stack, pop, push
from ocf.solvers.box.branching import CANDIDATES, candidate_cuts, restrict, try_cuts
from ocf.solvers.box.dive import UNCERTAIN, dive
from ocf.solvers.box.instance import Instance, Packed, assign, copied, pack, unpack, whole
from ocf.solvers.box.open_boxes import BoxWorker
from ocf.solvers.box.partial_lp import Basis
from ocf.solvers.box.points import LEVELS, best_rounding, cheapest_point, make_evaluator, meets_target
from ocf.solvers.box.propagation import MOST_ROUNDS, Multipliers, new_workspace, propagate, relaxed_bound
from ocf.solvers.box.relaxation import Relaxation
from ocf.solvers.box.shared import OpenNode, Shared

logger = logging.getLogger(__name__)


#: Boxes of one dive: a tenth of a second, after which the best open box is next.
BOXES = 2000

#: Boxes of a dive between two looks at the clock.
SLICE = 100

#: Boxes of the dive that may spare a node its LP: they take about as long as the LP.
TRIAL = 200

#: Boxes of the first one at most. Of some forty first dives that left nothing open, in models of 100 trees of depth 5
#: to 500 of depth 8, none took more than 311; in the largest a thousand boxes take a second.
LONGEST_TRIAL = 600

#: With more live leaves than this the local searches come before the first dive. It most often spares them with fewer.
MANY_LEAVES = 1000

#: Before the first LP local search goes on while one saves more than this share of the cost, and so often at most.
WORTHWHILE, MOST_SEARCHES = 0.05, 4

#: Scans of such a local search, and of those that follow.
FIRST_EFFORT, EFFORT = 30_000, 60_000

#: Such a dive is tried when the node has no more live leaves than the last one had, times one of these, after that had
#: left something open and after it had not.
CAUTION, BOLDNESS = 0.8, 1.5


class NodeRelaxation(NamedTuple):
    """What the LP of a node leaves to branch on.

    Attributes
    ----------
    bound : float
    multipliers : Multipliers
    basis : Basis or None
    share : (n_open,) float64
        See `ocf.solvers.box.relaxation`.
    """

    bound: float
    multipliers: Multipliers
    basis: Basis | None
    share: FloatArray


class Worker(BoxWorker[OpenNode]):
    """One thread's part of a search.

    Parameters
    ----------
    search : Shared
        What all workers share.

    Attributes
    ----------
    unsearched : int
        With no more live leaves than this, or than `MANY_LEAVES`, the first LP comes without a local search before.
    """

    unsearched = 0

    def __init__(self, search: Shared) -> None:
        self.search = search
        self.instance: Instance = search.instance
        self.evaluator = make_evaluator(search.cells)
        self.work = new_workspace(self.instance)
        self.domain = whole(self.instance)
        self.scratch = copied(self.domain)
        self.x = np.zeros(len(self.instance.ordered), np.int64)
        self.relaxation: Relaxation | None = None
        self._leaves_cost = search.cells.leaf_cost is not None
        self._bits: Bits | None = None
        self._reach = np.inf
        self._searched = False
        self._roundings: IntArray | None = None

    def load(self) -> None:
        """Take the LP over the hull, if there is one and this worker has not got it yet."""
        search = self.search
        if not search.has_relaxation or (self.relaxation and self.relaxation.lp.generation == search.generation):
            return
        self.retire()
        compiled = search.compiled()
        with search.turn:
            search.generation = max(search.generation, 1)
            hull, generation = search.hull, search.generation
        if compiled is None:
            return
        relaxation = Relaxation(compiled, search.cells, self.instance, hull, generation)
        search.sizes = search.sizes or relaxation.form.sizes
        if relaxation.decided:
            return
        try:
            if not relaxation.infeasible:
                reference = search.upper if np.isfinite(search.upper) else search.cutoff
                relaxation.lp.start(reference, search.first_basis)
            self.relaxation = relaxation
        except ImportError:
            logger.info("highspy is missing: the box search goes on without LP bounds")
            search.relaxation = None

    def retire(self) -> None:
        """Give the LP back, with what it has cost."""
        if self.relaxation is not None:
            with self.search.turn:
                self.search.lp_solves += self.relaxation.solves
                self.search.lp_seconds += self.relaxation.seconds
            self.relaxation = None

    @property
    def plunges(self) -> bool:
        """A worker with an LP plunges; after a dive the best of all is next."""
        return self.relaxation is not None

    def visit(self, node: OpenNode) -> list[OpenNode]:
        """Bound a node and split it; returns what is left of it, the child to go on with first."""
        search, domain, visits = self.search, self.domain, self.search.visits
        if visits >= search.searches.due:
            search.searches.tell(visits, self.improve(visits) > 0)
        unpack(node.domain, domain)
        multipliers = node.multipliers
        bound = self._propagate(node.bound, multipliers)
        if bound >= search.limit or self._cheapest_is_best() or self._only_excluded():
            return []
        bound = self._after_search(bound, multipliers, MANY_LEAVES)
        left = [] if bound >= search.limit else self.before_lp(bound, multipliers)
        if left is not None:
            return left
        bound = self._after_search(bound, multipliers, self.unsearched)
        if bound >= search.limit:
            return []
        if search.has_relaxation and not search.generation:
            search.start_hull(domain)
        self.load()
        if search.late:
            return [node]
        if self.relaxation is None:
            return self.without_lp(bound, multipliers)
        relaxed = self._relaxed(node, bound, multipliers)
        if relaxed is None:
            return []
        self._round(relaxed.share)
        return [] if relaxed.bound >= search.limit else self.after_lp(relaxed)

    # -- what becomes of a box -----------------------------------------------------------------------------

    def before_lp(self, bound: float, multipliers: Multipliers) -> list[OpenNode] | None:
        """What is left of the box of `self.domain` where it needs no LP; None where it does.

        Parameters
        ----------
        bound : float
            No point of the box that is of use is cheaper.
        multipliers : Multipliers
        """
        search, size = self.search, self.domain.live.sum()
        if not search.has_relaxation or self._leaves_cost or size > self._reach:
            return None
        # before the first LP there is a model to build, which takes longer
        longest = min(max(TRIAL, len(search.cells.live) // 4), LONGEST_TRIAL)
        left = self._dive(bound, multipliers, TRIAL if search.generation else longest)
        self._reach = size * (CAUTION if left else BOLDNESS)
        return None if left and not search.late else left

    def without_lp(self, bound: float, multipliers: Multipliers) -> list[OpenNode]:
        """What is left of the box of `self.domain` where no LP can be had.

        Parameters
        ----------
        bound : float
            No point of the box that is of use is cheaper.
        multipliers : Multipliers
        """
        if self._leaves_cost:  # a dive takes the cheapest point of a box for its best
            return self.branch(self.without_shares(bound, multipliers))
        return self._dive(bound, multipliers, BOXES)

    def without_shares(self, bound: float, multipliers: Multipliers) -> NodeRelaxation:
        """What there is to branch on where no LP was solved: all cells alike.

        Parameters
        ----------
        bound : float
            No point of the box that is of use is cheaper.
        multipliers : Multipliers
        """
        return NodeRelaxation(bound, multipliers, None, np.ones(len(self.instance.cell)))

    def after_lp(self, relaxed: NodeRelaxation) -> list[OpenNode]:
        """What is left of the box of `self.domain` after its LP.

        Parameters
        ----------
        relaxed : NodeRelaxation
        """
        return self.branch(relaxed)

    def _after_search(self, bound: float, multipliers: Multipliers, leaves: int) -> float:
        """A bound of the box of `self.domain` after the local searches that come once before the first LP.

        Parameters
        ----------
        bound : float
            No point of the box that is of use is cheaper.
        multipliers : Multipliers
        leaves : int
            In a box with no more live ones nothing is searched yet.
        """
        search = self.search
        if self._searched or search.generation or not search.has_relaxation or self.domain.live.sum() <= leaves:
            return bound
        self._searched = True
        for seed in range(MOST_SEARCHES):
            if (seed and search.late) or self.improve(seed) <= WORTHWHILE:
                break
        with search.turn:
            search.record(search.bound())
        return self._propagate(bound, multipliers)

    def _propagate(self, bound: float, multipliers: Multipliers) -> float:
        """A bound of the box of `self.domain`, of which propagation leaves what is of use; inf where nothing is."""
        limit = self.search.limit_in(self.domain)
        bound = max(bound, propagate(self.instance, self.domain, multipliers, limit, self.work, MOST_ROUNDS))
        return np.inf if bound >= limit else bound

    def _relaxed(self, node: OpenNode, bound: float, multipliers: Multipliers) -> NodeRelaxation | None:
        """Bound the box of `self.domain` by its LP, and propagate with what that gave; None where nothing is of use."""
        search, domain, instance, basis = self.search, self.domain, self.instance, None
        assert self.relaxation is not None
        found = self.relaxation.solve(domain, search.limit_in(domain), search.seconds_left(), node.basis)
        if found is None:
            return None
        search.note(self.relaxation.lp.first_basis)
        if found.ray is not None and relaxed_bound(instance, domain, found.ray, self.work) > 0:
            return None
        if found.multipliers is not None:
            multipliers, basis = found.multipliers, found.basis
            bound = self._propagate(bound, multipliers)
            if bound >= search.limit:
                return None
        return NodeRelaxation(bound, multipliers, basis, found.share)

    def improve(self, seed: int) -> float:
        """Look for a better incumbent by local search; which share of its cost that saves.

        Before the first LP these 20 ms bring random forests on breast cancer and spambase, 100 x 5, within 5 % of the
        optimum in 34 rows of 35, where the point that the search starts from is in 23. Later ones start from the
        roundings of the last LP, for the incumbent itself is a local optimum by then.

        Parameters
        ----------
        seed : int
            Of the local search; 0 for the first.
        """
        search, effort = self.search, FIRST_EFFORT if seed < MOST_SEARCHES else EFFORT
        near = self._roundings
        if near is None and search.best is not None:
            near = search.best[None]
        found = find_incumbent(search.cells, near, seed=seed, effort=effort)
        if found is None or found.cost >= search.limit:
            return 0.0
        before = min(search.upper, search.cutoff)
        self.offer(found.cells)
        return 1.0 - search.upper / before if 0 < search.upper < before else 0.0

    # -- splitting -----------------------------------------------------------------------------------------

    def branch(self, relaxed: NodeRelaxation) -> list[OpenNode]:
        """Halves of the box of `self.domain`, the better one first.

        Parameters
        ----------
        relaxed : NodeRelaxation
        """
        domain, instance = self.domain, self.instance
        bound, multipliers, basis, share = relaxed
        while True:
            limit = self.search.limit_in(domain)
            features, cuts = candidate_cuts(instance, domain, share, CANDIDATES)
            if not len(features):
                self._cheapest_is_best()  # a single point: propagation may have come upon it unseen
                return []
            bound, m, before, beyond = try_cuts(
                instance, domain, multipliers, bound, limit, features, cuts, self.scratch, self.work
            )
            if bound == np.inf or self._cheapest_is_best():
                return []
            if m >= 0:
                halves = [
                    self.search.node(at, multipliers, self._half(features[m], cuts[m], side), basis)
                    for side, at in ((False, before), (True, beyond))
                ]
                return sorted(halves)

    def _half(self, f: int, j: int, beyond: bool) -> Packed:
        assign(self.scratch, self.domain)
        restrict(self.instance, self.scratch, f, j, beyond)
        return pack(self.instance, self.scratch)

    def _dive(self, bound: float, multipliers: Multipliers, most: int) -> list[OpenNode]:
        """Search the box of `self.domain` depth-first for a while; returns what is left."""
        search, instance = self.search, self.instance
        if self._bits is None:
            self._bits = make_bits(instance)
            self._stack, self._dive_scratch = new_stack(instance, self._bits), new_scratch(instance, self._bits)
        bits, stack = self._bits, self._stack
        weights = Multipliers(multipliers.constant, multipliers.leaf[bits.leaf], multipliers.cell)
        push(stack, bits, self.domain, bound)
        error_bound = search.cells.requirements.error_bound
        ended, spent, boxes = UNCERTAIN, 0, 0
        while ended == UNCERTAIN or (boxes == SLICE and spent < most and not search.late):
            ended, boxes, cost = dive(
                instance,
                bits,
                stack,
                self._dive_scratch,
                weights,
                # of how much a point changes the search is the judge
                np.full_like(error_bound, np.inf) if search.fewest else error_bound,
                search.rejected(),
                search.shared,
                *search.equals,
                search.tolerance,
                search.boxes_left(min(SLICE, most - spent)),
                False,
                self.x,
            )
            search.count(boxes)
            spent += boxes
            if np.isfinite(cost) and self.offer(self.x) and ended == UNCERTAIN and search.fewest:
                stack.size[0] -= 1  # nothing else in the box costs or changes less
        left = []
        while stack.size[0]:
            at = pop(stack, bits, self.scratch)
            left.append(search.node(max(at, bound), multipliers, pack(instance, self.scratch), None))
        return left

    # -- points --------------------------------------------------------------------------------------------

    def _cheapest_is_best(self) -> bool:
        """Whether the cheapest point of the box is admissible: then nothing else in the box is of use."""
        cheapest_point(self.instance, self.domain, self.x)
        found = bool(meets_target(self.evaluator, self.x)) and self.offer(self.x)
        return found and not self._leaves_cost  # a dearer cell may lie in cheaper leaves

    def _only_excluded(self) -> bool:
        """Whether each tree has a single live leaf left, and their choice is excluded."""
        if self.domain.live.sum() > len(self.instance.trees) - 1:
            return False
        return self.search.is_closed(self.instance.leaf[self.domain.live])

    def _round(self, share: FloatArray) -> None:
        """Look for a better incumbent near the LP's point."""
        cost, x, self._roundings = best_rounding(
            self.evaluator, self.instance, self.domain, share, LEVELS, self.search.limit
        )
        if np.isfinite(cost):
            self.offer(x)

    def offer(self, x: IntArray) -> bool:
        """Put a point before the search; whether it is admissible.

        Parameters
        ----------
        x : (n_features,) int64
            Cells of the partition.
        """
        fits = bool(meets_target(self.evaluator, x))
        return self.search.offer(x, self.evaluator.at.leaf, fits)

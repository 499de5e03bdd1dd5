"""One tree, leaf by leaf: the driver of `ocf.formulations.oblique`.

::

    leaves with the target ──▶ lower bounds ──▶ cheapest first ──▶ LP, QP, MILP or MIQP ──▶ moved inside ──▶ proof
                                    │                                                          │
                                    └────── those that cannot beat the best so far are left ◀──┘

The bounds come from weak duality in float64 and hold whatever the solver's tolerances let through; a point is moved
off the hyperplanes by what the rounding of the tree's own dot products can amount to (`ocf.solve.move_inside`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.cells.partition import Partition
from ocf.problem.problem import Problem
from ocf.solve.leaf_answer import LeafAnswer, LeafClaim, Leaves
from ocf.solve.outcome import Outcome
from ocf.solvers.result import Progress, Status
from ocf.support.tolerances import meets

if TYPE_CHECKING:
    from ocf.solve.leaf_query import Query


logger = logging.getLogger(__name__)


def target_leaves(problem: Problem, part: Partition) -> IntArray:
    """Leaves of a single tree that the target accepts and some point reaches.

    Parameters
    ----------
    problem : Problem
        Of a single tree.
    part : Partition
        Of that tree.
    """
    accepted = np.zeros(problem.ensemble.n_leaves, bool)
    for requirements in problem.target.alternatives(problem.ensemble):
        accepted |= (requirements.gain >= requirements.need).all(axis=1)
    return np.flatnonzero(accepted & part.reachable)


def solve_leaves(
    query: Query,
    confirm: Callable[[FloatArray], bool],
    *,
    leaves: Sequence[int] | None = None,
    eps: float = 0.0,
    offsets: FloatArray | None = None,
    every: bool = False,
) -> tuple[list[LeafAnswer], Outcome]:
    """Answer a query: leaf by leaf, the most promising first.

    Parameters
    ----------
    query : Query
    confirm : callable
        Whether the user's own model gives the target to a coded point.
    leaves : sequence of int, optional
        Default: those that the target accepts.
    eps : float
        Margin by which every split of the path must hold, in units of its total (section 3.9).
    offsets : (n_leaves,) float64, optional
        Cost of ending in each leaf, added when leaves are compared (class costs, section 3.9).
    every : bool
        Whether to solve leaves that cannot be the best (the diverse set of section 3.9).

    Returns
    -------
    list of LeafAnswer
        Cheapest first, the offsets included.
    Outcome
        Of the best leaf.
    """
    chosen = list(target_leaves(query.model.problem, query.model.search.part) if leaves is None else leaves)
    extra = np.zeros(query.model.tree.n_leaves) if offsets is None else offsets
    # the model knows the target, and neither the leaf nor its margin
    query.settle_by(confirm if offsets is None and not every and eps == 0 else None)
    search = _LeafSearch(query, confirm, extra, eps, every)
    search.bound(chosen)
    search.solve(chosen)
    return search.answers, search.outcome()


class _LeafSearch:
    """State of one search: what is known of each leaf, and of which points the user's model has been asked.

    The bounds that need no solver count the offsets of the leaves; the answers do not.
    """

    def __init__(
        self, query: Query, confirm: Callable[[FloatArray], bool], offsets: FloatArray, eps: float, every: bool
    ) -> None:
        self.query, self.run, self._confirm = query, query.run, confirm
        self.offsets, self.eps, self.every = offsets, eps, every
        self.bounds: dict[Leaves, float] = {}
        self.answers: list[LeafAnswer] = []
        self._asked = set[Leaves]()

    def bound(self, leaves: Sequence[int]) -> None:
        """Bound the cost of leaves, without a solver."""
        bounds = self.query.model.bounds
        with self.run.timed("reduce"):
            self.bounds = {leaf: bounds.of_leaf(leaf, self.eps) + self._offset(leaf) for leaf in leaves}

    def solve(self, leaves: Sequence[int]) -> None:
        """Answer leaves that are bounded; the cheapest comes first then."""
        waiting: list[Leaves] | None = sorted(leaves, key=lambda k: self.bounds[k])
        while waiting is not None:
            waiting = self._round(waiting)
        self.answers.sort(key=lambda a: (self._total(a), a.bound + self._offset(a.leaf)))

    def _offset(self, leaf: Leaves) -> float:
        return float(self.offsets[leaf])

    def _total(self, answer: LeafAnswer) -> float:
        return answer.cost + self._offset(answer.leaf)

    def _round(self, waiting: Sequence[Leaves]) -> list[Leaves] | None:
        """Answer leaves and ask the user's model about the best point.

        Returns the leaves of the next round, maybe none: those that could not beat a point that is refused now. None
        where the model agrees, or no point is left to ask about.
        """
        best = min((self._total(answer) for answer in self.answers), default=np.inf)
        done, pruned = list(self.answers), list[LeafAnswer]()
        for leaf in waiting:
            answer = self._answer(leaf, best)
            (pruned if answer.claim is LeafClaim.PRUNED else done).append(answer)
            if self._total(answer) < best:
                best = self._total(answer)
                self.run.history.append(Progress(time.perf_counter() - self.run.start, -np.inf, best))
        refused = self._refused(done)
        self.answers = [a for a in done if a not in refused] + [self._without_point(a) for a in refused]
        if refused and not self.every:
            return [a.leaf for a in pruned]
        self.answers += pruned
        return None

    def _answer(self, leaf: Leaves, best: float) -> LeafAnswer:
        """The answer of a leaf, as far as it can beat the best so far."""
        own, bound = self._offset(leaf), self.bounds[leaf]
        if self.run.is_late:
            return LeafAnswer.open(leaf, max(bound - own, self.query.model.domain.credit))
        if bound == np.inf:
            return LeafAnswer.empty(leaf)
        if bound >= best and not self.every:
            return LeafAnswer.pruned(leaf, bound - own)
        return self.query.solve_leaf(leaf, np.inf if self.every else best - own, self.eps)

    def _refused(self, answers: Sequence[LeafAnswer]) -> list[LeafAnswer]:
        """Those that the user's model refuses; it is asked about the best point only, or all that will be shown."""
        shown = sorted((a for a in answers if a.point is not None), key=self._total)[: None if self.every else 1]
        refused = [a for a in shown if a.leaf not in self._asked and not self._agrees(a)]
        self._asked |= {a.leaf for a in shown}
        self.run.refused += len(refused)
        return refused

    def _agrees(self, answer: LeafAnswer) -> bool:
        assert answer.point is not None
        return self.run.ask(self._confirm, answer.point)

    def _without_point(self, answer: LeafAnswer) -> LeafAnswer:
        """A leaf whose point is refused: all points of a leaf score alike, so that one speaks for all."""
        logger.info("the model refuses a point of leaf %d", answer.leaf)
        if _is_certain(self.query.model.problem, answer.leaf):
            bound = self.bounds[answer.leaf] - self._offset(answer.leaf)
            return LeafAnswer.open(answer.leaf, bound)
        return LeafAnswer.empty(answer.leaf)

    def outcome(self) -> Outcome:
        """Outcome of the best leaf."""
        run, answers, model = self.run, self.answers, self.query.model
        best = answers[0] if answers and answers[0].point is not None else None
        own = self._offset(best.leaf) if best else 0.0
        bound = min((a.bound + self._offset(a.leaf) for a in answers), default=np.inf) - own
        if best is not None:
            bound = min(bound, best.cost)
            if meets(bound, best.cost):
                bound, status = best.cost, Status.OPTIMAL
            else:
                status = Status.FEASIBLE
        else:
            status = Status.UNKNOWN if any(a.claim is LeafClaim.OPEN for a in answers) else Status.INFEASIBLE
        run.history.append(Progress(time.perf_counter() - run.start, bound, best.cost + own if best else np.inf))
        sizes = {
            "leaves": model.tree.n_leaves,
            "leaves_left": len(answers),
            "leaves_solved": sum(a.claim in (LeafClaim.SOLVED, LeafClaim.OPEN) for a in answers),
            "rows": len(model.planes),
            "columns": model.columns.n,
            "binaries": int(model.columns.integer.sum()),
        }
        return run.conclude(status, best, bound, sizes)


def _is_certain(problem: Problem, leaf: Leaves) -> bool:
    """Whether a leaf has the target however the scores are rounded."""
    return any(
        (r.gain[leaf] >= r.need + r.error_bound).all() and r.curve is None
        for r in problem.target.alternatives(problem.ensemble)
    )

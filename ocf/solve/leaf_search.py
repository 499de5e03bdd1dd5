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
from ocf.solve.leaf_answer import LeafAnswer
from ocf.solve.leaf_model import Leaves
from ocf.solve.outcome import Outcome
from ocf.solvers.result import Progress, Status
from ocf.support.tolerances import meets

if TYPE_CHECKING:
    from ocf.solve.leaf_query import Query


logger = logging.getLogger(__name__)

# -- all leaves ------------------------------------------------------------------------------------------------


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


def _is_certain(problem: Problem, leaf: Leaves) -> bool:
    """Whether a leaf has the target however the scores are rounded."""
    return any(
        (r.gain[leaf] >= r.need + r.error_bound).all() and r.curve is None
        for r in problem.target.alternatives(problem.ensemble)
    )


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
    begin = time.perf_counter()
    chosen = list(target_leaves(query.problem, query.search.part) if leaves is None else leaves)
    extra = np.zeros(query.tree.n_leaves) if offsets is None else offsets
    bounds = {leaf: query.cheap_bound(leaf, eps) + float(extra[leaf]) for leaf in chosen}
    query.run.times["reduce"] += time.perf_counter() - begin
    answers: list[LeafAnswer] = []
    run, asked = query.run, set[Leaves]()

    def total(answer: LeafAnswer) -> float:
        return answer.cost + float(extra[answer.leaf])

    def agreed(answer: LeafAnswer) -> bool:
        assert answer.point is not None
        return query.run.ask(confirm, answer.point)

    waiting = sorted(chosen, key=lambda k: bounds[k])
    while waiting:
        best, done, pruned = np.inf, list(answers), list[LeafAnswer]()
        for answer in done:
            best = min(best, total(answer))
        for leaf in waiting:
            own = float(extra[leaf])
            left = query.run.seconds_left()
            if left is not None and left <= 0:
                answer = LeafAnswer(leaf, None, np.inf, max(bounds[leaf] - own, 0.0), "open")
            elif bounds[leaf] == np.inf:
                answer = LeafAnswer(leaf, None, np.inf, np.inf, "empty")
            elif bounds[leaf] >= best and not every:
                answer = LeafAnswer(leaf, None, np.inf, bounds[leaf] - own, "pruned")
            else:
                answer = query.solve_leaf(leaf, np.inf if every else best - own, eps)
            (pruned if answer.claim == "pruned" else done).append(answer)
            if total(answer) < best:
                best = total(answer)
                run.history.append(Progress(time.perf_counter() - run.start, -np.inf, best))
        # the user's model is asked about the best point only, or about all that will be shown
        shown = sorted((a for a in done if a.point is not None), key=total)[: None if every else 1]
        wrong = [a for a in shown if a.leaf not in asked and not agreed(a)]
        asked |= {a.leaf for a in shown}
        answers = [a for a in done if a not in wrong] + [
            _refused(query, a, bounds[a.leaf] - float(extra[a.leaf])) for a in wrong
        ]
        run.refused += len(wrong)
        waiting = [a.leaf for a in pruned] if wrong and not every else []
        if not waiting:
            answers += pruned
    answers.sort(key=lambda a: (total(a), a.bound + float(extra[a.leaf])))
    return answers, _outcome(query, answers, extra)


def _refused(query: Query, answer: LeafAnswer, bound: float) -> LeafAnswer:
    """A leaf whose point the user's model refuses: all points of a leaf score alike, so that one speaks for all."""
    logger.info("the model refuses a point of leaf %d", answer.leaf)
    if _is_certain(query.problem, answer.leaf):
        return LeafAnswer(answer.leaf, None, np.inf, bound, "open")
    return LeafAnswer(answer.leaf, None, np.inf, np.inf, "empty")


def _outcome(query: Query, answers: list[LeafAnswer], extra: FloatArray) -> Outcome:
    run = query.run
    best = answers[0] if answers and answers[0].point is not None else None
    own = float(extra[best.leaf]) if best else 0.0
    bound = min((a.bound + float(extra[a.leaf]) for a in answers), default=np.inf) - own
    undecided = any(a.claim == "open" for a in answers)
    if best is not None:
        bound = min(bound, best.cost)
        if meets(bound, best.cost):
            bound, status = best.cost, Status.OPTIMAL
        else:
            status = Status.FEASIBLE
            left = query.run.seconds_left()
            if left is None or left > 0:
                run.message = "rounding (a narrow dtype, or a solver's tolerance) leaves a gap to the proven bound"
    elif undecided:
        status = Status.UNKNOWN
    else:
        status = Status.INFEASIBLE
    run.history.append(Progress(time.perf_counter() - run.start, bound, best.cost + own if best else np.inf))
    sizes = {
        "leaves": query.tree.n_leaves,
        "leaves_left": len(answers),
        "leaves_solved": sum(a.claim in ("solved", "open") for a in answers),
        "rows": int(query.matrix.planes.shape[0]),
        "columns": query.columns.n,
        "binaries": int(query.columns.integer.sum()),
    }
    return query.outcome(status, best, bound, sizes)

"""The paper's own search, as it is written: the baseline that `ocf.solvers.box.search` is measured against.

Source: Blanchart (2021), algorithm 5, and of section VII what changes the search and not its speed, each to be switched
on by itself (`Improvements`).

Nomenclature
------------
=====================  =============================================================================
symbol                 meaning
=====================  =============================================================================
task                   a box whose first features are decided, its distance so far, and the leaves
                       that meet it
``dist``               cost of the cheapest values of the decided features (line 16)
``limit``              the paper's ``dist_sup``: a task with more than that is dropped (line 17)
vote                   a leaf votes for the target when it gives at least an even share of what a
                       requirement needs (line 18); where no leaf of a task does, no point can meet it
=====================  =============================================================================

::

    task ──▶ intervals of the next feature ──▶ dist ≤ limit? ──▶ some leaf votes? ──▶ push
                     │ no feature is left
                     ▼
             target met? limit = dist

For a class against another of equal need, a vote is the paper's: the leaf's own class is the target. Tasks are on a
stack, features and intervals in their order. It is plain Python: numbers of tasks compare with those of the other
searches, seconds do not.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.solvers.box.decomposition import intersect
from ocf.solvers.box.search import BoxResult
from ocf.solvers.result import CUTOFF, Status


@dataclass(frozen=True)
class Improvements:
    """What is added to algorithm 5 as it is written.

    Attributes
    ----------
    nearest_first : bool
        The nearest interval of a task is looked at first.
    far_leaves : bool
        Leaves whose nearest point costs more than the limit are dropped (section VII.E).
    sums : bool
        In the place of the votes: the sum over trees of the best leaf that is left must meet every requirement.
    """

    nearest_first: bool = False
    far_leaves: bool = False
    sums: bool = False


@dataclass(frozen=True)
class _BoxTask:
    leaves: IntArray
    dist: float
    chosen: tuple[int, ...]


def algorithm_5(
    cells: CellProblem,
    improvements: Improvements = Improvements(),
    *,
    cutoff: float = np.inf,
    task_limit: int | None = None,
) -> BoxResult:
    """Find the cheapest choice of open cells that meets the target, as the paper does.

    Parameters
    ----------
    cells : CellProblem
        Without costs of leaves and constraints.
    improvements : Improvements
    cutoff : float
        The first limit: points that cost more are of no interest.
    task_limit : int, optional
        Most tasks to look at.

    Returns
    -------
    BoxResult
        ``nodes`` are tasks that were looked at.
    """
    begin = time.perf_counter()
    search = _Search(cells, improvements, cutoff)
    finished = cells.infeasible or search.run(task_limit)
    cost = None if search.best is None else cells.cost_of(search.best)
    limit = search.limit if cost is None else cost
    bound = limit if finished else min(limit, *(task.dist for task in search.stack))
    status = {
        (True, True): Status.OPTIMAL,
        (True, False): Status.INFEASIBLE,
        (False, True): Status.FEASIBLE,
        (False, False): Status.UNKNOWN,
    }[finished, search.best is not None]
    message = "tasks"
    if finished:
        message = CUTOFF if search.best is None and np.isfinite(cutoff) else ""
    seconds = time.perf_counter() - begin
    return BoxResult(status, search.best, cost, float(bound), search.n_tasks, seconds, message=message)


class _Search:
    """The stack of tasks and the limit."""

    def __init__(self, cells: CellProblem, improvements: Improvements, cutoff: float) -> None:
        part = cells.partition
        self.cells, self.improvements, self.limit = cells, improvements, float(cutoff)
        self.opened = [np.flatnonzero(cells.open[part.cells_of(i)]) for i in range(part.n_features)]
        self.price = [cells.cost[part.cells_of(i)][self.opened[i]] for i in range(part.n_features)]
        self.least = least_of_leaves(cells) if improvements.far_leaves else np.zeros(len(cells.live))
        need = cells.requirements.need
        self.slack = 1e-9 * (1.0 + np.abs(need))
        self.votes = cells.requirements.gain >= (need - self.slack) / part.ensemble.n_trees
        self.stack = [_BoxTask(np.flatnonzero(cells.live), 0.0, ())]
        self.best: IntArray | None = None
        self.n_tasks = 0

    def run(self, task_limit: int | None) -> bool:
        """Search; False when the limit stopped it."""
        while self.stack:
            if self.n_tasks == task_limit:
                return False
            task = self.stack.pop()
            self.n_tasks += 1
            if len(task.chosen) == len(self.opened):
                self._finish(task)
            else:
                self._split(task)
        return True

    def _split(self, task: _BoxTask) -> None:
        """Push what is of use below a task (lines 13 to 32)."""
        i = len(task.chosen)
        leaves = task.leaves
        if self.improvements.far_leaves:
            leaves = leaves[self.least[leaves] <= self._loosened_limit]
        children = []
        for ranks, inside in intersect(self.cells, i, self.opened[i], leaves):
            k = int(ranks[np.argmin(self.price[i][ranks])])
            dist = task.dist + float(self.price[i][k])
            if dist <= self._loosened_limit and self._may_reach(inside):
                children.append(_BoxTask(inside, dist, (*task.chosen, int(self.opened[i][k]))))
        if self.improvements.nearest_first:
            children.sort(key=lambda child: -child.dist)
        self.stack += children

    def _finish(self, task: _BoxTask) -> None:
        """Take a box that is decided on every feature (lines 34 to 38)."""
        better = task.dist < self.limit or (self.best is None and task.dist <= self.limit)
        if not better or len(task.leaves) != self.cells.partition.ensemble.n_trees:
            return
        if (self.cells.margins(task.leaves) >= 0).all() and not self.cells.is_excluded(task.leaves):
            self.limit, self.best = task.dist, np.array(task.chosen, dtype=np.int64)

    @property
    def _loosened_limit(self) -> float:
        """The limit, and what sums may differ by."""
        return self.limit + 1e-12 * abs(self.limit) if np.isfinite(self.limit) else self.limit

    def _may_reach(self, leaves: IntArray) -> bool:
        """Whether the leaves that are left may meet the target, by votes or by sums."""
        if not self.improvements.sums:
            return bool(self.votes[leaves].any(axis=0).all())
        ensemble, requirements = self.cells.partition.ensemble, self.cells.requirements
        present, first = np.unique(ensemble.leaf_tree[leaves], return_index=True)
        if len(present) < ensemble.n_trees:
            return False
        best = np.maximum.reduceat(requirements.gain[leaves], first).sum(axis=0)
        return bool((best >= requirements.need - self.slack).all())


def least_of_leaves(cells: CellProblem) -> FloatArray:
    """Cost of the cheapest point of open cells in each leaf's box, (n_leaves,); inf where it has none."""
    part = cells.partition
    price = np.where(cells.open, cells.cost, np.inf)
    least = np.zeros(len(cells.live))
    for i in range(part.n_features):
        own = price[part.cells_of(i)]
        if part.ordered[i]:
            ends = np.column_stack([part.low[:, i], part.high[:, i] + 1]).ravel()
            within = np.minimum.reduceat(np.append(own, np.inf), ends)[::2]
            least += np.where(part.low[:, i] <= part.high[:, i], within, np.inf)
        else:
            least += np.where(part.members_of(i), own, np.inf).min(axis=1)
    return least

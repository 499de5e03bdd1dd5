"""A good feasible point before any solver starts: constructed, pulled back to the origin, improved by local search.

Three moves, all built on scans of one feature at a time (`ocf.cells.kernels.scan`):

* *build*: while a requirement fails, the single change of a feature that gains most per unit of cost;
* *pull back*: while some feature has a cheaper cell at which all requirements hold, the change that saves most;
* *ruin and build*: put a few changed features back to their cheapest cells, build again with randomly weighted
  gains, pull back, and go on from the result when it is cheaper, or dearer by a random share of at most a tenth.

Starts are the origin itself and the nearest rows of the target class. Source for the last move: the iterated
greedy of Ruiz and Stützle (2007), with acceptance by threshold (Dueck and Scheuer 1990).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.kernels import (
    Position,
    SearchArrays,
    locate,
    log_compilation,
    new_position,
    open_costs,
    scan,
    search_arrays,
)
from ocf.support.loops import copy_to
from ocf.support.numba_cache import array_helper, array_kernel, helper, kernel

logger = logging.getLogger(__name__)

#: How many points the user's model may refuse before the search gives up.
_REFUSALS = 5

#: Latest local optima that are remembered in case the model refuses the best one.
_REMEMBERED = 8

#: Ruins without an improvement after which the search ends, and after which it goes back to the best point.
_PATIENCE, _ASTRAY = 400, 100

#: Share of its cost by which a point that the search goes on from may be dearer. On 26 rows of forests that need LPs
#: (breast cancer, spambase, students, online news), from eight seeds each, the best point of 120,000 scans is within
#: 0.3 % of the optimum in the mean and the optimum in 80 % of them; without it 1.0 and 63 %. At 0.05 and 0.2: 0.4 %.
_DEARER = 0.1

#: Most features that one ruin puts back.
_RUINED = 4

#: Scans that building from the origin may take whatever the effort: it finds the best start of most rows.
_FIRST_BUILD = 300

#: Building stops this share above the cost to beat: pulling back may still save what is above it.
_ALLOWANCE = 0.05

#: Largest logarithm of a random weight.
_SPREAD = 1.0

#: Leaves that are looked at when no change of a single feature helps.
_SAMPLED_LEAVES = 200


@dataclass(frozen=True)
class Incumbent:
    """A feasible point.

    Attributes
    ----------
    cells : (n_features,) int64
        Counted within the features.
    point : (n_features,) float64
        Coded row.
    cost : float
    """

    cells: IntArray
    point: FloatArray
    cost: float


def find_incumbent(
    cells: CellProblem,
    candidates: IntArray | None = None,
    confirm: Callable[[FloatArray], bool] | None = None,
    *,
    starts: int = 12,
    effort: int = 30_000,
    seed: int = 0,
    limit: float = np.inf,
) -> Incumbent | None:
    """Find a cheap feasible point.

    Parameters
    ----------
    cells : CellProblem
    candidates : (n, n_features) int64, optional
        Choices of cells near which to look, such as rows of the target class (`Partition.locate`).
    confirm : callable, optional
        Whether the user's model gives the target to a coded point. Called for the final point only, and for a few
        more when it refuses one.
    starts : int
        How many candidates to start from.
    effort : int
        Budget in scans of a feature, of a few microseconds each for 100 trees. The same budget and seed give the
        same point on every machine.
    seed : int
    limit : float
        Points of this cost, and dearer ones, are of no interest.

    Returns
    -------
    Incumbent or None
        None when no feasible point was found, which proves nothing.
    """
    if cells.infeasible:
        return None
    need, error_bound = cells.requirements.need, cells.requirements.error_bound
    tried: set[bytes] = set()
    # a clear win first: the model refuses none of those, and hardly a point lies within rounding of a tie
    for wanted in (need + error_bound, need) if np.any(error_bound > 0) else (need,):
        for x in _search(cells, wanted, candidates, starts, effort, seed):
            if x.tobytes() in tried or not _allowed(cells, x):
                continue
            tried.add(x.tobytes())
            placed = cells.place(x, hasty=True)
            if placed is None or placed.point is None or placed.cost >= limit:
                continue
            if confirm is None or confirm(placed.point):
                return Incumbent(x, placed.point, placed.cost)
            if len(tried) >= _REFUSALS:
                logger.debug("the model refused %d points; looking no further", len(tried))
                return None
    return None


def _allowed(cells: CellProblem, x: IntArray) -> bool:
    """Whether a choice of cells meets everything that the problem itself says."""
    leaves = cells.partition.leaves_at(x)
    return (
        bool(cells.open[cells.partition.offsets[:-1] + x].all() and cells.live[leaves].all())
        and bool((cells.margins(leaves) >= 0).all())
        and not cells.is_excluded(leaves)
    )


class _Task(NamedTuple):
    """One row's search: static arrays, what the target asks, what cells cost, and scratch space.

    Attributes
    ----------
    arrays : SearchArrays
    gain : (n_leaves, n_rows) float64
        With a penalty at dead leaves that no other leaves make up for.
    need : (n_rows,) float64
    cost : (n_cells,) float64
        inf where the cell is closed.
    cheapest : (n_features,) int64
        Cheapest open cell of each feature.
    line : (largest number of cells, n_rows) float64
        Scratch.
    at : Position
        Scratch.
    """

    arrays: SearchArrays
    gain: FloatArray
    need: FloatArray
    cost: FloatArray
    cheapest: IntArray
    line: FloatArray
    at: Position


def incumbent_task(cells: CellProblem, need: FloatArray) -> _Task:
    """What the kernels of the incumbent search work on.

    Parameters
    ----------
    cells : CellProblem
    need : (n_rows,) float64
        What the sums of gains must reach; at least that of the requirements.
    """
    arrays = search_arrays(cells.partition)
    cost = open_costs(cells)
    cheapest = np.array([int(np.argmin(cost[cells.partition.cells_of(i)])) for i in range(len(arrays.ordered))])
    line = np.empty((int(cells.partition.widths.max()), len(need)))
    gain = np.ascontiguousarray(_penalised(cells, need))
    return _Task(arrays, gain, need, cost, cheapest, line, new_position(arrays, len(need)))


def _penalised(cells: CellProblem, need: FloatArray) -> FloatArray:
    """Gains with a finite penalty at dead leaves, so that the number of dead leaves still guides the search."""
    gain = cells.requirements.gain
    if cells.live.all():
        return gain
    starts = cells.partition.ensemble.leaf_offsets[:-1]
    span = np.maximum.reduceat(gain, starts).sum(axis=0) - np.minimum.reduceat(gain, starts).sum(axis=0)
    penalty = span + np.abs(need) + 1.0
    return np.where(cells.live[:, None], gain, gain - penalty)


def _ranked_candidates(task: _Task, candidates: IntArray | None, starts: int) -> IntArray:
    """Cheapest distinct candidates, (at most starts, n_features); features whose cell is closed stay put."""
    n_features = len(task.cheapest)
    if candidates is None or len(candidates) == 0:
        return np.empty((0, n_features), np.int64)
    cells = np.asarray(candidates, np.int64)
    offsets = task.arrays.offsets[:-1]
    cost = task.cost[offsets + cells]
    opened = np.isfinite(cost)
    cells = np.where(opened, cells, task.cheapest)
    total = np.where(opened, cost, task.cost[offsets + task.cheapest]).sum(axis=1)
    nearest = cells[np.argsort(total, kind="stable")[: 4 * starts]]
    distinct: dict[bytes, IntArray] = {}
    for choice in nearest:
        distinct.setdefault(choice.tobytes(), choice)
    return np.array(list(distinct.values())[:starts], np.int64).reshape(-1, n_features)


def _search(
    cells: CellProblem, need: FloatArray, candidates: IntArray | None, starts: int, effort: int, seed: int
) -> list[IntArray]:
    """Distinct feasible points, the cheapest first."""
    task = incumbent_task(cells, need)
    begin = np.vstack([task.cheapest[None, :], _ranked_candidates(task, candidates, starts)])
    log_compilation(_improve)
    state = np.array([seed * 2 + 1], np.uint64)
    points, costs = _improve(task, begin, effort, state)
    order = np.argsort(costs, kind="stable")
    return [points[k] for k in order if np.isfinite(costs[k])]


@helper
def _uniform(state: NDArray[np.uint64]) -> float:
    """Next number in [0, 1) of a splitmix64 sequence; the state is the caller's."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * 2.0**-53


@helper
def _deficit(need: FloatArray, sums: FloatArray) -> float:
    """By how much the requirements fail, all rows together; 0 exactly when they hold."""
    total = 0.0
    for r in range(len(need)):
        if sums[r] < need[r]:
            total += need[r] - sums[r]
    return total


@helper
def _total(task: _Task, x: IntArray) -> float:
    """Cost of a choice of cells."""
    total = 0.0
    for f in range(len(x)):
        total += task.cost[task.arrays.offsets[f] + x[f]]
    return total


@helper
def _locate(task: _Task, x: IntArray) -> None:
    """Bring `task.at` to x."""
    trees = task.arrays.trees
    locate(trees.root, trees.node, trees.sets, task.gain, x, task.at)


@helper
def _scan(task: _Task, x: IntArray, f: int) -> int:
    """Write sums of gains along feature f to the start of `task.line`; its number of cells. `task.at` must be at x."""
    trees, offsets = task.arrays.trees, task.arrays.offsets
    line = task.line[: offsets[f + 1] - offsets[f]]
    column = task.arrays.column[f]
    scan(trees.node, trees.sets, task.arrays.boxes.member, column, task.gain, x, f, task.at, line)
    return len(line)


@helper
def _build(task: _Task, x: IntArray, weight: FloatArray, limit: float, budget: IntArray) -> bool:
    """Change x until the requirements hold, by the change that gains most per cost; False when stuck or too dear."""
    offsets = task.arrays.offsets
    size = 0.0
    for r in range(len(task.need)):
        size += abs(task.need[r])
    noise = 1e-12 * (1.0 + size)
    # rounding could make two cells that just reach the target take turns; far fewer steps are ever needed
    for _ in range(8 * len(x) + 64):
        _locate(task, x)
        deficit = _deficit(task.need, task.at.sums)
        if deficit == 0.0:
            return True
        if budget[0] <= 0:
            return False
        spent = _total(task, x)
        best, best_f, best_cell = 0.0, -1, -1
        for f in range(len(x)):
            if task.at.touched[f] == 0:
                continue
            n_cells = _scan(task, x, f)
            budget[0] -= 1
            here = task.cost[offsets[f] + x[f]]
            for cell in range(n_cells):
                extra = task.cost[offsets[f] + cell] - here
                if spent + extra >= limit:
                    continue
                gained = deficit - _deficit(task.need, task.line[cell])
                # sums along a line and sums at a point may differ in the last bits: no progress in those
                if gained <= 1e-9 * deficit + noise:
                    continue
                score = gained * weight[f] / max(extra, 1e-9 * (1.0 + abs(here)))
                if score > best:
                    best, best_f, best_cell = score, f, cell
        if best_f < 0:
            return False
        x[best_f] = best_cell
    return False


@array_helper
def _enter_leaf(task: _Task, x: IntArray, state: NDArray[np.uint64]) -> bool:
    """Move x into the box of a random leaf where the requirements fail by less, the best per cost; False if none.

    Several features change at once, which helps where no single one does.
    """
    boxes = task.arrays.boxes
    start = x.copy()
    spent = _total(task, x)
    _locate(task, x)
    deficit = _deficit(task.need, task.at.sums)
    best = 0.0
    chosen = x.copy()
    for _ in range(_SAMPLED_LEAVES):
        leaf = int(_uniform(state) * len(boxes.tree))
        copy_to(x, start)
        entered = True
        for k in range(boxes.start[leaf], boxes.start[leaf + 1]):
            entered = entered and _meet(task, x, leaf, k)
        if not entered:
            continue
        extra = _total(task, x) - spent
        if extra == np.inf:
            continue
        _locate(task, x)
        gained = deficit - _deficit(task.need, task.at.sums)
        score = gained / max(extra, 1e-9 * (1.0 + abs(spent)))
        if gained > 1e-9 * deficit and score > best:
            best = score
            copy_to(chosen, x)
    copy_to(x, chosen)
    return best > 0.0


@helper
def _meet(task: _Task, x: IntArray, leaf: int, k: int) -> bool:
    """Move one feature to the cheapest cell that meets restriction k of a leaf, unless it meets it; False if none does.

    No cell does in a leaf that no value reaches, as one behind a threshold of infinity.
    """
    boxes = task.arrays.boxes
    if boxes.low[k] > boxes.high[k]:
        return False
    f, column = boxes.feature[k], boxes.column[k]
    offset = task.arrays.offsets[f]
    if boxes.low[k] <= x[f] <= boxes.high[k] and (column < 0 or boxes.member[leaf, column + x[f]]):
        return True
    x[f] = boxes.low[k]
    least = np.inf
    for j in range(boxes.low[k], boxes.high[k] + 1):
        if (column < 0 or boxes.member[leaf, column + j]) and task.cost[offset + j] < least:
            least = task.cost[offset + j]
            x[f] = j
    if least == np.inf:
        # nothing open there: any closed cell makes the total infinite
        for j in range(boxes.low[k], boxes.high[k] + 1):
            if task.cost[offset + j] == np.inf:
                x[f] = j
    return True


@helper
def _cheapest_feasible(task: _Task, x: IntArray, f: int) -> int:
    """Cheapest cell of feature f at which the requirements hold while the others stay; x[f] if none is cheaper."""
    offset = task.arrays.offsets[f]
    n_cells = _scan(task, x, f)
    best = x[f]
    for cell in range(n_cells):
        if task.cost[offset + cell] < task.cost[offset + best] and _deficit(task.need, task.line[cell]) == 0.0:
            best = cell
    return best


@kernel
def pull_back(task: _Task, x: IntArray, weight: FloatArray, budget: IntArray) -> None:
    """Move features to cheaper cells while the requirements hold, the largest (weighted) saving first.

    Parameters
    ----------
    task : _Task
    x : (n_features,) int64
        Feasible cells, counted within the features; changed in place.
    weight : (n_features,) float64
        By which the saving on each feature is multiplied before savings are compared.
    budget : (1,) int64
        Scans that are left; counted down in place, below 0 too.
    """
    offsets = task.arrays.offsets
    while True:
        _locate(task, x)
        best, best_f, best_cell = 0.0, -1, -1
        for f in range(len(x)):
            here = task.cost[offsets[f] + x[f]]
            # what cannot save more than the best so far need not be looked at
            if weight[f] * (here - task.cost[offsets[f] + task.cheapest[f]]) <= best:
                continue
            cell = _cheapest_feasible(task, x, f)
            budget[0] -= 1
            saving = weight[f] * (here - task.cost[offsets[f] + cell])
            if saving > best:
                best, best_f, best_cell = saving, f, cell
        if best_f < 0:
            return
        x[best_f] = best_cell


@array_helper
def _ruin(task: _Task, x: IntArray, state: NDArray[np.uint64]) -> None:
    """Put a few random changed features back to their cheapest cells."""
    offsets = task.arrays.offsets
    changed, n_changed = np.empty(len(x), np.int64), 0
    for f in range(len(x)):
        if task.cost[offsets[f] + x[f]] > task.cost[offsets[f] + task.cheapest[f]]:
            changed[n_changed] = f
            n_changed += 1
    count = 1 + int(_uniform(state) * min(n_changed, _RUINED))
    for k in range(min(count, n_changed)):
        pick = k + int(_uniform(state) * (n_changed - k))
        f = changed[pick]
        changed[pick] = changed[k]
        x[f] = task.cheapest[f]


@array_kernel
def _improve(task: _Task, begin: IntArray, effort: int, state: NDArray[np.uint64]) -> tuple[IntArray, FloatArray]:
    """Local optima of the starts and the best point found from them, with their costs (inf: none)."""
    n_starts, n = begin.shape
    points = np.empty((n_starts + _REMEMBERED + 1, n), np.int64)
    costs = np.full(len(points), np.inf)
    budget = np.array([max(effort, _FIRST_BUILD)], np.int64)
    weight = np.ones(n)
    for k in range(n_starts):
        copy_to(points[k], begin[k])
        built = _build(task, points[k], weight, np.inf, budget)
        budget[0] = min(budget[0], effort)
        while not built and budget[0] > 0 and _enter_leaf(task, points[k], state):
            budget[0] -= 1
            built = _build(task, points[k], weight, np.inf, budget)
        if built:
            pull_back(task, points[k], weight, budget)
            costs[k] = _total(task, points[k])
    first = 0
    for k in range(1, n_starts):
        if costs[k] < costs[first]:
            first = k
    best, least = points[first].copy(), costs[first]
    current, cost, x = best.copy(), least, best.copy()
    found = tries = 0
    while budget[0] > 0 and tries < _PATIENCE and np.isfinite(cost):
        tries += 1
        dearer = _DEARER * abs(cost)
        copy_to(x, current)
        _ruin(task, x, state)
        for f in range(n):
            weight[f] = np.exp((_uniform(state) * 2.0 - 1.0) * _SPREAD)
        total = np.inf
        if _build(task, x, weight, cost + dearer + _ALLOWANCE * abs(cost), budget):
            pull_back(task, x, weight, budget)
            total = _total(task, x)
            slot = n_starts + found % _REMEMBERED
            copy_to(points[slot], x)
            costs[slot] = total
            found += 1
        if total < least:
            copy_to(best, x)
            least, tries = total, 0
        if total < cost + dearer * _uniform(state):
            copy_to(current, x)
            cost = total
        elif tries % _ASTRAY == 0:
            copy_to(current, best)
            cost = least
    copy_to(points[-1], best)
    costs[-1] = least
    return points, costs

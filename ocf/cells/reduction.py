"""Exact shrinking of a problem by the cost of a feasible point: fewer leaves and cells, the same optimum.

Each rule removes a leaf or a cell that no solution cheaper than the incumbent uses:

* *cost*: the cheapest point of the box that uses it costs too much, by its features one by one or by those that the
  cost couples;
* *target*: with it, the sum over trees of the best remaining leaf falls short of a requirement;
* *cover*: some tree has no remaining leaf that admits the cell;
* *probe*: with a leaf, the leaves of other trees that are still affordable fall short of a requirement;
* *sets*: no few features together, as many as a constraint or the cost leaves room for, need the leaf or the cell, see
  `ocf.cells.change_sets`;
* *merge*: of neighbouring cells that no remaining leaf tells apart, the cheapest one does.

Rules run in rounds until nothing changes; probing, which compares all pairs of leaves, only when the others have
come to an end, and merging once at the end. Cells are closed and leaves killed, nothing else, so a model compiled
for the whole partition serves the reduced problem too.

Nomenclature
------------
=====================  =============================================================================
symbol                 meaning, shape
=====================  =============================================================================
``least``              cost of the cheapest open cell of each feature, (n_features,)
``extra``              by how much the cheapest point of a leaf's box exceeds the cheapest point of
                       all, (n_leaves,)
``limit``              cost from which on a point is of no use
=====================  =============================================================================
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.change_sets import allowances, drop_beyond_sets
from ocf.cells.kernels import SearchArrays, log_compilation, open_costs, search_arrays
from ocf.support.limits import seconds_left
from ocf.support.loops import fill, places, total
from ocf.support.numba_cache import array_helper, array_kernel, helper

logger = logging.getLogger(__name__)

#: A point counts as cheaper than the incumbent when it is cheaper by more than this, relatively. It is far above
#: the rounding of sums of costs and below the 1e-9 to which optimality is claimed.
TOLERANCE = 1e-10

#: Relative rounding of a sum of gains that is allowed for.
_ROUNDING = 1e-12

#: Leaves are probed in pairs only when there are no more pairs than this.
MAX_PAIRS = 2_000_000

#: Sets of features, times trees, that are gone through at most for each pair of leaves that is probed at most, and for
#: each second that is left: a tenth of it.
SETS, SETS_A_SECOND = 100, 20_000_000

#: Probing goes on while it leaves no more than this share of the leaves.
_WORTHWHILE = 0.85


@dataclass(frozen=True)
class Reduction:
    """A smaller problem with the same cheapest points below the incumbent.

    Attributes
    ----------
    cells : CellProblem
        With cells closed and leaves dead.
    proved : bool
        No point is cheaper than the incumbent (by more than a relative `TOLERANCE`): it is optimal, or, without
        an incumbent, the problem is infeasible.
    bound : float
        No point is cheaper than this (inf: there is no point). Never above the incumbent's cost.
    leaves, cells_open : tuple of (int, int)
        Live leaves and open cells, before and after.
    rounds : int
    """

    cells: CellProblem
    proved: bool
    bound: float
    leaves: tuple[int, int]
    cells_open: tuple[int, int]
    rounds: int


def reduce(
    cells: CellProblem,
    upper: float = np.inf,
    *,
    max_rounds: int = 50,
    max_pairs: int = MAX_PAIRS,
    merge: bool = True,
) -> Reduction:
    """Shrink a problem exactly.

    Parameters
    ----------
    cells : CellProblem
    upper : float
        Cost of a known feasible point; inf when none is known. Only cheaper points are kept.
    max_rounds : int
        Rounds after which to stop although something still changes.
    max_pairs : int
        Leaves are probed in pairs only when there are no more pairs than this; 1,000,000 take about 50 ms.
    merge : bool
        Off: cells that cost the same and that no remaining leaf tells apart all stay, and with them every point below
        the incumbent, not the cheapest alone.

    Returns
    -------
    Reduction
    """
    asked = (upper, max_rounds, max_pairs, merge)
    if asked in cells.settled:
        return _unchanged(cells, cells.settled[asked])
    arrays = search_arrays(cells.partition)
    gain = np.ascontiguousarray(cells.requirements.gain)
    need = cells.requirements.need
    cost, live = open_costs(cells), cells.live.copy()
    limit = upper - TOLERANCE * abs(upper) if np.isfinite(upper) else upper
    _close_beyond(cells, cost, limit)
    log_compilation(_shrink)
    sets = int(min(SETS * max_pairs, SETS_A_SECOND * max(seconds_left(), 0.0)))
    # first, for it takes less than a round of the others
    proved = cells.infeasible or not _drop_beyond_sets(cells, cost, live, limit, sets)
    bound, rounds, in_time = -np.inf, 0, True
    while not proved and rounds < max_rounds and (in_time := seconds_left() > 0):
        rounds += 1
        before = _size(cost, live)
        found = _shrink(arrays, gain, need, cost, live, limit)
        proved, bound = not np.isfinite(found), max(bound, found)
        if proved or _size(cost, live) != before:
            continue
        proved = not _drop_beyond_sets(cells, cost, live, limit, sets)
        if proved or _size(cost, live) != before:
            continue
        n_live = int(live.sum())
        if n_live**2 > max_pairs:
            break
        order, first = _by_gain(arrays.boxes.tree, gain, live, len(arrays.leaf_offsets) - 1)
        _probe_leaves(arrays, order, first, gain, need, cost, live, limit)
        if live.sum() > _WORTHWHILE * n_live:
            break
    if merge and not proved:
        _merge(arrays, cost, live)
    bound = upper if proved else min(bound, upper)
    reduced = replace(cells, open=np.isfinite(cost), live=live)
    if not proved and in_time:
        reduced.settled[asked] = float(bound)
    logger.debug("reduction: %d rounds, proved %s, bound %g", rounds, proved, bound)
    return Reduction(
        reduced,
        bool(proved),
        float(bound),
        (int(cells.live.sum()), int(live.sum())),
        (int(cells.open.sum()), int(reduced.open.sum())),
        rounds,
    )


def _drop_beyond_sets(cells: CellProblem, cost: FloatArray, live: BoolArray, limit: float, most: int) -> bool:
    """The rule of sets, in place, for the cost and for each constraint; False when nothing is left."""
    found = list(allowances(cells, cost, live, limit))
    return all(drop_beyond_sets(cells, allowance, cost, live, most) for allowance in found)


def _close_beyond(cells: CellProblem, cost: FloatArray, limit: float) -> None:
    """Close cells, in place, that a cost of several features puts out of reach; see `ocf.cells.reach`."""
    if cells.values is None or cells.values.beyond is None:
        return
    least = least_costs(cells.partition.offsets, cost)
    index = cells.problem.space.index
    least[[index(name) for name, _ in cells.problem.cost.squares]] = 0.0  # they are among what the others make up for
    others = least.sum() - least[cells.values.cell_feature]
    cost[cost + others + cells.values.beyond >= limit] = np.inf


def _unchanged(cells: CellProblem, bound: float) -> Reduction:
    """What reduction gives where it has come to an end before."""
    leaves, opened = int(cells.live.sum()), int(cells.open.sum())
    return Reduction(cells, False, bound, (leaves, leaves), (opened, opened), 0)


def _size(cost: FloatArray, live: BoolArray) -> tuple[int, int]:
    return int(np.isfinite(cost).sum()), int(live.sum())


@array_kernel
def least_costs(offsets: IntArray, cost: FloatArray) -> FloatArray:
    """Cost of the cheapest open cell of each feature; inf where none is open.

    Parameters
    ----------
    offsets : (n_features + 1,) int64
        Of the cells, as in `Partition`.
    cost : (n_cells,) float64
        inf where the cell is closed.
    """
    least = np.full(len(offsets) - 1, np.inf)
    for f in range(len(least)):
        for j in range(offsets[f], offsets[f + 1]):
            least[f] = min(least[f], cost[j])
    return least


@helper
def _restricted(arrays: SearchArrays, cost: FloatArray, leaf: int, k: int) -> float:
    """Cost of the cheapest open cell that meets restriction k of a leaf."""
    boxes = arrays.boxes
    offset = arrays.offsets[boxes.feature[k]]
    best = np.inf
    for j in range(boxes.low[k], boxes.high[k] + 1):
        if cost[offset + j] < best and (boxes.column[k] < 0 or boxes.member[leaf, boxes.column[k] + j]):
            best = cost[offset + j]
    return best


@array_kernel
def _shrink(
    arrays: SearchArrays, gain: FloatArray, need: FloatArray, cost: FloatArray, live: BoolArray, limit: float
) -> float:
    """One round of the rules of cost, target and cover, in place. Returns a lower bound; inf: nothing is left."""
    least = least_costs(arrays.offsets, cost)
    base = total(least)
    if base >= limit:
        return np.inf
    extra = np.zeros(len(live))
    part = np.zeros(len(arrays.boxes.feature))
    bound = _price_leaves(arrays, cost, live, least, base, limit, extra, part)
    best = np.empty(len(arrays.leaf_offsets) - 1)
    if bound >= limit or not drop_useless_leaves(arrays.leaf_offsets, gain, need, live, best):
        return np.inf
    _filter_cells(arrays, gain, need, cost, live, least, limit - base, extra, part)
    return bound


@helper
def _price_leaves(
    arrays: SearchArrays,
    cost: FloatArray,
    live: BoolArray,
    least: FloatArray,
    base: float,
    limit: float,
    extra: FloatArray,
    part: FloatArray,
) -> float:
    """Kill leaves that miss the open cells or cost too much; write what each leaf and restriction costs extra.

    Returns the largest over trees of the cheapest leaf's cost.
    """
    boxes = arrays.boxes
    bound = base
    for tree in range(len(arrays.leaf_offsets) - 1):
        cheapest = np.inf
        for leaf in range(arrays.leaf_offsets[tree], arrays.leaf_offsets[tree + 1]):
            if not live[leaf]:
                continue
            for k in range(boxes.start[leaf], boxes.start[leaf + 1]):
                part[k] = _restricted(arrays, cost, leaf, k) - least[boxes.feature[k]]
                extra[leaf] += part[k]
            if base + extra[leaf] >= limit or extra[leaf] == np.inf:
                live[leaf] = False
            else:
                cheapest = min(cheapest, base + extra[leaf])
        bound = max(bound, cheapest)
    return bound


@helper
def drop_useless_leaves(
    leaf_offsets: IntArray, gain: FloatArray, need: FloatArray, live: BoolArray, best: FloatArray
) -> bool:
    """Kill leaves with which a requirement cannot be met any more; False when none can meet it.

    Parameters
    ----------
    leaf_offsets : (n_trees + 1,) int64
    gain : (n_leaves, n_rows) float64
    need : (n_rows,) float64
    live : (n_leaves,) bool
        Changed in place.
    best : (n_trees,) float64
        Scratch.
    """
    for r in range(len(need)):
        total, size = 0.0, abs(need[r])
        for tree in range(len(best)):
            best[tree] = -np.inf
            for leaf in range(leaf_offsets[tree], leaf_offsets[tree + 1]):
                if live[leaf]:
                    best[tree] = max(best[tree], gain[leaf, r])
            if best[tree] == -np.inf:
                return False
            total += best[tree]
            size += abs(best[tree])
        spare = total - need[r] + _ROUNDING * size
        if spare < 0:
            return False
        for tree in range(len(best)):
            for leaf in range(leaf_offsets[tree], leaf_offsets[tree + 1]):
                if best[tree] - gain[leaf, r] > spare:
                    live[leaf] = False
    return True


@array_helper
def _filter_cells(
    arrays: SearchArrays,
    gain: FloatArray,
    need: FloatArray,
    cost: FloatArray,
    live: BoolArray,
    least: FloatArray,
    spare_cost: float,
    extra: FloatArray,
    part: FloatArray,
) -> None:
    """Close cells that some tree cannot afford, and cells with which the trees cannot meet a requirement."""
    boxes, offsets = arrays.boxes, arrays.offsets
    n_features, n_rows, n_cells = len(least), len(need), len(cost)
    most = np.zeros(n_rows)
    size = np.zeros(n_rows)
    _size_up(need, size)
    # by how much the best gain of all trees falls when a cell is used
    fall = np.zeros((n_cells, n_rows))
    cheapest = np.empty(n_cells)
    best = np.empty((n_cells, n_rows))
    tree_best = np.empty(n_rows)
    tested = np.zeros(n_features, np.bool_)
    for tree in range(len(arrays.leaf_offsets) - 1):
        first, last = arrays.leaf_offsets[tree], arrays.leaf_offsets[tree + 1]
        _survey_leaves(boxes.start, boxes.feature, gain, live, first, last, tree_best, tested)
        for r in range(n_rows):
            most[r] += tree_best[r]
        _size_up(tree_best, size)
        for f in places(tested):
            _forget(cheapest, best, offsets[f], offsets[f + 1])
            for leaf in range(first, last):
                if live[leaf]:
                    _admit(arrays, gain, cost, least, spare_cost, extra, part, leaf, f, cheapest, best)
            for j in range(offsets[f], offsets[f + 1]):
                if cheapest[j] == np.inf:
                    cost[j] = np.inf
                    continue
                for r in range(n_rows):
                    fall[j, r] += tree_best[r] - best[j, r]
    for j in range(n_cells):
        for r in range(n_rows):
            if most[r] - fall[j, r] < need[r] - _ROUNDING * size[r]:
                cost[j] = np.inf


@helper
def _size_up(numbers: FloatArray, size: FloatArray) -> None:
    """Add the sizes of numbers to those of others."""
    for r in range(len(numbers)):
        size[r] += abs(numbers[r])


@helper
def _forget(cheapest: FloatArray, best: FloatArray, first: int, last: int) -> None:
    """Nothing is known of the cells ``first:last``."""
    for j in range(first, last):
        cheapest[j] = np.inf
        fill(best[j], -np.inf)


@helper
def _survey_leaves(
    start: IntArray,
    feature: IntArray,
    gain: FloatArray,
    live: BoolArray,
    first: int,
    last: int,
    best: FloatArray,
    tested: BoolArray,
) -> None:
    """Write the best gain of a tree's live leaves for each requirement, and which features they restrict."""
    fill(best, -np.inf)
    fill(tested, False)
    for leaf in range(first, last):
        if live[leaf]:
            for r in range(len(best)):
                best[r] = max(best[r], gain[leaf, r])
            for k in range(start[leaf], start[leaf + 1]):
                tested[feature[k]] = True


@helper
def _admit(
    arrays: SearchArrays,
    gain: FloatArray,
    cost: FloatArray,
    least: FloatArray,
    spare_cost: float,
    extra: FloatArray,
    part: FloatArray,
    leaf: int,
    f: int,
    cheapest: FloatArray,
    best: FloatArray,
) -> None:
    """Count a leaf in at the cells of a feature with which it is affordable."""
    boxes, offset = arrays.boxes, arrays.offsets[f]
    low, high, column, rest = 0, arrays.offsets[f + 1] - offset - 1, -1, extra[leaf]
    for k in range(boxes.start[leaf], boxes.start[leaf + 1]):
        if boxes.feature[k] == f:
            low, high, column = boxes.low[k], boxes.high[k], boxes.column[k]
            rest -= part[k]
    for j in range(low, high + 1):
        if column >= 0 and not boxes.member[leaf, column + j]:
            continue
        price = rest + cost[offset + j] - least[f]
        if price < spare_cost and price < np.inf:
            cheapest[offset + j] = min(cheapest[offset + j], price)
            for r in range(best.shape[1]):
                best[offset + j, r] = max(best[offset + j, r], gain[leaf, r])


def _merge(arrays: SearchArrays, cost: FloatArray, live: BoolArray) -> None:
    """Close all but the cheapest of the cells that no live leaf tells apart, in place."""
    boxes, offsets = arrays.boxes, arrays.offsets
    k = np.flatnonzero(np.repeat(live, np.diff(boxes.start)) & (boxes.column < 0))
    border = np.zeros(len(cost) + 1, bool)
    border[offsets[:-1]] = True
    border[offsets[boxes.feature[k]] + boxes.low[k]] = True
    border[offsets[boxes.feature[k]] + boxes.high[k] + 1] = True
    group = np.cumsum(border[:-1])
    for f in np.flatnonzero(~arrays.ordered):
        span = slice(offsets[f], offsets[f + 1])
        levels = boxes.member[live, arrays.column[f] : arrays.column[f] + offsets[f + 1] - offsets[f]]
        # numbers of groups only need to differ from those of other features
        first: dict[bytes, int] = {}
        alike = [first.setdefault(who.tobytes(), j) for j, who in enumerate(np.packbits(levels, axis=0).T)]
        group[span] = offsets[f] + len(cost) + np.array(alike)
    order = np.lexsort((np.arange(len(cost)), cost, group))
    ordered_groups = group[order]
    dearer = np.append(False, ordered_groups[1:] == ordered_groups[:-1])
    cost[order[dearer]] = np.inf


def _by_gain(tree: IntArray, gain: FloatArray, live: BoolArray, n_trees: int) -> tuple[IntArray, IntArray]:
    """Live leaves, tree by tree, those that gain most for the first requirement first; where each tree's begin."""
    leaves = np.flatnonzero(live)
    order = leaves[np.lexsort((-gain[leaves, 0], tree[leaves]))]
    return order, np.searchsorted(tree[order], np.arange(n_trees + 1))


@array_kernel
def _probe_leaves(
    arrays: SearchArrays,
    order: IntArray,
    first: IntArray,
    gain: FloatArray,
    need: FloatArray,
    cost: FloatArray,
    live: BoolArray,
    limit: float,
) -> None:
    """Kill leaves with which the affordable leaves of the other trees cannot meet a requirement, in place.

    A leaf of another tree is affordable beside leaf l when their boxes meet and the cheapest point of the meeting
    costs less than the limit. With a single requirement the first affordable leaf by gain is a tree's best.
    """
    boxes, n_rows = arrays.boxes, len(need)
    least = least_costs(arrays.offsets, cost)
    rule = _rules(arrays)
    part, at, extra = _price_restrictions(rule, boxes.member, boxes.start, cost, least, live)
    spare = limit - total(least)
    # restriction of the probed leaf on each feature, -1 where there is none
    own = np.full(len(least), -1, np.int64)
    most = _most_gains(order, first, gain)
    sums, size, best = np.empty(n_rows), np.empty(n_rows), np.empty(n_rows)
    for leaf in places(live):
        for k in range(boxes.start[leaf], boxes.start[leaf + 1]):
            own[rule[k, 0]] = k
        _start_sums(gain, need, most, boxes.tree[leaf], leaf, sums, size)
        left = spare - extra[leaf]
        for tree in range(len(most)):
            if tree == boxes.tree[leaf]:
                continue
            fill(best, -np.inf)
            beside = order[first[tree] : first[tree + 1]]
            _best_beside(
                rule, boxes.member, boxes.start, cost, least, part, at, own, gain, live, leaf, beside, left, best
            )
            for r in range(n_rows):
                sums[r] += best[r] - most[tree, r]
            if _falls_short(sums, size, need):
                live[leaf] = False
                break
        for k in range(boxes.start[leaf], boxes.start[leaf + 1]):
            own[rule[k, 0]] = -1


@helper
def _best_beside(
    rule: IntArray,
    member: BoolArray,
    start: IntArray,
    cost: FloatArray,
    least: FloatArray,
    part: FloatArray,
    at: IntArray,
    own: IntArray,
    gain: FloatArray,
    live: BoolArray,
    leaf: int,
    others: IntArray,
    spare: float,
    best: FloatArray,
) -> None:
    """Raise to the best gains of the live leaves of a tree that are affordable beside another leaf."""
    for other in others:
        if not live[other]:
            continue
        first, last = start[other], start[other + 1]
        if _affordable(rule, member, cost, least, part, at, own, leaf, other, first, last, spare):
            _raise_to(best, gain, other)
            if len(best) == 1:
                return


@array_helper
def _most_gains(order: IntArray, first: IntArray, gain: FloatArray) -> FloatArray:
    """Best gain of some leaves of each tree for each requirement, (n_trees, n_rows)."""
    most = np.full((len(first) - 1, gain.shape[1]), -np.inf)
    for tree in range(len(most)):
        for j in range(first[tree], first[tree + 1]):
            _raise_to(most[tree], gain, order[j])
    return most


@array_helper
def _rules(arrays: SearchArrays) -> IntArray:
    """Restrictions, side by side to be read at once, (n, 5).

    Feature, first and last cell, column of `member`, place of the feature's cells.
    """
    boxes = arrays.boxes
    rule = np.empty((len(boxes.feature), 5), np.int64)
    for k in range(len(rule)):
        rule[k, 0], rule[k, 1], rule[k, 2] = boxes.feature[k], boxes.low[k], boxes.high[k]
        rule[k, 3], rule[k, 4] = boxes.column[k], arrays.offsets[boxes.feature[k]]
    return rule


@helper
def _start_sums(
    gain: FloatArray, need: FloatArray, most: FloatArray, tree: int, leaf: int, sums: FloatArray, size: FloatArray
) -> None:
    """Write what a leaf and the best of all other trees gain, and the size of the numbers that are added up."""
    for r in range(len(need)):
        sums[r], size[r] = gain[leaf, r] - most[tree, r], abs(need[r])
        for t in range(len(most)):
            sums[r] += most[t, r]
            size[r] += abs(most[t, r])


@array_helper
def _price_restrictions(
    rule: IntArray, member: BoolArray, start: IntArray, cost: FloatArray, least: FloatArray, live: BoolArray
) -> tuple[FloatArray, IntArray, FloatArray]:
    """What each restriction of a live leaf costs extra, its cheapest cell, and what each leaf costs extra."""
    part = np.zeros(len(rule))
    at = np.zeros(len(rule), np.int64)
    extra = np.zeros(len(live))
    for leaf in places(live):
        for k in range(start[leaf], start[leaf + 1]):
            price, at[k] = _cheapest_in(rule, member, cost, leaf, k, leaf, k)
            part[k] = price - least[rule[k, 0]]
            extra[leaf] += part[k]
    return part, at, extra


@helper
def _raise_to(best: FloatArray, gain: FloatArray, leaf: int) -> None:
    for r in range(len(best)):
        best[r] = max(best[r], gain[leaf, r])


@helper
def _falls_short(sums: FloatArray, size: FloatArray, need: FloatArray) -> bool:
    """Whether some requirement is missed by more than rounding explains."""
    short = False
    for r in range(len(need)):
        short = short or sums[r] == -np.inf or sums[r] < need[r] - _ROUNDING * size[r]
    return short


@helper
def _affordable(
    rule: IntArray,
    member: BoolArray,
    cost: FloatArray,
    least: FloatArray,
    part: FloatArray,
    at: IntArray,
    own: IntArray,
    leaf: int,
    other: int,
    first: int,
    last: int,
    spare: float,
) -> bool:
    """Whether the cheapest point of two leaves' boxes together costs less than `spare` more than that of `leaf`.

    The restrictions of `other` are ``first:last``. This is called for every pair of leaves: arrays are taken out of
    their tuples before.
    """
    for k in range(first, last):
        f = rule[k, 0]
        m = own[f]
        if m < 0:
            spare -= part[k]
        elif not _admits(rule, member, other, k, at[m]):
            # otherwise the probed leaf's cheapest cell serves both, and nothing more is to be paid
            if _admits(rule, member, leaf, m, at[k]):
                spare -= part[k] - part[m]
            else:
                spare -= _cheapest_in(rule, member, cost, leaf, m, other, k)[0] - least[f] - part[m]
        if spare <= 0.0:
            return False
    return True


@helper
def _admits(rule: IntArray, member: BoolArray, leaf: int, k: int, cell: int) -> bool:
    """Whether restriction k of a leaf admits a cell."""
    return rule[k, 1] <= cell <= rule[k, 2] and (rule[k, 3] < 0 or member[leaf, rule[k, 3] + cell])


@helper
def _cheapest_in(
    rule: IntArray, member: BoolArray, cost: FloatArray, leaf: int, k: int, other: int, m: int
) -> tuple[float, int]:
    """Cost of the cheapest open cell that two restrictions on one feature admit, and the cell; inf where none is."""
    best, at = np.inf, -1
    for j in range(max(rule[k, 1], rule[m, 1]), min(rule[k, 2], rule[m, 2]) + 1):
        price = cost[rule[k, 4] + j]
        if price < best and _admits(rule, member, leaf, k, j) and _admits(rule, member, other, m, j):
            best, at = price, j
    return best, at

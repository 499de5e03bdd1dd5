"""Depth-first search over bitsets of leaves, the cheapest side first: what searches when there is no LP.

The paper's algorithm 4 (backtracking for an upper bound) and the depth-first half of section VII.F in one kernel: a
dive starts from a box, goes to the side of each split that holds the cheapest point, and backtracks when a box holds
nothing of use. It stops after a number of boxes and hands back the boxes that are left, each of which can be the start
of another dive, in another thread: the incumbent is shared.

Sections VII.D and VII.E in this setting: cells are ranks, so that a feature's cells come sorted, and for each cell two
bitsets are made once, of the leaves that begin at it or before and of those that end at it or beyond. The leaves that
meet a box are then two ANDs of words per feature. Bits of a tree are sorted by gain: the best live leaf of a tree is
its first bit.

A box is worth keeping when its cheapest point costs less than the incumbent and the best live leaf of every tree
together reach the target. Both are also asked of the cells at its ends and of the two sides of each split (shaving),
which is what keeps the search small. Measured on random forests 100 x 5: 30 to 60 microseconds a box, where a round of
`ocf.solvers.box.propagation` on one box takes 250.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.score_sum import has_terms, term_value
from ocf.solvers.box.bitsets import (
    POSITION,
    STACK,
    best_gains,
    drop,
    exclusions,
    has,
    in_both,
    level_count,
    make_bits,
    new_scratch,
    new_stack,
    push,
)
from ocf.solvers.box.instance import Instance, cheapest_between, least_of, make_instance, whole
from ocf.solvers.box.propagation import Multipliers
from ocf.support.loops import copy_to, fill
from ocf.support.numba_cache import array_helper, array_kernel, helper

if TYPE_CHECKING:
    from ocf.solvers.box.bitsets import Bits, Scratch, Stack, Words


#: Relative rounding of sums of gains that is allowed for.
_ROUNDING = 1e-12

#: How a dive ended.
EXHAUSTED, INTERRUPTED, UNCERTAIN = 0, 1, 2

for _k in range(64):
    POSITION[((0x03F79D71B4CB0A89 << _k) & (2**64 - 1)) >> 58] = _k


@helper
def _slack(instance: Instance, bits: Bits, live: Words, room: FloatArray, best: FloatArray) -> float:
    """Least over requirements of what the best live leaves exceed the need by, relative to `room`; -1 if they miss it.

    `room` is a size of gains to measure by; rounding is allowed for.
    """
    least, value, sums = np.inf, 0.0, instance.sums
    for r in range(len(room)):
        total = best_gains(instance.trees, bits, live, r, best)
        spare = total - instance.need[r] + _ROUNDING * room[r]
        if spare < 0:
            return -1.0
        least = min(least, spare / room[r])
        if sums.term[r] >= 0:
            value += term_value(sums, sums.term[r], total)
    if not has_terms(sums):
        return least
    spare = (value - sums.need[0]) / (abs(sums.need[0]) + len(sums.start))
    return -1.0 if spare < 0 else min(least, spare)


@helper
def _close_from(
    instance: Instance, lo: IntArray, hi: IntArray, level: BoolArray, f: int, number: FloatArray, most: float
) -> None:
    """Close the cells at the ends of a feature, and its levels, whose number reaches `most`; one cell must not."""
    offset = instance.offsets[f]
    if instance.ordered[f]:
        while number[offset + lo[f]] >= most:
            lo[f] += 1
        while number[offset + hi[f]] >= most:
            hi[f] -= 1
    else:
        for j in range(offset, instance.offsets[f + 1]):
            if number[j] >= most:
                level[j] = False


@helper
def _relax(
    instance: Instance,
    lo: IntArray,
    hi: IntArray,
    level: BoolArray,
    live: Words,
    multipliers: Multipliers,
    limit: float,
    scratch: Scratch,
) -> float:
    """Lagrangian bound of a box, whose leaves and ends it prunes; see `ocf.solvers.box.propagation`.

    Weights of leaves are in the order of bits.
    """
    total, weight, cell = multipliers.constant, multipliers.leaf, multipliers.cell
    for tree in range(len(scratch.best)):
        least = np.inf
        for a in range(instance.trees[tree], instance.trees[tree + 1]):
            if has(live, a):
                least = min(least, weight[a])
        scratch.best[tree] = least
        total += least
    for f in range(len(lo)):
        scratch.least[f] = least_of(instance, lo, hi, level, f, cell)
        total += scratch.least[f]
    if total >= limit or limit == np.inf:
        return total
    for tree in range(len(scratch.best)):
        most = limit - total + scratch.best[tree]
        for a in range(instance.trees[tree], instance.trees[tree + 1]):
            if weight[a] >= most:
                drop(live, a)
    for f in range(len(lo)):
        _close_from(instance, lo, hi, level, f, cell, limit - total + scratch.least[f])
    return total


@helper
def _drop_poor(instance: Instance, bits: Bits, live: Words, room: FloatArray, best: FloatArray) -> None:
    """Take off the leaves with which the first requirement is out of reach: the last ones of each tree."""
    spare = best_gains(instance.trees, bits, live, 0, best) - instance.need[0] + _ROUNDING * room[0]
    for tree in range(len(best)):
        for a in range(instance.trees[tree + 1] - 1, instance.trees[tree] - 1, -1):
            if best[tree] - bits.gain[a, 0] <= spare:
                break
            drop(live, a)


@helper
def _cheapest_cells(instance: Instance, lo: IntArray, hi: IntArray, level: BoolArray, scratch: Scratch) -> float:
    """Write the cheapest cell of each feature; returns the sum of their costs, inf when a feature has none."""
    total = 0.0
    for f in range(len(lo)):
        best = -1
        if instance.ordered[f]:
            if lo[f] > hi[f]:
                return np.inf
            best = cheapest_between(instance, f, lo[f], hi[f])
        else:
            for j in range(instance.offsets[f], instance.offsets[f + 1]):
                if level[j] and (best < 0 or instance.cost[j] < instance.cost[best]):
                    best = j
            if best < 0:
                return np.inf
        scratch.cheapest[f], scratch.least[f] = best, instance.cost[best]
        total += instance.cost[best]
    return total


@helper
def _limit(shared: FloatArray, equal: float, changes: int, scratch: Scratch) -> float:
    """Cost from which on a point is of no use, in a box whose features cost ``scratch.least`` at least."""
    count = 0
    for cost in scratch.least:
        count += cost > 0
    return min(equal, shared[0]) if count >= changes else shared[0]


@helper
def _close_dear(
    instance: Instance, lo: IntArray, hi: IntArray, level: BoolArray, spare: float, scratch: Scratch
) -> None:
    """Close the cells at the ends, and the levels, that cost too much by themselves."""
    for f in range(len(lo)):
        _close_from(instance, lo, hi, level, f, instance.cost, spare + scratch.least[f])


@helper
def _meet(
    instance: Instance, bits: Bits, lo: IntArray, hi: IntArray, level: BoolArray, live: Words, scratch: Scratch
) -> None:
    """Keep the live leaves that meet the box."""
    n_words = len(live)
    for f in range(len(lo)):
        offset = instance.offsets[f]
        if instance.ordered[f]:
            a, b = offset + lo[f], offset + hi[f]
            for w in range(n_words):
                live[w] &= bits.first[b, w] & bits.last[a, w]
        else:
            level_count(instance, bits, level, f, -1, scratch.open)
            in_both(live, scratch.open, live)


@helper
def _shave(
    instance: Instance,
    bits: Bits,
    lo: IntArray,
    hi: IntArray,
    level: BoolArray,
    live: Words,
    room: FloatArray,
    scratch: Scratch,
) -> bool:
    """Close cells at the ends, and levels, with which the target is out of reach; whether any was closed."""
    moved = False
    for f in range(len(lo)):
        offset = instance.offsets[f]
        if instance.ordered[f]:
            while lo[f] < hi[f]:
                in_both(live, bits.first[offset + lo[f]], scratch.side)
                if _slack(instance, bits, scratch.side, room, scratch.best) >= 0:
                    break
                lo[f] += 1
                moved = True
            while lo[f] < hi[f]:
                in_both(live, bits.last[offset + hi[f]], scratch.side)
                if _slack(instance, bits, scratch.side, room, scratch.best) >= 0:
                    break
                hi[f] -= 1
                moved = True
            continue
        for j in range(offset, instance.offsets[f + 1]):
            if not level[j]:
                continue
            in_both(live, bits.first[j], scratch.side)
            if _slack(instance, bits, scratch.side, room, scratch.best) < 0:
                level[j] = False
                moved = True
    return moved


@helper
def _choose(
    instance: Instance,
    bits: Bits,
    lo: IntArray,
    hi: IntArray,
    level: BoolArray,
    live: Words,
    price: FloatArray,
    slack: float,
    spare: float,
    room: FloatArray,
    scratch: Scratch,
) -> tuple[int, int, bool]:
    """Split to branch at: feature, first cell beyond the cut (or the level), whether the cheapest cell lies beyond.

    Cuts lie beside the cheapest cell. What a side gains is how much slack it takes away and by how much it raises the
    bound (by `price`, the multipliers of cells), each as a share of what there is; the product of both sides decides.
    (-1, …) when the box is a single point.
    """
    best, f_best, cut, beyond = -1.0, -1, -1, False
    for f in range(len(lo)):
        offset, c = instance.offsets[f], scratch.cheapest[f]
        for side in range(2):
            if instance.ordered[f]:
                j = c + 1 if side == 0 else c
                if not offset + lo[f] < j <= offset + hi[f]:
                    continue
                near, far = (bits.first[j - 1], bits.last[j]) if side == 0 else (bits.last[j], bits.first[j - 1])
                if side == 0:
                    other = cheapest_between(instance, f, j - offset, hi[f])
                else:
                    other = cheapest_between(instance, f, lo[f], j - 1 - offset)
            else:
                if side == 1:
                    continue
                other = level_count(instance, bits, level, f, c, scratch.open)
                if other < 0:
                    continue
                j, near, far = c, bits.first[c], scratch.open
            extra = (max(instance.cost[other] - instance.cost[c], price[other] - price[c])) / spare
            in_both(live, near, scratch.side)
            at_near = max(_slack(instance, bits, scratch.side, room, scratch.best), 0.0)
            in_both(live, far, scratch.side)
            at_far = max(_slack(instance, bits, scratch.side, room, scratch.best), 0.0)
            gain = max(1.0 - at_near / slack, 1e-6) * max(1.0 - at_far / slack + extra, 1e-6)
            if gain > best:
                best, f_best, cut, beyond = gain, f, j, side == 1 or not instance.ordered[f]
    return f_best, cut, beyond


@helper
def _split(instance: Instance, stack: Stack, f: int, j: int, near_is_beyond: bool) -> None:
    """Replace the box on top by its two halves, the one with the cheapest cell on top."""
    k = stack.size[0] - 1
    copy_to(stack.lo[k + 1], stack.lo[k])
    copy_to(stack.hi[k + 1], stack.hi[k])
    copy_to(stack.live[k + 1], stack.live[k])
    stack.bound[k + 1] = stack.bound[k]
    rank = j - instance.offsets[f]
    if not instance.ordered[f]:
        copy_to(stack.level[k + 1], stack.level[k])
        fill(stack.level[k + 1, instance.offsets[f] : instance.offsets[f + 1]], False)
        stack.level[k + 1, j] = True
        stack.level[k, j] = False
    else:
        if stack.level.shape[1]:
            copy_to(stack.level[k + 1], stack.level[k])
        near, far = k + 1, k
        if near_is_beyond:
            near, far = k, k + 1
        # `near` holds what lies before the cut
        stack.hi[near, f] = rank - 1
        stack.lo[far, f] = rank
    stack.size[0] = k + 2


@array_helper
def _sizes(instance: Instance) -> FloatArray:
    """Size of the numbers that add up to each requirement, (n_rows,): its need and the largest gain of each tree."""
    room = np.empty(len(instance.need))
    for r in range(len(room)):
        room[r] = abs(instance.need[r]) + 1e-300
        for tree in range(len(instance.trees) - 1):
            largest = 0.0
            for leaf in range(instance.trees[tree], instance.trees[tree + 1]):
                largest = max(largest, abs(instance.gain[leaf, r]))
            room[r] += largest
    return room


@helper
def _leaves_of_cheapest(bits: Bits, live: Words, scratch: Scratch) -> None:
    """Write the live leaves of the cheapest point, one per tree, to ``scratch.side``."""
    copy_to(scratch.side, live)
    for j in scratch.cheapest:
        in_both(scratch.side, bits.first[j], scratch.side)
        in_both(scratch.side, bits.last[j], scratch.side)


@helper
def _write_cheapest(instance: Instance, scratch: Scratch, x: IntArray) -> None:
    """Write the cells of the cheapest point."""
    for f in range(len(x)):
        x[f] = instance.cell[scratch.cheapest[f]]


@array_kernel
def dive(
    instance: Instance,
    bits: Bits,
    stack: Stack,
    scratch: Scratch,
    multipliers: Multipliers,
    error_bound: FloatArray,
    excluded: IntArray,
    shared: FloatArray,
    equal: float,
    changes: int,
    tolerance: float,
    budget: int,
    first: bool,
    x: IntArray,
) -> tuple[int, int, float]:
    """Search the boxes on a stack, the top one first.

    Parameters
    ----------
    instance, bits, stack, scratch : arrays
    multipliers : Multipliers
        Of an LP, with the weights of leaves in the order of bits; without any, when there was none.
    error_bound : (n_rows,) float64
        A point that exceeds the need by less is put before the user's model.
    excluded : (n, n_trees) int64
        See `exclusions`.
    shared : (1,) float64
        Cost from which on a point is of no use. Other threads may lower it at any moment; this dive lowers it too.
    equal : float
        Cost from which on a point is of no use in which as many features cost something as `changes` says.
    changes : int
    tolerance : float
        What is cheaper than a point by less than this, relatively, is of no use.
    budget : int
        Most boxes to look at.
    first : bool
        Whether to stop at the first point.
    x : (n_features,) int64
        Receives the best point of this dive, or the uncertain one: cells of the partition.

    Returns
    -------
    (ended, boxes, cost) : (int, int, float)
        `EXHAUSTED`: nothing is left. `INTERRUPTED`: the boxes on the stack are left. `UNCERTAIN`: the same, and x asks
        for a verdict; its box stays on the stack. The cost is that of x, inf when nothing was found.
    """
    room, found, boxes = _sizes(instance), np.inf, 0
    leaves = np.empty(len(scratch.best), np.int64)
    while stack.size[0] > 0:
        if boxes >= budget or stack.size[0] >= STACK:
            return INTERRUPTED, boxes, found
        boxes += 1
        k = stack.size[0] - 1
        lo, hi, level, live = stack.lo[k], stack.hi[k], stack.level[k], stack.live[k]
        base, bound = _narrow(instance, bits, lo, hi, level, live, multipliers, room, shared, equal, changes, scratch)
        if base == np.inf:
            stack.size[0] -= 1
            continue
        stack.bound[k] = max(stack.bound[k], bound)
        _leaves_of_cheapest(bits, live, scratch)
        verdict = _judge(instance, bits, scratch.side, room, error_bound, excluded, leaves, scratch.best)
        if verdict == UNCERTAIN and found == np.inf:
            _write_cheapest(instance, scratch, x)
            return UNCERTAIN, boxes, base
        if verdict == UNCERTAIN:
            return INTERRUPTED, boxes, found  # the point in x comes first
        if verdict == EXHAUSTED:
            found = base
            shared[0] = min(shared[0], base - tolerance * abs(base))
            _write_cheapest(instance, scratch, x)
            stack.size[0] -= 1
            if first and stack.size[0] > 0:
                return INTERRUPTED, boxes, found
            continue
        slack = max(_slack(instance, bits, live, room, scratch.best), 1e-300)
        spare = max(shared[0] - bound if shared[0] < np.inf else 1.0 + abs(base), 1e-300)
        f, j, beyond = _choose(instance, bits, lo, hi, level, live, multipliers.cell, slack, spare, room, scratch)
        if f < 0:
            stack.size[0] -= 1  # a single point, which has been looked at
        else:
            _split(instance, stack, f, j, beyond)
    return EXHAUSTED, boxes, found


@helper
def _narrow(
    instance: Instance,
    bits: Bits,
    lo: IntArray,
    hi: IntArray,
    level: BoolArray,
    live: Words,
    multipliers: Multipliers,
    room: FloatArray,
    shared: FloatArray,
    equal: float,
    changes: int,
    scratch: Scratch,
) -> tuple[float, float]:
    """Shrink a box until nothing changes; the cost of its cheapest point, and a bound: inf when it is of no use."""
    while True:
        base = _cheapest_cells(instance, lo, hi, level, scratch)
        if base == np.inf:
            return np.inf, np.inf
        limit = _limit(shared, equal, changes, scratch)
        if base >= limit:
            return np.inf, np.inf
        if limit < np.inf:
            _close_dear(instance, lo, hi, level, limit - base, scratch)
        _meet(instance, bits, lo, hi, level, live, scratch)
        if _slack(instance, bits, live, room, scratch.best) < 0:
            return np.inf, np.inf
        _drop_poor(instance, bits, live, room, scratch.best)
        bound = base
        if len(multipliers.leaf):
            bound = max(base, _relax(instance, lo, hi, level, live, multipliers, limit, scratch))
            if bound >= limit or _slack(instance, bits, live, room, scratch.best) < 0:
                return np.inf, np.inf
        moved = _shave(instance, bits, lo, hi, level, live, room, scratch)
        # the multipliers may have closed the cheapest cell
        before, base = base, _cheapest_cells(instance, lo, hi, level, scratch)
        if not moved and base == before:
            return base, bound


@helper
def _judge(
    instance: Instance,
    bits: Bits,
    live: Words,
    room: FloatArray,
    error_bound: FloatArray,
    excluded: IntArray,
    leaves: IntArray,
    best: FloatArray,
) -> int:
    """Verdict on a point whose leaves are the live ones: `EXHAUSTED` it is admissible, `UNCERTAIN`, or `INTERRUPTED`.

    A point that misses the target, is excluded, or stands in a leaf that died is not admissible.
    """
    sure, value, sums = True, 0.0, instance.sums
    for r in range(len(room)):
        total = best_gains(instance.trees, bits, live, r, best)
        if total < instance.need[r] - _ROUNDING * room[r]:
            return INTERRUPTED
        if sums.term[r] >= 0:
            value += term_value(sums, sums.term[r], total)
        sure &= total >= instance.need[r] + error_bound[r] + _ROUNDING * room[r]
    if value < sums.need[0]:
        return INTERRUPTED
    if len(excluded):
        for tree in range(len(leaves)):
            for a in range(instance.trees[tree], instance.trees[tree + 1]):
                if has(live, a):
                    leaves[tree] = instance.leaf[bits.leaf[a]]
        for k in range(len(excluded)):
            differs = 0
            for tree in range(len(leaves)):
                differs += excluded[k, tree] >= 0 and excluded[k, tree] != leaves[tree]
            if differs == 0:
                return INTERRUPTED
    return EXHAUSTED if sure else UNCERTAIN


def backtrack(cells: CellProblem, *, node_limit: int = 100_000) -> IntArray | None:
    """First point of the target on the way back from the cheapest one: an upper bound (box, algorithm 4).

    Parameters
    ----------
    cells : CellProblem
    node_limit : int
        Most boxes to look at.

    Returns
    -------
    (n_features,) int64 or None
        Cells, counted within the features. None: there is no such point, or the limit came first.
    """
    if cells.infeasible:
        return None
    instance = make_instance(cells)
    bits = make_bits(instance)
    stack, scratch = new_stack(instance, bits), new_scratch(instance, bits)
    nothing = Multipliers(0.0, np.zeros(0), instance.cost)
    excluded = [*cells.excluded]
    x = np.zeros(len(instance.ordered), np.int64)
    push(stack, bits, whole(instance), -np.inf)
    ended, limit = UNCERTAIN, np.array([np.inf])
    while ended == UNCERTAIN:
        known, error_bound = exclusions(cells, excluded), cells.requirements.error_bound
        ended, boxes, cost = dive(
            instance, bits, stack, scratch, nothing, error_bound, known, limit, np.inf, 0, 0.0, node_limit, True, x
        )
        if ended == UNCERTAIN:
            leaves = cells.partition.leaves_at(x)
            if (cells.margins(leaves) >= 0).all():
                return x
            excluded.append(leaves)
        node_limit -= boxes
    return x if np.isfinite(cost) else None

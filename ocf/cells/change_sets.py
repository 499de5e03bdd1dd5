"""Which features may change together: sets that a constraint, or the cost of a known point, leaves room for.

A constraint on the number of changes, or a cost per change, allows a few features at a time. A leaf takes some changes:
of the features whose cheapest cells it does not admit. So with the features of a set alone a tree gains no more than by
the best of the leaves that take no others, and where these gains together miss a requirement, no point with just these
changes, or fewer, has the target. There are 1,596 pairs of 57 features; of a random forest of 500 trees of depth 8 on
spambase none to three of them are left, in a hundredth of a second, where the relaxation, in which each tree may use
another pair, says nothing.

Nomenclature
------------
=====================  =============================================================================
symbol                 meaning, shape
=====================  =============================================================================
``use``                of a cell: what it takes of an allowance beyond the least of its feature
``free``               cells that take nothing
``price``              of a feature: the least that a cell which is not free takes
``S``                  a set of features with other than free cells; its prices fit the allowance
=====================  =============================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.kernels import SearchArrays, log_compilation, search_arrays
from ocf.support.limits import seconds_left
from ocf.support.loops import copy_to
from ocf.support.numba_cache import array_kernel, helper, kernel

#: Most features of a set.
LARGEST = 7

#: Least part of the features with several cells that an allowance must price: where the others may change anyhow,
#: leaves take few of the priced ones, and a relation between two features says nothing of sets.
PRICED = 0.5

#: Leaves of a set's parts are looked up by 2 ** (features - 1) keys, each of which takes as long as so many trees.
LOOK_UP = 10

#: Seconds that it takes at most to compile the kernels, once on a machine.
COMPILING = 2.5

#: Relative rounding of sums that is allowed for.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Allowance:
    """A sum over features that a point may not exceed.

    Attributes
    ----------
    use : (n_cells,) float64
        At least 0, and 0 at some open cell of each feature; inf where the cell is closed.
    spare : float
    """

    use: FloatArray
    spare: float

    def prices(self, offsets: IntArray) -> FloatArray:
        """Price of each feature, (n_features,); inf where all open cells are free.

        Parameters
        ----------
        offsets : (n_features + 1,) int64
            Of the cells.
        """
        return np.minimum.reduceat(np.where(self.use > 0, self.use, np.inf), offsets[:-1])


def allowances(cells: CellProblem, cost: FloatArray, live: BoolArray, limit: float) -> Iterator[Allowance]:
    """What constraints and the cost of a known point leave room for.

    Parameters
    ----------
    cells : CellProblem
    cost : (n_cells,) float64
        inf where the cell is closed.
    live : (n_leaves,) bool
    limit : float
        Cost from which on a point is of no use.
    """
    part, need = cells.partition, cells.requirements.need
    starts = part.offsets[:-1]
    least = np.minimum.reduceat(cost, starts)
    if np.isfinite(limit) and np.isfinite(least).all():
        yield _allowance(cost, part.offsets, least, limit - least.sum(), abs(limit))
    if cells.values is None:
        return
    gain, trees = cells.requirements.gain, cells.values.constraint_trees
    at = _gains_at_cells(cells, gain)
    offsets = part.ensemble.leaf_offsets[:-1]
    best = np.maximum.reduceat(np.where(live[:, None], gain, -np.inf), offsets)[: trees.start].sum(axis=0)
    for r in range(len(need)):
        used = np.where(np.isfinite(cost), -at[:, r], np.inf)
        lowest = np.minimum.reduceat(used, starts)
        if np.isfinite(lowest).all() and np.isfinite(best[r]) and np.ptp(at[:, r]) > 0:
            size = abs(need[r]) + np.abs(lowest).sum() + abs(best[r])
            yield _allowance(used, part.offsets, lowest, best[r] - lowest.sum() - need[r], size)


def _allowance(use: FloatArray, offsets: IntArray, least: FloatArray, spare: float, size: float) -> Allowance:
    return Allowance(use - np.repeat(least, np.diff(offsets)), float(spare + _ROUNDING * size))


def _gains_at_cells(cells: CellProblem, gain: FloatArray) -> FloatArray:
    """What the constraint trees gain at each cell, (n_cells, n_rows): each is of one feature."""
    assert cells.values is not None
    part, values = cells.partition, cells.values
    at = np.zeros((len(part.cell_feature), gain.shape[1]))
    leaf = np.arange(values.constraint_leaves.start, values.constraint_leaves.stop)
    tree = np.searchsorted(part.ensemble.leaf_offsets, leaf, side="right") - 1
    feature = np.array(values.constrained, np.int64)[tree - values.constraint_trees.start]
    ordered = part.ordered[feature]
    of, i = leaf[ordered], feature[ordered]
    low = part.offsets[i] + part.low[of, i]
    count = part.high[of, i].astype(np.int64) - part.low[of, i] + 1
    place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    at[np.repeat(low, count) + place] = gain[np.repeat(of, count)]
    for k, i in zip(leaf[~ordered].tolist(), feature[~ordered].tolist(), strict=True):
        levels = np.flatnonzero(part.member[k, part.member_offsets[i] : part.member_offsets[i + 1]])
        at[part.offsets[i] + levels] = gain[k]
    return at


def drop_beyond_sets(cells: CellProblem, allowance: Allowance, cost: FloatArray, live: BoolArray, most: int) -> bool:
    """Kill leaves and close cells that no set of features serves; False when nothing is left.

    Parameters
    ----------
    cells : CellProblem
    allowance : Allowance
    cost : (n_cells,) float64
        Changed in place: inf where the cell is closed.
    live : (n_leaves,) bool
        Changed in place.
    most : int
        Nothing is done where there are more sets, times trees, than this.
    """
    if allowance.spare < 0:
        return False
    if seconds_left() < COMPILING and not _mark_served.overloads:
        return True
    arrays = search_arrays(cells.partition)
    offsets, n_trees = arrays.offsets, len(arrays.leaf_offsets) - 1
    price = allowance.prices(offsets)
    may = np.flatnonzero(price <= allowance.spare)
    largest = int(np.searchsorted(np.cumsum(np.sort(price[may])), allowance.spare, side="right"))
    several = np.add.reduceat(np.isfinite(cost), offsets[:-1]) > 1
    if largest > LARGEST or np.isfinite(price).sum() < PRICED * several.sum():
        return True
    most //= n_trees + LOOK_UP * 2 ** max(largest - 1, 0)
    if _n_sets(np.sort(price[may]), allowance.spare, largest, most) > most:
        return True
    takes, sizes = _changes_of_leaves(arrays, allowance.use == 0, np.isfinite(cost))
    live &= sizes <= largest
    leaves = np.flatnonzero(live)
    key = _keys(takes[leaves], len(offsets) - 1)
    order = np.argsort(key, kind="stable")
    keys, starts = np.unique(key[order], return_index=True)
    groups = _Groups(
        keys.astype(np.int64),
        np.append(starts, len(order)).astype(np.int64),
        arrays.boxes.tree[leaves[order]],
        np.ascontiguousarray(cells.requirements.gain[leaves[order]]),
    )
    served, used = np.zeros(len(keys), np.bool_), np.zeros(len(may), np.bool_)
    log_compilation(_mark_served)
    stack, need = _new_stack(groups, n_trees, largest), cells.requirements.need
    _mark_served(groups, stack, may, price[may], allowance.spare, need, len(offsets), served, used)
    if not served.any():
        return False
    live[leaves[order[~np.repeat(served, np.diff(groups.start))]]] = False
    stays = np.ones(len(offsets) - 1, bool)
    stays[may[used]] = False
    cost[(allowance.use > 0) & np.repeat(stays, np.diff(offsets))] = np.inf
    return True


def _changes_of_leaves(arrays: SearchArrays, free: BoolArray, opened: BoolArray) -> tuple[IntArray, IntArray]:
    """Features of which a leaf admits no free cell, (n_leaves, LARGEST) padded by -1, and how many there are."""
    boxes, offsets = arrays.boxes, arrays.offsets
    before = np.concatenate([[0], np.cumsum(free & opened)])
    first = offsets[boxes.feature]
    count = before[first + boxes.high + 1] - before[first + boxes.low]
    leaf = np.repeat(np.arange(len(boxes.tree)), np.diff(boxes.start))
    for f in np.flatnonzero(~arrays.ordered):
        k = np.flatnonzero(boxes.feature == f)
        span = slice(offsets[f], offsets[f + 1])
        levels = boxes.member[leaf[k], arrays.column[f] : arrays.column[f] + offsets[f + 1] - offsets[f]]
        count[k] = (levels & (free & opened)[span]).sum(axis=1)
    k = np.flatnonzero(count == 0)
    sizes = np.bincount(leaf[k], minlength=len(boxes.tree))
    place = np.arange(len(k)) - np.concatenate([[0], np.cumsum(sizes)])[leaf[k]]
    takes = np.full((len(sizes), LARGEST), -1, np.int64)
    few = place < LARGEST
    takes[leaf[k[few]], place[few]] = boxes.feature[k[few]]
    return takes, sizes


def _keys(takes: IntArray, n_features: int) -> IntArray:
    """A number for each set of features, in increasing order and padded by -1, (n,).

    Of thousands of features, sets of many may share one, and count as one then: more is in reach of both.
    """
    return np.asarray((takes + 1) @ (n_features + 1) ** np.arange(LARGEST))


class _Groups(NamedTuple):
    """Leaves by the features that they take, and by nothing else.

    Attributes
    ----------
    key : (n_groups,) int64
        Increasing; see `_keys`.
    start : (n_groups + 1,) int64
        Leaves of a group are ``start[g]:start[g + 1]``.
    tree : (n_leaves,) int64
    gain : (n_leaves, n_rows) float64
    """

    key: IntArray
    start: IntArray
    tree: IntArray
    gain: FloatArray


class _SetStack(NamedTuple):
    """Sets on the way to the one at hand, each with one more feature, which comes behind those before.

    Attributes
    ----------
    best : (largest + 1, n_trees, n_rows) float64
        What each tree gains at best by the leaves that take changes of the set alone.
    key, size : (largest + 1, 2 ** largest) int64
        Of the parts of each set, those without its last feature first.
    next : (largest + 1,) int64
        Place of the feature that is tried next; one behind the one that was added last.
    spent : (largest + 1,) float64
    grown : (largest + 1,) bool
        Whether a further feature fits.
    """

    best: FloatArray
    key: IntArray
    size: IntArray
    next: IntArray
    spent: FloatArray
    grown: BoolArray


def _new_stack(groups: _Groups, n_trees: int, largest: int) -> _SetStack:
    """A stack with the empty set."""
    best = np.full((largest + 1, n_trees, groups.gain.shape[1]), -np.inf)
    key = np.zeros((largest + 1, 2**largest), np.int64)
    places = np.zeros(largest + 1, np.int64)
    return _SetStack(best, key, key.copy(), places, np.zeros(largest + 1), np.zeros(largest + 1, np.bool_))


@array_kernel
def _n_sets(price: FloatArray, spare: float, largest: int, most: int) -> int:
    """How many sets of features fit, by their prices in increasing order; more than `most` are not counted."""
    place, spent = np.zeros(largest + 1, np.int64), np.zeros(largest + 1)
    depth, n = 0, 1
    while depth >= 0 and n <= most:
        i = place[depth]
        if depth == largest or i == len(price) or spent[depth] + price[i] > spare:
            depth -= 1
            continue
        place[depth] += 1
        n += 1
        spent[depth + 1], place[depth + 1] = spent[depth] + price[i], i + 1
        depth += 1
    return n


@kernel
def _mark_served(
    groups: _Groups,
    stack: _SetStack,
    may: IntArray,
    price: FloatArray,
    spare: float,
    need: FloatArray,
    base: int,
    served: BoolArray,
    used: BoolArray,
) -> None:
    """Go through all sets that fit, and mark the groups and the features of those with which the target is in reach.

    Only sets that no later feature can join are asked: with fewer features no more is in reach.
    """
    _raise_by(groups, 0, stack.best[0])
    depth, largest = 0, len(stack.next) - 1
    while depth >= 0:
        i = stack.next[depth]
        while i < len(may) and (depth == largest or stack.spent[depth] + price[i] > spare):
            i += 1
        if i < len(may):
            stack.next[depth], stack.grown[depth] = i + 1, True
            stack.spent[depth + 1] = stack.spent[depth] + price[i]
            _push(groups, stack, depth, may[i] + 1, base)
            depth += 1
            stack.next[depth], stack.grown[depth] = i + 1, False
            continue
        if not stack.grown[depth] and _in_reach(stack.best[depth], need):
            for m in range(2**depth):
                g = _group_of(groups.key, stack.key[depth, m])
                if g >= 0:
                    served[g] = True
            for d in range(depth):
                used[stack.next[d] - 1] = True
        depth -= 1


@helper
def _push(groups: _Groups, stack: _SetStack, depth: int, digit: int, base: int) -> None:
    """Add a feature, by its digit in keys, to a set."""
    best, n = stack.best[depth + 1], 2**depth
    for t in range(len(best)):
        copy_to(best[t], stack.best[depth, t])
    for m in range(n):
        key, size = stack.key[depth, m], stack.size[depth, m]
        stack.key[depth + 1, m], stack.size[depth + 1, m] = key, size
        stack.key[depth + 1, n + m], stack.size[depth + 1, n + m] = key + digit * base**size, size + 1
        _raise_by(groups, stack.key[depth + 1, n + m], best)


@helper
def _group_of(keys: IntArray, key: int) -> int:
    """Place of a key; -1 where no leaf has it."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < len(keys) and keys[low] == key else -1


@helper
def _raise_by(groups: _Groups, key: int, best: FloatArray) -> None:
    """Raise what each tree can gain by the leaves that take just these features."""
    g = _group_of(groups.key, key)
    if g < 0:
        return
    for a in range(groups.start[g], groups.start[g + 1]):
        own = best[groups.tree[a]]
        for r in range(len(own)):
            own[r] = max(own[r], groups.gain[a, r])


@helper
def _in_reach(best: FloatArray, need: FloatArray) -> bool:
    """Whether the best gains of all trees meet all requirements, rounding apart."""
    for r in range(len(need)):
        total, size = 0.0, abs(need[r])
        for t in range(len(best)):
            if best[t, r] == -np.inf:  # no leaf at all
                return False
            total += best[t, r]
            size += abs(best[t, r])
        if total < need[r] - _ROUNDING * size:
            return False
    return True

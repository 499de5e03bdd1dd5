"""Trees without what lies too far: the same answers within a ball of cost around the row, in a fraction of the leaves.

Where a point of some cost is known, only leaves that meet the ball of that cost can hold a better one. Every tree is
descended from its root with the box of the node at hand and the least cost of a point in it; a child whose box costs
too much is left out, and a node with one child left is skipped. What remains decides every point of the ball as the
whole model does; of points outside it says nothing.

The work is in proportion to the nodes whose boxes meet the ball, and to the number of cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.kernels import Trees, search_trees
from ocf.cells.partition import Partition
from ocf.support.loops import copy_to, fill
from ocf.support.numba_cache import array_kernel, helper
from ocf.trees.ensemble import Ensemble, SplitKind

#: Relative room for rounding: what lies so close to the border of the ball is kept.
_ROOM = 1e-9

#: What a record of a node left over holds.
_NODE, _LEFT, _RIGHT = 0, 1, 2


class _SearchTrees(NamedTuple):
    """Static arrays of the trees, as the descent reads them.

    Attributes
    ----------
    trees : Trees
    offsets : (n_features + 1,) int64
        Of the cells.
    ordered : (n_features,) bool
    column : (n_features,) int64
        Where the levels of an unordered feature start among those of all.
    """

    trees: Trees
    offsets: IntArray
    ordered: BoolArray
    column: IntArray


class _Stack(NamedTuple):
    """Nodes to descend into, each with its box; the last place holds the whole space.

    Attributes
    ----------
    node : (n,) int64
    parent, side : (n,) int64
        Record, and which of its entries the node's own record belongs in; -1 at roots.
    low, high : (n, n_features) int64
        First and last cell of ordered features.
    allowed : (n, n_members) bool
        Levels of unordered features.
    part : (n, n_features) float64
        Least cost on each feature.
    total : (n,) float64
        Their sum.
    """

    node: IntArray
    parent: IntArray
    side: IntArray
    low: IntArray
    high: IntArray
    allowed: BoolArray
    part: FloatArray
    total: FloatArray


@dataclass(frozen=True)
class Nearby:
    """What is left of an ensemble.

    Attributes
    ----------
    ensemble : Ensemble
    leaf : (n_leaves,) int64
        The leaf of the whole ensemble that each leaf stands for, in any order: libraries number leaves as they grow.
    """

    ensemble: Ensemble
    leaf: IntArray

    def translated(self, excluded: tuple[IntArray, ...]) -> tuple[IntArray, ...]:
        """Choices of leaves of the whole ensemble in the numbers of what is left; those that lie outside are dropped.

        Parameters
        ----------
        excluded : tuple of (n,) int64
            Leaves, one of each of some trees.
        """
        inside, order = [choice for choice in excluded if np.isin(choice, self.leaf).all()], np.argsort(self.leaf)
        return tuple(order[np.searchsorted(self.leaf, choice, sorter=order)] for choice in inside)


class Pruner:
    """Prunes the trees of one partition, for any row.

    Parameters
    ----------
    part : Partition
        Of trees without oblique splits.
    """

    def __init__(self, part: Partition) -> None:
        self._ensemble = part.ensemble
        self._nodes = _SearchTrees(
            search_trees(part), part.offsets.astype(np.int64), part.ordered, part.member_offsets[:-1].astype(np.int64)
        )
        self._offsets, self._members = part.offsets, int(part.member_offsets[-1])
        self._depth = int(part.ensemble.depth.max())

    def within(self, cost: FloatArray, limit: float, most: int) -> Nearby | None:
        """The trees within a ball, where it is not empty; None where more than so many nodes are left, or none at all.

        Parameters
        ----------
        cost : (n_cells,) float64
            Least cost of a point of each cell; inf where the cell is closed.
        limit : float
            Points of this cost, and dearer ones, do not matter.
        most : int
            Number of nodes.
        """
        border = limit + _ROOM * abs(limit)
        stack = self._stack(cost)
        if not stack.total[-1] < border:
            return None
        records, starts = _descend(self._nodes, _least_by_span(cost), cost, stack, border, most)
        return _rebuilt(self._ensemble, records, starts) if len(starts) > self._ensemble.n_trees else None

    def _stack(self, cost: FloatArray) -> _Stack:
        """An empty stack; the least costs of all features stand in its last place."""
        size, n = self._depth + 4, len(self._offsets) - 1
        place, box = np.zeros(size, np.int64), np.zeros((size, n), np.int64)
        part = np.zeros((size, n))
        part[-1] = np.minimum.reduceat(cost, self._offsets[:-1])
        allowed = np.ones((size, self._members), bool)
        return _Stack(place, place.copy(), place.copy(), box, box.copy(), allowed, part, part.sum(axis=1))


def _least_by_span(cost: FloatArray) -> FloatArray:
    """Row k holds the least cost of the 2^k cells from each cell on, (n_powers, n_cells); the ends overlap features."""
    rows, span = [cost], 1
    while 2 * span <= len(cost):
        last = rows[-1]
        rows.append(np.append(np.minimum(last[:-span], last[span:]), last[len(last) - span :]))
        span *= 2
    return np.array(rows)


def _rebuilt(whole: Ensemble, records: IntArray, starts: IntArray) -> Nearby:
    """The ensemble of what is left.

    Parameters
    ----------
    whole : Ensemble
    records : (n_nodes, 3) int64
        Node of the whole ensemble, and the records of its children, which come behind it; -1 at leaves.
    starts : (n_trees + 1,) int64
        Where each tree's records begin; the first is its root.
    """
    node = records[:, _NODE]
    is_leaf = whole.kind[node] == SplitKind.LEAF
    leaf = whole.leaf[node[is_leaf]].astype(np.int64)
    numbers = np.full(len(node), -1, np.int32)
    numbers[is_leaf] = np.arange(len(leaf))
    ensemble = replace(
        whole,
        tree_offsets=starts,
        kind=whole.kind[node],
        feature=whole.feature[node],
        threshold=whole.threshold[node],
        left=records[:, _LEFT].astype(np.int32),
        right=records[:, _RIGHT].astype(np.int32),
        leaf=numbers,
        leaf_values=whole.leaf_values[leaf],
        missing_left=None if whole.missing_left is None else whole.missing_left[node],
        set_index=whole.set_index[node],
        oblique_index=whole.oblique_index[node],
    )
    return Nearby(ensemble, leaf)


@helper
def _least(table: FloatArray, first: int, last: int) -> float:
    """Least cost of the cells ``first..last``; inf of none."""
    if first > last:
        return np.inf
    power, span = 0, 1
    while 2 * span <= last - first + 1:
        span *= 2
        power += 1
    return min(table[power, first], table[power, last - span + 1])


@helper
def _least_of_levels(cost: FloatArray, allowed: BoolArray) -> float:
    """Least cost of the levels that are allowed."""
    least = np.inf
    for j in range(len(cost)):
        if allowed[j]:
            least = min(least, cost[j])
    return least


@helper
def _narrow(
    nodes: _SearchTrees, table: FloatArray, cost: FloatArray, stack: _Stack, at: int, to: int, left: bool
) -> None:
    """Write the box of a child of the node at place `at` of the stack to place `to`, with what its points cost."""
    _copy_box(stack, at, to)
    f, cut = nodes.trees.node[stack.node[at], 0], np.int64(nodes.trees.node[stack.node[at], 1])
    first, last = nodes.offsets[f], nodes.offsets[f + 1]
    if nodes.ordered[f]:
        if left:
            stack.high[to, f] = min(stack.high[to, f], cut)
        else:
            stack.low[to, f] = max(stack.low[to, f], cut + 1)
        price = _least(table, first + stack.low[to, f], first + stack.high[to, f])
    else:
        column = nodes.column[f]
        for j in range(last - first):
            goes_left = j <= cut if cut >= -1 else nodes.trees.sets[-2 - cut, j]
            if goes_left != left:
                stack.allowed[to, column + j] = False
        price = _least_of_levels(cost[first:last], stack.allowed[to, column : column + last - first])
    stack.total[to] = stack.total[at] + (price - stack.part[at, f]) if price != stack.part[at, f] else stack.total[at]
    stack.part[to, f] = price
    stack.node[to] = nodes.trees.node[stack.node[at], 2 if left else 3]


@array_kernel
def _descend(
    nodes: _SearchTrees, table: FloatArray, cost: FloatArray, stack: _Stack, border: float, most: int
) -> tuple[IntArray, IntArray]:
    """Records of what is left, and where those of each tree begin; fewer trees where there are too many records."""
    n_trees = len(nodes.trees.root)
    records, starts = np.empty((1024, 3), np.int64), np.zeros(n_trees + 1, np.int64)
    n = 0
    for tree in range(n_trees):
        stack.node[0], top = nodes.trees.root[tree], 0
        stack.parent[0] = stack.side[0] = -1
        for f in range(len(nodes.ordered)):
            stack.low[0, f], stack.high[0, f] = 0, nodes.offsets[f + 1] - nodes.offsets[f] - 1
        fill(stack.allowed[0], True)
        copy_to(stack.part[0], stack.part[-1])
        stack.total[0] = stack.total[-1]
        while top >= 0:
            if n == len(records):
                if n >= most:
                    return records[:n], starts[:tree]
                records = np.concatenate((records, np.empty_like(records)))
            at, parent, side = stack.node[top], stack.parent[top], stack.side[top]
            both = nodes.trees.node[at, 0] >= 0
            if both:
                # the right child above the left one, and both above their parent, whose place the first then takes
                _narrow(nodes, table, cost, stack, top, top + 1, False)
                _narrow(nodes, table, cost, stack, top, top + 2, True)
                right, left = stack.total[top + 1] < border, stack.total[top + 2] < border
                both = left and right
                if not both:
                    _move(stack, top + 2 if left else top + 1, top)
                    stack.parent[top], stack.side[top] = parent, side
                    continue
            records[n, 0], records[n, 1], records[n, 2] = at, -1, -1
            if parent >= 0:
                records[parent, side] = n
            if both:
                _move(stack, top + 1, top)
                _move(stack, top + 2, top + 1)
                stack.parent[top], stack.side[top] = n, _RIGHT
                stack.parent[top + 1], stack.side[top + 1] = n, _LEFT
                top += 1
            else:
                top -= 1
            n += 1
        starts[tree + 1] = n
    return records[:n], starts


@helper
def _copy_box(stack: _Stack, source: int, to: int) -> None:
    """Copy the box of a place of the stack to another, with what its points cost on each feature."""
    copy_to(stack.low[to], stack.low[source])
    copy_to(stack.high[to], stack.high[source])
    copy_to(stack.part[to], stack.part[source])
    copy_to(stack.allowed[to], stack.allowed[source])


@helper
def _move(stack: _Stack, source: int, to: int) -> None:
    """Copy a place of the stack to another."""
    stack.node[to], stack.total[to] = stack.node[source], stack.total[source]
    _copy_box(stack, source, to)

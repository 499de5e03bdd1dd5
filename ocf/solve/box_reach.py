"""Kernels: what of a box of numbers is left by the trees that split it, and which leaves points of it may reach.

Nomenclature
------------
=====================  =============================================================================
symbol                 meaning, shape
=====================  =============================================================================
``low, high``          the box, (n_features,); from -inf to inf for what is no number
``limit``              cost that points must beat
``live``               whether a leaf is in reach, (n_leaves,)
``ends``               for each leaf the part of the box that may reach it, (2, n_leaves, n_features)
``gain, need``         the target: ``sum over trees of gain[leaf] >= need``, (n_leaves, n_rows), (n_rows,)
=====================  =============================================================================
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.reduction import drop_useless_leaves
from ocf.support.loops import copy_to, fill
from ocf.support.numba_cache import array_helper, array_kernel, helper

#: Times that the box shrinks, and room for rounding in it.
ROUNDS, ROOM = 3, 1e-9

#: Kinds of nodes. What splits other than numbers lets a box through to both sides.
LEAF, AXIS, PLANE, OTHER = 0, 1, 2, 3


class Splits(NamedTuple):
    """Trees as a box goes down them.

    Attributes
    ----------
    kind, left, right, feature, leaf, plane : (n_nodes,) int64
    threshold : (n_nodes,) float64
    root : (n_trees,) int64
        Of the trees with hyperplanes; -1 of others, whose leaves are boxes.
    offsets : (n_trees + 1,) int64
        Leaves of a tree.
    deepest, first : (n_nodes,) int64, (n_trees + 1,) int64
        The nodes of each tree, the deepest first.
    depth : int
        Of the deepest leaf.
    """

    kind: IntArray
    left: IntArray
    right: IntArray
    feature: IntArray
    leaf: IntArray
    plane: IntArray
    threshold: FloatArray
    root: IntArray
    offsets: IntArray
    deepest: IntArray
    first: IntArray
    depth: int


class Planes(NamedTuple):
    """Hyperplanes: what they weigh numbers by, and what the levels of other features add at least and at most.

    Attributes
    ----------
    first : (n_planes + 1,) int64
        Entries of a plane.
    feature : (n_entries,) int64
    weight : (n_entries,) float64
    least, most, size : (n_planes,) float64
        Of the sum over levels, and the sum of its magnitudes.
    factor, slack : (n_planes,) float64
        Of `ocf.trees.ensemble.Ensemble.oblique_error_bound`.
    """

    first: IntArray
    feature: IntArray
    weight: FloatArray
    least: FloatArray
    most: FloatArray
    size: FloatArray
    factor: FloatArray
    slack: FloatArray


class Rates(NamedTuple):
    """What leaving the origin by d costs at least: ``linear |d| + square d**2``, each (n_features,).

    Attributes
    ----------
    number : (n_features,) bool
        Whether the feature is a number that may change; others cost nothing here.
    origin, linear, square : (n_features,) float64
    """

    number: BoolArray
    origin: FloatArray
    linear: FloatArray
    square: FloatArray


class Needs(NamedTuple):
    """What is asked of the leaves.

    Attributes
    ----------
    gain : (n_leaves, n_rows) float64
    need : (n_rows,) float64
    """

    gain: FloatArray
    need: FloatArray


class Asked(NamedTuple):
    """What boxes are asked about.

    Attributes
    ----------
    splits : Splits
    planes : Planes
    rates : Rates
    target : Needs
    boxes : (2, n_leaves, n_features) float64
        Of the leaves of trees without hyperplanes.
    """

    splits: Splits
    planes: Planes
    rates: Rates
    target: Needs
    boxes: NDArray[np.float64]


class Reach(NamedTuple):
    """A box and the leaves in reach of it.

    Attributes
    ----------
    low, high : (n_features,) float64
    live : (n_leaves,) bool
    ends : (2, n_leaves, n_features) float64
        Working space: for each leaf the part of the box that may reach it.
    """

    low: FloatArray
    high: FloatArray
    live: BoolArray
    ends: NDArray[np.float64]


@helper
def rise(rates: Rates, i: int, low: float, high: float) -> float:
    """What the nearest value within some ends costs at least.

    Parameters
    ----------
    rates : Rates
    i : int
        A number.
    low, high : float
    """
    move = abs(min(max(rates.origin[i], low), high) - rates.origin[i])
    return move * (rates.linear[i] + move * rates.square[i])


@helper
def price(rates: Rates, low: FloatArray, high: FloatArray) -> float:
    """What the cheapest point of a box costs at least.

    Parameters
    ----------
    rates : Rates
    low, high : (n_features,) float64
    """
    total = 0.0
    for i in range(len(low)):
        if rates.number[i]:
            total += rise(rates, i, low[i], high[i])
    return total


@helper
def afford(rates: Rates, limit: float, low: FloatArray, high: FloatArray) -> None:
    """Take from a box what no number can reach by what the others leave of the limit.

    Parameters
    ----------
    rates : Rates
    limit : float
    low, high : (n_features,) float64
        Overwritten.
    """
    left = limit - price(rates, low, high)
    for i in range(len(low)):
        if rates.number[i]:
            room = max(left + rise(rates, i, low[i], high[i]), 0.0) * (1.0 + ROOM)
            far = math.inf
            if rates.linear[i] > 0:
                far = room / rates.linear[i]
            if rates.square[i] > 0:
                far = min(far, math.sqrt(room / rates.square[i]))
            low[i], high[i] = max(low[i], rates.origin[i] - far), min(high[i], rates.origin[i] + far)


@helper
def cut(planes: Planes, k: int, threshold: float, left: bool, low: FloatArray, high: FloatArray) -> bool:
    """Take from a box what lies beyond one side of a hyperplane, for each number by itself; whether anything is left.

    Parameters
    ----------
    planes : Planes
    k : int
    threshold : float
    left : bool
        Which side is kept.
    low, high : (n_features,) float64
        Overwritten.
    """
    sign = 1.0 if left else -1.0
    size, least = planes.size[k], 0.0
    for e in range(planes.first[k], planes.first[k + 1]):
        i, w = planes.feature[e], sign * planes.weight[e]
        if w != 0:
            size += abs(w) * max(abs(low[i]), abs(high[i]))
            least += w * (low[i] if w > 0 else high[i])
    if not math.isfinite(size):
        return True
    doubt = 4.0 * (planes.factor[k] * (size + abs(threshold)) + planes.slack[k]) + ROOM * 1e-3 * size
    spare = sign * threshold + doubt - (planes.least[k] if left else -planes.most[k]) - least
    if spare < 0:
        return False
    for e in range(planes.first[k], planes.first[k + 1]):
        i, w = planes.feature[e], sign * planes.weight[e]
        if w > 0:
            high[i] = min(high[i], (spare + w * low[i]) / w)
        elif w < 0:
            low[i] = max(low[i], (spare + w * high[i]) / w)
        if low[i] > high[i]:  # by rounding
            low[i], high[i] = high[i], low[i]
    return True


@helper
def is_crossed(low: FloatArray, high: FloatArray) -> bool:
    """Whether a box is empty.

    Parameters
    ----------
    low, high : (n_features,) float64
    """
    count = 0
    for i in range(len(low)):
        count += low[i] > high[i]
    return count > 0


@helper
def mark_useful(splits: Splits, t: int, live: BoolArray, useful: BoolArray) -> None:
    """Mark the nodes of a tree below which a leaf is live.

    Parameters
    ----------
    splits : Splits
    t : int
        The tree.
    live : (n_leaves,) bool
    useful : (n_nodes of the tree,) bool
        Overwritten.
    """
    start = splits.first[t]
    for k in range(start, splits.first[t + 1]):
        v = splits.deepest[k]
        if splits.kind[v] == LEAF:
            useful[v - start] = live[splits.leaf[v]]
        else:
            useful[v - start] = useful[splits.left[v] - start] or useful[splits.right[v] - start]


@array_helper
def descend(asked: Asked, limit: float, t: int, reach: Reach) -> None:
    """Take a box down a tree with hyperplanes.

    Parameters
    ----------
    asked : Asked
    limit : float
    t : int
        The tree.
    reach : Reach
        Its leaves are overwritten for those of the tree.
    """
    splits, planes, rates = asked.splits, asked.planes, asked.rates
    start, useful = splits.first[t], np.empty(splits.first[t + 1] - splits.first[t], np.bool_)
    mark_useful(splits, t, reach.live, useful)
    node, stack = np.empty(splits.depth + 2, np.int64), np.empty((splits.depth + 2, 2, len(reach.low)))
    own = np.empty((2, len(reach.low)))
    node[0], size = splits.root[t], 1
    copy_to(stack[0, 0], reach.low)
    copy_to(stack[0, 1], reach.high)
    reached = np.zeros(splits.offsets[t + 1] - splits.offsets[t], np.bool_)
    while size > 0:
        size -= 1
        v = node[size]
        copy_to(own[0], stack[size, 0])
        copy_to(own[1], stack[size, 1])
        if is_crossed(own[0], own[1]) or price(rates, own[0], own[1]) >= limit:
            continue
        if splits.kind[v] == LEAF:
            k = splits.leaf[v]
            reached[k - splits.offsets[t]] = True
            afford(rates, limit, own[0], own[1])
            copy_to(reach.ends[0, k], own[0])
            copy_to(reach.ends[1, k], own[1])
            continue
        for left in (True, False):
            child = splits.left[v] if left else splits.right[v]
            if not useful[child - start]:
                continue
            copy_to(stack[size, 0], own[0])
            copy_to(stack[size, 1], own[1])
            i, some = splits.feature[v], True
            if splits.kind[v] == AXIS and left:
                stack[size, 1, i] = min(stack[size, 1, i], splits.threshold[v])
            elif splits.kind[v] == AXIS:
                stack[size, 0, i] = max(stack[size, 0, i], splits.threshold[v])
            elif splits.kind[v] == PLANE:
                some = cut(planes, splits.plane[v], splits.threshold[v], left, stack[size, 0], stack[size, 1])
            if some:
                node[size] = child
                size += 1
    for k in range(len(reached)):
        reach.live[splits.offsets[t] + k] &= reached[k]


@helper
def meet(asked: Asked, limit: float, t: int, reach: Reach) -> None:
    """The common part of a box and each leaf of a tree without hyperplanes.

    Parameters
    ----------
    asked : Asked
    limit : float
    t : int
        The tree.
    reach : Reach
        Its leaves are overwritten for those of the tree.
    """
    rates, ends = asked.rates, reach.ends
    for k in range(asked.splits.offsets[t], asked.splits.offsets[t + 1]):
        if not reach.live[k]:
            continue
        for i in range(len(reach.low)):
            number = rates.number[i]
            ends[0, k, i] = max(reach.low[i], asked.boxes[0, k, i]) if number else reach.low[i]
            ends[1, k, i] = min(reach.high[i], asked.boxes[1, k, i]) if number else reach.high[i]
        if is_crossed(ends[0, k], ends[1, k]) or price(rates, ends[0, k], ends[1, k]) >= limit:
            reach.live[k] = False
        else:
            afford(rates, limit, ends[0, k], ends[1, k])


@array_helper
def narrow(offsets: IntArray, reach: Reach) -> bool:
    """Shrink a box to the hull of the live leaves of each tree; whether anything is left.

    Parameters
    ----------
    offsets : (n_trees + 1,) int64
    reach : Reach
        Its box is overwritten.
    """
    low, high, ends = reach.low, reach.high, reach.ends
    room = np.zeros(len(low))
    for i in range(len(low)):
        if math.isfinite(high[i] - low[i]):
            room[i] += ROOM * (high[i] - low[i])
        if math.isfinite(low[i]):
            room[i] += ROOM * abs(low[i])
    least, most = np.empty(len(low)), np.empty(len(low))
    for t in range(len(offsets) - 1):
        fill(least, np.inf)
        fill(most, -np.inf)
        for k in range(offsets[t], offsets[t + 1]):
            if reach.live[k]:
                for i in range(len(low)):
                    least[i], most[i] = min(least[i], ends[0, k, i]), max(most[i], ends[1, k, i])
        for i in range(len(low)):
            low[i], high[i] = max(low[i], least[i] - room[i]), min(high[i], most[i] + room[i])
    return not is_crossed(low, high)


@array_kernel
def tighten(asked: Asked, limit: float, reach: Reach) -> float:
    """Shrink a box, and drop the leaves that no cheaper point of it with the target reaches.

    What its cheapest point costs at least; inf where nothing is left.

    Parameters
    ----------
    asked : Asked
    limit : float
    reach : Reach
        Overwritten.
    """
    splits, target, count = asked.splits, asked.target, reach.live.sum()
    best = np.empty(len(splits.root))
    afford(asked.rates, limit, reach.low, reach.high)
    if is_crossed(reach.low, reach.high):
        return np.inf
    for _ in range(ROUNDS):
        for t in range(len(splits.root)):
            if splits.root[t] < 0:
                meet(asked, limit, t, reach)
            else:
                descend(asked, limit, t, reach)
        some = drop_useless_leaves(splits.offsets, target.gain, target.need, reach.live, best)
        if not (some and narrow(splits.offsets, reach)):
            return np.inf
        before, count = count, reach.live.sum()
        if count == before:
            break
    return price(asked.rates, reach.low, reach.high)

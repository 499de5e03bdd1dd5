r"""Cuts between trees: sets of leaves no two of which can hold the same point of use.

The interval model is the convex hull of each tree by itself; what is left of the gap lies between trees. Two leaves
*conflict* when no point of use lies in both: their boxes share no open cell of some feature, as those of one tree do,
or the cheapest point of both costs the limit or more. Of leaves that conflict pairwise, a *clique* K, a point of use
lies in one at most:

.. math::

    \sum_{l \in K} y_l \le 1.

That is the whole proof of a cut, and `conflicts` says which pairs conflict.

Separation: between two trees s and t, where the y of each sum to 1, the most violated cut is
:math:`y(A) \le y(N(A))` for a set A of leaves of s, N(A) the leaves of t that do not conflict with all of A: the
minimum cut of the network in which A's leaves send their y to leaves of t that they do not conflict with. It says that
A and the leaves of t outside N(A) are a clique, to which leaves of other trees are added while all conflict: boxes that
meet pairwise have a point in common (Helly), so but for costs and votes leaves are incompatible by their pairs alone.

Only leaves of the LP's point are looked at, a few per tree, so all pairs of 100 trees take some milliseconds; cliques
of these have 5 leaves. To go on adding leaves of which the LP's point has nothing made them five times as long on
breast cancer, and raised the bound of the root by a thousandth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.solvers.box.bitsets import Bits, Words, add, has, in_both, level_count
from ocf.solvers.box.instance import Instance, cheapest_between
from ocf.support.loops import fill, least, total
from ocf.support.numba_cache import array_helper, array_kernel, helper

#: Smallest share of a leaf in the LP's point that counts.
_SOME = 1e-6

#: What is left of a leaf's y when all of it is sent.
_NOTHING = 1e-12

#: Where a search for a path has not come to.
_UNREACHED = -2


# -- who conflicts -----------------------------------------------------------------------------------------------


class _Prices(NamedTuple):
    """A leaf's ends and prices by feature, those of everything that is open where it restricts nothing.

    Attributes
    ----------
    low, high : (n_features,) int64
        First and last rank of ordered features.
    least : (n_features,) float64
        Of the cheapest open cell.
    price : (n_features,) float64
        Of the cheapest open cell within the leaf.
    """

    low: IntArray
    high: IntArray
    least: FloatArray
    price: FloatArray


@array_helper
def _all_open(instance: Instance) -> _Prices:
    """Ends and prices of the box of everything that is open."""
    n = len(instance.ordered)
    low, high, cheapest = np.zeros(n, np.int64), np.empty(n, np.int64), np.empty(n)
    for f in range(n):
        high[f] = instance.offsets[f + 1] - instance.offsets[f] - 1
        cheapest[f] = least(instance.cost[instance.offsets[f] : instance.offsets[f + 1]])
    return _Prices(low, high, cheapest, cheapest.copy())


@helper
def _price(instance: Instance, leaf: int, k: int, box: _Prices, other: int) -> float:
    """Cost of the cheapest cell that meets restriction k of a leaf, and the leaf `other` with its box; inf: none."""
    f = instance.feature[k]
    if instance.ordered[f]:
        a, b = max(box.low[f], instance.low[k]), min(box.high[f], instance.high[k])
        return instance.cost[cheapest_between(instance, f, a, b)] if a <= b else np.inf
    out = np.inf
    for j in range(instance.offsets[f], instance.offsets[f + 1]):
        if instance.member[leaf, j] and instance.member[other, j]:
            out = min(out, instance.cost[j])
    return out


@helper
def _enter(instance: Instance, leaf: int, box: _Prices) -> None:
    """Make the box of everything open that of a leaf."""
    for k in range(instance.start[leaf], instance.start[leaf + 1]):
        f = instance.feature[k]
        box.price[f] = _price(instance, leaf, k, box, leaf)
        if instance.ordered[f]:
            box.low[f], box.high[f] = instance.low[k], instance.high[k]


@helper
def _leave(instance: Instance, leaf: int, box: _Prices) -> None:
    """Make the box of a leaf that of everything open again."""
    for k in range(instance.start[leaf], instance.start[leaf + 1]):
        f = instance.feature[k]
        box.low[f], box.high[f] = 0, instance.offsets[f + 1] - instance.offsets[f] - 1
        box.price[f] = box.least[f]


@helper
def _mark_disjoint(instance: Instance, bits: Bits, leaf: int, scratch: Words, out: Words) -> None:
    """Add the leaves that share no open cell with a leaf on some feature."""
    for k in range(instance.start[leaf], instance.start[leaf + 1]):
        f = instance.feature[k]
        if instance.ordered[f] and instance.low[k] > instance.high[k]:  # nothing of it is open
            fill(scratch, np.uint64(0))
        elif instance.ordered[f]:
            low, high = instance.offsets[f] + instance.low[k], instance.offsets[f] + instance.high[k]
            in_both(bits.first[high], bits.last[low], scratch)
        else:
            level_count(instance, bits, instance.member[leaf], f, -1, scratch)
        for w in range(len(out)):
            out[w] |= ~scratch[w]


@helper
def _dear(instance: Instance, leaf: int, other: int, box: _Prices, alone: float, limit: float) -> bool:
    """Whether the cheapest point of the leaf `other`, with its box, and of a leaf costs the limit or more."""
    both = alone
    for k in range(instance.start[leaf], instance.start[leaf + 1]):
        both += _price(instance, leaf, k, box, other) - box.price[instance.feature[k]]
    return both >= limit


@array_kernel
def conflicts(instance: Instance, bits: Bits, limit: float) -> Words:
    """Pairs of leaves no point of use lies in both of, (n_live, n_words); those of one tree are among them.

    Parameters
    ----------
    instance : Instance
    bits : Bits
        Of the instance; they number the leaves.
    limit : float
        Cost from which on a point is of no use; inf: only leaves that share no point conflict.
    """
    n, trees, box = len(bits.leaf), instance.trees, _all_open(instance)
    out, scratch = np.zeros((n, (n + 63) // 64), np.uint64), np.empty((n + 63) // 64, np.uint64)
    base, alone = total(box.least), np.empty(n)
    for a in range(n):
        _enter(instance, bits.leaf[a], box)
        alone[a] = total(box.price)
        _leave(instance, bits.leaf[a], box)
    for tree in range(len(trees) - 1):
        for a in range(trees[tree], trees[tree + 1]):
            for b in range(trees[tree], trees[tree + 1]):
                if a != b:
                    add(out[a], b)
            _mark_disjoint(instance, bits, bits.leaf[a], scratch, out[a])
            _enter(instance, bits.leaf[a], box)
            for b in range(trees[tree + 1], n):
                # where costs only rise from the cheapest cell, a point of both costs no more than the two apart
                may = alone[a] + alone[b] - base >= limit and not has(out[a], b)
                if may and _dear(instance, bits.leaf[b], bits.leaf[a], box, alone[a], limit):
                    add(out[a], b)
                    add(out[b], a)
            _leave(instance, bits.leaf[a], box)
    return out


# -- what the LP's point violates ----------------------------------------------------------------------------------


class _Network(NamedTuple):
    """What leaves of one tree send to leaves of another that they do not conflict with; places count from 0 in each.

    Attributes
    ----------
    meets : (n, n) bool
        Whether two leaves do not conflict.
    flow : (n, n) float64
    supply, demand : (n,) float64
        What is left of the leaves' y.
    source : (n,) int64
        Of a leaf of the first tree: the leaf of the second that the search came from, -1 at its start, _UNREACHED.
    via : (n,) int64
        Of a leaf of the second tree: the leaf of the first that the search came from, -1 unreached.
    queue : (n,) int64
    """

    meets: BoolArray
    flow: FloatArray
    supply: FloatArray
    demand: FloatArray
    source: IntArray
    via: IntArray
    queue: IntArray


@helper
def _connect(table: Words, y: FloatArray, first: IntArray, second: IntArray, net: _Network) -> bool:
    """Set the network of leaves of two trees up, with what can be sent greedily; whether any of them conflict."""
    among = False
    for i in range(len(first)):
        net.supply[i] = y[first[i]]
    for j in range(len(second)):
        net.demand[j] = y[second[j]]
    for i in range(len(first)):
        for j in range(len(second)):
            net.meets[i, j] = not has(table[first[i]], second[j])
            among = among or not net.meets[i, j]
            sent = min(net.supply[i], net.demand[j]) if net.meets[i, j] else 0.0
            net.flow[i, j] = sent
            net.supply[i] -= sent
            net.demand[j] -= sent
    return among


@helper
def _search(net: _Network, n: int, m: int) -> int:
    """Search for a leaf of the second tree that can take more; -1 where there is none: what was reached is the cut."""
    size = 0
    fill(net.via, -1)
    for i in range(n):
        net.source[i] = _UNREACHED
        if net.supply[i] > _NOTHING:
            net.source[i], net.queue[size] = -1, i
            size += 1
    done = 0
    while done < size:
        i = net.queue[done]
        done += 1
        for j in range(m):
            if not net.meets[i, j] or net.via[j] >= 0:
                continue
            net.via[j] = i
            if net.demand[j] > _NOTHING:
                return j
            for k in range(n):
                if net.source[k] == _UNREACHED and net.flow[k, j] > _NOTHING:
                    net.source[k], net.queue[size] = j, k
                    size += 1
    return -1


@helper
def _send(net: _Network, end: int) -> None:
    """Send what the path that a search found can take."""
    amount, j = net.demand[end], end
    while net.source[net.via[j]] >= 0:
        i = net.via[j]
        j = net.source[i]
        amount = min(amount, net.flow[i, j])
    amount = min(amount, net.supply[net.via[j]])
    net.supply[net.via[j]] -= amount
    net.demand[end] -= amount
    j = end
    while True:
        i = net.via[j]
        net.flow[i, j] += amount
        j = net.source[i]
        if j < 0:
            return
        net.flow[i, j] -= amount


@helper
def _violation(net: _Network, n: int, m: int, least: float) -> float:
    """By how much the minimum cut of a network is violated; 0 where that is less than `least`."""
    while True:
        left = total(net.supply[:n])
        if left < least:
            return 0.0
        end = _search(net, n, m)
        if end < 0:
            return left
        _send(net, end)


@helper
def _seed(table: Words, y: FloatArray, first: IntArray, second: IntArray, net: _Network, clique: Words) -> None:
    """Write the clique of the most violated cut between two trees."""
    _connect(table, y, first, second, net)
    _violation(net, len(first), len(second), 0.0)
    fill(clique, np.uint64(0))
    for i in range(len(first)):
        if net.source[i] != _UNREACHED:
            add(clique, first[i])
    for j in range(len(second)):
        if net.via[j] < 0:
            add(clique, second[j])


@helper
def _lift(table: Words, leaves: IntArray, clique: Words, common: Words) -> None:
    """Add leaves to a clique, in their order, as long as all conflict; `common` is overwritten."""
    fill(common, ~np.uint64(0))
    for leaf in leaves:
        if has(clique, leaf):
            in_both(common, table[leaf], common)
    for leaf in leaves:
        if has(common, leaf):
            add(clique, leaf)
            in_both(common, table[leaf], common)


@helper
def _is_new(clique: Words, others: Words, n: int) -> bool:
    """Whether none of the first n sets is the same."""
    for k in range(n):
        same = True
        for w in range(len(clique)):
            same = same and clique[w] == others[k, w]
        if same:
            return False
    return True


@array_helper
def _new_network(n: int) -> _Network:
    """Space for trees of up to n leaves."""
    meets, flow = np.zeros((n, n), np.bool_), np.zeros((n, n))
    return _Network(
        meets, flow, np.zeros(n), np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    )


@array_helper
def _support(trees: IntArray, y: FloatArray) -> tuple[IntArray, IntArray, int]:
    """Leaves of the LP's point, where those of each tree begin, and how many one has at most."""
    leaves, ends, most = np.empty(len(y), np.int64), np.zeros(len(trees), np.int64), 1
    for tree in range(len(trees) - 1):
        ends[tree + 1] = ends[tree]
        for leaf in range(trees[tree], trees[tree + 1]):
            if y[leaf] > _SOME:
                leaves[ends[tree + 1]] = leaf
                ends[tree + 1] += 1
        most = max(most, ends[tree + 1] - ends[tree])
    return leaves[: ends[-1]], ends, most


@array_kernel
def violated(trees: IntArray, table: Words, y: FloatArray, gap: float, most: int) -> Words:
    """Cliques that a point of the LP violates, (n, n_words), those of the most violated pairs of trees first.

    Parameters
    ----------
    trees : (n_trees + 1,) int64
        Leaves of tree t are ``trees[t]:trees[t + 1]``, by the numbers of the table.
    table : (n_live, n_words) uint64
        Of `conflicts`.
    y : (n_live,) float64
        The LP's point; that of each tree sums to 1.
    gap : float
        Least violation between two trees that is of use.
    most : int
        Most cliques.
    """
    leaves, ends, wide = _support(trees, y)
    net, n_trees, n = _new_network(wide), len(trees) - 1, 0
    gaps = np.zeros(n_trees * n_trees)
    for s in range(n_trees):
        first = leaves[ends[s] : ends[s + 1]]
        for t in range(s + 1, n_trees):
            second = leaves[ends[t] : ends[t + 1]]
            if _connect(table, y, first, second, net):
                gaps[s * n_trees + t] = _violation(net, len(first), len(second), gap)
    heavy = leaves[np.argsort(-y[leaves])]
    out, common = np.zeros((most, table.shape[1]), np.uint64), np.empty(table.shape[1], np.uint64)
    for pair in np.argsort(-gaps):
        if n == most or gaps[pair] == 0.0:
            break
        s, t = pair // n_trees, pair % n_trees
        _seed(table, y, leaves[ends[s] : ends[s + 1]], leaves[ends[t] : ends[t + 1]], net, out[n])
        _lift(table, heavy, out[n], common)
        n += _is_new(out[n], out, n)
    return out[:n]

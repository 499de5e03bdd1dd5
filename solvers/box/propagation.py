r"""Shrinking a box: leaves die, sides move in, and a lower bound on the cost of whatever is left.

Rules, repeated until nothing changes, for a limit from which on a cost is of no use:

* *cost*: a leaf dies when the cheapest point of its part of the box costs the limit or more (the paper removes leaves
  farther than the upper bound once, before its search: section VII.F; here at every node, and for the box too);
* *target*: a leaf dies when with it the sum over trees of the best live leaf misses a requirement (the paper's
  algorithm 5, line 18, only asks whether *some* leaf votes for the target);
* *hull*: the box shrinks to what the live leaves of every single tree cover;
* *multipliers*: a leaf dies, a side moves in, when the Lagrangian bound with it reaches the limit.

The Lagrangian bound relaxes the rows that link leaves to cells and to the target, with any multipliers of the
right sign; what remains falls apart into trees and features:

.. math::

    L = k + \sum_t \min_{l \in t\ live} w_l + \sum_i \min_{j \in box_i} v_{ij}.

With the multipliers of an optimal LP basis it equals the LP bound, and since one leaf is chosen anew per tree and one
cell per feature it stays strong in the boxes below.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.reduction import drop_useless_leaves
from ocf.cells.score_sum import has_terms, least_total, term_value
from ocf.solvers.box.instance import Domain, Instance, cheapest_between, cheapest_open, least_of
from ocf.support.loops import fill
from ocf.support.numba_cache import helper, kernel

#: Rounds of propagation at a node: until nothing changes.
MOST_ROUNDS = 1000


class Multipliers(NamedTuple):
    """The Lagrangian bound of one choice of multipliers.

    Attributes
    ----------
    constant : float
        ``k``, less all rounding that evaluating the bound may meet.
    leaf : (n_live,) float64
        ``w``.
    cell : (n_open,) float64
        ``v``.
    """

    constant: float
    leaf: FloatArray
    cell: FloatArray


class Workspace(NamedTuple):
    """Scratch arrays, so that nothing is allocated at a node.

    Attributes
    ----------
    least : (n_features,) float64
    best : (n_trees,) float64
    cheapest, leaves, low, high, touched : (n_features,) int64
    covered : (n_open,) bool
    """

    least: FloatArray
    best: FloatArray
    cheapest: IntArray
    leaves: IntArray
    low: IntArray
    high: IntArray
    touched: IntArray
    covered: BoolArray


def new_workspace(instance: Instance) -> Workspace:
    """Workspace of the sizes that an instance needs."""
    n_features = len(instance.ordered)
    return Workspace(
        np.empty(n_features),
        np.empty(len(instance.trees) - 1),
        np.empty(n_features, np.int64),
        np.zeros(n_features, np.int64),
        np.empty(n_features, np.int64),
        np.empty(n_features, np.int64),
        np.empty(n_features, np.int64),
        np.empty(len(instance.cell), np.bool_),
    )


@kernel
def propagate(
    instance: Instance, domain: Domain, multipliers: Multipliers, limit: float, work: Workspace, rounds: int
) -> float:
    """Apply all rules until nothing changes, or for a number of rounds: the first ones do most of the work.

    Parameters
    ----------
    instance : Instance
    domain : Domain
        Overwritten.
    multipliers : Multipliers
    limit : float
        Cost from which on a point is of no use.
    work : Workspace
        Overwritten.
    rounds : int

    Returns
    -------
    float
        No point of the box is cheaper; inf when none is of use.
    """
    bound = -np.inf
    for _ in range(rounds):
        bound = max(bound, _combinatorial(instance, domain, limit, work, rounds))
        if bound == np.inf:
            return np.inf
        lagrangian = relaxed_bound(instance, domain, multipliers, work)
        if lagrangian >= limit:
            return np.inf
        bound = max(bound, lagrangian)
        if not _filter_by_multipliers(instance, domain, multipliers, limit - lagrangian, work):
            break
    return bound


@helper
def _combinatorial(instance: Instance, domain: Domain, limit: float, work: Workspace, rounds: int) -> float:
    """Apply the rules of cost, target and hull until nothing changes, or for a number of rounds."""
    bound = -np.inf
    for _ in range(rounds):
        base = _least_costs(instance, domain, work)
        if base >= limit:
            return np.inf
        bound = _price_leaves(instance, domain, base, limit, work)
        if bound >= limit or not drop_useless_leaves(
            instance.trees, instance.gain, instance.need, domain.live, work.best
        ):
            return np.inf
        if has_terms(instance.sums) and not _drop_by_sum(instance, domain.live, work.best):
            return np.inf
        moved = _drop_dear_cells(instance, domain, instance.cost, limit - base, work.least)
        if not _shrink_to_hull(instance, domain, work) and not moved:
            break
    return bound


@helper
def _best_total(instance: Instance, live: BoolArray, r: int, best: FloatArray) -> float:
    """Sum over trees of the best live leaf's gain in requirement r; each tree must have one."""
    total = 0.0
    for tree in range(len(best)):
        best[tree] = -np.inf
        for leaf in range(instance.trees[tree], instance.trees[tree + 1]):
            if live[leaf]:
                best[tree] = max(best[tree], instance.gain[leaf, r])
        total += best[tree]
    return total


@helper
def _drop_by_sum(instance: Instance, live: BoolArray, best: FloatArray) -> bool:
    """Kill leaves with which the sum of the functions of scores misses its need; False when all leaves do."""
    sums, value = instance.sums, 0.0
    for r in range(len(instance.need)):
        if sums.term[r] >= 0:
            value += term_value(sums, sums.term[r], _best_total(instance, live, r, best))
    if value < sums.need[0]:
        return False
    for r in range(len(instance.need)):
        k = sums.term[r]
        if k < 0:
            continue
        total = _best_total(instance, live, r, best)
        least = least_total(sums, k, sums.need[0] - value + term_value(sums, k, total))
        spare = max(total - least, 0.0) + 1e-12 * (1.0 + abs(total))
        for tree in range(len(best)):
            for leaf in range(instance.trees[tree], instance.trees[tree + 1]):
                if best[tree] - instance.gain[leaf, r] > spare:
                    live[leaf] = False
    return True


@helper
def _least_costs(instance: Instance, domain: Domain, work: Workspace) -> float:
    """Cheapest cell of each feature in the box; returns the sum of their costs, inf when a feature has none."""
    total = 0.0
    for f in range(len(work.least)):
        j = cheapest_open(instance, domain, f)
        if j < 0:
            return np.inf
        work.least[f] = instance.cost[j]
        work.cheapest[f] = j
        total += work.least[f]
    return total


@helper
def _restricted(instance: Instance, domain: Domain, leaf: int, k: int) -> float:
    """Cost of the cheapest cell of the box that meets restriction k of a leaf; inf where there is none."""
    f = instance.feature[k]
    if instance.ordered[f]:
        low, high = max(instance.low[k], domain.lo[f]), min(instance.high[k], domain.hi[f])
        return instance.cost[cheapest_between(instance, f, low, high)] if low <= high else np.inf
    best = np.inf
    for j in range(instance.offsets[f], instance.offsets[f + 1]):
        if domain.level[j] and instance.member[leaf, j]:
            best = min(best, instance.cost[j])
    return best


@helper
def _price_leaves(instance: Instance, domain: Domain, base: float, limit: float, work: Workspace) -> float:
    """Rule of cost. Returns the largest over trees of the cheapest live leaf's cost, inf when a tree has none."""
    bound = base
    for tree in range(len(instance.trees) - 1):
        cheapest = np.inf
        for leaf in range(instance.trees[tree], instance.trees[tree + 1]):
            if not domain.live[leaf]:
                continue
            price = base
            for k in range(instance.start[leaf], instance.start[leaf + 1]):
                f = instance.feature[k]
                rank = work.cheapest[f] - instance.offsets[f]
                # most leaves admit the cheapest cell: nothing to look up
                if instance.ordered[f] and instance.low[k] <= rank <= instance.high[k]:
                    continue
                price += _restricted(instance, domain, leaf, k) - work.least[f]
                if price >= limit:
                    break
            if price >= limit or price == np.inf:
                domain.live[leaf] = False
            else:
                cheapest = min(cheapest, price)
        bound = max(bound, cheapest)
    return bound


@helper
def _drop_dear_cells(instance: Instance, domain: Domain, price: FloatArray, spare: float, least: FloatArray) -> bool:
    """Take off the ends of the box whose price by itself exceeds the feature's least one too far; whether any moved.

    The cheapest cell itself never costs too much, so something is left.
    """
    moved = False
    for f in range(len(least)):
        offset = instance.offsets[f]
        if instance.ordered[f]:
            while price[offset + domain.lo[f]] - least[f] >= spare:
                domain.lo[f] += 1
                moved = True
            while price[offset + domain.hi[f]] - least[f] >= spare:
                domain.hi[f] -= 1
                moved = True
        else:
            for j in range(offset, instance.offsets[f + 1]):
                if domain.level[j] and price[j] - least[f] >= spare:
                    domain.level[j] = False
                    moved = True
    return moved


@helper
def _shrink_to_hull(instance: Instance, domain: Domain, work: Workspace) -> bool:
    """Rule of the hull; whether the box shrank."""
    shrank = False
    for tree in range(len(instance.trees) - 1):
        n_live = n_touched = 0
        for leaf in range(instance.trees[tree], instance.trees[tree + 1]):
            if not domain.live[leaf]:
                continue
            n_live += 1
            for k in range(instance.start[leaf], instance.start[leaf + 1]):
                f = instance.feature[k]
                if work.leaves[f] == 0 and n_live > 1:
                    continue  # a leaf before this one admits the whole feature: nothing to learn
                if work.leaves[f] == 0:
                    work.touched[n_touched] = f
                    n_touched += 1
                _cover(instance, leaf, k, work)
        for m in range(n_touched):
            f = work.touched[m]
            if work.leaves[f] == n_live and _narrow(instance, domain, work, f):
                shrank = True
            work.leaves[f] = 0
    return shrank


@helper
def _cover(instance: Instance, leaf: int, k: int, work: Workspace) -> None:
    """Add what restriction k of a leaf admits to what its tree covers on the feature."""
    f = instance.feature[k]
    first = work.leaves[f] == 0
    work.leaves[f] += 1
    if instance.ordered[f]:
        work.low[f] = instance.low[k] if first else min(work.low[f], instance.low[k])
        work.high[f] = instance.high[k] if first else max(work.high[f], instance.high[k])
        return
    if first:
        fill(work.covered[instance.offsets[f] : instance.offsets[f + 1]], False)
    for j in range(instance.offsets[f], instance.offsets[f + 1]):
        if instance.member[leaf, j]:
            work.covered[j] = True


@helper
def _narrow(instance: Instance, domain: Domain, work: Workspace, f: int) -> bool:
    """Intersect the box with what one tree covers on feature f; whether it shrank."""
    shrank = False
    if instance.ordered[f]:
        if work.low[f] > domain.lo[f]:
            domain.lo[f] = work.low[f]
            shrank = True
        if work.high[f] < domain.hi[f]:
            domain.hi[f] = work.high[f]
            shrank = True
        return shrank
    for j in range(instance.offsets[f], instance.offsets[f + 1]):
        if domain.level[j] and not work.covered[j]:
            domain.level[j] = False
            shrank = True
    return shrank


@kernel
def relaxed_bound(instance: Instance, domain: Domain, multipliers: Multipliers, work: Workspace) -> float:
    """Lagrangian bound of a box. Writes the minimum of each tree to `work.best`, of each feature to `work.least`.

    Parameters
    ----------
    instance : Instance
    domain : Domain
    multipliers : Multipliers
    work : Workspace
        Overwritten.
    """
    total = multipliers.constant
    for tree in range(len(work.best)):
        best = np.inf
        for leaf in range(instance.trees[tree], instance.trees[tree + 1]):
            if domain.live[leaf]:
                best = min(best, multipliers.leaf[leaf])
        work.best[tree] = best
        total += best
    for f in range(len(work.least)):
        work.least[f] = least_of(instance, domain.lo, domain.hi, domain.level, f, multipliers.cell)
        total += work.least[f]
    return total


@helper
def _filter_by_multipliers(
    instance: Instance, domain: Domain, multipliers: Multipliers, spare: float, work: Workspace
) -> bool:
    """Rule of the multipliers, after `relaxed_bound`; whether anything changed. The minima themselves stay."""
    changed = False
    for tree in range(len(work.best)):
        for leaf in range(instance.trees[tree], instance.trees[tree + 1]):
            if domain.live[leaf] and multipliers.leaf[leaf] - work.best[tree] >= spare:
                domain.live[leaf] = False
                changed = True
    return _drop_dear_cells(instance, domain, multipliers.cell, spare, work.least) or changed

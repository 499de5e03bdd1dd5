"""Branching: split the box on one feature, at the cut whose two halves have the best bounds.

A few candidates are tried out (strong branching) by propagation and the Lagrangian bound alone, which costs a
fraction of an LP. Ordered features are split between two ranks, unordered ones into one level and the others.
"""

from __future__ import annotations

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.solvers.box.instance import Domain, Instance, assign, cheapest_open
from ocf.solvers.box.propagation import Multipliers, Workspace, propagate
from ocf.support.loops import count, fill
from ocf.support.numba_cache import array_kernel, helper, kernel

#: Most cuts that are tried out at a node.
CANDIDATES = 12

#: Rounds of propagation in each half.
ROUNDS = 1


def candidate_cuts(instance: Instance, domain: Domain, share: FloatArray, most: int) -> tuple[IntArray, IntArray]:
    """Features and indices of cells at which to split: the most fractional, one per feature; else beside the cheapest.

    A split at cell j of an ordered feature separates what lies before it from the cell and what lies beyond.

    Parameters
    ----------
    instance : Instance
    domain : Domain
    share : (n_open,) float64
        See `ocf.solvers.box.relaxation`.
    most : int
        Most cuts.
    """
    cut, score = _best_cuts(instance, domain, share)
    order = np.argsort(-score, kind="stable")
    chosen = order[cut[order] >= 0][:most]
    return chosen, cut[chosen]


@array_kernel
def _best_cuts(instance: Instance, domain: Domain, share: FloatArray) -> tuple[IntArray, FloatArray]:
    """Best cut of each feature, -1 where it has none, and how fractional it is."""
    n_features = len(instance.ordered)
    cut, score = np.full(n_features, -1, np.int64), np.zeros(n_features)
    for f in range(n_features):
        offset = instance.offsets[f]
        first, last = offset, instance.offsets[f + 1] - 1
        if instance.ordered[f]:
            first, last = offset + domain.lo[f] + 1, offset + domain.hi[f]
        elif count(domain.level[first : last + 1]) < 2:
            continue
        for j in range(first, last + 1):
            if instance.ordered[f] or domain.level[j]:
                distance = min(share[j], 1.0 - share[j])
                if distance > 1e-6 and distance > score[f]:
                    score[f], cut[f] = distance, j
    if cut.max() < 0:
        for f in range(n_features):
            cut[f] = _beside_cheapest(instance, domain, f)
            score[f] = 1.0
    return cut, score


@helper
def _beside_cheapest(instance: Instance, domain: Domain, f: int) -> int:
    """Cut that separates the cheapest cell from the cells after it or, at the end, before it; -1 for a single cell."""
    j = cheapest_open(instance, domain, f)
    offset = instance.offsets[f]
    if not instance.ordered[f]:
        return j if count(domain.level[offset : instance.offsets[f + 1]]) > 1 else -1
    if domain.lo[f] == domain.hi[f]:
        return -1
    return j + 1 if j < offset + domain.hi[f] else j


@kernel
def restrict(instance: Instance, domain: Domain, f: int, j: int, beyond: bool) -> None:
    """One half of a box: cell j and beyond, or what lies before; of an unordered feature level j, or the others.

    Parameters
    ----------
    instance : Instance
    domain : Domain
        Overwritten.
    f, j : int
        Feature, and cell as an index of all open cells.
    beyond : bool
        Which half.
    """
    rank = j - instance.offsets[f]
    if instance.ordered[f]:
        if beyond:
            domain.lo[f] = max(domain.lo[f], rank)
        else:
            domain.hi[f] = min(domain.hi[f], rank - 1)
    elif beyond:
        fill(domain.level[instance.offsets[f] : instance.offsets[f + 1]], False)
        domain.level[j] = True
    else:
        domain.level[j] = False


@array_kernel
def try_cuts(
    instance: Instance,
    domain: Domain,
    multipliers: Multipliers,
    bound: float,
    limit: float,
    features: IntArray,
    cuts: IntArray,
    scratch: Domain,
    work: Workspace,
    rounds: int,
) -> tuple[int, float, float]:
    """Bounds of both halves at each cut.

    Parameters
    ----------
    instance : Instance
    domain : Domain
    multipliers : Multipliers
    bound : float
        Of the box.
    limit : float
        Cost from which on a point is of no use.
    features, cuts : (n,) int64
        Of `candidate_cuts`.
    scratch : Domain
        Overwritten.
    work : Workspace
        Overwritten.
    rounds : int
        Of propagation in each half.

    Returns
    -------
    (best, before, beyond) : (int, float, float)
        Number of the best cut and the bounds of its halves; inf where a half is empty. A cut with an empty half is
        returned at once: it shrinks the box for free.
    """
    best, best_score, best_before, best_beyond = -1, -1.0, bound, bound
    room = limit - bound if limit < np.inf else 1.0 + abs(bound)
    n_live = count(domain.live)
    gains, bounds = np.empty(2), np.empty(2)
    for m in range(len(features)):
        for side in range(2):
            assign(scratch, domain)
            restrict(instance, scratch, features[m], cuts[m], side == 1)
            bounds[side] = max(bound, propagate(instance, scratch, multipliers, limit, work, rounds))
            if bounds[side] == np.inf:
                gains[side] = room
                continue
            # leaves that die break ties of the bounds
            gains[side] = bounds[side] - bound + 1e-3 * room * (1.0 - count(scratch.live) / n_live)
        if bounds[0] == np.inf or bounds[1] == np.inf:
            return m, bounds[0], bounds[1]
        score = max(gains[0], 1e-6 * room) * max(gains[1], 1e-6 * room)
        if score > best_score:
            best, best_score, best_before, best_beyond = m, score, bounds[0], bounds[1]
    return best, best_before, best_beyond

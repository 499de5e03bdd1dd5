"""Branching: split the box on one feature, at the cut whose two halves have the best bounds.

Many candidates are tried out (strong branching) by propagation and the Lagrangian bound alone, which costs a
fraction of an LP: several cuts of each feature, and the best of them more closely. Ordered features are split between
two ranks, unordered ones into one level and the others.
"""

from __future__ import annotations

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.solvers.box.instance import Domain, Instance, assign, cheapest_open
from ocf.solvers.box.propagation import MOST_ROUNDS, Multipliers, Workspace, propagate
from ocf.support.loops import count, fill
from ocf.support.numba_cache import array_kernel, helper, kernel

#: Shares beside which the cuts of a feature are looked for.
SHARES = (0.5, 0.3, 0.7)

#: Shares that differ by less are one. The LP's point lies at few cells of a feature, so that many cuts in a row have
#: the same share, and halves at the middle one of those are the best: ten rows of breast cancer and spambase, 100 x 5,
#: take 369 LPs with it, 1,677 where a solver's rounding picks one, 4,858 with the first, more than that with the last,
#: 432 and 478 at two and three fifths of the way.
_SAME = 1e-7

#: Most cuts that are tried out at a node, by one round of propagation in each half, and how many of them closely.
CANDIDATES, FINALISTS = 90, 6

#: Rounds of propagation in each half of those.
ROUNDS = 3


def candidate_cuts(instance: Instance, domain: Domain, share: FloatArray, most: int) -> tuple[IntArray, IntArray]:
    """Features and indices of cells at which to split: the most fractional of each feature; else beside the cheapest.

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
    feature, cut, score = _best_cuts(instance, domain, share)
    chosen = np.argsort(-score, kind="stable")[:most]
    return feature[chosen], cut[chosen]


@array_kernel
def _best_cuts(instance: Instance, domain: Domain, share: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """The best cuts of the features, and how fractional each is."""
    n_features = len(instance.ordered)
    feature, cut = np.empty(n_features * len(SHARES), np.int64), np.empty(n_features * len(SHARES), np.int64)
    score, n = np.zeros(n_features * len(SHARES)), 0
    for f in range(n_features):
        begin = n
        for aim in SHARES:
            j = _cut_near(instance, domain, share, f, aim)
            if j >= 0 and count(cut[begin:n] == j) == 0:
                feature[n], cut[n], score[n] = f, j, min(share[j], 1.0 - share[j])
                n += 1
    if n == 0:
        for f in range(n_features):
            j = _beside_cheapest(instance, domain, f)
            if j >= 0:
                feature[n], cut[n] = f, j
                n += 1
    return feature[:n], cut[:n], score[:n]


@helper
def _cut_near(instance: Instance, domain: Domain, share: FloatArray, f: int, aim: float) -> int:
    """Middle one of the fractional cuts of a feature whose share is nearest to one; -1 where it has none."""
    offset = instance.offsets[f]
    first, last = offset, instance.offsets[f + 1] - 1
    if instance.ordered[f]:
        first, last = offset + domain.lo[f] + 1, offset + domain.hi[f]
    elif count(domain.level[first : last + 1]) < 2:
        return -1
    best, least = -1, np.inf
    for j in range(first, last + 1):
        fractional = 1e-6 < share[j] < 1.0 - 1e-6 and (instance.ordered[f] or domain.level[j])
        if fractional and abs(share[j] - aim) < least:
            best, least = j, abs(share[j] - aim)
    if best < 0 or not instance.ordered[f]:
        return best
    begin = end = best
    while begin > first and abs(share[begin - 1] - share[best]) < _SAME:
        begin -= 1
    while end < last and abs(share[end + 1] - share[best]) < _SAME:
        end += 1
    return (begin + end) // 2


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
) -> tuple[float, int, float, float]:
    """Bounds of both halves at the best cut; the box shrinks to the other half of each cut that has an empty one.

    Parameters
    ----------
    instance : Instance
    domain : Domain
        Overwritten by what is left of it.
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

    Returns
    -------
    (bound, best, before, beyond) : (float, int, float, float)
        Of what is left of the box, inf when it is empty; number of the best cut, -1 when none is left; and the bounds
        of its halves.
    """
    n, score = len(features), np.full(len(features), -1.0)
    best, best_score, best_before, best_beyond = -1, -1.0, bound, bound
    for step in range(n + min(n, FINALISTS)):
        closely = step >= n
        m = int(np.argmax(score)) if closely else step
        bound, score[m], before, beyond = _tried(
            instance, domain, multipliers, bound, limit, features[m], cuts[m], scratch, work, ROUNDS if closely else 1
        )
        if bound == np.inf:
            return np.inf, -1, np.inf, np.inf
        if closely:
            if score[m] > best_score:
                best, best_score, best_before, best_beyond = m, score[m], before, beyond
            score[m] = -1.0
    if best >= 0 and not _splits(instance, domain, features[best], cuts[best]):
        best = -1
    return bound, best, max(best_before, bound), max(best_beyond, bound)


@helper
def _splits(instance: Instance, domain: Domain, f: int, j: int) -> bool:
    """Whether both halves at a cut hold some cell of the box."""
    offset = instance.offsets[f]
    if instance.ordered[f]:
        return bool(domain.lo[f] < j - offset <= domain.hi[f])
    return bool(domain.level[j] and count(domain.level[offset : instance.offsets[f + 1]]) > 1)


@helper
def _tried(
    instance: Instance,
    domain: Domain,
    multipliers: Multipliers,
    bound: float,
    limit: float,
    f: int,
    j: int,
    scratch: Domain,
    work: Workspace,
    rounds: int,
) -> tuple[float, float, float, float]:
    """Bound of what is left of the box, how good a cut of it is, -1 if it is none, and the bounds of its halves."""
    if not _splits(instance, domain, f, j):
        return bound, -1.0, bound, bound
    room = limit - bound if limit < np.inf else 1.0 + abs(bound)
    n_live = count(domain.live)
    score, before, beyond = 1.0, bound, bound
    for side in range(2):
        assign(scratch, domain)
        restrict(instance, scratch, f, j, side == 1)
        beyond = max(bound, propagate(instance, scratch, multipliers, limit, work, rounds))
        # leaves that die break ties of the bounds
        gain = beyond - bound + 1e-3 * room * (1.0 - count(scratch.live) / n_live)
        score *= max(gain, 1e-6 * room)
        if side == 0:
            before = beyond
    if before < np.inf and beyond < np.inf:
        return bound, score, before, beyond
    restrict(instance, domain, f, j, before == np.inf)
    bound = max(bound, propagate(instance, domain, multipliers, limit, work, MOST_ROUNDS))
    return bound if bound < limit else np.inf, -1.0, bound, bound

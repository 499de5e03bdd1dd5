"""What is left of a problem over cells, packed for the search: open cells and live leaves only, renumbered.

Nomenclature
------------
=====================  =============================================================================
symbol                 meaning, shape
=====================  =============================================================================
``rank``               number of an open cell among the open cells of its feature
``box``                a range of ranks per ordered feature, a set of ranks per unordered feature
``restriction``        what a leaf asks of one feature: a range or a set of ranks
=====================  =============================================================================

In the paper's words (Blanchart 2021, section V) a leaf is a box with a score vector; integer ranks in place of
thresholds keep floating-point numbers out of the geometry, and pre-sorting (section VII.D) comes for free.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.score_sum import ScoreSum, score_sum
from ocf.support.loops import copy_to
from ocf.support.numba_cache import helper, kernel


class Instance(NamedTuple):
    """Open cells and live leaves.

    Attributes
    ----------
    offsets : (n_features + 1,) int64
        Open cells of feature i are ``offsets[i]:offsets[i + 1]``.
    ordered : (n_features,) bool
    cell : (n_open,) int64
        Cell of the partition, counted within the feature.
    cost : (n_open,) float64
    table : (n_powers, n_open) int64
        ``table[p, j]`` is the cheapest of the ``2**p`` cells that start at j: range minima in two look-ups.
    trees : (n_trees + 1,) int64
        Live leaves of tree t are ``trees[t]:trees[t + 1]``.
    leaf : (n_live,) int64
        Leaf of the ensemble.
    gain : (n_live, n_rows) float64
    need : (n_rows,) float64
    start : (n_live + 1,) int64
        Restrictions of leaf l are ``start[l]:start[l + 1]``.
    feature, low, high : (n_restrictions,) int64
        Feature, first and last rank.
    member : (n_live, n_open) bool
        Whether a leaf admits a cell of an unordered feature; empty, (n_live, 0), when all are ordered.
    sums : ScoreSum
        What the rows hold from outside, where it is known better.
    """

    offsets: IntArray
    ordered: BoolArray
    cell: IntArray
    cost: FloatArray
    table: IntArray
    trees: IntArray
    leaf: IntArray
    gain: FloatArray
    need: FloatArray
    start: IntArray
    feature: IntArray
    low: IntArray
    high: IntArray
    member: BoolArray
    sums: ScoreSum


class Domain(NamedTuple):
    """A box and the leaves that may still hold a better point: what a node of the search is.

    Attributes
    ----------
    lo, hi : (n_features,) int64
        First and last rank of each ordered feature.
    level : (n_open,) bool
        Ranks of unordered features that are still open; the entries of ordered features mean nothing.
    live : (n_live,) bool
    """

    lo: IntArray
    hi: IntArray
    level: BoolArray
    live: BoolArray


def make_instance(cells: CellProblem) -> Instance:
    """Pack the open cells and live leaves of a problem. It must not be infeasible."""
    part = cells.partition
    cell = [np.flatnonzero(cells.open[part.cells_of(i)]) for i in range(part.n_features)]
    offsets = np.concatenate([[0], np.cumsum([len(c) for c in cell])]).astype(np.int64)
    flat = np.concatenate([part.offsets[i] + c for i, c in enumerate(cell)])
    leaf = np.flatnonzero(cells.live)
    low, high, member = _ranks(cells, cell, offsets, leaf)
    last = np.diff(offsets) - 1
    restricted = part.ordered & ((low > 0) | (high < last))
    for i in np.flatnonzero(~part.ordered):
        restricted[:, i] = ~member[:, offsets[i] : offsets[i + 1]].all(axis=1)
    at, feature = np.nonzero(restricted)
    return Instance(
        offsets,
        part.ordered,
        np.concatenate(cell).astype(np.int64),
        cells.cost[flat],
        range_minima(cells.cost[flat], int(np.diff(offsets).max())),
        np.searchsorted(leaf, part.ensemble.leaf_offsets).astype(np.int64),
        leaf.astype(np.int64),
        np.ascontiguousarray(cells.requirements.gain[leaf]),
        cells.requirements.need.astype(np.float64),
        np.searchsorted(at, np.arange(len(leaf) + 1)).astype(np.int64),
        feature.astype(np.int64),
        low[at, feature],
        high[at, feature],
        member,
        score_sum(cells.requirements),
    )


def _ranks(
    cells: CellProblem, cell: list[IntArray], offsets: IntArray, leaf: IntArray
) -> tuple[IntArray, IntArray, BoolArray]:
    """Ranges of ranks and member table of each leaf; an empty range has ``low > high``."""
    part = cells.partition
    low = np.zeros((len(leaf), part.n_features), np.int64)
    high = np.tile(np.diff(offsets) - 1, (len(leaf), 1))
    member = np.ones((len(leaf), 0 if part.ordered.all() else int(offsets[-1])), bool)
    for i in range(part.n_features):
        if part.ordered[i]:
            low[:, i] = np.searchsorted(cell[i], part.low[leaf, i])
            high[:, i] = np.searchsorted(cell[i], part.high[leaf, i], side="right") - 1
        else:
            member[:, offsets[i] : offsets[i + 1]] = part.members_of(i)[leaf][:, cell[i]]
    return low, high, member


def range_minima(cost: FloatArray, longest: int) -> IntArray:
    """Table of the cheapest of ``2**p`` neighbouring cells; see `Instance.table`.

    Parameters
    ----------
    cost : (n_open,) float64
    longest : int
        Most cells of a feature.
    """
    rows = [np.arange(len(cost))]
    half = 1
    while 2 * half <= longest:
        first = rows[-1]
        second = first[np.minimum(np.arange(len(cost)) + half, len(cost) - 1)]
        rows.append(np.where(cost[second] < cost[first], second, first))
        half *= 2
    return np.array(rows, np.int64)


def whole(instance: Instance) -> Domain:
    """The box of everything that is open."""
    width = np.diff(instance.offsets)
    return Domain(
        np.zeros(len(width), np.int64), width - 1, np.ones(len(instance.cell), bool), np.ones(len(instance.leaf), bool)
    )


def copied(domain: Domain) -> Domain:
    """Deep copy."""
    return Domain(domain.lo.copy(), domain.hi.copy(), domain.level.copy(), domain.live.copy())


@kernel
def assign(target: Domain, source: Domain) -> None:
    """Overwrite `target` with `source`.

    Parameters
    ----------
    target, source : Domain
    """
    copy_to(target.lo, source.lo)
    copy_to(target.hi, source.hi)
    copy_to(target.level, source.level)
    copy_to(target.live, source.live)


@helper
def cheapest_between(instance: Instance, f: int, low: int, high: int) -> int:
    """Cheapest open cell of an ordered feature between two ranks (``low <= high``), as an index of all open cells.

    Parameters
    ----------
    instance : Instance
    f : int
    low, high : int
        Ranks, both inclusive.
    """
    a, b = instance.offsets[f] + low, instance.offsets[f] + high
    p = 0
    while (2 << p) <= b - a + 1:
        p += 1
    first, second = instance.table[p, a], instance.table[p, b + 1 - (1 << p)]
    return second if instance.cost[second] < instance.cost[first] else first


@helper
def cheapest_open(instance: Instance, domain: Domain, f: int) -> int:
    """Cheapest cell of a feature in the box, as an index of all open cells; -1 where none is left.

    Parameters
    ----------
    instance : Instance
    domain : Domain
    f : int
    """
    if instance.ordered[f]:
        return cheapest_between(instance, f, domain.lo[f], domain.hi[f]) if domain.lo[f] <= domain.hi[f] else -1
    best = -1
    for j in range(instance.offsets[f], instance.offsets[f + 1]):
        if domain.level[j] and (best < 0 or instance.cost[j] < instance.cost[best]):
            best = j
    return best


@kernel
def count_changes(instance: Instance, domain: Domain) -> int:
    """How many features cost something wherever one stands in a box.

    Parameters
    ----------
    instance : Instance
    domain : Domain
    """
    count = 0
    for f in range(len(domain.lo)):
        j = cheapest_open(instance, domain, f)
        count += j >= 0 and instance.cost[j] > 0
    return count


@helper
def least_of(instance: Instance, lo: IntArray, hi: IntArray, level: BoolArray, f: int, number: FloatArray) -> float:
    """Least of the numbers of a feature's cells in a box; inf when it has none.

    Parameters
    ----------
    instance : Instance
    lo, hi : (n_features,) int64
        Ends of the box, ranks.
    level : (n_open,) bool
        Cells of unordered features in the box.
    f : int
    number : (n_open,) float64
    """
    least, offset = np.inf, instance.offsets[f]
    if instance.ordered[f]:
        for j in range(offset + lo[f], offset + hi[f] + 1):
            least = min(least, number[j])
    else:
        for j in range(offset, instance.offsets[f + 1]):
            if level[j]:
                least = min(least, number[j])
    return least


Packed = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8], NDArray[np.uint8]]


def pack(instance: Instance, domain: Domain) -> Packed:
    """A node's domain in a few hundred bytes, for the queue.

    Parameters
    ----------
    instance : Instance
    domain : Domain
    """
    level = domain.level if instance.member.shape[1] else domain.level[:0]
    return domain.lo.astype(np.int32), domain.hi.astype(np.int32), np.packbits(level), np.packbits(domain.live)


def unite(boxes: Iterable[Packed], domain: Domain) -> None:
    """Overwrite a domain with the smallest one around packed ones; empty when there are none.

    Parameters
    ----------
    boxes : iterable of Packed
    domain : Domain
        Overwritten.
    """
    live = np.zeros((len(domain.live) + 7) // 8, np.uint8)
    level = np.zeros((len(domain.level) + 7) // 8, np.uint8)
    domain.lo[:], domain.hi[:] = np.iinfo(np.int32).max, -1
    for packed in boxes:
        np.minimum(domain.lo, packed[0], out=domain.lo)
        np.maximum(domain.hi, packed[1], out=domain.hi)
        if len(packed[2]):
            level |= packed[2]
        live |= packed[3]
    domain.level[:] = np.unpackbits(level, count=len(domain.level))
    domain.live[:] = np.unpackbits(live, count=len(domain.live))


def unpack(packed: Packed, domain: Domain) -> None:
    """Overwrite a domain with a packed one.

    Parameters
    ----------
    packed : Packed
    domain : Domain
        Overwritten.
    """
    domain.lo[:], domain.hi[:] = packed[0], packed[1]
    if len(packed[2]):
        domain.level[:] = np.unpackbits(packed[2], count=len(domain.level))
    domain.live[:] = np.unpackbits(packed[3], count=len(domain.live))

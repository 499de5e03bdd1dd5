"""Sets of leaves as bits, and the stack of a dive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.solvers.box.instance import Domain, Instance
from ocf.support.loops import fill
from ocf.support.numba_cache import helper, kernel

Words = NDArray[np.uint64]

#: Boxes that a dive may leave open; it ends early when there are more.
STACK = 256

#: Position of the only bit of a word, by the top six bits of its product with `_DEBRUIJN`.
_DEBRUIJN = np.uint64(0x03F79D71B4CB0A89)

POSITION = np.zeros(64, np.int64)


class Bits(NamedTuple):
    """The leaves of an instance as bits.

    Attributes
    ----------
    leaf : (n_live,) int64
        Leaf of the instance at each bit; bits of a tree are sorted by falling gain of the first requirement.
    gain : (n_live, n_rows) float64
        Of the leaf at each bit.
    most : (n_trees, n_rows) float64
        Largest gain of each tree.
    first, last : (n_open, n_words) uint64
        Leaves that begin at a cell or before, and that end at it or beyond; of an unordered feature, both are the
        leaves that admit the level.
    unordered : (n,) int64
        Features that are not ordered.
    """

    leaf: IntArray
    gain: FloatArray
    most: FloatArray
    first: Words
    last: Words
    unordered: IntArray


class Stack(NamedTuple):
    """Open boxes of a dive; the entries above ``size[0]`` mean nothing.

    Attributes
    ----------
    size : (1,) int64
    lo, hi : (STACK + 1, n_features) int64
    level : (STACK + 1, n_open) bool
        Without columns when every feature is ordered.
    live : (STACK + 1, n_words) uint64
    bound : (STACK + 1,) float64
    """

    size: IntArray
    lo: IntArray
    hi: IntArray
    level: BoolArray
    live: Words
    bound: FloatArray


class Scratch(NamedTuple):
    """What a dive writes over and over.

    Attributes
    ----------
    side, open : (n_words,) uint64
        Leaves of the half of a box that is tried; leaves of an unordered feature's levels.
    best : (n_trees,) float64
        Gain of each tree's best live leaf.
    cheapest : (n_features,) int64
        Cheapest cell of the box, as an index of all open cells.
    least : (n_features,) float64
        What it costs.
    """

    side: Words
    open: Words
    best: FloatArray
    cheapest: IntArray
    least: FloatArray


@helper
def has(words: Words, k: int) -> bool:
    """Whether a set holds bit k.

    Parameters
    ----------
    words : (n_words,) uint64
    k : int
    """
    return (words[k >> 6] >> np.uint64(k & 63)) & np.uint64(1) != 0


@helper
def add(words: Words, k: int) -> None:
    """Put bit k into a set.

    Parameters
    ----------
    words : (n_words,) uint64
    k : int
    """
    words[k >> 6] |= np.uint64(1) << np.uint64(k & 63)


@helper
def drop(words: Words, k: int) -> None:
    """Take bit k out of a set.

    Parameters
    ----------
    words : (n_words,) uint64
    k : int
    """
    words[k >> 6] &= ~(np.uint64(1) << np.uint64(k & 63))


def make_bits(instance: Instance) -> Bits:
    """Bitsets of an instance."""
    tree = np.repeat(np.arange(len(instance.trees) - 1), np.diff(instance.trees))
    leaf = np.lexsort((-instance.gain[:, 0], tree))
    n_words = (len(leaf) + 63) // 64
    first = np.zeros((len(instance.cell), n_words), np.uint64)
    last = np.zeros_like(first)
    place = np.empty(len(leaf), np.int64)
    place[leaf] = np.arange(len(leaf))
    for f in range(len(instance.ordered)):
        span = slice(int(instance.offsets[f]), int(instance.offsets[f + 1]))
        width = span.stop - span.start
        if instance.ordered[f]:
            low, high = np.zeros(len(leaf), np.int64), np.full(len(leaf), width - 1)
            at = np.flatnonzero(instance.feature == f)
            owner = np.searchsorted(instance.start, at, side="right") - 1
            low[place[owner]], high[place[owner]] = instance.low[at], instance.high[at]
            ranks = np.arange(width)[:, None]
            first[span], last[span] = _packed(low <= ranks, n_words), _packed(high >= ranks, n_words)
        else:
            first[span] = _packed(instance.member[leaf, span].T, n_words)
            last[span] = first[span]
    gain = np.ascontiguousarray(instance.gain[leaf])
    most = np.maximum.reduceat(instance.gain, instance.trees[:-1])
    return Bits(leaf.astype(np.int64), gain, most, first, last, np.flatnonzero(~instance.ordered).astype(np.int64))


def _packed(flags: BoolArray, n_words: int) -> Words:
    """Rows of flags as rows of words, the first flag in the lowest bit."""
    padded = np.zeros((len(flags), 64 * n_words), bool)
    padded[:, : flags.shape[1]] = flags
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)


def exclusions(cells: CellProblem, choices: Sequence[IntArray]) -> IntArray:
    """Excluded sets of leaves as rows, (n, n_trees): a leaf of the ensemble for each tree, -1 where any will do.

    Parameters
    ----------
    cells : CellProblem
    choices : sequence of (n,) int64
        Leaves of the ensemble, at most one of each tree.
    """
    ensemble = cells.partition.ensemble
    out = np.full((len(choices), ensemble.n_trees), -1, np.int64)
    for row, choice in zip(out, choices, strict=True):
        row[ensemble.leaf_tree[choice]] = choice
    return out


def new_stack(instance: Instance, bits: Bits) -> Stack:
    """Empty stack.

    Parameters
    ----------
    instance : Instance
    bits : Bits
    """
    n_features, n = len(instance.ordered), STACK + 1
    return Stack(
        np.zeros(1, np.int64),
        np.zeros((n, n_features), np.int64),
        np.zeros((n, n_features), np.int64),
        np.zeros((n, len(instance.cell) if len(bits.unordered) else 0), bool),
        np.zeros((n, bits.first.shape[1]), np.uint64),
        np.zeros(n),
    )


def new_scratch(instance: Instance, bits: Bits) -> Scratch:
    """Scratch space.

    Parameters
    ----------
    instance : Instance
    bits : Bits
    """
    n_features, n_words = len(instance.ordered), bits.first.shape[1]
    return Scratch(
        np.zeros(n_words, np.uint64),
        np.zeros(n_words, np.uint64),
        np.zeros(len(instance.trees) - 1),
        np.zeros(n_features, np.int64),
        np.zeros(n_features),
    )


def push(stack: Stack, bits: Bits, domain: Domain, bound: float) -> None:
    """Put a box on a stack.

    Parameters
    ----------
    stack : Stack
    bits : Bits
    domain : Domain
        The box.
    bound : float
        No point of the box is cheaper.
    """
    k = int(stack.size[0])
    stack.lo[k], stack.hi[k], stack.bound[k] = domain.lo, domain.hi, bound
    if stack.level.shape[1]:
        stack.level[k] = domain.level
    stack.live[k] = _packed(domain.live[bits.leaf][None, :], stack.live.shape[1])[0]
    stack.size[0] = k + 1


def pop(stack: Stack, bits: Bits, domain: Domain) -> float:
    """Overwrite a domain with the box on top of a stack, which leaves it; returns its bound.

    Parameters
    ----------
    stack : Stack
        Not empty.
    bits : Bits
    domain : Domain
        Overwritten.
    """
    k = int(stack.size[0]) - 1
    stack.size[0] = k
    domain.lo[:], domain.hi[:] = stack.lo[k], stack.hi[k]
    if stack.level.shape[1]:
        domain.level[:] = stack.level[k]
    flags = np.unpackbits(stack.live[k].view(np.uint8), bitorder="little", count=len(bits.leaf))
    domain.live[bits.leaf] = flags.astype(bool)
    return float(stack.bound[k])


@kernel
def in_both(a: Words, b: Words, out: Words) -> None:
    """Write the intersection of two sets.

    Parameters
    ----------
    a, b : (n_words,) uint64
    out : (n_words,) uint64
        Overwritten; may be one of them.
    """
    for w in range(len(out)):
        out[w] = a[w] & b[w]


@helper
def level_count(instance: Instance, bits: Bits, level: BoolArray, f: int, skipped: int, out: Words) -> int:
    """Write the leaves that admit some open level of a feature but `skipped`; returns the cheapest one, -1: none.

    Parameters
    ----------
    instance : Instance
    bits : Bits
    level : (n_open,) bool
        Open levels.
    f : int
        An unordered feature.
    skipped : int
        Index of all open cells; -1 for none.
    out : (n_words,) uint64
        Overwritten.
    """
    best = -1
    fill(out, np.uint64(0))
    for j in range(instance.offsets[f], instance.offsets[f + 1]):
        if level[j] and j != skipped:
            for w in range(len(out)):
                out[w] |= bits.first[j, w]
            if best < 0 or instance.cost[j] < instance.cost[best]:
                best = j
    return best


@helper
def best_gains(trees: IntArray, bits: Bits, live: Words, r: int, best: FloatArray) -> float:
    """Sum over trees of the best live leaf's gain in requirement r; -inf when a tree has none left.

    Parameters
    ----------
    trees : (n_trees + 1,) int64
        Where the bits of each tree begin.
    bits : Bits
    live : (n_words,) uint64
    r : int
    best : (n_trees,) float64
        Overwritten: the gain of each tree's best live leaf.
    """
    total = 0.0
    for tree in range(len(trees) - 1):
        a, b = trees[tree], trees[tree + 1]
        top = -np.inf
        while a < b:
            word = live[a >> 6] >> np.uint64(a & 63)
            if b - a < 64 - (a & 63):
                word &= (np.uint64(1) << np.uint64(b - a)) - np.uint64(1)
            if word == 0:
                a += 64 - (a & 63)
                continue
            lowest = word & (~word + np.uint64(1))
            a += POSITION[np.int64((lowest * _DEBRUIJN) >> np.uint64(58))]
            if bits.gain[a, r] > top:
                top = bits.gain[a, r]
            if r == 0 or top == bits.most[tree, r]:  # none is better
                break
            a += 1
        if top == -np.inf:
            return -np.inf
        best[tree] = top
        total += top
    return total

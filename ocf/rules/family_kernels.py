"""Families of boxes: how much their boxes capture and how probable they are at most, for branch and bound.

A family says of each end of a box between which cuts it lies, and of each level whether the box has it. Its widest box
captures most, and its surest part, what all of its boxes hold, says which training rows are in a tree's cell whatever
box is taken. That bounds the share of wanted rows in the cell of each tree; see `bounded_share`.

Nomenclature
------------
=====================  ===============================================================================
``S``                  features of the rule; ``f`` counts them
``segment``            cells of an ordered feature between two cuts of splits that can be met; splits
                       send all of them the same way
``state``              a family: of an ordered feature ``low_from <= low <= low_to`` and ``high_from
                       <= high <= high_to``, first and last segment of the box; of an unordered one
                       for each level OUT, OPEN or SURE
``possible[t]``        rows that go with some box of the family, as far as is known: at every split
                       that all boxes meet and none straddles
``certain[t]``         rows that go with every box of the family: at every split that some box meets
                       without straddling it, on the side where it lies
``share[t]``           <= wanted possible rows / (these + unwanted certain rows)
=====================  ===============================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.support.numba_cache import helper, kernel

Words = NDArray[np.uint64]

OUT, OPEN, SURE = 0, 1, 2

#: Kinds of nodes that are no split on a feature of S: rows have to be left of it, right of it, or it is straddled.
LEFT_ONLY, RIGHT_ONLY, STRADDLED = -2, -3, -4

#: Share of the weight that a question's slab counts at least: questions that cost no weight are worth asking, too.
LEAST_SLAB = 0.02

#: What `expand` found: nothing in the family, families to go on with, or also a widest box that seems to be a rule.
CLOSED, SPLIT, RULE = 0, 1, 2


class Fields(NamedTuple):
    """The features of S as a state has them.

    Attributes
    ----------
    ordered : (n,) bool
    place : (n + 1,) int64
        Where the numbers of each feature begin in a state.
    size : (n,) int64
        Segments or levels.
    left : (n_sets, n_levels) bool
        Levels that go left at each split by sets of levels.
    """

    ordered: BoolArray
    place: IntArray
    size: IntArray
    left: BoolArray


class MetTrees(NamedTuple):
    """What the trees ask of a box on S, and the rows that can be in their cells.

    Attributes
    ----------
    node : (n_nodes, 4) int64
        Feature of S, or one of `LEFT_ONLY`, `RIGHT_ONLY`, `STRADDLED`; last segment on the left, or the number of the
        set; left and right child, -1 for none. Those of `LEFT_ONLY` and `RIGHT_ONLY` have the one that is met.
    mask : (n,) uint64
        Rows that go left at each node, as bits.
    place : (n_nodes,) int64
        Where the words of a node begin in `mask`.
    root : (n_trees,) int64
        -1 where nothing depends on the box.
    start : (n_trees + 1,) int64
        Where the words of a tree begin in `wanted` and `unwanted`.
    wanted, unwanted : (n_words,) uint64
    """

    node: IntArray
    mask: Words
    place: IntArray
    root: IntArray
    start: IntArray
    wanted: Words
    unwanted: Words


class Evidence(NamedTuple):
    """Rows of positive weight.

    Attributes
    ----------
    at : (n, n_features) int64
        Segment or level.
    weight : (n,) float64
    """

    at: IntArray
    weight: FloatArray


class FamilyScratch(NamedTuple):
    """What the kernels write over and over.

    Attributes
    ----------
    possible, certain : (n_words,) uint64
        Of the tree that is looked at.
    alive : (n_words,) int64
        Words of `possible` that are not 0.
    stack : (n_nodes + 1, 2) int64
        Nodes, and whether every box meets them.
    score : (n_features, 2, n_cuts) float64
        What a question promises: at 0 whether the low end lies right of a cut, or the box has a level; at 1 whether the
        high end lies left of a cut.
    ignored : (n_features, 2, n_cuts) float64
    slab : (n_features, n_segments) float64
        Weight that the widest box captures at each segment or level.
    widest : (n,) int64
        A state.
    children : (2, n) int64
        States without and with what was asked.
    weights : (3,) float64
        Of the widest box of the family and of the children.
    """

    possible: Words
    certain: Words
    alive: IntArray
    stack: IntArray
    score: FloatArray
    ignored: FloatArray
    slab: FloatArray
    widest: IntArray
    children: IntArray
    weights: FloatArray


# -- kernels -----------------------------------------------------------------------------------------------


@helper
def _ones(word: np.uint64) -> int:
    """Bits that are set in a word."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@helper
def _may_have(fields: Fields, state: IntArray, f: int, j: int) -> bool:
    """Whether some box of a family has a segment or level."""
    p = fields.place[f]
    return state[p] <= j <= state[p + 3] if fields.ordered[f] else state[p + j] != OUT


@helper
def _sides(fields: Fields, state: IntArray, f: int, cut: int) -> tuple[bool, bool, bool, bool]:
    """Whether some box has cells left and right of a split, and whether all have."""
    p = fields.place[f]
    if fields.ordered[f]:
        return state[p] <= cut, state[p + 3] > cut, state[p + 1] <= cut, state[p + 2] > cut
    left, right, surely_left, surely_right = False, False, False, False
    for j in range(fields.size[f]):
        if state[p + j] != OUT:
            if fields.left[cut, j]:
                left, surely_left = True, surely_left or state[p + j] == SURE
            else:
                right, surely_right = True, surely_right or state[p + j] == SURE
    return left, right, surely_left, surely_right


@helper
def _keep(trees: MetTrees, k: int, left: bool, sure: bool, n: int, scratch: FamilyScratch) -> tuple[int, int]:
    """Keep the rows on one side of a node: those that are certain, and, if sure, the possible ones.

    Gives the number of words that are left, and of certain rows that are not.
    """
    flip = np.uint64(0) if left else ~np.uint64(0)
    gone, kept = 0, 0
    for q in range(n):
        w = scratch.alive[q]
        word = trees.mask[trees.place[k] + w] ^ flip
        gone += _ones(scratch.certain[w] & ~word)
        scratch.certain[w] &= word
        if sure:
            scratch.possible[w] &= word
        if scratch.possible[w] != 0:
            scratch.alive[kept] = w
            kept += 1
    return kept, gone


@helper
def _promise(fields: Fields, state: IntArray, f: int, cut: int, left: bool, gain: float, score: FloatArray) -> None:
    """Note what it would help to know whether a box is open on one side of a split."""
    if fields.ordered[f]:
        score[f, 0 if left else 1, cut] += gain
        return
    for j in range(fields.size[f]):
        if fields.left[cut, j] == left and state[fields.place[f] + j] == OPEN:
            score[f, 0, j] += gain


@helper
def _at_node(
    fields: Fields,
    trees: MetTrees,
    state: IntArray,
    k: int,
    sure: bool,
    n: int,
    score: FloatArray,
    scratch: FamilyScratch,
) -> tuple[int, int, int]:
    """Look at a node that is met: words that are left, and how its children are met: 0 never, 1 perhaps, 2 surely."""
    f, cut, met = trees.node[k, 0], trees.node[k, 1], 2 if sure else 1
    if f == STRADDLED:
        return n, met, met
    if f in (LEFT_ONLY, RIGHT_ONLY):
        n, _ = _keep(trees, k, f == LEFT_ONLY, sure, n, scratch)
        return n, met if f == LEFT_ONLY else 0, met if f == RIGHT_ONLY else 0
    left, right, surely_left, surely_right = _sides(fields, state, f, cut)
    if not (left and right):
        n, _ = _keep(trees, k, left, sure, n, scratch)
        return n, met if left else 0, met if right else 0
    if not surely_right:  # a box may lie wholly on the left
        n, gone = _keep(trees, k, True, False, n, scratch)
        _promise(fields, state, f, cut, False, met * (gone + 0.5), score)
    if not surely_left:
        n, gone = _keep(trees, k, False, False, n, scratch)
        _promise(fields, state, f, cut, True, met * (gone + 0.5), score)
    return n, met if surely_left else 1, met if surely_right else 1


@helper
def bounded_share(
    fields: Fields, trees: MetTrees, state: IntArray, t: int, score: FloatArray, scratch: FamilyScratch
) -> float:
    """At most this share of the rows in the cell of a tree is wanted, whatever box of a family is taken.

    Where the family is one box, it is the share itself.

    Parameters
    ----------
    fields : Fields
    trees : MetTrees
    state : (n,) int64
        The family.
    t : int
        The tree.
    score, scratch
        See `FamilyScratch`.
    """
    start = trees.start[t]
    n, top = trees.start[t + 1] - start, 0
    for w in range(n):
        scratch.possible[w] = trees.wanted[start + w] | trees.unwanted[start + w]
        scratch.certain[w] = scratch.possible[w]
        scratch.alive[w] = w
    if trees.root[t] >= 0:
        scratch.stack[0, 0], scratch.stack[0, 1], top = trees.root[t], 1, 1
    while top > 0 and n > 0:
        top -= 1
        k, sure = scratch.stack[top, 0], scratch.stack[top, 1] == 1
        n, left, right = _at_node(fields, trees, state, k, sure, n, score, scratch)
        for side, met in ((2, left), (3, right)):
            if met > 0 and trees.node[k, side] >= 0:
                scratch.stack[top, 0], scratch.stack[top, 1] = trees.node[k, side], met - 1
                top += 1
    wanted, unwanted = 0, 0
    for q in range(n):
        w = scratch.alive[q]
        wanted += _ones(scratch.possible[w] & trees.wanted[start + w])
        unwanted += _ones(scratch.certain[w] & trees.unwanted[start + w])
    return wanted / (wanted + unwanted) if wanted > 0 else 0.0


@kernel
def most_share(
    fields: Fields,
    trees: MetTrees,
    state: IntArray,
    least: float,
    upper: FloatArray,
    score: FloatArray,
    scratch: FamilyScratch,
) -> float:
    """At most this is the sum of the trees' shares, whatever box of a family is taken.

    Parameters
    ----------
    fields : Fields
    trees : MetTrees
    state : (n,) int64
        The family.
    least : float
        Stop as soon as the sum is less.
    upper : (n_trees,) float64
        Upper bounds that are known; overwritten with those that are found.
    score, scratch
        See `FamilyScratch`.
    """
    total = upper.sum()
    for t in range(len(trees.root)):
        share = bounded_share(fields, trees, state, t, score, scratch)
        if share < upper[t]:
            total += share - upper[t]
            upper[t] = share
        if total < least:
            break
    return total


@helper
def _settle_ends(p: int, state: IntArray, slab: FloatArray, spare: float) -> None:
    """Move the inner ends of an ordered feature to where trimming the widest box would cost too much."""
    trimmed, j = slab[state[p]], state[p]
    while j < state[p + 1] and trimmed < spare:
        j += 1
        trimmed += slab[j]
    state[p + 1] = j
    trimmed, j = slab[state[p + 3]], state[p + 3]
    while j > state[p + 2] and trimmed < spare:
        j -= 1
        trimmed += slab[j]
    state[p + 2] = j


@helper
def settle(fields: Fields, evidence: Evidence, state: IntArray, above: float, slab: FloatArray) -> float:
    """What the widest box captures; ends and levels without which less than `above` is left become sure.

    Parameters
    ----------
    fields : Fields
    evidence : Evidence
    state : (n,) int64
        The family; overwritten.
    above : float
        Boxes that capture no more are of no use.
    slab : (n_features, n_segments) float64
        Overwritten; see `FamilyScratch`.
    """
    slab[:] = 0.0
    total = 0.0
    for r in range(len(evidence.weight)):
        inside = True
        for f in range(len(fields.size)):
            inside = inside and _may_have(fields, state, f, evidence.at[r, f])
        if inside:
            total += evidence.weight[r]
            for f in range(len(fields.size)):
                slab[f, evidence.at[r, f]] += evidence.weight[r]
    spare = total - above
    for f in range(len(fields.size)):
        p = fields.place[f]
        if fields.ordered[f]:
            _settle_ends(p, state, slab[f], spare)
            continue
        n_open = 0
        for j in range(fields.size[f]):
            n_open += state[p + j] != OUT
        for j in range(fields.size[f]):
            if state[p + j] == OPEN and (n_open == 1 or slab[f, j] >= spare):
                state[p + j] = SURE
    return total


@helper
def _overlap(fields: Fields, state: IntArray, box: IntArray, score: FloatArray) -> int:
    """Whether boxes of a family overlap another box: 0 none, 1 some, 2 all; a way out is worth asking for."""
    surely = True
    for f in range(len(fields.size)):
        p, some, every = fields.place[f], False, False
        if fields.ordered[f]:
            low, high = box[p], box[p + 3]
            some = state[p] <= high and state[p + 3] >= low
            every = state[p + 1] <= high and state[p + 2] >= low
        else:
            for j in range(fields.size[f]):
                if box[p + j] != OUT:
                    some = some or state[p + j] != OUT
                    every = every or state[p + j] == SURE
        if not some:
            return 0
        surely = surely and every
    if surely:
        return 2
    for f in range(len(fields.size)):
        p = fields.place[f]
        for j in range(fields.size[f]):
            if not fields.ordered[f] and box[p + j] != OUT:
                score[f, 0, j] += 1.0
        if fields.ordered[f]:
            score[f, 0, box[p + 3]] += 1.0
            if box[p] > 0:
                score[f, 1, box[p] - 1] += 1.0
    return 1


@helper
def _best_question(fields: Fields, state: IntArray, score: FloatArray, slab: FloatArray) -> tuple[int, int, int]:
    """Feature, side and cut, or level, of what to ask: promises much, and costs much weight if so; -1 for nothing."""
    best, f_best, side_best, j_best = 0.0, -1, 0, 0
    for f in range(len(fields.size)):
        p = fields.place[f]
        if not fields.ordered[f]:
            for j in range(fields.size[f]):
                value = score[f, 0, j] * (slab[f, j] + LEAST_SLAB)
                if state[p + j] == OPEN and value > best:
                    best, f_best, side_best, j_best = value, f, 0, j
            continue
        trimmed = 0.0
        for j in range(state[p], state[p + 1]):
            trimmed += slab[f, j]
            value = score[f, 0, j] * (trimmed + LEAST_SLAB)
            if value > best:
                best, f_best, side_best, j_best = value, f, 0, j
        trimmed = 0.0
        for j in range(state[p + 3] - 1, state[p + 2] - 1, -1):
            trimmed += slab[f, j + 1]
            value = score[f, 1, j] * (trimmed + LEAST_SLAB)
            if value > best:
                best, f_best, side_best, j_best = value, f, 1, j
    return f_best, side_best, j_best


@helper
def _divide(fields: Fields, state: IntArray, f: int, side: int, j: int, scratch: FamilyScratch) -> None:
    """Write the families without and with a cut or level, and what their widest boxes capture."""
    p, without, given = fields.place[f], scratch.children[0], scratch.children[1]
    for i in range(len(state)):
        without[i], given[i] = state[i], state[i]
    gone = 0.0
    if not fields.ordered[f]:
        without[p + j], given[p + j] = OUT, SURE
        scratch.weights[1], scratch.weights[2] = scratch.weights[0] - scratch.slab[f, j], scratch.weights[0]
        return
    if side == 0:  # the low end lies right of the cut?
        without[p + 1] = min(state[p + 1], j)
        given[p], given[p + 2] = j + 1, max(state[p + 2], j + 1)
        for i in range(state[p], j + 1):
            gone += scratch.slab[f, i]
    else:
        without[p + 2] = max(state[p + 2], j + 1)
        given[p + 3], given[p + 1] = j, min(state[p + 1], j)
        for i in range(j + 1, state[p + 3] + 1):
            gone += scratch.slab[f, i]
    scratch.weights[1], scratch.weights[2] = scratch.weights[0], scratch.weights[0] - gone


@helper
def widen(fields: Fields, state: IntArray, out: IntArray) -> None:
    """Write the family of nothing but the widest box.

    Parameters
    ----------
    fields : Fields
    state : (n,) int64
    out : (n,) int64
        Overwritten.
    """
    for f in range(len(fields.size)):
        p = fields.place[f]
        if fields.ordered[f]:
            out[p], out[p + 1], out[p + 2], out[p + 3] = state[p], state[p], state[p + 3], state[p + 3]
        else:
            for j in range(fields.size[f]):
                out[p + j] = OUT if state[p + j] == OUT else SURE


@kernel
def expand(
    fields: Fields,
    trees: MetTrees,
    evidence: Evidence,
    earlier: IntArray,
    state: IntArray,
    upper: FloatArray,
    above: float,
    least: float,
    scratch: FamilyScratch,
) -> int:
    """Bound a family, look at its widest box and divide it.

    Parameters
    ----------
    fields : Fields
    trees : MetTrees
    evidence : Evidence
    earlier : (n_boxes, n) int64
        Boxes from which rules have to be disjoint, as families of one.
    state : (n,) int64
        The family; overwritten by `settle`.
    upper : (n_trees,) float64
        See `most_share`; overwritten.
    above : float
        Boxes that capture no more are of no use.
    least : float
        Sum of shares that a rule has.
    scratch : FamilyScratch
        The children and their weights are in it afterwards.

    Returns
    -------
    int
        `CLOSED`, `SPLIT` or `RULE`; without a question to ask, both children are the family itself, of weight 0.
    """
    scratch.weights[0] = settle(fields, evidence, state, above, scratch.slab)
    if scratch.weights[0] <= above:
        return CLOSED
    scratch.score[:] = 0.0
    if most_share(fields, trees, state, least, upper, scratch.score, scratch) < least:
        return CLOSED
    widen(fields, state, scratch.widest)
    apart = True
    for b in range(len(earlier)):
        box = earlier[b]
        overlap = _overlap(fields, state, box, scratch.score)
        if overlap == 2:
            return CLOSED
        apart = apart and _overlap(fields, scratch.widest, box, scratch.ignored) == 0
    f, side, j = _best_question(fields, state, scratch.score, scratch.slab)
    if f < 0:
        scratch.weights[1:] = 0.0
    else:
        _divide(fields, state, f, side, j, scratch)
    if apart:
        total = upper.sum()
        for t in range(len(trees.root)):
            total += bounded_share(fields, trees, scratch.widest, t, scratch.ignored, scratch) - upper[t]
            if total < least:
                return SPLIT
        return RULE
    return SPLIT

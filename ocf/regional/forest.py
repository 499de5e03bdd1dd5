"""Probabilities of an answer given that some features hold a value, or lie in a box: projected and regional forests.

Source: Amoukou and Brunel, Local and Regional Counterfactual Rules: Summarized and Robust Recourses (2024), definitions
2.1 to 2.3, section 3 and appendix A.

One random forest, fitted to a model's predictions or to observed answers, serves every estimate. A condition is a
`CellBox`: per feature an interval of cells or a set of levels. It goes down each tree: at a split, left if the region
lies wholly on the left, right if it lies wholly on the right, and both ways if the split cuts it. Conditions of all
kinds are regions: a held value is one cell, a feature that is not conditioned on has all cells, so the *projected
forest* (splits on features outside the conditioning set are ignored) is the regional forest of such a region.

Nomenclature
------------
==================  ====================================================================================
symbol              meaning, shape
==================  ====================================================================================
``n``               training rows; each counts once in every tree, whatever the bootstrap drew
``cell of a tree``  := training rows that go with the region at every split that it meets and does not
                    straddle
``w[i]``            := (1/B) sum over the B trees of 1{i in the tree's cell} / |the tree's cell|
``S``               features that change; the others hold the values of the row x or lie in the region R
``CDP_S``           := sum_i w[i] 1{Y[i] in Y*} with x or R held outside S, and S free (definition 2.1)
``CRP_S(C)``        := the same with the box C on S (definition 2.3)
==================  ====================================================================================

Choices where the paper is silent
---------------------------------
* *Empty cells.* The rows of a tree that go with a region at every split may be none. Such a tree adds nothing to any
  weight, which is what the formula of ``w`` says when 0/0 is read as 0. The weights then sum to less than 1, and a
  probability is never higher than what the trees with evidence make it: a search for the most likely region cannot
  profit from trees that say nothing. (Averaging over the other trees instead lets one tree with one row claim
  certainty.)
* *Splits that cut the region.* Appendix A averages "all the leaves compatible with the condition"; section 3 keeps the
  rows that fall in every leaf that the condition reaches. Here the rows go with the region at every split that it
  meets and does not straddle, in both forests, so that ``CRP_S`` of the whole line is ``CDP_S``.
* *Admissible changes.* Where a feature may only rise, or only take some values, a change is drawn from the cells that
  hold some of these: S is free within `ProbabilityQuery.free` and not on the whole line. The cell of the row's own
  value counts as a whole, with values on the side that a change cannot reach.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.kernels import Int32Array, SearchArrays, search_arrays
from ocf.cells.partition import Partition
from ocf.errors import ProblemError
from ocf.support.numba_cache import array_kernel, helper
from ocf.trees.ensemble import SplitKind


@dataclass(frozen=True, eq=False)
class CellBox:
    """A box of cells.

    Attributes
    ----------
    low, high : (n_features,) int64
        First and last cell of each ordered feature, counted within the feature; all cells of the others.
    member : (n_members,) bool
        Levels of the unordered features, as in `Partition.member`.
    """

    low: IntArray
    high: IntArray
    member: BoolArray

    def __eq__(self, other: object) -> bool:
        """Equal when all cells are."""
        return isinstance(other, CellBox) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def key(self) -> bytes:
        """What tells regions of one partition apart."""
        return self.low.tobytes() + self.high.tobytes() + self.member.tobytes()


@dataclass(frozen=True, eq=False)
class RegionalForest:
    """A random forest, its training rows, and the share of them that goes with a region.

    Attributes
    ----------
    partition : Partition
        Of the forest, over the features of a space.
    cells : (n, n_features) int64
        Cells of the training rows.
    leaves : (n, n_trees) int64
        Their leaves.
    answers : (n,) array
        What the forest was fitted to: class labels or numbers.
    """

    partition: Partition
    cells: IntArray
    leaves: IntArray
    answers: NDArray[Any]

    @cached_property
    def arrays(self) -> SearchArrays:
        """The trees over ranks of cells."""
        return search_arrays(self.partition)

    @cached_property
    def n_trees(self) -> int:
        """Number of trees."""
        return self.partition.ensemble.n_trees

    @cached_property
    def use(self) -> IntArray:
        """Splits on each feature, (n_features,): how often the forest uses it."""
        ensemble = self.partition.ensemble
        inner = ensemble.kind != SplitKind.LEAF
        return np.bincount(ensemble.feature[inner], minlength=self.partition.n_features)

    # -- regions -------------------------------------------------------------------------------------------

    def everywhere(self) -> CellBox:
        """The region without conditions."""
        part = self.partition
        return CellBox(np.zeros(part.n_features, np.int64), part.widths - 1, np.ones(part.member.shape[1], bool))

    def region(self, allowed: Iterable[BoolArray]) -> CellBox:
        """The region of given cells.

        Parameters
        ----------
        allowed : iterable of (n_cells_of_feature,) bool, one per feature
            Those of ordered features must be consecutive.

        Raises
        ------
        ProblemError
            A feature is left without a cell.
        """
        part, out = self.partition, self.everywhere()
        low, high, member = out.low.copy(), out.high.copy(), out.member.copy()
        for i, mask in enumerate(allowed):
            at = np.flatnonzero(mask)
            if not len(at):
                raise ProblemError(f"the region leaves feature {part.ensemble.feature_names[i]!r} without a value")
            if part.ordered[i]:
                low[i], high[i] = at[0], at[-1]
            else:
                member[part.member_offsets[i] : part.member_offsets[i + 1]] = mask
        return CellBox(low, high, member)

    def at(self, cells: IntArray) -> CellBox:
        """The region of one choice of cells, (n_features,)."""
        return self.region(np.arange(w) == c for w, c in zip(self.partition.widths, cells, strict=True))

    def leaf(self, k: int) -> CellBox:
        """The box of a leaf."""
        part = self.partition
        return CellBox(part.low[k].astype(np.int64), part.high[k].astype(np.int64), part.member[k])

    def leaves_within(self, region: CellBox, features: Iterable[int], leaves: IntArray) -> list[CellBox]:
        """A region cut down to each leaf on some features, in the leaves' order: each such box once, no empty ones.

        Parameters
        ----------
        region : CellBox
        features : iterable of int
            Those on which the leaves count.
        leaves : (n,) int64
        """
        part, at = self.partition, np.array(sorted(features), np.int64)
        levels = [slice(*part.member_offsets[i : i + 2]) for i in at[~part.ordered[at]]]
        low = np.maximum(part.low[np.ix_(leaves, at)], region.low[at])
        high = np.minimum(part.high[np.ix_(leaves, at)], region.high[at])
        members = [part.member[leaves, own] & region.member[own] for own in levels]
        filled = (low <= high).all(axis=1)
        for member in members:
            filled &= member.any(axis=1)
        ends = np.hstack([low, high, *members])[filled]
        boxes: list[CellBox] = []
        for k in leaves[filled][np.sort(np.unique(ends, axis=0, return_index=True)[1])].tolist():
            leaf = self.leaf(k)
            low, high = np.maximum(leaf.low, region.low), np.minimum(leaf.high, region.high)
            boxes.append(self.mix(CellBox(low, high, leaf.member & region.member), region, at.tolist()))
        return boxes

    def mix(self, inside: CellBox, outside: CellBox, features: Iterable[int]) -> CellBox:
        """`inside` on some features, `outside` on the others.

        Parameters
        ----------
        inside, outside : CellBox
        features : iterable of int
            Where `inside` counts.
        """
        part = self.partition
        low, high, member = outside.low.copy(), outside.high.copy(), outside.member.copy()
        for i in features:
            low[i], high[i] = inside.low[i], inside.high[i]
            span = slice(part.member_offsets[i], part.member_offsets[i + 1])
            member[span] = inside.member[span]
        return CellBox(low, high, member)

    def cells_of(self, region: CellBox, i: int) -> BoolArray:
        """Cells of feature i in a region, (n_cells_of_feature,).

        Parameters
        ----------
        region : CellBox
        i : int
            Number of the feature.
        """
        part = self.partition
        if not part.ordered[i]:
            return region.member[part.member_offsets[i] : part.member_offsets[i + 1]]
        index = np.arange(part.widths[i])
        return (region.low[i] <= index) & (index <= region.high[i])

    def inside(self, region: CellBox, features: Iterable[int] | None = None) -> BoolArray:
        """Which training rows lie in a region, on the given features (default: all), (n,).

        Parameters
        ----------
        region : CellBox
        features : iterable of int, optional
        """
        return self.holds(region, self.cells, features)

    def holds(self, region: CellBox, cells: IntArray, features: Iterable[int] | None = None) -> BoolArray:
        """Which rows, given by their cells, lie in a region, on the given features (default: all), (n,).

        Parameters
        ----------
        region : CellBox
        cells : (n, n_features) int
        features : iterable of int, optional
        """
        out = np.ones(len(cells), bool)
        for i in range(self.partition.n_features) if features is None else features:
            out &= self.cells_of(region, i)[cells[:, i]]
        return out

    # -- estimates -----------------------------------------------------------------------------------------

    def counts(self, region: CellBox, wanted: BoolArray, least: float = 0.0) -> IntArray:
        """Rows in each tree's cell and how many of them are wanted, (n_trees, 2).

        Parameters
        ----------
        region : CellBox
        wanted : (n,) bool
            Whether the answer of a training row is in the target.
        least : float
            Stop as soon as the probability cannot reach this; the trees that are left then count as empty.
        """
        return self._counted(region, wanted, least * self.n_trees - 1e-6, np.zeros((0, 0), bool))

    def in_cells(self, region: CellBox) -> BoolArray:
        """Which training rows lie in the cell of which tree, (n_trees, n)."""
        inside = np.zeros((self.n_trees, len(self.cells)), bool)
        self._counted(region, np.zeros(len(self.cells), bool), -np.inf, inside)
        return inside

    def _counted(self, region: CellBox, wanted: BoolArray, least: float, inside: BoolArray) -> IntArray:
        """As `counts`, with the rows of each tree's cell marked in `inside`, (n_trees, n), unless that is empty."""
        a, out = self.arrays, np.zeros((self.n_trees, 2), np.int64)
        _count(
            a.trees.root, a.trees.node, a.trees.sets, a.column, self.partition.widths, self._compact,
            region.low, region.high, region.member, wanted, least, out, inside,
        )  # fmt: skip
        return out

    def weights(self, region: CellBox) -> FloatArray:
        """Weight of each training row given a region, (n,)."""
        inside = self.in_cells(region)
        size = inside.sum(axis=1)
        return (inside / np.maximum(size, 1)[:, None]).mean(axis=0)

    def met_nodes(self, region: CellBox) -> BoolArray:
        """Nodes that a region reaches, (n_nodes,)."""
        a, out = self.arrays, np.zeros(len(self.arrays.trees.node), bool)
        _met(
            a.trees.root, a.trees.node, a.trees.sets, a.column, self.partition.widths,
            region.low, region.high, region.member, out,
        )  # fmt: skip
        return out

    @cached_property
    def _compact(self) -> Int32Array:
        return np.ascontiguousarray(self.cells.T, np.int32)


# -- kernels -----------------------------------------------------------------------------------------------


@helper
def _sides(
    f: int,
    cut: int,
    sets: BoolArray,
    column: IntArray,
    width: IntArray,
    low: IntArray,
    high: IntArray,
    member: BoolArray,
) -> tuple[bool, bool]:
    """Whether a region has cells left and right of a split."""
    if cut >= -1:
        return low[f] <= cut, high[f] > cut
    left, right = False, False
    for level in range(width[f]):
        if member[column[f] + level]:
            if sets[-2 - cut, level]:
                left = True
            else:
                right = True
    return left, right


@helper
def _conditions(
    root: int,
    node: Int32Array,
    sets: BoolArray,
    column: IntArray,
    width: IntArray,
    low: IntArray,
    high: IntArray,
    member: BoolArray,
    first: IntArray,
    last: IntArray,
    splits: Int32Array,
    stack: Int32Array,
) -> int:
    """What a tree asks of the rows that go with a region.

    Cells from `first` to `last` of each ordered feature, and to go the region's way at splits by sets: their nodes,
    negative to the right, counted from 1. How many these are is returned.
    """
    for f in range(len(width)):
        first[f], last[f] = 0, width[f] - 1
    n_splits, top = 0, 1
    stack[0] = root
    while top > 0:
        top -= 1
        k = stack[top]
        f, cut = node[k, 0], node[k, 1]
        if f < 0:
            continue
        left, right = _sides(f, cut, sets, column, width, low, high, member)
        if left:
            stack[top] = node[k, 2]
            top += 1
        if right:
            stack[top] = node[k, 3]
            top += 1
        if left == right:
            continue
        if cut < -1:
            splits[n_splits] = k + 1 if left else -k - 1
            n_splits += 1
        elif left:
            last[f] = min(last[f], cut)
        else:
            first[f] = max(first[f], cut + 1)
    return n_splits


@helper
def _within(cells: Int32Array, f: int, first: int, last: int, rows: Int32Array, n: int) -> int:
    """Move the rows with a cell from `first` to `last`, of the first n, to the front of `rows`; their number.

    All rows, where n is negative.
    """
    kept, value = 0, cells[f]
    if n < 0:
        for j in range(len(value)):
            rows[kept] = j
            kept += (first <= value[j]) & (value[j] <= last)
        return kept
    for j in range(n):
        row = rows[j]
        rows[kept] = row
        kept += (first <= value[row]) & (value[row] <= last)
    return kept


@helper
def _going(cells: Int32Array, split: int, node: Int32Array, sets: BoolArray, rows: Int32Array, n: int) -> int:
    """Move the rows that go one way at a split by sets, of the first n, to the front of `rows`; their number."""
    k, kept = abs(split) - 1, 0
    f, cut = node[k, 0], node[k, 1]
    for j in range(n):
        row = rows[j]
        rows[kept] = row
        kept += sets[-2 - cut, cells[f, row]] == (split > 0)
    return kept


@array_kernel
def _count(
    root: IntArray,
    node: Int32Array,
    sets: BoolArray,
    column: IntArray,
    width: IntArray,
    cells: Int32Array,
    low: IntArray,
    high: IntArray,
    member: BoolArray,
    wanted: BoolArray,
    least: float,
    out: IntArray,
    inside: BoolArray,
) -> None:
    """Write the size of each tree's cell and the wanted rows in it, until the sum of shares cannot reach `least`.

    Cells are (n_features, n). The rows themselves are marked where `inside` has room for them.
    """
    best = float(len(root))
    first, last = np.empty_like(width), np.empty_like(width)
    rows, splits = np.empty(cells.shape[1], np.int32), np.empty(len(node), np.int32)
    stack = np.empty(len(node) + 1, np.int32)
    for t in range(len(root)):
        n_splits = _conditions(
            root[t], node, sets, column, width, low, high, member, first, last, splits, stack
        )  # fmt: skip
        n = -1
        for f in range(len(width)):
            if first[f] > 0 or last[f] < width[f] - 1:
                n = _within(cells, f, first[f], last[f], rows, n)
        if n < 0:
            n = len(rows)
            for j in range(n):
                rows[j] = j
        for i in range(n_splits):
            n = _going(cells, splits[i], node, sets, rows, n)
        hits = 0
        for j in range(n):
            hits += wanted[rows[j]]
        if len(inside) > 0:
            for j in range(n):
                inside[t, rows[j]] = True
        out[t, 0], out[t, 1] = n, hits
        best -= 1.0 - hits / n if n > 0 else 1.0
        if best < least:
            return


@array_kernel
def _met(
    root: IntArray,
    node: Int32Array,
    sets: BoolArray,
    column: IntArray,
    width: IntArray,
    low: IntArray,
    high: IntArray,
    member: BoolArray,
    out: BoolArray,
) -> None:
    """Mark the nodes that a region reaches."""
    stack = np.empty(len(node) + 1, np.int32)
    for t in range(len(root)):
        stack[0], top = root[t], 1
        while top > 0:
            top -= 1
            k = stack[top]
            out[k] = True
            f = node[k, 0]
            if f < 0:
                continue
            left, right = _sides(f, node[k, 1], sets, column, width, low, high, member)
            if left:
                stack[top] = node[k, 2]
                top += 1
            if right:
                stack[top] = node[k, 3]
                top += 1

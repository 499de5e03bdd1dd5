"""Cells: the finite, exact form of the counterfactual problem.

The sorted distinct thresholds of a feature cut its line into cells ``(b_{j-1}, b_j]``; a feature that is split by
sets of levels has one cell per level. The ensemble is constant on a product of cells, so a point is a choice of one
cell per feature, and any separable cost is a constant per cell: that of the cell's admissible value nearest to the
origin.

Nomenclature
------------
=====================  =============================================================================
symbol                 meaning, shape
=====================  =============================================================================
``n_cells``            cells of all features together; those of feature i are
                       ``offsets[i]:offsets[i + 1]``, in increasing order
``n_leaves``           leaves of all trees together
``low, high``          first and last cell (counted within the feature) of each leaf's box,
                       (n_leaves, n_features)
``member``             whether a leaf admits a level of an unordered feature, (n_leaves, n_members)
=====================  =============================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import DataError, UnsupportedModelError
from ocf.features.space import FeatureSpace
from ocf.trees.ensemble import Ensemble, SplitKind


@dataclass(frozen=True)
class Partition:
    """Cells and leaf boxes of an ensemble over features; the same for every row.

    Attributes
    ----------
    ensemble : Ensemble
        Its splits test features of the space, in coded values.
    offsets : (n_features + 1,) int64
    ordered : (n_features,) bool
    lower, upper : (n_cells,) float64
        Cell j holds the coded values in ``(lower[j], upper[j]]``.
    low, high : (n_leaves, n_features) int32
    member : (n_leaves, n_members) bool
        Columns are the cells of the unordered features, in order.
    member_offsets : (n_features + 1,) int64
        Columns of feature i are ``member_offsets[i]:member_offsets[i + 1]``; none for ordered features.
    reachable : (n_leaves,) bool
        False for leaves whose box is empty.
    """

    ensemble: Ensemble
    offsets: IntArray
    ordered: BoolArray
    lower: FloatArray
    upper: FloatArray
    low: NDArray[np.int32]
    high: NDArray[np.int32]
    member: BoolArray
    member_offsets: IntArray
    reachable: BoolArray

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.ordered)

    @property
    def n_cells(self) -> int:
        """Number of cells of all features."""
        return int(self.offsets[-1])

    def refuse_hyperplanes(self) -> None:
        """Raise where a split is oblique: a leaf is no product of cells then."""
        if self.ensemble.is_oblique:
            raise UnsupportedModelError(
                "the model has oblique splits, which no choice of cells decides: use formulation='hyperplanes', or "
                "'oblique' for a single tree"
            )

    @cached_property
    def widths(self) -> IntArray:
        """Cells per feature, (n_features,)."""
        return np.diff(self.offsets)

    @cached_property
    def cell_feature(self) -> IntArray:
        """Feature of each cell, (n_cells,)."""
        return np.repeat(np.arange(self.n_features), self.widths)

    @cached_property
    def bounded(self) -> tuple[IntArray, IntArray]:
        """Pairs (leaf, ordered feature) whose range is not the whole line."""
        leaf, feature = np.nonzero((self.low > 0) | (self.high < self.widths - 1))
        return leaf.astype(np.int64), feature.astype(np.int64)

    def cells_of(self, i: int) -> slice:
        """Cells of feature i, as a slice of all cells."""
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))

    def members_of(self, i: int) -> BoolArray:
        """Which leaves admit which level of the unordered feature i, (n_leaves, n_levels)."""
        return self.member[:, self.member_offsets[i] : self.member_offsets[i + 1]]

    def locate(self, coded: FloatArray) -> IntArray:
        """Cell of each coded row in each feature, counted within the feature; 0 where the value is missing.

        Parameters
        ----------
        coded : (n, n_features) float64

        Returns
        -------
        (n, n_features) int64
        """
        out = np.zeros(coded.shape, np.int64)
        for i in range(self.n_features):
            cuts = self.upper[self.cells_of(i)][:-1]
            out[:, i] = np.searchsorted(cuts, np.nan_to_num(coded[:, i]), side="left")
        return out

    def leaves_at(self, cells: IntArray) -> IntArray:
        """Leaf of each tree at a choice of cells, (n_trees,).

        Parameters
        ----------
        cells : (n_features,) int64
            Counted within the features.
        """
        inside = ((self.low <= cells) & (cells <= self.high)).all(axis=1) & self.reachable
        for i in np.flatnonzero(~self.ordered).tolist():
            inside &= self.members_of(i)[:, cells[i]]
        return np.flatnonzero(inside)


def partition(ensemble: Ensemble, space: FeatureSpace, cuts: Mapping[int, FloatArray] | None = None) -> Partition:
    """Cut the space of features into cells and find each leaf's box.

    Parameters
    ----------
    ensemble : Ensemble
        Over the features of `space`, as `ocf.models.lift.lift` gives it.
    space : FeatureSpace
    cuts : mapping of feature index to (n,) float64, optional
        Ends of cells besides the thresholds, where something else than the ensemble changes; unordered features
        have a cell for each level anyway.

    Raises
    ------
    DataError
        A numeric or integer feature is split by sets of categories.
    """
    tested = ensemble.feature
    ordered = np.ones(len(space), bool)
    ordered[tested[ensemble.kind == SplitKind.SUBSET]] = False
    for i, feature in enumerate(space.features):
        if not ordered[i] and not feature.discrete:
            raise DataError(
                f"the model treats feature {feature.name!r} as categories: describe it as kind 'categorical'"
            )
    axis = (ensemble.kind == SplitKind.AXIS) & np.isfinite(ensemble.threshold)
    uppers = [
        np.append(np.unique(np.append((cuts or {}).get(i, []), ensemble.threshold[axis & (tested == i)])), np.inf)
        if ordered[i]
        else np.arange(len(feature.levels), dtype=np.float64)
        for i, feature in enumerate(space.features)
    ]
    lowers = [np.concatenate([[-np.inf], upper[:-1]]) if ordered[i] else upper - 1 for i, upper in enumerate(uppers)]
    offsets = np.cumsum([0, *map(len, uppers)])
    member_offsets = np.cumsum([0, *(0 if ordered[i] else len(u) for i, u in enumerate(uppers))])
    low, high, member = _boxes(ensemble, uppers, ordered, member_offsets)
    reachable = np.asarray((low <= high).all(axis=1))
    for i in np.flatnonzero(~ordered).tolist():
        reachable &= member[:, member_offsets[i] : member_offsets[i + 1]].any(axis=1)
    return Partition(
        ensemble,
        offsets,
        ordered,
        np.concatenate(lowers),
        np.concatenate(uppers),
        low,
        high,
        member,
        member_offsets,
        reachable,
    )


def last_left(ensemble: Ensemble, uppers: Sequence[FloatArray]) -> NDArray[np.int32]:
    """Last cell that each AXIS node sends left, counted within its feature; -1 where all go right, (n_nodes,).

    A decided split has an infinite threshold and may stand on any feature, also on one without an order: every reader
    of comparisons takes them from here.

    Parameters
    ----------
    ensemble : Ensemble
    uppers : sequence of (n_cells of the feature,) float64
        Upper ends of each feature's cells.
    """
    out = np.full(len(ensemble.kind), -1, np.int32)
    axis = ensemble.kind == SplitKind.AXIS
    for i, upper in enumerate(uppers):
        at = np.flatnonzero(axis & (ensemble.feature == i))
        out[at] = np.searchsorted(upper, ensemble.threshold[at], side="right") - 1
    return out


def _boxes(
    ensemble: Ensemble, uppers: list[FloatArray], ordered: BoolArray, member_offsets: IntArray
) -> tuple[NDArray[np.int32], NDArray[np.int32], BoolArray]:
    """Box of every leaf, by narrowing boxes from the roots down, one depth at a time."""
    n_nodes, n_features = len(ensemble.kind), len(uppers)
    low = np.zeros((n_nodes, n_features), np.int32)
    high = np.tile(np.array([len(u) - 1 for u in uppers], np.int32), (n_nodes, 1))
    member = np.ones((n_nodes, int(member_offsets[-1])), bool)
    cell = last_left(ensemble, uppers)
    level = ensemble.tree_offsets[:-1]
    while len(level := level[ensemble.kind[level] != SplitKind.LEAF]):
        left, right = ensemble.left[level], ensemble.right[level]
        for child in (left, right):
            low[child], high[child], member[child] = low[level], high[level], member[level]
        axis = ensemble.kind[level] == SplitKind.AXIS
        feature, cut = ensemble.feature[level[axis]], cell[level[axis]]
        line = ordered[feature]
        for child, side, end in ((left[axis], high, cut), (right[axis], low, cut + 1)):
            narrow = np.minimum if side is high else np.maximum
            side[child[line], feature[line]] = narrow(side[child[line], feature[line]], end[line])
        # a split of an unordered feature that compares: one that is decided, see `ocf.models.lift.lift`
        for node, i in zip(level[axis][~line].tolist(), feature[~line].tolist(), strict=True):
            span = slice(member_offsets[i], member_offsets[i + 1])
            goes_left = np.arange(span.stop - span.start) <= cell[node]
            member[ensemble.left[node], span] &= goes_left
            member[ensemble.right[node], span] &= ~goes_left
        for node in level[ensemble.kind[level] == SplitKind.SUBSET]:
            i = ensemble.feature[node]
            span = slice(member_offsets[i], member_offsets[i + 1])
            goes_left = ensemble.sets[ensemble.set_index[node], : span.stop - span.start]
            member[ensemble.left[node], span] &= goes_left
            member[ensemble.right[node], span] &= ~goes_left
        level = np.concatenate([left, right])
    leaves = ensemble.kind == SplitKind.LEAF
    return low[leaves], high[leaves], member[leaves]

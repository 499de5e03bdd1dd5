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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import DataError, UnsupportedModelError
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace
from ocf.support.limits import REMEDY, reserve
from ocf.trees.ensemble import Ensemble, SplitKind


class LeafRanges(NamedTuple):
    """Products of cells, one for each of some leaves.

    Attributes
    ----------
    low, high : (n, n_features) int32
        First and last cell, counted within the feature.
    member : (n, n_members) bool
        Which levels of the unordered features are in it; the features' columns follow each other.
    """

    low: NDArray[np.int32]
    high: NDArray[np.int32]
    member: BoolArray


#: Bytes of the sides of a leaf's box on one feature, and of what is made of them for the search.
SIDES = 16


@dataclass(frozen=True, eq=False)
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
    member_offsets : (n_features + 1,) int64
        Columns of feature i in `member` are ``member_offsets[i]:member_offsets[i + 1]``; none for ordered features.
    """

    ensemble: Ensemble
    offsets: IntArray
    ordered: BoolArray
    lower: FloatArray
    upper: FloatArray
    member_offsets: IntArray

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.ordered)

    @property
    def n_cells(self) -> int:
        """Number of cells of all features."""
        return int(self.offsets[-1])

    def refuse_hyperplanes(self, remedy: str) -> None:
        """Raise where a split is oblique: a leaf is no product of cells then.

        Parameters
        ----------
        remedy : str
            What to do, in the place of what was asked for.
        """
        if self.ensemble.is_oblique:
            raise UnsupportedModelError(
                "the model has oblique splits or adds up numbers of the table, which no choice of cells decides: "
                + remedy
            )

    @cached_property
    def derived(self) -> dict[str, Any]:
        """What others have worked out from these cells, for all rows, by its name."""
        return {}

    @cached_property
    def widths(self) -> IntArray:
        """Cells per feature, (n_features,)."""
        return np.diff(self.offsets)

    @cached_property
    def cell_feature(self) -> IntArray:
        """Feature of each cell, (n_cells,)."""
        return np.repeat(np.arange(self.n_features), self.widths)

    @cached_property
    def cuts(self) -> NDArray[np.int32]:
        """Last cell that each AXIS node sends left, (n_nodes,); see `last_left`."""
        return last_left(self.ensemble, [self.upper[self.cells_of(i)] for i in range(self.n_features)])

    @cached_property
    def all_boxes(self) -> LeafRanges:
        """The boxes of all leaves."""
        return self.boxes(np.arange(self.ensemble.n_leaves))

    @property
    def low(self) -> NDArray[np.int32]:
        """First cell of each leaf's box, (n_leaves, n_features)."""
        return self.all_boxes.low

    @property
    def high(self) -> NDArray[np.int32]:
        """Last cell of each leaf's box, (n_leaves, n_features)."""
        return self.all_boxes.high

    @property
    def member(self) -> BoolArray:
        """Which levels of unordered features each leaf admits, (n_leaves, n_members)."""
        return self.all_boxes.member

    @cached_property
    def reachable(self) -> BoolArray:
        """Which leaves' boxes are not empty, (n_leaves,)."""
        return self.reachable_of(self.all_boxes)

    def reachable_of(self, boxes: LeafRanges) -> BoolArray:
        """Which boxes are not empty, (n,)."""
        out = np.asarray((boxes.low <= boxes.high).all(axis=1))
        for i in np.flatnonzero(~self.ordered).tolist():
            out &= boxes.member[:, self.member_offsets[i] : self.member_offsets[i + 1]].any(axis=1)
        return out

    def boxes(self, leaves: IntArray) -> LeafRanges:
        """Boxes of some leaves, by climbing from them to the roots, all at once.

        Parameters
        ----------
        leaves : (n,) int64
        """
        ensemble = self.ensemble
        reserve(
            len(leaves) * (SIDES * self.n_features + int(self.member_offsets[-1])),
            f"the boxes of {len(leaves)} leaves over {self.n_features} features",
            f"ask with the reduction and without own costs and plausibility, {REMEDY}",
        )
        low = np.zeros((len(leaves), self.n_features), np.int32)
        high = np.tile((self.widths - 1).astype(np.int32), (len(leaves), 1))
        member = np.ones((len(leaves), int(self.member_offsets[-1])), bool)
        row, at = np.arange(len(leaves)), ensemble.leaf_node[leaves]
        while True:
            up = ensemble.parent[at]
            inside = up >= 0
            row, at, up = row[inside], at[inside], up[inside]
            if not len(row):
                return LeafRanges(low, high, member)
            went_left, feature = ensemble.left[up] == at, ensemble.feature[up]
            line = (ensemble.kind[up] == SplitKind.AXIS) & self.ordered[feature]
            for side, bound, narrow in ((line & went_left, high, np.minimum), (line & ~went_left, low, np.maximum)):
                r, f = row[side], feature[side]
                bound[r, f] = narrow(bound[r, f], self.cuts[up[side]] + (bound is low))
            levels = ~line & (ensemble.kind[up] != SplitKind.OBLIQUE)
            self._narrow_levels(member, row[levels], up[levels], went_left[levels])
            at = up.astype(np.int64)

    def _narrow_levels(self, member: BoolArray, row: IntArray, node: IntArray, went_left: BoolArray) -> None:
        """Take the levels away that splits of unordered features send to the other side, in place."""
        feature = self.ensemble.feature[node]
        for i in np.unique(feature).tolist():
            here = feature == i
            span = slice(int(self.member_offsets[i]), int(self.member_offsets[i + 1]))
            member[row[here], span] &= self._levels_left(i, node[here]) == went_left[here, None]

    def _levels_left(self, i: int, node: IntArray) -> BoolArray:
        """Which levels of an unordered feature nodes send left, (n, n_levels)."""
        ensemble, levels = self.ensemble, np.arange(self.widths[i])
        # a split of an unordered feature that compares: one that is decided, see `ocf.models.lift.lift`
        out = np.asarray(levels <= self.cuts[node][:, None])
        subset = ensemble.kind[node] == SplitKind.SUBSET
        out[subset] = ensemble.sets[ensemble.set_index[node[subset]], : len(levels)]
        return out

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
            out[:, i] = np.searchsorted(cuts, np.where(np.isnan(coded[:, i]), 0.0, coded[:, i]))
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
        have a cell for each level anyway. Special values have cells of their own.

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
        np.append(
            np.unique([*(cuts or {}).get(i, []), *_around_special(feature), *ensemble.threshold[axis & (tested == i)]]),
            np.inf,
        )
        if ordered[i]
        else np.arange(feature.n_codes, dtype=np.float64)
        for i, feature in enumerate(space.features)
    ]
    lowers = [np.concatenate([[-np.inf], upper[:-1]]) if ordered[i] else upper - 1 for i, upper in enumerate(uppers)]
    offsets = np.cumsum([0, *map(len, uppers)])
    member_offsets = np.cumsum([0, *(0 if ordered[i] else len(u) for i, u in enumerate(uppers))])
    return Partition(ensemble, offsets, ordered, np.concatenate(lowers), np.concatenate(uppers), member_offsets)


def _around_special(feature: Feature) -> FloatArray:
    """Cuts that make a cell of each special value."""
    found = feature.special_values
    before = found - 1.0 if feature.discrete else np.nextafter(found, -np.inf)
    cuts = np.unique(np.concatenate([before, found]))
    return cuts[(cuts >= 0.0) & (cuts < feature.n_codes - 1)] if feature.discrete else cuts[np.isfinite(cuts)]


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

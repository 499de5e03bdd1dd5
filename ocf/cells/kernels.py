"""Integer kernels over cells: evaluate an ensemble at a choice of cells, and along a whole feature at once.

Thresholds are replaced by the ranks of the cells that they end, so a search compares small integers and never a
float. The kernels are Numba functions, compiled on first use and cached on disk.

Nomenclature
------------
=====================  =============================================================================
symbol                 meaning, shape
=====================  =============================================================================
``x``                  a choice of cells, counted within the features, (n_features,) int64
``gain, need``         the target: ``sum over trees of gain[leaf] >= need``, (n_leaves, n_rows), (n_rows,)
``cost``               of each cell, inf where it is closed, (n_cells,)
=====================  =============================================================================
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.partition import Partition
from ocf.support.loops import copy_to, fill
from ocf.support.numba_cache import kernel
from ocf.trees.ensemble import SplitKind

logger = logging.getLogger(__name__)

Int32Array = NDArray[np.int32]


class Trees(NamedTuple):
    """Trees whose splits compare ranks of cells; the same for every row.

    Attributes
    ----------
    root : (n_trees,) int64
    node : (n_nodes, 4) int32
        Feature, cut, left and right child, side by side to be read at once. The feature is -1 at leaves, whose
        third entry is the number of the leaf. Left is ``x[feature] <= cut``, or, where ``cut < -1``, membership of
        the level in row ``-2 - cut`` of `sets`.
    sets : (n_sets, n_codes) bool
        At least as wide as any unordered feature has levels.
    """

    root: IntArray
    node: Int32Array
    sets: BoolArray


class Boxes(NamedTuple):
    """What each leaf asks of a point, sparsely; the same for every row.

    Attributes
    ----------
    tree : (n_leaves,) int64
    start : (n_leaves + 1,) int64
        Restrictions of leaf l are ``start[l]:start[l + 1]``, by increasing feature.
    feature : (n_restrictions,) int64
    low, high : (n_restrictions,) int64
        First and last cell that the leaf admits.
    column : (n_restrictions,) int64
        Of an unordered feature: where its levels start in `member`; -1 for ordered features.
    member : (n_leaves, n_members) bool
        As in `Partition`.
    """

    tree: IntArray
    start: IntArray
    feature: IntArray
    low: IntArray
    high: IntArray
    column: IntArray
    member: BoolArray


class SearchArrays(NamedTuple):
    """Everything static that searches over one partition share.

    Attributes
    ----------
    trees : Trees
    boxes : Boxes
    offsets : (n_features + 1,) int64
        Of the cells, as in `Partition`.
    ordered : (n_features,) bool
    column : (n_features,) int64
        Where an unordered feature's levels start in `Boxes.member`; -1 for ordered features.
    leaf_offsets : (n_trees + 1,) int64
    depth : int
        Largest number of splits on a path.
    """

    trees: Trees
    boxes: Boxes
    offsets: IntArray
    ordered: BoolArray
    column: IntArray
    leaf_offsets: IntArray
    depth: int


def search_arrays(part: Partition) -> SearchArrays:
    """Search arrays of a partition, made once and kept with it."""
    if "search arrays" not in part.derived:
        part.derived["search arrays"] = SearchArrays(
            search_trees(part),
            _boxes(part),
            part.offsets.astype(np.int64),
            part.ordered,
            _columns(part),
            part.ensemble.leaf_offsets.astype(np.int64),
            int(part.ensemble.depth.max()),
        )
    arrays: SearchArrays = part.derived["search arrays"]
    return arrays


def search_trees(part: Partition) -> Trees:
    """The trees of a partition, over ranks of cells."""
    ensemble = part.ensemble
    leaf = ensemble.kind == SplitKind.LEAF
    cut = np.where(ensemble.kind == SplitKind.SUBSET, -2 - ensemble.set_index, part.cuts)
    node = np.column_stack(
        [
            np.where(leaf, -1, ensemble.feature),
            cut,
            np.where(leaf, ensemble.leaf, ensemble.left),
            np.where(leaf, -1, ensemble.right),
        ]
    )
    n_levels = int(part.widths[~part.ordered].max(initial=0))
    # levels beyond the table go right
    sets = np.pad(ensemble.sets, ((0, 0), (0, max(0, n_levels - ensemble.sets.shape[1]))))
    return Trees(ensemble.tree_offsets[:-1].astype(np.int64), np.ascontiguousarray(node, np.int32), sets)


def _columns(part: Partition) -> IntArray:
    return np.where(part.ordered, -1, part.member_offsets[:-1]).astype(np.int64)


def _boxes(part: Partition) -> Boxes:
    restricted = part.ordered & ((part.low > 0) | (part.high < part.widths - 1))
    for i in np.flatnonzero(~part.ordered).tolist():
        restricted[:, i] = ~part.members_of(i).all(axis=1)
    leaf, feature = np.nonzero(restricted)
    return Boxes(
        part.ensemble.leaf_tree.astype(np.int64),
        np.searchsorted(leaf, np.arange(len(restricted) + 1)).astype(np.int64),
        feature.astype(np.int64),
        part.low[leaf, feature].astype(np.int64),
        part.high[leaf, feature].astype(np.int64),
        _columns(part)[feature],
        part.member,
    )


def open_costs(cells: CellProblem) -> FloatArray:
    """Cost of each cell, inf where it is closed, (n_cells,)."""
    return np.where(cells.open, cells.cost, np.inf)


def log_compilation(kernel: Any) -> None:
    """Say, at level DEBUG, that the first call of a kernel compiles it or reads it from the cache on disk."""
    if not kernel.overloads:
        logger.debug("first use of %s: compiling it, or loading it from the cache", kernel.__name__)


class Position(NamedTuple):
    """Where a choice of cells stands: what `locate` writes and `scan` reads.

    Attributes
    ----------
    sums : (n_rows,) float64
        Sums of gains.
    leaf : (n_trees,) int64
        Leaf of each tree.
    touched : (n_features,) int64
        How many trees test a feature on the point's path: only those can change when it alone does.
    tree, node : (n_features, n_trees) int32
        The first ``touched[f]`` entries of row f: such a tree, and the first of its nodes on the path that tests f.
    stack : (n, 3) int64
        Scratch: nodes to visit, with their first and last cell.
    """

    sums: FloatArray
    leaf: IntArray
    touched: IntArray
    tree: Int32Array
    node: Int32Array
    stack: IntArray


def new_position(arrays: SearchArrays, n_rows: int) -> Position:
    """Uninitialised position; `locate` fills it.

    Parameters
    ----------
    arrays : SearchArrays
    n_rows : int
        Of the requirements.
    """
    n_features, n_trees = len(arrays.ordered), len(arrays.trees.root)
    return Position(
        np.empty(n_rows),
        np.empty(n_trees, np.int64),
        np.empty(n_features, np.int64),
        np.empty((n_features, n_trees), np.int32),
        np.empty((n_features, n_trees), np.int32),
        # a descent leaves at most one node waiting per level of the tree
        np.empty((arrays.depth + 1, 3), np.int64),
    )


@kernel
def locate(root: IntArray, node: Int32Array, sets: BoolArray, gain: FloatArray, x: IntArray, at: Position) -> None:
    """Write to `at` where the choice of cells `x` stands.

    Parameters
    ----------
    root, node, sets : arrays
        As in `Trees`.
    gain : (n_leaves, n_rows) float64
    x : (n_features,) int64
        Counted within the features.
    at : Position
        Output.
    """
    sums, leaf, touched, touched_tree, touched_node = at.sums, at.leaf, at.touched, at.tree, at.node
    fill(sums, 0.0)
    fill(touched, 0)
    for tree in range(len(root)):
        k = root[tree]
        f = node[k, 0]
        while f >= 0:
            c = touched[f]
            if c == 0 or touched_tree[f, c - 1] != tree:
                touched_tree[f, c] = tree
                touched_node[f, c] = k
                touched[f] = c + 1
            cut = node[k, 1]
            left = x[f] <= cut if cut >= -1 else sets[-2 - cut, x[f]]
            k = node[k, 2] if left else node[k, 3]
            f = node[k, 0]
        leaf[tree] = node[k, 2]
        for r in range(len(sums)):
            sums[r] += gain[leaf[tree], r]


# long: the innermost loop of every search, in one piece so that its scalars stay in registers
@kernel
def scan(  # noqa: C901
    node: Int32Array,
    sets: BoolArray,
    member: BoolArray,
    column: int,
    gain: FloatArray,
    x: IntArray,
    feature: int,
    at: Position,
    line: FloatArray,
) -> None:
    """Sums of gains for every cell of one feature while the others stay.

    Trees that do not test the feature on the point's path keep their leaf. Each other tree is descended once, from its
    first such node: both ways at splits of the feature, one way at others. A leaf of an ordered feature then
    holds a range of cells: its gain is added at the start of the range and taken off behind its end.

    Parameters
    ----------
    node, sets : arrays
        As in `Trees`.
    member : (n_leaves, n_members) bool
        As in `Partition`.
    column : int
        Where the feature's levels start in `member`; -1 for an ordered feature.
    gain : (n_leaves, n_rows) float64
    x : (n_features,) int64
    feature : int
    at : Position
        Of `x`.
    line : (n_cells of the feature, n_rows) float64
        Output.
    """
    n_cells, n_rows = line.shape
    stack, leaf = at.stack, at.leaf
    for j in range(n_cells):
        for r in range(n_rows):
            line[j, r] = 0.0 if j else at.sums[r]
    for c in range(at.touched[feature]):
        for r in range(n_rows):
            line[0, r] -= gain[leaf[at.tree[feature, c]], r]
    if column >= 0:
        for j in range(1, n_cells):
            copy_to(line[j], line[0])
    for c in range(at.touched[feature]):
        stack[0, 0], stack[0, 1], stack[0, 2] = at.node[feature, c], 0, n_cells - 1
        size = 1
        while size > 0:
            size -= 1
            k, low, high = stack[size, 0], stack[size, 1], stack[size, 2]
            f = node[k, 0]
            while f >= 0:
                cut = node[k, 1]
                if f != feature:
                    left = x[f] <= cut if cut >= -1 else sets[-2 - cut, x[f]]
                    k = np.int64(node[k, 2] if left else node[k, 3])
                elif column >= 0:
                    stack[size, 0] = node[k, 3]
                    size += 1
                    k = np.int64(node[k, 2])
                elif high <= cut:
                    k = np.int64(node[k, 2])
                elif low > cut:
                    k = np.int64(node[k, 3])
                else:
                    stack[size, 0], stack[size, 1], stack[size, 2] = node[k, 3], cut + 1, high
                    size += 1
                    k, high = np.int64(node[k, 2]), np.int64(cut)
                f = node[k, 0]
            reached = node[k, 2]
            if column >= 0:
                # sides that no level takes were visited too; their leaves have no member
                for j in range(n_cells):
                    if member[reached, column + j]:
                        for r in range(n_rows):
                            line[j, r] += gain[reached, r]
            else:
                for r in range(n_rows):
                    line[low, r] += gain[reached, r]
                    if high + 1 < n_cells:
                        line[high + 1, r] -= gain[reached, r]
    if column < 0:
        for j in range(1, n_cells):
            for r in range(n_rows):
                line[j, r] += line[j - 1, r]

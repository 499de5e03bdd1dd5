"""Rows descend trees, in kernels: what `ocf.trees.ensemble.Ensemble.apply` does.

Level by level in NumPy, all rows and trees at once, an XGBoost model of 250 trees of depth 8 took most of the
9 seconds that checking it took; row by row and node by node it is some twenty times faster.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocf.support.loops import fill
from ocf.support.numba_cache import array_kernel, helper, kernel

#: `SplitKind.LEAF`, `SplitKind.SUBSET` and `SplitKind.OBLIQUE`; ensembles import this module.
_LEAF, _SUBSET, _OBLIQUE = 0, 2, 3


class TreeArrays(NamedTuple):
    """Trees, as in `Ensemble`.

    Attributes
    ----------
    roots : (n_trees,) int64
    kind, feature, threshold, left, right, leaf, set_index, sets : arrays
    missing_left : (n_nodes,) or (0,) bool
        Where NaN goes; without entries it compares like a number, which sends it right.
    """

    roots: NDArray[np.int64]
    kind: NDArray[np.uint8]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    leaf: NDArray[np.int32]
    set_index: NDArray[np.int32]
    sets: NDArray[np.bool_]
    missing_left: NDArray[np.bool_]


@helper
def _goes_left(value: float, node: int, trees: TreeArrays) -> bool:
    """Whether a row with this value of the split's feature goes left at a node."""
    if np.isnan(value) and len(trees.missing_left):
        return bool(trees.missing_left[node])
    if trees.kind[node] == _SUBSET:
        return bool(-1.0 < value < trees.sets.shape[1] and trees.sets[trees.set_index[node], np.int64(value)])
    return bool(value <= trees.threshold[node])


@array_kernel
def leaves_reached(
    x: NDArray[np.float64],
    trees: TreeArrays,
) -> NDArray[np.int64]:
    """Leaf that each row reaches in each tree, (n, n_trees).

    Parameters
    ----------
    x : (n, n_features) float64
    trees : TreeArrays
        No split is oblique.
    """
    out = np.empty((len(x), len(trees.roots)), np.int64)
    for tree in range(len(trees.roots)):
        for row in range(len(x)):
            node = trees.roots[tree]
            while trees.kind[node] != _LEAF:
                value = x[row, trees.feature[node]]
                goes = _goes_left(value, node, trees)
                node = np.int64(trees.left[node] if goes else trees.right[node])
            out[row, tree] = trees.leaf[node]
    return out


class PlaneArrays(NamedTuple):
    """Hyperplanes of oblique splits, as in `Ensemble`.

    Attributes
    ----------
    of_node : (n_nodes,) int32
        Row of each oblique node, -1 for others.
    indptr : (n_oblique + 1,) int64
    indices, codes : (n_weights,) int32
    data : (n_weights,) float64
    """

    of_node: NDArray[np.int32]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    codes: NDArray[np.int32]
    data: NDArray[np.float64]


@helper
def _total(
    row: NDArray[np.float64], k: int, planes: PlaneArrays, known: NDArray[np.bool_], totals: NDArray[np.float64]
) -> float:
    """A hyperplane's total at a row, added up where it is not known yet."""
    if not known[k]:
        totals[k], known[k] = 0.0, True
        for entry in range(planes.indptr[k], planes.indptr[k + 1]):
            value = row[planes.indices[entry]]
            if planes.codes[entry] >= 0:
                value = 1.0 if value == planes.codes[entry] else 0.0
            totals[k] += planes.data[entry] * value
    return totals[k]


@array_kernel
def leaves_by_totals(
    x: NDArray[np.float64],
    trees: TreeArrays,
    planes: PlaneArrays,
) -> NDArray[np.int64]:
    """Leaf that each row reaches in each tree where splits are oblique, (n, n_trees); each total is added up once.

    Parameters
    ----------
    x : (n, n_features) float64
    trees : TreeArrays
    planes : PlaneArrays
    """
    out = np.empty((len(x), len(trees.roots)), np.int64)
    n_oblique = len(planes.indptr) - 1
    totals, known = np.empty(n_oblique), np.empty(n_oblique, np.bool_)
    for row in range(len(x)):
        fill(known, False)
        for tree in range(len(trees.roots)):
            node = trees.roots[tree]
            while trees.kind[node] != _LEAF:
                if trees.kind[node] == _OBLIQUE:
                    goes = _total(x[row], planes.of_node[node], planes, known, totals) <= trees.threshold[node]
                else:
                    goes = _goes_left(x[row, trees.feature[node]], node, trees)
                node = np.int64(trees.left[node] if goes else trees.right[node])
            out[row, tree] = trees.leaf[node]
    return out


@kernel
def mark_borders(
    x: NDArray[np.float64],
    trees: TreeArrays,
    above: NDArray[np.float64],
    met: NDArray[np.bool_],
) -> None:
    """Note at which borders of splits rows stand on their way down each tree.

    Parameters
    ----------
    x : (n, n_features) float64
    trees : TreeArrays
        No split is oblique.
    above : (n_nodes,) float64
        The number after each threshold.
    met : (n_nodes, 3) bool
        Changed in place, of splits that compare: whether some row has the threshold itself, the next number, or NaN.
    """
    for tree in range(len(trees.roots)):
        for row in range(len(x)):
            node = trees.roots[tree]
            while trees.kind[node] != _LEAF:
                value = x[row, trees.feature[node]]
                if trees.kind[node] != _SUBSET:
                    met[node, 0] |= value == trees.threshold[node]
                    met[node, 1] |= value == above[node]
                    met[node, 2] |= np.isnan(value)
                goes = _goes_left(value, node, trees)
                node = np.int64(trees.left[node] if goes else trees.right[node])


def contiguous(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself if it is contiguous and writable, else a copy: one compilation serves them all."""
    return np.require(array, requirements=["C", "W"])

"""The trees of an ONNX operator: TreeEnsembleClassifier and TreeEnsembleRegressor, and TreeEnsemble of version 5.

How a node tests a value (source: the operators' schemas, and onnxruntime's answers next to each threshold)

* The value, a float32 or float64, is compared with the threshold by the node's mode; where the test holds, the row goes
  to the true child. NaN passes no test but BRANCH_NEQ, and goes to the true child where
  ``missing_value_tracks_true`` is set.
* BRANCH_EQ, BRANCH_NEQ and BRANCH_MEMBER become two splits for each number, between which only that number lies.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ocf.arrays import IntArray
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers.comparisons import LEAF, MEMBER, ComparedTrees
from ocf.readers.trees import MAX_FEATURES, reachable

#: Modes of the first versions, in the numbering of version 5.
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
_CORRUPT = "the model is corrupt, export it again"


# -- from attributes -----------------------------------------------------------------------------------------------


def trees_of(attributes: Mapping[str, Any], kind: str, n_outputs: int, width: int | None) -> ComparedTrees:
    """Trees of an operator's attributes, checked.

    Parameters
    ----------
    attributes : mapping of str to list, array, str or int
    kind : {"class", "target", "leaf"}
        Prefix of the weights' attributes; ``"leaf"`` is version 5.
    n_outputs : int
    width : int or None
        Columns of the input, where the graph says so.

    Raises
    ------
    ModelError
        The attributes do not describe trees.
    UnsupportedModelError
        A mode is not known.
    """
    trees = _inner_and_leaves(attributes) if kind == "leaf" else _listed(attributes, kind)
    inner = trees.mode != LEAF
    places = trees.feature[inner]
    if ((places < 0) | (places >= (MAX_FEATURES if width is None else width))).any():
        raise ModelError(f"a node tests a column that the input does not have: {_CORRUPT}")
    numbers = [w for own in trees.weights.values() for w in own.values()]
    if np.isnan(trees.threshold[inner & (trees.mode != MEMBER)]).any() or not np.isfinite(numbers).all():
        raise ModelError(f"a threshold or weight is not a number: {_CORRUPT}")
    if not trees.outputs <= set(range(n_outputs)):
        raise ModelError(f"a leaf names an output that does not exist: {_CORRUPT}")
    return trees


def _column(attributes: Mapping[str, Any], name: str, n: int | None, other: Any = None) -> Any:
    """An attribute with a number for each node or weight."""
    found = attributes.get(f"{name}_as_tensor")
    found = attributes.get(name, other) if found is None else found
    if found is None or (n is not None and len(found) != n):
        raise ModelError(f"the attribute {name} does not fit the others: {_CORRUPT}")
    return found


def _flags(attributes: Mapping[str, Any], name: str, n: int, other: Any = None) -> IntArray:
    found = np.asarray(_column(attributes, name, n, other), np.int64)
    if not np.isin(found, (0, 1)).all():
        raise ModelError(f"the attribute {name} holds other numbers than 0 and 1: {_CORRUPT}")
    return found


def _listed(attributes: Mapping[str, Any], kind: str) -> ComparedTrees:
    """Versions 1 to 3: nodes and leaves in one list, named by tree and number."""
    tree = np.asarray(_column(attributes, "nodes_treeids", None), np.int64)
    n = len(tree)
    if not n:
        raise ModelError(f"there are no trees: {_CORRUPT}")
    number = np.asarray(_column(attributes, "nodes_nodeids", n), np.int64)
    key = {pair: v for v, pair in enumerate(zip(tree.tolist(), number.tolist(), strict=True))}
    if len(key) != n:
        raise ModelError(f"two nodes of a tree have one number: {_CORRUPT}")
    words = [w.decode() if isinstance(w, bytes) else str(w) for w in _column(attributes, "nodes_modes", n)]
    mode = np.array([_mode_of(word) for word in words], np.int64)
    inner = mode != LEAF
    true, false = (
        np.array(
            [
                key.get((int(t), int(c)), -1) if is_inner else -1
                for t, c, is_inner in zip(tree, _column(attributes, name, n), inner, strict=True)
            ],
            np.int64,
        )
        for name in ("nodes_truenodeids", "nodes_falsenodeids")
    )
    starts = np.flatnonzero(np.diff(tree, prepend=tree[0] - 1))
    if len(set(tree[starts].tolist())) != len(starts):
        raise ModelError(f"the nodes of a tree do not stand together: {_CORRUPT}")
    for t, (first, last) in enumerate(zip(starts, [*starts[1:], n], strict=True)):
        own = slice(int(first), int(last))
        if len(reachable(inner[own], true[own] - first, false[own] - first, t)) < last - first:
            raise ModelError(f"a node of tree {t} cannot be reached from the first: {_CORRUPT}")
    weights = _weights(attributes, kind, key, mode)
    return ComparedTrees(
        roots=starts.tolist(),
        mode=mode,
        feature=np.asarray(_column(attributes, "nodes_featureids", n), np.int64),
        true=true,
        false=false,
        threshold=np.asarray(_column(attributes, "nodes_values", n), np.float64),
        tracks_true=_flags(attributes, "nodes_missing_value_tracks_true", n, [0] * n),
        weights=weights,
    )


def _weights(
    attributes: Mapping[str, Any], kind: str, key: Mapping[tuple[int, int], int], mode: IntArray
) -> dict[int, dict[int, float]]:
    trees = _column(attributes, f"{kind}_treeids", None)
    rest = ("nodeids", "ids", "weights")
    columns = [trees, *(_column(attributes, f"{kind}_{name}", len(trees)) for name in rest)]
    weights: dict[int, dict[int, float]] = defaultdict(dict)
    for t, number, output, weight in zip(*columns, strict=True):
        v = key.get((int(t), int(number)), -1)
        if v < 0 or mode[v] != LEAF or int(output) in weights[v]:
            raise ModelError(f"a weight names no leaf, or a leaf has two weights of one output: {_CORRUPT}")
        weights[v][int(output)] = float(weight)
    return dict(weights)


def _mode_of(word: str) -> int:
    if word == "LEAF":
        return LEAF
    if word not in _MODES[:MEMBER]:
        raise UnsupportedModelError(f"trees test by {word!r}, which is not read: export with {', '.join(_MODES[:6])}")
    return _MODES.index(word)


def _inner_and_leaves(attributes: Mapping[str, Any]) -> ComparedTrees:
    """Version 5: inner nodes, then leaves behind them."""
    feature = np.asarray(_column(attributes, "nodes_featureids", None), np.int64)
    n = len(feature)
    mode = np.asarray(_column(attributes, "nodes_modes", n), np.int64)
    if ((mode < 0) | (mode >= len(_MODES))).any():
        raise UnsupportedModelError(f"trees test by a mode beyond {', '.join(_MODES)}: export them with one of these")
    output = np.asarray(_column(attributes, "leaf_targetids", None), np.int64)
    weight = np.asarray(_column(attributes, "leaf_weights", len(output)), np.float64)
    roots = np.asarray(_column(attributes, "tree_roots", None), np.int64)
    true, false = (_children(attributes, side, n, len(output)) for side in ("true", "false"))
    if not len(roots) or ((roots < 0) | (roots >= n)).any():
        raise ModelError(f"there are no trees, or a root is no node: {_CORRUPT}")
    is_inner = np.concatenate([np.ones(n, bool), np.zeros(len(output), bool)])
    # a tree of one leaf has a node with that leaf on both sides
    alone = (true == false) & (true >= n)
    mode = np.concatenate([np.where(alone, LEAF, mode), np.full(len(output), LEAF)])
    passed = np.zeros(n + len(output), np.int64)
    for t, root in enumerate(roots.tolist()):
        if root < n and alone[root]:
            passed[root] += 1
            continue
        passed[_reachable_nodes(root, is_inner, true, false, t)] += 1
    if passed.max() > 1 or (alone & ~np.isin(np.arange(n), roots)).any():
        raise ModelError(f"two trees share a node: {_CORRUPT}")
    weights = {n + k: {int(o): float(w)} for k, (o, w) in enumerate(zip(output, weight, strict=True))}
    weights |= {int(v): weights[int(true[v])] for v in roots[alone[roots]]}
    return ComparedTrees(
        roots=roots.tolist(),
        mode=mode,
        feature=np.concatenate([feature, np.zeros(len(output), np.int64)]),
        true=np.append(true, np.full(len(output), -1)),
        false=np.append(false, np.full(len(output), -1)),
        threshold=np.append(
            np.asarray(_column(attributes, "nodes_splits", n), np.float64), np.full(len(output), np.nan)
        ),
        tracks_true=np.append(
            _flags(attributes, "nodes_missing_value_tracks_true", n, [0] * n), np.zeros(len(output), np.int64)
        ),
        weights=weights,
        members=_members(attributes, mode),
    )


def _children(attributes: Mapping[str, Any], side: str, n: int, n_leaves: int) -> IntArray:
    """Children on one side, leaves behind the inner nodes."""
    child = np.asarray(_column(attributes, f"nodes_{side}nodeids", n), np.int64)
    leaf = _flags(attributes, f"nodes_{side}leafs", n) != 0
    if ((child < 0) | (child >= np.where(leaf, n_leaves, n))).any():
        raise ModelError(f"a child of a node does not exist: {_CORRUPT}")
    return np.where(leaf, n + child, child)


def _reachable_nodes(root: int, is_inner: Any, true: IntArray, false: IntArray, number: int) -> list[int]:
    """Nodes of a tree, each met once."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        v = waiting.pop()
        if v in seen:
            raise ModelError(f"a node of tree {number} has two parents: {_CORRUPT}")
        seen.add(v)
        if is_inner[v]:
            waiting += [int(true[v]), int(false[v])]
    return sorted(seen)


def _members(attributes: Mapping[str, Any], mode: IntArray) -> dict[int, tuple[float, ...]]:
    """Numbers of each BRANCH_MEMBER, which NaN divides from those of the next."""
    nodes = np.flatnonzero(mode == MEMBER).tolist()
    found = attributes.get("membership_values")
    if found is None:
        found = ()
    groups: list[list[float]] = [[]]
    for value in np.asarray(found, np.float64).tolist():
        if math.isnan(value):
            groups.append([])
        else:
            groups[-1].append(value)
    groups = [group for group in groups if group]
    if len(groups) != len(nodes):
        raise ModelError(f"there are {len(groups)} sets of {len(nodes)} nodes of BRANCH_MEMBER: {_CORRUPT}")
    return dict(zip(nodes, map(tuple, groups), strict=True))


def all_weights(trees: ComparedTrees) -> Sequence[float]:
    """Every weight of every leaf."""
    return [w for own in trees.weights.values() for w in own.values()]

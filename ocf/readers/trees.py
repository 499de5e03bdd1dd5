"""What the readers of boosted trees share: joining single trees to an ensemble, and fitting rows to a model.

A reader describes each tree in the library's own numbering and leaves the checks to `join`: children inside
the tree, no node with two parents, nodes that cannot be reached (pruned ones) dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import DataError, ModelError, UnsupportedModelError
from ocf.readers.base import Rows
from ocf.trees.ensemble import Decision, Ensemble, SplitKind

#: Who turns scores into an answer: the library's booster, or one of its estimators.
Role = Literal["booster", "classifier", "regressor"]
#: As in `ocf.trees.ensemble.Decision`.
Link = Literal["identity", "logistic", "softmax", "exp", "mean", "signed_square"]

#: Largest table of category sets or of leaf values, in entries. Past it the codes are hardly category codes.
_MAX_ENTRIES = 2**28
#: Most columns of a model. Each is described on its own; a damaged file may announce billions.
MAX_FEATURES = 100_000


@dataclass(frozen=True)
class Objective:
    """What an objective of training makes of the scores.

    Attributes
    ----------
    task : {"binary", "multiclass", "value"}
        Kind of the answer.
    link : Link
    slack : float
        As in `Decision`.
    """

    task: Literal["binary", "multiclass", "value"]
    link: Link = "identity"
    slack: float = 0.0


@dataclass(frozen=True)
class BoostedTree:
    """One tree in the library's numbering of its nodes; the root is node 0.

    Attributes
    ----------
    kind : (n_nodes,) uint8
        LEAF, AXIS or SUBSET.
    feature, left, right : (n_nodes,) int64
        Ignored at leaves.
    threshold : (n_nodes,) float64
        Largest float64 that goes left, at AXIS nodes.
    missing_left : (n_nodes,) bool
    value : (n_nodes,) float64
        Of leaves.
    subsets : mapping of int to int array
        Codes that go left, by SUBSET node.
    output : int
        Column of the scores that the tree adds to.
    weight : float
    """

    kind: NDArray[np.uint8]
    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    missing_left: BoolArray
    value: FloatArray
    subsets: Mapping[int, IntArray] = field(default_factory=dict)
    output: int = 0
    weight: float = 1.0


def join(
    trees: Sequence[BoostedTree],
    *,
    feature_names: tuple[str, ...],
    base_score: FloatArray,
    decision: Decision,
    precision: Literal["float32", "float64"],
) -> Ensemble:
    """Ensemble of `trees`, checked, without the nodes that no row can reach.

    Parameters
    ----------
    trees : sequence of BoostedTree
    feature_names : tuple of str
    base_score : (n_outputs,) float64
    decision : Decision
    precision : {"float32", "float64"}
        In which the library sums the scores.

    Raises
    ------
    ModelError
        There is no tree, or one is malformed; the message names it.
    UnsupportedModelError
        A category code is too large for a table of sets.
    """
    if not trees:
        raise ModelError("the model has no trees: fit it with at least one boosting round before reading it")
    kept = [reachable(tree.kind != SplitKind.LEAF, tree.left, tree.right, t) for t, tree in enumerate(trees)]
    offsets = np.concatenate([[0], np.cumsum([len(nodes) for nodes in kept])])
    kind = np.concatenate([tree.kind[nodes] for tree, nodes in zip(trees, kept, strict=True)])
    is_leaf = kind == SplitKind.LEAF

    def gather(name: str, where: BoolArray, other: Any) -> NDArray[Any]:
        values = np.concatenate([getattr(t, name)[nodes] for t, nodes in zip(trees, kept, strict=True)])
        return np.where(where, values, other)

    outputs = np.repeat([tree.output for tree in trees], np.diff(offsets))[is_leaf]
    leaf_values = _leaf_table(gather("value", is_leaf, 0.0)[is_leaf], outputs, len(base_score))
    set_index, sets = _set_table(trees, kept, offsets)
    return Ensemble(
        feature_names=feature_names,
        tree_offsets=offsets.astype(np.int64),
        kind=kind,
        feature=gather("feature", ~is_leaf, -1).astype(np.int32),
        threshold=gather("threshold", kind == SplitKind.AXIS, np.nan),
        left=_renumbered("left", trees, kept, offsets),
        right=_renumbered("right", trees, kept, offsets),
        leaf=np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32),
        leaf_values=leaf_values,
        tree_weights=np.array([tree.weight for tree in trees]),
        base_score=base_score,
        decision=decision,
        precision=precision,
        missing_left=gather("missing_left", ~is_leaf, False),
        set_index=set_index,
        sets=sets,
    )


def _leaf_table(values: FloatArray, outputs: IntArray, n_outputs: int) -> FloatArray:
    """Value of each leaf in the column of its tree's output, (n_leaves, n_outputs)."""
    if len(values) * n_outputs > _MAX_ENTRIES:
        raise UnsupportedModelError(
            f"{len(values)} leaves with {n_outputs} scores each are too many to tabulate: train on fewer classes or "
            "with fewer rounds"
        )
    table = np.zeros((len(values), n_outputs))
    table[np.arange(len(values)), outputs] = values
    return table


def _renumbered(
    side: str, trees: Sequence[BoostedTree], kept: Sequence[IntArray], offsets: IntArray
) -> NDArray[np.int32]:
    """Children on one side, counted over the kept nodes of all trees; -1 at leaves."""
    parts = [
        np.where(tree.kind[nodes] == SplitKind.LEAF, -1, start + np.searchsorted(nodes, getattr(tree, side)[nodes]))
        for tree, nodes, start in zip(trees, kept, offsets[:-1], strict=True)
    ]
    return np.concatenate(parts).astype(np.int32)


def reachable(inner: BoolArray, left: IntArray, right: IntArray, number: int) -> IntArray:
    """Nodes that a row can reach, in ascending order.

    Parameters
    ----------
    inner : (n_nodes,) bool
        Nodes that are no leaves; only their children count.
    left, right : (n_nodes,) int64
    number : int
        Of the tree, for the message.

    Raises
    ------
    ModelError
        A child lies outside the tree, or a node has two parents.
    """
    n = len(inner)
    seen = np.zeros(n, bool)
    level = np.zeros(1, np.int64)
    while len(level):
        if level.min() < 0 or level.max() >= n:
            raise ModelError(f"a child of a node lies outside tree {number}: the model is corrupt, save it again")
        if seen[level].any() or len(np.unique(level)) != len(level):
            raise ModelError(f"a node of tree {number} has two parents: the model is corrupt, save it again")
        seen[level] = True
        above = level[inner[level]]
        level = np.concatenate([left[above], right[above]])
    return np.flatnonzero(seen)


def _set_table(
    trees: Sequence[BoostedTree], kept: Sequence[IntArray], offsets: IntArray
) -> tuple[NDArray[np.int32], BoolArray]:
    """Row of the table of category sets for every node, and the table."""
    set_index = np.full(int(offsets[-1]), -1, np.int32)
    codes: list[IntArray] = []
    for number, (tree, nodes, start) in enumerate(zip(trees, kept, offsets, strict=False)):
        subset_nodes = nodes[tree.kind[nodes] == SplitKind.SUBSET]
        for node in subset_nodes:
            if int(node) not in tree.subsets or np.any(tree.subsets[int(node)] < 0):
                raise ModelError(f"node {node} of tree {number} has no valid category set: the model is corrupt")
            set_index[start + np.searchsorted(nodes, node)] = len(codes)
            codes.append(tree.subsets[int(node)])
    width = max((int(c.max()) + 1 for c in codes if len(c)), default=0)
    if len(codes) * width > _MAX_ENTRIES:
        raise UnsupportedModelError(
            f"category codes up to {width - 1} in {len(codes)} splits are too many to tabulate: number the "
            "categories 0, 1, 2, … and fit again"
        )
    sets = np.zeros((len(codes), width), bool)
    for row, members in zip(sets, codes, strict=True):
        row[members] = True
    return set_index, sets


def as_categories(
    rows: Rows, names: tuple[str, ...], categories: Mapping[int, tuple[Any, ...]], *, closed: bool = False
) -> Rows:
    """A table with its category columns in the categories of the training table; an array holds codes and stays.

    A value that is no category becomes missing, as LightGBM takes it.

    Parameters
    ----------
    rows : array (n, n_features) or DataFrame
        As `fit_columns` returns them.
    names : tuple of str
        The model's columns.
    categories : mapping of int to tuple
        As in `ocf.readers.base.TreeModel`.
    closed : bool
        Whether the library predicts no rows with other values, as XGBoost does not.

    Raises
    ------
    DataError
        `closed`, and there is another value.
    """
    if not categories or not isinstance(rows, pd.DataFrame):
        return rows
    columns = {}
    for j, levels in categories.items():
        codes = {level: code for code, level in enumerate(levels)}
        values = rows.iloc[:, j].astype(object)
        given = [codes.get(v, -1) for v in values]
        unknown = [v for v, code in zip(values, given, strict=True) if code < 0 and not pd.isna(v)] if closed else []
        if unknown:
            name = rows.columns[j]
            raise DataError(
                f"column {name!r} holds {unknown[0]!r}, with which the model was not fitted, so that it predicts no "
                f"such row: leave these rows out, and the level, by features={{{name!r}: {{'levels': [...]}}}}"
            )
        columns[rows.columns[j]] = pd.Series(
            pd.Categorical.from_codes(given, categories=pd.Index(list(levels))), rows.index
        )
    return rows.assign(**columns)


def category_text(value: Any) -> str:
    """Text under which libraries that know categories by their text know one.

    Raises
    ------
    UnsupportedModelError
        It is neither text nor a whole number.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return str(int(value))
    raise UnsupportedModelError(
        f"words and whole numbers are read as categories, not {value!r}: turn the column into text before fitting"
    )


def fit_columns(rows: Rows, names: tuple[str, ...], *, named: bool) -> Rows:
    """Rows with the columns that the model expects, in its order.

    Parameters
    ----------
    rows : array (n, n_features) or DataFrame
    names : tuple of str
        The model's columns.
    named : bool
        Whether the model was trained with column names; if not, a table with other names is taken by
        position.

    Raises
    ------
    DataError
        A column is missing, or the number of columns is wrong.
    """
    if not isinstance(rows, pd.DataFrame):
        rows = np.asarray(rows)
        if rows.ndim != 2 or rows.shape[1] != len(names):
            raise DataError(
                f"rows have shape {rows.shape}, the model takes (n, {len(names)}): give a column per feature"
            )
        return rows
    columns = [str(c) for c in rows.columns]
    if columns == list(names):
        return rows
    if len(set(columns)) == len(columns) and set(names) <= set(columns):
        return rows.iloc[:, [columns.index(name) for name in names]]
    if not named and len(columns) == len(names):
        return rows
    missing = [name for name in names if name not in columns]
    cause = f"lacks the columns {missing[:5]}" if missing else "has two columns of one name"
    raise DataError(f"the table {cause}: give the {len(names)} columns that the model was trained on")

"""Several ensembles as one, and apart again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import IntArray
from ocf.trees.copying import copied
from ocf.trees.ensemble import Ensemble


def join_trees(model: Ensemble, forest: Ensemble, columns: int = 0) -> Ensemble:
    """The trees of both, those of the model first; the depth is one more output.

    Parameters
    ----------
    model : Ensemble
    forest : Ensemble
        Isolation trees with one output.
    columns : int
        How many columns of its own the forest's splits are moved by: 0 when both test the same columns.
    """
    names = model.feature_names
    if columns:
        names += tuple(f"{n} of the isolation forest" for n in forest.feature_names)
    depth = np.zeros((forest.n_leaves, model.n_outputs + 1))
    depth[:, -1] = forest.contributions[:, 0]
    return append_trees(
        replace(
            model,
            feature_names=names,
            leaf_values=np.pad(model.leaf_values, ((0, 0), (0, 1))),
            base_score=np.append(model.base_score, 0.0),
        ),
        replace(
            forest,
            feature_names=names,
            feature=np.where(forest.feature >= 0, forest.feature + columns, -1).astype(np.int32),
            oblique_indices=(forest.oblique_indices + columns).astype(np.int32),
            leaf_values=depth,
            tree_weights=np.ones(forest.n_trees),
            base_score=np.zeros(model.n_outputs + 1),
        ),
    )


def append_trees(first: Ensemble, second: Ensemble) -> Ensemble:
    """The trees of both, those of `first` ahead; columns, base score and decision are those of `first`.

    Parameters
    ----------
    first : Ensemble
    second : Ensemble
        Over the same columns, with as many scores per row. NaN has a rule where both give it one.
    """
    width = max(first.sets.shape[1], second.sets.shape[1])

    def behind(name: str, shift: int) -> NDArray[np.int32]:
        """Two arrays of places, the second moved behind the first; -1 stands for none."""
        places = getattr(second, name)
        return np.concatenate([getattr(first, name), np.where(places >= 0, places + shift, -1)]).astype(np.int32)

    missing = None
    if first.missing_left is not None and second.missing_left is not None:
        missing = np.concatenate([first.missing_left, second.missing_left])
    plain = ("kind", "feature", "threshold", "tree_weights")
    oblique = ("oblique_indices", "oblique_data", "oblique_codes", "oblique_slack")
    joined: dict[str, Any] = {n: np.concatenate([getattr(first, n), getattr(second, n)]) for n in (*plain, *oblique)}
    return replace(
        first,
        tree_offsets=np.concatenate([first.tree_offsets, second.tree_offsets[1:] + len(first.kind)]),
        left=behind("left", len(first.kind)),
        right=behind("right", len(first.kind)),
        leaf=behind("leaf", first.n_leaves),
        leaf_values=np.vstack([first.leaf_values, second.leaf_values]),
        missing_left=missing,
        set_index=behind("set_index", len(first.sets)),
        sets=np.vstack([np.pad(s, ((0, 0), (0, width - s.shape[1]))) for s in (first.sets, second.sets)]),
        oblique_index=behind("oblique_index", len(first.oblique_indptr) - 1),
        oblique_indptr=np.concatenate([first.oblique_indptr, second.oblique_indptr[1:] + first.oblique_indptr[-1]]),
        lines=np.concatenate([first.lines, np.add(second.lines, (first.n_trees, 0))]),
        **joined,
    )


def chosen_trees(ensemble: Ensemble, trees: IntArray) -> Ensemble:
    """Some trees of an ensemble, in the order in which they are named.

    Parameters
    ----------
    ensemble : Ensemble
        Without oblique splits.
    trees : (n,) int64
    """
    offsets = ensemble.tree_offsets
    nodes = np.concatenate([np.arange(offsets[t], offsets[t + 1]) for t in trees])
    place = np.full(len(ensemble.kind), -1, np.int32)
    place[nodes] = np.arange(len(nodes))
    sides = (ensemble.left[nodes], ensemble.right[nodes])
    left, right = (np.where(child >= 0, place[child], -1).astype(np.int32) for child in sides)
    starts = np.append(0, np.cumsum(offsets[trees + 1] - offsets[trees]))
    return copied(ensemble, nodes, starts, left, right, tree_weights=ensemble.tree_weights[trees])


def split_trees(joint: Ensemble, like: Ensemble) -> tuple[Ensemble, Ensemble]:
    """What `join_trees` joined: the first trees, with the decision of `like`, and the isolation trees behind them.

    Parameters
    ----------
    joint : Ensemble
        Trees of `like`, then isolation trees.
    like : Ensemble
    """
    nodes, leaves = int(joint.tree_offsets[like.n_trees]), int(joint.leaf_offsets[like.n_trees])
    parts = []
    for first, last in ((0, nodes), (nodes, len(joint.kind))):
        span = slice(first, last)
        parts.append(
            {
                name: getattr(joint, name)[span]
                for name in ("kind", "feature", "threshold", "set_index", "oblique_index")
            }
            | {
                name: np.where(getattr(joint, name)[span] >= 0, getattr(joint, name)[span] - shift, -1).astype(np.int32)
                for name, shift in (("left", first), ("right", first), ("leaf", leaves if first else 0))
            }
            | {"missing_left": None if joint.missing_left is None else joint.missing_left[span]}
        )
    model = replace(
        joint,
        tree_offsets=joint.tree_offsets[: like.n_trees + 1],
        leaf_values=joint.leaf_values[:leaves, :-1],
        tree_weights=like.tree_weights,
        base_score=like.base_score,
        **parts[0],
    )
    forest = replace(
        joint,
        tree_offsets=joint.tree_offsets[like.n_trees :] - nodes,
        leaf_values=joint.leaf_values[leaves:, -1:],
        tree_weights=joint.tree_weights[like.n_trees :],
        base_score=np.zeros(1),
        decision=replace(joint.decision, kind="value", classes=(), link="identity", threshold=0.0, slack=0.0),
        precision="float64",
        lines=np.zeros((0, 2), np.int64),
        **parts[1],
    )
    return model, forest

"""Several ensembles as one, and apart again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

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
    nodes, leaves, sets = len(model.kind), model.n_leaves, len(model.sets)
    inner = forest.feature >= 0
    width = max(model.sets.shape[1], forest.sets.shape[1])

    def behind(name: str, shift: int) -> NDArray[np.int32]:
        """Two arrays of places, the second moved behind the first; -1 stands for none."""
        second = getattr(forest, name)
        return np.concatenate([getattr(model, name), np.where(second >= 0, second + shift, -1)]).astype(np.int32)

    missing = None
    if model.missing_left is not None and forest.missing_left is not None:
        missing = np.concatenate([model.missing_left, forest.missing_left])
    depth = np.zeros((forest.n_leaves, model.n_outputs + 1))
    depth[:, -1] = forest.contributions[:, 0]
    return replace(
        model,
        feature_names=model.feature_names
        + (tuple(f"{n} of the isolation forest" for n in forest.feature_names) if columns else ()),
        tree_offsets=np.concatenate([model.tree_offsets, forest.tree_offsets[1:] + nodes]),
        kind=np.concatenate([model.kind, forest.kind]),
        feature=np.concatenate([model.feature, np.where(inner, forest.feature + columns, -1)]).astype(np.int32),
        threshold=np.concatenate([model.threshold, forest.threshold]),
        left=behind("left", nodes),
        right=behind("right", nodes),
        leaf=behind("leaf", leaves),
        leaf_values=np.vstack([np.pad(model.leaf_values, ((0, 0), (0, 1))), depth]),
        tree_weights=np.concatenate([model.tree_weights, np.ones(forest.n_trees)]),
        base_score=np.append(model.base_score, 0.0),
        missing_left=missing,
        set_index=behind("set_index", sets),
        sets=np.vstack([np.pad(s, ((0, 0), (0, width - s.shape[1]))) for s in (model.sets, forest.sets)]),
        oblique_index=behind("oblique_index", len(model.oblique_indptr) - 1),
        oblique_indptr=np.concatenate([model.oblique_indptr, forest.oblique_indptr[1:] + model.oblique_indptr[-1]]),
        oblique_indices=np.concatenate([model.oblique_indices, forest.oblique_indices + columns]).astype(np.int32),
        oblique_data=np.concatenate([model.oblique_data, forest.oblique_data]),
        oblique_codes=np.concatenate([model.oblique_codes, forest.oblique_codes]),
        oblique_slack=np.concatenate([model.oblique_slack, forest.oblique_slack]),
    )


def split_trees(joint: Ensemble, like: Ensemble) -> tuple[Ensemble, Ensemble]:
    """What `join_trees` joined: the first trees, with the decision of `like`, and the isolation trees behind them."""
    nodes, leaves = len(like.kind), like.n_leaves
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
        tree_offsets=like.tree_offsets,
        leaf_values=like.leaf_values,
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
        **parts[1],
    )
    return model, forest

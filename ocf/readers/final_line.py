"""What a linear final model of a stack adds up of the table itself, with ``passthrough=True``: a line.

scikit-learn puts the columns of the table behind what the members show (``sklearn/ensemble/_stacking.py``,
``_concatenate_predictions``), and the final model multiplies all of them by its coefficients in one product. The part
of the table is one more score, of a tree of a single oblique split (`Ensemble.lines`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ocf.arrays import FloatArray
from ocf.errors import UnsupportedModelError
from ocf.readers.base import Rows, TreeModel
from ocf.readers.members import Members
from ocf.readers.sklearn_common import RowLayout
from ocf.trees.ensemble import Decision, Ensemble, SplitKind


def beside_line(model: Any, members: Members, weights: FloatArray) -> Members:
    """The members of a stack, and behind them what its final model adds of the table.

    Parameters
    ----------
    model : estimator
        StackingClassifier or StackingRegressor.
    members : Members
    weights : (n_scores, n_columns) float64
        Of the columns of the table.

    Raises
    ------
    UnsupportedModelError
        There are several scores, or the final model computes in float32.
    """
    if len(weights) > 1:
        raise UnsupportedModelError(
            f"this {type(model).__name__} of {len(weights)} classes adds numbers of the table to a score of each, "
            "which is read for two classes alone: fit it with passthrough=False, or with trees as final_estimator"
        )
    if weights.dtype != np.float64:
        raise UnsupportedModelError(
            f"the final model of this {type(model).__name__} adds up numbers of the table in {weights.dtype}: fit it "
            "on float64"
        )
    names = next((getattr(o, "feature_names_in_", None) for o in (model, *(m.native for m in members.models))), None)
    like = members.models[0]
    layout = RowLayout(like.ensemble.n_features, None if names is None else tuple(map(str, names)))
    line = TreeModel(
        ensemble=_line(weights[0], like.ensemble.feature_names),
        native=model,
        scores=partial(_summed, layout, weights[0]),
        decide=like.decide,
        library=like.library,
    )
    return Members((*members.models, line))


def _summed(layout: RowLayout, weights: FloatArray, rows: Rows) -> FloatArray:
    return (np.asarray(layout.arrange(rows), np.float64) @ weights).reshape(-1, 1)


def _line(weights: FloatArray, names: tuple[str, ...]) -> Ensemble:
    """The tree of a line through 0."""
    used = np.flatnonzero(weights)
    return Ensemble(
        feature_names=names,
        tree_offsets=np.array([0, 3]),
        kind=np.array([SplitKind.OBLIQUE, SplitKind.LEAF, SplitKind.LEAF], np.uint8),
        feature=np.full(3, -1, np.int32),
        threshold=np.array([0.0, np.nan, np.nan]),
        left=np.array([1, -1, -1], np.int32),
        right=np.array([2, -1, -1], np.int32),
        leaf=np.array([-1, 0, 1], np.int32),
        leaf_values=np.zeros((2, 1)),
        tree_weights=np.ones(1),
        base_score=np.zeros(1),
        decision=Decision("value"),
        oblique_index=np.array([0, -1, -1], np.int32),
        oblique_indptr=np.array([0, len(used)]),
        oblique_indices=used.astype(np.int32),
        oblique_data=weights[used],
        lines=np.zeros((1, 2), np.int64),
    )

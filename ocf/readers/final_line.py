"""What a linear final model of a stack adds up of the table itself, with ``passthrough=True``: a line.

scikit-learn puts the columns of the table behind what the members show (``sklearn/ensemble/_stacking.py``,
``_concatenate_predictions``), and the final model multiplies all of them by its coefficients in one product. The part
of the table is one more score, of a tree of a single oblique split (`Ensemble.lines`), for each score of the final
model.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ocf.arrays import FloatArray
from ocf.errors import UnsupportedModelError
from ocf.readers.base import Rows, TreeModel
from ocf.readers.members import Members
from ocf.readers.sklearn_common import RowLayout, known_names
from ocf.trees.ensemble import Decision, Ensemble, SplitKind


def beside_line(model: Any, members: Members, weights: FloatArray) -> tuple[Members, dict[int, int]]:
    """The members of a stack and, behind them, what its final model adds of the table; and which score each line is.

    Parameters
    ----------
    model : estimator
        StackingClassifier or StackingRegressor.
    members : Members
    weights : (n_scores, n_columns) float64
        Of the columns of the table in each score of the final model.

    Returns
    -------
    members : Members
    dict of int to int
        Score of the final model to the score of the members that is its line, where it has one.

    Raises
    ------
    UnsupportedModelError
        The final model computes in float32.
    """
    if weights.dtype != np.float64:
        raise UnsupportedModelError(
            f"the final model of this {type(model).__name__} adds up numbers of the table in {weights.dtype}: fit it "
            "on float64"
        )
    names = known_names([model, *(m.native for m in members.models)])
    like = members.models[0]
    layout = RowLayout(like.ensemble.n_features, names)
    used = np.flatnonzero(weights.any(axis=1))
    lines = TreeModel(
        ensemble=_lines(weights[used], like.ensemble.feature_names),
        native=model,
        scores=partial(_summed, layout, weights[used]),
        decide=like.decide,
        library=like.library,
    )
    first = members.starts[-1]
    return Members((*members.models, lines)), {k: first + n for n, k in enumerate(used.tolist())}


def _summed(layout: RowLayout, weights: FloatArray, rows: Rows) -> FloatArray:
    return np.asarray(np.asarray(layout.arrange(rows), np.float64) @ weights.T)


def _lines(weights: FloatArray, names: tuple[str, ...]) -> Ensemble:
    """The trees of lines through 0, one a score."""
    n = len(weights)
    at, used = np.nonzero(weights)
    root = 3 * np.arange(n)
    none = np.full((n, 1), -1)
    return Ensemble(
        feature_names=names,
        tree_offsets=3 * np.arange(n + 1),
        kind=np.tile(np.array([SplitKind.OBLIQUE, SplitKind.LEAF, SplitKind.LEAF], np.uint8), n),
        feature=np.full(3 * n, -1, np.int32),
        threshold=np.tile([0.0, np.nan, np.nan], n),
        left=np.column_stack([root + 1, none, none]).ravel().astype(np.int32),
        right=np.column_stack([root + 2, none, none]).ravel().astype(np.int32),
        leaf=np.column_stack([none, 2 * np.arange(n), 2 * np.arange(n) + 1]).ravel().astype(np.int32),
        leaf_values=np.zeros((2 * n, n)),
        tree_weights=np.ones(n),
        base_score=np.zeros(n),
        decision=Decision("value"),
        oblique_index=np.column_stack([np.arange(n), none, none]).ravel().astype(np.int32),
        oblique_indptr=np.append(0, np.cumsum(np.bincount(at, minlength=n))),
        oblique_indices=used.astype(np.int32),
        oblique_data=weights[at, used],
        lines=np.column_stack([np.arange(n), np.arange(n)]),
    )

"""Reader of oblique trees: `TAOClassifier(CV)` and `TAORegressor`, Bagging of them, and plain arrays (`ObliqueTree`).

How they compare: a row goes left exactly when its float64 dot product with the weights is at most the threshold. A
dot product of many terms rounds, in an order that libraries choose; `Ensemble.oblique_error_bound` bounds what that can
matter. A split on a single column of weight 1 does not round and is read as an axis-aligned one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import FloatArray, IntArray
from ocf.errors import UnsupportedModelError
from ocf.readers.base import TreeModel
from ocf.support.version import VERSION
from ocf.trees.ensemble import Decision, Ensemble, SplitKind

_MODULES = ("ocf.oblique.tree", "ocf.oblique.tao", "ocf.oblique.path")


def matches(model: object) -> bool:
    """Whether the object is an oblique tree of ocf, or scikit-learn's Bagging of such trees."""
    return _is_oblique(model) or (
        any(cls.__name__.startswith("Bagging") and cls.__module__.startswith("sklearn.") for cls in type(model).__mro__)
        and any(map(_is_oblique, getattr(model, "estimators_", [getattr(model, "estimator", None)])))
    )


def _is_oblique(model: object) -> bool:
    return any(cls.__module__ in _MODULES for cls in type(model).__mro__)


def read(model: Any) -> TreeModel:
    """Ensemble of an oblique tree, or of bagged ones.

    Parameters
    ----------
    model : ObliqueTree, TAOClassifier, TAOClassifierCV, TAORegressor, BaggingClassifier or BaggingRegressor

    Returns
    -------
    TreeModel

    Raises
    ------
    ModelError
        If the model is not fitted or knows a single class.
    UnsupportedModelError
        A bag holds trees of different kinds.
    """
    from ocf.oblique.tree import ObliqueTree

    if isinstance(model, ObliqueTree):
        return _read_arrays(model)
    from ocf.readers.sklearn_common import (
        RowLayout,
        check_fitted,
        class_labels,
        decide_rows,
        probability_rows,
        score_rows,
    )

    check_fitted(model)
    trees, columns = [model], [np.arange(model.n_features_in_)]
    if not _is_oblique(model):
        trees, columns = model.estimators_, [np.asarray(c) for c in model.estimators_features_]
        if not all(map(_is_oblique, trees)):
            raise UnsupportedModelError(f"{type(model).__name__} holds trees of different kinds: bag one kind")
    layout = RowLayout.of(model)
    if hasattr(model, "classes_"):
        classes = class_labels(model)
        decision = Decision("argmax", classes, link="mean")
        values = [_class_shares(tree, len(classes), bagged=tree is not model) for tree in trees]
        native = model.predict_proba
    else:
        decision = Decision("value", link="mean")
        values = [tree.tree_.value for tree in trees]
        native = model.predict
    parts = [(tree.tree_, value, column) for tree, value, column in zip(trees, values, columns, strict=True)]
    return TreeModel(
        ensemble=stack(parts, layout.feature_names, decision),
        native=model,
        scores=partial(score_rows, native, layout),
        decide=partial(decide_rows, model, layout),
        library=f"ocf {VERSION}",
        probabilities=partial(probability_rows, model, layout) if hasattr(model, "classes_") else None,
    )


def _read_arrays(tree: Any) -> TreeModel:
    decision = Decision("argmax", tree.classes) if tree.classes else Decision("value")

    def decide(rows: Any) -> NDArray[Any]:
        scores = tree.scores(rows)
        return scores.argmax(axis=1) if tree.classes else np.asarray(scores[:, 0])

    ensemble = stack([(tree, tree.value, np.arange(tree.n_features))], tree.feature_names, decision)
    return TreeModel(ensemble, tree, tree.scores, decide, f"ocf {VERSION}")


def _class_shares(tree: Any, n_classes: int, *, bagged: bool) -> FloatArray:
    """Class shares of all nodes; a bagged tree knows only the classes that it met, by their indices."""
    if not bagged:
        return np.asarray(tree.tree_.value)
    out = np.zeros((len(tree.tree_.value), n_classes))
    out[:, np.asarray(tree.classes_, np.int64)] = tree.tree_.value
    return out


def stack(
    trees: Sequence[tuple[Any, FloatArray, IntArray]], feature_names: tuple[str, ...], decision: Decision
) -> Ensemble:
    """Ensemble that averages trees.

    Parameters
    ----------
    trees : sequence of (ObliqueTree, (n_nodes, n_outputs) values, columns of the ensemble that it sees)
    feature_names : tuple of str
    decision : Decision
    """
    offsets = np.cumsum([0, *(len(tree.threshold) for tree, _, _ in trees)])
    left, right = (
        np.concatenate(
            [np.where(getattr(t, s) < 0, -1, getattr(t, s) + o) for (t, _, _), o in zip(trees, offsets, strict=False)]
        )
        for s in ("left", "right")
    )
    leaf = left < 0
    n = len(left)
    kind = np.where(leaf, SplitKind.LEAF, SplitKind.OBLIQUE).astype(np.uint8)
    feature = np.full(n, -1, np.int32)
    index = np.full(n, -1, np.int32)
    indptr, indices, data = [0], [], []
    for (tree, _, columns), offset in zip(trees, offsets, strict=False):
        for v in np.flatnonzero(tree.left >= 0).tolist():
            used = np.flatnonzero(tree.weights[v])
            if len(used) == 1 and tree.weights[v, used[0]] == 1.0:
                kind[offset + v], feature[offset + v] = SplitKind.AXIS, columns[used[0]]
                continue
            index[offset + v] = len(indptr) - 1
            indices.append(columns[used])
            data.append(tree.weights[v, used])
            indptr.append(indptr[-1] + len(used))
    values = np.concatenate([value for _, value, _ in trees])
    return Ensemble(
        feature_names=tuple(feature_names),
        tree_offsets=offsets.astype(np.int64),
        kind=kind,
        feature=feature,
        threshold=np.where(leaf, np.nan, np.concatenate([tree.threshold for tree, _, _ in trees])),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        leaf=np.where(leaf, np.cumsum(leaf) - 1, -1).astype(np.int32),
        leaf_values=np.asarray(values[leaf], np.float64),
        tree_weights=np.full(len(trees), 1 / len(trees)),
        base_score=np.zeros(values.shape[1]),
        decision=decision,
        oblique_index=index,
        oblique_indptr=np.array(indptr, np.int64),
        oblique_indices=np.concatenate([np.zeros(0, np.int32), *indices]).astype(np.int32),
        oblique_data=np.concatenate([np.zeros(0), *data]),
    )

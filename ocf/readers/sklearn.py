"""Exact reader of scikit-learn's trees, forests, bagging, gradient boosting and AdaBoost.

How scikit-learn compares and sums (source: ``sklearn/tree/tree_of.pyx`` and ``sklearn/ensemble``)

* A tree casts the row to float32 and sends it left when that value is at most the node's float64 threshold.
* A classification leaf holds class fractions. Forests and bagging add the fractions in float64 and divide by
  the number of trees; ``predict`` is the argmax, the lowest index on a tie.
* Gradient boosting adds ``learning_rate * leaf`` to a constant; a binary margin of exactly 0 is class 1.
* AdaBoost (SAMME) lets every tree vote with its weight; a binary margin of exactly 0 is class 0.
* Histogram gradient boosting compares in float64 and has a file of its own, ``sklearn_hist.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers.base import TreeModel, whole
from ocf.readers.float32 import float32_at_most
from ocf.readers.sklearn_checks import check_tree
from ocf.readers.sklearn_common import Tree, check_fitted, check_single_output, class_labels, tree_model
from ocf.trees.ensemble import Decision

_UNIT = 2.0**-53
_TREE_MODULES = ("sklearn.tree.", "sklearn.ensemble.")

#: Why a tree model of scikit-learn cannot be read, and what to use instead.
_REFUSED = {
    "AdaBoostRegressor": "it takes a weighted median, not a sum of trees: use GradientBoostingRegressor",
    "IsolationForest": "it scores outliers and takes no decision: pass it as the plausibility of a problem",
    "RandomTreesEmbedding": "it transforms rows and takes no decision: use a classifier or regressor",
}


def matches(model: object) -> bool:
    """Whether the object is one of scikit-learn's tree models or ensembles, or derives from one."""
    return any(cls.__module__.startswith(_TREE_MODULES) for cls in type(model).__mro__)


def read(model: Any) -> TreeModel:
    """Ensemble of a fitted scikit-learn tree model.

    Parameters
    ----------
    model : estimator
        DecisionTree, ExtraTree, RandomForest, ExtraTrees, Bagging of trees, GradientBoosting,
        HistGradientBoosting (classifier or regressor) or AdaBoostClassifier.

    Returns
    -------
    TreeModel

    Raises
    ------
    ModelError
        If the model is not fitted or knows a single class.
    UnsupportedModelError
        If the model is no sum of trees; the message says why and what to do.
    """
    for cls in type(model).__mro__:
        if not cls.__module__.startswith(_TREE_MODULES):
            continue
        if cls.__name__ in _REFUSED:
            raise UnsupportedModelError(f"{cls.__name__} cannot be read: {_REFUSED[cls.__name__]}")
        if cls.__name__ in _READERS:
            with whole(model):
                check_fitted(model)
                check_single_output(model)
                return _READERS[cls.__name__](model)
    raise UnsupportedModelError(
        f"scikit-learn's {type(model).__name__} is no sum of trees that ocf reads; it reads {', '.join(_READERS)}"
    )


def _read_tree(model: Any) -> TreeModel:
    return _averaged(model, [model], [None])


def _read_forest(model: Any) -> TreeModel:
    return _averaged(model, model.estimators_, [None] * len(model.estimators_))


def _read_bagging(model: Any) -> TreeModel:
    _check_base_trees(model, model.estimators_)
    return _averaged(model, model.estimators_, [np.asarray(c) for c in model.estimators_features_])


def read_output(model: Any, native: Any, output: int) -> TreeModel:
    """Ensemble of one output of a tree or forest that has several.

    Parameters
    ----------
    model : estimator
        Answers for that output alone.
    native : estimator
        The tree or forest itself.
    output : int
        Its number.

    Raises
    ------
    UnsupportedModelError
        The model is of another kind.
    """
    known = {name for name, reader in _READERS.items() if reader in (_read_tree, _read_forest)}
    if not any(c.__module__.startswith(_TREE_MODULES) and c.__name__ in known for c in type(native).__mro__):
        raise UnsupportedModelError(f"of the outputs of a {type(native).__name__} none is read: fit a model for each")
    check_fitted(native)
    return _averaged(model, model.estimators_, [None] * len(model.estimators_), output)


def _averaged(
    model: Any, estimators: Sequence[Any], columns: Sequence[NDArray[Any] | None], output: int = 0
) -> TreeModel:
    """Trees whose fractions (classifier) or values (regressor) are averaged; tree t sees `columns` t."""
    if hasattr(model, "classes_"):
        classes = class_labels(model)
        decision = Decision("argmax", classes, link="mean")
        values = [_fractions(tree, len(classes), output) for tree in estimators]
        score = model.predict_proba
    else:
        decision = Decision("value", link="mean")
        values = [tree.tree_.value[:, output, :] for tree in estimators]
        score = model.predict
    return tree_model(
        model,
        [tree_of(tree, v, c) for tree, v, c in zip(estimators, values, columns, strict=True)],
        weights=np.full(len(estimators), 1 / len(estimators)),
        base_score=np.zeros(values[0].shape[1]),
        decision=decision,
        native_scores=score,
    )


def _fractions(tree: Any, n_classes: int, output: int) -> FloatArray:
    """Class fractions of all nodes; a bagged tree may not have met all classes of the ensemble."""
    fractions: FloatArray = tree.tree_.value[:, output, :]
    if tree.tree_.n_outputs > 1:  # as wide as the output with most classes needs
        return fractions[:, :n_classes]
    if fractions.shape[1] == n_classes:
        return fractions
    spread = np.zeros((len(fractions), n_classes))
    spread[:, tree.classes_.astype(np.int64)] = fractions
    return spread


def _read_gradient_boosting(model: Any) -> TreeModel:
    check_constant_init(model)
    n_outputs = model.estimators_.shape[1]
    classes = class_labels(model) if hasattr(model, "classes_") else ()
    # the exponential loss shows expit(2 * margin); doubling is exact and makes the link the logistic one
    scale = 2.0 if classes and model.loss == "exponential" else 1.0
    if not classes:
        decision = Decision("value")
    elif n_outputs == 1:
        decision = Decision("threshold", classes, tie_is_positive=True, link="logistic")
    else:
        decision = Decision("argmax", classes, link="softmax")
    trees = [
        tree_of(tree, np.outer(tree.tree_.value[:, 0, 0], np.eye(n_outputs)[k]))
        for stage in model.estimators_
        for k, tree in enumerate(stage)
    ]
    start = model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))
    if start.shape != (1, n_outputs):  # the library adds to it without a look at its size
        raise ModelError(
            f"{type(model).__name__}.init_ gives {start.shape[-1]} scores, the trees {n_outputs}: fit it again"
        )
    score = model.decision_function if classes else model.predict
    read = tree_model(
        model,
        trees,
        weights=np.full(len(trees), scale * model.learning_rate),
        base_score=scale * start[0],
        decision=decision,
        native_scores=lambda rows: scale * score(rows),
    )
    return replace(read, margin_scale=1.0 / scale)


def check_constant_init(model: Any) -> None:
    """Refuse a gradient boosting whose start, the base score, is not the same for every row."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    init = model.init_
    constant = isinstance(init, DummyRegressor) or (isinstance(init, DummyClassifier) and init.strategy != "stratified")
    if not (constant or (isinstance(init, str) and init == "zero")):
        raise UnsupportedModelError(
            f"{type(model).__name__} starts from init={type(init).__name__}, whose prediction changes with the "
            "row: fit it with init=None or init='zero'"
        )


def _read_adaboost(model: Any) -> TreeModel:
    if getattr(model, "algorithm", "SAMME") == "SAMME.R":
        raise UnsupportedModelError(
            "AdaBoostClassifier with algorithm='SAMME.R' adds logarithms of probabilities: "
            "fit it with algorithm='SAMME'"
        )
    _check_base_trees(model, model.estimators_)
    classes = class_labels(model)
    if not all(np.array_equal(tree.classes_, model.classes_) for tree in model.estimators_):
        raise ModelError("a tree of this AdaBoostClassifier votes for other classes than the model has: it is corrupt")
    k = len(classes)
    # A tree votes +1 for its class and -1 / (k - 1) against the others; with two classes the library shows
    # the difference of the two columns. The scale is the one whose logistic or softmax gives predict_proba.
    against = -1.0 / (k - 1)
    votes = np.full((k, k), against) + (1 - against) * np.eye(k)
    scale = 1.0 if k == 2 else 1.0 / (k - 1)
    shares = model.estimator_weights_[: len(model.estimators_)] / model.estimator_weights_.sum()
    # dividing by the sum of the weights inherits that sum's rounding, one more unit for each tree
    slack = len(shares) * _UNIT * 2 * scale
    if k == 2:
        votes = np.array([[-2.0], [2.0]])
        decision = Decision("threshold", classes, link="logistic", slack=slack)
    else:
        decision = Decision("argmax", classes, link="softmax", slack=slack)
    winners = [np.argmax(tree.tree_.value[:, 0, :], axis=1) for tree in model.estimators_]
    return tree_model(
        model,
        [tree_of(tree, votes[winner]) for tree, winner in zip(model.estimators_, winners, strict=True)],
        weights=scale * shares,
        base_score=np.zeros(votes.shape[1]),
        decision=decision,
        native_scores=lambda rows: scale * model.decision_function(rows),
    )


def _check_base_trees(model: Any, estimators: Sequence[Any]) -> None:
    from sklearn.tree import BaseDecisionTree

    for estimator in estimators:
        if not isinstance(estimator, BaseDecisionTree):
            raise UnsupportedModelError(
                f"{type(model).__name__} is built on {type(estimator).__name__}: fit it with "
                "estimator=DecisionTreeClassifier(...) or DecisionTreeRegressor(...)"
            )
        check_single_output(estimator)


def tree_of(estimator: Any, values: FloatArray, columns: NDArray[Any] | None = None) -> Tree:
    """Take over a fitted tree with given node values; `columns` are the ensemble's that it was trained on.

    Parameters
    ----------
    estimator : decision tree
        Fitted.
    values : (n_nodes, n_outputs) float64
    columns : (n_features_of_the_tree,) int, optional
        Default: the tree saw all columns in their order.
    """
    tree = estimator.tree_
    try:  # scikit-learn follows the nodes without a look at their number
        check_tree((tree.n_features, tree.n_classes, tree.n_outputs), tree.__getstate__(), "tree_")
    except ModelError as cause:
        raise ModelError(f"{cause}: the model is corrupt, save or fit it again") from None
    inner = tree.children_left >= 0
    threshold = float32_at_most(tree.threshold)
    # a split of the missing from all the rest has the threshold infinity
    threshold[tree.threshold == np.inf] = np.inf
    return Tree(
        left=tree.children_left,
        right=tree.children_right,
        feature=tree.feature if columns is None else columns[np.where(inner, tree.feature, 0)],
        threshold=threshold,
        values=values,
        missing_left=tree.missing_go_to_left.astype(bool) & inner,
    )


def _read_hist(model: Any) -> TreeModel:
    from ocf.readers.sklearn_hist import read_hist

    return read_hist(model)


#: Class name -> reader, for every kind that can be read.
_READERS: dict[str, Callable[[Any], TreeModel]] = {
    "DecisionTreeClassifier": _read_tree,
    "DecisionTreeRegressor": _read_tree,
    "ExtraTreeClassifier": _read_tree,
    "ExtraTreeRegressor": _read_tree,
    "RandomForestClassifier": _read_forest,
    "RandomForestRegressor": _read_forest,
    "ExtraTreesClassifier": _read_forest,
    "ExtraTreesRegressor": _read_forest,
    "BaggingClassifier": _read_bagging,
    "BaggingRegressor": _read_bagging,
    "GradientBoostingClassifier": _read_gradient_boosting,
    "GradientBoostingRegressor": _read_gradient_boosting,
    "HistGradientBoostingClassifier": _read_hist,
    "HistGradientBoostingRegressor": _read_hist,
    "AdaBoostClassifier": _read_adaboost,
}

"""Exact reader of scikit-learn's histogram gradient boosting.

How it compares and sums (source: ``sklearn/ensemble/_hist_gradient_boosting/_predictor.pyx``)

* Numbers go left when ``x <= num_threshold`` in float64; the threshold is infinite where only NaN goes right.
* Category columns are first encoded by an OrdinalEncoder and moved in front of the numeric ones. An encoded
  category goes left when its bit is set. NaN and unknown categories go where missing values go.
* The leaf values, which already hold the learning rate, are added in float64 to a constant. A binary margin
  of exactly 0 is class 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers.base import TreeModel
from ocf.readers.sklearn_common import RowLayout, Tree, class_labels, tree_model
from ocf.trees.ensemble import Decision

#: Integer categories up to here are their own codes; any other category's code is its place in sorted order.
_LARGEST_OWN_CODE = 1023
#: expit of a margin this close to 0 may round to one half
_LINK_SLACK = 2.0**-50
_REGRESSION_LINKS = {
    "squared_error": "identity",
    "absolute_error": "identity",
    "quantile": "identity",
    "poisson": "exp",
    "gamma": "exp",
}


def read_hist(model: Any) -> TreeModel:
    """Ensemble of a fitted HistGradientBoostingClassifier or HistGradientBoostingRegressor."""
    n_outputs = model.n_trees_per_iteration_
    categories = _categories(model)
    _check_width(model, categories)
    codes = {column: _codes(values) for column, values in categories.items()}
    columns = _column_order(model)
    trees = [
        _tree(predictor, columns, codes, np.eye(n_outputs)[k])
        for stage in model._predictors
        for k, predictor in enumerate(stage)
    ]
    return tree_model(
        model,
        trees,
        weights=np.ones(len(trees)),
        base_score=np.ravel(model._baseline_prediction),
        decision=_decision(model),
        # a regressor has no public function for the value before the link
        native_scores=model.decision_function if hasattr(model, "classes_") else model._raw_predict,
        categories={j: values for j, values in categories.items() if not _own_codes(values)},
    )


def _check_width(model: Any, categories: dict[int, NDArray[Any]]) -> None:
    """Refuse an encoder that hands fewer columns to the trees than they test: the library does not count them."""
    row = RowLayout.of(model, categories).arrange(np.zeros((1, model.n_features_in_)))
    width = np.shape(model._preprocess_X(row, reset=False))
    if width != (1, model.n_features_in_):
        raise ModelError(
            f"the encoder of this {type(model).__name__} turns a row of {model.n_features_in_} columns into an array "
            f"of shape {width}: the model is corrupt, fit it again"
        )


def _decision(model: Any) -> Decision:
    if hasattr(model, "classes_"):
        classes = class_labels(model)
        if model.n_trees_per_iteration_ == 1:
            return Decision("threshold", classes, link="logistic", slack=_LINK_SLACK)
        return Decision("argmax", classes, link="softmax", slack=_LINK_SLACK)
    link = _REGRESSION_LINKS.get(model.loss) if isinstance(model.loss, str) else None
    if link == "identity":
        return Decision("value")
    if link == "exp":
        return Decision("value", link="exp", slack=_LINK_SLACK)
    raise UnsupportedModelError(
        f"HistGradientBoostingRegressor with loss={model.loss!r} has a link that ocf does not know: "
        f"use one of {', '.join(_REGRESSION_LINKS)}"
    )


def _categories(model: Any) -> dict[int, NDArray[Any]]:
    """Categories of each category column in the order of their encoding, without NaN."""
    if model.is_categorical_ is None:
        return {}
    encoder = model._preprocessor.named_transformers_["encoder"]
    known = [np.array([c for c in values.tolist() if c == c], values.dtype) for values in encoder.categories_]
    return dict(zip(np.flatnonzero(model.is_categorical_).tolist(), known, strict=True))


def _own_codes(values: NDArray[Any]) -> bool:
    """Whether the categories are small whole numbers, which serve as codes as they are."""
    if values.dtype.kind not in "iuf":
        return False
    return bool(np.all((values >= 0) & (values <= _LARGEST_OWN_CODE) & (values == np.floor(values))))


def _codes(values: NDArray[Any]) -> IntArray:
    """Code in the ensemble of each encoded category."""
    return values.astype(np.int64) if _own_codes(values) else np.arange(len(values))


def _column_order(model: Any) -> IntArray:
    """Find the user's column behind each column that the trees test."""
    if model.is_categorical_ is None:
        return np.arange(model.n_features_in_)
    return np.concatenate([np.flatnonzero(model.is_categorical_), np.flatnonzero(~model.is_categorical_)])


def _tree(predictor: Any, columns: IntArray, codes: dict[int, IntArray], output: FloatArray) -> Tree:
    nodes = predictor.nodes
    is_leaf = nodes["is_leaf"].astype(bool)
    is_set = nodes["is_categorical"].astype(bool) & ~is_leaf
    missing_left = nodes["missing_go_to_left"].astype(bool) & ~is_leaf
    feature = columns[np.where(is_leaf, 0, nodes["feature_idx"])]
    width = max((int(c.max(initial=-1)) + 1 for c in codes.values()), default=0)
    goes_left = np.tile(missing_left[:, None], (1, width))  # unknown categories are as if missing
    for node in np.flatnonzero(is_set):
        known = codes[int(feature[node])]
        goes_left[node, known] = _bits(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]], len(known))
    return Tree(
        left=np.where(is_leaf, -1, nodes["left"].astype(np.int64)),
        right=np.where(is_leaf, -1, nodes["right"].astype(np.int64)),
        feature=feature,
        threshold=nodes["num_threshold"].astype(np.float64),
        values=np.outer(nodes["value"], output),
        missing_left=missing_left,
        goes_left=goes_left,
        is_set=is_set,
    )


def _bits(words: NDArray[np.uint32], n: int) -> BoolArray:
    """Read the first n bits of a set stored in 32-bit words, lowest bit first."""
    places = np.arange(n)
    return (words[places // 32] >> (places % 32).astype(np.uint32) & 1).astype(bool)

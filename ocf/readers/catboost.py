"""Reader of CatBoost models: classifiers and regressors of numeric columns, with trees of every growing policy.

How CatBoost compares and sums

* A value is cast to float32 and goes right where it is greater than the border, itself a float32.
* In a symmetric tree all nodes of a level share one split; the leaf's number has bit k set where split k goes right.
* NaN goes right where the column's `nan_value_treatment` is ``AsTrue`` (nan_mode='Max'), and left otherwise.
* Leaf values are added in float64, multiplied by a scale, and a bias is added. Of two classes the second is given where
  its probability exceeds the threshold, of several the largest score wins.

The trees come from the library's own JSON; scores and decisions from the user's object.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers.base import Rows, TreeModel, whole
from ocf.readers.float32 import float32_at_most
from ocf.readers.sklearn_common import Tree, stack_trees
from ocf.readers.trees import fit_columns
from ocf.trees.ensemble import Decision
from ocf.trees.links import logit

#: Losses whose predictions are the scores themselves.
_VALUES = ("RMSE", "MAE", "Quantile", "MAPE", "Huber", "Expectile", "LogCosh", "Lq")

#: Width of the zone around a threshold in which the library's own sigmoid may decide.
_LINK_SLACK = 1e-12

_NUMBERS = "encode such columns before the model, for example by OneHotEncoder or TargetEncoder in a Pipeline"


def matches(model: object) -> bool:
    """Whether the object is a model of CatBoost, without importing the library."""
    return bool(_class_names(model))


def _class_names(model: object) -> set[str]:
    classes = type(model).__mro__
    return {c.__name__ for c in classes if c.__module__.split(".")[0] == "catboost"} - {"_CatBoostBase"}


def read(model: Any) -> TreeModel:
    """Ensemble of a fitted CatBoostClassifier or CatBoostRegressor.

    Parameters
    ----------
    model : CatBoostClassifier or CatBoostRegressor
        Never changed.

    Raises
    ------
    ModelError
        It is not fitted.
    UnsupportedModelError
        Columns of categories, text or embeddings, a loss without a class or value, or a ranker.
    """
    import catboost

    names = _class_names(model)
    if not names & {"CatBoostClassifier", "CatBoostRegressor"}:
        raise UnsupportedModelError(
            f"a {type(model).__name__} does not say what its scores mean: train a CatBoostClassifier or "
            "CatBoostRegressor"
        )
    if not model.is_fitted():
        raise ModelError(f"this {type(model).__name__} is not fitted: call its fit(X, y) first")
    with whole(model):
        document = _document(model)
        _check_columns(document)
        decision = _decision(model, document, "CatBoostClassifier" in names)
        scale, bias = document["scale_and_bias"]
        bias = np.atleast_1d(np.asarray(bias, np.float64))
        n_outputs = len(decision.classes) if decision.kind == "argmax" else 1
        trees = _trees(document, n_outputs, len(model.feature_names_))
        columns, named = _columns(tuple(map(str, model.feature_names_)))
        library = _CatBoost(model, columns, named, decision)
        return TreeModel(
            ensemble=stack_trees(
                trees,
                feature_names=columns,
                weights=np.full(len(trees), float(scale)),
                base_score=bias if len(bias) == n_outputs else np.resize(bias, n_outputs),
                decision=decision,
            ),
            native=model,
            scores=library.scores,
            decide=library.decide,
            library=f"catboost {catboost.__version__}",
            probabilities=library.probabilities if decision.classes else None,
        )


def _document(model: Any) -> dict[str, Any]:
    """The model as the library writes it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            model.save_model(str(path), format="json")
        except Exception as cause:
            # the library's own error: it writes no JSON of some kinds of columns
            raise UnsupportedModelError(f"CatBoost cannot write this model as JSON: {_NUMBERS}") from cause
        document: dict[str, Any] = json.loads(path.read_text())
    return document


def _check_columns(document: dict[str, Any]) -> None:
    for kind, found in document["features_info"].items():
        if kind != "float_features" and found:
            raise UnsupportedModelError(f"this CatBoost model has {kind.replace('_', ' ')}: {_NUMBERS}")


def _columns(names: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """Names of the columns, and whether the user gave them."""
    named = names != tuple(map(str, range(len(names))))
    return (names if named else tuple(f"x{j}" for j in range(len(names)))), named


def _decision(model: Any, document: dict[str, Any], classifier: bool) -> Decision:
    loss = document["model_info"]["params"]["loss_function"]["type"]
    if classifier:
        classes = tuple(np.asarray(model.classes_).tolist())
        if len(classes) < 2:
            raise ModelError(f"{type(model).__name__} was trained on a single class: train it on rows of two")
        if loss in ("Logloss", "CrossEntropy"):
            share = float(model.get_probability_threshold())
            if not 0 < share < 1:
                raise UnsupportedModelError(f"a probability threshold of {share} lets one class win everywhere")
            return Decision("threshold", classes, logit(share), link="logistic", slack=_LINK_SLACK)
        if loss in ("MultiClass", "MultiClassOneVsAll"):
            return Decision("argmax", classes, link="softmax" if loss == "MultiClass" else "logistic")
    elif loss in _VALUES:
        return Decision("value")
    known = ("Logloss", "CrossEntropy", "MultiClass", "MultiClassOneVsAll") if classifier else _VALUES
    raise UnsupportedModelError(f"CatBoost's loss {loss!r} is not read: train with one of {', '.join(known)}")


# -- trees ---------------------------------------------------------------------------------------------------------


def _trees(document: dict[str, Any], n_outputs: int, width: int) -> list[Tree]:
    columns = document["features_info"]["float_features"]
    place = {f["feature_index"]: f["flat_feature_index"] for f in columns}
    right = {f["feature_index"]: f["nan_value_treatment"] == "AsTrue" for f in columns}
    if not all(0 <= j < width for j in place.values()):
        raise ModelError("a column of this CatBoost model does not exist: save or fit it again")
    if "oblivious_trees" in document:
        nodes = [_symmetric(tree, n_outputs) for tree in document["oblivious_trees"]]
    else:
        nodes = [_free(tree, n_outputs) for tree in document["trees"]]
    return [_tree(own, place, right) for own in nodes]


@dataclass
class _Nodes:
    """Nodes of one tree: splits by node, children, and the values of leaves."""

    splits: list[dict[str, Any] | None]
    left: list[int]
    right: list[int]
    values: list[FloatArray]


def _symmetric(tree: dict[str, Any], n_outputs: int) -> _Nodes:
    """A complete tree; in level k the nodes stand in the order of the bits that are known."""
    splits = tree.get("splits") or []
    depth = len(splits)
    leaves = np.asarray(tree["leaf_values"], np.float64).reshape(2**depth, n_outputs)
    nodes = _Nodes([], [], [], [])
    for level in range(depth + 1):
        below = 2 ** (level + 1) - 1
        for place in range(2**level):
            inner = level < depth
            nodes.splits.append(splits[level] if inner else None)
            nodes.left.append(below + place if inner else -1)
            nodes.right.append(below + place + 2**level if inner else -1)
            nodes.values.append(np.zeros(n_outputs) if inner else leaves[place])
    return nodes


def _free(tree: dict[str, Any], n_outputs: int) -> _Nodes:
    """A tree of nested nodes."""
    nodes, waiting = _Nodes([], [], [], []), [(tree, -1, "left")]
    while waiting:
        node, parent, side = waiting.pop()
        number = len(nodes.splits)
        if parent >= 0:
            getattr(nodes, side)[parent] = number
        inner = "split" in node
        nodes.splits.append(node["split"] if inner else None)
        nodes.left.append(-1)
        nodes.right.append(-1)
        value = np.zeros(n_outputs) if inner else np.ravel(np.asarray(node["value"], np.float64))
        if value.shape != (n_outputs,):
            raise ModelError("a leaf of this CatBoost model has other values than its classes: save or fit it again")
        nodes.values.append(value)
        if inner:
            waiting += [(node["right"], number, "right"), (node["left"], number, "left")]
    return nodes


def _tree(nodes: _Nodes, place: dict[int, int], nan_right: dict[int, bool]) -> Tree:
    feature, border = np.zeros(len(nodes.splits), np.int64), np.zeros(len(nodes.splits))
    missing_left = np.zeros(len(nodes.splits), bool)
    for k, split in enumerate(nodes.splits):
        if split is None:
            continue
        if split["split_type"] != "FloatFeature":
            raise UnsupportedModelError(f"this CatBoost model has splits of kind {split['split_type']}: {_NUMBERS}")
        column = split["float_feature_index"]
        feature[k], border[k], missing_left[k] = place[column], split["border"], not nan_right[column]
    if not np.isfinite(border).all():
        raise ModelError("a border of this CatBoost model is not finite: save or fit it again")
    return Tree(
        left=np.array(nodes.left, np.int64),
        right=np.array(nodes.right, np.int64),
        feature=feature,
        threshold=float32_at_most(border.astype(np.float32).astype(np.float64)),
        values=np.array(nodes.values),
        missing_left=missing_left,
    )


# -- the user's own object -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CatBoost:
    """The user's own object, given rows in the form that it takes."""

    native: Any
    columns: tuple[str, ...]
    named: bool
    decision: Decision

    def _ask(self, rows: Rows, kind: str) -> NDArray[Any]:
        given = fit_columns(rows, self.columns, named=self.named)
        return np.asarray(self.native.predict(given, prediction_type=kind, thread_count=1))

    def scores(self, rows: Rows) -> FloatArray:
        return self._ask(rows, "RawFormulaVal").astype(np.float64).reshape(len(rows), -1)

    def decide(self, rows: Rows) -> NDArray[Any]:
        if not self.decision.classes:
            return self._ask(rows, "RawFormulaVal").astype(np.float64)
        # labels of booleans come back as words
        number = {str(label): k for k, label in enumerate(self.decision.classes)}
        return np.array([number[str(label)] for label in self._ask(rows, "Class").ravel().tolist()], np.int64)

    def probabilities(self, rows: Rows) -> FloatArray:
        return self._ask(rows, "Probability").astype(np.float64)

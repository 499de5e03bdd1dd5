"""Reader of treelite models: trees of any library behind one format, judged by treelite's own interpreter.

How treelite compares and decides (source: ``treelite/gtil.py`` and its document of a model, ``dump_as_json``)

* A model of float32 compares float32 numbers with float32 thresholds, one of float64 doubles. Where the test of a node
  holds, the row goes to the left child; NaN goes where the node says.
* Margins are the leaves added up, divided by their number where the model averages, and the base scores.
* The postprocessor makes of them what is shown. Treelite names no decision: of two classes the second is taken where
  more than one half is shown of it, of several the first of the largest. Classes have no labels but their numbers.
"""

from __future__ import annotations

import copyreg
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers.base import Rows, TreeModel, brief, whole
from ocf.readers.comparisons import EQ, GT, GTE, LEAF, LEQ, LT, ComparedTrees
from ocf.readers.sklearn_common import stack_trees
from ocf.readers.treelite_format import check_checkpoint
from ocf.readers.trees import MAX_FEATURES, fit_columns, reachable
from ocf.support.optional import optional
from ocf.trees.ensemble import Decision
from ocf.trees.totals import identity

_MODES = {"<=": LEQ, "<": LT, ">=": GTE, ">": GT, "==": EQ}

#: Links by the name of the postprocessor, for each kind of answer; a sigmoid may stretch its margin.
_VALUES: dict[str, Any] = {
    "identity": "identity",
    "exponential": "exp",
    "signed_square": "signed_square",
    "sigmoid": "logistic",
}
_CLASSES: dict[str, Any] = {"softmax": "softmax", "multiclass_ova": "logistic", "identity_multiclass": "identity"}

_CORRUPT = "the model is corrupt, make it again"


def matches(model: object) -> bool:
    """Whether the object is a model of treelite, without importing the library."""
    kind = type(model)
    return kind.__name__ == "Model" and kind.__module__.split(".")[0] == "treelite"


def sniff(data: bytes) -> bool:
    """Whether a file that begins with `data` looks like a checkpoint of treelite: its version, then types."""
    head = np.frombuffer(data[:12], "<i4") if len(data) > 13 else np.zeros(3, np.int32)
    major, minor, patch = head.tolist()
    return 3 <= major < 20 and 0 <= minor < 100 and 0 <= patch < 100 and data[12] in (1, 2, 3)


def load(path: Path) -> Any:
    """Model of a checkpoint, which treelite's own loader sees when every count in it has been checked.

    Returns
    -------
    treelite.Model

    Raises
    ------
    ModelError
        The file is damaged.
    UnsupportedModelError
        It is of another version than 4.
    MissingDependencyError
        Treelite is not installed.
    """
    data = Path(path).read_bytes()
    try:
        check_checkpoint(data)
    except ModelError as cause:
        raise type(cause)(f"{path}: {cause}") from cause
    treelite = optional("treelite", "treelite", f"the checkpoint {path}")
    try:
        return treelite.Model.deserialize_bytes(data)
    except treelite.TreeliteError as cause:
        raise ModelError(f"{path}: treelite cannot load it ({brief(cause)}): save the model again") from cause


def read(model: Any) -> TreeModel:
    """Ensemble of a treelite model.

    Parameters
    ----------
    model : treelite.Model
        Never changed.

    Raises
    ------
    ModelError
        The trees are malformed.
    UnsupportedModelError
        Several targets, category splits, an outlier or ranking model, or a postprocessor that is not read.
    """
    treelite = optional("treelite", "treelite", "a model of treelite")
    copyreg.pickle(type(model), _pickled)  # its models do not know how, and batches go to other processes
    with whole(model):
        document = json.loads(model.dump_as_json())
        if document["num_target"] != 1:
            raise UnsupportedModelError(
                f"the model predicts {document['num_target']} targets at once: make one model for each"
            )
        n_outputs, width = int(document["num_class"][0]), int(document["num_feature"])
        if not 1 <= n_outputs <= 10_000 or not 1 <= width <= MAX_FEATURES:
            raise ModelError(f"the model has {n_outputs} classes and {width} columns: {_CORRUPT}")
        decision, scale = _decision(document, n_outputs)
        narrow = document["threshold_type"] == "float32"
        trees = _trees(document, n_outputs, width).trees(n_outputs, narrow=narrow)
        share = 1 / len(trees) if document["average_tree_output"] else 1.0
        names = tuple(f"x{j}" for j in range(width))
        ensemble = stack_trees(
            trees,
            feature_names=names,
            weights=np.full(len(trees), scale * share),
            base_score=scale * np.asarray(document["base_scores"], np.float64),
            decision=decision,
        )
        library = _Gtil(model, names, decision, scale, np.dtype(np.float32 if narrow else np.float64))
        shows = decision.classes and decision.link != "identity"
        return TreeModel(
            ensemble=replace(ensemble, precision="float32") if narrow else ensemble,
            native=model,
            scores=library.scores,
            decide=library.decide,
            library=f"treelite {treelite.__version__}",
            probabilities=library.probabilities if shows else None,
        )


def _pickled(model: Any) -> tuple[Any, tuple[bytes]]:
    return type(model).deserialize_bytes, (bytes(model.serialize_bytes()),)


def _decision(document: dict[str, Any], n_outputs: int) -> tuple[Decision, float]:
    """What is made of margins, and by what they are stretched before."""
    task, post = document["task_type"], document["postprocessor"]
    alpha = float(document["sigmoid_alpha"]) if post in ("sigmoid", "multiclass_ova") else 1.0
    if not 0 < alpha < np.inf:
        raise ModelError(f"the sigmoid's factor is {alpha}: {_CORRUPT}")
    if task == "kRegressor" and n_outputs == 1 and post in _VALUES:
        return Decision("value", link=_VALUES[post]), alpha
    if task == "kBinaryClf" and n_outputs == 1 and post == "sigmoid":
        return Decision("threshold", (0, 1), link="logistic", slack=1e-12), alpha
    if task == "kMultiClf" and n_outputs > 1 and post in _CLASSES:
        classes = tuple(range(n_outputs))
        if post == "identity_multiclass" and document["average_tree_output"] and _not_negative(document):
            return Decision("argmax", classes, link="mean", totals=tuple(map(identity, classes))), alpha
        return Decision("argmax", classes, link=_CLASSES[post]), alpha
    known = ", ".join(["sigmoid of two classes", *_CLASSES, *_VALUES])
    raise UnsupportedModelError(
        f"treelite's {task} with the postprocessor {post!r} and {n_outputs} outputs is not read; ocf reads {known}"
    )


def _not_negative(document: dict[str, Any]) -> bool:
    leaves = [node["leaf_value"] for tree in document["trees"] for node in tree["nodes"] if "leaf_value" in node]
    return min(float(np.min(leaf)) for leaf in [*leaves, document["base_scores"]]) >= 0


def _trees(document: dict[str, Any], n_outputs: int, width: int) -> ComparedTrees:
    nodes: list[dict[str, Any]] = []
    roots, outputs = [], []
    classes = document["class_id"]
    if not document["trees"] or len(classes) != len(document["trees"]) or len(document["base_scores"]) != n_outputs:
        raise ModelError(f"trees, classes and base scores do not fit each other: {_CORRUPT}")
    for tree, output in zip(document["trees"], classes, strict=True):
        roots.append(len(nodes))
        outputs += [int(output)] * len(tree["nodes"])
        first = len(nodes)
        nodes += [_placed(node, number, first) for number, node in enumerate(tree["nodes"])]
    inner = np.array(["leaf_value" not in node for node in nodes])
    left, right = (np.array([node.get(side, -1) for node in nodes], np.int64) for side in ("left_child", "right_child"))
    for t, (first, last) in enumerate(zip(roots, [*roots[1:], len(nodes)], strict=True)):
        own = slice(first, last)
        reachable(inner[own], left[own] - first, right[own] - first, t)
    threshold = np.array([float(node.get("threshold", np.nan)) for node in nodes])
    feature = np.array([node.get("split_feature_id", 0) for node in nodes], np.int64)
    if np.isnan(threshold[inner]).any() or ((feature < 0) | (feature >= width)).any():
        raise ModelError(f"a threshold is no number, or a column does not exist: {_CORRUPT}")
    weights = {v: _weights(nodes[v], outputs[v], n_outputs) for v in np.flatnonzero(~inner).tolist()}
    return ComparedTrees(
        roots=roots,
        mode=np.array([_MODES[node["comparison_op"]] if i else LEAF for node, i in zip(nodes, inner, strict=True)]),
        feature=feature,
        true=left,
        false=right,
        threshold=threshold,
        tracks_true=np.array([bool(node.get("default_left")) for node in nodes], np.int64),
        weights=weights,
    )


def _placed(node: dict[str, Any], number: int, first: int) -> dict[str, Any]:
    """A node with its children counted over all trees."""
    if "leaf_value" in node:
        return node
    if node.get("node_type") != "numerical_test_node" or node.get("comparison_op") not in _MODES:
        raise UnsupportedModelError(
            f"a node tests by {node.get('node_type', 'nothing')!r}, which is not read: give ocf the model in its own "
            "library, or encode its category columns"
        )
    if node["node_id"] != number:
        raise ModelError(f"the nodes of a tree are not in order: {_CORRUPT}")
    # nodes of a tree are counted from its own root
    return node | {side: node[side] + first for side in ("left_child", "right_child")}


def _weights(leaf: dict[str, Any], output: int, n_outputs: int) -> dict[int, float]:
    value = leaf["leaf_value"]
    if isinstance(value, list):
        if len(value) != n_outputs or output != -1:
            raise UnsupportedModelError("a leaf has other values than the classes of the model: make it again")
        return dict(enumerate(map(float, value)))
    if not 0 <= output < n_outputs:
        raise ModelError(f"a tree speaks for class {output} of {n_outputs}: {_CORRUPT}")
    return {output: float(value)}


# -- the user's own object -----------------------------------------------------------------------------------------


@dataclass
class _Gtil:
    """The user's own model, run by treelite's interpreter on one thread."""

    native: Any
    columns: tuple[str, ...]
    decision: Decision
    scale: float
    dtype: np.dtype[Any]

    def _ask(self, rows: Rows, margin: bool) -> NDArray[Any]:
        gtil = optional("treelite.gtil", "treelite", "re-predicting with a model of treelite")
        given = np.asarray(fit_columns(rows, self.columns, named=False), self.dtype)
        found = gtil.predict(self.native, np.ascontiguousarray(given), nthread=1, pred_margin=margin)
        return np.asarray(found).reshape(len(given), -1)

    def scores(self, rows: Rows) -> FloatArray:
        """Margins, stretched as the sigmoid does."""
        return self.scale * self._ask(rows, margin=True).astype(np.float64)

    def decide(self, rows: Rows) -> NDArray[Any]:
        """Class indices, or values."""
        shown = self._ask(rows, margin=False)
        if self.decision.kind == "argmax":
            return shown.argmax(axis=1)
        return (shown[:, 0] > 0.5).astype(np.int64) if self.decision.classes else shown[:, 0].astype(np.float64)

    def probabilities(self, rows: Rows) -> FloatArray:
        """What is shown of each class."""
        shown = self._ask(rows, margin=False).astype(np.float64)
        return np.column_stack([1 - shown[:, 0], shown[:, 0]]) if self.decision.kind == "threshold" else shown

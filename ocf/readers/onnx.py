"""Reader of last resort: trees in ONNX files, whatever library they come from.

One operator of trees is read (`ocf.readers.onnx_trees`), and the nodes around it that change nothing or only names
(`ocf.readers.onnx_graph`); all others are refused by name. The file itself, run by onnxruntime on one thread, judges
every point.

How onnxruntime decides (checked against its answers, `tests/readers/test_onnx.py`)

* Scores are added up in float32; tensors of doubles are compared as doubles and added up as such.
* Of several classes the first of the largest scores wins, before any post_transform.
* Of two classes whose leaves name one class number, s is the sum: where no weight is negative the second class wins if
  ``s > 0.5`` and the probabilities are 1 - s and s; else it wins if ``s > 0``, the other one scores -s.
* Of two classes whose leaves name both, the second wins where its own score is positive.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.errors import DataError, ModelError, UnsupportedModelError
from ocf.readers.base import Rows, TreeModel, brief, whole
from ocf.readers.comparisons import ComparedTrees
from ocf.readers.members import COMPLEMENT
from ocf.readers.onnx_graph import OnnxGraph, graph_of
from ocf.readers.onnx_trees import all_weights, trees_of
from ocf.readers.sklearn_common import stack_trees
from ocf.readers.trees import fit_columns
from ocf.support.optional import optional
from ocf.trees.ensemble import Decision
from ocf.trees.totals import FLOAT32, Map, Term, Total, identity

_LOGISTIC = Map("logistic", unit=FLOAT32)


def matches(model: object) -> bool:
    """Whether the object is an ``onnx.ModelProto`` or a session of onnxruntime, without importing either."""
    kind = type(model)
    return (kind.__name__, kind.__module__.split(".")[0]) in (
        ("ModelProto", "onnx"),
        ("InferenceSession", "onnxruntime"),
    )


def sniff(data: bytes) -> bool:
    """Whether a file that begins with `data` looks like ONNX: a version, then the name of a producer or a graph."""
    return len(data) > 2 and data[0] == 0x08 and 1 <= data[1] < 0x40 and data[2] in (0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A)


def load(path: Path) -> Any:
    """Model of an ONNX file.

    Raises
    ------
    ModelError
        The file is damaged, or keeps tensors in other files.
    MissingDependencyError
        onnx is not installed.
    """
    onnx = optional("onnx", "onnx", f"the ONNX file {path}")
    try:
        model = onnx.load_model_from_string(Path(path).read_bytes())
    except Exception as cause:  # protobuf's own errors
        raise ModelError(f"{path} is no ONNX file, or damaged ({brief(cause)}): export the model again") from cause
    if not model.graph.node:
        raise ModelError(f"{path} holds no graph: it is damaged, export the model again")
    return model


def read(model: Any) -> TreeModel:
    """Ensemble of the trees in an ONNX model.

    Parameters
    ----------
    model : onnx.ModelProto
        Never changed.

    Raises
    ------
    ModelError
        The graph or the trees are malformed.
    UnsupportedModelError
        A node, mode, aggregate function or post_transform is not read, or the input is no tensor of floats.
    """
    if type(model).__name__ == "InferenceSession":
        raise UnsupportedModelError("a session of onnxruntime keeps no graph: give ocf onnx.load(path), or the path")
    runtime = optional("onnxruntime", "onnx", "re-predicting with an ONNX model")
    with whole(model):
        graph = graph_of(model)
        operator = graph.operator
        trees = trees_of(operator.attributes, operator.weights, operator.n_outputs, graph.width)
        width = graph.width or int(max(trees.feature.max(), 0)) + 1
        decision, outputs = _decision(graph, trees)
        share = 1 / len(trees.roots) if operator.aggregate == "AVERAGE" else 1.0
        base = np.asarray(operator.base or [0.0] * operator.n_outputs, np.float64)
        stacked = [
            replace(tree, values=tree.values[:, outputs])
            for tree in trees.trees(operator.n_outputs, narrow=graph.narrow)
        ]
        names = graph.column_names(width)
        ensemble = stack_trees(
            stacked,
            feature_names=names,
            weights=np.full(len(stacked), share),
            base_score=np.resize(base, operator.n_outputs)[outputs],
            decision=decision,
        )
        precise = operator.double and operator.weights == "leaf"
        native = _Runtime(graph, decision, names, tuple(outputs))
        return TreeModel(
            ensemble=ensemble if precise else replace(ensemble, precision="float32"),
            native=model,
            scores=native.scores,
            decide=native.decide,
            library=f"onnxruntime {runtime.__version__}",
            probabilities=native.probabilities if graph.shows and decision.link != "identity" else None,
        )


# -- decisions -----------------------------------------------------------------------------------------------------


def _decision(graph: OnnxGraph, trees: ComparedTrees) -> tuple[Decision, list[int]]:
    """What the graph makes of scores, and which scores count."""
    operator = graph.operator
    post, n = operator.post, operator.n_outputs
    if graph.classes is None:
        if n != 1:
            raise UnsupportedModelError(f"the model predicts {n} values at once: export one model per value")
        if post != "NONE":
            raise UnsupportedModelError(
                f"the post_transform {post} of a single value is not read (onnxruntime leaves it out): export with NONE"
            )
        return Decision("value"), [0]
    if len(graph.classes) < 2:
        raise ModelError("the model knows a single class, so no change leads to another decision")
    if operator.weights == "class" and n == 2:
        return _of_two(graph, trees)
    missing = set(range(n)) - trees.always
    if missing and operator.weights == "class" and not operator.base:
        raise UnsupportedModelError(
            f"some rows get no score for the classes {sorted(missing)}, which onnxruntime then leaves out of the "
            "comparison: export with a weight for each class in every leaf"
        )
    links = {"NONE": "mean", "LOGISTIC": "logistic", "SOFTMAX": "softmax"}
    if post not in links or (graph.by_argmax and post != "NONE"):
        raise UnsupportedModelError(f"the post_transform {post} is not read: export with NONE, LOGISTIC or SOFTMAX")
    everything = list(range(n))
    if post == "NONE":
        shares = tuple(map(identity, everything)) if _not_negative(trees, operator.base) else ()
        return Decision("argmax", graph.classes, link="mean" if shares else "identity", totals=shares), everything
    link: Any = links[post]
    return Decision("argmax", graph.classes, link=link), everything


def _not_negative(trees: ComparedTrees, base: list[float]) -> bool:
    return min([*all_weights(trees), *base], default=0.0) >= 0


def _of_two(graph: OnnxGraph, trees: ComparedTrees) -> tuple[Decision, list[int]]:
    """Two classes, as onnxruntime tells them apart by the class numbers that leaves name."""
    classes, operator = graph.classes or (), graph.operator
    post, base = operator.post, operator.base
    if trees.outputs == {0} and len(base) <= 1:
        positive = _not_negative(trees, [])
        threshold = 0.5 if positive else 0.0
        if post == "LOGISTIC":
            return Decision("threshold", classes, threshold, link="logistic"), [0]
        if positive and post in ("NONE", "SOFTMAX"):
            second = identity(0)
            first = Total((Term(0, (replace(COMPLEMENT, unit=FLOAT32),)),))
            return Decision("threshold", classes, threshold, link="mean", totals=(first, second), margin=second), [0]
        return Decision("threshold", classes, threshold), [0]
    if trees.outputs == {0, 1} and not base and trees.always == {0, 1}:
        margin = identity(1)
        if post == "LOGISTIC":
            shares = tuple(Total((Term(k, (_LOGISTIC,)),)) for k in range(2))
            return Decision("threshold", classes, link="mean", totals=shares, margin=margin), [0, 1]
        return Decision("threshold", classes, margin=margin), [0, 1]
    raise UnsupportedModelError(
        "the leaves of this classifier of two classes name the class numbers "
        f"{sorted(trees.outputs)}, with {len(base)} base values: onnxruntime reads that in a way of its own; export "
        "with weights for one class in all leaves, and one base value"
    )


# -- the user's own file -------------------------------------------------------------------------------------------


@dataclass
class _Runtime:
    """The user's own graph, and its operator of trees alone, run by onnxruntime."""

    graph: OnnxGraph
    decision: Decision
    columns: tuple[str, ...]
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        self._sessions: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_sessions": {}}  # sessions belong to a process

    def _session(self, which: str) -> Any:
        if which not in self._sessions:
            runtime = optional("onnxruntime", "onnx", "re-predicting with an ONNX model")
            settings = runtime.SessionOptions()
            settings.intra_op_num_threads = settings.inter_op_num_threads = 1
            settings.log_severity_level = 4
            data = self.graph.serialized if which == "graph" else self.graph.alone
            try:
                made = runtime.InferenceSession(data, settings, providers=["CPUExecutionProvider"])
            except Exception as cause:
                raise ModelError(
                    f"onnxruntime {runtime.__version__} does not take this model ({brief(cause)}): export it "
                    "again, for the versions at hand"
                ) from cause
            self._sessions[which] = made
        return self._sessions[which]

    def _numbers(self, rows: Rows) -> NDArray[Any]:
        given = fit_columns(rows, self.columns, named=self.graph.named)
        try:
            return np.asarray(given, self.graph.dtype)
        except (ValueError, TypeError) as cause:
            raise DataError(f"an ONNX model of numbers cannot take these rows ({brief(cause)})") from None

    def _ask(self, rows: Rows, output: str) -> Any:
        numbers = self._numbers(rows)
        return self._session("graph").run([output], self.graph.feed(numbers))[0]

    def scores(self, rows: Rows) -> FloatArray:
        """Scores of the operator alone, (n, n_outputs)."""
        graph = self.graph
        numbers = self._numbers(rows)
        if graph.narrow:
            numbers = numbers.astype(np.float32)
        numbers = numbers.astype(np.float64 if graph.operator.double else np.float32)
        found = np.asarray(self._session("alone").run(None, {"x": numbers})[-1], np.float64).reshape(len(numbers), -1)
        # of two classes with one score the runtime shows that of the other class as well, first
        return found[:, [-1]] if self.outputs == (0,) else found[:, list(self.outputs)]

    def decide(self, rows: Rows) -> NDArray[Any]:
        """Class indices, or values, by the user's file."""
        found = np.ravel(np.asarray(self._ask(rows, self.graph.answer)))
        if not self.decision.classes:
            return found.astype(np.float64)
        number = {label: k for k, label in enumerate(self.decision.classes)}
        return np.array([number[label] for label in found.tolist()], np.int64)

    def probabilities(self, rows: Rows) -> FloatArray:
        """Probabilities by the user's file, one column per class."""
        found = self._ask(rows, self.graph.shows)
        if isinstance(found, list):  # of dicts: what ZipMap makes
            return np.array([list(row.values()) for row in found], np.float64)
        return np.asarray(found, np.float64)

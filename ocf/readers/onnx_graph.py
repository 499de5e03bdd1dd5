"""The graph around the trees of an ONNX model: what goes into them, and what becomes of their scores.

Before the trees a graph may copy, cast and join its inputs (Identity, Cast, Concat). Behind them it may copy, cast and
reshape labels and scores, name the scores (ZipMap), and take the place of the largest score (ArgMax) and the label of
that place (LabelEncoder, ArrayFeatureExtractor). Every other node is refused by its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.errors import ModelError, UnsupportedModelError
from ocf.support.optional import optional

#: Operators of trees, and how the attributes of their weights begin.
_TREES = {"TreeEnsembleClassifier": "class", "TreeEnsembleRegressor": "target", "TreeEnsemble": "leaf"}
#: Newest version of the domain ai.onnx.ml whose operators are known.
_NEWEST = 5

_DOMAIN = "ai.onnx.ml"
#: Numbers of version 5.
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_POSTS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
#: Element types of tensors.
_FLOAT, _INT32, _INT64, _STRING, _DOUBLE = 1, 6, 7, 8, 11

_CORRUPT = "the model is corrupt, export it again"


@dataclass(frozen=True)
class Operator:
    """The operator of trees.

    Attributes
    ----------
    node : onnx.NodeProto
    attributes : mapping of str to object
    weights : {"class", "target", "leaf"}
    n_outputs : int
    labels : tuple or None
        Of a classifier.
    base : list of float
    aggregate, post : str
    double : bool
        Whether it compares doubles.
    """

    node: Any
    attributes: Mapping[str, Any]
    weights: str
    n_outputs: int
    labels: tuple[Any, ...] | None
    base: list[float]
    aggregate: str
    post: str
    double: bool


@dataclass(frozen=True)
class OnnxGraph:
    """A graph of one operator of trees.

    Attributes
    ----------
    model : onnx.ModelProto
    operator : Operator
    inputs : tuple of (name, width or None)
        Side by side, in the order in which the trees see them.
    dtype : dtype
        Of the inputs.
    narrow : bool
        Whether values are rounded to float32 before they are compared.
    answer : str
        The output with labels or values.
    shows : str
        The output with probabilities; empty without such.
    classes : tuple or None
        Labels in the order of the scores.
    by_argmax : bool
        Whether the label is the place of the largest score behind the operator.
    """

    model: Any
    operator: Operator
    inputs: tuple[tuple[str, int | None], ...]
    dtype: np.dtype[Any]
    narrow: bool
    answer: str
    shows: str
    classes: tuple[Any, ...] | None
    by_argmax: bool

    @property
    def width(self) -> int | None:
        """Columns, where the graph says so."""
        widths = [width for _, width in self.inputs]
        return None if None in widths else sum(w for w in widths if w is not None)

    @property
    def named(self) -> bool:
        """Whether every column is an input of its own."""
        return len(self.inputs) > 1 and all(width == 1 for _, width in self.inputs)

    def column_names(self, width: int) -> tuple[str, ...]:
        """Names of the columns; made up where an input has several."""
        return tuple(name for name, _ in self.inputs) if self.named else tuple(f"x{j}" for j in range(width))

    def feed(self, numbers: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Rows as the graph takes them."""
        if len(self.inputs) == 1:
            return {self.inputs[0][0]: numbers}
        ends = np.cumsum([width for _, width in self.inputs])[:-1]
        return {name: part for (name, _), part in zip(self.inputs, np.split(numbers, ends, axis=1), strict=True)}

    @cached_property
    def serialized(self) -> bytes:
        """The whole model."""
        return bytes(self.model.SerializeToString())

    @property
    def alone(self) -> bytes:
        """The operator alone, before its post_transform."""
        helper = optional("onnx", "onnx", "an ONNX model").helper
        node = type(self.operator.node)()
        node.CopyFrom(self.operator.node)
        kept = [a for a in node.attribute if a.name != "post_transform"]
        del node.attribute[:]
        node.attribute.extend(kept)
        node.input[:], node.output[:] = ["x"], [f"y{k}" for k in range(len(self.operator.node.output))]
        names = [f"y{k}" for k in range(2 if self.operator.weights == "class" else 1)]
        node.output[:] = names
        kind = _DOUBLE if self.operator.double else _FLOAT
        shown = [_FLOAT if self.operator.weights != "leaf" else kind]
        if self.operator.weights == "class":
            shown = [_STRING if isinstance((self.operator.labels or ("",))[0], str) else _INT64, _FLOAT]
        graph = helper.make_graph(
            [node],
            "trees",
            [helper.make_tensor_value_info("x", kind, [None, None])],
            [helper.make_tensor_value_info(name, k, None) for name, k in zip(names, shown, strict=True)],
        )
        imports = list(self.model.opset_import)
        made = helper.make_model(graph, opset_imports=imports, ir_version=self.model.ir_version)
        return bytes(made.SerializeToString())


def graph_of(model: Any) -> OnnxGraph:
    """What a model does before and behind its trees.

    Parameters
    ----------
    model : onnx.ModelProto

    Raises
    ------
    ModelError
        The graph is malformed.
    UnsupportedModelError
        It has no operator of trees or several, or a node that is not read.
    """
    for found in model.opset_import:
        if found.domain == _DOMAIN and found.version > _NEWEST:
            raise UnsupportedModelError(
                f"the model is of version {found.version} of {_DOMAIN}, ocf reads up to {_NEWEST}: export it with "
                f"target_opset={{'{_DOMAIN}': {_NEWEST}}}"
            )
    nodes = model.graph.node
    trees = [node for node in nodes if node.domain == _DOMAIN and node.op_type in _TREES]
    if len(trees) != 1:
        kinds = ", ".join(sorted({node.op_type for node in nodes}))
        raise UnsupportedModelError(
            f"the graph has {len(trees)} operators of trees and must have one; its nodes are {kinds}: give ocf the "
            "model in its own library"
        )
    makers = {name: node for node in nodes for name in node.output}
    inputs, kinds_seen = _inputs(model, makers, trees[0])
    operator = _operator(trees[0], double=kinds_seen[-1] == _DOUBLE)
    behind = _Behind(model, makers, operator)
    return OnnxGraph(
        model=model,
        operator=operator,
        inputs=inputs,
        dtype=np.dtype(np.float64 if kinds_seen[0] == _DOUBLE else np.float32),
        narrow=_FLOAT in kinds_seen,
        answer=behind.answer,
        shows=behind.shows,
        classes=behind.classes,
        by_argmax=behind.by_argmax,
    )


def attributes_of(node: Any) -> dict[str, Any]:
    """Attributes of a node as plain values; tensors become arrays.

    Raises
    ------
    ModelError
        A tensor is kept in another file, or cannot be read.
    """
    onnx = optional("onnx", "onnx", "an ONNX model")
    out = {}
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, onnx.TensorProto):
            value = _array(value)
        out[attribute.name] = value
    return out


def _array(tensor: Any) -> NDArray[Any]:
    onnx = optional("onnx", "onnx", "an ONNX model")
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise UnsupportedModelError(
            "the model keeps tensors in another file: save it as one, by onnx.save(onnx.load(path), other_path)"
        )
    return np.asarray(onnx.numpy_helper.to_array(tensor))


def _operator(node: Any, double: bool) -> Operator:
    attributes = attributes_of(node)
    weights = _TREES[node.op_type]
    labels = None
    if weights == "class":
        words = attributes.get("classlabels_strings") or []
        labels = tuple(word.decode() for word in words) or tuple(attributes.get("classlabels_int64s") or ())
        if len(set(labels)) < len(labels) or not labels:
            raise ModelError(f"the classifier has no labels, or two of one name: {_CORRUPT}")
    n_outputs = len(labels) if labels is not None else int(attributes.get("n_targets", 1))
    aggregate, post = attributes.get("aggregate_function", b"SUM"), attributes.get("post_transform", b"NONE")
    if weights == "leaf":
        aggregate = _named(_AGGREGATES, attributes.get("aggregate_function", 1))
        post = _named(_POSTS, attributes.get("post_transform", 0))
    aggregate, post = (word.decode() if isinstance(word, bytes) else str(word) for word in (aggregate, post))
    if aggregate not in ("SUM", "AVERAGE"):
        raise UnsupportedModelError(f"trees are joined by {aggregate}, which is no sum: export with SUM or AVERAGE")
    base = attributes.get("base_values_as_tensor")
    base = attributes.get("base_values", []) if base is None else base
    numbers = [float(b) for b in base]
    if not 1 <= n_outputs <= 10_000 or len(numbers) > n_outputs or not np.isfinite(numbers).all():
        raise ModelError(f"there are {n_outputs} outputs and {len(numbers)} base values: {_CORRUPT}")
    if n_outputs > 2 and len(numbers) not in (0, n_outputs):
        raise ModelError(f"there are {n_outputs} outputs and {len(numbers)} base values: {_CORRUPT}")
    return Operator(node, attributes, weights, n_outputs, labels, numbers, aggregate, post, double)


def _named(words: tuple[str, ...], number: int) -> str:
    return words[number] if 0 <= number < len(words) else f"number {number}"


def _refused(node: Any) -> UnsupportedModelError:
    name = f"{node.name!r} ({node.op_type})" if node.name else node.op_type
    return UnsupportedModelError(
        f"the node {name} of the graph is not read: give ocf the model in its own library, or export the trees "
        "without it"
    )


# -- before the trees ----------------------------------------------------------------------------------------------


def _inputs(
    model: Any, makers: Mapping[str, Any], trees: Any
) -> tuple[tuple[tuple[str, int | None], ...], tuple[int, ...]]:
    """Inputs side by side, and the element types that a value passes, in order."""
    constants = {tensor.name for tensor in model.graph.initializer}
    known = {value.name: value.type.tensor_type for value in model.graph.input if value.name not in constants}

    def before(name: str, seen: frozenset[str]) -> list[tuple[str, tuple[int, ...]]]:
        if name in seen or len(seen) > 1000:
            raise ModelError(f"the graph runs in a circle: {_CORRUPT}")
        if name in known:
            return [(name, (known[name].elem_type,))]
        node = makers.get(name)
        if node is None:
            raise ModelError(f"nothing in the graph makes {name!r}: {_CORRUPT}")
        attributes = attributes_of(node)
        joins = node.op_type == "Concat" and attributes.get("axis") in (1, -1)
        if not joins and node.op_type not in ("Identity", "Cast"):
            raise _refused(node)
        found = [part for one in node.input for part in before(one, seen | {name})]
        to = (int(attributes["to"]),) if node.op_type == "Cast" else ()
        return [(source, kinds + to) for source, kinds in found]

    parts = before(trees.input[0], frozenset())
    names = [name for name, _ in parts]
    if len(set(names)) < len(names) or set(names) != set(known):
        raise UnsupportedModelError("the trees do not see each input of the graph once: export them without the rest")
    kinds = {seen for _, seen in parts}
    if len(kinds) != 1 or not set(next(iter(kinds))) <= {_FLOAT, _DOUBLE}:
        raise UnsupportedModelError(
            f"the inputs {', '.join(map(repr, names))} are no tensors of floats, or not all alike: export the model "
            "with inputs of FloatTensorType, or of DoubleTensorType"
        )
    widths = [_width(known[name]) for name in names]
    if len(widths) > 1 and None in widths:
        raise UnsupportedModelError(
            "an input of the graph does not say how many columns it has: export it with a shape"
        )
    return tuple(zip(names, widths, strict=True)), next(iter(kinds))


def _width(kind: Any) -> int | None:
    """Columns of a tensor (n, columns), where its shape says so."""
    dims = kind.shape.dim
    if len(dims) not in (0, 2):
        raise UnsupportedModelError(f"an input of the graph has {len(dims)} dimensions, not rows and columns")
    return int(dims[1].dim_value) or None if dims else None


# -- behind the trees ----------------------------------------------------------------------------------------------


@dataclass
class _Behind:
    """What becomes of labels and scores on the way to the outputs of the graph."""

    model: Any
    makers: Mapping[str, Any]
    operator: Operator
    answer: str = ""
    shows: str = ""
    classes: tuple[Any, ...] | None = None
    by_argmax: bool = False
    _constants: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._constants = {tensor.name: tensor for tensor in self.model.graph.initializer}
        values = ""
        for output in self.model.graph.output:
            nodes, labels = self._path_from_trees(output.name)
            if labels or any(node.op_type == "ArgMax" for node in nodes):
                self.answer, self.classes = output.name, self._labels(nodes)
                self.by_argmax = not labels
            elif not {node.op_type for node in nodes} <= {"Identity", "Cast", "Reshape", "ZipMap"}:
                raise _refused(nodes[-1])
            else:
                values = output.name
        if not self.answer:
            if self.operator.labels is not None:
                raise UnsupportedModelError("the graph gives no label: export it with the label as an output")
            self.answer, values = values, ""
        self.shows = values
        if not self.answer:
            raise ModelError(f"the graph has no output: {_CORRUPT}")

    def _path_from_trees(self, name: str) -> tuple[list[Any], bool]:
        """Nodes from the trees to a name, in their order, and whether they begin at the label."""
        nodes: list[Any] = []
        own = list(self.operator.node.output)
        while name not in own:
            node = self.makers.get(name)
            if node is None or len(nodes) > 1000:
                raise ModelError(f"nothing in the graph makes the output {name!r}: {_CORRUPT}")
            if node.op_type not in _BEHIND:
                raise _refused(node)
            nodes.insert(0, node)
            # the labels come first, then the places
            name = node.input[1 if node.op_type == "ArrayFeatureExtractor" else 0]
        return nodes, self.operator.weights == "class" and name == own[0]

    def _labels(self, nodes: list[Any]) -> tuple[Any, ...]:
        """Labels as the graph shows them."""
        labels: list[Any] = list(self.operator.labels or range(self.operator.n_outputs))
        for node in nodes:
            attributes = attributes_of(node)
            if node.op_type == "ArgMax":
                if attributes.get("axis", 0) not in (1, -1) or attributes.get("select_last_index", 0):
                    raise _refused(node)
                labels = list(range(self.operator.n_outputs))
            elif node.op_type == "ArrayFeatureExtractor":
                tensor = self._constants.get(node.input[0])
                if tensor is None:
                    raise _refused(node)
                known = _array(tensor).ravel().tolist()
                labels = [known[k] for k in labels]
                labels = [label.decode() if isinstance(label, bytes) else label for label in labels]
            elif node.op_type == "LabelEncoder":
                labels = _encoded(node, attributes, labels)
            elif node.op_type == "Cast":
                labels = _cast(node, int(attributes["to"]), labels)
            elif node.op_type == "ZipMap":
                raise _refused(node)
        if len(set(labels)) < len(labels):
            raise ModelError(f"two classes have one label: {_CORRUPT}")
        return tuple(labels)


_BEHIND = ("Identity", "Cast", "Reshape", "ZipMap", "ArgMax", "LabelEncoder", "ArrayFeatureExtractor")


def _encoded(node: Any, attributes: Mapping[str, Any], labels: list[Any]) -> list[Any]:
    keys = next((v for k, v in attributes.items() if k.startswith("keys_")), None)
    values = next((v for k, v in attributes.items() if k.startswith("values_")), None)
    if keys is None or values is None or len(keys) != len(values):
        raise _refused(node)
    plain = [[w.decode() if isinstance(w, bytes) else w for w in np.ravel(words).tolist()] for words in (keys, values)]
    table = dict(zip(*plain, strict=True))
    if not set(labels) <= set(table):
        raise _refused(node)
    return [table[label] for label in labels]


def _cast(node: Any, to: int, labels: list[Any]) -> list[Any]:
    if to in (_INT32, _INT64) and all(isinstance(label, int) for label in labels):
        return labels
    if to == _STRING:
        return [str(label) for label in labels]
    raise _refused(node)

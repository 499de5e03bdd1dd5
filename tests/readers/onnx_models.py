"""Small ONNX models of trees, drawn at random or exported by the converters of the libraries."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


class Drawn(NamedTuple):
    """Settings of a random model."""

    outputs: int = 1
    labels: tuple[Any, ...] = ()
    modes: tuple[str, ...] = MODES
    ids: tuple[int, ...] = ()
    post: str = "NONE"
    base: int = 0
    double: bool = False
    positive: bool = False
    trees: int = 3
    depth: int = 2
    aggregate: str = "SUM"


#: Numbers between which the thresholds lie, some of them off the grid of float32.
NUMBERS = (0.0, 1.0, 2.0, 3.0, 4.0, 0.1, 2.5, 1 / 3)


def model_of(nodes: list[Any], inputs: list[Any], outputs: list[Any], version: int = 3, **constants: Any) -> Any:
    """A checked model.

    Parameters
    ----------
    nodes, inputs, outputs : list
        Of the graph.
    version : int
        Of ai.onnx.ml.
    constants : arrays
        By name.
    """
    tensors = [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def value(name: str, kind: int, *shape: Any) -> Any:
    return helper.make_tensor_value_info(name, kind, list(shape))


def drawn_tree(rng: np.random.Generator, how: Drawn) -> list[dict[str, Any]]:
    """Nodes of a tree in no particular numbering, the root first."""
    nodes: list[dict[str, Any]] = []

    def grow(level: int) -> int:
        place = len(nodes)
        nodes.append({})
        if level == how.depth or (level and rng.random() < 0.2):
            low = 0.0 if how.positive else -1.0
            ids = how.ids or range(how.outputs)
            nodes[place] = {"mode": "LEAF", "weights": {k: float(rng.uniform(low, 1) / how.trees) for k in ids}}
            return place
        nodes[place] = {
            "mode": how.modes[rng.integers(len(how.modes))],
            "feature": int(rng.integers(3)),
            "threshold": float(rng.choice(NUMBERS)),
            "tracks": int(rng.random() < 0.5),
            "true": grow(level + 1),
            "false": grow(level + 1),
        }
        return place

    grow(0)
    return nodes


def listed(rng: np.random.Generator, how: Drawn) -> dict[str, Any]:
    """Attributes of TreeEnsembleClassifier or TreeEnsembleRegressor."""
    kind = "class" if how.labels else "target"
    names = ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids"]
    out: dict[str, list[Any]] = {f"nodes_{name}": [] for name in [*names, "missing_value_tracks_true"]}
    out |= {f"{kind}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}
    for t in range(how.trees):
        nodes = drawn_tree(rng, how)
        number = [0, *(1 + rng.permutation(len(nodes) - 1)).tolist()]
        for v, node in enumerate(nodes):
            leaf = node["mode"] == "LEAF"
            row = [t, number[v], 0 if leaf else node["feature"], 0.0 if leaf else node["threshold"], node["mode"]]
            row += [0, 0, 0] if leaf else [number[node["true"]], number[node["false"]], node["tracks"]]
            for name, entry in zip([*names, "missing_value_tracks_true"], row, strict=True):
                out[f"nodes_{name}"].append(entry)
            for k, weight in node.get("weights", {}).items():
                for name, entry in zip(
                    ("treeids", "nodeids", "ids", "weights"), (t, number[v], k, weight), strict=True
                ):
                    out[f"{kind}_{name}"].append(entry)
    if how.base:
        out["base_values"] = rng.normal(size=how.base).round(2).tolist()
    return out


def drawn(seed: int, how: Drawn, version: int = 3) -> Any:
    """A random model of the operators of versions 1 to 3."""
    attributes = listed(np.random.default_rng(seed), how)
    kind = TensorProto.DOUBLE if how.double else TensorProto.FLOAT
    if how.double and version >= 3:
        numbers = attributes.pop("nodes_values")
        attributes["nodes_values_as_tensor"] = helper.make_tensor("t", TensorProto.DOUBLE, [len(numbers)], numbers)
        for name in ("class_weights", "target_weights", "base_values"):
            if name in attributes:
                numbers = attributes.pop(name)
                attributes[f"{name}_as_tensor"] = helper.make_tensor("t", TensorProto.DOUBLE, [len(numbers)], numbers)
    inputs = [value("x", kind, None, 3)]
    if not how.labels:
        more = {"n_targets": how.outputs, "aggregate_function": how.aggregate, "post_transform": how.post}
        node = helper.make_node("TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", **attributes, **more)
        return model_of([node], inputs, [value("y", TensorProto.FLOAT, None, how.outputs)], version)
    strings = isinstance(how.labels[0], str)
    attributes["classlabels_strings" if strings else "classlabels_int64s"] = list(how.labels)
    node = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["l", "p"], domain="ai.onnx.ml", post_transform=how.post, **attributes
    )
    shown = [value("l", TensorProto.STRING if strings else TensorProto.INT64, None)]
    return model_of([node], inputs, [*shown, value("p", TensorProto.FLOAT, None, None)], version)


def drawn_of_version_5(seed: int, how: Drawn, behind: str = "") -> Any:
    """A random TreeEnsemble, with sets of numbers among its tests; behind it perhaps an ArgMax and labels."""
    rng = np.random.default_rng(seed)
    names = ("featureids", "modes", "splits", "truenodeids", "trueleafs", "falsenodeids", "falseleafs", "tracks")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    roots, members, leaf_ids, leaf_weights = [], [], [], []
    for _ in range(how.trees):
        nodes = drawn_tree(rng, how)
        first, inner, leaves = len(columns["modes"]), {}, {}
        for v, node in enumerate(nodes):
            if node["mode"] == "LEAF":
                leaves[v] = len(leaf_ids)
                ((output, weight),) = {k: w for k, w in node["weights"].items() if k == v % how.outputs}.items()
                leaf_ids.append(output)
                leaf_weights.append(weight)
            else:
                inner[v] = first + len(inner)
        roots.append(first)
        if not inner:  # a leaf alone stands on both sides of a node
            nodes, inner = (
                [{"mode": how.modes[0], "feature": 0, "threshold": 0.0, "tracks": 0, "true": 0, "false": 0}],
                {},
            )
            inner[-1] = first
        for node in nodes:
            if node["mode"] == "LEAF":
                continue
            is_set = rng.random() < 0.3
            columns["modes"].append(6 if is_set else MODES.index(node["mode"]))
            if is_set:
                members += [*rng.choice(NUMBERS[:5], 2, replace=False).tolist(), np.nan]
            columns["featureids"].append(node["feature"])
            columns["splits"].append(node["threshold"])
            columns["tracks"].append(node["tracks"])
            for side in ("true", "false"):
                child = node[side]
                columns[f"{side}leafs"].append(int(child in leaves))
                columns[f"{side}nodeids"].append(leaves[child] if child in leaves else inner[child])
    kind = TensorProto.DOUBLE if how.double else TensorProto.FLOAT
    tensor = lambda k, v: helper.make_tensor("t", k, [len(v)], v)  # noqa: E731
    node = helper.make_node(
        "TreeEnsemble",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=how.outputs,
        tree_roots=roots,
        nodes_featureids=columns["featureids"],
        nodes_modes=tensor(TensorProto.UINT8, columns["modes"]),
        nodes_splits=tensor(kind, columns["splits"]),
        nodes_truenodeids=columns["truenodeids"],
        nodes_trueleafs=columns["trueleafs"],
        nodes_falsenodeids=columns["falsenodeids"],
        nodes_falseleafs=columns["falseleafs"],
        nodes_missing_value_tracks_true=columns["tracks"],
        leaf_targetids=leaf_ids,
        leaf_weights=tensor(kind, leaf_weights),
        aggregate_function={"AVERAGE": 0, "SUM": 1}[how.aggregate],
        post_transform={"NONE": 0, "LOGISTIC": 2}[how.post],
        **({"membership_values": tensor(kind, members)} if members else {}),
    )
    inputs, shown = [value("x", kind, None, 3)], [value("y", kind, None, how.outputs)]
    if not behind:
        return model_of([node], inputs, shown, 5)
    best = helper.make_node("ArgMax", ["y"], ["best"], axis=1, keepdims=0)
    if behind == "argmax":
        return model_of([node, best], inputs, [value("best", TensorProto.INT64, None)], 5)
    encoder = helper.make_node(
        "LabelEncoder",
        ["best"],
        ["label"],
        domain="ai.onnx.ml",
        keys_int64s=list(range(how.outputs)),
        values_strings=["u", "v", "w"][: how.outputs],
    )
    return model_of([node, best, encoder], inputs, [value("label", TensorProto.STRING, None)], 5)

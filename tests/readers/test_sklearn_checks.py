"""What a skops file of a stranger says of a model is read as scikit-learn reads it, or refused by its place."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ocf.errors import ModelError
from ocf.readers.files import load_model

from .skops_files import Parts, with_attribute, written


def array_of(parts: Parts, field: str) -> str:
    """Name of the first array whose elements have a field."""
    return next(name for name, data in parts.items() if f"'{field}'".encode() in data[:400])


def with_node(parts: Parts, field: str, node: int, value: Any) -> Parts:
    name = array_of(parts, field)
    nodes = np.load(io.BytesIO(parts[name]))
    nodes[field][node] = value
    stream = io.BytesIO()
    np.save(stream, nodes)
    return {**parts, name: stream.getvalue()}


@pytest.mark.parametrize("kind", ["tree", "isolation", "boosting", "adaboost", "pipeline"])
@pytest.mark.parametrize(
    ("field", "node", "value", "fault"),
    [
        ("left_child", 0, 10**9, "outside"),
        ("right_child", 0, -7, "outside"),
        ("left_child", -1, -5, "outside"),
        ("left_child", 0, 0, "outside"),
        ("left_child", -1, 1, "outside"),
        ("right_child", -1, 1, "single child"),
        ("feature", 0, 10**6, "one of the 2 features"),
        ("feature", 0, -3, "one of the 2 features"),
        ("threshold", 0, np.nan, "numbers"),
        ("n_node_samples", 1, -4, "samples"),
        ("missing_go_to_left", 0, 9, "numbers"),
    ],
)
def test_nodes_that_lead_out_of_the_tree(
    archives: dict[str, Parts], kind: str, field: str, node: int, value: Any, fault: str, tmp_path: Path
) -> None:
    path = written(with_node(archives[kind], field, node, value), tmp_path / "model.skops")
    with pytest.raises(ModelError, match=rf"tree_\.nodes .*({fault}).*save the model again"):
        load_model(path)


@pytest.mark.parametrize(
    ("field", "node", "value", "fault"),
    [
        ("left", 0, 2**32 - 1, "outside"),
        ("right", 0, 0, "outside"),
        ("feature_idx", 0, 77, "one of the 3 columns"),
        ("bitset_idx", None, 2**31, "category sets"),
        ("is_categorical", None, 1, "category"),
        ("is_leaf", 0, 5, "0 or 1"),
        ("num_threshold", 0, np.nan, "numbers"),
    ],
)
def test_histogram_nodes_that_lead_out_of_the_tree(
    archives: dict[str, Parts], field: str, node: int | None, value: Any, fault: str, tmp_path: Path
) -> None:
    parts = archives["histogram"]
    nodes = np.load(io.BytesIO(parts[array_of(parts, "is_leaf")]))
    if node is None:
        wanted = nodes["is_leaf"] == 0
        if field == "bitset_idx":
            parts = with_node(parts, "is_categorical", int(np.flatnonzero(wanted)[0]), 1)
        node = int(np.flatnonzero(wanted)[0])
    path = written(with_node(parts, field, node, value), tmp_path / "model.skops")
    with pytest.raises(ModelError, match=rf"_predictors.*{fault}"):
        load_model(path)


@pytest.mark.parametrize(
    ("kind", "attribute", "content", "must"),
    [
        ("tree", ("n_features_in_",), "3", "a name for each column"),
        ("tree", ("n_features_in_",), '"x"', "whole number"),
        ("tree", ("tree_",), "null", "a tree"),
        ("forest", ("estimators_",), "null", "list of trees"),
        ("forest", ("feature_names_in_",), "null", "a name for each column"),
        ("forest", ("n_jobs",), '"many"', "whole number"),
        ("bagging", ("estimators_features_",), "null", "list"),
        ("adaboost", ("estimator_weights_",), "[]", "number, text|weight"),
        ("boosting", ("learning_rate",), "null", "finite number"),
        ("boosting", ("learning_rate",), "1e999", "finite number"),
        ("boosting", ("n_trees_per_iteration_",), "1", "column for each score"),
        ("boosting", ("init_",), "3", "estimator"),
        ("histogram", ("_baseline_prediction",), "NaN", "finite number"),
        ("histogram", ("_bin_mapper",), "null", "bin mapper"),
        ("histogram", ("n_trees_per_iteration_",), "2", "stage"),
        ("isolation", ("offset_",), "null", "finite number"),
        ("isolation", ("_decision_path_lengths",), "0", "each tree"),
        ("isolation", ("max_samples_",), "-1", "whole number"),
        ("pipeline", ("steps",), "null", "pairs of a name"),
        ("support vectors", ("_n_support",), "0", "support vectors of each class"),
        ("support vectors", ("_sparse",), "true", "dense"),
        ("support vectors", ("support_vectors_",), "null", "support vector"),
    ],
)
def test_attributes_of_a_wrong_type(
    archives: dict[str, Parts], kind: str, attribute: tuple[str, ...], content: str, must: str, tmp_path: Path
) -> None:
    def change(part: dict[str, Any]) -> None:
        part.clear()
        part.update({"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": content})

    path = written(with_attribute(archives[kind], attribute, change), tmp_path / "model.skops")
    with pytest.raises(ModelError, match=must) as error:
        load_model(path)
    assert "model.skops" in str(error.value)
    assert "save the model again" in str(error.value)


def test_attribute_in_the_place_of_a_method(archives: dict[str, Parts], tmp_path: Path) -> None:
    path = written(
        {**archives["tree"], "schema.json": archives["tree"]["schema.json"].replace(b'"max_depth"', b'"predict"', 1)},
        tmp_path / "model.skops",
    )
    with pytest.raises(ModelError, match=r"predict stands in the place of a method"):
        load_model(path)


def test_random_state_that_points_outside(archives: dict[str, Parts], tmp_path: Path) -> None:
    def change(part: dict[str, Any]) -> None:
        part["content"]["content"]["state"]["content"]["pos"] = {
            "__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": "1000000000",
        }  # fmt: skip

    path = written(with_attribute(archives["forest"], ("random_state",), change), tmp_path / "model.skops")
    with pytest.raises(ModelError, match="random_state must hold 624 numbers"):
        load_model(path)

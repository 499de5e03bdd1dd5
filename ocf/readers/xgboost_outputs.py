"""One target of an XGBoost model of several: its document, as that of a model of that target alone.

With ``multi_strategy="one_output_per_tree"`` each tree speaks for one target, named in ``tree_info``. With
``"multi_output_tree"`` a leaf holds a value for each target: the place of its vector among ``leaf_weights`` stands
where an inner node has its right child (since XGBoost 3.2; before, vectors stood elsewhere and are refused).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ocf.errors import UnsupportedModelError
from ocf.readers.document import DocumentPart
from ocf.readers.xgboost_format import count_targets, trees_part

#: What a tree of vectors has of each target.
_NUMBERS = ("split_conditions", "base_weights")


def n_targets(document: Mapping[str, Any]) -> int:
    """How many targets the model of a document predicts."""
    return count_targets(DocumentPart(document)["learner"]["learner_model_param"])


def of_target(document: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The document of one target.

    Parameters
    ----------
    document : mapping
        From `ocf.readers.xgboost_format.parse`; never changed.
    number : int
        Of the target, counted from 0.

    Raises
    ------
    ModelError
        A part is missing or malformed.
    UnsupportedModelError
        The booster is no sum of trees, or leaves hold vectors as older versions keep them.
    """
    learner = DocumentPart(document)["learner"]
    booster = learner["gradient_booster"]
    if booster["name"].text() not in ("gbtree", "dart"):
        raise UnsupportedModelError(
            f"the booster {booster['name'].value[:40]!r} of several targets is not read: train with booster='gbtree' "
            "or 'dart'"
        )
    count, model = n_targets(document), trees_part(learner)
    trees = model["trees"].parts()
    stored = learner["learner_model_param"]["base_score"].printed_numbers()
    vectors = [tree["tree_param"]["size_leaf_vector"].printed_integer() > 1 for tree in trees]
    if any(vectors) and (not all(vectors) or booster["name"].value == "dart"):
        raise model["trees"].error("some leaves hold vectors, and others numbers or the weights of dart")
    groups = model["tree_info"].integers(len(trees), 0, count - 1)
    own = [t for t in range(len(trees)) if vectors[t] or groups[t] == number]
    bounds = model["iteration_indptr"].integers(low=0, high=len(trees))
    model["gbtree_model_param"]["num_trees"].printed_integer()
    out = _copied(document)
    inner, weighing = _model(out), _weights_holder(out)
    if "weight_drop" in weighing:
        weights = DocumentPart(weighing)["weight_drop"].finite_singles(len(trees))
        weighing["weight_drop"] = weights[own].tolist()
    inner["trees"] = [
        _with_one_output(trees[t], number, count) | {"id": place} if vectors[t] else {**trees[t].value, "id": place}
        for place, t in enumerate(own)
    ]
    inner["tree_info"] = [0] * len(own)
    inner["iteration_indptr"] = np.searchsorted(own, bounds).tolist()
    inner["gbtree_model_param"]["num_trees"] = str(len(own))
    score = float(stored[number]) if len(stored) == count else float(stored[0])
    out["learner"]["learner_model_param"] |= {"num_target": "1", "base_score": f"[{score!r}]"}
    return out


def of_all_targets(document: Mapping[str, Any], checked: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The document of all targets, of nothing but what has been checked of each.

    Parameters
    ----------
    document : mapping
        From `ocf.readers.xgboost_format.parse`.
    checked : sequence of mapping
        Of each target, `of_target` as `ocf.readers.xgboost_writer.rewritten` writes it.
    """
    learner, count = DocumentPart(document)["learner"], len(checked)
    trees, groups = (trees_part(learner)[key] for key in ("trees", "tree_info"))
    n = len(trees.parts())
    out = _copied(checked[0])
    inner, weighing = _model(out), _weights_holder(out)
    left = [iter(zip(_model(own)["trees"], _weights(own), strict=True)) for own in checked]
    written, weights = [], []
    for place, (tree, group) in enumerate(zip(trees.parts(), groups.integers(n, 0, count - 1).tolist(), strict=True)):
        vector = tree["tree_param"]["size_leaf_vector"].printed_integer() > 1
        found = [next(own) for own in (left if vector else [left[group]])]
        alone = _with_vectors([own for own, _ in found]) if vector else found[0][0]
        written.append({**alone, "id": place})
        weights.append(found[0][1])
    if "weight_drop" in weighing:
        weighing["weight_drop"] = weights
    inner["trees"], inner["tree_info"] = written, groups.integers(n).tolist()
    inner["iteration_indptr"] = trees_part(learner)["iteration_indptr"].integers(low=0, high=n).tolist()
    inner["gbtree_model_param"]["num_trees"] = str(n)
    score = learner["learner_model_param"]["base_score"]
    if len(score.printed_numbers()) not in (1, count):
        raise score.error(f"one number is expected, or one for each of {count} targets")
    out["learner"]["learner_model_param"] |= {"num_target": str(count), "base_score": score.text()}
    return out


def _copied(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document with its own copies of what changes; the rest, however deep, stays what it is."""
    out = {**document, "learner": dict(document["learner"])}
    learner = out["learner"]
    learner["learner_model_param"] = dict(learner["learner_model_param"])
    booster = dict(learner["gradient_booster"])
    learner["gradient_booster"] = booster
    if booster["name"] == "dart":
        wrapped = dict(booster["gbtree"])
        booster["gbtree"], booster = wrapped, wrapped
    model = dict(booster["model"])
    booster["model"] = model
    model["gbtree_model_param"] = dict(model["gbtree_model_param"])
    return out


def _model(document: Mapping[str, Any]) -> dict[str, Any]:
    """Where a document of one target has its trees: dart wraps them once more."""
    booster = document["learner"]["gradient_booster"]
    found: dict[str, Any] = (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]
    return found


def _weights_holder(document: Mapping[str, Any]) -> dict[str, Any]:
    """Where it has the weights of trees, if it has any: see `ocf.readers.xgboost_format`."""
    booster: dict[str, Any] = document["learner"]["gradient_booster"]
    return booster if booster["name"] == "dart" else _model(document)


def _weights(document: Mapping[str, Any]) -> list[float]:
    weighing = _weights_holder(document)
    return list(weighing["weight_drop"]) if "weight_drop" in weighing else [1.0] * len(_model(document)["trees"])


def _with_vectors(trees: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A tree of vectors, from one of numbers for each target."""
    first = trees[0]
    leaves = np.asarray(first["left_children"]) == -1
    right, parents = np.array(first["right_children"]), np.array(first["parents"])
    right[leaves], parents[0] = np.arange(leaves.sum()), -1
    conditions, weights = (np.array([tree[key] for tree in trees], np.float32) for key in _NUMBERS)
    return {
        **first,
        "tree_param": {**first["tree_param"], "size_leaf_vector": str(len(trees))},
        "right_children": right,
        "parents": parents,
        "split_conditions": np.where(leaves, np.float32(0), conditions[0]),
        "leaf_weights": np.ascontiguousarray(conditions[:, leaves].T).ravel(),
        "base_weights": np.ascontiguousarray(weights.T).ravel(),
    }


def _with_one_output(tree: DocumentPart, number: int, count: int) -> dict[str, Any]:
    """A tree of vectors, with one number of each."""
    if "leaf_weights" not in tree:
        raise UnsupportedModelError(
            "leaves hold vectors as XGBoost before 3.2 kept them (multi_strategy='multi_output_tree'): fit again with "
            "a newer version, or with multi_strategy='one_output_per_tree'"
        )
    n = tree["tree_param"]["num_nodes"].printed_integer(1)
    left, right = (tree[key].integers(n, -1, n - 1) for key in ("left_children", "right_children"))
    leaves = left == -1
    vectors = tree["leaf_weights"].singles(int(leaves.sum()) * count).reshape(-1, count)
    if (right[leaves] < 0).any() or (right[leaves] >= len(vectors)).any():
        raise tree["right_children"].error("a leaf has no vector")
    conditions = tree["split_conditions"].singles(n)
    conditions[leaves] = vectors[right[leaves], number]
    parents = tree["parents"].integers(n)
    return {
        **{key: value for key, value in tree.value.items() if key != "leaf_weights"},
        "tree_param": {**tree["tree_param"].value, "size_leaf_vector": "1"},
        "right_children": np.where(leaves, -1, right).tolist(),
        "parents": parents.tolist(),
        "split_conditions": conditions.tolist(),
        "base_weights": tree["base_weights"].singles(n * count).reshape(-1, count)[:, number].tolist(),
    }

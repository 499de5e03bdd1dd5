"""XGBoost's model documents written anew from their checked parts.

XGBoost trusts the files that it loads: an index out of range makes it read outside its memory. So it gets this
document, whose arrays ocf has checked, in place of a stranger's bytes. Numbers stay bit by bit what they were.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ocf.readers import ubjson
from ocf.readers.document import DocumentPart
from ocf.readers.xgboost_format import NO_NODE, STATISTICS, SavedModel, XGBoostTree, saved_role, trees_part

_PARAMETERS = ("base_score", "boost_from_average", "num_class", "num_feature", "num_target")
_LEARNER = (
    "attributes",
    "feature_names",
    "feature_types",
    "gradient_booster",
    "learner_model_param",
    "objective",
)
_TREE_ARRAYS = ("left_children", "right_children", "parents", "split_indices", "split_conditions", "default_left")
_TREE_SETS = ("split_type", "categories", "categories_nodes", "categories_segments", "categories_sizes")
_TREE_PARAMETERS = ("num_deleted", "num_feature", "num_nodes", "size_leaf_vector")
#: Types of categories that are whole numbers, by the number that XGBoost gives them.
_CATEGORY_TYPES = {9: "int8", 10: "uint8", 11: "int16", 13: "int32", 15: "int64"}


def write(document: Mapping[str, Any], saved: SavedModel) -> bytes:
    """UBJSON of `rewritten`.

    Parameters
    ----------
    document : mapping
    saved : SavedModel
    """
    return ubjson.encode(rewritten(document, saved))


def rewritten(document: Mapping[str, Any], saved: SavedModel) -> dict[str, Any]:
    """Document with all that predictions need, and nothing that has not been checked.

    Parameters
    ----------
    document : mapping
        From `ocf.readers.xgboost_format.parse`.
    saved : SavedModel
        Its checked parts.

    Raises
    ------
    ModelError
        The document has parts that are unknown here.
    """
    _refuse_unknown_parts(DocumentPart(document))
    learner = DocumentPart(document)["learner"]
    booster: dict[str, Any] = {"model": _model(trees_part(learner), saved)}
    if saved.weights is not None and "weight_drop" in trees_part(learner):
        booster["model"]["weight_drop"] = list(saved.weights)
    if saved.weights is None or "weight_drop" in trees_part(learner):
        booster["name"] = "gbtree"
    else:
        booster = {"gbtree": {**booster, "name": "gbtree"}, "name": "dart", "weight_drop": list(saved.weights)}
    written: dict[str, Any] = {
        "learner": {
            "attributes": _attributes(document, saved),
            "feature_names": saved.names,
            "feature_types": saved.types,
            "gradient_booster": booster,
            "learner_model_param": _parameters(learner["learner_model_param"], saved),
            "objective": _objective(learner["objective"]),
        },
    }
    if "version" in document:
        written["version"] = DocumentPart(document)["version"].integers(3, 0).tolist()
    return written


def _refuse_unknown_parts(root: DocumentPart) -> None:
    """Refuse entries that a newer version of the library may heed: the judge must not differ from the file."""
    root.refuse_other_than(("learner", "version"))
    learner = root["learner"]
    learner.refuse_other_than(_LEARNER)
    learner["learner_model_param"].refuse_other_than(_PARAMETERS)
    booster = learner["gradient_booster"]
    booster.refuse_other_than(("name", "model") if "model" in booster else ("name", "gbtree", "weight_drop"))
    if "gbtree" in booster:
        booster["gbtree"].refuse_other_than(("name", "model"))
    model = trees_part(learner)
    model.refuse_other_than(("cats", "gbtree_model_param", "iteration_indptr", "tree_info", "trees", "weight_drop"))
    # files from before 1.6 repeat the sizes that stand in other places, or hold what only training reads
    model["gbtree_model_param"].refuse_other_than(("num_parallel_tree", "num_trees", "size_leaf_vector"))
    for tree in model["trees"].parts():
        tree.refuse_other_than((*_TREE_ARRAYS, *_TREE_SETS, *STATISTICS, "id", "tree_param"))
        tree["tree_param"].refuse_other_than(_TREE_PARAMETERS)
    if "cats" in model:
        model["cats"].refuse_other_than(("enc", "feature_segments", "sorted_idx"))


def _attributes(document: Mapping[str, Any], saved: SavedModel) -> dict[str, str]:
    """Those of the attributes that change predictions; users may keep any others."""
    attributes = {}
    if saved.best_iteration is not None:
        attributes["best_iteration"] = str(saved.best_iteration)
    if (role := saved_role(document)) != "booster":
        attributes["scikit_learn"] = json.dumps({"_estimator_type": role})
    return attributes


def _parameters(parameters: DocumentPart, saved: SavedModel) -> dict[str, str]:
    # numbers keep the words of the file: the library reads them to float32 in its own way
    written = {"base_score": parameters["base_score"].text(), "num_class": parameters["num_class"].text()}
    if "boost_from_average" in parameters:
        written["boost_from_average"] = str(parameters["boost_from_average"].printed_integer(0, 1))
    return written | {"num_feature": str(saved.n_features), "num_target": "1"}


def _objective(objective: DocumentPart) -> dict[str, Any]:
    return {
        group: objective[group].text()
        if group == "name"
        else {key: objective[group][key].text() for key in objective[group].fields()}
        for group in objective.fields()
    }


def _model(model: DocumentPart, saved: SavedModel) -> dict[str, Any]:
    parameters = model["gbtree_model_param"]
    per_round = parameters["num_parallel_tree"].printed_integer() if "num_parallel_tree" in parameters else 1
    written = {
        "gbtree_model_param": {"num_parallel_tree": str(max(per_round, 1)), "num_trees": str(len(saved.trees))},
        "iteration_indptr": saved.rounds.tolist(),
        "tree_info": saved.groups.tolist(),
        "trees": [_tree(tree, number, saved.n_features) for number, tree in enumerate(saved.trees)],
    }
    if "cats" in model:
        written["cats"] = _cats(model["cats"])
    return written


def _tree(saved: XGBoostTree, number: int, n_features: int) -> dict[str, Any]:
    n, kept, inner = len(saved.left), saved.kept, saved.left != -1
    # the library follows the parents of pruned nodes too; whose children these were, it does not ask
    parents = np.zeros(n, np.int32)
    parents[0] = NO_NODE
    for children in (saved.left, saved.right):
        above = np.flatnonzero(kept & inner)
        parents[children[above]] = above
    sizes = [len(codes) for codes in saved.subsets.values()]
    codes = np.concatenate([np.zeros(0, np.int64), *saved.subsets.values()])
    return {
        **saved.statistics,
        "categories": codes.astype(np.int32),
        "categories_nodes": np.array(list(saved.subsets), np.int32),
        "categories_segments": np.cumsum([0, *sizes])[:-1],
        "categories_sizes": np.array(sizes, np.int64),
        "default_left": np.where(kept, saved.default_left, True).astype(np.uint8),
        "id": number,
        "left_children": np.where(kept, saved.left, -1).astype(np.int32),
        "parents": parents,
        "right_children": np.where(kept, saved.right, -1).astype(np.int32),
        "split_conditions": np.where(kept, saved.condition, np.float32(0)),
        # the library knows a pruned node by this feature, together with a default to the left
        "split_indices": np.where(kept, np.where(inner, saved.feature, 0), NO_NODE).astype(np.int32),
        "split_type": saved.categorical.astype(np.uint8),
        "tree_param": {
            "num_deleted": str(n - int(kept.sum())),
            "num_feature": str(n_features),
            "num_nodes": str(n),
            "size_leaf_vector": "1",
        },
    }


def _cats(cats: DocumentPart) -> dict[str, Any]:
    return {
        "enc": [_category_column(column) for column in cats["enc"].parts()],
        "feature_segments": cats["feature_segments"].integers().astype(np.int32),
        "sorted_idx": cats["sorted_idx"].integers().astype(np.int32),
    }


def _category_column(column: DocumentPart) -> dict[str, Any]:
    """Categories of one column, which have been read once without an error."""
    column.refuse_other_than(("type", "offsets", "values"))
    if "offsets" in column:
        return {
            "offsets": column["offsets"].integers().astype(np.int32),
            "values": column["values"].integers(low=-128, high=127).astype(np.int8),
        }
    number = column["type"].integer()
    if number not in _CATEGORY_TYPES:
        raise column["type"].error(f"ocf does not know the type {number} of categories")
    bounds = np.iinfo(_CATEGORY_TYPES[number])
    values = column["values"].integers(low=int(bounds.min), high=int(bounds.max))
    return {"type": number, "values": values.astype(bounds.dtype)}

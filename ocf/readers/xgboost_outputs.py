"""One target of an XGBoost model of several: its document, as that of a model of that target alone.

With ``multi_strategy="one_output_per_tree"`` each tree speaks for one target, named in ``tree_info``. With
``"multi_output_tree"`` a leaf holds a value for each target: the place of its vector among ``leaf_weights`` stands
where an inner node has its right child (since XGBoost 3.2; before, vectors stood elsewhere and are refused).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from ocf.errors import UnsupportedModelError
from ocf.readers.document import DocumentPart


def n_targets(document: Mapping[str, Any]) -> int:
    """How many targets the model of a document predicts."""
    parameters = DocumentPart(document)["learner"]["learner_model_param"]
    return parameters["num_target"].printed_integer(1) if "num_target" in parameters else 1


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
        The trees are weighted, or hold vectors as older versions do.
    """
    learner = DocumentPart(document)["learner"]
    booster = learner["gradient_booster"]
    if booster["name"].text() != "gbtree":
        raise UnsupportedModelError(
            f"the booster {booster['name'].value[:40]!r} of several targets is not read: train with booster='gbtree'"
        )
    count, model = n_targets(document), booster["model"]
    trees = model["trees"].parts()
    stored = learner["learner_model_param"]["base_score"].printed_numbers()
    vectors = [tree["tree_param"]["size_leaf_vector"].printed_integer() > 1 for tree in trees]
    groups = model["tree_info"].integers(len(trees), 0, count - 1)
    own = [t for t in range(len(trees)) if vectors[t] or groups[t] == number]
    bounds = model["iteration_indptr"].integers(low=0, high=len(trees))
    out = copy.deepcopy(dict(document))
    inner = out["learner"]["gradient_booster"]["model"]
    inner["trees"] = [
        _alone(trees[t], number, count) | {"id": place} if vectors[t] else {**trees[t].value, "id": place}
        for place, t in enumerate(own)
    ]
    inner["tree_info"] = [0] * len(own)
    inner["iteration_indptr"] = np.searchsorted(own, bounds).tolist()
    inner["gbtree_model_param"]["num_trees"] = str(len(own))
    score = float(stored[number]) if len(stored) == count else float(stored[0])
    out["learner"]["learner_model_param"] |= {"num_target": "1", "base_score": f"[{score!r}]"}
    return out


def _alone(tree: DocumentPart, number: int, count: int) -> dict[str, Any]:
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
        **tree.value,
        "tree_param": {**tree["tree_param"].value, "size_leaf_vector": "1"},
        "right_children": np.where(leaves, -1, right).tolist(),
        "parents": parents.tolist(),
        "split_conditions": conditions.tolist(),
        "base_weights": tree["base_weights"].singles(n * count).reshape(-1, count)[:, number].tolist(),
    }

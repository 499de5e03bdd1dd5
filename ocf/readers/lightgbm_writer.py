"""LightGBM's text models written anew from their checked parts.

LightGBM trusts the files that it loads: an index out of range makes it read outside its memory. So it gets this text,
whose numbers ocf has checked, in place of a stranger's. Numbers are printed with the 17 digits that the library prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ocf.errors import ModelError
from ocf.readers.document import WHOLE
from ocf.readers.lightgbm_format import STATISTICS, LightGBMTree, ModelText, saved_categories, saved_tree

_HEADER = (
    "tree",
    "version",
    "num_class",
    "num_tree_per_iteration",
    "label_index",
    "max_feature_idx",
    "objective",
    "average_output",
    "feature_names",
    "monotone_constraints",
    "feature_infos",
    "tree_sizes",
)
_TREE = (
    "Tree",
    "num_leaves",
    "num_cat",
    "split_feature",
    "threshold",
    "decision_type",
    "left_child",
    "right_child",
    "leaf_value",
    "cat_boundaries",
    "cat_threshold",
    "is_linear",
    "shrinkage",
    *STATISTICS,
)
_VERSIONS = ("v2", "v3", "v4")


def write(model: ModelText) -> str:
    """Text model with all that predictions need, and nothing that has not been checked.

    Parameters
    ----------
    model : ModelText
        Which `ocf.readers.lightgbm_format.read_text` has read without an error.

    Raises
    ------
    ModelError
        The text has parts that are unknown here.
    """
    header = model.header
    _refuse_other_than(header, _HEADER, "the header")
    if header.get("version", "v4") not in _VERSIONS:
        raise ModelError(
            f"the format {header['version'][:40]!r} of the LightGBM model is none of {', '.join(_VERSIONS)}: save it "
            "with a version of LightGBM that ocf names as supported"
        )
    if not WHOLE.fullmatch(header.get("label_index", "")) or header.get("average_output", ""):
        raise ModelError("a line of the header has a wrong value: the LightGBM model is corrupt, save it again")
    n_features = int(header["max_feature_idx"]) + 1
    trees = []
    for number, tree in enumerate(model.trees):
        _refuse_other_than(tree, _TREE, f"Tree={number}")
        trees.append(_tree(saved_tree(tree, number, n_features), number))
    lines = [
        "tree",
        "version=v4",
        f"num_class={int(header['num_class'])}",
        f"num_tree_per_iteration={int(header['num_tree_per_iteration'])}",
        "label_index=0",
        f"max_feature_idx={n_features - 1}",
        *([f"objective={header['objective']}"] if "objective" in header else []),
        *(["average_output"] if "average_output" in header else []),
        f"feature_names={header['feature_names']}",
        f"feature_infos={header['feature_infos']}",
        "tree_sizes=" + " ".join(str(len(tree.encode())) for tree in trees),
    ]
    categories = f"\npandas_categorical:{json.dumps(saved_categories(model))}\n"
    return "\n".join(lines) + "\n\n" + "".join(trees) + "end of trees\n" + categories


def _refuse_other_than(fields: Mapping[str, str], known: Iterable[str], place: str) -> None:
    """Refuse entries that a newer version of the library may heed: the judge must not differ from the file."""
    if unknown := sorted(set(fields) - set(known)):
        raise ModelError(
            f"ocf does not know the line {unknown[0][:40]!r} in {place}, which might change the predictions: if a "
            "newer version of LightGBM wrote it, load the file with LightGBM and give ocf the booster"
        )


def _tree(saved: LightGBMTree, number: int) -> str:
    fields: dict[str, Iterable[Any]] = {
        "Tree": [number],
        "num_leaves": [len(saved.value)],
        "num_cat": [len(saved.bounds) - 1],
        "split_feature": saved.feature,
        "threshold": [f"{v:.17g}" for v in saved.threshold.tolist()],
        "decision_type": saved.bits,
        "left_child": saved.left,
        "right_child": saved.right,
        "leaf_value": [f"{v:.17g}" for v in saved.value.tolist()],
        **({"cat_boundaries": saved.bounds, "cat_threshold": saved.words} if len(saved.bounds) > 1 else {}),
        **{key: [text] for key, text in saved.statistics.items()},
        "is_linear": [0],
        "shrinkage": [1],
    }
    return "".join(f"{key}={' '.join(map(str, values))}\n" for key, values in fields.items()) + "\n\n"

"""XGBoost's JSON and UBJSON model documents as ensembles; needs no XGBoost.

What the library does, and how it is kept exactly:

* A value is cast to float32 and goes left when it is ``<`` the float32 threshold. The threshold of the
  ensemble is the largest float64 that the cast sends below it (`ocf.readers.float32.float32_less_than`).
* NaN goes where ``default_left`` says.
* A categorical split sends its listed codes *right* and every other code, unseen and negative ones too, left.
  The ensemble sends listed codes left, so the children change places.
* Scores start from ``base_score``, which files hold in the space of the prediction (a probability, a count),
  and add float32 leaf values, with ``weight_drop`` of the dart booster as the tree's weight.
* The estimators predict with the rounds up to ``best_iteration``; ``Booster.predict`` uses all rounds.

Source: https://xgboost.readthedocs.io/en/stable/tutorials/saving_model.html and its JSON schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers import ubjson
from ocf.readers.document import DocumentPart, load_json
from ocf.readers.float32 import float32_less_than
from ocf.readers.trees import MAX_FEATURES, BoostedTree, Link, Objective, Role, join, reachable
from ocf.trees.ensemble import Decision, Ensemble, SplitKind

#: float32 rounding of the sigmoid, or of the softmax of two close scores, decides within a few 2**-24.
_LINK_SLACK = 2.0**-22


_VALUE = Objective("value")
_LOGISTIC_VALUE = Objective("value", "logistic", _LINK_SLACK)
_EXP_VALUE = Objective("value", "exp")

_OBJECTIVES: dict[str, Objective] = {
    "binary:logistic": Objective("binary", "logistic", _LINK_SLACK),
    "binary:logitraw": Objective("binary"),
    "binary:hinge": Objective("binary"),
    # softmax: the library takes the largest margin; softprob: the caller takes the largest rounded probability
    "multi:softmax": Objective("multiclass", "softmax"),
    "multi:softprob": Objective("multiclass", "softmax", _LINK_SLACK),
    "reg:squarederror": _VALUE,
    "reg:linear": _VALUE,
    "reg:squaredlogerror": _VALUE,
    "reg:pseudohubererror": _VALUE,
    "reg:absoluteerror": _VALUE,
    "reg:quantileerror": _VALUE,
    "reg:expectileerror": _VALUE,
    "reg:logistic": _LOGISTIC_VALUE,
    "reg:gamma": _EXP_VALUE,
    "reg:tweedie": _EXP_VALUE,
    "count:poisson": _EXP_VALUE,
}


def parse(data: bytes) -> dict[str, Any]:
    """Model document of a JSON or UBJSON file, as nested dicts.

    Raises
    ------
    ModelError
        The bytes are empty, truncated or of another format.
    """
    if not data.strip():
        raise ModelError("the model file is empty: save the model again")
    document = load_json(data) if re.match(rb"\s*\{\s*[\"}]", data) else ubjson.decode(data)
    if not isinstance(document, dict) or "learner" not in document:
        raise ModelError(
            "the file is no XGBoost model (no 'learner' in it): save it with model.save_model('model.json')"
        )
    return document


@dataclass(frozen=True)
class XGBoostTree:
    """One tree as its file holds it, checked: every node but the pruned ones is reached once from the root.

    Attributes
    ----------
    left, right, feature : (n_nodes,) int64
        Children are -1 at leaves.
    condition : (n_nodes,) float32
        Threshold of numeric splits, value of leaves.
    default_left, categorical, kept : (n_nodes,) bool
        `kept` is False at pruned nodes.
    subsets : mapping of int to int array
        Codes that go right, by categorical node.
    statistics : mapping of str to (n_nodes,) float32
        What scores do not need.
    """

    left: IntArray
    right: IntArray
    feature: IntArray
    condition: NDArray[np.float32]
    default_left: BoolArray
    categorical: BoolArray
    kept: BoolArray
    subsets: Mapping[int, IntArray]
    statistics: Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class SavedModel:
    """A model document whose every part has been checked.

    Attributes
    ----------
    n_features, n_groups : int
    base_score : (1,) or (n_groups,) float64
        In the space of the prediction.
    objective : str
    trees : sequence of XGBoostTree
    groups : (n_trees,) int64
        Class that a tree adds to.
    weights : (n_trees,) float32 or None
        Of dart; None without.
    rounds : (n_rounds + 1,) int64
        Trees of round r are ``rounds[r]:rounds[r + 1]``.
    names, types : tuple of str
        Of features; may be empty.
    best_iteration : int or None
        Of early stopping.
    categories : mapping of int to tuple
        As `read_categories` returns them.
    """

    n_features: int
    n_groups: int
    base_score: FloatArray
    objective: str
    trees: Sequence[XGBoostTree]
    groups: IntArray
    weights: NDArray[np.float32] | None
    rounds: IntArray
    names: tuple[str, ...]
    types: tuple[str, ...]
    best_iteration: int | None
    categories: Mapping[int, tuple[Any, ...]]


def read_document(document: Mapping[str, Any], role: Role | None = None) -> Ensemble:
    """Ensemble of a model document; needs no XGBoost.

    Parameters
    ----------
    document : mapping
        From `parse`.
    role : {"booster", "classifier", "regressor"}, optional
        Whose ``predict`` the decision follows; by default that of the object that wrote the document.

    Raises
    ------
    ModelError
        A part is missing or malformed; the message names its place.
    UnsupportedModelError
        The model is no sum of trees with a class or a value as its answer.
    """
    return ensemble_of(read_saved(document), role or saved_role(document))


def ensemble_of(saved: SavedModel, role: Role) -> Ensemble:
    """Ensemble of a checked document; see `read_document`.

    Parameters
    ----------
    saved : SavedModel
    role : Role
        Whether scores are classes, a margin or a value.
    """
    objective = _objective(saved.objective)
    weights = np.ones(len(saved.trees)) if saved.weights is None else saved.weights
    return join(
        [
            _tree(saved.trees[t], output=int(saved.groups[t]), weight=float(weights[t]))
            for t in range(_n_trees_used(saved, role))
        ],
        feature_names=saved.names or tuple(f"f{i}" for i in range(saved.n_features)),
        base_score=_base_score(saved.base_score, objective, saved.n_groups),
        decision=_decision(saved.objective, objective, saved.n_groups, role),
        precision="float32",
    )


def read_categories(document: Mapping[str, Any]) -> dict[int, tuple[Any, ...]]:
    """Categories of the training table's category columns, in the order of their codes; XGBoost keeps them since 3.1.

    Parameters
    ----------
    document : mapping
        From `parse`.

    Returns
    -------
    dict of int to tuple
        By column; empty for older models and for arrays of codes.

    Raises
    ------
    ModelError
        The categories are malformed.
    """
    learner = DocumentPart(document)["learner"]
    return _categories(trees_part(learner), learner["learner_model_param"]["num_feature"].printed_integer())


def saved_role(document: Mapping[str, Any]) -> Role:
    """Estimators note their type in the files that they save."""
    try:
        note = json.loads(document["learner"]["attributes"]["scikit_learn"])["_estimator_type"]
    except (KeyError, TypeError, ValueError, IndexError, RecursionError):
        return "booster"
    return note if note in ("classifier", "regressor") else "booster"


def trees_part(learner: DocumentPart) -> DocumentPart:
    """Part of a document that holds the trees: dart wraps it once more."""
    booster = learner["gradient_booster"]
    if booster["name"].value != "dart":
        return booster["model"]
    wrapped = booster["gbtree"]
    if wrapped["name"].text() != "gbtree":
        raise wrapped["name"].error(f"{wrapped['name'].value[:40]!r} is not 'gbtree'")
    return wrapped["model"]


def _weights(booster: DocumentPart, model: DocumentPart, n_trees: int) -> NDArray[np.float32] | None:
    """Weights of trees that were dropped in training: beside the trees since XGBoost 3.4, around them before."""
    holder = booster if booster["name"].value == "dart" else model
    if holder is model and ("weight_drop" not in model or not model["weight_drop"].value):
        return None
    return holder["weight_drop"].finite_singles(n_trees)


def read_saved(document: Mapping[str, Any]) -> SavedModel:
    """Every part of a model document, checked; raises as `read_document` does."""
    learner = DocumentPart(document)["learner"]
    _refuse_other_than_trees(learner)
    parameters = learner["learner_model_param"]
    model = trees_part(learner)
    trees = model["trees"].parts()
    n_trees = model["gbtree_model_param"]["num_trees"]
    if n_trees.printed_integer() != len(trees):
        raise n_trees.error(f"{n_trees.value} trees are announced and {len(trees)} are there")
    n_groups = max(parameters["num_class"].printed_integer(), 1)
    if n_groups > len(trees) > 0:
        raise parameters["num_class"].error(f"{n_groups} classes need more than {len(trees)} trees")
    n_features = parameters["num_feature"].printed_integer()
    if n_features > MAX_FEATURES:
        raise UnsupportedModelError(
            f"the model has {n_features} features, ocf takes {MAX_FEATURES}: train on fewer columns"
        )
    names, types = _feature_texts(learner, n_features)
    _check_objective(learner["objective"], n_groups)
    booster = learner["gradient_booster"]
    rounds = _rounds(model, len(trees), n_groups)
    return SavedModel(
        n_features=n_features,
        n_groups=n_groups,
        base_score=_stored_base_score(parameters["base_score"], n_groups),
        objective=learner["objective"]["name"].text(),
        trees=[_saved_tree(tree, number, n_features) for number, tree in enumerate(trees)],
        groups=model["tree_info"].integers(len(trees), 0, n_groups - 1),
        weights=_weights(booster, model, len(trees)),
        rounds=rounds,
        names=names,
        types=types,
        best_iteration=_best_iteration(learner),
        categories=_categories(model, n_features),
    )


def count_targets(parameters: DocumentPart) -> int:
    """How many targets a model with these ``learner_model_param`` predicts."""
    count = parameters["num_target"].printed_integer() if "num_target" in parameters else 1
    if count < 1:
        raise parameters["num_target"].error("a model has at least one target")
    return count


def _refuse_other_than_trees(learner: DocumentPart) -> None:
    booster = learner["gradient_booster"]["name"].text()
    if booster not in ("gbtree", "dart"):
        raise UnsupportedModelError(
            f"the booster {booster[:40]!r} is no sum of trees: train with booster='gbtree' or 'dart', or give a "
            "linear scikit-learn model instead"
        )
    parameters = learner["learner_model_param"]
    n_targets = count_targets(parameters)
    if n_targets > 1:
        raise UnsupportedModelError(
            f"the model predicts {n_targets} targets at once: say which one, for example "
            "Explainer(model, data, output=0) or --model-output 0, or train one model per target"
        )


def _objective(name: str) -> Objective:
    if name not in _OBJECTIVES:
        raise UnsupportedModelError(
            f"the objective {name[:40]!r} gives neither a class nor a value to aim at: train with one of "
            + ", ".join(sorted(_OBJECTIVES))
        )
    return _OBJECTIVES[name]


def _check_objective(objective: DocumentPart, n_groups: int) -> None:
    """Check the objective's parameters, with which the library transforms scores."""
    if _objective(objective["name"].text()).task == "multiclass":
        n_classes = objective["softmax_multiclass_param"]["num_class"]
        if n_classes.printed_integer() != n_groups:
            raise n_classes.error(f"{n_classes.value} classes here and {n_groups} in learner_model_param")
    for group in objective.fields():
        if group != "name":
            for key in objective[group].fields():
                if len(objective[group][key].printed_numbers()) != 1:
                    raise objective[group][key].error("one number is expected")


#: Types of features that XGBoost writes: quantitative, integer, indicator, category.
_FEATURE_TYPES = frozenset({"float", "q", "int", "i", "c"})


def _feature_texts(learner: DocumentPart, n_features: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and types of the features, each empty where the document has none."""
    names, types = (learner[key].texts() if key in learner else () for key in ("feature_names", "feature_types"))
    for key, texts in (("feature_names", names), ("feature_types", types)):
        if texts and len(texts) != n_features:
            raise learner[key].error(f"the model has {n_features} features but {len(texts)} of these")
    if len(set(names)) != len(names) or any(set(name) & set("[]<") for name in names):
        raise learner["feature_names"].error("a name comes twice, or holds one of '[', ']' and '<'")
    if not set(types) <= _FEATURE_TYPES:
        raise learner["feature_types"].error(f"a type is none of {', '.join(sorted(_FEATURE_TYPES))}")
    return names, types


def _rounds(model: DocumentPart, n_trees: int, n_groups: int) -> IntArray:
    """Bounds of the boosting rounds among the trees."""
    parameters = model["gbtree_model_param"]
    per_round = 1
    if "num_parallel_tree" in parameters:
        per_round = max(parameters["num_parallel_tree"].printed_integer(), 1)
    if "iteration_indptr" not in model or not n_trees:
        # files from before 2.0 do not say where rounds begin, but all are of one size there
        return np.append(np.arange(0, n_trees, n_groups * per_round), n_trees)
    bounds = model["iteration_indptr"].integers(low=0, high=n_trees)
    if not len(bounds) or bounds[0] != 0 or bounds[-1] != n_trees or np.any(np.diff(bounds) < 0):
        raise model["iteration_indptr"].error("the bounds of the boosting rounds do not fit the trees")
    return bounds


def _best_iteration(learner: DocumentPart) -> int | None:
    if "attributes" not in learner:
        return None
    attributes = learner["attributes"]
    for key in attributes.fields():
        attributes[key].text()
    return attributes["best_iteration"].printed_integer() if "best_iteration" in attributes else None


def _n_trees_used(saved: SavedModel, role: Role) -> int:
    """Count the trees that ``predict`` sums: the estimators stop after the best round of early stopping."""
    if role == "booster" or saved.best_iteration is None:
        return len(saved.trees)
    n_rounds = len(saved.rounds) - 1
    if saved.best_iteration >= n_rounds:
        raise ModelError(
            f"the best round is {saved.best_iteration} of {n_rounds}, at learner.attributes.best_iteration: the model "
            "is corrupt, save it again"
        )
    return int(saved.rounds[saved.best_iteration + 1])


def _stored_base_score(part: DocumentPart, n_groups: int) -> FloatArray:
    """Prediction of a model without trees: one number or, since 3.1, one number per class."""
    stored = part.printed_numbers()
    with np.errstate(over="ignore"):
        finite = np.isfinite(stored.astype(np.float32)).all()
    if stored.shape not in ((1,), (n_groups,)) or not finite:
        raise part.error(f"the base_score {part.value[:60]!r} does not fit {n_groups} scores")
    return stored


def _base_score(stored: FloatArray, objective: Objective, n_groups: int) -> FloatArray:
    """Scores of a model without trees."""
    return np.broadcast_to(_to_margin(stored.astype(np.float32), objective.link), n_groups).astype(np.float64)


def _to_margin(stored: NDArray[np.float32], link: Link) -> NDArray[np.float32]:
    """Inverse of the link, in float32 as the library computes it."""
    if link == "logistic":
        if not np.all((stored > 0) & (stored < 1)):
            raise ModelError(f"base_score {stored.tolist()} is no probability: the model is corrupt, save it again")
        # near one half the float32 subtraction is not accurate, and the library uses what it gives
        return -np.log(np.float32(1) / stored - np.float32(1))
    if link == "exp":
        if not np.all(stored > 0):
            raise ModelError(f"base_score {stored.tolist()} is not positive: the model is corrupt, save it again")
        return np.log(stored)
    return stored


def _decision(name: str, objective: Objective, n_groups: int, role: Role) -> Decision:
    """How ``predict`` of a booster, a classifier or a regressor turns scores into its answer."""
    two_classes: Callable[..., Decision] = partial(
        Decision, "threshold", (0, 1), link=objective.link, slack=objective.slack
    )
    if objective.task == "multiclass":
        if role == "regressor":
            raise UnsupportedModelError(f"a regressor of objective {name!r} predicts classes: use XGBClassifier")
        return Decision("argmax", tuple(range(n_groups)), link=objective.link, slack=objective.slack)
    if n_groups > 1:
        raise UnsupportedModelError(f"the objective {name!r} with {n_groups} classes is unknown: use multi:softprob")
    if role == "regressor":
        if name == "binary:hinge":
            raise UnsupportedModelError("a regressor of objective 'binary:hinge' predicts classes: use XGBClassifier")
        return Decision("value", link=objective.link)
    if role == "booster":
        return two_classes() if objective.task == "binary" else Decision("value", link=objective.link)
    if objective.link == "exp":
        raise UnsupportedModelError(
            f"a classifier of objective {name!r} has no probabilities: train with objective='binary:logistic'"
        )
    # XGBClassifier compares whatever the objective shows with one half. Hinge shows the class itself, sigmoids
    # one half at a score of zero; the others show the score.
    shows_score = objective.link == "identity" and name != "binary:hinge"
    return two_classes(threshold=0.5 if shows_score else 0.0)


#: Arrays of a tree that scores do not need.
STATISTICS = ("base_weights", "loss_changes", "sum_hessian")
#: Parent of the root, and feature of a pruned node.
NO_NODE = 2**31 - 1
_SETS = ("categories_nodes", "categories", "categories_segments", "categories_sizes")
#: Codes are stored in float32, which counts no further.
_MAX_CODE = 2**24 - 1


def _saved_tree(part: DocumentPart, number: int, n_features: int) -> XGBoostTree:
    parameters = part["tree_param"]
    if parameters["size_leaf_vector"].printed_integer() > 1:
        raise UnsupportedModelError(
            "leaves hold vectors (multi_strategy='multi_output_tree'): train with multi_strategy='one_output_per_tree'"
        )
    if part["id"].integer() != number:  # the library puts the tree where its id says
        raise part["id"].error(f"the id of tree {number} is {part['id'].value}")
    parameters["num_feature"].printed_integer()
    n = parameters["num_nodes"].printed_integer(1)
    left, right = (part[key].integers(n, -1, n - 1) for key in ("left_children", "right_children"))
    inner = left != -1
    kept = _kept_nodes(part, number, left, right)
    split_type = part["split_type"].integers(n, 0, 1) if "split_type" in part else np.zeros(n, np.int64)
    categorical = (split_type == 1) & inner & kept
    feature = part["split_indices"].integers(n, 0)
    for node in np.flatnonzero(inner & kept & (feature >= n_features))[:1]:
        raise part["split_indices"].error(f"the model has no feature {feature[node]}", int(node))
    # XGBoost 2 writes NaN where categories split
    condition = np.where(categorical, np.float32(0), part["split_conditions"].singles(n))
    wrong = np.where(inner, np.isnan(condition), ~np.isfinite(condition)) & kept
    for node in np.flatnonzero(wrong)[:1]:
        raise part["split_conditions"].error("a threshold or leaf value is no number", int(node))
    subsets = _subsets(part, split_type)
    return XGBoostTree(
        left=left,
        right=right,
        feature=feature,
        condition=condition,
        default_left=part["default_left"].flags(n),
        categorical=categorical,
        kept=kept,
        subsets={v: subsets[v] for v in np.flatnonzero(categorical).tolist()},
        statistics={key: part[key].singles(n) for key in STATISTICS},
    )


def _kept_nodes(part: DocumentPart, number: int, left: IntArray, right: IntArray) -> BoolArray:
    """Nodes below the root, each reached once; the others must be those that the library has pruned."""
    n = len(left)
    inner = left != -1
    for node in np.flatnonzero(inner != (right != -1))[:1]:
        raise part["right_children"].error("a node has one child", int(node))
    kept = np.zeros(n, bool)
    kept[reachable(inner, left, right, number)] = True
    n_pruned = part["tree_param"]["num_deleted"].printed_integer() if "num_deleted" in part["tree_param"] else 0
    if n_pruned != n - kept.sum():
        raise part["tree_param"].error(f"{n_pruned} pruned nodes are announced, {n - kept.sum()} hang loose")
    parents = part["parents"].integers(n)
    # the library follows the parents of pruned nodes too
    for node in np.flatnonzero((parents < 0) | (parents >= n))[:2]:
        if node or parents[0] not in (-1, NO_NODE):
            raise part["parents"].error(f"there is no node {parents[node]}", int(node))
    above = np.flatnonzero(inner & kept)
    for children in (left[above], right[above]):
        for node in children[parents[children] != above][:1]:
            raise part["parents"].error("the parents and children of the tree disagree", int(node))
    return kept


def _tree(saved: XGBoostTree, output: int, weight: float) -> BoostedTree:
    kind = np.where(saved.categorical, SplitKind.SUBSET, SplitKind.AXIS).astype(np.uint8)
    kind[saved.left == -1] = SplitKind.LEAF
    return BoostedTree(
        kind=kind,
        feature=saved.feature,
        threshold=float32_less_than(saved.condition),
        # listed categories go right in the library, left in the ensemble
        left=np.where(saved.categorical, saved.right, saved.left),
        right=np.where(saved.categorical, saved.left, saved.right),
        missing_left=saved.default_left ^ saved.categorical,
        value=saved.condition.astype(np.float64),
        subsets=saved.subsets,
        output=output,
        weight=weight,
    )


def _subsets(part: DocumentPart, split_type: IntArray) -> dict[int, IntArray]:
    """Return the listed category codes by node."""
    listed = np.flatnonzero(split_type == 1)
    if not len(listed) and not any(key in part for key in _SETS):  # files from before 1.3
        return {}
    nodes = part["categories_nodes"].integers()
    if not np.array_equal(nodes, listed):
        raise part["categories_nodes"].error("the categorical splits of the tree do not have one set each")
    codes = part["categories"].integers(low=0, high=_MAX_CODE)
    starts, sizes = (
        part[key].integers(len(nodes), 0, len(codes)) for key in ("categories_segments", "categories_sizes")
    )
    for k in np.flatnonzero(starts + sizes > len(codes))[:1]:
        raise part["categories_sizes"].error("the set ends beyond the listed categories", int(k))
    return {int(v): codes[a : a + k] for v, a, k in zip(nodes, starts, sizes, strict=True)}


def _categories(model: DocumentPart, n_features: int) -> dict[int, tuple[Any, ...]]:
    if "cats" not in model:
        return {}
    columns = model["cats"]["enc"].parts()
    if columns and len(columns) != n_features:
        raise model["cats"]["enc"].error(f"the model has {n_features} features but {len(columns)} of these")
    read = {j: _names(column) for j, column in enumerate(columns)}
    _check_order(model["cats"], [len(names) for names in read.values()])
    return {j: names for j, names in read.items() if names}


def _check_order(cats: DocumentPart, sizes: Sequence[int]) -> None:
    """Check how the library finds a category: for each column, its categories' positions in the order of its search."""
    ends = np.cumsum([0, *sizes]) if len(sizes) else np.zeros(0, np.int64)
    segments = cats["feature_segments"]
    if not np.array_equal(segments.integers(), ends):
        raise segments.error("the segments are not those of the categories")
    order = cats["sorted_idx"].integers(sum(sizes), 0)
    if not np.array_equal(np.sort(order + np.repeat(ends[:-1], sizes)), np.arange(sum(sizes))):
        raise cats["sorted_idx"].error("the order of the categories is no permutation")


def _names(column: DocumentPart) -> tuple[Any, ...]:
    """Categories of one column: whole numbers, or words as ranges of one text."""
    if "offsets" not in column:
        names: tuple[Any, ...] = tuple(column["values"].integers(low=-(2**63), high=2**63 - 1).tolist())
    else:
        text = column["values"].integers(low=-128, high=127).astype(np.int8).tobytes()
        if not text.isascii():
            # XGBoost counts characters where it needs bytes, and so cuts names in the wrong places
            raise UnsupportedModelError(
                f"XGBoost does not store names of categories in other letters than ASCII as they were, at {column.at}: "
                "rename the categories and fit again"
            )
        ends = column["offsets"].integers(low=0)
        if (len(ends) and (np.diff(ends).min(initial=0) < 0 or ends[0] != 0)) or ends[-1:].sum() != len(text):
            raise column["offsets"].error("the names of the model's categories do not fill their text")
        names = tuple(text[a:b].decode() for a, b in pairwise(ends.tolist()))
    if len(set(names)) != len(names):
        raise column.error("one of the model's categories comes twice")
    return names

"""XGBoost's JSON and UBJSON model documents as ensembles; needs no XGBoost.

What the library does, and how it is kept exactly:

* A value is cast to float32 and goes left when it is ``<`` the float32 threshold. The threshold of the
  ensemble is the largest float64 that the cast sends below it (`ocf.floats.float32_less_than`).
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ocf.ensemble import Decision, Ensemble, FloatArray, IntArray, SplitKind
from ocf.errors import ModelError, UnsupportedModelError
from ocf.floats import float32_less_than
from ocf.readers import ubjson
from ocf.readers.trees import Link, Role, Tree, join

#: float32 rounding of the sigmoid, or of the softmax of two close scores, decides within a few 2**-24.
_LINK_SLACK = 2.0**-22


@dataclass(frozen=True)
class _Objective:
    """What an objective makes of the scores; `task` is the kind of answer."""

    task: Literal["binary", "multiclass", "value"]
    link: Link = "identity"
    slack: float = 0.0


_VALUE = _Objective("value")
_LOGISTIC_VALUE = _Objective("value", "logistic", _LINK_SLACK)
_EXP_VALUE = _Objective("value", "exp")

_OBJECTIVES: dict[str, _Objective] = {
    "binary:logistic": _Objective("binary", "logistic", _LINK_SLACK),
    "binary:logitraw": _Objective("binary"),
    "binary:hinge": _Objective("binary"),
    # softmax: the library takes the largest margin; softprob: the caller takes the largest rounded probability
    "multi:softmax": _Objective("multiclass", "softmax"),
    "multi:softprob": _Objective("multiclass", "softmax", _LINK_SLACK),
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
    if re.match(rb"\s*\{\s*[\"}]", data):
        try:
            document = json.loads(data)
        except (ValueError, RecursionError) as cause:
            raise ModelError(f"invalid JSON in the model file ({cause}; truncated?): save the model again") from cause
    else:
        document = ubjson.decode(data)
    if not isinstance(document, dict) or "learner" not in document:
        raise ModelError(
            "the file is no XGBoost model (no 'learner' in it): save it with model.save_model('model.json')"
        )
    return document


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
        A part is missing or malformed.
    UnsupportedModelError
        The model is no sum of trees with a class or a value as its answer.
    """
    role = role or saved_role(document)
    try:
        return _ensemble(document, role)
    except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as cause:
        raise ModelError(
            f"the XGBoost model lacks a part or holds a wrong one ({type(cause).__name__}: {cause}): it is "
            "corrupt, save it again"
        ) from cause
    except ValueError as cause:
        if isinstance(cause, ModelError):
            raise
        raise ModelError(f"the XGBoost model is corrupt ({cause}): save it again") from cause


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
    booster = document["learner"]["gradient_booster"]
    model = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    try:
        columns = model.get("cats", {}).get("enc", ())
        read = {j: _names(column) for j, column in enumerate(columns)}
    except (KeyError, TypeError, ValueError, AttributeError) as cause:
        raise ModelError(f"the model's categories are malformed ({cause}): it is corrupt, save it again") from cause
    return {j: names for j, names in read.items() if names}


def _names(column: Mapping[str, Any]) -> tuple[Any, ...]:
    """Categories of one column: whole numbers, or words as ranges of one string of UTF-8."""
    values = _column(column["values"], np.int64)
    if "offsets" not in column:
        return tuple(values.tolist())
    text = values.astype(np.int8).tobytes()
    ends = _column(column["offsets"], np.int64)
    if len(ends) and (np.diff(ends).min(initial=0) < 0 or ends[0] != 0 or ends[-1] != len(text)):
        raise ValueError("the names do not fill their text")
    return tuple(text[a:b].decode() for a, b in pairwise(ends.tolist()))


def saved_role(document: Mapping[str, Any]) -> Role:
    """Estimators note their type in the files that they save."""
    try:
        note = json.loads(document["learner"]["attributes"]["scikit_learn"])["_estimator_type"]
    except (KeyError, TypeError, ValueError):
        return "booster"
    return note if note in ("classifier", "regressor") else "booster"


def _ensemble(document: Mapping[str, Any], role: Role) -> Ensemble:
    learner = document["learner"]
    _refuse_other_than_trees(learner)
    parameters = learner["learner_model_param"]
    n_groups = max(int(parameters["num_class"]), 1)
    objective = _objective(learner["objective"]["name"])
    booster = learner["gradient_booster"]
    model = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    groups = np.asarray(model["tree_info"], np.int64)
    weights = _column(booster["weight_drop"], np.float32) if booster["name"] == "dart" else np.ones(len(groups))
    if not len(groups) == len(weights) == len(model["trees"]):
        raise ModelError("the model's trees, tree_info and weight_drop differ in length: it is corrupt, save it again")
    if len(groups) and not 0 <= groups.min() <= groups.max() < n_groups:
        raise ModelError("a tree adds to a class that the model does not have: it is corrupt, save it again")
    n_features = int(parameters["num_feature"])
    names = tuple(str(name) for name in learner.get("feature_names", ()))
    if names and len(names) != n_features:
        raise ModelError(f"the model has {n_features} features but {len(names)} names: it is corrupt, save it again")
    return join(
        [
            _tree(model["trees"][t], output=int(groups[t]), weight=float(weights[t]))
            for t in range(_n_trees_used(learner, model, n_groups, role))
        ],
        feature_names=names or tuple(f"f{i}" for i in range(n_features)),
        base_score=_base_score(parameters["base_score"], objective, n_groups),
        decision=_decision(learner["objective"]["name"], objective, n_groups, role),
        precision="float32",
    )


def _column(values: Any, dtype: Any) -> NDArray[Any]:
    """One-dimensional array; JSON holds lists, UBJSON arrays."""
    with np.errstate(all="ignore"):  # nonsense in a damaged file is found by the checks that follow
        column = np.asarray(values).astype(dtype) if len(values) else np.zeros(0, dtype)
    if column.ndim != 1:
        raise ModelError("an array of the model is not one-dimensional: it is corrupt, save it again")
    return column


def _refuse_other_than_trees(learner: Mapping[str, Any]) -> None:
    booster = learner["gradient_booster"]["name"]
    if booster not in ("gbtree", "dart"):
        raise UnsupportedModelError(
            f"the booster {booster!r} is no sum of trees: train with booster='gbtree' or 'dart', or give a "
            "linear scikit-learn model instead"
        )
    n_targets = int(learner["learner_model_param"].get("num_target", 1))
    if n_targets > 1:
        raise UnsupportedModelError(
            f"the model predicts {n_targets} targets at once: train one model per target, explain one of them"
        )


def _objective(name: str) -> _Objective:
    if name not in _OBJECTIVES:
        raise UnsupportedModelError(
            f"the objective {name!r} gives neither a class nor a value to aim at: train with one of "
            + ", ".join(sorted(_OBJECTIVES))
        )
    return _OBJECTIVES[name]


def _n_trees_used(learner: Mapping[str, Any], model: Mapping[str, Any], n_groups: int, role: Role) -> int:
    """Count the trees that ``predict`` sums: the estimators stop after the best round of early stopping."""
    n_trees = len(model["trees"])
    bounds = model.get("iteration_indptr")
    if bounds is None or not len(bounds):
        # files from before 2.0 do not say where rounds begin, but all are of one size there
        per_round = n_groups * max(int(model["gbtree_model_param"].get("num_parallel_tree", 1)), 1)
        bounds = np.append(np.arange(0, n_trees, per_round), n_trees)
    bounds = _column(bounds, np.int64)
    if bounds[0] != 0 or bounds[-1] != n_trees or np.any(np.diff(bounds) < 0):
        raise ModelError("the bounds of the boosting rounds do not fit the trees: the model is corrupt, save it again")
    best = (learner.get("attributes") or {}).get("best_iteration")
    if role == "booster" or best is None:
        return n_trees
    if int(best) < 0:
        raise ModelError(f"the best round is {best}: the model is corrupt, save it again")
    return int(bounds[min(int(best) + 1, len(bounds) - 1)])


def _base_score(text: str, objective: _Objective, n_groups: int) -> FloatArray:
    """Scores of a model without trees, from one number or, since 3.1, one number per class."""
    stored = np.atleast_1d(np.asarray(json.loads(text), np.float64)).astype(np.float32)
    if stored.shape not in ((1,), (n_groups,)) or not np.isfinite(stored).all():
        raise ModelError(f"base_score {text[:60]!r} does not fit {n_groups} scores: the model is corrupt")
    return np.broadcast_to(_to_margin(stored, objective.link), n_groups).astype(np.float64)


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


def _decision(name: str, objective: _Objective, n_groups: int, role: Role) -> Decision:
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


def _tree(data: Mapping[str, Any], output: int, weight: float) -> Tree:
    if int(data["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise UnsupportedModelError(
            "leaves hold vectors (multi_strategy='multi_output_tree'): train with multi_strategy='one_output_per_tree'"
        )
    left = _column(data["left_children"], np.int64)
    n = len(left)
    right = _column(data["right_children"], np.int64)
    feature = _column(data["split_indices"], np.int64)
    conditions = _column(data["split_conditions"], np.float32)
    default_left = _column(data["default_left"], bool)
    split_type = _column(data.get("split_type", np.zeros(n)), np.int64)
    categorical = split_type == 1
    if not all(len(column) == n for column in (right, feature, conditions, default_left, categorical)):
        raise ModelError("the arrays of a tree differ in length: the model is corrupt, save it again")
    listed = _column(data.get("categories_nodes", ()), np.int64)
    if not (np.isin(split_type, (0, 1)).all() and np.array_equal(np.flatnonzero(categorical), listed)):
        raise ModelError(
            "the categorical splits of a tree do not have one set each: the model is corrupt, save it again"
        )
    kind = np.where(categorical, SplitKind.SUBSET, SplitKind.AXIS).astype(np.uint8)
    kind[left == -1] = SplitKind.LEAF
    _check_unused(data, kind, left, right)
    subset = kind == SplitKind.SUBSET
    return Tree(
        kind=kind,
        feature=feature,
        threshold=float32_less_than(conditions),
        # listed categories go right in the library, left in the ensemble
        left=np.where(subset, right, left),
        right=np.where(subset, left, right),
        missing_left=default_left ^ subset,
        value=conditions.astype(np.float64),
        subsets=_subsets(data) if subset.any() else {},
        output=output,
        weight=weight,
    )


def _check_unused(data: Mapping[str, Any], kind: NDArray[np.uint8], left: IntArray, right: IntArray) -> None:
    """Check the arrays that scores do not need, since the library crashes the process on malformed ones."""
    n = len(kind)
    if any(len(data[key]) != n for key in ("base_weights", "loss_changes", "sum_hessian", "parents")):
        raise ModelError("the arrays of a tree differ in length: the model is corrupt, save it again")
    parents = _column(data["parents"], np.int64)
    inner = np.flatnonzero(kind != SplitKind.LEAF)
    for children in (left[inner], right[inner]):
        inside = (children > 0) & (children < n)
        if not inside.all() or np.any(parents[children] != inner):
            raise ModelError("the parents and children of a tree disagree: the model is corrupt, save it again")


def _subsets(data: Mapping[str, Any]) -> dict[int, IntArray]:
    """Return the listed category codes by node."""
    codes = _column(data["categories"], np.int64)
    starts = _column(data["categories_segments"], np.int64)
    sizes = _column(data["categories_sizes"], np.int64)
    nodes = _column(data["categories_nodes"], np.int64)
    if not len(nodes) == len(starts) == len(sizes) or np.any(starts < 0) or np.any(starts + sizes > len(codes)):
        raise ModelError("the category sets of a tree do not fit together: the model is corrupt, save it again")
    return {int(v): codes[a : a + k] for v, a, k in zip(nodes, starts, sizes, strict=True)}

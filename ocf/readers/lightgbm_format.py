"""LightGBM's text models as ensembles; needs no LightGBM.

What the library does, and how it is kept exactly:

* A value goes left when it is ``<=`` the threshold, both float64. But values within ``1e-35f`` of zero are first
  replaced by zero, so that a threshold in this zone is moved to the zone's edge.
* NaN goes where the split says when its missing type is NaN. Of missing type None it is taken for zero, and in a
  categorical split it goes right.
* A categorical split sends its listed codes left, all others right. Codes are those of the library: of a table,
  the positions in the training table's categories.
* Leaf values hold the learning rate and the starting score already. Random forests divide the sum by the number
  of rounds, and sigmoids multiply it by their parameter; both become the trees' weights, so that the score is
  what the plain link takes.

Source: https://lightgbm.readthedocs.io/en/stable/Advanced-Topics.html and the library's ``Tree::ToString``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ocf.ensemble import Decision, Ensemble, FloatArray, IntArray, SplitKind
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers.trees import Link, Role, Tree, join

#: Values no farther from zero are zero to the library.
_ZERO_ZONE = float(np.float32(1e-35))
#: float64 rounding of the sigmoid around one half, or of the softmax of two close scores.
_LINK_SLACK = 2.0**-49

_CATEGORICAL, _DEFAULT_LEFT, _MISSING_SHIFT = 1, 2, 2
_MISSING_NONE, _MISSING_ZERO, _MISSING_NAN = 0, 1, 2


@dataclass(frozen=True)
class ModelText:
    """The parts of a text model: ``key=value`` lines of the header and of each tree."""

    header: Mapping[str, str]
    trees: Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class _Objective:
    """What an objective makes of the scores; `task` is the kind of answer."""

    task: Literal["binary", "multiclass", "value"]
    link: Link = "identity"


_VALUE = _Objective("value")
_EXP_VALUE = _Objective("value", "exp")

_OBJECTIVES: dict[str, _Objective] = {
    "binary": _Objective("binary", "logistic"),
    "multiclass": _Objective("multiclass", "softmax"),
    "multiclassova": _Objective("multiclass", "logistic"),
    "regression": _VALUE,
    "regression_l1": _VALUE,
    "huber": _VALUE,
    "fair": _VALUE,
    "quantile": _VALUE,
    "mape": _VALUE,
    "poisson": _EXP_VALUE,
    "gamma": _EXP_VALUE,
    "tweedie": _EXP_VALUE,
    "cross_entropy": _Objective("value", "logistic"),
    "custom": _VALUE,
}


def parse(text: str) -> ModelText:
    """Header and trees of a text model.

    Raises
    ------
    ModelError
        The text is empty, truncated or of another format.
    """
    text = unix_lines(text)
    if not text.strip():
        raise ModelError("the model file is empty: save the model again")
    if not text.startswith("tree\n"):
        raise ModelError(
            "the text is no LightGBM model (its first line is not 'tree'): save it with booster.save_model('model.txt')"
        )
    body, end, rest = text.partition("\nend of trees\n")
    if not end:
        raise ModelError("the LightGBM model ends early (no line 'end of trees'): save the model again")
    # the library crashes on parameters that break off
    if re.search(r"^parameters:", rest, re.MULTILINE) and "\nend of parameters" not in rest:
        raise ModelError("the LightGBM model ends early (no line 'end of parameters'): save the model again")
    blocks = re.split(r"^(?=Tree=)", body + "\n", flags=re.MULTILINE)
    header, *trees = [_fields(block) for block in blocks]
    # the library jumps by these byte counts, and aborts the process when they are wrong
    announced = header.get("tree_sizes")
    if announced is not None and announced.split() != [str(len(block.encode())) for block in blocks[1:]]:
        raise ModelError("the trees are not of the sizes that the LightGBM model announces: save the model again")
    return ModelText(header, trees)


def unix_lines(text: str) -> str:
    """Text as the library wrote it, should a tool have changed its line ends."""
    return text.replace("\r\n", "\n")


def _fields(block: str) -> dict[str, str]:
    """Key and value of each line."""
    lines = [line for line in block.splitlines() if line.strip()]
    if block.startswith("Tree=") and not all("=" in line for line in lines):
        raise ModelError("a line of a tree is not of the form 'key=value': the model is corrupt, save it again")
    pairs = (line.partition("=") for line in lines)
    return {key.strip(): value.strip() for key, _, value in pairs}


def category_columns(model: ModelText, categories: Sequence[Sequence[Any]]) -> dict[int, tuple[Any, ...]]:
    """Columns to which the lists of categories of a training table belong; none where that is not certain.

    The library keeps a list for each category column of the table, in the order of the columns, but not which columns
    these were: ordered categories, and all where the user named other category columns, pass for numbers. A column
    fits a list when the values that it took are codes of the list.

    Parameters
    ----------
    model : ModelText
    categories : sequence of sequences
        The booster's ``pandas_categorical``.

    Returns
    -------
    dict of int to tuple
        Categories by column.
    """
    infos = model.header.get("feature_infos", "").split()
    sets = {j for j, info in enumerate(infos) if _is_set(info)}
    fits = [[j for j, info in enumerate(infos) if _fits(info, len(levels))] for levels in categories]
    found = [chosen for chosen in _increasing(fits) if sets <= set(chosen)] or list(_increasing(fits))
    if len(found) != 1:
        return {}
    return {j: tuple(levels) for j, levels in zip(found[0], categories, strict=True)}


#: Choices of columns that are compared before the matter counts as uncertain.
_MOST_CHOICES = 1000


def _is_set(info: str) -> bool:
    """Whether the library has treated a column as categories: it then lists the codes that it has seen."""
    return info != "none" and not info.startswith("[")


def _fits(info: str, n: int) -> bool:
    """Whether all values of a column are codes of a list of n categories, or -1 for missing ones."""
    if info == "none":  # constant, or never used
        return True
    values = [float(v) for v in info.strip("[]").split(":")]
    return all(v.is_integer() and -1 <= v < n for v in values)


def _increasing(fits: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """Choices of one column per list, in increasing order."""
    choices: list[tuple[int, ...]] = [()]
    for columns in fits:
        choices = [(*c, j) for c in choices for j in columns if not c or j > c[-1]]
        if len(choices) > _MOST_CHOICES:
            return
    yield from choices


def read_text(model: ModelText, role: Role = "booster", classes: Sequence[Any] | None = None) -> Ensemble:
    """Ensemble of a parsed text model.

    Parameters
    ----------
    model : ModelText
        From `parse`.
    role : {"booster", "classifier", "regressor"}
        Whose ``predict`` the decision follows.
    classes : sequence, optional
        Labels, for a classifier; 0, 1, … otherwise.

    Raises
    ------
    ModelError
        A part is missing or malformed.
    UnsupportedModelError
        The model is no sum of trees with a class or a value as its answer, or takes zero for missing.
    """
    try:
        return _ensemble(model, role, classes)
    except KeyError as cause:
        raise ModelError(f"the LightGBM model lacks {cause}: it is corrupt, save it again") from cause
    except (ValueError, IndexError, OverflowError) as cause:
        if isinstance(cause, ModelError):
            raise
        raise ModelError(f"the LightGBM model is corrupt ({cause}): save it again") from cause


def _ensemble(model: ModelText, role: Role, classes: Sequence[Any] | None) -> Ensemble:
    header = model.header
    names = tuple(header["feature_names"].split())
    if len(names) != int(header["max_feature_idx"]) + 1:
        raise ModelError(
            f"the LightGBM model has {int(header['max_feature_idx']) + 1} features but {len(names)} names: it is "
            "corrupt, save it again"
        )
    n_outputs = int(header["num_tree_per_iteration"])
    if int(header["num_class"]) != n_outputs:
        raise ModelError(f"{header['num_class']} classes but {n_outputs} trees a round: the model is corrupt")
    if n_outputs < 1 or len(model.trees) % n_outputs:
        raise ModelError(f"{len(model.trees)} trees are no whole rounds of {n_outputs}: the model is corrupt")
    objective_line = header.get("objective") or "custom"
    weight = _scale(objective_line)
    if "average_output" in header:
        weight /= max(len(model.trees) // n_outputs, 1)
    decision = _decision(objective_line, n_outputs, role, classes)
    ensemble = join(
        [_tree(tree, number, number % n_outputs, weight) for number, tree in enumerate(model.trees)],
        feature_names=names,
        base_score=np.zeros(n_outputs),
        decision=decision,
        precision="float64",
    )
    if decision.kind == "argmax" and decision.link == "logistic":
        return replace(ensemble, decision=replace(decision, slack=_saturation(ensemble)))
    return ensemble


def score_divisor(model: ModelText) -> float:
    """What the library's raw scores must be divided by to become the ensemble's."""
    n_rounds = len(model.trees) // int(model.header["num_tree_per_iteration"])
    averaged = n_rounds if "average_output" in model.header else 1
    return averaged / _scale(model.header.get("objective") or "custom")


def _scale(objective_line: str) -> float:
    """Parameter of the sigmoid."""
    match = re.search(r"\bsigmoid:(\S+)", objective_line)
    scale = float(match.group(1)) if match else 1.0
    if not (math.isfinite(scale) and scale > 0):
        raise ModelError(f"the sigmoid's parameter {scale} is not positive: the model is corrupt, save it again")
    return scale


def _objective(line: str) -> _Objective:
    name, *flags = line.split()
    if name not in _OBJECTIVES:
        raise UnsupportedModelError(
            f"the objective {name!r} gives neither a class nor a value to aim at: train with one of "
            + ", ".join(sorted(_OBJECTIVES))
        )
    # regression on the square root of the target, which predictions square again
    return _Objective("value", "signed_square") if "sqrt" in flags else _OBJECTIVES[name]


def _decision(line: str, n_outputs: int, role: Role, classes: Sequence[Any] | None) -> Decision:
    """How ``predict`` of a booster, a classifier or a regressor turns scores into its answer."""
    name, objective = line.split()[0], _objective(line)
    if objective.task == "multiclass":
        if role == "regressor":
            raise UnsupportedModelError(f"a regressor of objective {name!r} predicts classes: use LGBMClassifier")
        labels = tuple(range(n_outputs)) if classes is None else tuple(classes)
        if len(labels) != n_outputs:
            raise ModelError(f"the model has {n_outputs} scores but {len(labels)} classes: fit it again")
        return Decision("argmax", labels, link=objective.link, slack=_LINK_SLACK)
    if n_outputs > 1:
        raise UnsupportedModelError(
            f"the objective {name!r} with {n_outputs} scores has no known meaning: train with objective='multiclass'"
        )
    is_probability = objective.link == "logistic"
    if role == "classifier" and not is_probability:
        raise UnsupportedModelError(
            f"a classifier of objective {name!r} has no probabilities: train with objective='binary'"
        )
    if role == "classifier" or (role == "booster" and objective.task == "binary"):
        labels = (0, 1) if classes is None else tuple(classes)
        if len(labels) != 2:
            raise UnsupportedModelError(
                f"the training data had the classes {list(labels)}, a decision needs two: fit on both classes"
            )
        return Decision("threshold", labels, link="logistic", slack=_LINK_SLACK)
    return Decision("value", link=objective.link)


def _saturation(ensemble: Ensemble) -> float:
    """Slack of one-against-all classes, whose sigmoids are compared after rounding.

    The sigmoid's slope at a high score s is about ``exp(-s)``, so two scores that far up may differ by
    ``2**-53 exp(s)`` and still round to one probability.
    """
    highest = np.maximum.reduceat(ensemble.contributions, ensemble.leaf_offsets[:-1]).clip(min=0).sum(axis=0)
    return _LINK_SLACK * math.exp(min(float(highest.max()), 700.0))


def _tree(data: Mapping[str, str], number: int, output: int, weight: float) -> Tree:
    if data.get("is_linear", "0") != "0":
        raise UnsupportedModelError("leaves hold linear models (linear_tree=true): train with linear_tree=false")
    n_leaves = int(data["num_leaves"])
    n_inner = n_leaves - 1
    value = _floats(data, "leaf_value", n_leaves)
    feature = _integers(data, "split_feature", n_inner)
    threshold = _floats(data, "threshold", n_inner)
    bits = _integers(data, "decision_type", n_inner)
    categorical = (bits & _CATEGORICAL) > 0
    missing_type = bits >> _MISSING_SHIFT & 3
    if np.any((missing_type == _MISSING_ZERO) & ~categorical):
        raise UnsupportedModelError(
            f"tree {number} takes zero for a missing value, which cuts a hole into its splits: train with "
            "zero_as_missing=false, and NaN for missing values"
        )
    _check_unused(data, n_leaves)
    missing_left = np.where(missing_type == _MISSING_NAN, (bits & _DEFAULT_LEFT) > 0, threshold >= 0) & ~categorical
    pad = np.zeros(n_leaves, np.int64)
    # inner nodes first, then the leaves, which children count as ~0, ~1, …
    left, right = (
        np.concatenate([np.where(child < 0, n_inner + ~child, child), pad])
        for child in (_integers(data, side, n_inner) for side in ("left_child", "right_child"))
    )
    children = np.concatenate([left[:n_inner], right[:n_inner]])
    later = np.minimum(left[:n_inner], right[:n_inner]) > np.arange(n_inner)
    if not (np.array_equal(np.sort(children), np.arange(1, n_inner + n_leaves)) and later.all()):
        raise ModelError(f"the nodes of tree {number} are not linked to one tree: the model is corrupt, save it again")
    return Tree(
        kind=np.concatenate(
            [np.where(categorical, SplitKind.SUBSET, SplitKind.AXIS), np.full(n_leaves, SplitKind.LEAF)]
        ).astype(np.uint8),
        feature=np.concatenate([feature, pad]),
        threshold=np.concatenate([_outside_zero_zone(threshold), pad]),
        left=left,
        right=right,
        missing_left=np.concatenate([missing_left, pad.astype(bool)]),
        value=np.concatenate([np.zeros(n_inner), value]),
        subsets=_subsets(data, np.flatnonzero(categorical), threshold),
        output=output,
        weight=weight,
    )


def _check_unused(data: Mapping[str, str], n_leaves: int) -> None:
    """Check the fields that scores do not need, since the library aborts the process on malformed ones."""
    for key, parse_field, n in (
        ("split_gain", _floats, n_leaves - 1),
        ("internal_value", _floats, n_leaves - 1),
        ("internal_weight", _floats, n_leaves - 1),
        ("internal_count", _integers, n_leaves - 1),
        ("leaf_weight", _floats, n_leaves),
        ("leaf_count", _integers, n_leaves),
        ("shrinkage", _floats, 1),
        ("num_cat", _integers, 1),
    ):
        if data.get(key):
            parse_field(data, key, n)


def _outside_zero_zone(threshold: FloatArray) -> FloatArray:
    """Largest value that goes left when values near zero are zero."""
    zone = np.abs(threshold) <= _ZERO_ZONE
    edge = np.where(threshold >= 0, _ZERO_ZONE, np.nextafter(-_ZERO_ZONE, -np.inf))
    return np.where(zone, edge, threshold)


def _subsets(data: Mapping[str, str], nodes: IntArray, threshold: FloatArray) -> dict[int, IntArray]:
    """Codes that go left by node, from bit sets of 32-bit words."""
    if not len(nodes):
        return {}
    n_sets = int(data["num_cat"])
    bounds = _integers(data, "cat_boundaries", n_sets + 1)
    words = _integers(data, "cat_threshold", int(bounds[-1]))
    if bounds[0] != 0 or np.any(np.diff(bounds) < 0) or np.any(words < 0) or np.any(words >= 2**32):
        raise ModelError("the category sets of a tree do not fit together: the model is corrupt, save it again")
    which = threshold[nodes].astype(np.int64)
    if np.any(which < 0) or np.any(which >= n_sets):
        raise ModelError("a split names a category set that its tree lacks: the model is corrupt, save it again")
    return {
        int(node): np.flatnonzero(
            np.unpackbits(words[bounds[k] : bounds[k + 1]].astype("<u4").view(np.uint8), bitorder="little")
        )
        for node, k in zip(nodes, which, strict=True)
    }


def _floats(data: Mapping[str, str], key: str, n: int) -> FloatArray:
    return np.array([float(word) for word in _words(data, key, n)], np.float64)


def _integers(data: Mapping[str, str], key: str, n: int) -> IntArray:
    return np.array([int(word) for word in _words(data, key, n)], np.int64)


def _words(data: Mapping[str, str], key: str, n: int) -> list[str]:
    # a tree without splits may leave its empty fields out
    words = data.get(key, "").split() if n == 0 else data[key].split()
    if n < 0 or len(words) != n:
        raise ModelError(f"a tree has {len(words)} entries of {key!r}, not {n}: the model is corrupt, save it again")
    return words

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

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers.document import NUMBER, WHOLE
from ocf.readers.trees import MAX_FEATURES, BoostedTree, Objective, Role, join
from ocf.trees.ensemble import Decision, Ensemble, SplitKind

#: Values no farther from zero are zero to the library.
_ZERO_ZONE = float(np.float32(1e-35))
#: float64 rounding of the sigmoid around one half, or of the softmax of two close scores.
_LINK_SLACK = 2.0**-49

_CATEGORICAL, _DEFAULT_LEFT, _MISSING_SHIFT = 1, 2, 2
_MISSING_NONE, _MISSING_ZERO, _MISSING_NAN = 0, 1, 2


@dataclass(frozen=True)
class ModelText:
    """The parts of a text model: ``key=value`` lines of the header and of each tree.

    `categories` is what stands at the end of a file, in JSON: the lists of categories of a training table.
    """

    header: Mapping[str, str]
    trees: Sequence[Mapping[str, str]]
    categories: str = "null"


@dataclass(frozen=True)
class LightGBMTree:
    """One tree as its text holds it, checked: every node is reached once from the root.

    Attributes
    ----------
    feature, bits, left, right : (n_inner,) int64
        `bits` is the library's ``decision_type``; children are leaves when negative.
    threshold : (n_inner,) float64
    value : (n_leaves,) float64
    bounds, words : int64 arrays
        Bit sets of the categorical splits: set k is ``words[bounds[k]:bounds[k + 1]]``.
    statistics : mapping of str to str
        What scores do not need.
    """

    feature: IntArray
    threshold: FloatArray
    bits: IntArray
    left: IntArray
    right: IntArray
    value: FloatArray
    bounds: IntArray
    words: IntArray
    statistics: Mapping[str, str]


_VALUE = Objective("value")
_EXP_VALUE = Objective("value", "exp")

_OBJECTIVES: dict[str, Objective] = {
    "binary": Objective("binary", "logistic"),
    "multiclass": Objective("multiclass", "softmax"),
    "multiclassova": Objective("multiclass", "logistic"),
    "regression": _VALUE,
    "regression_l1": _VALUE,
    "huber": _VALUE,
    "fair": _VALUE,
    "quantile": _VALUE,
    "mape": _VALUE,
    "poisson": _EXP_VALUE,
    "gamma": _EXP_VALUE,
    "tweedie": _EXP_VALUE,
    "cross_entropy": Objective("value", "logistic"),
    "custom": _VALUE,
}
#: Objectives that may stand for the square root of the target.
_WITH_SQRT = frozenset({"regression", "regression_l1", "fair", "quantile", "mape"})


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
    if odd := re.search("[\r\0]", text):
        raise ModelError(f"the text is no LightGBM model: {odd[0]!r} at character {odd.start()}; save the model again")
    body, end, rest = text.partition("\nend of trees\n")
    if not end:
        raise ModelError("the LightGBM model ends early (no line 'end of trees'): save the model again")
    blocks = re.split(r"^(?=Tree=)", body + "\n", flags=re.MULTILINE)
    header = _fields(blocks[0], "the header")
    trees = [_fields(block, f"Tree={number}") for number, block in enumerate(blocks[1:])]
    # the library jumps by these byte counts, and aborts the process when they are wrong
    announced = header.get("tree_sizes")
    if announced is not None and _split_at_spaces(announced) != [str(len(block.encode())) for block in blocks[1:]]:
        raise ModelError("the trees are not of the sizes that the LightGBM model announces: save the model again")
    return ModelText(header, trees, _read_categories(rest))


def unix_lines(text: str) -> str:
    """Text as the library wrote it, should a tool have changed its line ends."""
    return text.replace("\r\n", "\n")


def _fields(block: str, place: str) -> dict[str, str]:
    """Key and value of each line; a tree ends with its first empty line."""
    in_tree = block.startswith("Tree=")
    lines = (block.rstrip("\n") if in_tree else block).split("\n")
    fields: dict[str, str] = {}
    for line in lines:
        key, equals, value = line.partition("=")
        if in_tree and not (equals and key):
            raise ModelError(
                f"the line {line[:40]!r} in {place} is not of the form 'key=value': the model is corrupt, save it again"
            )
        if key and key in fields:
            raise ModelError(f"{key[:40]!r} comes twice in {place}: the model is corrupt, save it again")
        fields[key] = value
    fields.pop("", None)
    return fields


_PARAMETERS = re.compile(r"^parameters:\n(?:\[\w+: [^\n]*\]\n)*\n*end of parameters$", re.MULTILINE)
_IMPORTANCES = re.compile(r"^feature[ _]importances:\n(?:[^\n]+=[^\n=]*\n)*", re.MULTILINE)
_CATEGORIES = "pandas_categorical:"


def _read_categories(rest: str) -> str:
    """Categories in what follows the trees; importances and training parameters have no say in predictions."""
    if re.search(r"^parameters:", rest, re.MULTILINE) and "\nend of parameters" not in rest:
        raise ModelError("the LightGBM model ends early (no line 'end of parameters'): save the model again")
    left = _IMPORTANCES.sub("", _PARAMETERS.sub("", rest, count=1), count=1)
    lines = [line for line in left.split("\n") if line]
    if not lines:
        return "null"
    if len(lines) > 1 or not lines[0].startswith(_CATEGORIES):
        odd = next((line for line in lines if not line.startswith(_CATEGORIES)), lines[-1])
        raise ModelError(f"the line {odd[:40]!r} after the trees has no meaning: the model is corrupt, save it again")
    return lines[0].removeprefix(_CATEGORIES)


def saved_categories(model: ModelText) -> list[list[Any]] | None:
    """Lists of categories of the training table that the text names.

    Raises
    ------
    ModelError
        They are no lists of different words and numbers.
    """
    try:
        lists = json.loads(model.categories)
    except (ValueError, RecursionError) as cause:
        raise ModelError(f"the categories of the LightGBM model are no JSON ({cause}): save it again") from cause
    if lists is None:
        return None
    if not isinstance(lists, list) or not all(isinstance(levels, list) for levels in lists):
        raise ModelError("the categories of the LightGBM model are no list of lists: it is corrupt, save it again")
    for number, levels in enumerate(lists):
        known = all(isinstance(v, str | bool | int) or (isinstance(v, float) and math.isfinite(v)) for v in levels)
        if not known or len(set(levels)) != len(levels):
            raise ModelError(
                f"list {number} of the categories holds one twice, or one that is neither text nor number: the model "
                "is corrupt, save it again"
            )
    return lists


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
    infos = _split_at_spaces(model.header.get("feature_infos", ""))
    sets = {j for j, info in enumerate(infos) if _is_set(info)}
    fits = [[j for j, info in enumerate(infos) if _fits(info, len(levels))] for levels in categories]
    found = _increasing(fits, sets, len(infos)) or _increasing(fits, set(), len(infos))
    if len(found) != 1:
        return {}
    return {j: tuple(levels) for j, levels in zip(found[0], categories, strict=True)}


def _is_set(info: str) -> bool:
    """Whether the library has treated a column as categories: it then lists the codes that it has seen."""
    return info != "none" and not info.startswith("[")


def _fits(info: str, n: int) -> bool:
    """Whether all values of a column are codes of a list of n categories, or -1 for missing ones."""
    if info == "none":  # constant, or never used
        return True
    values = [float(v) for v in info.strip("[]").split(":")]
    return all(v.is_integer() and -1 <= v < n for v in values)


def _increasing(fits: Sequence[Sequence[int]], needed: Collection[int], width: int) -> tuple[tuple[int, ...], ...]:
    """Choices of one column per list, in increasing order, that leave out none that is needed; at most two of them."""
    last = max(needed, default=-1)
    # by the first column that may be taken: how the lists from the present one on may be placed
    ways: list[tuple[tuple[int, ...], ...]] = [((),) if first > last else () for first in range(width + 1)]
    for columns in reversed(fits):
        placed: list[tuple[tuple[int, ...], ...]] = [()] * (width + 1)
        for j in range(width - 1, -1, -1):
            own = tuple((j, *rest) for rest in ways[j + 1]) if j in columns else ()
            placed[j] = own if j in needed else (*own, *placed[j + 1])[:2]
        ways = placed
    return ways[0]


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
    header = model.header
    names = _feature_names(header)
    n_outputs = _header_integer(header, "num_tree_per_iteration")
    if _header_integer(header, "num_class") != n_outputs:
        raise ModelError(f"{header['num_class']} classes but {n_outputs} trees a round: the model is corrupt")
    if n_outputs < 1 or len(model.trees) % n_outputs:
        raise ModelError(f"{len(model.trees)} trees are no whole rounds of {n_outputs}: the model is corrupt")
    objective_line = _objective_line(header, n_outputs)
    weight = _scale(objective_line)
    if "average_output" in header:
        weight /= max(len(model.trees) // n_outputs, 1)
    decision = _decision(objective_line, n_outputs, role, classes)
    ensemble = join(
        [
            _tree(saved_tree(tree, number, len(names)), number % n_outputs, weight)
            for number, tree in enumerate(model.trees)
        ],
        feature_names=names,
        base_score=np.zeros(n_outputs),
        decision=decision,
        precision="float64",
    )
    if decision.kind == "argmax" and decision.link == "logistic":
        return replace(ensemble, decision=replace(decision, slack=_saturation(ensemble)))
    return ensemble


#: Ranges of values, lists of codes, or nothing of the features in the training table.
_FEATURE_INFO = re.compile(r"none|\[[^\[\]: ]+:[^\[\]: ]+\]|-?[0-9]+(:-?[0-9]+)*")


def _feature_names(header: Mapping[str, str]) -> tuple[str, ...]:
    names = tuple(_split_at_spaces(_entry(header, "feature_names", "the header")))
    largest = _header_integer(header, "max_feature_idx")
    if largest + 1 > MAX_FEATURES:
        raise UnsupportedModelError(
            f"the model has {largest + 1} features, ocf takes {MAX_FEATURES}: train on fewer columns"
        )
    infos = _split_at_spaces(_entry(header, "feature_infos", "the header"))
    for key, entries in (("feature_names", names), ("feature_infos", infos)):
        if len(entries) != largest + 1:
            raise ModelError(
                f"the LightGBM model has {largest + 1} features but {len(entries)} {key}: it is corrupt, save it again"
            )
    if len(set(names)) != len(names):
        raise ModelError("two features of the LightGBM model have one name: it is corrupt, save it again")
    for j, info in enumerate(infos):
        ends = info.strip("[]").split(":") if info.startswith("[") else []
        if not _FEATURE_INFO.fullmatch(info) or not all(_is_printed_number(end) for end in ends):
            raise ModelError(f"{info[:40]!r} at feature_infos[{j}] is no range: the model is corrupt, save it again")
    return names


def _header_integer(header: Mapping[str, str], key: str) -> int:
    text = _entry(header, key, "the header")
    if not WHOLE.fullmatch(text):
        raise ModelError(f"{text[:40]!r} at {key} is no whole number: the model is corrupt, save it again")
    return int(text)


def _entry(fields: Mapping[str, str], key: str, place: str) -> str:
    if key not in fields:
        raise ModelError(f"there is no {key!r} in {place} of the LightGBM model: it is corrupt, save it again")
    return fields[key]


def _split_at_spaces(text: str) -> list[str]:
    """Words between spaces, the only thing that separates them to the library."""
    return [word for word in text.split(" ") if word]


def _is_printed_number(word: str) -> bool:
    return bool(NUMBER.fullmatch(word) or word.lstrip("-") in ("inf", "nan"))


def score_divisor(model: ModelText) -> float:
    """What the library's raw scores must be divided by to become the ensemble's."""
    n_outputs = int(model.header["num_tree_per_iteration"])
    averaged = len(model.trees) // n_outputs if "average_output" in model.header else 1
    return averaged / _scale(_objective_line(model.header, n_outputs))


def _objective_line(header: Mapping[str, str], n_outputs: int) -> str:
    """Objective and its parameters: all that it needs, each once, and none that it does not know."""
    if "objective" not in header:
        return "custom"
    line = header["objective"]
    name, *flags = _split_at_spaces(line) or [""]
    _objective(name)
    needed = {"binary": ["sigmoid"], "multiclass": ["num_class"], "multiclassova": ["num_class", "sigmoid"]}
    given = [flag.partition(":") for flag in flags if flag != "sqrt"]
    wrong = sorted(key for key, _, _ in given) != needed.get(name, [])
    for key, _, value in given:
        wrong |= not NUMBER.fullmatch(value) or (key == "num_class" and value != str(n_outputs))
    if wrong or flags.count("sqrt") > (name in _WITH_SQRT):
        raise ModelError(f"the objective {line[:60]!r} is none of LightGBM's: the model is corrupt, save it again")
    return line


def _scale(objective_line: str) -> float:
    """Parameter of the sigmoid."""
    match = re.search(r"\bsigmoid:(\S+)", objective_line)
    scale = float(match.group(1)) if match else 1.0
    if not (math.isfinite(scale) and scale > 0):
        raise ModelError(f"the sigmoid's parameter {scale} is not positive: the model is corrupt, save it again")
    return scale


def _objective(line: str) -> Objective:
    name, *flags = line.split(" ")
    if name not in _OBJECTIVES:
        raise UnsupportedModelError(
            f"the objective {name[:40]!r} gives neither a class nor a value to aim at: train with one of "
            + ", ".join(sorted(_OBJECTIVES))
        )
    # regression on the square root of the target, which predictions square again
    return Objective("value", "signed_square") if "sqrt" in flags else _OBJECTIVES[name]


def _decision(line: str, n_outputs: int, role: Role, classes: Sequence[Any] | None) -> Decision:
    """How ``predict`` of a booster, a classifier or a regressor turns scores into its answer."""
    name, objective = _split_at_spaces(line)[0], _objective(line)
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


#: Entries of a tree that scores do not need: whole numbers or not, and how many there are more than inner nodes.
STATISTICS = {
    "split_gain": ("float", 0),
    "internal_value": ("float", 0),
    "internal_weight": ("float", 0),
    "internal_count": ("int", 0),
    "leaf_weight": ("float", 1),
    "leaf_count": ("int", 1),
}


def saved_tree(data: Mapping[str, str], number: int, n_features: int) -> LightGBMTree:
    """One tree of a parsed text, every entry checked; raises as `read_text` does.

    Parameters
    ----------
    data : mapping of str to str
        Keys and values of the tree's block.
    number : int
        Of the tree, which messages name.
    n_features : int
        Of the model.
    """
    fields = _TreeFields(data, f"Tree={number}")
    if fields.integer("Tree") != number:
        raise fields.error("Tree", f"this is tree {number}")
    if "is_linear" in data and fields.integer("is_linear"):
        raise UnsupportedModelError("leaves hold linear models (linear_tree=true): train with linear_tree=false")
    n_leaves = fields.integer("num_leaves")
    if n_leaves < 1:
        raise fields.error("num_leaves", f"{n_leaves} leaves")
    n_inner = n_leaves - 1
    feature = fields.integers("split_feature", n_inner, 0, n_features - 1)
    # infinite where only NaN goes right
    threshold = fields.floats("threshold", n_inner, np.isnan)
    bits = fields.integers("decision_type", n_inner, 0, (_MISSING_NAN + 1 << _MISSING_SHIFT) - 1)
    missing_zero = (bits >> _MISSING_SHIFT == _MISSING_ZERO) & (bits & _CATEGORICAL == 0)
    if missing_zero.any():
        raise UnsupportedModelError(
            f"tree {number} takes zero for a missing value, which cuts a hole into its splits: train with "
            "zero_as_missing=false, and NaN for missing values"
        )
    left, right = (fields.integers(key, n_inner, -n_leaves, n_inner - 1) for key in ("left_child", "right_child"))
    # leaves count as ~0, ~1, …; a child comes after its parent
    children = np.where(np.concatenate([left, right]) < 0, n_inner - 1 - np.concatenate([left, right]), 0)
    children += np.maximum(np.concatenate([left, right]), 0)
    later = children > np.tile(np.arange(n_inner), 2)
    if not (np.array_equal(np.sort(children), np.arange(1, n_inner + n_leaves)) and later.all()):
        raise ModelError(f"the nodes of tree {number} are not linked to one tree: the model is corrupt, save it again")
    bounds, words = _bit_sets(fields, threshold[bits & _CATEGORICAL > 0])
    if "shrinkage" in data:
        fields.floats("shrinkage", 1)
    return LightGBMTree(
        feature=feature,
        threshold=threshold,
        bits=bits,
        left=left,
        right=right,
        value=fields.floats("leaf_value", n_leaves),
        bounds=bounds,
        words=words,
        statistics=_statistics(fields, n_inner),
    )


def _statistics(fields: _TreeFields, n_inner: int) -> dict[str, str]:
    """Entries that scores do not need; of a tree without splits the library leaves some empty."""
    found = {}
    for key, (kind, more) in STATISTICS.items():
        if key in fields.data and (n_inner or fields.data[key]):
            if kind == "int":
                fields.integers(key, n_inner + more, -(2**31), 2**31 - 1)
            else:
                fields.floats(key, n_inner + more, lambda column: np.zeros(len(column), bool))
            found[key] = fields.data[key]
    return found


def _bit_sets(fields: _TreeFields, which: FloatArray) -> tuple[IntArray, IntArray]:
    """Bounds and words of the category sets; `which` are the sets that the categorical splits name."""
    n_sets = fields.integer("num_cat")
    if n_sets != len(which):
        raise fields.error("num_cat", f"{n_sets} sets for {len(which)} categorical splits")
    if not n_sets:
        return np.zeros(1, np.int64), np.zeros(0, np.int64)
    if not np.array_equal(np.sort(which), np.arange(n_sets)):
        raise fields.error("threshold", "a categorical split names a set that its tree lacks, or two splits the same")
    bounds = fields.integers("cat_boundaries", n_sets + 1, 0, 2**31 - 1)
    if bounds[0] != 0 or np.any(np.diff(bounds) < 0):
        raise fields.error("cat_boundaries", "the bounds of the sets do not increase from 0")
    return bounds, fields.integers("cat_threshold", int(bounds[-1]), 0, 2**32 - 1)


def _tree(saved: LightGBMTree, output: int, weight: float) -> BoostedTree:
    n_inner, n_leaves = len(saved.feature), len(saved.value)
    categorical = saved.bits & _CATEGORICAL > 0
    takes_nan = saved.bits >> _MISSING_SHIFT == _MISSING_NAN
    missing_left = np.where(takes_nan, saved.bits & _DEFAULT_LEFT > 0, saved.threshold >= 0) & ~categorical
    pad = np.zeros(n_leaves, np.int64)
    # inner nodes first, then the leaves
    left, right = (
        np.concatenate([np.where(child < 0, n_inner + ~child, child), pad]) for child in (saved.left, saved.right)
    )
    return BoostedTree(
        kind=np.concatenate(
            [np.where(categorical, SplitKind.SUBSET, SplitKind.AXIS), np.full(n_leaves, SplitKind.LEAF)]
        ).astype(np.uint8),
        feature=np.concatenate([saved.feature, pad]),
        threshold=np.concatenate([_outside_zero_zone(saved.threshold), pad]),
        left=left,
        right=right,
        missing_left=np.concatenate([missing_left, pad.astype(bool)]),
        value=np.concatenate([np.zeros(n_inner), saved.value]),
        subsets={int(node): _codes(saved, int(saved.threshold[node])) for node in np.flatnonzero(categorical)},
        output=output,
        weight=weight,
    )


def _codes(saved: LightGBMTree, k: int) -> IntArray:
    """Codes in bit set k, which is of 32-bit words."""
    words = saved.words[saved.bounds[k] : saved.bounds[k + 1]].astype("<u4")
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))


def _outside_zero_zone(threshold: FloatArray) -> FloatArray:
    """Largest value that goes left when values near zero are zero."""
    zone = np.abs(threshold) <= _ZERO_ZONE
    edge = np.where(threshold >= 0, _ZERO_ZONE, np.nextafter(-_ZERO_ZONE, -np.inf))
    return np.where(zone, edge, threshold)


@dataclass(frozen=True)
class _TreeFields:
    """Lines of one tree, read only as what they must be."""

    data: Mapping[str, str]
    place: str

    def error(self, key: str, problem: str, index: int | None = None) -> ModelError:
        at = key if index is None else f"{key}[{index}]"
        return ModelError(f"{problem}, at {self.place}.{at}: the model is corrupt, save it again")

    def integer(self, key: str) -> int:
        text = _entry(self.data, key, self.place)
        if not WHOLE.fullmatch(text):
            raise self.error(key, f"{text[:40]!r} is no whole number")
        return int(text)

    def integers(self, key: str, n: int, low: int, high: int) -> IntArray:
        words = self._words(key, n)
        self._check(key, words, WHOLE.fullmatch, "whole number")
        column = np.array([int(word) for word in words], np.int64)
        for index in np.flatnonzero((column < low) | (column > high))[:1]:
            raise self.error(key, f"{words[index]} is not between {low} and {high}", int(index))
        return column

    def floats(self, key: str, n: int, refuse: Callable[[FloatArray], BoolArray] | None = None) -> FloatArray:
        """Numbers; by default finite ones."""
        words = self._words(key, n)
        self._check(key, words, _is_printed_number, "number")
        column = np.array([float(word) for word in words], np.float64)
        wrong = ~np.isfinite(column) if refuse is None else refuse(column)
        for index in np.flatnonzero(wrong)[:1]:
            raise self.error(key, f"{words[index][:40]} does not belong there", int(index))
        return column

    def _check(self, key: str, words: Sequence[str], is_one: Callable[[str], object], name: str) -> None:
        if not all(map(is_one, words)):
            index = next(i for i, word in enumerate(words) if not is_one(word))
            raise self.error(key, f"{words[index][:40]!r} is no {name}", index)

    def _words(self, key: str, n: int) -> list[str]:
        # a tree without splits may leave its empty fields out
        words = _split_at_spaces(self.data.get(key, "") if n == 0 else _entry(self.data, key, self.place))
        if len(words) != n:
            raise self.error(key, f"{len(words)} entries where {n} belong")
        return words

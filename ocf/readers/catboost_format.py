"""CatBoost's JSON as splits and trees; needs no CatBoost.

What the library does, and how it is kept:

* A number goes right where it is greater than the border, both float32. NaN is greater than every border of a column
  whose `nan_value_treatment` is ``AsTrue``, and greater than none otherwise.
* A category is known by the 32-bit hash of its text. A one-hot split sends one hash right.
* A statistic of categories (CTR) is a number per bucket of a table that training has left behind, and goes right where
  it is greater than a border. The bucket is that of a combination: hashes of some category columns, then the sides of
  some splits, each folded into a 64-bit hash. What no bucket holds has the statistic of no row at all.
* All splits of a model are numbered: borders of the columns of numbers, one-hot values, borders of statistics.

Source: ``json_model_helpers.cpp`` and ``static_ctr_provider.cpp`` in https://github.com/catboost/catboost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import FloatArray, IntArray
from ocf.errors import UnsupportedModelError
from ocf.readers.document import DocumentPart, load_json
from ocf.readers.trees import MAX_FEATURES

_MASK = 2**64 - 1
_MULTIPLIER = np.uint64(0x4906BA494954CB65)
_HASH = re.compile(r"[0-9]{1,20}")
#: Hash of a bucket that is empty.
_EMPTY = _MASK

#: Numbers that a bucket of each kind of statistic holds; None: one per class of the target.
_COUNTS = {"Borders": None, "Buckets": None, "BinarizedTargetMeanValue": 2, "Counter": 1, "FeatureFreq": 1}

#: Most splits of a symmetric tree; the library allows 16.
_MAX_DEPTH = 16

#: Parts that a document has of a column of numbers, one of categories, and so on.
NUMBER_KEYS = ("feature_index", "flat_feature_index", "feature_id", "borders", "has_nans", "nan_value_treatment")
WORD_KEYS = ("feature_index", "flat_feature_index", "feature_id", "values")
STATISTIC_KEYS = (
    "borders",
    "ctr_type",
    "elements",
    "identifier",
    "prior_denomerator",
    "prior_numerator",
    "scale",
    "shift",
    "target_border_idx",
)
ELEMENT_KEYS = ("border", "cat_feature_index", "combination_element", "float_feature_index", "value")
SPLIT_KEYS = (
    "border",
    "cat_feature_index",
    "ctr_target_border_idx",
    "float_feature_index",
    "split_index",
    "split_type",
    "value",
)
TABLE_KEYS = ("counter_denominator", "hash_map", "hash_stride")
#: Parts that have no say in predictions.
_SILENT = ("feature_name", "string_values")

_ENCODE = "encode such columns before the model, for example by OneHotEncoder or TargetEncoder in a Pipeline"


@dataclass(frozen=True)
class Border:
    """A number goes right where it is greater; `column` is the number of a model column."""

    column: int
    border: float


@dataclass(frozen=True)
class OneHot:
    """The one category with this hash goes right."""

    column: int
    hash: int


@dataclass(frozen=True)
class Statistic:
    """What training has counted of a combination of categories, and how a number is made of it.

    Attributes
    ----------
    kind : str
        Of `_COUNTS`.
    columns : tuple of int
        Model columns of the categories in the combination.
    sides : tuple of Border or OneHot
        Splits in the combination.
    buckets : mapping of int to tuple of float
        What is counted under each hash.
    denominator, target_border : int
    prior, prior_weight, shift, scale : float
        In float32.
    """

    kind: str
    columns: tuple[int, ...]
    sides: tuple[Border | OneHot, ...]
    buckets: Mapping[int, tuple[float, ...]]
    denominator: int
    target_border: int
    prior: float
    prior_weight: float
    shift: float
    scale: float

    def values(self, hashes: Mapping[int, NDArray[np.int32]]) -> NDArray[np.float32]:
        """The number of every combination, one axis per column and then two entries per split.

        Parameters
        ----------
        hashes : mapping of int to (n_codes,) int32
            Of the categories of each column.
        """
        parts = [hashes[j] for j in self.columns] + [np.arange(2, dtype=np.int32)] * len(self.sides)
        folded = np.zeros(1, np.uint64)
        for part in parts:
            each = part.astype(np.int64).view(np.uint64)
            folded = (_MULTIPLIER * (folded[:, None] + _MULTIPLIER * each)).ravel()
        place, none = {hash_: k for k, hash_ in enumerate(self.buckets)}, len(self.buckets)
        counts = [self._counts(values) for values in self.buckets.values()]
        good, total = np.array([*counts, self._counts(())], np.float32).T
        bucket = np.array([place.get(hash_, none) for hash_ in folded.tolist()])
        shape = tuple(len(part) for part in parts)
        one = np.float32
        with np.errstate(all="ignore"):
            share = (good[bucket] + one(self.prior)) / (total[bucket] + one(self.prior_weight))
            return np.asarray((share + one(self.shift)) * one(self.scale), np.float32).reshape(shape)

    def _counts(self, values: tuple[float, ...]) -> tuple[float, float]:
        """Counted rows that are good, and all; of no bucket where `values` is empty."""
        if self.kind in ("Counter", "FeatureFreq"):
            return (values[0] if values else 0.0), self.denominator
        if not values:
            return 0.0, 0.0
        if self.kind == "BinarizedTargetMeanValue":
            return values[0], values[1]
        good = values[self.target_border : self.target_border + 1] if self.kind == "Buckets" else self._above(values)
        return sum(good), sum(values)

    def _above(self, values: tuple[float, ...]) -> tuple[float, ...]:
        return values[1:] if len(values) == 2 else values[self.target_border + 1 :]


@dataclass(frozen=True)
class StatisticSplit:
    """A statistic goes right where it is greater than the border."""

    statistic: Statistic
    border: float


Split = Border | OneHot | StatisticSplit


@dataclass(frozen=True)
class SymmetricTree:
    """All nodes of a level share a split; bit k of a leaf's number is set where split k goes right.

    Attributes
    ----------
    splits : sequence of Split
    values : (2**depth, n_outputs) float64
    """

    splits: Sequence[Split]
    values: FloatArray

    def split(self, node: Any) -> Split | None:
        """Split of a node, (level, number in it); None at leaves."""
        return self.splits[node[0]] if node[0] < len(self.splits) else None

    def child(self, node: Any, right: bool) -> Any:
        """Node on one side.

        Parameters
        ----------
        node : (int, int)
            As in `split`.
        right : bool
        """
        return (node[0] + 1, node[1] + (right << node[0]))

    def leaf(self, node: Any) -> FloatArray:
        """Values of a leaf, (n_outputs,)."""
        return np.asarray(self.values[node[1]])

    root = (0, 0)


@dataclass(frozen=True)
class FreeTree:
    """Nodes with splits of their own, the root first.

    Attributes
    ----------
    splits : sequence of Split or None
    left, right : (n_nodes,) int64
    values : (n_nodes, n_outputs) float64
    """

    splits: Sequence[Split | None]
    left: IntArray
    right: IntArray
    values: FloatArray

    def split(self, node: Any) -> Split | None:
        """Split of a node; None at leaves."""
        return self.splits[node]

    def child(self, node: Any, right: bool) -> Any:
        """Node on one side.

        Parameters
        ----------
        node : int
        right : bool
        """
        return int((self.right if right else self.left)[node])

    def leaf(self, node: Any) -> FloatArray:
        """Values of a leaf, (n_outputs,)."""
        return np.asarray(self.values[node])

    root = 0


@dataclass(frozen=True)
class CatBoostModel:
    """What scores depend on.

    Attributes
    ----------
    width : int
        Number of model columns.
    nan_right : mapping of int to bool
        Columns of numbers, and whether NaN is greater than their borders.
    categories : tuple of int
        Columns of categories.
    trees : sequence of SymmetricTree or FreeTree
    scale : float
    bias : (n_outputs,) float64
    hashes : mapping of str to int
        Hash of each text that the document names.
    """

    width: int
    nan_right: Mapping[int, bool]
    categories: tuple[int, ...]
    trees: Sequence[SymmetricTree | FreeTree]
    scale: float
    bias: FloatArray
    hashes: Mapping[str, int]


def parse(document: Any, n_outputs: int) -> CatBoostModel:
    """Model of a JSON document.

    Parameters
    ----------
    document : object
        As a JSON decoder returns it.
    n_outputs : int
        Scores per row.

    Raises
    ------
    ModelError
        A part is missing, of another type or out of its range; the message names it.
    UnsupportedModelError
        Columns of text or embeddings, or statistics that are not fixed numbers.
    """
    top = DocumentPart(document)
    top.refuse_other_than(("model_info", "features_info", "ctr_data", "oblivious_trees", "trees", "scale_and_bias"))
    info = top["features_info"]
    for kind in ("text_features", "embedding_features"):
        if kind in info and info[kind].value:
            raise UnsupportedModelError(f"this CatBoost model has {kind.replace('_', ' ')}: {_ENCODE}")
    info.refuse_other_than(
        ("float_features", "categorical_features", "ctrs", "cat_features_hash", "text_features", "embedding_features")
    )
    numbers = _columns(info, "float_features", NUMBER_KEYS)
    words = _columns(info, "categorical_features", WORD_KEYS)
    splits = _Splits(numbers, words, info["ctrs"].parts() if "ctrs" in info else [], top)
    symmetric = "oblivious_trees" in top
    read = _symmetric if symmetric else _free
    trees = [read(part, splits, n_outputs) for part in top["oblivious_trees" if symmetric else "trees"].parts()]
    scale, bias = _scale_and_bias(top["scale_and_bias"], n_outputs)
    places = sorted([*_flat_indices(numbers).values(), *_flat_indices(words).values()])
    if places != list(range(len(places))):
        raise info.error("two features stand in one column, or a column is left out")
    return CatBoostModel(
        width=len(places),
        nan_right={_flat_index(part): _nan_right(part) for part in numbers},
        categories=tuple(sorted(_flat_indices(words).values())),
        trees=trees,
        scale=scale,
        bias=bias,
        hashes=_text_hashes(info),
    )


def _scale_and_bias(part: DocumentPart, n_outputs: int) -> tuple[float, FloatArray]:
    both = part.parts()
    if len(both) != 2:
        raise part.error("a scale and a bias are expected")
    bias = both[1].numbers() if isinstance(both[1].value, list) else np.array([both[1].number()])
    if len(bias) not in (1, n_outputs):
        raise both[1].error(f"{len(bias)} entries where {n_outputs} belong")
    return both[0].number(), np.resize(bias, n_outputs)


# -- columns and splits --------------------------------------------------------------------------------------------


def _columns(info: DocumentPart, kind: str, known: tuple[str, ...]) -> list[DocumentPart]:
    """Features of a kind, which stand in the order of their numbers and of their columns."""
    parts = info[kind].parts() if kind in info else []
    for part in parts:
        part.refuse_other_than((*known, *_SILENT))
    numbers = [part["feature_index"].integer(high=MAX_FEATURES) for part in parts]
    if numbers != list(range(len(parts))) or sorted(map(_flat_index, parts)) != list(map(_flat_index, parts)):
        raise info[kind].error("the features are not in their order")
    return parts


def _flat_index(part: DocumentPart) -> int:
    return part["flat_feature_index"].integer(high=MAX_FEATURES)


def _flat_indices(parts: Iterable[DocumentPart]) -> dict[int, int]:
    """Model column of each feature, by the feature's number among those of its kind."""
    return {part["feature_index"].integer(): _flat_index(part) for part in parts}


def _nan_right(part: DocumentPart) -> bool:
    said = part["nan_value_treatment"].text()
    if said not in ("AsIs", "AsFalse", "AsTrue"):
        raise part["nan_value_treatment"].error(f"{said[:40]!r} is no treatment of NaN that ocf knows")
    return said == "AsTrue"


def _text_hashes(info: DocumentPart) -> dict[str, int]:
    if "cat_features_hash" not in info:
        return {}
    parts = info["cat_features_hash"].parts()
    return {part["value"].text(): signed(part["hash"].integer(high=2**32 - 1)) for part in parts}


def signed(hash_: int) -> int:
    """A hash of 32 bits as the library compares it."""
    return hash_ - 2**32 if hash_ >= 2**31 else hash_


class _Splits:
    """All splits of a document by their number."""

    def __init__(
        self,
        numbers: Sequence[DocumentPart],
        words: Sequence[DocumentPart],
        statistics: Sequence[DocumentPart],
        top: DocumentPart,
    ) -> None:
        self.numbers, self.words, self.top = _flat_indices(numbers), _flat_indices(words), top
        self.tables: dict[str, dict[int, tuple[float, ...]]] = {}
        self.all: list[Split] = []
        for part in numbers:
            self.all += [Border(_flat_index(part), border) for border in _float32_numbers(part["borders"])]
        for part in words:
            values = part["values"].integers().tolist() if "values" in part else []
            if len(set(values)) != len(values):
                raise part["values"].error("a value comes twice")
            self.all += [OneHot(_flat_index(part), value) for value in values]
        for part in statistics:
            statistic = self._statistic(part)
            self.all += [StatisticSplit(statistic, border) for border in _float32_numbers(part["borders"])]

    def of(self, part: DocumentPart) -> Split:
        """Split that a node names, which says the same of it."""
        part.refuse_other_than(SPLIT_KEYS)
        index = part["split_index"].integer(high=len(self.all) - 1) if self.all else -1
        if index < 0:
            raise part.error("there are no splits")
        kind, split = part["split_type"].text(), self.all[index]
        if isinstance(split, Border):
            same = kind == "FloatFeature" and self._border(part) == split
        elif isinstance(split, OneHot):
            same = kind == "OneHotFeature" and self._one_hot(part) == split
        else:
            same = kind == "OnlineCtr" and np.float32(part["border"].number()) == split.border
        if not same:
            raise part.error(f"the split is not number {index} of the model")
        return split

    def _border(self, part: DocumentPart) -> Border:
        number = part["float_feature_index"].integer()
        if number not in self.numbers:
            raise part.error(f"there is no column of numbers {number}")
        return Border(self.numbers[number], float(np.float32(part["border"].number())))

    def _category(self, part: DocumentPart) -> int:
        number = part["cat_feature_index"].integer()
        if number not in self.words:
            raise part.error(f"there is no column of categories {number}")
        return self.words[number]

    def _one_hot(self, part: DocumentPart) -> OneHot:
        return OneHot(self._category(part), part["value"].integer(low=-(2**31)))

    def _statistic(self, part: DocumentPart) -> Statistic:
        part.refuse_other_than(STATISTIC_KEYS)
        kind = part["ctr_type"].text()
        if kind not in _COUNTS:
            raise UnsupportedModelError(f"CatBoost's statistic {kind[:40]!r} of categories is not read: {_ENCODE}")
        columns, sides = self._combination(part["elements"])
        key = part["identifier"].text()
        said = DocumentPart(load_json(key.encode()), part["identifier"].at)
        if (said["type"].text(), self._combination(said["identifier"])) != (kind, (columns, sides)):
            raise part["identifier"].error("it names another combination than the elements")
        data = self.top["ctr_data"][key]
        if key not in self.tables:
            self.tables[key] = _buckets(data, kind)
        width = data["hash_stride"].integer() - 1
        numbers = [part[k].number() for k in ("prior_numerator", "prior_denomerator", "shift", "scale")]
        return Statistic(
            kind,
            columns,
            sides,
            self.tables[key],
            data["counter_denominator"].integer(),
            part["target_border_idx"].integer(high=width - 1),
            *numbers,
        )

    def _combination(self, part: DocumentPart) -> tuple[tuple[int, ...], tuple[Border | OneHot, ...]]:
        """Columns of categories, and splits beside them, in the order in which their hashes are folded."""
        elements = part.parts()
        for element in elements:
            element.refuse_other_than(ELEMENT_KEYS)
        kinds = [element["combination_element"].text() for element in elements]
        order = ("cat_feature_value", "float_feature", "cat_feature_exact_value")
        if not set(kinds) <= set(order) or sorted(kinds, key=order.index) != kinds:
            raise part.error("the combination is of an unknown kind or order")
        columns = [self._category(e) for kind, e in zip(kinds, elements, strict=True) if kind == order[0]]
        sides = [
            self._border(element) if kind == order[1] else self._one_hot(element)
            for kind, element in zip(kinds, elements, strict=True)
            if kind != order[0]
        ]
        if any(side not in self.all for side in sides):
            raise part.error("a split of the combination is none of the model's")
        return tuple(columns), tuple(sides)


def _buckets(data: DocumentPart, kind: str) -> dict[int, tuple[float, ...]]:
    """What is counted under each hash."""
    data.refuse_other_than(TABLE_KEYS)
    stride = data["hash_stride"].integer(low=2, high=2**16)
    if _COUNTS[kind] not in (None, stride - 1):
        raise data["hash_stride"].error(f"a bucket of {kind} holds {_COUNTS[kind]} numbers")
    flat = data["hash_map"].parts()
    if len(flat) % stride:
        raise data["hash_map"].error(f"its length is no multiple of {stride}")
    found = {
        _hash(flat[k]): tuple(part.number() for part in flat[k + 1 : k + stride]) for k in range(0, len(flat), stride)
    }
    if len(found) * stride != len(flat):
        raise data["hash_map"].error("a hash comes twice")
    found.pop(_EMPTY, None)
    return found


def _float32_numbers(part: DocumentPart) -> list[float]:
    """Ascending numbers in float32."""
    with np.errstate(over="ignore"):
        single = part.numbers().astype(np.float32)
    if not np.isfinite(single).all():
        raise part.error("a number does not fit into float32")
    if (np.diff(single) <= 0).any():
        raise part.error("the borders do not ascend")
    return single.tolist()


def _hash(part: DocumentPart) -> int:
    text = part.text()
    if not _HASH.fullmatch(text) or int(text) > _MASK:
        raise part.error(f"{text[:40]!r} is no hash")
    return int(text)


# -- trees ---------------------------------------------------------------------------------------------------------


def _symmetric(part: DocumentPart, splits: _Splits, n_outputs: int) -> SymmetricTree:
    part.refuse_other_than(("splits", "leaf_values", "leaf_weights"))
    # a tree of a single leaf has null
    own = part["splits"].parts() if "splits" in part and part["splits"].value is not None else []
    if len(own) > _MAX_DEPTH:
        raise part["splits"].error(f"more than {_MAX_DEPTH} splits")
    values = part["leaf_values"].numbers(2 ** len(own) * n_outputs)
    return SymmetricTree([splits.of(split) for split in own], values.reshape(-1, n_outputs))


def _free(part: DocumentPart, splits: _Splits, n_outputs: int) -> FreeTree:
    found: list[Split | None] = []
    left: list[int] = []
    right: list[int] = []
    values: list[FloatArray] = []
    waiting: list[tuple[DocumentPart, int, Literal["left", "right"]]] = [(part, -1, "left")]
    while waiting:
        node, parent, side = waiting.pop()
        if parent >= 0:
            (left if side == "left" else right)[parent] = len(found)
        node.refuse_other_than(("split", "left", "right", "value", "weight"))
        inner = "split" in node
        if inner:
            waiting += [(node["right"], len(found), "right"), (node["left"], len(found), "left")]
        values.append(np.zeros(n_outputs) if inner else _leaf(node["value"], n_outputs))
        found.append(splits.of(node["split"]) if inner else None)
        left.append(-1)
        right.append(-1)
    return FreeTree(found, np.array(left), np.array(right), np.array(values))


def _leaf(part: DocumentPart, n_outputs: int) -> FloatArray:
    if isinstance(part.value, list):
        return part.numbers(n_outputs)
    if n_outputs != 1:
        raise part.error(f"one value where {n_outputs} belong")
    return np.array([part.number()])

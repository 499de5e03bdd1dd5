"""CatBoost's trees as trees of single columns.

A statistic of one category column sends a set of its categories to the right. One of a combination depends on several
columns at once: its node becomes several, each of which splits one column, until every row's side is known. Nodes whose
side is known from those above them are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray
from ocf.errors import UnsupportedModelError
from ocf.readers.catboost_format import Border, CatBoostModel, FreeTree, OneHot, Split, SymmetricTree
from ocf.readers.float32 import float32_at_most
from ocf.readers.sklearn_common import Tree

#: Most combinations of categories that one statistic is computed of, and most nodes of one tree.
_MAX_COMBINATIONS, _MAX_NODES = 2**22, 2**17


@dataclass(frozen=True)
class CodeSet:
    """A set of category codes goes right."""

    column: int
    right: BoolArray


@dataclass(frozen=True)
class Joint:
    """What goes right depends on several columns.

    Attributes
    ----------
    axes : tuple of int, Border or CodeSet
        Columns of categories, and splits whose sides count.
    right : bool array
        One axis for each of them.
    """

    axes: tuple[int | Border | CodeSet, ...]
    right: BoolArray


@dataclass(frozen=True)
class _Region:
    """Rows that reach a node: codes of each category column, and the last borders below and above each number."""

    codes: Mapping[int, BoolArray]
    low: Mapping[int, float] = field(default_factory=dict)
    high: Mapping[int, float] = field(default_factory=dict)

    def side(self, split: Border | CodeSet) -> bool | None:
        """Whether all rows go right; None if they part."""
        if isinstance(split, CodeSet):
            right = split.right[self.codes[split.column]]
            return bool(right[0]) if right.all() or not right.any() else None
        if split.border <= self.low.get(split.column, -np.inf):
            return True
        return False if split.border >= self.high.get(split.column, np.inf) else None

    def part(self, split: Border | CodeSet, right: bool) -> _Region:
        """Rows on one side."""
        if isinstance(split, CodeSet):
            kept = self.codes[split.column] & (split.right == right)
            return replace(self, codes={**self.codes, split.column: kept})
        if right:
            return replace(self, low={**self.low, split.column: split.border})
        return replace(self, high={**self.high, split.column: split.border})


@dataclass(frozen=True)
class Grower:
    """Trees of a model over codes of categories.

    Attributes
    ----------
    model : CatBoostModel
    hashes : mapping of int to (n_codes,) int32
        Of the codes of each category column.
    """

    model: CatBoostModel
    hashes: Mapping[int, NDArray[np.int32]]

    @cached_property
    def _known(self) -> dict[int, Border | CodeSet | Joint]:
        return {}

    @cached_property
    def _values(self) -> dict[int, NDArray[np.float32]]:
        return {}

    def grow(self, tree: SymmetricTree | FreeTree) -> Tree:
        """A tree of splits of single columns.

        Raises
        ------
        UnsupportedModelError
            Combinations of categories make it too large.
        """
        n_outputs = len(self.model.bias)
        left: list[int] = []
        right: list[int] = []
        values: list[FloatArray] = []
        splits: list[Border | CodeSet | None] = []
        start = _Region({j: np.ones(len(h), bool) for j, h in self.hashes.items()})
        waiting: list[tuple[Any, _Region, int, bool]] = [(tree.root, start, -1, False)]
        while waiting:
            node, region, parent, from_right = waiting.pop()
            if parent >= 0:
                (right if from_right else left)[parent] = len(splits)
            node, split = self._first_open(tree, node, region)
            if split is not None:
                waiting += [(node, region.part(split, side), len(splits), side) for side in (True, False)]
            values.append(np.zeros(n_outputs) if split is not None else tree.leaf(node))
            splits.append(split)
            left.append(-1)
            right.append(-1)
            if len(splits) > _MAX_NODES:
                raise UnsupportedModelError(
                    f"combinations of category columns make more than {_MAX_NODES} nodes of a tree: train with "
                    "max_ctr_complexity=1"
                )
        return self._assembled(splits, left, right, values)

    def _first_open(
        self, tree: SymmetricTree | FreeTree, node: Any, region: _Region
    ) -> tuple[Any, Border | CodeSet | None]:
        """First node on the way of a region's rows at which they part, and how; a leaf if they do not."""
        while (split := tree.split(node)) is not None:
            found = self._of_columns(split)
            asked = _next_test(found, region) if isinstance(found, Joint) else found
            side = asked if isinstance(asked, bool) else region.side(asked)
            if side is None and not isinstance(asked, bool):
                return node, asked
            node = tree.child(node, bool(side))
        return node, None

    def _of_columns(self, split: Split) -> Border | CodeSet | Joint:
        """A split with the sides of all codes."""
        if id(split) not in self._known:
            self._known[id(split)] = self._resolved(split)
        return self._known[id(split)]

    def _resolved(self, split: Split) -> Border | CodeSet | Joint:
        if isinstance(split, Border):
            return split
        if isinstance(split, OneHot):
            return CodeSet(split.column, self.hashes[split.column] == split.hash)
        statistic = split.statistic
        size = 2 ** len(statistic.sides) * int(np.prod([len(self.hashes[j]) for j in statistic.columns], dtype=float))
        if size > _MAX_COMBINATIONS:
            raise UnsupportedModelError(
                f"a combination of category columns has {size} values: train with max_ctr_complexity=1"
            )
        if id(statistic) not in self._values:
            self._values[id(statistic)] = statistic.values(self.hashes)
        right = self._values[id(statistic)] > np.float32(split.border)
        if right.ndim == 1 and statistic.columns:
            return CodeSet(statistic.columns[0], right)
        sides = [s if isinstance(s, Border) else self._resolved(s) for s in statistic.sides]
        return Joint((*statistic.columns, *(s for s in sides if not isinstance(s, Joint))), right)

    def _assembled(
        self,
        splits: list[Border | CodeSet | None],
        left: list[int],
        right: list[int],
        values: list[FloatArray],
    ) -> Tree:
        n, n_codes = len(splits), max((len(h) for h in self.hashes.values()), default=0)
        feature, border, missing_left = np.zeros(n, np.int64), np.zeros(n), np.zeros(n, bool)
        is_set, goes_left = np.zeros(n, bool), np.zeros((n, n_codes), bool)
        for k, split in enumerate(splits):
            if split is None:
                continue
            feature[k] = split.column
            if isinstance(split, CodeSet):
                is_set[k], goes_left[k, : len(split.right)] = True, ~split.right
                missing_left[k] = not split.right[-1]
            else:
                border[k], missing_left[k] = split.border, not self.model.nan_right[split.column]
        return Tree(
            left=np.array(left, np.int64),
            right=np.array(right, np.int64),
            feature=feature,
            threshold=float32_at_most(border),
            values=np.array(values),
            missing_left=missing_left,
            goes_left=goes_left,
            is_set=is_set,
        )


def _next_test(joint: Joint, region: _Region) -> Border | CodeSet | bool:
    """What to ask of a region's rows next so that their side becomes known, or the side."""
    right = joint.right
    for k, axis in enumerate(joint.axes):
        if isinstance(axis, int):
            right = np.compress(region.codes[axis], right, axis=k)
        elif (side := region.side(axis)) is not None:
            right = np.take(right, [int(side)], axis=k)
    if right.all() or not right.any():
        return bool(right.all())
    for k, axis in reversed(list(enumerate(joint.axes))):
        rows = np.moveaxis(right, k, 0).reshape(right.shape[k], -1)
        apart = (rows != rows[0]).any(axis=1)
        if not apart.any():
            continue
        if not isinstance(axis, int):
            return axis
        members = np.zeros(len(region.codes[axis]), bool)
        members[region.codes[axis]] = apart
        return CodeSet(axis, members)
    raise AssertionError("rows that part differ along some axis")

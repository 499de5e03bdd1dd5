"""Checkpoints of treelite (``Model.serialize``): every count and place in one, checked before treelite itself reads it.

A checkpoint of version 4 is a row of numbers and of arrays, each array behind its length (source:
``include/treelite/detail/serializer_mixins.h`` and ``src/serializer.cc``): a header, then each tree, node by node in
arrays. Treelite's loader takes lengths and places on trust.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import IntArray
from ocf.errors import ModelError, UnsupportedModelError
from ocf.readers.trees import MAX_FEATURES, reachable

#: Dtypes of thresholds and leaves by their code.
_NUMBERS = {2: "<f4", 3: "<f8"}

#: Most targets and classes.
_MOST = 10_000

#: Node types, and codes of comparisons.
_LEAF, _KINDS, _COMPARISONS = 0, 3, 6

#: What a tree may say of its nodes besides; behind each stands whether it is there.
_BESIDE = ("<u8", "<f8", "<f8")


@dataclass
class _Bytes:
    """What is left of a file.

    Attributes
    ----------
    data : bytes
    at : int
        Place of the next number.
    """

    data: bytes
    at: int = 0

    def number(self, dtype: str) -> Any:
        """The next number."""
        return self._take(np.dtype(dtype), 1)[0].item()

    def array(self, dtype: str, *sizes: int) -> NDArray[Any]:
        """The next array; of one of these sizes, where some are given."""
        size = self.number("<u8")
        require(not sizes or size in sizes, f"an array of {size} numbers where {sizes[:1]} belong, at byte {self.at}")
        return self._take(np.dtype(dtype), size)

    def _take(self, dtype: np.dtype[Any], size: int) -> NDArray[Any]:
        require(size * dtype.itemsize <= len(self.data) - self.at, f"the file ends within numbers, at byte {self.at}")
        found = np.frombuffer(self.data, dtype, size, self.at)
        self.at += size * dtype.itemsize
        return found


def require(holds: Any, what: str) -> None:
    """Refuse a checkpoint that is damaged.

    Parameters
    ----------
    holds : bool
    what : str
        What is wrong.

    Raises
    ------
    ModelError
    """
    if not holds:
        raise ModelError(f"{what}: the checkpoint is damaged, save the model again")


def check_checkpoint(data: bytes) -> None:
    """Refuse bytes that are no sound checkpoint of treelite 4.

    Raises
    ------
    ModelError
        A count or place is wrong.
    UnsupportedModelError
        It is of another version.
    """
    left = _Bytes(data)
    major, minor, patch = (left.number("<i4") for _ in range(3))
    if major != 4:
        raise UnsupportedModelError(
            f"this is a checkpoint of treelite {major}.{minor}.{patch}, and ocf reads those of treelite 4: load it in "
            "Python by treelite.Model.deserialize(path) and give ocf the object"
        )
    dtype, leaf, n_trees = left.number("u1"), left.number("u1"), left.number("<u8")
    require(dtype in _NUMBERS and leaf == dtype, f"numbers of the types {dtype} and {leaf}")
    require(1 <= n_trees <= len(data), f"{n_trees} trees")
    shape, n_features = _check_header(left, int(n_trees))
    for number in range(n_trees):
        _check_tree(left, number, _NUMBERS[dtype], shape, n_features)
    require(left.at == len(data), f"{len(data) - left.at} bytes follow the last tree")


def _check_header(left: _Bytes, n_trees: int) -> tuple[int, int]:
    """Numbers of a leaf's vector, and columns."""
    n_features, task, average, n_targets = (left.number(t) for t in ("<i4", "u1", "u1", "<i4"))
    require(1 <= n_features <= MAX_FEATURES, f"{n_features} columns")
    require(task < 5 and average < 2 and 1 <= n_targets <= _MOST, f"task {task} of {n_targets} targets")
    classes, shape = left.array("<i4", n_targets), left.array("<i4", 2)
    require((classes >= 1).all() and (classes <= _MOST).all(), "numbers of classes")
    most = int(classes.max())
    require(shape[0] in (1, n_targets) and shape[1] in (1, most), f"leaves of the shape {shape.tolist()}")
    targets, speaks = left.array("<i4", n_trees), left.array("<i4", n_trees)
    require((targets >= (-1 if shape[0] == n_targets else 0)).all() and (targets < n_targets).all(), "targets of trees")
    require((speaks >= (-1 if shape[1] == most else 0)).all() and (speaks < most).all(), "classes of trees")
    require(_is_text(left.array("u1")), "the name of the postprocessor")
    left.number("<f4"), left.number("<f4")
    left.array("<f8", n_targets * most)
    require(_is_text(left.array("u1")), "the attributes")
    require(left.number("<i4") == 0, "fields that no version 4 has")
    return int(shape[0] * shape[1]), n_features


def _is_text(found: NDArray[Any]) -> bool:
    return bool(((found >= 32) & (found < 127)).all())


def _check_tree(left: _Bytes, number: int, dtype: str, width: int, n_features: int) -> None:
    n, sets = left.number("<i4"), left.number("u1")
    require(n >= 1 and sets < 2, f"tree {number} has {n} nodes")
    kind = left.array("i1", n)
    lower, upper, feature = (left.array("<i4", n).astype(np.int64) for _ in range(3))
    flags = [left.array("u1", n)]
    left.array(dtype, n), left.array(dtype, n)
    comparison = left.array("i1", n)
    flags.append(left.array("u1", n))
    vectors = left.array(dtype)
    _check_ranges(left, n, len(vectors), np.where(kind == _LEAF, width if width > 1 else 0, 0), number)
    categories = left.array("<u4")
    _check_ranges(left, n, len(categories), None, number)
    for own in _BESIDE:  # treelite looks at a number wherever a flag stands
        flags.append(left.array("u1", len(left.array(own, 0, n))))
    require(left.number("<i4") == 0 and left.number("<i4") == 0, f"tree {number} has fields that no version 4 has")
    inner = kind != _LEAF
    require(((kind >= 0) & (kind < _KINDS)).all() and ((comparison >= 0) & (comparison < _COMPARISONS)).all(), "tests")
    require(all((own < 2).all() for own in flags), f"a flag of tree {number} is neither 0 nor 1")
    for children in (lower, upper):
        own = children[inner]
        require((own > 0).all() and (own < n).all() and (children[~inner] == -1).all(), f"children in tree {number}")
    # the column of a leaf is of no meaning
    require((feature[inner] >= 0).all() and (feature[inner] < n_features).all(), f"columns in tree {number}")
    require(len(reachable(inner, lower, upper, number)) == n, f"nodes hang loose in tree {number}")


def _check_ranges(left: _Bytes, n: int, size: int, lengths: IntArray | None, number: int) -> None:
    """Where each node's own part of an array begins and ends."""
    first, last = (left.array("<u8", n) for _ in range(2))
    require((first <= last).all() and (last <= size).all(), f"places of vectors or categories in tree {number}")
    require(lengths is None or (last - first == lengths).all(), f"leaves of tree {number} have other vectors")

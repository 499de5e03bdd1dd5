"""Hyperplanes of isotree's extended isolation forests, to the last bit.

isotree shows the splits of a forest with ``ndim > 1`` only as rounded decimals (``to_json``). The exact numbers stand
in the bytes by which it pickles its trees: little-endian, a tree after the other, for each node its threshold, score,
range and remainder (float64), its children, the lengths of eight lists (64-bit), and the lists: columns, their types,
coefficients, centres, and what concerns categories and missing values. This layout is nobody's promise, so that all
that is read is compared with the decimals, and another layout is refused.

A row goes left where ``sum_k coefficient_k (x_k - centre_k) <= threshold``, in float64.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.errors import UnsupportedModelError

#: Digits that ``to_json`` keeps after the point.
_DIGITS = 6


@dataclass(frozen=True)
class Hyperplanes:
    """One tree; the arrays of a leaf's columns are empty.

    Attributes
    ----------
    left, right : (n_nodes,) int64
        Children; -1 at leaves.
    threshold : (n_nodes,) float64
        NaN at leaves.
    depth : (n_nodes,) float64
        Of leaves; 0 elsewhere.
    columns, coefficients, centres : tuple of arrays, one per node
    """

    left: IntArray
    right: IntArray
    threshold: FloatArray
    depth: FloatArray
    columns: tuple[IntArray, ...]
    coefficients: tuple[FloatArray, ...]
    centres: tuple[FloatArray, ...]


def read_hyperplanes(model: Any) -> list[Hyperplanes]:
    """Trees of a fitted extended isolation forest on numbers.

    Parameters
    ----------
    model : isotree.IsolationForest
        With ``ndim > 1``.

    Raises
    ------
    UnsupportedModelError
        This version of isotree keeps its trees in another way.
    """
    counts = [int(n) for n in model.get_num_nodes()[0]]
    data = model._cpp_obj.__getstate__()
    start = data.find(struct.pack("<2Q", len(counts), counts[0]))
    try:
        if start < 0:
            raise ValueError("the trees are not where they should be")
        reader = _NumberStream(data, start + 8)
        trees = [_tree(reader, n) for n in counts]
        for tree, shown in zip(trees, model.to_json(), strict=True):
            _compare(tree, shown, model)
    except (struct.error, ValueError, KeyError, IndexError) as cause:
        raise UnsupportedModelError(
            f"this version of isotree keeps hyperplane splits in a way that ocf does not know ({cause}): fit the "
            "isolation forest with ndim=1"
        ) from None
    return trees


class _NumberStream:
    """Numbers one after the other."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def take(self, kind: str, n: int) -> Any:
        """Next n numbers of a kind (of NumPy), as an array."""
        width = np.dtype(kind).itemsize
        if n < 0 or self._at + n * width > len(self._data):
            raise ValueError("the trees break off")
        found = np.frombuffer(self._data, kind, n, self._at)
        self._at += n * width
        return found


def _tree(reader: _NumberStream, n: int) -> Hyperplanes:
    if int(reader.take("<u8", 1)[0]) != n:
        raise ValueError("a tree has another number of nodes")
    numbers, links, columns, coefficients, centres = [], [], [], [], []
    for _ in range(n):
        numbers.append(reader.take("<f8", 5))
        links.append(reader.take("<u8", 2).astype(np.int64))
        sizes = reader.take("<u8", 8).astype(np.int64).tolist()
        if sizes[4] or sizes[5] or not sizes[0] == sizes[1] == sizes[2] == sizes[3]:
            raise ValueError("a node splits on categories, or its lists differ in length")
        columns.append(reader.take("<u8", sizes[0]).astype(np.int64))
        reader.take("u1", sizes[1])
        coefficients.append(reader.take("<f8", sizes[2]))
        centres.append(reader.take("<f8", sizes[3]))
        reader.take("<f8", sizes[6] + sizes[7])
    values, children = np.array(numbers), np.array(links)
    leaf = children[:, 0] == 0  # the root is nobody's child
    return Hyperplanes(
        np.where(leaf, -1, children[:, 0]),
        np.where(leaf, -1, children[:, 1]),
        np.where(leaf, np.nan, values[:, 0]),
        np.where(leaf, values[:, 1], 0.0),
        tuple(columns),
        tuple(coefficients),
        tuple(centres),
    )


def _compare(tree: Hyperplanes, shown: dict[str, Any], model: Any) -> None:
    """Check a tree against what the library shows of it."""
    names = [str(c) for c in getattr(model, "cols_numeric_", ())] or [
        f"column_{j}" for j in range(model._ncols_numeric)
    ]
    if len(shown) != len(tree.left):
        raise ValueError("a tree is shown with another number of nodes")
    for k in range(len(tree.left)):
        node = shown[str(k)]
        if node["terminal"] == "yes":
            same = tree.left[k] < 0 and _near(tree.depth[k], node["score"])
        else:
            parts = node["combination"]
            same = (
                [tree.left[k], tree.right[k]]
                == [node["node_when_condition_is_met"], node["node_when_condition_is_not_met"]]
                and [names[j] for j in tree.columns[k]] == [part["column"] for part in parts]
                and _near(tree.threshold[k], node["value"])
                and _near(tree.coefficients[k], [part["coefficient"] for part in parts])
                and _near(tree.centres[k], [part["centering"] for part in parts])
            )
        if not same:
            raise ValueError(f"node {k} is shown otherwise")


def _near(exact: Any, shown: Any) -> bool:
    """Whether numbers are the shown decimals, which are rounded or cut."""
    shown = np.asarray(shown, np.float64)
    return bool(np.all(np.abs(exact - shown) <= 10.0**-_DIGITS * (1 + np.abs(shown))))

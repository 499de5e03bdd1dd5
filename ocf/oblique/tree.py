"""An oblique tree as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ocf.arrays import FloatArray, IntArray
from ocf.errors import DataError, ModelError


def dot(x: FloatArray, w: FloatArray) -> FloatArray:
    """``x @ w`` row by row, (n,): unlike BLAS, the same bits for a row alone and within a table.

    Parameters
    ----------
    x : (n, n_features) float64
    w : (n_features,) float64
    """
    return np.asarray(np.einsum("ij,j->i", np.ascontiguousarray(x), np.ascontiguousarray(w)))


@dataclass(frozen=True, eq=False)
class ObliqueTree:
    """A tree of hyperplane splits as plain arrays, from wherever it comes.

    Parameters
    ----------
    weights : (n_nodes, n_features) float array
        Rows of leaves are ignored. A row with a single 1 is an axis-aligned split.
    threshold : (n_nodes,) float array
        A row x goes left exactly when ``weights[v] . x <= threshold[v]``.
    left, right : (n_nodes,) int array
        Children, after their parents; -1 at leaves. Node 0 is the root.
    value : (n_nodes, n_outputs) float array
        Scores of the classes (the largest wins, the first on a tie), or the value of a regression tree.
    classes : sequence, optional
        Class labels; none for regression.
    feature_names : sequence of str, optional

    Raises
    ------
    ModelError
        When the arrays do not fit together or do not form a tree.

    Examples
    --------
    >>> tree = ObliqueTree([[1.0, 1.0], [0, 0], [0, 0]], [1.0, 0, 0], [1, -1, -1], [2, -1, -1],
    ...                    [[0, 0], [1, 0], [0, 1]], classes=["in", "out"])
    >>> tree.predict([[0.2, 0.3], [0.8, 0.9]]).tolist()
    ['in', 'out']
    """

    weights: FloatArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    value: FloatArray
    classes: tuple[Any, ...] = ()
    feature_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "weights", np.ascontiguousarray(self.weights, np.float64))
        put(self, "threshold", np.asarray(self.threshold, np.float64))
        put(self, "value", np.asarray(self.value, np.float64))
        for name in ("left", "right"):
            put(self, name, np.asarray(getattr(self, name), np.int64))
        put(self, "classes", tuple(np.asarray(self.classes).tolist()))
        if self.weights.ndim == 2 and not self.feature_names:
            put(self, "feature_names", tuple(f"x{j}" for j in range(self.weights.shape[1])))
        put(self, "feature_names", tuple(str(name) for name in self.feature_names))
        self._check()

    def _check(self) -> None:
        n = len(self.threshold)
        if n == 0 or self.weights.ndim != 2 or self.value.ndim != 2:
            raise ModelError("an oblique tree needs weights (n_nodes, n_features) and values (n_nodes, n_outputs)")
        for name in ("weights", "left", "right", "value"):
            if len(getattr(self, name)) != n:
                raise ModelError(f"the tree has {n} thresholds but {len(getattr(self, name))} entries in {name!r}")
        if len(self.feature_names) != self.n_features:
            raise ModelError(f"{len(self.feature_names)} feature names for {self.n_features} columns of weights")
        if self.classes and self.value.shape[1] != len(self.classes):
            raise ModelError(f"{self.value.shape[1]} scores per node for {len(self.classes)} classes")
        if not self.classes and self.value.shape[1] != 1:
            raise ModelError("a tree with several scores per node needs the labels of its classes")
        inner = self.left >= 0
        if not np.array_equal(inner, self.right >= 0):
            raise ModelError("a node has one child: a split has two, a leaf none (-1)")
        children = np.sort(np.concatenate([self.left[inner], self.right[inner]]))
        if not np.array_equal(children, np.arange(1, n)):
            raise ModelError("the children do not form one tree: every node but the root needs exactly one parent")
        if np.any(np.minimum(self.left, self.right)[inner] <= np.flatnonzero(inner)):
            raise ModelError("children must stand after their parents")
        finite = np.isfinite(self.weights[inner]).all() and np.isfinite(self.threshold[inner]).all()
        if not finite or not np.isfinite(self.value[~inner]).all():
            raise ModelError("a weight, threshold or value is not finite: the tree is corrupt")

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.weights.shape[1])

    @property
    def leaves(self) -> IntArray:
        """Nodes that are leaves, in order."""
        return np.flatnonzero(self.left < 0)

    @property
    def depth(self) -> int:
        """Splits on the longest path."""
        depth = np.zeros(len(self.left), int)
        for v in np.flatnonzero(self.left >= 0):
            depth[[self.left[v], self.right[v]]] = depth[v] + 1
        return int(depth.max())

    def apply(self, x: ArrayLike) -> IntArray:
        """Leaf (node number) that each row reaches, (n,).

        Parameters
        ----------
        x : (n, n_features) float array
        """
        rows = np.ascontiguousarray(x, np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise DataError(f"rows have shape {rows.shape}; the tree takes (n, {self.n_features})")
        if not np.isfinite(rows).all():
            raise DataError("a row holds a missing or infinite value, and the tree has no rule for it: fill in a value")
        return descend_tree(self.weights, self.threshold, self.left, self.right, rows, 0)

    def scores(self, x: ArrayLike) -> FloatArray:
        """Values of the leaves that rows reach, (n, n_outputs)."""
        return self.value[self.apply(x)]

    def predict(self, x: ArrayLike) -> NDArray[Any]:
        """Class labels, or values of a regression tree, (n,)."""
        scores = self.scores(x)
        return np.asarray(self.classes)[scores.argmax(axis=1)] if self.classes else scores[:, 0]


def descend_tree(
    weights: FloatArray, threshold: FloatArray, left: IntArray, right: IntArray, x: FloatArray, start: int
) -> IntArray:
    """Leaf below `start` that each row reaches; node by node, since few nodes share many rows.

    Parameters
    ----------
    weights : (n_nodes, n_features) float64
    threshold : (n_nodes,) float64
    left, right : (n_nodes,) int64
        Children; -1 at leaves.
    x : (n, n_features) float64
    start : int
        Node at which all rows begin.
    """
    out = np.empty(len(x), np.int64)
    stack = [(start, np.arange(len(x)))]
    while stack:
        v, rows = stack.pop()
        if left[v] < 0 or not len(rows):
            out[rows] = v
            continue
        goes_left = dot(x[rows], weights[v]) <= threshold[v]
        stack += [(int(left[v]), rows[goes_left]), (int(right[v]), rows[~goes_left])]
    return out

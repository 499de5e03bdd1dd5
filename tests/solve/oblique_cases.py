"""Oblique trees, and an enumeration of vertices and active sets that shares no code with ocf."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder

from ocf import Cost
from ocf.oblique.tree import ObliqueTree

NORMS: list[Any] = ["l1", "l2", "l0", {"l1": 1.0, "l2": 2.0}, {"l0": 0.1, "l1": 1.0}, {"l0": 0.3, "l2": 1.0}]


def random_tree(rng: np.random.Generator, n: int, depth: int, n_classes: int, *, axis: float = 0.2) -> ObliqueTree:
    """A complete tree of random hyperplanes through the unit box, some of them axis-aligned."""
    n_inner = 2**depth - 1
    n_nodes = 2 * n_inner + 1
    weights, threshold = np.zeros((n_nodes, n)), np.zeros(n_nodes)
    for v in range(n_inner):
        if rng.random() < axis:
            weights[v, rng.integers(n)] = 1.0
        else:
            weights[v] = rng.normal(size=n) * (rng.random(n) < 0.8)
        threshold[v] = weights[v] @ rng.uniform(0.2, 0.8, n)
    inner = np.arange(n_nodes) < n_inner
    left, right = np.where(inner, 2 * np.arange(n_nodes) + 1, -1), np.where(inner, 2 * np.arange(n_nodes) + 2, -1)
    value = np.eye(n_classes)[rng.integers(n_classes, size=n_nodes)]
    return ObliqueTree(weights, threshold, left, right, value, classes=tuple(range(n_classes)))


def paths(tree: ObliqueTree) -> Iterator[tuple[int, list[tuple[int, float]]]]:
    """Leaves with the nodes above them, +1 for left and -1 for right."""
    stack: list[tuple[int, list[tuple[int, float]]]] = [(0, [])]
    while stack:
        v, path = stack.pop()
        if tree.left[v] < 0:
            yield v, path
        else:
            stack += [(int(tree.left[v]), [*path, (v, 1.0)]), (int(tree.right[v]), [*path, (v, -1.0)])]


def brute_force(
    tree: ObliqueTree,
    origin: np.ndarray,
    wanted: set[int],
    cost: Cost,
    spaces: list[Any],
    *,
    eps: float = 0.0,
    q: np.ndarray | None = None,
    extra: tuple[list[float], float] | None = None,
) -> float:
    """Least cost over all leaves of the wanted classes; inf if there is none.

    A space is a pair of bounds (continuous) or an array of values. Whatever is continuous lies on a vertex of the
    arrangement of the leaf's faces and the kinks of the cost, or at the optimum of an active set.
    """
    continuous = [i for i, s in enumerate(spaces) if isinstance(s, tuple)]
    discrete = [i for i, s in enumerate(spaces) if not isinstance(s, tuple)]
    best = np.inf
    for leaf, path in paths(tree):
        if int(tree.value[leaf].argmax()) not in wanted:
            continue
        g = np.array([s * tree.weights[v] for v, s in path]).reshape(-1, len(origin))
        h = np.array([s * tree.threshold[v] - eps for v, s in path])
        if extra is not None:
            g, h = np.vstack([g, extra[0]]), np.append(h, extra[1])
        for values in itertools.product(*(spaces[i] for i in discrete)):
            point = origin.copy()
            point[discrete] = values
            fixed = price(cost, origin, point, q) if not continuous else 0.0
            if not continuous:
                if (g @ point <= h + 1e-12).all():
                    best = min(best, fixed)
                continue
            rest = h - g[:, discrete] @ point[discrete]
            for x in candidates(g[:, continuous], rest, origin[continuous], [spaces[i] for i in continuous], cost, q):
                point[continuous] = x
                best = min(best, price(cost, origin, point, q))
    return best


def price(cost: Cost, origin: np.ndarray, point: np.ndarray, q: np.ndarray | None) -> float:
    """Cost of a change with unit scales and weights."""
    d = point - origin
    d[np.abs(d) < 1e-13] = 0.0
    pairs = 0.0 if q is None else float(d @ q @ d)
    return float(cost.l0 * (d != 0).sum() + cost.l1 * np.abs(d).sum() + cost.l2 * (d * d).sum()) + pairs


def candidates(
    g: np.ndarray, h: np.ndarray, origin: np.ndarray, box: list[Any], cost: Cost, q: np.ndarray | None
) -> Iterator[np.ndarray]:
    """Feasible points among the optima of all active sets of faces, ends of the box and kinks, for all signs."""
    n = len(origin)
    rows = np.vstack([g, np.eye(n), np.eye(n), np.eye(n)])
    sides = np.concatenate([h, [b[0] for b in box], [b[1] for b in box], origin])
    hessian = 2 * cost.l2 * np.eye(n) + (0 if q is None else 2 * q)
    for size in range(n + 1):
        for active in itertools.combinations(range(len(rows)), size):
            a, b = rows[list(active)], sides[list(active)]
            if size and np.linalg.matrix_rank(a) < size:
                continue
            for signs in (
                itertools.product((-1.0, 1.0), repeat=n) if hessian.any() and size < n and cost.l1 else [(1.0,) * n]
            ):
                top = np.hstack([hessian, a.T])
                kkt = np.vstack([top, np.hstack([a, np.zeros((size, size))])])
                right = np.concatenate([-cost.l1 * np.array(signs) + hessian @ origin, b])
                if size < n and not hessian.any():
                    continue  # a linear cost is least at a vertex
                try:
                    x = np.linalg.solve(kkt, right)[:n]
                except np.linalg.LinAlgError:
                    continue
                low, high = np.array(box).T
                if (g @ x <= h + 1e-10).all() and (x >= low - 1e-10).all() and (x <= high + 1e-10).all():
                    yield x


def frame(rng: np.random.Generator, n: int, rows: int = 12) -> pd.DataFrame:
    table = pd.DataFrame(rng.uniform(size=(rows, n)), columns=[f"x{j}" for j in range(n)])
    table.iloc[0], table.iloc[1] = 0.0, 1.0
    return table


def assert_same(explanation: Any, optimum: float) -> None:
    assert not explanation.checks
    if optimum == np.inf:
        assert explanation.status == "infeasible"
        return
    assert explanation.status == "optimal", (explanation.message, explanation.gap)
    assert explanation.verified
    assert explanation.cost == pytest.approx(optimum, rel=1e-8, abs=1e-9)


def mixed_table(rng: np.random.Generator, rows: int = 30) -> pd.DataFrame:
    """A number, a whole number, a category and a binary feature, as columns that a tree takes one-hot."""
    table = pd.DataFrame(
        {
            "number": rng.uniform(size=rows),
            "count": rng.integers(0, 4, rows),
            "colour": rng.choice(["red", "green", "blue"], rows),
            "flag": rng.integers(0, 2, rows),
        }
    )
    table.iloc[:3, 2] = ["red", "green", "blue"]
    table.loc[[0, 1], "flag"] = [0, 1]
    table.loc[[0, 1], "count"] = [0, 3]
    table.loc[[0, 1], "number"] = [0.0, 1.0]
    return table


def colours_one_hot() -> ColumnTransformer:
    """Encoder of `mixed_table`: blue, green, red, then the other columns."""
    return ColumnTransformer(
        [("colour", OneHotEncoder(categories=[["blue", "green", "red"]], sparse_output=False), ["colour"])],
        remainder="passthrough",
    )


class Fixed(ClassifierMixin, BaseEstimator):
    """A tree of plain arrays in a Pipeline."""

    def __init__(self, tree: ObliqueTree | None = None) -> None:
        self.tree = tree

    def fit(self, X: Any, y: Any) -> Fixed:
        self.tree_, self.classes_, self.n_features_in_ = self.tree, np.arange(2), X.shape[1]
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.tree_.scores(X)

    def predict(self, X: Any) -> np.ndarray:
        return self.tree_.predict(X)


Fixed.__module__ = "ocf.oblique.tao"

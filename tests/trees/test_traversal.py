"""Kernels send rows where the splits say, one after the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ocf.trees.ensemble import Decision, Ensemble, SplitKind

SPLITS = [SplitKind.AXIS, SplitKind.SUBSET, SplitKind.OBLIQUE]


def full_trees(rng: np.random.Generator, n_trees: int, planes: int) -> Ensemble:
    """Trees of depth 3 whose splits are of all kinds, over two numbers and a category; totals have several splits."""
    inner, size = np.arange(7), 15
    kind = np.tile(np.repeat([SplitKind.AXIS, SplitKind.LEAF], [7, 8]).astype(np.uint8), n_trees)
    at = np.flatnonzero(kind != SplitKind.LEAF)
    kind[at] = rng.choice(SPLITS, len(at), p=[0.3, 0.2, 0.5])
    none = np.full(len(kind), -1, np.int32)
    left, right, leaf, feature, set_index, index = (none.copy() for _ in range(6))
    start = size * np.arange(n_trees)[:, None]
    left[(start + inner).ravel()], right[(start + inner).ravel()] = (
        (start + 2 * inner + k).ravel().astype(np.int32) for k in (1, 2)
    )
    leaf[kind == SplitKind.LEAF] = np.arange(8 * n_trees)
    threshold = np.where((kind == SplitKind.AXIS) | (kind == SplitKind.OBLIQUE), rng.integers(-4, 5, len(kind)), np.nan)
    feature[kind == SplitKind.AXIS] = rng.integers(0, 2, (kind == SplitKind.AXIS).sum())
    feature[kind == SplitKind.SUBSET] = 2
    set_index[kind == SplitKind.SUBSET] = rng.integers(0, 5, (kind == SplitKind.SUBSET).sum())
    index[kind == SplitKind.OBLIQUE] = rng.integers(0, planes, (kind == SplitKind.OBLIQUE).sum())
    n = 4 * planes
    return Ensemble(
        ("a", "b", "c"),
        size * np.arange(n_trees + 1),
        kind,
        feature,
        threshold,
        left,
        right,
        leaf,
        np.zeros((8 * n_trees, 1)),
        np.ones(n_trees),
        np.zeros(1),
        Decision("value"),
        set_index=set_index,
        sets=rng.random((5, 4)) < 0.5,
        missing_left=rng.random(len(kind)) < 0.5,
        oblique_index=index,
        oblique_indptr=4 * np.arange(planes + 1),
        oblique_indices=np.tile(np.array([0, 1, 2, 2], np.int32), planes),
        oblique_data=rng.integers(-3, 4, n).astype(float),
        oblique_codes=np.tile(np.array([-1, -1, 1, 3], np.int32), planes),
    )


@pytest.mark.parametrize("planes", [1, 3, 40])
def test_rows_reach_the_leaves_that_the_splits_send_them_to(planes: int) -> None:
    rng = np.random.default_rng(planes)
    ensemble, x = full_trees(rng, 6, planes), rng.integers(-5, 6, (300, 3)).astype(float)
    x[:, 2] = rng.integers(0, 4, 300)
    x[rng.random(x.shape) < 0.1] = np.nan
    rows = np.arange(len(x))
    at = np.tile(ensemble.tree_offsets[:-1], (len(x), 1))
    for tree in range(ensemble.n_trees):
        for _ in range(3):
            goes = ensemble.goes_left(x, rows, at[:, tree])
            at[:, tree] = np.where(goes, ensemble.left[at[:, tree]], ensemble.right[at[:, tree]])
    np.testing.assert_array_equal(ensemble.apply(x), ensemble.leaf[at])
    turned = replace(ensemble, oblique_data=-ensemble.oblique_data)
    assert (turned.apply(x) != ensemble.apply(x)).any()

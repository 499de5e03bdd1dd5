"""Kernels, against evaluating cell by cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_problems import random_problem, sums_at

from ocf.cells.kernels import locate, new_position, scan, search_arrays

SEEDS = st.integers(0, 10**6)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_scan_equals_evaluating_cell_by_cell(seed: int) -> None:
    cells = random_problem(seed)
    part, gain = cells.partition, np.ascontiguousarray(cells.requirements.gain)
    arrays = search_arrays(part)
    trees, at = arrays.trees, new_position(arrays, gain.shape[1])
    x = np.random.default_rng(seed).integers(0, part.widths)
    locate(trees.root, trees.node, trees.sets, gain, x, at)
    assert at.sums == pytest.approx(sums_at(cells, x), abs=1e-12)
    assert np.array_equal(at.leaf, part.leaves_at(x))
    for f in range(part.n_features):
        line = np.full((part.widths[f], gain.shape[1]), np.nan)
        scan(trees.node, trees.sets, arrays.boxes.member, arrays.column[f], gain, x, f, at, line)
        for cell in range(part.widths[f]):
            y = x.copy()
            y[f] = cell
            assert line[cell] == pytest.approx(sums_at(cells, y), abs=1e-12)

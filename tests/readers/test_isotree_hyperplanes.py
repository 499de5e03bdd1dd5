"""Hyperplanes of isotree's forests, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf.errors import UnsupportedModelError
from ocf.readers.isotree_hyperplanes import Hyperplanes, read_hyperplanes


@pytest.mark.parametrize(
    "settings",
    [
        {"ndim": 2},
        {"ndim": 3, "sample_size": 32, "missing_action": "fail"},
        {"ndim": 2, "scoring_metric": "adj_depth", "coefs": "normal", "standardize_data": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("named", [True, False])
def test_isotrees_hyperplanes_to_the_last_bit(rows: np.ndarray, settings: dict[str, Any], named: bool) -> None:
    isotree = pytest.importorskip("isotree")
    scaled = rows * [1.0, 100.0, 1e-3, 1e5]
    given = pd.DataFrame(scaled, columns=list("abcd")) if named else scaled
    forest = isotree.IsolationForest(ntrees=8, nthreads=1, **settings).fit(given)
    wanted = forest.predict(given, output="tree_depths")
    for tree, depths in zip(read_hyperplanes(forest), wanted.T, strict=True):
        np.testing.assert_array_equal([depth_of(tree, row) for row in scaled], depths)


def depth_of(tree: Hyperplanes, row: np.ndarray) -> float:
    k = 0
    while tree.left[k] >= 0:
        parts = zip(tree.columns[k], tree.coefficients[k], tree.centres[k], strict=True)
        total = sum(w * (row[j] - centre) for j, w, centre in parts)
        k = tree.left[k] if total <= tree.threshold[k] else tree.right[k]
    return float(tree.depth[k])


def test_another_layout_of_hyperplanes_is_refused(rows: np.ndarray) -> None:
    isotree = pytest.importorskip("isotree")
    forest = isotree.IsolationForest(ntrees=3, ndim=2, sample_size=16, nthreads=1).fit(rows)
    kept = forest._cpp_obj.__getstate__()
    at = kept.find(np.float64(read_hyperplanes(forest)[0].coefficients[0][0]).tobytes())
    shifted = kept[:at] + np.float64(0.123).tobytes() + kept[at + 8 :]

    class Other:
        def __init__(self, data: bytes) -> None:
            self._cpp_obj = self
            self.data = data
            self._ncols_numeric = 4

        def __getstate__(self) -> bytes:
            return self.data

        def get_num_nodes(self) -> Any:
            return forest.get_num_nodes()

        def to_json(self) -> Any:
            return forest.to_json()

    assert len(read_hyperplanes(Other(kept))) == 3
    for damaged in (shifted, kept[: at + 4], b"", kept[30:40]):
        with pytest.raises(UnsupportedModelError, match="in a way that ocf does not know"):
            read_hyperplanes(Other(damaged))

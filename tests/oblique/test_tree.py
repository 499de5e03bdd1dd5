"""Oblique trees as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ocf.errors import DataError, ModelError
from ocf.oblique.tree import ObliqueTree

STUMP = {
    "weights": [[1.0, 2.0], [0, 0], [0, 0]],
    "threshold": [1.0, 0, 0],
    "left": [1, -1, -1],
    "right": [2, -1, -1],
    "value": [[0, 0], [1, 0], [0, 1]],
    "classes": ("a", "b"),
}


def test_a_tie_goes_left() -> None:
    tree = ObliqueTree(**STUMP)
    assert tree.predict([[1.0, 0.0], [np.nextafter(1.0, 2), 0.0], [0.0, 0.5]]).tolist() == ["a", "b", "a"]
    assert tree.depth == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"left": [1, -1, 2]}, "one child"),
        ({"left": [2, -1, -1]}, "one tree"),
        ({"left": [0, -1, -1]}, "one tree"),
        ({"weights": [[np.nan, 2.0], [0, 0], [0, 0]]}, "not finite"),
        ({"threshold": [1.0]}, "1 thresholds"),
        ({"value": [[0, 0, 0]] * 3}, "3 scores"),
        ({"classes": ()}, "labels"),
        ({"feature_names": ("x",)}, "feature names"),
        ({"weights": np.zeros((0, 2)), "threshold": [], "left": [], "right": [], "value": np.zeros((0, 2))}, "needs"),
    ],
)
def test_arrays_that_are_no_tree_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        ObliqueTree(**{**STUMP, **change})


@pytest.mark.parametrize("rows", [[[1.0]], [[np.nan, 1.0]], [1.0, 2.0]])
def test_rows_that_the_tree_cannot_take_are_refused(rows: Any) -> None:
    with pytest.raises(DataError):
        ObliqueTree(**STUMP).predict(rows)

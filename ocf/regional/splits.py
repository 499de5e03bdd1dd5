"""Splits of a regional forest in terms of cells, and which of their sides a region is open to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ocf.arrays import BoolArray
from ocf.regional.forest import CellBox
from ocf.regional.query import ProbabilityQuery


class Split(NamedTuple):
    """A split of the forest, in terms of cells.

    Attributes
    ----------
    feature : int
    left : (n_cells_of_feature,) bool
        Cells that go left.
    cut : int
        The last cell that goes left; -1 for splits by sets of levels.
    """

    feature: int
    left: BoolArray
    cut: int


def split_at(query: ProbabilityQuery, k: int) -> Split:
    """The split at a node of the forest.

    Parameters
    ----------
    query : ProbabilityQuery
    k : int
        Number of the node.
    """
    trees, part = query.forest.arrays.trees, query.forest.partition
    feature, cut = int(trees.node[k, 0]), int(trees.node[k, 1])
    width = int(part.widths[feature])
    if cut < -1:
        return Split(feature, trees.sets[-2 - cut, :width], -1)
    return Split(feature, np.arange(width) <= cut, cut)


def open_sides(query: ProbabilityQuery, region: CellBox, split: Split) -> tuple[bool, bool]:
    """Whether a region has cells left and right of a split.

    Parameters
    ----------
    query : ProbabilityQuery
    region : CellBox
    split : Split

    Returns
    -------
    (left, right) : (bool, bool)
    """
    cells = query.forest.cells_of(region, split.feature)
    return bool((cells & split.left).any()), bool((cells & ~split.left).any())

"""Trees made of copies of an ensemble's nodes, each with a threshold and children of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import IntArray
from ocf.trees.ensemble import Ensemble

#: Numbers of nodes, as an ensemble holds them.
Children = NDArray[np.int32]


class Copies:
    """New trees, node by node.

    Parameters
    ----------
    ensemble : Ensemble
        Whose nodes are copied.

    Attributes
    ----------
    source : list of int
        The node that each new node is a copy of.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        self.source: list[int] = []
        self._threshold: list[float] = []
        self._children: list[list[int]] = []
        self._offsets = [0]

    def add(self, node: int, threshold: float, parent: int, side: int) -> int:
        """Add a copy of a node; gives its number.

        Parameters
        ----------
        node : int
        threshold : float
        parent : int
            Number of a new node; -1 for a root.
        side : int
            0 where the copy is the parent's left child, 1 where it is the right one.
        """
        new = len(self.source)
        if parent >= 0:
            self._children[parent][side] = new
        self.source.append(node)
        self._threshold.append(threshold)
        self._children.append([-1, -1])
        return new

    def end_tree(self) -> None:
        """Let the next root begin another tree."""
        self._offsets.append(len(self.source))

    def ensemble(self) -> tuple[Ensemble, IntArray]:
        """The trees, and the node that each new node is a copy of."""
        source, children = np.array(self.source, np.int64), np.array(self._children, np.int32)
        offsets, threshold = np.array(self._offsets, np.int64), np.array(self._threshold)
        made = copied(self._ensemble, source, offsets, children[:, 0], children[:, 1], threshold=threshold)
        return made, source


def copied(
    ensemble: Ensemble, nodes: IntArray, tree_offsets: IntArray, left: Children, right: Children, **changes: Any
) -> Ensemble:
    """Trees whose nodes are copies of an ensemble's, with other children.

    Parameters
    ----------
    ensemble : Ensemble
    nodes : (n,) int64
        The node that each is a copy of.
    tree_offsets : (n_trees + 1,) int64
        Where the trees begin.
    left, right : (n,) int32
        Children by their new numbers; -1 for leaves.
    **changes
        Other attributes of the ensemble that are not copied.
    """
    is_leaf = ensemble.leaf[nodes] >= 0
    names = ("kind", "feature", "threshold", "set_index", "oblique_index")
    made: dict[str, Any] = {name: getattr(ensemble, name)[nodes] for name in names}
    made |= {
        "tree_offsets": tree_offsets,
        "left": left,
        "right": right,
        "leaf": np.where(is_leaf, np.cumsum(is_leaf) - 1, -1).astype(np.int32),
        "leaf_values": ensemble.leaf_values[ensemble.leaf[nodes[is_leaf]]],
        "missing_left": None if ensemble.missing_left is None else ensemble.missing_left[nodes],
    }
    return replace(ensemble, **(made | changes))

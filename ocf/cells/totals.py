"""Cells of totals: where several splits weigh the features alike, what they weigh is one more number with thresholds.

Behind a PCA all splits of a component are of one total, and every tree is a tree of single numbers in the components.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ocf.arrays import IntArray
from ocf.cells.partition import Partition
from ocf.trees.ensemble import Ensemble, SplitKind


@dataclass(frozen=True, eq=False)
class TotalCells:
    """Cells of features and of the totals that several splits share.

    Attributes
    ----------
    partition : Partition
        Its features are those that it was made of, and then the totals.
    n_features : int
        Without the totals.
    """

    partition: Partition
    n_features: int

    @property
    def totals(self) -> range:
        """The totals, as features of the partition."""
        return range(self.n_features, self.partition.n_features)

    def nodes_of(self, i: int) -> IntArray:
        """One node for each threshold of a total, in increasing order."""
        trees = self.partition.ensemble
        nodes = np.flatnonzero((trees.kind == SplitKind.AXIS) & (trees.feature == i))
        return nodes[np.unique(trees.threshold[nodes], return_index=True)[1]]


def nodes_of_totals(trees: Ensemble) -> IntArray:
    """Nodes of hyperplanes whose side their threshold decides.

    Parameters
    ----------
    trees : Ensemble
    """
    oblique = (trees.kind == SplitKind.OBLIQUE) & np.isfinite(trees.threshold)
    oblique[trees.tree_offsets[trees.lines[:, 0]]] = False
    return np.flatnonzero(oblique)


def sharing_nodes(trees: Ensemble) -> IntArray:
    """Nodes of hyperplanes whose total several have, and whose side their threshold decides.

    Parameters
    ----------
    trees : Ensemble
    """
    nodes = nodes_of_totals(trees)
    several = np.bincount(trees.oblique_index[nodes], minlength=1) > 1
    return nodes[several[trees.oblique_index[nodes]]]


def with_totals(part: Partition, *, every: bool = False) -> TotalCells:
    """The cells of a partition, and those of the totals that several of its splits share.

    Parameters
    ----------
    part : Partition
    every : bool
        Whether totals of a single split have cells as well.
    """
    key = "every total" if every else "totals"
    if key not in part.derived:
        part.derived[key] = _with_totals(part, nodes_of_totals if every else sharing_nodes)
    found: TotalCells = part.derived[key]
    return found


def _with_totals(part: Partition, nodes_of: Callable[[Ensemble], IntArray]) -> TotalCells:
    """As `with_totals`, of the totals of some nodes."""
    trees, n = part.ensemble, part.n_features
    nodes = nodes_of(trees)
    if not len(nodes):
        return TotalCells(part, n)
    _, total = np.unique(trees.oblique_index[nodes], return_inverse=True)
    kind, feature, index = trees.kind.copy(), trees.feature.copy(), trees.oblique_index.copy()
    kind[nodes], feature[nodes], index[nodes] = SplitKind.AXIS, n + total, -1
    uppers = [np.append(np.unique(trees.threshold[nodes[total == k]]), np.inf) for k in range(total.max() + 1)]
    names = _new_names(trees.feature_names, len(uppers))
    return TotalCells(
        Partition(
            replace(trees, kind=kind, feature=feature, oblique_index=index, feature_names=names),
            np.concatenate([part.offsets, part.n_cells + np.cumsum([len(upper) for upper in uppers])]),
            np.append(part.ordered, np.ones(len(uppers), bool)),
            np.concatenate([part.lower, *(np.append(-np.inf, upper[:-1]) for upper in uppers)]),
            np.concatenate([part.upper, *uppers]),
            np.append(part.member_offsets, np.full(len(uppers), part.member_offsets[-1])),
        ),
        n,
    )


def _new_names(names: Sequence[str], n: int) -> tuple[str, ...]:
    """The names, and n more that are none of them."""
    return (*names, *(f"{max(names, key=len)} {k}" for k in range(n)))

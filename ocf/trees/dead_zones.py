"""Trees in which values near a threshold lead nowhere: the far side of a split begins at some distance from it."""

from __future__ import annotations

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.trees.copying import Copies
from ocf.trees.ensemble import Ensemble, SplitKind


def with_dead_zones(
    ensemble: Ensemble, origin: FloatArray, margins: FloatArray, on_grid: BoolArray
) -> tuple[Ensemble, IntArray]:
    """Trees that send a value beyond a threshold, seen from the row, to a dead leaf unless it is so far beyond.

    A split ``v <= b`` with the row's own value on the left becomes ``v <= b``, else dead where ``v < b + margin``; one
    with it on the right becomes ``v <= b - margin``, else dead where ``v <= b``. So the row's own values are in no dead
    zone, and a point outside of them keeps its leaf while values that changed are taken back by less than the margin.

    Parameters
    ----------
    ensemble : Ensemble
    origin : (n_features,) float64
        The row, coded.
    margins : (n_features,) float64
        At least 0; 0 for features without.
    on_grid : (n_features,) bool
        Which features have values on a grid alone. Libraries compare in float32, so that a threshold of 3.5 sends a
        hair more than that left; on a grid nothing lies there, and 4 stands 0.5 off.

    Returns
    -------
    (Ensemble, (n,) int64)
        And its dead leaves, which hold what some leaf of their tree holds.
    """
    widened = _Widened(ensemble, origin, margins, on_grid)
    for root in ensemble.tree_offsets[:-1].tolist():
        widened.tree(int(root))
    made, _ = widened.copies.ensemble()
    return made, made.leaf[widened.dead].astype(np.int64)


class _Widened:
    """The trees that are made, and their dead leaves."""

    def __init__(self, ensemble: Ensemble, origin: FloatArray, margins: FloatArray, on_grid: BoolArray) -> None:
        self._ensemble = ensemble
        tested = np.maximum(ensemble.feature, 0)
        old, margin, at = origin[tested], margins[tested], ensemble.threshold
        cut = (ensemble.kind == SplitKind.AXIS) & np.isfinite(at) & (margin > 0) & ~np.isnan(old)
        with np.errstate(invalid="ignore", over="ignore"):
            hair = np.where(on_grid[tested], np.spacing(np.abs(at).astype(np.float32)).astype(np.float64), 0.0)
            asked = np.maximum(margin - hair, 0.0)
            #: Last value of the near side, and last of the dead zone or before it.
            self._first = np.where(cut & (old > at), at - asked, at)
            self._second = np.where(cut & (old <= at), np.nextafter(at + asked, -np.inf), at)
        self.copies = Copies(ensemble)
        self.dead: list[int] = []

    def tree(self, root: int) -> None:
        """Add the tree of a root."""
        ensemble, add = self._ensemble, self.copies.add
        some_leaf = root
        while ensemble.left[some_leaf] >= 0:
            some_leaf = int(ensemble.left[some_leaf])
        waiting = [(root, -1, 0)]
        while waiting:
            node, parent, side = waiting.pop()
            first = add(node, float(self._first[node]), parent, side)
            if ensemble.left[node] < 0:
                continue
            last = first
            if self._first[node] < self._second[node]:
                last = add(node, float(self._second[node]), first, 1)
                self.dead.append(add(some_leaf, np.nan, last, 0))
            waiting.append((int(ensemble.right[node]), last, 1))
            waiting.append((int(ensemble.left[node]), first, 0))
        self.copies.end_tree()

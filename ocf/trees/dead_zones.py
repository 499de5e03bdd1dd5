"""Trees in which values near a threshold lead nowhere: the far side of a split begins at some distance from it."""

from __future__ import annotations

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.trees.copying import Copies
from ocf.trees.ensemble import Ensemble, SplitKind


def with_dead_zones(
    ensemble: Ensemble, origin: FloatArray, margins: FloatArray, steps: FloatArray
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
    steps : (n_features,) float64
        Grids of the features, 0 for none. Libraries compare in float32, so that a threshold of 3.5 sends a hair more
        than that left; on a grid nothing lies there, and 4 stands 0.5 off: see `_shown`.

    Returns
    -------
    (Ensemble, (n,) int64)
        And its dead leaves, which hold what some leaf of their tree holds.
    """
    widened = _Widened(ensemble, origin, margins, steps)
    for root in ensemble.tree_offsets[:-1].tolist():
        widened.tree(int(root))
    made, _ = widened.copies.ensemble()
    return made, made.leaf[widened.dead].astype(np.int64)


class _Widened:
    """The trees that are made, and their dead leaves."""

    def __init__(self, ensemble: Ensemble, origin: FloatArray, margins: FloatArray, steps: FloatArray) -> None:
        self._ensemble = ensemble
        tested = np.maximum(ensemble.feature, 0)
        old, margin, at = origin[tested], margins[tested], ensemble.threshold
        cut = (ensemble.kind == SplitKind.AXIS) & np.isfinite(at) & (margin > 0) & ~np.isnan(old)
        with np.errstate(invalid="ignore"):
            from_ = _shown(at, steps[tested])
            #: Last value of the near side, and last of the dead zone or before it.
            self._first = np.where(cut & (old > at), np.minimum(from_ - margin, at), at)
            last = np.maximum(np.nextafter(from_ + margin, -np.inf), at)
            self._second = np.where(cut & (old <= at), last, at)
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


def _shown(at: FloatArray, steps: FloatArray) -> FloatArray:
    """The thresholds as a library shows them, where a grid tells: on it or halfway, if that is a hair off."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        hair = np.spacing(np.abs(at).astype(np.float32)).astype(np.float64)
        shown = np.rint(2 * at / steps) * steps / 2
        # a hair that is no small part of the grid tells nothing
        return np.where((steps > 0) & (8 * hair <= steps) & (np.abs(shown - at) <= hair), shown, at)

"""Trees in which one split of a feature's line has become several.

A column that turns, such as a square, a hole at one number or a spline, sends the union of several intervals left. Such
a node becomes a small tree of thresholds, and what stands below it is copied into each interval. What an interval
decides already is left out, so that copies are smaller than what they were made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ocf.arrays import IntArray
from ocf.errors import UnsupportedModelError
from ocf.support.messages import listed
from ocf.trees.copying import Copies
from ocf.trees.ensemble import Ensemble, SplitKind

#: Nodes that trees may grow to: so many times their own, and so many more.
MOST_TIMES, MOST_MORE = 20, 20_000


@dataclass(frozen=True)
class Fold:
    """A split of a line into intervals that go left and right in turn.

    Attributes
    ----------
    cuts : (n,) tuple of float
        Ends of the intervals but the last, increasing; the interval before a cut holds it.
    first_left : bool
        Whether the first interval goes left.
    """

    cuts: tuple[float, ...]
    first_left: bool

    def within(self, low: float, high: float) -> tuple[list[float], bool]:
        """The cuts inside ``(low, high]``, and whether the first interval there goes left.

        Parameters
        ----------
        low, high : float
        """
        before = sum(c <= low for c in self.cuts)
        return [c for c in self.cuts if low < c < high], self.first_left ^ bool(before % 2)

    def then(self, cut: float, left: bool) -> Fold:
        """The fold that goes to a side beyond a cut which lies behind all its own.

        Parameters
        ----------
        cut : float
        left : bool
        """
        last = self.first_left ^ bool(len(self.cuts) % 2)
        return self if last == left else Fold((*self.cuts, cut), self.first_left)


#: Feature -> interval ``(low, high]`` in which a node stands.
_Box = dict[int, tuple[float, float]]


class _Growing:
    """New trees of copies, without what an interval has decided already."""

    def __init__(self, ensemble: Ensemble, folds: Mapping[int, Fold]) -> None:
        self.ensemble, self.folds = ensemble, folds
        self.watched = {int(ensemble.feature[v]) for v in folds}
        self.copies = Copies(ensemble)
        self.most = MOST_TIMES * len(ensemble.kind) + MOST_MORE

    def tree(self, root: int) -> None:
        """The copy of the tree of a root."""
        waiting: list[tuple[int, _Box, int, int]] = [(root, {}, -1, 0)]
        while waiting:
            v, box, parent, side = waiting.pop()
            v, cuts = self._undecided(v, box)
            if len(self.copies.source) > self.most:
                names = listed([self.ensemble.feature_names[i] for i in sorted(self.watched)])
                raise UnsupportedModelError(
                    f"the splits of {names} turn so often, or ask so often for what may be missing, that trees of "
                    f"{len(self.ensemble.kind)} nodes would become more than {self.most}: give ocf the table after the "
                    "preprocessing, or supply fewer features"
                )
            cut = cuts[len(cuts) // 2] if cuts else float(self.ensemble.threshold[v])
            new = self.copies.add(v, cut, parent, side)
            if cuts:
                i = int(self.ensemble.feature[v])
                low, high = box.get(i, (-np.inf, np.inf))
                waiting += [(v, {**box, i: (cut, high)}, new, 1), (v, {**box, i: (low, cut)}, new, 0)]
            elif self.ensemble.kind[v] != SplitKind.LEAF:
                waiting += [(int(self.ensemble.right[v]), box, new, 1), (int(self.ensemble.left[v]), box, new, 0)]
        self.copies.end_tree()

    def _undecided(self, v: int, box: _Box) -> tuple[int, list[float]]:
        """The first node from `v` down that the box does not decide, and its cuts inside it."""
        e = self.ensemble
        while e.kind[v] == SplitKind.AXIS and int(e.feature[v]) in self.watched:
            fold = self.folds.get(v) or Fold((float(e.threshold[v]),), True)
            cuts, left = fold.within(*box.get(int(e.feature[v]), (-np.inf, np.inf)))
            if cuts:
                return v, cuts
            v = int((e.left if left else e.right)[v])
        return v, []


def unfold(ensemble: Ensemble, folds: Mapping[int, Fold]) -> tuple[Ensemble, IntArray]:
    """Trees in which nodes split the line as they should, and the node that each new node is a copy of.

    Parameters
    ----------
    ensemble : Ensemble
        Over features, without a rule for missing values.
    folds : mapping of node to Fold
        AXIS nodes, whose thresholds mean nothing.

    Returns
    -------
    Ensemble
    (n_nodes,) int64

    Raises
    ------
    UnsupportedModelError
        The trees would grow beyond measure.
    """
    if not folds:
        return ensemble, np.arange(len(ensemble.kind))
    growing = _Growing(ensemble, folds)
    for root in ensemble.tree_offsets[:-1].tolist():
        growing.tree(root)
    return growing.copies.ensemble()

"""Boxes of numbers that may hold something cheaper than a known point, and the leaves that are in reach of them.

A point that is cheaper lies in a box around the row. On the way down a tree of hyperplanes a box shrinks to each side,
in every number that the hyperplane weighs, and its cheapest point grows dearer; leaves whose box costs as much as the
known point are of no use, nor are those without which the best of the other trees miss the target. The others' hull is
the next box. Big-M of hyperplanes are as small as it makes them: a row of diabetes, 100 trees of depth 5 beside 20
trees of an extended isolation forest, takes HiGHS 25 s of the processor with it; after 19 s without the bound had not
moved. Halves of a box are smaller problems of the same kind.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.formulations.blocks.columns import MoveColumns
from ocf.problem.requirements import Requirements
from ocf.solve.box_reach import AXIS, LEAF, OTHER, PLANE, Asked, Needs, Planes, Rates, Reach, Splits, tighten
from ocf.solve.leaf_model import LeafModel
from ocf.support.tolerances import with_ties
from ocf.trees.ensemble import Ensemble, SplitKind

Bits = NDArray[np.uint8]

#: Nodes of trees with hyperplanes that are gone through at most.
MOST_NODES = 200_000

#: Part of the whole box's width below which a box is not halved, and in how many numbers halving it is tried. Three of
#: diabetes's eight take half of the time of eight to the same bound, two as long as three.
NARROW, MOST_TRIED = 1e-9, 3

#: How far steps of a grid are from whole numbers where an end of a box is on it, and what rounding of the end, in parts
#: of it, may add to that.
OFF_GRID, ROUNDING = 1e-6, 2.0**-50


@dataclass(frozen=True, eq=False)
class NumberBox:
    """A box of the numbers, and what is in reach of it.

    Attributes
    ----------
    low, high : (n_features,) float64
        From -inf to inf for what is no number.
    size : int
        How many leaves are in reach.
    least : float
        No point of it is cheaper.
    limit : float
        What is dearer is left out; inf where it is not.
    """

    low: FloatArray
    high: FloatArray
    size: int
    least: float
    limit: float
    _bits: Bits
    _n_leaves: int

    @classmethod
    def of(cls, low: FloatArray, high: FloatArray, live: BoolArray, least: float, limit: float = np.inf) -> NumberBox:
        """A box.

        Parameters
        ----------
        low, high : (n_features,) float64
        live : (n_leaves,) bool
            What is in reach.
        least : float
        limit : float
        """
        return cls(low, high, int(live.sum()), least, limit, np.packbits(live), len(live))

    @property
    def live(self) -> BoolArray:
        """Which leaves are in reach, (n_leaves,); kept as bits, for a search has tens of thousands of boxes."""
        return np.unpackbits(self._bits, count=self._n_leaves).view(bool)

    def towards(self, point: FloatArray, scale: float) -> NumberBox:
        """A smaller box around a point of it.

        Parameters
        ----------
        point : (n_features,) float64
        scale : float
            Distance of its ends from the point, in parts of what it was.
        """
        known = np.isfinite(self.low) & np.isfinite(self.high)
        low, high = (np.where(known, point + scale * (end - point), end) for end in (self.low, self.high))
        return replace(self, low=low, high=high, limit=np.inf)


class Narrowing:
    """What known points leave of a problem over values.

    Parameters
    ----------
    model : LeafModel
    requirements : Requirements
    """

    def __init__(self, model: LeafModel, requirements: Requirements) -> None:
        domain, tree, prices = model.domain, model.tree, model.domain.prices
        self._columns, self._credit, self._part = model.columns, domain.credit, model.search.part
        rates = Rates(
            domain.number,
            np.where(domain.number, model.origin, 0.0),
            np.minimum(prices.a_up, prices.a_down),
            np.minimum(prices.q_up, prices.q_down),
        )
        boxes = np.array([model.search.low, model.search.high])
        target = Needs(np.ascontiguousarray(requirements.gain), np.asarray(requirements.need, np.float64))
        self._asked = Asked(_splits(tree, domain.number), _planes(tree, domain.number), rates, target, boxes)
        low, high = (np.where(domain.number, end, np.inf) for end in domain.limits)
        self._limits = self._whole = np.where(domain.number, low, -np.inf), high
        self._own = threading.local()  # ends of the leaves, overwritten by every call

    @classmethod
    def of(cls, model: LeafModel, requirements: Requirements) -> Narrowing | None:
        """The narrowing of a problem; None where nothing is learnt from a point.

        Parameters
        ----------
        model : LeafModel
        requirements : Requirements
        """
        prices, tree = model.domain.prices, model.tree
        cheap = any((rate < 0).any() for rate in (prices.a_up, prices.a_down, prices.q_up, prices.q_down))
        if cheap or not np.isfinite(model.origin).all() or len(tree.lines):
            return None
        n_nodes = np.isin(tree.node_tree, _with_planes(tree)).sum()
        return cls(model, requirements) if 0 < n_nodes <= MOST_NODES else None

    @property
    def is_priced(self) -> bool:
        """Whether some number costs the more the farther it moves; else halves cost as little as the whole."""
        rates = self._asked.rates
        return bool((rates.linear > 0).any() or (rates.square > 0).any())

    def whole(self, limit: float) -> NumberBox | None:
        """What may hold a point with the target that is cheaper than a limit; None where nothing does.

        Parameters
        ----------
        limit : float
            Cost of a known point.
        """
        whole = self.within(NumberBox.of(*self._limits, self._part.reachable, -np.inf), limit)
        self._whole = self._limits if whole is None else (whole.low, whole.high)
        return whole

    def within(self, box: NumberBox, limit: float) -> NumberBox | None:
        """What of a box may hold such a point; None where nothing does.

        Parameters
        ----------
        box : NumberBox
        limit : float
        """
        if not hasattr(self._own, "ends"):
            self._own.ends = np.empty((2, len(self._asked.boxes[0]), len(box.low)))
        reach = Reach(box.low.copy(), box.high.copy(), box.live, self._own.ends)
        least = tighten(self._asked, with_ties(limit) - self._credit, reach)
        if least == np.inf:
            return None
        return NumberBox.of(reach.low, reach.high, reach.live, max(least + self._credit, box.least), limit)

    def halves(self, box: NumberBox, limit: float) -> list[NumberBox]:
        """What of a box's halves may hold such a point, halved so that the fewest leaves are in reach of both.

        Parameters
        ----------
        box : NumberBox
        limit : float
        """
        best = [box]
        for i in self._wide(box).tolist():
            middle = (box.low[i] + box.high[i]) / 2
            low, high = box.low.copy(), box.high.copy()
            low[i] = high[i] = middle
            parts = (self.within(part, limit) for part in (replace(box, high=high), replace(box, low=low)))
            halves = [half for half in parts if half is not None]
            if best[0] is box or sum(half.size for half in halves) < sum(half.size for half in best):
                best = halves
            if not best:
                break
        return best

    def _wide(self, box: NumberBox) -> IntArray:
        """Numbers in which halving a box is tried: those in which it is widest."""
        low, high = self._whole
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (box.high - box.low) / (high - low)
        wide = np.flatnonzero(np.isfinite(high - low) & (share > NARROW))
        return np.asarray(wide[np.argsort(-share[wide], kind="stable")][:MOST_TRIED])

    def columns(self, box: NumberBox) -> MoveColumns:
        """The columns with bounds by a box.

        Parameters
        ----------
        box : NumberBox
        """
        columns, origin = self._columns, self._asked.rates.origin
        lower, upper = columns.lower.copy(), columns.upper.copy()
        unit, own = np.where(columns.unit != 0, np.abs(columns.unit), 1.0), origin[columns.feature]
        fall, rise = ((end[columns.feature] - own) / unit for end in (box.low, box.high))
        far = (np.abs(own) + np.abs(box.low[columns.feature]) + np.abs(box.high[columns.feature])) / unit
        room = OFF_GRID + ROUNDING * far
        fall = np.where(columns.integer, np.ceil(fall - room), fall)
        rise = np.where(columns.integer, np.floor(rise + room), rise)
        for role, a, b in (("delta", fall, rise), ("up", fall, rise), ("down", -rise, -fall)):
            at = columns.role == role
            least = a if role == "delta" else np.maximum(a, 0.0)
            most = b if role == "delta" else np.maximum(b, 0.0)
            lower[at], upper[at] = np.maximum(lower, least)[at], np.minimum(upper, most)[at]
        # crossed by rounding, or where nothing admissible is left
        return replace(columns, lower=np.minimum(lower, upper), upper=np.maximum(lower, upper))


def _with_planes(tree: Ensemble) -> IntArray:
    """Trees that have hyperplanes."""
    return np.unique(tree.node_tree[tree.kind == SplitKind.OBLIQUE])


def _splits(tree: Ensemble, number: BoolArray) -> Splits:
    """Trees as boxes go down them."""
    kind, root = np.full(len(tree.kind), OTHER), np.full(tree.n_trees, -1)
    kind[tree.kind == SplitKind.LEAF] = LEAF
    kind[(tree.kind == SplitKind.AXIS) & number[tree.feature]] = AXIS
    plane = np.where(tree.kind == SplitKind.OBLIQUE, tree.oblique_index, 0)
    listed = (tree.oblique_codes < 0) & ~number[tree.oblique_indices]  # a feature by its code, which has no ends here
    row = np.repeat(np.arange(len(tree.oblique_indptr) - 1), np.diff(tree.oblique_indptr))
    usable = np.bincount(row, listed, len(tree.oblique_indptr) - 1) == 0
    oblique = tree.kind == SplitKind.OBLIQUE
    kind[oblique] = np.where(usable[plane[oblique]], PLANE, OTHER)
    trees = _with_planes(tree)
    root[trees] = tree.tree_offsets[trees]
    kinds, left, right, feature, leaf, planes = (
        np.ascontiguousarray(a, np.int64) for a in (kind, tree.left, tree.right, tree.feature, tree.leaf, plane)
    )
    threshold, offsets = np.ascontiguousarray(tree.threshold, np.float64), np.asarray(tree.leaf_offsets, np.int64)
    deepest, first = np.lexsort((-tree.depth, tree.node_tree)), np.asarray(tree.tree_offsets, np.int64)
    shape = (offsets, deepest, first, int(tree.depth.max()))
    return Splits(kinds, left, right, feature, leaf, planes, threshold, root, *shape)


def _planes(tree: Ensemble, number: BoolArray) -> Planes:
    """Hyperplanes over numbers, and what the levels of other features add."""
    n = len(tree.oblique_indptr) - 1
    row = np.repeat(np.arange(n), np.diff(tree.oblique_indptr))
    value = (tree.oblique_codes < 0) & number[tree.oblique_indices]
    weight, other = tree.oblique_data[value], np.where(value, 0.0, tree.oblique_data)
    sums = (np.minimum(other, 0), np.maximum(other, 0), np.abs(other))
    least, most, size = (np.bincount(row, w, n).astype(np.float64) for w in sums)
    first = np.concatenate([[0], np.cumsum(np.bincount(row[value], minlength=n))])
    feature = tree.oblique_indices[value].astype(np.int64)
    return Planes(first, feature, weight, least, most, size, tree.oblique_rounding, np.asarray(tree.oblique_slack))

"""Families of boxes on the features of a rule, from a question to the arrays of `ocf.rules.family_kernels`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.regional.forest import CellBox
from ocf.regional.query import ProbabilityQuery
from ocf.regional.splits import open_sides, split_at
from ocf.rules.family_kernels import (
    CLOSED,
    LEFT_ONLY,
    OPEN,
    OUT,
    RIGHT_ONLY,
    STRADDLED,
    SURE,
    Evidence,
    FamilyScratch,
    Fields,
    MetTrees,
    Words,
    expand,
    most_share,
)

#: By how much a sum of shares may seem to miss the level: no rounding closes a family, since boxes are counted exactly.
ROUNDING = 1e-7


class Families:
    """Families of boxes on S.

    Parameters
    ----------
    query : ProbabilityQuery
    features : sequence of int
        S.
    level : float
        The paper's pi_C.
    earlier : sequence of CellBox
        Boxes from which rules have to be disjoint.
    """

    def __init__(
        self, query: ProbabilityQuery, features: Sequence[int], level: float, earlier: Sequence[CellBox] = ()
    ) -> None:
        self.query, self.features = query, sorted(features)
        forest = query.forest
        self.cuts = query.met_cuts(self.features, earlier)
        self.fields = self._fields()
        segments = np.stack([self._segments(i, forest.cells[:, i]) for i in self.features], axis=1)
        weights = query.weights(self.features)
        held = np.flatnonzero((weights > 0) & forest.inside(query.free, self.features))
        self.evidence = Evidence(np.ascontiguousarray(segments[held]), weights[held])
        self.trees = _TreeBuilder(query, self.features, self.cuts).build()
        self.earlier = np.array([self.state_of(box) for box in earlier], np.int64).reshape(-1, self.fields.place[-1])
        self.least = level * forest.n_trees - ROUNDING
        self._scratch = self._new_scratch()

    # -- boxes ---------------------------------------------------------------------------------------------

    @cached_property
    def all(self) -> IntArray:
        """The family of all boxes."""
        return np.concatenate(
            [
                np.array([0, size - 1, 0, size - 1]) if ordered else np.where(self._admissible(i), OPEN, OUT)
                for i, size, ordered in zip(self.features, self.fields.size, self.fields.ordered, strict=True)
            ]
        ).astype(np.int64)

    def state_of(self, box: CellBox) -> IntArray:
        """The family of one box."""
        parts: list[IntArray] = []
        for i in self.features:
            if i in self.cuts:
                ends = np.array([box.low[i], box.low[i], box.high[i], box.high[i]])
                parts.append(self._segments(i, np.clip(ends, self.query.free.low[i], self.query.free.high[i])))
            else:
                parts.append(np.where(self.query.forest.cells_of(box, i) & self._admissible(i), SURE, OUT))
        return np.concatenate(parts).astype(np.int64)

    def widest(self, state: IntArray) -> CellBox:
        """The widest box of a family."""
        forest, free = self.query.forest, self.query.free
        masks = [forest.cells_of(free, i).copy() for i in range(forest.partition.n_features)]
        for i, p, size in zip(self.features, self.fields.place[:-1], self.fields.size, strict=True):
            if i in self.cuts:
                at = self._segments(i, np.arange(len(masks[i])))
                masks[i] &= (state[p] <= at) & (at <= state[p + 3])
            else:
                masks[i] &= state[p : p + size] != OUT
        return forest.region(masks)

    # -- questions -----------------------------------------------------------------------------------------

    def expand(
        self, state: IntArray, upper: FloatArray, above: float
    ) -> tuple[int, float, list[tuple[float, IntArray]]]:
        """What `expand` finds in a family, what its widest box captures, and the families that it is divided into.

        Parameters
        ----------
        state : (n,) int64
            Overwritten with what is sure.
        upper : (n_trees,) float64
            Bounds of the trees' shares, of a family that contains this one; overwritten.
        above : float
            Boxes that capture no more are of no use.
        """
        scratch = self._scratch
        found = expand(
            self.fields, self.trees, self.evidence, self.earlier, state, upper, above, self.least, scratch
        )  # fmt: skip
        weight, *own = scratch.weights.tolist()
        children = [(w, child.copy()) for w, child in zip(own, scratch.children, strict=True) if w > above]
        return int(found), weight, children if found != CLOSED else []

    def upper(self, above: float) -> FloatArray:
        """Upper bounds of the trees' shares for all boxes that capture more than a weight, (n_trees,)."""
        bounds = self.no_bounds()
        scratch = self._scratch
        expand(
            self.fields, self.trees, self.evidence, self.earlier, self.all.copy(), bounds, above, 0.0, scratch
        )  # fmt: skip
        return bounds

    def hopeless(self, box: CellBox) -> IntArray:
        """A family as wide as can be, with a box that is no rule, of which none is a rule.

        Parameters
        ----------
        box : CellBox
        """
        state = self.state_of(box)
        for f, p in enumerate(self.fields.place[:-1]):
            if not self.fields.ordered[f]:
                for at in range(p, p + self.fields.size[f]):
                    self._try(state, at, OPEN)
                continue
            last = int(self.fields.size[f]) - 1
            for at, end in ((p, 0), (p + 3, last), (p + 1, last), (p + 2, 0)):
                self._stretch(state, at, end)
        return state

    def _try(self, state: IntArray, at: int, value: int) -> bool:
        """Change a number of a state if all boxes stay hopeless; whether it was changed."""
        before = int(state[at])
        state[at] = value
        if self.most_share(state) < self.least:
            return True
        state[at] = before
        return False

    def _stretch(self, state: IntArray, at: int, end: int) -> None:
        """Move an end of a state outwards as far as bisection finds all boxes hopeless."""
        good, bad = int(state[at]), end
        if good == bad or self._try(state, at, end):
            return
        while abs(bad - good) > 1:
            middle = (good + bad) // 2
            if self._try(state, at, middle):
                good = middle
            else:
                bad = middle

    def most_share(self, state: IntArray) -> float:
        """At most this is the sum of the trees' shares of a family; of a single box, it is the sum itself."""
        scratch = self._scratch
        return float(most_share(self.fields, self.trees, state, 0.0, self.no_bounds(), scratch.ignored, scratch))

    def no_bounds(self) -> FloatArray:
        """Upper bounds of the trees' shares where nothing is known."""
        return np.ones(len(self.trees.root))

    # -- building ------------------------------------------------------------------------------------------

    def _admissible(self, i: int) -> BoolArray:
        return self.query.forest.cells_of(self.query.free, i)

    def _segments(self, i: int, cells: IntArray) -> IntArray:
        return np.searchsorted(self.cuts[i], cells).astype(np.int64) if i in self.cuts else cells.astype(np.int64)

    def _fields(self) -> Fields:
        part = self.query.forest.partition
        ordered = np.array([i in self.cuts for i in self.features])
        size = np.array([len(self.cuts[i]) + 1 if i in self.cuts else part.widths[i] for i in self.features])
        place = np.concatenate([[0], np.cumsum(np.where(ordered, 4, size))])
        left = np.ascontiguousarray(self.query.forest.arrays.trees.sets, bool)
        return Fields(ordered, place.astype(np.int64), size.astype(np.int64), left)

    def _new_scratch(self) -> FamilyScratch:
        n, most = len(self.features), int(self.fields.size.max())
        n_words, length = int(np.diff(self.trees.start).max()), int(self.fields.place[-1])
        return FamilyScratch(
            np.zeros(n_words, np.uint64), np.zeros(n_words, np.uint64), np.zeros(n_words, np.int64),
            np.zeros((len(self.trees.node) + 1, 2), np.int64),
            np.zeros((n, 2, most)), np.zeros((n, 2, most)), np.zeros((n, most)),
            np.zeros(length, np.int64), np.zeros((2, length), np.int64), np.zeros(3),
        )  # fmt: skip


class _TreeBuilder:
    """What the trees ask of a box: nodes that some box can meet, without those at which no row is lost."""

    def __init__(self, query: ProbabilityQuery, features: Sequence[int], cuts: dict[int, IntArray]) -> None:
        self._query, self._cuts = query, cuts
        self._number = {i: f for f, i in enumerate(features)}
        self._node = query.forest.arrays.trees.node
        self._split = query.forest.mix(query.free, query.held, features)
        self._nodes: list[tuple[int, int, int, int]] = []
        self._left: list[BoolArray] = []

    def build(self) -> MetTrees:
        """All trees."""
        forest, wanted = self._query.forest, self._query.wanted
        masks: list[Words] = []
        both: list[Words] = []
        places: list[int] = []
        roots: list[int] = []
        sizes, before = [0], 0
        for t, root in enumerate(forest.arrays.trees.root.tolist()):
            self._left, first, self._kept = [], len(self._nodes), np.ones(len(wanted), bool)
            roots.append(self._compact(root, True))
            rows = np.flatnonzero(self._kept)
            rows = rows[np.argsort(forest.leaves[rows, t], kind="stable")]  # rows of a leaf go the same ways
            sizes.append(max(1, math.ceil(len(rows) / 64)))
            places += [before + k * sizes[-1] for k in range(len(self._nodes) - first)]
            before += (len(self._nodes) - first) * sizes[-1]
            masks.append(_packed([left[rows] for left in self._left], sizes[-1]))
            both.append(_packed([wanted[rows], ~wanted[rows]], sizes[-1]))
        halves = [np.concatenate([b[: len(b) // 2] for b in both]), np.concatenate([b[len(b) // 2 :] for b in both])]
        return MetTrees(
            np.array(self._nodes, np.int64).reshape(-1, 4), np.concatenate(masks), np.array(places, np.int64),
            np.array(roots, np.int64), np.cumsum(sizes).astype(np.int64), *halves,
        )  # fmt: skip

    def _compact(self, k: int, always: bool) -> int:
        """Number of what is left of the tree below a node; -1 for nothing. `always`: every box meets the node."""
        f, cut = int(self._node[k, 0]), int(self._node[k, 1])
        if f < 0:
            return -1
        forest = self._query.forest
        split = split_at(self._query, k)
        goes_left = split.left[forest.cells[:, f]]
        left, right = open_sides(self._query, self._split, split)
        if left != right and always:
            self._kept &= goes_left == left
            return self._compact(int(self._node[k, 2 if left else 3]), True)
        straddled = left and right and f not in self._number
        left_child, right_child = (
            self._compact(int(self._node[k, side]), always and straddled) if is_open else -1
            for side, is_open in ((2, left), (3, right))
        )
        if straddled and left_child == right_child == -1:
            return -1
        if straddled:
            kind, cut = STRADDLED, 0
        elif left != right:
            kind, cut = LEFT_ONLY if left else RIGHT_ONLY, 0
        else:
            kind = self._number[f]
            cut = int(np.searchsorted(self._cuts[f], cut)) if f in self._cuts else -2 - cut
        self._nodes.append((kind, cut, left_child, right_child))
        self._left.append(goes_left)
        return len(self._nodes) - 1


def _packed(flags: Sequence[BoolArray], n_words: int) -> Words:
    """Rows of flags as words, one after the other, the first flag in the lowest bit."""
    padded = np.zeros((len(flags), 64 * n_words), bool)
    for row, own in zip(padded, flags, strict=True):
        row[: len(own)] = own
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64).ravel()

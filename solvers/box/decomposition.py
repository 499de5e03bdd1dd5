"""Decomposition of the space into pure boxes: maximal boxes of cells over which every tree keeps its leaf.

Feature by feature, the starts and ends of the leaves that are left cut the feature into maximal intersection
intervals (Blanchart 2021, algorithm 1), and each interval keeps the leaves that cover it (algorithm 2). Cells are
ranks, so that the ends come sorted (section VII.D). The search tree is walked depth-first, which keeps one path in
memory where the paper's width-first order keeps a level. `ocf.solvers.box.enumeration` finds the same boxes by
increasing cost.

A level of an unordered feature is an interval of its own, joined with the levels that the same leaves admit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem


@dataclass(frozen=True)
class PureBox:
    """A box on which the ensemble's score is constant.

    Attributes
    ----------
    cells : tuple of int64 arrays, one per feature
        Open cells of the box, counted within the feature, in order; a run of the open cells of an ordered feature.
    leaves : (n_trees,) int64
        The leaf of each tree.
    margins : (n_rows,) float64
        By how much the requirements of the target are exceeded (`CellProblem.margins`).
    scores : (n_outputs,) float64
        The ensemble's raw score.
    cost : float
        Of the cheapest point of the box.
    """

    cells: tuple[IntArray, ...]
    leaves: IntArray
    margins: FloatArray
    scores: FloatArray
    cost: float

    @property
    def volume(self) -> int:
        """Number of choices of cells in the box."""
        out = 1
        for cells in self.cells:
            out *= len(cells)
        return out


def decompose(
    cells: CellProblem,
    *,
    radius: float = np.inf,
    target_only: bool = False,
    limit: int | None = None,
) -> Iterator[PureBox]:
    """Yield the pure boxes of a problem's open cells and live leaves.

    Without a radius the boxes partition all choices of open cells, except those in dead leaves. Their number grows
    exponentially with the features: a radius or a limit keeps it in hand.

    Parameters
    ----------
    cells : CellProblem
    radius : float
        Only boxes whose cheapest point costs at most this (box, algorithm 5, line 17; equation 10).
    target_only : bool
        Only boxes that meet the requirements of the target; branches in which the best live leaf of every tree
        together cannot are left early.
    limit : int, optional
        Most boxes to yield.

    Yields
    ------
    PureBox
    """
    if cells.infeasible:
        return
    search = _DepthFirst(cells, radius, target_only)
    leaves = np.flatnonzero(cells.live)
    for count, box in enumerate(search.boxes(0, leaves, 0.0, ())):
        if limit is not None and count >= limit:
            return
        yield box


def intersect(cells: CellProblem, i: int, opened: IntArray, leaves: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Maximal intersection intervals of leaves on one feature, with the leaves of each (algorithm 1).

    Parameters
    ----------
    cells : CellProblem
    i : int
        The feature.
    opened : (n_open,) int64
        Its open cells, counted within it.
    leaves : (n,) int64

    Yields
    ------
    ranks : (n_ranks,) int64
        Positions in `opened`: one interval of them, or levels that the same leaves admit.
    inside : (n_inside,) int64
        The leaves that admit them.
    """
    part = cells.partition
    if len(opened) == 1:  # as of every fixed feature
        cell = opened[0]
        inside = (part.low[leaves, i] <= cell) & (cell <= part.high[leaves, i])
        yield np.arange(1), leaves[inside if part.ordered[i] else part.members_of(i)[leaves, cell]]
    elif part.ordered[i]:
        start = np.searchsorted(opened, part.low[leaves, i])
        stop = np.searchsorted(opened, part.high[leaves, i], side="right")
        ends = np.unique(np.concatenate([[0, len(opened)], start, stop]))
        for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            yield np.arange(a, b), leaves[(start <= a) & (b <= stop)]
    else:
        admits = part.members_of(i)[leaves][:, opened]
        patterns, group = np.unique(admits, axis=1, return_inverse=True)
        for k in range(patterns.shape[1]):
            yield np.flatnonzero(group.ravel() == k), leaves[patterns[:, k]]


#: Leaves that are left, cost so far, and the cells chosen of each feature so far.
_Node = tuple[IntArray, float, tuple[IntArray, ...]]


class _DepthFirst:
    """The depth-first search over features."""

    def __init__(self, cells: CellProblem, radius: float, target_only: bool) -> None:
        self.cells, self.target_only = cells, target_only
        self.n_outputs = cells.problem.ensemble.n_outputs  # the depth of isolation trees is no score of the model
        part = cells.partition
        opened = [np.flatnonzero(cells.open[part.cells_of(i)]) for i in range(part.n_features)]
        # features with one open cell, such as fixed ones, come first: they split nothing and drop many leaves
        self.order = np.argsort([len(ranks) > 1 for ranks in opened], kind="stable")
        self.opened = [opened[i] for i in self.order]
        self.price = [cells.cost[part.cells_of(i)][opened[i]] for i in self.order.tolist()]
        least = np.array([price.min() for price in self.price])
        # what the features from i on cost at least
        self.rest = np.append(np.cumsum(least[::-1])[::-1], 0.0)
        self.most = radius + 1e-12 * abs(radius) if np.isfinite(radius) else np.inf
        self.tree = part.ensemble.leaf_tree
        self.scores = part.ensemble.contributions[:, : self.n_outputs]

    def boxes(self, i: int, leaves: IntArray, cost: float, chosen: tuple[IntArray, ...]) -> Iterator[PureBox]:
        """Boxes below a node of the search tree: the first i features are decided, `leaves` are those that are left."""
        if i == len(self.opened):
            box = self._box(leaves, cost, chosen)
            if box is not None:
                yield box
            return
        for node in self._children(i, leaves, cost, chosen):
            yield from self.boxes(i + 1, *node)

    def _children(self, i: int, leaves: IntArray, cost: float, chosen: tuple[IntArray, ...]) -> Iterator[_Node]:
        """Nodes below one, in which feature i is decided too."""
        for ranks, inside in intersect(self.cells, int(self.order[i]), self.opened[i], leaves):
            own = float(self.price[i][ranks].min())
            if cost + own + self.rest[i + 1] <= self.most and self._complete(inside):
                yield inside, cost + own, (*chosen, self.opened[i][ranks])

    def _complete(self, leaves: IntArray) -> bool:
        """Whether every tree has a leaf left and, where that is asked for, the target is within reach."""
        present, first = np.unique(self.tree[leaves], return_index=True)
        if len(present) < self.cells.partition.ensemble.n_trees:
            return False
        if not self.target_only:
            return True
        requirements = self.cells.requirements
        best = np.maximum.reduceat(requirements.gain[leaves], first).sum(axis=0)
        return bool((best >= requirements.need - 1e-9 * (1.0 + np.abs(requirements.need))).all())

    def _box(self, leaves: IntArray, cost: float, chosen: tuple[IntArray, ...]) -> PureBox | None:
        margins = self.cells.margins(leaves)
        if self.target_only and not (margins >= 0).all():
            return None
        base = self.cells.problem.ensemble.base_score
        chosen = tuple(chosen[k] for k in np.argsort(self.order))
        return PureBox(chosen, leaves, margins, base + self.scores[leaves].sum(axis=0), cost)

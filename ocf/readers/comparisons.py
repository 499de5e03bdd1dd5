"""Trees whose nodes compare a number in one of seven ways, and send NaN where they say.

A comparison ``value <= t``, ``<``, ``>=`` or ``>`` is one split of ours. ``==``, ``!=`` and membership of a set become
two splits for each number, between which only that number lies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.errors import UnsupportedModelError
from ocf.readers.float32 import float32_at_most
from ocf.readers.sklearn_common import Tree

#: Modes of a node.
LEAF = -1
LEQ, LT, GTE, GT, EQ, NEQ, MEMBER = range(7)

#: Most nodes of all trees: each test of equality repeats the nodes behind it.
_MAX_NODES = 2**22


@dataclass(frozen=True)
class ComparedTrees:
    """Trees as their library has them.

    Attributes
    ----------
    roots : list of int
        One node per tree.
    mode, feature, true, false : (n_nodes,) int64
        `mode` is -1 at leaves.
    threshold : (n_nodes,) float64
    tracks_true : (n_nodes,) bool
    weights : mapping of leaf to mapping of output to float
    members : mapping of node to tuple of float
        Numbers of the sets of MEMBER.
    """

    roots: list[int]
    mode: IntArray
    feature: IntArray
    true: IntArray
    false: IntArray
    threshold: FloatArray
    tracks_true: IntArray
    weights: Mapping[int, Mapping[int, float]]
    members: Mapping[int, tuple[float, ...]] = field(default_factory=dict)

    @property
    def outputs(self) -> set[int]:
        """Outputs to which some leaf adds."""
        return {output for own in self.weights.values() for output in own}

    @property
    def always(self) -> set[int]:
        """Outputs to which every row is added something: all leaves of some tree have a weight of theirs."""
        found: set[int] = set()
        for root in self.roots:
            leaves = [v for v in self.below(root) if self.mode[v] == LEAF]
            found |= set.intersection(*(set(self.weights.get(v, {})) for v in leaves))
        return found

    def below(self, root: int) -> list[int]:
        """Nodes of a tree."""
        found, waiting = [], [root]
        while waiting:
            v = waiting.pop()
            found.append(v)
            if self.mode[v] != LEAF:
                waiting += [int(self.false[v]), int(self.true[v])]
        return found

    def trees(self, n_outputs: int, *, narrow: bool) -> list[Tree]:
        """The trees as ocf has them.

        Parameters
        ----------
        n_outputs : int
        narrow : bool
            Whether values are rounded to float32 before they are compared.

        Raises
        ------
        UnsupportedModelError
            Tests of equality repeat too many nodes.
        """
        out, total = [], 0
        for root in self.roots:
            nodes = _TreeNodes(self, narrow)
            nodes.fill(root, _MAX_NODES - total)
            total += len(nodes.left)
            out.append(nodes.tree(n_outputs))
        return out


@dataclass
class _TreeNodes:
    """Nodes of one tree, each before its children.

    A split is a number below which, or at which, a row goes left, and where NaN goes.
    """

    source: ComparedTrees
    narrow: bool
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    leaf: list[int] = field(default_factory=list)

    def fill(self, root: int, most: int) -> None:
        """Take over a tree.

        Parameters
        ----------
        root : int
        most : int
            Number of nodes.
        """
        waiting = [(root, -1, "left")]
        while waiting:
            v, parent, side = waiting.pop()
            if parent >= 0:
                getattr(self, side)[parent] = len(self.left)
            if len(self.left) > most:
                raise UnsupportedModelError(
                    f"the tests of equality of this model stand for more than {_MAX_NODES} splits: encode its category "
                    "columns as numbers of which trees ask less or greater"
                )
            if self.source.mode[v] == LEAF:
                self._add(0, math.nan, False, v)
            else:
                waiting += self._split(v)

    def _add(self, feature: int, threshold: float, missing_left: bool, leaf: int = -1) -> int:
        self.left.append(-1)
        self.right.append(-1)
        self.feature.append(feature)
        self.threshold.append(threshold)
        self.missing_left.append(missing_left)
        self.leaf.append(leaf)
        return len(self.left) - 1

    def _split(self, v: int) -> list[tuple[int, int, str]]:
        """Add the splits of a node; the children that are still to be taken over."""
        own = self.source
        mode, j, at = int(own.mode[v]), int(own.feature[v]), float(own.threshold[v])
        yes, no, nan_yes = int(own.true[v]), int(own.false[v]), bool(own.tracks_true[v])
        if mode in (LEQ, LT):
            place = self._add(j, at if mode == LEQ else _next_below(at), nan_yes)
            return [(no, place, "right"), (yes, place, "left")]
        if mode in (GTE, GT):
            place = self._add(j, at if mode == GT else _next_below(at), not nan_yes)
            return [(yes, place, "right"), (no, place, "left")]
        numbers = sorted(set(own.members[v] if mode == MEMBER else (at,)))
        if mode == NEQ:  # NaN equals nothing
            yes, no, nan_yes = no, yes, False
        # from the smallest number on: below it, at it, or beyond; NaN goes with the first that it may
        todo, last = [], -1
        for number in numbers:
            place = self._add(j, number, nan_yes)
            if last >= 0:
                self.right[last] = place
            inner = self._add(j, _next_below(number), False)
            self.left[place] = inner
            todo += [(yes, inner, "right"), (no, inner, "left")]
            last = place
        return [*todo, (no, last, "right")]

    def tree(self, n_outputs: int) -> Tree:
        """The tree, with the values of its leaves."""
        values = np.zeros((len(self.left), n_outputs))
        for place, v in enumerate(self.leaf):
            for output, weight in self.source.weights.get(v, {}).items() if v >= 0 else ():
                values[place, output] = weight
        threshold = np.array(self.threshold)
        exact = float32_at_most(threshold) if self.narrow else threshold
        return Tree(
            left=np.array(self.left, np.int64),
            right=np.array(self.right, np.int64),
            feature=np.array(self.feature, np.int64),
            threshold=np.where(np.isinf(threshold), threshold, exact),
            values=values,
            missing_left=np.array(self.missing_left, bool),
        )


def _next_below(number: float) -> float:
    return math.nextafter(number, -math.inf)

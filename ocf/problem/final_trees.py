r"""What a target asks of trees on top of others: boxes of the others' scores, split where the trees split.

A stack gives functions of its members' scores to a final model of trees. What a target asks of that model is a sum over
the leaves of its trees; between two bounds on each score only some of these leaves can be reached, so that the best of
them in each tree bounds the sum. A box of scores none of whose points can have the target is *empty*; an answer lies in
a box whose points all have it, or next to one. Boxes are split at the final model's own thresholds: branch and bound
over the scores (Land and Doig 1960), each box a problem of its own whose rows hold the scores within it.

=========  ===========================================================================================
symbol     meaning
=========  ===========================================================================================
``[l, u]`` box of the library's own scores, one interval per score that the final trees are given
edges      last scores of a lower part: where what a tree is given passes one of its thresholds
=========  ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.features.lattice import first_numbers
from ocf.problem.requirements import (
    BOUNDLESS,
    Requirements,
    ScoreBox,
    joined_requirements,
    never,
    score_row,
    scores_at,
)
from ocf.problem.score_boxes import BoxedCurve, score_ends
from ocf.trees.ensemble import Ensemble, FinalTrees
from ocf.trees.totals import Term

#: Boxes into which a target is split before any solver sees it; the others come where a solver asks for them.
_BOXES = 8

#: Edges of a score that are tried for such a split.
_TRIED = 12


def final_alternatives(ensemble: Ensemble, asked: Sequence[Requirements]) -> tuple[Requirements, ...]:
    """What a target asks of an ensemble with final trees: one alternative per box of scores.

    Parameters
    ----------
    ensemble : Ensemble
    asked : sequence of Requirements
        What it asks of the final trees, over their leaves; several are alternatives.
    """
    final = ensemble.decision.final
    assert final is not None
    low, high = score_ends(ensemble)
    edges = score_edges(final, low, high)
    boxes: list[FinalBox] = []
    for wanted in asked:
        whole = FinalBox(ensemble, tuple(low.tolist()), tuple(high.tolist()), final, wanted, edges).shrunk()
        boxes += whole.divided() if whole is not None else ()
    return tuple(box.rows() for box in boxes) or (never(ensemble),)


def score_edges(final: FinalTrees, low: FloatArray, high: FloatArray) -> dict[int, FloatArray]:
    """By score, the last ones of the parts that thresholds of the final trees cut off, in order.

    Parameters
    ----------
    final : FinalTrees
    low, high : (n_outputs,) float64
        Between which the scores lie.
    """
    out: dict[int, list[FloatArray]] = {}
    for j, term in enumerate(final.inputs):
        cuts = np.unique(final.trees.threshold[final.trees.feature == j])
        k = term.output
        found = [_last(term, cuts, (float(low[k]), float(high[k])), side) for side in (0, 1)] if len(cuts) else []
        out.setdefault(k, []).extend(found)
    return {k: np.unique(np.concatenate([np.zeros(0), *out[k]])) for k in sorted(out)}


def _last(term: Term, cuts: FloatArray, ends: tuple[float, float], side: int) -> FloatArray:
    """The last scores for which the lower (0) or upper (1) bound of a function is on the first side of each cut.

    Where there is none, the number before the first.
    """

    def holds(scores: FloatArray) -> BoolArray:
        return np.asarray((term.between(scores, scores, exact=False)[side] <= cuts) == term.rises)

    before, end = np.full(len(cuts), np.nextafter(ends[0], -np.inf)), np.full(len(cuts), ends[1])
    return first_numbers(holds, end, np.where(holds(end), end, before))


@dataclass(frozen=True, eq=False)
class FinalBox(BoxedCurve):
    """The final trees meet what a target asks of them, within a box of scores.

    Attributes
    ----------
    final : FinalTrees
    asked : Requirements
        Over the leaves of the final trees.
    edges : mapping of int to (n,) float64
        See `score_edges`.
    """

    final: FinalTrees
    asked: Requirements
    edges: Mapping[int, FloatArray]

    @property
    def outputs(self) -> range:
        """Columns of all scores."""
        return range(len(self.low))

    @property
    def box(self) -> ScoreBox:
        """Between which numbers the rows hold scores: those that the trees are given."""
        return {k: (self.low[k], self.high[k]) for k in self._used}

    @cached_property
    def _used(self) -> tuple[int, ...]:
        """Columns of the scores that the trees are given."""
        return tuple(self.edges)

    # -- what a box can give -------------------------------------------------------------------------------

    def _reached(self, low: FloatArray, high: FloatArray) -> BoolArray:
        """Leaves of the final trees that scores of a box may reach, (n_leaves,)."""
        least, most = self.final.between(low[None], high[None])
        first, last = self.final.leaf_ranges
        return np.asarray(((most > first) & (least <= last)).all(axis=1))

    def is_empty(self, low: FloatArray, high: FloatArray) -> bool:
        """Whether no score of a box can give what is asked.

        Parameters
        ----------
        low, high : (n_outputs,) float64
        """
        reached = self._reached(low, high)
        starts = self.final.trees.leaf_offsets[:-1]
        best = np.maximum.reduceat(np.where(reached[:, None], self.asked.gain, -np.inf), starts).sum(axis=0)
        if (best < self.asked.need).any():
            return True
        curve = self.asked.curve
        return curve is not None and reached.sum() == len(starts) and bool(curve.cuts(np.flatnonzero(reached)))

    def is_full(self, low: FloatArray, high: FloatArray) -> bool:
        """Whether all scores of a box give what is asked, beyond rounding.

        Parameters
        ----------
        low, high : (n_outputs,) float64
        """
        reached = self._reached(low, high)
        starts = self.final.trees.leaf_offsets[:-1]
        worst = np.minimum.reduceat(np.where(reached[:, None], self.asked.gain, np.inf), starts).sum(axis=0)
        return bool((worst >= self.asked.need + self.asked.error_bound).all())

    @cached_property
    def inner_edges(self) -> dict[int, FloatArray]:
        """Edges of each score within the box."""
        return {k: own[(own >= self.low[k]) & (own < self.high[k])] for k, own in self.edges.items()}

    # -- smaller boxes -------------------------------------------------------------------------------------

    def shrunk(self) -> FinalBox | None:
        """The same in a smaller box, without slabs at its sides that are empty. None: all of it is."""
        low, high = np.array(self.low), np.array(self.high)
        if self.is_empty(low, high):
            return None
        for k in self._used:
            edges = self.inner_edges[k]

            def below(n: int, k: int = k, edges: FloatArray = edges) -> bool:
                top = high.copy()
                top[k] = edges[n]
                return self.is_empty(low, top)

            def above(n: int, k: int = k, edges: FloatArray = edges) -> bool:
                bottom = low.copy()
                bottom[k] = np.nextafter(edges[len(edges) - 1 - n], np.inf)
                return self.is_empty(bottom, high)

            first, last = _how_many(below, len(edges)), _how_many(above, len(edges))
            if first:
                low[k] = np.nextafter(edges[first - 1], np.inf)
            if last:
                high[k] = edges[len(edges) - last]
        return self.at(low, high)

    def halves(self, k: int, edge: float) -> Iterator[FinalBox]:
        """What is left of the two parts of the box at an edge.

        Parameters
        ----------
        k : int
            Column of the scores.
        edge : float
        """
        low, high = np.array(self.low), np.array(self.high)
        for first, last in ((self.low[k], edge), (float(np.nextafter(edge, np.inf)), self.high[k])):
            low[k], high[k] = first, last
            part = self.at(low, high).shrunk()
            if part is not None:
                yield part

    def remaining(self, low: FloatArray, high: FloatArray) -> int:
        """How many leaves of the final trees scores of a box may reach; 0 where it is empty.

        Parameters
        ----------
        low, high : (n_outputs,) float64
        """
        return 0 if self.is_empty(low, high) else int(self._reached(low, high).sum())

    def best_split(self) -> list[FinalBox]:
        """The parts of the box at the edge that leaves least in the larger one; itself where there is no edge."""
        best: tuple[int, int, float] | None = None
        for k in self._used:
            edges = self.inner_edges[k]
            for n in np.unique(np.linspace(0, len(edges) - 1, min(_TRIED, len(edges))).astype(int)).tolist():
                low, high = np.array(self.low), np.array(self.high)
                high[k] = edges[n]
                lower = self.remaining(low, high)
                low[k], high[k] = np.nextafter(edges[n], np.inf), self.high[k]
                found = (max(lower, self.remaining(low, high)), k, float(edges[n]))
                best = found if best is None else min(best, found)
        return [self] if best is None else list(self.halves(*best[1:]))

    def divided(self) -> list[FinalBox]:
        """A few boxes, of which some one holds each answer."""
        waiting: list[FinalBox] = [self]
        done: list[FinalBox] = []
        while waiting and len(waiting) + len(done) < _BOXES:
            waiting.sort(key=lambda part: part.remaining(np.array(part.low), np.array(part.high)))
            here = waiting.pop()
            ends = np.array(here.low), np.array(here.high)
            parts = [here] if here.is_full(*ends) else here.best_split()
            if len(parts) == 1 and parts[0] is here:
                done.append(here)
            else:
                waiting += parts
        return done + waiting

    def _inside(self) -> tuple[FloatArray, FloatArray] | None:
        """A part of the box all of whose scores give what is asked, if a short descent finds one."""
        here = self
        for _ in range(_BOXES * len(self._used)):
            ends = np.array(here.low), np.array(here.high)
            if here.is_full(*ends):
                return ends
            k = max(self._used, key=lambda k: len(here.inner_edges[k]))
            edges = here.inner_edges[k]
            parts = list(here.halves(k, float(edges[len(edges) // 2]))) if len(edges) else []
            if not parts:
                return None
            here = max(parts, key=lambda part: part.average())
        return None

    def average(self) -> float:
        """How well the leaves that can be reached do on average, in the row that does worst."""
        reached = self._reached(np.array(self.low), np.array(self.high))
        trees = self.final.trees
        count = np.bincount(trees.leaf_tree[reached], minlength=trees.n_trees)
        shares = reached / np.maximum(count[trees.leaf_tree], 1)
        return float((shares @ self.asked.gain - self.asked.need).min(initial=np.inf))

    # -- rows ----------------------------------------------------------------------------------------------

    def rows(self) -> Requirements:
        """Each score lies within the box; what meets them by their error bounds lies in a part that has the target."""
        inside, known = self._inside(), score_ends(self.ensemble)
        unsure = np.zeros((self.ensemble.n_leaves, 1))
        parts = [Requirements(unsure, np.array([-1.0]), np.array([0.0 if inside else BOUNDLESS]))]
        for k in self._used:
            for sign, end, widest, sure in (
                (1.0, self.low[k], known[0][k], inside and inside[0][k]),
                (-1.0, self.high[k], known[1][k], inside and inside[1][k]),
            ):
                beyond = end if sure is None else float(sure)
                if end != widest or beyond != widest:
                    unit = np.zeros(self.ensemble.n_outputs)
                    unit[k] = sign
                    parts.append(score_row(self.ensemble, unit, sign * end, sign * beyond))
        return joined_requirements(parts, self)

    # -- branching -----------------------------------------------------------------------------------------

    def cuts(self, leaves: IntArray) -> Sequence[Requirements]:
        """The parts of the box around an empty one that holds a refused point.

        None where the trees meet what is asked at the point, as far as rounding tells.
        """
        low, high = np.array(self.low), np.array(self.high)
        point = np.clip(scores_at(self.ensemble, leaves)[: len(low)], low, high)
        if not self.is_empty(point, point):
            return []
        first, last = self._grown(point)
        parts = []
        for k in self._used:
            for bottom, top in ((low[k], np.nextafter(first[k], -np.inf)), (np.nextafter(last[k], np.inf), high[k])):
                if bottom <= top:
                    ends = low.copy(), high.copy()
                    ends[0][k], ends[1][k] = bottom, top
                    part = self.at(*ends).shrunk()
                    parts += [part.rows()] if part is not None else []
            low[k], high[k] = first[k], last[k]
        return parts or [replace(never(self.ensemble), curve=self)]

    def _grown(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """An empty box around scores that cannot give what is asked, as large as its sides can be moved in turn."""
        first, last = point.copy(), point.copy()
        for k in self._used:
            up = np.append(self.inner_edges[k][self.inner_edges[k] >= point[k]], self.high[k])
            down = np.append(self.low[k], np.nextafter(self.inner_edges[k][self.inner_edges[k] < point[k]], np.inf))[
                ::-1
            ]

            def higher(n: int, k: int = k, up: FloatArray = up) -> bool:
                top = last.copy()
                top[k] = up[n]
                return self.is_empty(first, top)

            def lower(n: int, k: int = k, down: FloatArray = down) -> bool:
                bottom = first.copy()
                bottom[k] = down[n]
                return self.is_empty(bottom, last)

            steps = _how_many(higher, len(up))
            last[k] = up[steps - 1] if steps else last[k]
            steps = _how_many(lower, len(down))
            first[k] = down[steps - 1] if steps else first[k]
        return first, last


def _how_many(holds: Callable[[int], bool], n: int) -> int:
    """For how many of the first of n numbers a condition holds that holds for none after one for which it fails."""
    low, high = 0, n
    while low < high:
        half = (low + high + 1) // 2
        low, high = (half, high) if holds(half - 1) else (low, half - 1)
    return low

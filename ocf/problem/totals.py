r"""What a target asks of a `Total`: rows over leaves where it follows one score, and a curve where it adds up several.

A total of one score reaches a value where the score passes a point that bisection over floats finds, in the library's
own arithmetic or within its rounding. A sum of functions of several scores, ``sum_k g_k(s_k) >= need`` with monotone
``g_k``, is held from outside by its concave hull over the box of scores that can be reached, and by branching on a
score where the hull is too wide: spatial branch and bound (Falk and Soland 1969, for sums of functions of one variable
each).

=========  ===========================================================================================
symbol     meaning
=========  ===========================================================================================
``g_k``    k-th term of the total, signed so that more is better
``[l, u]`` box of the library's scores, one interval per term
hull       piecewise linear and concave, at least ``g_k`` on the interval, rounding included
=========  ===========================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.errors import UnsupportedModelError
from ocf.features.lattice import first_number
from ocf.problem.requirements import (
    TANGENT,
    Requirements,
    joined_requirements,
    mean_row,
    never,
    reach,
    score_row,
    scores_at,
)
from ocf.problem.score_boxes import BranchingCurve, score_ends
from ocf.trees.ensemble import Ensemble
from ocf.trees.totals import FLOAT64, Term, Total

#: Points of an interval at which its hull is built, besides those close to its ends and the edges of a map.
_GRID = 65

#: Gap of a hull, relative to the sizes of the terms, that is not worth a branch.
_NARROW = 1e-12


def total_rows(ensemble: Ensemble, total: Total, value: float, *, strict: bool) -> Requirements:
    """``total >= value``, or ``>`` where it is strict, as the library compares.

    Parameters
    ----------
    ensemble : Ensemble
    total : Total
        Each of its terms sees another score, or all are multiples of scores.
    value : float
    strict : bool
    """
    terms = tuple(term for term in total.terms if term.weight)
    total = replace(total, terms=terms)
    if not terms:
        holds = total.base / total.divisor > value or (not strict and total.base / total.divisor == value)
        return never(ensemble) if not holds else score_row(ensemble, np.zeros(ensemble.n_outputs), -math.inf, 0.0)
    if total.linear:
        return _linear_row(ensemble, total, value, strict)
    if len({term.output for term in terms}) < len(terms):
        raise UnsupportedModelError("a total of which two terms see one score is no sum of functions of one score each")
    box = _box(ensemble, total)
    if len(terms) == 1:
        return _single_row(ensemble, total, value, strict, box)
    return TotalThreshold(ensemble, *box, total, value, strict).rows(first=True)


def _box(ensemble: Ensemble, total: Total) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Scores that the library can give the terms of a total, whatever the leaves."""
    low, high = score_ends(ensemble)
    outputs = [term.output for term in total.terms]
    return tuple(low[outputs].tolist()), tuple(high[outputs].tolist())


def _coefficients(ensemble: Ensemble, terms: Sequence[Term], weights: Sequence[float]) -> FloatArray:
    out = np.zeros(ensemble.n_outputs)
    for term, weight in zip(terms, weights, strict=True):
        out[term.output] += weight
    return out


def _linear_row(ensemble: Ensemble, total: Total, value: float, strict: bool) -> Requirements:
    coefficients = _coefficients(ensemble, total.terms, [term.weight for term in total.terms])
    alone = len(total.terms) == 1 and abs(total.terms[0].weight) == 1 and (total.base, total.divisor) == (0.0, 1.0)
    if alone and np.all(ensemble.tree_weights == 1 / ensemble.n_trees) and not np.any(ensemble.base_score):
        return mean_row(ensemble, coefficients, math.nextafter(value, math.inf) if strict else value)
    size = float(np.abs(coefficients).max()) * (reach(ensemble) + float(np.abs(ensemble.base_score).max()))
    error = total.rounding * (size * len(total.terms) + abs(total.base) + abs(value) * total.divisor)
    need = value * total.divisor - total.base
    return score_row(ensemble, coefficients, need - error, need + error)


# -- one score ---------------------------------------------------------------------------------------------------


def _single_row(
    ensemble: Ensemble, total: Total, value: float, strict: bool, box: tuple[tuple[float, ...], tuple[float, ...]]
) -> Requirements:
    """A total of one term, as a bound on its score."""
    (term,) = total.terms
    sign = 1.0 if term.rises else -1.0
    ends = (box[0][0], box[1][0]) if term.rises else (box[1][0], box[0][0])
    table = term.maps[0]
    if table.kind in ("table", "step") and all(m.kind == "affine" and m.unit == FLOAT64 for m in term.maps[1:]):
        low, high = _by_pieces(total, value, strict, ends) if table.unit == FLOAT64 else (None, None)
    else:
        low = high = None
    if low is None or high is None:
        low, high = (_passing(total, value, strict, ends, side) for side in (1, 0))
    coefficients = _coefficients(ensemble, (term,), [sign])
    if math.isinf(low):
        return never(ensemble)
    return score_row(ensemble, coefficients, sign * low, sign * high if math.isfinite(high) else math.inf)


def _passing(total: Total, value: float, strict: bool, ends: tuple[float, float], side: int) -> float:
    """First score, from the worse end on, whose upper (1) or lower (0) bound passes; infinite where none does."""

    def holds(score: float) -> bool:
        return _passes(float(_bounds(total, (score,), (score,), exact=False)[side]), value, strict)

    if holds(ends[0]):
        return ends[0]
    return first_number(holds, *ends) if holds(ends[1]) else math.inf


def _by_pieces(total: Total, value: float, strict: bool, ends: tuple[float, float]) -> tuple[float, float]:
    """First score that passes and first after which all do, in the library's own arithmetic, monotone in each piece."""
    (term,) = total.terms

    def holds(score: float) -> bool:
        shown = (term(np.array([score])) + total.base) / total.divisor
        return _passes(float(shown[0]), value, strict)

    towards = math.inf if ends[0] < ends[1] else -math.inf
    inner = [x for x in term.maps[0].x if min(ends) < x < max(ends)]
    edges = sorted({e for x in inner for e in (math.nextafter(x, -math.inf), x, math.nextafter(x, math.inf))} | {*ends})
    edges = edges if towards > 0 else edges[::-1]
    # from each edge to the number before the next one the arithmetic is monotone
    pieces = [(first, math.nextafter(after, -towards)) for first, after in pairwise(edges)]
    pieces.append((edges[-1], edges[-1]))
    passing = [(first, last) for first, last in pieces if holds(last)]
    failing = [(first, last) for first, last in pieces if not holds(first)]
    if not passing:
        return math.inf, math.inf
    first, last = passing[0]
    low = first if holds(first) else first_number(holds, first, last)
    if not failing:
        return low, low
    first, last = failing[-1]
    high = first_number(holds, first, last) if holds(last) else math.nextafter(last, towards)
    return low, high


def _passes(shown: float, value: float, strict: bool) -> bool:
    return shown > value or (not strict and shown == value)


def _bounds(
    total: Total, low: Sequence[float], high: Sequence[float], exact: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Bounds on a total whose terms see scores of intervals, each in the order of the terms."""
    width = 1 + max(term.output for term in total.terms)
    rows = np.zeros((2, 1, width))
    for term, *ends in zip(total.terms, low, high, strict=True):
        rows[:, 0, term.output] = ends
    least, most = total.between(rows[0], rows[1], exact)
    return least[0], most[0]


# -- several scores ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TotalThreshold(BranchingCurve):
    """A total of several scores reaches a value, within a box of the scores of its terms.

    Attributes
    ----------
    total : Total
        Each term sees another score.
    value : float
    strict : bool
    """

    total: Total
    value: float
    strict: bool

    @property
    def outputs(self) -> list[int]:
        """Columns of the scores that the terms see."""
        return [term.output for term in self.total.terms]

    # -- rows ----------------------------------------------------------------------------------------------

    def rows(self, *refused: FloatArray, first: bool = False) -> Requirements:
        """Bounds on each score, and the tangents of the hull at some scores, or where it just passes.

        Parameters
        ----------
        refused : (n_terms,) float64
            Scores at which tangents are wanted.
        first : bool
            Whether the rows tell what has the target beyond doubt; those of a part stand beside such rows.
        """
        box = self.shrunk()
        if box is None:
            return replace(never(self.ensemble), curve=self)
        beyond = box.sure_corner() if first else box.worse
        parts = [box.side(k, beyond[k]) for k in range(len(box.total.terms))]
        known = _box(self.ensemble, self.total)
        for k, term in enumerate(box.total.terms):
            end, widest = (box.high[k], known[1][k]) if term.rises else (box.low[k], known[0][k])
            if end != widest:
                sign = -1.0 if term.rises else 1.0
                parts.append(score_row(self.ensemble, self._unit(k, sign), sign * end, sign * end))
        points = [np.clip(point, box.low, box.high) for point in refused] or [box.just_passing()]
        # searches prune most by the first row, which tells more than an end of an interval does
        return joined_requirements([*(box.tangent(point) for point in points), *parts], box)

    def _unit(self, k: int, sign: float) -> FloatArray:
        return _coefficients(self.ensemble, (self.total.terms[k],), [sign])

    def side(self, k: int, beyond: float) -> Requirements:
        """The score of a term is at least as good as the worse end of its interval; sure from `beyond` on.

        Parameters
        ----------
        k : int
            Number of the term.
        beyond : float
            Infinite where nothing is sure.
        """
        rises = self.total.terms[k].rises
        sign, end = (1.0, self.low[k]) if rises else (-1.0, self.high[k])
        return score_row(self.ensemble, self._unit(k, sign), sign * end, sign * beyond)

    @cached_property
    def worse(self) -> FloatArray:
        """The worse end of each interval, (n_terms,)."""
        return np.where([t.rises for t in self.total.terms], self.low, self.high)

    @cached_property
    def _better(self) -> FloatArray:
        return np.where([t.rises for t in self.total.terms], self.high, self.low)

    @property
    def _intervals(self) -> list[tuple[Term, float, float]]:
        return list(zip(self.total.terms, self.low, self.high, strict=True))

    def _possible(self) -> bool:
        return _passes(float(_bounds(self.total, self.low, self.high)[1]), self.value, self.strict)

    def shrunk(self) -> TotalThreshold | None:
        """The same in the smallest box: each score is good enough beside the best of all others. None: no score is."""
        if not self._possible():
            return None
        worse, better = self.worse.copy(), self._better
        ends = [t.between(np.array([a, b]), np.array([a, b]), False) for t, a, b in self._intervals]
        tops = np.array([float(most.max()) for _, most in ends])
        size = (
            sum(float(np.abs(end).max()) for end in ends) + abs(self.total.base) + abs(self.value) * self.total.divisor
        )
        need = self.value * self.total.divisor - self.total.base - self.total.rounding * size
        for k, term in enumerate(self.total.terms):
            least = need - float(np.delete(tops, k).sum())

            def holds(score: float, term: Term = term, least: float = least) -> bool:
                at = np.array([score])
                return float(term.between(at, at, False)[1][0]) >= least

            if not holds(float(worse[k])):
                if not holds(float(better[k])):
                    return None
                worse[k] = first_number(holds, float(worse[k]), float(better[k]))
        rises = [term.rises for term in self.total.terms]
        low, high = np.where(rises, worse, better), np.where(rises, better, worse)
        return self.at(low, high)

    def sure_corner(self) -> FloatArray:
        """Scores from which on the total certainly passes; infinite where none are."""

        def holds(share: float) -> bool:
            at = (self.worse + share * (self._better - self.worse)).tolist()
            return _passes(float(_bounds(self.total, at, at, exact=False)[0]), self.value, self.strict)

        if not holds(1.0):
            return np.where([t.rises for t in self.total.terms], math.inf, -math.inf)
        share = 0.0 if holds(0.0) else first_number(holds, 0.0, 1.0)
        corner: FloatArray = self.worse + share * (self._better - self.worse)
        return corner

    # -- the hull ------------------------------------------------------------------------------------------

    @cached_property
    def _hulls(self) -> list[tuple[FloatArray, FloatArray]]:
        return [_hull(term, low, high) for term, low, high in self._intervals]

    def _on_hull(self, point: FloatArray) -> FloatArray:
        """Value of each term's hull at a point, (n_terms,)."""
        return np.array([np.interp(s, *hull) for s, hull in zip(point, self._hulls, strict=True)])

    def points(self) -> list[tuple[FloatArray, FloatArray]] | None:
        """Scores of the box, rising, and the most that each term can be there, where all are linear between them."""
        if not all(_is_piecewise(term) for term in self.total.terms):
            return None
        return [_top_points(*interval) for interval in self._intervals]

    @cached_property
    def need(self) -> float:
        """What the sum of the hulls reaches wherever the total passes."""
        size = sum(float(np.abs(y).max()) for _, y in self._hulls) + abs(self.total.base)
        error = self.total.rounding * (size + abs(self.value) * self.total.divisor)
        return self.value * self.total.divisor - self.total.base - error

    def just_passing(self) -> FloatArray:
        """Scores between the worst and the best corner at which the hull just passes."""

        def holds(share: float) -> bool:
            return float(self._on_hull(self.worse + share * (self._better - self.worse)).sum()) >= self.need

        share = 0.0 if holds(0.0) else first_number(holds, 0.0, 1.0) if holds(1.0) else 1.0
        point: FloatArray = self.worse + share * (self._better - self.worse)
        return point

    def tangent(self, point: FloatArray) -> Requirements:
        """A tangent of the sum of the hulls, as a requirement of one row."""
        slopes, constant, size = [], 0.0, 1.0
        for s, (x, y) in zip(point.tolist(), self._hulls, strict=True):
            slope, height = _line_over(x, y, s)
            slopes.append(slope)
            constant += height
            size += abs(height) + abs(slope) * float(np.abs(x).max())
        coefficients = _coefficients(self.ensemble, self.total.terms, slopes)
        need = self.need - constant - TANGENT * size
        return score_row(self.ensemble, coefficients, need, need)

    # -- branching -----------------------------------------------------------------------------------------

    def cuts(self, leaves: IntArray) -> Sequence[Requirements]:
        """Tangents at a refused point, in the parts of the box between which the hull is split.

        None where the total passes at the point, as far as rounding tells.
        """
        point = scores_at(self.ensemble, leaves)[self.outputs]
        if _passes(float(_bounds(self.total, point.tolist(), point.tolist())[1]), self.value, self.strict):
            return []
        return self.branches(leaves, point)

    def split(self, point: FloatArray) -> tuple[TotalThreshold, TotalThreshold] | None:
        """Two boxes, split at the score whose hull lies farthest above its term; None where all are close.

        Parameters
        ----------
        point : (n_terms,) float64
            Scores within the box.
        """
        own = [t.between(point[[k]], point[[k]])[1][0] for k, t in enumerate(self.total.terms)]
        gaps = self._on_hull(point) - np.array(own)
        size = max(float(np.abs(y).max()) for _, y in self._hulls)
        for k in np.argsort(-gaps, kind="stable").tolist():
            at = self._splitting(k, float(point[k]))
            if gaps[k] > _NARROW * size and at is not None:
                return self.halves(k, at)
        return None

    def _splitting(self, k: int, score: float) -> float | None:
        """Last score of the lower part: below a jump, beside what a table shows alike, or the point's own.

        None where one part would be all.
        """
        step = self.total.terms[k].maps[0] if self.total.terms[k].maps else None
        if step is not None and step.kind == "step":
            jump = step.x[0] if step.y[0] == 0 else math.nextafter(step.x[0], -math.inf)
            score = jump if self.low[k] <= jump < self.high[k] else score
        elif step is not None and step.kind == "table":
            alike = np.asarray(step.x)[np.asarray(step.y) == step(np.array([score]))]
            if len(alike) and alike[0] <= score <= alike[-1]:
                end = float(alike[-1]) if self.total.terms[k].rises else math.nextafter(float(alike[0]), -math.inf)
                score = end if self.low[k] <= end < self.high[k] else score
        return score if self.low[k] <= score < self.high[k] else None


def _line_over(x: FloatArray, y: FloatArray, at: float) -> tuple[float, float]:
    """Slope and height at 0 of a line above all vertices, as low at a point as its own rounding allows.

    Next to a jump a segment is a few floats wide and so steep that rounding leaves nothing of it; a flatter one serves.
    """
    with np.errstate(all="ignore"):
        slopes = np.append(np.diff(y) / np.diff(x), 0.0)
        heights = (y - slopes[:, None] * x).max(axis=1)
        rounding = TANGENT * (np.abs(heights) + np.abs(slopes) * float(np.abs(x).max()))
        tops = heights + slopes * at + rounding
    best = int(np.argmin(np.where(np.isfinite(tops), tops, np.inf)))
    return float(slopes[best]), float(heights[best])


def _hull(term: Term, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Vertices of a concave function that is at least a term on an interval.

    A table is linear between its points. Any other monotone function is at most the larger of its ends between two
    points; the hull is that of these stairs.
    """
    if low >= high:
        top = term.between(np.array([low]), np.array([max(low, high)]))[1]
        return np.array([low]), top
    if not term.maps:
        x = np.array([low, high])
        return x, term.between(x, x)[1]
    if _is_piecewise(term):
        return _upper_hull(*_top_points(term, low, high))
    near = (high - low) * 2.0 ** -np.arange(2, 50)
    edges = [e for m in term.maps[:1] for x in m.edges for e in (math.nextafter(x, -math.inf), x)]
    beside = [low, math.nextafter(low, math.inf), math.nextafter(high, -math.inf), high]
    x = np.unique(np.concatenate([np.linspace(low, high, _GRID), low + near, high - near, edges, beside]))
    x = x[(low <= x) & (x <= high)]
    tops = term.between(x[:-1], x[1:])[1]
    corners = np.full(len(x), -np.inf)
    np.maximum.at(corners, np.arange(len(tops)), tops)
    np.maximum.at(corners, np.arange(1, len(tops) + 1), tops)
    return _upper_hull(x, corners)


def _is_piecewise(term: Term) -> bool:
    """Whether a term is a table, linear between its points."""
    return bool(term.maps) and term.maps[0].kind == "table" and all(m.kind == "affine" for m in term.maps[1:])


def _top_points(term: Term, low: float, high: float) -> tuple[FloatArray, FloatArray]:
    """Ends of an interval and points of a table between them, and the most that its term can be at each."""
    bends = np.asarray(term.maps[0].x)
    x = np.unique(np.concatenate([[low], bends[(low < bends) & (bends < high)], [max(low, high)]]))
    return x, term.between(x, x, exact=False)[1]


def _upper_hull(x: FloatArray, corners: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Vertices of the least concave function above some points, given from left to right."""
    kept: list[int] = []
    for j in range(len(x)):
        while len(kept) > 1 and _above(x, corners, kept[-2], kept[-1], j):
            kept.pop()
        kept.append(j)
    return x[kept], corners[kept]


def _above(x: FloatArray, y: FloatArray, first: int, middle: int, last: int) -> bool:
    """Whether the chord from the first to the last vertex lies on or above the middle one."""
    rise = (y[middle] - y[first]) * (x[last] - x[first])
    return bool(rise <= (y[last] - y[first]) * (x[middle] - x[first]))

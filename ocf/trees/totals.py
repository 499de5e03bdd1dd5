"""Totals: what a model that stands on others makes of their scores, as a sum of functions of one score each.

A calibrated classifier shows the mean of what its calibrators make of the scores of its folds; a soft vote the
weighted mean of probabilities; a hard vote counts the scores beyond their thresholds. Each is
``base + sum of weight * f(score)`` over a divisor, where f is a chain of monotone maps: sigmoids, interpolated tables,
steps.

Such a chain is evaluated in intervals. They enclose what the library shows for scores within the interval, rounding
included, so that nothing is ruled out that the library may show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import expit

from ocf.arrays import BoolArray, FloatArray
from ocf.errors import ModelError
from ocf.support.schemas import MapSchema, TermSchema, TotalSchema

#: Relative error of a library's own exp or sigmoid in float64 and in float32, with room to spare.
FLOAT64, FLOAT32 = 2.0**-48, 2.0**-20

#: Values up to here may be shown as 0 because they underflow.
_TINY = {FLOAT64: 2.0**-1060, FLOAT32: 2.0**-140}


@dataclass(frozen=True)
class Map:
    """A monotone function of one number.

    Attributes
    ----------
    kind : {"affine", "logistic", "exp", "log", "odds", "table", "step"}
        ``affine``: ``x[0] * v + x[1]``. ``log``: ``log(v + x[0])``. ``odds``: ``log(v + x[0]) - log(1 - v + x[0])``.
        ``table``: linear between the points (x, y), constant beyond them. ``step``: 1 above ``x[0]``, 0 below, and
        ``y[0]`` at ``x[0]``; a second ``y`` is a slope: ``y[1] * v`` more.
    x, y : tuple of float
    unit : float
        Bound on the relative error of the library's own arithmetic: `FLOAT64` or `FLOAT32`.
    """

    kind: Literal["affine", "logistic", "exp", "log", "odds", "table", "step"]
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    unit: float = FLOAT64

    def __call__(self, v: FloatArray) -> FloatArray:
        """Value at each of some numbers."""
        if self.kind == "affine":
            return np.asarray(self.x[0] * v + self.x[1])
        if self.kind == "logistic":
            return np.asarray(expit(v))
        if self.kind == "exp":
            with np.errstate(over="ignore"):
                return np.asarray(np.exp(v))
        if self.kind in ("log", "odds"):  # of probabilities, which rounding may take beyond their ends
            high = np.log(np.maximum(v + self.x[0], self.x[0]))
            return np.asarray(high if self.kind == "log" else high - np.log(np.maximum(1 - v + self.x[0], self.x[0])))
        if self.kind == "table":
            return np.asarray(np.interp(v, self.x, self.y))
        jump = np.where(v > self.x[0], 1.0, np.where(v == self.x[0], self.y[0], 0.0))
        return jump + self.y[1] * v if len(self.y) > 1 else jump

    def between(self, low: FloatArray, high: FloatArray, exact: bool = True) -> tuple[FloatArray, FloatArray]:
        """Bounds on what the library may show for numbers in intervals.

        Parameters
        ----------
        low, high : (...,) float64
        exact : bool
            Whether flat parts of a table, where the library makes no error, are taken as they are. Without, the bounds
            are monotone functions of the ends.
        """
        ends = self(low), self(high)
        least, most = np.minimum(*ends), np.maximum(*ends)
        if self.kind == "step" and len(self.y) == 1:
            return least, most
        error = self.unit * np.maximum(np.abs(least), np.abs(most))
        if self.kind == "affine":  # a product and a sum are monotone in floating point, and the same for all
            size = abs(self.x[0]) * np.maximum(np.abs(low), np.abs(high)) + abs(self.x[1])
            error = np.zeros(np.shape(least)) if self.unit == FLOAT64 else error + self.unit * size
        elif self.kind == "table":
            error = np.full(np.shape(least), self.unit * float(np.abs(self.y).max()))
            if exact and self.unit == FLOAT64:
                error = np.where(self._flat(low, high), 0.0, error)
        elif self.kind in ("log", "odds"):  # adding to the number rounds by a share of it
            error = error + 4 * self.unit
        else:
            error = error + _TINY[self.unit]
        return least - error, most + error

    def _flat(self, low: FloatArray, high: FloatArray) -> BoolArray:
        """Whether the table is constant between its points around an interval."""
        last = len(self.x) - 1
        first = np.clip(np.searchsorted(self.x, low, side="right") - 1, 0, last)
        after = np.clip(np.searchsorted(self.x, high, side="left"), 0, last)
        y = np.asarray(self.y)
        return np.asarray(y[first] == y[after])

    @property
    def rises(self) -> bool:
        """Whether larger numbers give larger values, or the same."""
        if self.kind == "affine":
            return self.x[0] >= 0
        return self.kind != "table" or self.y[-1] >= self.y[0]

    @property
    def edges(self) -> tuple[float, ...]:
        """Where the function bends or jumps."""
        return self.x if self.kind in ("table", "step") else ()


@dataclass(frozen=True)
class Term:
    """``weight * f(score)``, with a chain of maps for f.

    Attributes
    ----------
    output : int
        Column of the scores.
    maps : tuple of Map
        The first sees the score.
    weight : float
    """

    output: int
    maps: tuple[Map, ...] = ()
    weight: float = 1.0

    def __call__(self, score: FloatArray) -> FloatArray:
        """Value at each of some scores."""
        for step in self.maps:
            score = step(score)
        return self.weight * score

    def between(self, low: FloatArray, high: FloatArray, exact: bool = True) -> tuple[FloatArray, FloatArray]:
        """Bounds on what the library may make of scores in intervals.

        Parameters
        ----------
        low, high : (...,) float64
        exact : bool
            As in `Map.between`.
        """
        for step in self.maps:
            low, high = step.between(low, high, exact)
        ends = self.weight * low, self.weight * high
        return np.minimum(*ends), np.maximum(*ends)

    @property
    def rises(self) -> bool:
        """Whether larger scores give larger values, or the same."""
        falls = sum(not step.rises for step in self.maps) + (self.weight < 0)
        return falls % 2 == 0

    def times(self, factor: float) -> Term:
        """The term with another weight."""
        return Term(self.output, self.maps, self.weight * factor)


@dataclass(frozen=True)
class Total:
    """``(base + sum of terms) / divisor``, added up in the order of the terms, as the library adds.

    Attributes
    ----------
    terms : tuple of Term
    base : float
    divisor : float
        Positive.
    replayed : bool
        Whether adding up terms that are known exactly gives the library's own number, to the last bit.
    """

    terms: tuple[Term, ...]
    base: float = 0.0
    divisor: float = 1.0
    replayed: bool = True

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Value of rows of scores, (n, n_outputs) -> (n,)."""
        out = np.full(len(scores), self.base)
        for term in self.terms:
            out = out + term(scores[:, term.output])
        return out / self.divisor

    def between(self, low: FloatArray, high: FloatArray, exact: bool = True) -> tuple[FloatArray, FloatArray]:
        """Bounds on what the library may show for rows of scores in intervals, each (n,).

        Parameters
        ----------
        low, high : (n, n_outputs) float64
        exact : bool
            As in `Map.between`.
        """
        least, most = np.full(len(low), self.base), np.full(len(low), self.base)
        size = np.abs(least)
        for term in self.terms:
            ends = term.between(low[:, term.output], high[:, term.output], exact)
            least, most, size = least + ends[0], most + ends[1], size + np.maximum(*np.abs(ends))
        error = np.where((least == most) & (self.replayed and exact), 0.0, self.rounding * size)
        return (least - error) / self.divisor, (most + error) / self.divisor

    @property
    def rounding(self) -> float:
        """Relative rounding of the sum, against the sum of the sizes of its terms."""
        units = [step.unit for term in self.terms for step in term.maps]
        return (len(self.terms) + 3) * (2.0**-22 if FLOAT32 in units else 2.0**-52)

    @property
    def linear(self) -> bool:
        """Whether every term is a multiple of a score."""
        return not any(term.maps for term in self.terms)

    def times(self, factor: float) -> Total:
        """The total times 1 or -1."""
        return Total(tuple(t.times(factor) for t in self.terms), factor * self.base, self.divisor, self.replayed)

    def minus(self, other: Total) -> Total:
        """The difference of two totals of one divisor; terms of one curve become one."""
        assert self.divisor == other.divisor
        weights: dict[tuple[int, tuple[Map, ...]], float] = {}
        for term in (*self.terms, *(t.times(-1.0) for t in other.terms)):
            key = (term.output, term.maps)
            weights[key] = weights.get(key, 0.0) + term.weight
        terms = tuple(Term(*key, weight) for key, weight in weights.items())
        return Total(terms, self.base - other.base, self.divisor, replayed=False)


def share(totals: Sequence[Total], k: int, least: float) -> Total:
    """A total that is at least 0 exactly where total k is at least so much of the sum of all, none of them negative.

    Parameters
    ----------
    totals : sequence of Total
        Of one divisor, without bases.
    k : int
    least : float
    """
    terms = [t.times(1 - least if j == k else -least) for j, total in enumerate(totals) for t in total.terms]
    return Total(tuple(terms), 0.0, totals[k].divisor, replayed=False)


def identity(output: int) -> Total:
    """The score itself."""
    return Total((Term(output),))


# -- to files and back -----------------------------------------------------------------------------------------


def plain(total: Total) -> dict[str, Any]:
    """JSON-ready dict of a total; `total_of` is its inverse."""
    return {
        "terms": [plain_term(term) for term in total.terms],
        "base": total.base,
        "divisor": total.divisor,
        "replayed": total.replayed,
    }


def plain_term(term: Term) -> dict[str, Any]:
    """JSON-ready dict of a term; `term_of` is its inverse."""
    maps = [{"kind": m.kind, "x": list(m.x), "y": list(m.y), "narrow": m.unit == FLOAT32} for m in term.maps]
    return {"output": term.output, "maps": maps, "weight": term.weight}


def term_of(found: TermSchema) -> Term:
    """Term from plain values that are known to have the right types.

    Raises
    ------
    ModelError
        A map has no numbers, or not those of its kind.
    """
    return Term(found.output, tuple(map(_map_of, found.maps)), found.weight)


def total_of(found: TotalSchema) -> Total:
    """Total from plain values that are known to have the right types.

    Raises
    ------
    ModelError
        A map has no numbers, or not those of its kind.
    """
    return Total(tuple(map(term_of, found.terms)), found.base, found.divisor, found.replayed)


def _map_of(found: MapSchema) -> Map:
    counts = {"affine": (2, 0), "logistic": (0, 0), "exp": (0, 0), "log": (1, 0), "odds": (1, 0), "step": (1, 1)}
    rising = np.all(np.diff(found.x) > 0)
    fits = len(found.x) == len(found.y) > 0 and rising if found.kind == "table" else True
    if found.kind == "step" and len(found.y) == 2:
        counts["step"] = (1, 2)
    if not fits or counts.get(found.kind, (len(found.x), len(found.y))) != (len(found.x), len(found.y)):
        raise ModelError(f"a map of kind {found.kind!r} has other numbers than it needs: the model is corrupt")
    return Map(found.kind, tuple(found.x), tuple(found.y), FLOAT32 if found.narrow else FLOAT64)

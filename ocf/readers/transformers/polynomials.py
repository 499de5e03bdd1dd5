"""Powers and splines of single columns, which are monotone between breaks; products of several are refused.

A power is a product: of numbers of one sign it is monotone to the last bit, so that only 0 is a break. A B-spline is a
polynomial between knots: it turns at the roots of its derivative, which are found in floating point. A break too many
does no harm, and next to one the spline is as flat as its rounding, which `ocf.models.lift` looks out for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.features.lattice import Lattice
from ocf.readers.transformers.column import CONSTANT, Column, mixed
from ocf.readers.transformers.flow import MOST_VALUES, Flow, shown
from ocf.readers.transformers.mixtures import refused

CLASSES = ("PolynomialFeatures", "SplineTransformer")


def read(name: str, step: Any, flow: Flow) -> tuple[Column, ...]:
    """Products of powers, or the splines of each column.

    Parameters
    ----------
    name : str
    step : transformer
        Fitted.
    flow : Flow
    """
    if type(step).__name__ == "PolynomialFeatures":
        folded = flow.each(lambda j, column: column.broken(flow.breaks_at(j, [0.0])))
        return tuple(_product(name, step, flow, folded, powers) for powers in step.powers_)
    out: list[Column] = []
    for j, column in enumerate(flow.columns):
        width = step.bsplines_[j].c.shape[1]
        own = _splined(name, step, flow, j) if column.number else [column] * width
        out += own if step.include_bias else own[:-1]
    return tuple(out)


def _product(name: str, step: Any, flow: Flow, folded: tuple[Column, ...], powers: IntArray) -> Column:
    """A product of powers of columns."""
    factors = [j for j in np.flatnonzero(powers) if not flow.columns[j].constant]
    if not factors:
        return CONSTANT
    column = flow.columns[factors[0]]
    if len(factors) == 1:
        odd = powers[factors[0]] % 2
        # a constant beside it is a factor that may turn the direction, as a whole
        shape = column.bent() if odd else folded[factors[0]]
        return column if powers[factors[0]] == 1 else shape
    if column.discrete and {flow.columns[j].feature for j in factors} == {column.feature}:
        return column
    refusals = [flow.columns[j] for j in factors if flow.columns[j].mixed]
    return refusals[0] if refusals else refused(name, step, "multiplies several columns")


def _splined(name: str, step: Any, flow: Flow, j: int) -> list[Column]:
    """The elements of the basis of a column of numbers."""
    column, spline = flow.columns[j], step.bsplines_[j]
    width = spline.c.shape[1]
    if column.partial:
        return [refused(name, step, "is given what another step makes NaN of some numbers")] * width
    turns = [_turning_knots(spline, k) for k in range(width)]
    if step.extrapolation == "periodic":
        feature = flow.source.space.features[column.feature]
        if spline.t[spline.k] == spline.t[-1 - spline.k]:  # of a single number
            return [CONSTANT] * width
        if column.breaks or not step.degree or not np.isfinite([feature.lower, feature.upper]).all():
            return [mixed(_periodic_refusal(name, step, flow, j))] * width
        ends = np.array([feature.lower, feature.upper])
        reach = np.sort(flow.at(column.feature, ends, j))
        turns = [_repeated(spline, own, *reach) for own in turns]
        column = replace(column, within=tuple(Lattice.of(feature).keys(ends).tolist()))
    marks = np.unique(np.concatenate(turns))
    keys = dict(zip(marks.tolist(), flow.reached(j, marks), strict=True))
    breaks = [{*column.breaks, *(key for mark in own.tolist() for key in keys[mark])} for own in turns]
    return [column.broken(own, exact=False) for own in breaks]


def _periodic_refusal(name: str, step: Any, flow: Flow, j: int) -> str:
    return (
        f"{shown(name, step)} repeats the numbers of feature {flow.named(j)} along the whole line: give the feature "
        "finite bounds, such as bounds = [0, 24], and the spline a degree of 1 or more and no step before it that "
        "bends the line, or give ocf the table after that step"
    )


def _repeated(spline: Any, turns: FloatArray, low: float, high: float) -> FloatArray:
    """Turns of a periodic element in all periods that an interval meets.

    Between two periods it goes on where it began, but for rounding.
    """
    first, last = float(spline.t[spline.k]), float(spline.t[len(spline.t) - spline.k - 1])
    own = np.append(turns[(first < turns) & (turns < last)], first)
    period = last - first
    starts = np.arange(np.floor((low - first) / period), np.floor((high - first) / period) + 2)
    if len(starts) * len(own) > MOST_VALUES:  # `Flow.reached` refuses so many
        starts = starts[: MOST_VALUES + 1]
    return np.unique(own + period * starts[:, None])


def _turning_knots(spline: Any, k: int) -> FloatArray:
    """Knots around the pieces in which an element of the basis is not 0, and where its slope is.

    Beyond the outer knots its first and its last piece go on, or lines do, or nothing changes.
    """
    from scipy.interpolate import PPoly

    slopes = PPoly.from_spline((spline.t, spline.c[:, k], spline.k))
    slopes = slopes.derivative() if spline.k else slopes
    found: list[FloatArray] = [np.zeros(0)]
    first, last = spline.k, len(spline.t) - spline.k - 2
    for m in range(first, last + 1):
        start, stop, coefficients = spline.t[m], spline.t[m + 1], slopes.c[:, m]
        found.append(np.array([start, stop]))
        if np.any(coefficients):
            # a double root may come out as two that are nearly real
            roots = start + np.real(np.roots(np.trim_zeros(coefficients, "f")))
            room = 1e-6 * (stop - start)
            low, high = (-np.inf if m == first else start - room), (np.inf if m == last else stop + room)
            found.append(roots[(roots >= low) & (roots <= high)])
    return np.unique(np.concatenate(found))

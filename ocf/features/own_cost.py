"""What a curve takes of one feature: by level, piecewise linear or stepwise in the change; and where it bends."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ocf.arrays import FloatArray
from ocf.features.curve import Curve, exact
from ocf.features.feature import Feature
from ocf.features.number_dtypes import held


def around(value: float) -> FloatArray:
    """Cuts that make a single value a cell of its own."""
    return np.array([math.nextafter(value, -math.inf), value])


def amount_of(curve: Curve, feature: Feature, origin: float, value: float) -> Fraction:
    """Amount of moving a feature from one coded value to another; nothing where it is missing.

    Parameters
    ----------
    curve : Curve
        Checked against the feature (`Feature.check_curve`).
    feature : Feature
    origin, value : float
        Coded values.
    """
    if value == origin or math.isnan(value) or math.isnan(origin):
        return Fraction(0)
    if curve.levels is not None:
        here = int(value)
        return sum((exact(a) for level, a in curve.levels if feature.level_code(level) == here), Fraction(0))
    if curve.between is not None:
        first, last = sorted((int(origin), int(value)))
        return sum(map(exact, curve.between[first:last]), Fraction(0))
    start, stop = feature.position(origin), feature.position(value)
    if curve.rate is not None:
        down, up = map(exact, curve.rate)
        return (stop - start) * up if stop > start else (start - stop) * down
    return _at(curve, stop - start if curve.of == "change" else stop)


def _at(curve: Curve, x: Fraction) -> Fraction:
    """Amount that the points of a curve give at `x`."""
    points = curve.exact_points
    if curve.steps:
        return max(((px, py) for px, py in points if px <= x), default=(x, Fraction(0)))[1]
    if not points[0][0] < x < points[-1][0]:
        return points[0][1] if x <= points[0][0] else points[-1][1]
    k = sum(px <= x for px, _ in points)
    (ax, ay), (bx, by) = points[k - 1], points[k]
    return ay + (by - ay) * (x - ax) / (bx - ax)


def cuts_of(curve: Curve, feature: Feature, origin: float) -> FloatArray:
    """Coded values at which cells must end for the curve to be a line within each of them.

    Parameters
    ----------
    curve : Curve
    feature : Feature
    origin : float
        The row's coded value.
    """
    if math.isnan(origin):
        return np.empty(0)
    if feature.discrete:
        return feature.level_cuts
    ends = [around(origin)]
    for x, _ in curve.points or ():
        at = float(exact(x) + feature.position(origin)) if curve.of == "change" else x
        at = at if feature.step is None else held(at, feature.dtype)
        ends.append(around(at) if curve.steps else np.array([at]))
    return np.concatenate(ends)

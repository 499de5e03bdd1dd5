"""Linear rows over parts of a feature's value, evaluated in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from ocf.arrays import FloatArray
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace

ZERO, ONE = Fraction(0), Fraction(1)


@dataclass(frozen=True)
class Part:
    """What one feature adds to a row.

    Attributes
    ----------
    of : callable
        Exact amount at a coded value; also at NaN, where the feature is missing.
    cuts : (n,) float64
        Coded values at which cells must end for the amount to be a line, or constant, within each of them.
    moving : bool
        Whether the amount changes within cells, so that the value in the cell matters.
    """

    of: Callable[[float], Fraction]
    cuts: FloatArray
    moving: bool = False


@dataclass(frozen=True)
class Row:
    """``sum_i part_i(x_i) <= limit``, exactly.

    Attributes
    ----------
    name : str
        Of the constraint that it belongs to.
    parts : dict of feature index to Part
    limit : Fraction
    slope : dict of feature index to Fraction
        Of an equation: by how much a unit of a feature that float64 rounds changes the sum. A spacing of each is
        allowed for.
    """

    name: str
    parts: dict[int, Part]
    limit: Fraction
    slope: dict[int, Fraction] = field(default_factory=dict)

    def total(self, point: FloatArray) -> Fraction:
        """Exact sum at a coded point."""
        return sum((part.of(float(point[i])) for i, part in self.parts.items()), ZERO)

    def allowance(self, space: FeatureSpace, point: FloatArray) -> Fraction:
        """By how much the sum may exceed the limit because float64 (or the column's dtype) holds no nearer values.

        Parameters
        ----------
        space : FeatureSpace
        point : (n_features,) float64
            Coded.
        """
        return sum((abs(s) * spacing(space.features[i], float(point[i])) for i, s in self.slope.items()), ZERO)

    def holds(self, space: FeatureSpace, point: FloatArray) -> bool:
        """Whether a coded point satisfies the row.

        Parameters
        ----------
        space : FeatureSpace
        point : (n_features,) float64
            Coded.
        """
        return self.total(point) <= self.limit + self.allowance(space, point)


def spacing(feature: Feature, value: float) -> Fraction:
    """Distance from a value to the next one that its column can hold.

    Parameters
    ----------
    feature : Feature
    value : float
        In the user's units.
    """
    if not math.isfinite(value):
        return ZERO
    return Fraction(float(abs(np.spacing(np.asarray(value, feature.float_dtype)))))


def satisfied(rows: Iterable[Row], space: FeatureSpace, point: FloatArray) -> bool:
    """Whether a coded point satisfies all rows.

    Parameters
    ----------
    rows : iterable of Row
    space : FeatureSpace
    point : (n_features,) float64
        Coded.
    """
    return all(row.holds(space, point) for row in rows)

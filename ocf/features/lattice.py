"""The numbers that a column of a table can hold, in order, as integers that a bisection can halve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray
from ocf.features import times
from ocf.features.feature import Feature
from ocf.features.number_dtypes import number_dtype
from ocf.features.space import FeatureSpace

#: Whole numbers beyond this are no longer all float64.
_WHOLE = 2**53


@dataclass(frozen=True)
class Lattice:
    """The values that a numeric or integer feature's column can hold, as keys: integers, one apart for neighbours.

    Attributes
    ----------
    dtype : dtype
        A float dtype, whose finite numbers the values are, or an integer one: whole numbers.
    days : (first, last) or None
        Of dates and durations: all whole microseconds between two days.
    """

    dtype: np.dtype[Any]
    days: tuple[float, float] | None = None

    @classmethod
    def of(cls, feature: Feature) -> Lattice:
        """The lattice of a feature; a number that the user may give in halves is not held to whole ones."""
        own = number_dtype(feature.dtype)
        if feature.is_time:
            return cls(np.dtype(np.float64), times.ends(feature.dtype))
        whole = own is not None and feature.kind == "integer" and own.kind in "iu"
        return cls(own if own is not None and whole else feature.float_dtype)

    @property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest value."""
        if self.days is not None:
            return self.days
        if self.dtype.kind in "iu":
            info = np.iinfo(self.dtype)
            return float(max(info.min, -_WHOLE)), float(min(info.max, _WHOLE))
        return float(np.finfo(self.dtype).min), float(np.finfo(self.dtype).max)

    def keys(self, values: FloatArray) -> NDArray[np.int64]:
        """Keys of values, each rounded to a value of the lattice."""
        low, high = self.ends
        clipped = np.clip(values, low, high)
        if self.days is not None:
            return times.microseconds(clipped)
        if self.dtype.kind in "iu":
            return np.rint(clipped).astype(np.int64)
        narrow = clipped.astype(self.dtype)
        bits = narrow.view(f"i{narrow.itemsize}")
        return np.where(bits >= 0, bits, np.iinfo(bits.dtype).min - bits).astype(np.int64)

    def values(self, keys: NDArray[np.int64]) -> FloatArray:
        """Values of keys."""
        if self.days is not None:
            return times.from_microseconds(keys)
        if self.dtype.kind in "iu":
            return keys.astype(np.float64)
        whole = np.dtype(f"i{self.dtype.itemsize}")
        bits = np.where(keys >= 0, keys, np.iinfo(whole).min - keys).astype(whole)
        return np.asarray(bits.view(self.dtype).astype(np.float64))

    def rounded(self, values: FloatArray) -> FloatArray:
        """The nearest values of the lattice."""
        return self.values(self.keys(values))

    def at_most(self, values: FloatArray) -> NDArray[np.int64]:
        """Keys of the largest values of the lattice <= `values`; of its ends where there is none."""
        keys = self.keys(values)
        return np.where(self.values(keys) > values, keys - 1, keys)


def finite_ends(feature: Feature, base: float) -> tuple[float, float]:
    """Bounds of a numeric feature, and numbers beside a value of it where there are none.

    Parameters
    ----------
    feature : Feature
        Numeric or integer.
    base : float
        In the user's units.
    """
    low = feature.lower if np.isfinite(feature.lower) else base - max(1.0, abs(base))
    high = feature.upper if np.isfinite(feature.upper) else base + max(1.0, abs(base))
    return low, high


def middle(start: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keys halfway, without overflow.

    Parameters
    ----------
    start, stop : (n,) int64
        Keys.
    """
    return (start & stop) + ((start ^ stop) >> 1)


#: Float64 numbers in their order.
_FLOATS = Lattice(np.dtype(np.float64))


def first_numbers(holds: Callable[[FloatArray], BoolArray], bad: FloatArray, good: FloatArray) -> FloatArray:
    """The numbers nearest to `bad` for which conditions hold that fail at `bad` and hold at `good`, (n,).

    Parameters
    ----------
    holds : callable
        Each of the n conditions at a number of its own; monotone between the two.
    bad, good : (n,) float64
    """
    start, stop = _FLOATS.keys(bad), _FLOATS.keys(good)
    farthest = max((abs(a - b) for a, b in zip(start.tolist(), stop.tolist(), strict=True)), default=0)
    for _ in range(max(farthest - 1, 0).bit_length()):
        half = middle(start, stop)
        found = holds(_FLOATS.values(half))
        start, stop = np.where(found, start, half), np.where(found, half, stop)
    return _FLOATS.values(stop)


def first_number(holds: Callable[[float], bool], bad: float, good: float) -> float:
    """As `first_numbers`, of a single condition.

    Parameters
    ----------
    holds : callable
    bad, good : float
    """
    found = first_numbers(lambda x: np.array([holds(float(x[0]))]), np.array([bad]), np.array([good]))
    return float(found[0])


def rounded(space: FeatureSpace, coded: FloatArray) -> FloatArray:
    """Coded rows in the dtypes of a space: numbers that a column cannot hold become the nearest that it can.

    Parameters
    ----------
    space : FeatureSpace
    coded : (n, n_features) float64
    """
    out = coded.copy()
    for i, feature in enumerate(space.features):
        known = ~np.isnan(coded[:, i])
        if not feature.discrete:
            out[known, i] = Lattice.of(feature).rounded(coded[known, i])
    return out

"""The numbers that a feature can take: multiples of a step, or all, as far as its column holds them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ocf.arrays import FloatArray

#: Whole numbers up to these are exact as numerator and denominator of a step.
_LARGEST_RATIO = 2**31, 2**40


@dataclass(frozen=True)
class ValueGrid:
    """Multiples of a step as a column holds them, or everything that it holds.

    Attributes
    ----------
    step : float
        0 for everything.
    ratio : (float, float)
        The step as a fraction of whole numbers, if it is the float64 of a short decimal; else over 1.
    dtype : dtype
        Of floats. A narrow one rounds multiples, and holds neighbouring ones as the same number where they are large.
    """

    step: float
    ratio: tuple[float, float]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, step: float, dtype: np.dtype[Any], exact: Fraction | None = None) -> ValueGrid:
        """The grid of a step.

        Parameters
        ----------
        step : float
            0 for none.
        dtype : dtype
        exact : Fraction, optional
            What the step stands for; the decimal that it reads as.
        """
        exact = exact or Fraction(repr(step))
        short = exact.numerator < _LARGEST_RATIO[0] and exact.denominator < _LARGEST_RATIO[1]
        return cls(step, (float(exact.numerator), float(exact.denominator)) if short else (step, 1.0), dtype)

    @property
    def _is_narrow(self) -> bool:
        return self.dtype != np.float64

    @property
    def _is_whole(self) -> bool:
        """Whether all whole numbers are in it, and nothing else."""
        return self.step == 1 and not self._is_narrow

    def at_most(self, v: FloatArray) -> FloatArray:
        """The largest of its numbers <= each value, of the shape of the values."""
        if self._is_whole:
            return np.floor(v)
        if not self.step:
            return self._held(v, above=False)
        k = self._steps_below(v)
        k = np.where(self._multiple(k) > v, k - 1, k)
        k = np.where(self._multiple(k + 1) <= v, k + 1, k)
        return self._multiple(k)

    def above(self, v: FloatArray) -> FloatArray:
        """The smallest of its numbers > each value; no end stays none, here and in its counterpart."""
        if self._is_whole:  # from 2**53 on that is the next float
            with np.errstate(over="ignore"):
                return np.where(np.isinf(v), v, np.maximum(np.floor(v) + 1, np.nextafter(v, np.inf)))
        if not self.step:
            return np.where(np.isinf(v), v, self._held(v, above=True))
        k = self._steps_below(v) + 1
        k = np.where(self._multiple(k - 1) > v, k - 1, k)
        k = np.where(self._multiple(k) <= v, k + 1, k)
        return self._multiple(k)

    def between(self, low: float, high: float) -> FloatArray:
        """Its numbers from one end to another, increasing; only where it has a step.

        Parameters
        ----------
        low, high : float
            Finite.
        """
        first, last = self._steps_below(np.array([low, high]))
        values = np.unique(self._multiple(np.arange(first - 1, last + 2)))
        return values[(low <= values) & (values <= high)]

    def _steps_below(self, v: FloatArray) -> FloatArray:
        """How many whole steps the largest of the numbers <= each value is worth, up to rounding."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(np.floor((self._turn(v) if self._is_narrow else v) / self.step))

    def _turn(self, v: FloatArray) -> FloatArray:
        """Halfway from what the column holds below each value to what it holds above: beyond, multiples round up."""
        below, above = self._held(v, above=False), self._held(v, above=True)
        # above the largest number it is as far as below it
        before = np.nextafter(below.astype(self.dtype), np.array(-np.inf, self.dtype)).astype(np.float64)
        return np.where(np.isinf(above), below + (below - before) / 2, (below + above) / 2)

    def _multiple(self, k: FloatArray) -> FloatArray:
        # 7 / 100 is the float64 that the decimal 0.07 reads as; 7 * 0.01 is not
        numerator, denominator = self.ratio
        with np.errstate(over="ignore"):
            value = np.asarray(k * numerator / denominator)
            return value.astype(self.dtype).astype(np.float64)

    def _held(self, v: FloatArray, *, above: bool) -> FloatArray:
        """The next number above each value that the column holds, or the last one up to it."""
        up, down = np.array(np.inf, self.dtype), np.array(-np.inf, self.dtype)
        with np.errstate(over="ignore"):
            near = v.astype(self.dtype)
            if above:
                return np.where(near > v, near, np.nextafter(near, up)).astype(np.float64) + 0.0  # no -0
            return np.where(near <= v, near, np.nextafter(near, down)).astype(np.float64)

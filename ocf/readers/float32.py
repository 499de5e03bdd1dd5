"""Exact float64 boundaries of comparisons that a library makes in another arithmetic."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def largest_rounding_to(value: NDArray[np.float32]) -> NDArray[np.float64]:
    """Largest float64 that a cast to float32 sends to at most `value`.

    The cast rounds to the nearest float32 and, halfway between two, to the one with an even last bit, so the
    boundary is the midpoint to the next float32 above, or the float64 just below it.
    """
    value = np.asarray(value, np.float32)
    with np.errstate(over="ignore"):
        # past the largest float32 the cast rounds as if the next one, 2**128, existed
        low = np.clip(value.astype(np.float64), -(2.0**128), 2.0**128)
        high = np.clip(np.nextafter(value, np.float32(np.inf)).astype(np.float64), -(2.0**128), 2.0**128)
        middle = low + (high - low) / 2
        return np.where(middle.astype(np.float32) <= value, middle, np.nextafter(middle, -np.inf))


def float32_at_most(threshold: ArrayLike) -> NDArray[np.float64]:
    """Largest float64 ``b`` with ``float32(b) <= threshold``: scikit-learn's comparison.

    Parameters
    ----------
    threshold : array of float64
    """
    threshold = np.asarray(threshold, np.float64)
    with np.errstate(over="ignore"):
        nearest = threshold.astype(np.float32)
        below = np.where(nearest > threshold, np.nextafter(nearest, np.float32(-np.inf)), nearest)
    return largest_rounding_to(below)


def float32_less_than(threshold: ArrayLike) -> NDArray[np.float64]:
    """Largest float64 ``b`` with ``float32(b) < threshold``: XGBoost's comparison.

    Parameters
    ----------
    threshold : array of float32
    """
    with np.errstate(over="ignore"):
        below = np.nextafter(np.asarray(threshold, np.float32), np.float32(-np.inf))
    return largest_rounding_to(below)

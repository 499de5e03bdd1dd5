"""Boundaries of float32 comparisons, against the casts themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.readers.float32 import float32_at_most, float32_less_than, largest_rounding_to

FLOAT32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
FLOAT64 = st.floats(-3.4e38, 3.4e38)
LARGEST = float(np.finfo(np.float32).max)


def cast(value: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(value, np.float64).astype(np.float32)


def bisected(holds: object, low: float = -1e39, high: float = 1e39) -> float:
    """Largest float64 at which a condition holds, by bisection over the bits."""

    def key(value: float) -> int:
        bits = int(np.float64(value).view(np.int64))
        return bits if bits >= 0 else -(2**63) - bits

    def number(k: int) -> float:
        return float(np.int64(k if k >= 0 else -(2**63) - k).view(np.float64))

    start, stop = key(low), key(high)
    while start + 1 < stop:
        middle = (start + stop) // 2
        start, stop = (middle, stop) if holds(number(middle)) else (start, middle)  # type: ignore[operator]
    return number(start)


@given(FLOAT32)
def test_rounding_boundary_is_the_last_that_rounds_down(value: float) -> None:
    boundary = largest_rounding_to(np.float32(value))
    assert cast(boundary) <= np.float32(value) < cast(np.nextafter(boundary, np.inf))


@given(FLOAT64)
def test_at_most_is_scikit_learns_comparison(threshold: float) -> None:
    boundary = float32_at_most(threshold)
    assert cast(boundary).astype(np.float64) <= threshold < cast(np.nextafter(boundary, np.inf)).astype(np.float64)


@given(FLOAT32)
def test_less_than_is_xgboosts_comparison(threshold: float) -> None:
    boundary = float32_less_than(np.float32(threshold))
    assert cast(boundary) < np.float32(threshold) <= cast(np.nextafter(boundary, np.inf))


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.1, 1e-45, -1e-45, 1e-38, 1.5 * 2.0**-149, 2.5, 16777217.0, LARGEST, -LARGEST, 1e30]


@pytest.mark.parametrize("threshold", SPECIAL)
def test_bisection_finds_the_same(threshold: float) -> None:
    assert float32_at_most(threshold) == bisected(lambda v: float(cast(v)) <= threshold)
    narrow = np.float32(threshold)
    assert float32_less_than(narrow) == bisected(lambda v: cast(v) < narrow)


def test_arrays_keep_their_shape() -> None:
    assert float32_at_most(np.array(SPECIAL)).shape == (len(SPECIAL),)
    assert float32_less_than(np.array(SPECIAL, np.float32)).dtype == np.float64

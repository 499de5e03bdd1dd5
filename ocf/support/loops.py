"""Loops over whole arrays, for kernels.

A slice that is assigned to makes Numba compile a check of the shapes and what words its error, anew in each caller:
2 of 36 seconds in all, for shapes that are known to match.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.support.numba_cache import array_helper, helper


@helper
def fill(out: NDArray[Any], value: Any) -> None:
    """Overwrite every entry with a value.

    Parameters
    ----------
    out : (n,) array
        Overwritten.
    value : scalar
    """
    for i in range(len(out)):
        out[i] = value


@helper
def copy_to(out: NDArray[Any], source: NDArray[Any]) -> None:
    """Overwrite an array with another of its length.

    Parameters
    ----------
    out : (n,) array
        Overwritten.
    source : (n,) array
    """
    for i in range(len(out)):
        out[i] = source[i]


@helper
def total(numbers: FloatArray) -> float:
    """Sum of numbers, from the first to the last."""
    out = 0.0
    for i in range(len(numbers)):
        out += numbers[i]
    return out


@helper
def least(numbers: FloatArray) -> float:
    """Least of numbers; inf of none."""
    out = np.inf
    for i in range(len(numbers)):
        out = min(out, numbers[i])
    return out


@helper
def count(flags: BoolArray) -> int:
    """How many flags are set."""
    out = 0
    for i in range(len(flags)):
        if flags[i]:
            out += 1
    return out


@array_helper
def places(flags: BoolArray) -> IntArray:
    """Places of the flags that are set, increasing."""
    out, n = np.empty(len(flags), np.int64), 0
    for i in range(len(flags)):
        if flags[i]:
            out[n] = i
            n += 1
    return out[:n]

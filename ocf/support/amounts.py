"""Numbers that users give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def real_number(value: Any) -> float:
    """A number as a float; NaN for words, truth values, what is missing, and whole numbers beyond floats.

    NaN lies in no range, so that one comparison refuses all of these: ``if not 0 <= real_number(value) < inf``.

    Parameters
    ----------
    value : object
    """
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def is_whole(value: Any, least: int) -> bool:
    """Whether a user gave a whole number of at least so much; truth values are none.

    Parameters
    ----------
    value : object
    least : int
    """
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= least


def plain_value(value: Any) -> Any:
    """A scalar of NumPy as one of Python; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value

"""What the name of a column's dtype says: which numbers the column holds, whoever keeps them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

#: Numbers as Arrow calls them, where NumPy has another name.
_ARROW = {"halffloat": "float16", "float": "float32", "double": "float64"}


@cache
def number_dtype(dtype: str) -> np.dtype[Any] | None:
    """NumPy's dtype of the numbers or truth values in a column, also of those that may be missing.

    Returns
    -------
    dtype or None
        That of ``"Int64"``, ``"int64[pyarrow]"`` and ``"int64"`` is int64; None of what holds no numbers.
    """
    name, arrow, _ = dtype.partition("[pyarrow]")
    name = _ARROW.get(name, name) if arrow else {"boolean": "bool"}.get(name, name)
    try:
        found = np.dtype(name.lower())
    except (TypeError, ValueError):  # ValueError: Arrow's names of what it nests
        return None
    return found if found.kind in "biuf" else None


def held(value: float, dtype: str) -> float:
    """A number as a column holds it: in one of float32, 0.6 is 0.60000002.

    Parameters
    ----------
    value : float
        That somebody said of the column, or infinite.
    dtype : str
    """
    narrow = narrow_float(dtype)
    if narrow is None:
        return value
    with np.errstate(over="ignore"):
        return float(narrow.type(value))


def held_level(level: Any, dtype: str) -> Any:
    """A level as a column holds it: numbers that are no whole ones as `held` says, all others as they are.

    Parameters
    ----------
    level : object
    dtype : str
    """
    return held(float(level), dtype) if isinstance(level, float | np.floating) else level


def as_read(value: float, dtype: str) -> float:
    """The shortest decimal that a column holds as a number: in one of float32, 0.6 for 0.60000002.

    Parameters
    ----------
    value : float
        As it is held.
    dtype : str
    """
    narrow = narrow_float(dtype)
    return value if narrow is None else float(str(narrow.type(value)))


def recast(value: float, before: str, after: str) -> float:
    """A number that a column holds, as one of another dtype holds what it reads as.

    Parameters
    ----------
    value : float
    before, after : str
    """
    return held(as_read(value, before), after)


def recast_level(level: Any, before: str, after: str) -> Any:
    """A level as `recast` says where it is a number that is no whole one; all others as they are.

    Parameters
    ----------
    level : object
    before, after : str
    """
    return recast(float(level), before, after) if isinstance(level, float | np.floating) else level


def narrow_float(dtype: str) -> np.dtype[Any] | None:
    """NumPy's dtype of a column of floats that hold less than float64; None of others."""
    found = number_dtype(dtype)
    return found if found is not None and found.kind == "f" and found.itemsize < 8 else None


def is_nullable(dtype: str) -> bool:
    """Whether a dtype of numbers is one of those of pandas that hold missing values beside them."""
    return dtype == "boolean" or dtype[:1].isupper() or dtype.endswith("[pyarrow]")


def holds_gaps(dtype: str) -> bool:
    """Whether a column keeps its dtype where a value goes missing; pandas makes float64 of whole numbers."""
    held = number_dtype(dtype)
    return held is None or held.kind == "f" or is_nullable(dtype)

"""Numbers and intervals as people write them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

#: Digits of numbers in text and pages; the tables and the JSON hold all of them.
DIGITS = 6

#: What is smaller is the rounding of something else in tables of seconds, shares and costs.
NOTHING = 1e-9

#: What is smaller is 0 or next to it in a column of float32.
VANISHING = 2.0**-126

# -- words -----------------------------------------------------------------------------------------------------


def number(value: float, digits: int = 4) -> str:
    """Number for reading.

    Parameters
    ----------
    value : float
    digits : int
        Significant ones.
    """
    return f"{value:.{digits}g}"


def plain_number(value: float, digits: int = 3) -> str:
    """Number for tables, as people write it: without exponents, and 0 where nothing but rounding is left.

    Parameters
    ----------
    value : float
        Finite.
    digits : int
        Significant ones.

    Examples
    --------
    >>> plain_number(-3.96e-15), plain_number(12345.6), plain_number(0.000123456)
    ('0', '12,300', '0.000123')
    """
    if abs(value) < NOTHING:
        return "0"
    text = f"{float(f'{value:.{digits}g}'):,.12f}"
    return text.rstrip("0").rstrip(".")


def word(value: Any, other: Any = None, *, new: bool = False) -> str:
    """Value of a feature for reading: a label as it is, a number with a few digits.

    Parameters
    ----------
    value : object
    other : object
        The value it changes from or to: both are written with as many digits as tell them apart.
    new : bool
        Whether it is the value of the counterfactual. Where rounding it could put it on the other side of a
        split, the words say on which side of the rounded number it lies.
    """
    if value is None:
        return "missing"
    if isinstance(value, datetime):
        return str(value).removesuffix(" 00:00:00")
    if isinstance(value, bool | str) or not isinstance(value, int | float):
        return str(value)
    exact = repr(value).removesuffix(".0")
    if isinstance(value, int) or len(exact) <= DIGITS + 2:
        return exact
    short = "0" if abs(value) < VANISHING else f"{value:.{DIGITS}g}"
    rounded = float(short)
    if rounded == value:
        return short
    if new and abs(value - rounded) <= max(1e-6 * abs(value), VANISHING):
        return f"just {'over' if value > rounded else 'under'} {short}"
    if isinstance(other, int | float) and f"{other:.{DIGITS}g}" == short:
        return exact
    return f"about {short}" if new else short


def interval(lowest: float | None, highest: float | None) -> str:
    """Bounds of a value in words, all their digits as the user gave them; None is an open end.

    Parameters
    ----------
    lowest, highest : float or None
        In the user's units, both inclusive.
    """
    low, high = (repr(float(b)).removesuffix(".0") if b is not None else "" for b in (lowest, highest))
    if not (low and high):
        return f"at least {low}" if low else f"at most {high}"
    return low if low == high else f"{low} to {high}"


def plain_text(text: str) -> str:
    """Text that matplotlib does not take for mathematics."""
    return text.replace("$", r"\$")

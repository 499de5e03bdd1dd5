"""Words for messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


def nearest(word: Any, known: Iterable[Any]) -> str:
    """The word in quotes, with the known one that it resembles, or else the list of the known ones.

    Parameters
    ----------
    word : object
        What was given.
    known : iterable
        What would have been taken.
    """
    word = word.item() if hasattr(word, "item") else word  # a number of NumPy's is a number
    options = {str(k): k for k in known}
    # numbers that look alike need not be near
    close = difflib.get_close_matches(word, options, n=1) if isinstance(word, str) else []
    return f"{word!r} (did you mean {options[close[0]]!r}?)" if close else f"{word!r}; known: {listed([*options])}"


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names with commas, cut after `most`.

    Parameters
    ----------
    names : sequence of str
    most : int
        How many to name.
    """
    return ", ".join(names[:most]) + (f", … ({len(names)} in all)" if len(names) > most else "")

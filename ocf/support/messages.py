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
    options = {str(k): k for k in known}
    # numbers that look alike need not be near, but may be told from the same text
    near = difflib.get_close_matches(word, options, n=1) if isinstance(word, str) else []
    close = [str(word)] if str(word) in options else near
    said = f"did you mean {quoted(options[close[0]])}?" if close else ""
    return f"{quoted(word)} ({said})" if said else f"{quoted(word)}; known: {listed([*options])}"


def quoted(value: Any) -> str:
    """A value as Python writes it; what NumPy holds is what it stands for.

    Parameters
    ----------
    value : object
    """
    return repr(value.item() if getattr(value, "shape", None) == () else value)


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names with commas, cut after `most`.

    Parameters
    ----------
    names : sequence of str
    most : int
        How many to name.
    """
    return ", ".join(names[:most]) + (f", … ({len(names)} in all)" if len(names) > most else "")


def with_remark(message: str, remark: str) -> str:
    """A message and what else is to be said, if anything is.

    Parameters
    ----------
    message, remark : str
    """
    return "; ".join(filter(None, (message, remark)))


def internal(error: BaseException) -> str:
    """An error that is none of the user's, in words."""
    return f"internal error: {type(error).__name__}: {error}"


def counted(count: int, noun: str) -> str:
    """A number of things.

    Parameters
    ----------
    count : int
    noun : str
        Of one of them.
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"

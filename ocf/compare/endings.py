"""How a process ends that was given work under limits of time and memory, in words."""

from __future__ import annotations

import signal


def late(seconds: float) -> str:
    """Of one that was killed for its time.

    Parameters
    ----------
    seconds : float
    """
    return f"killed after {seconds:g} s"


def large(memory: int) -> str:
    """Of one that was killed for its memory.

    Parameters
    ----------
    memory : int
        Bytes that it was allowed.
    """
    return f"killed at {memory / 1e9:.3g} GB of memory"


def crashed(what: str, code: int) -> str:
    """Of one that ended without an answer.

    Parameters
    ----------
    what : str
        "process", "program".
    code : int
        Its exit code; that of a process which a signal ended is the signal's number with a minus.
    """
    if code >= 0:
        return f"the {what} ended by itself with exit code {code}"
    return f"the {what} died of signal {signal.Signals(-code).name}"

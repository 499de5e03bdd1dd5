"""Limits of time and memory that hold for all that is done within them, however deep.

::

    with within(seconds=10, memory=4e9):
        ...                      # what works for long asks `check` and `seconds_left` on the way, or `reserve`s memory

Limits within limits add up: the nearest end and the least memory hold. They are those of the thread that set them;
what starts threads takes `current` there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from ocf.errors import MemoryLimitError, TimeLimitError
from ocf.support.interruption import raise_if_asked
from ocf.support.memory import free_memory, parse_memory, resident

#: Of what is free, how much may be taken where nothing else is said.
SHARE = 0.75

#: Seconds between two looks at the memory of the process, which take up to two milliseconds.
PAUSE = 0.1

#: What to do where memory does not suffice; said after what needs it.
REMEDY = "raise memory_limit, take fewer or shallower trees, or free memory"


@dataclass(frozen=True)
class LimitsHere:
    """What holds at some place.

    Attributes
    ----------
    end : float
        By `time.perf_counter`; inf without a limit.
    memory : float
        Bytes that the process may hold; inf without a limit.
    """

    end: float = math.inf
    memory: float = math.inf

    @property
    def seconds_left(self) -> float:
        """Seconds until the end, not below 0; inf without one."""
        return max(self.end - time.perf_counter(), 0.0)

    @property
    def full(self) -> bool:
        """Whether the process holds more than it may; looked up now and then, and before it is said to."""
        if self.memory == math.inf:
            return False
        now = time.perf_counter()
        if now - LAST.looked > PAUSE or LAST.held > self.memory:
            LAST.looked, LAST.held = now, resident()
        return LAST.held > self.memory

    @property
    def said_full(self) -> str:
        """That the memory is used up, in words."""
        return f"the memory limit of {self.memory / 1e9:.3g} GB was reached"


class Last:
    """When the memory of the process was looked up, and what it held."""

    looked, held = -math.inf, 0


LAST = Last()

_here: ContextVar[LimitsHere] = ContextVar("limits", default=LimitsHere())  # noqa: B039  # it is frozen


def current() -> LimitsHere:
    """The limits that hold here."""
    return _here.get()


@contextmanager
def within(seconds: float | None = None, memory: float | None = None, *, anew: bool = False) -> Iterator[None]:
    """Limits for what is done inside; None for those that are there already.

    Parameters
    ----------
    seconds : float, optional
    memory : float, optional
        Bytes that the process may hold, with what it holds now.
    anew : bool
        Whether the time is no part of that around.
    """
    around = _here.get()
    end = math.inf if seconds is None else time.perf_counter() + seconds
    inside = replace(
        around,
        end=end if anew else min(end, around.end),
        memory=min(math.inf if memory is None else memory, around.memory),
    )
    token = _here.set(inside)
    try:
        yield
    finally:
        _here.reset(token)


def default_memory(processes: int = 1) -> float:
    """Bytes that a process may hold where nobody says: what this one holds, and three quarters of what is free.

    Parameters
    ----------
    processes : int
        That share what is free.
    """
    return resident() + SHARE * free_memory() / processes


def memory_of(said: float | str | None, processes: int = 1) -> float:
    """Bytes that a process may hold.

    Parameters
    ----------
    said : float, str or None
        Bytes, or an amount such as ``"4 GB"``; None for the default.
    processes : int
        That share what is free, in the default.
    """
    return default_memory(processes) if said is None else float(parse_memory(said, "memory_limit"))


def seconds_left() -> float:
    """Seconds until the time limit that holds here; inf without one.

    Raises
    ------
    KeyboardInterrupt
        The process was asked to stop.
    """
    raise_if_asked()
    return current().seconds_left


def check(ahead: float = 0.0) -> None:
    """Go on only within the limits that hold here.

    Parameters
    ----------
    ahead : float
        Seconds that the next step will take, as far as that is known.

    Raises
    ------
    TimeLimitError
        The time is over, or will be before the step is done.
    MemoryLimitError
    """
    here = current()
    if time.perf_counter() + ahead > here.end:
        raise TimeLimitError("the time limit was reached")
    if here.full:
        raise MemoryLimitError(f"{here.said_full}: {REMEDY}")


def reserve(size: float, what: str, remedy: str = REMEDY) -> None:
    """Refuse what will not fit into memory before it is made.

    Parameters
    ----------
    size : float
        Bytes, roughly.
    what : str
        What takes them.
    remedy : str
        What to do about it.

    Raises
    ------
    MemoryLimitError
    """
    here = current()
    if here.memory == math.inf or size < 1e6:
        return
    left = here.memory - resident()
    if size > left:
        raise MemoryLimitError(
            f"{what} takes about {size / 1e9:.3g} GB, and {max(left, 0.0) / 1e9:.3g} GB of the memory limit of "
            f"{here.memory / 1e9:.3g} GB are left: {remedy}"
        )

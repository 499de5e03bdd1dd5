"""Ctrl-C that is not lost.

Python raises an exception wherever the signal finds it. In a compiled kernel the exception is replaced by a
SystemError, or dropped, and in a callback of a library it is dropped, so that a batch would go on as if nobody had
asked. What works for long therefore calls `raise_if_asked` on the way.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import FrameType, TracebackType
from typing import Any

#: Signals that ask a process to stop.
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Remembers that the process was asked to stop, whatever becomes of the exception that says so.

    Only signals are watched that raise an exception anyway: by default Ctrl-C, in the main thread.

    Attributes
    ----------
    asked : bool
        Whether a signal has come.

    Examples
    --------
    >>> with Interruption() as interruption:
    ...     interruption.asked
    False
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Callable[[int, FrameType | None], Any]] = {}

    def __enter__(self) -> Interruption:
        try:
            _HERE.set((*_HERE.get(), self))
            if threading.current_thread() is threading.main_thread():
                for number in SIGNALS:
                    before = signal.getsignal(number)
                    if callable(before):
                        self._before[number] = before
                        signal.signal(number, self._remember)
        except BaseException:  # of a signal that came meanwhile
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        """Watch no longer, whatever comes meanwhile: the signal of one call must not stop the next."""
        try:
            self._put_back()
        except BaseException:
            self._put_back()
            raise
        finally:
            _HERE.set(tuple(watch for watch in _HERE.get() if watch is not self))

    def _put_back(self) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._before[number](number, frame)


#: Those that watch in this thread, and in the threads that work for it in a copy of its context.
_HERE: ContextVar[tuple[Interruption, ...]] = ContextVar("ocf_interruptions", default=())


def raise_if_asked() -> None:
    """Stop here where the process was asked to: whoever is still at work has not seen the exception that said so.

    Raises
    ------
    KeyboardInterrupt
    """
    if any(watch.asked for watch in _HERE.get()):
        raise KeyboardInterrupt


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM stop the process as Ctrl-C does, so that what is finished is kept."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def uninterrupted(tell: Callable[[], None]) -> Iterator[None]:
    """Let what is short, and would be lost, come to its end: who asks for a stop meanwhile is told, and asks again.

    Parameters
    ----------
    tell : callable
        Called at the first signal; the next one does what it did before.
    """
    before: dict[int, Any] = {}

    def restore() -> None:
        for number, own in before.items():
            signal.signal(number, own)

    def first(number: int, frame: FrameType | None) -> None:
        restore()
        with suppress(Exception):  # there may be nobody left to be told
            tell()

    if threading.current_thread() is threading.main_thread():
        stops = {number: signal.getsignal(number) for number in SIGNALS}
        before = {number: own for number, own in stops.items() if callable(own) or own is signal.SIG_DFL}
        for number in before:
            signal.signal(number, first)
    try:
        yield
    finally:
        restore()


def is_interruption(error: BaseException) -> bool:
    """Whether an exception stands in the place of Ctrl-C.

    A kernel during which it was pressed raises a SystemError that it caused.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, KeyboardInterrupt):
            return True
        seen = seen.__cause__ or seen.__context__
    return False

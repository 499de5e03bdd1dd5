"""Several pieces of work at a time, begun here and ended by threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from types import TracebackType
from typing import Generic, NamedTuple, Self, TypeVar

Key = TypeVar("Key")
Result = TypeVar("Result")


class Done(NamedTuple, Generic[Key, Result]):
    """What a piece of work gave.

    Attributes
    ----------
    key : object
        With which it was begun.
    result : object
    seconds : float
        That it took.
    """

    key: Key
    result: Result
    seconds: float


class Crew(Generic[Key, Result]):
    """As many threads as asked for, whose work releases the GIL where it takes time; with one it is done here.

    Used as a context, at whose end nothing is at work any more.

    Parameters
    ----------
    n_threads : int
    """

    def __init__(self, n_threads: int) -> None:
        self._size, self._pool = n_threads, ThreadPoolExecutor(n_threads, "ocf-crew") if n_threads > 1 else None
        self._at_work, self._over = set[Future[Done[Key, Result]]](), threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._pool is not None:
            self._pool.shutdown()

    @property
    def over(self) -> bool:
        """Whether nobody waits for results any more."""
        return self._over.is_set()

    @property
    def busy(self) -> bool:
        """Whether something is at work, or has results that nobody has seen."""
        return bool(self._at_work)

    @property
    def full(self) -> bool:
        """Whether every thread has something to do."""
        return len(self._at_work) >= self._size

    def begin(self, key: Key, work: Callable[[], Result]) -> None:
        """Begin a piece of work.

        Parameters
        ----------
        key : object
            Comes back with the result.
        work : callable
            Ends soon where `over` says so.
        """

        def timed() -> Done[Key, Result]:
            began = time.perf_counter()
            return Done(key, work(), time.perf_counter() - began)

        if self._pool is not None:
            self._at_work.add(self._pool.submit(copy_context().run, timed))
            return
        done = Future[Done[Key, Result]]()
        done.set_result(timed())
        self._at_work.add(done)

    def ended(self) -> list[Done[Key, Result]]:
        """What is done; waits until something is, if anything is at work."""
        done = wait(self._at_work, return_when=FIRST_COMPLETED).done
        self._at_work -= done
        return [future.result() for future in done]

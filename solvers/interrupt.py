"""Solvers that can be interrupted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ocf.support.interruption import raise_if_asked
from ocf.support.limits import current

#: Seconds between two looks at the user's interrupt function, and after Ctrl-C the patience with the solver.
POLL, PATIENCE = 0.05, 10.0


def run_interruptible(
    run: Callable[[], object], stop: Callable[[], object], interrupt: Callable[[], bool] | None = None
) -> None:
    """Run a solver in a thread so that Ctrl-C and the interrupt function reach the caller's thread at once.

    The limit of memory that holds for the caller stops it, too.

    Parameters
    ----------
    run : callable
        The solve; it must release the GIL. Its exceptions are raised here.
    stop : callable
        Asks the running solve to end; may be called often and at any moment.
    interrupt : callable, optional
        Polled; when it returns True the solve is stopped.
    """
    failure: list[BaseException] = []
    around = current()
    # Not Thread.join: interrupted by Ctrl-C, it declares the thread dead in some versions of Python (3.11 among them).
    done = threading.Event()

    def work() -> None:
        try:
            run()
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    threading.Thread(target=work, name="ocf-solve", daemon=True).start()
    try:
        while not done.wait(POLL):
            raise_if_asked()
            if around.full or (interrupt is not None and interrupt()):
                stop()
    except BaseException:
        deadline = time.monotonic() + PATIENCE
        while not done.is_set() and time.monotonic() < deadline:
            stop()  # again and again: a solver that is just starting forgets an early request
            done.wait(POLL)
        raise
    if failure:
        raise failure[0]

"""Signals that ask a process to stop are not lost."""

from __future__ import annotations

import os
import signal
import threading
from contextvars import copy_context
from functools import partial

import pytest

from ocf.support.interruption import Interruption, is_interruption, raise_if_asked, sigterm_as_ctrl_c, uninterrupted
from ocf.support.limits import seconds_left

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows sends no signal to one process")


def test_an_interruption_is_remembered_and_still_raised() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interruption() as interruption:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert interruption.asked
    assert signal.getsignal(signal.SIGINT) is before


def test_who_is_still_at_work_after_a_signal_is_stopped() -> None:
    before = signal.signal(signal.SIGINT, lambda number, frame: None)  # as where the exception is dropped
    try:
        with Interruption():
            raise_if_asked()
            os.kill(os.getpid(), signal.SIGINT)
            for ask in (raise_if_asked, seconds_left):
                with pytest.raises(KeyboardInterrupt):
                    ask()
        raise_if_asked()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_a_signal_at_any_moment_leaves_no_watch_behind(nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the nth handler that is installed or put back, SIGINT comes at once."""
    before, install, calls = signal.getsignal(signal.SIGINT), signal.signal, []

    def installed(number: int, handler: object) -> object:
        found = install(number, handler)  # type: ignore[arg-type]
        calls.append(number)
        if len(calls) == nth:
            signal.raise_signal(signal.SIGINT)
        return found

    with sigterm_as_ctrl_c():
        monkeypatch.setattr(signal, "signal", installed)
        with pytest.raises(KeyboardInterrupt), Interruption():
            pass
        monkeypatch.undo()
        raise_if_asked()  # the next call is not stopped
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_stops_the_thread_that_it_is_for_and_those_that_help_it() -> None:
    before, found = signal.signal(signal.SIGINT, lambda number, frame: None), []

    def asked() -> None:
        try:
            raise_if_asked()
            found.append(False)
        except KeyboardInterrupt:
            found.append(True)

    def beside() -> None:
        with Interruption():
            asked()

    try:
        with Interruption():
            os.kill(os.getpid(), signal.SIGINT)
            for work in (beside, partial(copy_context().run, asked)):
                thread = threading.Thread(target=work)
                thread.start()
                thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert found == [False, True]


def test_sigterm_is_ctrl_c_where_that_is_asked_for() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with sigterm_as_ctrl_c(), Interruption() as interruption:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        assert interruption.asked
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_is_to_come_to_its_end_does_and_says_so() -> None:
    before, told = signal.getsignal(signal.SIGTERM), []
    for number in (signal.SIGINT, signal.SIGTERM):
        with uninterrupted(lambda number=number: told.append(number) or 1 / 0):
            os.kill(os.getpid(), number)
    assert told == [signal.SIGINT, signal.SIGTERM]
    with uninterrupted(lambda: None):
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is before


def test_who_ignores_signals_goes_on_to_do_so() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with uninterrupted(lambda: None):
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_signals_that_raise_nothing_are_left_alone() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert not interruption.asked
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_signals_alone() -> None:
    seen = []

    def work() -> None:
        with sigterm_as_ctrl_c(), Interruption():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGTERM)]


def test_what_a_kernel_makes_of_ctrl_c_is_recognised() -> None:
    caused = SystemError("returned a result with an exception set")
    caused.__cause__ = KeyboardInterrupt()
    assert is_interruption(caused)
    assert is_interruption(KeyboardInterrupt())
    assert not is_interruption(ValueError("a value"))

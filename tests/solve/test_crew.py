"""Several pieces of work at a time."""

from __future__ import annotations

import threading
import time

import pytest

from ocf.solve.crew import Crew


@pytest.mark.parametrize("n_threads", [1, 3])
def test_all_work_is_done_and_comes_back_with_its_key(n_threads: int) -> None:
    todo, results = list(range(20)), dict[int, int]()
    with Crew[int, int](n_threads) as crew:
        while todo or crew.busy:
            while todo and not crew.full:
                key = todo.pop()
                crew.begin(key, lambda key=key: key**2)  # type: ignore[misc]
            for done in crew.ended():
                assert done.seconds >= 0
                results[done.key] = done.result
    assert results == {key: key**2 for key in range(20)}


def test_one_thread_is_the_one_that_asks() -> None:
    with Crew[str, str](1) as crew:
        crew.begin("here", lambda: threading.current_thread().name)
        assert crew.full
        assert [done.result for done in crew.ended()] == [threading.current_thread().name]
        assert not crew.busy


@pytest.mark.parametrize("n_threads", [1, 2])
def test_what_fails_fails_here(n_threads: int) -> None:
    def fails() -> int:
        raise ValueError("no luck")

    def ask() -> None:
        with Crew[int, int](n_threads) as crew:
            crew.begin(0, fails)
            crew.ended()

    with pytest.raises(ValueError, match="no luck"):
        ask()


def test_work_that_looks_ends_with_the_context() -> None:
    ended = threading.Event()

    def waits(crew: Crew[int, None]) -> None:
        while not crew.over:
            time.sleep(0.001)
        ended.set()

    def interrupted() -> None:
        with Crew[int, None](2) as crew:
            crew.begin(0, lambda: waits(crew))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert ended.is_set()

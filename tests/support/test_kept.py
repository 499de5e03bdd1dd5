from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from ocf.support.kept import Kept


def test_what_was_asked_for_longest_ago_goes_first() -> None:
    kept: Kept[str, str] = Kept(2)
    made: list[str] = []

    def of(key: str) -> str:
        def make() -> str:
            made.append(key)
            return key.upper()

        return kept.get(key, make)

    assert [of(key) for key in "abacba"] == [*"ABACBA"]
    assert made == [*"abcba"]
    assert len(kept) == 2
    assert pickle.loads(pickle.dumps(kept)).get("a", str) == "A"


def test_what_cannot_be_made_is_not_kept_and_nothing_counts_as_something() -> None:
    kept: Kept[int, int | None] = Kept(1)
    with pytest.raises(ZeroDivisionError):
        kept.get(1, lambda: 1 // 0)
    assert kept.get(1, lambda: None) is None
    assert kept.get(1, lambda: 2) is None


def test_threads_share_it() -> None:
    kept: Kept[int, int] = Kept(3)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda k: kept.get(k % 7, lambda: k % 7), range(5000)))
    assert found == [k % 7 for k in range(5000)]
    assert len(kept) <= 3 + 8


def test_two_threads_that_ask_at_once_get_the_same() -> None:
    kept: Kept[int, object] = Kept(2)
    for k in range(50):
        together = Barrier(4)

        def ask(key: int, at: Barrier) -> object:
            at.wait()
            return kept.get(key, object)

        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(ask, [k] * 4, [together] * 4))
        assert len({id(own) for own in found}) == 1
        assert kept.get(k, object) is found[0]
    assert kept.values() == tuple(kept.get(k, object) for k in (48, 49))

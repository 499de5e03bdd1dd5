"""What was made for the last of many keys, so that a process that runs for months does not grow with its questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class Kept(Generic[K, T]):
    """Things by their keys; the one that was asked for longest ago goes when there are too many.

    Threads may share it: two that ask for the same key at the same time may both make what it stands for, and both get
    the first one's.

    Parameters
    ----------
    most : int
        How many are kept, at least 1.
    """

    def __init__(self, most: int) -> None:
        self._most, self._turn = most, 0
        self._made: dict[K, tuple[T]] = {}
        self._asked: dict[K, int] = {}

    def get(self, key: K, make: Callable[[], T]) -> T:
        """What belongs to a key.

        Parameters
        ----------
        key : hashable
        make : callable
            Makes it, where it is not there.
        """
        found = self._made.get(key)
        if found is None:
            found = self._made.setdefault(key, (make(),))
        self._turn += 1
        self._asked[key] = self._turn
        while len(self._made) > self._most:
            oldest = min(list(self._made), key=lambda other: self._asked.get(other, self._turn))
            self._made.pop(oldest, None)
            self._asked.pop(oldest, None)
        return found[0]

    def __contains__(self, key: K) -> bool:
        return key in self._made

    def values(self) -> tuple[T, ...]:
        """All that is kept, in the order in which it was made."""
        return tuple(value for (value,) in list(self._made.values()))

    def __len__(self) -> int:
        return len(self._made)

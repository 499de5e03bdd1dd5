"""What the steps of a Pipeline make of a table, kept for the next who asks about the same one."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pandas as pd

#: Most rows of a table that is kept: what many rows cost is no matter of calls.
MOST_ROWS = 1000


class LastTable:
    """What something makes of tables; of the table that it was given last it is made once.

    Decision, probabilities and model columns of a row all start at what the steps before the last make of it, and on
    one row these take longer than a forest. A table is the same if it is the same object: nobody changes one on the
    way. It is forgotten with the table, so that nothing outlives the question.

    Parameters
    ----------
    make : callable
        Table in the user's columns -> what the steps make of it. Nobody may write into that.
    """

    def __init__(self, make: Callable[[pd.DataFrame], Any]) -> None:
        self._make = make
        self._last: tuple[weakref.ref[pd.DataFrame], Any] | None = None

    def __call__(self, table: pd.DataFrame) -> Any:
        """What is made of a table."""
        last = self._last
        if last is not None and last[0]() is table:
            return last[1]
        made = self._make(table)
        self._last = (weakref.ref(table, self._forget), made) if len(table) <= MOST_ROWS else None
        return made

    def _forget(self, gone: weakref.ref[pd.DataFrame]) -> None:
        last = self._last
        if last is not None and last[0] is gone:
            self._last = None

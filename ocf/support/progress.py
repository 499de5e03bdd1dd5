"""A progress bar for batches: rows or runs done, how many of each status, time left."""

from __future__ import annotations

import sys
from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class ProgressBar:
    """Progress bar on stderr, or nothing.

    Parameters
    ----------
    total : int
        Rows.
    enabled : bool, optional
        By default the bar is shown when stderr is a terminal and there are at least two rows.
    unit : str
        What is counted.

    Attributes
    ----------
    counts : Counter
        Rows done, by status; kept whether or not the bar is shown.

    Examples
    --------
    >>> with ProgressBar(2) as bar:
    ...     bar.advance("optimal")
    ...     bar.advance("optimal")
    >>> bar.counts
    Counter({'optimal': 2})
    """

    def __init__(self, total: int, enabled: bool | None = None, unit: str = "rows") -> None:
        self.total = total
        self.unit = unit
        self.enabled = (total >= 2 and _is_terminal()) if enabled is None else enabled
        self.counts: Counter[str] = Counter()
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressBar:
        if self.enabled:
            self._bar = _bar(self.unit)
            self._task = self._bar.add_task("", total=self.total, statuses="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def advance(self, status: str) -> None:
        """Count one more row as done.

        Parameters
        ----------
        status : str
            Of the row, such as ``"optimal"``.
        """
        self.counts[status] += 1
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=1, statuses=self.summary())

    def summary(self) -> str:
        """Counts in words, the most frequent first: ``"7 optimal, 1 infeasible"``."""
        return ", ".join(f"{count} {status}" for status, count in self.counts.most_common())


def _is_terminal() -> bool:
    # under pythonw and some daemons there is no stderr at all
    return sys.stderr is not None and sys.stderr.isatty()


def _bar(unit: str) -> RichProgress:
    """The bar itself; rich is imported only when one is shown."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    return RichProgress(
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn(unit),
        TextColumn("[dim]{task.fields[statuses]}"),
        TimeElapsedColumn(),
        TextColumn("[dim]left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )

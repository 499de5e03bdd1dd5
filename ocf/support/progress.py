"""Progress of batches: rows or runs done, how many of each status, time left; a bar on a terminal, else lines."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


logger = logging.getLogger(__name__)

#: Seconds before the first line of a batch that is on no terminal, and the most between two; each wait is twice the
#: one before.
FIRST, MOST = 10.0, 120.0


class ProgressBar:
    """Progress bar on stderr, or a line every so often where that is no terminal, or nothing.

    Lines are logged as information, which the command ``ocf`` shows; where a bar is asked for, they are printed on
    stderr in any case.

    Parameters
    ----------
    total : int
        Rows.
    enabled : bool, optional
        By default the bar is shown when stderr is a terminal and there are at least two rows. False: not even lines.
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
        self._say = _print if enabled else logger.info
        lines = not _is_terminal() and (total >= 2 if enabled is None else enabled)
        self._teller = threading.Thread(target=self._tell, name="ocf-progress", daemon=True) if lines else None
        self._over = threading.Event()
        self._begin = 0.0
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ProgressBar:
        if self.enabled:
            self._bar = _bar(self.unit)
            self._task = self._bar.add_task("", total=self.total, statuses="")
            self._bar.start()
        if self._teller is not None:
            self._begin = time.monotonic()
            self._teller.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._teller is not None:
            self._teller.join()  # no line comes after the end
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _tell(self) -> None:
        """Say every so often how far the batch is, whether or not a row has finished since."""
        pause = FIRST
        while not self._over.wait(pause):
            self._say(self.line(time.monotonic() - self._begin))
            pause = min(2 * pause, MOST)

    def line(self, seconds: float) -> str:
        """How far the batch is, in words: ``"3 of 8 rows after 30 s (3 optimal), about 50 s left"``.

        Parameters
        ----------
        seconds : float
            Since it began.
        """
        done = self.counts.total()
        said = f"{done} of {self.total} {self.unit} after {seconds:.0f} s"
        if not done:
            return said
        return f"{said} ({self.summary()}), about {seconds / done * (self.total - done):.0f} s left"

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
        return ", ".join(f"{count:,} {status}" for status, count in self.counts.most_common())


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


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

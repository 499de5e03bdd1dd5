"""Many rows with one explainer: in turn or in processes, with a status for each, and nothing lost on Ctrl-C."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ocf.errors import ProblemError
from ocf.explain.answers import interrupted
from ocf.explain.explanation import Explanation
from ocf.support.interruption import Interruption

if TYPE_CHECKING:
    from ocf.solve.task import AskedRow


logger = logging.getLogger(__name__)


#: A row.
R = TypeVar("R")

#: Explains rows, in order; what `n_jobs` other than 1 sends to the processes.
ExplainEach = Callable[[Sequence["AskedRow"]], Iterator[list[Explanation]]]

#: Rows of a task for another process: as many as take about so many seconds, that sending what is prepared does not
#: count, but little is lost with a process; at first this number, and never more than the last one.
SECONDS, FIRST_ROWS, MOST_ROWS = 5.0, 4, 64

#: Rows that are explained here, by which it is judged whether other processes are worth their start.
TRIED_ROWS = 16

#: Seconds in which other processes start, import what they need and read what is prepared.
START_UP = 4.0


def run_batch(
    explain_each: ExplainEach,
    rows: Sequence[AskedRow],
    n_jobs: int,
    finished: Callable[[int, list[Explanation]], None],
) -> list[list[Explanation]]:
    """Explain rows, in order.

    Parameters
    ----------
    explain_each : callable
        Rows -> the explanations of each, in order; picklable where `n_jobs` is not 1.
    rows : sequence of AskedRow
    n_jobs : int
        Processes; -1 for one per core.
    finished : callable
        Told the place and the explanations of each row as it finishes.

    Returns
    -------
    list of list of Explanation
        For each row one, or several where that is asked for. After Ctrl-C the rows that are not finished have status
        ``"interrupted"``.
    """
    if n_jobs == 0 or n_jobs < -1:
        raise ProblemError(f"n_jobs is a number of processes, or -1 for one per core, not {n_jobs}")
    done: list[list[Explanation]] = []
    with (
        Interruption() as interruption,
        suppress(KeyboardInterrupt),  # whether or not a signal was the cause, the rest is open
        closing(_explained(explain_each, rows, n_jobs, interruption, done)) as found,
    ):
        for explanations in found:
            if interruption.asked and explanations[0].status == "error":
                break  # most likely for that reason
            finished(len(done), explanations)
            done.append(explanations)
    if len(done) < len(rows):
        done += [[interrupted(r)] for r in rows[len(done) :]]
    return done


class _Watched(Sequence["AskedRow"]):
    """Rows of which none is begun once the process was asked to stop."""

    def __init__(self, rows: Sequence[AskedRow], interruption: Interruption) -> None:
        self._rows, self._interruption = rows, interruption

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> AskedRow: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[AskedRow]: ...
    def __getitem__(self, place: int | slice) -> AskedRow | Sequence[AskedRow]:
        if self._interruption.asked:
            raise KeyboardInterrupt
        return self._rows[place]


def _explained(
    explain_each: ExplainEach,
    rows: Sequence[AskedRow],
    n_jobs: int,
    interruption: Interruption,
    done: Sequence[list[Explanation]],
) -> Generator[list[Explanation], None, None]:
    if n_jobs == 1 or len(rows) < 2:
        yield from explain_each(_Watched(rows, interruption))
        return
    from joblib import Parallel, delayed, effective_n_jobs

    jobs = effective_n_jobs(n_jobs)
    if len(rows) > 2 * TRIED_ROWS:
        begin = time.perf_counter()
        yield from explain_each(_Watched(rows[:TRIED_ROWS], interruption))
        rows = rows[TRIED_ROWS:]
        saved = (time.perf_counter() - begin) / TRIED_ROWS * len(rows) * (1 - 1 / jobs)
        if saved < START_UP:
            logger.info("%d rows are explained before other processes have started: n_jobs is left aside", len(rows))
            yield from explain_each(_Watched(rows, interruption))
            return
    parallel = Parallel(n_jobs=n_jobs, return_as="generator", batch_size=1)
    found = parallel(delayed(_all)(explain_each, part) for part in parts(rows, jobs, done))
    try:
        for explained in found:
            yield from explained
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that tasks are given up
            found.close()


def parts(rows: Sequence[R], processes: int, done: Sequence[Any]) -> Iterator[Sequence[R]]:
    """Rows in parts, as they are asked for; each has as many as the time that rows took so far allows.

    Parameters
    ----------
    rows : sequence
    processes : int
        That work at the same time.
    done : sequence
        Grows by the rows that are finished.
    """
    begin, before, start = time.perf_counter(), len(done), 0
    while start < len(rows):
        share = -(-(len(rows) - start) // processes)
        size = FIRST_ROWS
        if len(done) > before:
            each = (time.perf_counter() - begin) * processes / (len(done) - before)
            size = int(min(max(SECONDS / max(each, 1e-9), 1), MOST_ROWS))
        yield rows[start : start + min(size, share)]
        start += min(size, share)


def _all(explain_each: ExplainEach, rows: Sequence[AskedRow]) -> list[list[Explanation]]:
    return list(explain_each(rows))

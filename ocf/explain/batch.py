"""Many rows with one explainer: in turn or in processes, with a status for each, and nothing lost on Ctrl-C."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, overload

from ocf.errors import ProblemError
from ocf.explain.answers import failed
from ocf.explain.explanation import Explanation
from ocf.support.interruption import Interruption

if TYPE_CHECKING:
    from ocf.solve.task import AskedRow


logger = logging.getLogger(__name__)


#: Explains rows, in order; what `n_jobs` other than 1 sends to the processes.
ExplainEach = Callable[[Sequence["AskedRow"]], Iterator[list[Explanation]]]

#: Rows of a task for another process: so many that sending what is prepared does not count, and no more than this.
MOST_ROWS = 64


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
    with Interruption() as interruption:
        try:
            for explanations in _explained(explain_each, rows, n_jobs, interruption):
                if interruption.asked and explanations[0].status == "error":
                    break  # most likely for that reason
                done.append(explanations)
                finished(len(done) - 1, explanations)
        except KeyboardInterrupt:
            pass  # whether or not a signal was the cause, the rest is open
    if len(done) < len(rows):
        logger.warning("interrupted: %d of %d rows are finished and kept", len(done), len(rows))
        done += [[failed(r.label, r.original, "interrupted", "interrupted by the user")] for r in rows[len(done) :]]
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
    explain_each: ExplainEach, rows: Sequence[AskedRow], n_jobs: int, interruption: Interruption
) -> Iterator[list[Explanation]]:
    if n_jobs == 1 or len(rows) < 2:
        return explain_each(_Watched(rows, interruption))
    from joblib import Parallel, delayed, effective_n_jobs

    parts = max(effective_n_jobs(n_jobs), -(-len(rows) // MOST_ROWS))
    size = -(-len(rows) // parts)
    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    found = parallel(delayed(_all)(explain_each, rows[k : k + size]) for k in range(0, len(rows), size))
    return chain.from_iterable(found)


def _all(explain_each: ExplainEach, rows: Sequence[AskedRow]) -> list[list[Explanation]]:
    return list(explain_each(rows))

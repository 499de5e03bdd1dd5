"""Rows of a batch whose points the user's model judges together.

The search of a row asks the user's own model about a point that it would return, and the check of the answer asks
again, about the row too. For a forest each of these calls takes longer than the search. Here points are taken on the
word of the trees that were read, those of an isolation forest among them, for a number of rows; then the model is asked
about all of them in one call, from which judgement and check have its answers. A row whose point the model refuses, or
for which the isolation forest's library finds it too shallow, is solved again with every point put to them, so that the
answers are the same.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ocf.arrays import FloatArray
from ocf.explain.answers import AnswerTables, answer_tables, interrupted
from ocf.explain.explanation import Explanation
from ocf.models.detector import Detector
from ocf.models.foreseen import Foreseen
from ocf.problem.problem import Problem
from ocf.solve.engine import Finding, answer, make_ready
from ocf.support.limits import seconds_left, within

if TYPE_CHECKING:
    import pandas as pd

    from ocf.explain.asking import Asking
    from ocf.solve.task import AskedRow, Task

logger = logging.getLogger(__name__)

#: Most rows that wait for the model, and the seconds after which it is asked in any case, unless it took so long that
#: asking would take more than this share of the time.
ROWS, SECONDS, SHARE = 256, 0.5, 0.04


@dataclass(frozen=True)
class _Waiting:
    """A row whose search is over.

    Attributes
    ----------
    row : AskedRow
    found : Finding or list of Explanation
        What was found, to be judged; or the explanations of a row that failed.
    tables : AnswerTables or None
        Of the answer that was found.
    seconds : float
        Of the search.
    original : DataFrame (1, n_columns)
        The row's table, so that it is made once.
    """

    row: AskedRow
    found: Finding[Problem] | list[Explanation]
    tables: AnswerTables | None
    seconds: float
    original: pd.DataFrame


class Together:
    """Explains rows of one task, whose points the user's model judges in one call for many.

    Parameters
    ----------
    asking : Asking
    task : Task
        One explanation a row, by an engine whose points follow from the trees alone.
    """

    def __init__(self, asking: Asking[Problem], task: Task) -> None:
        self._asking, self._task = asking, task
        self._engine = asking.engine(task)
        self._foreseen = Foreseen(asking.model)
        self._judging, self._over = 0.0, False

    def explain(self, rows: Sequence[AskedRow]) -> Iterator[list[Explanation]]:
        """The explanations of each row, in order; after Ctrl-C those of the rows whose search was over come first."""
        waiting: list[_Waiting] = []
        searching = 0.0
        try:
            for row in rows:
                waiting.append(self._searched(row))
                searching += waiting[-1].seconds
                if len(waiting) == ROWS or searching > max(SECONDS, self._judging / SHARE):
                    yield from self._judged(waiting)
                    searching = 0.0
        except KeyboardInterrupt:
            self._over = True
            yield from self._judged(waiting)
            raise
        yield from self._judged(waiting)

    def _searched(self, row: AskedRow) -> _Waiting:
        make_ready(self._engine, self._task)
        begin = time.perf_counter()
        original = row.original

        def search() -> Finding[Problem]:
            problem = self._asking.pose(row, self._task)
            asked = self._asking.prepared.judge(row, problem, self._asking.detector(self._task, problem))

            def believed(point: FloatArray) -> bool:
                """The row itself may have the target already; other points are taken on the word of the trees."""
                same = np.array_equal(problem.space.without_missing(point), row.coded, equal_nan=True)
                return asked(point) if same else True

            return answer(self._engine, problem, self._task, believed)

        def limited() -> Finding[Problem]:
            # the model's word on the answer is part of the time
            with self._task.within_limits(), within(max(seconds_left() - self._asking.checking, 0.0)):
                return search()

        found = self._asking.unless_it_fails(row, self._task, limited)
        tables = answer_tables(found, row) if isinstance(found, Finding) else None
        return _Waiting(row, found, tables, time.perf_counter() - begin, original)

    def _judged(self, waiting: list[_Waiting]) -> Iterator[list[Explanation]]:
        """Explanations of rows that were searched, in order; each is taken off the list before it is handed over."""
        begin = time.perf_counter()
        tables: list[pd.DataFrame] = [one.row.original for one in waiting]
        detectors: dict[Detector, list[pd.DataFrame]] = {}
        for one in waiting:
            if one.tables is not None and isinstance(one.found, Finding):
                tables.append(one.tables.point)
                tables.extend(one.tables.between)
                if (detector := self._asking.detector(self._task, one.found.problem)) is not None:
                    detectors.setdefault(detector, []).append(one.tables.point)
        try:
            believed = any(one.row.believed for one in waiting)
            self._foreseen.foresee(tables, probabilities=True, columns=believed, detectors=detectors)
        except Exception as error:  # the model is the user's: one row that it refuses never loses the others
            logger.debug("the rows are judged one by one: %s", error)
        self._judging = time.perf_counter() - begin
        each = self._judging / max(len(waiting), 1)
        while waiting:
            explanations = self._explained(waiting[0], each)
            del waiting[0]
            yield explanations

    def _explained(self, one: _Waiting, judging: float) -> list[Explanation]:
        row, task, asking = one.row, self._task, self._asking
        if row.believed:
            row, sound = asking.settled(row, task, self._foreseen.model)
            if not sound:
                return self._anew(row, one.seconds + judging)
        if not isinstance(one.found, Finding):
            return one.found
        found = one.found

        def explained() -> list[Explanation]:
            seconds, model = one.seconds + judging, self._foreseen.model
            detector = asking.detector(task, found.problem)
            detector = None if detector is None else self._foreseen.beside(detector)
            if one.tables is not None:
                point = one.tables.point
                met = model.meets(found.problem.target, point)[0]
                if not met or not (detector is None or detector.accepts(point)):
                    return self._anew(row, seconds)
            told = asking.explained(row, found, detector=detector, seconds=seconds, model=model, tables=one.tables)
            asking.checking = judging + told.times["verify"]
            return [told]

        return asking.unless_it_fails(row, task, explained)

    def _anew(self, row: AskedRow, spent: float) -> list[Explanation]:
        """The explanations of a row with every point put to the model, in what is left of the row's time."""
        if self._over:
            return [interrupted(row)]
        begin = time.perf_counter()
        with within(self._task.seconds_after(spent)):
            first, *others = self._asking.explain_row(row, self._task)
        # what was spent in vain is part of the row's time
        times = first.times | {"total": spent + time.perf_counter() - begin}
        return [replace(first, times=times), *others]

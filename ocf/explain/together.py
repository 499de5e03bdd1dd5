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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from ocf.arrays import FloatArray
from ocf.explain.answers import AnswerTables, answer_tables
from ocf.explain.explanation import Explanation
from ocf.models.foreseen import Foreseen
from ocf.solve.engine import Engine, Finding, Judge, P, answer, make_ready
from ocf.support.limits import seconds_left, within

if TYPE_CHECKING:
    import pandas as pd

    from ocf.explain.asking import Asking
    from ocf.models.detector import Detector
    from ocf.models.user_model import UserModel
    from ocf.solve.task import AskedRow, Task

logger = logging.getLogger(__name__)

#: Most rows that wait for the model, and the seconds after which it is asked in any case, unless it took so long that
#: asking would take more than this share of the time.
ROWS, SECONDS, SHARE = 256, 0.5, 0.04


@dataclass(frozen=True)
class _Waiting(Generic[P]):
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
    found: Finding[P] | list[Explanation]
    tables: AnswerTables | None
    seconds: float
    original: pd.DataFrame


class Together(Generic[P]):
    """Explains rows of one task, whose points the user's model judges in one call for many.

    Parameters
    ----------
    asking : Asking
    judge : callable
        Row, problem and isolation forest -> whether the user's model gives the target to a coded point, and the forest
        no outlier.
    engine : Engine
        Whose points follow from the trees alone.
    task : Task
        One explanation a row.
    settle : callable
        A row that was believed, task and model -> the row with the model's own word, and whether nothing else was.
    """

    def __init__(
        self,
        asking: Asking[P],
        judge: Callable[[AskedRow, P, Detector | None], Judge],
        engine: Engine[P],
        task: Task,
        settle: Callable[[AskedRow, Task, UserModel], tuple[AskedRow, bool]],
    ) -> None:
        self._asking: Asking[P] = asking
        self._judge: Callable[[AskedRow, P, Detector | None], Judge] = judge
        self._engine: Engine[P] = engine
        self._task = task
        self._settle = settle
        self._foreseen = Foreseen(asking.model)
        self._judging = 0.0

    def explain(self, rows: Sequence[AskedRow]) -> Iterator[list[Explanation]]:
        """The explanations of each row, in order; after Ctrl-C those of the rows whose search was over come first."""
        waiting: list[_Waiting[P]] = []
        searching = 0.0
        try:
            for row in rows:
                waiting.append(self._searched(row))
                searching += waiting[-1].seconds
                if len(waiting) == ROWS or searching > max(SECONDS, self._judging / SHARE):
                    yield from self._judged(waiting)
                    searching = 0.0
        except KeyboardInterrupt:
            yield from self._judged(waiting)
            raise
        yield from self._judged(waiting)

    def _searched(self, row: AskedRow) -> _Waiting[P]:
        make_ready(self._engine, self._task)
        begin = time.perf_counter()
        original = row.original

        def search() -> Finding[P]:
            problem = self._asking.pose(row, self._task)
            asked = self._judge(row, problem, self._asking.detector(self._task, problem))

            def believed(point: FloatArray) -> bool:
                """The row itself may have the target already; other points are taken on the word of the trees."""
                same = np.array_equal(problem.space.without_missing(point), row.coded, equal_nan=True)
                return asked(point) if same else True

            return answer(self._engine, problem, self._task, believed)

        def limited() -> Finding[P]:
            # the model's word on the answer is part of the time
            with self._task.within_limits(), within(max(seconds_left() - self._asking.checking, 0.0)):
                return search()

        found = self._asking.unless_it_fails(row, self._task, limited)
        tables = answer_tables(found, row) if isinstance(found, Finding) else None
        return _Waiting(row, found, tables, time.perf_counter() - begin, original)

    def _judged(self, waiting: list[_Waiting[P]]) -> Iterator[list[Explanation]]:
        """Explanations of rows that were searched, in order; each is taken off the list before it is handed over."""
        begin = time.perf_counter()
        tables: list[pd.DataFrame] = [one.row.original for one in waiting]
        for one in waiting:
            if one.tables is not None:
                tables.append(one.tables.point)
                tables.extend(one.tables.between)
        try:
            believed = any(one.row.believed for one in waiting)
            self._foreseen.foresee(tables, probabilities=True, columns=believed)
        except Exception as error:  # the model is the user's: one row that it refuses never loses the others
            logger.debug("the rows are judged one by one: %s", error)
        self._judging = time.perf_counter() - begin
        each = self._judging / max(len(waiting), 1)
        while waiting:
            explanations = self._explained(waiting[0], each)
            del waiting[0]
            yield explanations

    def _explained(self, one: _Waiting[P], judging: float) -> list[Explanation]:
        row, task, asking = one.row, self._task, self._asking
        if row.believed:
            row, sound = self._settle(row, task, self._foreseen.model)
            if not sound:
                return self._anew(row, one.seconds + judging)
        if not isinstance(one.found, Finding):
            return one.found
        found: Finding[Any] = one.found

        def explained() -> list[Explanation]:
            seconds, model = one.seconds + judging, self._foreseen.model
            detector = asking.detector(task, found.problem)
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
        begin = time.perf_counter()
        with within(self._task.seconds_after(spent)):
            first, *others = self._asking.explain_row(row, self._task)
        # what was spent in vain is part of the row's time
        times = first.times | {"total": spent + time.perf_counter() - begin}
        return [replace(first, times=times), *others]

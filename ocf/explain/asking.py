"""Rows and what is asked of them: the way from a table to explanations that all kinds of models share."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import pandas as pd
from numpy.typing import ArrayLike

from ocf.arrays import FloatArray, IntArray
from ocf.errors import DataError, OcfError, TimeLimitError
from ocf.explain import kept_rows
from ocf.explain.answers import AnswerTables, failed, from_finding
from ocf.explain.batch import run_batch
from ocf.explain.data_tables import tell_of_reading
from ocf.explain.explanation import Explanation, Explanations
from ocf.explain.faulty_rows import faulty_rows
from ocf.explain.question import Question
from ocf.explain.same_rows import same_rows, told_to
from ocf.features.asked_rows import NO_ROWS, frames_of, one_row_of, rows_of
from ocf.features.frames import PANDAS, FrameKind
from ocf.features.one_row import RowOf
from ocf.features.space import FeatureSpace
from ocf.models.detector import Detector
from ocf.models.plausibility import Plausibility
from ocf.models.user_model import UserModel
from ocf.problem.linear_problem import LinearProblem
from ocf.problem.problem import Problem
from ocf.problem.targets import Target
from ocf.solve.engine import Engine, Finding, P, answer, engine_for, make_ready
from ocf.solve.outcome import unproven
from ocf.solve.task import AskedRow, Task
from ocf.solvers.result import SolverOptions
from ocf.support.checkpoint import Checkpoint
from ocf.support.interruption import is_interruption
from ocf.support.limits import REMEDY, default_memory, seconds_left, within
from ocf.support.messages import internal, with_remark
from ocf.support.progress import ProgressBar

logger = logging.getLogger(__name__)

#: The kind of problem that is judged.
Q = TypeVar("Q", Problem, LinearProblem, contravariant=True)

#: What some work on a row gives.
T = TypeVar("T")


class Prepared(Protocol[Q]):
    """What is prepared once for a model; see `ocf.solve.prepared` and `ocf.solve.prepared_linear`."""

    model: UserModel
    space: FeatureSpace
    judging: float

    @property
    def classes(self) -> tuple[Any, ...]:
        """Class labels; empty for a regressor."""

    def unproven(self, problem: Q) -> str:
        """Why nothing is proven of a problem; empty where proofs hold."""

    def detector(self, wish: Plausibility | None, target: Target) -> Detector | None:
        """Isolation forest for a target.

        Parameters
        ----------
        wish : Plausibility or None
            None: no forest is asked for.
        target : Target
        """

    def judge(self, row: AskedRow, problem: Q, detector: Detector | None = None) -> Callable[[FloatArray], bool]:
        """Who tells of a coded point whether the user's model gives it the target.

        Parameters
        ----------
        row : AskedRow
        problem : Problem or LinearProblem
            Of the row.
        detector : Detector, optional
            That must not take the point for an outlier.
        """


class Asking(ABC, Generic[P]):
    """Explains rows of one model, by the first engine that accepts the task.

    Parameters
    ----------
    prepared : Prepared
    engines : sequence of Engine
    frames : FrameKind
        Of the data.
    """

    def __init__(self, prepared: Prepared[P], engines: Sequence[Engine[P]], frames: FrameKind = PANDAS) -> None:
        self.prepared: Prepared[P] = prepared
        self._engines: tuple[Engine[P], ...] = tuple(engines)
        self._frames = frames
        #: Seconds that the check of the last answer took; they are kept free of the time of the next.
        self.checking = prepared.judging

    @property
    def model(self) -> UserModel:
        """The user's own model."""
        return self.prepared.model

    @property
    def space(self) -> FeatureSpace:
        """The features, in the user's units and words."""
        return self.prepared.space

    @property
    def classes(self) -> tuple[Any, ...]:
        """Class labels; empty for a regressor."""
        return self.prepared.classes

    def engine(self, task: Task) -> Engine[P]:
        """The engine that solves a task; refuses a task that none accepts."""
        return engine_for(self._engines, task)

    def frames_of(self, rows: Any) -> FrameKind:
        """In which kind of table to answer about rows: their own, and that of the data where they are in none."""
        return frames_of(rows, self._frames)

    def rows_of(self, rows: Any) -> pd.DataFrame:
        """Rows as a table in the user's columns; see `ocf.features.asked_rows.rows_of`.

        Parameters
        ----------
        rows : table, Series, dict, list of dicts, or array (n, n_columns) or (n_columns,)
        """
        return rows_of(self.space, rows, self._frames)

    def one_row_of(self, row: Any) -> pd.DataFrame:
        """A single row as a table in the user's columns.

        Parameters
        ----------
        row : one-row table, Series, dict, or array (n_columns,)
        """
        return one_row_of(self.space, row, self._frames)

    @abstractmethod
    def read(self, frame: pd.DataFrame, question: Question) -> tuple[pd.DataFrame, FloatArray, Task]:
        """Rows, the same coded, and what is asked of them, in their dtypes.

        Parameters
        ----------
        frame : DataFrame (n, n_columns)
        question : Question
        """

    @abstractmethod
    def check(self, coded: FloatArray, task: Task) -> None:
        """Refuse what means nothing whatever the row, before any row is solved.

        Parameters
        ----------
        coded : (n, n_features) float64
        task : Task
        """

    @abstractmethod
    def pose(self, row: AskedRow, task: Task) -> P:
        """The problem of a row.

        Parameters
        ----------
        row : AskedRow
        task : Task
        """

    def ask(self, X: pd.DataFrame | pd.Series[Any] | ArrayLike, question: Question) -> Explanations:
        """Explanations of rows, those with a fault of their own among them.

        Parameters
        ----------
        X : table, Series, dict, list of dicts, or array (n, n_columns) or (n_columns,)
        question : Question

        Raises
        ------
        OcfError
            The fault is that of the table or of the question, or no row can be read.
        """
        return self._beside_faulty(self.rows_of(X), question).in_frames(self.frames_of(X))

    def asked_rows(self, frame: pd.DataFrame, coded: FloatArray, task: Task) -> list[AskedRow]:
        """Rows with what the user's model gives each, in the dtypes of the task.

        Parameters
        ----------
        frame : DataFrame (n, n_columns)
            As the user gave them.
        coded : (n, n_features) float64
            The same rows.
        task : Task
        """
        table = task.space.to_frame(coded)
        current = self.current(table, coded, task)
        kept = frame.copy()  # of which answers take their rows, whatever becomes of the user's table
        return [AskedRow(label, RowOf(kept, k), coded[k], current[k]) for k, label in enumerate(frame.index)]

    def believed_row(self, frame: pd.DataFrame, coded: FloatArray, task: Task) -> AskedRow | None:
        """A row with what is believed of it before the user's model is asked; None where it is asked at once.

        Parameters
        ----------
        frame : DataFrame (1, n_columns)
            As the user gave it.
        coded : (n_features,) float64
            The same row.
        task : Task
        """
        return None

    def settled(self, row: AskedRow, task: Task, model: UserModel) -> tuple[AskedRow, bool]:
        """A row that was believed with what the user's model gives it, and whether all that was believed holds.

        Parameters
        ----------
        row : AskedRow
        task : Task
        model : UserModel
            The user's model, with answers at hand.
        """
        return row, not row.believed

    def current(self, table: pd.DataFrame, coded: FloatArray, task: Task) -> list[Any]:
        """What the user's model gives rows that are asked about.

        Parameters
        ----------
        table : DataFrame (n, n_columns)
            In the user's columns and in the dtypes of the task.
        coded : (n, n_features) float64
            The same rows.
        task : Task
        """
        answers: list[Any] = self.model.decide(table).tolist() if len(table) else []
        return answers

    def explain_rows(
        self,
        frame: pd.DataFrame,
        coded: FloatArray,
        task: Task,
        n_jobs: int,
        progress: bool | None,
        checkpoint: str | Path | None = None,
    ) -> Explanations:
        """Explain rows that are read, in order.

        Parameters
        ----------
        frame : DataFrame (n, n_columns)
            As the user gave them.
        coded : (n, n_features) float64
            The same rows.
        task : Task
        n_jobs : int
            Rows solved at the same time, in processes of their own; -1 for one per core.
        progress : bool or None
            Progress bar on stderr; None: only on a terminal and for several rows.
        checkpoint : path, optional
            File that keeps finished rows, and from which they are taken.
        """
        engine = self.engine(task)  # refuses before any row is solved
        if not len(frame):
            raise DataError(NO_ROWS)
        task = replace(task, options=_with_memory(task.options, n_jobs))
        alone = len(frame) == 1 and checkpoint is None
        with within(memory=task.options.memory_limit):
            if alone:
                make_ready(engine, task)
                self.checking = max(self.checking, self.prepared.judging)  # of a batch, each row's share of a call
            begin = time.perf_counter()
            believed = self.believed_row(frame, coded[0], task) if alone else None
            rows = self.asked_rows(frame, coded, task) if believed is None else [believed]
        explain_each = partial(self.explain_each, task=task)
        identity = {} if checkpoint is None else kept_rows.fingerprint(self.model, rows, task, self.pose)
        with Checkpoint(checkpoint, identity, partial(kept_rows.check, len(rows))) as kept:
            tell_of_reading(self.space)
            found = {k: kept_rows.restored(record, rows[k], self.classes) for k, record in kept.done.items()}
            left = [k for k in range(len(rows)) if k not in found]
            # completions of gaps are the row's own
            groups = same_rows(rows, left) if task.imputations is None else [[k] for k in left]
            with ProgressBar(len(rows), enabled=progress) as bar:
                for explanations in found.values():
                    bar.advance(explanations[0].status)

                def finished(place: int, explanations: list[Explanation]) -> None:
                    for k in groups[place]:
                        own = explanations if k == groups[place][0] else told_to(explanations, rows[k])
                        if checkpoint is not None and kept_rows.is_finished(explanations):
                            kept.add(k, kept_rows.record_of(own))
                        found[k] = own
                        bar.advance(explanations[0].status)

                # what comes before the search is part of a single row's time
                with within(task.seconds_after(time.perf_counter() - begin) if alone else None):
                    solved = run_batch(explain_each, [rows[group[0]] for group in groups], n_jobs, finished)
                for group, explanations in zip(groups, solved, strict=True):
                    found |= {k: told_to(explanations, rows[k]) for k in group if k not in found}
        if open_rows := sum(explanations[0].status == "interrupted" for explanations in found.values()):
            logger.warning("interrupted: %d of %d rows are finished and kept", len(rows) - open_rows, len(rows))
        return Explanations(e for k in range(len(rows)) for e in found[k])

    def _beside_faulty(self, frame: pd.DataFrame, question: Question) -> Explanations:
        """Explanations of rows, in order; those with a fault of their own have status ``"error"``."""

        def explain(rows: pd.DataFrame) -> Explanations:
            own, coded, task = self.read(rows, question)
            self.check(coded, task)
            return self.explain_rows(own, coded, task, question.n_jobs, question.progress, question.checkpoint)

        def read(rows: pd.DataFrame) -> None:
            own, coded, task = self.read(rows, question)
            if len(own):
                self.asked_rows(own, coded, task)

        faults = self.space.broken_rows(frame)
        sound = [k for k in range(len(frame)) if k not in faults]
        try:
            answers = explain(frame.iloc[sound] if faults else frame) if sound or not faults else Explanations()
        except OcfError:
            further = faulty_rows(frame.iloc[sound], read)
            if not further:
                raise
            faults |= {sound[k]: words for k, words in further.items()}
            sound = [k for k in sound if k not in faults]
            answers = explain(frame.iloc[sound])
        if not faults:
            return answers
        found = dict(zip(sound, answers.by_row(), strict=True))
        for k, words in faults.items():
            found[k] = Explanations([failed(frame.index[k], frame.iloc[[k]], "error", words)])
        return Explanations(e for k in range(len(frame)) for e in found[k])

    def explain_each(self, rows: Sequence[AskedRow], task: Task) -> Iterator[list[Explanation]]:
        """The explanations of each row, in order.

        Parameters
        ----------
        rows : sequence of AskedRow
        task : Task
        """
        return (self.explain_row(row, task) for row in rows)

    def explain_row(self, row: AskedRow, task: Task) -> list[Explanation]:
        """Explain one row, as often as asked for; one that fails gives an explanation with status ``"error"``.

        Parameters
        ----------
        row : AskedRow
        task : Task
        """
        _table = row.original  # made once for all that ask for it

        def explained() -> list[Explanation]:
            make_ready(self.engine(task), task)
            with task.within_limits():
                return self.explanations_of(row, task, self.pose(row, task))

        return self.unless_it_fails(row, task, explained)

    def unless_it_fails(self, row: AskedRow, task: Task, work: Callable[[], T]) -> T | list[Explanation]:
        """What some work on a row gives, or an explanation with status ``"error"`` where it fails.

        Parameters
        ----------
        row : AskedRow
        task : Task
        work : callable
        """
        try:
            return work()
        except TimeLimitError as error:
            return [self._failed(row, task, str(error), "unknown")]
        except OcfError as error:
            return [self._failed(row, task, str(error))]
        except MemoryError:
            return [self._failed(row, task, f"there is not enough memory: {REMEDY}")]
        except Exception as error:  # one failing row never loses the others
            if is_interruption(error):
                raise KeyboardInterrupt from error
            logger.exception("row %r failed", row.label)
            return [self._failed(row, task, internal(error))]

    def explanations_of(self, row: AskedRow, task: Task, problem: P) -> list[Explanation]:
        """The explanations of a row whose problem is known.

        Parameters
        ----------
        row : AskedRow
        task : Task
        problem : Problem or LinearProblem
            Of the row.
        """
        return [self.solve(row, task, problem)]

    def detector(self, task: Task, problem: P) -> Detector | None:
        """Isolation forest that is asked beside the model; None where there is none.

        Parameters
        ----------
        task : Task
        problem : Problem or LinearProblem
        """
        return self.prepared.detector(task.plausibility, problem.target)

    def solve(self, row: AskedRow, task: Task, problem: P, excluded: tuple[IntArray, ...] = ()) -> Explanation:
        """Solve a problem of a row, away from some choices of leaves, and explain what was found.

        Parameters
        ----------
        row : AskedRow
        task : Task
        problem : Problem or LinearProblem
            Of the row.
        excluded : tuple of (n_trees,) int64
            Choices of leaves that the answer may not lie in.
        """
        begin = time.perf_counter()
        detector = self.detector(task, problem)
        judge = self.prepared.judge(row, problem, detector)
        # the check of the answer is part of the time
        with within(max(seconds_left() - self.checking, 0.0)):
            found = answer(self.engine(task), problem, task, judge, excluded)
        explanation = self.explained(row, found, detector=detector, seconds=time.perf_counter() - begin)
        self.checking = explanation.times["verify"]
        return explanation

    def explained(
        self,
        row: AskedRow,
        found: Finding[P],
        *,
        detector: Detector | None = None,
        seconds: float | None = None,
        model: UserModel | None = None,
        tables: AnswerTables | None = None,
    ) -> Explanation:
        """Explanation of what was found, verified, without claims that rest on what is not known of the model.

        Parameters
        ----------
        row : AskedRow
        found : Finding
        detector : Detector, optional
            Of the plausibility that was asked for.
        seconds : float, optional
            All that finding took; by default what its steps took.
        model : UserModel, optional
            The user's model, with answers at hand.
        tables : AnswerTables, optional
            Of the answer, about which that model has its answers.
        """
        why = self.prepared.unproven(found.problem)
        if why:
            complete = None if found.ties_complete is None else False
            found = replace(found, outcome=unproven(found.outcome, why), ties_complete=complete)
        rests_on = self.prepared.model.rests_on
        if rests_on:
            said = with_remark(found.outcome.message, rests_on)
            method = {**found.method, "rests_on": rests_on}
            found = replace(found, outcome=replace(found.outcome, message=said), method=method)
        return from_finding(
            found,
            row,
            model or self.model,
            self.classes,
            detector=detector,
            seconds=seconds,
            tables=tables,
        )

    def _failed(self, row: AskedRow, task: Task, message: str, status: str = "error") -> Explanation:
        target = None if isinstance(task.target, str) and task.target == "opposite" else task.target
        predicted = row.answer(self.classes)
        return failed(row.label, row.original, status, message, predicted=predicted, target=target)


def _with_memory(options: SolverOptions, n_jobs: int) -> SolverOptions:
    """Options with a limit of memory: where nobody says, processes share three quarters of what is free."""
    if options.memory_limit is not None:
        return options
    from joblib import effective_n_jobs

    return replace(options, memory_limit=default_memory(effective_n_jobs(n_jobs) if n_jobs else 1))

"""From a question about trees to tasks, problems and explanations of rows: what is behind an Explainer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray, IntArray
from ocf.errors import DataError, OcfError
from ocf.explain.answer_box import box_of
from ocf.explain.asking import Asking
from ocf.explain.diagnosis import diagnosed, with_hint
from ocf.explain.diverse import explain_several
from ocf.explain.explanation import Explanation
from ocf.explain.question import DefaultLimit, Question, warn_of_broken
from ocf.explain.together import Together
from ocf.features.frames import FrameKind
from ocf.features.row_dtypes import conformed, in_dtypes_of, other_gaps
from ocf.models.foreseen import answers_row_by_row
from ocf.models.gaps import Gaps, posed
from ocf.models.indistinct import refuse_beyond_double, split_numbers
from ocf.models.plausibility import Plausibility
from ocf.models.user_model import UserModel
from ocf.problem.constraints import Constraint
from ocf.problem.missing import Missing
from ocf.problem.problem import Problem
from ocf.problem.quadratic import names_mahalanobis, parse_norm, rows_with_numbers
from ocf.problem.targets import parse_target
from ocf.solve.cell_engine import CellEngine
from ocf.solve.class_costs import checked_class_costs
from ocf.solve.completed import completed_problem, completed_rows
from ocf.solve.leaf_engine import LeafEngine
from ocf.solve.method import formulation_for
from ocf.solve.prepared import PreparedModel
from ocf.solve.task import AskedRow, Task
from ocf.support.messages import with_remark


class TreeAsking(Asking[Problem]):
    """Explains rows of one model of trees.

    Parameters
    ----------
    prepared : PreparedModel
    frames : FrameKind
        Of the data.
    missing : Missing or None
        What may happen to missing values, where a question does not say so.
    constraints : tuple of Constraint
        Those of every row, where a question has none of its own.

    Attributes
    ----------
    leaves : LeafEngine
        Asks the leaves of trees with hyperplanes, and of single trees.
    """

    prepared: PreparedModel

    def __init__(
        self,
        prepared: PreparedModel,
        frames: FrameKind,
        missing: Missing | None,
        constraints: tuple[Constraint, ...],
    ) -> None:
        if missing is not None:
            missing.changes(prepared.space)  # refuses features that there are not
        self.missing, self.constraints = missing, constraints
        self._held_against_data: set[str] = set()
        self._ensemble = prepared.ensemble
        self._split = split_numbers(self._ensemble, prepared.encoding_of(prepared.space))
        self.leaves = LeafEngine(prepared)
        super().__init__(prepared, (CellEngine(prepared), self.leaves), frames)

    def __getstate__(self) -> dict[str, Any]:
        """State for other processes and files, where nothing has been told yet."""
        return {**self.__dict__, "_held_against_data": set()}

    def read(self, frame: pd.DataFrame, question: Question) -> tuple[pd.DataFrame, FloatArray, Task]:
        """Rows, the same coded, and what is asked of them, in their dtypes.

        Parameters
        ----------
        frame : DataFrame (n, n_columns)
        question : Question
        """
        coded, task = self.space.from_frame(frame), self._task(question)
        others = other_gaps(frame.rename(columns=str), self.space)
        given, frame = frame, conformed(frame, self.space)
        self._refuse_told_apart(given, frame, others)
        refuse_beyond_double(frame, self._split)
        space, coded = in_dtypes_of(task.space, frame, coded)
        # refuses missing values without a rule; completions leave none
        for gaps in () if task.imputations is not None else Gaps.groups(coded, space):
            self.prepared.partition(gaps, None, space)
        return frame, coded, replace(task, space=space, other_gaps=others)

    def check(self, coded: FloatArray, task: Task) -> None:
        """Refuse a target and constraints that mean nothing, whatever the row, and warn of constraints that data break.

        Parameters
        ----------
        coded : (n, n_features) float64
        task : Task
        """
        known = self.prepared.data.complete
        warn_of_broken(task.constraints, self.space, coded, known, self._held_against_data)
        parse_target(self._ensemble, task.target, 0, task.probability)

    def _refuse_told_apart(
        self, given: pd.DataFrame, frame: pd.DataFrame, others: Mapping[str, Mapping[str, str]]
    ) -> None:
        """Refuse rows with marks of missing words that the model tells apart, where the data miss none of these.

        Parameters
        ----------
        given, frame : DataFrame (n, n_columns)
            With the rows' own marks, and with those that the model is shown.
        others : mapping
            Of `other_gaps`.
        """
        known = self.prepared.data.all
        for name, marks in others.items():
            at = self.space.index(name)
            missing = frame[self.space.features[at].columns[0]].isna().to_numpy()
            if known is not None and np.isnan(known[:, at]).any():
                continue
            try:
                before = self.model.decide(given[missing])
            except OcfError:
                continue
            if not np.array_equal(before, self.model.decide(frame[missing])):
                raise DataError(
                    f"column {name!r}: the model tells {marks['row']}, which marks a missing word in the rows, from "
                    f"{marks['data']}, and the data, which miss none, do not say which is meant: write {marks['data']}"
                )

    def _task(self, question: Question) -> Task:
        """What is asked of every row."""
        q = question
        priced = checked_class_costs(self.classes, q.class_costs) if q.class_costs is not None else {}
        wish = Plausibility.parse(q.plausibility)
        known, used = self.prepared.data.all, self.prepared.data.used()
        space = q.space_of(self.space, self.missing, known)
        if used and names_mahalanobis(q.norm):
            used["covariance"] = len(rows_with_numbers(space, known))
        return Task(
            target=tuple(priced) if priced else q.target,
            probability=q.probability,
            cost=parse_norm(q.norm, space, known),
            space=space,
            formulation=formulation_for(self.prepared.trees, q.formulation, q.split_margin > 0 or bool(priced), wish),
            solver=q.solver,
            split_margin=q.split_margin,
            class_costs=tuple(priced.items()),
            options=q.solver_options,
            reduce=q.reduce,
            cross_check=q.cross_check,
            n_optimal=q.n_optimal,
            plausibility=wish,
            constraints=q.constraints_of(self.space, self.constraints),
            several=q.several,
            diagnose=q.diagnose,
            box=q.box,
            data=used,
            imputations=q.imputations,
            share=float(q.share),
            break_ties=q.break_ties,
            margins=q.margins_of(self.space),
            compiles_ahead=isinstance(q.time_limit, DefaultLimit),
        )

    def asked_rows(self, frame: pd.DataFrame, coded: FloatArray, task: Task) -> list[AskedRow]:
        """As of all models; of a row with completions, what most of these get is its class or value.

        Parameters
        ----------
        frame : DataFrame (n, n_columns)
        coded : (n, n_features) float64
        task : Task
        """
        if task.imputations is not None:
            return completed_rows(self.prepared, frame, coded, task.imputations, task.share)
        return super().asked_rows(frame, coded, task)

    def current(self, table: pd.DataFrame, coded: FloatArray, task: Task) -> list[Any]:
        """As of all models; the rows are looked at, too: what comes before the trees is asked about them once.

        Parameters
        ----------
        table : DataFrame (n, n_columns)
        coded : (n, n_features) float64
        task : Task
        """
        decision = self._ensemble.decision
        if not decision.classes and (decision.slack > 0 or not answers_row_by_row(self.model)):
            # values may follow the number of rows, by a last bit
            ask, rows = super().current, range(len(table))
            current = [answer for k in rows for answer in ask(table.iloc[[k]], coded[[k]], task)]
        else:
            current = super().current(table, coded, task)
        self.prepared.passed.look(coded, task.space, table, self.model.encode)
        return current

    def believed_row(self, frame: pd.DataFrame, coded: FloatArray, task: Task) -> AskedRow | None:
        """A row with the class that the trees give it, where the user's model is asked about row and answer together.

        Parameters
        ----------
        frame : DataFrame (1, n_columns)
            As the user gave it.
        coded : (n_features,) float64
            The same row.
        task : Task
        """
        if not (self.classes and self._judged_together(task)):
            return None
        try:
            origin, space = posed(coded, task.space)
            self.prepared.encoding_of(space).refuse_unknown(space, origin)
            trees = self.prepared.partition(Gaps.of(origin, space), None, space).ensemble
        except OcfError:
            return None  # the way of every row says what is wrong
        self.prepared.passed.trust(origin, space)
        current = int(trees.decide(trees.scores(origin[None]))[0])
        return AskedRow(frame.index[0], frame, coded, current, believed=True)

    def _judged_together(self, task: Task) -> bool:
        """Whether points are taken on the word of the trees until the user's model is asked about many."""
        return task.is_plain and isinstance(self.engine(task), CellEngine) and answers_row_by_row(self.model)

    def settled(self, row: AskedRow, task: Task, model: UserModel) -> tuple[AskedRow, bool]:
        """A row that was believed with what the user's model gives it, and whether all that was believed holds.

        Parameters
        ----------
        row : AskedRow
        task : Task
        model : UserModel
            The user's model, with answers at hand.
        """
        current = int(model.decide(row.original)[0])
        sound = self.prepared.passed.look(row.coded[None], task.space, row.original, model.encode)
        return replace(row, current=current, believed=False), sound and current == row.current

    def pose(self, row: AskedRow, task: Task) -> Problem:
        """The problem of a row.

        Parameters
        ----------
        row : AskedRow
        task : Task
        """
        current = int(row.current) if self.classes else None
        target = parse_target(self._ensemble, task.target, current, task.probability)
        if row.imputed is not None:
            wish = task.plausibility
            return completed_problem(self.prepared, row, target, task.cost, task.space, task.constraints, wish)
        p = self.prepared.problem(row.coded, target, task.cost, task.space, task.constraints, task.plausibility)
        return p if task.margins is None else p.guarded(task.margins)

    def explain_each(self, rows: Sequence[AskedRow], task: Task) -> Iterator[list[Explanation]]:
        """The explanations of each row, in order; plain questions are judged by the user's model together.

        Parameters
        ----------
        rows : sequence of AskedRow
        task : Task
        """
        found = Together(self, task).explain(rows) if self._judged_together(task) else super().explain_each(rows, task)
        return found if task.diagnose else map(with_hint, found)

    def explanations_of(self, row: AskedRow, task: Task, problem: Problem) -> list[Explanation]:
        """The best explanation of a row, the best that differ, and what conflicts where there is none.

        Parameters
        ----------
        row : AskedRow
        task : Task
            Says how many are wanted, and whether to find out what conflicts.
        problem : Problem
            Of the row.
        """

        def ask(problem: Problem, excluded: tuple[IntArray, ...]) -> Explanation:
            with task.within_limits(anew=True):
                return self.solve(row, task, problem, excluded)

        found = explain_several(self.solve(row, task, problem), ask, problem, task.several)
        if task.diagnose and found[0].status == "infeasible":
            found[0] = diagnosed(self.prepared, self.engine(task), row, task, problem, found[0])
        return [self._with_box(e, task) for e in found] if task.box else found

    def _with_box(self, explanation: Explanation, task: Task) -> Explanation:
        """An explanation with the largest box around its counterfactual, or why there is none."""
        if not explanation.found:
            return explanation
        try:
            with task.within_limits(anew=True):
                return replace(explanation, box=box_of(self.prepared, explanation).to_dict())
        except OcfError as error:
            said = with_remark(explanation.message, f"no box: {error}")
            return replace(explanation, message=said)

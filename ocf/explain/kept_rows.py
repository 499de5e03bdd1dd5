"""Explanations of finished rows in a file, so that a batch that was stopped goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from ocf.errors import DataError, OcfError
from ocf.explain.explanation import Explanation, Explanations
from ocf.problem.problem import Problem
from ocf.support.json_records import unpack

if TYPE_CHECKING:
    from ocf.models.user_model import UserModel
    from ocf.problem.linear_problem import LinearProblem
    from ocf.solve.task import AskedRow, Task

#: Statuses of rows that are done again: what failed may have been cured.
OPEN = ("error", "interrupted")

#: Parts of a task that the problem of a row holds, or that leave the answers as they are.
_ELSEWHERE = ("cost", "space", "constraints", "plausibility", "data", "options", "compiles_ahead")

#: Options of a solver that bear on the answers, beside its own.
_OPTIONS = ("time_limit", "mip_gap", "threads", "seed", "cuts")


def fingerprint(
    model: UserModel, rows: Sequence[AskedRow], task: Task, pose: Callable[[AskedRow, Task], Problem | LinearProblem]
) -> str:
    """Of everything that the answers depend on: the model, the rows, and what is asked of them.

    Parameters
    ----------
    model : UserModel
    rows : sequence of AskedRow
    task : Task
    pose : callable
        Row and task -> the problem of the row.
    """
    import joblib

    asked = {f.name: getattr(task, f.name) for f in fields(task) if f.name not in _ELSEWHERE}
    options = [getattr(task.options, name) for name in _OPTIONS], dict(task.options.options)
    coded = [(str(row.label), row.coded, row.current) for row in rows]
    return str(joblib.hash((_trees(model), _first_problem(rows, task, pose), asked, options, coded)))


def _trees(model: UserModel) -> Any:
    """The trees as they were read; of linear models the problem of a row holds all."""
    ensemble = getattr(model.trees, "ensemble", None)
    return None if ensemble is None else ensemble.to_dict()


def _first_problem(
    rows: Sequence[AskedRow], task: Task, pose: Callable[[AskedRow, Task], Problem | LinearProblem]
) -> Any:
    """The problem of the first row that has one: features, cost, and the model beyond the preprocessing."""
    for row in rows:
        try:
            problem = pose(row, task)
        except OcfError:
            continue
        if isinstance(problem, Problem):
            return problem.to_json()
        parts = problem.constant, problem.slopes, problem.tables
        return problem.space.to_dict(), problem.target.to_dict(), problem.cost.to_dict(), parts
    return None


def is_finished(explanations: Sequence[Explanation]) -> bool:
    """Whether the explanations of a row need not be sought again."""
    return all(e.status not in OPEN for e in explanations)


def record_of(explanations: Sequence[Explanation]) -> dict[str, Any]:
    """JSON-ready record of the explanations of a row."""
    return Explanations(explanations).to_dict()


def check(n_rows: int, row: int, record: dict[str, Any]) -> None:
    """Refuse a record that cannot be one of these rows.

    Parameters
    ----------
    n_rows : int
    row : int
        Its place.
    record : dict
    """
    if row >= n_rows:
        raise DataError("it names a row that does not exist")
    if not unpack(record):
        raise DataError("it holds no explanation")
    for one in unpack(record):
        Explanation.from_dict(one)


def restored(record: dict[str, Any], row: AskedRow, classes: tuple[Any, ...]) -> list[Explanation]:
    """Explanations of a record, under the row's own label and with its own columns.

    Parameters
    ----------
    record : dict
    row : AskedRow
    classes : tuple
        Class labels; empty for a regressor.
    """

    def own(table: pd.DataFrame) -> pd.DataFrame:
        return table.set_axis(row.original.columns, axis=1).set_axis(row.original.index, axis=0)

    return [
        replace(
            e,
            row=row.label,
            original=row.original,
            counterfactual=None if e.counterfactual is None else own(e.counterfactual),
            ties=tuple(map(own, e.ties)),
            predicted=row.answer(classes),
        )
        for e in Explanations.from_dict(record)
    ]

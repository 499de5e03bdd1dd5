"""Explanations of finished rows in a file, so that a batch that was stopped goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ocf.errors import DataError
from ocf.explain.explanation import Explanation, Explanations
from ocf.problem.problem import Problem
from ocf.support.interruption import is_interruption
from ocf.support.json_records import unpack

if TYPE_CHECKING:
    from ocf.models.user_model import UserModel
    from ocf.problem.linear_problem import LinearProblem
    from ocf.solve.task import AskedRow, Task
    from ocf.trees.ensemble import Ensemble

#: Statuses of rows that are done again: what failed may have been cured.
OPEN = ("error", "interrupted")

#: Parts of a task that the problem of a row holds, or that leave the answers as they are.
_ELSEWHERE = ("target", "cost", "space", "constraints", "plausibility", "data", "options", "compiles_ahead")

#: Options of a solver that bear on the answers, beside its own.
_OPTIONS = ("time_limit", "mip_gap", "threads", "seed", "cuts")

#: How parts of a task are asked for, where they have other names there.
_ASKED_BY = {"several": "n_explanations or diversity", "margins": "margin", "other_gaps": "the marks of missing words"}


def fingerprint(
    model: UserModel, rows: Sequence[AskedRow], task: Task, pose: Callable[[AskedRow, Task], Problem | LinearProblem]
) -> dict[str, str]:
    """Digests of everything that the answers depend on, by what it is: the model, the rows, and what is asked of them.

    Parameters
    ----------
    model : UserModel
    rows : sequence of AskedRow
    task : Task
    pose : callable
        Row and task -> the problem of the row.
    """
    held: dict[str, Any] = {
        "the model": _trees(model),
        "the rows": [(str(row.label), row.coded, row.current) for row in rows],
        "target": tuple(task.target) if isinstance(task.target, tuple) else task.target,  # whatever tuple it is
    }
    held |= {_ASKED_BY.get(f.name, f.name): getattr(task, f.name) for f in fields(task) if f.name not in _ELSEWHERE}
    held |= {name: _plain(getattr(task.options, name)) for name in _OPTIONS} | {"options": dict(task.options.options)}
    held["the features, the cost or the model's steps"] = _problems(model, rows, task, pose)
    return {name: _digest(part) for name, part in held.items()}


def _plain(value: Any) -> Any:
    """An option, of which it does not matter whether it was stated, nor whether as a whole number."""
    return float(value) if isinstance(value, int | float) else value


def _digest(held: Any) -> str:
    import joblib

    return str(joblib.hash(held))


def _trees(model: UserModel) -> Any:
    """The trees as they were read; of linear models the problem of a row holds all."""
    ensemble = getattr(model.trees, "ensemble", None)
    return None if ensemble is None else ensemble.to_dict()


def _problems(
    model: UserModel,
    rows: Sequence[AskedRow],
    task: Task,
    pose: Callable[[AskedRow, Task], Problem | LinearProblem],
) -> list[str]:
    """Digests of the problem of a row of each kind: features, cost, and the trees beyond the preprocessing.

    Rows are of a kind if they miss the same values and have the same class, of which the target may follow. What the
    steps before the trees, or an isolation forest, make of a value is seen only in problems of rows that have it.
    """
    found: dict[Hashable, str] = {}
    for row in rows:
        kind = (np.isnan(row.coded).tobytes(), row.current if model.classes else None)
        if kind in found:
            continue
        try:
            problem = pose(row, task)
        except Exception as error:  # the row itself will say so
            if is_interruption(error):
                raise KeyboardInterrupt from error
            continue
        if not isinstance(problem, Problem):
            parts = problem.constant, problem.slopes, problem.tables
            found[kind] = _digest((problem.space.to_dict(), problem.target.to_dict(), problem.cost.to_dict(), parts))
        elif found:  # the text of large trees takes seconds
            depth = problem.plausibility
            beside = None if depth is None else (_arrays(depth.forest), depth.least)
            found[kind] = _digest((_arrays(problem.ensemble), problem.target.to_dict(), beside))
        else:
            found[kind] = _digest(problem.to_json())
    return [*found.values()]


def _arrays(trees: Ensemble) -> list[Any]:
    """What the arrays hold, however they lie in memory: pickling changes the strides of empty ones."""
    arrays = [value for f in fields(trees) if isinstance(value := getattr(trees, f.name), np.ndarray)]
    return [(value.dtype.str, value.shape, value.tobytes()) for value in arrays]


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
            counterfactual=own(e.counterfactual) if e.found else None,
            ties=tuple(map(own, e.ties)),
            predicted=row.answer(classes),
        )
        for e in Explanations.from_dict(record)
    ]

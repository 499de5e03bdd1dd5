"""From what an engine found to an explanation in the user's words."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from ocf.arrays import FloatArray
from ocf.explain.answer import TIMES
from ocf.explain.explanation import Explanation
from ocf.features.one_row import ChangedRow
from ocf.models.foreseen import with_answers
from ocf.solve.outcome import AT_GAP
from ocf.solvers.result import Status, relative_gap
from ocf.verify.check import Claims, Verification, verify
from ocf.verify.partway import partway_shown, partway_tables

if TYPE_CHECKING:
    from ocf.features.space import FeatureSpace
    from ocf.models.detector import Detector
    from ocf.models.user_model import UserModel
    from ocf.problem.linear_problem import LinearProblem
    from ocf.problem.problem import Problem
    from ocf.solve.engine import Finding
    from ocf.solve.outcome import Outcome
    from ocf.solve.task import AskedRow


class AnswerTables(NamedTuple):
    """What the user's model is asked about for an answer, beside the row.

    Attributes
    ----------
    point : DataFrame (1, n_columns)
        Of the point that was found.
    between : list of DataFrame (1, n_columns)
        The row with the first of its changes, with the first two, and so on, without the last. None of a row with
        completions.
    """

    point: pd.DataFrame
    between: list[pd.DataFrame]


def answer_tables(found: Finding[Any], row: AskedRow) -> AnswerTables | None:
    """Tables of the point that was found and of the way to it; None where none was.

    Parameters
    ----------
    found : Finding
    row : AskedRow
    """
    if found.outcome.point is None:
        return None
    point = _table(found, row, found.outcome.point)
    columns = [f.columns for f in found.problem.space.features]
    return AnswerTables(point, [] if row.imputed is not None else partway_tables(row.original, point, columns))


def from_finding(
    found: Finding[Any],
    row: AskedRow,
    model: UserModel,
    classes: tuple[Any, ...],
    *,
    detector: Detector | None = None,
    seconds: float | None = None,
    tables: AnswerTables | None = None,
) -> Explanation:
    """Explanation of what an engine found, verified.

    Parameters
    ----------
    found : Finding
    row : AskedRow
    model : UserModel
    classes : tuple
        Class labels, by index; empty for a regressor.
    detector : Detector, optional
        Of the plausibility that was asked for.
    seconds : float, optional
        All that finding took; by default what its steps took.
    tables : AnswerTables, optional
        About which the model has its answers at hand; else it is asked about row, answer and ties in one call.
    """
    problem, outcome = found.problem, found.outcome
    status, message = _honest_status(outcome)
    begin = time.perf_counter()
    asked = tables or answer_tables(found, row)
    counterfactual, between = asked or (None, [])
    ties = tuple(_table(found, row, point) for point in found.ties)
    if counterfactual is not None and row.imputed is None and tables is None:
        model = with_answers(model, (row.original, counterfactual, *ties, *between))
    verification, plausible = _check(found, row, model, classes, detector, counterfactual)
    of_ties = [_check(found, row, model, classes, detector, table)[0].problems for table in ties]
    checks = (*verification.problems, *(f"Tie {k}: {p}" for k, own in enumerate(of_ties, 1) for p in own))
    return Explanation(
        row=row.label,
        status=status,
        original=row.table,
        counterfactual=None if outcome.point is None else _changed(found, row, outcome.point),
        predicted=row.answer(classes),
        target=problem.target.named(classes),
        probability=problem.target.probability,
        decided=verification.decided,
        cost=outcome.cost,
        bound=float(outcome.bound),
        gap=relative_gap(outcome.cost, outcome.bound),
        times=_times(found, seconds, time.perf_counter() - begin),
        nodes=outcome.nodes,
        refused=outcome.refused,
        proved_by=outcome.proved_by,
        method=found.method | _table_read(problem.space),
        sizes=dict(outcome.sizes),
        history=outcome.history,
        verified=counterfactual is not None and not checks,
        checks=checks,
        message=message,
        space=problem.space,
        norm=problem.cost,
        classes=tuple(classes),
        problem=problem,
        plausibility=plausible,
        constraints=problem.constraints,
        ties=ties,
        ties_complete=found.ties_complete,
        ranges=tuple(map(dict, found.ranges)),
        imputations=None if row.imputed is None else row.imputed.to_dict() | {"met": verification.met},
        probabilities=verification.probabilities,
        partway=None if counterfactual is None or row.imputed is not None else partway_shown(model, between),
        margins=_margins(problem),
    )


def failed(
    row: Any,
    original: pd.DataFrame,
    status: str,
    message: str,
    *,
    predicted: Any = None,
    target: Any = None,
    problem: Problem | LinearProblem | None = None,
) -> Explanation:
    """Explanation of a row that was not solved.

    Parameters
    ----------
    row : label
    original : DataFrame (1, n_columns)
    status : {"error", "interrupted", "unknown"}
    message : str
        The cause, and what to do.
    predicted, target : label, optional
    problem : Problem or LinearProblem, optional
        As far as they are known.
    """
    return Explanation(
        row=row,
        status=status,
        original=original,
        predicted=predicted,
        target=target,
        message=message,
        space=problem.space if problem else None,
        norm=problem.cost if problem else None,
        problem=problem,
    )


def interrupted(row: AskedRow) -> Explanation:
    """Explanation of a row that was not finished when the user asked to stop."""
    return failed(row.label, row.original, "interrupted", "interrupted by the user")


def _table(found: Finding[Any], row: AskedRow, point: FloatArray) -> pd.DataFrame:
    """A coded point as a table of one row, like the user's."""
    return _changed(found, row, point)()


def _changed(found: Finding[Any], row: AskedRow, point: FloatArray) -> ChangedRow:
    """What makes that table."""
    return ChangedRow(row.table, found.problem.space, found.problem.origin, point)


def _check(
    found: Finding[Any],
    row: AskedRow,
    model: UserModel,
    classes: tuple[Any, ...],
    detector: Detector | None,
    table: pd.DataFrame | None,
) -> tuple[Verification, dict[str, Any] | None]:
    """The independent check of an answer, a table of one row or none, and what is said of its plausibility."""
    problem, outcome = found.problem, found.outcome
    plausible = None
    if detector and table is not None:
        completed = None if row.imputed is None else row.imputed.complete(table)
        if row.imputed is None or completed is None:
            plausible = detector.report(table)
        else:
            met = model.meets(problem.target, completed)
            plausible = detector.report(completed[met] if met.any() else completed, row.imputed.least)
    verification = verify(
        model,
        row.original,
        table,
        target=problem.target.named(classes),
        probability=problem.target.probability,
        features=problem.space.to_dict(),
        norm=problem.cost.to_dict(),
        claims=Claims(
            _honest_status(outcome)[0],
            outcome.cost,
            outcome.bound,
            predicted=row.answer(classes),
            plausibility=plausible,
        ),
        forest=detector.recount if detector else None,
        constraints=[c.to_dict() for c in problem.constraints],
        imputations=None if row.imputed is None else row.imputed.to_dict(),
        margins=_margins(problem),
    )
    return verification, plausible


def _margins(problem: Problem | LinearProblem) -> dict[str, float]:
    """How far changed values stand from thresholds; linear models have none."""
    return dict(getattr(problem, "margins", ()))


def _honest_status(outcome: Outcome) -> tuple[str, str]:
    """Status and message; a solver that stopped at a gap that was asked for has proven no optimality."""
    if outcome.status is Status.OPTIMAL and relative_gap(outcome.cost, outcome.bound) > 0:
        return Status.FEASIBLE.value, outcome.message or AT_GAP
    return outcome.status.value, outcome.message


def _times(found: Finding[Any], seconds: float | None, verifying: float) -> dict[str, float]:
    """Seconds of each step, and in all."""
    times = dict.fromkeys(TIMES, 0.0) | found.built | found.outcome.times
    total = sum(times.values()) if seconds is None else seconds
    return times | {"verify": verifying, "total": total + verifying}


def _table_read(space: FeatureSpace) -> dict[str, Any]:
    """What an answer keeps of how its table was read."""
    return {} if space.reading is None else {"table": space.reading.to_dict()}

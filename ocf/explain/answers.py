"""From the outcome of a solve to an explanation in the user's words."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ocf.explain.answer import TIMES
from ocf.explain.explanation import Explanation
from ocf.features.space import counterfactual_frame
from ocf.solvers.result import Status, relative_gap
from ocf.verify.check import Claims, Verification, verify

if TYPE_CHECKING:
    from ocf.arrays import FloatArray
    from ocf.models.plausibility import Detector
    from ocf.models.user_model import UserModel
    from ocf.problem.linear_problem import LinearProblem
    from ocf.problem.problem import Problem
    from ocf.solve.outcome import Outcome


# -- how explanations are made ---------------------------------------------------------------------------------


def from_outcome(
    outcome: Outcome,
    problem: Problem | LinearProblem,
    *,
    row: Any,
    original: pd.DataFrame,
    predicted: int | float,
    classes: tuple[Any, ...],
    model: UserModel,
    method: Mapping[str, Any],
    times: Mapping[str, float],
    detector: Detector | None = None,
    ties: Sequence[FloatArray] = (),
    ties_complete: bool | None = None,
    ranges: Sequence[Mapping[str, Any]] = (),
) -> Explanation:
    """Explanation of a solved problem, verified.

    Parameters
    ----------
    outcome : Outcome
    problem : Problem or LinearProblem
    row : label
    original : DataFrame (1, n_columns)
        The row as the user gave it.
    predicted : int or float
        Index of its class by the user's model, or the value.
    classes : tuple
        Class labels, by index; empty for a regressor.
    model : UserModel
    method : mapping
        ``formulation, solver, solver_version, options, reduction``.
    times : mapping
        Seconds that the outcome does not know: ``build``, ``compile`` and perhaps ``total`` so far.
    detector : Detector, optional
        Of the plausibility that was asked for.
    ties : sequence of (n_features,) float64
        Other optimal points, coded.
    ties_complete : bool, optional
        Whether these are all; None when they were not asked for.
    ranges : sequence of mappings
        See `ocf.solve.ties.same_cost`.
    """
    status, message = _honest_status(outcome)
    counterfactual = None
    if outcome.point is not None:
        counterfactual = counterfactual_frame(problem.space, original, problem.origin, outcome.point)
    target = problem.target.named(classes)
    probability = problem.target.probability
    answer = classes[int(predicted)] if classes else predicted
    begin = time.perf_counter()

    def report(table: pd.DataFrame | None) -> dict[str, Any] | None:
        return detector.report(table) if detector and table is not None else None

    def checked(table: pd.DataFrame | None) -> Verification:
        return verify(
            model,
            original,
            table,
            target=target,
            probability=probability,
            features=problem.space.to_dict(),
            norm=problem.cost.to_dict(),
            claims=Claims(status, outcome.cost, outcome.bound, predicted=answer, plausibility=report(table)),
            forest=detector.recount if detector else None,
            constraints=[c.to_dict() for c in problem.constraints],
        )

    plausible = report(counterfactual)
    verification = checked(counterfactual)
    others = [counterfactual_frame(problem.space, original, problem.origin, point) for point in ties]
    problems = [f"Tie {k}: {p}" for k, table in enumerate(others, 1) for p in checked(table).problems]
    return Explanation(
        row=row,
        status=status,
        original=original,
        counterfactual=counterfactual,
        predicted=answer,
        target=target,
        probability=probability,
        decided=verification.decided,
        cost=outcome.cost,
        bound=float(outcome.bound),
        gap=relative_gap(outcome.cost, outcome.bound),
        times=_times(outcome.times, times, time.perf_counter() - begin),
        nodes=outcome.nodes,
        refused=outcome.refused,
        proved_by=outcome.proved_by,
        method=_dicts(method),
        sizes=dict(outcome.sizes),
        history=outcome.history,
        verified=verification.ok and counterfactual is not None and not problems,
        checks=(*verification.problems, *problems),
        message=message,
        space=problem.space,
        norm=problem.cost,
        classes=tuple(classes),
        problem=problem,
        plausibility=plausible,
        constraints=problem.constraints,
        ties=tuple(others),
        ties_complete=ties_complete,
        ranges=tuple(map(dict, ranges)),
    )


def failed(
    row: Any,
    original: pd.DataFrame,
    status: str,
    message: str,
    *,
    predicted: Any = None,
    target: Any = None,
    classes: tuple[Any, ...] = (),
    problem: Problem | LinearProblem | None = None,
    method: Mapping[str, Any] | None = None,
    times: Mapping[str, float] | None = None,
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
    classes, problem, method, times : optional
        As far as they are known.
    """
    return Explanation(
        row=row,
        status=status,
        original=original,
        predicted=predicted,
        target=target,
        times=_times({}, times or {}, 0.0),
        method=_dicts(method or {}),
        message=message,
        space=problem.space if problem else None,
        norm=problem.cost if problem else None,
        classes=tuple(classes),
        problem=problem,
    )


def _honest_status(outcome: Outcome) -> tuple[str, str]:
    """Status and message; a solver that stopped at a gap that was asked for has proven no optimality."""
    if outcome.status is Status.OPTIMAL and relative_gap(outcome.cost, outcome.bound) > 0:
        return Status.FEASIBLE.value, outcome.message or "stopped at the gap that was asked for"
    return outcome.status.value, outcome.message


def _times(of_outcome: Mapping[str, float], known: Mapping[str, float], verifying: float) -> dict[str, float]:
    times = dict.fromkeys(TIMES, 0.0) | dict(of_outcome) | dict(known)
    times["verify"] = verifying
    rest = sum(v for k, v in times.items() if k not in ("total", "verify"))
    times["total"] = known.get("total", rest) + verifying
    return times


def _dicts(value: Any) -> Any:
    """Mappings made dicts all the way down: read-only views do not travel between processes."""
    return {k: _dicts(v) for k, v in value.items()} if isinstance(value, Mapping) else value

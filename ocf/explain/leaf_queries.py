"""More to ask of a single tree: all its leaves, growing margins, class costs, an ideal, and rows that exist.

Source: Carreira-Perpiñán and Hada, *Counterfactual explanations for oblique decision trees*, AAAI 2021, sections 3.7
and 3.9.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ocf.arrays import BoolArray, FloatArray
from ocf.errors import ProblemError
from ocf.explain.explanation import Explanation, Explanations
from ocf.models.labels import labelled
from ocf.models.plausibility import Detector, Plausibility
from ocf.problem.piecewise import exact_rows
from ocf.problem.problem import Problem
from ocf.problem.rows import satisfied
from ocf.solve.engines import Finding
from ocf.solve.leaf_answer import LeafAnswer
from ocf.solve.leaf_search import solve_leaves
from ocf.solve.method import AUTO, Way
from ocf.solve.outcome import Outcome
from ocf.solve.task import AskedRow
from ocf.solvers.result import SolverOptions, Status
from ocf.support.amounts import real_number

if TYPE_CHECKING:
    from ocf.explain.explainer import Explainer


def explain_leaves(
    explainer: Explainer, row: Any, target: Any = "opposite", norm: Any = "l1", **settings: Any
) -> Explanations:
    """The cheapest change into each leaf of a single tree that has the target: a diverse set (section 3.9).

    Parameters
    ----------
    explainer : Explainer
        Of a single tree.
    row : one-row DataFrame, Series, or array (n_columns,)
    target, norm, settings
        As in `Explainer.explain`.

    Returns
    -------
    Explanations
        Cheapest first, one for each leaf that admits a point. Only the first is optimal among all points; of the
        others the message says that they are the cheapest of their leaf, and the bound is that of the first.
    """
    first = _asked(explainer, row, target, norm, settings)
    if not isinstance(first.problem, Problem) or first.status == "error":
        return Explanations([first]).in_frames(explainer.frames_of(row))
    problem = first.problem
    place = _row_of(explainer, first.row, first.original, problem)
    query = explainer.query(problem, _options(settings), str(settings.get("solver", AUTO)))
    confirm = explainer.prepared.judge(place, problem)
    answers, outcome = solve_leaves(query, confirm, eps=float(settings.get("split_margin", 0.0)), every=True)
    found = [answer for answer in answers if answer.point is not None]
    if not found:
        return Explanations([first]).in_frames(explainer.frames_of(row))
    method = {**first.method, "solver": query.method_name}
    explanations = Explanations(
        explainer.explained(place, _finding(problem, _of_leaf(outcome, answer, k), method))
        for k, answer in enumerate(found)
    )
    return explanations.in_frames(explainer.frames_of(row))


def _of_leaf(outcome: Outcome, answer: LeafAnswer, k: int) -> Outcome:
    """Outcome of one leaf among those of the same query."""
    words = f"leaf {answer.leaf}"
    if k == 0:
        return replace(outcome, message=outcome.message or words)
    words += ": no point of it is cheaper" if answer.bound >= answer.cost else ""
    return replace(
        outcome,
        status=Status.FEASIBLE,
        point=answer.point,
        cost=answer.cost,
        bound=min(outcome.bound, answer.cost),
        proved_by="",
        message=words,
    )


def explain_margins(
    explainer: Explainer,
    row: Any,
    margins: Iterable[float],
    target: Any = "opposite",
    norm: Any = "l1",
    **settings: Any,
) -> Explanations:
    """The cheapest change for each of several margins to the splits, each starting from the one before (section 3.9).

    Parameters
    ----------
    explainer : Explainer
        Of a single tree.
    row : one-row DataFrame, Series, or array (n_columns,)
    margins : iterable of float
        At least 0; solved in increasing order.
    target, norm, settings
        As in `Explainer.explain`.

    Returns
    -------
    Explanations
        In the order of increasing margins.
    """
    given = [*margins]
    wanted = sorted(real_number(m) for m in given)
    if not wanted or not all(0 <= m < np.inf for m in wanted):
        raise ProblemError(f"margins must be numbers of at least 0, not {given}")
    first = _asked(explainer, row, target, norm, {**settings, "split_margin": wanted[0]})
    if not isinstance(first.problem, Problem) or first.status == "error":
        return Explanations([first]).in_frames(explainer.frames_of(row))
    problem = first.problem
    place = _row_of(explainer, first.row, first.original, problem)
    query = explainer.query(problem, _options(settings), str(settings.get("solver", AUTO)))
    confirm = explainer.prepared.judge(place, problem)
    out = []
    for margin in wanted:
        query.restart()
        _, outcome = solve_leaves(query, confirm, eps=margin)
        method = {**first.method, "solver": query.method_name}
        outcome = replace(outcome, message=outcome.message or f"every split of the path holds by {margin:g}")
        out.append(explainer.explained(place, _finding(problem, outcome, method)))
    return Explanations(out).in_frames(explainer.frames_of(row))


def improve(
    explainer: Explainer, row: Any, ideal: Mapping[str, Any], norm: Any = "l1", **settings: Any
) -> Explanations:
    """Stay in the class at a lower cost: how close a row may come to an ideal without losing its class.

    A client whose loan is granted may ask for the smallest down payment with which it still is (section 3.3, footnote
    2). The cost is then the distance from the ideal, so that the explanation's original is the row with the ideal
    values, and its target the row's own class.

    Parameters
    ----------
    explainer : Explainer
    row : one-row DataFrame, Series, or array (n_columns,)
    ideal : mapping of feature name to value
        The best that each of these features could be. They may lie between there and the row's own value; all others
        stay, unless `settings` say otherwise.
    norm, settings
        As in `Explainer.explain`.
    """
    frame = explainer.one_row_of(row)
    space = explainer.space
    own = space.from_frame(frame)
    current = explainer.prepared.current(own)[0]
    wished = space.to_frame(own)
    wished.index = frame.index
    permitted: dict[str, tuple[Any, ...]] = {}
    for name, value in ideal.items():
        feature = space.features[space.index(name)]
        if len(feature.columns) > 1 or feature.base:
            raise ProblemError(f"the ideal of {name!r} needs a feature of one column")
        column = feature.columns[0]
        present = wished[column].iloc[0]
        wished[column] = pd.Series([value], index=wished.index)
        if not feature.discrete:
            permitted[name] = (min(float(value), float(present)), max(float(value), float(present)))
    answer = explainer.classes[int(current)] if explainer.classes else current
    settings = {"features_to_vary": list(ideal), **settings}
    settings["permitted_range"] = {**permitted, **settings.get("permitted_range", {})}
    wished = explainer.frames_of(own).labelled(wished)
    return explainer.explain(wished, answer, norm, progress=False, **settings).in_frames(explainer.frames_of(row))


def nearest_instances(
    explainer: Explainer,
    X: Any,
    instances: pd.DataFrame | ArrayLike,
    target: Any = "opposite",
    norm: Any = "l1",
    *,
    labels: Sequence[Any] | ArrayLike | None = None,
    **settings: Any,
) -> Explanations:
    """The cheapest change to a row that exists: a search among known rows, such as the training data (section 3.7).

    Parameters
    ----------
    explainer : Explainer
        Of any model that ocf reads.
    X : DataFrame, Series, or array
        Rows to explain.
    instances : DataFrame or array (n, n_columns)
        Rows to choose from; those to which the model gives the target are taken.
    target, norm
        As in `Explainer.explain`.
    labels : (n,) array, optional
        True classes of the instances. If given, an instance must have a wanted class by its label, too.
    settings
        `weights`, `features_to_vary`, `permitted_range`, `probability`, `plausibility` and `constraints`, as in
        `Explainer.explain`.

    Returns
    -------
    Explanations
        One per row. A change that is found is status ``"feasible"``, for points that are not among the instances may be
        cheaper; where no instance is admissible the status is ``"unknown"``.
    """
    table = explainer.space.from_frame(explainer.rows_of(instances))
    known = explainer.space.to_frame(table)
    method = {"formulation": "instances", "solver": "search", "solver_version": "", "options": {}}
    wish = Plausibility.parse(settings.pop("plausibility", None))
    frame = explainer.rows_of(X)
    out = []
    for k in range(len(frame)):
        begin = time.perf_counter()
        row = frame.iloc[[k]]
        problem = explainer.problem(row, target, norm, plausibility=wish, **settings)
        detector = explainer.prepared.detector(wish, problem.target)
        admissible = explainer.model.meets(problem.target, known)
        if labels is not None:
            admissible &= labelled(explainer.classes, problem.target, np.asarray(labels).tolist())
        outcome = _nearest(problem, table, known, admissible, detector)
        place = _row_of(explainer, frame.index[k], row, problem)
        found = _finding(problem, outcome, method)
        out.append(explainer.explained(place, found, detector=detector, seconds=time.perf_counter() - begin))
    return Explanations(out).in_frames(explainer.frames_of(X))


def _nearest(
    problem: Problem, table: FloatArray, known: pd.DataFrame, admissible: BoolArray, detector: Detector | None
) -> Outcome:
    """The cheapest admissible instance, of coded rows that the user's columns hold as `known`."""
    begin = time.perf_counter()
    admissible = admissible & problem.permits(table).all(axis=1)
    penalty = np.zeros(len(table))
    if detector is not None and admissible.any():  # forests may refuse what others miss
        depth = detector.measure(known[admissible])[0]
        penalty[admissible] = detector.penalty(depth)
        admissible[admissible] = detector.deep_enough(depth)
    total = np.where(admissible, problem.costs(table) + penalty, np.inf)
    times = dict.fromkeys(("incumbent", "reduce", "instance", "confirm"), 0.0)
    times["solve"] = time.perf_counter() - begin
    sizes = {"instances": len(table), "admissible": int(admissible.sum())}
    if not admissible.any():
        words = f"none of the {len(table)} instances has the target and is admissible"
        return Outcome(Status.UNKNOWN, None, None, 0.0, times, sizes=sizes, message=words)
    rows = exact_rows(problem)
    cheapest = np.argsort(total, kind="stable")[: int(admissible.sum())]
    best = next((int(k) for k in cheapest if satisfied(rows, problem.space, table[k])), None)
    if best is None:
        return Outcome(Status.UNKNOWN, None, None, 0.0, times, sizes=sizes, message="no instance keeps the constraints")
    return Outcome(
        Status.FEASIBLE,
        table[best],
        problem.cost.total(problem.space, problem.origin, table[best]) + float(penalty[best]),
        0.0,
        times,
        sizes=sizes,
        message=f"the nearest of {int(admissible.sum())} admissible instances",
    )


def _asked(explainer: Explainer, row: Any, target: Any, norm: Any, settings: Mapping[str, Any]) -> Explanation:
    """The best explanation of one row, whose problem the other questions share."""
    frame = explainer.one_row_of(row)
    return explainer.explain(frame, target, norm, **{"formulation": "oblique", "progress": False, **settings})[0]


def _row_of(explainer: Explainer, label: Any, original: pd.DataFrame, problem: Problem) -> AskedRow:
    """The row of a problem, with what the user's model gives it."""
    current = explainer.prepared.current(problem.origin[None], problem.space)[0]
    return AskedRow(label, original, problem.origin, current)


def _finding(problem: Problem, outcome: Outcome, method: dict[str, Any]) -> Finding[Problem]:
    """An outcome that no engine arrived at."""
    return Finding(problem, outcome, Way(method["formulation"], method["solver"]), method, {})


def _options(settings: Mapping[str, Any]) -> SolverOptions:
    names = ("time_limit", "mip_gap", "threads", "seed", "log", "options")
    return SolverOptions(**{name: settings[name] for name in names if settings.get(name) is not None})

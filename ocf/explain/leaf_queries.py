"""More to ask: all leaves of a single tree, growing margins, an ideal without leaving the class, and rows that exist.

Source: Carreira-Perpiñán and Hada, *Counterfactual explanations for oblique decision trees*, AAAI 2021, sections 3.7
and 3.9.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ocf.arrays import BoolArray, FloatArray
from ocf.errors import DataError, ProblemError
from ocf.explain.explanation import Explanation, Explanations
from ocf.explain.question import OF_PROBLEM, OF_SOLVING, SETTINGS, Question
from ocf.explain.said import with_file_defaults
from ocf.models.detector import Detector
from ocf.models.labels import labelled
from ocf.models.plausibility import Plausibility
from ocf.problem.piecewise import exact_rows
from ocf.problem.problem import Problem
from ocf.problem.rows import satisfied
from ocf.problem.targets import Target
from ocf.solve.engine import Finding, Judge, Request
from ocf.solve.leaf_answer import LeafAnswer
from ocf.solve.leaf_search import solve_leaves
from ocf.solve.method import AUTO, Way
from ocf.solve.outcome import Outcome, advised
from ocf.solve.task import AskedRow, Task
from ocf.solvers.result import Status
from ocf.support.amounts import real_number
from ocf.support.documents import check_names
from ocf.support.messages import listed

if TYPE_CHECKING:
    from ocf.explain.explainer import Explainer
    from ocf.solve.leaf_query import Query


#: Settings of `Explainer.explain` that a search among instances has a use for.
OF_INSTANCES = ("weights", "features_to_vary", "permitted_range", "probability", "constraints")

#: And those that a question to the leaves of a tree has a use for.
HEEDED = (
    *(name for name in OF_PROBLEM if name != "plausibility"),
    "split_margin",
    *OF_SOLVING,
    "progress",
)

#: Formulation of a single tree, leaf by leaf.
OBLIQUE = "oblique"


@with_file_defaults
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
        As in `Explainer.explain`; the limit of time is that of all leaves together.

    Returns
    -------
    Explanations
        Cheapest first, one for each leaf that admits a point. Only the first is optimal among all points; of the
        others the message says that they are the cheapest of their leaf, and the bound is that of the first.

    Raises
    ------
    ProblemError
        A setting asks for several answers, a cross-check, or what else leaves have no use for.
    """

    def solve(query: Query, judge: Judge, task: Task) -> Iterator[tuple[Outcome, Task]]:
        with task.within_limits():
            answers, outcome = solve_leaves(query, judge, eps=task.split_margin, every=True)
        found = [answer for answer in answers if answer.point is not None]
        return ((o, task) for o in ([_of_leaf(outcome, *at) for at in enumerate(found)] if found else [outcome]))

    return _ask_leaves(explainer, row, _question(explainer, target, norm, settings), solve)


def _of_leaf(outcome: Outcome, k: int, answer: LeafAnswer) -> Outcome:
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


@with_file_defaults
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
        As in `Explainer.explain`; the limit of time is that of each margin.

    Returns
    -------
    Explanations
        In the order of increasing margins.

    Raises
    ------
    ProblemError
        A margin is no number of at least 0, or a setting asks for what leaves have no use for.
    """
    given = [*margins]
    wanted = sorted(real_number(m) for m in given)
    if not wanted or not all(0 <= m < np.inf for m in wanted):
        raise ProblemError(f"margins must be numbers of at least 0, not {given}")

    def solve(query: Query, judge: Judge, task: Task) -> Iterator[tuple[Outcome, Task]]:
        for margin in wanted:
            query.restart()
            with task.within_limits(anew=True):
                _, outcome = solve_leaves(query, judge, eps=margin)
            held = "" if outcome.point is None else f"every split of numbers on the path holds by {margin:g}"
            words = outcome.message or held
            yield replace(outcome, message=words), replace(task, split_margin=margin)

    question = _question(explainer, target, norm, {**settings, "split_margin": wanted[0]})
    return _ask_leaves(explainer, row, question, solve)


def _question(explainer: Explainer, target: Any, norm: Any, settings: Mapping[str, Any]) -> Question:
    """What is asked of the leaves of a tree, with what a problem file says in the place of what is not."""
    check_names(settings, SETTINGS)
    # what makes another problem is refused, and not left out
    said = {name: value for name, value in explainer.said.items() if name in (*HEEDED, "plausibility")}
    question = Question(**{**said, **settings, "target": target, "norm": norm})
    if beyond := question.beyond(HEEDED):
        raise ProblemError(f"questions to the leaves of a tree take no {listed(beyond)}: leave that out")
    if question.formulation not in (AUTO, OBLIQUE):
        raise ProblemError(f"leaves are asked one by one, as {OBLIQUE!r} has it, not by {question.formulation!r}")
    return replace(question, formulation=OBLIQUE)


def _ask_leaves(
    explainer: Explainer,
    row: Any,
    question: Question,
    solve: Callable[[Query, Judge, Task], Iterable[tuple[Outcome, Task]]],
) -> Explanations:
    """Explanations of what is found in the leaves of a single tree, or of the fault of the row."""
    asking = explainer.asking
    frame, coded, task = asking.read(asking.one_row_of(row), question)
    asking.check(coded, task)
    engine = asking.leaves
    if refusal := engine.accepts(task):
        raise ProblemError(refusal)
    (place,) = asking.asked_rows(frame, coded, task)

    def explained() -> list[Explanation]:
        problem = asking.pose(place, task)
        query = engine.query(problem, task.options, task.solver)
        judge = asking.prepared.judge(place, problem)

        def finding(outcome: Outcome, own: Task) -> Finding[Problem]:
            found = engine.finding(query, problem, outcome, own)
            if outcome.point is not None:
                return found
            completed = engine.completed(found, Request(problem, own, judge))
            return replace(found, outcome=advised(completed, own.options, problem.space))

        return [asking.explained(place, finding(*at)) for at in solve(query, judge, task)]

    return Explanations(asking.unless_it_fails(place, task, explained)).in_frames(asking.frames_of(row))


@with_file_defaults
def improve(
    explainer: Explainer,
    row: Any,
    ideal: Mapping[str, Any],
    norm: Any = "l1",
    *,
    permitted_range: Mapping[str, Iterable[Any]] | None = None,
    **settings: Any,
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
    permitted_range : mapping, optional
        As in `Explainer.explain`; of these features in the place of the way to the ideal.
    """
    asking, space = explainer.asking, explainer.space
    frame = asking.one_row_of(row)
    own = space.from_frame(frame)
    current = asking.prepared.current(own)[0]
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
            if math.isnan(real_number(value)):
                raise ProblemError(f"the ideal of {name!r} is a number, not {value!r}")
            permitted[name] = (min(float(value), float(present)), max(float(value), float(present)))
    answer = explainer.classes[int(current)] if explainer.classes else current
    settings = {"features_to_vary": list(ideal), **settings}
    wished = asking.frames_of(own).labelled(wished)
    within = {**permitted, **(permitted_range or {})}
    found = explainer.explain(wished, answer, norm, permitted_range=within, progress=False, **settings)
    return found.in_frames(asking.frames_of(row))


@with_file_defaults
def nearest_instances(
    explainer: Explainer,
    X: Any,
    instances: pd.DataFrame | ArrayLike,
    target: Any = "opposite",
    norm: Any = "l1",
    *,
    plausibility: Any = None,
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
    target, norm, plausibility
        As in `Explainer.explain`.
    labels : (n,) array, optional
        True classes of the instances. If given, an instance must have a wanted class by its label, too.
    settings
        `weights`, `features_to_vary`, `permitted_range`, `probability` and `constraints`, as in `Explainer.explain`.

    Returns
    -------
    Explanations
        One per row. A change that is found is status ``"feasible"``, for points that are not among the instances may be
        cheaper; where no instance is admissible the status is ``"unknown"``.
    """
    check_names(settings, OF_INSTANCES)
    asking = explainer.asking
    table = explainer.space.from_frame(asking.rows_of(instances))
    true = None if labels is None else np.asarray(labels).tolist()
    if true is not None and len(true) != len(table):
        raise DataError(f"labels: {len(true)} of {len(table)} instances")
    known = explainer.space.to_frame(table)
    met: dict[Target, BoolArray] = {}
    way = Way("instances", "search")
    method = {"formulation": way.formulation, "solver": way.solver, "solver_version": "", "options": {}}
    wish = Plausibility.parse(plausibility)
    frame = asking.rows_of(X)
    out = []
    for k in range(len(frame)):
        begin = time.perf_counter()
        row = frame.iloc[[k]]
        problem = explainer.problem(row, target, norm, plausibility=wish, **settings)
        detector = explainer.prepared.detector(wish, problem.target)
        if problem.target not in met:
            met[problem.target] = explainer.model.meets(problem.target, known)
            if true is not None:
                met[problem.target] &= labelled(explainer.classes, problem.target, true)
        outcome = _nearest(problem, table, known, met[problem.target], detector)
        current = explainer.prepared.current(problem.origin[None], problem.space)[0]
        place = AskedRow(frame.index[k], row, problem.origin, current)
        found = Finding(problem, outcome, way, method, {})
        out.append(asking.explained(place, found, detector=detector, seconds=time.perf_counter() - begin))
    return Explanations(out).in_frames(asking.frames_of(X))


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

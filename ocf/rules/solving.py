"""Minimal divergent explanations and maximal rules by mathematical models, confirmed by the exact estimates.

A solver works with tolerances, an estimate is a ratio of counts: every set and every box that a solver returns is
counted again, exactly, and cut off if its probability falls below the level.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyomo.environ as pyo
from numpy.typing import ArrayLike

from ocf.errors import SolverError, TimeLimitError
from ocf.formulations.divergent_set import SetModel, minimal_set
from ocf.formulations.maximal_rule import BoxModel, maximal_rule
from ocf.regional.forest import CellBox
from ocf.regional.query import ProbabilityQuery, reaches
from ocf.rules.families import Families
from ocf.rules.family_kernels import OPEN, OUT
from ocf.rules.search import LEAST_GAIN, FoundBox, divergent_set
from ocf.solvers import SolverOptions, StandardForm, Status, compile_model, matrix_solver, other_matrix_solvers
from ocf.support.limits import check, seconds_left, within


def solve_minimal_sets(
    query: ProbabilityQuery,
    candidates: Sequence[int],
    level: float,
    *,
    solver: str = "highs",
    options: SolverOptions | None = None,
    every: bool = False,
) -> list[tuple[int, ...]]:
    """Minimal divergent explanations by the model of `ocf.formulations.rules`.

    Parameters
    ----------
    query : ProbabilityQuery
    candidates : sequence of int
    level : float
        The paper's pi.
    solver : str
    options : SolverOptions, optional
    every : bool
        Whether all minimal sets are wanted, or one with the largest CDP_S among them.

    Returns
    -------
    list of tuple of int
        The most probable first; empty when no subset reaches the level.

    Raises
    ------
    SolverError
        The solver hit a limit before it had a proof.
    ProblemError
        The model would be too large.
    """
    built = minimal_set(query, candidates, level)
    form, place = _compiled(built)
    found: list[tuple[int, ...]] = []
    while True:
        chosen = _next_set(built, form, place, solver, options)
        if chosen is None:
            return sorted(found, key=lambda s: (-query.cdp(s), s))
        own = np.isin(built.candidates, chosen)
        if reaches(query.cdp_counts(chosen), level):
            if not found and every:  # the others are of the same size
                form = form.append_rows(_row(form, place, np.ones(len(own))), len(chosen), len(chosen))
            found.append(chosen)
            if not every:
                return found
        # any other set of this size leaves out one of these; a larger one may have more
        form = form.append_rows(_row(form, place, np.where(own, 1.0, -1.0)), -np.inf, own.sum() - 1.0)


def solve_most_divergent_set(
    query: ProbabilityQuery, candidates: Sequence[int], *, solver: str = "highs", options: SolverOptions | None = None
) -> tuple[int, ...]:
    """A subset with the largest CDP_S, by the same model without a level; without features that add nothing to it.

    Parameters
    ----------
    query : ProbabilityQuery
    candidates : sequence of int
    solver : {"highs", "scip"}
    options : SolverOptions, optional

    Raises
    ------
    SolverError
        The solver hit a limit before it had a proof.
    ProblemError
        The model would be too large.
    """
    built = minimal_set(query, candidates, None)
    form, place = _compiled(built)
    chosen = _next_set(built, form, place, solver, options)
    assert chosen is not None  # every subset but the empty one is feasible
    return divergent_set(query, chosen, math.inf)[0]


def _next_set(
    built: SetModel, form: StandardForm, place: slice, solver: str, options: SolverOptions | None
) -> tuple[int, ...] | None:
    result = matrix_solver(solver).solve(form, options)
    if result.ended and not result.proven:  # sets that are as good within the solver's tolerances
        for other in other_matrix_solvers(solver):
            result = other.solve(form, None if options is None else replace(options, options={}))
            if result.proven:
                break
    if result.status is Status.INFEASIBLE:
        return None
    if result.status is not Status.OPTIMAL or result.x is None:
        raise SolverError(
            f"{solver} stopped with {result.status.value} before the smallest set was proven: give more time, "
            "fewer candidates, or sets='exhaustive'"
        )
    return built.decode(result.x[place])


def solve_box(
    query: ProbabilityQuery,
    features: Sequence[int],
    level: float,
    *,
    solver: str = "highs",
    options: SolverOptions | None = None,
    earlier: Sequence[CellBox] = (),
    start: CellBox | None = None,
) -> FoundBox:
    """The maximal rule on S by the model of `ocf.formulations.rules`.

    Parameters
    ----------
    query : ProbabilityQuery
    features : sequence of int
        S.
    level : float
        The paper's pi_C.
    solver : str
    options : SolverOptions, optional
        With a time limit the best box so far is returned, with a bound.
    earlier : sequence of CellBox
        Rules from which this one has to be disjoint.
    start : CellBox, optional
        A box that reaches the level, for instance a greedy one. The heavier it is, the smaller the model.

    """
    begin, options = time.perf_counter(), options or SolverOptions()
    try:
        with within(options.time_limit):
            return _solved_box(query, features, level, solver, options, earlier, start)
    except TimeLimitError:
        weight = 0.0 if start is None else query.captured(features, start)
        status = Status.UNKNOWN if start is None else Status.FEASIBLE
        return FoundBox(start, weight, np.inf, status, time.perf_counter() - begin)


def _solved_box(
    query: ProbabilityQuery,
    features: Sequence[int],
    level: float,
    solver: str,
    options: SolverOptions,
    earlier: Sequence[CellBox],
    start: CellBox | None,
) -> FoundBox:
    begin = time.perf_counter()
    above = 0.0 if start is None else query.captured(features, start)
    families = Families(query, features, level, earlier)
    built = maximal_rule(query, features, level, earlier, above, families.upper(above - LEAST_GAIN))
    form, place = _compiled(built)
    first = None
    if start is not None:
        built.assign(start)
        first = _values(built.model)
    nodes = 0
    while True:
        check()
        left = seconds_left()
        limited = options if left == np.inf else replace(options, time_limit=left)
        result = matrix_solver(solver).solve(form, limited, warm_start=first)
        nodes += result.nodes
        seconds = time.perf_counter() - begin
        bound = max(0.0, -result.bound)
        if result.x is None:
            return FoundBox(None, 0.0, bound, result.status, seconds, nodes)
        choice = result.x[place]
        box = built.decode(choice)
        if query.precise(features, box, level):
            weight = query.captured(features, box)
            if weight == 0:  # a box without evidence is no rule
                status = Status.INFEASIBLE if result.status is Status.OPTIMAL else Status.UNKNOWN
                return FoundBox(None, 0.0, bound, status, seconds, nodes)
            return FoundBox(box, weight, max(bound, weight), result.status, seconds, nodes)
        escapes = [(v, x <= 0.5) for v, x in zip(built.choices, choice, strict=True)]
        if built.left_out:
            escapes = _escapes(built, families, box)
        signs = {v.name: 1.0 if positive else -1.0 for v, positive in escapes}
        row = np.array([signs.get(v.name, 0.0) for v in built.choices])
        form = form.append_rows(_row(form, place, row), 1.0 - float((row < 0).sum()), np.inf)


def _escapes(built: BoxModel, families: Families, box: CellBox) -> list[tuple[Any, bool]]:
    """Choices, and how they are made, of which a rule makes one: ways out of a family without rules around a box."""
    m, out, state = built.model, list[tuple[Any, bool]](), families.hopeless(box)
    for i, p, size in zip(families.features, families.fields.place[:-1], families.fields.size, strict=True):
        if i not in families.cuts:
            out += [
                (m.gamma[i, k], state[p + k] == OUT) for k in range(size) if (i, k) in m.gamma and state[p + k] != OPEN
            ]
            continue
        cuts, (low_from, low_to, high_from, high_to) = families.cuts[i].tolist(), state[p : p + 4].tolist()
        out += [(m.alpha[i, cuts[low_from - 1]], False)] if low_from > 0 else []
        out += [(m.alpha[i, cuts[low_to]], True)] if low_to < len(cuts) else []
        out += [(m.beta[i, cuts[high_from - 1]], True)] if high_from > 0 else []
        out += [(m.beta[i, cuts[high_to]], False)] if high_to < len(cuts) else []
    return out


# -- matrices ----------------------------------------------------------------------------------------------


def _compiled(built: SetModel | BoxModel) -> tuple[StandardForm, slice]:
    """The matrix, and the columns of the choices in it."""
    variables = _variables(built.model)
    position = {id(v): k for k, v in enumerate(variables)}
    at = [position[id(v)] for v in built.choices]
    form = compile_model(built.model, variables)
    return form, slice(at[0], at[-1] + 1) if at else slice(0, 0)


def _variables(model: pyo.ConcreteModel) -> list[Any]:
    return list(model.component_data_objects(pyo.Var))


def _values(model: pyo.ConcreteModel) -> ArrayLike:
    return np.array([0.0 if v.value is None else v.value for v in _variables(model)])


def _row(form: StandardForm, place: slice, coefficients: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    row = np.zeros(form.n_cols)
    row[place] = coefficients
    return row

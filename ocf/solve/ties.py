"""All optimal points of a problem where several cost the same.

The solver that found the first is asked again for a point in other leaves until the cheapest that is left costs more.
Within one choice of leaves the cheapest cells of all features are put together, since the model cannot tell them apart.

What is listed and counted is choices of cells, one point each. Where the cost does not tell the values of a cell apart
either, as l0 does not, all of them are optimal: `same_cost` gives these ranges. The ranges of all listed points
together are all optimal points when the list is complete.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.ranges import ValueInterval, range_of_cells
from ocf.cells.reduction import reduce
from ocf.solve.cell_search import solve
from ocf.solve.outcome import Outcome
from ocf.solvers.protocols import CellSolver
from ocf.solvers.result import SolverOptions, Status
from ocf.support.tolerances import listed_cost

if TYPE_CHECKING:
    from ocf.problem.problem import Problem
    from ocf.solvers import Solver
    from ocf.solvers.cell_form import Compiled


def tied_points(
    first: Outcome,
    alternatives: Sequence[CellProblem],
    compiled: Sequence[Callable[[], Compiled]],
    solver: Solver | CellSolver,
    options: SolverOptions,
    *,
    confirm: Callable[[FloatArray], bool],
    limit: int,
) -> tuple[list[FloatArray], bool]:
    """Optimal points, the one that is known first.

    Parameters
    ----------
    first : Outcome
        Optimal, with a point.
    alternatives, compiled, solver, options, confirm
        As in `ocf.solve.cell_search.solve_alternatives`; the time limit holds for each further choice of leaves.
    limit : int
        Most points to list.

    Returns
    -------
    (list of (n_features,) coded rows, bool)
        One per choice of cells, and whether these are all choices: False when the limit, or the time limit, cut the
        list off, and where constraints relate values inside cells, so that ties are no matter of cells alone.
        `same_cost` says what else of each choice of cells costs the same.
    """
    assert first.point is not None
    assert first.cost is not None
    if alternatives[0].couples:
        return [first.point], False
    related = _related(alternatives[0])
    most = listed_cost(first.cost)
    leaves = [_leaves(alternatives[0], first.point)]
    found: dict[bytes, FloatArray] = {}

    def take(points: Iterator[FloatArray]) -> None:
        # one more than the limit says that there are more
        found.update((p.tobytes(), p) for p in itertools.islice(points, limit + 1))

    take(iter([first.point]))
    take(_cheapest_points(alternatives[0], leaves[0], most))
    stopped = False
    for cells, formulation in zip(alternatives, compiled, strict=True):
        while len(found) <= limit and not stopped:
            left = reduce(replace(cells, excluded=(*cells.excluded, *leaves)), listed_cost(most))
            if left.proved:
                break
            other = solve(left.cells, formulation, solver, options, confirm=confirm)
            if other.point is None or other.cost is None or other.cost > most:
                stopped = other.bound <= most and other.status is not Status.INFEASIBLE
                break
            leaves.append(_leaves(cells, other.point))
            take(_cheapest_points(cells, leaves[-1], most))
    points = list(found.values())[:limit]
    complete = not stopped and len(found) <= limit
    # where a constraint tells apart values of a cell that cost the same, the ranges would not be all
    hidden = any(related & {i for i, _ in _flat_cells(alternatives[0], point)} for point in points)
    return points, complete and not hidden


def same_cost(cells: CellProblem, point: FloatArray) -> dict[str, Any]:
    """Ranges of values that may take the place of an optimal point's, with the same cost and the same leaves.

    Parameters
    ----------
    cells : CellProblem
        Whose values do not slide.
    point : (n_features,) float64
        Coded.

    Returns
    -------
    dict of feature name to dict or list
        ``{"lowest": ..., "highest": ...}``, both inclusive, of numbers; a list of levels of other features. Only of
        features for which more than one value serves, each by itself and all in any combination.
    """
    related = _related(cells)
    names = cells.problem.space.names
    return {names[i]: values for i, values in _flat_cells(cells, point) if i not in related}


def _related(cells: CellProblem) -> set[int]:
    """Features whose value within a cell matters to a constraint."""
    rows = () if cells.values is None else cells.values.rows
    return {i for row in rows for i, part in row.parts.items() if part.moving}


def _flat_cells(cells: CellProblem, point: FloatArray) -> Iterator[tuple[int, Any]]:
    """Features for which more than one value of the point's cell costs the same, and these values."""
    problem = cells.problem
    choice = cells.partition.locate(point[None, :])[0]
    for i, feature in enumerate(problem.space.features):
        origin, value = float(problem.origin[i]), float(point[i])
        own = slice(int(choice[i]), int(choice[i]) + 1)
        held = None if np.isnan(origin) else range_of_cells(cells, feature, i, own, origin)
        if held is None:
            continue
        here = float(problem.cost.of(feature, origin, value))
        if isinstance(held, ValueInterval):
            # a cell's point is its cheapest, and towards either end the cost does not fall
            ends = [v if _costs(problem, i, v) == here else value for v in (held.lowest, held.highest)]
            if ends[0] < ends[1]:
                yield i, {"lowest": ends[0], "highest": ends[1]}
        else:
            level = {label: float(code) for code, label in enumerate(feature.levels)}
            labels = [label for label in held if _costs(problem, i, level[label]) == here]
            if len(labels) > 1:
                yield i, labels


def _costs(problem: Problem, i: int, value: float) -> float:
    """Cost of a value of feature i; of an infinite one as far as it is the same for all that are large enough."""
    feature, origin = problem.space.features[i], float(problem.origin[i])
    if not np.isfinite(value):
        value = float(np.copysign(np.finfo(feature.float_dtype).max, value))
    with np.errstate(over="ignore"):
        return float(problem.cost.of(feature, origin, value))


def _leaves(cells: CellProblem, point: FloatArray) -> IntArray:
    return cells.partition.leaves_at(cells.partition.locate(point[None, :])[0])


def _cheapest_points(cells: CellProblem, leaves: IntArray, most: float) -> Iterator[FloatArray]:
    """Coded points within a choice of leaves that cost at most so much, one per choice of cells."""
    usable = cells.open_within(leaves)
    inside = [np.flatnonzero(own) for own in usable]
    costs = [cells.cost[cells.partition.cells_of(i)][own] for i, own in enumerate(usable)]
    spare = most - sum(float(c.min()) for c in costs)
    if cells.leaf_cost is not None:
        spare -= float(cells.leaf_cost[leaves].sum())
    tied = [own[c - c.min() <= spare] for own, c in zip(inside, costs, strict=True)]
    for choice in itertools.product(*tied):
        chosen = np.array(choice, np.int64)
        placed = cells.place(chosen)
        if placed is not None and placed.point is not None and placed.cost <= most:
            yield placed.point

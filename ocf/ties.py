"""All optimal points of a problem where several cost the same.

The solver that found the first is asked again for a point in other leaves until the cheapest that is left costs more.
Within one choice of leaves the cheapest cells of all features are put together, since the model cannot tell them apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ocf.cells import CellProblem
from ocf.ensemble import FloatArray, IntArray
from ocf.outcome import PROOF, Outcome
from ocf.reduction import reduce
from ocf.solvers.base import CellSolver
from ocf.solvers.result import SolverOptions, Status
from ocf.solving import solve

if TYPE_CHECKING:
    from ocf.compiled import Compiled
    from ocf.solvers import Solver


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
        As in `ocf.solving.solve_alternatives`; the time limit holds for each further choice of leaves.
    limit : int
        Most points to list.

    Returns
    -------
    (list of (n_features,) coded rows, bool)
        And whether these are all: False when the limit, or the time limit, cut the list off, and where constraints
        relate values inside cells, so that ties are no matter of cells alone.
    """
    assert first.point is not None
    assert first.cost is not None
    if alternatives[0].couples:
        return [first.point], False
    most = first.cost + PROOF * max(abs(first.cost), PROOF)
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
            left = reduce(cells.with_(excluded=tuple(leaves)), most + PROOF * max(most, PROOF))
            if left.proved:
                break
            other = solve(left.cells, formulation, solver, options, confirm=confirm)
            if other.point is None or other.cost is None or other.cost > most:
                stopped = other.bound <= most and other.status is not Status.INFEASIBLE
                break
            leaves.append(_leaves(cells, other.point))
            take(_cheapest_points(cells, leaves[-1], most))
    return list(found.values())[:limit], not stopped and len(found) <= limit


def _leaves(cells: CellProblem, point: FloatArray) -> IntArray:
    return cells.partition.leaves_at(cells.partition.locate(point[None, :])[0])


def _cheapest_points(cells: CellProblem, leaves: IntArray, most: float) -> Iterator[FloatArray]:
    """Coded points within a choice of leaves that cost at most so much, one per choice of cells."""
    part = cells.partition
    low, high = part.low[leaves].max(axis=0), part.high[leaves].min(axis=0)
    inside, costs = [], []
    for i in range(part.n_features):
        index, span = np.arange(part.widths[i]), part.cells_of(i)
        usable = cells.open[span] & (low[i] <= index) & (index <= high[i])
        if not part.ordered[i]:
            usable &= part.members_of(i)[leaves].all(axis=0)
        inside.append(np.flatnonzero(usable))
        costs.append(cells.cost[span][usable])
    spare = most - sum(float(c.min()) for c in costs)
    if cells.leaf_cost is not None:
        spare -= float(cells.leaf_cost[leaves].sum())
    tied = [own[c - c.min() <= spare] for own, c in zip(inside, costs, strict=True)]
    for choice in itertools.product(*tied):
        chosen = np.array(choice, np.int64)
        placed = cells.place(chosen)
        if placed is not None and placed.cost <= most:
            yield placed.point

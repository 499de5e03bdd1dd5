"""Costs that couple features: balls of growing cost, of which the small ones hold few cells.

By a cost such as the Mahalanobis distance no cell has a price of its own, and bounds from the relaxation are next to
nothing while a ball holds many cells. But how far each feature can move within a ball is known (`ocf.cells.reach`): one
that is a little larger than the optimum leaves a small problem, which the solvers prove at once. So an incumbent comes
first, from rows of the data and the way to them; then balls from a small one on, each twice as large as the one before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.incumbent import Incumbent
from ocf.cells.reduction import reduce
from ocf.solve.balls import Balls, Search
from ocf.solvers.result import SolverOptions
from ocf.support.limits import seconds_left

#: Live leaves of the first ball, at most.
FIRST_LEAVES = 300

#: Part of the incumbent's cost below which no first ball is looked for.
SMALLEST = 1e-9

#: Rows of the data from which the way to the row is gone back, and steps on it.
MAX_STARTS, STEPS = 16, 32


class CoupledBalls(Balls):
    """State of a search in balls of a cost that couples features.

    Parameters
    ----------
    alternatives : sequence of CellProblem
    options : SolverOptions
        The time limit holds for all balls together.
    judge : callable
        Whether the user's own model gives the target to a coded point.
    """

    def __init__(
        self, alternatives: Sequence[CellProblem], options: SolverOptions, judge: Callable[[FloatArray], bool]
    ) -> None:
        super().__init__(options, alternatives[0].problem.space.least_cost)
        self._alternatives, self._judge = alternatives, judge

    def find_incumbent(self, known: FloatArray) -> None:
        """Go from the nearest rows with the target back to the row, as far as the target stays.

        Parameters
        ----------
        known : (n, n_features) float64
            Coded rows of the data that have the target.
        """
        begin = time.perf_counter()
        problem, found = self._alternatives[0].problem, []
        nearest = np.argsort(problem.costs(known), kind="stable")[:MAX_STARTS]
        for k, cells in enumerate(self._alternatives):
            for row in known[nearest] if cells.requirements.curve is None else ():
                choice = _way_back(cells, row)
                if choice is not None and not cells.is_excluded(_leaves(cells, choice)):
                    found.append((float(problem.costs(cells.point(choice)[None])[0]), k, choice))
        # the cheapest point of the cells is found in exact arithmetic, which takes its time
        for n, (_, k, choice) in enumerate(sorted(found, key=lambda start: start[:2])):
            if n and seconds_left() <= 0:
                break
            placed = self._alternatives[k].place(choice, hasty=True)
            if placed is not None and placed.point is not None and self.ask(self._judge, placed.point):
                self.adopt(Incumbent(choice, placed.point, placed.cost))
                break
        self.times["incumbent"] += time.perf_counter() - begin - self.times["confirm"]
        self.record()

    def grow(self, search: Search) -> None:
        """Search balls until there is an answer.

        Parameters
        ----------
        search : callable
        """
        end = self.upper
        radius = self._first_radius(end)
        while not self.finished:
            self.search_ball(search, radius, end)
            radius = min(2 * radius, end)

    def _first_radius(self, end: float) -> float:
        """The largest radius, of those that quarter the way to the end, whose ball has few leaves."""
        radius = end
        with self.timed("reduce"):
            while np.isfinite(end) and radius > SMALLEST * end and self._live_leaves(radius) > FIRST_LEAVES:
                radius /= 4
        return radius

    def _live_leaves(self, radius: float) -> int:
        reduced = [reduce(cells, radius, max_pairs=0) for cells in self._alternatives]
        return max(0 if r.proved else int(r.cells.live.sum()) for r in reduced)


def _way_back(cells: CellProblem, row: FloatArray) -> IntArray | None:
    """Cells of the first point with the target on the straight way from the origin to a row; None without one."""
    part, problem = cells.partition, cells.problem
    way = problem.way_to(row, STEPS)
    choices = part.locate(np.where(np.isnan(way), problem.origin, way))
    usable = cells.open[part.offsets[:-1] + choices].all(axis=1)
    for choice in choices[usable]:
        leaves = _leaves(cells, choice)
        # a leaf may be dead that the user's model knows nothing of: next to a threshold, where a margin is asked for
        if cells.live[leaves].all() and (cells.margins(leaves) >= cells.requirements.error_bound).all():
            return np.asarray(choice)
    return None


def _leaves(cells: CellProblem, choice: IntArray) -> IntArray:
    return cells.partition.leaves_at(choice)

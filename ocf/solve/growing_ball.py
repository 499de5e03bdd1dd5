"""Forests as big as defaults make them: the ball around the row grows until the cheapest point lies in it.

Only leaves that meet the ball of an incumbent's cost can hold a better point. So an incumbent comes first, from rows of
the data with the target that are pulled back towards the row, by answers of the trees alone. Then balls of growing
radius are searched, each over the trees that are left of it (`ocf.cells.nearby`): a ball without a point proves that
nothing is cheaper than its radius, and the first one with a point holds the cheapest of all. A search that is cut
short leaves the radius as a bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.cell_problem import cell_values
from ocf.cells.incumbent import Incumbent
from ocf.cells.nearby import Nearby, Pruner
from ocf.cells.partition import Partition
from ocf.problem.problem import Problem
from ocf.problem.rows import satisfied
from ocf.solve.balls import Balls
from ocf.solve.outcome import Outcome
from ocf.solvers.result import SolverOptions, Status
from ocf.support.limits import seconds_left, within

#: Nodes of the first ball: as many as the search over all cells takes at once without a wait.
FIRST_NODES = 8_000

#: Most nodes of any ball.
MOST_NODES = 100_000_000

#: Rows of the data that are pulled back, those of them before the first ball, which is all that most rows need, and the
#: values of each feature that are tried at a time. With three of twelve before it, 12 rows under trees as deep as they
#: grow take 0.7 s in the place of 1.1 (adult) and 1.3 of 2.1 (credit_default); with three in all, one of spambase
#: under 500 trees of depth 8 took 50 s in the place of 30.
MAX_STARTS, FIRST_STARTS, MAX_TRIED = 12, 3, 16

#: Part of the time for the incumbent, at most.
INCUMBENT = 0.5

#: Searches one ball: its trees, the cost that points must beat, and the options with the time that is left.
NearSearch = Callable[[Nearby, float, SolverOptions], Outcome]


@dataclass(frozen=True)
class _RowCells:
    """Cells of the whole partition for one row: the value of each nearest to the row, and its cost."""

    part: Partition
    value: FloatArray
    cost: FloatArray
    origin: FloatArray

    def points(self, choices: IntArray) -> FloatArray:
        """Coded rows at choices of cells, (n, n_features)."""
        points = self.value[self.part.offsets[:-1] + choices]
        return np.where(np.isnan(self.origin), self.origin, points)

    def costs(self, choices: IntArray) -> FloatArray:
        """Costs of choices of cells, (n,)."""
        return np.asarray(self.cost[self.part.offsets[:-1] + choices].sum(axis=1))

    def extreme(self, largest: bool) -> float:
        """Sum over features of the least, or the largest finite, cost of a cell; inf where all cells are closed."""
        total = 0.0
        for i in range(self.part.n_features):
            cost = self.cost[self.part.cells_of(i)]
            cost = cost[np.isfinite(cost)]
            total += np.inf if not len(cost) else float(cost.max() if largest else cost.min())
        return total


class GrowingBall(Balls):
    """State of a search in growing balls.

    Parameters
    ----------
    problem : Problem
        Without costs of the user's own or plausibility: a point costs no less than its cells. Constraints make points
        dearer or impossible; each ball's own search knows them.
    part : Partition
        Of the problem's trees.
    pruner : Pruner
        Of the partition.
    options : SolverOptions
        The time limit holds for all balls together.
    judge : callable
        Whether the user's own model gives the target to a coded point.
    excluded : tuple of (n,) int64
        Choices of leaves that no answer may lie in.
    """

    def __init__(
        self,
        problem: Problem,
        part: Partition,
        pruner: Pruner,
        options: SolverOptions,
        judge: Callable[[FloatArray], bool],
        excluded: tuple[IntArray, ...] = (),
    ) -> None:
        super().__init__(options, problem.space.least_cost)
        self.sizes = {"leaves": problem.ensemble.n_leaves}
        self._excluded = excluded
        self._problem, self._pruner, self._judge = problem, pruner, judge
        self._cells = _RowCells(part, *cell_values(problem, part), problem.origin)
        self._rows = tuple(row for c in problem.constraints for row in c.rows(problem.space, problem.origin))

    def solve(self, known: FloatArray, search: NearSearch) -> Outcome:
        """The cheapest point, or what is known of it when the time is over.

        Parameters
        ----------
        known : (n, n_features) float64
            Coded rows of the data that have the target.
        search : callable
        """
        base, top = self._cells.extreme(False), self._cells.extreme(True)
        if not np.isfinite(base):
            self.close(Status.INFEASIBLE, np.inf, "reduction")
            return self.outcome()
        starts = self.starts(known)
        self.find_incumbent(starts[:FIRST_STARTS])
        # beyond the dearest point there is nothing: one more than its cost holds all
        end = min(self.upper, top + 1.0 + abs(top))
        radius, near = self._first_ball(base, end)
        while not self.finished:
            if near is None:  # nothing is cheaper than the incumbent, not even a point that changes nothing
                self.prove("incumbent")
                break
            self.search_ball(partial(search, near), radius, end)
            if not self.finished:
                self.find_incumbent(starts[FIRST_STARTS:])
                starts, end = (), min(self.upper, end)
                radius = next_radius(base, radius, end)
                near = self._within(radius, MOST_NODES)
        return self.outcome()

    @property
    def cost(self) -> FloatArray:
        """Of the cells of the whole partition, (n_cells,)."""
        return self._cells.cost

    def ball_of_ties(self) -> Nearby | None:
        """The trees near all points that cost no more than the best; None where there is none."""
        return None if self.best is None else self._within(self.best.cost, MOST_NODES)

    def _within(self, radius: float, most: int) -> Nearby | None:
        with self.timed("reduce"):
            return self._pruner.within(self._cells.cost, radius, most)

    def _first_ball(self, base: float, end: float) -> tuple[float, Nearby | None]:
        """The largest radius, of those that halve the way to the end, whose ball is small."""
        radius = end
        while base < radius:
            near = self._within(radius, FIRST_NODES)
            if near is not None or radius - base < 1e-9 * (1.0 + abs(base)):
                return radius, near or self._within(radius, MOST_NODES)
            radius = base + 0.5 * (radius - base)
        return end, None

    # -- the incumbent -------------------------------------------------------------------------------------

    def find_incumbent(self, starts: Sequence[IntArray]) -> None:
        """Pull points back towards the row, and take the cheapest that the model confirms, in a part of the time.

        Parameters
        ----------
        starts : sequence of (n_features,) int64
            Cells of points; see `starts`.
        """
        if not len(starts):
            return
        begin, confirmed, left = time.perf_counter(), self.times["confirm"], self.seconds_left()
        with within(None if left is None else INCUMBENT * left):
            self._take_cheapest(starts)
        self.times["incumbent"] += time.perf_counter() - begin - (self.times["confirm"] - confirmed)
        self.record()

    def _take_cheapest(self, starts: Sequence[IntArray]) -> None:
        cells = self._cells
        starts = [c for c in starts if self._has_target(c[None])[0] and self._allows(c)]
        pulled = [self._pulled_back(choice) for choice in starts]
        for cost, choice in sorted(((float(cells.costs(c[None])[0]), c) for c in pulled), key=lambda pair: pair[0]):
            point = cells.points(choice[None])[0]
            if cost >= self.upper:
                return
            if np.isfinite(cost) and self.ask(self._judge, point):
                self.best = Incumbent(choice, point, cost)
                return

    def starts(self, known: FloatArray) -> Sequence[IntArray]:
        """Cells of the cheapest rows of the data; features whose cell is closed stay at their cheapest.

        Parameters
        ----------
        known : (n, n_features) float64
            Coded rows of the data that have the target.
        """
        if not len(known):
            return ()
        cells, part = self._cells, self._cells.part
        choices = part.locate(known)
        for i in range(part.n_features):
            cost = cells.cost[part.cells_of(i)]
            choices[:, i] = np.where(np.isfinite(cost[choices[:, i]]), choices[:, i], np.argmin(cost))
        nearest = choices[np.argsort(cells.costs(choices), kind="stable")[: 4 * MAX_STARTS]]
        return [np.array(choice) for choice in list(dict.fromkeys(map(tuple, nearest.tolist())))[:MAX_STARTS]]

    def _has_target(self, choices: IntArray) -> BoolArray:
        """Which choices of cells certainly have the target, by the trees, and may be answers, (n,)."""
        leaves = self._cells.part.ensemble.apply(self._cells.points(choices))
        met = np.zeros(len(choices), bool)
        for asked in self._problem.alternatives:
            if asked.curve is None:
                sums = asked.gain[leaves].sum(axis=1)
                met |= (sums >= asked.need + asked.error_bound).all(axis=1)
        for choice in self._excluded:
            met &= ~np.array([np.isin(choice, row).all() for row in leaves], bool)
        return met

    def _pulled_back(self, choice: IntArray) -> IntArray:
        """The choice with features at cheaper cells, the largest saving first, as long as target and time stay."""
        while seconds_left():
            tried = self._cheaper(choice)
            tried = tried[self._has_target(tried)] if len(tried) else tried
            cheapest = tried[np.argsort(self._cells.costs(tried), kind="stable")]
            better = next((own for own in cheapest if self._allows(own)), None)
            if better is None:
                return choice
            choice = better
        return choice

    def _allows(self, choice: IntArray) -> bool:
        """Whether the point of a choice of cells meets the user's constraints, exactly."""
        return not self._rows or satisfied(self._rows, self._problem.space, self._cells.points(choice[None])[0])

    def _cheaper(self, choice: IntArray) -> IntArray:
        """Choices that differ from one in a cheaper cell of one feature: the cheapest, and those 1, 2, 4, … on."""
        part, out = self._cells.part, []
        for i in range(part.n_features):
            cost = self._cells.cost[part.cells_of(i)]
            better = np.flatnonzero(cost < cost[choice[i]])
            if not len(better):
                continue
            better = better[np.argsort(cost[better], kind="stable")]
            places = np.unique([0, *(max(len(better) - 2**k, 0) for k in range(MAX_TRIED - 1))])
            rows = np.tile(choice, (len(places), 1))
            rows[:, i] = better[places]
            out.append(rows)
        return np.vstack(out) if out else np.zeros((0, len(choice)), np.int64)


def next_radius(base: float, radius: float, end: float) -> float:
    """The least radius of those that halve the way to the end that is larger by half at least; else the end.

    Parameters
    ----------
    base : float
        Nothing is cheaper.
    radius : float
        Larger than that: of the ball before.
    end : float
    """
    span = end - base
    while 0.5 * span >= 1.5 * (radius - base):
        span *= 0.5
    return base + span

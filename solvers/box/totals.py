"""Branch-and-bound over boxes of cells of numbers and of totals: trees of hyperplanes.

A total is a sum of changes that has cells of its own (`ocf.cells.totals`). What a box costs at least is a small linear
program, in the changes alone, whose sums lie in the box's ranges of totals (`ocf.solvers.box.sums`), or one of squares
(`ocf.solvers.box.squares`); with its multipliers each cell has a price, by which leaves die and sides move in as where
nothing is coupled. A category that totals weigh has a change between 0 and 1 for each level, which add up to 1. A box
whose least point has the target is done with when the cheapest point of that point's leaves, in exact arithmetic, costs
no more than the box does at least; so is a box of a single choice of leaves, once it has been tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.solvers.box.coupled_bounds import Coupling, least_choice
from ocf.solvers.box.coupled_boxes import CoupledBoxes, CoupledWorker
from ocf.solvers.box.instance import make_instance
from ocf.solvers.box.points import meets_target
from ocf.solvers.box.quadratic import Quadratic
from ocf.solvers.box.sums import SumCosts
from ocf.solvers.result import SolverOptions

if TYPE_CHECKING:
    from ocf.cells.cell_problem import CellProblem

#: What a total costs off its range, in times of the dearest change, all of them as far as they may go.
PENALTY = 1024.0

#: What the square of a level costs where numbers have squares, in parts of theirs, and the level itself less: without
#: that the dual has bends.
OF_SQUARES = 1e-3


class TotalsSearch(CoupledBoxes):
    """State of a search by choices of leaves.

    Parameters
    ----------
    cells : CellProblem
        Not infeasible; changes that totals add up cost nothing in it.
    coupling : Coupling
        See `couple_totals`.
    whole : (n,) int64
        Features whose changes are added up and each cell of which has one value: numbers, or levels.
    options, cutoff
        As in `CoupledBoxes`.
    place : callable
        Solves over the common region of one leaf a tree, (n_trees,), with the values that the whole features have at a
        choice of cells, (n_features,), with what gives a number that no point of it is below; what its cheapest point
        costs, inf where it has none that the user's model takes, and what the cheapest point of all costs by then.
    """

    def __init__(
        self,
        cells: CellProblem,
        coupling: Coupling,
        whole: IntArray,
        options: SolverOptions,
        cutoff: float,
        place: Callable[[IntArray, IntArray, Callable[[], float]], tuple[float, float]],
    ) -> None:
        super().__init__(cells, coupling, make_instance(cells), options, cutoff)
        self.place, self.whole = place, whole
        self.lower_limit(1.0 + 2.0 * self._dearest())

    def worker(self) -> TotalsWorker:
        """What visits boxes, for one thread."""
        return TotalsWorker(self)

    def _dearest(self) -> float:
        """What a point costs at most: a total off its range, which has a price here, costs more than that."""
        instance, costs = self.instance, self.coupling.sums
        dearest = float(sum(map(np.max, np.split(instance.cost, instance.offsets[1:-1]))))
        for k, f in enumerate(self.coupling.feature[: len(costs.up)].tolist()):
            low, high = 0.0, 1.0
            if f >= 0:
                low, high = self.coupling.low[instance.offsets[f]], self.coupling.high[instance.offsets[f + 1] - 1]
            dearest += max(costs.up[k] * high, -costs.down[k] * low, 0.0)
            dearest += self.coupling.quadratic.diagonal[k] * max(low * low, high * high)
        return dearest

    def offer(self, x: IntArray, least: Callable[[], float] = lambda: -np.inf) -> float:
        """Solve over the leaves of a choice of cells, once; what their cheapest point costs, inf without one.

        Parameters
        ----------
        x : (n_features,) int64
            Cells of the partition.
        least : callable
            Gives a number that no point of the leaves is below.
        """
        leaves = self.cells.partition.leaves_at(x)
        key = self.key(leaves, x)
        with self.judging:
            if key in self.closed or not self.cells.live[leaves].all():
                return np.inf
            cost, best = self.place(leaves, x, least)
            self.closed.add(key)
            if best < min(self.upper, self.cutoff):
                self.keep(x, best)
            return cost

    def key(self, leaves: IntArray, x: IntArray) -> bytes:
        """Of a choice of leaves, and of the cells that whole features have in a choice of cells.

        Parameters
        ----------
        leaves : (n_trees,) int64
        x : (n_features,) int64
        """
        return np.concatenate([leaves, x[self.whole]]).astype(np.int64).tobytes()


class TotalsWorker(CoupledWorker):
    """One thread's part of a search by choices of leaves.

    Parameters
    ----------
    search : TotalsSearch
    """

    def __init__(self, search: TotalsSearch) -> None:
        super().__init__(search)
        self.choices, self.whole = search, search.whole

    def look(self) -> float:
        """Cost of the cheapest point in the leaves of a box's least point, if they have the target; else inf."""
        least_choice(self.coupling, self.instance, self.domain, self.box, self.x)
        if (self._single_cells() < 0).any():
            self._to_whole()  # else rounding may decide on which side of a threshold a total lies: both are looked at
        return self.offer(self.x) if meets_target(self.evaluator, self.x) else np.inf

    def _single_cells(self) -> IntArray:
        """The one cell that is left of each whole feature, counted within the feature; -1 where there are several."""
        instance, domain = self.instance, self.domain
        at, several = domain.lo[self.whole].copy(), domain.lo[self.whole] < domain.hi[self.whole]
        for k in np.flatnonzero(~instance.ordered[self.whole]).tolist():
            f = self.whole[k]
            left = np.flatnonzero(domain.level[instance.offsets[f] : instance.offsets[f + 1]])
            at[k], several[k] = left[0], len(left) > 1
        return np.where(several, -1, instance.cell[instance.offsets[self.whole] + at])

    def _to_whole(self) -> None:
        """Move the choice of cells from a box's least point to the nearest values of the whole features."""
        coupling, instance, domain, m = self.coupling, self.instance, self.domain, len(self.coupling.quadratic.up)
        changes = self.box.t[:m].copy()
        for f, k in zip(self.whole.tolist(), coupling.slot[self.whole].tolist(), strict=True):
            first, level = instance.offsets[f], coupling.levels[f]
            if level >= 0:  # the choice has the level of which most is in the least point
                opened = instance.cell[first : instance.offsets[f + 1]]
                changes[level : level + len(opened)] = opened == self.x[f]
                continue
            first += domain.lo[f]
            values = coupling.low[first : instance.offsets[f] + domain.hi[f] + 1]
            nearest = int(np.abs(values - changes[k]).argmin())
            changes[k], self.x[f] = values[nearest], instance.cell[first + nearest]
        sums = coupling.sums.forms @ changes
        for f, total in zip(coupling.feature[m:].tolist(), sums.tolist(), strict=True):
            if f >= 0:
                first, last = instance.offsets[f], instance.offsets[f + 1] - 1
                at = first + int(np.searchsorted(coupling.high[first:last], total))
                self.x[f] = instance.cell[at]

    def offer(self, x: IntArray) -> float:
        """As in `CoupledWorker`.

        Parameters
        ----------
        x : (n_features,) int64
        """

        def least() -> float:
            t = self.box.t.copy()
            cost = self.around(x.copy())
            self.box.t[:] = t
            return cost

        return self.choices.offer(x, least)

    def is_done(self) -> bool:
        """Whether each tree has a single live leaf left, each whole feature a single cell, and that has been tried."""
        live, at = self.instance.leaf[self.domain.live], self._single_cells()
        if len(live) > self.coupling.n_trees or (at < 0).any():
            return False
        x = np.zeros(len(self.x), np.int64)
        x[self.whole] = at
        return self.choices.key(live, x) in self.choices.closed


def couple_totals(
    cells: CellProblem,
    features: IntArray,
    levels: IntArray,
    prices: tuple[FloatArray, FloatArray, FloatArray],
    forms: FloatArray,
    totals: IntArray,
    ends: tuple[FloatArray, FloatArray],
    limits: FloatArray,
) -> Coupling:
    """The coupling of changes by totals, and by other sums that have a limit.

    Parameters
    ----------
    cells : CellProblem
        Over numbers, features of levels, totals and other features.
    features : (n_numbers,) int64
        The numbers whose changes are added up.
    levels : (n_listed,) int64
        Features of which each open cell is a change, from 0 to 1: they come after the numbers, m in all.
    prices : triple of (m,) float64
        What a unit of increase and of decrease costs, and the square of a change: of all numbers something, or of none.
    forms : (n_totals + n_limits, m) float64
        What the totals, and the other sums, make of the changes.
    totals : (n_totals,) int64
        The totals, as features.
    ends : pair of (n_cells,) float64
        Least and greatest change, or sum, in each cell; they grow with the cell.
    limits : (n_limits,) float64
        What the other sums are at most.
    """
    part, opened, n, m = cells.partition, np.flatnonzero(cells.open), len(features), forms.shape[1]
    low, high = ends[0].copy(), ends[1].copy()

    def reach(i: int) -> float:
        return float(max(np.abs(low[part.cells_of(i)]).max(), np.abs(high[part.cells_of(i)]).max())) or 1.0

    # changes in parts of what they may be, and sums of such whose largest weight is 1
    unit = np.append([reach(i) for i in features.tolist()], np.ones(m - n))
    forms = np.ascontiguousarray(forms * unit)
    size = np.abs(forms).max(axis=1, initial=0.0)
    size[size == 0] = 1.0
    forms = forms / size[:, None]
    for i, of_one in zip([*features.tolist(), *totals.tolist()], [*unit[:n], *size[: len(totals)]], strict=True):
        low[part.cells_of(i)] /= of_one
        high[part.cells_of(i)] /= of_one
    up, down, square = prices[0] * unit, prices[1] * unit, prices[2] * unit**2
    if square.any():
        moves = [low[part.offsets[i]] < high[part.offsets[i + 1] - 1] for i in features.tolist()]
        square[n:] = OF_SQUARES * np.median(square[:n][moves] if any(moves) else square[:n])
        up[n:], down[n:] = up[n:] - square[n:], square[n:]
    dear = PENALTY * (np.maximum(up, down) + 2 * square).max(initial=0.0)
    beside = forms[len(totals) :]
    first = n + np.cumsum([0, *(int(cells.open[part.cells_of(i)].sum()) for i in levels.tolist())])
    one_level = (np.arange(m) >= first[:-1, None]) & (np.arange(m) < first[1:, None])
    least = np.concatenate([low[part.offsets[totals]], -np.abs(beside).sum(axis=1), np.ones(len(levels))])
    most = np.concatenate([high[part.offsets[totals + 1] - 1], limits / size[len(totals) :], np.ones(len(levels))])
    forms = np.concatenate([forms, one_level.astype(float)])
    binds = np.arange(len(forms)) >= len(totals)
    slot, of_levels = np.full((2, part.n_features), -1, np.int64)
    slot[features], slot[totals], of_levels[levels] = np.arange(n), m + np.arange(len(totals)), first[:-1]
    feature = np.concatenate([features, np.full(m - n, -1), totals, np.full(len(forms) - len(totals), -1)])
    return Coupling(
        Quadratic(np.diag(square), np.zeros((0, m)), square, up, down),
        SumCosts(forms, np.full(len(forms), dear), least, most, binds, up, down),
        feature.astype(np.int64),
        slot,
        of_levels,
        low[opened],
        high[opened],
        part.ensemble.n_trees,
    )

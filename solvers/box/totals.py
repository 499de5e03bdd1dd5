"""Branch-and-bound over boxes of cells of numbers and of totals: trees of hyperplanes.

A total is a sum of changes that has cells of its own (`ocf.cells.totals`). What a box costs at least is a small linear
program, in the changes alone, whose sums lie in the box's ranges of totals (`ocf.solvers.box.sums`); with its
multipliers each cell has a price, by which leaves die and sides move in as where nothing is coupled. A box whose least
point has the target is done with when the cheapest point of that point's leaves, in exact arithmetic, costs no more
than the box does at least; so is a box of a single choice of leaves, once it has been tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.solvers.box.coupled_bounds import Coupling, least_choice
from ocf.solvers.box.coupled_boxes import CoupledBoxes
from ocf.solvers.box.instance import make_instance
from ocf.solvers.box.points import meets_target
from ocf.solvers.box.quadratic import Quadratic
from ocf.solvers.box.sums import SumCosts
from ocf.solvers.result import SolverOptions

if TYPE_CHECKING:
    from ocf.cells.cell_problem import CellProblem

#: What a total costs off its range, in times of the dearest change, all of them as far as they may go.
PENALTY = 1024.0


class TotalsSearch(CoupledBoxes):
    """State of a search by choices of leaves.

    Parameters
    ----------
    cells : CellProblem
        Not infeasible; changes that totals add up cost nothing in it.
    coupling : Coupling
        See `couple_totals`.
    whole : (n,) int64
        Features whose changes are added up and each cell of which has one value.
    options, cutoff
        As in `CoupledBoxes`.
    take : callable
        Solves over the common region of one leaf a tree, (n_trees,), with the values that the whole features have at a
        choice of cells, (n_features,); what its cheapest point costs, inf where it has none that the user's model
        takes, and what the cheapest point of all costs by then.
    """

    def __init__(
        self,
        cells: CellProblem,
        coupling: Coupling,
        whole: IntArray,
        options: SolverOptions,
        cutoff: float,
        take: Callable[[IntArray, IntArray], tuple[float, float]],
    ) -> None:
        super().__init__(cells, coupling, make_instance(cells), options, cutoff)
        self.take, self.whole = take, whole
        self.limit = min(self.limit, 1.0 + 2.0 * self._dearest())

    def _dearest(self) -> float:
        """What a point costs at most: a total off its range, which has a price here, costs more than that."""
        instance, costs = self.instance, self.coupling.sums
        dearest = float(sum(map(np.max, np.split(instance.cost, instance.offsets[1:-1]))))
        for k, f in enumerate(self.coupling.feature[: len(costs.up)].tolist()):
            low, high = self.coupling.low[instance.offsets[f]], self.coupling.high[instance.offsets[f + 1] - 1]
            dearest += max(costs.up[k] * high, -costs.down[k] * low, 0.0)
            dearest += self.coupling.quadratic.diagonal[k] * max(low * low, high * high)
        return dearest

    def look(self) -> float:
        """Cost of the cheapest point in the leaves of a box's least point, if they have the target; else inf."""
        least_choice(self.coupling, self.instance, self.domain, self.box, self.x)
        if (self.domain.lo[self.whole] < self.domain.hi[self.whole]).any():
            self._to_whole()  # else rounding may decide on which side of a threshold a total lies: both are looked at
        return self.offer(self.x) if meets_target(self.evaluator, self.x) else np.inf

    def offer(self, x: IntArray) -> float:
        """Solve over the leaves of a choice of cells, once; what their cheapest point costs, inf without one.

        Parameters
        ----------
        x : (n_features,) int64
            Cells of the partition.
        """
        leaves = self.cells.partition.leaves_at(x)
        key = self._key(leaves, x)
        if key in self.closed or not self.cells.live[leaves].all():
            return np.inf
        cost, least = self.take(leaves, x)
        self.closed.add(key)
        if least < min(self.upper, self.cutoff):
            self.best, self.upper = x.copy(), least
            self.limit = min(self.limit, least - self.tolerance * abs(least))
        return cost

    def _to_whole(self) -> None:
        """Move the choice of cells from a box's least point to the nearest values of the whole features."""
        coupling, instance, domain, m = self.coupling, self.instance, self.domain, len(self.coupling.quadratic.up)
        changes = self.box.t[:m].copy()
        for f, k in zip(self.whole.tolist(), coupling.slot[self.whole].tolist(), strict=True):
            first = instance.offsets[f] + domain.lo[f]
            values = coupling.low[first : instance.offsets[f] + domain.hi[f] + 1]
            nearest = int(np.abs(values - changes[k]).argmin())
            changes[k], self.x[f] = values[nearest], instance.cell[first + nearest]
        sums = coupling.sums.forms @ changes
        for f, total in zip(coupling.feature[m:].tolist(), sums.tolist(), strict=True):
            if f >= 0:
                first, last = instance.offsets[f], instance.offsets[f + 1] - 1
                at = first + int(np.searchsorted(coupling.high[first:last], total))
                self.x[f] = instance.cell[at]

    def is_done(self) -> bool:
        """Whether each tree has a single live leaf left, each whole feature a single cell, and that has been tried."""
        live, lo = self.instance.leaf[self.domain.live], self.domain.lo[self.whole]
        if len(live) > self.coupling.n_trees or (lo < self.domain.hi[self.whole]).any():
            return False
        x = np.zeros(len(self.x), np.int64)
        x[self.whole] = self.instance.cell[self.instance.offsets[self.whole] + lo]
        return self._key(live, x) in self.closed

    def _key(self, leaves: IntArray, x: IntArray) -> bytes:
        return np.concatenate([leaves, x[self.whole]]).astype(np.int64).tobytes()


def couple_totals(
    cells: CellProblem,
    features: IntArray,
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
        Over numbers, totals and other features.
    features : (m,) int64
        The numbers whose changes are added up.
    prices : triple of (m,) float64
        What a unit of increase and of decrease costs, and the square of a change: all of them something, or none.
    forms : (n_totals + n_limits, m) float64
        What the totals, and the other sums, make of the changes; none of them is 0.
    totals : (n_totals,) int64
        The totals, as features.
    ends : pair of (n_cells,) float64
        Least and greatest change, or sum, in each cell; they grow with the cell.
    limits : (n_limits,) float64
        What the other sums are at most.
    """
    part, opened, m = cells.partition, np.flatnonzero(cells.open), len(features)
    low, high = ends[0].copy(), ends[1].copy()

    def reach(i: int) -> float:
        return float(max(np.abs(low[part.cells_of(i)]).max(), np.abs(high[part.cells_of(i)]).max())) or 1.0

    # changes in parts of what they may be, and sums of such whose largest weight is 1
    unit = np.array([reach(i) for i in features.tolist()]).reshape(m)
    forms = np.ascontiguousarray(forms * unit)
    size = np.abs(forms).max(axis=1, initial=0.0)
    size[size == 0] = 1.0
    forms = forms / size[:, None]
    for i, of_one in zip([*features.tolist(), *totals.tolist()], [*unit, *size[: len(totals)]], strict=True):
        low[part.cells_of(i)] /= of_one
        high[part.cells_of(i)] /= of_one
    up, down, square = prices[0] * unit, prices[1] * unit, prices[2] * unit**2
    dear = PENALTY * (np.maximum(up, down) + 2 * square).max(initial=0.0)
    beside = forms[len(totals) :]
    least = np.concatenate([low[part.offsets[totals]], -np.abs(beside).sum(axis=1)])
    most = np.concatenate([high[part.offsets[totals + 1] - 1], limits / size[len(totals) :]])
    binds = np.arange(len(forms)) >= len(totals)
    slot = np.full(part.n_features, -1, np.int64)
    slot[features], slot[totals] = np.arange(m), m + np.arange(len(totals))
    return Coupling(
        Quadratic(np.diag(square), np.zeros((0, m)), square, up, down),
        SumCosts(forms, np.full(len(forms), dear), least, most, binds, up, down),
        np.concatenate([features, totals, np.full(len(limits), -1)]).astype(np.int64),
        slot,
        low[opened],
        high[opened],
        part.ensemble.n_trees,
    )

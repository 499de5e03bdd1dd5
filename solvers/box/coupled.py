"""Branch-and-bound over boxes of cells by a cost that couples features: sums of squares, or of absolute values.

See `Cost.forms` and `Cost.absolutes`. No cell has a price of its own, so that bounds come from the form over whole
boxes (`ocf.solvers.box.coupled_bounds`). A box whose least point has the target is done with: the cheapest point of
that point's cells, in exact arithmetic, is the cheapest of the box. So is a box of one choice of cells. All others are
split.

Correlated features have a form with small eigenvalues, by which the linear relaxation of a forest is worth nothing: on
breast cancer, 10 features, 100 x 5, it is 0.0018 where the optimum is 0.341, and the bound of the first box 0.14.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.cells.reduction import TOLERANCE
from ocf.problem.costs import form_matrix
from ocf.solvers.box.coupled_bounds import Coupling, least_choice
from ocf.solvers.box.coupled_boxes import CoupledBoxes, CoupledWorker
from ocf.solvers.box.instance import Instance, copied, make_instance
from ocf.solvers.box.points import meets_target
from ocf.solvers.box.quadratic import EPS, Quadratic
from ocf.solvers.box.sums import absolute_values
from ocf.solvers.result import SolverOptions

if TYPE_CHECKING:
    from ocf.cells.cell_problem import CellProblem
    from ocf.cells.sliding import Placement
    from ocf.features.feature import Feature
    from ocf.problem.costs import Cost


def refusal(cells: CellProblem) -> str:
    """Why a coupled problem is none for this search; empty when it is."""
    values, cost = cells.values, cells.problem.cost
    if values is None or not (values.forms or values.absolutes):
        return cells.coupling
    if cost.absolutes and (cost.forms or cost.squares or cost.l2):
        return "costs that couple features by squares and absolute values together"
    if cells.requirements.curve is not None or cells.leaf_cost is not None:
        return "costs that couple features together with scores of a curve or costs of leaves"
    return "" if _in_order(cells) else "costs that couple features whose values are in no order"


def _coupled(cells: CellProblem) -> list[int]:
    """The features that occur in the forms."""
    assert cells.values is not None
    return sorted({i for form in (*cells.values.forms, *cells.values.absolutes) for i in form.parts})


def _in_order(cells: CellProblem) -> bool:
    part = cells.partition
    for i in _coupled(cells):
        low, high = _changes(cells, i)
        opened = cells.open[part.cells_of(i)]
        rising = (np.diff(low[opened]) >= 0).all() and (np.diff(high[opened]) >= 0).all()
        if not (part.ordered[i] and rising):
            return False
    return True


def _changes(cells: CellProblem, i: int) -> tuple[FloatArray, FloatArray]:
    """Least and largest change within each cell of a feature, in the user's units, with room for rounding."""
    values, feature = cells.values, cells.problem.space.features[i]
    assert values is not None
    origin, span = float(cells.problem.origin[i]), cells.partition.cells_of(i)
    ends = np.stack([values.anchor[span], values.far[span]])
    apart = np.isnan(ends) | feature.is_special(ends) | bool(feature.is_special(origin))
    change = np.where(apart, 0.0, feature.distance(origin, np.where(apart, origin, ends)) * feature.scale)
    room = 4 * EPS * np.abs(change)
    return (change - room).min(axis=0), (change + room).max(axis=0)


def make_coupling(cells: CellProblem) -> tuple[Coupling, Instance]:
    """The coupling of a problem that is not refused, and its instance, in which cells cost what the form does not.

    Parameters
    ----------
    cells : CellProblem
    """
    values, part, cost = cells.values, cells.partition, cells.problem.cost
    assert values is not None
    place, space = _coupled(cells), cells.problem.space
    names = [space.names[i] for i in place]
    forms, absolutes = (form_matrix(rows, names) for rows in (cost.forms, cost.absolutes))
    pieces = np.array([_pieces(cost, space.features[i]) for i in place]).reshape(-1, 3)
    size = np.sqrt((forms * forms).sum(axis=0) + pieces[:, 2]) + np.abs(absolutes).sum(axis=0)
    unit = 2.0 ** np.round(np.log2(np.where(size > 0, size, 1.0)))
    forms, up, down, diagonal = forms / unit, pieces[:, 0] / unit, pieces[:, 1] / unit, pieces[:, 2] / unit**2
    quadratic = Quadratic(forms.T @ forms + np.diag(diagonal), forms, diagonal, up, down)
    low, high, rest = np.zeros(part.n_cells), np.zeros(part.n_cells), cells.cost.copy()
    for k, i in enumerate(place):
        span = part.cells_of(i)
        low[span], high[span] = (unit[k] * change for change in _changes(cells, i))
        near = np.where((low[span] <= 0) & (high[span] >= 0), 0.0, np.where(low[span] > 0, low[span], high[span]))
        of_form = np.where(near > 0, up[k], -down[k]) * near + diagonal[k] * near * near
        rest[span] = np.maximum(rest[span] - of_form * (1 + 16 * EPS), 0.0)
    instance = make_instance(replace(cells, cost=rest))
    opened = np.flatnonzero(cells.open)  # the cells of one feature follow those of another, as in the instance
    slot = np.full(part.n_features, -1, np.int64)
    slot[place] = np.arange(len(place))
    coupling = Coupling(
        quadratic,
        absolute_values(absolutes / unit, up, down),
        np.append(place, np.full(len(absolutes), -1)).astype(np.int64),
        slot,
        np.full(part.n_features, -1, np.int64),
        low[opened],
        high[opened],
        int(values.constraint_trees.start),
    )
    return coupling, instance


def _pieces(cost: Cost, feature: Feature) -> tuple[float, float, float]:
    """What a unit of increase and of decrease costs besides the forms, and its square; the least of both sides."""
    if feature.cost is not None:
        return 0.0, 0.0, 0.0
    up, down = feature.weight_up / feature.scale, feature.weight_down / feature.scale
    square = dict(reversed(cost.squares)).get(feature.name, 0.0)
    return cost.l1 * up, cost.l1 * down, cost.l2 * min(up, down) / feature.scale + square


class CoupledSearch(CoupledBoxes):
    """State of a search by choices of cells, each of which is placed exactly.

    Parameters
    ----------
    cells : CellProblem
        Not refused, not infeasible.
    options, cutoff
        As in `CoupledBoxes`.
    confirm : callable, optional
        Whether the user's model gives the target at a choice of cells.
    """

    def __init__(
        self,
        cells: CellProblem,
        options: SolverOptions,
        cutoff: float = np.inf,
        confirm: Callable[[IntArray], bool] | None = None,
    ) -> None:
        super().__init__(cells, *make_coupling(cells), options, cutoff)
        self.confirm = confirm
        self.placed: dict[bytes, Placement | None] = {}

    def worker(self) -> ChoiceWorker:
        """What visits boxes, for one thread."""
        return ChoiceWorker(self)

    def offer(self, x: IntArray) -> float:
        """Judge a choice of cells, and keep it if it is the best; its cost, inf where it is not admissible.

        Parameters
        ----------
        x : (n_features,) int64
            Cells of the partition.
        """
        with self.judging:
            return self._judged(x)

    def _judged(self, x: IntArray) -> float:
        leaves = self.cells.partition.leaves_at(x)
        values = self.cells.values
        assert values is not None
        key = values.of_model(leaves).tobytes()
        if key in self.closed or self.cells.is_excluded(leaves):
            return np.inf
        margins = self.cells.margins(leaves)
        if not (self.cells.live[leaves].all() and (margins >= 0).all()):
            return np.inf
        uncertain = bool((margins < self.cells.requirements.error_bound).any())
        if x.tobytes() not in self.placed:
            self.placed[x.tobytes()] = self.cells.place(x, cutoff=min(self.upper, self.cutoff))
        placed = self.placed[x.tobytes()]
        if placed is None:
            return np.inf
        if uncertain and placed.point is not None and self.confirm is not None and not self.confirm(x.copy()):
            self.closed.add(key)
            self.refused += 1
            return np.inf
        if placed.leaves_open:
            self.left_open = min(self.left_open, placed.bound)
        cost = placed.cost
        if cost < min(self.upper, self.cutoff):
            self.keep(x, cost)
        return cost


class ChoiceWorker(CoupledWorker):
    """One thread's part of a search by choices of cells.

    Parameters
    ----------
    search : CoupledSearch
    """

    def look(self) -> float:
        """Cost of the cheapest point in the cells of a box's least point, if it is admissible; else inf."""
        least_choice(self.coupling, self.instance, self.domain, self.box, self.x)
        if not meets_target(self.evaluator, self.x):
            return np.inf
        # exact arithmetic takes its time, and what lies next to the point may be cheaper
        t, lower = self.box.t.copy(), self.descended(self.x.copy())
        self.box.t[:] = t
        cost = self.offer(lower)
        return cost if np.array_equal(lower, self.x) or cost < np.inf else self.offer(self.x)

    def is_done(self) -> bool:
        """Whether each tree of the model has a single live leaf left, and their choice is excluded."""
        first_of_cells = self.instance.trees[self.coupling.n_trees]
        live = self.instance.leaf[:first_of_cells][self.domain.live[:first_of_cells]]
        if len(live) > self.coupling.n_trees:
            return False
        return live.tobytes() in self.search.closed or self.search.cells.is_excluded(live)

    def descended(self, x: IntArray) -> IntArray:
        """Where one ends that goes from a choice of cells with the target to cheaper ones next to it.

        Parameters
        ----------
        x : (n_features,) int64
            Cells of the partition.
        """
        cost = self.around(x.copy())
        while cost < np.inf:
            best, chosen = cost, None
            for tried in self._neighbours(x):
                if meets_target(self.evaluator, tried):
                    found = self.around(tried)
                    if found < best - TOLERANCE * abs(best) and meets_target(self.evaluator, tried):
                        best, chosen = found, tried
            if chosen is None:
                break
            cost, x = best, chosen
        return x

    def _neighbours(self, x: IntArray) -> list[IntArray]:
        """Choices of cells that differ in one feature: beyond the leaves of x, or the cheapest by itself."""
        self.around(x.copy())
        instance, domain, t = self.instance, copied(self.half), self.box.t.copy()
        low, high = self.box.low.copy(), self.box.high.copy()
        moves: list[tuple[int, int]] = []
        for f, i in enumerate(self.coupling.slot.tolist()):
            span = slice(instance.offsets[f], instance.offsets[f + 1])
            opened = instance.cell[span]
            if i >= 0 and t[i] >= high[i] and domain.hi[f] + 1 < len(opened):
                moves.append((f, int(opened[domain.hi[f] + 1])))
            if i >= 0 and t[i] <= low[i] and domain.lo[f] > 0:
                moves.append((f, int(opened[domain.lo[f] - 1])))
            least = int(opened[instance.cost[span].argmin()])
            if i < 0 and least != x[f]:
                moves.append((f, least))
        out = []
        for f, cell in moves:
            out.append(x.copy())
            out[-1][f] = cell
        return out

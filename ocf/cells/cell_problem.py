"""A problem over cells: what reduction shrinks and solvers solve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.sliding import Placement, Values
from ocf.problem.requirements import Requirements
from ocf.support.tolerances import equal_cost

if TYPE_CHECKING:
    from ocf.cells.partition import Partition
    from ocf.features.feature import Feature
    from ocf.problem.problem import Problem


#: Levels of a feature whose cells are kept for each level that rows have: what is kept grows with their square.
_FEW_LEVELS = 32


@dataclass(frozen=True, eq=False)
class CellProblem:
    """A problem over cells: choose an open cell per feature and the live leaf of each tree that contains them.

    Reduction closes cells and kills leaves; nothing else changes, so one compiled model serves every row.

    Attributes
    ----------
    problem : Problem
    partition : Partition
    requirements : Requirements
        Of one alternative of the target, over all leaves.
    value : (n_cells,) float64
        The cell's admissible coded value nearest to the origin; NaN where it has none.
    cost : (n_cells,) float64
        Of that value; inf where there is none.
    open : (n_cells,) bool
        Cells that a solution may use.
    live : (n_leaves,) bool
        Leaves that a solution may use.
    excluded : tuple of (n,) int64 arrays
        Leaves, one of each of some trees, that a solution may not use all together: choices that the user's model
        has rejected, and those that are already known.
    values : Values or None
        Rows of the user's constraints and values inside cells; None without constraints.
    tangents : tuple of (cell, slide)
        Where a model has to follow a curved cost exactly.
    leaf_cost : (n_leaves,) float64 or None
        What each leaf adds to the cost, at least 0; None: nothing.
    """

    problem: Problem
    partition: Partition
    requirements: Requirements
    value: FloatArray
    cost: FloatArray
    open: BoolArray
    live: BoolArray
    excluded: tuple[IntArray, ...] = ()
    leaf_cost: FloatArray | None = None
    values: Values | None = None
    tangents: tuple[tuple[int, float], ...] = ()

    @cached_property
    def settled(self) -> dict[object, float]:
        """Bounds of reductions that came to an end with this object, by what they were asked; a copy has none."""
        return {}

    @cached_property
    def infeasible(self) -> bool:
        """Whether some feature has no open cell or some tree no live leaf: then there is no solution."""
        part = self.partition
        cells = np.add.reduceat(self.open.astype(int), part.offsets[:-1])
        leaves = np.add.reduceat(self.live.astype(int), part.ensemble.leaf_offsets[:-1])
        return bool((cells == 0).any() or (leaves == 0).any())

    def point(self, cells: IntArray) -> FloatArray:
        """Coded row at a choice of cells, (n_features,); missing values of the origin stay missing."""
        point = self.value[self.partition.offsets[:-1] + cells]
        origin = self.problem.origin
        return np.where(np.isnan(origin), origin, point)

    def cost_of(self, cells: IntArray) -> float:
        """Cost of a choice of cells, with that of its leaves."""
        cost = float(self.cost[self.partition.offsets[:-1] + cells].sum())
        return cost if self.leaf_cost is None else cost + float(self.leaf_cost[self.partition.leaves_at(cells)].sum())

    @property
    def couples(self) -> bool:
        """Whether values inside cells matter, so that only a mathematical model can decide; see `ocf.cells.sliding`."""
        return self.values is not None and self.values.couples

    @property
    def coupling(self) -> str:
        """What ties features together besides the trees, in words; empty when nothing.

        Searches that treat one feature at a time refuse a problem by this (`ocf.solvers.protocols.CellSolver.refuses`).
        """
        if self.values is None or not self.values.couples:
            return ""
        together = self.values.forms or self.values.absolutes
        return "costs of several features together" if together else "constraints that relate values inside cells"

    def place(self, cells: IntArray, *, hasty: bool = False, cutoff: float = np.inf) -> Placement | None:
        """Cheapest point of a choice of cells that meets the user's constraints, exactly; None if there is none.

        Parameters
        ----------
        cells : (n_features,) int64
            Counted within the features.
        hasty, cutoff
            As in `ocf.cells.sliding.Values.place`.
        """
        if self.values is None:
            cost = self.cost_of(cells)
            return Placement(self.point(cells), cost, cost)
        # what leaves cost only adds to the cost
        placed = self.values.place(self.partition.offsets[:-1] + cells, hasty=hasty, cutoff=cutoff)
        if placed is None or self.leaf_cost is None:
            return placed
        own = float(self.leaf_cost[self.partition.leaves_at(cells)].sum())
        return replace(placed, cost=placed.cost + own, bound=placed.bound + own)

    def allows(self, point: FloatArray) -> bool:
        """Whether a coded point meets the user's constraints, exactly."""
        return self.values is None or self.values.allows(point)

    def open_within(self, leaves: IntArray) -> list[BoolArray]:
        """For each feature, which of its cells are open and lie in all of some leaves, (n_cells of the feature,)."""
        part = self.partition
        low, high = part.low[leaves].max(axis=0), part.high[leaves].min(axis=0)
        out = []
        for i in range(part.n_features):
            index = np.arange(part.widths[i])
            usable = self.open[part.cells_of(i)] & (low[i] <= index) & (index <= high[i])
            if not part.ordered[i]:
                usable &= part.members_of(i)[leaves].all(axis=0)
            out.append(usable)
        return out

    def cheapest_within(self, leaves: IntArray) -> IntArray | None:
        """Cheapest open cell of each feature that lies in all of some leaves, (n_features,); None if one has none.

        Parameters
        ----------
        leaves : (n_trees,) int64
            One leaf of each tree.
        """
        part, choice = self.partition, np.zeros(self.partition.n_features, np.int64)
        for i, usable in enumerate(self.open_within(leaves)):
            if not usable.any():
                return None
            choice[i] = np.where(usable, self.cost[part.cells_of(i)], np.inf).argmin()
        return choice

    def count_changes(self, choice: IntArray) -> int:
        """How many cells of a choice, (n_features,), cost something."""
        return int((self.cost[self.partition.offsets[:-1] + choice] > 0).sum())

    def changes_less(self, choice: IntArray, other: IntArray, cost: float) -> bool:
        """Whether a choice of cells costs no more than so much, up to rounding, and in fewer cells than another.

        Parameters
        ----------
        choice, other : (n_features,) int64
        cost : float
            The least that is known.
        """
        fewer = self.count_changes(choice) < self.count_changes(other)
        return fewer and self.cost_of(choice) <= equal_cost(cost)

    def is_excluded(self, leaves: IntArray) -> bool:
        """Whether one leaf of each tree, as a whole, is excluded."""
        return any(np.isin(choice, leaves).all() for choice in self.excluded)

    def margins(self, leaves: IntArray) -> FloatArray:
        """By how much one leaf per tree exceeds each requirement, (n_rows,)."""
        return self.requirements.gain[leaves].sum(axis=0) - self.requirements.need


def cell_values(problem: Problem, part: Partition) -> tuple[FloatArray, FloatArray]:
    """The admissible coded value of each cell nearest to the origin, NaN where there is none, and its cost, or inf.

    Those of features with few levels are kept with the partition for other rows.

    Parameters
    ----------
    problem : Problem
    part : Partition
        Of the problem's trees; it may have more cuts than they need.
    """
    value = np.empty(part.n_cells)
    cost = np.empty(part.n_cells)
    kept: dict[Any, tuple[Feature, FloatArray, FloatArray]] = part.derived.setdefault("levels", {})
    for i, (feature, origin) in enumerate(zip(problem.space.features, problem.origin.tolist(), strict=True)):
        span = part.cells_of(i)
        if np.isnan(origin):
            value[span], cost[span] = np.nan, np.where(np.arange(part.widths[i]) == 0, 0.0, np.inf)
            continue
        key = (i, origin, problem.cost)
        known = kept.get(key)
        if known is None or known[0] is not feature:
            price = partial(problem.cost.of, feature, origin)
            nearest = feature.nearest(part.lower[span], part.upper[span], origin, price)
            known = feature, nearest, price(nearest)
            if 0 < len(feature.levels) <= _FEW_LEVELS:
                kept[key] = known
        value[span], cost[span] = known[1:]
    return value, np.where(np.isnan(cost), np.inf, cost)


def free_forms(problem: Problem, part: Partition) -> tuple[CellProblem, ...]:
    """The finite forms of a problem as if it had no constraints, one per alternative of its target.

    Parameters
    ----------
    problem : Problem
    part : Partition
        As in `cell_values`.
    """
    value, cost = cell_values(problem, part)
    live = part.reachable.copy()
    live[list(problem.dead)] = False
    return tuple(
        CellProblem(
            problem,
            part,
            requirements,
            value,
            cost,
            np.isfinite(cost),
            live.copy(),
            leaf_cost=problem.penalty,
        )
        for requirements in problem.alternatives
    )

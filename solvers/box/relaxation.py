"""The LP relaxation at the nodes, by HiGHS's dual simplex, and rigorous bounds from its multipliers.

From node to node only bounds of columns change, under which any earlier basis stays dual feasible, so every solve
starts warm, from the basis of the node's parent. When much of the root's box is done with, the LP is made anew over
what is open. HiGHS sees the columns of `ocf.solvers.box.cell_columns`.

No statement of the solver is believed: from the multipliers that it returns the Lagrangian bound is evaluated anew
(`ocf.solvers.box.propagation`), less what rounding can do, and that is a bound whatever the multipliers are. A wrong
status or objective makes the search slower and never wrong.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.solvers.box.cell_columns import CellColumns, steps_of
from ocf.solvers.box.instance import Domain, Instance
from ocf.solvers.box.partial_lp import Basis, PartialLP
from ocf.solvers.box.propagation import Multipliers
from ocf.support.loops import copy_to
from ocf.support.numba_cache import array_kernel

if TYPE_CHECKING:
    from ocf.solvers.cell_form import Compiled
    from ocf.solvers.standard_form import Reduced, StandardForm

#: Unit roundoff of float64, with room to spare.
_EPS = float(np.finfo(float).eps)


class BoxRelaxation(NamedTuple):
    """What one LP gave.

    Attributes
    ----------
    multipliers : Multipliers or None
        Of the rows at the end of the solve.
    ray : Multipliers or None
        Of a dual ray when the solver says that the LP is infeasible: a bound above 0 by these, for costs of zero,
        proves that the box holds no point at all.
    share : (n_open,) float64
        How much of the LP's point lies at each cell or, in an ordered feature, beyond the cell before it.
    basis : Basis or None
        At the end of the solve.
    """

    multipliers: Multipliers | None
    ray: Multipliers | None
    share: FloatArray
    basis: Basis | None


class Columns(NamedTuple):
    """Where leaves and cells stand among the columns; -1 where they are constants of the form.

    Attributes
    ----------
    leaf : (n_live,) int64
    cell : (n_open,) int64
        Of an ordered feature: the column that says "at this cell or beyond"; the first cell has none.
    """

    leaf: IntArray
    cell: IntArray


class Relaxation:
    """The LP relaxation of an instance over the boxes within a hull; its `lp` is to be started before it is solved.

    Parameters
    ----------
    compiled : ocf.solvers.cell_form.Compiled
        Any formulation whose relaxation is valid, such as the interval model.
    cells : CellProblem
    instance : Instance
        Of the same cells.
    hull : Domain
        Every box that is to be solved lies within it.
    generation : int
        Of the hull.
    reduced : Reduced, optional
        The form, where it is made: of `compiled` and `cells`, with the whole instance for a hull.

    Attributes
    ----------
    lp : PartialLP
    infeasible : bool
        The form contradicts itself: the instance holds no point.
    solves : int
    seconds : float
        Spent in the solver.
    """

    def __init__(
        self,
        compiled: Compiled,
        cells: CellProblem,
        instance: Instance,
        hull: Domain,
        generation: int = 0,
        reduced: Reduced | None = None,
    ) -> None:
        cells = restricted(cells, instance, hull)
        reduced = reduced or compiled.instance(cells)
        self.form: StandardForm = reduced.form
        self.infeasible = self.form.contradicts_itself()
        self.instance = instance
        self._decided_share = _decided_share(instance, hull)
        self.columns = _columns(compiled, cells, instance, reduced.P)
        steps = steps_of(self.form, self.columns.cell, instance.offsets, instance.ordered)
        self._by_cells = CellColumns(self.form, steps)
        self.lp = PartialLP(self._by_cells.form, generation)
        group = _groups(self.form, self.columns, instance)
        self.linking = _linking(self.form, group)
        # a formulation's own auxiliary columns, if it has any
        self._others = group >= len(instance.trees) - 1 + len(instance.ordered)
        self.solves, self.seconds = 0, 0.0
        self._lower, self._upper = self.form.lower.copy(), self.form.upper.copy()
        self._row_size = np.asarray(abs(self.form.A).sum(axis=1)).ravel()
        self._row_size += np.maximum(_finite(self.form.row_lower), _finite(self.form.row_upper))
        longest = int(np.diff(self.form.A.tocsc().indptr).max(initial=0))
        chain = longest + int(np.diff(instance.offsets).max()) + len(instance.trees) + len(instance.ordered)
        self._rounding = (chain + 16) * _EPS

    @property
    def decided(self) -> bool:
        """Whether the form has no column left to choose."""
        return self.form.n_cols == 0 and not self.infeasible

    def solve(
        self, domain: Domain, limit: float, seconds: float | None = None, basis: Basis | None = None
    ) -> BoxRelaxation | None:
        """Solve the LP over a box, until its bound passes the limit; None when the box contradicts the form.

        Parameters
        ----------
        domain : Domain
            Within the hull.
        limit : float
        seconds : float, optional
            Time limit.
        basis : Basis, optional
            Of a box around this one, where to start; by default where the first solve ended.
        """
        if self.infeasible:
            return None
        lower, upper = self.bounds_of(domain)
        if (lower > upper).any():
            return None
        lower, upper = self._by_cells.bounds(lower, upper)
        if (lower > upper).any():
            return None
        begin = time.perf_counter()
        found = self.lp.solve(lower, upper, limit, seconds, basis)
        self.seconds += time.perf_counter() - begin
        self.solves += 1
        back = self._by_cells
        share = self.shares(back.values(found.value)) if len(found.value) else self._decided_share.copy()
        multipliers = self.multipliers(back.multipliers(found.dual)) if len(found.dual) else None
        ray = None if found.ray is None else self.multipliers(back.multipliers(found.ray), costs=False)
        return BoxRelaxation(multipliers, ray, share, found.basis)

    def bounds_of(self, domain: Domain) -> tuple[FloatArray, FloatArray]:
        """Bounds of the columns in a box, (n_cols,) each, overwritten by the next call; a pair may cross.

        Parameters
        ----------
        domain : Domain
            Within the hull.
        """
        form = self.form
        _column_bounds(self.instance, domain, self.columns, form.lower, form.upper, self._lower, self._upper)
        return self._lower, self._upper

    def tighten(self, domain: Domain, lower: FloatArray, upper: FloatArray) -> None:
        """Shrink a box to what bounds of the columns leave of it: the way back from `bounds_of`.

        Parameters
        ----------
        domain : Domain
            Overwritten.
        lower, upper : (n_cols,) float64
        """
        _shrink_to(self.instance, domain, self.columns, lower, upper)

    def shares(self, value: FloatArray) -> FloatArray:
        """`BoxRelaxation.share` at a point of the LP.

        Parameters
        ----------
        value : (n_cols,) float64
        """
        share, cell = self._decided_share.copy(), self.columns.cell
        share[cell >= 0] = value[cell[cell >= 0]]
        return share

    def multipliers(self, dual: FloatArray, costs: bool = True) -> Multipliers:
        """The Lagrangian bound for any multipliers of the rows, those of a wrong sign set to zero.

        Parameters
        ----------
        dual : (n_rows,) float64
        costs : bool
            Off: with costs of zero, as for a proof of infeasibility.
        """
        form = self.form
        usable = self.linking & np.isfinite(dual) & np.isfinite(np.where(dual > 0, form.row_lower, form.row_upper))
        y = np.where(usable, dual, 0.0)
        side = np.where(y > 0, _zero_if_infinite(form.row_lower), _zero_if_infinite(form.row_upper))
        c = form.c if costs else np.zeros(form.n_cols)
        c0 = form.c0 if costs else 0.0
        d = c - form.A.T @ y
        # summed by NumPy, pairwise: products of long vectors go to a BLAS whose threads wait for more at full speed
        size = abs(c0) + np.abs(c).sum() + float((np.abs(y) * self._row_size).sum())
        least = np.where(d > 0, form.lower, form.upper)  # of a column without weight no end is asked for
        rest = np.multiply(d, least, where=d != 0, out=np.zeros_like(d))[self._others].sum()
        constant = c0 + float((side * y).sum()) + float(rest) - self._rounding * float(size)
        return Multipliers(constant, *_weights(self.instance, self.columns, d))


def _finite(side: FloatArray) -> FloatArray:
    return np.abs(_zero_if_infinite(side))


def _zero_if_infinite(side: FloatArray) -> FloatArray:
    return np.where(np.isfinite(side), side, 0.0)


def no_relaxation(instance: Instance) -> Multipliers:
    """Multipliers of zero for everything but the costs: the bound is that of the cheapest cells."""
    size = float(np.abs(instance.cost).sum()) * (len(instance.ordered) + 16) * _EPS
    return Multipliers(-size, np.zeros(len(instance.leaf)), instance.cost)


def restricted(cells: CellProblem, instance: Instance, hull: Domain) -> CellProblem:
    """The problem with only what a box of its instance holds.

    Parameters
    ----------
    cells : CellProblem
        Of which the instance was made.
    instance : Instance
    hull : Domain
    """
    part = cells.partition
    rank = np.arange(len(instance.cell)) - np.repeat(instance.offsets[:-1], np.diff(instance.offsets))
    feature = np.repeat(np.arange(len(instance.ordered)), np.diff(instance.offsets))
    within = (hull.lo[feature] <= rank) & (rank <= hull.hi[feature])
    within = np.where(instance.ordered[feature], within, hull.level)
    opened, live = np.zeros_like(cells.open), np.zeros_like(cells.live)
    opened[(part.offsets[feature] + instance.cell)[within]] = True
    live[instance.leaf[hull.live]] = True
    return replace(cells, open=opened, live=live)


def _decided_share(instance: Instance, hull: Domain) -> FloatArray:
    """`BoxRelaxation.share` of cells without a column."""
    rank = np.arange(len(instance.cell)) - np.repeat(instance.offsets[:-1], np.diff(instance.offsets))
    feature = np.repeat(np.arange(len(instance.ordered)), np.diff(instance.offsets))
    return np.where(instance.ordered[feature], rank <= hull.lo[feature], hull.level).astype(float)


def _columns(compiled: Compiled, cells: CellProblem, instance: Instance, p: Any) -> Columns:
    """Columns of the reduced form in which leaves and open cells stand."""
    part = cells.partition
    reduced = np.full(p.shape[0], -1, np.int64)
    kept = np.diff(p.indptr) == 1
    reduced[kept] = p.indices
    cell = np.full(len(instance.cell), -1, np.int64)
    for i in range(part.n_features):
        span = slice(instance.offsets[i], instance.offsets[i + 1])
        opened = instance.cell[span]
        if part.ordered[i]:
            # the first open cell needs no column: the point always lies there or beyond
            cell[span.start + 1 : span.stop] = reduced[compiled.steps[i][opened[1:] - 1]]
        else:
            cell[span] = reduced[compiled.levels[i][opened]]
    return Columns(reduced[: compiled.n_leaves][instance.leaf], cell)


def _groups(form: StandardForm, columns: Columns, instance: Instance) -> IntArray:
    """Tree or feature that each column belongs to; a number of its own where neither."""
    n_trees, n_features = len(instance.trees) - 1, len(instance.ordered)
    group = n_trees + n_features + np.arange(form.n_cols)
    for place, owner in (
        (columns.leaf, np.repeat(np.arange(n_trees), np.diff(instance.trees))),
        (columns.cell, n_trees + np.repeat(np.arange(n_features), np.diff(instance.offsets))),
    ):
        group[place[place >= 0]] = owner[place >= 0]
    return group


def _linking(form: StandardForm, group: IntArray) -> BoolArray:
    """Rows with columns of more than one tree or feature; the others say what choosing one leaf or cell says."""
    starts, filled = form.A.indptr[:-1], np.diff(form.A.indptr) > 0
    out = np.zeros(form.n_rows, bool)
    if filled.any():
        own, first = group[form.A.indices], starts[filled]
        out[filled] = np.minimum.reduceat(own, first) != np.maximum.reduceat(own, first)
    return out


@array_kernel
def _weights(instance: Instance, columns: Columns, d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights of leaves and cells from the reduced costs of their columns."""
    leaf = np.zeros(len(columns.leaf))
    for m in range(len(leaf)):
        if columns.leaf[m] >= 0:
            leaf[m] = d[columns.leaf[m]]
    cell = np.zeros(len(columns.cell))
    for f in range(len(instance.ordered)):
        total = 0.0
        for j in range(instance.offsets[f], instance.offsets[f + 1]):
            own = d[columns.cell[j]] if columns.cell[j] >= 0 else 0.0
            total += own
            cell[j] = total if instance.ordered[f] else own
    return leaf, cell


@array_kernel
def _column_bounds(
    instance: Instance,
    domain: Domain,
    columns: Columns,
    least: FloatArray,
    most: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> None:
    """Bounds of the columns in a box, within those of the form."""
    copy_to(lower, least)
    copy_to(upper, most)
    for m in range(len(columns.leaf)):
        if columns.leaf[m] >= 0 and not domain.live[m]:
            upper[columns.leaf[m]] = 0.0
    for f in range(len(instance.ordered)):
        for j in range(instance.offsets[f], instance.offsets[f + 1]):
            column = columns.cell[j]
            if column < 0:
                continue
            if not instance.ordered[f]:
                if not domain.level[j]:
                    upper[column] = 0.0
                continue
            # those of an empty range cross
            if j - instance.offsets[f] <= domain.lo[f]:
                lower[column] = 1.0
            if j - instance.offsets[f] > domain.hi[f]:
                upper[column] = 0.0


@array_kernel
def _shrink_to(instance: Instance, domain: Domain, columns: Columns, lower: FloatArray, upper: FloatArray) -> None:
    """Shrink a box, in place, to what bounds of the columns leave of it."""
    for m in range(len(columns.leaf)):
        if columns.leaf[m] >= 0 and upper[columns.leaf[m]] < 0.5:
            domain.live[m] = False
    for f in range(len(instance.ordered)):
        for j in range(instance.offsets[f], instance.offsets[f + 1]):
            column, rank = columns.cell[j], j - instance.offsets[f]
            if column < 0:
                continue
            if not instance.ordered[f]:
                if upper[column] < 0.5:
                    domain.level[j] = False
            elif lower[column] > 0.5:
                domain.lo[f] = max(domain.lo[f], rank)
            elif upper[column] < 0.5:
                domain.hi[f] = min(domain.hi[f], rank - 1)

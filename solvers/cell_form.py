"""A compiled model over cells: which columns of the matrix are cells, which are leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from ocf.arrays import FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.sliding import Slides
from ocf.solvers.scaling import power_of_two, unit_of_squares
from ocf.solvers.standard_form import Reduced, StandardForm


@dataclass(frozen=True, eq=False)
class Compiled:
    """A formulation's matrix, and the columns in which its parts stand.

    Attributes
    ----------
    formulation : str
    form : StandardForm
        Its first columns are the leaves', then those of `steps` and `levels`.
    n_leaves : int
    n_requirements : int
        Rows of the target's requirements that are part of the matrix.
    steps, levels : tuple of (n,) int64 arrays, one per feature
        Columns, as in `Formulated`.
    build_seconds, compile_seconds : float
    slides : Slides or None
        Values inside cells, whose columns follow; None where cells say everything.
    """

    formulation: str
    form: StandardForm
    n_leaves: int
    n_requirements: int
    steps: tuple[IntArray, ...]
    levels: tuple[IntArray, ...]
    build_seconds: float
    compile_seconds: float
    slides: Slides | None = None

    @property
    def first_slide(self) -> int:
        """Column of the first sliding value."""
        return self.n_leaves + sum(map(len, self.steps)) + sum(map(len, self.levels))

    def instance(self, cells: CellProblem, size: float | None = None) -> Reduced:
        """The matrix of one row: its costs and cuts, without what is closed, dead or decided.

        Parameters
        ----------
        cells : CellProblem
            Of the same partition and target; not infeasible.
        size : float, optional
            A cost of the size of the optimum, by which to choose the units of sliding values and squares; inf where
            none is known. By default they keep those of the model.
        """
        form = self._with_cuts(self._with_tangents(self._with_exclusions(cells), cells), cells)
        alias, x0 = self._substitution(cells)
        new = np.flatnonzero(alias >= 0)
        kept, index = np.unique(alias[new], return_inverse=True)
        p = sp.csr_array((np.ones(len(new)), (new, index)), shape=(form.n_cols, len(kept)))
        reduced = form.with_costs(*self._costs(cells)).substitute(p, x0)
        reduced = Reduced(reduced.form.tidy(), reduced.P, reduced.x0)
        return reduced if size is None or self.slides is None else self._in_units(reduced, kept, size)

    def with_few_changes(self, reduced: Reduced, cells: CellProblem, most: int) -> Reduced:
        """A matrix with the row that no more than so many cells cost something.

        Parameters
        ----------
        reduced : Reduced
            `instance` of the cells.
        cells : CellProblem
        most : int
        """
        counted, constant = self._costs(replace(cells, cost=(cells.cost > 0).astype(np.float64), leaf_cost=None))
        row = sp.csr_array((reduced.P.T @ counted)[None])
        side = most - constant - float(counted @ reduced.x0)
        return Reduced(reduced.form.append_rows(row, np.array([-np.inf]), np.array([side])), reduced.P, reduced.x0)

    def _in_units(self, reduced: Reduced, kept: IntArray, size: float) -> Reduced:
        """Sliding values in units of how far they can slide, squares in units of a part of the optimum.

        Solvers work within absolute tolerances: HiGHS takes a value that can slide by 1e-6 for one that stands still,
        and a square of 1e-6 for nothing, where the optimum may be no larger.
        """
        assert self.slides is not None
        form, place = reduced.form, {int(column): k for k, column in enumerate(kept)}
        unit, square = np.ones(form.n_cols), unit_of_squares(size)
        root = power_of_two(np.sqrt(square))
        for column in map(int, self.slides.of_cell.values()):
            k = place[self.first_slide + column]
            if not form.integer[k] and 0 < form.upper[k] < np.inf:
                unit[k] = power_of_two(form.upper[k])
        squares = [*self.slides.excess.values(), *(q for _, q in self.slides.forms)]
        own = [place[self.first_slide + column] for column in squares]
        roots = [place[self.first_slide + z] for z, _ in self.slides.forms]
        absolutes = [place[self.first_slide + t] for t in self.slides.absolutes]
        unit[own], unit[roots], unit[absolutes] = root * root, root, square
        largest = np.asarray(abs(form.A @ sp.diags_array(unit)).max(axis=1).todense()).ravel()
        sliding = np.asarray((form.A[:, unit != 1] != 0).sum(axis=1)).ravel() > 0
        factor = np.where(sliding & (largest > 0) & (largest < 1), largest, 1.0)
        factor[factor != 1] = [power_of_two(v) for v in factor[factor != 1]]
        # a row with a square may hold its root as well
        for columns, own_unit in ((roots, root), (own, root * root), (absolutes, square)):
            factor[np.asarray((form.A[:, columns] != 0).sum(axis=1)).ravel() > 0] = own_unit
        return reduced.scaled(unit, 1 / factor)

    def _with_exclusions(self, cells: CellProblem) -> StandardForm:
        if not cells.excluded:
            return self.form
        sizes = np.array([len(choice) for choice in cells.excluded])
        rows = sp.csr_array(
            (np.ones(sizes.sum()), (np.repeat(np.arange(len(sizes)), sizes), np.concatenate(cells.excluded))),
            shape=(len(sizes), self.form.n_cols),
        )
        return self.form.append_rows(rows, np.full(len(sizes), -np.inf), sizes - 1.0)

    def _with_tangents(self, form: StandardForm, cells: CellProblem) -> StandardForm:
        """Rows (2) and (3) of `ocf.formulations.blocks.values`."""
        if not cells.tangents:
            return form
        values, slides = cells.values, self.slides
        assert values is not None
        assert slides is not None
        leaf = {j: values.constraint_leaves.start + k for k, j in enumerate(values.cell_leaf)}
        entries: list[tuple[int, int, float]] = []
        low = np.zeros(len(cells.tangents))
        for k, (j, at) in enumerate(cells.tangents):
            if j < 0:
                z, q = (self.first_slide + column for column in slides.forms[-1 - j])
                entries += [(k, q, 1.0), (k, z, -2 * at)]
                low[k] = -at * at
                continue
            curvature = float(values.price(j)[1])
            excess = self.first_slide + slides.excess[int(values.cell_feature[j])]
            slide = self.first_slide + slides.of_cell[j]
            entries += [(k, excess, 1.0), (k, slide, -curvature * at), (k, leaf[j], curvature * at * at / 2)]
        row, column, data = zip(*entries, strict=True)
        count = len(cells.tangents)
        added = sp.csr_array((data, (row, column)), shape=(count, form.n_cols))
        return form.append_rows(added, low, np.full(count, np.inf))

    def _with_cuts(self, form: StandardForm, cells: CellProblem) -> StandardForm:
        """Requirements that came after the model was built (`Requirements.tightened`)."""
        gain = cells.requirements.gain[:, self.n_requirements :]
        if not gain.shape[1]:
            return form
        rows = sp.csr_array(gain.T)
        rows.resize((gain.shape[1], form.n_cols))
        return form.append_rows(rows, cells.requirements.need[self.n_requirements :], np.inf)

    def _costs(self, cells: CellProblem) -> tuple[FloatArray, float]:
        """Cost of each column, and the constant. Closed cells cost what the open cell before them costs."""
        c = np.zeros(self.form.n_cols)
        if cells.leaf_cost is not None:
            c[: self.n_leaves] = cells.leaf_cost
        constant = 0.0
        part = cells.partition
        for i in range(part.n_features):
            span = part.cells_of(i)
            cost, usable = cells.cost[span], cells.open[span]
            if not len(self.levels[i]):
                last_open = np.maximum.accumulate(np.where(usable, np.arange(len(cost)), usable.argmax()))
                filled = cost[last_open]
                constant += filled[0]
                c[self.steps[i]] = np.diff(filled)
            else:
                c[self.levels[i]] = np.where(usable, cost, 0.0)
        if self.slides is not None:
            c[self.first_slide :][: len(self.slides.cost)] = self.slides.cost
        return c, float(constant)

    def _substitution(self, cells: CellProblem) -> tuple[IntArray, FloatArray]:
        """Column that stands for each column, or -1 and its fixed value."""
        alias = np.arange(self.form.n_cols)
        x0 = np.zeros(self.form.n_cols)
        part = cells.partition
        for i in range(part.n_features):
            usable = np.flatnonzero(cells.open[part.cells_of(i)])
            if not len(self.levels[i]):
                beyond = np.arange(1, part.widths[i])  # column j stands for "in cell j or beyond"
                nearest = usable[np.minimum(np.searchsorted(usable, beyond), len(usable) - 1)]
                fixed = (beyond <= usable[0]) | (beyond > usable[-1])
                alias[self.steps[i]] = np.where(fixed, -1, self.steps[i][nearest - 1])
                x0[self.steps[i]] = beyond <= usable[0]
            else:
                closed = ~cells.open[part.cells_of(i)]
                alias[self.levels[i][closed]] = -1
                if len(usable) == 1:
                    alias[self.levels[i]] = -1
                    x0[self.levels[i][usable]] = 1.0
        alias[: self.n_leaves][~cells.live] = -1
        for a, b in pairwise(part.ensemble.leaf_offsets.tolist()):
            live = np.flatnonzero(cells.live[a:b])
            if len(live) == 1:
                alias[a + live] = -1
                x0[a + live] = 1.0
        return alias, x0


@dataclass(frozen=True, eq=False)
class CellModel:
    """What a matrix is a model of, for solvers that make something of it.

    Attributes
    ----------
    compiled : Compiled
    cells : CellProblem
        Not infeasible.
    reduced : Reduced
        `Compiled.instance` of the cells: the matrix's first rows, and all its columns.
    """

    compiled: Compiled
    cells: CellProblem
    reduced: Reduced

    @property
    def has_whole_cells(self) -> bool:
        """Whether it is the interval model, whose cells are whole numbers, with something left to choose."""
        form = self.reduced.form
        return self.compiled.formulation == "interval" and form.Q is None and form.n_cols > 0

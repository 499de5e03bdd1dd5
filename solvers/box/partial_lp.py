"""An LP of which HiGHS is given only what bears on the box at hand.

HiGHS's dual simplex takes time in proportion to rows and columns at every step. Two thirds of a relaxation's rows have
no multiplier at the first optimum, and deep in a search most columns cannot move. So the rows that are far from tight
leave the LP after the first solve, and come back when its point violates them; and a basis from which a search goes on
takes an LP of its own along: without columns that are fixed and not in the basis, without rows that are in the basis
and cannot be violated. What is left is a basis again, of fewer rows, and as good a start as before. A form of very many
rows is not loaded as a whole even once: its first solve begins with the equations, and takes in what its points
violate, round by round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.solvers.scaling import objective_scale

if TYPE_CHECKING:
    from ocf.solvers.standard_form import StandardForm

#: Options of HiGHS.
SETTINGS = {"output_flag": False, "presolve": "off", "threads": 1, "solver": "simplex", "simplex_strategy": 1}  # dual

#: Option of HiGHS that says how its dual simplex chooses rows.
_PRICING = "simplex_dual_edge_weight_strategy"

#: Pricing of the first solve, steepest edge, which knows all its weights there and takes half of the steps, and devex:
#: it saves a sixth of the time of steepest edge over a search of a hundred nodes. Interior points take less time at
#: first, but their crossover ends where the LPs after it take more.
FIRST_PRICING, PRICING = 2, 1

#: A round of the first solve that took fewer steps than this share of its rows is followed by devex: steepest edge has
#: lost its weights with the new rows, and makes them anew by as many solves as there are rows, which a few steps do not
#: pay back. First LPs of 5,000 to 14,000 rows, random forests of 500 trees of depth 8, take a fourteenth less.
FEW_STEPS = 1 / 15

#: How far the first optimum is from a row that leaves the LP, and by how much a point violates one that comes back.
#: Ten rows of breast cancer and spambase, 100 x 5, take 8.8 s at 0.2, 9.0 at 0.3 and 9.6 at 0.5.
SLACK, VIOLATION = 0.2, 1e-6

#: Rows from which on the first solve takes rows in by rounds, and which of the violated ones: those by this part of the
#: greatest violation at least. Random forests of 500 trees of depth 8, spambase: a first LP of 21,000 rows and 13,000
#: columns takes 2.9 to 4.8 s in the place of 3.9, one of 47,000 and 27,000 11 to 13 in the place of 28, with 6,000 and
#: 10,000 rows in the end.
MANY_ROWS, VIOLATED = 10_000, 0.05

#: A smaller LP is taken where fewer columns than this share of those that could move in the LP can move now, and this
#: share of the form's columns no longer.
SMALLER, WORTH = 0.6, 0.05


class Basis(NamedTuple):
    """Where a solve ended.

    Attributes
    ----------
    generation : int
        Of the form.
    rows, columns : (n,) int64
        Of the form, which the LP held then.
    statuses : highspy.HighsBasis
        Of these.
    """

    generation: int
    rows: IntArray
    columns: IntArray
    statuses: Any


class Solution(NamedTuple):
    """What a solve gave, of all columns and rows of the form.

    Attributes
    ----------
    value : (n_cols,) float64
        Empty where there is none.
    dual : (n_rows,) float64
        Multipliers of the rows; empty where there are none.
    ray : (n_rows,) float64 or None
        Multipliers, for costs of zero, that HiGHS thinks prove infeasibility.
    basis : Basis or None
    """

    value: FloatArray
    dual: FloatArray
    ray: FloatArray | None
    basis: Basis | None


class PartialLP:
    """The LP relaxation of a form, over bounds that change from solve to solve.

    Parameters
    ----------
    form : StandardForm
    generation : int
        Number of the form; a basis of another one is not used.

    Attributes
    ----------
    rows, columns : (n,) int64
        Of the form, that the LP holds now.
    used : (n_rows,) bool
        Which rows have not left, or came back once.
    iterations : int
        Of the simplex method.
    first_basis : Basis or None
        Where the first solve ended.
    """

    def __init__(self, form: StandardForm, generation: int = 0) -> None:
        self.form, self.generation = form, generation
        self.rows, self.columns = np.arange(form.n_rows), np.arange(form.n_cols)
        self.iterations = 0
        self.used = np.ones(form.n_rows, bool)
        self._fixed = np.zeros(form.n_cols)  # where the columns stand that the LP has not got
        self._free = form.n_cols  # columns that could move when the LP was loaded
        self._positive, self._negative = form.A.maximum(0.0), form.A.minimum(0.0)
        self._scale = 1.0
        self._highs: Any = None
        self.first_basis: Basis | None = None
        self._last: Basis | None = None

    def start(self, reference: float, basis: Basis | None = None) -> None:
        """Load the whole LP into HiGHS.

        Parameters
        ----------
        reference : float
            A cost of the size of the optimum, or inf.
        basis : Basis, optional
            Where the first solve of another LP of the same form ended.
        """
        import highspy

        basis = self._current_basis(basis)
        self._scale = objective_scale(self.form.c, reference if np.isfinite(reference) else None)
        self._highs = highspy.Highs()
        for name, value in SETTINGS.items():
            self._highs.setOptionValue(name, value)
        self.first_basis = basis
        pricing = FIRST_PRICING if basis is None else PRICING
        self._highs.setOptionValue(_PRICING, pricing)
        if basis is not None:
            self.used = np.isin(self.rows, basis.rows)
        else:
            if self.form.n_rows > MANY_ROWS:
                self.used = self.form.row_lower == self.form.row_upper
            self._load(np.flatnonzero(self.used), self.columns, np.zeros(self.form.n_cols))

    def solve(
        self, lower: FloatArray, upper: FloatArray, limit: float, seconds: float | None, basis: Basis | None
    ) -> Solution:
        """Solve the LP within bounds of the columns, until its objective passes the limit.

        Parameters
        ----------
        lower, upper : (n_cols,) float64
            Within those of the form.
        limit : float
        seconds : float or None
            Time limit.
        basis : Basis or None
            Of an earlier solve, within bounds around these, from which to start; by default the first one's.
        """
        self._begin_at(self._current_basis(basis) or self.first_basis, lower, upper)
        highs, columns = self._highs, self.columns
        places = np.arange(len(columns), dtype=np.int32)
        highs.changeColsBounds(len(columns), places, lower[columns], upper[columns])
        highs.setOptionValue("objective_bound", limit * self._scale if np.isfinite(limit) else np.inf)
        if seconds is not None:
            highs.setOptionValue("time_limit", highs.getRunTime() + seconds)
        begun = self.iterations
        value, dual, slack = self._run()
        while self.first_basis is None and slack is not None and self._take_in(slack < _least_violation(slack)):
            if self.iterations - begun < FEW_STEPS * len(self.rows):
                highs.setOptionValue(_PRICING, PRICING)
            begun = self.iterations
            value, dual, slack = self._run()
        if slack is not None and self._take_in(slack < -VIOLATION):
            value, dual, _ = self._run()
        ray, dual = self._dual_ray(), self._of_all_rows(dual)
        if self.first_basis is None:
            highs.setOptionValue(_PRICING, PRICING)
            if slack is not None:
                self._give_back(slack > SLACK)
        statuses = highs.getBasis()
        self._last = Basis(self.generation, self.rows, self.columns, statuses) if statuses.valid else None
        self.first_basis = self.first_basis or self._last
        return Solution(value, dual, ray, self._last)

    def _current_basis(self, basis: Basis | None) -> Basis | None:
        return None if basis is None or basis.generation != self.generation else basis

    # -- what the LP holds -----------------------------------------------------------------------------------

    def _begin_at(self, basis: Basis | None, lower: FloatArray, upper: FloatArray) -> None:
        """Go on from a basis, in the LP that it is of or in a smaller one."""
        if basis is None:
            return
        free = int(np.count_nonzero(lower < upper))
        fewer = free < min(SMALLER * self._free, self._free - WORTH * self.form.n_cols)
        if basis.rows is not self.rows or basis.columns is not self.columns or fewer:
            self._load_around(basis, lower, upper)
            self._free = free
        elif basis is not self._last:
            self._highs.setBasis(basis.statuses)

    def _load_around(self, basis: Basis, lower: FloatArray, upper: FloatArray) -> None:
        """Load what bears on the bounds, and the basis in terms of it."""
        from highspy import HighsBasis, HighsBasisStatus

        kinds, basic = list(HighsBasisStatus.__members__.values()), int(HighsBasisStatus.kBasic)
        of_column = np.array([int(status) for status in basis.statuses.col_status])
        of_row = np.full(self.form.n_rows, basic)
        of_row[basis.rows] = [int(status) for status in basis.statuses.row_status]
        column = (lower < upper)[basis.columns] | (of_column == basic)
        least = self._positive @ lower + self._negative @ upper
        most = self._positive @ upper + self._negative @ lower
        idle = (self.form.row_lower <= least) & (most <= self.form.row_upper)
        rows = np.flatnonzero((of_row != basic) | (self.used & ~idle))
        self._load(rows, basis.columns[column], lower)
        statuses = HighsBasis()
        statuses.col_status = [kinds[status] for status in of_column[column].tolist()]
        statuses.row_status = [kinds[status] for status in of_row[rows].tolist()]
        statuses.valid = True
        self._highs.setBasis(statuses)

    def _load(self, rows: IntArray, columns: IntArray, lower: FloatArray) -> None:
        """Load these rows and columns; the other columns stand at their lower bounds."""
        import highspy

        form, scale = self.form, self._scale
        self.rows, self.columns = rows, columns
        self._fixed = lower.copy()
        self._fixed[columns] = 0.0
        A, shift = form.A[rows], form.A @ self._fixed
        A = A[:, columns] if len(columns) < form.n_cols else A
        self._highs.passModel(
            len(columns),
            len(rows),
            A.nnz,
            int(highspy.MatrixFormat.kRowwise),
            int(highspy.ObjSense.kMinimize),
            float(form.c0 + (form.c * self._fixed).sum()) * scale,
            form.c[columns] * scale,
            form.lower[columns],
            form.upper[columns],
            (form.row_lower - shift)[rows],
            (form.row_upper - shift)[rows],
            A.indptr,
            A.indices,
            A.data,
            np.zeros(len(columns), np.int32),
        )

    def _take_in(self, wanted: BoolArray) -> bool:
        """Add rows that the LP has not got; whether there are any."""
        wanted[self.rows] = False
        rows = np.flatnonzero(wanted)
        if len(rows):
            A, shift = self.form.A[rows], self.form.A[rows] @ self._fixed
            A = A[:, self.columns]
            lower, upper = self.form.row_lower[rows] - shift, self.form.row_upper[rows] - shift
            self._highs.addRows(len(rows), lower, upper, A.nnz, A.indptr[:-1], A.indices, A.data)
            self.rows = np.concatenate([self.rows, rows])
            self.used[rows] = True
        return len(rows) > 0

    def _give_back(self, unwanted: BoolArray) -> None:
        """Delete rows that are slack in the basis, which leaves the LP's optimum where it is."""
        from highspy import HighsBasisStatus

        basic = [status == HighsBasisStatus.kBasic for status in self._highs.getBasis().row_status]
        gone = np.flatnonzero(unwanted[self.rows] & np.array(basic, bool))
        if len(gone):
            self._highs.deleteRows(len(gone), gone.astype(np.int32))
            self.used[self.rows[gone]] = False
            self.rows = np.delete(self.rows, gone)

    # -- solving ---------------------------------------------------------------------------------------------

    def _run(self) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """The point, the multipliers, and at an optimum how far all rows of the form are from their sides."""
        from highspy import HighsModelStatus

        self._highs.run()
        self.iterations += max(int(self._highs.getInfo().simplex_iteration_count), 0)
        solution = self._highs.getSolution()
        value, dual = np.array(solution.col_value), np.array(solution.row_dual) / self._scale
        if len(value) == len(self.columns):
            value, part = self._fixed.copy(), value
            value[self.columns] = part
        if self._highs.getModelStatus() != HighsModelStatus.kOptimal:
            return value, dual, None
        at = self.form.A @ value
        return value, dual, np.minimum(at - self.form.row_lower, self.form.row_upper - at)

    def _dual_ray(self) -> FloatArray | None:
        from highspy import HighsModelStatus

        if self._highs.getModelStatus() != HighsModelStatus.kInfeasible:
            return None
        answer = self._highs.getDualRay()
        if not answer[1]:
            return None
        ray = self._of_all_rows(np.array(answer[2], float))
        return ray / max(float(np.abs(ray).max(initial=0.0)), 1e-300)

    def _of_all_rows(self, values: FloatArray) -> FloatArray:
        """Values of the LP's rows for all rows of the form, zero where the LP has not got them; empty where none."""
        if len(values) != len(self.rows):
            return np.zeros(0)
        out = np.zeros(self.form.n_rows)
        out[self.rows] = values
        return out


def _least_violation(slack: FloatArray) -> float:
    """How far beyond its side, negative, a row must be to come in at once."""
    return min(VIOLATED * float(slack.min(initial=0.0)), -VIOLATION)

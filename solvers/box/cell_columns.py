r"""The columns of an LP over cells: "at this cell" in the place of "at this cell or beyond".

Nomenclature
------------
=====================  =============================================================================
symbol                 meaning
=====================  =============================================================================
:math:`\mu_k`          how much of the point lies at cell k of an ordered feature or beyond; the
                       first cell has none, for the point always lies there or beyond
:math:`\delta_k`       how much of it lies at cell k: :math:`\mu_k - \mu_{k+1}`
=====================  =============================================================================

.. math::

    \mu_k = \sum_{j \ge k} \delta_j, \qquad \sum_k \delta_k = 1, \qquad \delta \ge 0.

A formulation needs the :math:`\mu`, by which solvers branch well; the dual simplex method does not. With the
:math:`\delta` the rows :math:`\mu_k \ge \mu_{k+1}`, a quarter of the interval model's, become bounds, and a feature
moves over any number of cells in one step. In exchange rows get longer: :math:`\mu_a - \mu_b` is the sum of the
:math:`\delta` from a to b. Where those are more than half of the feature's, the others, subtracted from 1, take their
place. Measured on random forests 100 x 5, LPs over the same boxes: breast cancer, three rows, the first LP 51, 46 and
114 ms -> 31, 32 and 65, later ones 5.7, 5.2 and 10.0 -> 5.1, 4.0 and 7.9; spambase's hardest row 460 -> 197 and 28.5
-> 23.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.solvers.standard_form import StandardForm


class _Runs(NamedTuple):
    """Entries of a matrix that follow each other in a row and belong to the same feature.

    Attributes
    ----------
    row, feature : (n,) int64
        The feature counts among those that are restated; -1 for all other columns, which run together.
    size : (n,) int64
        Number of entries.
    least, greatest : (n,) float64
        Of the entries.
    """

    row: IntArray
    feature: IntArray
    size: IntArray
    least: FloatArray
    greatest: FloatArray


class CellColumns:
    r"""A form with columns for cells, and the way there and back.

    Parameters
    ----------
    form : StandardForm
    steps : list of (n,) int64 arrays
        For each feature that is restated the columns of its :math:`\mu`, in order.

    Attributes
    ----------
    form : StandardForm
        The columns that are left as they are come first.
    """

    def __init__(self, form: StandardForm, steps: list[IntArray]) -> None:
        kept = np.ones(form.n_cols, bool)
        kept[np.concatenate([*steps, np.zeros(0, np.int64)])] = False
        self._kept, self._n_rows = np.flatnonzero(kept), form.n_rows
        widths = np.array([len(own) + 1 for own in steps], np.int64)
        starts = len(self._kept) + np.concatenate([[0], np.cumsum(widths)])
        # the steps beside each cell: an index past the last column stands for 1 before the first cell, 0 after the last
        self._before = np.concatenate([np.r_[form.n_cols, own] for own in steps] or [np.zeros(0, np.int64)])
        self._after = np.concatenate([np.r_[own, form.n_cols] for own in steps] or [np.zeros(0, np.int64)])
        self._to_steps = _sums(form.n_cols, self._kept, steps, starts)
        group = np.concatenate([np.full(len(self._kept), -1), np.repeat(np.arange(len(steps)), widths)])
        chosen = sp.csr_array((group[None, :] == np.arange(len(steps))[:, None]).astype(float))
        A, shift = _shorter(sp.csr_array(form.A @ self._to_steps), chosen, group, widths)
        row_lower, row_upper = form.row_lower - shift, form.row_upper - shift
        self._rows = np.flatnonzero(~_redundant_rows(A, group, widths, row_lower, row_upper))
        lower, upper = self.bounds(form.lower, form.upper)
        self.form = StandardForm(
            self._to_steps.T @ form.c,
            form.c0,
            sp.vstack([A[self._rows], chosen], format="csr"),
            np.concatenate([row_lower[self._rows], np.ones(len(steps))]),
            np.concatenate([row_upper[self._rows], np.ones(len(steps))]),
            lower,
            upper,
            np.zeros(starts[-1], bool),
        )

    def bounds(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of the new columns; a pair may cross where no point is within those of the old ones.

        Parameters
        ----------
        lower, upper : (n_cols,) float64
            Of the old columns.
        """
        least, most = np.append(lower, 1.0), np.append(upper, 1.0)
        first = np.maximum(least[self._before] - np.append(upper, 0.0)[self._after], 0.0)
        last = np.minimum(most[self._before] - np.append(lower, 0.0)[self._after], 1.0)
        return np.concatenate([lower[self._kept], first]), np.concatenate([upper[self._kept], last])

    def values(self, value: FloatArray) -> FloatArray:
        """A point of the old columns from one of the new ones.

        Parameters
        ----------
        value : (form.n_cols,) float64
        """
        return np.asarray(self._to_steps @ value)

    def multipliers(self, dual: FloatArray) -> FloatArray:
        """Multipliers of the old rows; those that are bounds now have none.

        Parameters
        ----------
        dual : (form.n_rows,) float64
        """
        out = np.zeros(self._n_rows)
        out[self._rows] = dual[: len(self._rows)]
        return out


def steps_of(form: StandardForm, cell: IntArray, offsets: IntArray, ordered: BoolArray) -> list[IntArray]:
    """Columns of the ordered features that can be restated: all cells' own, between 0 and 1.

    Parameters
    ----------
    form : StandardForm
    cell : (n_open,) int64
        `ocf.solvers.box.relaxation.Columns.cell`.
    offsets : (n_features + 1,) int64
    ordered : (n_features,) bool
    """
    between = (form.lower >= 0.0) & (form.upper <= 1.0)
    out = []
    for f in np.flatnonzero(ordered):
        own = cell[offsets[f] : offsets[f + 1]]
        own = own[own >= 0]
        if len(own) and len(np.unique(own)) == len(own) and between[own].all():
            out.append(own)
    return out


def _sums(n_cols: int, kept: IntArray, steps: list[IntArray], starts: IntArray) -> sp.csr_array:
    """Matrix that makes the old columns of the new ones: each step the sum of the cells from it on."""
    rows, columns = [kept], [np.arange(len(kept))]
    for own, start in zip(steps, starts, strict=False):
        k, j = np.triu_indices(len(own))
        rows.append(own[k])
        columns.append(start + 1 + j)
    row, column = np.concatenate(rows), np.concatenate(columns)
    return sp.csr_array((np.ones(len(row)), (row, column)), shape=(n_cols, int(starts[-1])))


def _runs(A: sp.csr_array, group: IntArray) -> _Runs:
    """Entries of each row by the features that they belong to."""
    A.sort_indices()
    row, feature = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), group[A.indices]
    if not len(row):
        return _Runs(row, feature, row, A.data, A.data)
    first = np.flatnonzero(np.r_[True, (row[1:] != row[:-1]) | (feature[1:] != feature[:-1])])
    size = np.diff(np.r_[first, len(row)])
    least, greatest = np.minimum.reduceat(A.data, first), np.maximum.reduceat(A.data, first)
    return _Runs(row[first], feature[first], size, least, greatest)


def _shorter(
    A: sp.csr_array, chosen: sp.csr_array, group: IntArray, widths: IntArray
) -> tuple[sp.csr_array, FloatArray]:
    """Rows in which more than half of a feature's cells had the same coefficient, in terms of the others.

    ``chosen`` has the rows that say that a feature's cells sum to 1. By how much sides fall comes second, (n_rows,).
    """
    runs = _runs(A, group)
    width = np.append(widths, 0)[runs.feature]
    more = (runs.feature >= 0) & (runs.least == runs.greatest) & (2 * runs.size > width)
    taken = sp.csr_array((runs.least[more], (runs.row[more], runs.feature[more])), shape=(A.shape[0], len(widths)))
    A = sp.csr_array(A - taken @ chosen)
    A.eliminate_zeros()
    return A, np.asarray(taken.sum(axis=1)).ravel()


def _redundant_rows(
    A: sp.csr_array, group: IntArray, widths: IntArray, row_lower: FloatArray, row_upper: FloatArray
) -> BoolArray:
    """Rows of one feature alone that hold wherever its cells sum to 1."""
    runs = _runs(A, group)
    own = (runs.feature >= 0) & (runs.size == np.diff(A.indptr)[runs.row])
    partly = runs.size < np.append(widths, 0)[runs.feature]
    least = np.where(partly, np.minimum(runs.least, 0.0), runs.least)
    greatest = np.where(partly, np.maximum(runs.greatest, 0.0), runs.greatest)
    holds = own & (row_lower[runs.row] <= least) & (greatest <= row_upper[runs.row])
    out = np.zeros(A.shape[0], bool)
    out[runs.row[holds]] = True
    return out

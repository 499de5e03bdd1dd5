r"""Convex quadratic objectives by tangents of squares, for solvers of mixed-integer linear problems.

With rows L such that ``x'Qx / 2 >= sum_k (L_k x)**2``, a column t for each square and tangents at values v of it,

.. math:: \min c'x + \sum_k t_k, \qquad t_k \ge v (2 L_k x - v), \quad t_k \ge 0

is a lower bound, the better the more tangents there are (Duran and Grossmann 1986, outer approximation). A tangent for
each square is worth many of their sum (Hijazi, Bonami and Ouorou 2014): the l2 norm of 30 numbers, beside five trees of
depth 3 on four principal components, takes SCIP 22 s of the processor with the sum of its squares in one row, and HiGHS
0.8 s with these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ocf.arrays import FloatArray
from ocf.cells.sliding import SAME_TANGENT
from ocf.solvers.scaling import unit_of_squares
from ocf.solvers.standard_form import StandardForm

#: Where squares are followed from the start, in parts of their largest value.
FIRST = (0.25, 0.5, 1.0)

#: Relative size of an eigenvalue that is left out, and taken from the others, for the rounding of their vectors.
ROUNDING = 1e-13


@dataclass(frozen=True, eq=False)
class Tangents:
    """A quadratic form as a linear one with a column for each square, behind the columns that there were.

    Attributes
    ----------
    form : StandardForm
        With the first tangents.
    rows : (n_squares, n_cols) CSR array
        Of L, over the columns that there were.
    unit : float
        Of cost, in which squares count: solvers work within absolute tolerances.
    """

    form: StandardForm
    rows: Any
    unit: float

    @classmethod
    def of(cls, form: StandardForm, upper: float) -> Tangents:
        """Squares in the place of a form's Q.

        Parameters
        ----------
        form : StandardForm
            With a positive semidefinite Q.
        upper : float
            A cost that the optimum does not exceed; inf where none is known.
        """
        rows = _rows(form.Q)
        k, dense = rows.shape[0], rows.toarray()
        unit = unit_of_squares(upper)
        linear = replace(
            form,
            Q=None,
            c=np.append(form.c, np.full(k, unit)),
            A=sp.hstack([form.A, sp.csr_array((form.n_rows, k))]),
            lower=np.append(form.lower, np.zeros(k)),
            upper=np.append(form.upper, np.full(k, np.inf)),
            integer=np.append(form.integer, np.zeros(k, bool)),
            column_names=None,
        )
        with np.errstate(invalid="ignore"):
            ends = [np.where(dense == 0, 0.0, dense * side) for side in (form.lower, form.upper)]
        least, most = np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)
        size = np.minimum(np.maximum(-least, most), np.sqrt(max(upper - form.c0, 0.0)))
        size = np.where(np.isfinite(size), size, 0.0)
        places = np.array([np.clip(sign * share * size, least, most) for share in FIRST for sign in (-1.0, 1.0)])
        out = cls(linear, rows, unit)
        return replace(out, form=out._touched(linear, np.tile(np.arange(k), len(places)), places.ravel()))

    def followed(self, form: StandardForm, x: FloatArray) -> StandardForm:
        """A form with tangents at a solution of it.

        Parameters
        ----------
        form : StandardForm
            `form`, and rows that came after.
        x : (n_cols + n_squares,) float64
        """
        n, k = self.rows.shape[1], self.rows.shape[0]
        value = self.rows @ x[:n]
        short = value * value - self.unit * x[n:]
        which = np.flatnonzero(short > SAME_TANGENT * max(abs(form.objective(x)), self.unit) / k)
        return self._touched(form, which, value[which])

    def _touched(self, form: StandardForm, which: Any, value: FloatArray) -> StandardForm:
        """A form with tangents of squares at values, but for those at 0."""
        own = value != 0
        which, value = which[own], value[own]
        steep = sp.diags_array(-2 * value / self.unit) @ self.rows[which]
        count = len(which)
        square = sp.csr_array((np.ones(count), (np.arange(count), which)), shape=(count, self.rows.shape[0]))
        return form.append_rows(sp.hstack([steep, square]), -value * value / self.unit, np.full(count, np.inf))


def _rows(Q: Any) -> Any:
    """L, from the square roots of a diagonal, or from eigenvectors."""
    diagonal = Q.diagonal()
    used = np.flatnonzero(diagonal > 0)
    root = np.sqrt(diagonal[used] / 2)
    if abs(Q - sp.diags_array(diagonal)).sum() == 0:
        return sp.csr_array((root, (np.arange(len(used)), used)), shape=(len(used), len(diagonal)))
    # measured in units in which each column costs 1 by itself
    values, vectors = np.linalg.eigh(Q[used][:, used].toarray() / np.outer(root, root) / 2)
    values = values - ROUNDING * len(used) * values[-1]
    kept = values > 0
    dense = np.zeros((int(kept.sum()), len(diagonal)))
    dense[:, used] = np.sqrt(values[kept])[:, None] * vectors[:, kept].T * root
    return sp.csr_array(dense)

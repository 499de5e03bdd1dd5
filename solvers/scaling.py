"""A scale for objectives, so that tolerances of solvers mean the same everywhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocf.solvers.standard_form import StandardForm, Vector

#: A typical cost is scaled into [2**(COST_EXPONENT - 1), 2**COST_EXPONENT), the largest below 2**MAX_EXPONENT.
COST_EXPONENT, MAX_EXPONENT = 12, 20

#: Coefficients of a row that count are to lie between these, its greatest at any rate: solvers drop those below 1e-9.
LEAST, LARGEST = 2.0**-20, 2.0**30

#: Part of the most that a coefficient adds to a row below which another counts nothing; numbers below TINY count as it.
SOME, TINY = 2.0**-28, 2.0**-900

#: Reach of a continuous column from which on, or below whose inverse, it counts in units of that.
FAR = 2.0**10

#: Least unit of a column by its square: the optimum may cost far more than 1; where it costs less, it is asked again.
LEAST_UNIT = 2.0**-24


def costs_of(form: StandardForm) -> Vector:
    """Coefficients of the objective, linear and quadratic, by whose size it is scaled."""
    return form.c if form.Q is None else np.concatenate([form.c, form.Q.data])


def objective_scale(c: Vector, reference: float | None = None) -> float:
    """Power of two to multiply the costs by before a solver sees them.

    Solvers prune within *absolute* tolerances (1e-9 or so) of the incumbent, so that costs around 1e-3 would lose
    digits of the optimum. Powers of two change no digit of any cost, so results are unscaled exactly.

    Parameters
    ----------
    c : (n_cols,) float array
        Costs.
    reference : float, optional
        A cost of the size of the optimum; the median cost otherwise.
    """
    size = np.abs(c[c != 0])
    if not size.size:
        return 1.0
    typical = abs(reference) if reference else float(np.median(size))
    exponent = COST_EXPONENT - math.frexp(typical)[1]
    exponent = min(exponent, MAX_EXPONENT - math.frexp(float(size.max()))[1])
    return math.ldexp(1.0, max(min(exponent, 1000), -1000))


def units_of(form: StandardForm, reference: float | None = None) -> tuple[Vector, Vector]:
    """Powers of two in which columns count and by which rows are multiplied, (n_cols,) and (n_rows,).

    Solvers drop coefficients below 1e-9, hold rows and whole numbers to absolute tolerances, and HiGHS adds 1e-7 to the
    squares of a quadratic objective. A weight of 1e-9 of a feature that reaches 1e9, a big-M of millions, or a square
    of 1e-10 would be another problem to them.

    Parameters
    ----------
    form : StandardForm
    reference : float, optional
        A cost of the size of the optimum, which a square of 1 is to have; by default 1, within limits.
    """
    columns = _column_units(form, reference)
    return columns, row_units(form.in_units(columns))


def _column_units(form: StandardForm, reference: float | None) -> Vector:
    """How far a continuous column reaches, if that is not about 1, but no farther than a square of the reference."""
    out = np.ones(form.n_cols)
    reach = np.maximum(np.abs(form.lower), np.abs(form.upper))
    far = np.isfinite(reach) & (reach > 0) & ((reach > FAR) | (reach < 1 / FAR))
    largest = _largest(form.A.T)
    # no more than brings the coefficients to 1: what moves by 1 of 1e8, which a row takes as it is, would be nothing
    room = np.where(largest > 0, 1 / np.where(largest > 0, largest, 1.0), 1.0)
    out[far] = power_of_two(np.where(reach[far] > 1, np.clip(room[far], 1.0, reach[far]), reach[far]))
    free = np.isinf(reach) & ((largest > LARGEST) | (largest < 1 / LARGEST)) & (largest > 0)
    out[free] = power_of_two(1 / largest[free])
    if form.Q is not None:
        square = form.Q.diagonal()
        own = power_of_two(np.sqrt((reference or 1.0) / square[square > 0]))
        own = own if reference else np.maximum(own, LEAST_UNIT)
        ends = reach[square > 0]
        out[square > 0] = np.where((ends > 0) & (ends < own), power_of_two(np.where(ends > 0, ends, 1.0)), own)
    out[form.integer] = 1.0
    return out


def row_units(form: StandardForm) -> Vector:
    """Powers of two for rows with huge coefficients, or with some that a solver drops though they count, (n_rows,).

    What a coefficient counts is the most that it adds to a row. Beside others that add 1e9 times as much it counts
    nothing: boosted trees have leaves of 1e-12.

    Parameters
    ----------
    form : StandardForm
    """
    size, row = np.abs(form.A.data), np.repeat(np.arange(form.n_rows), np.diff(form.A.indptr))
    reach = np.maximum(np.abs(form.lower), np.abs(form.upper))
    added = size * np.where(np.isfinite(reach), np.maximum(reach, 1.0), 1.0)[form.A.indices]
    most, largest, least = np.zeros(form.n_rows), _largest(form.A), np.full(form.n_rows, np.inf)
    np.maximum.at(most, row, added)
    counts = added >= SOME * most[row]
    np.minimum.at(least, row[counts], size[counts])
    odd = (largest > 0) & ((largest > LARGEST) | (least < LEAST))
    largest, least = np.maximum(largest[odd], TINY), np.maximum(least[odd], TINY)
    out = np.ones(form.n_rows)
    out[odd] = power_of_two(np.minimum(LARGEST / largest, np.maximum(LEAST / least, 1.0)))
    return out


def _largest(matrix: Any) -> Vector:
    """Largest magnitude of each row."""
    if not matrix.nnz:
        return np.zeros(matrix.shape[0])
    return np.asarray(abs(matrix).max(axis=1).toarray(), float).ravel()


def power_of_two(value: ArrayLike) -> Any:
    """The largest power of two that is not larger, of each.

    Parameters
    ----------
    value : array_like
        Positive.
    """
    return np.ldexp(1.0, np.frexp(value)[1] - 1)


def unit_of_squares(cost: float) -> float:
    """The unit in which columns of squares count, given a cost of the size of the optimum; 1 where that is not known.

    Parameters
    ----------
    cost : float
    """
    return power_of_two(cost) / 64 if 0 < cost < np.inf else 1.0

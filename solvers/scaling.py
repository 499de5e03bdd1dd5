"""A scale for objectives, so that tolerances of solvers mean the same everywhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocf.solvers.standard_form import StandardForm, Vector

#: A typical cost is scaled into [2**(COST_EXPONENT - 1), 2**COST_EXPONENT), the largest below 2**MAX_EXPONENT.
COST_EXPONENT, MAX_EXPONENT = 12, 20

#: Coefficients above this one are scaled down, with their row.
HUGE = 2.0**30


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


def unit_of_columns(form: StandardForm) -> Vector:
    """Powers of two in which the continuous columns of squares count, so that each of them costs about 1, (n_cols,).

    HiGHS adds 1e-7 to the squares of a quadratic objective. A column of thousands, the square of which costs 1e-10 a
    unit, would be solved for another cost.

    Parameters
    ----------
    form : StandardForm
    """
    out = np.ones(form.n_cols)
    if form.Q is not None:
        square = np.where(form.integer, 0.0, form.Q.diagonal())
        out[square > 0] = power_of_two(1.0 / np.sqrt(square[square > 0]))
    return out


def unit_of_rows(form: StandardForm) -> Vector:
    """Powers of two by which rows of huge coefficients are multiplied, so that the largest is about 1, (n_rows,).

    Solvers refuse such coefficients, or hold a row to an absolute tolerance that is less than its rounding.

    Parameters
    ----------
    form : StandardForm
    """
    largest = abs(form.A).max(axis=1).toarray().ravel() if form.A.nnz else np.zeros(form.n_rows)
    out = np.ones(form.n_rows)
    out[largest > HUGE] = power_of_two(1 / largest[largest > HUGE])
    return out


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

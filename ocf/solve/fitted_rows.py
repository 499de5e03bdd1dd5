"""Kernel: the rows of a model that say something within a box, with the smallest big-M there.

A search over boxes asks for the model of each of thousands of them. Copying the matrix of the whole, fitting its big-M
and tidying it takes 7 to 10 ms for 10,000 rows, more than the linear relaxation of what is left; by one pass over its
entries the model takes 0.8 ms.

Nomenclature
------------
========================  ==========================================================================================
symbol                    meaning, shape
========================  ==========================================================================================
``start, column, value``  a matrix by rows (CSR)
``sides``                 of the rows, (2, n_rows)
``bounds``                of the columns in the box, (2, n_cols)
``place``                 of each column in the smaller model; -1 of those that are 0 in the box
``rise, fall``            by how much a move's upper end lies lower, and its lower end higher, than in the whole box
========================  ==========================================================================================
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.solvers.standard_form import Reduced, StandardForm
from ocf.support.numba_cache import helper, kernel

#: As in `ocf.solvers.presolve`: twice the unit roundoff, and whole numbers up to which sums are exact. A kernel is
#: compiled with its own file's constants, of which its cache knows.
EPS, EXACT = 2.0**-52, 2.0**53


class Matrix(NamedTuple):
    """A matrix by rows.

    Attributes
    ----------
    start : (n_rows + 1,) int32
    column : (n_entries,) int32
    value : (n_entries,) float64
    """

    start: NDArray[np.int32]
    column: NDArray[np.int32]
    value: FloatArray


def fitted(form: StandardForm, big_m: BoolArray, shift: FloatArray, bounds: FloatArray) -> Reduced:
    """A model within a box, with the smallest big-M, without the columns that are 0 there and rows that say nothing.

    The same points of the box are feasible, but for what a smaller big-M cuts off between the integers.

    Parameters
    ----------
    form : StandardForm
        Of the whole box, linear; its first columns are the moves of the numbers.
    big_m : (n,) bool
        Which of the first rows have a big-M, the smallest that the whole box allows; those after them have none.
    shift : (2, n_moves) float64
        By how much the upper ends of the moves lie lower in the box, and their lower ends higher.
    bounds : (2, n_cols) float64
        In the box.
    """
    used = np.flatnonzero((bounds != 0).any(axis=0))
    place = np.full(form.n_cols, -1)
    place[used] = np.arange(len(used))
    matrix = Matrix(form.A.indptr, form.A.indices, form.A.data)
    out = Matrix(np.zeros_like(matrix.start), np.empty_like(matrix.column), np.empty_like(matrix.value))
    sides, out_sides = np.array([form.row_lower, form.row_upper]), np.empty((2, form.n_rows))
    n = fit_rows(matrix, sides, bounds, big_m, shift[0], shift[1], place, out, out_sides)
    m = max(n, 0)
    entries = slice(int(out.start[m]))
    smaller = StandardForm(
        c=form.c[used],
        c0=form.c0,
        A=sp.csr_array((out.value[entries], out.column[entries], out.start[: m + 1]), (m, len(used))),
        row_lower=out_sides[0, :m],
        row_upper=out_sides[1, :m],
        lower=bounds[0, used],
        upper=bounds[1, used],
        integer=form.integer[used],
        infeasible=form.infeasible or n < 0,
    )
    P = sp.csr_array((np.ones(len(used)), (used, np.arange(len(used)))), (form.n_cols, len(used)))
    return Reduced(smaller, P, np.zeros(form.n_cols))


@helper
def surplus(matrix: Matrix, row: int, rise: FloatArray, fall: FloatArray) -> tuple[float, bool]:
    """By how much the big-M of a row is larger than need be, and whether its upper side holds it, too.

    Parameters
    ----------
    matrix : Matrix
        The first columns are the moves.
    row : int
    rise, fall : (n_moves,) float64
    """
    less, size, above = 0.0, 0.0, False
    for k in range(matrix.start[row], matrix.start[row + 1]):
        j, a = matrix.column[k], matrix.value[k]
        if j < len(rise):
            less += a * rise[j] if a > 0 else -a * fall[j]
        else:
            size, above = max(size, abs(a)), above or a > 0
    return min(max(less, 0.0), size), above


@kernel
def fit_rows(
    matrix: Matrix,
    sides: FloatArray,
    bounds: FloatArray,
    big_m: BoolArray,
    rise: FloatArray,
    fall: FloatArray,
    place: IntArray,
    out: Matrix,
    out_sides: FloatArray,
) -> int:
    """Write the rows that a point within the bounds may break; how many, or -1 where all points break one.

    Parameters
    ----------
    matrix, sides, bounds
        Of the whole model, with the bounds of the box.
    big_m : (n,) bool
        Which of the first rows have a big-M.
    rise, fall, place
        See above.
    out, out_sides
        Overwritten.
    """
    n_entries, n_rows = 0, 0
    for row in range(len(matrix.start) - 1):
        fits = row < len(big_m) and big_m[row]
        less, above = surplus(matrix, row, rise, fall) if fits else (0.0, False)
        low, high = sides[0, row], sides[1, row] - (less if above else 0.0)
        least, most, size, whole, first = 0.0, 0.0, 0.0, True, n_entries
        for k in range(matrix.start[row], matrix.start[row + 1]):
            j, a = matrix.column[k], matrix.value[k]
            if j >= len(rise):
                a -= math.copysign(less, a)
            if place[j] < 0 or a == 0.0:
                continue
            ends = (a * bounds[0, j], a * bounds[1, j])
            least, most, size = least + min(ends), most + max(ends), size + max(abs(ends[0]), abs(ends[1]))
            whole = whole and a == np.rint(a) and ends[0] == np.rint(ends[0]) and ends[1] == np.rint(ends[1])
            out.column[n_entries], out.value[n_entries] = place[j], a
            n_entries += 1
        exact = (whole and size < EXACT) or not math.isfinite(size)
        error = 0.0 if exact else EPS * (n_entries - first + 1) * size
        if least - error > high or most + error < low:
            return -1
        if least - error >= low and most + error <= high:
            n_entries = first
            continue
        out_sides[0, n_rows], out_sides[1, n_rows] = low, high
        n_rows += 1
        out.start[n_rows] = n_entries
    return n_rows

"""Exact cleaning of the rows of a standard form: fewer rows, the very same feasible points.

Solvers clean rows too, but with tolerances and each in its own way. Here a row goes only when float64 arithmetic
proves that it says nothing, so that what is left is the same problem and a contradiction is a proof.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Vector = NDArray[np.float64]

Indices = NDArray[np.intp]

#: Whole numbers up to here, and their sums, are exact in float64.
EXACT_INTEGERS = 2.0**53

#: Twice the unit roundoff: bounds the error of one product or sum, with room to spare.
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Rows:
    """Rows and bounds in the middle of cleaning; `kept` holds the numbers of the rows in the original form."""

    A: Any
    row_lower: Vector
    row_upper: Vector
    lower: Vector
    upper: Vector
    kept: Indices
    infeasible: bool = False

    def select(self, mask: NDArray[np.bool_]) -> Rows:
        """Keep the rows under the mask."""
        if mask.all():
            return self
        return replace(
            self,
            A=_take_rows(self.A, mask),
            row_lower=self.row_lower[mask],
            row_upper=self.row_upper[mask],
            kept=self.kept[mask],
        )


def tidy_rows(
    A: Any, row_lower: Vector, row_upper: Vector, lower: Vector, upper: Vector, integer: NDArray[np.bool_]
) -> Rows:
    """Clean until nothing changes. `A` is CSR with sorted indices and neither duplicates nor zeros.

    Parameters
    ----------
    A : (n_rows, n_cols) CSR array
    row_lower, row_upper : (n_rows,) float64
    lower, upper : (n_cols,) float64
    integer : (n_cols,) bool
    """
    rows = Rows(A, row_lower, row_upper, *whole_bounds(lower, upper, integer), np.arange(A.shape[0]))
    rows = _merge_equal(rows)
    while True:
        before = rows
        rows = _drop_implied(rows)
        if rows.infeasible or (rows.lower > rows.upper).any() or (rows.row_lower > rows.row_upper).any():
            return replace(rows, infeasible=True)
        rows = _singletons_to_bounds(rows, integer)
        # Bounds are the only thing that can make another row redundant, so a pass that moved none is the last one.
        if rows.lower is before.lower and rows.upper is before.upper:
            return rows


def whole_bounds(lower: Vector, upper: Vector, integer: NDArray[np.bool_]) -> tuple[Vector, Vector]:
    """Round the bounds of integer columns into themselves.

    Parameters
    ----------
    lower, upper : (n_cols,) float64
    integer : (n_cols,) bool
    """
    return np.where(integer, np.ceil(lower), lower), np.where(integer, np.floor(upper), upper)


def _drop_implied(rows: Rows) -> Rows:
    """Drop the rows that hold at every point within the bounds; flag one that holds at none."""
    A = rows.A
    at_lower, at_upper = rows.lower[A.indices], rows.upper[A.indices]
    positive = A.data > 0
    low, low_error = _activity(A, np.where(positive, at_lower, at_upper))
    high, high_error = _activity(A, np.where(positive, at_upper, at_lower))
    impossible = (low - low_error > rows.row_upper) | (high + high_error < rows.row_lower)
    implied = (low - low_error >= rows.row_lower) & (high + high_error <= rows.row_upper)
    kept = rows.select(~implied)
    return replace(kept, infeasible=True) if impossible.any() else kept


def _activity(A: Any, values: Vector) -> tuple[Vector, Vector]:
    """Sum coefficient times value over each row, with a bound on the rounding error (0 where the sum is exact).

    `values` holds one value for each entry of the matrix. Sums of whole numbers are exact while they stay below 2**53.
    """
    n_rows = A.shape[0]
    entries = np.diff(A.indptr)
    row_of = np.repeat(np.arange(n_rows), entries)
    terms = A.data * values
    total = np.bincount(row_of, weights=terms, minlength=n_rows)
    size = np.bincount(row_of, weights=np.abs(terms), minlength=n_rows)
    broken = (A.data != np.rint(A.data)) | (values != np.rint(values))
    exact = (np.bincount(row_of, weights=broken, minlength=n_rows) == 0) & (size < EXACT_INTEGERS)
    known = np.where(exact | ~np.isfinite(size), 0.0, size)
    return np.asarray(total, dtype=float), np.asarray(EPS * (entries + 1) * known, dtype=float)


def _singletons_to_bounds(rows: Rows, integer: NDArray[np.bool_]) -> Rows:
    """Turn rows with one entry into bounds of its column, where the division is exact enough to be sure."""
    single = np.flatnonzero(np.diff(rows.A.indptr) == 1)
    if not len(single):
        return rows
    start = rows.A.indptr[single]
    column, coefficient = rows.A.indices[start], rows.A.data[start]
    sides = np.stack([rows.row_lower[single], rows.row_upper[single]])
    low, high = np.where(coefficient > 0, sides, sides[::-1]) / coefficient
    whole = integer[column]
    sure = _is_power_of_two(coefficient) | (whole & _between_integers(low) & _between_integers(high))
    if not sure.any():
        return rows

    lower, upper = rows.lower.copy(), rows.upper.copy()
    np.maximum.at(lower, column[sure], np.where(whole, np.ceil(low), low)[sure])
    np.minimum.at(upper, column[sure], np.where(whole, np.floor(high), high)[sure])
    mask = np.ones(rows.A.shape[0], dtype=bool)
    mask[single[sure]] = False
    return replace(rows, lower=lower, upper=upper).select(mask)


def _is_power_of_two(values: Vector) -> NDArray[np.bool_]:
    return np.abs(np.frexp(values)[0]) == 0.5


def _between_integers(quotient: Vector) -> NDArray[np.bool_]:
    """Whether the true quotient is infinite or lies, like the rounded one, strictly between two whole numbers."""
    finite = np.where(np.isfinite(quotient), quotient, 0.5)
    return np.abs(finite - np.rint(finite)) > 4 * EPS * np.abs(finite)


def _merge_equal(rows: Rows) -> Rows:
    """Merge rows with equal coefficients: the first one stays and gets the tightest sides."""
    A = rows.A
    n_rows = A.shape[0]
    entries = np.diff(A.indptr)
    leader = _first_with_same_hash(_row_hashes(A, entries))
    follower = np.flatnonzero(leader != np.arange(n_rows))
    follower = follower[entries[follower] == entries[leader[follower]]]
    follower = follower[_rows_equal(A, follower, leader[follower], entries)]
    if not len(follower):
        return rows
    row_lower, row_upper = rows.row_lower.copy(), rows.row_upper.copy()
    np.maximum.at(row_lower, leader[follower], rows.row_lower[follower])
    np.minimum.at(row_upper, leader[follower], rows.row_upper[follower])
    mask = np.ones(n_rows, dtype=bool)
    mask[follower] = False
    return replace(rows, row_lower=row_lower, row_upper=row_upper).select(mask)


def _row_hashes(A: Any, entries: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Hash each row as the sum (mod 2**64) of a hash of its (column, coefficient) pairs."""
    mixed = A.data.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ (
        (A.indices.astype(np.uint64) + np.uint64(1)) * np.uint64(0xC2B2AE3D27D4EB4F)
    )
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    running = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    return running[A.indptr[1:]] - running[A.indptr[:-1]]


def _first_with_same_hash(hashes: NDArray[np.uint64]) -> Indices:
    """For each row the lowest row with the same hash."""
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    return np.asarray(first[inverse], dtype=np.intp)


def _rows_equal(A: Any, left: Indices, right: Indices, entries: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether rows left[k] and right[k], of equal length, have the same entries: a hash alone proves nothing."""
    count = entries[left]
    pair = np.repeat(np.arange(len(left)), count)
    within = np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count)
    a, b = A.indptr[left][pair] + within, A.indptr[right][pair] + within
    differs = (A.indices[a] != A.indices[b]) | (A.data[a] != A.data[b])
    return np.bincount(pair[differs], minlength=len(left)) == 0


def _take_rows(A: Any, mask: NDArray[np.bool_]) -> Any:
    """Rows of a CSR array under a mask, in canonical format like the original."""
    entries = np.diff(A.indptr)
    inside = np.repeat(mask, entries)
    indptr = np.concatenate([[0], np.cumsum(entries[mask])]).astype(np.int32)
    out = sp.csr_array((A.data[inside], A.indices[inside], indptr), shape=(int(mask.sum()), A.shape[1]))
    out.has_canonical_format = True
    return out

r"""Small linear and convex quadratic programs in exact arithmetic, by Lemke's complementary pivoting.

.. math:: \min\ c'x + x'Qx / 2 \quad \text{s.t. } A x \le b,\ x \ge 0

with Q positive semidefinite. The optimality conditions are the linear complementarity problem ``w = M z + q``,
``w, z >= 0``, ``w'z = 0`` with ``M = [[Q, A'], [-A, 0]]``, ``q = [c, b]``, ``z = [x, multipliers]``. M is positive
semidefinite, so that Lemke's algorithm either solves it or ends in a ray that proves ``A x <= b, x >= 0`` empty
(for objectives that are bounded from below, as all on boxes are). Ties are broken lexicographically: no cycling.

Source: Lemke, Bimatrix equilibrium points and mathematical programming (1965); Cottle, Pang and Stone, The linear
complementarity problem (1992), section 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ocf.arrays import FloatArray

Vector = list[Fraction]

Matrix = list[Vector]

#: Problems of more conditions than this are solved in float64 first, which exact arithmetic then confirms.
GUESSED = 16

#: Pivots in float64 after which to give up, and what counts as 0 there.
PIVOTS, SMALL = 2000, 1e-11

ZERO, ONE = Fraction(0), Fraction(1)


def minimise(
    c: Sequence[Fraction], A: Sequence[Sequence[Fraction]], b: Sequence[Fraction], Q: Matrix | None = None
) -> Vector | None:
    """Cheapest x >= 0 with ``A x <= b``; None when there is none.

    Parameters
    ----------
    c : (n,) fractions
    A : (m, n) fractions
    b : (m,) fractions
    Q : (n, n) fractions, optional
        Symmetric, positive semidefinite; zero by default.

    Returns
    -------
    (n,) fractions or None
    """
    found = minimise_with_multipliers(c, A, b, Q)
    return None if found is None else found[0]


def minimise_with_multipliers(
    c: Sequence[Fraction], A: Sequence[Sequence[Fraction]], b: Sequence[Fraction], Q: Matrix | None = None
) -> tuple[Vector, Vector] | None:
    """Cheapest x >= 0 with ``A x <= b``, and the multipliers that prove it; None when there is none.

    Parameters
    ----------
    c, A, b, Q
        As in `minimise`.

    Returns
    -------
    ((n,) fractions, (m,) fractions) or None
    """
    n, m = len(c), len(b)
    rows: Matrix = []
    for i in range(n):
        own = Q[i] if Q is not None else [ZERO] * n
        rows.append([*own, *(A[k][i] for k in range(m))])
    for k in range(m):
        rows.append([*(-a for a in A[k]), *([ZERO] * m)])
    z = complement(rows, [*c, *b])
    return None if z is None else (z[:n], z[n:])


def complement(M: Matrix, q: Sequence[Fraction]) -> Vector | None:
    """Solve ``w = M z + q, w, z >= 0, w'z = 0`` for z by Lemke's algorithm; None when it ends in a ray.

    Parameters
    ----------
    M : (n, n) of Fraction
    q : (n,) of Fraction
    """
    n = len(q)
    if all(v >= 0 for v in q):
        return [ZERO] * n
    if n > GUESSED:
        guess = float_basis(np.array(M, np.float64), np.array(q, np.float64))
        z = None if guess is None else _at_basis(M, q, guess)
        if z is not None:
            return z
    # columns: w (0..n-1), z (n..2n-1), the artificial variable (2n), the right-hand side (2n+1)
    table = [
        [*(ONE if i == j else ZERO for j in range(n)), *(-a for a in M[i]), -ONE, Fraction(q[i])] for i in range(n)
    ]
    basis = list(range(n))
    row = min(range(n), key=lambda i: [table[i][-1], *table[i][:n]])
    entering = 2 * n
    while True:
        leaving = basis[row]
        _pivot(table, row, entering)
        basis[row] = entering
        if leaving == 2 * n:
            break
        entering = leaving + n if leaving < n else leaving - n
        row = _ratio_test(table, basis, entering, n)
        if row < 0:
            return None
    z = [ZERO] * n
    for i, variable in enumerate(basis):
        if n <= variable < 2 * n:
            z[variable - n] = table[i][-1]
    return z


def float_basis(M: FloatArray, q: FloatArray) -> list[int] | None:
    """Basis in which Lemke's algorithm ends in float64; None when it ends in a ray, or not in time.

    Ties are broken as if q were larger by powers of a tiny number, which is the lexicographic rule: what decides among
    rows of equal ratio is that of their columns of the first basis, in turn.

    Parameters
    ----------
    M : (n, n) float64
        Positive semidefinite.
    q : (n,) float64

    Returns
    -------
    list of int or None
        For each row the variable that is basic there: i for ``w[i]``, n + i for ``z[i]``.
    """
    n = len(q)
    # rows and columns brought to one size, which changes no sign
    size = np.sqrt(np.maximum(np.abs(M).max(axis=1, initial=0.0), np.abs(M).max(axis=0, initial=0.0)))
    size[size == 0] = 1.0
    right = q / size
    right /= max(float(np.abs(right).max(initial=0.0)), np.finfo(np.float64).tiny)
    table = np.hstack([np.eye(n), -M / np.outer(size, size), -np.ones((n, 1)), right[:, None]])
    basis = list(range(n))
    if not n or (right >= 0).all():
        return basis
    lowest = np.flatnonzero(table[:, -1] <= table[:, -1].min() + SMALL)
    # among equals the last: it is the one that stays below when each is larger by less than those before it
    row, entering = int(lowest[-1]), 2 * n
    for _ in range(PIVOTS):
        leaving, basis[row] = basis[row], entering
        table[row] /= table[row, entering]
        others = np.arange(n) != row
        table[others] -= np.outer(table[others, entering], table[row])
        if leaving == 2 * n:
            return basis
        entering = leaving + n if leaving < n else leaving - n
        row = _float_ratio_test(table, basis, entering)
        if row < 0:
            return None
    return None


def _float_ratio_test(table: FloatArray, basis: list[int], entering: int) -> int:
    """As `_ratio_test`, in float64."""
    n = len(basis)
    tied = np.flatnonzero(table[:, entering] > SMALL)
    if not len(tied):
        return -1
    for column in (-1, *range(n)):
        ratio = table[tied, column] / table[tied, entering]
        tied = tied[ratio <= ratio.min() + SMALL]
        if column == -1:
            artificial = next((int(i) for i in tied if basis[i] == 2 * n), None)
            if artificial is not None:
                return artificial
        if len(tied) == 1:
            break
    return int(tied[table[tied, entering].argmax()])


def _at_basis(M: Matrix, q: Sequence[Fraction], basis: Sequence[int]) -> Vector | None:
    """The solution of a basis, exactly; None where it is none."""
    n = len(q)
    free = sorted(b - n for b in basis if b >= n)
    if len({b % n for b in basis}) < n or 2 * n in basis:
        return None
    solved = _solved([[M[i][j] for j in free] for i in free], [-q[i] for i in free])
    if solved is None or any(v < 0 for v in solved):
        return None
    z = [ZERO] * n
    for j, v in zip(free, solved, strict=True):
        z[j] = v
    slack = (sum((M[i][j] * z[j] for j in free), Fraction(q[i])) for i in range(n) if i not in free)
    return z if all(v >= 0 for v in slack) else None


def _solved(A: Matrix, b: Vector) -> Vector | None:
    """Solution of a square system by Gaussian elimination; None where it is singular."""
    rows = [[*own, right] for own, right in zip(A, b, strict=True)]
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(k + 1, len(rows)):
            if rows[i][k]:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [v - factor * w if w else v for v, w in zip(rows[i], rows[k], strict=True)]
    x = [ZERO] * len(rows)
    for k in reversed(range(len(rows))):
        x[k] = (rows[k][-1] - sum((rows[k][j] * x[j] for j in range(k + 1, len(rows))), ZERO)) / rows[k][k]
    return x


def _ratio_test(table: Matrix, basis: list[int], entering: int, n: int) -> int:
    """Row that leaves: least ratio, the artificial variable first among equals, then lexicographically; -1: none."""
    able = [i for i in range(n) if table[i][entering] > 0]
    if not able:
        return -1
    ratio = {i: table[i][-1] / table[i][entering] for i in able}
    least = min(ratio.values())
    tied = [i for i in able if ratio[i] == least]
    for i in tied:
        if basis[i] == 2 * n:
            return i
    return tied[0] if len(tied) == 1 else min(tied, key=lambda i: [v / table[i][entering] for v in table[i][:n]])


def _pivot(table: Matrix, row: int, column: int) -> None:
    pivot = table[row][column]
    if pivot != 1:
        table[row] = [v / pivot if v else v for v in table[row]]
    own = [(j, v) for j, v in enumerate(table[row]) if v]
    for i, other in enumerate(table):
        factor = other[column]
        if i != row and factor:
            for j, v in own:
                other[j] -= factor * v

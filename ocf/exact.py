r"""Small linear and convex quadratic programs in exact arithmetic, by Lemke's complementary pivoting.

.. math:: \\min\\ c'x + x'Qx / 2 \\quad \\text{s.t. } A x \\le b,\\ x \\ge 0

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

Vector = list[Fraction]
Matrix = list[Vector]

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
    n, m = len(c), len(b)
    rows: Matrix = []
    for i in range(n):
        own = Q[i] if Q is not None else [ZERO] * n
        rows.append([*own, *(A[k][i] for k in range(m))])
    for k in range(m):
        rows.append([*(-a for a in A[k]), *([ZERO] * m)])
    z = complement(rows, [*c, *b])
    return None if z is None else z[:n]


def complement(M: Matrix, q: Sequence[Fraction]) -> Vector | None:
    """Solve ``w = M z + q, w, z >= 0, w'z = 0`` for z by Lemke's algorithm; None when it ends in a ray."""
    n = len(q)
    if all(v >= 0 for v in q):
        return [ZERO] * n
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

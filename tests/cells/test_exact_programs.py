from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from ocf.cells import exact_programs as exact
from ocf.cells.exact_programs import complement, minimise


def fractions(values: np.ndarray) -> list:
    return [fractions(v) if np.ndim(v) else Fraction(int(v)) for v in values]


def random_program(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 7)), int(rng.integers(1, 4))
    A = np.vstack([rng.integers(-3, 4, (m, n)), np.eye(n, dtype=int)])
    b = np.concatenate([rng.integers(-4, 5, m), rng.integers(1, 5, n)])
    return rng.integers(-3, 4, n), A, b


@pytest.mark.parametrize("guessed", [0, 1000])
@pytest.mark.parametrize("seed", range(40))
def test_linear_programs_agree_with_scipy(seed: int, guessed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "GUESSED", guessed)
    c, A, b = random_program(seed)
    x = minimise(fractions(c), fractions(A), fractions(b))
    reference = linprog(c, A, b)
    assert (x is None) == (reference.status == 2)
    if x is not None:
        assert all(v >= 0 for v in x)
        assert all(
            sum(a * v for a, v in zip(row, x, strict=True)) <= side
            for row, side in zip(A.tolist(), b.tolist(), strict=True)
        )
        assert float(sum(int(k) * v for k, v in zip(c, x, strict=True))) == pytest.approx(reference.fun, abs=1e-8)


@pytest.mark.parametrize("guessed", [0, 1000])
@pytest.mark.parametrize("seed", range(40))
def test_quadratic_programs_meet_their_optimality_conditions(
    seed: int, guessed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "GUESSED", guessed)
    c, A, b = random_program(seed)
    root = np.random.default_rng(seed).integers(-2, 3, (2, len(c)))  # often singular
    M = np.block([[root.T @ root, A.T], [-A, np.zeros((len(b), len(b)), int)]])
    q = [*fractions(c), *fractions(b)]
    z = complement(fractions(M), q)
    assert (z is None) == (linprog(c, A, b).status == 2)
    if z is not None:
        w = [sum((k * v for k, v in zip(row, z, strict=True)), side) for row, side in zip(fractions(M), q, strict=True)]
        assert all(v >= 0 for v in (*w, *z))
        assert not any(a and v for a, v in zip(w, z, strict=True))


def test_degenerate_programs_do_not_cycle() -> None:
    """Many rows through one corner."""
    A = [[Fraction(k), Fraction(1)] for k in range(-3, 4)] + [[Fraction(-1), Fraction(-1)]]
    b = [Fraction(0)] * 7 + [Fraction(-1)]
    assert minimise([Fraction(1), Fraction(1)], A, b) is None
    assert minimise([Fraction(1), Fraction(1)], A, [Fraction(3)] * 7 + [Fraction(0)]) == [0, 0]

"""Every solver, and problems that are hard for it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

from ocf.solvers import SOLVERS, Solver, StandardForm, available, get_solver

from .forms import market_split_form


@pytest.fixture(params=list(SOLVERS))
def solver(request: pytest.FixtureRequest) -> Solver:
    """Every solver that is present, one after the other."""
    ready = available()[request.param]
    if not ready:
        pytest.skip(ready.reason)
    return get_solver(request.param)


@pytest.fixture(scope="session")
def set_cover() -> Callable[..., StandardForm]:
    """Make set covering problems with small costs: a second or so for 80 columns and 120 rows."""

    def make(n_cols: int, n_rows: int, seed: int = 0, cost: float = 1e-3, c0: float = 0.0) -> StandardForm:
        rng = np.random.default_rng(seed)
        matrix = sp.random_array((n_rows, n_cols), density=0.1, rng=rng, format="csr")
        matrix.data[:] = 1.0
        matrix = matrix[np.diff(matrix.indptr) > 0]
        return StandardForm(
            c=rng.uniform(0.5, 1.5, n_cols) * cost,
            c0=c0,
            A=matrix,
            row_lower=np.ones(matrix.shape[0]),
            row_upper=np.full(matrix.shape[0], np.inf),
            lower=np.zeros(n_cols),
            upper=np.ones(n_cols),
            integer=np.ones(n_cols, dtype=bool),
        )

    return make


@pytest.fixture(scope="module")
def hard(set_cover):
    return set_cover(80, 120, c0=-0.7)


@pytest.fixture(scope="module")
def optimum(hard):
    return get_solver("scip").solve(hard)


@pytest.fixture(scope="module")
def market_split():
    return market_split_form()

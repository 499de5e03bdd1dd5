"""LP bounds that are wrong, or missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_problems import exhaustive, random_problem

from ocf.solvers.box import relaxation, solve_cells

from .cases import check, compiled


def test_wrong_multipliers_never_cut_off_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that returns nonsense makes the search slower, not wrong."""
    rng = np.random.default_rng(0)
    right = relaxation.Relaxation.multipliers

    def wrong(self: Any, dual: Any, costs: bool = True) -> Any:
        return right(self, dual + rng.normal(size=len(dual)) * (rng.random(len(dual)) < 0.3), costs)

    monkeypatch.setattr(relaxation.Relaxation, "multipliers", wrong)
    for seed in range(40):
        cells = random_problem(seed)
        check(cells, solve_cells(cells, relaxation=compiled(cells)), exhaustive(cells).optimum)


def test_without_highspy(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: Any, reference: float) -> None:
        raise ImportError("highspy")

    monkeypatch.setattr(relaxation.Relaxation, "start", missing)
    cells = random_problem(8)
    result = solve_cells(cells, relaxation=compiled(cells))
    assert result.lp_solves == 0
    check(cells, result, exhaustive(cells).optimum)

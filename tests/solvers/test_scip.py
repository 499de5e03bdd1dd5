"""SCIP, when it breaks down."""

from __future__ import annotations

import pyscipopt
import pytest

from ocf.solvers import Status, get_solver

from .forms import knapsack


def test_a_breakdown_of_scip_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(pyscipopt.Model):
        def optimizeNogil(self) -> None:
            raise Exception("SCIP: error in LP solver!")

    monkeypatch.setattr("ocf.solvers.scip.Model", Broken)
    result = get_solver("scip").solve(knapsack())
    assert result.status is Status.ERROR
    assert "error in LP solver" in result.message

"""SCIP, when it breaks down, and what is left of it afterwards."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pyscipopt
import pytest

from ocf.errors import SolverError
from ocf.solvers import SolverOptions, Status, get_solver

from .forms import knapsack


def test_a_breakdown_of_scip_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(pyscipopt.Model):
        def optimizeNogil(self) -> None:
            raise Exception("SCIP: error in LP solver!")

    monkeypatch.setattr("ocf.solvers.scip.Model", Broken)
    result = get_solver("scip").solve(knapsack())
    assert result.status is Status.ERROR
    assert "error in LP solver" in result.message


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[object]]]:
    """References to the models of SCIP that were built, while nothing collects garbage."""
    built: list[weakref.ref[object]] = []

    class Watched(pyscipopt.Model):
        def __init__(self) -> None:
            super().__init__()
            built.append(weakref.ref(self))

    monkeypatch.setattr("ocf.solvers.scip.Model", Watched)
    gc.disable()
    yield built
    gc.enable()


def test_models_are_freed_at_once(models: list[weakref.ref[object]]) -> None:
    """Left to the garbage collector, SCIP calls its event handler in the middle of anything, deep recursion too."""
    solver = get_solver("scip")
    result = solver.solve(knapsack())
    assert result.status is Status.OPTIMAL
    assert solver.solve(knapsack(), interrupt=lambda: True).status is not Status.ERROR
    with pytest.raises(SolverError, match="did you mean"):
        solver.solve(knapsack(), SolverOptions(options={"limits/times": 1.0}))
    assert len(models) >= 3
    assert not any(model() for model in models)

"""A solver that errs ends no row that another one can prove, unless it was asked for by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyscipopt
import pytest
import scipy.sparse as sp
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.errors import SolverError
from ocf.problem.constraints import Linear
from ocf.solvers import Status, get_solver
from ocf.solvers.adapter import Claim, RawAnswer, SolverQuestion, conclude
from ocf.solvers.highs import HighsSolver
from ocf.solvers.result import SolveResult, SolverOptions
from ocf.solvers.scip import ScipSolver
from ocf.solvers.standard_form import StandardForm

NUMBERS = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 2)), columns=["c", "d"])
FOREST = RandomForestClassifier(5, max_depth=3, random_state=0).fit(NUMBERS, (NUMBERS.c + NUMBERS.d > 0).astype(int))
ROW = NUMBERS[FOREST.predict(NUMBERS) == 0].iloc[[0]]
#: Couples the features, so that the box search refuses the problem and HiGHS comes first.
TOGETHER = Linear({"c": 1.0, "d": -1.0}, "<=", 1.0)


def spoil(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Make HiGHS err."""

    def solve(self: HighsSolver, *args: object, **settings: object) -> SolveResult:
        if how == "raises":
            raise SolverError("HiGHS refuses the problem")
        return SolveResult(Status.ERROR, solver="highs", message="the solver's point violates the problem by 3.9e-06")

    monkeypatch.setattr(HighsSolver, "solve", solve)


@pytest.mark.parametrize("how", ["raises", "answers"])
def test_another_solver_goes_on(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (wanted,) = Explainer(FOREST, data=NUMBERS).explain(ROW, constraints=TOGETHER, reduce=False, solver="scip")
    spoil(monkeypatch, how)
    (e,) = Explainer(FOREST, data=NUMBERS).explain(ROW, constraints=TOGETHER, reduce=False)
    assert (e.status, e.verified, e.proved_by) == ("optimal", True, "scip")
    assert (e.method["proved_by"], e.method["solvers"][-1]) == ("scip", "scip")
    assert e.cost == pytest.approx(wanted.cost, rel=1e-9)
    assert e.message.startswith("highs failed (")
    assert "scip went on" in str(e)
    (e,) = Explainer(FOREST, data=NUMBERS).explain(ROW, constraints=TOGETHER, reduce=False, solver="highs")
    assert e.status == "error"
    assert "highs" in e.message.lower() or "violates" in e.message


def test_the_box_search_goes_on_where_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS comes first where a formulation was asked for."""
    spoil(monkeypatch, "answers")
    monkeypatch.setattr(ScipSolver, "solve", HighsSolver.solve)
    (e,) = Explainer(FOREST, data=NUMBERS).explain(ROW, formulation="ocean", reduce=False)
    assert (e.status, e.verified, e.proved_by) == ("optimal", True, "box")
    (e,) = Explainer(FOREST, data=NUMBERS).explain(ROW, reduce=False, constraints=TOGETHER)
    assert e.status == "error"  # there is nothing left that knows relations
    assert e.message.count("violates the problem") == 2


def knapsack() -> StandardForm:
    return StandardForm(
        [1, 2, 3], 0, sp.csr_array([[1.0, 1, 1]]), [2], [np.inf], [0, 0, 0], [1, 1, 1], [True, True, True]
    )


@pytest.mark.parametrize("name", ["highs", "scip"])
@pytest.mark.parametrize("failures", [1, 2, 3])
def test_a_solver_is_asked_again_by_safer_options(name: str, failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first points violate the problem, or the solver breaks down; there are two remedies."""
    asked: list[dict[str, Any]] = []

    def failing(
        question: SolverQuestion, answer: RawAnswer, solver: str, version: str, raw: dict[str, Any]
    ) -> SolveResult:
        asked.append(raw)
        if len(asked) <= failures:
            answer = RawAnswer(Claim.OPTIMAL, np.zeros(3), 0.0, "done", 1.0, 1)
            if failures == 2:
                answer = RawAnswer(Claim.FAILED, None, -np.inf, "numerical trouble", 1.0, 1)
        return conclude(question, answer, solver, version, raw)

    monkeypatch.setattr(f"ocf.solvers.{name}.conclude", failing)
    own = {"presolve": "choose"} if name == "highs" else {"presolving/maxrounds": 5}
    result = get_solver(name).solve(knapsack(), SolverOptions(options=own))
    assert len({tuple(sorted(raw.items())) for raw in asked}) >= min(failures, 2)
    assert all(own.items() <= raw.items() for raw in asked)  # what the user set stays
    if failures == 3:
        assert (result.status, len(asked)) == (Status.ERROR, 3)
    else:
        assert (result.status, result.objective, len(asked)) == (Status.OPTIMAL, 3.0, failures + 1)
        assert result.seconds >= failures


def test_a_breakdown_of_scip_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(pyscipopt.Model):
        def optimizeNogil(self) -> None:
            raise Exception("SCIP: error in LP solver!")

    monkeypatch.setattr("ocf.solvers.scip.Model", Broken)
    result = get_solver("scip").solve(knapsack())
    assert result.status is Status.ERROR
    assert "error in LP solver" in result.message

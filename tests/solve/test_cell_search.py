"""One answer out of those of a target's alternatives, and of several solvers of which some err."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.errors import SolverError
from ocf.problem.constraints import Linear
from ocf.solve.cell_search import merged_progress, solve_together
from ocf.solve.outcome import Outcome
from ocf.solvers.highs import HighsSolver
from ocf.solvers.result import Progress, SolveResult, Status
from ocf.solvers.scip import ScipSolver


def outcome(status: Status, cost: float | None, bound: float, **more: object) -> Outcome:
    point = None if cost is None else np.array([cost])
    return Outcome(status, point, cost, bound, {"solve": 1.0}, 3, proved_by="box", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcomes", "status", "cost", "bound"),
    [
        ([(Status.OPTIMAL, 2.0, 2.0), (Status.OPTIMAL, 2.0, 2.0)], Status.OPTIMAL, 2.0, 2.0),
        # the second was proven when the point of the first, 3.0, was the best that was known
        ([(Status.OPTIMAL, 3.0, 3.0), (Status.OPTIMAL, 2.0, 2.0)], Status.OPTIMAL, 2.0, 2.0),
        ([(Status.INFEASIBLE, None, math.inf), (Status.OPTIMAL, 2.0, 2.0)], Status.OPTIMAL, 2.0, 2.0),
        ([(Status.INFEASIBLE, None, math.inf), (Status.INFEASIBLE, None, math.inf)], Status.INFEASIBLE, None, math.inf),
        ([(Status.FEASIBLE, 3.0, 1.0), (Status.OPTIMAL, 2.0, 2.0)], Status.FEASIBLE, 2.0, 1.0),
        ([(Status.UNKNOWN, None, 0.5), (Status.INFEASIBLE, None, math.inf)], Status.UNKNOWN, None, 0.5),
        ([(Status.UNKNOWN, None, 0.5), (Status.OPTIMAL, 2.0, 2.0)], Status.FEASIBLE, 2.0, 0.5),
        ([(Status.ERROR, None, 0.5), (Status.OPTIMAL, 2.0, 2.0)], Status.ERROR, 2.0, 0.5),
    ],
)
def test_a_union_claims_no_more_than_its_parts(
    outcomes: list, status: Status, cost: float | None, bound: float
) -> None:
    found = solve_together([outcome(*o) for o in outcomes])
    assert (found.status, found.cost, found.bound) == (status, cost, bound)
    assert (found.nodes, found.times["solve"], found.proved_by) == (6, 2.0, "box")


def test_the_history_shows_the_least_bound_and_the_best_point() -> None:
    one = [Progress(1.0, 1.0, math.inf), Progress(3.0, 2.0, 4.0)]
    other = [Progress(2.0, 0.5, 5.0), Progress(4.0, 3.0, 3.0)]
    assert merged_progress([one, other]) == (
        Progress(2.0, 0.5, 5.0),
        Progress(3.0, 0.5, 4.0),
        Progress(4.0, 2.0, 3.0),
    )


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

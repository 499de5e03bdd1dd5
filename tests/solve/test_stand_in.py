"""Before its kernels are compiled, a matrix solver stands in for the box search, for as long as compiling takes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.solve import stand_in
from ocf.solvers.highs import HighsSolver
from ocf.solvers.result import SolveResult, Status

NUMBERS = pd.DataFrame(np.random.default_rng(3).normal(size=(200, 6)), columns=list("abcdef"))
ANSWERS = (NUMBERS.a * NUMBERS.b + NUMBERS.c - NUMBERS.d * NUMBERS.e > 0).astype(int)
FOREST = RandomForestClassifier(10, max_depth=4, random_state=0).fit(NUMBERS, ANSWERS)

ROWS = NUMBERS[FOREST.predict(NUMBERS) == 0].iloc[:4]


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no kernel of the box search were at hand."""
    monkeypatch.setenv("OCF_COMPILE_FIRST", "0")
    monkeypatch.setattr(stand_in, "at_hand", lambda kernel: False)
    monkeypatch.setattr(stand_in.STAND_IN, "left", stand_in.SECONDS)


def proofs(solver: str = "auto") -> tuple[set[str], list[float | None]]:
    """Who proved the answers, and what they cost."""
    found = Explainer(FOREST, data=NUMBERS).explain(ROWS, solver=solver, reduce=False)
    assert all(e.status == "optimal" and e.verified for e in found)
    return {e.proved_by for e in found}, [e.cost for e in found]


def test_the_first_rows_go_to_a_matrix_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    who, costs = proofs()
    assert "highs" in who
    assert "box" not in who
    assert stand_in.STAND_IN.left < stand_in.SECONDS
    asked, expected = proofs("box")
    assert ("box" in asked, "highs" in asked) == (True, False)
    np.testing.assert_allclose(np.array(costs, float), np.array(expected, float), rtol=1e-9)

    monkeypatch.setenv("OCF_COMPILE_FIRST", "1")
    assert "highs" not in proofs()[0]


def test_the_search_takes_over_where_it_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = proofs("box")[1]
    limits: list[float | None] = []

    def solve(self: HighsSolver, form: object, options: object = None, **settings: object) -> SolveResult:
        limits.append(options.time_limit)  # type: ignore[attr-defined]
        monkeypatch.setattr(stand_in.STAND_IN, "left", 0.0)  # as after a long time
        return SolveResult(Status.UNKNOWN, bound=-np.inf, solver="highs", message="time limit")

    monkeypatch.setattr(HighsSolver, "solve", solve)
    who, costs = proofs()
    assert ("box" in who, "highs" in who) == (True, False)
    assert limits == [stand_in.SECONDS]
    np.testing.assert_allclose(np.array(costs, float), np.array(expected, float), rtol=1e-9)


def test_kernels_at_hand_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stand_in, "at_hand", lambda kernel: True)
    assert "highs" not in proofs()[0]
    assert stand_in.STAND_IN.left == 0.0

"""Before its kernels are compiled, a matrix solver stands in for the box search, for as long as compiling takes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.solve import stand_in
from ocf.solvers.box import search, solver
from ocf.solvers.box.search import BoxResult
from ocf.solvers.highs import HighsSolver
from ocf.solvers.result import SolveResult, Status
from ocf.support.limits import current

NUMBERS = pd.DataFrame(np.random.default_rng(3).normal(size=(200, 6)), columns=list("abcdef"))
ANSWERS = (NUMBERS.a * NUMBERS.b + NUMBERS.c - NUMBERS.d * NUMBERS.e > 0).astype(int)
FOREST = RandomForestClassifier(10, max_depth=4, random_state=0).fit(NUMBERS, ANSWERS)

#: What is compiled for the box search.
SEARCH = ("search", "bounds")

ROWS = NUMBERS[FOREST.predict(NUMBERS) == 0].iloc[:4]


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no kernel of the box search were at hand."""
    monkeypatch.setenv("OCF_COMPILE_FIRST", "0")
    monkeypatch.setattr(stand_in, "at_hand", lambda kernel: False)
    for name, value in (("left", stand_in.SECONDS), ("begun", True), ("searched", False)):
        monkeypatch.setattr(stand_in.STAND_IN, name, value)


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


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is compiled before the clock of a row starts, in order."""
    said: list[str] = []

    def compile_as(name: str) -> None:
        def compile_it() -> None:
            assert current().end == np.inf  # no row's clock is running
            said.append(name)

        monkeypatch.setattr(stand_in, f"compile_{name}", compile_it)

    compile_as("beginning")
    compile_as("search")
    compile_as("bounds")
    monkeypatch.setattr(stand_in.STAND_IN, "begun", False)
    return said


def test_the_default_limit_begins_when_the_kernels_are_there(ahead: list[str]) -> None:
    explainer = Explainer(FOREST, data=NUMBERS)
    explainer.explain(ROWS.iloc[:1])
    assert ahead == ["beginning"]
    stand_in.STAND_IN.left = 0.0  # the matrix solver's time is used up
    explainer.explain(ROWS)  # several at a time
    assert ahead == ["beginning", *SEARCH]
    explainer.explain(ROWS.iloc[:1])
    assert ahead == ["beginning", *SEARCH]


@pytest.mark.parametrize("limit", [60.0, None])
def test_a_limit_that_is_stated_covers_compiling(ahead: list[str], limit: float | None) -> None:
    explainer = Explainer(FOREST, data=NUMBERS)
    stand_in.STAND_IN.left = 0.0
    for rows in (ROWS.iloc[:1], ROWS):
        explainer.explain(rows, time_limit=limit, solver="box")
    assert ahead == []


def test_the_search_is_compiled_ahead_where_it_is_asked_for(ahead: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    explainer = Explainer(FOREST, data=NUMBERS)
    explainer.explain(ROWS.iloc[:1], solver="box")
    assert ahead == ["beginning", *SEARCH]
    stand_in.STAND_IN.searched = False
    monkeypatch.setenv("OCF_COMPILE_FIRST", "1")
    explainer.explain(ROWS.iloc[:1])
    assert ahead == ["beginning", *SEARCH, *SEARCH]
    stand_in.STAND_IN.searched = False
    monkeypatch.setattr(stand_in, "at_hand", lambda kernel: True)
    explainer.explain(ROWS.iloc[:1])
    assert ahead == ["beginning", *SEARCH, *SEARCH]


@pytest.mark.parametrize(("formulation", "branches"), [("interval", True), ("ocean", False)])
def test_scip_waits_for_the_search_where_it_branches_by_its_kernels(
    ahead: list[str], formulation: str, branches: bool
) -> None:
    Explainer(FOREST, data=NUMBERS).explain(ROWS.iloc[:1], solver="scip", formulation=formulation)
    assert ahead == ["beginning", *(SEARCH if branches else ())]


@pytest.mark.parametrize(("seconds", "tried"), [(stand_in.FOR_BOUNDS - 1, False), (stand_in.FOR_BOUNDS + 60, True)])
def test_lp_bounds_are_left_out_where_a_stated_limit_leaves_no_time_to_compile_them(
    monkeypatch: pytest.MonkeyPatch, seconds: float, tried: bool
) -> None:
    asked: list[bool] = []

    def solve_cells(cells: object, *args: object, relaxation: Callable[[], object], **settings: object) -> BoxResult:
        asked.append(relaxation() is not None)
        return search.solve_cells(cells, *args, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(solver, "solve_cells", solve_cells)
    found = Explainer(FOREST, data=NUMBERS).explain(ROWS, solver="box", reduce=False, time_limit=seconds)
    assert set(asked) == {tried}
    assert {e.status for e in found} == {"optimal"}

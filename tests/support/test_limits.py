"""Limits within limits, and what they end. Across files: what is built and searched under them."""

from __future__ import annotations

import logging
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.errors import MemoryLimitError, ProblemError, TimeLimitError
from ocf.formulations import FORMULATIONS
from ocf.solve import growing_ball, matrices, prepared
from ocf.solve.compile import compile_formulation
from ocf.solvers import get_solver
from ocf.solvers.result import SolverOptions, Status
from ocf.support import limits
from ocf.support.limits import check, current, memory_of, reserve, seconds_left, within

#: Formulations over cells.
OVER_CELLS = [name for name in FORMULATIONS if name not in ("hyperplanes", "oblique")]


@pytest.fixture(scope="module")
def asked() -> tuple[Explainer, pd.DataFrame]:
    table, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    table = table.iloc[:, :8]
    forest = RandomForestClassifier(8, max_depth=4, random_state=0).fit(table, classes)
    return Explainer(forest, table), table[forest.predict(table) == 0].iloc[:2]


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process holds more than any limit."""
    monkeypatch.setattr(limits, "resident", lambda: 10**15)
    # what was looked up before, and here, is not remembered
    monkeypatch.setattr(limits, "LAST", SimpleNamespace(looked=-np.inf, held=0))


def test_the_nearest_end_and_the_least_memory_hold() -> None:
    assert seconds_left() == np.inf
    check()
    with within(1000, 10**15):
        with within(2000, 10**14):
            assert 0 < seconds_left() <= 1000
            assert current().memory == 10**14
        with within(2000, anew=True):
            assert seconds_left() > 1000
        assert current().memory == 10**15
        with pytest.raises(TimeLimitError):
            check(ahead=1001)
        check(ahead=1)
    with within(0.0), pytest.raises(TimeLimitError):
        check()
    assert seconds_left() == np.inf


def test_memory_is_refused_before_it_is_taken(full: None) -> None:
    reserve(10**12, "nothing in particular")  # there is no limit
    with within(memory=10**9):
        with pytest.raises(MemoryLimitError, match="memory_limit"):
            check()
        with pytest.raises(MemoryLimitError, match=r"a tower takes about 5 GB, .* of 1 GB are left: build lower"):
            reserve(5 * 10**9, "a tower", "build lower")


def test_memory_that_was_freed_is_free(full: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with within(memory=10**9):
        assert current().full
        monkeypatch.setattr(limits, "resident", lambda: 10**8)
        assert not current().full


def test_by_default_three_quarters_of_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "free_memory", lambda: 4 * 10**9)
    monkeypatch.setattr(limits, "resident", lambda: 10**9)
    assert memory_of(None) == 4 * 10**9
    assert memory_of(None, processes=3) == 2 * 10**9
    assert memory_of("2 GB") == 2 * 10**9
    with pytest.raises(ProblemError, match="memory_limit"):
        memory_of("much")


@pytest.mark.parametrize("name", OVER_CELLS)
def test_building_ends_with_the_time_and_says_nothing_of_its_own(
    name: str, asked: tuple[Explainer, pd.DataFrame], caplog: pytest.LogCaptureFixture
) -> None:
    explainer, rows = asked
    cells = explainer.cells(explainer.problem(rows.iloc[[0]]))
    with caplog.at_level(logging.WARNING), within(0.0), pytest.raises(TimeLimitError):
        compile_formulation(name, cells)
    assert not caplog.records
    assert compile_formulation(name, cells).form.n_cols > 0


@pytest.mark.parametrize("question", [{}, {"solver": "box"}, {"solver": "highs"}, {"solver": "scip"}])
def test_without_time_nothing_false_is_said(question: dict[str, str], asked: tuple[Explainer, pd.DataFrame]) -> None:
    explainer, rows = asked
    best = explainer.explain(rows)
    for k in range(len(rows)):
        late = explainer.explain(rows.iloc[[k]], time_limit=1e-9, **question)[0]
        assert late.status in ("unknown", "feasible")
        assert late.bound <= best[k].cost
        assert late.cost is None or late.cost >= best[k].cost


def test_what_could_not_be_built_in_time_is_not_tried_again_in_less(
    asked: tuple[Explainer, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer, rows = asked
    explainer = Explainer(explainer.model, rows, explainer.space)
    problem = explainer.problem(rows.iloc[[0]])
    built: list[str] = []

    def slow(name: str, cells: object) -> object:
        built.append(name)
        time.sleep(0.02)
        check()
        raise AssertionError("there was time")

    monkeypatch.setattr(matrices, "compile_formulation", slow)
    asked_for = explainer.prepared.matrices("interval", explainer.alternatives(problem))
    for _ in range(2):
        with within(0.01), pytest.raises(TimeLimitError):
            asked_for.compiled(0)
    assert built == ["interval"]


def test_an_incumbent_of_large_forests_ends_with_the_time(
    asked: tuple[Explainer, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer, rows = asked
    monkeypatch.setattr(prepared, "MANY_LEAVES", 0)
    monkeypatch.setattr(growing_ball, "INCUMBENT", 0.0)
    best, late = explainer.explain(rows), explainer.explain(rows, time_limit=1000)
    assert [e.cost for e in late] == pytest.approx([e.cost for e in best])
    assert explainer.explain(rows.iloc[[0]], time_limit=1e-9)[0].counterfactual is not None


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_solvers_of_matrices_are_stopped_by_the_memory(solver: str, full: None) -> None:
    rng = np.random.default_rng(0)
    from scipy.sparse import csr_array

    from ocf.solvers.standard_form import StandardForm

    a = csr_array(rng.integers(0, 100, (5, 60)).astype(float))
    half = a.sum(axis=1) // 2
    form = StandardForm(
        c=np.zeros(60), c0=0.0, A=a, row_lower=half, row_upper=half, lower=np.zeros(60), upper=np.ones(60),
        integer=np.ones(60, bool),
    )  # fmt: skip
    with within(memory=1.0):
        result = get_solver(solver).solve(form, SolverOptions(time_limit=60))  # a market split: hours
    assert result.status in (Status.UNKNOWN, Status.FEASIBLE)
    assert result.seconds < 50


def test_matrices_and_boxes_that_do_not_fit_are_refused(
    asked: tuple[Explainer, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    explainer, rows = asked
    monkeypatch.setattr("ocf.solvers.adapter.ENTRY", 10**9)
    found = explainer.explain(rows, solver="highs", reduce=False, memory_limit="100 GB")
    assert {e.status for e in found} == {"error"}
    assert all("entries takes about" in e.message and "solver='box'" in e.message for e in found)
    monkeypatch.setattr("ocf.cells.partition.SIDES", 10**12)
    with pytest.raises(MemoryLimitError, match=r"leaves over 8 features takes about"):
        Explainer(explainer.model, rows, explainer.space, memory_limit="100 GB")
    monkeypatch.setattr(prepared, "NODE", 10**12)
    with pytest.raises(MemoryLimitError, match="nodes"):
        Explainer(explainer.model, rows, explainer.space, memory_limit="100 GB")


def test_a_search_that_has_grown_too_large_ends_with_what_it_knows(
    asked: tuple[Explainer, pd.DataFrame], full: None
) -> None:
    explainer, rows = asked
    best = explainer.explain(rows.iloc[:1], solver="box")[0].cost
    cells = explainer.cells(explainer.problem(rows.iloc[[0]]))
    from ocf.solvers.box import solve_cells

    with within(memory=1.0):
        found = solve_cells(cells)
    assert found.message == "memory limit"
    assert found.bound <= best

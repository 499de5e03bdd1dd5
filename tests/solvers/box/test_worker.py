"""Several threads: they agree, share the work, stop together, and keep to limits."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from small_problems import large_problem

from ocf import Explainer
from ocf.arrays import IntArray
from ocf.cells.forms import to_cells
from ocf.solvers.box import solve_cells, worker
from ocf.solvers.box.partial_lp import Basis, PartialLP
from ocf.solvers.box.shared import OpenNode, Shared
from ocf.solvers.result import SolverOptions, Status
from ocf.support.limits import current, within

from .cases import check, compiled, forest, hard_problem


@pytest.mark.parametrize("seed", range(12))
def test_threads_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BOXES", 5)  # many dives, so that the threads take turns
    cells = large_problem(seed)
    one = solve_cells(cells)
    for threads in (2, 3):
        many = solve_cells(cells, SolverOptions(threads=threads))
        assert many.status is one.status
        assert many.cost == one.cost or many.cost == pytest.approx(one.cost, rel=1e-9)
        assert many.bound == one.bound or many.bound == pytest.approx(one.bound, rel=1e-9)
    assert threading.active_count() < 20


@pytest.mark.parametrize("fewest", [False, True])
@pytest.mark.parametrize("rounded", [False, True], ids=["numbers", "ties"])
def test_threads_agree_by_bounds_of_lps(rounded: bool, fewest: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "TRIAL", 2)  # hardly a node is spared its LP
    cells = hard_problem(rounded)
    formulation = compiled(cells)
    one = solve_cells(cells, relaxation=formulation, fewest=fewest)
    assert one.cost is not None
    assert one.lp_solves > 5
    for threads in (2, 3):
        many = solve_cells(cells, SolverOptions(threads=threads), relaxation=formulation, fewest=fewest)
        check(cells, many, one.cost)


@pytest.mark.parametrize("rounded", [False, True], ids=["numbers", "ties"])
def test_an_answer_is_the_same_by_any_number_of_threads(rounded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "TRIAL", 2)
    visits = watch_visits(monkeypatch)
    explainer, rows = forest(rounded)
    for row in rows:
        one, *many = (explainer.explain(row, 1, solver="box", threads=threads)[0] for threads in (1, 2, 3))
        for other in many:
            assert (other.status, other.cost, other.bound) == (one.status, one.cost, one.bound)
            assert len(other.changes) == len(one.changes)
            assert rounded or other.changes.equals(one.changes)
    assert visits.total() > 30


def watch_visits(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many nodes each thread visits."""
    visits: Counter[str] = Counter()
    visit = worker.Worker.visit

    def watched(self: worker.Worker, node: OpenNode) -> list[OpenNode]:
        visits[threading.current_thread().name] += 1
        return visit(self, node)

    monkeypatch.setattr(worker.Worker, "visit", watched)
    return visits


def test_what_a_thread_leaves_is_searched_by_another_within_the_same_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the second node a thread waits until the other has the third."""
    monkeypatch.setattr(worker, "TRIAL", 2)
    visit, arrived, ends = worker.Worker.visit, threading.Barrier(2), list[float]()

    def patient(self: worker.Worker, node: OpenNode) -> list[OpenNode]:
        ends.append(current().end)
        if len(ends) in (2, 3):
            arrived.wait(timeout=60)
        return visit(self, node)

    cells = hard_problem()
    with monkeypatch.context() as patched, within(seconds=1000):
        patched.setattr(worker.Worker, "visit", patient)
        result = solve_cells(cells, SolverOptions(threads=2), relaxation=compiled(cells))
        assert set(ends) == {current().end}
    assert len(ends) > 2
    check(cells, result, solve_cells(cells).cost or np.nan)


def test_ctrl_c_stops_every_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes to the main thread while the other one has a node, whose halves that one would go on with."""
    monkeypatch.setattr(worker, "TRIAL", 2)
    visit, busy, visits, reasons = worker.Worker.visit, threading.Event(), list[str](), list[str]()

    def pressed(self: worker.Worker, node: OpenNode) -> list[OpenNode]:
        visits.append(threading.current_thread().name)
        if len(visits) > 1 and threading.current_thread() is threading.main_thread():
            assert busy.wait(timeout=60)
            raise KeyboardInterrupt
        if len(visits) > 1:
            busy.set()
            with self.search.turn:
                assert self.search.turn.wait_for(lambda: bool(self.search.stopped), timeout=20)
            reasons.append(self.search.stopped)
        return visit(self, node)

    monkeypatch.setattr(worker.Worker, "visit", pressed)
    cells, before = hard_problem(), threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        solve_cells(cells, SolverOptions(threads=2), relaxation=compiled(cells))
    assert reasons == ["interrupted"]
    assert len(visits) == 3
    assert threading.active_count() == before


def test_the_first_reason_to_stop_stays() -> None:
    """Of a thread that fails, and of another that comes to its limit meanwhile."""
    search = Shared(hard_problem(), SolverOptions(), np.inf, None, None)
    failure = RuntimeError("the model is gone")
    search.stop("failure", failure)
    search.stop("time limit")
    assert (search.stopped, search.failure) == ("failure", failure)


def test_a_failing_model_stops_every_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BOXES", 5)
    cells = large_problem(1)
    wide = np.full(len(cells.requirements.need), 1e6)
    uncertain = type(cells.requirements)(cells.requirements.gain, cells.requirements.need, wide)

    def confirm(x: IntArray) -> bool:
        raise RuntimeError("the model is gone")

    with pytest.raises(RuntimeError, match="gone"):
        solve_cells(replace(cells, requirements=uncertain), SolverOptions(threads=3), confirm=confirm)


@pytest.mark.parametrize("threads", [1, 2])
def test_limits_stop_dives(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BOXES", 3)
    for seed in range(30):
        cells = large_problem(seed, 40, 5)
        proved = solve_cells(cells)
        for limit in ({"node_limit": 7}, {"memory_limit": 1e-9}):
            result = solve_cells(cells, SolverOptions(threads=threads, options=limit))
            if result.status in (Status.FEASIBLE, Status.UNKNOWN):
                assert result.message == next(iter(limit)).replace("_", " ")
                assert proved.cost is None or result.bound <= proved.cost * (1 + 1e-9)
                assert (result.cells is None) == (result.status is Status.UNKNOWN)
            else:
                assert result.status is proved.status
                assert result.cost == proved.cost or result.cost == pytest.approx(proved.cost)


def test_the_first_lp_finds_a_point_within_a_twentieth_of_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    table, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(30, max_depth=4, random_state=0).fit(table, classes)
    explainer = Explainer(model, data=table)
    known: list[float] = []
    start = PartialLP.start

    def started(self: PartialLP, reference: float, basis: Basis | None = None) -> None:
        known.append(reference)
        start(self, reference, basis)

    monkeypatch.setattr(PartialLP, "start", started)
    for position in np.flatnonzero(model.predict(table) == 0)[:4]:
        cells = to_cells(explainer.problem(table.iloc[[position]], 1))
        known.clear()
        result = solve_cells(cells, relaxation=compiled(cells))
        assert result.status is Status.OPTIMAL
        assert result.cost is not None
        assert result.cost <= known[0] <= 1.05 * result.cost

"""Batches in which a row fails, or which are interrupted."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import joblib
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.explain.answers import failed
from ocf.explain.batch import TRIED_ROWS, parts, run_batch
from ocf.explain.question import Question
from ocf.solve.task import AskedRow
from ocf.solvers.box.relaxation import Relaxation
from ocf.solvers.highs import HighsSolver
from ocf.support.checkpoint import Checkpoint

from .people import refused


def test_interrupted_batch_keeps_what_is_finished(credit, monkeypatch, caplog) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[[0, 1, 2, 3, 0, 1, 3]]  # equal rows are one question
    for settings in ({}, {"n_optimal": 2}):  # judged together, and each by itself
        pose, calls = explainer.asking.pose, []

        def interrupted(row, task, pose=pose, calls=calls):
            calls.append(row.label)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return pose(row, task)

        with monkeypatch.context() as patch:
            patch.setattr(explainer.asking, "pose", interrupted)
            found = explainer.explain(rows, target="granted", **settings)
        open_rows = ["interrupted", "interrupted"]
        assert [e.status for e in found] == ["optimal", "optimal", *open_rows, "optimal", "optimal", "interrupted"]
        assert all(e.verified for e in found[:2])
        assert caplog.messages[-1] == "interrupted: 4 of 7 rows are finished and kept"


def test_a_row_that_could_not_be_kept_is_not_said_to_be(credit, monkeypatch, tmp_path) -> None:
    """Ctrl-C comes while the third row is written to the checkpoint."""
    table, model, explainer = credit
    rows, path, add = refused(table, model).iloc[:5], tmp_path / "rows", Checkpoint.add

    def interrupted(self, row, record):
        if row == 2:
            raise KeyboardInterrupt
        add(self, row, record)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "add", interrupted)
        found = explainer.explain(rows, target="granted", checkpoint=path)
    assert [e.status for e in found] == ["optimal"] * 2 + ["interrupted"] * 3
    assert len(path.read_text().splitlines()) == 1 + 2


def test_failing_row_does_not_lose_the_others(credit, monkeypatch) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:3]
    pose = explainer.asking.pose

    def failing(row, *args):
        if row.label == rows.index[1]:
            raise RuntimeError("boom")
        return pose(row, *args)

    monkeypatch.setattr(explainer.asking, "pose", failing)
    found = explainer.explain(rows, target="granted")
    assert [e.status for e in found] == ["optimal", "error", "optimal"]
    assert "boom" in found[1].message


def _raised(row) -> None:
    """What a kernel makes of Ctrl-C."""
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as error:
        raise SystemError("CPUDispatcher returned a result with an exception set") from error


def _swallowed(row) -> None:
    """What becomes of Ctrl-C in a callback of a library, here with a failure that follows from it."""
    with contextlib.suppress(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
    raise ValueError("the library stumbles")


def _dropped(row) -> None:
    with contextlib.suppress(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to one process")
@pytest.mark.parametrize("settings", [{}, {"n_optimal": 2}], ids=["judged together", "one by one"])
@pytest.mark.parametrize("ends", [_raised, _swallowed, _dropped])
def test_ctrl_c_that_a_library_swallows_stops_the_batch(credit, monkeypatch, ends, settings) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:5]
    pose, calls = explainer.asking.pose, []

    def interrupted(row, task):
        calls.append(row.label)
        if len(calls) == 2:
            ends(row)
        return pose(row, task)

    monkeypatch.setattr(explainer.asking, "pose", interrupted)
    handler = signal.getsignal(signal.SIGINT)
    found = explainer.explain(rows, target="granted", **settings)
    assert [e.status for e in found] == ["optimal"] + ["interrupted"] * 4
    assert calls == list(rows.index[:2])  # no further row is begun
    assert signal.getsignal(signal.SIGINT) is handler


def test_parts_for_other_processes_follow_the_time_that_rows_take(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, done, rows = [0.0], [], list(range(1000))
    monkeypatch.setattr("ocf.explain.batch.time.perf_counter", lambda: clock[0])

    def sizes(seconds_a_row: float) -> list[int]:
        clock[0], found = 0.0, []
        done.clear()
        for part in parts(rows, 2, done):
            found.append(len(part))
            if len(found) > 2:  # the first are on their way while nothing is known yet
                done.extend(part)
                clock[0] += seconds_a_row * len(part) / 2
        assert sum(found) == len(rows)
        return found

    assert sizes(20.0)[:5] == [4, 4, 4, 1, 1]
    assert sizes(0.5)[:5] == [4, 4, 4, 10, 10]
    assert sizes(0.001)[:5] == [4, 4, 4, 64, 64]
    assert list(parts(rows[:3], 2, [])) == [[0, 1], [2]]


def test_tasks_of_other_processes_that_are_given_up_are_not_warned_of(credit, monkeypatch) -> None:
    table, model, explainer = credit
    rows = refused(table, model).iloc[:12]
    monkeypatch.setattr("ocf.explain.batch.FIRST_ROWS", 1)
    found = []

    def interrupted(place: int, explanations: list) -> None:
        found.append(place)
        if len(found) == 2:
            raise KeyboardInterrupt

    asking = explainer.asking
    frame, coded, task = asking.read(rows, Question(target="granted"))
    explain_each = partial(asking.explain_each, task=task)
    done = run_batch(explain_each, asking.asked_rows(frame, coded, task), 2, interrupted)  # warnings are errors
    assert [e.status for (e,) in done] == ["optimal"] + ["interrupted"] * 11  # whose end was told


@pytest.mark.parametrize(("start_up", "elsewhere"), [(0.0, 84), (float("inf"), 0)])
def test_other_processes_are_started_where_that_saves_time(start_up, elsewhere, monkeypatch) -> None:
    """After some rows it is known how long the others take; threads serve here in the place of processes."""
    monkeypatch.setattr("ocf.explain.batch.START_UP", start_up)
    frame = pd.DataFrame({"a": range(100)})
    rows = [AskedRow(k, frame.iloc[[k]], frame.to_numpy(float)[k], 0) for k in range(100)]

    def by_thread(rows):
        for row in rows:
            yield [failed(row.label, row.original, "unknown", threading.current_thread().name)]

    with joblib.parallel_config("threading"):
        found = [e for several in run_batch(by_thread, rows, 2, lambda place, several: None) for e in several]
    assert [e.row for e in found] == list(range(100))
    own = [e.message == threading.current_thread().name for e in found]
    assert all(own[:TRIED_ROWS])
    assert own.count(False) == elsewhere


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no signal to one process")
@pytest.mark.parametrize("settings", [{}, {"solver": "box"}, {"solver": "highs", "reduce": False}], ids=str)
def test_a_signal_whose_exception_is_dropped_ends_the_search(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = RandomForestClassifier(60, max_depth=5, random_state=0).fit(X, y)
    explainer = Explainer(model, data=X)
    rows = X[model.predict(X) == 0].iloc[:2]
    solves: list[int] = []

    def struck(solve: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*args: Any, **given: Any) -> Any:
            solves.append(1)
            if len(solves) == 1:
                os.kill(os.getpid(), signal.SIGINT)
            return solve(*args, **given)

        return asked

    for kind in (Relaxation, HighsSolver):
        monkeypatch.setattr(kind, "solve", struck(kind.solve))
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        found = explainer.explain(rows, 1, **settings)
    finally:
        signal.signal(signal.SIGINT, before)
    assert solves
    assert [e.status for e in found] == ["interrupted"] * 2

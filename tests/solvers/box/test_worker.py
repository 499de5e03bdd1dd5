"""Several threads: they agree, stop together, and keep to limits."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.arrays import IntArray
from ocf.cells.forms import to_cells
from ocf.solvers.box import relaxation, solve_cells, worker
from ocf.solvers.result import SolverOptions, Status

from .cases import compiled, large_problem


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


def test_a_failing_model_stops_every_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "BOXES", 5)
    cells = large_problem(1)
    wide = np.full(len(cells.requirements.need), 1e6)
    uncertain = type(cells.requirements)(cells.requirements.gain, cells.requirements.need, wide)

    def confirm(x: IntArray) -> bool:
        raise RuntimeError("the model is gone")

    with pytest.raises(RuntimeError, match="gone"):
        solve_cells(cells.with_(requirements=uncertain), SolverOptions(threads=3), confirm=confirm)


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
    start = relaxation.Relaxation.start

    def started(self: relaxation.Relaxation, reference: float) -> None:
        known.append(reference)
        start(self, reference)

    monkeypatch.setattr(relaxation.Relaxation, "start", started)
    for position in np.flatnonzero(model.predict(table) == 0)[:4]:
        cells = to_cells(explainer.problem(table.iloc[[position]], 1))
        known.clear()
        result = solve_cells(cells, relaxation=compiled(cells))
        assert result.status is Status.OPTIMAL
        assert result.cost is not None
        assert result.cost <= known[0] <= 1.05 * result.cost

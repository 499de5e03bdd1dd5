"""What solvers are asked, and what they answer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ocf.errors import ProblemError
from ocf.solvers import Status
from ocf.solvers.result import Progress, SolveResult, SolverOptions, monotone, relative_gap


def test_options_travel_between_processes() -> None:
    import pickle

    options = SolverOptions(time_limit=3, options={"presolve": "off"}, cuts="root")
    assert pickle.loads(pickle.dumps(options)) == options


INF = np.inf


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"time_limit": 0}, "time_limit must be a positive number"),
        ({"time_limit": "1"}, "time_limit must be a positive number"),
        ({"time_limit": math.nan}, "time_limit must be a positive number"),
        ({"mip_gap": -1}, "mip_gap must be a relative gap"),
        ({"threads": 0}, "threads must be a whole number"),
        ({"threads": True}, "threads must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"log": 1}, "log must be True or False"),
        ({"options": [1]}, "options must map"),
        ({"cuts": "all"}, "cuts is one of 'none', 'root'"),
    ],
)
def test_options_are_checked(bad, message):
    with pytest.raises(ProblemError, match=message):
        SolverOptions(**bad)


def test_a_result_cannot_contradict_itself():
    with pytest.raises(ValueError, match="do not agree"):
        SolveResult(Status.OPTIMAL)
    with pytest.raises(ValueError, match="do not agree"):
        SolveResult(Status.INFEASIBLE, x=np.zeros(1), objective=0.0)


def test_relative_gap():
    assert relative_gap(None, 0.0) == INF
    assert relative_gap(2.0, 1.0) == 0.5
    assert relative_gap(2.0, 2.0 - 1e-10) == 0.0
    assert relative_gap(2.0, 3.0) == 0.0
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(0.0, -1e-13) == INF
    assert relative_gap(0.0, -1e-13, noise=1e-12) == 0.0
    assert relative_gap(1.0, -INF) == INF


def test_history_is_made_monotone():
    records = [Progress(0.2, 1.0, 5.0), Progress(0.1, -INF, INF), Progress(0.3, 0.5, 6.0), Progress(0.4, 2.0, 4.0)]
    assert monotone(records) == (Progress(0.2, 1.0, 5.0), Progress(0.4, 2.0, 4.0))

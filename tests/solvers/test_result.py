"""What solvers are asked, and what they answer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ocf.errors import ProblemError
from ocf.solvers import Status
from ocf.solvers.result import Progress, SolveResult, SolverOptions, monotone, relative_gap, stalls


def test_options_travel_between_processes() -> None:
    import pickle

    options = SolverOptions(time_limit=3, options={"presolve": "off"}, cuts="root")
    assert pickle.loads(pickle.dumps(options)) == options


def test_options_are_a_copy_of_what_was_given() -> None:
    raw = {"presolve": "off"}
    options = SolverOptions(options=raw)
    raw["presolve"] = "on"
    assert options.options == {"presolve": "off"}


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


SLOW = [Progress(1.0, 0.0, 10.0), Progress(5.0, 0.2, 10.0), Progress(15.0, 0.4, 10.0)]


@pytest.mark.parametrize(
    ("history", "now", "cutoff", "stalled"),
    [
        (SLOW, 15.1, INF, True),  # a fiftieth of the gap in ten seconds
        (SLOW, 9.0, INF, False),  # not looked at for ten seconds yet
        ([*SLOW, Progress(15.05, 0.8, 10.0)], 15.1, INF, False),  # the bound rose
        ([*SLOW, Progress(15.05, 0.4, 9.0)], 15.1, INF, False),  # a better point
        (SLOW, 15.1, 1.0, False),  # of what is left below the cutoff it is a quarter
        ([Progress(1.0, 0.0, INF)], 15.0, INF, False),  # without a point there is no gap
        ([Progress(1.0, 0.0, INF)], 15.0, 2.0, True),
        ([], 15.0, 2.0, True),  # not even a bound
        ([Progress(14.0, 0.0, INF)], 15.0, 2.0, False),
        ([], 15.0, INF, False),
    ],
)
def test_a_search_stalls_where_it_closes_next_to_nothing_of_its_gap(
    history: list[Progress], now: float, cutoff: float, stalled: bool
) -> None:
    assert stalls(history, now, now, 10.0, cutoff) is stalled
    assert stalls(history, now, 2 * now, 10.0, cutoff) is stalled  # of two threads
    assert not stalls(history, now, 9.0, 10.0, cutoff)  # others had the processor
    assert not stalls(history, now, now, None, cutoff)


def test_a_search_that_waits_for_the_processor_is_looked_at_for_longer() -> None:
    history = [*SLOW, Progress(21.0, 0.5, 10.0)]
    assert stalls(history, 30.0, 30.0, 10.0)
    assert stalls(history, 30.0, 20.0, 10.0)  # a thirtieth in fifteen seconds
    assert not stalls([Progress(1.0, 0.0, 10.0), *history[1:]], 30.0, 11.0, 10.0)  # a twentieth in all of them

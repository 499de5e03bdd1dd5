"""Who solves after whom."""

from __future__ import annotations

import pytest

from ocf.solve.turns import FIRST_STALL, FIRST_TURN, Turns
from ocf.solvers import get_solver
from ocf.solvers.result import SolverOptions


def turns() -> Turns:
    return Turns(get_solver("box"), lambda: [get_solver("highs"), get_solver("scip")])


def test_two_take_turns_of_twice_the_time_until_there_is_a_point() -> None:
    asked, options, told = turns(), SolverOptions(time_limit=100), []
    for _ in range(3):
        told.append((asked.now.name, asked.begin(options, nothing=True).time_limit, asked.end(nothing=True)))
    said = f"box found nothing in {FIRST_TURN:g} s; highs went on"
    assert told[0] == ("box", FIRST_TURN, said)
    assert told[1] == ("highs", 2 * FIRST_TURN, "")
    assert told[2][:2] == ("box", 4 * FIRST_TURN)
    asked.begin(options, nothing=True)
    assert (asked.end(nothing=False), asked.now.name) == ("", "box")
    assert asked.begin(options, nothing=False).time_limit == options.time_limit


@pytest.mark.parametrize("options", [SolverOptions(time_limit=1.0), SolverOptions(options={"x": 1})])
def test_a_short_limit_or_raw_options_are_the_first_solvers_own(options: SolverOptions) -> None:
    asked = turns()
    assert (asked.begin(options, nothing=True), asked.end(nothing=True)) == (options, None)


def test_the_last_one_goes_on_with_all_the_time() -> None:
    asked, options = Turns(get_solver("box"), list), SolverOptions(time_limit=100)
    assert (asked.begin(options, nothing=True).time_limit, asked.end(nothing=True)) == (FIRST_TURN, "")
    assert (asked.begin(options, nothing=True), asked.end(nothing=True)) == (options, None)


def test_those_who_fail_do_not_come_back() -> None:
    asked = turns()
    assert asked.fail("no memory") == "box failed (no memory); highs went on"
    assert asked.fail("no memory") == "highs failed (no memory); scip went on"
    assert asked.fail("no memory") is None
    assert Turns(get_solver("box")).fail("no memory") is None


def test_a_proof_that_stalls_is_handed_on_and_the_last_has_the_rest_of_the_time() -> None:
    asked, options, told = turns(), SolverOptions(time_limit=100), []
    for _ in range(2):
        told.append((asked.begin(options, nothing=False), asked.end(nothing=False, stalled=True)))
    assert told == [
        (SolverOptions(time_limit=100, stall_limit=FIRST_STALL), "box stalled; highs went on"),
        (SolverOptions(time_limit=100, stall_limit=2 * FIRST_STALL), "highs stalled; scip went on"),
    ]
    assert asked.begin(options, nothing=False) == options
    assert asked.end(nothing=False, stalled=True) is None


def test_a_proof_is_watched_where_there_is_time_for_another_and_ends_by_other_limits() -> None:
    short = SolverOptions(time_limit=2 * FIRST_STALL)
    assert turns().begin(short, nothing=False) == short
    raw = SolverOptions(time_limit=100, options={"x": 1})
    assert turns().begin(raw, nothing=False) == raw
    alone = Turns(get_solver("box"))
    assert alone.begin(SolverOptions(time_limit=100), nothing=False).stall_limit is None
    assert alone.end(nothing=False, stalled=True) is None
    assert turns().end(nothing=False) is None

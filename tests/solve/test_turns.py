"""Who solves after whom."""

from __future__ import annotations

import pytest

from ocf.solve.turns import FIRST_TURN, Turns
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
    assert asked.begin(options, nothing=False) == options


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
    assert Turns(get_solver("box"), tuple).fail("no memory") is None

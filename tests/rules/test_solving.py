"""Mathematical models on questions small enough to see through."""

from __future__ import annotations

import pytest

from ocf.errors import SolverError
from ocf.regional.query import ProbabilityQuery
from ocf.rules import search as rule_search
from ocf.rules import solving as rule_solving
from ocf.solvers import SolveResult, Status


def test_a_start_is_taken_by_the_model(band: ProbabilityQuery) -> None:
    start = rule_search.greedy_boxes(band, [0], 0.9)[0][0]
    found = rule_solving.solve_box(band, [0], 0.9, start=start)
    assert (found.status, found.weight) == (Status.OPTIMAL, pytest.approx(3 / 11))


def test_a_set_that_is_not_proven_is_not_given(band: ProbabilityQuery, monkeypatch: pytest.MonkeyPatch) -> None:
    class OutOfTime:
        def solve(self, *_: object) -> SolveResult:
            return SolveResult(Status.UNKNOWN)

    monkeypatch.setattr(rule_solving, "get_solver", lambda _: OutOfTime())
    with pytest.raises(SolverError, match="sets='exhaustive'"):
        rule_solving.solve_minimal_sets(band, [0, 1], 0.2)

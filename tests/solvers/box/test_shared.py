from __future__ import annotations

from typing import Any

import pytest

from ocf.solvers.box import shared, solve_cells, worker
from ocf.solvers.box.shared import LocalSearches
from ocf.solvers.result import Status

from .cases import compiled, hard_problem


def test_local_searches_wait_ever_longer_until_one_finds_something() -> None:
    searches = LocalSearches()
    first, asked = searches.due, []
    for visits in range(1, 2000):
        if visits >= searches.due:
            asked.append(visits - first)
            searches.tell(visits, found=len(asked) == 4)
    assert asked == [0, 32, 96, 224, 240, 272, 336, 464, 720, 1232]


def test_later_local_searches_start_from_roundings_of_the_lp(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = hard_problem()
    optimum = solve_cells(problem, relaxation=compiled(problem)).cost
    find, near = worker.find_incumbent, []

    def found(cells: Any, candidates: Any = None, **settings: Any) -> Any:
        near.append(candidates)
        return find(cells, candidates, **settings)

    monkeypatch.setattr(worker, "find_incumbent", found)
    monkeypatch.setattr(shared, "LocalSearches", lambda: LocalSearches(due=2))
    result = solve_cells(problem, relaxation=compiled(problem))
    assert (result.status, result.cost) == (Status.OPTIMAL, optimum)
    widths = problem.partition.widths
    roundings = [points for points in near[1:] if points is not None and len(points) > 1]
    assert roundings
    assert all(((points >= 0) & (points < widths)).all() for points in roundings)

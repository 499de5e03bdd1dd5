"""One answer out of those of a target's alternatives."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ocf.solve.cell_search import merged_progress, solve_together
from ocf.solve.outcome import Outcome
from ocf.solvers.result import Progress, Status


def outcome(status: Status, cost: float | None, bound: float, **more: object) -> Outcome:
    point = None if cost is None else np.array([cost])
    return Outcome(status, point, cost, bound, {"solve": 1.0}, 3, proved_by="box", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcomes", "status", "cost", "bound"),
    [
        ([(Status.OPTIMAL, 2.0, 2.0), (Status.OPTIMAL, 2.0, 2.0)], Status.OPTIMAL, 2.0, 2.0),
        # the second was proven when the point of the first, 3.0, was the best that was known
        ([(Status.OPTIMAL, 3.0, 3.0), (Status.OPTIMAL, 2.0, 2.0)], Status.OPTIMAL, 2.0, 2.0),
        ([(Status.INFEASIBLE, None, math.inf), (Status.OPTIMAL, 2.0, 2.0)], Status.OPTIMAL, 2.0, 2.0),
        ([(Status.INFEASIBLE, None, math.inf), (Status.INFEASIBLE, None, math.inf)], Status.INFEASIBLE, None, math.inf),
        ([(Status.FEASIBLE, 3.0, 1.0), (Status.OPTIMAL, 2.0, 2.0)], Status.FEASIBLE, 2.0, 1.0),
        ([(Status.UNKNOWN, None, 0.5), (Status.INFEASIBLE, None, math.inf)], Status.UNKNOWN, None, 0.5),
        ([(Status.UNKNOWN, None, 0.5), (Status.OPTIMAL, 2.0, 2.0)], Status.FEASIBLE, 2.0, 0.5),
        ([(Status.ERROR, None, 0.5), (Status.OPTIMAL, 2.0, 2.0)], Status.ERROR, 2.0, 0.5),
    ],
)
def test_a_union_claims_no_more_than_its_parts(
    outcomes: list, status: Status, cost: float | None, bound: float
) -> None:
    found = solve_together([outcome(*o) for o in outcomes])
    assert (found.status, found.cost, found.bound) == (status, cost, bound)
    assert (found.nodes, found.times["solve"], found.proved_by) == (6, 2.0, "box")


def test_the_history_shows_the_least_bound_and_the_best_point() -> None:
    one = [Progress(1.0, 1.0, math.inf), Progress(3.0, 2.0, 4.0)]
    other = [Progress(2.0, 0.5, 5.0), Progress(4.0, 3.0, 3.0)]
    assert merged_progress([one, other]) == (
        Progress(2.0, 0.5, 5.0),
        Progress(3.0, 0.5, 4.0),
        Progress(4.0, 2.0, 3.0),
    )

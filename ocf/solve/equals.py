"""The best of the points that cost the same, by `ocf.problem.tie_breaking`, one stage after the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from ocf.arrays import FloatArray
from ocf.cells.cell_problem import cell_values
from ocf.cells.forms import to_alternatives
from ocf.problem.problem import Problem
from ocf.problem.tie_breaking import among_equals, breakers, count_changes, may_tie
from ocf.solve.cell_forms import CellForms
from ocf.solve.engine import Finding, Request
from ocf.solve.growing_ball import MOST_NODES
from ocf.solve.outcome import Outcome, after_ties, joined, no_dearer_than_its_point
from ocf.solve.prepared import PreparedModel
from ocf.solve.task import Task
from ocf.solvers.result import Status
from ocf.support.limits import seconds_left
from ocf.support.tolerances import with_ties


def stages_of(problem: Problem, task: Task) -> list[Problem]:
    """By what ties are broken, one after the other: problems with another cost.

    Parameters
    ----------
    problem : Problem
    task : Task
    """
    return breakers(problem) if task.break_ties and task.options.mip_gap == 0 else []


def counts_changes(problem: Problem, stages: Sequence[Problem]) -> bool:
    """Whether ties are broken by the number of changes alone, which is no matter where an answer stands alone.

    Parameters
    ----------
    problem : Problem
    stages : sequence of Problem
        Of `stages_of`.
    """
    return len(stages) == 1 and stages[0].cost.l0 > 0 and not problem.cuts_cells


class TieBreaker:
    """Looks among the points that cost as little as an answer.

    Parameters
    ----------
    request : Request
    prepared : PreparedModel
    cost : (n_cells,) float64
        Of the cells of the problem.
    cells : CellForms, optional
        With all points that cost as little as the one that was found.
    """

    def __init__(
        self,
        request: Request[Problem],
        prepared: PreparedModel,
        cost: FloatArray,
        cells: CellForms | None = None,
    ) -> None:
        self._request, self._prepared, self._cost, self._cells = request, prepared, cost, cells
        self._stages = stages_of(request.problem, request.task)
        self._by_sums = counts_changes(request.problem, self._stages)

    def best(self, found: Finding[Problem]) -> Finding[Problem]:
        """A finding with the best of the points that cost the same, in the time that it has left.

        Parameters
        ----------
        found : Finding
        """
        problem, outcome = self._request.problem, found.outcome
        if not self._stages or outcome.status is not Status.OPTIMAL or outcome.proved_by == "origin":
            return found
        before, proven = [problem], True
        for stage in self._stages:
            begin, first = time.perf_counter(), outcome.point is found.outcome.point
            settled = self._is_settled(stage, outcome)
            # sums of costs take less time than a reduction
            if not settled and first and self._cells is not None and self._cells.leaves_alone(outcome):
                outcome = after_ties(outcome, begin)
                break
            if not settled:
                outcome, shown = self._improved(stage, before, outcome)
                proven = proven and shown
            outcome = after_ties(outcome, begin)
            before.append(stage)
        said = {"ties": {"broken_by": [stage.cost.words for stage in self._stages], "proven": proven}}
        if outcome.point is not found.outcome.point:
            outcome = no_dearer_than_its_point(problem, outcome)
        return replace(found, outcome=outcome, method={**found.method, **said})

    def _is_settled(self, stage: Problem, outcome: Outcome) -> bool:
        """Whether it shows without a search that no point that costs as little is better by a stage."""
        problem = self._request.problem
        assert outcome.point is not None
        assert outcome.cost is not None
        changes = count_changes(problem, outcome.point)
        if (self._by_sums and outcome.fewest) or (stage.cost.l0 > 0 and changes < 2):
            return True
        offsets = self._prepared.tree_partition(problem).offsets if self._by_sums else None
        return offsets is not None and not may_tie(self._cost, offsets, outcome.cost, changes)

    def _improved(self, stage: Problem, before: list[Problem], outcome: Outcome) -> tuple[Outcome, bool]:
        """The outcome with the best point by a stage, and whether that is shown."""
        if self._by_sums and (self._cells is None or not self._request.task.reduce):
            outcome = self._with_fewest_changes(outcome)
            if outcome.fewest:
                return outcome, True
        assert outcome.point is not None
        cells = self._near(self._request, among_equals(stage, before, outcome.point), outcome)
        if cells is None:
            return outcome, False
        best = cells.search(cells.partition.locate(outcome.point[None]))
        return joined(outcome, best), best.status is Status.OPTIMAL

    def _with_fewest_changes(self, outcome: Outcome) -> Outcome:
        """The same with the fewest changes among all points near the row that cost as little, if there is time."""
        assert outcome.point is not None
        asked = replace(self._request, task=replace(self._request.task, reduce=True))  # the cost is proven without
        cells = self._near(asked, self._request.problem, outcome)
        if cells is None:
            return outcome
        found = cells.search(cells.partition.locate(outcome.point[None]), fewest=True)
        return replace(joined(outcome, found), fewest=found.fewest)

    def _near(self, request: Request[Problem], asked: Problem, outcome: Outcome) -> CellForms | None:
        """A problem over the cells that cost no more than an outcome, in the time that is left; None if none is."""
        assert outcome.cost is not None
        prepared, problem, cost = self._prepared, request.problem, self._cost
        left = request.task.seconds_after(sum(outcome.times.values()))
        if left == 0 or seconds_left() == 0:
            return None
        task = replace(request.task, options=replace(request.task.options, time_limit=left))
        excluded = request.excluded
        pruner = prepared.pruner(problem, small=True)
        if pruner is not None and problem.cuts_cells:  # the pruner knows the cells of the trees alone
            cost = cell_values(problem, prepared.tree_partition(problem))[1]
        near = None if pruner is None else pruner.within(cost, with_ties(outcome.cost), MOST_NODES)
        if near is not None:
            asked, excluded = replace(asked, ensemble=near.ensemble), near.translated(excluded)
        if seconds_left() == 0:
            return None
        own = replace(request, task=task, problem=asked, excluded=excluded)
        return CellForms(to_alternatives(asked), own, prepared, shared=False)

"""What engines of trees share: the data, which may hold a point where a limit left none."""

from __future__ import annotations

from ocf.problem.problem import Problem
from ocf.solve.engine import Engine, Finding, Request
from ocf.solve.known_point import with_known_point
from ocf.solve.outcome import Outcome
from ocf.solve.prepared import PreparedModel
from ocf.solvers.result import Status


class TreeEngine(Engine[Problem]):
    """Of trees, whose data are at hand.

    Parameters
    ----------
    prepared : PreparedModel

    Attributes
    ----------
    doubted : tuple of Status
        Claims that rest on a solver's tolerances, and are held against the rows of the data.
    """

    doubted: tuple[Status, ...] = ()

    def __init__(self, prepared: PreparedModel) -> None:
        self._prepared = prepared

    def completed(self, finding: Finding[Problem], request: Request[Problem]) -> Outcome:
        """With the nearest row of the data, unless the solver is to be seen alone or more is asked than the target.

        Parameters
        ----------
        finding : Finding
        request : Request
            That it answers.
        """
        outcome, task = finding.outcome, request.task
        wanted = (Status.UNKNOWN,) if task.reduce else ()
        if outcome.status not in (*wanted, *self.doubted) or request.excluded or task.class_costs or task.split_margin:
            return outcome
        return with_known_point(outcome, request.problem, self._prepared.known_points(request.problem), request.judge)

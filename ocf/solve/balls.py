"""Balls of growing cost: each is searched for points cheaper than its radius, and an empty one proves a bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ocf.cells.incumbent import Incumbent
from ocf.solve.outcome import ROUNDED, Outcome, Run
from ocf.solvers.result import SolverOptions, Status
from ocf.support.tolerances import with_ties

#: Searches one ball: the cost that points must beat, and the options with the time that is left.
Search = Callable[[float, SolverOptions], Outcome]


class Balls(Run):
    """State of a search in balls, one after the other.

    Parameters
    ----------
    options : SolverOptions
        The time limit holds for all balls together.
    least : float
        What no point costs less than.
    """

    def __init__(self, options: SolverOptions, least: float) -> None:
        super().__init__(options, ("incumbent", "reduce", "instance"), least=least)
        self._outcomes: list[Outcome] = []
        self._radius = -np.inf

    @property
    def holds_ties(self) -> bool:
        """Whether the last ball holds all points that cost as little as the best, which was found in it."""
        found = bool(self._outcomes) and self._outcomes[-1].point is not None
        return found and with_ties(self.upper) <= self._radius

    def search_ball(self, search: Search, radius: float, end: float) -> None:
        """Search one ball, and keep what it says.

        Parameters
        ----------
        search : callable
        radius : float
        end : float
            The radius that holds everything, or all that is cheaper than the best point.
        """
        options = self.remaining()
        if options is None:
            self.close(Status.FEASIBLE if self.best else Status.UNKNOWN, self.bound, "")
            return
        outcome = search(radius, options)
        self._outcomes.append(outcome)
        self._radius = radius
        if outcome.point is not None and outcome.cost is not None:
            self.best = Incumbent(np.zeros(0, np.int64), outcome.point, outcome.cost)
            self.close(outcome.status, outcome.bound, outcome.proved_by)
        elif outcome.status is not Status.INFEASIBLE:
            self.bound = max(self.bound, min(outcome.bound, radius))
            failed = outcome.status is Status.ERROR and self.best is None
            rest = Status.FEASIBLE if self.best else Status.UNKNOWN
            self.message = outcome.message
            if self.message.startswith(ROUNDED):  # in other words where a point is known
                self.message = ""
                self.blame_rounding(rest)
            self.close(Status.ERROR if failed else rest, self.bound, "")
        elif radius >= end:
            self.prove(outcome.proved_by)
        else:
            self.bound = radius
            self.record()

    def outcome(self) -> Outcome:
        """The answer, with what all balls together took."""
        own, inner = super().outcome(), self._outcomes
        if not inner:
            return own
        times = {key: own.times[key] + sum(o.times.get(key, 0.0) for o in inner) for key in own.times}
        return replace(
            own,
            times=times,
            nodes=sum(o.nodes for o in inner),
            refused=own.refused + sum(o.refused for o in inner),
            results=tuple(r for o in inner for r in o.results),
            sizes=inner[-1].sizes | own.sizes | {"balls": len(inner)},
            message=own.message or inner[-1].message,
            fewest=own.status is Status.OPTIMAL and inner[-1].fewest and self.holds_ties,
        )

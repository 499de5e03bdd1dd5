"""State of a solve by leaves."""

from __future__ import annotations

import numpy as np

from ocf.cells.incumbent import Incumbent
from ocf.solve.leaf_answer import LeafAnswer
from ocf.solve.outcome import Outcome, Run
from ocf.solvers.result import SolveResult, SolverOptions, Status

#: What takes time besides the solver and the user's model.
PHASES = ("incumbent", "reduce", "instance")


class LeafRun(Run):
    """What every run keeps, and what solved the leaves: the solvers that were asked, and methods of our own.

    Parameters
    ----------
    options : SolverOptions
    """

    def __init__(self, options: SolverOptions) -> None:
        super().__init__(options, PHASES)
        self.solver_names: set[str] = set()
        self.version = ""

    @property
    def method_name(self) -> str:
        """What solved the leaves; ``"reduction"`` where their bounds left none to solve."""
        return "+".join(sorted(self.solver_names)) or "reduction"

    def called(self, name: str, version: str = "") -> None:
        """Keep that a solver was asked, or a method of our own answered.

        Parameters
        ----------
        name : str
        version : str
            By default not known yet: a result will tell.
        """
        self.solver_names.add(name)
        self.version = version or self.version

    def note(self, result: SolveResult) -> None:
        """Keep that a solver was asked, and what it took."""
        super().note(result)
        self.called(result.solver, result.version)

    def conclude(self, status: Status, best: LeafAnswer | None, bound: float, sizes: dict[str, int]) -> Outcome:
        """The answer, with what it took.

        Parameters
        ----------
        status : Status
        best : LeafAnswer or None
            None, or without a point, where nothing was found.
        bound : float
        sizes : dict of str to int
            See `ocf.solve.outcome.Outcome`.
        """
        self.blame_rounding(status)
        point = best.point if best else None
        self.best = Incumbent(np.zeros(0, np.int64), point, best.cost) if best and point is not None else None
        self.status, self.bound, self.sizes = status, bound, sizes
        self.proved_by = self.method_name if status in (Status.OPTIMAL, Status.INFEASIBLE) else ""
        return self.outcome()

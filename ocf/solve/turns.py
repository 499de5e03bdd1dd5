"""Who solves: the solver that was chosen, and those that go on where it errs, stalls, or finds nothing in its time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ocf.solvers import Solver
from ocf.solvers.protocols import CellSolver
from ocf.solvers.result import SolverOptions

#: Gives the solvers that may go on where another ends without an answer; None where there are none.
Others = Callable[[], Sequence[Solver | CellSolver]] | None

#: Seconds of the first turn while nothing is found and others may try; each further turn is twice as long, and one that
#: would be longer than the second number is not cut short.
FIRST_TURN, LONGEST_TURN = 5.0, 3600.0

#: Seconds over which the proof of a point is looked at; the next solver is given twice as many, and the last one the
#: rest of the time. Each starts anew, with the point and the bound of those before.
FIRST_STALL = 10.0


class Turns:
    """The solver of a run, and who comes after it.

    Parameters
    ----------
    first : Solver or CellSolver
    others : callable, optional
        Gives the solvers that may go on, in turn; None where there are none, and the first has all the time.

    Attributes
    ----------
    now : Solver or CellSolver
        Who solves.
    """

    def __init__(self, first: Solver | CellSolver, others: Others = None) -> None:
        self.now = self._first = first
        self._others = others
        self._left: list[Solver | CellSolver] | None = None
        self._seconds, self._running = FIRST_TURN, False
        self._stall_limit = FIRST_STALL

    def begin(self, options: SolverOptions, nothing: bool) -> SolverOptions:
        """Options of this turn: all the time that is left, unless nothing is found and others may try.

        With a point it ends early where the proof stalls.

        Parameters
        ----------
        options : SolverOptions
        nothing : bool
            Whether there is no point yet.
        """
        left = LONGEST_TURN if options.time_limit is None else options.time_limit
        alone = self._others is None or self._left == []
        alone = alone or bool(options.options)
        self._running = nothing and not alone and self._seconds < left
        if self._running:
            return replace(options, time_limit=self._seconds)
        watched = not nothing and not alone and 2 * self._stall_limit < left
        return replace(options, stall_limit=self._stall_limit) if watched else options

    def end(self, nothing: bool, stalled: bool = False) -> str | None:
        """After a turn without an answer let the next solver go on; gives what is to be said, None: it was no turn.

        Once there is a point, the solver that was chosen goes on with it; one that stalls does not come back.

        Parameters
        ----------
        nothing : bool
            Whether there is still no point.
        stalled : bool
            Whether the proof stalled.
        """
        if stalled and self._rest:
            before, self.now = self.now.name, self._rest.pop(0)
            self._stall_limit *= 2
            return f"{before} stalled; {self.now.name} went on"
        if not self._running:
            return None
        said = ""
        if not self._rest:  # the one who is left goes on, with all the time
            return said
        if nothing:
            if self.now is self._first:
                said = f"{self.now.name} found nothing in {self._seconds:g} s; {self._rest[0].name} went on"
            self._seconds *= 2
        if nothing or self.now is not self._first:
            self.now, self._rest[0] = self._rest[0], self.now
        return said

    def fail(self, why: str) -> str | None:
        """Hand over to the next solver for good; gives what is to be said, None where there is no other.

        Parameters
        ----------
        why : str
            What went wrong.
        """
        if not self._rest:
            return None
        failed, self.now = self.now.name, self._rest.pop(0)
        return f"{failed} failed ({why}); {self.now.name} went on"

    @property
    def _rest(self) -> list[Solver | CellSolver]:
        """The others, who are made when they are first needed."""
        if self._left is None:
            self._left = [] if self._others is None else list(self._others())
        return self._left

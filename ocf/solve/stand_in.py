"""A matrix solver in the place of the box search, as long as the kernels of that are not compiled.

On a fresh machine compiling them takes longer than a matrix solver takes for most rows. So the first rows that ``auto``
would give to the box search go to the matrix solver, until it has taken about as long as compiling does; then they are
compiled, and in the middle of a row where need be. Whatever comes, that is at most twice the time of the better choice.

Where nobody stated a time limit, compiling is no part of it: what every row needs is compiled before the clock of the
first one starts, and the box search with its LP bounds between two rows, once the matrix solver's time is used up. In
a time that was stated, the search does without LP bounds where it has none for their kernels.

The environment variable ``OCF_COMPILE_FIRST=1`` has them compiled at once, so that who proves what does not depend on
what was asked before on a machine. ``ocf warm-up`` compiles all kernels.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from ocf.solve.ahead import compile_beginning, compile_bounds, compile_coupled, compile_search
from ocf.solve.turns import Others
from ocf.solvers import CellSolver, Solver
from ocf.solvers.box.branching import try_cuts
from ocf.solvers.box.coupled_bounds import bound_box
from ocf.solvers.box.dive import dive
from ocf.solvers.box.points import best_rounding
from ocf.solvers.box.propagation import propagate
from ocf.solvers.result import SolverOptions
from ocf.support.limits import seconds_left
from ocf.support.numba_cache import at_hand

#: Seconds that the matrix solver may take in all, about those of compiling.
SECONDS = 20.0

#: Seconds that a row must have left for compiling the kernels of LP bounds, which takes five on a machine at rest, and
#: those for costs that couple features, which takes 45.
FOR_BOUNDS, FOR_COUPLED = 10.0, 90.0


@dataclass
class StandIn:
    """The matrix solver's time in the place of the box search, in one process.

    Attributes
    ----------
    left : float
        Seconds; 0 once the kernels are at hand.
    begun, searched, coupled : bool
        Whether the kernels that every row needs, those of the search, and those for costs that couple features, were
        compiled ahead or found at hand.
    """

    left: float = SECONDS
    begun: bool = False
    searched: bool = False
    coupled: bool = False

    def solver(self, asked: Solver | CellSolver, others: Others) -> Solver | None:
        """Who solves in the place of the box search; None: nobody.

        Parameters
        ----------
        asked : Solver or CellSolver
        others : callable or None
            Gives those that may take its place.
        """
        if asked.name != "box" or self._over or others is None:
            return None
        if _search_at_hand():
            self.left = 0.0
            return None
        return next((solver for solver in others() if not isinstance(solver, CellSolver)), None)

    def options(self, options: SolverOptions) -> SolverOptions:
        """Options with the time that is left.

        Parameters
        ----------
        options : SolverOptions
        """
        limit = self.left if options.time_limit is None else min(self.left, options.time_limit)
        return replace(options, time_limit=limit, options={})

    def spent(self, seconds: float) -> None:
        """Take off what was needed."""
        self.left = max(0.0, self.left - seconds)

    def compile_ahead(self, *, searches: bool = False, couples: bool = False) -> None:
        """Compile, or load, what the next row would wait for, before its clock starts.

        Parameters
        ----------
        searches : bool
            Whether the kernels of the search are needed and nothing stands in for it.
        couples : bool
            The same of the search for costs that couple features: a model with sliding values takes longer to build
            than these kernels to compile.
        """
        if not self.begun:
            compile_beginning()
            self.begun = True
        if not self.searched and (searches or self._over):
            if not _search_at_hand():
                compile_search()
            if not _bounds_at_hand():
                compile_bounds()
            self.searched = True
        if couples and not self.coupled:
            compile_coupled()
            self.coupled = True

    def bounds_in_time(self) -> bool:
        """Whether the kernels of LP bounds are at hand, or can be compiled within the time limit that holds here."""
        return seconds_left() >= FOR_BOUNDS or _bounds_at_hand()

    def coupled_in_time(self) -> bool:
        """The same of the kernels for costs that couple features, and for trees of hyperplanes."""
        return seconds_left() >= FOR_COUPLED or at_hand(bound_box)

    @property
    def _over(self) -> bool:
        """Whether nothing stands in for the search any more."""
        return self.left <= 0 or os.environ.get("OCF_COMPILE_FIRST", "0") not in ("", "0")


def _search_at_hand() -> bool:
    return at_hand(propagate) and at_hand(dive)


def _bounds_at_hand() -> bool:
    return at_hand(try_cuts) and at_hand(best_rounding)


#: Of this process.
STAND_IN = StandIn()

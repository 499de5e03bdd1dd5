"""What a solver is: the protocols that adapters follow."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from ocf.solvers.result import SolveResult, SolverOptions
from ocf.solvers.standard_form import StandardForm

if TYPE_CHECKING:
    from ocf.arrays import IntArray
    from ocf.cells.cell_problem import CellProblem
    from ocf.solvers.cell_form import CellModel, Compiled


class AnySolver(Protocol):
    """What all that solve have in common."""

    name: str

    def refuses(self, cells: CellProblem) -> str:
        """What of a problem it cannot do, as what follows its name in a sentence; empty when nothing."""
        ...

    def check_options(self, raw: Mapping[str, Any]) -> None:
        """Refuse raw options that it does not take, before it is asked anything.

        Parameters
        ----------
        raw : mapping of str to object
            In the solver's own names; see `SolverOptions.options`.

        Raises
        ------
        SolverError
            An option is unknown, or its value is.
        """


class Solver(AnySolver, Protocol):
    """A solver of standard forms. Adapters are cheap to make and may be used for many solves, one at a time."""

    @property
    def version(self) -> str:
        """Version of the solver itself."""

    def solve(
        self,
        form: StandardForm,
        options: SolverOptions | None = None,
        warm_start: ArrayLike | None = None,
        cutoff: float | None = None,
        interrupt: Callable[[], bool] | None = None,
        over: CellModel | None = None,
    ) -> SolveResult:
        """Solve a form.

        Parameters
        ----------
        form : StandardForm
        options : SolverOptions, optional
        warm_start : (n_cols,) array, optional
            A point to start from. When it is feasible, the result is never worse than it.
        cutoff : float, optional
            Look only for points cheaper than this. A proof that there is none (by more than 1e-9 relative) is status
            INFEASIBLE with message ``"cutoff"`` and ``bound == cutoff``: the cutoff bounds every point from below.
        interrupt : callable, optional
            Asked about twenty times a second from the calling thread; True ends the solve as a time limit would.
        over : CellModel, optional
            What the form is a model of. Where a cutoff says that a point is known, the solver spends its time on the
            proof then: SCIP branches on cells, HiGHS leaves its heuristics out.

        Returns
        -------
        SolveResult

        Raises
        ------
        SolverError
            When a raw option is unknown or the solver refuses the problem.
        KeyboardInterrupt
            On Ctrl-C, after the solver has stopped.
        """

    def solve_relaxation(self, form: StandardForm, options: SolverOptions | None = None) -> SolveResult:
        """Solve the form without integrality; the result's bound is the LP bound.

        Parameters
        ----------
        form : StandardForm
        options : SolverOptions, optional
        """


@runtime_checkable
class CellSolver(AnySolver, Protocol):
    """A search over cells, which needs no matrix, or makes its own."""

    version: str

    def solve_cells(
        self,
        cells: CellProblem,
        options: SolverOptions | None = None,
        *,
        cutoff: float = math.inf,
        confirm: Callable[[IntArray], bool] | None = None,
        relaxation: Compiled | Callable[[], Compiled | None] | None = None,
        fewest: bool = False,
        incumbent: IntArray | None = None,
    ) -> SolveResult:
        """Find the cheapest choice of open cells that meets the target.

        Parameters
        ----------
        cells : CellProblem
        options : SolverOptions, optional
        cutoff : float
            Only points cheaper than this count; INFEASIBLE with message ``"cutoff"`` says that there is none.
        confirm : callable, optional
            Whether the user's model gives the target at a choice of cells; asked within rounding of a tie.
        relaxation : Compiled, or a function that gives one, optional
            The interval model, for LP bounds; the function is called when it is needed.
        fewest : bool
            Whether to find, of the points that cost the same, one in which the fewest cells cost something, and to
            show that; see `SolveResult.fewest`.
        incumbent : (n_features,) int64, optional
            Cells of a point that costs the cutoff: with `fewest`, what costs as little and changes less counts, too.

        Returns
        -------
        SolveResult
            Its `x` is the choice of cells, (n_features,).
        """
        ...

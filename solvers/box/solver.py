"""The box search under the name of a solver: a `CellProblem` in, a `SolveResult` out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ocf.arrays import IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.errors import SolverError
from ocf.solvers.box.coupled import CoupledSearch, refusal
from ocf.solvers.box.search import BoxResult, solve_cells
from ocf.solvers.box.shared import OPTIONS
from ocf.solvers.result import SolveResult, SolverOptions, relative_gap
from ocf.support.version import VERSION

if TYPE_CHECKING:
    from ocf.solvers.cell_form import Compiled


class BoxSolver:
    """The exact box branch-and-bound; see `ocf.solvers.protocols.CellSolver`."""

    name = "box"
    version = VERSION

    def refuses(self, cells: CellProblem) -> str:
        """Refuses what couples features, but for squares, or absolute values, of sums of changes in the cost."""
        unknown = cells.coupling and refusal(cells)
        return f"does not know {unknown}" if unknown else ""

    def check_options(self, raw: Mapping[str, Any]) -> None:
        """Refuse options that the search does not take.

        Parameters
        ----------
        raw : mapping of str to object
            Limits, by the names in `ocf.solvers.box.shared.OPTIONS`.
        """
        for name, value in raw.items():
            if name not in OPTIONS:
                raise SolverError(
                    f"the box search does not take the option {name!r}, only {' and '.join(OPTIONS)}: "
                    "name the solver whose option it is, solver='highs' or 'scip'"
                )
            if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not value >= 0:
                raise SolverError(
                    f"the box search does not take the option {name} = {value!r}: give a number of at least 0"
                )

    def solve_cells(
        self,
        cells: CellProblem,
        options: SolverOptions | None = None,
        *,
        cutoff: float = np.inf,
        confirm: Callable[[IntArray], bool] | None = None,
        relaxation: Compiled | Callable[[], Compiled | None] | None = None,
        fewest: bool = False,
        incumbent: IntArray | None = None,
    ) -> SolveResult:
        """Search a problem over cells; the result's `x` is the choice of cells, (n_features,).

        Parameters
        ----------
        cells, options, cutoff, confirm, relaxation, fewest, incumbent
            See `ocf.solvers.protocols.CellSolver.solve_cells`.

        Raises
        ------
        SolverError
            An option is not its own, or no number.
        """
        found: BoxResult
        options = options or SolverOptions()
        self.check_options(options.options)
        if cells.coupling:
            found = CoupledSearch(cells, options, cutoff, confirm).run()
        else:
            found = solve_cells(
                cells,
                options,
                cutoff=cutoff,
                confirm=confirm,
                relaxation=relaxation,
                fewest=fewest,
                incumbent=incumbent,
            )
        return as_result(found, self.name, self.version, options)


def as_result(found: BoxResult, solver: str, version: str, options: SolverOptions) -> SolveResult:
    """The answer of a search as all solvers give theirs; its `x` is the choice of cells, (n_features,).

    Parameters
    ----------
    found : BoxResult
    solver, version : str
        Whose answer it is.
    options : SolverOptions
    """
    return SolveResult(
        found.status,
        None if found.cells is None else found.cells.astype(np.float64),
        found.cost,
        found.bound,
        relative_gap(found.cost, found.bound),
        found.seconds,
        found.nodes,
        found.history,
        solver,
        version,
        dict(options.options),
        raw_status=f"{found.lp_solves} LPs in {found.lp_seconds:.3f} s",
        message=found.message,
        fewest=found.fewest,
        sizes=found.sizes,
    )

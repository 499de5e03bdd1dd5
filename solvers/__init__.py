"""Solvers, one file each, that all answer the same question about the same arrays.

>>> from ocf.solvers import get_solver
>>> result = get_solver("highs").solve(form)                                            # doctest: +SKIP

Adding a solver is one file with a class that follows `Solver`, and one line in `SOLVERS`.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from ocf.errors import SolverError
from ocf.solvers.protocols import CellSolver, Solver
from ocf.solvers.result import Progress, SolveResult, SolverOptions, Status
from ocf.solvers.standard_form import Reduced, StandardForm, compile_model
from ocf.support.messages import nearest

__all__ = [
    "CELL_SOLVERS",
    "SOLVERS",
    "Availability",
    "CellSolver",
    "Progress",
    "Reduced",
    "SolveResult",
    "Solver",
    "SolverOptions",
    "StandardForm",
    "Status",
    "available",
    "check_options",
    "compile_model",
    "get_solver",
    "matrix_solver",
    "other_matrix_solvers",
    "takes",
]

#: Name of a solver -> its module and class, imported when it is asked for.
SOLVERS: dict[str, tuple[str, str]] = {
    "highs": ("ocf.solvers.highs", "HighsSolver"),
    "scip": ("ocf.solvers.scip", "ScipSolver"),
}

#: The same for solvers that search a problem over cells instead of a matrix (`CellSolver`).
CELL_SOLVERS: dict[str, tuple[str, str]] = {
    "box": ("ocf.solvers.box.solver", "BoxSolver"),
}


@dataclass(frozen=True)
class Availability:
    """Whether a solver can be used here; true or false by itself, with the reason when not."""

    reason: str = ""

    def __bool__(self) -> bool:
        return not self.reason


def get_solver(name: str) -> Solver | CellSolver:
    """Make a solver by its name.

    Parameters
    ----------
    name : str
        One of `SOLVERS` or `CELL_SOLVERS`.

    Raises
    ------
    SolverError
        When the name is unknown or the solver's package cannot be imported.
    """
    known = SOLVERS | CELL_SOLVERS
    if name not in known:
        raise SolverError(f"there is no solver {nearest(name, known)}")
    module, cls = known[name]
    try:
        return cast(Solver | CellSolver, getattr(import_module(module), cls)())
    except ImportError as error:
        package = error.name or "its package"
        raise SolverError(f"the solver {name!r} cannot be loaded ({error}): pip install {package}") from error


def matrix_solver(name: str) -> Solver:
    """Make a solver of matrices by its name.

    Raises
    ------
    SolverError
        As of `get_solver`, and of a solver that searches cells.
    """
    if name in CELL_SOLVERS:
        raise SolverError(f"the solver {name!r} searches cells, and this needs one of matrices: {' or '.join(SOLVERS)}")
    return cast(Solver, get_solver(name))


def other_matrix_solvers(first: str) -> list[Solver]:
    """All solvers of matrices but the first that can be loaded, in the order of `SOLVERS`."""
    others = []
    for name in SOLVERS:
        if name != first:
            with suppress(SolverError):
                others.append(matrix_solver(name))
    return others


def check_options(raw: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse raw options that none of these solvers takes, before a row reaches one.

    Parameters
    ----------
    raw : mapping of str to object
        See `SolverOptions.options`.
    names : sequence of str
        Of `SOLVERS` or `CELL_SOLVERS`.

    Raises
    ------
    SolverError
        With what each of them says.
    """
    refusals = []
    for name in names:
        try:
            return get_solver(name).check_options(raw)
        except SolverError as error:
            refusals.append(str(error))
    raise SolverError("; ".join(refusals))


def takes(name: str, raw: Mapping[str, Any]) -> bool:
    """Whether a solver can be imported and takes raw options.

    Parameters
    ----------
    name : str
        One of `SOLVERS` or `CELL_SOLVERS`.
    raw : mapping of str to object
        See `SolverOptions.options`.
    """
    try:
        solver = get_solver(name)
        if raw:  # SCIP makes a model to see whether it takes them
            solver.check_options(raw)
    except SolverError:
        return False
    return True


def available() -> dict[str, Availability]:
    """Tell for every solver whether it can be used here, and why not."""
    out = {}
    for name in SOLVERS | CELL_SOLVERS:
        try:
            get_solver(name)
            out[name] = Availability()
        except SolverError as error:
            out[name] = Availability(str(error))
    return out

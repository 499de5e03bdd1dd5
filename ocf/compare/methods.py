"""Methods: a formulation, a solver and their options, or a program of others, under a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ocf.errors import OcfError, ProblemError
from ocf.solvers.result import CUTS
from ocf.support.messages import listed, nearest

#: What can be said of a method that is a program.
OF_PROGRAMS = ("command", "name", "threads", "seed", "options", "folder")


@dataclass(frozen=True)
class Method:
    """How an instance is solved.

    Attributes
    ----------
    formulation : str
        As in `ocf.formulations.FORMULATIONS`; means nothing to solvers that search over cells.
    solver : str
        As `ocf.Explainer.explain` takes it.
    reduce : bool
        Whether an incumbent and the reduction come before the solver.
    threads : int
    mip_gap : float
    seed : int
    cuts : str
        As `ocf.Explainer.explain` takes it.
    options : mapping
        The solver's own.
    name : str
        By default made of the others, as far as they are not the default.
    command : tuple of str
        Of a program that is the method, in the place of formulation, solver, reduction and gap: see
        `ocf.compare.programs`.
    folder : str
        From which relative paths of the command count.

    Raises
    ------
    ProblemError
        Unknown formulation, solver or cuts, or a program without a name.
    """

    formulation: str = "interval"
    solver: str = "highs"
    reduce: bool = True
    threads: int = 1
    mip_gap: float = 0.0
    seed: int = 0
    cuts: str = "none"
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    command: tuple[str, ...] = ()
    folder: str = ""

    def __post_init__(self) -> None:
        from ocf.formulations import FORMULATIONS

        if self.command:
            self._check_program()
            return
        if self.formulation not in FORMULATIONS:
            raise ProblemError(f"unknown formulation {nearest(self.formulation, FORMULATIONS)}")
        if self.solver not in known_solvers():
            raise ProblemError(f"unknown solver {nearest(self.solver, known_solvers())}")
        if self.cuts not in CUTS:
            raise ProblemError(f"unknown cuts {nearest(self.cuts, CUTS)}")
        if not self.matrix:  # the same method, whatever formulation it is crossed with
            object.__setattr__(self, "formulation", "interval")
        if not self.name:
            object.__setattr__(self, "name", self._made_name())

    def _check_program(self) -> None:
        if not self.name:
            raise ProblemError("a method with a command needs a name, such as [methods.NAME]")
        others = [f for f in fields(self) if f.name not in OF_PROGRAMS]
        if any(getattr(self, f.name) != f.default for f in others):
            raise ProblemError(f"a command goes with {listed(list(OF_PROGRAMS[1:-1]))}, not with settings of a solver")
        object.__setattr__(self, "formulation", "")
        object.__setattr__(self, "solver", "")

    @property
    def matrix(self) -> bool:
        """Whether the solver takes the formulation's matrix."""
        from ocf.solvers import SOLVERS

        return self.solver in SOLVERS

    @property
    def key(self) -> tuple[Any, ...]:
        """What distinguishes methods, the name left aside."""
        options = tuple(sorted((k, str(v)) for k, v in self.options.items()))
        if self.command:
            return (self.command, self.threads, self.seed, options)
        cut = () if self.cuts == CUTS[0] else (self.cuts,)
        return (self.formulation, self.solver, self.reduce, self.threads, self.mip_gap, self.seed, options, *cut)

    def _made_name(self) -> str:
        parts = [f"{self.formulation}/{self.solver}" if self.matrix else self.solver]
        if not self.reduce:
            parts.append("unreduced")
        if self.threads != 1:
            parts.append(f"{self.threads} threads")
        if self.mip_gap:
            parts.append(f"gap {self.mip_gap:g}")
        if self.cuts != CUTS[0]:
            parts.append(f"cuts {self.cuts}")
        if self.seed:
            parts.append(f"seed {self.seed}")
        return " ".join(parts + [f"{k}={v}" for k, v in self.options.items()])

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of `ocf.Explainer.explain`."""
        return {
            "formulation": self.formulation,
            "solver": self.solver,
            "reduce": self.reduce,
            "threads": self.threads,
            "mip_gap": self.mip_gap,
            "seed": self.seed,
            "cuts": self.cuts,
            "options": dict(self.options),
        }

    def program(self) -> dict[str, Any]:
        """What a server must know of a method that is a program."""
        from ocf.compare.programs import located

        kept = {"command": located(self.command), "folder": self.folder, "options": dict(self.options)}
        return kept | {"threads": self.threads, "seed": self.seed}


def known_solvers() -> list[str]:
    """Solvers that `ocf.Explainer.explain` takes."""
    from ocf.solve.method import AUTO
    from ocf.solvers import CELL_SOLVERS, SOLVERS

    return [*SOLVERS, *CELL_SOLVERS, AUTO]


def unavailable(method: Method) -> str:
    """Why a method cannot run here; empty when it can."""
    from ocf.compare.programs import missing
    from ocf.formulations import get_formulation
    from ocf.solve.method import AUTO
    from ocf.solvers import get_solver

    if method.command:
        return missing(method.command, method.folder)
    try:
        get_formulation(method.formulation)
        if method.solver != AUTO:
            get_solver(method.solver)
    except (OcfError, ImportError) as error:
        return str(error)
    return ""

"""What a solve is asked: a row and the options of the method."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ocf.arrays import FloatArray
from ocf.features.one_row import Maker, table_of_one
from ocf.features.space import FeatureSpace
from ocf.models.completed import Imputed
from ocf.models.plausibility import Plausibility
from ocf.problem.constraints import Constraint
from ocf.problem.costs import Cost
from ocf.problem.diversity import Several
from ocf.solve.method import Way
from ocf.solvers.result import SolverOptions
from ocf.support.limits import within

if TYPE_CHECKING:
    import pandas as pd

    from ocf.solve.outcome import Outcome


@dataclass(frozen=True, eq=False)
class AskedRow:
    """A row to explain.

    Attributes
    ----------
    label : object
        Of the user's index.
    table : DataFrame (1, n_columns) or Maker
        The row as the user gave it, or what makes that.
    coded : (n_features,) float64
    current : int or float
        Index of the class that the user's model gives it, or the value.
    imputed : Imputed or None
        Completions of its missing values; `current` is what most of them get.
    believed : bool
        Whether `current` is what the trees say: the user's model is asked about the row when it is about the answer.
    """

    label: Any
    table: pd.DataFrame | Maker
    coded: FloatArray
    current: int | float
    imputed: Imputed | None = None
    believed: bool = False

    @property
    def original(self) -> pd.DataFrame:
        """The row as the user gave it, (1, n_columns)."""
        return table_of_one(self.table)

    def answer(self, classes: tuple[Any, ...]) -> Any:
        """What the user's model gives it: one of these classes, or the value where there are none."""
        return classes[int(self.current)] if classes else self.current


@dataclass(frozen=True, eq=False)
class Task:
    """What is asked of every row.

    `data` says how many rows of the data there are and were of use, where some have missing values; `compiles_ahead`
    that nobody stated a time limit, so that kernels are compiled before the clock of a row starts.
    """

    target: Any
    cost: Cost
    space: FeatureSpace
    formulation: str
    solver: str
    options: SolverOptions
    reduce: bool
    probability: float | None = None
    split_margin: float = 0.0
    class_costs: tuple[tuple[Any, float], ...] = ()
    cross_check: bool = False
    n_optimal: int = 1
    plausibility: Plausibility | None = None
    constraints: tuple[Constraint, ...] = ()
    several: Several = field(default_factory=Several)
    diagnose: bool = False
    box: bool = False
    data: Mapping[str, int] = field(default_factory=dict)
    imputations: Any = None
    share: float = 1.0
    other_gaps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    break_ties: bool = True
    margins: FloatArray | None = None
    compiles_ahead: bool = False

    def within_limits(self, *, anew: bool = False) -> AbstractContextManager[None]:
        """The limits of time and memory, for an answer.

        Parameters
        ----------
        anew : bool
            Whether it is a further one, with time of its own.
        """
        return within(self.options.time_limit, self.options.memory_limit, anew=anew)

    def seconds_after(self, spent: float) -> float | None:
        """What the time of an answer leaves after so many seconds, not below 0; None without a limit."""
        limit = self.options.time_limit
        return None if limit is None else max(limit - spent, 0.0)

    @property
    def is_plain(self) -> bool:
        """Whether the best point is all that is asked of a row, and a single table tells whether it counts."""
        more = self.cross_check or self.diagnose or self.box or self.n_optimal > 1 or self.several.n > 1
        return not (more or self.imputations is not None or self.class_costs)

    def method(self, way: Way, outcome: Outcome) -> dict[str, Any]:
        """How an outcome came about.

        Parameters
        ----------
        way : Way
            In which the row was solved.
        outcome : Outcome
        """
        last = outcome.results[-1] if outcome.results else None
        said: dict[str, Any] = {"data": dict(self.data)} if self.data else {}
        if self.other_gaps:
            said["other_gaps"] = self.other_gaps
        return {
            "formulation": way.formulation,
            "solver": way.solver,
            "why": way.why,
            "proved_by": outcome.proved_by,
            "solvers": list(dict.fromkeys(r.solver for r in outcome.results)),
            "solver_version": last.version if last else "",
            "options": dict(last.options) if last else {},
            "reduction": self.reduce,
            "asked": self._asked(),
        } | said

    def _asked(self) -> dict[str, Any]:
        """What was asked that no other part of an answer tells, so that answers to one question are known as such."""
        said: dict[str, Any] = {"split_margin": self.split_margin} if self.split_margin else {}
        if self.class_costs:
            said["class_costs"] = {str(label): price for label, price in self.class_costs}
        if self.plausibility is not None:
            said["plausibility"] = self.plausibility.words()
        if self.several.n > 1:
            said["diversity"] = self.several.diversity
        return said

"""What a person asks of a row: the settings of `Explainer.explain`, once, for everything that takes them."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ocf.arrays import FloatArray
from ocf.errors import ProblemError
from ocf.features.rounding import check_round_to, rounded_space
from ocf.features.space import FeatureSpace, names_to_vary
from ocf.models.completed import check_share
from ocf.problem.constraints import Constraint, broken_by, checked, unsatisfiable
from ocf.problem.costs import Cost
from ocf.problem.diversity import Several
from ocf.problem.missing import Missing
from ocf.solve.method import AUTO
from ocf.solvers import CELL_SOLVERS, SOLVERS, check_options, get_solver
from ocf.solvers.result import SolverOptions
from ocf.support.amounts import real_number
from ocf.support.memory import parse_memory

logger = logging.getLogger(__name__)


class DefaultLimit(float):
    """Seconds that nobody stated: compiling kernels is no part of them."""


#: Seconds that a row may take by default.
TIME_LIMIT = DefaultLimit(60)

#: Fields that make the problem of a row; the others say how it is solved and how often.
OF_PROBLEM = (
    "target",
    "norm",
    "probability",
    "weights",
    "features_to_vary",
    "permitted_range",
    "round_to",
    "margin",
    "plausibility",
    "constraints",
    "missing",
)

#: Fields that say by what means a problem is solved, and within which limits, that models of all kinds have.
OF_SOLVING = (
    "formulation",
    "solver",
    "time_limit",
    "memory_limit",
    "mip_gap",
    "threads",
    "seed",
    "log",
    "options",
    "reduce",
)


@dataclass(frozen=True)
class Question:
    """The settings of `Explainer.explain`, which describes them one by one.

    Raises
    ------
    ProblemError
        A setting means nothing, whatever the model and the row.
    """

    target: Any = "opposite"
    norm: str | Mapping[str, float] | Cost = "l1"
    probability: float | None = None
    weights: Mapping[str, float | tuple[float, float]] | None = None
    features_to_vary: Iterable[str] | Literal["all"] = "all"
    permitted_range: Mapping[str, Iterable[Any]] | None = None
    round_to: Any = None
    margin: float | Mapping[str, float] = 0.0
    split_margin: float = 0.0
    class_costs: Mapping[Any, float] | None = None
    plausibility: Any = None
    constraints: Constraint | Sequence[Constraint | Mapping[str, Any]] | None = None
    missing: Any = None
    imputations: Any = None
    share: float = 1.0
    n_explanations: int = 1
    diversity: str = "features"
    min_distance: float = 0.1
    diagnose: bool = False
    formulation: str = AUTO
    solver: str = AUTO
    time_limit: float | None = TIME_LIMIT
    memory_limit: float | str | None = None
    mip_gap: float = 0.0
    threads: int = 1
    seed: int = 0
    log: bool = False
    options: Mapping[str, Any] | None = None
    cuts: str = "none"
    reduce: bool = True
    cross_check: bool = False
    n_optimal: int = 1
    box: bool = False
    break_ties: bool = True
    n_jobs: int = 1
    progress: bool | None = None
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        self._settle()
        if not isinstance(self.n_optimal, int | np.integer) or self.n_optimal < 1:
            raise ProblemError(f"n_optimal is a number of answers, at least 1, not {self.n_optimal!r}")
        if not isinstance(self.n_jobs, int | np.integer):
            raise ProblemError(f"n_jobs is a number of processes, or -1 for one per core, not {self.n_jobs!r}")
        if self.solver != AUTO:
            get_solver(self.solver)
        if raw := self.solver_options.options:
            check_options(raw, [*SOLVERS, *CELL_SOLVERS] if self.solver == AUTO else [self.solver])
        if self.solver in CELL_SOLVERS and self.cuts != "none":
            raise ProblemError(
                f"cuts={self.cuts!r} tighten a matrix, and the solver {self.solver!r} does without one: "
                "leave them out, or ask for 'highs' or 'scip'"
            )
        if not 0 <= real_number(self.split_margin) < math.inf:
            raise ProblemError(f"split_margin must be a number of at least 0, not {self.split_margin!r}")
        if self.memory_limit is not None:
            parse_memory(self.memory_limit, "memory_limit")
        for wish in self.round_to.values() if isinstance(self.round_to, Mapping) else [self.round_to]:
            if wish is not None:
                check_round_to(wish)
        Missing.parse(self.missing)
        check_share(self.share, self.imputations is not None)
        _ = self.several, self.weight_pairs
        self._check_margin()

    def _settle(self) -> None:
        """Have names and ranges in tuples: they are read more than once, and iterators are spent by then."""
        for name in ("weights", "permitted_range", "class_costs"):
            if not isinstance(getattr(self, name), Mapping | None):
                raise ProblemError(f"{name} is a mapping by name, not {getattr(self, name)!r}")
        object.__setattr__(self, "features_to_vary", names_to_vary(self.features_to_vary))
        if self.permitted_range is not None:
            ranges = {k: tuple(v) if isinstance(v, Iterator) else v for k, v in self.permitted_range.items()}
            object.__setattr__(self, "permitted_range", ranges)

    def _check_margin(self) -> None:
        for size in self.margin.values() if isinstance(self.margin, Mapping) else [self.margin]:
            if not 0 <= real_number(size) < math.inf:
                raise ProblemError(f"margin is a number of at least 0, or one for each feature, not {size!r}")
        if self.margin and self.imputations is not None:
            raise ProblemError("margin and imputations do not go together: what is missing passes no threshold")

    @property
    def solver_options(self) -> SolverOptions:
        """What a solver is told."""
        return SolverOptions(
            time_limit=None if self.time_limit == np.inf else self.time_limit,
            mip_gap=self.mip_gap,
            threads=self.threads,
            seed=self.seed,
            log=self.log,
            options=self.options or {},
            memory_limit=None if self.memory_limit is None else parse_memory(self.memory_limit, "memory_limit"),
            cuts=self.cuts,
        )

    def beyond(self, heeded: Collection[str]) -> list[str]:
        """Settings that ask for something, other than these.

        Parameters
        ----------
        heeded : collection of str
            Names of settings.
        """
        return [f.name for f in fields(self) if f.name not in heeded and _asks(getattr(self, f.name), f.default)]

    @property
    def weight_pairs(self) -> dict[str, tuple[float, float]]:
        """Weights of going down and of going up, by feature."""
        pairs = {}
        for name, weight in (self.weights or {}).items():
            pair = tuple(map(real_number, weight if isinstance(weight, tuple | list) else (weight, weight)))
            if len(pair) != 2 or not all(0 <= w < math.inf for w in pair):
                raise ProblemError(
                    f"the weight of {name!r} is a number of at least 0, or a pair of them, down and up, not {weight!r}"
                )
            pairs[name] = pair
        return pairs

    @property
    def several(self) -> Several:
        """How many explanations of a row, and how they differ."""
        return Several(self.n_explanations, self.diversity, self.min_distance)

    def space_of(
        self, space: FeatureSpace, missing: Missing | None = None, known: FloatArray | None = None
    ) -> FeatureSpace:
        """Features with the weights, the permitted ranges and the freedom that are asked for.

        Parameters
        ----------
        space : FeatureSpace
        missing : Missing, optional
            What may happen to missing values where the question does not say so.
        known : (n, n_features) float64, optional
            Coded rows of the data, whose grids new values may lie on.
        """
        wish = missing if self.missing is None else Missing.parse(self.missing)
        changes: dict[str, dict[str, Any]] = {}
        if wish is not None:
            changes |= {name: {"special": special} for name, special in wish.changes(space).items()}
        for name, (down, up) in self.weight_pairs.items():
            changes.setdefault(name, {}).update(weight_down=down, weight_up=up)
        for name, allowed in (self.permitted_range or {}).items():
            changes.setdefault(name, {})["permitted"] = space.features[space.index(name)].permitting(allowed)
        asked = rounded_space(space.updated(changes).varying(self.features_to_vary), self.round_to, known)
        for feature in asked.features:
            feature.permitted_codes()
        return asked

    def margins_of(self, space: FeatureSpace) -> FloatArray:
        """How far changed values must stand from the thresholds that they pass, in the user's units, (n_features,).

        Parameters
        ----------
        space : FeatureSpace

        Raises
        ------
        ProblemError
            A feature that is named has levels.
        """
        if not isinstance(self.margin, Mapping):
            return np.array([0.0 if f.discrete else self.margin * f.scale for f in space.features])
        out = np.zeros(len(space))
        for name, size in self.margin.items():
            feature = space.features[space.index(name)]
            if feature.discrete:
                raise ProblemError(f"margin: {name!r} has levels, and no distances from thresholds")
            out[space.index(name)] = size
        return out

    def constraints_of(self, space: FeatureSpace, own: tuple[Constraint, ...]) -> tuple[Constraint, ...]:
        """The constraints, checked against the features; by default the explainer's own.

        Parameters
        ----------
        space : FeatureSpace
        own : tuple of Constraint
            The explainer's own.
        """
        return checked(own if self.constraints is None else self.constraints, space)


def _asks(value: Any, default: Any) -> bool:
    """Whether a setting differs from its default; of one that is None by default, False and nothing ask for nothing."""
    if default is None:
        return value is not None and value is not False and not (isinstance(value, Collection) and not len(value))
    return value is not default and not (isinstance(value, str | float | int) and value == default)


#: Names of all settings.
SETTINGS = tuple(field.name for field in fields(Question))


def warn_of_broken(
    constraints: Sequence[Constraint], space: FeatureSpace, rows: FloatArray, known: FloatArray, told: set[str]
) -> None:
    """Name constraints that the data itself breaks in a warning, each once.

    Parameters
    ----------
    constraints : sequence of Constraint
    space : FeatureSpace
    rows : (n, n_features) float64
        Coded rows to explain.
    known : (n_known, n_features) float64
        Coded rows of the data.
    told : set of str
        Constraints that the data was held against before; the others are added.

    Raises
    ------
    ProblemError
        No values within the bounds of the features, nor any row, satisfy one.
    """
    for constraint in constraints:
        if not constraint.absolute:
            continue
        if unsatisfiable(constraint, space, np.vstack([rows, known])):
            raise ProblemError(f"no values within the bounds satisfy the constraint {constraint.title!r}")
        if repr(constraint) in told:
            continue
        told.add(repr(constraint))
        if broken := broken_by(constraint, space, known):
            logger.warning("constraint %r is broken by %d of %d rows of the data", constraint.title, broken, len(known))

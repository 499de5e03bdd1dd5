"""Many rows with one explainer: in turn or in processes, with a status for each, and nothing lost on Ctrl-C."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from ocf.choice import Way
from ocf.constraints import Constraint
from ocf.costs import Cost
from ocf.ensemble import FloatArray
from ocf.errors import ProblemError
from ocf.explanation import Explanation, failed
from ocf.features import FeatureSpace
from ocf.plausibility import Plausibility
from ocf.several import Several
from ocf.solvers.result import SolverOptions

if TYPE_CHECKING:
    from ocf.explainer import Explainer
    from ocf.outcome import Outcome

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Row:
    """A row to explain.

    Attributes
    ----------
    label : object
        Of the user's index.
    original : DataFrame
        One row, as the user gave it.
    coded : (n_features,) float64
    current : int or float
        Index of the class that the user's model gives it, or the value.
    """

    label: Any
    original: pd.DataFrame
    coded: FloatArray
    current: int | float


@dataclass(frozen=True, eq=False)
class Task:
    """What is asked of every row."""

    target: Any
    probability: float | None
    cost: Cost
    space: FeatureSpace
    formulation: str
    solver: str
    options: SolverOptions
    reduce: bool
    split_margin: float = 0.0
    class_costs: tuple[tuple[Any, float], ...] = ()
    cross_check: bool = False
    n_optimal: int = 1
    plausibility: Plausibility | None = None
    constraints: tuple[Constraint, ...] = ()
    several: Several = field(default_factory=Several)
    diagnose: bool = False

    def method(self, way: Way, outcome: Outcome) -> dict[str, Any]:
        """How an outcome came about."""
        last = outcome.results[-1] if outcome.results else None
        return {
            "formulation": way.formulation,
            "solver": way.solver,
            "why": way.why,
            "proved_by": outcome.proved_by,
            "solvers": list(dict.fromkeys(r.solver for r in outcome.results)),
            "solver_version": last.version if last else "",
            "options": dict(last.options) if last else {},
            "reduction": self.reduce,
        }


def run_batch(
    explainer: Explainer, rows: Sequence[Row], task: Task, n_jobs: int, advance: Callable[[str], None]
) -> list[Explanation]:
    """Explain rows, in order.

    Parameters
    ----------
    explainer : Explainer
    rows : sequence of Row
    task : Task
    n_jobs : int
        Processes; -1 for one per core.
    advance : callable
        Told the status of each row as it finishes.

    Returns
    -------
    list of Explanation
        One per row, or several where that is asked for. After Ctrl-C the rows that are not finished have status
        ``"interrupted"``.
    """
    if n_jobs == 0 or n_jobs < -1:
        raise ProblemError(f"n_jobs is a number of processes, or -1 for one per core, not {n_jobs}")
    done: list[list[Explanation]] = []
    try:
        for explanations in _explained(explainer, rows, task, n_jobs):
            done.append(explanations)
            advance(explanations[0].status)
    except KeyboardInterrupt:
        logger.warning("interrupted: %d of %d rows are finished and kept", len(done), len(rows))
        done += [[failed(r.label, r.original, "interrupted", "interrupted by the user")] for r in rows[len(done) :]]
    return [explanation for explanations in done for explanation in explanations]


def _explained(explainer: Explainer, rows: Sequence[Row], task: Task, n_jobs: int) -> Iterable[list[Explanation]]:
    if n_jobs == 1 or len(rows) < 2:
        return (explainer.explain_row(row, task) for row in rows)
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    results: Iterable[list[Explanation]] = parallel(delayed(explainer.explain_row)(row, task) for row in rows)
    return results

"""The answer to one row: what was found, and what changes. Text, pages and plots tell of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ocf.features.feature import Feature
from ocf.features.frames import PANDAS, FrameKind, as_pandas
from ocf.features.one_row import OneRow, held
from ocf.features.space import FeatureSpace
from ocf.problem.constraints import Constraint
from ocf.problem.costs import Cost
from ocf.solvers.result import Progress, Status
from ocf.support.amounts import plain_value

if TYPE_CHECKING:
    from ocf.problem.linear_problem import LinearProblem
    from ocf.problem.problem import Problem

#: How a row can end: the statuses of a solve, and "interrupted" for a row that was stopped before its end.
STATUSES = (*(s.value for s in Status), "interrupted")

#: Columns of `Explanation.changes`.
CHANGE = ("feature", "from", "to", "change", "cost")

#: Keys of `Explanation.times`.
TIMES = ("build", "compile", "incumbent", "reduce", "instance", "solve", "confirm", "ties", "verify", "total")


@dataclass(frozen=True, eq=False)
class Answer:
    """What is known of one row's answer; see `ocf.Explanation` for the attributes."""

    row: Any
    status: str
    original: OneRow = OneRow()  # noqa: RUF009  # it describes the attribute
    counterfactual: OneRow = OneRow(optional=True)  # noqa: RUF009  # it describes the attribute
    predicted: Any = None
    target: Any = None
    probability: float | None = None
    decided: Any = None
    cost: float | None = None
    bound: float = -np.inf
    gap: float = np.inf
    times: dict[str, float] = field(default_factory=lambda: dict.fromkeys(TIMES, 0.0))
    nodes: int = 0
    refused: int = 0
    proved_by: str = ""
    method: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    history: tuple[Progress, ...] = ()
    verified: bool = False
    checks: tuple[str, ...] = ()
    message: str = ""
    space: FeatureSpace | None = None
    norm: Cost | None = None
    classes: tuple[Any, ...] = ()
    problem: Problem | LinearProblem | None = None
    ties: tuple[pd.DataFrame, ...] = ()
    ties_complete: bool | None = None
    ranges: tuple[dict[str, Any], ...] = ()
    plausibility: dict[str, Any] | None = None
    constraints: tuple[Constraint, ...] = ()
    rank: int = 1
    conflict: tuple[str, ...] = ()
    imputations: dict[str, Any] | None = None
    box: dict[str, Any] | None = None
    probabilities: tuple[tuple[float, ...], ...] | None = None
    partway: tuple[tuple[float, ...], ...] | None = None
    margins: dict[str, float] = field(default_factory=dict)
    frames: FrameKind = PANDAS

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"status {self.status!r} is not one of {', '.join(STATUSES)}")

    @property
    def found(self) -> bool:
        """Whether there is a counterfactual."""
        return held(self, "counterfactual") is not None

    @property
    def likely(self) -> Any:
        """The class whose probability `before` and `after` are: the answer's own, or of those wanted the likeliest."""
        wanted = self.target if isinstance(self.target, tuple) else (self.target,)
        if self.probabilities is None or self.decided in wanted:
            return self.decided
        last = dict(zip(self.classes, self.probabilities[-1], strict=False))
        return max((label for label in wanted if label in last), key=last.__getitem__, default=self.predicted)

    @property
    def before(self) -> float | None:
        """What the user's model gives the original: the probability of the class `likely`, or a regressor's value."""
        return self._shown(0, self.predicted)

    @property
    def after(self) -> float | None:
        """What it gives the counterfactual, as `before`; None where there is none."""
        return self._shown(1, self.decided) if self.found else None

    @property
    def path(self) -> tuple[float, ...]:
        """From `before` to `after`: what the model gives as the `changes` are made one by one; empty if unknown."""
        first, last = self.before, self.after
        if self.partway is None or first is None or last is None or len(self.partway) + 1 != len(self.own_changes):
            return ()
        place = self.classes.index(self.likely) if self.classes else 0
        return first, *(given[place] for given in self.partway), last

    def _shown(self, which: int, value: Any) -> float | None:
        if not self.classes:
            return None if value is None else float(value)
        if self.probabilities is None:
            return None
        return dict(zip(self.classes, self.probabilities[which], strict=False)).get(self.likely)

    @property
    def changes(self) -> pd.DataFrame:
        """What changes: one row per changed feature, with ``feature, from, to, change, cost``.

        `from` and `to` are in the user's words: numbers, or labels of levels. `change` is their difference where
        that has a meaning and NaN elsewhere; `cost` is what this change adds to the total.
        """
        changes: pd.DataFrame = self.frames.native(self.own_changes.copy())
        return changes

    @cached_property
    def own_changes(self) -> pd.DataFrame:
        """`changes` as a DataFrame of pandas, whatever the user's tables are."""
        return self.changes_to(self.counterfactual)

    def changes_to(self, counterfactual: Any) -> pd.DataFrame:
        """As `own_changes`, for one of the `ties`."""
        frame = pd.DataFrame(self.list_changes(counterfactual), columns=list(CHANGE), dtype=object)
        return frame.astype({"feature": "str", "change": "float64", "cost": "float64"})

    def list_changes(self, counterfactual: Any) -> list[tuple[str, Any, Any, float, float]]:
        """Rows of `changes_to`."""
        rows = []
        if counterfactual is not None and self.space is not None and self.norm is not None:
            before, after = (as_pandas(t).rename(columns=str) for t in (self.original, counterfactual))
            origin, point = (self.space.with_missing(self.space.from_frame(t)[0]) for t in (before, after))
            shares = self.norm.shares(self.space, origin, point)
            for i, feature in enumerate(self.space.features):
                if origin[i] != point[i] and not np.isnan(point[i]):
                    cost = float(shares[i])
                    labels = [_label(feature, t, v) for t, v in ((before, origin[i]), (after, point[i]))]
                    rows.append((feature.name, *labels, _difference(feature, origin[i], point[i]), cost))
        return rows


def _label(feature: Feature, table: pd.DataFrame, code: float) -> Any:
    if feature.discrete:
        return feature.label(code)
    value = table[feature.columns[0]].iloc[0]
    return None if pd.isna(value) else plain_value(value)


def _difference(feature: Feature, origin: float, value: float) -> float:
    if feature.is_special(origin) or feature.is_special(value):
        return np.nan
    if not feature.discrete:
        return float(value - origin)
    if feature.kind == "ordinal" and feature.numeric_levels:
        return float(feature.positions[int(value)] - feature.positions[int(origin)])
    return np.nan

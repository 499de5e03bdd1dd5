"""What a user gets of rules: conditions in units and words, rules, and all rules of one row or region."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np
import pandas as pd

from ocf.arrays import BoolArray
from ocf.regional.forest import CellBox
from ocf.rules.conditions import Condition
from ocf.rules.plots import plot_conditions
from ocf.rules.points import RuleInterval
from ocf.support import json_records
from ocf.support.json_dtypes import plain
from ocf.support.pages import table_fragment
from ocf.support.wording import plain_number

#: Schema of the JSON of rules.
SCHEMA = "ocf.rules/1"

#: Of the table of conditions.
COLUMNS = (
    "row", "rule", "feature", "lower", "upper", "open_below", "levels", "precision", "coverage", "support",
)  # fmt: skip

#: Rows whose rules a notebook shows.
MOST = 20


@dataclass(frozen=True, eq=False, repr=False)
class Rule:
    """A box on the features that change: a point in it has the target with high probability.

    Attributes
    ----------
    conditions : tuple of Condition
    precision : float
        CRP: estimated probability of the target inside the rule, what does not change being held.
    coverage : float
        Estimated probability of the rule itself, what does not change being held: the weight that it captures.
    support : int
        Training rows that meet the conditions, whatever their other features.
    status : {"optimal", "feasible"}
        ``"optimal"``: proven that no box on these features with the asked precision (of a rule that was to be
        probable: its most probable leaf's) covers more. ``"feasible"``:
        greedy, or a limit was hit.
    bound : float
        No box with the asked precision covers more.
    method : {"greedy", "search", "milp"}
    intervals : tuple of RuleInterval
        The conditions, coded.
    region : CellBox
        The conditions, in cells of the forest.
    """

    conditions: tuple[Condition, ...]
    precision: float
    coverage: float
    support: int
    status: str
    bound: float
    method: str
    intervals: tuple[RuleInterval, ...] = ()
    region: CellBox | None = field(default=None)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that change."""
        return tuple(c.feature for c in self.conditions)

    def __str__(self) -> str:
        limits = " and ".join(str(c) for c in self.conditions if not c.vacuous)
        others = ", ".join(c.feature for c in self.conditions if c.vacuous)
        parts = [part for part in (limits, others and f"any {others}") if part]
        return f"{', '.join(parts)}, with probability {self.precision:.2f}"

    def __repr__(self) -> str:
        return f"<Rule {self}>"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {
            "words": str(self),
            "conditions": [c.to_dict() for c in self.conditions],
            "precision": self.precision,
            "coverage": self.coverage,
            "support": self.support,
            "status": self.status,
            "bound": plain(self.bound),
            "method": self.method,
        }

    def holds(self, coded: Any) -> BoolArray:
        """Which coded rows, (n, n_features), meet the conditions."""
        rows = np.atleast_2d(coded)
        return np.logical_and.reduce([t.holds(rows[:, t.feature]) for t in self.intervals])


@dataclass(frozen=True)
class ChangeSet:
    """A set of features whose change gives the target, and its CDP.

    Attributes
    ----------
    features : tuple of str
    probability : float
    """

    features: tuple[str, ...]
    probability: float

    def __str__(self) -> str:
        return f"{', '.join(self.features)} ({self.probability:.2f})"


@dataclass(frozen=True, eq=False, repr=False)
class RuleSet(Sequence[Rule]):
    """All rules of one row (local) or of one region (regional): the one that covers most first, or the most probable.

    Attributes
    ----------
    row : label
        Index label of the row, or None.
    kind : {"local", "regional"}
    predicted : object
        Answer for the row; None for a region.
    target : str
        What was wanted, in words.
    held : tuple of Condition
        Of a region: its conditions.
    original : dict
        Values of the row, by feature; empty for a region.
    features : tuple of str
        The features that change: a minimal divergent explanation, or the most probable set where none reaches the
        level.
    probability : float
        CDP of these features.
    divergent : bool
        Whether the probability reaches the level that was asked for.
    status : {"found", "none", "already"}
        ``"none"``: no rule reaches the precision that was asked for. ``"already"``: the row has the target.
    rules : tuple of Rule
    seconds : float
    others : tuple of ChangeSet
        The other minimal divergent explanations, the most probable first, where they were asked for.
    """

    row: Any
    kind: str
    predicted: Any
    target: str
    held: tuple[Condition, ...] = ()
    original: dict[str, Any] = field(default_factory=dict)
    features: tuple[str, ...] = ()
    probability: float = 0.0
    divergent: bool = False
    status: str = "none"
    rules: tuple[Rule, ...] = ()
    seconds: float = 0.0
    others: tuple[ChangeSet, ...] = ()

    @overload
    def __getitem__(self, k: int) -> Rule: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[Rule]: ...
    def __getitem__(self, k: int | slice) -> Rule | Sequence[Rule]:
        return self.rules[k]

    def __len__(self) -> int:
        return len(self.rules)

    def __repr__(self) -> str:
        return f"<RuleSet {self.kind} row={self.row!r} status={self.status!r} rules={len(self.rules)}>"

    def __str__(self) -> str:
        who = f"row {self.row}" if self.kind == "local" else f"where {' and '.join(map(str, self.held)) or 'anything'}"
        if self.status == "already":
            return f"{who}: already {self.target}, nothing has to change"
        arrow = f"{plain(self.predicted)} → {self.target}" if self.predicted is not None else f"→ {self.target}"
        level = "" if self.divergent else "; no features reach the level that was asked for"
        chance = f"other values of these, as the data have them, give it with probability {self.probability:.2f}{level}"
        head = f"{who}: {arrow} by {', '.join(self.features)}: {chance}"
        if self.others:
            head += f"\n  or by {'; or by '.join(map(str, self.others))}"
        if not self.rules:
            return f"{head}\n  no rule on these features that is precise enough was found"
        return "\n".join(
            [
                head,
                *(f"  {rule}; {_share(rule.coverage)} of those values lie in it{_proof(rule)}" for rule in self.rules),
            ]
        )

    def _repr_html_(self) -> str:
        return _fragment(self)

    def to_frame(self) -> pd.DataFrame:
        """One row per condition of each rule."""
        rows = [
            (self.row, k, c.feature, c.lower, c.upper, c.open_below, c.levels, r.precision, r.coverage, r.support)
            for k, r in enumerate(self.rules)
            for c in r.conditions
        ]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {
            "row": plain(self.row),
            "kind": self.kind,
            "predicted": plain(self.predicted),
            "target": self.target,
            "held": [c.to_dict() for c in self.held],
            "original": plain(self.original),
            "features": list(self.features),
            "probability": self.probability,
            "divergent": self.divergent,
            "others": [{"features": list(s.features), "probability": s.probability} for s in self.others],
            "status": self.status,
            "rules": [r.to_dict() for r in self.rules],
            "seconds": self.seconds,
        }

    def to_json(self, path: str | Path | None = None, *, indent: int | None = 2) -> str:
        """Strict JSON of `to_dict`; written to `path` if one is given.

        Parameters
        ----------
        path : str or Path, optional
        indent : int or None
            As of `json.dumps`.
        """
        return json_records.dumps({"schema": SCHEMA, **self.to_dict()}, path, indent)

    def plot(self, ax: Any = None, rule: int = 0) -> Any:
        """Intervals of one rule, each on the range of its feature in the data, with the row's own value.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        rule : int
            Which of the rules.

        Returns
        -------
        matplotlib Axes
        """
        if not self.rules:
            return plot_conditions((), "0 rules", {}, ax)
        shown = self.rules[rule]
        title = f"→ {self.target} with probability {shown.precision:.2f}"
        return plot_conditions(shown.conditions, title, self.original, ax)


class RuleSets(Sequence[RuleSet]):
    """Rule sets of several rows, or regions. Immutable.

    Parameters
    ----------
    sets : iterable of RuleSet
    interrupted : bool
        Whether Ctrl-C came before they were complete.
    """

    def __init__(self, sets: Iterable[RuleSet] = (), *, interrupted: bool = False) -> None:
        self._sets = tuple(sets)
        self.interrupted = interrupted

    @overload
    def __getitem__(self, k: int) -> RuleSet: ...
    @overload
    def __getitem__(self, k: slice) -> RuleSets: ...
    def __getitem__(self, k: int | slice) -> RuleSet | RuleSets:
        return RuleSets(self._sets[k]) if isinstance(k, slice) else self._sets[k]

    def __len__(self) -> int:
        return len(self._sets)

    def __repr__(self) -> str:
        return f"<RuleSets: {list(self._sets)}>"

    def to_frame(self) -> pd.DataFrame:
        """One row per condition of each rule of each row."""
        frames = [own.to_frame() for own in self if own.rules]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(COLUMNS))

    def to_json(self, path: str | Path | None = None, *, indent: int | None = 2) -> str:
        """Strict JSON; written to `path` if one is given.

        Parameters
        ----------
        path : str or Path, optional
        indent : int or None
            As of `json.dumps`.
        """
        return json_records.dumps({"schema": SCHEMA, "rule_sets": [own.to_dict() for own in self]}, path, indent)

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        more = f"<p>… and {len(self) - MOST} more; to_frame() lists all.</p>" if len(self) > MOST else ""
        return "\n".join(map(_fragment, self[:MOST])) + more


def _fragment(own: RuleSet) -> str:
    """HTML of the rules of a row for a notebook."""
    title, *words = str(own).split("\n")
    rows = [(str(rule), _share(rule.coverage), str(rule.support), _proof(rule).lstrip(",; ")) for rule in own.rules]
    notes = [] if own.rules else [text.strip() for text in words]
    return table_fragment(title, ("rule", "covers", "rows of the data", "proof"), rows, notes)


def _share(part: float) -> str:
    return f"{plain_number(100 * part, 2)} %"


def _proof(rule: Rule) -> str:
    if rule.status == "optimal":
        return ", more than in any other such rule"
    if np.isfinite(rule.bound):
        return f"; the search was cut short, and whether another rule holds more, {_share(rule.bound)} at most, is open"
    return "; another rule may hold more"


@dataclass(frozen=True, eq=False)
class Subgroup:
    """A region of rows that mostly lack the target.

    Attributes
    ----------
    conditions : tuple of Condition
        Of the features that the region limits.
    share : float
        Share of its training rows that lack the target.
    support : int
        Training rows in it.
    region : CellBox
    """

    conditions: tuple[Condition, ...]
    share: float
    support: int
    region: CellBox

    def __str__(self) -> str:
        return " and ".join(map(str, self.conditions)) or "all rows"


@dataclass(frozen=True, eq=False)
class RulePoint:
    """A point inside a rule, as a change of one row.

    Attributes
    ----------
    point : table (1, n_columns)
        In the user's columns, words and dtypes: of the kind of the row, or else of the data.
    decided : object
        The explained model's answer; None without a model.
    reached : bool or None
        Whether that is the target.
    changed : tuple of str
        Features whose value differs from the row's.
    cost : float
        l1 cost, each change divided by the feature's scale.
    score : float
        Isolation-forest score; the higher, the more plausible.
    inlier : bool
    depth, bound : float
        Average depth in the isolation forest, and what no point of the rule exceeds (inf: not proven).
    """

    point: Any
    decided: Any
    reached: bool | None
    changed: tuple[str, ...]
    cost: float
    score: float
    inlier: bool
    depth: float
    bound: float

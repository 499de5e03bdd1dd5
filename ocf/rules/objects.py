"""What a user gets of rules: conditions in units and words, rules, and all rules of one row or region."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np
import pandas as pd

from ocf.arrays import BoolArray
from ocf.features.feature import Feature, has_grid
from ocf.regional.forest import CellBox, RegionalForest
from ocf.rules.points import RuleInterval
from ocf.support import json_records
from ocf.support.json_dtypes import plain
from ocf.support.optional import optional
from ocf.support.pages import table_fragment
from ocf.support.wording import plain_number, word

#: Schema of the JSON of rules.
SCHEMA = "ocf.rules/1"

#: Rows whose rules a notebook shows.
MOST = 20


@dataclass(frozen=True)
class Condition:
    """What a rule or a region asks of one feature.

    Attributes
    ----------
    feature : str
    lower, upper : float, int, date, duration or None
        Ends of numeric and integer features, in the user's units; None where nothing limits them. The upper end is
        admitted.
    open_below : bool
        Whether values must lie *above* `lower`; features with a grid have their smallest admitted value there.
    levels : tuple or None
        Admitted levels of the other features.
    known : tuple
        All their levels, in order.
    ordered : bool
        Whether the levels have an order and the admitted ones follow each other in it.
    span : tuple of two or None
        Lowest and highest value of a numeric feature in the data.
    """

    feature: str
    lower: Any = None
    upper: Any = None
    open_below: bool = False
    levels: tuple[Any, ...] | None = None
    known: tuple[Any, ...] = ()
    ordered: bool = False
    span: tuple[Any, Any] | None = None

    @classmethod
    def of(cls, feature: Feature, interval: RuleInterval) -> Condition:
        """Condition in the units and words of a feature.

        Parameters
        ----------
        feature : Feature
        interval : RuleInterval
            Coded.
        """
        if feature.discrete:
            codes = np.arange(len(feature.levels), dtype=np.float64)
            held = np.flatnonzero(interval.holds(codes)).tolist()
            return cls(
                feature.name,
                levels=tuple(feature.levels[c] for c in held),
                known=feature.levels,
                ordered=feature.kind == "ordinal" and held == list(range(held[0], held[-1] + 1)),
            )
        lower, upper, open_below = _ends(feature, interval)

        def end(value: float) -> Any:
            return feature.label(value) if feature.is_time else int(value) if feature.kind == "integer" else value

        return cls(
            feature.name,
            lower=end(lower) if np.isfinite(lower) else None,
            upper=end(upper) if np.isfinite(upper) else None,
            open_below=open_below,
            span=(end(feature.lower), end(feature.upper)) if feature.is_time else (feature.lower, feature.upper),
        )

    @property
    def others(self) -> tuple[Any, ...]:
        """Levels that are not admitted."""
        return tuple(level for level in self.known if level not in (self.levels or ()))

    @property
    def vacuous(self) -> bool:
        """Whether every value in the data meets it."""
        return self.lower is None and self.upper is None and not self.others

    def __str__(self) -> str:
        if self.levels is not None:
            return self._level_words(self.levels)
        low, high = (None if v is None else word(v) for v in (self.lower, self.upper))
        if low is None and high is None:
            return f"any {self.feature}"
        if low is None:
            return f"{self.feature} ≤ {high}"
        if high is None:
            return f"{self.feature} {'>' if self.open_below else '≥'} {low}"
        if low == high and not self.open_below:
            return f"{self.feature} = {low}"
        return f"{self.feature} in {'(' if self.open_below else '['}{low}, {high}]"

    def _level_words(self, levels: tuple[Any, ...]) -> str:
        if self.vacuous:
            return f"any {self.feature}"
        if len(levels) == 1:
            return f"{self.feature} = {levels[0]}"
        if self.ordered and len(levels) > 2:
            return f"{self.feature} from {levels[0]} to {levels[-1]}"
        if len(self.others) == 1 and len(levels) > 2:
            return f"{self.feature} ≠ {self.others[0]}"
        return f"{self.feature} in {{{', '.join(map(str, levels))}}}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        out: dict[str, Any] = {"feature": self.feature, "words": str(self)}
        if self.levels is not None:
            return out | {"levels": plain(self.levels)}
        return out | {"lower": plain(self.lower), "upper": plain(self.upper), "open_below": self.open_below}


def _ends(feature: Feature, interval: RuleInterval) -> tuple[float, float, bool]:
    """Ends of what an interval admits of numbers, and whether the lower one is open.

    Rows may lie beyond the bounds, so that only an end that is none is left out. Where the interval ends at a special
    value beyond the bounds, which is no number among others, the bound is the end.
    """
    grid = has_grid(feature)
    lower = float(feature.above(interval.lower)) if grid else interval.lower
    upper = float(feature.at_most(interval.upper)) if grid else interval.upper
    codes = feature.special_values[np.isfinite(feature.special_values)]
    if (codes > interval.upper).any():
        upper = min(upper, feature.upper)
    if (codes <= interval.lower).any() and lower < feature.lower:
        return feature.lower, upper, False
    if feature.permitted is not None and not grid and lower == np.nextafter(float(feature.permitted[0]), -np.inf):
        return float(feature.permitted[0]), upper, not np.isfinite(lower)
    return lower, upper, not grid


def intervals_of(forest: RegionalForest, region: CellBox, features: Iterable[int]) -> tuple[RuleInterval, ...]:
    """Coded values of a region on some features.

    Parameters
    ----------
    forest : RegionalForest
    region : CellBox
    features : iterable of int
    """
    part, out = forest.partition, []
    for i in features:
        at = np.flatnonzero(forest.cells_of(region, i))
        if part.ordered[i]:
            first = part.offsets[i]
            out.append(RuleInterval(i, float(part.lower[first + at[0]]), float(part.upper[first + at[-1]])))
        else:
            out.append(RuleInterval(i, levels=tuple(at.tolist())))
    return tuple(out)


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
        columns = [
            "row",
            "rule",
            "feature",
            "lower",
            "upper",
            "open_below",
            "levels",
            "precision",
            "coverage",
            "support",
        ]
        rows = [
            (self.row, k, c.feature, c.lower, c.upper, c.open_below, c.levels, r.precision, r.coverage, r.support)
            for k, r in enumerate(self.rules)
            for c in r.conditions
        ]
        return pd.DataFrame(rows, columns=columns)

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
        return _plot(self, ax, rule)


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
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

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


def _plot(own: RuleSet, ax: Any, which: int) -> Any:
    plt = optional("matplotlib.pyplot", "plot", "RuleSet.plot")
    shown = own.rules[which].conditions if own.rules else ()
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 1.3 + 0.5 * max(len(shown), 1)), layout="constrained")
    title = (
        f"{len(own.rules)} rules" if not shown else f"→ {own.target} with probability {own.rules[which].precision:.2f}"
    )
    ax.set_title(title.replace("$", r"\$"), loc="left", fontsize="medium")
    ax.set_axis_off() if not shown else ax.spines[["top", "right", "left", "bottom"]].set_visible(False)
    for place, condition in enumerate(reversed(shown)):
        _plot_condition(ax, place, condition, own.original.get(condition.feature))
    ax.set_yticks(range(len(shown)), [c.feature.replace("$", r"\$") for c in reversed(shown)])
    ax.tick_params(axis="y", length=0)
    ax.set_xticks([])
    ax.set_xlim(-0.02, 1.7)  # the words stand to the right of the bars
    ax.set_ylim(-0.6, max(len(shown), 1) - 0.4)
    return ax


def _plot_condition(ax: Any, place: int, condition: Condition, value: Any) -> None:
    """Grey: the feature's range or levels. Blue: what the rule admits. Red: the row's own value."""
    ax.barh(place, 1.0, height=0.25, color="#dddddd")
    for left, right in _admitted(condition):
        ax.barh(place, max(right - left, 0.004), left=left, height=0.25, color="#4477aa")
    at = _place(condition, value)
    if at is not None:
        ax.plot(at, place, "o", color="#ee6677", markersize=6)
    words = str(condition) if value is None else f"{condition}  (now {word(value)})"
    ax.annotate(words.replace("$", r"\$"), (1.03, place), va="center", fontsize="small")


def _admitted(condition: Condition) -> list[tuple[float, float]]:
    """What a condition admits, as parts of a bar from 0 to 1."""
    if condition.levels is not None:
        n = len(condition.known)
        return [(k / n, (k + 1) / n) for k, level in enumerate(condition.known) if level in condition.levels]
    ends = (
        0.0 if condition.lower is None else _place(condition, condition.lower),
        1.0 if condition.upper is None else _place(condition, condition.upper),
    )
    return [(left, right) for left, right in [ends] if left is not None and right is not None]


def _place(condition: Condition, value: Any) -> float | None:
    """Where a value lies on a bar from 0 to 1; None for no value."""
    if value is None or (condition.levels is not None and value not in condition.known):
        return None
    if condition.levels is not None:
        return (condition.known.index(value) + 0.5) / len(condition.known)
    assert condition.span is not None
    low, high = condition.span
    return float(np.clip((value - low) / ((high - low) or 1.0), 0.0, 1.0))


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

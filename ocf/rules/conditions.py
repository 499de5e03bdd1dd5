"""What a rule or a region asks of features, in the user's units and words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ocf.features.feature import Feature, has_grid
from ocf.regional.forest import CellBox, RegionalForest
from ocf.rules.points import RuleInterval
from ocf.support.json_dtypes import plain
from ocf.support.wording import word


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

"""The cheapest point in a safe rule, for one probability after another: what more safety costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ocf.arrays import FloatArray
from ocf.errors import ProblemError
from ocf.features.space import FeatureSpace
from ocf.problem.costs import Cost
from ocf.rules.objects import Rule
from ocf.rules.points import cheapest_point

#: Probabilities for which a cheapest point is looked for by default.
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True, eq=False)
class SafePoint:
    """The cheapest point of all rules that reach a probability.

    Attributes
    ----------
    level : float
        Probability that the rule had to reach.
    rule : Rule
    point : (n_features,) float64
        Coded.
    cost : float
    """

    level: float
    rule: Rule
    point: FloatArray
    cost: float


def safe_points(
    space: FeatureSpace, origin: FloatArray, rules: Iterable[tuple[float, Rule]], levels: Iterable[float], cost: Cost
) -> list[SafePoint]:
    """The cheapest point for each level that some rule reaches, ascending; a safer point is never the cheaper one.

    Parameters
    ----------
    space : FeatureSpace
    origin : (n_features,) float64
        Coded.
    rules : iterable of (float, Rule)
        Rules, each with the level at which it was found.
    levels : iterable of float
    cost : Cost
        Separable.
    """
    found = []
    for level, rule in rules:
        point = cheapest_point(space, origin, rule.intervals, cost)
        found.append(SafePoint(level, rule, point, cost.total(space, origin, point)))
    out = []
    for level in sorted(levels):
        safe = [own for own in found if own.level >= level]
        if safe:
            best = min(safe, key=lambda own: (own.cost, -own.rule.precision))
            out.append(SafePoint(level, best.rule, best.point, best.cost))
    return out


def checked_levels(levels: Iterable[float]) -> tuple[float, ...]:
    """Levels in order, each once.

    Raises
    ------
    ProblemError
        One is no probability, or there is none.
    """
    try:
        given = tuple(sorted({float(level) for level in levels}))
    except (TypeError, ValueError):
        raise ProblemError(f"levels are a list of probabilities, such as [0.5, 0.9], not {levels!r}") from None
    if not given or not all(0 < level <= 1 for level in given):
        raise ProblemError(f"levels are probabilities above 0 and at most 1, not {np.array(given).tolist()!r}")
    return given

"""The cheapest counterfactual by trying everything, with the user's own model as the only judge.

Nothing here uses ocf's costs, grids, cells' values, formulations or solvers. Admissible values are enumerated or
rounded by code of its own, costs are added up term by term, and every point goes through the model's ``predict`` as a
table in the user's columns and dtypes. The one thing taken over from ocf is where the model's splits lie, which
`assert_constant_within_cells` puts to the test.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace
from ocf.problem.costs import Cost

#: Table in the user's columns -> what the user's model predicts, one answer or one row of probabilities each.
Predict = Callable[[pd.DataFrame], np.ndarray]


@dataclass(frozen=True)
class Question:
    """What is asked, in terms that need no solver.

    Attributes
    ----------
    predict : callable
        The user's model, on tables in the user's columns.
    wants : callable
        Which predictions are wanted.
    space : FeatureSpace
    origin : (n_features,) float64
        Coded; NaN where missing.
    cost : Cost
    cuts : sequence of (n,) float64, one per feature
        Where the model may change its mind: between a cut and the next number.
    dtypes : Series
        Of the user's columns.
    extra_rules : list of callables
        Constraints on whole points: coded rows (n, n_features) -> (n,) bool.
    extra_costs : list of callables
        Costs of whole points, constant within cells: coded rows (n, n_features) -> (n,) float64.
    """

    predict: Predict
    wants: Callable[[np.ndarray], np.ndarray]
    space: FeatureSpace
    origin: np.ndarray
    cost: Cost
    cuts: Sequence[np.ndarray]
    dtypes: pd.Series
    extra_rules: list[Callable[[np.ndarray], np.ndarray]] = field(default_factory=list)
    extra_costs: list[Callable[[np.ndarray], np.ndarray]] = field(default_factory=list)


@dataclass(frozen=True)
class Optimum:
    """The cheapest point; cost inf and no point when there is none."""

    cost: float
    point: np.ndarray | None
    tried: int


# -- admissible values -----------------------------------------------------------------------------------------


def range_of(feature: Feature, origin: float) -> tuple[float, float]:
    """Where a numeric or integer feature of a row may go."""
    low, high = min(feature.lower, origin), max(feature.upper, origin)
    if feature.permitted is not None:
        low, high = max(low, feature.permitted[0]), min(high, feature.permitted[1])
    if feature.action in ("increasing", "fixed"):
        low = max(low, origin)
    if feature.action in ("decreasing", "fixed"):
        high = min(high, origin)
    return low, high


def listed_values(feature: Feature, origin: float) -> np.ndarray | None:
    """All admissible coded values of a feature with finitely many; None for continuous ones."""
    if feature.discrete:
        codes = [c for c, level in enumerate(feature.levels) if feature.permitted is None or level in feature.permitted]
        if feature.action in ("increasing", "fixed"):
            codes = [c for c in codes if c >= origin]
        if feature.action in ("decreasing", "fixed"):
            codes = [c for c in codes if c <= origin]
        return np.array(codes, float)
    low, high = range_of(feature, origin)
    if feature.kind == "integer":
        values = [float(k) for k in range(math.ceil(low), math.floor(high) + 1)] if low <= high else []
    elif feature.step is not None:
        values = _multiples(feature, low, high)
    else:
        return None
    # a row's own value may stay even when it is no multiple
    return np.array(sorted({*values, origin} if low <= origin <= high else set(values)))


def _multiples(feature: Feature, low: float, high: float) -> list[float]:
    """Multiples of the step as the decimals that a user would write, in the column's dtype."""
    step = Decimal(repr(feature.step))
    first, last = math.floor(Decimal(low) / step) - 1, math.ceil(Decimal(high) / step) + 1
    values = [_in_dtype(float(step * k), feature) for k in range(first, last + 1)]
    return [v for v in values if low <= v <= high]


def _in_dtype(value: float, feature: Feature) -> float:
    return float(np.float32(value)) if feature.dtype == "float32" else value


def continuous_values(feature: Feature, origin: float, cuts: np.ndarray) -> np.ndarray:
    """Numbers on both sides of every cut, the ends of the range, and the origin."""
    low, high = range_of(feature, origin)
    wanted = {origin}
    for value in (*cuts, low, high):
        if math.isfinite(value):
            wanted |= set(_neighbours(float(value), narrow=feature.dtype == "float32"))
    return np.array(sorted(v for v in wanted if low <= v <= high))


def _neighbours(value: float, *, narrow: bool) -> list[float]:
    """Numbers of the dtype at and around a value."""
    number = np.float32(value) if narrow else np.float64(value)
    inf = number.dtype.type(np.inf)
    around = [number, np.nextafter(number, inf), np.nextafter(number, -inf)]
    return [float(v) for v in around if np.isfinite(v)]


# -- costs -----------------------------------------------------------------------------------------------------


def cost_of_change(feature: Feature, cost: Cost, origin: float, value: float) -> float:
    """What it costs to move one feature, written out."""
    if value == origin:
        return 0.0
    if feature.kind == "categorical":
        return feature.weight_up * (cost.l0 + cost.l1 + cost.l2)
    weight = feature.weight_up if value > origin else feature.weight_down
    if feature.kind == "binary":
        return weight * (cost.l0 + cost.l1 + cost.l2)
    if feature.kind == "ordinal":
        numbers = all(isinstance(level, int | float) for level in feature.levels)
        here, there = (feature.levels[int(c)] if numbers else c for c in (origin, value))
    else:
        here, there = origin, value
    distance = abs(there - here) / feature.scale
    return weight * (cost.l0 + cost.l1 * distance + cost.l2 * distance**2)


def cost_of_point(question: Question, point: np.ndarray) -> float:
    """Cost of a whole coded row."""
    extra = sum(float(cost(point[None, :])[0]) for cost in question.extra_costs)
    return extra + sum(
        cost_of_change(f, question.cost, o, v)
        for f, o, v in zip(question.space.features, question.origin, point, strict=True)
        if not math.isnan(o)
    )


# -- tables ----------------------------------------------------------------------------------------------------


def table_of(question: Question, points: np.ndarray) -> pd.DataFrame:
    """Table of coded rows in the user's columns, words and dtypes."""
    out: dict[str, Any] = {}
    for feature, codes in zip(question.space.features, points.T, strict=True):
        if len(feature.columns) > 1 or feature.base:
            for k, column in enumerate(feature.columns):
                out[column] = codes == k + int(feature.base)
        elif feature.discrete:
            words = [None if math.isnan(c) else feature.levels[int(c)] for c in codes]
            out[feature.name] = pd.Series(words, dtype=object)
        else:
            out[feature.name] = codes
    table = pd.DataFrame(out)[list(question.space.columns)]
    for column, dtype in question.dtypes.items():
        if not (dtype.kind in "iu" and (table[column].astype(float) % 1 != 0).any()):
            table[column] = table[column].astype(dtype)
    return table


def gets_target(question: Question, points: np.ndarray, batch: int = 4096) -> np.ndarray:
    """Whether the user's model gives the target to each coded row."""
    parts = [points[k : k + batch] for k in range(0, len(points), batch)]
    return np.concatenate([question.wants(question.predict(table_of(question, part))) for part in parts])


# -- search ----------------------------------------------------------------------------------------------------


def cell_choices(question: Question) -> list[tuple[np.ndarray, np.ndarray]]:
    """Per feature the cheapest admissible value of each of its cells, and the costs."""
    out = []
    for feature, origin, cuts in zip(question.space.features, question.origin, question.cuts, strict=True):
        if math.isnan(origin):
            out.append((np.array([np.nan]), np.zeros(1)))
            continue
        values = listed_values(feature, origin)
        if values is None:
            values = continuous_values(feature, origin, cuts)
        best: dict[int, tuple[float, float]] = {}
        for value in values.tolist():
            cell = int(np.sum(cuts < value))  # (cut before, cut]
            choice = (cost_of_change(feature, question.cost, origin, value), value)
            best[cell] = min(best.get(cell, choice), choice)
        costs, chosen = zip(*best.values(), strict=True) if best else ((), ())
        out.append((np.array(chosen, float), np.array(costs, float)))
    return out


def n_products(question: Question) -> int:
    """How many points `search` would try."""
    return math.prod(len(values) for values, _ in cell_choices(question))


def search(question: Question) -> Optimum:
    """Try the cheapest admissible point of every product of cells, cheapest first."""
    choices = cell_choices(question)
    sizes = [len(values) for values, _ in choices]
    if math.prod(sizes) == 0:
        return Optimum(math.inf, None, 0)
    index = np.array(list(itertools.product(*map(range, sizes))))
    points = np.column_stack([values[index[:, i]] for i, (values, _) in enumerate(choices)])
    costs = np.sum([costs[index[:, i]] for i, (_, costs) in enumerate(choices)], axis=0)
    for extra in question.extra_costs:
        costs = costs + extra(points)
    allowed = np.ones(len(points), bool)
    for rule in question.extra_rules:
        allowed &= rule(points)
    order = np.flatnonzero(allowed)[np.argsort(costs[allowed], kind="stable")]
    for start in range(0, len(order), 4096):
        part = order[start : start + 4096]
        found = np.flatnonzero(gets_target(question, points[part]))
        if len(found):
            best = part[found[0]]
            return Optimum(float(costs[best]), points[best], start + len(part))
    return Optimum(math.inf, None, len(order))


# -- checks of the search itself --------------------------------------------------------------------------------


def random_points(question: Question, rng: np.random.Generator, n: int) -> np.ndarray:
    """Random admissible coded rows; none when some feature has no admissible value."""
    points = np.empty((n, len(question.space)))
    for i, (feature, origin, cuts) in enumerate(
        zip(question.space.features, question.origin, question.cuts, strict=True)
    ):
        if math.isnan(origin):
            points[:, i] = np.nan
            continue
        values = listed_values(feature, origin)
        if values is None:
            low, high = range_of(feature, origin)
            if low > high:
                return points[:0]
            drawn = rng.uniform(low, high, n)
            if feature.dtype == "float32":
                drawn = np.clip(drawn.astype(np.float32), np.float32(low), np.float32(high)).astype(float)
            near = continuous_values(feature, origin, cuts)
            if not len(near):  # no number of the dtype lies in the range
                return points[:0]
            chosen = rng.choice(near, n)
            values = np.where((rng.random(n) < 0.5) & (low <= drawn) & (drawn <= high), drawn, chosen)
            points[:, i] = values
        elif len(values):
            points[:, i] = rng.choice(values, n)
        else:
            return points[:0]
        if not math.isnan(origin) and is_admissible(feature, origin, origin):
            stays = rng.random(n) < 0.3
            points[stays, i] = origin
    return points


def is_admissible(feature: Feature, origin: float, value: float) -> bool:
    """Whether a feature may take a coded value."""
    values = listed_values(feature, origin)
    if values is not None:
        return bool(np.isin(value, values))
    low, high = range_of(feature, origin)
    return low <= value <= high and (value == origin or value == _in_dtype(value, feature))


def assert_nothing_cheaper(question: Question, claimed: float, rng: np.random.Generator, n: int = 200) -> None:
    """Random admissible points with the target must not be cheaper than the claimed optimum."""
    points = random_points(question, rng, n)
    if not len(points):
        return
    for rule in question.extra_rules:
        points = points[rule(points)]
        if not len(points):
            return
    for point in points[gets_target(question, points)]:
        cost = cost_of_point(question, point)
        assert cost >= claimed - 1e-9 * max(abs(claimed), 1e-9), f"{point} gets the target for {cost} < {claimed}"


def assert_constant_within_cells(question: Question, rng: np.random.Generator, n: int = 100) -> None:
    """Two points of the same cells must get the same prediction."""
    points = random_points(question, rng, n)
    if not len(points):
        return
    twins = points.copy()
    for i, (feature, origin, cuts) in enumerate(
        zip(question.space.features, question.origin, question.cuts, strict=True)
    ):
        if math.isnan(origin):
            continue
        values = listed_values(feature, origin)
        pool = points[:, i] if values is None else values
        cells = np.searchsorted(cuts, pool, side="left")
        for row, cell in enumerate(np.searchsorted(cuts, points[:, i], side="left")):
            twins[row, i] = rng.choice(pool[cells == cell])
    one, other = (question.predict(table_of(question, part)) for part in (points, twins))
    differ = np.flatnonzero((one != other).reshape(len(one), -1).any(axis=1))
    assert not len(differ), f"{points[differ[0]]} and {twins[differ[0]]} lie in the same cells, but not to the model"

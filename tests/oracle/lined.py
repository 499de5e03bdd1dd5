"""Stacks beside the table: in each box of the members every score of the final model is a line, and a change an LP."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from scipy.special import logsumexp, softmax

NUMBERS = ["a", "b"]

#: By how much a point of an LP may miss a curve, and the tolerances that are needed for that.
CLOSE, TIGHT = 1e-8, {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def table() -> tuple[pd.DataFrame, np.ndarray]:
    """Two numbers and a whole one, and what labels and values are made of."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame(
        {"a": rng.normal(size=80).round(1), "b": rng.normal(size=80).round(2), "c": rng.integers(0, 3, 80)}
    )
    return x, (x["a"] + x["b"] * (x["c"] - 1) + rng.normal(size=80) / 3).to_numpy()


def cuts(members: Sequence[Any], column: int) -> list[float]:
    """Thresholds of a column in the trees of members."""
    trees = [tree.tree_ for member in members for tree in np.ravel(getattr(member, "estimators_", member))]
    return sorted({float(t) for tree in trees for t in tree.threshold[tree.feature == column]})


@dataclass(frozen=True)
class Box:
    """Numbers between ends, and the whole number; scores are ``constants + slopes @ numbers``."""

    low: np.ndarray
    high: np.ndarray
    c: int
    constants: np.ndarray
    slopes: np.ndarray

    def scores(self, point: np.ndarray) -> np.ndarray:
        """All scores at some numbers."""
        return np.asarray(self.constants + self.slopes @ point)

    def nearest(self, row: pd.Series, scale: pd.Series, at_least: np.ndarray, need: np.ndarray) -> Any:
        """The cheapest numbers by l1 with ``at_least @ numbers >= need``, and their cost; None where there are none."""
        origin, eye = row[NUMBERS].to_numpy(float), np.eye(len(NUMBERS))
        rates = np.array([1 / scale[name] for name in NUMBERS])
        # the numbers' rises, then their falls
        sides = np.vstack([np.hstack([eye, -eye]), np.hstack([-eye, eye]), np.hstack([-at_least, at_least])])
        ends = np.r_[self.high - origin, origin - self.low, at_least @ origin - need]
        found = linprog(np.r_[rates, rates], sides, ends, bounds=(0, None), options=TIGHT)
        if found.status != 0:
            return None
        moves = found.x.reshape(2, -1)
        return origin + moves[0] - moves[1], float(found.fun) + abs(row["c"] - self.c) / scale["c"]


def boxes(
    members: Sequence[Any],
    slopes: np.ndarray,
    ask: Callable[[Any], Any],
    x: pd.DataFrame,
    between: Sequence[Sequence[float]] | None = None,
) -> Iterator[Box]:
    """All boxes of the trees of members; `slopes` of all three columns in each score that `ask` gives.

    Elsewhere than at the thresholds of members the numbers may be cut by those of `between`.
    """
    inner = [cuts(members, j) for j in range(len(NUMBERS))] if between is None else between
    ends = [np.sort(np.r_[x[name].min(), own, x[name].max()]) for name, own in zip(NUMBERS, inner, strict=True)]
    made = list(itertools.product(*(itertools.pairwise(e) for e in ends), range(3)))
    middles = pd.DataFrame([[(a[0] + a[1]) / 2, (b[0] + b[1]) / 2, c] for a, b, c in made], columns=[*NUMBERS, "c"])
    shown = np.asarray(ask(middles.astype(x.dtypes)), float).reshape(len(made), -1)
    levels = shown - middles[NUMBERS].to_numpy() @ slopes[:, :2].T
    for (a, b, c), constants in zip(made, levels, strict=True):
        yield Box(np.array([a[0], b[0]]), np.array([a[1], b[1]]), c, constants, slopes[:, :2])


def least_class(stack: Any, x: pd.DataFrame, row: pd.Series, wanted: Sequence[int]) -> float:
    """Cost of the cheapest change by which one of some classes scores as much as any other."""
    scale, best = x.max() - x.min(), math.inf
    slopes = stack.final_estimator_.coef_[:, -3:]
    others = [j for j in range(len(slopes)) if j not in wanted]
    for box in boxes(stack.estimators_, slopes, stack.decision_function, x):
        for k in wanted:
            more = box.slopes[k] - box.slopes[others]
            found = box.nearest(row, scale, more, box.constants[others] - box.constants[k])
            best = best if found is None else min(best, found[1])
    return best


def least_share(stack: Any, x: pd.DataFrame, row: pd.Series, k: int, probability: float) -> float:
    """Cost of the cheapest change to a softmax of class k of so much: in each box a convex program."""
    scale, best, odds = x.max() - x.min(), math.inf, math.log(probability / (1 - probability))
    slopes = stack.final_estimator_.coef_[:, -3:]
    others = [j for j in range(len(slopes)) if j != k]
    for box in boxes(stack.estimators_, slopes, stack.decision_function, x):
        tangents, needs = np.zeros((0, 2)), np.zeros(0)
        for _ in range(100):
            found = box.nearest(row, scale, tangents, needs)
            if found is None or found[1] >= best:
                break
            point, cost = found
            scores = box.scores(point)
            over = scores[k] - logsumexp(scores[others]) - odds
            if over >= -CLOSE:
                best = min(best, cost)
                break
            slope = box.slopes[k] - softmax(scores[others]) @ box.slopes[others]
            tangents, needs = np.vstack([tangents, slope]), np.append(needs, slope @ point - over)
    return best


def least_score(
    stack: Any, others: Sequence[Any], x: pd.DataFrame, row: pd.Series, need: Callable[[np.ndarray], float], up: bool
) -> float:
    """Cost of the cheapest change by which the score of a stack of two classes is at least, or at most, a number.

    The number may depend on what other members show of the second class, `need` of which tells it.
    """
    scale, best, sign = x.max() - x.min(), math.inf, 1.0 if up else -1.0
    slopes = np.vstack([stack.final_estimator_.coef_[:, -3:], np.zeros((len(others), 3))])

    def ask(rows: pd.DataFrame) -> np.ndarray:
        return np.column_stack([stack.decision_function(rows), *[m.predict_proba(rows)[:, 1] for m in others]])

    for box in boxes([*stack.estimators_, *others], slopes, ask, x):
        end = sign * need(box.constants[1:])
        if end < math.inf:
            least = np.array([end - sign * box.constants[0]]) if end > -math.inf else np.zeros(0)
            found = box.nearest(row, scale, sign * box.slopes[: len(least)], least)
            best = best if found is None else min(best, found[1])
    return best

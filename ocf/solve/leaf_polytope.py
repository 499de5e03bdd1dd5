"""The continuous part of a leaf whose integers are fixed: a polytope over the numbers that something couples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.features.feature import grid_unit
from ocf.solve.leaf_answer import LeafTask
from ocf.solve.leaf_domain import RowDomain
from ocf.solve.leaf_model import LeafModel
from ocf.solve.polytope import Polytope


@dataclass(frozen=True, eq=False)
class ContinuousPart:
    """What is left of a leaf once every other feature has its value.

    Attributes
    ----------
    task : LeafTask
    polytope : Polytope
        Over the features `used`.
    used : (n,) int64
        Continuous features that the rows, the relations or the quadratic form touch.
    point : (n_features,) float64
        Coded; the row's own values in the place of those.
    spent : float
        What the other features cost.
    """

    task: LeafTask
    polytope: Polytope
    used: IntArray
    point: FloatArray
    spent: float

    def completed(self, x: FloatArray) -> FloatArray:
        """The whole point with values of the used features."""
        point = self.point.copy()
        point[self.used] = x
        return point


def continuous_part(model: LeafModel, task: LeafTask) -> ContinuousPart:
    """The continuous part of a leaf; features that nothing couples go to their closest values.

    Parameters
    ----------
    model : LeafModel
    task : LeafTask
        With its integer columns fixed.
    """
    domain = model.domain
    point, spent = _fixed_point(domain, task)
    low, high = domain.box_of(task)
    used = _used(model, task)
    h = _sides(model, task, point, used)
    rest = np.setdiff1d(domain.smooth, used)
    point[rest] = np.clip(model.origin[rest], low[rest], high[rest])
    spent += _cost_of(domain, rest, point)
    prices = domain.prices
    polytope = Polytope(
        (task.sign[:, None] * model.planes.weights[task.place])[:, used],
        h,
        low[used],
        high[used],
        model.origin[used],
        prices.a_down[used],
        prices.a_up[used],
        prices.q_down[used],
        prices.q_up[used],
        None if model.form is None else model.form[used][:, used],
        *_relations(model, task, used),
    )
    return ContinuousPart(task, polytope, used, point, spent)


def _fixed_point(domain: RowDomain, task: LeafTask) -> tuple[FloatArray, float]:
    """The point with its listed and grid features set, and what they cost."""
    point, columns = domain.origin.copy(), domain.columns
    spent = 0.0
    for i, own in domain.levels.items():
        chosen = own[task.lower[own].argmax() if task.lower[own].any() else task.upper[own].argmax()]
        point[i] = columns.value[chosen]
        spent += float(columns.linear[chosen])
    for i in domain.grid.tolist():
        own = columns.of(i)
        own = own[columns.role[own] != "moved"]
        steps = float((task.lower[own] * np.sign(columns.unit[own])).sum())
        f = domain.problem.space.features[i]
        unit = grid_unit(f)
        point[i] = domain.origin[i] if steps == 0 else float(f.at_most(domain.origin[i] + (steps + 0.5) * unit))
    return point, spent + _cost_of(domain, domain.grid, point)


def _cost_of(domain: RowDomain, features: IntArray, point: FloatArray) -> float:
    """Separable cost of some numbers of a point."""
    return float(domain.prices.of(features, point[features] - domain.origin[features]).sum())


def _used(model: LeafModel, task: LeafTask) -> IntArray:
    """The continuous features that the rows, the relations or the quadratic form touch."""
    smooth = model.domain.smooth
    touched = model.planes.weights[task.place][:, smooth].any(axis=0)
    if model.form is not None:
        touched |= np.diff(model.form.indptr)[smooth] > 0
    for row, _ in model.relation_rows:
        touched |= np.isin(smooth, model.columns.feature[row != 0])
    return smooth[touched]


def _sides(model: LeafModel, task: LeafTask, point: FloatArray, used: IntArray) -> FloatArray:
    """Upper sides of the hyperplanes over the used features, the others having the values of a point, (m,)."""
    planes, elsewhere = model.planes, np.setdiff1d(np.arange(len(point)), used)
    h = np.zeros(len(task.place))
    for k, (r, s) in enumerate(zip(task.place.tolist(), task.sign.tolist(), strict=True)):
        features, codes, weights = planes.entries(r)
        fixed = np.isin(features, elsewhere)
        values = np.where(codes < 0, point[features], point[features] == codes)[fixed]
        h[k] = task.total[k] - s * float(weights[fixed] @ values) - task.eps
    return h


def _relations(model: LeafModel, task: LeafTask, used: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Relations over the falls and rises of the used features, the rest fixed: (r, n), (r, n) and (r,)."""
    columns = model.columns
    down, up = np.zeros((2, len(model.relation_rows), len(used)))
    k = np.zeros(len(model.relation_rows))
    fixed = np.where(columns.integer, task.lower, 0.0)
    place = {i: c for c, i in enumerate(used.tolist())}
    for r, (row, side) in enumerate(model.relation_rows):
        k[r] = side - float(row[columns.integer] @ fixed[columns.integer])
        for j in np.flatnonzero((row != 0) & ~columns.integer).tolist():
            c = place[int(columns.feature[j])]
            if columns.role[j] in ("up", "delta"):
                up[r, c] = row[j]
            if columns.role[j] in ("down", "delta"):
                down[r, c] = row[j] if columns.role[j] == "down" else -row[j]
    return down, up, k

"""Lower bounds on the cost of a leaf without solving its program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ocf.arrays import FloatArray
from ocf.solve.leaf_answer import Leaves
from ocf.solve.leaf_domain import RowDomain
from ocf.solve.leaf_planes import PathRows, RowPlanes

#: Halvings of the range of a price, given by its logarithm.
BISECTIONS = 40


class CheapBounds:
    """Lower bounds on the leaves of one row: by their boxes, and by one hyperplane of each path at a time.

    Parameters
    ----------
    domain : RowDomain
    planes : RowPlanes
        Over the same columns.
    form : (n_features, n_features) sparse float64 or None
        Quadratic form of the cost.
    """

    def __init__(self, domain: RowDomain, planes: RowPlanes, form: Any) -> None:
        self.domain, self.planes, self.form = domain, planes, form
        self._demanded: dict[float, FloatArray] = {}

    def of_leaf(self, leaf: Leaves, eps: float) -> float:
        """What the leaf's box costs, or one hyperplane of its path with the limits alone, if that is more.

        Parameters
        ----------
        leaf : int or tuple of int
        eps : float
            Margin by which splits must hold, in units of their totals.
        """
        lower, upper = self.domain.bounds(leaf, eps)
        if self.domain.is_empty(lower, upper):
            return np.inf
        rows = self.planes.path_rows(leaf, eps)
        if rows is None:
            return np.inf
        return max(self.domain.box_cost(lower, upper), self._dearest(rows, eps))

    def _dearest(self, rows: PathRows, eps: float) -> float:
        """The most that reaching the side of one of some hyperplanes costs at least."""
        if eps not in self._demanded:
            self._demanded[eps] = self._demands(eps)
        return float(self._demanded[eps][(rows.sign < 0).astype(int), rows.place].max(initial=-np.inf))

    def _demands(self, eps: float) -> FloatArray:
        """Least cost of reaching the left and the right side of each hyperplane within the limits, (2, n_planes)."""
        domain, columns, planes = self.domain, self.domain.columns, self.planes
        lower, upper = domain.limit_bounds()
        number = columns.is_number
        at = np.clip(0.0, lower, upper)[number]
        linear, square = columns.linear[number], columns.square[number]
        threshold = np.array([planes.tree.threshold[v] for v in planes.place])
        error_bounds = planes.error_bounds(np.arange(len(planes)), lower, upper)
        out = np.empty((2, len(planes)))
        for k, s in enumerate((1.0, -1.0)):
            rows = s * planes.over_columns[: len(planes)]
            w = rows[:, number]
            need = eps - s * (threshold - planes.shift[: len(planes)]) - error_bounds
            falls = columns.role[number] == "delta"
            room = np.where(w < 0, upper[number] - at, np.where(falls, at - lower[number], 0.0))
            levels = [(rows[:, own], columns.linear[own]) for own in (o[upper[o] > 0] for o in domain.levels.values())]
            if levels:
                out[k] = priced_demands(need + w @ at, np.abs(w), room, linear, square, levels)
            else:
                above = (need + w @ at).tolist()
                out[k] = [demand_of(*args, linear, square) for args in zip(above, np.abs(w), room, strict=True)]
            need += sum((row.min(axis=1) for row, _ in levels), np.zeros(len(planes)))
            out[k] += self._form_demands(need)
        return out

    def _form_demands(self, need: FloatArray) -> FloatArray:
        """Least cost of each hyperplane's need by the quadratic form alone, (n_planes,).

        ``d'Qd >= 2 z'Qd - z'Qz`` for any z. With z along ``Q^-1 w`` this is ``need**2 / w'Q^-1 w``, less what the
        solution of the linear system misses by anywhere within the limits.
        """
        if self.form is None:
            return np.zeros(len(need))
        domain, planes = self.domain, self.planes
        size, miss = planes.search.stiffness(domain.problem, self.form, planes.weights[: len(planes)])
        reach = np.maximum(np.abs(domain.limits[0] - domain.origin), np.abs(domain.limits[1] - domain.origin))
        with np.errstate(invalid="ignore", over="ignore"):
            left = need - np.where(miss > 0, miss * reach, 0.0).sum(axis=1)
            out = np.where(left > 0, left**2 / (4 * size), 0.0)
        return np.where(np.isfinite(out), out, 0.0) * (1 - 1e-9)


def demand_of(need: float, w: FloatArray, room: FloatArray, linear: FloatArray, square: FloatArray) -> float:
    """Least cost of a total of ``w . move >= need`` with moves in [0, room]: l1 and l2 parts each by itself.

    A sum of costs is at least the sum of the least ones, so both may be added.

    Parameters
    ----------
    need : float
    w, room : (n,) float64
        Weights, of which the positive ones count, and how far each move can go; inf for no end.
    linear, square : (n,) float64
        Cost of a move and of its square.
    """
    usable = (w > 0) & (room > 0)
    w, room, linear, square = w[usable], room[usable], linear[usable], square[usable]
    capacity = w * room
    if capacity.sum() < need:
        return np.inf
    return _linear_demand(need, w, capacity, linear) + _square_demand(need, w, room, square)


def priced_demands(
    need: FloatArray,
    w: FloatArray,
    room: FloatArray,
    linear: FloatArray,
    square: FloatArray,
    levels: Sequence[tuple[FloatArray, FloatArray]],
) -> FloatArray:
    """Least cost of ``w . move - sum_i total_i >= need`` with moves in [0, room] and one level of each feature, (m,).

    From below, by weak duality: with a price per unit of need every move and every feature is by itself, and any price
    gives a bound. The best one is looked for by bisection.

    Parameters
    ----------
    need : (m,) float64
    w, room : (m, n) float64
    linear, square : (n,) float64
        Cost of a move and of its square.
    levels : sequence of ((m, k) float64, (k,) float64)
        What the levels of a feature add to the total, and what they cost.
    """
    with np.errstate(invalid="ignore"):
        supply = np.where(w > 0, w * room, 0.0).sum(axis=1) - sum(total.min(axis=1) for total, _ in levels)
    low, high = np.full(len(need), -60.0), np.full(len(need), 60.0)
    best = np.full(len(need), -np.inf)
    for exponent in (low, *[None] * BISECTIONS):
        price = 2.0 ** ((low + high) / 2 if exponent is None else exponent)
        gain = price[:, None] * w - linear
        with np.errstate(divide="ignore", invalid="ignore"):
            move = np.where(gain > 0, np.minimum(np.where(square > 0, gain / (2 * square), np.inf), room), 0.0)
            value = np.where(gain > 0, move * (square * move - gain), 0.0).sum(axis=1)
        short = need - np.where(w > 0, w * move, 0.0).sum(axis=1)
        value += price * need
        for total, cost in levels:
            paid = cost + price[:, None] * total
            chosen = paid.argmin(axis=1)[:, None]
            value += np.take_along_axis(paid, chosen, axis=1)[:, 0]
            short += np.take_along_axis(total, chosen, axis=1)[:, 0]
        best = np.fmax(best, value)
        low, high = (np.where(short > 0, np.log2(price), low), np.where(short > 0, high, np.log2(price)))
    # a hair less, so that rounding never makes the bound too high
    return np.where(supply < need, np.inf, best - 1e-9 * np.abs(best))


def _linear_demand(need: float, w: FloatArray, capacity: FloatArray, price: FloatArray) -> float:
    """Continuous knapsack: the best gain for its price first."""
    need -= float(capacity[price == 0].sum()) if (price == 0).any() else 0.0
    if need <= 0:
        return 0.0
    paid = price > 0
    rate = price[paid] / w[paid]
    order = np.argsort(rate)
    filled = np.minimum(np.cumsum(capacity[paid][order]), need)
    # a hair less, so that rounding never makes the bound too high
    return float((np.diff(filled, prepend=0.0) * rate[order]).sum()) * (1 - 1e-12)


def _square_demand(need: float, w: FloatArray, room: FloatArray, square: FloatArray) -> float:
    """Squares: every move grows with one multiplier until it meets its end."""
    free = square == 0
    need -= float((w * room)[free].sum()) if free.any() else 0.0
    if need <= 0 or free.all():
        return 0.0
    w, room, square = w[~free], room[~free], square[~free]
    with np.errstate(over="ignore"):
        ends = 2 * square * room / w  # multiplier at which a move meets its end
    order = np.argsort(ends)
    speed = w**2 / (2 * square)
    # summed from the end: a difference would lose the slow ones beside a fast one that is stuck
    moving = np.append(np.cumsum(speed[order][::-1])[::-1], 0.0)
    stuck = np.concatenate([[0.0], np.cumsum(np.where(np.isfinite(room), w * room, 0.0)[order])])
    levels = np.append(ends[order], np.inf)
    for k in range(len(levels)):
        if moving[k] > 0:
            multiplier = (need - stuck[k]) / moving[k]
            if multiplier <= levels[k]:
                move = np.minimum(multiplier * w / (2 * square), room)
                return float((square * move**2).sum()) * (1 - 1e-9)
    return float((square * room**2)[np.isfinite(room)].sum()) * (1 - 1e-9)

"""Leaves whose integers are fixed: an LP or QP over the continuous features, with its proof."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.solve.active_set import refine, solve_by_active_set
from ocf.solve.dual_ascent import ascend
from ocf.solve.leaf_answer import EMPTY, LeafAnswer, LeafTask
from ocf.solve.leaf_model import LeafModel
from ocf.solve.leaf_polytope import ContinuousPart, continuous_part
from ocf.solve.leaf_rounding import LeafRounding
from ocf.solve.leaf_run import LeafRun
from ocf.solvers.adapter import Claim
from ocf.solvers.highs_warm import WarmHighs, cleaned
from ocf.solvers.result import SolverOptions
from ocf.support.tolerances import meets

#: Point and multipliers, as far as they are known, and what the solver says of them.
Found = tuple[FloatArray | None, FloatArray | None, Claim]


class SmoothLeaves:
    """Solves leaves without open integers; keeps what the same leaf with a larger margin can start from.

    Parameters
    ----------
    model : LeafModel
    options : SolverOptions
        Of HiGHS; the time limit is the run's.
    """

    def __init__(self, model: LeafModel, options: SolverOptions) -> None:
        self.model, self.options = model, options
        self.rounding = LeafRounding(model)
        self._families: dict[Any, tuple[WarmHighs, FloatArray]] = {}
        self._multipliers: dict[Any, FloatArray] = {}

    def answer(self, task: LeafTask, cutoff: float, run: LeafRun) -> LeafAnswer:
        """The cheapest point of a leaf, if it can be cheaper than the cutoff.

        Parameters
        ----------
        task : LeafTask
            With its integer columns fixed.
        cutoff : float
        run : LeafRun
            Whose clock holds.
        """
        model, part = self.model, continuous_part(self.model, task)
        polytope, spent = part.polytope, part.spent
        begin = time.perf_counter()
        x, y, claim = self._cheapest(part, cutoff - spent, run)
        run.times["solve"] += time.perf_counter() - begin
        if claim is Claim.INFEASIBLE:
            return replace(EMPTY, leaf=task.leaf)
        if x is None or y is None:
            bound = -np.inf if y is None else polytope.bound(y, x) + spent
            return LeafAnswer(task.leaf, None, np.inf, max(bound, 0.0), "pruned" if bound >= cutoff else "open")
        point = self.rounding.inside(part, x)
        cost = np.inf if point is None else model.problem.cost.total(model.problem.space, model.origin, point)
        outer = self.rounding.widened(part, min(cost, cutoff) - spent)
        bound = max(outer.bound(y, x), -spent if model.domain.credit == 0 else -np.inf) + spent
        if point is None:
            return LeafAnswer(task.leaf, None, np.inf, bound, "open")
        bound = min(bound, cost)
        if meets(bound, cost):
            bound = cost
        return LeafAnswer(task.leaf, point, cost, bound, "solved" if bound == cost else "open")

    def _cheapest(self, part: ContinuousPart, cutoff: float, run: LeafRun) -> Found:
        """Point and multipliers that are optimal as far as the solver's tolerances go."""
        task, polytope = part.task, part.polytope
        key = (task.leaf, task.place.tobytes(), task.lower[self.model.columns.integer].tobytes())
        if polytope.strictly_convex:
            y = ascend(polytope, self._multipliers.get(key))
            x = polytope.argmin(y @ polytope.G)
            bound = polytope.bound(y)
            if bound >= cutoff:
                return None, y, Claim.LIMIT
            size = np.abs(polytope.G) @ np.abs(x) + np.abs(polytope.h)
            if (polytope.G @ x - polytope.h <= 1e-11 * size).all() and polytope.cost(x) - bound <= 1e-10 * abs(bound):
                self._multipliers[key] = y
                return x, y, Claim.OPTIMAL
        if polytope.Q is not None and not len(polytope.k):
            found = solve_by_active_set(polytope)
            if found is not None and polytope.bound(found[1], found[0]) >= polytope.cost(found[0]) * (1 - 1e-10):
                return *found, Claim.OPTIMAL
        point, multipliers, claim = self._by_highs(part, key, run)
        if point is None or multipliers is None:
            return point, multipliers, claim
        if polytope.Q is not None:
            found = None if len(polytope.k) else solve_by_active_set(polytope, point, multipliers)
            point, multipliers = found or refine(polytope, point, multipliers)
        elif polytope.strictly_convex:
            multipliers = max(ascend(polytope, multipliers), multipliers, key=polytope.bound)
            better = polytope.argmin(multipliers @ polytope.G)
            near = np.abs(better - point).max() <= 1e-5 * np.abs(point - polytope.xbar).max()
            point = better if near else point
        return point, multipliers, claim

    def _by_highs(self, part: ContinuousPart, key: Any, run: LeafRun) -> Found:
        """LP or QP of the leaf by HiGHS; a larger margin than before starts from the last basis."""
        model, task, columns = self.model, part.task, self.model.columns
        own = np.flatnonzero(np.isin(columns.feature, part.used) & (columns.role != "moved"))
        if key not in self._families:
            begin = time.perf_counter()
            self._families[key] = self._family(task, own)
            run.times["instance"] += time.perf_counter() - begin
        family, shift = self._families[key]
        lower, upper = self._opened(task, own)
        sides = np.concatenate([task.side, [side for _, side in model.relation_rows]])
        answer = family.solve(sides - shift, lower, upper, time_limit=run.seconds_left())
        run.called(family.name, family.version)
        if answer.x is None or answer.multipliers is None:
            return None, None, answer.claim
        moved = np.zeros(len(model.origin))
        np.add.at(moved, columns.feature[own], columns.unit[own] * answer.x)
        return (model.origin + moved)[part.used], cleaned(answer.multipliers), answer.claim

    def _family(self, task: LeafTask, own: IntArray) -> tuple[WarmHighs, FloatArray]:
        """The leaf's problem over some continuous columns, to be solved with one right-hand side after the other.

        Also what the fixed columns add to each row.
        """
        model, columns, m = self.model, self.model.columns, len(task.place)
        form = model.standard_form(task)
        kept = np.concatenate([np.arange(m), m + model.matrix.relation_places])
        form = replace(
            form,
            c=form.c[own],
            Q=None if form.Q is None else form.Q[own][:, own],
            A=form.A[kept][:, own],
            row_lower=form.row_lower[kept],
            row_upper=form.row_upper[kept],
            lower=form.lower[own],
            upper=form.upper[own],
            integer=np.zeros(len(own), bool),
        )
        fixed = np.where(columns.integer, task.lower, 0.0)
        shift = np.concatenate(
            [task.sign * (model.matrix.planes[task.place] @ fixed), [row @ fixed for row, _ in model.relation_rows]]
        )
        return WarmHighs(form, self.options), np.asarray(shift)

    def _opened(self, task: LeafTask, own: IntArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of columns, with those whose l0 binary is closed held at 0."""
        columns, lower, upper = self.model.columns, task.lower.copy(), task.upper.copy()
        for j in np.flatnonzero((columns.role == "moved") & (task.upper == 0)).tolist():
            role = "up" if columns.value[j] > 0 else "down"
            upper[(columns.feature == columns.feature[j]) & (columns.role == role)] = 0.0
        return lower[own], upper[own]

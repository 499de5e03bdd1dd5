"""Branch and bound on the integers of a leaf, where a solver's tolerances leave its answer open.

::

    box of the columns ──▶ LP or QP without integers ──▶ multipliers ──▶ bound by weak duality ──▶ dearer than the best?
                                     │
                                     ├── whole numbers ──▶ the rest is solved exactly ──▶ the tree takes the point?
                                     └── otherwise, or where it does not: one column is split, and both sides follow

A choice of integers that the tree does not take is cut off by boxes around it, so that a total within a solver's
tolerance of a hyperplane, on its wrong side, ends nothing. The bound of a box holds whatever HiGHS returns.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property

import numpy as np

from ocf.arrays import BoolArray, FloatArray
from ocf.solve.column_boxes import ColumnBox, ColumnBoxes
from ocf.solve.dual_ascent import ascend
from ocf.solve.emptiness import is_proven_empty
from ocf.solve.leaf_answer import LeafAnswer, LeafClaim, LeafTask
from ocf.solve.leaf_model import LeafModel
from ocf.solve.leaf_run import LeafRun
from ocf.solve.leaf_smooth import SmoothLeaves
from ocf.solve.polytope import Polytope
from ocf.solvers.adapter import Claim
from ocf.solvers.highs_warm import WarmHighs
from ocf.solvers.result import SolverOptions
from ocf.support.tolerances import meets

#: Boxes of one leaf, and choices of its integers that the tree does not take, at most.
MOST_BOXES, MOST_REFUSED = 20_000, 200

#: Distance from a whole number up to which a column of a relaxation counts as one.
WHOLE = 1e-6

#: Relative rounding of a sum of a few hundred products, and of what it is compared with.
ROUNDING = 2.0**-44

#: Part of its products by which a row's sum may miss its side at what is taken for the optimum of a relaxation.
NEAR = 1e-11


class LeafBranching:
    """Solves leaves with integers and a cost that is separable.

    Parameters
    ----------
    model : LeafModel
    smooth : SmoothLeaves
        Solves a leaf whose integers are fixed.
    options : SolverOptions
    """

    def __init__(self, model: LeafModel, smooth: SmoothLeaves, options: SolverOptions) -> None:
        self.model, self.smooth, self.options = model, smooth, options

    def answer(self, task: LeafTask, cutoff: float, known: LeafAnswer, run: LeafRun) -> LeafAnswer:
        """The cheapest point of a leaf, if it can be cheaper than the cutoff.

        Parameters
        ----------
        task : LeafTask
        cutoff : float
        known : LeafAnswer
            The best point of the leaf so far, if any.
        run : LeafRun
            Whose clock holds.
        """
        run.called("branch and bound")
        begin, counted = time.perf_counter(), sum(run.times.values())
        search = _ChoiceSearch(self, task, cutoff, known, run)
        search.run()
        run.times["solve"] += time.perf_counter() - begin - (sum(run.times.values()) - counted)
        return search.answer()


class _ChoiceSearch:
    """State of the search of one leaf."""

    def __init__(self, of: LeafBranching, task: LeafTask, cutoff: float, known: LeafAnswer, run: LeafRun) -> None:
        self.model, self.smooth, self.task, self.clock, self.cutoff = of.model, of.smooth, task, run, cutoff
        self.best = known if known.point is not None else LeafAnswer.empty(task.leaf)
        self.gap = of.options.mip_gap
        self.form = self.model.standard_form(task)
        self.integer = self.form.integer
        self.relaxed = WarmHighs(self.form.relaxed(), replace(of.options, options={}))
        self.magnitudes = np.abs(self.form.A)
        self.weights = self.magnitudes.sum(axis=0)
        self.room = self._room()
        self.boxes = ColumnBoxes(task.lower, task.upper)
        self.refused = 0
        self.tried: dict[bytes, LeafAnswer] = {}
        self.closed = np.inf  # bound of boxes that are not looked at further

    @property
    def limit(self) -> float:
        """What a box must be able to undercut."""
        return min(self.cutoff, self.best.cost)

    def run(self) -> None:
        """Search until every box is dearer than the best point, or a limit is reached."""
        here: ColumnBox | None = None
        while here is not None or self.boxes:
            box = here or self.boxes.pop()
            left = self.clock.seconds_left()
            if self.boxes.made > MOST_BOXES or self.refused > MOST_REFUSED or (left is not None and left <= 0):
                self.closed = min(self.closed, box.bound)
                return
            here = None if self._is_dear(box.bound) else self._followed(box, left)

    def answer(self) -> LeafAnswer:
        """What the search has found."""
        bound = min(self.closed, self.boxes.bound)
        bound = max(min(bound, self.limit), self.model.domain.credit)
        if self.best.point is not None and meets(bound, self.best.cost):
            bound = self.best.cost
        return self.best.searched(bound, self.cutoff)

    def _is_dear(self, bound: float) -> bool:
        """Whether nothing in a box undercuts the best point by more than a hair; keeps its bound then."""
        dear = bound >= self.limit or meets(bound, self.limit, self.gap)
        if dear:
            self.closed = min(self.closed, bound)
        return dear

    def _followed(self, box: ColumnBox, left: float | None) -> ColumnBox | None:
        """Solve the relaxation of a box, and split it where that does not settle it; the half to go on with."""
        relaxed = self._by_hand(box) or self._by_highs(box, left)
        if relaxed is None:
            return None
        x, bound = relaxed
        box.bound = max(box.bound, bound)
        if self._is_dear(box.bound):
            return None
        loose = self.integer & (box.lower < box.upper)
        x = np.clip(x, box.lower, box.upper)
        broken = np.where(loose, np.abs(x - np.rint(x)), 0.0)
        if broken.max(initial=0.0) > WHOLE:
            j = int((broken * (1.0 + self.weights)).argmax())
            low, high = np.floor(x[j]), np.ceil(x[j])
            near = low if x[j] - low < 0.5 else high
            return self._split(box, j, [(box.lower[j], low), (high, box.upper[j])], near)
        if self._settles(box, x, loose):
            return None
        j = int(np.where(loose, self.weights + (x != box.lower), -1.0).argmax())
        z = np.rint(x[j])
        return self._split(box, j, [(box.lower[j], z - 1), (z, z), (z + 1, box.upper[j])], z)

    def _settles(self, box: ColumnBox, x: FloatArray, loose: BoolArray) -> bool:
        """Ask for the rest of a choice of integers, and whether that is all there is in the box."""
        choice = self._meaning(x)
        if choice not in self.tried:
            part = replace(self.task, lower=box.lower, upper=box.upper).fixed(x, self.integer)
            self.tried[choice] = self.smooth.answer(part, np.inf, self.clock)
            self.refused += self.tried[choice].point is None
        found = self.tried[choice]
        if found.cost < self.best.cost:
            self.best = found
        if self._is_dear(box.bound):
            return True
        if loose.any():
            return False
        if found.claim is LeafClaim.OPEN:
            self.closed = min(self.closed, max(box.bound, found.bound))
        return True

    def _meaning(self, x: FloatArray) -> bytes:
        """What integers stand for, whichever columns hold it: up 2 and down 1 are up 1, and what may move but stays."""
        columns, whole = self.model.columns, np.rint(x)
        own = np.where(columns.role == "level", np.nan_to_num(columns.value), columns.unit) * whole
        counted = self.integer & (columns.role != "moved")
        smooth = (columns.role == "moved") & np.isin(columns.feature, self.model.domain.smooth)
        values = np.bincount(columns.feature[counted], own[counted], len(self.model.origin))
        return np.concatenate([values, whole[smooth]]).tobytes()

    def _split(self, box: ColumnBox, j: int, parts: list[tuple[float, float]], near: float) -> ColumnBox | None:
        """Parts of a box by the range of one column; the one that holds a value comes next, the others wait."""
        following = None
        for low, high in parts:
            if low > high:
                continue
            part = self.boxes.part(box, j, low, high)
            if low <= near <= high:
                following = part
            else:
                self.boxes.push(part)
        return following

    def _by_hand(self, box: ColumnBox) -> tuple[FloatArray, float] | None:
        """Optimum of the relaxation of a box and its bound by Newton steps on the dual; None without proof.

        HiGHS is not made for flat quadratic costs: beside ranges of 1e9 it ends at a poor point, of 1e12 not at all.
        """
        form = self.form
        if not self.model.columns.square.all():
            return None
        x, multipliers = self._ascended(box)
        activity, size = form.A @ x, NEAR * (self.magnitudes @ np.abs(x))
        if (activity > form.row_upper + size).any() or (activity < form.row_lower - size).any():
            return None
        bound = self._bound(multipliers, box)
        return (x, bound) if meets(bound, self._cost(x)) else None

    def _by_highs(self, box: ColumnBox, left: float | None) -> tuple[FloatArray, float] | None:
        """Point of the relaxation of a box and its bound; None where the box is proven empty."""
        found = self.relaxed.solve(lower=box.lower, upper=box.upper, time_limit=left)
        if found.claim is Claim.INFEASIBLE:
            return None if self._is_empty(box) else (np.clip(0.0, box.lower, box.upper), -np.inf)
        x, multipliers = found.x, found.multipliers
        if x is None or multipliers is None:
            x, multipliers = self._ascended(box)  # a "solve error" is met where costs are tiny
            return x, self._bound(multipliers, box)
        bound = self._bound(multipliers, box)
        if self.model.columns.square.any() and not meets(bound, self._cost(x)):
            bound = max(bound, self._bound(self._ascended(box, multipliers)[1], box))
        return x, bound

    def _is_empty(self, box: ColumnBox) -> bool:
        """Whether no values of the columns meet the rows, however they are rounded."""
        half_spaces, signs = self.half_spaces
        reach = np.maximum(np.abs(box.lower), np.abs(box.upper))
        size = self.magnitudes @ np.where(np.isfinite(reach), reach, 0.0)
        h = half_spaces.h + np.abs(signs) @ (self.room + ROUNDING * size)
        return is_proven_empty(replace(half_spaces, h=h, lo=box.lower, hi=box.upper))

    def _cost(self, x: FloatArray) -> float:
        """What values of the columns cost, (n_cols,)."""
        return float(self.form.c @ x + self.model.columns.square @ (x * x))

    def _ascended(self, box: ColumnBox, start: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Point and multipliers of a box by projected Newton steps on the dual, from other multipliers on."""
        half_spaces, signs = self.half_spaces
        polytope = replace(half_spaces, lo=box.lower, hi=box.upper)
        y = ascend(polytope, None if start is None else np.maximum(signs @ start, 0.0))
        x = polytope.argmin(y @ polytope.G)
        return np.where(np.isfinite(x), x, 0.0), y @ signs

    @cached_property
    def half_spaces(self) -> tuple[Polytope, FloatArray]:
        """The relaxation over the columns, and how its half-spaces stem from the rows, (n_half_spaces, n_rows)."""
        form, square, each = self.form, self.model.columns.square, np.eye(self.form.n_rows)
        upper, lower = np.isfinite(form.row_upper), np.isfinite(form.row_lower)
        signs = np.concatenate([each[upper], -each[lower]])
        sides = np.concatenate([form.row_upper[upper], -form.row_lower[lower]])
        zeros = np.zeros(form.n_cols)
        return Polytope(signs @ form.A, sides, form.lower, form.upper, zeros, -form.c, form.c, square, square), signs

    def _bound(self, multipliers: FloatArray, box: ColumnBox) -> float:
        """Lower bound on what a box costs, by weak duality: with prices of the rows each column is by itself."""
        form, columns = self.form, self.model.columns
        side = np.where(multipliers > 0, form.row_upper + self.room, form.row_lower - self.room)
        y = np.where(np.isfinite(side), multipliers, 0.0)
        side = np.where(np.isfinite(side), side, 0.0)
        slope = form.c + form.A.T @ y
        at = _cheapest(slope, columns.square, box, self.integer)
        values = slope * at + columns.square * at * at
        if not np.isfinite(values).all():
            return -np.inf
        size = (np.abs(form.c) + self.magnitudes.T @ np.abs(y)) @ np.abs(at) + np.abs(y) @ np.abs(side)
        return float(values.sum() - y @ side) - ROUNDING * float(size + columns.square @ (at * at))

    def _room(self) -> FloatArray:
        """By how much rounding may decide each row of the form within the leaf, (n_rows,)."""
        task, model, out = self.task, self.model, np.zeros(self.form.n_rows)
        m = len(task.place)
        out[:m] = model.planes.error_bounds(task.place, task.lower, task.upper)
        reach = np.abs(np.stack(model.domain.box(task.leaf, task.eps))).max(axis=0)
        allowed = self.smooth.rounding.allowances(np.where(np.isfinite(reach), reach, np.abs(model.origin)))
        out[m + model.matrix.relation_places] = allowed[model.matrix.relations]
        return out


def _cheapest(slope: FloatArray, square: FloatArray, box: ColumnBox, integer: BoolArray) -> FloatArray:
    """Value of each column where ``slope * x + square * x**2`` is least within a box, (n_cols,)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = np.where(square > 0, -slope / (2 * square), np.where(slope > 0, -np.inf, np.inf))
    inner = np.where((square == 0) & (slope == 0), 0.0, inner)
    at = np.clip(inner, box.lower, box.upper)
    low, high = np.clip(np.floor(at), box.lower, box.upper), np.clip(np.ceil(at), box.lower, box.upper)
    with np.errstate(invalid="ignore"):
        whole = np.where(slope * low + square * low * low <= slope * high + square * high * high, low, high)
    return np.where(integer, whole, at)

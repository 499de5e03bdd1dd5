"""One row's query of the leaves of an oblique tree."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.incumbent import Incumbent
from ocf.formulations.blocks.columns import grid_unit
from ocf.formulations.oblique import closest_in_boxes
from ocf.problem.problem import Problem
from ocf.problem.rows import satisfied
from ocf.solve.active_set import refine, solve_by_active_set
from ocf.solve.dual_ascent import ascend
from ocf.solve.leaf_answer import EMPTY, LeafAnswer, LeafTask
from ocf.solve.leaf_model import LeafModel, Leaves, TreeSearch
from ocf.solve.move_inside import move_inside
from ocf.solve.outcome import Outcome, Run
from ocf.solve.polytope import UNIT, Polytope
from ocf.solvers import SOLVERS, Solver, get_solver
from ocf.solvers.adapter import Claim
from ocf.solvers.highs_warm import WarmHighs, cleaned
from ocf.solvers.result import SolveResult, SolverOptions, Status
from ocf.solvers.standard_form import StandardForm
from ocf.support.tolerances import PROOF_TOLERANCE, meets

#: Assignments of categories that a leaf may try before it settles for the bound of its solver.
MAX_ASSIGNMENTS = 50

#: What takes time besides the solver and the user's model.
PHASES = ("incumbent", "reduce", "instance")


class Query(LeafModel):
    """One row's question to a tree, leaf by leaf; keeps what a next, larger margin can start from.

    Parameters
    ----------
    search : TreeSearch
    problem : Problem
    options : SolverOptions
    solver : {"highs", "scip"}
        For leaves with integers. Continuous leaves go to HiGHS, integers with squares to SCIP. With any other name,
        such as ``"auto"``, HiGHS is asked first, and SCIP where it errs.
    """

    def __init__(self, search: TreeSearch, problem: Problem, options: SolverOptions, solver: str = "highs") -> None:
        self.run = Run(options, PHASES)
        super().__init__(search, problem)
        self.solver = solver if solver in SOLVERS else "highs"
        self.may_switch = solver not in SOLVERS
        self.solver_names: set[str] = set()
        self.version = ""
        self._families: dict[Any, tuple[WarmHighs, FloatArray]] = {}
        self._multipliers: dict[Any, FloatArray] = {}

    def restart(self) -> None:
        """Start the clock and the statistics anew; what an earlier answer left to start from stays."""
        self.run = Run(self.run.options, PHASES)
        self.solver_names = set()

    @property
    def options(self) -> SolverOptions:
        """What solvers are told."""
        return self.run.options

    @property
    def method_name(self) -> str:
        """What solved the leaves."""
        return "+".join(sorted(self.solver_names)) or "closed form"

    def outcome(self, status: Status, best: LeafAnswer | None, bound: float, sizes: dict[str, int]) -> Outcome:
        """The answer, with what it took.

        Parameters
        ----------
        status : Status
        best : LeafAnswer or None
            None, or without a point, where nothing was found.
        bound : float
        sizes : dict of str to int
            See `ocf.solve.outcome.Outcome`.
        """
        run = self.run
        point = best.point if best else None
        run.best = Incumbent(np.zeros(0, np.int64), point, best.cost) if best and point is not None else None
        run.status, run.bound, run.sizes = status, bound, sizes
        run.proved_by = self.method_name if status in (Status.OPTIMAL, Status.INFEASIBLE) else ""
        return run.outcome()

    # -- one leaf ---------------------------------------------------------------------------------------------

    def solve_leaf(self, leaf: Leaves, cutoff: float = np.inf, eps: float = 0.0) -> LeafAnswer:
        """The cheapest point of a leaf, if it can be cheaper than the cutoff.

        Parameters
        ----------
        leaf : int or tuple of int
            A leaf, or one leaf per tree.
        cutoff : float
            Cost of the best point so far; inf without one.
        eps : float
            Margin by which every split of the path must hold, in units of its total.
        """
        lower, upper = self.bounds_of_columns(leaf, eps)
        columns = self.columns
        place, sign, side, possible = self.rows(leaf, eps)
        if not possible or self._empty(lower, upper):
            return replace(EMPTY, leaf=leaf)
        keep = self._not_implied(place, sign, side, lower, upper)
        place, sign, side = place[keep], sign[keep], side[keep]
        task = LeafTask(leaf, eps, place, sign, side, lower, upper)
        if not len(place) and self.form is None and not self.relations:
            return self._closest(task)
        if not (columns.integer & (lower < upper)).any():
            return self._smooth_part(task, cutoff)
        held = self._held(task) if cutoff == np.inf else replace(EMPTY, leaf=leaf)
        limit = min(cutoff, held.cost)
        left = self._affordable(task, limit)
        if self._empty(left.lower, left.upper):
            found = LeafAnswer(leaf, None, np.inf, limit, "pruned")
        elif (columns.integer & (left.lower < left.upper)).any():
            return self._mixed(left, limit, held)
        else:
            found = self._smooth_part(left, limit)
            if found.claim == "open":  # the solver may see what duality within rounding does not
                return self._mixed(left, limit, held)
        best = found if found.cost < held.cost else held
        bound = min(found.bound, limit, best.cost)
        if best.point is None:
            return replace(found, bound=bound, claim="pruned")
        return replace(best, bound=bound, claim="solved" if bound == best.cost else "open")

    def _held(self, task: LeafTask) -> LeafAnswer:
        """The cheapest point with every listed feature at its cheapest level and every grid where it is, if any."""
        columns = self.columns
        if (columns.role == "moved").any():
            return LeafAnswer(task.leaf, None, np.inf, 0.0, "open")
        x = np.clip(0.0, task.lower, task.upper)
        for own in self.levels.values():
            usable = own[task.upper[own] > 0]
            x[usable[columns.linear[usable].argmin()]] = 1.0
        return self._smooth_part(task.fixed(x, columns.integer), np.inf)

    def _affordable(self, task: LeafTask, limit: float) -> LeafTask:
        """The same without the levels with which nothing is cheaper than a limit."""
        columns, lower, upper = self.columns, task.lower.copy(), task.upper.copy()
        least, most = self._box_cost(lower, upper), limit + PROOF_TOLERANCE * abs(limit)
        for own in self.levels.values():
            usable = own[upper[own] > 0]
            price = columns.linear[usable]
            upper[usable[least - price.min() + price > most]] = 0.0
            left = own[upper[own] > 0]
            if len(left) == 1:
                lower[left] = 1.0
        return replace(task, lower=lower, upper=upper)

    def _not_implied(
        self, place: IntArray, sign: FloatArray, side: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> BoolArray:
        """Rows that the box does not already imply, and of parallel ones the tightest."""
        rows = sign[:, None] * self.matrix.planes[place]
        number = self.columns.role != "level"
        with np.errstate(invalid="ignore"):
            ends = np.where(rows == 0, 0.0, np.where(rows > 0, rows * upper, rows * lower))
        most = ends[:, number].sum(axis=1)
        for own in self.levels.values():
            most += rows[:, own[upper[own] > 0]].max(axis=1)
        keep = ~(most < side - self._row_error_bounds(place, lower, upper))
        tightest: dict[bytes, int] = {}
        for k in np.flatnonzero(keep).tolist():
            other = tightest.setdefault(rows[k].tobytes(), k)
            if other != k:
                loser = k if side[k] >= side[other] else other
                keep[loser] = False
                tightest[rows[k].tobytes()] = other if loser == k else k
        return keep

    def _closest(self, task: LeafTask) -> LeafAnswer:
        """Theorem 3.3: without hyperplanes each feature is by itself."""
        low, high = self.box(task.leaf, task.eps)
        point = np.where(self.number, closest_in_boxes(low[None], high[None], self.origin[None])[0, 0], self.origin)
        for i, own in self.levels.items():
            usable = own[task.upper[own] > 0]
            point[i] = self.columns.value[usable[self.columns.linear[usable].argmin()]]
        cost = self.problem.cost.total(self.problem.space, self.origin, point)
        return LeafAnswer(task.leaf, point, cost, cost, "solved")

    def _mixed(self, task: LeafTask, cutoff: float, known: LeafAnswer) -> LeafAnswer:
        """A leaf with integers: the solver chooses them, the rest is solved again for each of its choices."""
        form = self._form(task)
        best = replace(known, bound=np.inf) if known.point is not None else replace(EMPTY, leaf=task.leaf)
        name = "scip" if form.Q is not None else self.solver
        self.solver_names.add(name)
        solver = cast(Solver, get_solver(name))
        loose = form.integer & (form.lower < form.upper)
        binary = loose & (form.lower == 0) & (form.upper == 1)
        undecided = np.inf  # bound of the choices of which rounding left it open whether they have a point
        for _ in range(MAX_ASSIGNMENTS):
            limit = min(cutoff, best.cost)
            left = self.run.seconds_left()
            if left is not None and left <= 0:
                return replace(best, bound=min(best.bound, 0.0) if best.point is None else 0.0, claim="open")
            result = solver.solve(
                form, replace(self.options, time_limit=left), cutoff=limit if np.isfinite(limit) else None
            )
            self.note(result)
            if result.status is Status.INFEASIBLE:
                claim = "solved" if best.point is not None else "pruned" if np.isfinite(cutoff) else "empty"
                bound = min(limit, result.bound, undecided)
                return replace(best, bound=bound, claim="open" if undecided < limit else claim)
            if result.x is None:
                return replace(best, bound=min(result.bound, undecided), claim="open")
            found = self._smooth_part(task.fixed(result.x, form.integer), np.inf)
            if found.cost < best.cost:
                best = replace(found, bound=best.bound)
            near = meets(result.bound, best.cost)
            settled = finished(result) and not binary[loose].all()
            if near or settled or not finished(result) or self.options.mip_gap > 0:
                proven = near or (settled and result.bound >= best.cost * (1 - 1e-6) - 1e-12)
                bound = min(best.cost if proven else min(result.bound, best.cost), undecided)
                return replace(best, bound=bound, claim="solved" if best.point is not None else "open")
            # a later bound says nothing of a choice that is cut off without a point
            if found.claim == "open" and found.point is None:
                undecided = min(undecided, found.bound)
            chosen = result.x[binary] > 0.5
            cut = np.zeros(form.n_cols)
            cut[binary] = np.where(chosen, 1.0, -1.0)
            form = form.append_rows(cut, -np.inf, float(chosen.sum()) - 1.0)
        return replace(best, bound=min(result.bound, undecided), claim="open")

    def _form(self, task: LeafTask) -> StandardForm:
        """The leaf's problem as a matrix."""
        begin = time.perf_counter()
        always, columns = self.matrix.always, self.columns
        planes = sp.csr_array(task.sign[:, None] * self.matrix.planes[task.place]) if len(task.place) else None
        form = replace(
            always,
            c=columns.linear,
            c0=0.0,
            A=always.A if planes is None else sp.vstack([planes, always.A], format="csr"),
            row_lower=np.concatenate([np.full(len(task.place), -np.inf), always.row_lower]),
            row_upper=np.concatenate([task.side, always.row_upper]),
            lower=task.lower,
            upper=task.upper,
            integer=columns.integer,
            column_names=None,
        )
        self.run.times["instance"] += time.perf_counter() - begin
        return form

    def note(self, result: SolveResult) -> None:
        """Keep what a call of a solver took."""
        self.run.note(result)
        self.version = result.version

    # -- the continuous part of a leaf ------------------------------------------------------------------------

    def _smooth_part(self, task: LeafTask, cutoff: float) -> LeafAnswer:
        """A leaf whose integers are fixed: an LP or QP over the continuous features, with its proof."""
        point, spent = self._fixed_point(task)
        space = self.problem.space
        polytope, used = self._polytope(task, point)
        rest = np.setdiff1d(self.smooth, used)
        low, high = self._smooth_box(task)
        point[rest] = np.clip(self.origin[rest], low[rest], high[rest])
        spent += float(self._single_cost(rest, point).sum())
        begin = time.perf_counter()
        x, y, claim = self._cheapest(task, polytope, used, cutoff - spent)
        self.run.times["solve"] += time.perf_counter() - begin
        if claim is Claim.INFEASIBLE:
            return replace(EMPTY, leaf=task.leaf)
        if x is None or y is None:
            bound = -np.inf if y is None else polytope.bound(y, x) + spent
            return LeafAnswer(task.leaf, None, np.inf, max(bound, 0.0), "pruned" if bound >= cutoff else "open")
        inside = self._inside(task, polytope, used, x, point)
        cost = np.inf
        if inside is not None:
            point[used] = inside
            cost = self.problem.cost.total(space, self.origin, point)
        reach = min(cost, cutoff) - spent
        outer = polytope.within(reach)
        outer = replace(
            outer,
            h=polytope.h + self._plane_error_bounds(task, outer, used, point),
            k=polytope.k
            + self._relation_error_bounds(outer, np.maximum(np.abs(outer.lo), np.abs(outer.hi)), point, used, 1.0),
        )
        bound = max(outer.bound(y, x), -spent if self.credit == 0 else -np.inf) + spent
        if inside is None:
            return LeafAnswer(task.leaf, None, np.inf, bound, "open")
        bound = min(bound, cost)
        if meets(bound, cost):
            bound = cost
        return LeafAnswer(task.leaf, point, cost, bound, "solved" if bound == cost else "open")

    def _fixed_point(self, task: LeafTask) -> tuple[FloatArray, float]:
        """The point with its listed and grid features set, and what they cost."""
        point, columns = self.origin.copy(), self.columns
        spent = 0.0
        for i, own in self.levels.items():
            chosen = own[task.lower[own].argmax() if task.lower[own].any() else task.upper[own].argmax()]
            point[i] = columns.value[chosen]
            spent += float(columns.linear[chosen])
        for i in self.grid.tolist():
            own = columns.of(i)
            own = own[columns.role[own] != "moved"]
            steps = float((task.lower[own] * np.sign(columns.unit[own])).sum())
            f = self.problem.space.features[i]
            unit = grid_unit(f)
            point[i] = self.origin[i] if steps == 0 else float(f.at_most(self.origin[i] + (steps + 0.5) * unit))
        spent += float(self._single_cost(self.grid, point).sum())
        return point, spent

    def _single_cost(self, features: IntArray, point: FloatArray) -> FloatArray:
        """l1 and l2 cost of some numbers; with an l0 cost, that too."""
        d = point[features] - self.origin[features]
        out = np.where(
            d > 0,
            self.a_up[features] * d + self.q_up[features] * d * d,
            -self.a_down[features] * d + self.q_down[features] * d * d,
        )
        out = out + np.where(d > 0, self.leave_up[features], np.where(d < 0, self.leave_down[features], 0.0))
        return np.asarray(out)

    def _smooth_box(self, task: LeafTask) -> tuple[FloatArray, FloatArray]:
        """Box of the continuous features; those whose l0 binaries are closed stay at the origin."""
        low, high = self.box(task.leaf, task.eps)
        columns = self.columns
        for j in np.flatnonzero(columns.role == "moved").tolist():
            if task.upper[j] == 0:
                i = int(columns.feature[j])
                if columns.value[j] > 0:
                    high[i] = min(high[i], self.origin[i])
                else:
                    low[i] = max(low[i], self.origin[i])
        return low, high

    def _polytope(self, task: LeafTask, point: FloatArray) -> tuple[Polytope, IntArray]:
        """The continuous features that the rows or the quadratic form touch, and their polytope."""
        smooth = self.smooth
        g = task.sign[:, None] * self.weights[task.place]
        touched = g[:, smooth].any(axis=0)
        if self.form is not None:
            touched |= np.diff(self.form.indptr)[smooth] > 0
        for row, _ in self.relation_rows:
            touched |= np.isin(smooth, self.columns.feature[row != 0])
        used = smooth[touched]
        elsewhere = np.setdiff1d(np.arange(len(point)), used)
        h = np.zeros(len(task.place))
        for k, (r, s) in enumerate(zip(task.place.tolist(), task.sign.tolist(), strict=True)):
            v = self._nodes[r]
            features, codes, weights = self.tree.oblique_entries(v)
            fixed = np.isin(features, elsewhere)
            values = np.where(codes < 0, point[features], point[features] == codes)[fixed]
            h[k] = s * (self.threshold(v, s > 0, task.eps) - float(weights[fixed] @ values)) - task.eps
        low, high = self._smooth_box(task)
        q = None
        if self.form is not None:
            q = self.form[used][:, used]
        down, up, sides = self._bent_rows(task, used)
        return (
            Polytope(
                g[:, used],
                h,
                low[used],
                high[used],
                self.origin[used],
                self.a_down[used],
                self.a_up[used],
                self.q_down[used],
                self.q_up[used],
                q,
                down,
                up,
                sides,
            ),
            used,
        )

    def _bent_rows(self, task: LeafTask, used: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Relations over the falls and rises of the continuous features, the rest fixed: (r, n), (r, n), (r,)."""
        columns = self.columns
        down, up = np.zeros((2, len(self.relation_rows), len(used)))
        k = np.zeros(len(self.relation_rows))
        fixed = np.where(columns.integer, task.lower, 0.0)
        place = {i: c for c, i in enumerate(used.tolist())}
        for r, (row, side) in enumerate(self.relation_rows):
            k[r] = side - float(row[columns.integer] @ fixed[columns.integer])
            for j in np.flatnonzero((row != 0) & ~columns.integer).tolist():
                c = place[int(columns.feature[j])]
                if columns.role[j] in ("up", "delta"):
                    up[r, c] = row[j]
                if columns.role[j] in ("down", "delta"):
                    down[r, c] = row[j] if columns.role[j] == "down" else -row[j]
        return down, up, k

    def _cheapest(
        self, task: LeafTask, polytope: Polytope, used: IntArray, cutoff: float
    ) -> tuple[FloatArray | None, FloatArray | None, Claim]:
        """Point and multipliers that are optimal as far as the solver's tolerances go."""
        key = (task.leaf, task.place.tobytes(), task.lower[self.columns.integer].tobytes())
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
        point, multipliers, claim = self._by_highs(task, key, used)
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

    def _by_highs(self, task: LeafTask, key: Any, used: IntArray) -> tuple[FloatArray | None, FloatArray | None, Claim]:
        """LP or QP of the leaf by HiGHS; a larger margin than before starts from the last basis."""
        columns = self.columns
        own = np.flatnonzero(np.isin(columns.feature, used) & (columns.role != "moved"))
        if key not in self._families:
            form = self._form(task)
            fixed = np.where(columns.integer, task.lower, 0.0)
            kept = np.concatenate([np.arange(len(task.place)), len(task.place) + self.matrix.relation_places])
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
            shift = np.concatenate(
                [task.sign * (self.matrix.planes[task.place] @ fixed), [row @ fixed for row, _ in self.relation_rows]]
            )
            # raw options are meant for the solver that was asked for
            options = self.options if self.solver == "highs" else replace(self.options, options={})
            self._families[key] = WarmHighs(form, options), np.asarray(shift)
        family, shift = self._families[key]
        lower, upper = self._opened(task, own)
        sides = np.concatenate([task.side, [side for _, side in self.relation_rows]])
        answer = family.solve(sides - shift, lower, upper, time_limit=self.run.seconds_left())
        self.solver_names.add(family.name)
        self.version = family.version
        if answer.x is None or answer.multipliers is None:
            return None, None, answer.claim
        moved = np.zeros(len(self.origin))
        np.add.at(moved, columns.feature[own], columns.unit[own] * answer.x)
        return self.origin[used] + moved[used], cleaned(answer.multipliers), answer.claim

    def _opened(self, task: LeafTask, own: IntArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of columns, with those whose l0 binary is closed held at 0."""
        columns, lower, upper = self.columns, task.lower.copy(), task.upper.copy()
        for j in np.flatnonzero((columns.role == "moved") & (task.upper == 0)).tolist():
            role = "up" if columns.value[j] > 0 else "down"
            upper[(columns.feature == columns.feature[j]) & (columns.role == role)] = 0.0
        return lower[own], upper[own]

    def _plane_error_bounds(self, task: LeafTask, polytope: Polytope, used: IntArray, point: FloatArray) -> FloatArray:
        """Rounding of each hyperplane's total anywhere in the polytope's box, (m,)."""
        reach = np.abs(point)
        reach[used] = np.maximum(np.abs(polytope.lo), np.abs(polytope.hi))
        reach = np.where(np.isfinite(reach), reach, 0.0)
        return np.array([self._total_error_bound(r, reach) for r in task.place.tolist()])

    def _relation_error_bounds(
        self, polytope: Polytope, reach: FloatArray, point: FloatArray, used: IntArray, sign: float
    ) -> FloatArray:
        """Rounding of each relation's sum, plus (or minus) what an equation of numbers may miss by, (r,)."""
        reach = np.where(np.isfinite(reach), reach, 0.0) + np.abs(polytope.xbar)
        size = np.maximum(np.abs(polytope.K_up), np.abs(polytope.K_down)) @ reach + np.abs(polytope.k)
        at = point.copy()
        at[used] = reach if sign > 0 else at[used]
        allowed = np.array([float(row.allowance(self.problem.space, at)) for row in self.relations]).reshape(-1)
        rounding = 4 * (len(self.columns.feature) + 4) * UNIT * size
        # an equation has no room for a margin: what rounding takes from it is put right exactly, at the end
        equation = np.array([bool(row.slope) for row in self.relations], bool)
        return np.where(equation & (sign < 0), -0.5 * allowed, rounding + (allowed if sign > 0 else 0.0))

    def _settled(self, point: FloatArray, used: IntArray) -> FloatArray:
        """The point with its equations put right in exact arithmetic, by the number that moves the least for it."""
        space, out = self.problem.space, point.copy()
        for _ in range(8):
            broken = [row for row in self.relations if row.slope and not row.holds(space, out)]
            if not broken:
                break
            row = broken[0]
            movable = {i: float(s) for i, s in row.slope.items() if i in set(used.tolist()) and s != 0}
            if not movable:
                break
            i = max(movable, key=lambda k: abs(movable[k]))
            sign = 1.0 if row.parts[i].of(1.0) - row.parts[i].of(0.0) > 0 else -1.0
            out[i] -= sign * float(row.total(out) - row.limit) / abs(movable[i])
        return out

    def _total_error_bound(self, r: int, reach: FloatArray) -> float:
        """Twice the rounding of a hyperplane's total: the tree's own, and that of the numbers here."""
        v = self._nodes[r]
        features, codes, weights = self.tree.oblique_entries(v)
        size = float(np.abs(weights) @ np.where(codes < 0, reach[features], 1.0))
        return 2.0 * float(self.tree.oblique_error_bound(v, size))

    def _inside(
        self, task: LeafTask, polytope: Polytope, used: IntArray, x: FloatArray, point: FloatArray
    ) -> FloatArray | None:
        """The point moved to where the rounding of the tree's own sums decides nothing, if the tree says so too."""
        whole = point.copy()
        strict = task.sign < 0
        least = self._plane_error_bounds(task, polytope, used, point)

        def round_to(values: FloatArray) -> FloatArray:
            out = values.copy()
            for k, i in enumerate(used.tolist()):
                if i in self.narrow and values[k] != self.origin[i]:
                    out[k] = float(np.asarray(values[k]).astype(self.narrow[i]))
            return np.clip(out, polytope.lo, polytope.hi)

        def margin(values: FloatArray, factor: float) -> FloatArray:
            reach = np.abs(whole)
            reach[used] = np.abs(values)
            error_bound = np.array([self._total_error_bound(r, reach) for r in task.place.tolist()])
            # a total whose terms are all 0 has no error, and goes to the left of a threshold of 0
            error_bound = np.where(strict & (error_bound == 0), least, error_bound)
            gaps = [
                float(np.spacing(np.abs(values[k]).astype(self.narrow[i]))) if i in self.narrow else 0.0
                for k, i in enumerate(used.tolist())
            ]
            rounded = np.abs(polytope.rows_at(values)[0]) @ np.array(gaps).reshape(-1)
            related = self._relation_error_bounds(polytope, np.abs(values), whole, used, -1.0)
            return np.concatenate([factor * error_bound, np.where(related > 0, factor, 1.0) * related]) + rounded

        for factor in (1.0, 4.0, 64.0, 4096.0):
            found = move_inside(polytope, x, partial(margin, factor=factor), round_to)
            if found is None:
                continue
            whole[used] = found
            whole = self._settled(whole, used)
            found = whole[used]
            inside = np.array_equal(self.tree.apply(whole[None])[0], np.atleast_1d(task.leaf))
            if inside and satisfied(self.relations, self.problem.space, whole):
                return found
        return None


def finished(result: SolveResult) -> bool:
    """Whether a solver searched to the end, if only within its tolerances."""
    return result.status is Status.OPTIMAL or (result.feasible and result.raw_status.lower() == "optimal")

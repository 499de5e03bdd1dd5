"""Leaves whose integers are fixed: an LP or QP over the continuous features, with its proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.solve.active_set import refine, solve_by_active_set
from ocf.solve.dual_ascent import ascend
from ocf.solve.emptiness import is_proven_empty
from ocf.solve.exact_polytope import is_exactly_solvable, solve_exactly
from ocf.solve.leaf_answer import LeafAnswer, LeafClaim, LeafTask
from ocf.solve.leaf_model import LeafModel
from ocf.solve.leaf_number import OneNumber, is_one_number
from ocf.solve.leaf_polytope import ContinuousPart, continuous_part
from ocf.solve.leaf_rounding import LeafRounding
from ocf.solve.leaf_run import LeafRun
from ocf.solve.multipliers import multipliers_at
from ocf.solve.polytope import Polytope
from ocf.solvers import matrix_solver, takes
from ocf.solvers.adapter import Claim
from ocf.solvers.continuous import ColdSolver
from ocf.solvers.highs_warm import WarmHighs, cleaned
from ocf.solvers.result import SolverOptions
from ocf.support.tolerances import meets

#: Point and multipliers, as far as they are known, and what the solver says of them.
Found = tuple[FloatArray | None, FloatArray | None, Claim]

#: Seconds that the numbers of a choice of leaves have at least, however late it is found.
LAST_LP = 1.0

#: Part of the cost up to which the bound of the multipliers may stay below it, for a point to be taken as it is.
NEAR = 1e-10


class SmoothLeaves:
    """Solves leaves without open integers; keeps what the same leaf with a larger margin can start from.

    Whoever finds a point, weak duality proves it (`Polytope.bound`): the multipliers are HiGHS's, those of a method of
    our own, or found from the point.

    Parameters
    ----------
    model : LeafModel
    options : SolverOptions
        The time limit is the run's.
    solver : {"", "highs", "scip"}
        What every leaf is given to. By default separable strictly convex costs go to `ocf.solve.dual_ascent`, quadratic
        forms to `ocf.solve.active_set`, and the rest, and what these leave open, to HiGHS. What is open after that
        `ocf.solve.exact_polytope` settles, where it is small.

    Attributes
    ----------
    judge : callable, optional
        Whether the user's own model gives the target to a coded point, where leaves that have it are all one.
    """

    def __init__(self, model: LeafModel, options: SolverOptions, solver: str = "") -> None:
        self.model, self.options, self.solver = model, options, solver
        self.rounding = LeafRounding(model)
        self.judge: Callable[[FloatArray], bool] | None = None
        self._families: dict[Any, tuple[WarmHighs | ColdSolver, FloatArray]] = {}
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
        part = continuous_part(self.model, task)
        if not len(part.used):
            return self._of_one_point(part, run)
        undecided = self.rounding.unmoved(part)
        if self.judge is None or task.eps > 0 or not undecided.any():
            return self._of_numbers(part, cutoff, run)
        rest = continuous_part(self.model, task.without(undecided))
        inside = self._surely_inside(rest, run)
        if inside is None:
            return self._of_numbers(part, cutoff, run)
        if not run.ask(self.judge, inside):  # for it is for the hyperplanes that all values of the numbers share
            return LeafAnswer.empty(task.leaf)
        return self._of_numbers(rest, cutoff, run, partial(run.ask, self.judge))

    def _surely_inside(self, part: ContinuousPart, run: LeafRun) -> FloatArray | None:
        """Some point of a part that is on its side of all hyperplanes, however they are rounded, if one is found."""
        if any(row.slope for row in self.model.relations):
            return None
        x = self._cheapest(part, np.inf, run)[0]
        return None if x is None else next(self.rounding.moved(part, x), None)

    def _of_numbers(
        self, part: ContinuousPart, cutoff: float, run: LeafRun, takes: Callable[[FloatArray], bool] | None = None
    ) -> LeafAnswer:
        """The cheapest values of the used features of a part; `takes` is asked in the place of the tree."""
        if (answer := self._of_one_number(part, run)) is not None:
            return answer
        with run.timed("solve"):
            found = self._cheapest(part, cutoff - part.spent, run)
        answer = self._judged(part, found, cutoff, takes)
        if answer.claim is not LeafClaim.OPEN:
            return answer
        settled = None if answer.point is None else self._of_one_number(part, run, answer.point)
        return settled or self._exactly(part, answer, cutoff, run, takes)

    def _judged(
        self, part: ContinuousPart, found: Found, cutoff: float, takes: Callable[[FloatArray], bool] | None
    ) -> LeafAnswer:
        """What a point and multipliers prove of a part."""
        (x, y, claim), polytope, spent, leaf = found, part.polytope, part.spent, part.task.leaf
        # without a proof of it nothing is known, as after any other end without a point
        if claim is Claim.INFEASIBLE and is_proven_empty(self.rounding.widened(part, cutoff - spent)):
            return LeafAnswer.empty(leaf).searched(cutoff, cutoff)
        if x is None or y is None:
            bound = -np.inf if y is None else polytope.bound(y, x) + spent
            if bound >= cutoff:
                return LeafAnswer.pruned(leaf, bound)
            return LeafAnswer.open(leaf, max(bound, self.model.domain.credit))
        point = self.rounding.inside(part, x, takes)
        cost = np.inf if point is None else self.model.cost_of(point)
        outer = self.rounding.widened(part, min(cost, cutoff) - spent)
        bound = max(outer.bound(y, x) + spent, self.model.domain.credit)
        if point is None:
            return LeafAnswer.open(leaf, bound)
        if meets(min(bound, cost), cost) or cost - bound <= polytope.noise(point[part.used]):
            return LeafAnswer.solved(leaf, point, cost)
        return LeafAnswer(leaf, point, cost, bound, LeafClaim.OPEN)

    def _exactly(
        self,
        part: ContinuousPart,
        known: LeafAnswer,
        cutoff: float,
        run: LeafRun,
        takes: Callable[[FloatArray], bool] | None,
    ) -> LeafAnswer:
        """What is known of a part, or what exact arithmetic adds to that."""
        if run.is_late or not is_exactly_solvable(part.polytope):
            return known
        with run.timed("solve"):
            found = solve_exactly(part.polytope)
        run.called("exact pivots")
        if found is not None:
            answer = self._judged(part, (*found, Claim.OPTIMAL), cutoff, takes)
            best = min(answer, known, key=lambda a: a.cost)
            return best.bounded(min(max(known.bound, answer.bound), best.cost))
        # only rounding lets points in
        limit = min(known.cost, cutoff)
        outer = self.rounding.widened(part, limit - part.spent)
        with run.timed("solve"):
            none = is_exactly_solvable(outer) and solve_exactly(outer) is None
        return known.searched(limit, cutoff) if none else known

    def _of_one_number(self, part: ContinuousPart, run: LeafRun, known: FloatArray | None = None) -> LeafAnswer | None:
        """What rounding leaves open of a part with one number, by asking the user's model about its values.

        None where that does not settle it, and where there are values that rounding does not touch and none is `known`.
        """
        model, leaf = self.model, part.task.leaf
        coupled = model.form is not None or model.domain.credit != 0
        if self.judge is None or part.task.eps > 0 or coupled or not is_one_number(part, model):
            return None
        number = OneNumber(part, self.rounding, partial(run.ask, self.judge))
        if known is None and number.has_room:
            return None
        settled, point = number.cheapest(None if known is None else float(known[part.used[0]]))
        if not settled:
            return None
        if point is None:
            return LeafAnswer.empty(leaf)
        cost = model.cost_of(point)
        return LeafAnswer.solved(leaf, point, cost)

    def _of_one_point(self, part: ContinuousPart, run: LeafRun) -> LeafAnswer:
        """A leaf in which nothing is left to choose; where rounding decides its side, the user's model is asked."""
        run.called("closed form")
        model, leaf, point = self.model, part.task.leaf, part.point
        taken = self.rounding.takes(part)
        if taken is None and self.judge is not None:
            taken = run.ask(self.judge, point)
        cost = model.cost_of(point)
        if taken is None:
            return LeafAnswer.open(leaf, cost)
        return LeafAnswer.solved(leaf, point, cost) if taken else LeafAnswer.empty(leaf)

    def _cheapest(self, part: ContinuousPart, cutoff: float, run: LeafRun) -> Found:
        """Point and multipliers that are optimal as far as the solver's tolerances go."""
        task, polytope = part.task, part.polytope
        key = (task.leaf, *(a.tobytes() for a in (task.place, task.sign, task.lower[self.model.columns.integer])))
        found: Found = None, None, Claim.FAILED
        if self.solver and len(part.used):
            found = self._by_solver(self.solver, part, key, run)
            over = found[2] is Claim.LIMIT and run.is_late
            if over or found[2] is Claim.INFEASIBLE or self._proves(polytope, *found[:2]):
                return found
        own = self._by_hand(part, key, cutoff, run)
        if own is not None:
            return own
        if self.solver != "highs" or found[2] is Claim.FAILED:
            found = self._by_solver("highs", part, key, run)
        return self._polished(polytope, found, run)

    def _proves(self, polytope: Polytope, x: FloatArray | None, y: FloatArray | None) -> bool:
        """Whether a point is inside, and multipliers show that none is cheaper by more than a hair."""
        if x is None or y is None or not polytope.is_met_by(x - polytope.xbar):
            return False
        return polytope.bound(y, x) >= polytope.cost(x) * (1 - NEAR)

    def _by_hand(self, part: ContinuousPart, key: Any, cutoff: float, run: LeafRun) -> Found | None:
        """Point and multipliers by methods of our own; None where they do not suffice."""
        polytope = part.polytope
        if polytope.strictly_convex:
            y = ascend(polytope, self._multipliers.get(key))
            x = polytope.argmin(y @ polytope.G)
            bound = polytope.bound(y)
            size = np.abs(polytope.G) @ np.abs(x) + np.abs(polytope.h)
            if bound >= cutoff:
                run.called("dual ascent")
                return None, y, Claim.LIMIT
            if (polytope.G @ x - polytope.h <= 1e-11 * size).all() and polytope.cost(x) - bound <= NEAR * abs(bound):
                run.called("dual ascent")
                self._multipliers[key] = y
                return x, y, Claim.OPTIMAL
        if polytope.Q is not None and not len(polytope.k):
            found = solve_by_active_set(polytope)
            if found is not None and self._proves(polytope, *found):
                run.called("active set")
                return *found, Claim.OPTIMAL
        return None

    def _polished(self, polytope: Polytope, found: Found, run: LeafRun) -> Found:
        """A solver's point and multipliers, made exact as far as they can be."""
        point, multipliers, claim = found
        if point is None or multipliers is None:
            return point, multipliers, claim
        if polytope.Q is not None:
            exact = None if len(polytope.k) else solve_by_active_set(polytope, point, multipliers)
            if exact is not None:
                run.called("active set")
                return *exact, claim
        elif polytope.strictly_convex:
            run.called("dual ascent")
            multipliers = max(ascend(polytope, multipliers), multipliers, key=polytope.bound)
            better = polytope.argmin(multipliers @ polytope.G)
            near = np.abs(better - point).max() <= 1e-5 * np.abs(point - polytope.xbar).max()
            point = better if near else point
        return point, multipliers, claim

    def _by_solver(self, name: str, part: ContinuousPart, key: Any, run: LeafRun) -> Found:
        """LP or QP of the leaf by a solver; in HiGHS a larger margin than before starts from the last basis."""
        model, task, columns = self.model, part.task, self.model.columns
        own = np.flatnonzero(np.isin(columns.feature, part.used) & (columns.role != "moved"))
        if (name, key) not in self._families:
            with run.timed("instance"):
                self._families[name, key] = self._family(name, task, own)
        family, shift = self._families[name, key]
        lower, upper = self._opened(task, own)
        sides = np.concatenate([task.side, [model.relation_rows[r][1] for r in model.matrix.relations]])
        left = run.seconds_left()
        # the last point that a solver saw is only worth something with its numbers
        answer = family.solve(sides - shift, lower, upper, time_limit=None if left is None else max(left, LAST_LP))
        run.called(family.name, family.version)
        if answer.x is None:
            return None, None, answer.claim
        moved = np.zeros(len(model.origin))
        np.add.at(moved, columns.feature[own], columns.unit[own] * answer.x)
        x = np.clip((model.origin + moved)[part.used], part.polytope.lo, part.polytope.hi)
        y = multipliers_at(part.polytope, x) if answer.multipliers is None else self._with_all(task, answer.multipliers)
        curved = part.polytope.Q is not None or part.polytope.strictly_convex
        return (*(refine(part.polytope, x, y) if curved else (x, y)), answer.claim)

    def _with_all(self, task: LeafTask, multipliers: FloatArray) -> FloatArray:
        """Multipliers of a solver's rows, and zeros for relations that say nothing and have no row."""
        m = len(task.place)
        y = np.zeros(m + len(self.model.relation_rows))
        y[np.concatenate([np.arange(m), m + self.model.matrix.relations])] = cleaned(multipliers)
        return y

    def _family(self, name: str, task: LeafTask, own: IntArray) -> tuple[WarmHighs | ColdSolver, FloatArray]:
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
            [
                task.sign * (model.planes.over_columns[task.place] @ fixed),
                [model.relation_rows[r][0] @ fixed for r in model.matrix.relations],
            ]
        )
        raw = self.options.options  # meant for the solver that was asked for, or for one that takes them
        meant = name == self.solver or (not self.solver and takes(name, raw))
        own_options = self.options if meant else replace(self.options, options={})
        if name == "highs":
            return WarmHighs(form, own_options), np.asarray(shift)
        return ColdSolver(form, matrix_solver(name), own_options), np.asarray(shift)

    def _opened(self, task: LeafTask, own: IntArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of columns, with those whose l0 binary is closed held at 0."""
        columns, lower, upper = self.model.columns, task.lower.copy(), task.upper.copy()
        for j in np.flatnonzero((columns.role == "moved") & (task.upper == 0)).tolist():
            role = "up" if columns.value[j] > 0 else "down"
            upper[(columns.feature == columns.feature[j]) & (columns.role == role)] = 0.0
        return lower[own], upper[own]

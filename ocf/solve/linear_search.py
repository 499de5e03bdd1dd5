"""From a linear problem to a proven answer.

::

    model ──▶ solver ──▶ onto the boundary ──▶ the user's model
      ▲                                             │
      └──────────── tangents of the squares ◀───────┘

A solver meets a constraint within its tolerance only. What it decides (directions, levels, steps) is taken over; the
continuous values, and those of grids that a narrow column rounds and that have too many to list, are then moved along a
straight line towards the inside until the user's own model gives the class, which takes a step of the size of rounding.
The bound is the solver's. Where nothing is continuous, what it decides is a point: one that the model refuses, at a tie
as a rule, is cut off by boxes around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from ocf.arrays import FloatArray
from ocf.cells.incumbent import Incumbent
from ocf.errors import SolverError
from ocf.formulations import linear as formulation
from ocf.formulations.linear import LinearFormulated
from ocf.solve.column_boxes import ColumnBoxes
from ocf.solve.outcome import ROUNDED, Outcome, Run
from ocf.solve.turns import Others, Turns
from ocf.solvers.protocols import Solver
from ocf.solvers.result import SolveResult, SolverOptions, Status
from ocf.solvers.standard_form import StandardForm, compile_model
from ocf.support.tolerances import meets

if TYPE_CHECKING:
    from ocf.problem.linear_problem import LinearProblem


#: Rounds of tangents before the search stops with the gap that is left.
ROUNDS = 100

#: Multiples of the bound on rounding that are taken off what is asked for, one search after the other: all that may
#: win, and where the model refused what was found, a certain win, and one by more than a solver's tolerance.
SLACKS = (1.0, -1.0, -(2.0**36))

#: Calls of a solver for choices of steps and levels that the model may refuse.
MOST_CHOICES = 1000

#: Distances in units of the scale below which a solver's value may be its tolerance and not a change.
NOISE = 1e-6

#: Steps of the size of rounding, doubled each time, before a point counts as refused.
DOUBLINGS = 12


def solve_linear(
    problem: LinearProblem,
    solver: Solver,
    options: SolverOptions,
    confirm: Callable[[FloatArray], bool],
    margin: float = 0.0,
    others: Others = None,
) -> Outcome:
    """Find the cheapest point to which the user's model gives the target.

    Parameters
    ----------
    problem : LinearProblem
    solver : Solver
    options : SolverOptions
        The time limit holds for this call as a whole.
    confirm : callable
        Whether the user's own model gives the target to a coded point.
    margin : float
        By how much the decision values must win.
    others : callable, optional
        Gives the solvers that go on, in turn, where the solver errs.
    """
    run = LinearRun(problem, Turns(solver, others), options, confirm, margin)
    run.start_at_origin()
    if not (run.finished or run.smooth):
        run.search_choices()
    for slack in SLACKS if run.smooth else SLACKS[1:]:
        if not (run.finished or run.best):
            run.search(slack)
    run.conclude()
    return run.outcome()


class LinearRun(Run):
    """State of one solve."""

    def __init__(
        self,
        problem: LinearProblem,
        turns: Turns,
        options: SolverOptions,
        confirm: Callable[[FloatArray], bool],
        margin: float,
    ) -> None:
        super().__init__(options, ("build",), least=problem.space.least_cost)
        self._judge = confirm
        self.problem, self.margin = problem, margin
        #: Features of which a solver's value is moved on.
        self.smooth = [i for i, move in enumerate(problem.moves) if move is not None and not problem.takes_steps(i)]
        self._turns = turns

    @property
    def solver(self) -> Solver:
        """Who solves."""
        return cast(Solver, self._turns.now)

    def confirm(self, point: FloatArray) -> bool:
        """Ask the user's own model, on the clock."""
        return self.ask(self._judge, point)

    def start_at_origin(self) -> None:
        """Nothing is cheaper than the row itself, where it may stay and has the class; or nothing is allowed at all."""
        problem, origin = self.problem, self.problem.origin
        if any(move is not None and move.low > move.high for move in problem.moves):
            self.close(Status.INFEASIBLE, np.inf, "reduction")
            return
        stays = all(move is None or move.low <= 0 <= move.high for move in problem.moves) and all(
            not len(values) or np.isfinite(costs[values == at]).any()
            for values, costs, at in zip(problem.values, problem.value_costs, origin.tolist(), strict=True)
        )
        if stays and np.all(problem.surplus(origin) >= self.margin - problem.error_bound) and self.confirm(origin):
            self.best = Incumbent(np.zeros(0, np.int64), origin, 0.0)
            self.close(Status.OPTIMAL, 0.0, "origin")

    # -- rounds ----------------------------------------------------------------------------------------------

    def search(self, slack: float) -> None:
        """Solve, put the answer onto the boundary, add tangents, until bound and cost meet."""
        built, form = self._built(slack)
        proving = slack > 0  # what the strict model proves is not about the points within rounding of a tie
        stuck = False
        for _ in range(ROUNDS):
            result = self._ask(form)
            if result is not None and result.status is Status.INFEASIBLE:
                self._nothing_cheaper(slack)
            if result is None or self.status is not None or result.x is None:
                break
            if proving:
                self.bound = max(self.bound, min(result.bound, self.upper))
            before = self.upper
            found = self._take(built, result.x)
            self.record()
            if self._met():
                self.close(Status.OPTIMAL, self.bound, self.solver.name)
            if self.status is not None or result.status is not Status.OPTIMAL or self.best is None:
                break
            form, added = _with_tangents(form, built, self.problem, result.x, found)
            if stuck and not added:
                break
            # once more with the cost as a cutoff: a solver's bound is loose by its tolerance, its cutoff is not
            stuck = not added and self.upper >= before

    def search_choices(self) -> None:
        """Solve, and leave the boxes around a choice that was tried, until none of them holds a cheaper point."""
        built, form = self._built(SLACKS[0])
        boxes = ColumnBoxes(form.lower, form.upper)
        for _ in range(MOST_CHOICES):
            if not boxes or self._met():
                self.close(Status.OPTIMAL if self.best else Status.INFEASIBLE, self.bound, self.solver.name)
                break
            box = boxes.pop()
            result = self._ask(form.with_bounds(box.lower, box.upper))
            if result is None or self.status is not None:
                break
            if result.status is not Status.INFEASIBLE:
                box.bound = max(box.bound, result.bound)
                if result.x is None:
                    boxes.push(box)
                    break
                found = self._take(built, result.x)
                self.record()
                form, added = _with_tangents(form, built, self.problem, result.x, found)
                if found is not None and added:
                    boxes.push(box)
                else:
                    columns = built.choice_columns(result.x)
                    boxes.push_around(box, columns, np.rint(result.x[columns]))
            self.bound = max(self.bound, min(boxes.bound, self.upper))

    def conclude(self) -> None:
        """End with what there is, where nothing is proven."""
        if self.finished:
            return
        status = Status.FEASIBLE if self.best else Status.UNKNOWN
        self.blame_rounding(status)
        self.close(status, self.bound, "")

    def _built(self, slack: float) -> tuple[LinearFormulated, StandardForm]:
        """The model, and what a solver is given of it."""
        with self.timed("build"):
            built = formulation.build(self.problem, self.margin, slack)
            form = compile_model(built.model, built.columns)
        self.measure(form)
        return built, form

    def _met(self) -> bool:
        return meets(self.bound, self.upper, self.options.mip_gap)

    def _nothing_cheaper(self, slack: float) -> None:
        """Conclude from a model without a point, or with none that is cheaper than the best."""
        if slack > 0:
            self.prove(self.solver.name)
        elif not self.best and slack == SLACKS[1]:
            self.say(f"{ROUNDED} leaves only points next to a tie, and the model refused those that were tried")
            self.close(Status.UNKNOWN, self.bound, "")

    def _ask(self, form: StandardForm) -> SolveResult | None:
        """What a solver says of a form, the next one where it errs; None where there is no time."""
        while (options := self.remaining()) is not None:
            try:
                result = self.solver.solve(form, options, cutoff=self.best.cost if self.best else None)
            except SolverError as error:
                if options.options:  # an option that the solver does not take is for the user to know
                    raise
                result = SolveResult(Status.ERROR, solver=self.solver.name, message=str(error))
            self.note(result)
            if result.status is not Status.ERROR:
                return result
            said = self._turns.fail(result.message)
            self.say(said or result.message)
            if said is None:
                self.close(Status.ERROR, self.bound, "")
                return result
            self.options = replace(self.options, options={})  # they were the failed solver's own
        return None

    def _take(self, built: LinearFormulated, x: FloatArray) -> FloatArray | None:
        """Keep the point near a solver's that the user's model confirms, if it is the cheapest so far."""
        best = None
        for start, moving in _starts(built, self.problem, x):
            point = self._onto_boundary(start, moving)
            if point is None:
                self.refused += 1
                continue
            cost = self._cost(point)
            if best is None or cost < best[0]:
                best = (cost, point)
            self.adopt(Incumbent(np.zeros(0, np.int64), point, cost))
        return None if best is None else best[1]

    def _onto_boundary(self, start: FloatArray, moving: list[int]) -> FloatArray | None:
        """The first point on the way from a solver's point to the inside to which the model gives the class.

        One to which it does so however it rounds, where that costs no more.
        """
        problem = self.problem
        inside = _inside(problem, start, moving, self.margin)
        at_start = problem.surplus(start) - self.margin
        rise = problem.surplus(inside) - self.margin - at_start
        rising = rise > 0
        if not rising.any():
            # nothing that moves can add to any requirement: it is this point or none
            point = self._towards(start, inside, moving, 0.0)
            clear = np.all(problem.surplus(point) - self.margin >= -problem.error_bound)
            return point if clear and self.confirm(point) else None
        # backwards too (t < 0): the solver may have gone too far within its tolerance
        t = float(np.max(-at_start[rising] / rise[rising]))
        unit = max(float(np.max(problem.error_bound[rising] / rise[rising])), 2.0**-53)
        first: FloatArray | None = None
        for k in range(DOUBLINGS):
            at = t + unit * (2.0**k - 1)
            point = self._towards(start, inside, moving, min(at, 1.0))
            lead = problem.surplus(point) - self.margin
            # beyond the bound on rounding the model says the same of a point in a table of others, too
            certain = bool(np.all(lead >= problem.error_bound))
            if (certain or (first is None and np.all(lead >= -problem.error_bound))) and self.confirm(point):
                if certain:
                    return point if first is None or meets(self._cost(first), self._cost(point)) else first
                first = point
            if at >= 1.0:
                break
        return first

    def _cost(self, point: FloatArray) -> float:
        return self.problem.cost.total(self.problem.space, self.problem.origin, point)

    def _towards(self, start: FloatArray, inside: FloatArray, moving: list[int], t: float) -> FloatArray:
        """Point of the line, each value rounded inwards to one that its column can hold."""
        point = start.copy()
        for i in moving:
            feature, origin = self.problem.space.features[i], self.problem.origin[i]
            value = start[i] + t * (inside[i] - start[i])
            rounded = feature.at_least(value) if inside[i] >= start[i] else feature.at_most(value)
            low, high = feature.ends(origin)
            side = (origin, np.inf) if start[i] >= origin else (-np.inf, origin)
            point[i] = np.clip(rounded, max(low, side[0]), min(high, side[1]))
        return point


# -- from columns to points --------------------------------------------------------------------------------------


def _starts(built: LinearFormulated, problem: LinearProblem, x: FloatArray) -> Iterator[tuple[FloatArray, list[int]]]:
    """Point of a solution and the features that may be moved on; once without changes that may be mere tolerance."""
    point = problem.origin.copy()
    distances, steps, levels = built.decode(x)
    for i, level in levels.items():
        point[i] = problem.values[i][level]
    for i, number in steps.items():
        point[i] = problem.multiple(i, number)
    smooth = [i for i in distances if not problem.takes_steps(i)]
    seen = set()
    for least in (NOISE, 0.0):
        moving = [i for i in smooth if abs(distances[i]) > least or not _may_stay(problem, i)]
        if tuple(moving) in seen:
            continue
        seen.add(tuple(moving))
        start = point.copy()
        for i in moving:
            start[i] = problem.origin[i] + distances[i] * problem.space.features[i].scale
        yield start, moving


def _may_stay(problem: LinearProblem, i: int) -> bool:
    move = problem.moves[i]
    return move is None or move.low <= 0 <= move.high


def _inside(problem: LinearProblem, start: FloatArray, moving: list[int], margin: float) -> FloatArray:
    """Point that wins by most when only some features move, each on its side of the origin."""
    if not moving:
        return start
    bounds = []
    for i in moving:
        origin = problem.origin[i]
        low, high = problem.space.features[i].ends(origin)
        bounds.append((max(low, origin), high) if start[i] >= origin else (low, min(high, origin)))
    slopes = problem.slopes[:, moving]
    size = np.abs(slopes).max(axis=1)
    rows = np.flatnonzero(size > 0)
    point = start.copy()
    if not len(rows):
        return point
    if len(rows) == 1:
        for i, slope, (low, high) in zip(moving, slopes[rows[0]], bounds, strict=True):
            point[i] = high if slope > 0 else low if slope < 0 else start[i]
        return point
    lowest = np.array([low for low, _ in bounds])
    span = np.array([high - low for low, high in bounds])
    fixed = problem.surplus(start) - margin - slopes @ start[moving]
    # max z  s.t.  (slopes (lowest + span w) + fixed) / size >= z,  0 <= w <= 1
    scaled = slopes[rows] * span / size[rows, None]
    side = (slopes[rows] @ lowest + fixed[rows]) / size[rows]
    answer = linprog(
        np.append(np.zeros(len(moving)), -1.0),
        A_ub=np.column_stack([-scaled, np.ones(len(rows))]),
        b_ub=side,
        bounds=[*[(0.0, 1.0)] * len(moving), (None, None)],
    )
    if answer.x is not None:
        point[moving] = np.clip(lowest + span * answer.x[:-1], lowest, lowest + span)
    return point


def _with_tangents(
    form: StandardForm,
    built: LinearFormulated,
    problem: LinearProblem,
    x: FloatArray,
    found: FloatArray | None,
) -> tuple[StandardForm, int]:
    """Add the tangents of the squares at a solution and at the point that it became; says how many are new."""
    if not built.square_up:
        return form, 0
    at = built.places
    rows: list[tuple[int, int, float]] = []
    for i in built.square_up:
        sides = [(at["up"][i], at["square_up"][i]), (at["down"][i], at["square_down"][i])]
        # the solver's squares are too small by its distance from the nearest tangents
        rows += [(j, q, float(x[j])) for j, q in sides if x[j] > 0 and x[q] < x[j] * x[j] * (1 - 1e-13)]
        if found is not None:
            d = float(found[i] - problem.origin[i]) / problem.space.features[i].scale * built.unit[i]
            rows += [(j, q, move) for (j, q), move in zip(sides, (d, -d), strict=True) if move > 0]
    if not rows:
        return form, 0
    coefficients = np.array([formulation.tangent(move) for *_, move in rows])
    index = np.arange(len(rows))
    matrix = sp.csr_array(
        (
            np.concatenate([-coefficients[:, 0], np.ones(len(rows))]),
            (np.tile(index, 2), np.array([r[0] for r in rows] + [r[1] for r in rows])),
        ),
        shape=(len(rows), form.n_cols),
    )
    return form.append_rows(matrix, coefficients[:, 1], np.full(len(rows), np.inf)), len(rows)

"""All trees at once: the driver of `ocf.formulations.hyperplanes` and `ocf.formulations.ocean_hyperplanes`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import cast

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.formulations import get_value_formulation
from ocf.problem.lines import LineBound, LineCondition, line_bounds, line_conditions, tangent_condition
from ocf.problem.requirements import Requirements, ScoreCurve, SoftmaxThreshold
from ocf.problem.totals import TotalThreshold
from ocf.solve.first_points import leaves_at, pulled_back, ways
from ocf.solve.first_points import meets as certainly_meets
from ocf.solve.leaf_answer import EMPTY, LeafAnswer
from ocf.solve.leaf_query import Query
from ocf.solve.narrowed import narrowed
from ocf.solve.outcome import Outcome
from ocf.solve.turns import FIRST_STALL
from ocf.solvers import Solver, get_solver
from ocf.solvers.result import STALLED, Progress, SolveResult, Status
from ocf.solvers.standard_form import StandardForm, compile_model
from ocf.solvers.tangents import Tangents
from ocf.support.tolerances import meets

logger = logging.getLogger(__name__)

#: Choices of one leaf per tree that a search may try.
MAX_CHOICES = 200

#: Choices of leaves after which what is left is split at a score that is seen through a curve.
MOST_UNSPLIT = 6

#: Tangents of a softmax that one choice of leaves may take, and the part of its scores that they need not tell apart.
MAX_TANGENTS, CLOSE = 100, 1e-11

#: Multiples of the rounding of a softmax by which its last tangent is raised, in turn, until the model takes a point.
RAISES = tuple(4.0**k for k in range(10))


def solve_globally(
    query: Query,
    confirm: Callable[[FloatArray], bool],
    formulation: str = "hyperplanes",
    known: FloatArray | None = None,
    relaxed: Outcome | None = None,
) -> Outcome:
    """Answer a query for an ensemble of any size, by one MILP or MIQP over all leaves.

    Parameters
    ----------
    query : Query
    confirm : callable
        Whether the user's own model gives the target to a coded point.
    formulation : str
        Of `ocf.formulations.VALUE_FORMULATIONS`, with all trees in one model.
    known : (n, n_features) float64, optional
        Coded rows of the data that have the target: first points are looked for on the way to them.
    relaxed : Outcome, optional
        Of the same problem with less asked of it: its bound holds, and its point may serve.
    """
    query.settle_by(confirm)
    run = _Global(query, confirm, formulation)
    if relaxed is not None:
        run.begin(relaxed)
    problem = query.model.problem
    lines = len(problem.ensemble.lines) > 0
    conditions = line_conditions(problem.ensemble, problem.target) if lines else [[] for _ in problem.alternatives]
    for requirements, own in zip(problem.alternatives, conditions, strict=True):
        if run.proved:
            break
        if known is not None and requirements.curve is None and not lines:
            run.start(requirements, known)
        run.search(requirements, own)
    return run.outcome()


@dataclass(frozen=True, eq=False)
class _Part:
    """What is left of an alternative: its model, a condition that the rows hold from outside, and a bound on its cost.

    The leaves are the columns of the model from `first` on.
    """

    form: StandardForm
    first: int
    curve: ScoreCurve | None
    bound: float
    squares: Tangents | None = None
    choices: int = 0

    def followed(self, x: FloatArray) -> _Part:
        """The part with tangents of its squares at a solution.

        Parameters
        ----------
        x : (n_cols,) float64
            Of the part's model.
        """
        return self if self.squares is None else replace(self, form=self.squares.followed(self.form, x))

    def without(self, chosen: IntArray, y: FloatArray, rows: Sequence[Requirements], bound: float) -> list[_Part]:
        """The parts of it without a choice of leaves.

        Parameters
        ----------
        chosen : (n,) int64
            The leaves, one per tree, but those of lines.
        y : (n_leaves,) float64
            In the solution that chose them.
        rows : sequence of Requirements
            To be added.
        bound : float
            On the cost of all parts.
        """
        cut = np.zeros(len(y))
        cut[chosen] = 1.0
        form = self._with(self.form, -cut[:, None], np.array([1.0 - len(chosen)]))
        for own in rows:
            form = self._with(form, own.gain, own.need)
        left = replace(self, form=form, bound=bound, choices=self.choices + 1)
        curve = self.curve
        if not isinstance(curve, TotalThreshold) or left.choices < MOST_UNSPLIT or not len(curve.ensemble.lines):
            return [left]
        scores = curve.ensemble.base_score + curve.ensemble.contributions.T @ y
        point = np.clip(scores[[term.output for term in curve.total.terms]], curve.low, curve.high)
        halves = curve.split(point)
        if halves is None:
            return [left]
        nearer = 1 if all(a <= b for a, b in zip(point, halves[0].high, strict=True)) else 0
        shrunk = [half.shrunk() for half in (halves[nearer], halves[1 - nearer])]
        made = [(half, half.rows()) for half in shrunk if half is not None]
        return [replace(left, form=self._with(form, own.gain, own.need), curve=half, choices=0) for half, own in made]

    def _with(self, form: StandardForm, gain: FloatArray, need: FloatArray) -> StandardForm:
        """More rows of leaves."""
        rows = np.zeros((len(need), form.n_cols))
        rows[:, self.first : self.first + len(gain)] = gain.T
        return form.append_rows(rows, need, np.full(len(need), np.inf))


class _Global:
    """State of one global search: the best choice of leaves, and what is proven of the others."""

    def __init__(self, query: Query, confirm: Callable[[FloatArray], bool], formulation: str) -> None:
        self.query, self.run, self._confirm = query, query.run, confirm
        self._build = get_value_formulation(formulation)
        self.best: LeafAnswer | None = None
        self.bound, self._solver = np.inf, query.solver
        self.floor, self._from = -np.inf, cast(FloatArray | None, None)

    @property
    def upper(self) -> float:
        return self.best.cost if self.best else np.inf

    def begin(self, relaxed: Outcome) -> None:
        """Take over what is known of the problem with less asked of it.

        Parameters
        ----------
        relaxed : Outcome
        """
        for key, seconds in relaxed.times.items():
            self.run.times[key] = self.run.times.get(key, 0.0) + seconds
        self.run.results += relaxed.results
        self.run.called(relaxed.proved_by or "reduction")
        self.floor, point = max(relaxed.bound, 0.0), relaxed.point
        if point is not None:
            assert relaxed.cost is not None
            problem, self._from = self.query.model.problem, point
            leaves = leaves_at(problem, point[None])[0]
            if any((own.gain[leaves].sum(axis=0) >= own.need).all() for own in problem.alternatives):
                self._settles(LeafAnswer(tuple(leaves.tolist()), point, relaxed.cost, self.floor, "solved"))
        self.run.history.append(Progress(time.perf_counter() - self.run.start, self.floor, self.upper))

    @property
    def proved(self) -> bool:
        """Whether nothing can be cheaper than the best point, or there is nothing at all."""
        return self.floor == np.inf or meets(self.floor, self.upper)

    def start(self, requirements: Requirements, known: FloatArray) -> None:
        """The cheapest points of leaves with the target, by ways from the row, or a nearer point, to known ones.

        Parameters
        ----------
        requirements : Requirements
        known : (n, n_features) float64
        """
        model, begin, bound = self.query.model, time.perf_counter(), self.bound
        problem, judged = model.problem, self.run.times["confirm"]
        if np.isnan(problem.origin).any() or model.domain.impossible or not len(known):
            return
        tried = set[tuple[int, ...]]()
        for start in (problem.origin, self._from):
            for point in () if start is None else ways(problem, requirements, known, start):
                left = self.run.seconds_left()
                if left is not None and left <= 0:
                    break
                self._descend(requirements, point, tried)
        self.bound = bound  # nothing is cut off yet
        self.run.times["incumbent"] += time.perf_counter() - begin - (self.run.times["confirm"] - judged)

    def _descend(self, requirements: Requirements, point: FloatArray | None, tried: set[tuple[int, ...]]) -> None:
        """The cheapest point of a point's leaves, and of those that are met on the way back from it, in turn."""
        problem = self.query.model.problem
        while point is not None:
            point = pulled_back(problem, requirements, point)
            chosen = tuple(leaves_at(problem, point[None])[0].tolist())
            if chosen in tried:
                return
            tried.add(chosen)
            answer = self.query.solve_leaf(chosen)
            self._settles(answer)
            point = answer.point
            if point is not None and not certainly_meets(problem, requirements, point[None])[0]:
                return

    def search(self, requirements: Requirements, conditions: Sequence[LineCondition]) -> None:
        """The cheapest point that meets one alternative of the target, if it beats the best so far.

        Parameters
        ----------
        requirements : Requirements
        conditions : sequence of LineCondition
            What the alternative asks of scores to which lines add.
        """
        query, model = self.query, self.query.model
        if self.proved or model.domain.impossible or (model.columns.lower > model.columns.upper).any():
            return
        begin = time.perf_counter()
        left = narrowed(model, requirements, self.upper)
        self.run.times["reduce"] += time.perf_counter() - begin
        models = self._build(model.problem, requirements, model.search.part, None if left is None else left.columns)
        form = compile_model(models.model, [*models.variables, *models.leaves])
        if left is not None:
            upper = form.upper.copy()
            upper[models.columns.n + np.flatnonzero(~left.live)] = 0.0
            form = form.with_bounds(np.minimum(form.lower, upper), upper)
        squares, self._solver = None if form.Q is None else Tangents.of(form, self.upper), query.solver
        self.run.called(self._solver)
        form = form if squares is None else squares.form
        parts = [_Part(form, models.columns.n, requirements.curve, self.floor, squares)]
        for _ in range(MAX_CHOICES):
            parts += self._next_choice(parts.pop(), conditions)
            if not parts:
                return
        self.bound = min(self.bound, *(max(part.bound, 0.0) for part in parts))

    def _next_choice(self, part: _Part, conditions: Sequence[LineCondition]) -> list[_Part]:
        """Try the choice of leaves that the model of a part thinks the cheapest; the parts that are left, best last."""
        left = self.run.seconds_left()
        if left is not None and left <= 0:
            self.bound = min(self.bound, max(part.bound, 0.0))
            return []
        result = self._asked(part, left)
        stalled, bound = result.message == STALLED and not result.proven, max(result.bound, part.bound)
        if (stalled or result.status is Status.ERROR) and self._may_switch:
            why = "stalled" if stalled else f"failed ({result.message})"
            self.run.say(f"{self._solver} {why}; scip went on")
            self._solver = "scip"
            self.run.called("scip")
            if result.x is not None:
                self._take(self._chosen(self._leaf_values(part, result.x)), conditions, part.curve)
            return [replace(part, bound=bound)]
        if result.x is None or result.status is Status.INFEASIBLE:
            self.bound = min(self.bound, bound)
            said = result.message if result.status is not Status.INFEASIBLE else ""
            self.run.say(said)
            return []
        tree, y = self.query.model.tree, self._leaf_values(part, result.x)
        chosen = self._chosen(y)
        rows = self._take(chosen, conditions, part.curve)
        if meets(bound, self.upper) or not result.ended or self.query.options.mip_gap > 0:
            self.bound = min(self.bound, max(bound, 0.0))
            return []
        return part.followed(result.x).without(np.delete(chosen, tree.lines[:, 0]), y, rows, bound)

    @property
    def _may_switch(self) -> bool:
        """Whether SCIP may go on in the place of the solver."""
        return self.query.may_switch and self._solver != "scip"

    def _asked(self, part: _Part, left: float | None) -> SolveResult:
        """What the solver says of a part; where SCIP may go on, it ends where it stalls."""
        options, cutoff = self.query.options, self.upper if np.isfinite(self.upper) else None
        watched = self._may_switch and not options.options and (left is None or left > 2 * FIRST_STALL)
        asked = replace(options, time_limit=left, stall_limit=FIRST_STALL if watched else None)
        result = cast(Solver, get_solver(self._solver)).solve(part.form, asked, cutoff=cutoff)
        self.run.note(result)
        return result

    def _leaf_values(self, part: _Part, x: FloatArray) -> FloatArray:
        """Values of the leaves in a solution of a part's model."""
        return x[part.first : part.first + self.query.model.tree.n_leaves]

    def _chosen(self, y: FloatArray) -> tuple[int, ...]:
        """The leaf of each tree that a solution chooses, by the values of the leaves."""
        return tuple(int(a + y[a:b].argmax()) for a, b in pairwise(self.query.model.tree.leaf_offsets.tolist()))

    def _take(
        self, chosen: tuple[int, ...], conditions: Sequence[LineCondition], curve: ScoreCurve | None
    ) -> list[Requirements]:
        """Solve over the common region of the chosen leaves, exactly; rows that were found to hold of all points."""
        ensemble = self.query.model.problem.ensemble
        if not len(ensemble.lines):
            self._solve(chosen)
        elif isinstance(curve, SoftmaxThreshold):
            return self._below_tangents(chosen, conditions, curve)
        else:
            leaves = np.array(chosen[: ensemble.n_trees])
            for sure in (False, True):  # what rounding may let through bounds the cost, and may be refused
                bounds = line_bounds(ensemble, conditions, leaves, sure=sure)
                if bounds is None or self._solve(chosen, bounds):
                    break
        return []

    def _below_tangents(
        self, chosen: tuple[int, ...], conditions: Sequence[LineCondition], curve: SoftmaxThreshold
    ) -> list[Requirements]:
        """Tangents at each point that misses a softmax in turn (Kelley), until one misses it by rounding alone."""
        ensemble = self.query.model.problem.ensemble
        leaves, tangents = np.array(chosen[: ensemble.n_trees]), list[LineCondition]()
        scores = np.zeros(ensemble.n_outputs)
        for _ in range(MAX_TANGENTS):
            bounds = line_bounds(ensemble, [*conditions, *tangents], leaves, sure=False)
            answer = EMPTY if bounds is None else self.query.solve_leaf(chosen, bounds=bounds)
            settled = self._settles(answer)
            if settled:
                break
            assert answer.point is not None
            scores = ensemble.scores(answer.point[None])[0]
            latest = tangent_condition(curve, scores)
            tangents = [*(c for c in tangents if not c.resembles(latest)), latest]
            if curve.miss(scores) <= CLOSE * (1 + np.abs(scores).max()):
                break
        self.bound = min(self.bound, answer.bound)
        # the last alone is clear of others nearly parallel to it, and all hold a point where the cost falls along it
        for by, kept in product(() if settled else RAISES, (tangents[-1:], tangents)):
            own = [tangent.raised(by * (curve.high - curve.low)) for tangent in kept]
            bounds = line_bounds(ensemble, [*conditions, *own], leaves, sure=True)
            if bounds is None or self._settles(self.query.solve_leaf(chosen, bounds=bounds)):
                break
        return [curve.tangent(scores)]

    def _solve(self, chosen: tuple[int, ...], bounds: Sequence[LineBound] = ()) -> bool:
        """Whether the model need not be asked about another point of the chosen leaves."""
        answer = self.query.solve_leaf(chosen, bounds=bounds)
        settled = self._settles(answer)
        # rows that a solver meets within its tolerance may have no common point; other points of leaves that lines
        # add to score otherwise
        if settled or self.query.model.problem.ensemble.lines.size:
            self.bound = min(self.bound, answer.bound)
        return settled

    def _settles(self, answer: LeafAnswer) -> bool:
        """Whether an answer leaves nothing to ask of its leaves; taken where it is the best and the model agrees."""
        if answer.point is None or answer.cost >= self.upper:
            return True
        if not self.run.ask(self._confirm, answer.point):
            self.run.refused += 1
            logger.info("the model refuses a point; its choice of leaves is cut off and the search goes on")
            return False
        self.best = answer
        self.run.history.append(Progress(time.perf_counter() - self.run.start, -np.inf, answer.cost))
        return True

    def outcome(self) -> Outcome:
        """The answer."""
        model, best = self.query.model, self.best
        bound = min(max(self.bound, self.floor), self.upper)
        if best is not None:
            met = meets(bound, best.cost)
            bound = best.cost if met else bound
            status = Status.OPTIMAL if met else Status.FEASIBLE
        else:
            status = Status.INFEASIBLE if bound == np.inf else Status.UNKNOWN
        self.run.history.append(Progress(time.perf_counter() - self.run.start, bound, self.upper))
        sizes = {"leaves": model.tree.n_leaves, "columns": model.columns.n, "choices": len(self.run.results)}
        return self.run.conclude(status, best, bound, sizes)

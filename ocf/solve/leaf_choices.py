"""Choices of one leaf per tree: the cheapest point of each, and the best that the user's model has confirmed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product

import numpy as np

from ocf.arrays import FloatArray
from ocf.problem.lines import LineBound, LineCondition, line_bounds, tangent_condition
from ocf.problem.requirements import Requirements, ScoreCurve, SoftmaxThreshold
from ocf.solve.first_points import leaves_at, pulled_back, ways
from ocf.solve.first_points import meets as certainly_meets
from ocf.solve.leaf_answer import LeafAnswer, LeafClaim
from ocf.solve.leaf_query import Query
from ocf.solvers.result import Progress

logger = logging.getLogger(__name__)

#: Tangents of a softmax that one choice of leaves may take, and the part of its scores that they need not tell apart.
MAX_TANGENTS, CLOSE = 100, 1e-11

#: Multiples of the rounding of a softmax by which its last tangent is raised, in turn, until the model takes a point.
RAISES = tuple(4.0**k for k in range(10))


class LeafChoices:
    """The choices that were tried, the best point of them, and what is proven of those that are not tried again.

    Parameters
    ----------
    query : Query
    confirm : callable
        Whether the user's own model gives the target to a coded point.

    Attributes
    ----------
    best : LeafAnswer or None
    bound : float
        On the cost of what choices that were tried leave open; inf where they leave nothing.
    """

    def __init__(self, query: Query, confirm: Callable[[FloatArray], bool]) -> None:
        self.query, self.run, self._confirm = query, query.run, confirm
        self.best: LeafAnswer | None = None
        self.bound = np.inf

    @property
    def upper(self) -> float:
        """Cost of the best point; inf without one."""
        return self.best.cost if self.best else np.inf

    def begin_at(self, point: FloatArray, cost: float, bound: float) -> None:
        """Take a point that was found before, if it has the target.

        Parameters
        ----------
        point : (n_features,) float64
            Coded.
        cost, bound : float
            Its cost, and a bound on all costs.
        """
        problem = self.query.model.problem
        leaves = leaves_at(problem, point[None])[0]
        if any((own.gain[leaves].sum(axis=0) >= own.need).all() for own in problem.alternatives):
            self.settles(LeafAnswer(tuple(leaves.tolist()), point, cost, bound, LeafClaim.SOLVED))

    def start(self, requirements: Requirements, known: FloatArray, nearer: FloatArray | None) -> None:
        """The cheapest points of leaves with the target, by ways from the row, or a nearer point, to known ones.

        Parameters
        ----------
        requirements : Requirements
        known : (n, n_features) float64
        nearer : (n_features,) float64, optional
            Coded, as all points here.
        """
        model, begin, bound = self.query.model, time.perf_counter(), self.bound
        problem, judged = model.problem, self.run.times["confirm"]
        if np.isnan(problem.origin).any() or model.domain.impossible or not len(known):
            return
        tried = set[tuple[int, ...]]()
        for start in (problem.origin, nearer):
            for point in () if start is None else ways(problem, requirements, known, start):
                if self.run.is_late:
                    break
                self._descend(requirements, point, tried)
        self.bound = bound  # nothing is cut off yet
        self.run.times["incumbent"] += time.perf_counter() - begin - (self.run.times["confirm"] - judged)

    def _descend(self, requirements: Requirements, point: FloatArray | None, tried: set[tuple[int, ...]]) -> None:
        """The cheapest point of a point's leaves, and of those that are met on the way back from it, in turn."""
        problem, model = self.query.model.problem, self.query.model
        kept = [*model.whole.tolist(), *model.listed.tolist()]
        while point is not None:
            point = pulled_back(problem, requirements, point)
            chosen = tuple(leaves_at(problem, point[None])[0].tolist())
            if chosen in tried:
                return
            tried.add(chosen)
            answer = self.query.solve_leaf(chosen, held={i: float(point[i]) for i in kept})
            self.settles(answer)
            point = answer.point
            if point is not None and not certainly_meets(problem, requirements, point[None])[0]:
                return

    def named_by(self, y: FloatArray) -> tuple[int, ...]:
        """The leaf of each tree that a solution chooses, by the values of the leaves.

        Parameters
        ----------
        y : (n_leaves,) float64
        """
        return tuple(int(a + y[a:b].argmax()) for a, b in pairwise(self.query.model.tree.leaf_offsets.tolist()))

    def take(
        self,
        chosen: tuple[int, ...],
        conditions: Sequence[LineCondition],
        curve: ScoreCurve | None,
        least: Callable[[], float],
    ) -> list[Requirements]:
        """Solve over the common region of the chosen leaves, exactly; rows that were found to hold of all points.

        Parameters
        ----------
        chosen : tuple of int
        conditions : sequence of LineCondition
        curve : ScoreCurve, optional
            What the target asks of scores besides its rows.
        least : callable
            As in `cost_at`, of points that are not asked for again; inf where all are.
        """
        ensemble = self.query.model.problem.ensemble
        if not len(ensemble.lines):
            self._solve(chosen, least)
        elif isinstance(curve, SoftmaxThreshold):
            return self._below_tangents(chosen, conditions, curve, least)
        else:
            leaves = np.array(chosen[: ensemble.n_trees])
            for sure in (False, True):  # what rounding may let through bounds the cost, and may be refused
                bounds = line_bounds(ensemble, conditions, leaves, sure=sure)
                if bounds is None or self._solve(chosen, least, bounds):
                    break
        return []

    def _below_tangents(
        self,
        chosen: tuple[int, ...],
        conditions: Sequence[LineCondition],
        curve: SoftmaxThreshold,
        least: Callable[[], float],
    ) -> list[Requirements]:
        """Tangents at each point that misses a softmax in turn (Kelley), until one misses it by rounding alone."""
        ensemble = self.query.model.problem.ensemble
        leaves, tangents = np.array(chosen[: ensemble.n_trees]), list[LineCondition]()
        scores = np.zeros(ensemble.n_outputs)
        for _ in range(MAX_TANGENTS):
            bounds = line_bounds(ensemble, [*conditions, *tangents], leaves, sure=False)
            answer = LeafAnswer.empty(chosen) if bounds is None else self.query.solve_leaf(chosen, bounds=bounds)
            settled = self.settles(answer)
            if settled:
                break
            assert answer.point is not None
            scores = ensemble.scores(answer.point[None])[0]
            latest = tangent_condition(curve, scores)
            tangents = [*(c for c in tangents if not c.resembles(latest)), latest]
            if curve.miss(scores) <= CLOSE * (1 + np.abs(scores).max()):
                break
        self._keep(answer, least)
        # the last alone is clear of others nearly parallel to it, and all hold a point where the cost falls along it
        for by, kept in product(() if settled else RAISES, (tangents[-1:], tangents)):
            own = [tangent.raised(by * (curve.high - curve.low)) for tangent in kept]
            bounds = line_bounds(ensemble, [*conditions, *own], leaves, sure=True)
            if bounds is None or self.settles(self.query.solve_leaf(chosen, bounds=bounds)):
                break
        return [curve.tangent(scores)]

    def cost_at(self, chosen: tuple[int, ...], held: Mapping[int, float], least: Callable[[], float]) -> float:
        """Solve over the common region of the chosen leaves; what its cheapest point costs, inf if it is refused.

        Parameters
        ----------
        chosen : tuple of int
            One leaf a tree.
        held : mapping of int to float
            As in `Query.solve_leaf`.
        least : callable
            Gives a number that no point of the region is below.
        """
        answer = self.query.solve_leaf(chosen, held=held)
        if not self.settles(answer):
            return np.inf
        self._keep(answer, least)
        return answer.cost

    def _keep(self, answer: LeafAnswer, least: Callable[[], float]) -> None:
        """Keep what an answer tells of leaves that are not asked about again, of which no point is below `least`."""
        # where rounding leaves a region open, it tells nothing of what is cheaper than any of it
        self.bound = min(self.bound, max(answer.bound, least()) if answer.bound < answer.cost else answer.bound)

    def _solve(self, chosen: tuple[int, ...], least: Callable[[], float], bounds: Sequence[LineBound] = ()) -> bool:
        """Whether the model need not be asked about another point of the chosen leaves."""
        answer = self.query.solve_leaf(chosen, bounds=bounds)
        settled = self.settles(answer)
        # rows that a solver meets within its tolerance may have no common point; other points of leaves that lines
        # add to score otherwise
        if settled or self.query.model.problem.ensemble.lines.size:
            self._keep(answer, least)
        return settled

    def settles(self, answer: LeafAnswer) -> bool:
        """Whether an answer leaves nothing to ask of its leaves; taken where it is the best and the model agrees.

        Parameters
        ----------
        answer : LeafAnswer
        """
        if answer.point is None or answer.cost >= self.upper:
            return True
        if not self.run.ask(self._confirm, answer.point):
            self.run.refused += 1
            logger.info("the model refuses a point; its choice of leaves is cut off and the search goes on")
            return False
        self.best = answer
        self.run.history.append(Progress(time.perf_counter() - self.run.start, -np.inf, answer.cost))
        return True

"""What is known of one alternative of a target, whoever solves it: its best point, and the cells that are left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.incumbent import Incumbent, find_incumbent
from ocf.cells.reduction import MAX_PAIRS, reduce
from ocf.cells.sliding import Placement
from ocf.solve.outcome import Run
from ocf.solvers.result import SolverOptions, Status
from ocf.support.tolerances import falls_short, meets, with_ties

if TYPE_CHECKING:
    from ocf.solvers.cell_form import Compiled
    from ocf.solvers.standard_form import Reduced

#: Pairs of leaves that a reduction probes at most, by the first, poor incumbent and before a search over cells. By a
#: poor incumbent hundreds of leaves stay, and probing them took 0.25 s of a row on breast cancer, where a better
#: incumbent takes 0.04 s. It pays before a matrix solver, which slows down with the matrix; the box search prunes as
#: much itself.
FEW_PAIRS = 200_000

#: Scans of a feature that the second search for an incumbent may take. A thirtieth of what the longest takes finds
#: nearly the same points: on adult one of 220 searches ends in another point than with twice as many scans. A search
#: over cells looks for better points itself.
LITTLE_EFFORT = 1_000

#: Live leaves that must be left for the longest search to pay before a matrix solver: it takes 0.04 s, as long as HiGHS
#: with fewer. Random forests of 100 trees of depth 5, 20 rows each, seconds of HiGHS with the longest search always and
#: so: credit_default 2.1 and 1.4, german_credit 1.2 and 0.7, students 17.1 and 15.5, online_news 2.8 and 3.0.
SOME_LEAVES = 300

#: Further searches before a matrix solver, and live leaves that must be left for them to pay: there the proof takes
#: seconds, and twice as many where a better point comes up in it. On breast cancer, a random forest of 100 trees of
#: depth 5, HiGHS takes 44 s without and 39 with them for 20 rows, of which three get a better point.
SEEDS, MORE_LEAVES = (1, 2, 3), 1_000

#: Rows of the data from which the first, short search for an incumbent starts, besides the row itself. On adult and
#: compas the row itself leads to the best point in 19 of 20 cases, and no start after the second to any.
FIRST_STARTS = 4


@dataclass(frozen=True)
class Terms:
    """On which terms all alternatives of a target are solved.

    Attributes
    ----------
    options : SolverOptions
    judge : callable
        Whether the user's own model gives the target to a coded point.
    start : float
        By `time.perf_counter`.
    limit : float
        Points of this cost, and dearer ones, are of no interest.
    fewest : bool
        Whether to find the fewest changes among the points that cost the same, too.
    """

    options: SolverOptions
    judge: Callable[[FloatArray], bool]
    start: float
    limit: float = np.inf
    fewest: bool = False


class ReducedRun(Run):
    """State of the solve of one alternative, up to the call of a solver.

    Parameters
    ----------
    cells : CellProblem
    terms : Terms

    Attributes
    ----------
    original : CellProblem
        All cells in which there may be a point of interest, or one that costs as little.
    cells : CellProblem
        Those that are left by the best point.
    left_open : float
        Bound of cells that are excluded though columns may hold cheaper numbers in them; inf where there are none.
    """

    def __init__(self, cells: CellProblem, terms: Terms) -> None:
        least = cells.problem.space.least_cost
        super().__init__(terms.options, ("incumbent", "reduce", "instance"), terms.start, least)
        self.terms, self.limit, self.fewest = terms, terms.limit, terms.fewest
        self.original, self.cells, self.left_open = cells, cells, np.inf
        self.sizes = {"leaves": int(cells.live.sum()), "cells": int(cells.open.sum())}
        self._start_at_origin()

    def _start_at_origin(self) -> None:
        """Nothing can be cheaper than a free point, if the origin is one."""
        if self.cells.infeasible:
            self.close(Status.INFEASIBLE, np.inf, "reduction")
            return
        origin, choice = self.cells.problem.origin, _free_cells(self.cells)
        if choice is not None and self.confirm(origin):
            self.best = Incumbent(choice, origin, 0.0)
            self.close(Status.OPTIMAL, 0.0, "origin")

    def close(self, status: Status, bound: float, by: str) -> None:
        """End as `Run.close` does; without a proof where numbers that were not tried may be better.

        Parameters
        ----------
        status : Status
        bound : float
        by : str
        """
        if falls_short(self.left_open, self.upper):
            self.bound = bound = min(max(self.bound, bound), self.left_open)
            if status is not Status.OPTIMAL or falls_short(bound, self.upper, self.options.mip_gap):
                status = {Status.OPTIMAL: Status.FEASIBLE, Status.INFEASIBLE: Status.UNKNOWN}.get(status, status)
                by = ""
                self.blame_rounding(status)
        super().close(status, bound, by)

    # -- points --------------------------------------------------------------------------------------------

    @property
    def upper(self) -> float:
        """What an answer must cost less than."""
        return min(super().upper, self.limit)

    def adopt(self, best: Incumbent | None) -> None:
        """Take over a point if it is better than what is at hand, or costs the same and changes less."""
        if best is not None and (best.cost < self.upper or self.changes_less(best.cells)):
            self.best, self.settled = best, False

    def changes_less(self, choice: IntArray) -> bool:
        """Whether a choice of cells costs as little as the best point and changes less, where that is asked for.

        Parameters
        ----------
        choice : (n_features,) int64
            Counted within the features.
        """
        if not self.fewest or self.best is None:
            return False
        return self.original.changes_less(choice, self.best.cells, self.best.cost)

    def confirm(self, point: FloatArray) -> bool:
        """Ask the user's own model, on the clock."""
        return self.ask(self.terms.judge, point)

    def admits(self, choice: IntArray) -> bool:
        """Whether the user's constraints and the user's model accept a choice of cells.

        Parameters
        ----------
        choice : (n_features,) int64
            Counted within the features.
        """
        placed = self.place(choice)
        if placed is None or (placed.point is not None and not self.confirm(placed.point)):
            return False
        self.leave(placed)
        return placed.point is not None

    def place(self, choice: IntArray) -> Placement | None:
        """The cheapest point of a choice of cells, as far as it is of interest.

        Parameters
        ----------
        choice : (n_features,) int64
            Counted within the features.
        """
        return self.cells.place(choice, cutoff=with_ties(self.upper))

    def leave(self, placed: Placement | None) -> None:
        """Keep what a choice of cells leaves open that is looked at no more.

        Parameters
        ----------
        placed : Placement or None
            Its cheapest point, as far as it was found.
        """
        if placed is not None and placed.leaves_open:
            self.left_open = min(self.left_open, placed.bound)

    # -- what is left --------------------------------------------------------------------------------------

    def prepare(self, candidates: IntArray | None, *, by_cells: bool) -> None:
        """Incumbent, then reduction by it; a longer search for the incumbent only where that proves nothing.

        Parameters
        ----------
        candidates : (n, n_features) int64, optional
            Cells of known rows of the target class.
        by_cells : bool
            Whether a search over cells follows, and no matrix solver.
        """
        if np.isfinite(self.limit):
            self.shrink(FEW_PAIRS)
            self.original = self.cells
        for k, (search, pairs, leaves) in enumerate(self._searches(by_cells)):
            # a point is worth the first milliseconds, however short the time is
            worth = self.cells.live.sum() >= leaves and (k == 0 or self.remaining() is not None)
            if worth and not self.finished:
                self._search(candidates, **search)
                self.shrink(pairs)

    def _searches(self, by_cells: bool) -> list[tuple[dict[str, int], int, int]]:
        """Searches for an incumbent: settings, pairs of the reduction after it, and live leaves from which it pays.

        Where the cost couples features each point has to be placed in its cells in exact arithmetic, and the search
        over cells goes from the least point of each box to points around it itself: a limit is enough to begin with.
        """
        first, second = {"effort": 0, "starts": FIRST_STARTS}, {"effort": LITTLE_EFFORT}
        if by_cells and self.cells.couples:
            return [] if np.isfinite(self.limit) else [(first, FEW_PAIRS, 0)]
        if by_cells:
            return [(first, FEW_PAIRS, 0), (second, FEW_PAIRS, 0)]
        longer = [({}, MAX_PAIRS, SOME_LEAVES), *(({"seed": seed}, MAX_PAIRS, MORE_LEAVES) for seed in SEEDS)]
        return [(first, FEW_PAIRS, 0), (second, MAX_PAIRS, 0), *longer]

    def _search(self, candidates: IntArray | None, **search: int) -> None:
        begin, spent = time.perf_counter(), self.times["confirm"]
        self.adopt(find_incumbent(self.original, candidates, self.confirm, limit=self.limit, **search))
        self.times["incumbent"] += time.perf_counter() - begin - (self.times["confirm"] - spent)
        self.record()

    def shrink(self, max_pairs: int = MAX_PAIRS) -> None:
        """Reduce what is left by the best point; see `ocf.cells.reduction.reduce` about pairs."""
        if self.finished or self.remaining() is None:
            return
        with self.timed("reduce"):
            reduction = reduce(self.cells, self.upper, max_pairs=max_pairs)
        self.cells = reduction.cells
        self.bound = max(self.bound, min(reduction.bound, self.upper))
        self.sizes |= {"leaves_left": int(self.cells.live.sum()), "cells_left": int(self.cells.open.sum())}
        if reduction.proved:
            self.prove("reduction")
        else:
            self.record()

    def beside(self, *, closed: bool) -> CellProblem | None:
        """What may cost as little as the best point, where that is asked for and can be asked; else None.

        The best point is the cheapest of its leaves then. Reduction has kept what costs less.

        Parameters
        ----------
        closed : bool
            Whether these leaves are closed.
        """
        if not self.fewest or self.best is None:
            return None
        best = _cheapest_in_its_leaves(self.original, self.best)
        if best is not self.best and not self.confirm(best.point):
            return None
        self.best = best
        if with_ties(self.upper) > self.limit:
            return None
        own = (self.cells.partition.leaves_at(best.cells),) if closed else ()
        asked = replace(self.original, excluded=(*self.cells.excluded, *own), requirements=self.cells.requirements)
        return reduce(asked, with_ties(best.cost), max_pairs=FEW_PAIRS).cells

    def asked_of_matrix(
        self, formulation: Compiled, options: SolverOptions
    ) -> tuple[CellProblem, Reduced | None, bool]:
        """The cells that a solver of matrices is asked about, their matrix, and whether that is what costs as little.

        Before the optimum is proven that is what lies in other leaves than the best point, and then what changes less.
        There is no matrix where reduction leaves nothing.

        Parameters
        ----------
        formulation : Compiled
        options : SolverOptions
        """
        begin = time.perf_counter()
        self.cells = _with_first_tangents(self.cells, self.upper)
        proven = meets(self.bound, self.upper)
        beside = self.beside(closed=not proven) if options.mip_gap == 0 else None
        cells = self.cells if beside is None else beside
        if cells.infeasible:
            self.settled = beside is not None
            self.prove("reduction")
            return cells, None, beside is not None
        instance = formulation.instance(cells, self.upper)
        self.times["instance"] += time.perf_counter() - begin
        if beside is not None and proven and self.best is not None:
            instance = formulation.with_few_changes(instance, cells, cells.count_changes(self.best.cells) - 1)
        return cells, instance, beside is not None

    def exclude(self, leaves: IntArray) -> None:
        """Leave out what lies in a choice of leaves.

        Parameters
        ----------
        leaves : (n_trees,) int64
        """
        self.cells = replace(self.cells, excluded=(*self.cells.excluded, leaves))


def _free_cells(cells: CellProblem) -> IntArray | None:
    """Cells of the origin, where they cost nothing and nothing is cheaper; else None."""
    part, origin = cells.partition, cells.problem.origin
    choice: IntArray = part.locate(origin[None, :])[0]
    flat = part.offsets[:-1] + choice
    unmoved = np.isnan(origin) | (cells.value[flat] == origin)
    free = unmoved.all() and (cells.cost[flat] == 0).all() and (cells.cost >= 0).all()
    free = free and cells.cost_of(choice) == 0 and cells.allows(origin)
    return choice if free and not cells.is_excluded(part.leaves_at(choice)) else None


def _cheapest_in_its_leaves(cells: CellProblem, best: Incumbent) -> Incumbent:
    """The cheapest point in the leaves of a point, which local search may have missed: the point itself if it is."""
    choice = cells.cheapest_within(cells.partition.leaves_at(best.cells))
    placed = None if choice is None else cells.place(choice, hasty=True)
    if choice is None or placed is None or placed.point is None or placed.cost >= best.cost:
        return best
    return Incumbent(choice, placed.point, placed.cost)


def _with_first_tangents(cells: CellProblem, upper: float) -> CellProblem:
    """Cells whose values have forms, with tangents to begin with where a cost is known."""
    if cells.values is None or not cells.values.forms or cells.tangents or not np.isfinite(upper):
        return cells
    return replace(cells, tangents=tuple(cells.values.first_tangents(upper)))

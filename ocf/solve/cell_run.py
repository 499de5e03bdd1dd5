"""The solve of one alternative of a target: turns of solvers, with the user's model as judge of what they find."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ocf.arrays import IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.incumbent import Incumbent
from ocf.cells.score_sum import hold_sum
from ocf.errors import MemoryLimitError, SolverError, TimeLimitError
from ocf.formulations.base import decode
from ocf.problem.requirements import Requirements
from ocf.solve.fewest import nothing_is_less
from ocf.solve.method import BOUNDS_FROM
from ocf.solve.reduced_run import ReducedRun, Terms
from ocf.solve.stand_in import STAND_IN
from ocf.solve.turns import Others, Turns
from ocf.solvers.cell_form import CellModel
from ocf.solvers.protocols import CellSolver
from ocf.solvers.result import LEFT_OPEN, STALLED, Progress, SolveResult, SolverOptions, Status
from ocf.support.limits import current, within
from ocf.support.tolerances import meets, with_ties

if TYPE_CHECKING:
    from ocf.solvers import Solver
    from ocf.solvers.cell_form import Compiled
    from ocf.solvers.standard_form import Reduced, StandardForm

logger = logging.getLogger(__name__)

#: Relative tolerance of solvers on rows that follow a square by tangents, in the units of `Compiled.instance`.
TANGENT_ERROR = 1e-7

#: Points that the model may refuse one by one where the search knows a curve up to rounding. After that many there is
#: a tie, of which each next point is cut off by a tangent.
FEW_REFUSED = 10

#: Seconds that a solver has at least after cuts were made.
LEAST_SECONDS = 0.01


class CellRun(ReducedRun):
    """State of the solve of one alternative.

    Parameters
    ----------
    cells : CellProblem
    terms : Terms
    solver : Solver or CellSolver
    others : callable, optional
        As in `ocf.solve.cell_search.solve_alternatives`.
    """

    def __init__(self, cells: CellProblem, terms: Terms, solver: Solver | CellSolver, others: Others = None) -> None:
        super().__init__(cells, terms)
        self._others, self.turns = others, Turns(solver, others)
        self._parts: list[CellProblem] = []

    def step(self, compiled: Callable[[], Compiled]) -> None:
        """One call of the solver.

        Parameters
        ----------
        compiled : callable
            Gives the compiled formulation when it is needed.
        """
        options = self.remaining()
        if options is None:
            self._give_up()
            return
        # of a ball it is no news that it holds nothing
        turn = self.turns.begin(options, self.best is None and not np.isfinite(self.limit))
        try:
            if isinstance(self.turns.now, CellSolver) and not self._solved_instead(compiled, options):
                self._search_cells(self.turns.now, compiled, turn)
            elif not isinstance(self.turns.now, CellSolver):
                self._solve_matrix(self.turns.now, compiled(), turn)
        except (TimeLimitError, MemoryLimitError) as error:
            if self.best is None and isinstance(error, MemoryLimitError):
                raise
            self.say(str(error))
            self._give_up()
        except SolverError as error:
            if options.options:  # an option that the solver does not take is for the user to know
                raise
            self._failed(str(error))

    def settle(self, compiled: Callable[[], Compiled]) -> None:
        """Let the answer be one with the fewest changes among those that cost the same, where that is asked for.

        It is `settled` where the fewest changes are shown; without time they are not.

        Parameters
        ----------
        compiled : callable
            Gives the compiled formulation when it is needed.
        """
        while self.fewest and self.status is Status.OPTIMAL and self.best is not None and not self.settled:
            best, proved_by, message = self.best, self.proved_by, self.message
            if self.bound >= with_ties(self.upper) or nothing_is_less(self.original, self.upper, best.cells):
                self.settled = True
            elif with_ties(self.upper) <= self.limit and self.remaining() is not None:
                self.status = None
                while not self.finished:
                    self.step(compiled)
                self.message = message
                self.close(Status.OPTIMAL, self.upper, proved_by)
            if self.best is best:
                return

    def split_off(self) -> list[CellRun]:
        """Runs of the parts that this one has left to others, by branching on scores."""
        parts, self._parts = self._parts, []
        terms = replace(self.terms, options=self.options, fewest=False)
        runs = [CellRun(cells, terms, self.turns.now, self._others) for cells in parts]
        for run in runs:
            run.bound = max(run.bound, self.bound)
        return runs

    # -- a search over cells -------------------------------------------------------------------------------

    def _search_cells(self, solver: CellSolver, compiled: Callable[[], Compiled], options: SolverOptions) -> None:
        offset, building = time.perf_counter() - self.start, 0.0
        left, memory, called = self.seconds_left(), current().memory, time.perf_counter()

        def relaxation() -> Compiled | None:
            nonlocal building
            begin = time.perf_counter()
            try:
                with within(None if left is None else left - (begin - called), memory):  # asked for by any thread
                    formulation = compiled() if STAND_IN.bounds_in_time() else None
            except TimeLimitError:  # the search goes on without it, if it has time
                return None
            finally:
                building = time.perf_counter() - begin
            return formulation if formulation and formulation.formulation == BOUNDS_FROM else None

        beside = self.beside(closed=False)
        result = solver.solve_cells(
            self.cells if beside is None else beside,
            options,
            cutoff=self.upper,
            confirm=asked_of_points(self.cells.requirements, self.admits),
            relaxation=relaxation,
            fewest=self.fewest and (self.best is None or beside is not None),
            incumbent=None if self.best is None or beside is None else self.best.cells,
        )
        self.times["solve"] -= building
        if self._noted(result, offset):
            self._take(result, None if result.x is None else result.x.astype(np.int64))

    # -- a matrix ------------------------------------------------------------------------------------------

    def _solved_instead(self, compiled: Callable[[], Compiled], options: SolverOptions) -> bool:
        """Whether a matrix solver was asked in the place of the search, whose kernels are not compiled yet."""
        instead = None if options.options or self.cells.couples else STAND_IN.solver(self.turns.now, self._others)
        if instead is None:
            return False
        begin = time.perf_counter()
        self._solve_matrix(instead, compiled(), STAND_IN.options(options))
        STAND_IN.spent(time.perf_counter() - begin)
        return True

    def _solve_matrix(self, solver: Solver, formulation: Compiled, options: SolverOptions) -> None:
        cells, instance, beside = self.asked_of_matrix(formulation, options)
        if instance is None:
            return
        worst = with_ties(self.upper) if beside else self.upper + self._tangent_error
        form, options = self._with_cuts(instance, worst, options)
        self.measure(form)
        offset = time.perf_counter() - self.start
        over = CellModel(formulation, cells, instance) if solver is self.turns.now else None
        result = solver.solve(form, options, cutoff=worst if np.isfinite(worst) else None, over=over)
        if over is not None and formulation.formulation == BOUNDS_FROM:  # boxes come once their kernels are compiled
            STAND_IN.spent(result.seconds)
        result = replace(result, fewest=beside and result.status is Status.INFEASIBLE)
        if solver is not self.turns.now and result.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            self.note(result)  # the search itself goes on
            self._raise_bound(result)
            return
        if not self._noted(result, offset):
            return
        choice = None if result.x is None else decode(instance.restore(result.x)[: formulation.n_leaves], cells)
        if result.x is not None and choice is None:
            self._failed("the solver's tolerances admit a point that does not exist; try another solver")
        else:
            self._take(result, choice)

    def _with_cuts(self, instance: Reduced, limit: float, options: SolverOptions) -> tuple[StandardForm, SolverOptions]:
        """The matrix with cuts between trees, where they are asked for, and options with the time that is left."""
        if options.cuts == "none":
            return instance.form, options
        from ocf.solvers.root_cuts import root_cuts

        cuts, seconds = root_cuts(instance, self.cells, limit, options), options.time_limit
        self.times["solve"] += cuts.seconds
        self.sizes["cuts"] = len(cuts.side)
        left = None if seconds is None else max(seconds - cuts.seconds, LEAST_SECONDS)
        return cuts.added_to(instance.form), replace(options, time_limit=left)

    @property
    def _tangent_error(self) -> float:
        """By how much a solver's bound must exceed the best cost where squares are met by tangents.

        Its tolerances are about as wide: choices of cells whose cost is that near are looked at one by one, exactly.
        """
        values, by_matrix = self.cells.values, not isinstance(self.turns.now, CellSolver)
        squares = values is not None and values.couples and (values.forms or self.cells.tangents)
        return TANGENT_ERROR * abs(self.upper) if squares and by_matrix and self.best else 0.0

    # -- what a solver gave --------------------------------------------------------------------------------

    def _noted(self, result: SolveResult, offset: float) -> bool:
        """Keep what a solver's result says of time and progress; whether the search goes on with it."""
        self.note(result)
        if not result.proven and current().full:
            self.say(current().said_full)
        self.history += [
            Progress(offset + p.seconds, min(max(p.bound, self.bound), self.upper), min(p.incumbent, self.upper))
            for p in result.history
        ]
        self.settled = result.fewest
        if result.message == LEFT_OPEN:
            self.left_open = min(self.left_open, result.bound)
        if result.status is Status.INFEASIBLE:
            self.prove(result.solver)
        elif result.status is Status.ERROR:
            self._failed(result.message)
            return False
        return not self.finished

    def _raise_bound(self, result: SolveResult) -> None:
        self.bound = max(self.bound, min(result.bound - self._tangent_error, self.upper))

    def _take(self, result: SolveResult, choice: IntArray | None) -> None:
        """Let the user's model judge what the solver found."""
        self._raise_bound(result)
        if choice is None:
            self._hand_over(result)
            return
        leaves, values = self.cells.partition.leaves_at(choice), self.cells.values
        placed = self.place(choice)
        if placed is None or placed.point is None:
            assert values is not None
            logger.info("exact arithmetic finds no point in a choice of cells that the solver's tolerances allow")
            self.leave(placed)
            self.exclude(values.of_constraints(leaves))
            return
        met = meets(self.bound, self.upper)
        improved = placed.cost < self.upper or self.changes_less(choice)
        if met and not improved:
            self.prove(result.solver)
            return
        if (self.cells.margins(leaves) < 0).any():
            logger.info("the trees miss the target at a point that the solver's tolerances allow; it is cut off")
            self._cut_off(leaves)
            return
        if not self.confirm(placed.point):
            self.refused += 1
            logger.info("the model refuses a point; it is cut off and the search goes on")
            self._cut_off(leaves)
            return
        self.leave(placed)
        if improved:
            # of those that cost the same the least cost is kept
            self.best = Incumbent(choice, placed.point, min(placed.cost, self.upper))
        met = meets(self.bound, self.upper)
        couples = values is not None and values.couples
        # where cells have values within, a solver's gap is that of its own, cheaper point
        near = self.options.mip_gap > 0 and (not couples or meets(self.bound, self.upper, self.options.mip_gap))
        if met or (result.status is Status.OPTIMAL and near):
            self.close(Status.OPTIMAL, self.upper if met else self.bound, result.solver)
        elif values is not None and couples:
            # what these cells can give is known exactly now: ask for something cheaper in others
            self.exclude(values.of_constraints(leaves))
            bends = list(values.tangents(self.cells.partition.offsets[:-1] + choice, placed.point))
            new = values.worthwhile(bends, self.cells.tangents, self.upper)
            self.cells = replace(self.cells, tangents=(*self.cells.tangents, *new))
            self.shrink()
        elif result.status is Status.OPTIMAL and improved:
            # the solver's own tolerance is wider than ours: ask whether anything is cheaper than this point
            self.shrink()
        else:
            self._hand_over(result)

    def _cut_off(self, leaves: IntArray) -> None:
        """Leave out a choice of leaves that has not got the target, and what else that tells."""
        values, tightened = self.cells.values, self.cells.requirements.tightened(leaves)
        if tightened:
            self.cells, *others = (replace(self.cells, requirements=rows) for rows in tightened)
            self._parts += others
        else:
            self.exclude(leaves if values is None else values.of_model(leaves))

    # -- who goes on ---------------------------------------------------------------------------------------

    def _hand_over(self, result: SolveResult) -> None:
        """After a turn that ended without an answer let the next solver go on, or give up where it was no turn."""
        said = self.turns.end(self.best is None, result.message == STALLED)
        self.say(said or "")
        if said is None:
            self._give_up()

    def _failed(self, why: str) -> None:
        """Hand over to the next solver, if there is one."""
        said = self.turns.fail(why)
        self.say(why if said is None else said)
        if said is None:
            self.close(Status.ERROR, self.bound, "")
            return
        # the raw options were the failed solver's own
        self.options = replace(self.options, options={})
        logger.warning("%s", said)

    def _give_up(self) -> None:
        """End with the best point and the bound that there are."""
        self.close(Status.FEASIBLE if self.best else Status.UNKNOWN, self.bound, "")


def asked_of_points(
    requirements: Requirements, admits: Callable[[IntArray], bool]
) -> Callable[[IntArray], bool] | None:
    """What a search over cells asks about its points; None where a refused one is cut off by more than its leaves.

    Parameters
    ----------
    requirements : Requirements
        That the search looks for.
    admits : callable
        Whether the user's constraints and the user's model accept a choice of cells.
    """
    left = FEW_REFUSED
    if requirements.curve is None:
        return admits
    if not hold_sum(requirements):
        return None

    def few_refused(choice: IntArray) -> bool:
        nonlocal left
        if left == 0 or admits(choice):
            return True
        left -= 1
        return False

    return few_refused

"""From a problem to a proven answer: incumbent, reduction, solver, and the user's model as judge.

::

    incumbent ──▶ reduction ──▶ (proved?) ──▶ matrix of what is left ──▶ solver ──▶ the user's model
                                                    ▲                                   │
                                                    └── cut the point off ◀─── refused ─┘

A target with several alternatives is solved one alternative after the other; each has only to beat the best point of
those before it, and the answer's bound is the least of theirs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.incumbent import Incumbent, find_incumbent
from ocf.cells.reduction import MAX_PAIRS, reduce
from ocf.cells.score_sum import hold_sum
from ocf.errors import MemoryLimitError, SolverError, TimeLimitError
from ocf.formulations.base import decode
from ocf.problem.requirements import Requirements
from ocf.solve.fewest import nothing_is_less
from ocf.solve.method import BOUNDS_FROM
from ocf.solve.outcome import Outcome, Run
from ocf.solve.stand_in import STAND_IN
from ocf.solve.turns import Others, Turns
from ocf.solvers.cell_form import CellModel
from ocf.solvers.protocols import CellSolver
from ocf.solvers.result import STALLED, Progress, SolveResult, SolverOptions, Status, monotone
from ocf.support.limits import current, within
from ocf.support.tolerances import meets, with_ties

if TYPE_CHECKING:
    from ocf.solvers import Solver
    from ocf.solvers.cell_form import Compiled
    from ocf.solvers.standard_form import Reduced, StandardForm


logger = logging.getLogger(__name__)

#: Relative tolerance of solvers on rows that follow a square by tangents, in the units of `Compiled.instance`.
TANGENT_ERROR = 1e-7

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

#: Points that the model may refuse one by one where the search knows a curve up to rounding. After that many there is
#: a tie, of which each next point is cut off by a tangent.
FEW_REFUSED = 10

#: Seconds that a solver has at least after cuts were made.
LEAST_SECONDS = 0.01

#: Rows of the data from which the first, short search for an incumbent starts, besides the row itself. On adult and
#: compas the row itself leads to the best point in 19 of 20 cases, and no start after the second to any.
FIRST_STARTS = 4


def solve(
    cells: CellProblem,
    compiled: Callable[[], Compiled],
    solver: Solver | CellSolver,
    options: SolverOptions,
    *,
    confirm: Callable[[FloatArray], bool],
    candidates: IntArray | None = None,
    use_reduction: bool = True,
) -> Outcome:
    """Find the cheapest point to which the user's model gives the target, which has one alternative.

    Parameters
    ----------
    cells : CellProblem
    compiled : callable
        Gives the compiled formulation when it is needed; reduction alone often proves optimality.
    solver, options, confirm, candidates, use_reduction
        As in `solve_alternatives`.
    """
    return solve_alternatives(
        (cells,),
        (compiled,),
        solver,
        options,
        confirm=confirm,
        candidates=candidates,
        use_reduction=use_reduction,
    )


def solve_alternatives(
    alternatives: Sequence[CellProblem],
    compiled: Sequence[Callable[[], Compiled]],
    solver: Solver | CellSolver,
    options: SolverOptions,
    *,
    confirm: Callable[[FloatArray], bool],
    candidates: IntArray | None = None,
    use_reduction: bool = True,
    others: Others = None,
    limit: float = np.inf,
    fewest: bool = False,
) -> Outcome:
    """Find the cheapest point to which the user's model gives the target.

    Parameters
    ----------
    alternatives : sequence of CellProblem
        See `ocf.cells.forms.to_alternatives`.
    compiled : sequence of callables
        Gives the compiled formulation of each alternative when it is needed; reduction alone often proves optimality.
    solver : Solver
    options : SolverOptions
        The time limit holds for this call as a whole.
    confirm : callable
        Whether the user's own model gives the target to a coded point.
    candidates : (n, n_features) int64, optional
        Cells of known rows of the target class.
    use_reduction : bool
        Off: neither incumbent nor reduction, the solver does everything.
    others : callable, optional
        Gives the solvers that go on, in turn, where the solver errs, and in turns of growing length where it finds no
        point.
    limit : float
        Points of this cost, and dearer ones, are of no interest: ``infeasible`` says that there is none below.
    fewest : bool
        Whether to find by the same proof, too, the fewest changes among the points that cost the same; see
        `Outcome.fewest`. A matrix solver can do so for the point from which it starts: its question is then what lies
        beside that.
    """
    start, best = time.perf_counter(), None
    fewest = fewest and use_reduction and all(map(_leaves_decide, alternatives))
    runs = [CellRun(cells, solver, others, options, confirm, start, limit, fewest) for cells in alternatives]
    for run in runs if use_reduction else ():
        run.adopt(best)
        run.prepare(candidates)
        best = run.best
    waiting = sorted(zip(runs, compiled, strict=True), key=lambda pair: pair[0].bound)
    done: list[tuple[CellRun, Callable[[], Compiled]]] = []
    several = len(runs) > 1
    while waiting:
        run, matrix = waiting.pop(0)
        run.adopt(best)
        if use_reduction and several:
            run.shrink()
        while not run.finished:
            run.step(matrix)
            parts = run.split_off()
            waiting, several = [*waiting, *((part, matrix) for part in parts)], several or bool(parts)
        best = run.best
        done.append((run, matrix))
        waiting.sort(key=lambda pair: pair[0].bound)
    for run, matrix in done:
        if run.status is Status.OPTIMAL:
            run.adopt(best)
            settle(run, matrix)
            best = run.best
    return solve_together([run.outcome() for run, _ in done])


def settle(run: CellRun, compiled: Callable[[], Compiled]) -> None:
    """Let the answer of a run be one with the fewest changes among those that cost the same, where that is asked for.

    Parameters
    ----------
    run : CellRun
        Finished. It is `settled` where the fewest changes are shown; without time they are not.
    compiled : callable
        As in `solve_alternatives`.
    """
    while run.fewest and run.status is Status.OPTIMAL and run.best is not None and not run.settled:
        best, proved_by, message = run.best, run.proved_by, run.message
        if run.bound >= with_ties(run.upper) or nothing_is_less(run.original, run.upper, best.cells):
            run.settled = True
        elif with_ties(run.upper) <= run.limit and run.remaining() is not None:
            run.status = None
            while not run.finished:
                run.step(compiled)
            run.message = message
            run.close(Status.OPTIMAL, run.upper, proved_by)
        if run.best is best:
            return


def solve_together(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of a union, from those of its alternatives in the order in which they were solved."""
    if len(outcomes) == 1:
        return outcomes[0]
    last = outcomes[-1]  # has the best point of all
    statuses = {o.status for o in outcomes}
    if Status.ERROR in statuses:
        status = Status.ERROR
    elif statuses <= {Status.OPTIMAL, Status.INFEASIBLE}:
        status = Status.INFEASIBLE if last.point is None else Status.OPTIMAL
    else:
        status = Status.UNKNOWN if last.point is None else Status.FEASIBLE
    bound = min(o.bound for o in outcomes)
    return Outcome(
        status,
        last.point,
        last.cost,
        bound if last.cost is None else min(bound, last.cost),
        {key: sum(o.times[key] for o in outcomes) for key in last.times},
        sum(o.nodes for o in outcomes),
        sum(o.refused for o in outcomes),
        ", ".join(dict.fromkeys(o.proved_by for o in outcomes if o.proved_by)),
        tuple(result for o in outcomes for result in o.results),
        {key: max(o.sizes.get(key, 0) for o in outcomes) for o in outcomes for key in o.sizes},
        merged_progress([o.history for o in outcomes]),
        next((o.message for o in outcomes if o.message), ""),
        all(o.fewest or o.status is Status.INFEASIBLE for o in outcomes),
    )


def merged_progress(histories: Sequence[Sequence[Progress]]) -> tuple[Progress, ...]:
    """Bound and incumbent of a union over time: the least of the alternatives' bounds, the best of their points."""
    events = sorted((p.seconds, k, p) for k, history in enumerate(histories) for p in history)
    bounds, incumbent, out = [-np.inf] * len(histories), np.inf, []
    for seconds, k, progress in events:
        bounds[k] = progress.bound
        incumbent = min(incumbent, progress.incumbent)
        out.append(Progress(seconds, min(*bounds, incumbent), incumbent))
    return monotone(out)


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


def _free_cells(cells: CellProblem) -> IntArray | None:
    """Cells of the origin, where they cost nothing and nothing is cheaper; else None."""
    part, origin = cells.partition, cells.problem.origin
    choice: IntArray = part.locate(origin[None, :])[0]
    flat = part.offsets[:-1] + choice
    unmoved = np.isnan(origin) | (cells.value[flat] == origin)
    free = unmoved.all() and (cells.cost[flat] == 0).all() and (cells.cost >= 0).all()
    free = free and cells.cost_of(choice) == 0 and cells.allows(origin)
    return choice if free and not cells.is_excluded(part.leaves_at(choice)) else None


def _leaves_decide(cells: CellProblem) -> bool:
    """Whether all points in the same leaves are as admissible, and cost what their cells cost: something if changed."""
    changed = np.repeat(~np.isnan(cells.problem.origin), cells.partition.widths)
    changed &= cells.value != np.repeat(cells.problem.origin, cells.partition.widths)
    by_changes = bool((changed == (cells.cost > 0))[cells.open].all())
    return by_changes and cells.values is None and cells.leaf_cost is None and cells.requirements.curve is None


def _cheapest_in_its_leaves(cells: CellProblem, best: Incumbent) -> Incumbent:
    """The cheapest point in the leaves of a point, which local search may have missed: the point itself if it is."""
    choice = cells.cheapest_within(cells.partition.leaves_at(best.cells))
    placed = None if choice is None else cells.place(choice)
    if choice is None or placed is None or placed.cost >= best.cost:
        return best
    return Incumbent(choice, placed.point, placed.cost)


def _tangent_error(run: CellRun) -> float:
    """By how much a solver's bound must exceed the best cost where squares are met by tangents.

    Its tolerances are about as wide: choices of cells whose cost is that near are looked at one by one, exactly.
    """
    values, by_matrix = run.cells.values, not isinstance(run.turns.now, CellSolver)
    squares = values is not None and values.couples and (values.forms or run.cells.tangents)
    return TANGENT_ERROR * abs(run.upper) if squares and by_matrix and run.best else 0.0


def _with_first_tangents(cells: CellProblem, upper: float) -> CellProblem:
    """Cells whose values have forms, with tangents to begin with where a cost is known."""
    if cells.values is None or not cells.values.forms or cells.tangents or not np.isfinite(upper):
        return cells
    return replace(cells, tangents=tuple(cells.values.first_tangents(upper)))


def _with_cuts(
    run: CellRun, instance: Reduced, limit: float, options: SolverOptions
) -> tuple[StandardForm, SolverOptions]:
    """The matrix of a run with cuts between trees, where they are asked for, and options with the time that is left."""
    if options.cuts == "none":
        return instance.form, options
    from ocf.solvers.root_cuts import root_cuts

    cuts, seconds = root_cuts(instance, run.cells, limit, options), options.time_limit
    run.times["solve"] += cuts.seconds
    run.sizes["cuts"] = len(cuts.side)
    left = None if seconds is None else max(seconds - cuts.seconds, LEAST_SECONDS)
    return cuts.added_to(instance.form), replace(options, time_limit=left)


def _beside(run: CellRun, *, closed: bool) -> CellProblem | None:
    """What may cost as little as the best point of a run, where that is asked for and can be asked; else None.

    With `closed` the leaves of the point are, of which it is the cheapest. Reduction has kept what costs less.
    """
    if not run.fewest or run.best is None:
        return None
    best = _cheapest_in_its_leaves(run.original, run.best)
    if best is not run.best and not run.confirm(best.point):
        return None
    run.best = best
    if with_ties(run.upper) > run.limit:
        return None
    own = (run.cells.partition.leaves_at(best.cells),) if closed else ()
    asked = replace(run.original, excluded=(*run.cells.excluded, *own), requirements=run.cells.requirements)
    return reduce(asked, with_ties(best.cost), max_pairs=FEW_PAIRS).cells


def _asked_of_matrix(
    run: CellRun, formulation: Compiled, options: SolverOptions
) -> tuple[CellProblem, Reduced | None, bool]:
    """The cells that a solver of matrices is asked about, their matrix, and whether it is asked what costs as little.

    Before the optimum is proven that is what lies in other leaves than the best point, and then what changes less.
    There is no matrix where reduction leaves nothing.
    """
    begin = time.perf_counter()
    run.cells = _with_first_tangents(run.cells, run.upper)
    proven = meets(run.bound, run.upper)
    beside = _beside(run, closed=not proven) if options.mip_gap == 0 else None
    cells = run.cells if beside is None else beside
    if cells.infeasible:
        run.settled = beside is not None
        run.prove("reduction")
        return cells, None, beside is not None
    instance = formulation.instance(cells, run.upper)
    run.times["instance"] += time.perf_counter() - begin
    if beside is not None and proven and run.best is not None:
        instance = formulation.with_few_changes(instance, cells, cells.count_changes(run.best.cells) - 1)
    return cells, instance, beside is not None


def _changes_less(run: CellRun, choice: IntArray) -> bool:
    """Whether a choice of cells costs as little as the best point and changes less, where that is asked for."""
    return run.fewest and run.best is not None and run.original.changes_less(choice, run.best.cells, run.best.cost)


def _searches(run: CellRun) -> list[tuple[dict[str, int], int, int]]:
    """Searches for an incumbent: settings, pairs of the reduction after it, and live leaves from which it pays.

    Where the cost couples features each point has to be placed in its cells in exact arithmetic, and the search over
    cells goes from the least point of each box to points around it itself: a limit is enough to begin with.
    """
    first, second = {"effort": 0, "starts": FIRST_STARTS}, {"effort": LITTLE_EFFORT}
    by_cells = isinstance(run.turns.now, CellSolver)
    if by_cells and run.cells.couples:
        return [] if np.isfinite(run.limit) else [(first, FEW_PAIRS, 0)]
    if by_cells:
        return [(first, FEW_PAIRS, 0), (second, FEW_PAIRS, 0)]
    longer = [({}, MAX_PAIRS, SOME_LEAVES), *(({"seed": seed}, MAX_PAIRS, MORE_LEAVES) for seed in SEEDS)]
    return [(first, FEW_PAIRS, 0), (second, MAX_PAIRS, 0), *longer]


class CellRun(Run):
    """State of the solve of one alternative."""

    def __init__(
        self,
        cells: CellProblem,
        solver: Solver | CellSolver,
        others: Others,
        options: SolverOptions,
        confirm: Callable[[FloatArray], bool],
        start: float,
        limit: float = np.inf,
        fewest: bool = False,
    ) -> None:
        super().__init__(options, ("incumbent", "reduce", "instance"), start)
        self._judge, self.limit, self.fewest = confirm, limit, fewest
        self.original = self.cells = cells
        self._others, self.turns = others, Turns(solver, others)
        self._parts: list[CellProblem] = []
        self.sizes = {"leaves": int(cells.live.sum()), "cells": int(cells.open.sum())}
        self._start_at_origin()

    @property
    def upper(self) -> float:
        """What an answer must cost less than."""
        return min(super().upper, self.limit)

    def adopt(self, best: Incumbent | None) -> None:
        """Take over a point if it is better than what is at hand, or costs the same and changes less."""
        if best is not None and (best.cost < self.upper or _changes_less(self, best.cells)):
            self.best, self.settled = best, False

    def confirm(self, point: FloatArray) -> bool:
        """Ask the user's own model, on the clock."""
        return self.ask(self._judge, point)

    def _start_at_origin(self) -> None:
        """Nothing can be cheaper than a free point, if the origin is one."""
        if self.cells.infeasible:
            self.close(Status.INFEASIBLE, np.inf, "reduction")
            return
        origin, choice = self.cells.problem.origin, _free_cells(self.cells)
        if choice is not None and self.confirm(origin):
            self.best = Incumbent(choice, origin, 0.0)
            self.close(Status.OPTIMAL, 0.0, "origin")

    def prepare(self, candidates: IntArray | None) -> None:
        """Incumbent, then reduction by it; a longer search for the incumbent only where that proves nothing."""
        if np.isfinite(self.limit):
            self.shrink(FEW_PAIRS)
            self.original = self.cells
        for k, (search, pairs, leaves) in enumerate(_searches(self)):
            # a point is worth the first milliseconds, however short the time is
            worth = self.cells.live.sum() >= leaves and (k == 0 or self.remaining() is not None)
            if worth and not self.finished:
                self._search(candidates, **search)
                self.shrink(pairs)

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

    def step(self, compiled: Callable[[], Compiled]) -> None:
        """One call of the solver."""
        options = self.remaining()
        if options is None:
            self.close(Status.FEASIBLE if self.best else Status.UNKNOWN, self.bound, "")
        else:
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
                self.close(Status.FEASIBLE if self.best else Status.UNKNOWN, self.bound, "")
            except SolverError as error:
                if options.options:  # an option that the solver does not take is for the user to know
                    raise
                self._failed(str(error))

    def _solved_instead(self, compiled: Callable[[], Compiled], options: SolverOptions) -> bool:
        """Whether a matrix solver was asked in the place of the search, whose kernels are not compiled yet."""
        instead = None if options.options or self.cells.couples else STAND_IN.solver(self.turns.now, self._others)
        if instead is None:
            return False
        begin = time.perf_counter()
        self._solve_matrix(instead, compiled(), STAND_IN.options(options))
        STAND_IN.spent(time.perf_counter() - begin)
        return True

    def _hand_over(self, result: SolveResult) -> bool:
        """After a turn that ended without an answer let the next solver go on; False where that was not its turn."""
        said = self.turns.end(self.best is None, result.message == STALLED)
        self.say(said or "")
        return said is not None

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
            return formulation if formulation and formulation.formulation == "interval" else None

        beside = _beside(self, closed=False)
        result = solver.solve_cells(
            self.cells if beside is None else beside,
            options,
            cutoff=self.upper,
            confirm=asked_of_points(self.cells.requirements, self._admits),
            relaxation=relaxation,
            fewest=self.fewest and (self.best is None or beside is not None),
            incumbent=None if self.best is None or beside is None else self.best.cells,
        )
        self.times["solve"] -= building
        if self._noted(result, offset):
            self._take(result, None if result.x is None else result.x.astype(np.int64))

    def _solve_matrix(self, solver: Solver, formulation: Compiled, options: SolverOptions) -> None:
        cells, instance, beside = _asked_of_matrix(self, formulation, options)
        if instance is None:
            return
        worst = with_ties(self.upper) if beside else self.upper + _tangent_error(self)
        form, options = _with_cuts(self, instance, worst, options)
        self.measure(form)
        offset = time.perf_counter() - self.start
        over = CellModel(formulation, cells, instance) if solver is self.turns.now else None
        result = solver.solve(form, options, cutoff=worst if np.isfinite(worst) else None, over=over)
        if over is not None and formulation.formulation == BOUNDS_FROM:  # boxes come once their kernels are compiled
            STAND_IN.spent(result.seconds)
        result = replace(result, fewest=beside and result.status is Status.INFEASIBLE)
        if solver is not self.turns.now and result.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            self.note(result)  # the search itself goes on
            self.bound = max(self.bound, min(result.bound - _tangent_error(self), self.upper))
            return
        if not self._noted(result, offset):
            return
        choice = None if result.x is None else decode(instance.restore(result.x)[: formulation.n_leaves], cells)
        if result.x is not None and choice is None:
            self._failed("the solver's tolerances admit a point that does not exist; try another solver")
        else:
            self._take(result, choice)

    def split_off(self) -> list[CellRun]:
        """Runs of the parts that this one has left to others, by branching on scores."""
        parts, self._parts = self._parts, []
        asked = (self.turns.now, self._others, self.options, self._judge, self.start, self.limit)
        runs = [CellRun(cells, *asked) for cells in parts]
        for run in runs:
            run.bound = max(run.bound, self.bound)
        return runs

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
        if result.status is Status.INFEASIBLE:
            self.prove(result.solver)
        elif result.status is Status.ERROR:
            self._failed(result.message)
            return False
        return not self.finished

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

    def _take(self, result: SolveResult, choice: IntArray | None) -> None:
        """Let the user's model judge what the solver found."""
        self.bound = max(self.bound, min(result.bound - _tangent_error(self), self.upper))
        if choice is None:
            if not self._hand_over(result):
                self.close(Status.FEASIBLE if self.best else Status.UNKNOWN, self.bound, "")
            return
        leaves, values = self.cells.partition.leaves_at(choice), self.cells.values
        placed = self.cells.place(choice)
        if placed is None:
            assert values is not None
            logger.info("exact arithmetic refuses a choice of cells that the solver's tolerances allow")
            self._exclude(values.of_constraints(leaves))
            return
        met = meets(self.bound, self.upper)
        improved = placed.cost < self.upper or _changes_less(self, choice)
        if result.status is Status.OPTIMAL and met and not improved:
            self.prove(result.solver)
            return
        if not self.confirm(placed.point):
            self.refused += 1
            logger.info("the model refuses a point; it is cut off and the search goes on")
            tightened = self.cells.requirements.tightened(leaves)
            if tightened:
                self.cells, *others = (replace(self.cells, requirements=rows) for rows in tightened)
                self._parts += others
            else:
                self._exclude(leaves if values is None else values.of_model(leaves))
            return
        if improved:
            # of those that cost the same the least cost is kept
            self.best = Incumbent(choice, placed.point, min(placed.cost, self.upper))
        met = meets(self.bound, self.upper)
        if result.status is Status.OPTIMAL and (met or self.options.mip_gap > 0):
            self.close(Status.OPTIMAL, self.upper if met else self.bound, result.solver)
        elif values is not None and values.couples:
            # what these cells can give is known exactly now: ask for something cheaper in others
            self._exclude(values.of_constraints(leaves))
            bends = list(values.tangents(self.cells.partition.offsets[:-1] + choice, placed.point))
            new = values.worthwhile(bends, self.cells.tangents, self.upper)
            self.cells = replace(self.cells, tangents=(*self.cells.tangents, *new))
            self.shrink()
        elif result.status is Status.OPTIMAL and improved:
            # the solver's own tolerance is wider than ours: ask whether anything is cheaper than this point
            self.shrink()
        elif not self._hand_over(result):
            self.close(Status.FEASIBLE if self.best else Status.UNKNOWN, self.bound, "")

    def _admits(self, choice: IntArray) -> bool:
        """Whether the user's constraints and the user's model accept a choice of cells."""
        placed = self.cells.place(choice)
        return placed is not None and self.confirm(placed.point)

    def _exclude(self, leaves: IntArray) -> None:
        self.cells = replace(self.cells, excluded=(*self.cells.excluded, leaves))

"""From a problem to a proven answer: incumbent, reduction, solver, and the user's model as judge.

::

    incumbent ──▶ reduction ──▶ (proved?) ──▶ matrix of what is left ──▶ solver ──▶ the user's model
                                                    ▲                                   │
                                                    └── cut the point off ◀─── refused ─┘

A target with several alternatives is solved one alternative after the other (`ocf.solve.cell_run`); each has only to
beat the best point of those before it, and the answer's bound is the least of theirs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.solve.cell_run import CellRun
from ocf.solve.outcome import Outcome
from ocf.solve.reduced_run import Terms
from ocf.solve.turns import Others
from ocf.solvers.protocols import CellSolver
from ocf.solvers.result import Progress, SolverOptions, Status, monotone

if TYPE_CHECKING:
    from ocf.solvers import Solver
    from ocf.solvers.cell_form import Compiled


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
    terms = Terms(options, confirm, start, limit, fewest)
    runs = [CellRun(cells, terms, solver, others) for cells in alternatives]
    for run in runs if use_reduction else ():
        run.adopt(best)
        run.prepare(candidates, by_cells=isinstance(solver, CellSolver))
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
            run.settle(matrix)
            best = run.best
    return solve_together([run.outcome() for run, _ in done])


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


def _leaves_decide(cells: CellProblem) -> bool:
    """Whether all points in the same leaves are as admissible, and cost what their cells cost: something if changed."""
    changed = np.repeat(~np.isnan(cells.problem.origin), cells.partition.widths)
    changed &= cells.value != np.repeat(cells.problem.origin, cells.partition.widths)
    by_changes = bool((changed == (cells.cost > 0))[cells.open].all())
    return by_changes and cells.values is None and cells.leaf_cost is None and cells.requirements.curve is None

"""What each improvement of algorithm 5 gains: tasks and seconds of the search as the paper writes it, and of ours.

python examples/papers/box/improvements.py --data DIR -o results/improvements

Denied credits as in `credit.py`, by models of growing size. The rows of the table add one change after another to
algorithm 5: the nearest interval first; leaves beyond the limit dropped; the sum over trees of the best leaf in the
place of single votes; the cost of a first point as the limit, and the exact reduction by it; last, the box search in
the place of all. Algorithm 5 is plain Python and the box search is compiled, so tasks tell more than seconds do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from cases import arguments, run_all
from credit import FIXED, SET, fit
from runs import Runs, markdown, publish

from ocf.cells.cell_problem import CellProblem
from ocf.cells.incumbent import find_incumbent
from ocf.cells.reduction import reduce
from ocf.solvers.box import BoxResult, Improvements, algorithm_5, solve_cells
from ocf.solvers.result import SolverOptions, Status

#: Rows of the table: name -> improvements, whether a first point and the reduction come before, and whether it is ours.
STEPS: dict[str, tuple[Improvements, bool, bool]] = {
    "algorithm 5": (Improvements(), False, False),
    "+ nearest first": (Improvements(nearest_first=True), False, False),
    "+ far leaves dropped": (Improvements(nearest_first=True, far_leaves=True), False, False),
    "+ sums of best leaves": (Improvements(nearest_first=True, far_leaves=True, sums=True), False, False),
    "+ first point, reduction": (Improvements(nearest_first=True, far_leaves=True, sums=True), True, False),
    "box search": (Improvements(), False, True),
    "box search + first point, reduction": (Improvements(), True, True),
}

SIZES = ((5, 2), (10, 3), (20, 4), (50, 6), (250, 8))


@lru_cache(maxsize=1)
def questions(folder: str | None, trees: int, depth: int, rows: int) -> list[CellProblem]:
    """Denied credits as problems over cells."""
    pipeline, explainer, data, test, _ = fit(folder, trees, depth)
    denied = test[pipeline.predict(test) == 0].iloc[:rows]
    vary = [f for f in data.table.columns if f not in FIXED]
    asked = [explainer.problem(denied.iloc[[k]], 1, norm="l2", features_to_vary=vary) for k in range(len(denied))]
    return [explainer.cells(problem) for problem in asked]


def search(cells: CellProblem, step: str, most: int, seconds: float) -> BoxResult:
    """One step's search; what the reduction proves alone takes no task.

    Parameters
    ----------
    cells : CellProblem
    step : str
        Of `STEPS`.
    most : int
        Tasks of algorithm 5.
    seconds : float
        Of the box search.
    """
    improvements, first, ours = STEPS[step]
    cutoff = np.inf
    if first:
        found = find_incumbent(cells)
        if found is not None:
            reduction = reduce(cells, found.cost)
            if reduction.proved:
                return BoxResult(Status.OPTIMAL, found.cells, found.cost, found.cost)
            cells, cutoff = reduction.cells, found.cost
    if ours:
        result = solve_cells(cells, SolverOptions(time_limit=seconds), cutoff=cutoff)
    else:
        result = algorithm_5(cells, improvements, cutoff=cutoff, task_limit=most)
    if result.status is Status.INFEASIBLE and np.isfinite(cutoff):  # the first point is the cheapest
        return BoxResult(Status.OPTIMAL, found.cells, found.cost, found.cost, result.nodes)
    return result


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=20, help="denied credits (default: 20)")
    parser.add_argument("--tasks", type=int, default=100_000, help="most tasks of algorithm 5 (default: 100000)")
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="how many sizes of models, from the smallest on")
    args = parser.parse_args()
    if args.quick:
        args.rows, args.tasks = 3, 1000
    sizes = SIZES[: 2 if args.quick else args.sizes]

    def run(job: Mapping[str, Any]) -> dict[str, Any]:
        asked = questions(args.data, job["trees"], job["depth"], args.rows)
        if job["row"] >= len(asked):
            return {"status": "none", "cost": None, "tasks": 0, "seconds": 0.0}
        begin = time.process_time()
        found = search(asked[job["row"]], job["step"], job["most"], job["limit"])
        used = time.process_time() - begin
        return {"status": found.status.value, "cost": found.cost, "tasks": found.nodes, "seconds": used}

    jobs = [
        {"set": SET, "trees": t, "depth": d, "step": s, "row": k, "most": args.tasks, "limit": args.time_limit}
        for t, d in sizes
        for s in STEPS
        for k in range(args.rows)
    ]
    kept = Runs(args.output)
    results = pd.DataFrame(run_all(kept, jobs, run))
    results = results[results.status != "none"]
    lines = [[step, *(cell(results, step, *size) for size in sizes)] for step in STEPS]
    limits = f"up to {args.rows} rows, {args.tasks} tasks, or {args.time_limit:g} s of the box search"
    stem = "improvements-quick" if args.quick else "improvements"
    header = ["search", *(f"{t} x {d}" for t, d in sizes)]
    publish(args.output, stem, kept, markdown(lines, header), results, limits)


def cell(results: pd.DataFrame, step: str, trees: int, depth: int) -> str:
    """Proofs, and median tasks and seconds of the processor.

    Parameters
    ----------
    results : DataFrame
    step : str
    trees, depth : int
        Of the model.
    """
    own = results[(results.step == step) & (results.trees == trees) & (results.depth == depth)]
    proved = own.status.isin(("optimal", "infeasible")).sum()
    return f"{proved}/{len(own)}: {own.tasks.median():,.0f} / {own.seconds.median():.3f}"


if __name__ == "__main__":
    main()

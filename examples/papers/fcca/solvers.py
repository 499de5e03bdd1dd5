"""Solvers of FCCA: one counterfactual of the boosted stumps by each, and the optimal tree by a mixed-integer model.

python examples/papers/fcca/solvers.py --data DIR -o out/solvers

The counterfactuals are those of the discretizer, with the paper's weights of l0 and l1, of the first rows that the
model reads rightly; milliseconds are the processor's, the model's own predictions and the independent check included.
The tree of depth 3 is fitted to the thresholds of GTRE on all rows of a set (of magic on the 5,000 training rows), by
STreeD and by FlowOCT's model with HiGHS, which starts from STreeD's tree and proves it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
from run import SETS, TIME_LIMIT, prepared, stumps
from runs import Runs, arguments, markdown, publish

from ocf import Explainer
from ocf.compression.guessing import GuessingThresholds
from ocf.compression.surrogate import SurrogateTree
from ocf.errors import SolverError

SOLVERS = {"highs": "HiGHS", "scip": "SCIP", "box": "box search"}

#: The paper's coefficients of the norms.
NORM = {"l0": 0.1, "l1": 1.0}

#: Methods of `SurrogateTree`.
TREES = {"optimal": "STreeD", "flowoct": "FlowOCT, HiGHS"}


@lru_cache(maxsize=1)
def explainer(name: str, folder: str | None, rows: int) -> tuple[Explainer, pd.DataFrame, np.ndarray]:
    """The stumps of a set, the first rows that they read rightly, and these rows' labels.

    Parameters
    ----------
    name : str
        Of the set.
    folder : str or None
        Of the data sets.
    rows : int
    """
    table, y, _, _ = prepared(name, folder)
    model = stumps().fit(table, y)
    right = np.flatnonzero(model.predict(table) == y)[:rows]
    return Explainer(model, data=table), table.iloc[right], y.iloc[right].to_numpy()


def counterfactual(job: Mapping[str, Any], folder: str | None) -> dict[str, Any]:
    """One row by one solver."""
    explain, rows, labels = explainer(job["set"], folder, job["rows"])
    row, target = rows.iloc[[job["row"]]], 1 - int(labels[job["row"]])
    if job["row"] == 0:  # what a solver does once is no row's
        explain.explain(row, target=target, norm=NORM, solver=job["solver"], time_limit=TIME_LIMIT)
    begin = time.process_time()
    e = explain.explain(row, target=target, norm=NORM, solver=job["solver"], time_limit=TIME_LIMIT)[0]
    return {"status": e.status, "cost": e.cost, "ms": 1000 * (time.process_time() - begin)}


def tree(job: Mapping[str, Any], folder: str | None) -> dict[str, Any]:
    """One optimal tree; without a proof within the limit it has no objective."""
    table, y, _, _ = prepared(job["set"], folder)
    guessed = GuessingThresholds(stumps()).fit(table, y.to_numpy())
    bits = pd.DataFrame(np.asarray(guessed.transform(table)), columns=guessed.get_feature_names_out())
    begin, found = time.process_time(), None
    with suppress(SolverError):
        found = SurrogateTree(method=job["method"], time_limit=job["limit"]).fit(bits, y)
    seconds = time.process_time() - begin
    objective = None if found is None else float(found.objective_)
    return {"n": len(bits), "thresholds": bits.shape[1], "objective": objective, "seconds": seconds}


def done(
    kept: Runs, jobs: list[dict[str, Any]], make: Callable[..., dict[str, Any]], folder: str | None
) -> pd.DataFrame:
    """Results of all jobs, each made once and kept.

    Parameters
    ----------
    kept : Runs
    jobs : list of dict
    make : callable
        Result of a job and the folder of the data sets.
    folder : str or None
    """
    return pd.DataFrame([job | kept.made(job, partial(make, job, folder)) for job in jobs])


def by_solver(results: pd.DataFrame) -> str:
    """Mean milliseconds of each solver, and whether all is proved at the same cost."""
    lines: list[list[object]] = []
    for name, same in results.groupby("set", sort=False):
        means = same.groupby("solver").ms.mean()
        apart = same.groupby("row").cost.agg(np.ptp).max()
        proved = f"{same.status.isin(['optimal', 'infeasible']).sum()}/{len(same)}"
        lines.append([name, *(f"{means[s]:.1f}" for s in SOLVERS), proved, f"{apart:.1g}"])
    return markdown(lines, ["set", *SOLVERS.values(), "proved", "largest difference in cost"])


def by_tree(results: pd.DataFrame) -> str:
    """Objective and seconds of each way to the tree."""
    lines: list[list[object]] = []
    for name, same in results.groupby("set", sort=False):
        own = same.set_index("method")
        cells = [
            f"{own.objective[m]:g} / {own.seconds[m]:.1f}"
            if pd.notna(own.objective[m])
            else f"– / {own.seconds[m]:.1f}"
            for m in TREES
        ]
        lines.append([name, own.n.iloc[0], own.thresholds.iloc[0], *cells])
    return markdown(lines, ["set", "rows", "thresholds", *(f"{words}: objective / s" for words in TREES.values())])


def main() -> None:
    parser = arguments(__doc__.split("\n")[0], "three rows and the tree of boston and ionosphere")
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS), help="default: all four")
    parser.add_argument("--rows", type=int, default=30, help="rows a set (default: 30)")
    parser.add_argument("--time-limit", type=float, default=120.0, help="seconds for a tree (default: 120)")
    args = parser.parse_args()
    if args.quick:
        args.sets, args.rows = ["boston", "ionosphere"], 3
    kept, quick = Runs(args.output), "-quick" * args.quick
    jobs = [
        {"set": name, "rows": args.rows, "solver": solver, "row": k}
        for name in args.sets
        for solver in SOLVERS
        for k in range(args.rows)
    ]
    results = done(kept, jobs, counterfactual, args.data)
    about = f"{args.rows} rows a set, {TIME_LIMIT:g} s a counterfactual"
    publish(args.output, f"solvers{quick}", kept, by_solver(results), results, about)
    trees = [{"set": name, "method": method, "limit": args.time_limit} for name in args.sets for method in TREES]
    results = done(kept, trees, tree, args.data)
    about = f"depth 3, 10 rows a leaf, {args.time_limit:g} s a tree"
    publish(args.output, f"trees{quick}", kept, by_tree(results), results, about)


if __name__ == "__main__":
    main()

"""For the record: every formulation with every solver on the eight sets, 100 trees of depth 5, l1, one thread.

python examples/papers/ocean/record.py --data DIR -o results/record --rows 5 --time-limit 60

For each set, without the reduction, so that the models themselves are compared: median and greatest seconds, proofs,
nonzeros and binaries of the matrix, and the bound of its linear relaxation (of the first row); then seconds with the
reduction; then seconds and cost with an isolation forest.

python examples/papers/ocean/record.py --data DIR -o results/record --sizes 5 8 --sets AD

counts the nonzeros at these depths alone: what the paper says of Adult at depths 5 and 8.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from typing import Any

import pandas as pd
from common import PROVED, SETS, Case, arguments, case, limits, parse, warm_up
from runs import Runs, markdown, publish

from ocf import Plausibility
from ocf.solve.compile import compile_formulation
from ocf.solvers import get_solver

FORMULATIONS = ("interval", "ocean", "oae", "fcca")

#: Published mean seconds of OCEAN with Gurobi, on four threads of another machine: for orientation.
PUBLISHED = {"AD": 1.22, "CC": 1.34, "CP": 0.52, "GC": 1.16, "ON": 2.97, "PH": 0.52, "SP": 2.73, "ST": 1.10}

#: What is asked of a row: its name -> settings of `Explainer.explain`.
QUESTIONS: dict[str, dict[str, Any]] = {
    "model": {"reduce": False},
    "reduced": {},
    "plausible": {"plausibility": Plausibility(samples=32)},
}


def questions() -> list[dict[str, str]]:
    """Formulation, solver and question of each column."""
    models = [{"formulation": f, "solver": s} for f in FORMULATIONS for s in ("highs", "scip")]
    ours = [{"formulation": "interval", "solver": s} for s in ("highs", "box")]
    return (
        [m | {"question": "reduced"} for m in [*models, ours[1]]]
        + [m | {"question": "plausible"} for m in ours]
        + [m | {"question": "model"} for m in models]
    )


@cache
def relaxation(name: str, folder: str | None, trees: int, depth: int, formulation: str) -> dict[str, Any]:
    """Size of the whole matrix, and bound of its linear relaxation, for the first row."""
    the = case(name, folder, trees, depth)
    cells = the.explainer.cells(the.explainer.problem(the.rows.iloc[[0]], 1))
    form = compile_formulation(formulation, cells).instance(cells).form
    found = get_solver("highs").solve_relaxation(form)
    return {"nonzeros": int(form.A.nnz), "rows": form.n_rows, "binaries": int(form.integer.sum()), "lp": found.bound}


def sizes(runs: Runs, sets: list[str], folder: str | None, trees: int, depths: list[int]) -> list[list[object]]:
    """Nonzeros of each formulation's matrix by depth, one line a set and depth; they are counted once."""
    rows: list[list[object]] = []
    for name, depth in ((name, depth) for name in sets for depth in depths):
        rows.append([name, depth])
        for formulation in FORMULATIONS:
            job = {"set": name, "trees": trees, "depth": depth, "nonzeros": formulation}
            if runs.get(job) is None:
                the = case(name, folder, trees, depth)
                cells = the.explainer.cells(the.explainer.problem(the.rows.iloc[[0]], 1))
                form = compile_formulation(formulation, cells).instance(cells).form
                runs.add(job, {"nonzeros": int(form.A.nnz), "binaries": int(form.integer.sum())})
            found = runs.get(job) or {}
            rows[-1].append(f"{found['nonzeros']:,} / {found['binaries']:,}")
    return rows


def run(the: Case, job: Mapping[str, Any]) -> dict[str, Any]:
    """Explain one row; `cpu` are the processor's seconds."""
    begin = time.process_time()
    e = the.explainer.explain(
        the.rows.iloc[[job["row"]]],
        target=1,
        formulation=job["formulation"],
        solver=job["solver"],
        time_limit=job["limit"],
        **QUESTIONS[job["question"]],
    )[0]
    return {"status": e.status, "verified": e.verified, "cost": e.cost, "bound": e.bound,
            "cpu": time.process_time() - begin, "times": e.times, "proved_by": e.proved_by, "message": e.message,
            "depth": (e.plausibility or {}).get("depth")}  # fmt: skip


def collect(runs: Runs, sets: list[str], folder: str | None, trees: int, depth: int, n: int, limit: float) -> Any:
    """Make the runs that are not there yet; all of them as a table. Who is late twice is given up on a set."""
    warm_up()
    out = []
    for name in sets:
        for formulation in FORMULATIONS:
            job = {"set": name, "trees": trees, "depth": depth, "relaxation": formulation}
            if runs.get(job) is None:
                runs.add(job, relaxation(name, folder, trees, depth, formulation))
    # what takes seconds for all sets first
    for name, q in [(s, q) for slow in (False, True) for s in sets for q in questions() if slow == _is_slow(q)]:
        late = 0
        for row in range(n):
            job = {"set": name, "trees": trees, "depth": depth, "row": row, "limit": limit, **q}
            result = runs.get(job)
            if result is None and late < 2 and row < len((the := case(name, folder, trees, depth)).rows):
                result = run(the, job)
                runs.add(job, result)
                print(name, *q.values(), row, result["status"], f"{result['cpu']:.2f} s", flush=True)
            if result is not None:
                late = 0 if result["status"] in PROVED else late + 1
                out.append(job | result | {"seconds": result["cpu"]})
    return pd.DataFrame(out)


def _is_slow(question: Mapping[str, str]) -> bool:
    return question["question"] == "model"


def cell(group: pd.DataFrame, n: int) -> str:
    """Median and greatest seconds, and proofs."""
    proved = int(group.status.isin(PROVED).sum())
    mark = ">" if proved < len(group) else ""
    return f"{group.seconds.median():.2f} ({mark}{group.seconds.max():.1f}), {proved}/{n}" if len(group) else "–"


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="+", type=int, metavar="DEPTH", help="count nonzeros and binaries only")
    args = parse(parser)
    trees, depth = (20, 3) if args.quick else (100, 5)
    runs = Runs(args.output)
    if args.sizes:
        rows, header = sizes(runs, args.sets, args.data, trees, args.sizes), ["set", "depth", *FORMULATIONS]
        text, counted = markdown(rows, header), pd.DataFrame(rows, columns=header)
        publish(args.output, "sizes", runs, text, counted, "nonzeros / binaries, the first row of a set")
        return
    table = collect(runs, args.sets, args.data, trees, depth, args.rows, args.time_limit)
    models = [["set", "formulation", "nonzeros", "binaries", "LP bound", "cost", "HiGHS", "SCIP", "HiGHS, reduced",
               "SCIP, reduced", "published"]]  # fmt: skip
    plausible = [["set", "solver", "seconds without", "seconds with", "cost without", "cost with"]]
    for name, same in table.groupby("set", sort=False):

        def group(question: str, formulation: str, solver: str, same: pd.DataFrame = same) -> pd.DataFrame:
            return same[(same.question == question) & (same.formulation == formulation) & (same.solver == solver)]

        best = same[same.status.isin(PROVED) & (same.question != "plausible") & (same.row == 0)].cost.min()
        for f in FORMULATIONS:
            size = runs.get({"set": name, "trees": trees, "depth": depth, "relaxation": f}) or {}
            seconds = [cell(group(q, f, s), args.rows) for q in ("model", "reduced") for s in ("highs", "scip")]
            models.append([f"{name} ({SETS[name]})", f, f"{size['nonzeros']:,}", f"{size['binaries']:,}",
                           f"{size['lp']:.4f}", f"{best:.4f}", *seconds, PUBLISHED[name]])  # fmt: skip
        for s in ("highs", "box"):
            without, inside = group("reduced", "interval", s), group("plausible", "interval", s)
            both = without.merge(inside, on="row", suffixes=("", "_in")).dropna(subset=["cost", "cost_in"])
            costs = [f"{both[c].astype(float).mean():.4f}" for c in ("cost", "cost_in")]
            plausible.append([name, s, cell(without, args.rows), cell(inside, args.rows), *costs])
    text = "".join(markdown(rows[1:], rows[0]) + "\n" for rows in (models, plausible))
    publish(args.output, f"record{'-quick' * args.quick}", runs, text, table.drop(columns="times"), limits(args))


if __name__ == "__main__":
    main()

"""For the record: every formulation with every solver on the eight sets, 100 trees of depth 5, l1, one thread.

python examples/papers/ocean/record.py --data DIR -o results/record --rows 5 --time-limit 60

For each set, without the reduction, so that the models themselves are compared ("model"): median and greatest seconds,
proofs, nonzeros and binaries of the matrix, and the bound of its relaxation (of the first row); then seconds with
the reduction ("reduced"); then seconds and cost with an isolation forest ("plausible"). The runs go to ``record.csv``,
the matrices to ``record-models.csv``.

python examples/papers/ocean/record.py --data DIR -o results/record --questions reduced plausible      # minutes
python examples/papers/ocean/record.py --data DIR -o results/record --sizes 5 8 --sets AD

The second counts the nonzeros at these depths alone: what the paper says of Adult at depths 5 and 8.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pandas as pd
from common import PROVED, SETS, Case, arguments, case, parse, warm_up
from runs import Runs, markdown, publish

from ocf import Plausibility
from ocf.solve.compile import compile_formulation
from ocf.solvers import get_solver

FORMULATIONS = ("interval", "ocean", "oae", "fcca")
SOLVERS = ("highs", "scip")

#: Published mean seconds of OCEAN with Gurobi, on four threads of another machine: for orientation.
PUBLISHED = {"AD": 1.22, "CC": 1.34, "CP": 0.52, "GC": 1.16, "ON": 2.97, "PH": 0.52, "SP": 2.73, "ST": 1.10}

#: What is asked of a row: its name -> settings of `Explainer.explain`.
QUESTIONS: dict[str, dict[str, Any]] = {
    "model": {"reduce": False},
    "reduced": {},
    "plausible": {"plausibility": Plausibility(samples=32)},
}


def questions(asked: Sequence[str]) -> list[dict[str, str]]:
    """Formulation, solver and question of each column, of the questions that are asked."""
    models = [{"formulation": f, "solver": s} for f in FORMULATIONS for s in SOLVERS]
    ours = [{"formulation": "interval", "solver": s} for s in ("highs", "box")]
    every = (
        [m | {"question": "reduced"} for m in [*models, ours[1]]]
        + [m | {"question": "plausible"} for m in ours]
        + [m | {"question": "model"} for m in models]
    )
    return [q for q in every if q["question"] in asked]


@cache
def relaxation(name: str, folder: str | None, trees: int, depth: int, formulation: str) -> dict[str, Any]:
    """Size of the whole matrix, and bound of its linear relaxation, for the first row."""
    the = case(name, folder, trees, depth)
    cells = the.explainer.cells(the.explainer.problem(the.rows.iloc[[0]], 1))
    form = compile_formulation(formulation, cells).instance(cells).form
    found = get_solver("highs").solve_relaxation(form)
    return {"nonzeros": int(form.A.nnz), "rows": form.n_rows, "binaries": int(form.integer.sum()), "lp": found.bound}


def sizes(runs: Runs, sets: list[str], folder: str | None, trees: int, depths: list[int]) -> pd.DataFrame:
    """Nonzeros and binaries of each formulation's matrix by set and depth; they are counted once."""
    rows = []
    for name, depth in ((name, depth) for name in sets for depth in depths):
        for formulation in FORMULATIONS:
            job = {"set": name, "trees": trees, "depth": depth, "nonzeros": formulation}
            if runs.get(job) is None:
                the = case(name, folder, trees, depth)
                cells = the.explainer.cells(the.explainer.problem(the.rows.iloc[[0]], 1))
                form = compile_formulation(formulation, cells).instance(cells).form
                runs.add(job, {"nonzeros": int(form.A.nnz), "binaries": int(form.integer.sum())})
            found = runs.get(job) or {}
            rows.append({"set": name, "trees": trees, "depth": depth, "formulation": formulation} | found)
    return pd.DataFrame(rows)


def size_lines(counted: pd.DataFrame) -> list[list[object]]:
    """Nonzeros / binaries, one line a set and depth, one column a formulation."""
    return [
        [name, depth, *(f"{row.nonzeros:,} / {row.binaries:,}" for row in same.itertuples())]
        for (name, depth), same in counted.groupby(["set", "depth"], sort=False)
    ]


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


def matrices(runs: Runs, sets: list[str], folder: str | None, trees: int, depth: int) -> pd.DataFrame:
    """Matrix of each formulation with the bound of its relaxation, for the first row of each set; made once."""
    out = []
    for job in (
        {"set": name, "trees": trees, "depth": depth, "relaxation": formulation}
        for name in sets
        for formulation in FORMULATIONS
    ):
        if runs.get(job) is None:
            runs.add(job, relaxation(job["set"], folder, trees, depth, job["relaxation"]))
        out.append(job | (runs.get(job) or {}))
    return pd.DataFrame(out).rename(columns={"relaxation": "formulation"})


def collect(
    runs: Runs, asked: Sequence[str], sets: list[str], folder: str | None, size: tuple[int, int], n: int, limit: float
) -> pd.DataFrame:
    """Make the runs that are not there yet; all of them as a table. Who is late twice is given up on a set.

    Parameters
    ----------
    runs : Runs
    asked : sequence of str
        Of `QUESTIONS`.
    sets : list of str
    folder : str or None
        Of the data sets.
    size : (trees, depth)
    n : int
        Rows a set.
    limit : float
        Seconds by the clock a row.
    """
    warm_up()
    out, (trees, depth), wanted = [], size, questions(asked)
    # what takes seconds for all sets first
    for name, q in [(s, q) for slow in (False, True) for s in sets for q in wanted if slow == _is_slow(q)]:
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


def of_models(table: pd.DataFrame, counted: pd.DataFrame, n: int) -> str:
    """Each formulation's matrix, and its seconds by solver without and with the reduction.

    Parameters
    ----------
    table : DataFrame
        Of runs.
    counted : DataFrame
        Of matrices.
    n : int
        Rows a set.
    """
    rows: list[list[object]] = []
    for size in counted.itertuples():
        own = table[table.set == size.set]
        best = own[own.status.isin(PROVED) & (own.question != "plausible") & (own.row == 0)].cost.min()
        mine = own[own.formulation == size.formulation]
        seconds = [
            cell(mine[(mine.question == q) & (mine.solver == s)], n) for q in ("model", "reduced") for s in SOLVERS
        ]
        rows.append([f"{size.set} ({SETS[size.set]})", size.formulation, f"{size.nonzeros:,}", f"{size.binaries:,}",
                     f"{size.lp:.4f}", f"{best:.4f}", *seconds, PUBLISHED[size.set]])  # fmt: skip
    header = ["set", "formulation", "nonzeros", "binaries", "LP bound", "cost", "HiGHS", "SCIP"]
    return markdown(rows, [*header, "HiGHS, reduced", "SCIP, reduced", "published"])


def of_plausibility(table: pd.DataFrame, n: int) -> str:
    """Seconds and mean cost of the interval model and of the box search, without and with an isolation forest."""
    rows: list[list[object]] = []
    own = table[table.formulation == "interval"]
    for (name, solver), same in own[own.solver.isin(["highs", "box"])].groupby(["set", "solver"], sort=False):
        without, inside = same[same.question == "reduced"], same[same.question == "plausible"]
        both = without.merge(inside, on="row", suffixes=("", "_in")).dropna(subset=["cost", "cost_in"])
        costs = [f"{both[c].astype(float).mean():.4f}" if len(both) else "–" for c in ("cost", "cost_in")]
        rows.append([name, solver, cell(without, n), cell(inside, n), *costs])
    return markdown(rows, ["set", "solver", "seconds without", "seconds with", "cost without", "cost with"])


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="+", type=int, metavar="DEPTH", help="count nonzeros and binaries only")
    parser.add_argument("--questions", nargs="+", choices=QUESTIONS, default=list(QUESTIONS), help="default: all three")
    args = parse(parser)
    trees, depth = (20, 3) if args.quick else (100, 5)
    runs, quick = Runs(args.output), "-quick" * args.quick
    if args.sizes:
        counted = sizes(runs, args.sets, args.data, trees, args.sizes)
        text = markdown(size_lines(counted), ["set", "depth", *FORMULATIONS])
        publish(args.output, "sizes", runs, text, counted, "nonzeros / binaries, the first row of a set")
        return
    counted = matrices(runs, args.sets, args.data, trees, depth)
    table = collect(runs, args.questions, args.sets, args.data, (trees, depth), args.rows, args.time_limit)
    text = of_models(table, counted, args.rows)
    publish(args.output, f"record-models{quick}", runs, text, counted, "the first row of a set, no limit")
    about = f"up to {args.rows} rows a set, {args.time_limit:g} s by the clock a row"
    publish(args.output, f"record{quick}", runs, of_plausibility(table, args.rows), table.drop(columns="times"), about)


if __name__ == "__main__":
    main()

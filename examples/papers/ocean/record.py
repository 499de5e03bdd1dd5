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
from functools import cache, partial
from itertools import product
from typing import Any

import pandas as pd
from common import PROVED, Case, arguments, case, parse, warm_up
from runs import Runs, markdown, publish

from ocf import Plausibility
from ocf.solve.compile import compile_formulation
from ocf.solvers import get_solver

FORMULATIONS = ("interval", "ocean", "oae", "fcca")
SOLVERS = ("highs", "scip")

#: Published mean seconds of OCEAN with Gurobi on four threads of another machine, without and with an isolation forest.
PUBLISHED = {
    "AD": "0.75 / 1.82",
    "CC": "0.99 / 1.54",
    "CP": "0.44 / 0.85",
    "GC": "0.6 / 1.71",
    "ON": "1.34 / 1.64",
    "PH": "0.36 / 1.81",
    "SP": "2.71 / 4.43",
    "ST": "0.62 / 1.36",
}

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
    for name, depth, formulation in product(sets, depths, FORMULATIONS):
        own = {"set": name, "trees": trees, "depth": depth}
        counted = partial(nonzeros, name, folder, trees, depth, formulation)
        rows.append(own | {"formulation": formulation} | runs.made(own | {"nonzeros": formulation}, counted))
    return pd.DataFrame(rows)


def nonzeros(name: str, folder: str | None, trees: int, depth: int, formulation: str) -> dict[str, Any]:
    """Nonzeros and binaries of a formulation's matrix, for the first row of a set."""
    the = case(name, folder, trees, depth)
    cells = the.explainer.cells(the.explainer.problem(the.rows.iloc[[0]], 1))
    form = compile_formulation(formulation, cells).instance(cells).form
    return {"nonzeros": int(form.A.nnz), "binaries": int(form.integer.sum())}


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
            "average_depth": (e.plausibility or {}).get("depth")}  # fmt: skip


def matrices(runs: Runs, sets: list[str], folder: str | None, trees: int, depth: int) -> pd.DataFrame:
    """Matrix of each formulation with the bound of its relaxation, for the first row of each set; made once."""
    out = []
    for name, formulation in product(sets, FORMULATIONS):
        job = {"set": name, "trees": trees, "depth": depth, "relaxation": formulation}
        out.append(job | runs.made(job, partial(relaxation, name, folder, trees, depth, formulation)))
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


def cell(group: pd.DataFrame) -> str:
    """Median and greatest seconds, and on how many rows the answer is proved where it is not on all."""
    if not len(group):
        return "–"
    proved = int(group.status.isin(PROVED).sum())
    share = "" if proved == len(group) else f" {proved}/{len(group)}"
    return f"{group.seconds.median():.2f} ({group.seconds.max():.1f}){share}"


def of_matrices(table: pd.DataFrame, counted: pd.DataFrame) -> str:
    """Nonzeros / bound of the relaxation of each formulation, and the optimum, for the first row of each set.

    Parameters
    ----------
    table : DataFrame
        Of runs.
    counted : DataFrame
        Of matrices.
    """
    rows: list[list[object]] = []
    for name, same in counted.groupby("set", sort=False):
        first = table[(table.set == name) & (table.row == 0) & (table.question != "plausible")]
        best = first[first.status.isin(PROVED)].cost.min()
        matrices = [f"{row.nonzeros:,} / {abs(round(row.lp, 4)):g}" for row in same.itertuples()]
        rows.append([name, *matrices, f"{best:.4f}"])
    return markdown(rows, ["set", *FORMULATIONS, "optimum"])


def of_questions(table: pd.DataFrame, asked: Sequence[str]) -> str:
    """Seconds of each formulation and solver, one line a set; beside an isolation forest what the paper has.

    Parameters
    ----------
    table : DataFrame
        Of runs.
    asked : sequence of str
        Questions, of `QUESTIONS`.
    """
    columns = [q for q in questions(asked) if q["question"] in set(table.question)]
    rows: list[list[object]] = []
    for name, same in table.groupby("set", sort=False):
        groups = [same[(same[list(q)] == pd.Series(q)).all(axis=1)] for q in columns]
        rows.append([name, *map(cell, groups), *([PUBLISHED[name]] if "plausible" in asked else [])])
    heads = [f"{'plausible: ' * (q['question'] == 'plausible')}{q['formulation']}, {q['solver']}" for q in columns]
    published = ["OCEAN published, without / with"] if "plausible" in asked else []
    return markdown(rows, ["set", *heads, *published])


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
        publish(args.output, "record-sizes", runs, text, counted, "nonzeros / binaries, the first row of a set")
        return
    counted = matrices(runs, args.sets, args.data, trees, depth)
    table = collect(runs, args.questions, args.sets, args.data, (trees, depth), args.rows, args.time_limit)
    about = "the first row of a set, no limit"
    publish(args.output, f"record-models{quick}", runs, of_matrices(table, counted), counted, about)
    tables = [
        of_questions(table, asked)
        for asked in (["model"], ["reduced", "plausible"])
        if set(asked) & set(args.questions)
    ]
    about = f"up to {args.rows} rows a set, {args.time_limit:g} s by the clock a row"
    publish(args.output, f"record{quick}", runs, "\n".join(tables), table.drop(columns="times"), about)


if __name__ == "__main__":
    main()

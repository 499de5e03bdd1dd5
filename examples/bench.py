"""Measure every formulation and solver on the same rows, in one run.

    python examples/bench.py -o bench-results            # breast cancer, which scikit-learn ships
    python examples/bench.py --data FOLDER -o …          # and the papers' data sets in FOLDER
    python examples/bench.py --data FOLDER --model xgb --methods interval/box interval/highs interval/scip -o …

Random forests or XGBoost models of 100 trees of depth 5, l1, one thread. Breast cancer: min-max scaled, ten rows of the
test part, malignant to benign. The others: 80/20 split, class 0 to class 1, with the actionability that the sets state.
The methods take turns row by row, so that a change in the machine's speed meets all of them. Beside the wall time
stands the CPU time, which other work on the machine changes less, and the load is written down at the start and the
end.

The last columns look at the incumbent: when there was a first one, and by what factor the best one of the first tenth
of a second was dearer than the optimum (medians; inf: there was none yet).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from ocf import Explainer
from ocf.compiled import compile_formulation
from ocf.datasets import Dataset, load_dataset, one_hot_pipeline
from ocf.solvers.highs import HighsSolver
from ocf.solvers.result import SolverOptions

PAPER_SETS = ("german_credit", "adult", "compas", "students", "phishing")

#: Seconds after which the incumbent is looked at.
EARLY = 0.1

METHODS = [("interval", "box"), *((f, s) for f in ("interval", "ocean") for s in ("highs", "scip"))]


def estimator(model: str) -> Any:
    """Unfitted model of 100 trees of depth 5."""
    if model == "rf":
        return RandomForestClassifier(100, max_depth=5, random_state=0)
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=100, max_depth=5, n_jobs=1, random_state=0)


def prepared(name: str, folder: str | None, model: str = "rf") -> tuple[Dataset, Any, pd.DataFrame, pd.DataFrame]:
    """Data set, fitted model, training table, and the rows of the test part with the undesired class."""
    data = load_dataset(name, folder)
    if name == "breast_cancer":
        scaled = MinMaxScaler().set_output(transform="pandas").fit_transform(data.table)
        data = Dataset(name, scaled, data.target, {}, data.desired)
    train, test, y_train, _ = train_test_split(data.table, data.target, test_size=0.2, random_state=0)
    pipeline = one_hot_pipeline(data, estimator(model)).fit(train, y_train)
    return data, pipeline, train, test[pipeline.predict(test) == 0]


def relaxation(explainer: Explainer, row: pd.DataFrame, formulation: str) -> float:
    """LP bound of the whole model, before any reduction."""
    cells = explainer.cells(explainer.problem(row, target=1))
    if cells.infeasible:
        return float("inf")
    form = compile_formulation(formulation, cells).instance(cells).form
    return HighsSolver().solve_relaxation(form, SolverOptions()).bound


def measure(
    name: str,
    folder: str | None,
    n_rows: int,
    time_limit: float,
    bounds: bool,
    methods: list[tuple[str, str]],
    kind: str = "rf",
    threads: int = 1,
) -> list[dict[str, Any]]:
    """One record per row and method."""
    data, model, train, rows = prepared(name, folder, kind)
    explainers = {m: Explainer(model, data=train, features=data.settings) for m in methods}
    records = []
    for k in range(min(n_rows, len(rows))):
        row = rows.iloc[[k]]
        first = {f: explainers[f, s] for f, s in reversed(methods)}
        lp = {f: relaxation(explainer, row, f) for f, explainer in first.items()} if bounds else {}
        for formulation, solver in methods:
            start, cpu = time.perf_counter(), time.process_time()
            explanation = explainers[formulation, solver].explain(
                row, target=1, formulation=formulation, solver=solver, time_limit=time_limit, threads=threads
            )[0]
            early = [p.incumbent for p in explanation.history if p.seconds <= EARLY]
            found = [p.seconds for p in explanation.history if np.isfinite(p.incumbent)]
            records.append(
                {
                    "set": name,
                    "row": int(row.index[0]),
                    "method": f"{formulation}/{solver}",
                    "status": explanation.status,
                    "verified": explanation.verified,
                    "cost": explanation.cost,
                    "lp_bound": lp.get(formulation),
                    "nodes": explanation.nodes,
                    "proved_by": explanation.proved_by,
                    "first_row": k == 0,
                    "wall": time.perf_counter() - start,
                    "cpu": time.process_time() - cpu,
                    "model": kind,
                    "bound": explanation.bound,
                    "first_incumbent": found[0] if found else float("inf"),
                    "early_incumbent": early[-1] if early else float("inf"),
                    **{f"s_{key}": value for key, value in explanation.times.items()},
                    **explanation.sizes,
                }
            )
            print(".", end="", file=sys.stderr, flush=True)
    print(f" {name}", file=sys.stderr)
    return records


def table(records: list[dict[str, Any]]) -> str:
    """Markdown table, one line per set and method."""
    frame = pd.DataFrame(records)
    lines = [
        "| set | model | method | proved | median s | max s | median CPU s | max CPU s |"
        " build + compile, once | prepare | solver | confirm + verify |"
        " outside solver, from row 2 | nodes | most | by reduction alone | LP bound / optimum |"
        " first incumbent s | dearer at 0.1 s |",
        "|---" * 19 + "|",
    ]
    optima = frame[frame.status == "optimal"].groupby(["set", "model", "row"]).cost.min().astype(float)
    for (name, model, method), g in frame.groupby(["set", "model", "method"], sort=False):
        later = g[~g.first_row]
        outside = 1 - later.s_solve.sum() / later.s_total.sum() if len(later) else np.nan
        proved = (g.status == "optimal") | (g.status == "infeasible")
        ratio = (g.lp_bound.astype(float) / g.cost.astype(float)).median()
        best = np.array([optima.get((name, model, row), np.nan) for row in g.row])
        dearer = (g.early_incumbent.astype(float) / best).median()
        lines.append(
            f"| {name} | {model} | {method} | {proved.sum()}/{len(g)} "
            f"| {g.s_total.median():.3f} | {g.s_total.max():.3f} | {g.cpu.median():.3f} | {g.cpu.max():.3f} "
            f"| {(g.s_build + g.s_compile).max():.2f} | {(g.s_incumbent + g.s_reduce + g.s_instance).median():.3f} "
            f"| {g.s_solve.median():.3f} | {(g.s_confirm + g.s_verify).median():.3f} | {outside:.0%} "
            f"| {int(g.nodes.median())} | {int(g.nodes.max())} | {(g.proved_by == 'reduction').sum()} | {ratio:.3f} "
            f"| {g.first_incumbent.median():.3f} | {dearer:.3f} |"
        )
    return "\n".join(lines)


def machine() -> str:
    """What the figures were measured on."""
    packages = ("ocf", "highspy", "pyscipopt", "pyomo", "scikit-learn", "numpy")
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{cpu}, {os.cpu_count()} cores, load over 1, 5, 15 minutes {load}; Python {platform.python_version()}; "
        + ", ".join(f"{p} {version(p)}" for p in packages)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default=os.environ.get("OCF_DATA"), help="folder of the papers' data sets")
    parser.add_argument("--sets", nargs="+", help="data sets (default: breast_cancer, and the papers' with --data)")
    parser.add_argument("--methods", nargs="+", help="such as interval/box ocean/scip (default: all)")
    parser.add_argument(
        "--model", choices=("rf", "xgb"), nargs="+", default=["rf"], help="kinds of models (default: rf)"
    )
    parser.add_argument("--threads", type=int, default=1, help="threads of the solvers")
    parser.add_argument("--rows", type=int, default=10, help="rows per set")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per row")
    parser.add_argument("--no-bounds", action="store_true", help="leave out the LP bounds")
    parser.add_argument("-o", "--output", type=Path, default=Path("bench-results"), help="folder for the results")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    methods = [(f, s) for f, s in METHODS if not args.methods or f"{f}/{s}" in args.methods]
    records: list[dict[str, Any]] = []
    begin = machine()
    for kind in args.model:
        for name in args.sets or ("breast_cancer", *(PAPER_SETS if args.data else ())):
            records += measure(
                name, args.data, args.rows, args.time_limit, not args.no_bounds, methods, kind, args.threads
            )
            (args.output / "runs.json").write_text(json.dumps(records, indent=1))
            (args.output / "table.md").write_text(f"{begin}\n\n{table(records)}\n")
    text = f"{begin}\n\n{table(records)}\n\nAt the end: {machine()}\n"
    (args.output / "table.md").write_text(text)
    print(text)
    costs = pd.DataFrame(records).query("status == 'optimal'").groupby(["set", "model", "row"]).cost
    parted = (costs.max() - costs.min()) > 1e-9 * costs.max().clip(lower=1e-9)
    if parted.any():
        sys.exit(f"methods disagree on {parted[parted].index.tolist()}")


if __name__ == "__main__":
    main()

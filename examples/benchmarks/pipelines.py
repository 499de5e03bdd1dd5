"""The price of a Pipeline: processor seconds of `explain` behind one, against the same model on the transformed table.

    python examples/benchmarks/pipelines.py --data DIR -o out          # or OCF_DATA=DIR; some minutes

A forest of 100 trees of depth 5 behind a ColumnTransformer (mean imputer and standard scaler for numbers, one-hot for
categories). The forest alone is asked about the table that these steps make: the same rows, prices and optima, for
indicator columns of one category change together, and a range is a range in any unit. Each row is asked about by
itself, then all of them in one call; the two take turns, and what the first calls of each prepare is not counted.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

sys.path.append(str(Path(__file__).resolve().parents[1] / "papers"))

from runs import Runs, arguments, markdown, write

from ocf import Explainer, Explanations
from ocf.compare.datasets import load_dataset

SETS = ("german_credit", "adult")

#: What the steps may add to the seconds of the model alone.
MOST = 1.2

#: Relative difference of costs in two units that rounding explains.
ROUNDING = 1e-9


def explainers(name: str, folder: str | None, trees: int) -> list[tuple[Explainer, pd.DataFrame]]:
    """The Pipeline with its table, and its last step with what the others make of that."""
    data = load_dataset(name, folder)
    words = [f for f, setting in data.settings.items() if setting["kind"] == "categorical"]
    numbers = [f for f in data.table.columns if f not in words]
    table = data.table.astype(dict.fromkeys(numbers, float))
    scaled = make_pipeline(SimpleImputer(), StandardScaler())
    steps = ColumnTransformer(
        [("numbers", scaled, numbers), ("words", OneHotEncoder(sparse_output=False), words)],
        verbose_feature_names_out=False,
    )
    forest = RandomForestClassifier(trees, max_depth=5, random_state=0, n_jobs=1)
    model = make_pipeline(steps, forest).fit(table, data.target)
    seen = pd.DataFrame(steps.transform(table), table.index, steps.get_feature_names_out())
    plain = {f: {"kind": "numeric"} for f in numbers}
    return [
        (Explainer(model, data=table, features=plain), table),
        (Explainer(forest, data=seen, features=plain), seen),
    ]


def seconds(ask: Callable[[], Explanations]) -> tuple[float, Explanations]:
    """Processor seconds of a question, and its answers."""
    begin = time.process_time()
    found = ask()
    return time.process_time() - begin, found


def run(job: Mapping[str, Any], folder: str | None) -> dict[str, Any]:
    """Seconds of each row by itself and of the batch, behind the steps and without them."""
    ways = explainers(job["set"], folder, job["trees"])
    rows = np.random.default_rng(0).permutation(len(ways[0][1]))[: job["batch"] + 1]
    for explainer, table in ways:
        explainer.explain(table.iloc[rows[:1]])
        explainer.explain(table.iloc[rows])
    parts = [rows[[k]] for k in range(1, job["alone"] + 1)] + [rows[1:]] * job["repeats"]
    taken = []
    for turn, part in enumerate(parts):
        order = (0, 1) if turn % 2 else (1, 0)  # who asks second finds more in the processor's caches
        told = {k: seconds(partial(ways[k][0].explain, ways[k][1].iloc[part])) for k in order}
        taken.append([told[k][0] for k in (0, 1)])
        for behind, bare in zip(told[0][1], told[1][1], strict=True):
            if not (behind.status == bare.status == "optimal" and same(behind.cost, bare.cost)):
                raise SystemExit(f"row {behind.row} of {job['set']}: {behind.cost} is not {bare.cost}")
    alone = np.sum(taken[: job["alone"]], axis=0) / job["alone"]
    batch = np.min(taken[job["alone"] :], axis=0) / job["batch"]
    return {"alone": alone.tolist(), "batch": batch.tolist()}


def same(a: float | None, b: float | None) -> bool:
    """Whether two costs are one."""
    return a is not None and b is not None and abs(a - b) <= ROUNDING * max(1.0, abs(a))


def main() -> None:
    parser = arguments(__doc__.split("\n")[0], "5 trees, 3 rows")
    parser.add_argument("--sets", nargs="+", default=list(SETS), help=f"data sets (default: {' '.join(SETS)})")
    args = parser.parse_args()
    runs, lines = Runs(args.output), []
    size = {"trees": 5, "alone": 3, "batch": 3} if args.quick else {"trees": 100, "alone": 50, "batch": 200}
    for name in args.sets:
        job = {"set": name, "repeats": 1 if args.quick else 3, **size}
        result = runs.get(job)
        if result is None:
            result = run(job, args.data)
            runs.add(job, result)
        for asked, rows in (("alone", 1), ("batch", job["batch"])):
            behind, bare = result[asked]
            ratio = behind / bare
            lines.append([name, rows, f"{1e3 * behind:.1f}", f"{1e3 * bare:.1f}", f"{ratio:.2f}", ratio <= MOST])
    header = ["data", "rows in a call", "ms a row, Pipeline", "ms a row, model alone", "ratio", f"at most {MOST}"]
    write(args.output, "pipelines.md", "# The price of a Pipeline\n\n" + markdown(lines, header))


if __name__ == "__main__":
    main()

"""The price of a plausibility: processor seconds of `explain` with an isolation forest, against the same rows without.

    python examples/benchmarks/plausibility.py --data DIR -o out       # or OCF_DATA=DIR; some minutes

Random forests of 100 trees of depth 5, with 20 isolation trees fitted on the rows of the target. Each row is asked
about by itself, then all of them in one call; the two questions take turns, and what the first calls prepare is not
counted. A plausible point lies farther away: where the reduction proves both answers, the rest is the libraries' own
word on them; elsewhere the search for a farther point is part of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).resolve().parents[1] / "papers"))

from runs import Runs, arguments, markdown, write

from ocf.compare.recipes import Case, Recipe, prepare

SETS = ("adult", "breast_cancer", "compas", "diabetes", "german_credit")

#: Isolation trees.
TREES = 20


def seconds(case: Case, rows: pd.DataFrame, target: Any, settings: Mapping[str, Any]) -> float:
    """Processor seconds of a question, all of whose answers must be optimal and verified."""
    begin = time.process_time()
    found = case.explainer.explain(rows, target, **settings)
    taken = time.process_time() - begin
    for e in found:
        if e.status != "optimal" or not e.verified:
            raise SystemExit(f"row {e.row}: {e.status}; {e.message} {e.checks}")
    return taken


def run(job: Mapping[str, Any], folder: str | None) -> dict[str, Any]:
    """Seconds of each row by itself and of all of them, without and with a plausibility."""
    case = prepare(Recipe(data=job["set"], model="random_forest", trees=job["trees"], depth=5), folder)
    target = case.target("desired")
    places = case.waiting(target, job["rows"])
    ways: list[dict[str, Any]] = [{}, {"plausibility": {"trees": TREES}}]
    alone = [case.row(place) for place in places]
    parts = [*alone, pd.concat(alone)]
    for way in ways:
        seconds(case, parts[-1], target, way)
    taken = [[seconds(case, part, target, way) for way in ways] for part in parts]
    return {"rows": len(places), "alone": taken[:-1], "batch": (np.array(taken[-1]) / len(places)).tolist()}


def main() -> None:
    parser = arguments(__doc__.split("\n")[0], "5 trees, 3 rows")
    parser.add_argument("--sets", nargs="+", default=list(SETS), help=f"data sets (default: {' '.join(SETS)})")
    args = parser.parse_args()
    runs, lines = Runs(args.output), []
    size = {"trees": 5, "rows": 3} if args.quick else {"trees": 100, "rows": 20}
    for name in args.sets:
        job = {"set": name, **size}
        result = runs.get(job)
        if result is None:
            result = run(job, args.data)
            runs.add(job, result)
        alone = np.array(result["alone"])
        for rows, (without, beside) in ((1, np.median(alone, axis=0)), (result["rows"], result["batch"])):
            greatest = [f"{v:.2f}" for v in alone.max(axis=0)] if rows == 1 else ["", ""]
            times = [f"{1e3 * v:.0f}" for v in (without, beside)]
            lines.append([name, rows, *times, f"{beside / without:.2f}", *greatest])
    header = [
        "data",
        "rows in a call",
        "ms a row, without",
        "ms, with",
        "ratio",
        "greatest s, without",
        "greatest s, with",
    ]
    write(args.output, "plausibility.md", "# The price of a plausibility\n\n" + markdown(lines, header))


if __name__ == "__main__":
    main()

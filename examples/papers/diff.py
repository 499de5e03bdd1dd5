"""What two CSV files of one table differ in: the same comparison as `ocf compare diff`, of the papers' runs.

python examples/papers/diff.py examples/papers/ocean/table3.csv out/table3/table3-base.csv

The first file is the measure. The command names methods that have become slower, runs that are no longer proved or take
twice as long, and proven costs that differ. It ends with 6 where it has found such a contradiction, and with 7 where
something has got worse. It reads files that have a line a run with its row, status, time and cost: those of `ocean`, of
`box/digits.py` and `box/improvements.py`, of tables 2 and 3 and figure 4 of `oblique`, and `fcca/solvers.csv`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from ocf.cli.base import ExitCode
from ocf.compare.diff import difference
from ocf.compare.frame import Comparison
from ocf.compare.report import markdown_table
from ocf.compare.results import Results
from ocf.errors import DataError, ProblemError

#: What a run is asked, as far as a file has it; what else it has was measured.
ASKED = (
    "set", "images", "trees", "depth", "pair", "fold", "row", "target", "level", "norm", "points", "by", "bounded",
    "radius", "most",
)  # fmt: skip

#: Of these the ones that say how large the model is, or how constrained.
SIZE = ("trees", "depth", "level")

#: Columns that may hold the method, the time and the cost.
METHOD, TIME, COST = ("method", "step", "solver"), ("seconds", "solving_ms", "ms"), ("cost", "l2")

PROVED = ("optimal", "infeasible")

#: Of heuristics that ended.
ENDED = ("found", "none")

#: The files have six digits: costs that differ by less, relative to themselves, are the same.
DIGITS = 1e-5

#: Seconds that stand for the limit of a file without one.
NO_LIMIT = 3600.0

#: How the command ends, as `ocf compare diff` does.
CONTRADICTED, REGRESSED = int(ExitCode.UNVERIFIED), int(ExitCode.REGRESSED)


def read(path: Path) -> Comparison:
    """The runs of a file as a comparison of methods.

    Parameters
    ----------
    path : Path

    Raises
    ------
    DataError
        The file has no line a run.
    """
    table = pd.read_csv(path, comment="#")
    time, cost = ([c for c in names if c in table] for names in (TIME, COST))
    if "status" not in table or "row" not in table or not time or not cost:
        raise DataError(f"{path} has no line a run with its row, status, time and cost")
    asked = [c for c in ASKED if c in table]
    instance = _words(table, asked)
    sized, methods = [c for c in SIZE if c in asked], [c for c in METHOD if c in table]
    seconds = table[time[0]] / (1000 if time[0].endswith("ms") else 1)
    limit = table["limit"] if "limit" in table else pd.Series(NO_LIMIT, table.index)
    ended = table.status.isin((*PROVED, *ENDED)) & (seconds <= limit)
    ended |= table.get("method") == "instances"  # the nearest of the known rows
    runs = pd.DataFrame(
        {
            "instance": instance,
            "case": instance,  # models are not told apart by more than their size
            "method": table[methods].fillna("").agg(" ".join, axis=1).str.strip() if methods else "ours",
            "data": table.get("set", ""),
            "model": _words(table, sized),
            "position": table.row,
            "ask": _words(table, [c for c in asked if c not in ("set", "row", *sized)]),
            "status": np.where(ended, "ok", "time out"),
            "answer": table.status,
            "cost": table[cost[0]],
            "seconds": seconds,
        }
    )
    head = {"kind": "suite", "suite": {"methods": []}}
    return Comparison(Results(path, [head], ""), runs, pd.DataFrame(), [], float(limit.max()), 0.0)


def _words(table: pd.DataFrame, columns: list[str]) -> pd.Series[str]:
    """The named columns of each line in words."""
    return pd.Series(
        [" ".join(f"{c} {v}" for c, v in zip(columns, line, strict=True)) for line in table[columns].values.tolist()],
        table.index,
        dtype=object,
    )


def equalised(a: Comparison, b: Comparison) -> Comparison:
    """The second comparison with the first's costs where six digits do not tell them apart.

    Parameters
    ----------
    a, b : Comparison
    """
    both = b.runs.merge(a.runs[["instance", "method", "cost"]], "left", ["instance", "method"], suffixes=("", "_a"))
    same = (both.cost - both.cost_a).abs() <= DIGITS * both.cost_a.abs()
    return replace(b, runs=both.assign(cost=both.cost.where(~same, both.cost_a)).drop(columns="cost_a"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("first", type=Path, help="CSV file of the runs before")
    parser.add_argument("second", type=Path, help="CSV file of the runs after")
    args = parser.parse_args()
    try:
        first, second = read(args.first), read(args.second)
        found = difference(first, equalised(first, second))
    except (DataError, ProblemError) as error:
        parser.error(str(error))
    print(f"{markdown_table(found.methods)}\n\n{found.methods.caption}")
    for name in ("contradictions", "regressions", "improvements", "remarks"):
        if lines := getattr(found, name):
            print("\n".join([f"\n{name.capitalize()}: {len(lines)}", *(f"- {line}" for line in lines)]))
    raise SystemExit(CONTRADICTED if found.contradictions else REGRESSED if found.regressions else 0)


if __name__ == "__main__":
    main()

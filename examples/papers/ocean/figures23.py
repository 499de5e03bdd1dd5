"""Figures 2, 3, F1 and F2: seconds over the depth and the number of trees, of all methods, from the CSV files.

python examples/papers/ocean/figures23.py -o results/figures

Nothing is measured: the runs are those behind tables 3 and A1, in the CSV files beside this script, which several
commands of `table3.py` made. Figures 2 and F1 are over the depth, 3 and F2 over the number of trees; the paper shows AD
and CC in the first of each two and all sets in the second. The table says where two methods that prove a row differ.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from common import PROVED, SETS
from runs import write
from table3 import FORESTS, by_size, figure

#: Files of table 3, then of table A1, which has the newer runs where both have one.
FILES = ("table3*.csv", "tableA1-*.csv")

#: In the order of the columns of table 3.
ORDER = ("FT", "FOCUS", "MACE", "OAE", "OCEAN", "interval", "box")

#: Relative difference of two costs that counts.
TOLERANCE = 1e-5


def all_runs(folder: Path) -> pd.DataFrame:
    """The runs of all files, each once."""
    paths = [path for pattern in FILES for path in sorted(folder.glob(pattern))]
    runs = pd.concat([pd.read_csv(path, comment="#") for path in paths], ignore_index=True)
    return runs.drop_duplicates(["set", "trees", "depth", "method", "norm", "row"], keep="last")


def disagreements(runs: pd.DataFrame) -> pd.DataFrame:
    """Rows of a forest whose proven costs differ between methods; the files have six digits."""
    proved = runs[runs.status.isin(PROVED) & runs.cost.notna()]
    ends = proved.groupby(["set", "trees", "depth", "row"]).cost.agg(["min", "max"])
    return ends[ends["max"] - ends["min"] > TOLERANCE * ends["max"]].reset_index()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the same: nothing is measured")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the figures and tables")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    runs = all_runs(Path(__file__).parent)
    runs = runs.sort_values("set", key=lambda names: names.map(list(SETS).index), kind="stable")
    text = []
    for number, supplement, forests, over in (("2", "F1", "depths", "depth"), ("3", "F2", "trees", "trees")):
        own = runs[[pair in FORESTS[forests] for pair in zip(runs.trees, runs.depth, strict=True)]]
        figure(own[own.set.isin(["AD", "CC"])], ORDER, over).savefig(args.output / f"figure{number}.png", dpi=150)
        figure(own, ORDER, over).savefig(args.output / f"figure{supplement}.png", dpi=150)
        text.append(f"Figures {number} and {supplement}: mean seconds by {over}\n\n{by_size(own, ORDER, over)}")
    apart = disagreements(runs)
    text.append(f"Rows whose proven costs differ: {len(apart)}.\n")
    write(args.output, "figures23.md", "\n".join([*text, apart.to_string(index=False) if len(apart) else ""]))


if __name__ == "__main__":
    main()

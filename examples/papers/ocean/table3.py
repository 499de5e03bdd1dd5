"""Tables 3 and A1: seconds and cost ratio over trees and depths, baselines and ours.

python examples/papers/ocean/table3.py --data DIR -o results/table3                       # 100 trees of depth 5
python examples/papers/ocean/table3.py --data DIR -o results/table3 --forests trees       # A1, 10 to 500 trees
python examples/papers/ocean/table3.py --data DIR -o results/table3 --forests depths      # A1, depth 3 to 8

R is the sum of the costs over the sum of the proven optimal ones, on rows where both exist.
"""

from __future__ import annotations

import pandas as pd
from common import METHODS, PROVED, arguments, measure, parse, seconds
from runs import Runs, markdown, write

FORESTS = {
    "base": [(100, 5)],
    "trees": [(t, 5) for t in (10, 20, 50, 100, 200, 500)],
    "depths": [(100, d) for d in (3, 4, 5, 6, 7, 8)],
}

#: Mean seconds that the paper gives for OAE and OCEAN at 100 x 5 (Gurobi, four threads of another machine).
PUBLISHED = {
    "AD": ("28.37", "1.22"),
    "CC": ("5.52", "1.34"),
    "CP": ("0.38", "0.52"),
    "GC": ("5.08", "1.16"),
    "ON": (">900", "2.97"),
    "PH": ("0.94", "0.52"),
    "SP": (">900", "2.73"),
    "ST": ("69.64", "1.10"),
}


def ratio(group: pd.DataFrame, optimal: pd.Series) -> str:
    """Cost over optimal cost."""
    both = group.set_index("row").cost.astype(float).to_frame().join(optimal.rename("optimal"), how="inner").dropna()
    return f"{both.cost.sum() / both.optimal.sum():.3f}" if len(both) and both.optimal.sum() > 0 else "–"


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["OAE", "OCEAN", "interval", "box"])
    parser.add_argument("--forests", choices=FORESTS, default="base")
    args = parse(parser)
    sizes = [(10, 3), (20, 3)] if args.quick else FORESTS[args.forests]
    jobs = [
        {"set": s, "trees": t, "depth": d, "method": m, "norm": "l1", "row": k, "limit": args.time_limit}
        for t, d in sizes
        for s in args.sets
        for k in range(args.rows)
        for m in args.methods
    ]
    results = measure(Runs(args.output), jobs, args.data)
    rows = []
    for (trees, depth, name), same in results.groupby(["trees", "depth", "set"], sort=False):
        optimal = same[same.status.isin(PROVED)].groupby("row").cost.min().dropna().astype(float)
        rows.append([name, trees, depth])
        for method in args.methods:
            group = same[same.method == method]
            rows[-1] += [seconds(group, same.row.nunique()), ratio(group, optimal)]
        if (trees, depth) == (100, 5):
            rows[-1] += PUBLISHED[name]
    header = ["set", "trees", "depth", *(f"{m} {c}" for m in args.methods for c in ("T(s)", "R"))]
    if (100, 5) in sizes:
        header += ["OAE, published", "OCEAN, published"]
        rows = [row + [""] * (len(header) - len(row)) for row in rows]
    write(args.output, f"table3-{'quick' if args.quick else args.forests}.md", markdown(rows, header))


if __name__ == "__main__":
    main()

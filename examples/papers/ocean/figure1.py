"""Figures 1 and F3: seconds to an optimal counterfactual with weighted l0, l1 and l2, forests of 100 trees of depth 5.

python examples/papers/ocean/figure1.py --data DIR -o results/figure1
python examples/papers/ocean/figure1.py --data DIR -o results/figure1 --plausible         # F3: with an isolation forest

Each feature's weights of going down and up are drawn from U(0.5, 2), as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from common import METHODS, PROVED, Case, arguments, limits, measure, parse
from plausible import wish
from runs import Runs, markdown, publish

NORMS = ("l0", "l1", "l2")


def weights(case: Case, job: Mapping[str, Any]) -> dict[str, Any]:
    """Weights of going down and up, the same for all rows and methods of a set."""
    drawn = np.random.default_rng(0).uniform(0.5, 2, (len(case.explainer.space), 2))
    out = {"weights": {name: tuple(pair) for name, pair in zip(case.explainer.space.names, drawn, strict=True)}}
    return out | ({"plausibility": wish(case, job["depth"], "label")} if "points" in job else {})


def cell(group: pd.DataFrame) -> str:
    """Median and greatest seconds, and how many of the rows tried are proved in time where not all are."""
    if not len(group):
        return "–"
    proved = int((group.status.isin(PROVED) & (group.seconds <= group.limit)).sum())
    share = "" if proved == len(group) else f" {proved}/{len(group)}"
    return f"{group.seconds.median():.2f} ({group.seconds.max():.1f}){share}"


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["OCEAN", "box"])
    parser.add_argument("--plausible", action="store_true", help="figure F3: plausible points only")
    args = parse(parser)
    trees = 20 if args.quick else 100
    points = {"points": "plausible"} if args.plausible else {}
    jobs = [
        {"set": s, "trees": trees, "depth": 5, "method": m, "norm": n, "row": k, "limit": args.time_limit} | points
        for s in args.sets
        for k in range(args.rows)
        for n in NORMS
        for m in args.methods
    ]
    kept = Runs(args.output)
    results = measure(kept, jobs, args.data, weights)
    table = []
    figure, axes = plt.subplots(
        1, len(args.methods), figsize=(5.5 * len(args.methods), 3.6), sharey=True, squeeze=False
    )
    for axis, method in zip(axes[0], args.methods, strict=True):
        for j, norm in enumerate(NORMS):
            same = results[(results.norm == norm) & (results.method == method)]
            groups = [same[same.set == s] for s in args.sets]
            table.append([method, norm, *map(cell, groups)])
            places = np.arange(len(args.sets)) + 0.27 * (j - 1)
            proved = [g[g.status.isin(PROVED)].seconds for g in groups]
            boxes = axis.boxplot(
                proved, positions=places, widths=0.22, patch_artist=True, medianprops={"color": "black"}
            )
            for box in boxes["boxes"]:
                box.set_facecolor(f"C{j}")
            axis.plot([], [], "s", color=f"C{j}", label=f"weighted {norm}")
        axis.set(yscale="log", title=method, xticks=range(len(args.sets)), xticklabels=args.sets)
        axis.grid(axis="y", alpha=0.3)
    axes[0, 0].set_ylabel("seconds per row")
    axes[0, 0].legend(frameon=False)
    figure.tight_layout()
    stem = "figureF3" if args.plausible else "figure1"
    figure.savefig(args.output / f"{stem}.png", dpi=150)
    text = markdown(table, ["method", "norm", *args.sets])
    publish(args.output, f"{stem}-quick" if args.quick else stem, kept, text, results, limits(args))


if __name__ == "__main__":
    main()

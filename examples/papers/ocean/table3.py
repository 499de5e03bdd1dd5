"""Tables 3 and A1: seconds and cost ratio over trees and depths, baselines and ours.

python examples/papers/ocean/table3.py --data DIR -o results/table3                       # 100 trees of depth 5
python examples/papers/ocean/table3.py --data DIR -o results/table3 --forests trees       # A1, 10 to 500 trees
python examples/papers/ocean/table3.py --data DIR -o results/table3 --forests depths      # A1, depth 3 to 8
python examples/papers/ocean/table3.py --data DIR -o results/table3 --forests trees --sizes 10 20 50   # a part of A1

R is the sum of the costs over the sum of the proven optimal ones, on rows where both exist. FT, FOCUS and MACE are
baselines that prove no optimum (`baselines.py`): their R says how far off they are, and for how many rows they have a
point. A1 is drawn as well, with 95 % intervals of the mean (figures 2, 3, F1 and F2).
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import pandas as pd
from common import BASELINES, ENDED, METHODS, PROVED, arguments, limits, measure, parse, seconds
from runs import Runs, markdown, publish
from scipy.stats import t

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

TREES, DEPTHS = (10, 20, 50, 100, 200, 500), (3, 4, 5, 6, 7, 8)

FORESTS = {
    "base": [(100, 5)],
    "trees": [(t, 5) for t in TREES],
    "depths": [(100, d) for d in DEPTHS],
}

#: Mean seconds / R that the paper gives for FT and MACE, and seconds for OAE and OCEAN, at 100 x 5 (OAE and OCEAN with
#: Gurobi, four threads of another machine).
PUBLISHED = {
    "AD": ("3.03 / 15.9", "20.60 / 1.1", "28.37", "1.22"),
    "CC": ("29.44 / 10.2", "41.25 / 1.2", "5.52", "1.34"),
    "CP": ("22.68 / 4.5", "15.82 / 1.0", "0.38", "0.52"),
    "GC": ("16.26 / 4.8", "19.03 / 1.0", "5.08", "1.16"),
    "ON": ("10.05 / 31.7", ">900", ">900", "2.97"),
    "PH": ("10.95 / 1.4", ">900", "0.94", "0.52"),
    "SP": ("none", ">900", ">900", "2.73"),
    "ST": ("none", ">900", "69.64", "1.10"),
}


def _printed(sizes: tuple[int, ...], text: str) -> dict[str, dict[int, str]]:
    """Cells of a table of the paper, by set and size; empty where its text is not legible ("?")."""
    lines = [line.split() for line in text.strip().splitlines()]
    return {name: {size: cell.strip("?") for size, cell in zip(sizes, cells, strict=True)} for name, *cells in lines}


#: Seconds that the paper gives in A1, by method and by what the columns are.
PUBLISHED_A1 = {
    ("OCEAN", "trees"): _printed(
        TREES,
        """
        AD 0.07 0.13 0.57 1.22 4.30 22.96
        CC 0.05 0.11 0.63 1.34 4.12 15.98
        CP 0.02 0.05 0.17 0.52 1.97 7.74
        GC 0.05 0.13 0.28 1.16 3.59 13.82
        ON 0.07 0.21 0.82 2.97 7.34 47.35
        PH ? 0.05 0.26 0.52 1.99 13.05
        SP ? 0.16 0.57 2.73 9.13 83.05
        ST ? 0.05 0.23 1.10 4.70 55.95
        """,
    ),
    ("OCEAN", "depth"): _printed(
        DEPTHS,
        """
        AD 0.13 0.35 1.22 2.03 4.24 12.35
        CC ? 0.38 1.34 4.45 11.13 21.96
        CP ? 0.19 0.52 1.17 2.41 5.65
        GC 0.25 0.59 1.16 ? 3.49 5.11
        ON 0.22 0.94 2.97 7.08 15.41 72.87
        PH ? ? 0.52 1.36 3.72 8.70
        SP ? 1.19 2.73 5.42 18.26 27.94
        ST ? 0.35 1.10 1.47 2.91 4.93
        """,
    ),
    ("OAE", "trees"): _printed(
        TREES,
        """
        AD 0.05 0.44 8.71 28.37 >900 >900
        CC 0.08 0.47 3.02 5.52 21.89 145.36
        CP ? 0.07 ? 0.38 1.21 ?
        GC 0.04 0.29 0.81 5.08 13.58 41.22
        ON 0.13 0.89 9.29 >900 ? >900
        PH ? 0.07 ? 0.94 ? 10.96
        SP ? 0.88 ? >900 >900 >900
        ST ? 0.35 6.75 69.64 >900 >900
        """,
    ),
    ("OAE", "depth"): _printed(
        DEPTHS,
        """
        AD 0.25 6.71 28.37 >900 >900 >900
        CC 0.19 1.16 5.52 28.33 92.18 >900
        CP 0.05 0.12 0.38 0.66 1.18 ?
        GC 1.35 2.25 5.08 ? 20.41 ?
        ON 0.58 5.86 >900 >900 >900 >900
        PH ? 0.28 0.94 ? 1.61 2.21
        SP ? 40.31 >900 >900 >900 >900
        ST ? 8.76 69.64 128.52 >900 >900
        """,
    ),
}


def ratio(group: pd.DataFrame, optimal: pd.Series, n_rows: int) -> str:
    """Cost over optimal cost, and over how many rows where those are not all.

    Parameters
    ----------
    group : DataFrame
        Runs of a method on a forest.
    optimal : Series
        Proven optimal cost of each row that has one.
    n_rows : int
        Rows that there are.
    """
    both = group.set_index("row").cost.astype(float).to_frame().join(optimal.rename("optimal"), how="inner").dropna()
    if not len(both) or both.optimal.sum() <= 0:
        return "–"
    of = "" if len(both) == n_rows else f" ({len(both)} of {n_rows} rows)"
    return f"{both.cost.sum() / both.optimal.sum():.3f}{of}"


def cells(same: pd.DataFrame, methods: Sequence[str]) -> list[str]:
    """Seconds / cost ratio of each method.

    Parameters
    ----------
    same : DataFrame
        Runs on one forest.
    methods : sequence of str
    """
    optimal = same[same.status.isin(PROVED)].groupby("row").cost.min().dropna().astype(float)
    groups, n_rows = [same[same.method == method] for method in methods], same.row.nunique()
    return [f"{seconds(group, n_rows)} / {ratio(group, optimal, n_rows)}" if len(group) else "–" for group in groups]


def by_size(results: pd.DataFrame, methods: Sequence[str], over: str) -> str:
    """Table A1: one line a set and method, one column a size; cost ratios where they are not 1.

    Below OCEAN and OAE stands what the paper gives for them.

    Parameters
    ----------
    results : DataFrame
    methods : sequence of str
    over : {"trees", "depth"}
    """
    sizes = sorted(results[over].unique())
    rows = []
    for name, same in results.groupby("set", sort=False):
        columns = [[c.removesuffix(" / 1.000") for c in cells(same[same[over] == size], methods)] for size in sizes]
        for method, line in zip(methods, zip(*columns, strict=True), strict=True):
            rows.append([name, method, *line])
            if (method, over) in PUBLISHED_A1:
                published = PUBLISHED_A1[method, over][name]
                rows.append([name, f"{method} published", *(published.get(size, "") for size in sizes)])
    return markdown(rows, ["set", "method", *sizes])


def figure(results: pd.DataFrame, methods: Sequence[str], over: str) -> Figure:
    """Mean seconds over the number of trees or their depth, with 95 % intervals: figures 2, 3, F1 and F2.

    A method's line ends where it did not prove every row that was tried, as a mean over the easy rows says nothing.

    Parameters
    ----------
    results : DataFrame
    methods : sequence of str
    over : {"trees", "depth"}
    """
    names = list(dict.fromkeys(results.set))
    wide = min(len(names), 4)
    tall = -(-len(names) // wide)
    out, axes = plt.subplots(tall, wide, figsize=(3.4 * wide, 2.8 * tall), squeeze=False, sharey=True, sharex=True)
    for axis, name in zip(axes.flat, names, strict=False):
        for colour, method in enumerate(methods):
            own = results[(results.set == name) & (results.method == method)]
            in_time = own.status.isin((*PROVED, *ENDED)) & (own.seconds <= own.limit)
            groups = own[in_time.groupby(own[over]).transform("all")].groupby(over).seconds
            mean, number = groups.mean(), groups.count()
            away = t.ppf(0.975, (number - 1).clip(lower=1)) * groups.std().fillna(0.0) / number**0.5
            axis.plot(mean.index, mean, "o-", color=f"C{colour}", markersize=3, label=method)
            low = (mean - away).clip(lower=mean / 10)  # the axis is logarithmic
            axis.fill_between(mean.index, low, mean + away, color=f"C{colour}", alpha=0.2, linewidth=0)
        axis.set_title(name)
        axis.grid(alpha=0.3)
    if any(len(line.get_xdata()) for axis in axes.flat for line in axis.lines):  # no logarithm of an empty axis
        axes[0, 0].set(yscale="log", xscale="log" if over == "trees" else "linear")
    for axis in axes[-1]:
        axis.set_xlabel(over)
    axes[0, 0].set_ylabel("seconds per row")
    axes[0, 0].legend(frameon=False, fontsize=8)
    out.tight_layout()
    return out


def only(forests: list[tuple[int, int]], over: str, sizes: list[int] | None) -> list[tuple[int, int]]:
    """Forests of these numbers of trees or depths; all where none is asked for.

    Parameters
    ----------
    forests : list of (trees, depth)
    over : {"trees", "depth"}
    sizes : list of int or None
    """
    place = ("trees", "depth").index(over)
    return [forest for forest in forests if sizes is None or forest[place] in sizes]


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    columns = [*BASELINES, *METHODS]
    default = ["FT", "FOCUS", "MACE", "OAE", "OCEAN", "interval", "box"]
    parser.add_argument("--methods", nargs="+", choices=columns, default=default)
    parser.add_argument("--forests", choices=FORESTS, default="base")
    parser.add_argument("--sizes", nargs="+", type=int, help="of A1's forests only these numbers of trees, or depths")
    args = parse(parser)
    over = "depth" if args.forests == "depths" else "trees"
    sizes = [(10, 3), (20, 3)] if args.quick else only(FORESTS[args.forests], over, args.sizes)
    if not sizes:
        parser.error(f"--sizes: --forests {args.forests} has none of these")
    jobs = [
        {"set": s, "trees": t, "depth": d, "method": m, "norm": "l1", "row": k, "limit": args.time_limit}
        for t, d in sizes
        for s in args.sets
        for k in range(args.rows)
        for m in args.methods
    ]
    kept = Runs(args.output)
    results = measure(kept, jobs, args.data)
    if len(sizes) > 1 or args.forests != "base":
        text = by_size(results, args.methods, over)
    else:
        names = ("FT", "MACE", "OAE", "OCEAN")
        rows = [
            [name, *cells(same, args.methods), *PUBLISHED[name]] for name, same in results.groupby("set", sort=False)
        ]
        text = markdown(rows, ["set", *args.methods, *(f"{name} published" for name in names)])
    stem = f"table3-{'quick' if args.quick else args.forests}"
    publish(args.output, stem, kept, text, results, limits(args))
    if len(sizes) > 1:
        figure(results, args.methods, over).savefig(args.output / f"{stem}.png", dpi=150)


if __name__ == "__main__":
    main()

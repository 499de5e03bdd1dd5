"""Table 6: training and test error (%) of oblique trees (TAO), axis-aligned trees (CART) and random forests.

Mean ± standard deviation over the splits.

python examples/papers/oblique/table6.py --data DIR -o out/table6
python examples/papers/oblique/table6.py -o out/table6 --tables-only     # the table of the splits that are finished
python examples/papers/oblique/table6.py --data DIR -o out/table6-log --sets Spambase --log   # TAO on logarithms
python examples/papers/oblique/table6.py --data DIR -o out/table6-folds --sets Adult MNIST --folds   # TAO, 5-fold CV
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pandas as pd
from common import CONTINUOUS, SETS, arguments, cart, forest, last_step, split, tao_cv
from runs import Runs, markdown, publish

#: Train and test error of CART, its depth; the same of TAO; train and test error of the forest.
PUBLISHED = {
    "MNIST": (4.2, 11.9, 19, 1.4, 5.2, 9, 0.0, 3.1),
    "Adult": (12.6, 14.7, 12, 13.9, 14.6, 12, 13.2, 14.1),
    "Breast": (1.4, 2.6, 4, 1.2, 2.1, 3, 0.01, 2.1),
    "Spambase": (3.1, 7.6, 10, 4.5, 4.8, 5, 0.0, 4.2),
    "Letter": (1.2, 12.1, 25, 3.8, 7.7, 12, 0.0, 3.7),
    "Credit": (21.9, 23.5, 7, 17.5, 18.5, 8, 0.0, 21.9),
}

MODELS = ("CART", "TAO", "RF")

#: Options under which the oblique tree alone is fitted, in a way of its own.
ALONE = ("log", "folds")


def errors(name: str, model: str, folder: str | None, seed: int, quick: bool, how: dict[str, bool]) -> dict[str, Any]:
    the = split(name, folder, seed)
    begin = time.process_time()
    fitted = {"CART": cart, "RF": forest, "TAO": partial(tao_cv, quick=quick, **how)}[model](name, folder, seed)
    seconds = time.process_time() - begin
    last = last_step(fitted)
    sizes: dict[str, Any] = {}
    if model == "CART":
        sizes = {"depth": int(last.get_depth()), "leaves": int(last.get_n_leaves())}
    elif model == "TAO":
        sizes = {"depth": int(last.tree_.depth), "leaves": last.n_leaves_, "C": last.C_}
    return {
        "train": 100 * (1 - fitted.score(the.train, the.y)),
        "test": 100 * (1 - fitted.score(the.test, the.y_test)),
        **sizes,
        "seconds": seconds,
    }


def spread(values: pd.Series) -> str:
    """Mean ± standard deviation; – where there is none."""
    if values.empty:
        return "–"
    return f"{values.mean():.1f} ± {values.std(ddof=1):.1f}" if len(values) > 1 else f"{values.mean():.1f}"


def table(found: pd.DataFrame) -> str:
    """Markdown table of all runs: ours by set and model, and the paper's."""
    rows: list[list[object]] = []
    for name in found["set"].unique():
        of_set = found[found["set"] == name]
        row: list[object] = [name, int(of_set["split"].nunique())]
        for model in MODELS:
            own = of_set[of_set["model"] == model]
            row += [f"{spread(own['train'])} / {spread(own['test'])}"]
            row += [spread(own["depth"])] if model == "CART" else []
            row += [f"{spread(own['depth'])}, {spread(own['leaves'])}"] if model == "TAO" else []
        paper = PUBLISHED[name]
        row += [f"{paper[0]} / {paper[1]}", paper[2], f"{paper[3]} / {paper[4]}", paper[5]]
        rows.append([*row, f"{paper[6]} / {paper[7]}"])
    header = ["set", "splits", "CART", "depth", "TAO", "depth, leaves", "random forest"]
    return markdown(rows, [*header, "paper: CART", "depth", "TAO", "depth", "random forest"])


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=10, help="splits into training and test part (default: 10)")
    parser.add_argument("--tables-only", action="store_true", help="the table of the splits that are finished")
    parser.add_argument("--log", action="store_true", help="TAO alone, on log(1 + x) of sets of numbers")
    parser.add_argument("--folds", action="store_true", help="TAO alone, its penalty in 5-fold CV on large sets, too")
    args = parser.parse_args()
    how = {option: True for option in ALONE if getattr(args, option)}
    if args.log and not set(args.sets) <= set(CONTINUOUS):
        parser.error(f"--log takes sets of numbers alone: --sets {' '.join(CONTINUOUS)}")
    names, splits = (["Breast", "Spambase"], 2) if args.quick else (args.sets, args.splits)
    runs, rows = Runs(args.output), []
    for name in names:
        for seed in range(splits):
            jobs: list[dict[str, Any]] = [{"set": name, "model": m, "split": seed, "quick": args.quick} for m in MODELS]
            if how:
                jobs = [{**jobs[MODELS.index("TAO")], **how}]
            for job in jobs:
                if runs.get(job) is None and not args.tables_only:
                    runs.add(job, errors(name, job["model"], args.data, seed, args.quick, how))
            results = [runs.get(job) for job in jobs]
            rows += [{**job, **result} for job, result in zip(jobs, results, strict=True) if result and all(results)]
    if not rows:
        parser.error(f"no split is finished in {args.output}")
    found, stem = pd.DataFrame(rows), "-".join(["table6", *how, *["quick"] * args.quick])
    publish(args.output, stem, runs, table(found), found.drop(columns="quick"), f"{splits} splits at most, no limit")


if __name__ == "__main__":
    assert set(PUBLISHED) == set(SETS)
    main()

"""Figure 4: digits changed into others by l1, l2, a quadratic cost that only adds or only erases ink, and known rows.

python examples/papers/oblique/figure4.py --data DIR -o out/figure4
python examples/papers/oblique/figure4.py --data DIR -o out/figure4 --digits 10   # how much the digit matters

The matrix Q has 1 on the diagonal and -1/4 for neighbouring pixels, so that local groups of pixels change. Q is shown
with its distance; red is more ink and blue less, each image scaled by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from common import arguments, split, tao
from runs import Runs, markdown, publish

from ocf import Explainer, quadratic_cost
from ocf.explain.leaf_queries import nearest_instances

#: Source and target digits; the data have no 0 and no 2.
PAIRS = ((7, 1), (6, 3), (5, 4), (3, 9), (4, 7), (7, 5), (8, 6), (6, 5), (9, 8))
#: The paper's cost of Q, ink added and erased, where a pair is one of the paper's.
PUBLISHED = {
    (7, 1): (0.04, 0.45),
    (6, 3): (0.27, 1.11),
    (5, 4): (0.24, 2.02),
    (3, 9): (0.07, 2.55),
    (6, 5): (0.12, 0.81),
}
METHODS = {
    "l1": "l1",
    "l2": "l2",
    "add": "Q, ink added",
    "erase": "Q, ink erased",
    "instances": "nearest row, l2",
}
#: Seconds an answer may take.
TIME_LIMIT = 300.0
SIDE = 28


def neighbours() -> np.ndarray:
    """The paper's Q over the pixels, (784, 784)."""
    q = np.eye(SIDE * SIDE)
    for k in range(SIDE * SIDE):
        row, column = divmod(k, SIDE)
        for other_row, other in ((row + 1, column), (row, column + 1)):
            if other_row < SIDE and other < SIDE:
                q[k, other_row * SIDE + other] = q[other_row * SIDE + other, k] = -0.25
    return q


@lru_cache(maxsize=1)
def explainer(folder: str | None, quick: bool) -> tuple[Explainer, np.ndarray]:
    """Of the oblique tree, and what the tree gives the test rows."""
    the, model = split("MNIST", folder), tao("MNIST", folder, quick=quick)
    return Explainer(model, data=the.train, features=the.settings), model.predict(the.test)


def run(job: Mapping[str, Any], folder: str | None) -> dict[str, Any]:
    """One answer for one digit of a pair: the test rows that the tree reads rightly, in their order."""
    the = split("MNIST", folder)
    explain, predicted = explainer(folder, job["quick"])
    source, target = job["pair"]
    place = int(np.flatnonzero((the.y_test == source) & (predicted == source))[job["digit"]])
    row, method = the.test.iloc[[place]], job["method"]
    if method == "instances":
        e = nearest_instances(explain, row, pd.concat([the.train, the.test]), target, "l2")[0]
    else:
        pixels = {str(c): float(row[c].iloc[0]) for c in row.columns}
        ranges = {"add": {c: (v, 1.0) for c, v in pixels.items()}, "erase": {c: (0.0, v) for c, v in pixels.items()}}
        settings: dict[str, Any] = {"formulation": "oblique", "progress": False, "time_limit": TIME_LIMIT}
        if method in ranges:
            settings["permitted_range"] = ranges[method]
        norm = quadratic_cost(list(the.train.columns), neighbours()) if method in ranges else method
        e = explain.explain(row, target, norm, **settings)[0]
    changed = None if e.counterfactual is None else e.counterfactual.to_numpy(float)[0].tolist()
    ms = 1000 * sum(e.times[k] for k in ("reduce", "instance", "solve"))
    return {"row": place, "status": e.status, "cost": e.cost, "ms": ms, "changed": changed}


def draw(axes: Any, image: np.ndarray, found: Mapping[str, Mapping[str, Any]], label: str) -> None:
    """One line of the figure: the digit, and for each answer the changed digit and the difference."""
    axes[0].imshow(image, cmap="gray", vmin=0, vmax=1)
    axes[0].set_ylabel(label, rotation=0, ha="right", va="center")
    for k, (method, result) in enumerate(found.items()):
        left, right = axes[2 * k + 1], axes[2 * k + 2]
        if result["changed"] is None:
            left.text(0.5, 0.5, result["status"], ha="center", va="center", transform=left.transAxes, fontsize=7)
            continue
        changed = np.array(result["changed"]).reshape(SIDE, SIDE)
        difference = changed - image
        size = float(np.abs(difference).max()) or 1.0
        left.imshow(changed, cmap="gray", vmin=0, vmax=1)
        right.imshow(difference / size, cmap="bwr", vmin=-1, vmax=1)
        left.set_title(f"{METHODS[method]} ({result['cost']:.2g})", fontsize=8, loc="left")


def table(results: pd.DataFrame) -> str:
    """Cost of each answer, with the seconds of the first digit, or the lowest, middle and highest cost of several."""
    rows = []
    for pair, of_pair in results.groupby("pair", sort=False):
        line: list[object] = [pair]
        source, target = (int(digit) for digit in str(pair).split(" → "))
        paper = dict(zip(("add", "erase"), PUBLISHED.get((source, target), ("–", "–")), strict=True))
        for method in METHODS:
            own = of_pair[of_pair.method == method]
            cost, known = own.cost.astype(float), own.cost.notna().any()
            if len(own) > 1 and known:
                line.append(f"{cost.min():.2g}, {cost.median():.2g}, {cost.max():.2g}")
            elif known:
                line.append(f"{cost.iloc[0]:.3g} ({own.ms.iloc[0] / 1000:.2f} s)")
            else:
                line.append("–")
            line += [paper[method]] if method in paper else []
        rows.append(line)
    header = [w for m, title in METHODS.items() for w in ([title, "paper"] if m in ("add", "erase") else [title])]
    return markdown(rows, ["digits", *header])


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("--digits", type=int, default=1, help="source digits a pair; the first is drawn (default: 1)")
    args = parser.parse_args()
    pairs = PAIRS[:2] if args.quick else PAIRS
    kept, the, rows = Runs(args.output), split("MNIST", args.data), []
    figure, axes = plt.subplots(len(pairs), 11, figsize=(13, 1.35 * len(pairs)), layout="constrained", squeeze=False)
    for pair, line in zip(pairs, axes, strict=True):
        label = "{} → {}".format(*pair)
        for digit in range(args.digits):
            found = {}
            for method in METHODS:
                job = {"pair": list(pair), "digit": digit, "method": method, "quick": args.quick}
                found[method] = kept.made(job, partial(run, job, args.data))
                rows.append({"pair": label, "digit": digit, "method": method, **found[method]})
            if digit == 0:
                image = the.test.iloc[next(iter(found.values()))["row"]].to_numpy(float).reshape(SIDE, SIDE)
                draw(line, image, found, label)
        print(label, "done", flush=True)
    for ax in axes.ravel():
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    figure.savefig(args.output / "figure4.png", dpi=150)
    results = pd.DataFrame(rows).drop(columns="changed")
    stem, much = f"figure4{'-quick' * args.quick}", f"{len(pairs)} pairs, {args.digits} a pair"
    text = table(results[results.digit == 0])
    text += f"\nLowest, middle and highest cost:\n\n{table(results)}" if args.digits > 1 else ""
    publish(args.output, stem, kept, text, results, f"{much}, {TIME_LIMIT:g} s an answer")


if __name__ == "__main__":
    main()

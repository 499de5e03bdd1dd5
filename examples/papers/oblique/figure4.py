"""Figure 4: digits changed into others by l1, l2, a quadratic cost that only adds or only erases ink, and known rows.

python examples/papers/oblique/figure4.py --data DIR -o out/figure4

The matrix Q has 1 on the diagonal and -1/4 for neighbouring pixels, so that local groups of pixels change. Q is shown
with its distance; red is more ink and blue less, each image scaled by itself.
"""

from __future__ import annotations

from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from common import arguments, split, tao
from runs import markdown, publish

from ocf import Cost, Explainer, quadratic_cost
from ocf.explain.leaf_queries import nearest_instances

#: Source and target digits; the data have no 0 and no 2.
PAIRS = ((7, 1), (6, 3), (5, 4), (3, 9), (4, 7), (7, 5), (8, 6), (6, 5), (9, 8))
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


def answers(explainer: Explainer, row: pd.DataFrame, target: Any, known: pd.DataFrame, q: Cost) -> dict[str, Any]:
    """Explanations by title."""
    pixels = {str(c): float(row[c].iloc[0]) for c in row.columns}
    more = {c: (v, 1.0) for c, v in pixels.items()}
    less = {c: (0.0, v) for c, v in pixels.items()}
    settings: dict[str, Any] = {"formulation": "oblique", "progress": False, "time_limit": 300}
    return {
        "l1": explainer.explain(row, target, "l1", **settings)[0],
        "l2": explainer.explain(row, target, "l2", **settings)[0],
        "Q, add ink": explainer.explain(row, target, q, permitted_range=more, **settings)[0],
        "Q, erase ink": explainer.explain(row, target, q, permitted_range=less, **settings)[0],
        "nearest row, l2": nearest_instances(explainer, row, known, target, "l2")[0],
    }


def draw(axes: Any, row: pd.DataFrame, found: dict[str, Any], label: str) -> None:
    image = row.to_numpy(float).reshape(SIDE, SIDE)
    axes[0].imshow(image, cmap="gray", vmin=0, vmax=1)
    axes[0].set_ylabel(label, rotation=0, ha="right", va="center")
    for k, (title, e) in enumerate(found.items()):
        left, right = axes[2 * k + 1], axes[2 * k + 2]
        if e.counterfactual is None:
            left.text(0.5, 0.5, e.status, ha="center", va="center", transform=left.transAxes, fontsize=7)
            continue
        changed = e.counterfactual.to_numpy(float).reshape(SIDE, SIDE)
        difference = changed - image
        size = float(np.abs(difference).max()) or 1.0
        left.imshow(changed, cmap="gray", vmin=0, vmax=1)
        right.imshow(difference / size, cmap="bwr", vmin=-1, vmax=1)
        left.set_title(f"{title} ({e.cost:.2g})", fontsize=8, loc="left")


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    the, model = split("MNIST", args.data), tao("MNIST", args.data, quick=args.quick)
    explainer = Explainer(model, data=the.train, features=the.settings)
    known, q = pd.concat([the.train, the.test]), quadratic_cost(list(the.train.columns), neighbours())
    predicted = model.predict(the.test)
    pairs = PAIRS[:2] if args.quick else PAIRS
    figure, axes = plt.subplots(len(pairs), 11, figsize=(13, 1.35 * len(pairs)), layout="constrained", squeeze=False)
    rows, header = [], ["pair", "answer", "status", "distance", "ms"]
    for (source, target), line in zip(pairs, axes, strict=True):
        place = int(np.flatnonzero((the.y_test == source) & (predicted == source))[0])
        row = the.test.iloc[[place]]
        found = answers(explainer, row, target, known, q)
        draw(line, row, found, f"{source} → {target}")
        for title, e in found.items():
            cost = "–" if e.cost is None else f"{e.cost:.3g}"
            ms = 1000 * sum(e.times[k] for k in ("reduce", "instance", "solve"))
            rows.append([f"{source} → {target}", title, e.status, cost, f"{ms:.0f}"])
            print(*rows[-1], flush=True)
    for ax in axes.ravel():
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    figure.savefig(args.output / "figure4.png", dpi=150)
    stem, limits = f"figure4{'-quick' * args.quick}", f"{len(pairs)} pairs, no limit"
    publish(args.output, stem, None, markdown(rows, header), pd.DataFrame(rows, columns=header), limits)


if __name__ == "__main__":
    main()

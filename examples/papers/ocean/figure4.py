"""Figure 4: what an isolation forest changes, on the sepals of iris.

python examples/papers/ocean/figure4.py -o results/figure4

A random forest tells virginica from the others by sepal length and width; one setosa flower is explained towards
virginica, with and without the isolation forest. The left panel shows the decisions, the right one the average depth in
the isolation forest that was fitted on the virginica rows; below the threshold a point counts as an outlier.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer, Plausibility
from ocf.models.detector import make_detector
from ocf.models.target_rows import TargetRows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--row", type=int, default=16, help="flower to explain (default: 16)")
    parser.add_argument("--quick", action="store_true", help="the same: the figure takes seconds")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the figure")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)

    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.iloc[:, :2]
    forest = RandomForestClassifier(100, max_depth=5, random_state=0).fit(X, y == 2)
    explainer = Explainer(forest, data=X)
    wish = Plausibility(samples=32)
    row = X.iloc[[args.row]]
    plain = explainer.explain(row, target=True)[0]
    inside = explainer.explain(row, target=True, plausibility=wish)[0]

    detector = make_detector(wish, explainer.model, TargetRows(X[forest.predict(X)]), ())
    low, high = X.min() - 0.3, X.max() + 0.3
    a, b = np.meshgrid(np.linspace(low.iloc[0], high.iloc[0], 300), np.linspace(low.iloc[1], high.iloc[1], 300))
    grid = pd.DataFrame({X.columns[0]: a.ravel(), X.columns[1]: b.ravel()})
    depth = detector.measure(grid)[0].reshape(a.shape)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), sharey=True)
    left.contourf(
        a, b, forest.predict_proba(grid)[:, 1].reshape(a.shape), levels=[0, 0.5, 1], colors=["#f3d9d3", "#d5e4f2"]
    )
    shades = right.contourf(a, b, depth, levels=12, cmap="Greys")
    right.contour(a, b, depth, levels=[detector.least], colors="C2")
    figure.colorbar(shades, ax=right, label="average depth")
    for axis, title in ((left, "decisions of the random forest"), (right, "isolation forest, with its threshold")):
        for kind, colour, label in ((0, "C0", "virginica"), (1, "C3", "others")):
            rows = X[(y == 2) == (kind == 0)]
            axis.plot(rows.iloc[:, 0], rows.iloc[:, 1], ".", color=colour, alpha=0.5, label=label)
        for e, marker, label in ((plain, "X", "cheapest"), (inside, "P", "cheapest plausible")):
            point = e.counterfactual
            axis.plot(*point.iloc[0], marker, color="black", markersize=10, label=f"{label}, cost {e.cost:.3f}")
            axis.annotate("", point.iloc[0], row.iloc[0], arrowprops={"arrowstyle": "->", "alpha": 0.6})
        axis.plot(*row.iloc[0], "o", color="black", label="explained")
        axis.set(title=title, xlabel=X.columns[0])
    left.set_ylabel(X.columns[1])
    left.legend(frameon=True, fontsize=8)
    figure.tight_layout()
    figure.savefig(args.output / "figure4.png", dpi=150)
    for e, name in ((plain, "cheapest"), (inside, "cheapest plausible")):
        print(f"{name}: {e.status}, cost {e.cost:.4f}, depth {detector.measure(e.counterfactual)[0][0]:.3f}")
    print(f"least depth {detector.least:.3f}; written {args.output / 'figure4.png'}")


if __name__ == "__main__":
    main()

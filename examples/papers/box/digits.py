"""Use case 2, table III and figures 5 and 6: which change of a misread digit makes the model read it rightly.

python examples/papers/box/digits.py --data DIR -o results/digits

Pairs of digits in 5-fold cross-validation, so that every misread image counts; 50 principal components (each scaled to
its range in the training part), XGBoost of 200 trees of depth 7. Without a data folder the 8 x 8 digits of scikit-learn
stand in for MNIST.

Stability is the largest ratio ``|f(x) - f(x')| / |x - x'|`` over points x' drawn around x, where f gives the closest
counterfactual towards the true digit (Alvarez-Melis & Jaakkola 2018, equation 2). The paper gives neither the radius
nor the number of points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from cases import arguments, run_all
from runs import Runs, markdown, publish
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedKFold
from xgboost import XGBClassifier

from ocf import Explainer
from ocf.compare.datasets import load_dataset

mpl.use("Agg")
from matplotlib import pyplot as plt

PAIRS = ((5, 6), (1, 7), (4, 9), (3, 8))

#: L1, L2, sparsity, stability of the paper's table III: its own method, then FOCUS.
PUBLISHED = {
    (5, 6): ((0.32, 0.20, 3.08, 0.98), (0.93, 0.37, 15.83, 1.07)),
    (1, 7): ((0.17, 0.14, 1.75, 0.96), (0.66, 0.28, 10.75, 1.04)),
    (4, 9): ((0.26, 0.15, 3.36, 0.90), (1.04, 0.31, 20.91, 1.22)),
    (3, 8): ((0.29, 0.20, 3.00, 0.94), (1.07, 0.38, 18.50, 1.04)),
}

#: Decision thresholds of the figures; the true digit is to get a probability of at least 1 - epsilon.
EPSILONS = (0.5, 0.4, 0.3, 0.2, 0.1)

#: Parts of the cross-validation; every image is in the test part once.
FOLDS = 5

#: Components may leave their range in the training part by this share of it.
MARGIN = 0.5


@dataclass(frozen=True, eq=False)
class Pair:
    """A classifier of two digits, and what it misreads."""

    digits: tuple[int, int]
    pca: PCA
    low: np.ndarray[Any, Any]
    span: np.ndarray[Any, Any]
    model: XGBClassifier
    explainer: Explainer
    test: pd.DataFrame
    truth: np.ndarray[Any, Any]
    side: int

    @property
    def misread(self) -> np.ndarray[Any, Any]:
        """Rows of the test part that the model gives the other digit."""
        return np.flatnonzero(self.model.predict(self.test) != self.truth)

    def image(self, row: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Grey levels of a scaled row of components."""
        flat = self.pca.inverse_transform((row * self.span + self.low)[None, :])[0]
        return np.asarray(flat).reshape(self.side, self.side)


@cache
def images(folder: str | None) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Grey levels between 0 and 1 and digits."""
    if folder is None:
        bunch = load_digits()
        return bunch.data / 16.0, bunch.target
    data = load_dataset("mnist_5k", folder)
    return data.table.to_numpy(float) / 255.0, data.target.to_numpy()


@cache
def pair(digits: tuple[int, int], folder: str | None, trees: int, depth: int, fold: int = 0) -> Pair:
    """Train on all folds of the two digits but one.

    Parameters
    ----------
    digits : tuple of int
    folder : str or None
        Of the data sets.
    trees, depth : int
        Of the model.
    fold : int
        Of `FOLDS`: the test part.
    """
    x, y = images(folder)
    chosen = np.isin(y, digits)
    truth = (y[chosen] == digits[1]).astype(int)
    parts = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(x[chosen], truth)
    known_rows, test_rows = list(parts)[fold]
    train, test, y_train, y_test = x[chosen][known_rows], x[chosen][test_rows], truth[known_rows], truth[test_rows]
    pca = PCA(min(50, x.shape[1] - 1), random_state=0).fit(train)
    names = [f"component {k + 1}" for k in range(pca.n_components_)]
    known = pca.transform(train)
    low = known.min(axis=0)
    span = known.max(axis=0) - low
    table = pd.DataFrame((known - low) / span, columns=names)
    model = XGBClassifier(n_estimators=trees, max_depth=depth, n_jobs=1, random_state=0).fit(table, y_train)
    settings = {n: {"bounds": (-MARGIN, 1.0 + MARGIN), "scale": 1.0} for n in names}
    rows = pd.DataFrame(((pca.transform(test) - low) / span).clip(-MARGIN, 1.0 + MARGIN), columns=names)
    explainer = Explainer(model, data=table, features=settings)
    return Pair(digits, pca, low, span, model, explainer, rows, y_test, round(x.shape[1] ** 0.5))


def around(row: np.ndarray[Any, Any], number: int, radius: float, seed: int) -> np.ndarray[Any, Any]:
    """Points drawn evenly from a ball, clipped to the bounds."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=(number, len(row)))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    away = radius * rng.random((number, 1)) ** (1 / len(row))
    return np.clip(row + direction * away, -MARGIN, 1.0 + MARGIN)


def main() -> None:
    parser = arguments(__doc__.split("\n")[0])
    parser.add_argument("--points", type=int, default=10, help="points per row for the stability (default: 10)")
    parser.add_argument("--radius", type=float, default=0.1, help="radius around a row (default: 0.1)")
    args = parser.parse_args()
    trees, depth = (10, 2) if args.quick else (200, 7)
    n_rows = 2 if args.quick else 10_000
    args.points = min(args.points, 2) if args.quick else args.points
    runs = Runs(args.output)

    def search(the: Pair, rows: pd.DataFrame, truth: int, **settings: Any) -> Any:
        return the.explainer.explain(
            rows,
            target=truth,
            norm="l2",
            solver="box",
            time_limit=args.time_limit,
            threads=args.threads,
            progress=False,
            **settings,
        )

    def run(job: Mapping[str, Any]) -> dict[str, Any]:
        the = pair(tuple(job["pair"]), args.data, trees, depth, job["fold"])
        row, truth = the.test.iloc[[job["row"]]], int(the.truth[job["row"]])
        x = row.to_numpy()[0]
        e = search(the, row, truth)[0]
        point = e.counterfactual.to_numpy()[0]
        near = around(x, job["points"], job["radius"], job["row"])
        others = search(the, pd.DataFrame(near, columns=the.test.columns), truth)
        moved = np.array([o.counterfactual.to_numpy()[0] for o in others])
        ratio = np.linalg.norm(moved - point, axis=1) / np.linalg.norm(near - x, axis=1)
        return {
            "status": e.status,
            "verified": e.verified,
            "proved": e.status == "optimal" and all(o.status == "optimal" for o in others),
            "l1": float(np.abs(point - x).sum()),
            "l2": float(np.linalg.norm(point - x)),
            "sparsity": int((point != x).sum()),
            "stability": float(ratio.max()),
            "seconds": e.times["total"],
        }

    base = {
        "images": "MNIST" if args.data else "scikit-learn",
        "trees": trees,
        "depth": depth,
        "limit": args.time_limit,
        "points": args.points,
        "radius": args.radius,
    }
    jobs = [
        {**base, "pair": list(digits), "fold": fold, "row": int(k)}
        for digits in PAIRS
        for fold in range(1 if args.quick else FOLDS)
        for k in pair(digits, args.data, trees, depth, fold).misread[:n_rows]
    ]
    results = pd.DataFrame(run_all(runs, jobs, run))
    if results.empty:
        raise SystemExit("the model misreads no digit of the test part: use fewer trees, or another folder")
    results["pair"] = results.pair.map(tuple)
    lines = []
    for digits, group in results.groupby("pair", sort=False):
        ours, focus = PUBLISHED[digits]
        means = [f"{group[c].mean():.2f} ± {group[c].sem():.2f}" for c in ("l1", "l2", "sparsity", "stability")]
        lines.append([f"{digits[0]} versus {digits[1]}", len(group), f"{group.proved.sum()}", *means, *ours, *focus])
    columns = ("L1", "L2", "sparsity", "stability")
    header = [
        "problem",
        "misread",
        "proved",
        *columns,
        *(f"paper {c}" for c in columns),
        *(f"FOCUS {c}" for c in columns),
    ]
    seconds = results.seconds
    limits = (
        f"{base['images']}, {trees} trees of depth {depth}, {1 if args.quick else FOLDS} of {FOLDS} folds, "
        f"stability over {args.points} points within {args.radius:g}, {args.time_limit:g} s a row, "
        f"of which it takes in the median {seconds.median():.3f} s, at most {seconds.max():.3f} s; "
        "means ± standard errors"
    )
    publish(args.output, "table3", runs, markdown(lines, header), results, limits)
    for digits in ((5, 6), (4, 9)):
        the = pair(digits, args.data, trees, depth)
        if len(the.misread):
            figure(the, search, args.output / f"epsilon-{digits[0]}-{digits[1]}.png")


def figure(the: Pair, search: Any, path: Path) -> None:
    """The most clearly misread digit and its counterfactuals for falling thresholds."""
    probability = the.model.predict_proba(the.test)[the.misread, the.truth[the.misread]]
    k = int(the.misread[np.argmin(probability)])
    row, truth = the.test.iloc[[k]], int(the.truth[k])
    shown = [("query", row.to_numpy()[0])]
    for epsilon in EPSILONS:
        e = search(the, row, truth, probability=1.0 - epsilon)[0]
        if e.counterfactual is not None:
            shown.append((f"eps = {epsilon:g}\ndCF = {e.cost**0.5:.3f}", e.counterfactual.to_numpy()[0]))
    fig, axes = plt.subplots(2, len(shown), figsize=(2.0 * len(shown), 4.4), squeeze=False)
    query = the.image(shown[0][1])
    most = max(float(np.abs(the.image(point) - query).max()) for _, point in shown) or 1.0
    for column, (title, point) in enumerate(shown):
        axes[0, column].imshow(the.image(point), cmap="gray_r", vmin=0, vmax=1)
        axes[0, column].set_title(title, fontsize=10)
        axes[1, column].imshow(the.image(point) - query, cmap="RdBu_r", vmin=-most, vmax=most)
    for axis in axes.flat:
        axis.set_xticks([])
        axis.set_yticks([])
    axes[1, 0].set_ylabel("change", fontsize=9)
    wrong = the.digits[1 - truth]
    fig.suptitle(f"a {the.digits[truth]} that the model reads as {wrong}", fontsize=11)
    fig.tight_layout()
    fig.savefig(path, dpi=130)
    plt.close(fig)


if __name__ == "__main__":
    main()

"""FOCUS: gradient descent through a forest whose splits are sigmoids.

Lucic, Oosterhuis, Haned & de Rijke, *FOCUS: Flexible Optimizable Counterfactual Explanations for Tree Ensembles*, AAAI
2022: a row goes to both sides of every split, in parts that a sigmoid of its distance from the threshold gives, so that
a leaf holds the product along its path, a tree votes by the parts of its leaves, and a softmax of the votes stands for
the forest's class. Adam follows the gradient of the probability of the row's own class, as long as that is the forest's
answer, and of the distance. The columns are scaled to [0, 1], and no step leaves what a feature may change to; of every
fifth point on the way the nearest that the real forest gives the target is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.special import expit, log_expit
from tweaking import decoded, paths

#: Steepness of the sigmoids and of the softmax, each pair of which is tried, as the paper tunes them.
SIGMAS, TAUS = (2.0, 5.0, 10.0), (1.0, 5.0)

#: Weight of the distance, Adam's learning rate, how many steps it takes, and every which of them the forest is asked.
BETA, RATE, STEPS, EVERY = 0.01, 0.01, 500, 5

#: Adam's other constants.
MOMENTS, TINY = (0.9, 0.999), 1e-8


class SoftForest:
    """A random forest as a smooth function.

    Parameters
    ----------
    forest : RandomForestClassifier
    low, width : (n_encoded,) float64
        Of the encoded columns, by which they are scaled.
    target : label
    """

    def __init__(self, forest: Any, low: np.ndarray, width: np.ndarray, target: Any) -> None:
        wanted, trees = list(forest.classes_).index(target), [one.tree_ for one in forest.estimators_]
        first, places, votes = 0, list[tuple[int, int, bool]](), list[float]()
        for tree in trees:
            for path, leaf in paths(tree):
                places += [(len(votes), first + v, left) for v, left in path]
                votes.append(tree.value[leaf, 0, wanted] / tree.value[leaf, 0].sum() / len(trees))
            first += tree.node_count
        feature, threshold = (np.concatenate([getattr(t, name) for t in trees]) for name in ("feature", "threshold"))
        leaf_of, node, left_of = np.array(places, int).reshape(-1, 3).T
        splits, node = np.unique(node, return_inverse=True)
        self._votes, self._feature = np.array(votes), feature[splits]
        self._threshold = (threshold[splits] - low[self._feature]) / width[self._feature]
        sides = [(left_of == side).astype(float) for side in (0, 1)]
        self._right, self._left = (csr_array((on, (leaf_of, node)), (len(votes), len(splits))) for on in sides)

    def other(self, x: np.ndarray, sigma: float, tau: float) -> tuple[float, np.ndarray]:
        """Smooth probability that the forest does not answer the target, and its gradient.

        Parameters
        ----------
        x : (n_encoded,) float64
            Scaled.
        sigma, tau : float
        """
        ahead = sigma * (x[self._feature] - self._threshold)
        weight = np.exp(self._right @ log_expit(ahead) + self._left @ log_expit(-ahead))
        share = self._votes * weight
        value = expit(tau * (1 - 2 * share.sum()))
        along = (self._right.T @ share) * expit(-ahead) - (self._left.T @ share) * expit(ahead)
        slope = np.bincount(self._feature, sigma * along, len(x))
        return float(value), -2 * tau * value * (1 - value) * slope


def focus(
    model: Any,
    row: pd.DataFrame,
    target: Any,
    train: pd.DataFrame,
    settings: Mapping[str, Mapping[str, Any]],
    distance: Callable[[pd.DataFrame], np.ndarray],
) -> pd.DataFrame | None:
    """The nearest point on the way that the forest gives the target, or None.

    Parameters
    ----------
    model : RandomForestClassifier of two classes, or Pipeline that ends in one
    row : DataFrame (1, n_columns)
    target : label
    train : DataFrame
        For the ranges of the columns.
    settings : mapping
        Of the features.
    distance : callable
        Of points in a table to the row, infinite for those that are not allowed.
    """
    encoder, last = (model[:-1], model[-1]) if hasattr(model, "steps") else (None, model)
    encoded = np.asarray(train if encoder is None else encoder.transform(train), np.float64)
    origin = np.asarray(row if encoder is None else encoder.transform(row), np.float64)[0]
    low, width = encoded.min(axis=0), np.where(np.ptp(encoded, axis=0) > 0, np.ptp(encoded, axis=0), 1.0)
    soft, start = SoftForest(last, low, width, target), (origin - low) / width
    names = list(row.columns if encoder is None else encoder.get_feature_names_out())

    def flips(x: np.ndarray) -> bool:
        point = low + width * x[None]
        return bool(last.predict(pd.DataFrame(point, columns=names) if encoder is None else point)[0] == target)

    limits = _limits(start, names, settings)
    points = np.array([x for sigma in SIGMAS for tau in TAUS for x in _way(soft, start, sigma, tau, flips, limits)])
    table = decoded(pd.DataFrame(low + width * points, columns=names), row, settings)
    away = np.where(model.predict(table) == target, distance(table), np.inf)
    nearest = int(away.argmin())
    return table.iloc[[nearest]].set_axis(row.index) if np.isfinite(away[nearest]) else None


def _limits(
    start: np.ndarray, names: list[str], settings: Mapping[str, Mapping[str, Any]]
) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest scaled value that each encoded column may have."""
    low, high = np.minimum(start, 0.0), np.maximum(start, 1.0)
    for column, setting in settings.items():
        may = setting.get("actionability", "free")
        for name in {column, *(f"{column}_{level}" for level in setting.get("levels", []))} & set(names):
            at = names.index(name)
            low[at] = start[at] if may in ("fixed", "increasing") else low[at]
            high[at] = start[at] if may in ("fixed", "decreasing") else high[at]
    return low, high


def _way(
    soft: SoftForest,
    start: np.ndarray,
    sigma: float,
    tau: float,
    flips: Callable[[np.ndarray], bool],
    limits: tuple[np.ndarray, np.ndarray],
) -> list[np.ndarray]:
    """Points on the way that Adam takes; the forest is asked at some whether its answer is still another."""
    x, first, second, out, other = start.copy(), np.zeros(len(start)), np.zeros(len(start)), list[np.ndarray](), True
    for step in range(1, STEPS + 1):
        change = x - start
        gradient = BETA * change / max(float(np.linalg.norm(change)), TINY)
        if other:
            gradient = gradient + soft.other(x, sigma, tau)[1]
        first = MOMENTS[0] * first + (1 - MOMENTS[0]) * gradient
        second = MOMENTS[1] * second + (1 - MOMENTS[1]) * gradient**2
        bend = np.sqrt(second / (1 - MOMENTS[1] ** step)) + TINY
        x = np.clip(x - RATE * first / (1 - MOMENTS[0] ** step) / bend, *limits)
        if step % EVERY == 0:
            out.append(x)
            other = not flips(x)
    return out

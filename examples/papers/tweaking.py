"""Feature tweaking of a single axis-aligned tree or a forest of them, as its paper describes it.

Tolomei, Silvestri, Haines & Lalmas, *Interpretable predictions of tree-based ensembles via actionable feature
tweaking*, KDD 2017: for every tree that does not vote for the target, and every path of it to a leaf that does, the
features on the path are set to eps beyond each threshold in turn (features standardised); of the points that the model
gives the target, the nearest is taken. One-hot columns are tweaked as if they were continuous and rounded at the end,
as the oblique paper does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

#: In standard deviations of the training part.
EPSILON = 0.1


def tweak(
    model: Any,
    row: pd.DataFrame,
    target: Any,
    train: pd.DataFrame,
    settings: Mapping[str, Mapping[str, Any]],
    distance: Callable[[pd.DataFrame], np.ndarray] | None = None,
) -> pd.DataFrame | None:
    """The tweaked row, or None when no tweak gets the target.

    Parameters
    ----------
    model : DecisionTreeClassifier or RandomForestClassifier, or Pipeline that ends in one
    row : DataFrame (1, n_columns)
    target : label
    train : DataFrame
        For the deviations and bounds of the columns.
    settings : mapping
        Of the features.
    distance : callable, optional
        Of points in a table to the row, infinite for those that are not allowed. By default squared, in units of the
        encoded columns' ranges, and without an encoder no value is rounded to a level.
    """
    encoder, last = (model[:-1], model[-1]) if hasattr(model, "steps") else (None, model)
    encoded = np.asarray(train if encoder is None else encoder.transform(train), np.float64)
    origin = np.asarray(row if encoder is None else encoder.transform(row), np.float64)[0]
    spread, classes = encoded.std(axis=0), list(last.classes_)
    points = []
    for tree in (one.tree_ for one in getattr(last, "estimators_", [last])):
        votes = [classes[k] for k in tree.value[:, 0].argmax(axis=1)]  # of each node
        if votes[tree.apply(origin[None].astype(np.float32))[0]] != target:
            points += [_along(tree, path, origin, spread) for path, leaf in paths(tree) if votes[leaf] == target]
    if not points:
        return None
    if encoder is None and distance is None:
        table = pd.DataFrame(np.array(points), columns=row.columns)
    else:
        names = list(row.columns if encoder is None else encoder.get_feature_names_out())
        table = decoded(pd.DataFrame(np.array(points), columns=names), row, settings)
    hits = np.flatnonzero(model.predict(table) == target)
    if not len(hits):
        return None
    if distance is None:
        again = np.asarray(table if encoder is None else encoder.transform(table), np.float64)[hits]
        scale = np.where(np.ptp(encoded, axis=0) > 0, np.ptp(encoded, axis=0), 1.0)
        away = (((again - origin) / scale) ** 2).sum(axis=1)
    else:
        away = distance(table.iloc[hits])
    nearest = hits[[int(away.argmin())]]
    return table.iloc[nearest].set_axis(row.index) if np.isfinite(away.min()) else None


def paths(tree: Any) -> list[tuple[list[tuple[int, bool]], int]]:
    """Nodes on the path to each leaf, each with whether it goes left there, and the leaf's own node."""
    out, stack = [], [(0, [])]
    while stack:
        v, path = stack.pop()
        if tree.children_left[v] < 0:
            out.append((path, v))
            continue
        stack.append((int(tree.children_left[v]), [*path, (v, True)]))
        stack.append((int(tree.children_right[v]), [*path, (v, False)]))
    return out


def _along(tree: Any, path: list[tuple[int, bool]], origin: np.ndarray, spread: np.ndarray) -> np.ndarray:
    point = origin.copy()
    for v, left in path:
        column = int(tree.feature[v])
        point[column] = float(tree.threshold[v]) + (-EPSILON if left else EPSILON) * spread[column]
    return point


def decoded(points: pd.DataFrame, row: pd.DataFrame, settings: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Points in the user's columns; categories by the largest of their columns, levels by the nearest.

    Parameters
    ----------
    points : DataFrame (n, n_encoded)
        In the columns that the encoder names.
    row : DataFrame (1, n_columns)
    settings : mapping
        Of the features.
    """
    out = {}
    for column in row.columns:
        setting = settings[column]
        levels = np.array(setting.get("levels", []))
        if setting["kind"] == "categorical":
            out[column] = levels[points[[f"{column}_{level}" for level in levels]].to_numpy().argmax(axis=1)]
        elif len(levels):
            out[column] = levels[np.abs(points[column].to_numpy()[:, None] - levels).argmin(axis=1)]
        else:
            out[column] = points[column].to_numpy()
    return pd.DataFrame(out, columns=row.columns)

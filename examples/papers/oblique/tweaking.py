"""Feature tweaking of a single axis-aligned tree, as its paper describes it.

Tolomei, Silvestri, Haines & Lalmas, *Interpretable predictions of tree-based ensembles via actionable feature
tweaking*, KDD 2017: for every path to a leaf of the target class, the features on the path are set to eps beyond each
threshold in turn (features standardised); of the points that the tree gives the target, the nearest is taken. One-hot
columns are tweaked as if they were continuous and rounded at the end, as the oblique paper does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

#: In standard deviations of the training part.
EPSILON = 0.1


def tweak(
    model: Any, row: pd.DataFrame, target: Any, train: pd.DataFrame, settings: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame | None:
    """The tweaked row, or None when no tweak gets the target.

    Parameters
    ----------
    model : DecisionTreeClassifier, or Pipeline that ends in one
    row : DataFrame (1, n_columns)
    target : label
    train : DataFrame
        For the deviations and bounds of the columns.
    settings : mapping
        Of the features.
    """
    encoder, tree = (model[:-1], model[-1]) if hasattr(model, "steps") else (None, model)
    encoded = np.asarray(train if encoder is None else encoder.transform(train), np.float64)
    origin = np.asarray(row if encoder is None else encoder.transform(row), np.float64)[0]
    spread = encoded.std(axis=0)
    points = [
        _along(path, origin, spread) for path, label in _paths(tree.tree_, list(tree.classes_)) if label == target
    ]
    if not points:
        return None
    decoded = [_decoded(point, encoder, row, settings) for point in points]
    table = pd.concat(decoded, ignore_index=True)
    hits = np.flatnonzero(model.predict(table) == target)
    if not len(hits):
        return None
    again = np.asarray(table if encoder is None else encoder.transform(table), np.float64)[hits]
    scale = np.where(np.ptp(encoded, axis=0) > 0, np.ptp(encoded, axis=0), 1.0)
    nearest = hits[int((((again - origin) / scale) ** 2).sum(axis=1).argmin())]
    return table.iloc[[nearest]].set_axis(row.index)


def _paths(tree: Any, classes: list[Any]) -> list[tuple[list[tuple[int, float, bool]], Any]]:
    """Conditions (column, threshold, whether at most) and label of each leaf."""
    out, stack = [], [(0, [])]
    while stack:
        v, path = stack.pop()
        if tree.children_left[v] < 0:
            out.append((path, classes[int(tree.value[v, 0].argmax())]))
            continue
        column, threshold = int(tree.feature[v]), float(tree.threshold[v])
        stack.append((int(tree.children_left[v]), [*path, (column, threshold, True)]))
        stack.append((int(tree.children_right[v]), [*path, (column, threshold, False)]))
    return out


def _along(path: list[tuple[int, float, bool]], origin: np.ndarray, spread: np.ndarray) -> np.ndarray:
    point = origin.copy()
    for column, threshold, at_most in path:
        point[column] = threshold + (-EPSILON if at_most else EPSILON) * spread[column]
    return point


def _decoded(
    point: np.ndarray, encoder: Any, row: pd.DataFrame, settings: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """The point in the user's columns; categories by the largest of their columns, levels by the nearest."""
    if encoder is None:
        return pd.DataFrame([point], columns=row.columns)
    names = list(encoder.get_feature_names_out())
    out = row.copy()
    for column in row.columns:
        setting = settings[column]
        if setting["kind"] == "categorical":
            values = [point[names.index(f"{column}_{level}")] for level in setting["levels"]]
            out[column] = setting["levels"][int(np.argmax(values))]
        elif column in names:
            value = point[names.index(column)]
            levels = setting.get("levels")
            out[column] = min(levels, key=lambda v, x=value: abs(v - x)) if levels else value
    return out

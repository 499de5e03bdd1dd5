"""Columns of a line that take few values: bins, indicators, codes of numbers.

Such a column is no line over its feature. What it adds to a score is a number for each of its values, as a tree of
thresholds between them adds it, whose splits become splits of the feature like all others (`ocf.models.lift`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ocf.arrays import FloatArray
from ocf.errors import DataError, UnsupportedModelError
from ocf.features.lattice import Lattice, middle
from ocf.models.encoding import Encoding
from ocf.readers.sklearn_common import stack_trees, threshold_tree
from ocf.readers.transformers.flow import MOST_VALUES, pieces
from ocf.trees.ensemble import Ensemble
from ocf.trees.joining import append_trees


def with_steps(ensemble: Ensemble, encoding: Encoding) -> Ensemble:
    """The ensemble with trees, behind all others, in the place of what lines add up of columns of few values.

    Parameters
    ----------
    ensemble : Ensemble
        Over model columns.
    encoding : Encoding

    Raises
    ------
    UnsupportedModelError
        A column takes too many values.
    """
    rows = ensemble.oblique_index[ensemble.tree_offsets[ensemble.lines[:, 0]]]
    if not len(rows):
        return ensemble
    stepped = np.array([c.stepped and c.number for c in encoding.columns], bool)
    weights = np.zeros((ensemble.n_features, ensemble.n_outputs))
    ends = ensemble.oblique_indptr
    kept = np.ones(len(ensemble.oblique_data), bool)
    for row, output in zip(rows.tolist(), ensemble.lines[:, 1].tolist(), strict=True):
        own = np.arange(ends[row], ends[row + 1])[stepped[ensemble.oblique_indices[ends[row] : ends[row + 1]]]]
        np.add.at(weights[:, output], ensemble.oblique_indices[own], ensemble.oblique_data[own])
        kept[own] = False
    used = np.flatnonzero(weights.any(axis=1)).tolist()
    if not used:
        return ensemble
    trees = []
    for j in used:
        values = _values(encoding, j)
        cuts = values[:-1] + np.diff(values) / 2
        trees.append(threshold_tree(j, cuts, np.outer(values, weights[j])))
    steps = stack_trees(
        trees,
        feature_names=ensemble.feature_names,
        weights=np.ones(len(trees)),
        base_score=np.zeros(ensemble.n_outputs),
        decision=ensemble.decision,
    )
    lines = replace(
        ensemble,
        oblique_indptr=np.append(0, np.cumsum(kept))[ends],
        oblique_indices=ensemble.oblique_indices[kept],
        oblique_codes=ensemble.oblique_codes[kept],
        oblique_data=ensemble.oblique_data[kept],
    )
    return append_trees(lines, steps)


def _values(encoding: Encoding, j: int) -> FloatArray:
    """All values of a column that takes few, increasing: in each piece of the line it is monotone."""
    i = encoding.columns[j].feature
    feature, lattice = encoding.space.features[i], Lattice.of(encoding.space.features[i])
    first, last = lattice.keys(encoding.domain[i]).tolist()
    low, high = pieces(encoding.columns[j].breaks, *encoding.columns[j].span(first, last))

    def at(keys: np.ndarray) -> FloatArray:
        with np.errstate(all="ignore"):
            return np.asarray(encoding.varied(i, lattice.values(keys))[:, j])

    found = set[float]()
    least, most = at(low), at(high)
    while len(low):
        found |= {*least.tolist(), *most.tolist()}
        if len(found) > MOST_VALUES:
            raise UnsupportedModelError(
                f"{encoding.columns[j].bent_by} makes more than {MOST_VALUES} values of feature {feature.name!r}, of "
                "which the model adds up each: give ocf the table after that step"
            )
        open_ = (least != most) & (low + 1 < high)
        low, high, least, most = low[open_], high[open_], least[open_], most[open_]
        half = middle(low, high)
        between = at(half) if len(half) else least
        low, high = np.append(low, half), np.append(half, high)
        least, most = np.append(least, between), np.append(between, most)
    if not np.isfinite(list(found)).all():
        raise DataError(
            f"{encoding.columns[j].bent_by} makes no number of some values of feature {feature.name!r}, and the model "
            "adds them up: give ocf the table after that step"
        )
    return np.array(sorted(found))

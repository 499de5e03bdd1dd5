"""The regional forest that is fitted to a model's answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.cells.partition import partition
from ocf.errors import DataError, ProblemError
from ocf.features.feature import Feature, permitted_span
from ocf.features.space import FeatureSpace
from ocf.models.encoding import Encoding
from ocf.models.lift import check_lift, lift
from ocf.readers import read_model
from ocf.readers.transformers.column import Column
from ocf.regional.forest import RegionalForest
from ocf.trees.ensemble import Ensemble, SplitKind


def _stand_beside(feature: Feature) -> bool:
    """Whether levels make no line: categories, and levels of which one between two permitted ones is not permitted."""
    permitted = feature.permitted_codes()
    return feature.kind == "categorical" or bool(permitted and max(permitted) - min(permitted) >= len(permitted))


def one_hot_encoding(space: FeatureSpace, base: FloatArray) -> Encoding:
    """Coded values as they are, categories and other levels that make no line as indicators.

    Parameters
    ----------
    space : FeatureSpace
    base : (n_features,) float64
        A coded row.
    """
    columns = tuple(
        Column(i, f.discrete, affine=not f.discrete)
        for i, f in enumerate(space.features)
        for _ in range(len(f.levels) if _stand_beside(f) else 1)
    )

    def encode(table: pd.DataFrame) -> FloatArray:
        coded = space.from_frame(table)
        parts = [
            (coded[:, [i]] == np.arange(len(f.levels))).astype(float) if _stand_beside(f) else coded[:, [i]]
            for i, f in enumerate(space.features)
        ]
        return np.hstack(parts)

    return Encoding(space, encode, base, lambda *_: columns)


def fit_forest(
    space: FeatureSpace,
    coded: FloatArray,
    answers: NDArray[Any],
    *,
    regression: bool,
    n_estimators: int = 20,
    max_depth: int | None = 10,
    seed: int = 0,
    **settings: Any,
) -> RegionalForest:
    """Fit the forest; the defaults are the paper's (appendix D).

    Parameters
    ----------
    space : FeatureSpace
    coded : (n, n_features) float64
        Training rows, without missing values.
    answers : (n,) array
    regression : bool
    n_estimators, max_depth, seed, settings
        Of scikit-learn's random forest.

    Raises
    ------
    DataError
        A value is missing, or there are not as many answers as rows.
    ProblemError
        scikit-learn refuses the settings or the answers.
    """
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    if np.isnan(coded).any():
        i = int(np.flatnonzero(np.isnan(coded).any(axis=0))[0])
        raise DataError(
            f"feature {space.names[i]!r} has missing values; rules need complete rows: fill them in or drop them"
        )
    if len(answers) != len(coded):
        raise DataError(f"{len(answers)} answers for {len(coded)} rows")
    kind, encoding = RandomForestRegressor if regression else RandomForestClassifier, one_hot_encoding(space, coded[0])
    try:
        forest = kind(n_estimators=n_estimators, max_depth=max_depth, random_state=seed, **settings)
        forest.fit(encoding.encode(space.to_frame(coded)), answers)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"scikit-learn fits no forest of rules with these settings and answers: {error}") from error
    ensemble = read_model(forest).ensemble
    lifted = lift(ensemble, encoding)
    check_lift(lifted, ensemble, encoding)
    lifted = replace(lifted, ensemble=_one_threshold_per_gap(lifted.ensemble, space))
    ensemble = _by_levels(lifted.ensemble, space)
    part = partition(ensemble, space, _ends_of_permitted(ensemble, space))
    return RegionalForest(part, part.locate(coded), lifted.apply(coded), np.asarray(answers))


def _by_levels(ensemble: Ensemble, space: FeatureSpace) -> Ensemble:
    """Trees that split features by sets of levels where those that are permitted stand beside others: a cell for each.

    Where a forest asks for a single level, the lifted trees may compare: one side of that holds permitted levels and
    others.
    """
    beside = [i for i, f in enumerate(space.features) if f.permitted is not None and _stand_beside(f)]
    nodes = np.flatnonzero(
        (ensemble.kind == SplitKind.AXIS) & np.isfinite(ensemble.threshold) & np.isin(ensemble.feature, beside)
    )
    if not len(nodes):
        return ensemble
    width = max(ensemble.sets.shape[1], *(len(space.features[i].levels) for i in beside))
    sets = np.zeros((len(ensemble.sets) + len(nodes), width), bool)
    sets[: len(ensemble.sets), : ensemble.sets.shape[1]] = ensemble.sets
    sets[len(ensemble.sets) :] = np.arange(width) <= ensemble.threshold[nodes, None]
    kind, index = ensemble.kind.copy(), ensemble.set_index.copy()
    kind[nodes], index[nodes] = SplitKind.SUBSET, np.arange(len(ensemble.sets), len(sets))
    return replace(ensemble, kind=kind, set_index=index, sets=sets)


def _one_threshold_per_gap(ensemble: Ensemble, space: FeatureSpace) -> Ensemble:
    """Trees in which thresholds with no admissible value between them are one, the last: every cell holds a value then.

    Otherwise boxes of the same values, and the same words, would differ by empty cells, and in their probabilities.
    """
    threshold = ensemble.threshold.copy()
    axis = (ensemble.kind == SplitKind.AXIS) & np.isfinite(threshold)
    for i, feature in enumerate(space.features):
        at = np.flatnonzero(axis & (ensemble.feature == i))
        own = np.sort(threshold[at])
        gaps = feature.at_most(own)
        threshold[at] = own[np.searchsorted(gaps, feature.at_most(threshold[at]), side="right") - 1]
    return replace(ensemble, threshold=threshold)


def _ends_of_permitted(ensemble: Ensemble, space: FeatureSpace) -> dict[int, FloatArray]:
    """Cuts at the ends of permitted ranges, but where a threshold has the same values on its left already.

    A cell with values on both sides of an end would count rows for a rule that its words leave out.
    """
    axis = (ensemble.kind == SplitKind.AXIS) & np.isfinite(ensemble.threshold)
    cuts = {}
    for i, feature in enumerate(space.features):
        if feature.permitted is None or _stand_beside(feature):
            continue
        first, last = permitted_span(feature)
        ends = np.array([np.nextafter(first, -np.inf), last])
        known = feature.at_most(ensemble.threshold[axis & (ensemble.feature == i)])
        cuts[i] = ends[np.isfinite(ends) & ~np.isin(feature.at_most(ends), known)]
    return cuts

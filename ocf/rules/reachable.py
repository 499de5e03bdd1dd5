"""From what a user says of a region to its cells, the cells that a change may reach, and back to the user's words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ocf.arrays import BoolArray, FloatArray
from ocf.errors import DataError, ProblemError
from ocf.features import times
from ocf.features.feature import Feature
from ocf.features.number_dtypes import held
from ocf.features.space import FeatureSpace
from ocf.regional.forest import CellBox, RegionalForest
from ocf.rules.conditions import Condition, intervals_of
from ocf.rules.objects import Subgroup
from ocf.support.amounts import plain_value

#: Which cells of feature i, given by their ends, a change may reach: ``admits(i, lower, upper)``.
Admits = Callable[[int, FloatArray, FloatArray], BoolArray]


def free_cells(forest: RegionalForest, admits: Admits, held: CellBox) -> CellBox:
    """Cells that features may move to; for those that never do, the ones they hold.

    Parameters
    ----------
    forest : RegionalForest
    admits : callable
    held : CellBox
    """
    part, masks = forest.partition, []
    for i in range(part.n_features):
        span = part.cells_of(i)
        mask = admits(i, part.lower[span], part.upper[span])
        masks.append(mask if mask.any() else forest.cells_of(held, i))
    return forest.region(masks)


def reachable_from_row(space: FeatureSpace, row: FloatArray) -> Admits:
    """Which cells a row may move to.

    Parameters
    ----------
    space : FeatureSpace
    row : (n_features,) float64
        Coded.
    """
    return lambda i, low, high: ~np.isnan(space.features[i].nearest(low, high, row[i]))


def reachable_from_all(forest: RegionalForest, space: FeatureSpace, held: CellBox) -> Admits:
    """Which cells every row of a region may move to.

    Parameters
    ----------
    forest : RegionalForest
    space : FeatureSpace
    held : CellBox
    """

    def admits(i: int, low: FloatArray, high: FloatArray) -> BoolArray:
        feature = space.features[i]
        base = feature.lower if np.isfinite(feature.lower) else 0.0
        origin = 0.0 if feature.discrete else float(feature.at_least(base))
        mask = ~np.isnan(replace(feature, action="free").nearest(low, high, origin))
        at, own = np.arange(len(low)), np.flatnonzero(forest.cells_of(held, i))
        if feature.action in ("increasing", "fixed"):
            mask &= at >= own[-1]
        if feature.action in ("decreasing", "fixed"):
            mask &= at <= own[0]
        return mask

    return admits


def complete_rows(space: FeatureSpace, table: pd.DataFrame) -> FloatArray:
    """Coded rows that miss nothing.

    Parameters
    ----------
    space : FeatureSpace
    table : DataFrame (n, n_columns)

    Raises
    ------
    DataError
        A value is missing.
    """
    coded = space.from_frame(table)
    if np.isnan(coded).any():
        k, i = np.argwhere(np.isnan(coded))[0].tolist()
        raise DataError(
            f"feature {space.names[i]!r} of row {plain_value(table.index[k])!r} is missing; rules need complete rows: "
            "fill it in, or leave such rows out"
        )
    return coded


def region_of_words(forest: RegionalForest, space: FeatureSpace, said: Mapping[str, Any]) -> CellBox:
    """Region from what a user says of some features.

    Parameters
    ----------
    forest : RegionalForest
    space : FeatureSpace
    said : mapping of feature name to (lowest, highest) or levels
        None for an open end.

    Raises
    ------
    ProblemError
        A level that the feature does not have, levels with others between them where it is ordered, or no interval.
    """
    part = forest.partition
    everywhere = forest.everywhere()
    masks = [forest.cells_of(everywhere, i) for i in range(part.n_features)]
    for name, values in said.items():
        i = space.index(name)
        feature, span = space.features[i], part.cells_of(i)
        lower, upper = part.lower[span], part.upper[span]
        if feature.discrete:
            given = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
            codes = np.array([feature.level_code(v) for v in given], np.float64)
            masks[i] = np.asarray(((lower[:, None] < codes) & (codes <= upper[:, None])).any(axis=1))
            cells = np.flatnonzero(masks[i])
            if part.ordered[i] and cells[-1] - cells[0] >= len(cells):
                remedy = ", or describe the feature as categorical" if feature.kind == "ordinal" else ""
                raise ProblemError(
                    f"region: between the levels {given!r} of {name!r} lie others as the forest of the rules splits "
                    f"them: name levels in a row of {[*feature.levels]!r}, or ask for one part after the other{remedy}"
                )
            continue
        low, high = _ends(feature, values)
        masks[i] = (upper >= low) & (lower < high)
    return forest.region(masks)


def _ends(feature: Feature, said: Any) -> tuple[float, float]:
    """Lowest and highest value of a feature in a range that a user says, coded."""
    read = partial(times.days, dtype=feature.dtype) if feature.is_time else float
    try:
        low, high = (end if v is None else read(v) for v, end in zip(said, (-np.inf, np.inf), strict=True))
    except DataError as error:
        raise ProblemError(f"region: the range of {feature.name!r}: {error}") from None
    except (TypeError, ValueError):
        raise ProblemError(f"region: {feature.name!r} needs (lowest, highest), not {said!r}") from None
    low, high = (held(end, feature.dtype) for end in (low, high))
    low, high = float(feature.at_least(low)), float(feature.at_most(high))
    if not low <= high:
        raise ProblemError(f"region: {feature.name!r} in {said!r} holds no value")
    return low, high


def subgroup_of(forest: RegionalForest, space: FeatureSpace, region: CellBox, lacking: BoolArray) -> Subgroup:
    """A box as a region of rows.

    Parameters
    ----------
    forest : RegionalForest
    space : FeatureSpace
    region : CellBox
        For instance a leaf of the forest.
    lacking : (n,) bool
        Training rows that lack the target.
    """
    inside = forest.inside(region)
    share = float(lacking[inside].mean()) if inside.any() else 0.0
    return Subgroup(conditions_of(forest, space, region), share, int(inside.sum()), region)


def conditions_of(forest: RegionalForest, space: FeatureSpace, region: CellBox) -> tuple[Condition, ...]:
    """Conditions of the features that a region limits.

    Parameters
    ----------
    forest : RegionalForest
    space : FeatureSpace
    region : CellBox
    """
    limited = [i for i in range(len(space)) if not forest.cells_of(region, i).all()]
    return tuple(Condition.of(space.features[t.feature], t) for t in intervals_of(forest, region, limited))

"""Whole numbers so large that a model takes several for one: an identifier, or an amount in too small a unit.

Trees compare in float64, or in float32, which has no odd numbers beyond 2**24. What a model cannot tell apart it cannot
have learnt from, and an answer that moves such a number by one would promise more than the model sees.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from ocf.arrays import BoolArray, FloatArray
from ocf.errors import DataError
from ocf.features.feature import Feature
from ocf.models.encoding import Encoding
from ocf.trees.ensemble import Ensemble, SplitKind

#: Whole numbers up to here are all float32, and float64.
SINGLE, DOUBLE = 2**24, 2**53

#: Most values of a column that are compared with their neighbours.
_MOST = 5000

_REMEDY = (
    "drop the column if it is an identifier; otherwise fit the model on smaller numbers, less what all of them have in "
    "common or in a larger unit"
)


def refuse_indistinct(table: pd.DataFrame, ensemble: Ensemble, encoding: Encoding) -> None:
    """Refuse columns of whole numbers that the trees split and of which they take several for one.

    Parameters
    ----------
    table : DataFrame (n, n_columns)
        The data, in the user's columns.
    ensemble : Ensemble
        Over model columns.
    encoding : Encoding

    Raises
    ------
    DataError
        With two such numbers of the data, and what to do. A feature with a step, or of kind numeric, is none of whole
        numbers.
    """
    nodes = np.flatnonzero(ensemble.kind == SplitKind.AXIS)
    for i, feature in enumerate(encoding.space.features):
        if not _is_large(feature):
            continue
        owned = nodes[encoding.column_feature[ensemble.feature[nodes]] == i]
        own = np.unique(ensemble.feature[owned]).tolist()
        if own:
            refuse_beyond_double(table, (feature,))
            values = np.unique(table[feature.columns[0]].dropna().to_numpy(np.float64))[:_MOST]
            single = [_compares_in_single(ensemble.threshold[owned[ensemble.feature[owned] == j]]) for j in own]
            _refuse_equal(feature, values, _as_compared(encoding.varied(i, values)[:, own], np.array(single)))


def split_numbers(ensemble: Ensemble, encoding: Encoding) -> tuple[Feature, ...]:
    """Features of whole numbers that the trees split.

    Parameters
    ----------
    ensemble : Ensemble
        Over model columns.
    encoding : Encoding
    """
    split = ensemble.feature[ensemble.kind == SplitKind.AXIS]
    owners = set(encoding.column_feature[split].tolist())
    features = encoding.space.features
    return tuple(f for i, f in enumerate(features) if i in owners and f.kind == "integer" and not f.is_time)


def refuse_beyond_double(table: pd.DataFrame, features: Iterable[Feature]) -> None:
    """Refuse whole numbers where not all of them have a float64 of their own.

    Parameters
    ----------
    table : DataFrame (n, n_columns)
        In the user's columns.
    features : iterable of Feature
        Of whole numbers.
    """
    named = table.rename(columns=str)
    for feature in features:
        column = named[feature.columns[0]].dropna()
        far = column[np.abs(column.to_numpy(np.float64)) > DOUBLE]
        if len(far):
            raise DataError(
                f"column {feature.columns[0]!r} holds {far.iloc[0]}, and beyond 2**53 whole numbers have no float64 of "
                f"their own, so that the model takes several for one: {_REMEDY}"
            )


def _is_large(feature: Feature) -> bool:
    if feature.kind != "integer" or feature.is_time:
        return False
    return max(abs(feature.lower), abs(feature.upper)) > SINGLE


def _compares_in_single(bounds: FloatArray) -> bool:
    """Whether all bounds of splits lie where the rounding to float32 changes: float64 has that for few by chance."""
    with np.errstate(over="ignore"):
        return bool((bounds.astype(np.float32) != np.nextafter(bounds, np.inf).astype(np.float32)).all())


def _as_compared(columns: FloatArray, single: BoolArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.where(single, columns.astype(np.float32).astype(np.float64), columns)


def _refuse_equal(feature: Feature, values: FloatArray, columns: FloatArray) -> None:
    same = np.flatnonzero((columns[1:] == columns[:-1]).all(axis=1) & (np.abs(values[1:]) > SINGLE))
    if not len(same):
        return
    one, other = (int(v) for v in values[same[0] : same[0] + 2])
    raise DataError(
        f"the model takes {one} and {other} of column {feature.columns[0]!r} for the same number, for it compares in "
        f"float32, which does not hold all whole numbers beyond 2**24: {_REMEDY}; or say that the last digits do not "
        f"matter, by a step such as features={{{feature.name!r}: {{'kind': 'numeric', 'step': 100}}}}"
    )

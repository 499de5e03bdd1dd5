"""Thresholds that turn a table into binary features: what they say, how they apply, and how well they compress.

Sources: fcca, (10)-(12) and section 3.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ocf.arrays import FloatArray
from ocf.errors import DataError
from ocf.features.feature import Feature, has_grid
from ocf.features.space import FeatureSpace

BitArray = NDArray[np.int8]

#: Signs of a number or an ordered level, and of another level: of rows with 0 and with 1.
ABOVE, EQUAL = (" <= ", " > "), (" is not ", " = ")

#: Significant digits of numbers in names, where these are enough; those that tell all numbers apart.
DIGITS, ALL_DIGITS = 6, 17


@dataclass(frozen=True, order=True)
class Threshold:
    """One binary feature: 1 where a value lies above `value`, or where it is a certain level.

    Attributes
    ----------
    feature : int
        Index in the FeatureSpace.
    value : float
        Numbers and numeric levels: in the user's units. Other ordered levels: the index of the level above which the
        bit is 1. Categories: the index of the level for which it is 1.
    digits : int
        Significant ones, at least, with which its name says the same as its bit of all rows that it was fitted to.
    """

    feature: int
    value: float
    digits: int = field(default=DIGITS, compare=False)


def compares_numbers(feature: Feature) -> bool:
    """Whether the thresholds of a feature are compared with the numbers of its one column."""
    return len(feature.columns) == 1 and not feature.base and (not feature.discrete or _numeric_order(feature))


def _numeric_order(feature: Feature) -> bool:
    return feature.kind != "categorical" and feature.numeric_levels and list(feature.levels) == sorted(feature.levels)


def of_change(feature: Feature, index: int, cuts: FloatArray | None, origin: float, value: float) -> list[Threshold]:
    """Thresholds that a change of one feature crosses last (fcca, (10)).

    The paper's models keep a distance eps to each split and take it off again here; ocf's points lie at the split
    itself, so the threshold is the split: the nearest one below a value that was raised, the nearest one at or above a
    value that was lowered. In a sum over features it is the value itself, on the origin's side.

    A change of category turns one indicator off and another on, as it would in one-hot encoded data: two thresholds.

    Parameters
    ----------
    feature : Feature
    index : int
        Its place in the FeatureSpace.
    cuts : (n,) float64 or None
        The splits of the feature in coded values, increasing; None where it has a part in sums instead.
    origin, value : float
        Coded values before and after, not equal.
    """
    if feature.kind == "categorical":
        return [Threshold(index, origin), Threshold(index, value)]
    raised = value > origin
    if cuts is not None:
        # the last cut below a raised value, the first at or above a lowered one
        k = int(np.searchsorted(cuts, value, side="left")) - raised
        if not 0 <= k < len(cuts):
            return []
        crossed = float(cuts[k])
    else:
        crossed = float(np.nextafter(value, -np.inf)) if raised else value
    if not min(origin, value) <= crossed < max(origin, value):  # what made the value move is no split of the model
        return []
    if not feature.discrete:
        return [Threshold(index, crossed)]
    level = int(np.floor(crossed))
    return [Threshold(index, float(feature.levels[level]) if compares_numbers(feature) else float(level))]


def sides_of(threshold: Threshold, space: FeatureSpace, digits: int = DIGITS) -> tuple[str, str]:
    """What a threshold says of rows with 0 and with 1, in the user's words.

    Such as ``("age <= 37.5", "age > 37.5")`` or ``("job is not clerk", "job = clerk")``.

    Parameters
    ----------
    threshold : Threshold
    space : FeatureSpace
        Of its feature.
    digits : int
        Significant ones, of numbers, at least.
    """
    feature = space.features[threshold.feature]
    if compares_numbers(feature):
        (no, yes), what = ABOVE, _number(threshold.value, feature, max(digits, threshold.digits))
    elif feature.kind == "categorical":
        (no, yes), what = EQUAL, feature.levels[int(threshold.value)]
    elif feature.kind == "binary":
        (no, yes), what = EQUAL, feature.levels[1]
    else:
        (no, yes), what = ABOVE, feature.levels[int(threshold.value)]
    return f"{feature.name}{no}{what}", f"{feature.name}{yes}{what}"


def _number(value: float, feature: Feature, digits: int) -> str:
    """A threshold with as many digits, at least some, as part the same values; of a continuous feature, nearly so.

    On a grid a value just below one of its own, as float32 leaves it, is told by the one before: not 1.9999999, but 1.
    """
    on_grid = has_grid(feature)
    short = f"{value:.{digits}g}"
    if on_grid and feature.above(float(short)) != feature.above(value):
        value = float(feature.at_most(value))
    for text in (f"{value:.{d}g}" for d in range(digits, ALL_DIGITS)):
        near = float(text)
        if feature.above(near) == feature.above(value) if on_grid else abs(near - value) <= 1e-5 * feature.scale:
            return text
    return f"{value:.{ALL_DIGITS}g}"


def told_of(thresholds: Iterable[Threshold], space: FeatureSpace, table: pd.DataFrame) -> tuple[Threshold, ...]:
    """Thresholds with as many digits that their names part the rows of a table as their bits do.

    Parameters
    ----------
    thresholds : iterable of Threshold
    space : FeatureSpace
    table : DataFrame (n, n_columns)
        Columns named by text.
    """
    held: dict[int, FloatArray] = {}
    out = []
    for t in thresholds:
        feature, digits = space.features[t.feature], DIGITS
        if compares_numbers(feature) and not has_grid(feature):  # on a grid the text parts all that may stand there
            if t.feature not in held:
                held[t.feature] = np.sort(_values(feature, table))
            below = np.searchsorted(held[t.feature], t.value, side="right")
            texts = ((d, float(_number(t.value, feature, d))) for d in range(DIGITS, ALL_DIGITS))
            same = (d for d, near in texts if np.searchsorted(held[t.feature], near, side="right") == below)
            digits = next(same, ALL_DIGITS)
        out.append(replace(t, digits=digits))
    return tuple(out)


def sides_of_name(name: str) -> tuple[str, str]:
    """What a binary column says of rows with 0 and with 1, where its name says one thing only.

    With several signs in it, as in ``"debt > income = yes"``, nobody can tell which is that of the test.
    """
    signs = [(no, yes) for no, yes in (ABOVE, EQUAL) for _ in range(name.count(yes))]
    if len(signs) != 1:
        return f"{name} is 0", f"{name} is 1"
    no, yes = signs[0]
    return name.replace(yes, no), name


def check_threshold(threshold: Threshold, space: FeatureSpace) -> None:
    """Refuse a threshold whose value is no number, or no index of a level where it should be one.

    Parameters
    ----------
    threshold : Threshold
    space : FeatureSpace
        Of its feature.

    Raises
    ------
    DataError
    """
    feature, value = space.features[threshold.feature], threshold.value
    if not np.isfinite(value):
        raise DataError(f"feature {feature.name!r}: the threshold {value} is no finite number")
    if not compares_numbers(feature) and value not in range(len(feature.levels)):
        raise DataError(f"feature {feature.name!r}: the threshold {value} is the index of none of its levels")


def all_sides(thresholds: Sequence[Threshold], space: FeatureSpace) -> list[tuple[str, str]]:
    """`sides_of` several: with six digits where these tell them apart, with all of them elsewhere.

    Parameters
    ----------
    thresholds : sequence of Threshold
    space : FeatureSpace
        Of their features.
    """
    short = [sides_of(t, space) for t in thresholds]
    return [
        own if short.count(own) == 1 else sides_of(t, space, ALL_DIGITS)
        for own, t in zip(short, thresholds, strict=True)
    ]


def names_of(thresholds: Sequence[Threshold], space: FeatureSpace) -> list[str]:
    """Distinct names of thresholds: what they say of rows with 1; see `all_sides`.

    Parameters
    ----------
    thresholds : sequence of Threshold
    space : FeatureSpace
        Of their features.
    """
    return [yes for _, yes in all_sides(thresholds, space)]


def binarize(thresholds: Sequence[Threshold], space: FeatureSpace, table: pd.DataFrame) -> BitArray:
    """Binary features of a table (fcca, (12)). A category that is missing is none of the levels: 0.

    Parameters
    ----------
    thresholds : sequence of Threshold
    space : FeatureSpace
    table : DataFrame (n, n_columns)
        Columns named by text.

    Returns
    -------
    (n, n_thresholds) int8

    Raises
    ------
    DataError
        Unknown levels, or missing numbers or ordered levels, in a column that has thresholds.
    """
    bits = np.empty((len(table), len(thresholds)), np.int8)
    held: dict[int, FloatArray] = {}
    for k, threshold in enumerate(thresholds):
        feature = space.features[threshold.feature]
        if threshold.feature not in held:
            held[threshold.feature] = _values(feature, table)
        values = held[threshold.feature]
        bits[:, k] = values == threshold.value if feature.kind == "categorical" else values > threshold.value
    return bits


def _values(feature: Feature, table: pd.DataFrame) -> FloatArray:
    """What the thresholds of a feature are compared with, (n,)."""
    columns = table[list(feature.columns)]
    if compares_numbers(feature):
        try:
            values = columns.iloc[:, 0].to_numpy(np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise DataError(f"column {feature.columns[0]!r} should hold numbers: {error}") from None
    else:
        values = FeatureSpace((feature,), feature.columns).from_frame(columns)[:, 0]
    if feature.kind != "categorical":
        refuse_missing(feature, values)
    return values


def refuse_missing(feature: Feature, values: FloatArray) -> None:
    """Refuse values of which one is missing, and so on no side of a threshold.

    Parameters
    ----------
    feature : Feature
    values : (n,) float64

    Raises
    ------
    DataError
    """
    if np.isnan(values).any():
        row = int(np.flatnonzero(np.isnan(values))[0])
        raise DataError(
            f"feature {feature.name!r}, row {row}: a missing value is on no side of a threshold; fill in a value"
        )


# -- metrics ---------------------------------------------------------------------------------------------------


def compression_rate(bits: ArrayLike) -> float:
    """Share of the rows that collapse: 1 - distinct rows / rows (fcca, section 3.2).

    Parameters
    ----------
    bits : (n, n_thresholds) array
        Discretised rows. Without columns all rows are one.
    """
    groups = _groups(bits)
    return (len(groups) - len(np.unique(groups))) / len(groups)


def inconsistency_rate(bits: ArrayLike, y: ArrayLike) -> float:
    """Share of the rows whose class is not the most frequent one of their discretised row (fcca, section 3.2).

    No classifier of the discretised rows is more accurate on them than 1 minus this. With two classes it counts the
    minority, as the paper does.

    Parameters
    ----------
    bits : (n, n_thresholds) array
    y : (n,) array of class labels
    """
    groups = _groups(bits)
    labels = np.unique(np.asarray(y), return_inverse=True)[1].ravel()
    if len(labels) != len(groups):
        raise DataError(f"{len(groups)} rows, but {len(labels)} labels")
    counts = np.zeros((int(groups.max()) + 1, int(labels.max()) + 1), np.int64)
    np.add.at(counts, (groups, labels), 1)
    return (len(groups) - int(counts.max(axis=1).sum())) / len(groups)


def _groups(bits: ArrayLike) -> NDArray[np.int64]:
    """Number of the distinct row that each row is, (n,)."""
    rows = np.asarray(bits)
    if rows.ndim != 2 or not len(rows):
        raise DataError(f"discretised rows are a table with at least one row, not an array of shape {rows.shape}")
    if not rows.shape[1]:
        return np.zeros(len(rows), np.int64)
    return np.unique(rows, axis=0, return_inverse=True)[1].ravel()


def metrics(bits: ArrayLike, y: ArrayLike, owners: Sequence[Any]) -> dict[str, float]:
    """Compression and inconsistency rate, and the numbers of features and thresholds.

    Parameters
    ----------
    bits : (n, n_thresholds) array
    y : (n,) array of class labels
    owners : (n_thresholds,) sequence
        Feature of each column.
    """
    return {
        "features": len(set(owners)),
        "thresholds": len(owners),
        "compression": compression_rate(bits),
        "inconsistency": inconsistency_rate(bits, y),
    }

"""Features of which missing is a value like others: what the model's columns become where one is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import UnsupportedModelError
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace
from ocf.features.special import Special
from ocf.models.encoding import Encoding
from ocf.problem.problem import Problem
from ocf.readers.transformers.column import Column


class Gaps(NamedTuple):
    """Features that a row, or a row that it may become, misses.

    Attributes
    ----------
    missing : frozenset of int
        Whose value is missing and stays so.
    supplied : frozenset of int
        Of which missing is a value like others: it may be supplied, or a value may become missing.
    """

    missing: frozenset[int] = frozenset()
    supplied: frozenset[int] = frozenset()

    @classmethod
    def of(cls, origin: FloatArray, space: FeatureSpace) -> Gaps:
        """Those of a coded row as `posed` gives it.

        Parameters
        ----------
        origin : (n_features,) float64
        space : FeatureSpace
        """
        supplied = [i for i, f in enumerate(space.features) if f.special is not None and f.special.missing]
        return cls(frozenset(np.flatnonzero(np.isnan(origin)).tolist()), frozenset(supplied))

    @classmethod
    def of_problem(cls, problem: Problem) -> Gaps:
        """Those of a problem's row; completions leave none."""
        return cls() if problem.completions is not None else cls.of(problem.origin, problem.space)

    @classmethod
    def groups(cls, rows: FloatArray, space: FeatureSpace) -> dict[Gaps, IntArray]:
        """Places of coded rows, apart by what they miss as `posed` gives them.

        Parameters
        ----------
        rows : (n, n_features) float64
        space : FeatureSpace
        """
        found: dict[Gaps, list[int]] = {}
        for place, row in enumerate(rows):
            found.setdefault(cls.of(*posed(row, space)), []).append(place)
        return {gaps: np.array(places) for gaps, places in found.items()}

    def holds(self, rows: FloatArray) -> BoolArray:
        """Which coded rows, (n, n_features), miss these features; what is a value like others they may have or not."""
        missing, either = (np.isin(np.arange(rows.shape[1]), list(places)) for places in self)
        return np.asarray(((np.isnan(rows) == missing) | either).all(axis=1))

    def opened(self, space: FeatureSpace) -> FeatureSpace:
        """Features of which some have missing as a value."""
        return space.updated({space.names[i]: {"special": _with_missing(space.features[i])} for i in self.supplied})


def posed(origin: FloatArray, space: FeatureSpace, *, fixed: bool = False) -> tuple[FloatArray, FeatureSpace]:
    """A coded row, and its features: missing is a value of those that may be supplied, or may become missing.

    Parameters
    ----------
    origin : (n_features,) float64
        NaN where a value is missing.
    space : FeatureSpace
    fixed : bool
        Whether features that are fixed are posed like those that are not, for a question of what if they were free.
    """
    changes = {}
    for feature, value in zip(space.features, origin.tolist(), strict=True):
        special = feature.special
        if special is None or len(feature.columns) > 1 or feature.base:
            continue
        price = special.supplying if np.isnan(value) else None if special.codes else special.becoming
        if price is not None and (fixed or feature.action != "fixed"):
            changes[feature.name] = {"special": _with_missing(feature)}
    space = space.updated(changes) if changes else space
    return space.with_missing(origin), space


def _with_missing(feature: Feature) -> Special:
    return replace(feature.special or Special(), missing=True)


def with_gaps(
    encoding: Encoding, without: Callable[[frozenset[int]], Encoding], features: frozenset[int]
) -> tuple[Encoding, dict[int, FloatArray]]:
    """The encoding of rows in which some features may be missing, and the model's columns where each is.

    A column that says whether a feature is missing is moved by that feature then. What a column is where a feature is
    missing has to be the same for every row, and not filled from other features.

    Parameters
    ----------
    encoding : Encoding
        Of rows in which all these features have values.
    without : callable
        Some features -> the encoding of rows that miss them.
    features : frozenset of int

    Returns
    -------
    Encoding
    dict of feature to (n_model_columns,) float64

    Raises
    ------
    DataError
        The preprocessing refuses a missing value.
    UnsupportedModelError
        What several features are where they are missing depends on each other.
    """
    space, columns = encoding.space, list(encoding.columns)
    present = encoding.encode(space.to_frame(encoding.base))[0]
    rows: dict[int, FloatArray] = {}
    for i in sorted(features):
        alone = without(frozenset({i}))
        rows[i] = alone.encode(space.to_frame(alone.base))[0]
        moves = ~((rows[i] == present) | (np.isnan(rows[i]) & np.isnan(present)))
        for j, gone in enumerate(alone.columns):
            here = encoding.columns[j]
            if here.mixture is not None:
                if moves[j] or _adds_up(here, i):
                    columns[j] = replace(here, mixed=_mixed(space.names[i]), mixture=None)
            elif here.constant and gone.constant and moves[j]:
                taken = columns[j].feature not in (-1, i)
                own = Column(i, space.features[i].discrete)
                columns[j] = replace(own, mixed=_mixed(space.names[i])) if taken else own
            elif not (gone == here or (here.feature == i and gone.constant)):
                columns[j] = replace(here, mixed=here.mixed or _mixed(space.names[i]))
    _check_together(encoding, without(features), rows, columns)
    read = tuple(columns)
    return replace(encoding, read=lambda *_: read), rows


def _mixed(name: str) -> str:
    return f"where {name!r} is missing it depends on other features too: leave {name!r} as it is"


def _adds_up(column: Column, i: int) -> bool:
    """Whether a feature moves what a column adds up."""
    if column.mixture is None:
        return column.feature == i or bool(column.mixed)
    used = np.flatnonzero(column.mixture.weights)
    return any(_adds_up(column.mixture.place.columns[k], i) for k in used.tolist())


def _check_together(encoding: Encoding, missing: Encoding, rows: dict[int, FloatArray], columns: list[Column]) -> None:
    """Refute that columns are the same where all features are missing as where each is by itself."""
    together = missing.encode(encoding.space.to_frame(missing.base))[0]
    for j, column in enumerate(columns):
        if column.mixed or column.feature not in rows:
            continue
        if not np.array_equal(together[j], rows[column.feature][j], equal_nan=True):
            name = encoding.space.names[column.feature]
            raise UnsupportedModelError(f"the preprocessing fills a missing {name!r} from others that are missing too")

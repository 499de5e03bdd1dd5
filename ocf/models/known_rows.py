"""Rows of the data, as far as they are known: which have missing values, and which of those the model takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ocf.arrays import BoolArray, FloatArray
from ocf.errors import DataError, OcfError
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace

#: Most rows of the data that are kept.
MAX_CANDIDATES = 5000


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Rows of the data, apart by whether the model answers them.

    Attributes
    ----------
    coded : (n, n_features) float64
        Those that it answers, at most `MAX_CANDIDATES`; NaN where a value is missing.
    others : (n_others, n_features) float64
        Those that it does not, at most so many.
    n_rows, n_incomplete : int
        Rows of the data, and how many of them have missing values.
    n_refused : int
        How many of the incomplete ones the model has no rule for.
    """

    coded: FloatArray
    others: FloatArray
    n_rows: int = 0
    n_incomplete: int = 0
    n_refused: int = 0

    @property
    def all(self) -> FloatArray:
        """Those that the model answers and those that it does not."""
        return np.vstack([self.coded, self.others])

    @property
    def complete(self) -> FloatArray:
        """Those without missing values."""
        return self.coded[~np.isnan(self.coded).any(axis=1)]

    def base(self, space: FeatureSpace) -> FloatArray:
        """A row without missing values from which features can be varied, (n_features,).

        Without a complete row of the data each feature has its first value that is known, and without data the middle
        of its bounds.

        Raises
        ------
        DataError
            There is neither a value nor bounds.
        """
        complete = self.complete
        if len(complete):
            return complete[0]
        middle = [_first(self.all[:, i], _middle(feature)) for i, feature in enumerate(space.features)]
        if not np.isfinite(middle).all():
            raise DataError("without data every numeric feature needs finite bounds")
        return np.array(middle)

    def used(self) -> dict[str, int]:
        """How many rows of the data there are, how many lack values, and how many the model answers; empty if none."""
        if not self.n_incomplete:
            return {}
        answered = self.n_rows - self.n_refused
        return {"rows": self.n_rows, "incomplete": self.n_incomplete, "answered": answered}

    @property
    def remark(self) -> str:
        """What to say beside a count of rows of which some were left out; empty where none were."""
        if not self.n_refused:
            return ""
        return f"; {self.n_refused} of {self.n_rows} rows have missing values for which the model has no rule"


def read_known_rows(
    space: FeatureSpace, table: pd.DataFrame | None, decide: Callable[[pd.DataFrame], Any]
) -> KnownRows:
    """The rows of a table that a model answers, at most a few thousand.

    Parameters
    ----------
    space : FeatureSpace
    table : DataFrame (n, n_columns) or None
        None: there are no rows.
    decide : callable
        Table in the user's columns -> the model's answers; it may refuse rows with missing values.
    """
    if table is None:
        return KnownRows(np.zeros((0, len(space))), np.zeros((0, len(space))))
    coded = space.from_frame(table)
    missing = np.isnan(coded)
    lacking = missing.any(axis=1)
    refused = np.zeros(len(coded), bool)
    if lacking.any():
        refused = lacking & ~_answered(space, coded, decide)
    kept, others = few(coded[~refused]), few(coded[refused])
    return KnownRows(kept, others, len(coded), int(lacking.sum()), int(refused.sum()))


def few(rows: FloatArray) -> FloatArray:
    """At most `MAX_CANDIDATES` of the rows, in order."""
    if len(rows) <= MAX_CANDIDATES:
        return rows
    return rows[np.sort(np.random.default_rng(0).permutation(len(rows))[:MAX_CANDIDATES])]


def _answered(space: FeatureSpace, coded: FloatArray, decide: Callable[[pd.DataFrame], Any]) -> BoolArray:
    """Which rows the model answers, by what it does with each feature missing by itself, and then with all of them."""
    missing = np.isnan(coded)
    refused = [i for i in np.flatnonzero(missing.any(axis=0)).tolist() if not _takes(space, coded, i, decide)]
    taken = ~missing[:, refused].any(axis=1)
    if taken.any() and not _decides(space, coded[taken], decide):
        taken &= ~missing.any(axis=1)
    return np.asarray(taken)


def _takes(space: FeatureSpace, coded: FloatArray, i: int, decide: Callable[[pd.DataFrame], Any]) -> bool:
    """Whether the model answers a row that lacks feature i and no other."""
    row = np.array([_first(column, 0.0) for column in coded.T])
    row[i] = np.nan
    return _decides(space, row[None], decide)


def _decides(space: FeatureSpace, coded: FloatArray, decide: Callable[[pd.DataFrame], Any]) -> bool:
    try:
        decide(space.to_frame(coded))
    except (OcfError, ValueError, TypeError):
        return False
    return True


def _first(values: FloatArray, default: float) -> float:
    """The first value that is known."""
    known = values[~np.isnan(values)]
    return float(known[0]) if len(known) else default


def _middle(feature: Feature) -> float:
    if feature.discrete:
        return 0.0
    return float(feature.at_most(np.clip((feature.lower + feature.upper) / 2, feature.lower, feature.upper)))

"""Rows that are asked about, looked at together before each is a problem of its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import pandas as pd

from ocf.arrays import FloatArray
from ocf.errors import OcfError
from ocf.features.space import FeatureSpace
from ocf.models.encoding import Encoder
from ocf.models.gaps import Gaps
from ocf.models.three_ways import encoded

#: What they miss, features, model columns and the coded rows -> nothing; an `OcfError` where the ways of one part.
Check = Callable[[Gaps, FeatureSpace, FloatArray, FloatArray], object]


class PassedRows:
    """Rows of which it is known that all ways lead to the same leaves.

    Parameters
    ----------
    check : callable or None
        Refuses rows that miss the same values; None: every row passes.
    """

    def __init__(self, check: Check | None) -> None:
        self._check = check
        self._passed: frozenset[Hashable] = frozenset()

    def forget(self) -> None:
        """Let each row be looked at anew."""
        self._passed = frozenset()

    def trust(self, row: FloatArray, space: FeatureSpace) -> None:
        """Take a row's word, and no other's, until `forget`.

        Parameters
        ----------
        row : (n_features,) float64
            Coded, as `ocf.models.gaps.posed` gives it.
        space : FeatureSpace
            With its dtypes.
        """
        self._passed = frozenset([_key(row, space)])

    def holds(self, row: FloatArray, space: FeatureSpace) -> bool:
        """Whether a row has passed.

        Parameters
        ----------
        row : (n_features,) float64
            Coded, as `ocf.models.gaps.posed` gives it.
        space : FeatureSpace
            With its dtypes.
        """
        return _key(row, space) in self._passed

    def look(self, rows: FloatArray, space: FeatureSpace, table: pd.DataFrame, encode: Encoder) -> bool:
        """Look at rows; where some do not pass, nothing is remembered of those that miss the same values.

        Parameters
        ----------
        rows : (n, n_features) float64
            Coded.
        space : FeatureSpace
            With their dtypes.
        table : DataFrame (n, n_columns)
            The same rows in the user's columns.
        encode : callable
            Table -> model columns, by the user's own preprocessing.

        Returns
        -------
        bool
            Whether all pass.
        """
        self.forget()
        if self._check is None:
            return True
        try:
            columns = encoded(encode, table)
        except OcfError:
            return False
        passed: set[Hashable] = set()
        sound = True
        for gaps, places in Gaps.groups(rows, space).items():
            opened = gaps.opened(space)
            alike = opened.with_missing(rows[places])
            try:
                self._check(gaps, opened, columns[places], alike)
            except OcfError:
                sound = False
            else:
                passed |= {_key(row, opened) for row in alike}
        self._passed = frozenset(passed)
        return sound


def _key(row: FloatArray, space: FeatureSpace) -> Hashable:
    return row.tobytes(), Gaps.of(row, space), tuple(f.dtype for f in space.features)

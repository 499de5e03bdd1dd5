"""From model columns to features: how each column that a model sees depends on the user's table.

A model sees columns: one-hot indicators, scaled numbers, codes. A user sees features. Which feature moves which column,
and in which shape, is read from the steps between them (`ocf.readers.transformers`); values are computed by the user's
own steps. A split of such a column becomes a split of the feature (`ocf.models.lift`):

* of a discrete feature, by encoding each level and looking which levels go left;
* of a numeric feature, at the largest number that the encoding and the model together send left, found by bisection
  over all numbers of the column's dtype that the encoding takes: scalers compute in float32 where the table is float32.
  Columns that turn are cut into pieces in which they do not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import DataError, UnsupportedModelError
from ocf.features.feature import Feature
from ocf.features.lattice import Lattice, finite_ends
from ocf.features.space import FeatureSpace
from ocf.readers.transformers.column import Column

#: From a table in the user's columns to the matrix of model columns, (n, n_model_columns) float64.
Encoder = Callable[[pd.DataFrame], FloatArray]

#: From a space, a coded row and what gives the numbers that the encoding takes, to the model's columns.
Reader = Callable[[FeatureSpace, FloatArray, Callable[[], FloatArray]], tuple[Column, ...]]


@dataclass(frozen=True)
class Encoding:
    """A feature space, the encoder of its table, and how each model column depends on the features.

    Attributes
    ----------
    space : FeatureSpace
    encode : Encoder
    base : (n_features,) float64
        A coded row of the data, from which features are varied; its missing values stay missing.
    read : Reader
    numbers : Encoder or None
        As `encode`, with zeros where a sparse matrix leaves them out and the model takes that for missing values.
    """

    space: FeatureSpace
    encode: Encoder
    base: FloatArray
    read: Reader
    numbers: Encoder | None = None

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Those of the model."""
        return self.read(self.space, self.base, lambda: self.domain)

    @cached_property
    def column_feature(self) -> IntArray:
        """Feature that moves each model column; -1 for columns that nothing moves, (n_model_columns,)."""
        return np.array([c.feature for c in self.columns], np.int64)

    @cached_property
    def domain(self) -> FloatArray:
        """Smallest and largest number of each numeric feature that the encoding takes, (n_features, 2); else NaN.

        Raises
        ------
        DataError
            The bounds of a feature hold numbers that the encoding refuses.
        """
        return _domain(self.space, self.numbers or self.encode, self.base)

    def varied(self, i: int, values: FloatArray) -> FloatArray:
        """Model columns of the base row with feature `i` at each of `values`, (n, n_model_columns).

        Parameters
        ----------
        i : int
            Number of the feature.
        values : (n,) float64
            Coded.
        """
        rows = np.tile(self.base, (len(values), 1))
        rows[:, i] = values
        return self.encode(self.space.to_frame(rows))

    def levels(self, i: int) -> FloatArray:
        """Model columns of the base row at each level of a discrete feature, (n_levels, n_model_columns).

        Raises
        ------
        DataError
            The preprocessing refuses a level, or all of them, as it does where another column is at fault.
        """
        feature = self.space.features[i]
        codes = np.arange(len(feature.levels), dtype=np.float64)
        try:
            return self.varied(i, codes)
        except UnsupportedModelError:
            raise
        except ValueError as error:
            refused = ((code, cause) for code in codes if (cause := self._refusal(i, code)))
            code, cause = next(refused, (np.nan, ""))
            if not cause:
                raise error
            if all(self._refusal(i, other) for other in codes):
                raise DataError(
                    f"the preprocessing refuses rows of the data at every level of {feature.name!r} ({cause}): "
                    "give all columns in the dtypes and words in which the Pipeline was fitted"
                ) from None
            raise DataError(
                f"feature {feature.name!r}: the preprocessing refuses the level {feature.label(code)!r} ({cause}): "
                "leave it out of the data and of the feature's levels, or fit the Pipeline on rows that have it"
            ) from None

    def _refusal(self, i: int, code: float) -> str:
        """Why the preprocessing refuses a level; empty where it does not."""
        try:
            self.varied(i, np.array([code]))
        except ValueError as cause:
            return str(cause.__cause__ or cause) or type(cause).__name__
        return ""

    def levels_of(self, features: list[int]) -> dict[int, FloatArray]:
        """As `levels` of several features, by one call of the encoding where it takes all of them."""
        counts = [len(self.space.features[i].levels) for i in features]
        rows = np.tile(self.base, (sum(counts), 1))
        ends = np.cumsum([0, *counts])
        for i, first, n in zip(features, ends.tolist(), counts, strict=False):
            rows[first : first + n, i] = np.arange(n)
        if not len(rows):
            return {}
        try:
            encoded = self.encode(self.space.to_frame(rows))
        except ValueError:  # a level is refused, which its own call names
            return {i: self.levels(i) for i in features}
        return dict(zip(features, np.split(encoded, ends[1:-1]), strict=True))

    def check_width(self, names: tuple[str, ...]) -> None:
        """Refuse an encoding of another number of columns than a model has."""
        if len(self.columns) != len(names):
            raise DataError(
                f"the table encodes to {len(self.columns)} model columns, but the model was fitted on {len(names)}"
            )

    @cached_property
    def known_range(self) -> FloatArray:
        """Smallest and largest number of each feature between which its columns are known, (n_features, 2)."""
        out = np.tile([-np.inf, np.inf], (len(self.space), 1))
        for column in self.columns:
            if column.within is not None:
                low, high = Lattice.of(self.space.features[column.feature]).values(np.array(column.within, np.int64))
                ends = out[column.feature]
                out[column.feature] = max(ends[0], low), min(ends[1], high)
        return out

    def knows(self, rows: FloatArray) -> BoolArray:
        """In which coded rows, (n, n_features), every number lies where its columns are known."""
        first, last = self.known_range.T
        return np.asarray(~((rows < first) | (rows > last)).any(axis=1))

    def refuse_unknown(self, space: FeatureSpace, origin: FloatArray) -> None:
        """Refuse a row of which a feature may go where its columns are not known.

        Parameters
        ----------
        space : FeatureSpace
            With what the features may do.
        origin : (n_features,) float64
            The row, coded.

        Raises
        ------
        DataError
        """
        for i in np.flatnonzero(np.isfinite(self.known_range).any(axis=1) & ~np.isnan(origin)).tolist():
            (first, last), (low, high) = self.known_range[i].tolist(), space.features[i].limits(float(origin[i]))
            if low < first or high > last:
                raise DataError(
                    f"feature {space.names[i]!r} may go from {low:g} to {high:g}, and a step before the model is read "
                    f"from {first:g} to {last:g}: set bounds that hold the row, and in which your word on the step, if "
                    "it rests on one, is true"
                )

    def refuse_mixed(self, columns: IntArray, names: tuple[str, ...]) -> None:
        """Refuse splits of columns that depend on several features.

        Parameters
        ----------
        columns : (n,) int
            Those that the model splits.
        names : tuple of str
            Of all model columns.

        Raises
        ------
        UnsupportedModelError
            With the name of the step that mixes the features, and what to do.
        """
        for j in np.unique(columns).tolist():
            if self.columns[j].mixed:
                raise UnsupportedModelError(f"model column {names[j]!r}: {self.columns[j].mixed}")


def _domain(space: FeatureSpace, encode: Encoder, base: FloatArray) -> FloatArray:
    """Smallest and largest number of each feature that the encoding takes, (n_features, 2); NaN for other features."""
    domain = np.full((len(space), 2), np.nan)
    numbers = [i for i, f in enumerate(space.features) if not f.discrete and not np.isnan(base[i])]
    for i in numbers:
        domain[i] = Lattice.of(space.features[i]).ends
    trial = _Trial(space, encode, base, np.isnan(encode(space.to_frame(base))[0]))
    ends = [trial.varied(i, end) for i in numbers for end in domain[i]]
    if ends and trial.fault(np.vstack(ends)):
        both = [(i, side) for i in numbers for side in range(2)]
        domain[tuple(np.array(both).T)] = trial.last_taken(both, domain)
    for i in trial.wrapping({i: float(domain[i, 0]) for i in numbers}):
        domain[i, 0] += 1
    return domain


@dataclass(frozen=True)
class _Trial:
    """Numbers tried on an encoding, one feature at a time from a base row; `holes`: columns that are missing there."""

    space: FeatureSpace
    encode: Encoder
    base: FloatArray
    holes: BoolArray

    def varied(self, i: int, value: float) -> FloatArray:
        """The base row with another value of a feature, (1, n_features)."""
        return np.where(np.arange(len(self.base)) == i, value, self.base)[None, :]

    def fault(self, points: FloatArray) -> str:
        """Empty if the encoding takes rows and makes numbers of them; otherwise what it does."""
        with np.errstate(all="ignore"):
            try:
                encoded = self.encode(self.space.to_frame(points))
            except UnsupportedModelError:
                raise
            except ValueError:
                return "refuses"
        return "makes no numbers of" if (np.isnan(encoded) & ~self.holes).any() else ""

    def faults(self, points: list[FloatArray]) -> list[str]:
        """As `fault` of rows, (1, n_features) each, by one call of the encoding where it takes all of them."""
        with np.errstate(all="ignore"), suppress(ValueError):
            encoded = self.encode(self.space.to_frame(np.vstack(points)))
            gone = np.asarray(np.isnan(encoded) & ~self.holes)
            return ["makes no numbers of" if row.any() else "" for row in gone]
        return [self.fault(point) for point in points]

    def last_taken(self, ends: list[tuple[int, int]], at: FloatArray) -> list[float]:
        """The numbers nearest to ends of some features' numbers that the encoding takes.

        Parameters
        ----------
        ends : list of (feature, side)
        at : (n_features, 2) float64
            Where the numbers end.

        Raises
        ------
        DataError
            The bounds of a feature lie beyond them.
        """
        lattices = [Lattice.of(self.space.features[i]) for i, _ in ends]
        does = self.faults([self.varied(i, at[i, side]) for i, side in ends])
        good = [int(lattice.keys(self.base[[i]])[0]) for lattice, (i, _) in zip(lattices, ends, strict=True)]
        bad = [int(lattice.keys(at[[i], side])[0]) for lattice, (i, side) in zip(lattices, ends, strict=True)]
        while halved := [k for k, said in enumerate(does) if said and abs(bad[k] - good[k]) > 1]:
            half = {k: (good[k] + bad[k]) // 2 for k in halved}
            values = {k: float(lattices[k].values(np.array([key]))[0]) for k, key in half.items()}
            for k, said in zip(halved, self.faults([self.varied(ends[k][0], values[k]) for k in halved]), strict=True):
                good[k], bad[k], does[k] = (good[k], half[k], said) if said else (half[k], bad[k], does[k])
        return [
            self._within_bounds(i, side, float(lattice.values(np.array([key]))[0]), said)
            if said
            else float(at[i, side])
            for (i, side), lattice, key, said in zip(ends, lattices, good, does, strict=True)
        ]

    def _within_bounds(self, i: int, side: int, last: float, does: str) -> float:
        """The last number that is taken, unless the feature's bounds lie beyond it."""
        feature = self.space.features[i]
        bound = (feature.lower, feature.upper)[side]
        if (bound < last if side == 0 else bound > last) and (np.isfinite(bound) or does != "refuses"):
            raise DataError(
                f"the bounds of feature {feature.name!r} reach to {bound:g}, and the preprocessing {does} values "
                f"beyond {last:g}: set narrower bounds"
            )
        return last

    def wrapping(self, lowest: dict[int, float]) -> list[int]:
        """Features whose whole numbers turn back at their smallest, as -x does: int8 has no 128, uint8 none below 0.

        Raises
        ------
        DataError
            The bounds of one reach to it.
        """
        whole = [i for i in lowest if Lattice.of(self.space.features[i]).dtype.kind in "iu"]
        if not whole:
            return []
        rows = np.vstack([self.varied(i, lowest[i] + k) for i in whole for k in range(3)])
        with np.errstate(all="ignore"):
            steps = np.diff(self.encode(self.space.to_frame(rows)).reshape(len(whole), 3, -1), axis=1)
        turning = [whole[k] for k in np.flatnonzero((steps[:, 0] * steps[:, 1] < 0).any(axis=1))]
        for feature in (self.space.features[i] for i in turning):
            if np.isfinite(feature.lower) and feature.lower <= lowest[self.space.index(feature.name)]:
                raise DataError(
                    f"the bounds of feature {feature.name!r} reach to {feature.lower:g}, where the preprocessing wraps "
                    f"round in {feature.dtype}: give it a wider dtype, such as int64 or float64"
                )
        return turning


def finite_range(feature: Feature, base: float) -> tuple[float, float]:
    """Two finite values around which a numeric feature is tried, the bounds where they are finite.

    Parameters
    ----------
    feature : Feature
        Numeric or integer.
    base : float
        A value inside, in the user's units; it stands in for an infinite bound.
    """
    low, high = finite_ends(feature, base)
    return (low, high) if low < high else (low - 1.0, high + 1.0)

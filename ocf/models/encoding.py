"""From model columns to features: splits are pulled back through whatever encodes the user's table.

A model sees columns: one-hot indicators, scaled numbers, codes. A user sees features. Which feature moves which column
is found by varying each feature alone, from several rows. A split of such a column becomes a split of the feature:

* of a discrete feature, by encoding each level and looking which levels go left;
* of a numeric feature, at the largest number that the encoding and the model together send left, found by bisection
  over all numbers of the column's dtype that the encoding takes: scalers compute in float32 where the table is float32.
  They are monotone in floating point too, so this boundary is exact.

That a column depends on one feature, and is monotone in it, cannot be told by trying: it is known by the classes of the
steps (`ocf.models.known_steps`). Through other steps the splits hold as far as was tried, within the range of the
data, and nothing is proven.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import DataError, UnsupportedModelError
from ocf.features.feature import Feature
from ocf.features.lattice import Lattice
from ocf.features.space import FeatureSpace

#: From a table in the user's columns to the matrix of model columns, (n, n_model_columns) float64.
Encoder = Callable[[pd.DataFrame], FloatArray]


@dataclass(frozen=True)
class Encoding:
    """A feature space, the encoder of its table, and which feature moves which model column.

    Attributes
    ----------
    space : FeatureSpace
    encode : Encoder
    base : (n_features,) float64
        A coded row of the data, from which features are varied.
    column_feature : (n_model_columns,) int64
        Feature that moves the column; -1 for columns that nothing moves.
    domain : (n_features, 2) float64 or None
        Smallest and largest number of each numeric feature that the encoding takes; everywhere between them each
        column is a monotone function of its feature, by the classes of the steps. None where that is not known.
    """

    space: FeatureSpace
    encode: Encoder
    base: FloatArray
    column_feature: IntArray
    domain: FloatArray | None = None

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


def probe(
    space: FeatureSpace,
    encode: Encoder,
    base: FloatArray,
    column_names: tuple[str, ...],
    *,
    others: FloatArray | None = None,
    known: bool = False,
) -> Encoding:
    """Find which feature moves which model column.

    Parameters
    ----------
    space : FeatureSpace
    encode : Encoder
    base : (n_features,) float64
        A coded row; its missing values stay missing.
    column_names : tuple of str
        Of the model columns, for messages.
    others : (n, n_features) float64, optional
        More rows to vary features from: a product of two features does not move where one of them is 0.
    known : bool
        Whether each step of the encoding is one of `ocf.models.known_steps`.

    Raises
    ------
    UnsupportedModelError
        A column depends on several features (PCA, interactions), so its splits cannot be told per feature.
    DataError
        The bounds of a feature hold numbers that the encoding refuses.
    """
    domain = _domain(space, encode, base) if known else None
    bases = _bases(space, base, others)
    encoded = encode(space.to_frame(bases))
    if encoded.shape[1] != len(column_names):
        raise DataError(
            f"the table encodes to {encoded.shape[1]} model columns, but the model was fitted on {len(column_names)}"
        )
    moved = np.zeros((len(space), encoded.shape[1]), bool)
    for row in bases:
        moved |= _moved(space, encode, row, domain)
    shared = np.flatnonzero(moved.sum(axis=0) > 1)
    # a column that no feature moves alone, and that is not the same everywhere, is moved by some together
    still = ~moved.any(axis=0) & ~_same(encoded, encoded[0]).all(axis=0)
    if len(shared) or still.any():
        j = int(shared[0]) if len(shared) else int(np.flatnonzero(still)[0])
        names = ", ".join(repr(space.names[i]) for i in np.flatnonzero(moved[:, j])) or "none of them alone"
        raise UnsupportedModelError(
            f"model column {column_names[j]!r} depends on several features ({names}); ocf needs a preprocessing that "
            "treats each feature by itself (encoders, scalers). Give ocf the table after such a step instead"
        )
    return Encoding(space, encode, base, np.where(moved.any(axis=0), moved.argmax(axis=0), -1), domain)


def _bases(space: FeatureSpace, base: FloatArray, others: FloatArray | None) -> FloatArray:
    """Rows to vary features from: the base row, two between the bounds, those given; all miss the same values."""
    rows = [base]
    for share in (0.382, 0.618):
        row = base.copy()
        for i, feature in enumerate(space.features):
            if feature.discrete:
                row[i] = round(share * (len(feature.levels) - 1))
            else:
                low, high = finite_range(feature, base[i])
                row[i] = Lattice.of(feature).rounded(np.array([low + share * (high - low)]))[0]
        rows.append(row)
    if others is not None and len(others):
        rows += list(others)
    return np.where(np.isnan(base), np.nan, np.array(rows))


def _moved(space: FeatureSpace, encode: Encoder, row: FloatArray, domain: FloatArray | None) -> BoolArray:
    """Which feature moves which model column, as it is varied alone from a row, (n_features, n_model_columns)."""
    values = [_probe_values(f, row[i], None if domain is None else domain[i]) for i, f in enumerate(space.features)]
    rows = np.tile(row, (sum(map(len, values)), 1))
    owner = np.repeat(np.arange(len(space)), [len(v) for v in values])
    rows[np.arange(len(rows)), owner] = np.concatenate(values) if values else []
    with np.errstate(all="ignore"):  # the ends of the domain overflow
        encoded = encode(space.to_frame(np.vstack([row, rows])))
    moved = np.zeros((len(space), encoded.shape[1]), bool)
    np.logical_or.at(moved, owner, ~_same(encoded[1:], encoded[0]))
    return moved


def _same(a: FloatArray, b: FloatArray) -> BoolArray:
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


def _probe_values(feature: Feature, base: float, domain: FloatArray | None) -> FloatArray:
    if np.isnan(base):
        return np.zeros(0)
    if feature.discrete:
        return np.arange(len(feature.levels), dtype=np.float64)
    low, high = finite_range(feature, base)
    lattice = Lattice.of(feature)
    if domain is None:
        return lattice.rounded(np.linspace(low, high, 9))
    return np.concatenate([lattice.rounded(np.clip(np.linspace(low, high, 9), *domain)), domain])


def _domain(space: FeatureSpace, encode: Encoder, base: FloatArray) -> FloatArray:
    """Smallest and largest number of each feature that the encoding takes, (n_features, 2); NaN for other features."""
    domain = np.full((len(space), 2), np.nan)
    numbers = [i for i, f in enumerate(space.features) if not f.discrete and not np.isnan(base[i])]
    for i in numbers:
        domain[i] = Lattice.of(space.features[i]).ends
    trial = _Trial(space, encode, base, np.isnan(encode(space.to_frame(base))[0]))
    ends = [trial.varied(i, end) for i in numbers for end in domain[i]]
    if ends and trial.fault(np.vstack(ends)):
        for i in numbers:
            domain[i] = [trial.last_taken(i, side, domain[i, side]) for side in range(2)]
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
            except ValueError:
                return "refuses"
        return "makes no numbers of" if (np.isnan(encoded) & ~self.holes).any() else ""

    def last_taken(self, i: int, side: int, end: float) -> float:
        """The number nearest to an end of the feature's numbers that the encoding takes.

        Raises
        ------
        DataError
            The feature's bounds lie beyond it.
        """
        does = self.fault(self.varied(i, end))
        if not does:
            return end
        feature, lattice = self.space.features[i], Lattice.of(self.space.features[i])
        good, bad = (int(lattice.keys(np.array([v]))[0]) for v in (self.base[i], end))
        while abs(bad - good) > 1:
            half = (good + bad) // 2
            said = self.fault(self.varied(i, float(lattice.values(np.array([half]))[0])))
            good, bad, does = (half, bad, does) if not said else (good, half, said)
        last = float(lattice.values(np.array([good]))[0])
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
    low = feature.lower if np.isfinite(feature.lower) else base - max(1.0, abs(base))
    high = feature.upper if np.isfinite(feature.upper) else base + max(1.0, abs(base))
    return (low, high) if low < high else (low - 1.0, high + 1.0)

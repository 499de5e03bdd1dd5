"""From model columns to features: splits are pulled back through whatever encodes the user's table.

A model sees columns: one-hot indicators, scaled numbers, codes. A user sees features. The way from one to the other
(the steps of a Pipeline before the model, or nothing) is probed, not parsed: each feature is varied alone, and the
columns that move are its own. A split of such a column becomes a split of the feature:

* of a discrete feature, by encoding each level and looking which levels go left;
* of a numeric feature, at the largest number that the encoding and the model together send left, found by bisection
  over the numbers of the column's dtype: scalers compute in float32 where the table is float32. They are monotone in
  floating point too, so this boundary is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.ensemble import BoolArray, Ensemble, FloatArray, IntArray, SplitKind
from ocf.errors import ConformanceError, DataError, OcfError, UnsupportedModelError
from ocf.features import Feature, FeatureSpace
from ocf.hyperplanes import lift_oblique

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
    """

    space: FeatureSpace
    encode: Encoder
    base: FloatArray
    column_feature: IntArray

    def varied(self, i: int, values: FloatArray) -> FloatArray:
        """Model columns of the base row with feature `i` at each of `values`, (n, n_model_columns)."""
        rows = np.tile(self.base, (len(values), 1))
        rows[:, i] = values
        return self.encode(self.space.to_frame(rows))


def probe(space: FeatureSpace, encode: Encoder, base: FloatArray, column_names: tuple[str, ...]) -> Encoding:
    """Find which feature moves which model column.

    Parameters
    ----------
    space : FeatureSpace
    encode : Encoder
    base : (n_features,) float64
        A coded row; its missing values stay missing.
    column_names : tuple of str
        Of the model columns, for messages.

    Raises
    ------
    UnsupportedModelError
        A column depends on several features (PCA, interactions), so its splits cannot be told per feature.
    """
    n = len(space)
    values = [_probe_values(f, base[i]) for i, f in enumerate(space.features)]
    rows = np.tile(base, (sum(map(len, values)), 1))
    owner = np.repeat(np.arange(n), [len(v) for v in values])
    rows[np.arange(len(rows)), owner] = np.concatenate(values) if values else []
    encoded = encode(space.to_frame(np.vstack([base, rows])))
    if encoded.shape[1] != len(column_names):
        raise DataError(
            f"the table encodes to {encoded.shape[1]} model columns, but the model was fitted on {len(column_names)}"
        )
    moved = np.zeros((n, encoded.shape[1]), bool)
    same = (encoded[1:] == encoded[0]) | (np.isnan(encoded[1:]) & np.isnan(encoded[0]))
    np.logical_or.at(moved, owner, ~same)
    shared = np.flatnonzero(moved.sum(axis=0) > 1)
    if len(shared):
        j = shared[0]
        names = ", ".join(repr(space.names[i]) for i in np.flatnonzero(moved[:, j]))
        raise UnsupportedModelError(
            f"model column {column_names[j]!r} depends on several features ({names}); ocf needs a preprocessing that "
            "treats each feature by itself (encoders, scalers). Give ocf the table after such a step instead"
        )
    return Encoding(space, encode, base, np.where(moved.any(axis=0), moved.argmax(axis=0), -1))


def _probe_values(feature: Feature, base: float) -> FloatArray:
    if np.isnan(base):
        return np.zeros(0)
    if feature.discrete:
        return np.arange(len(feature.levels), dtype=np.float64)
    low, high = _finite_range(feature, base)
    return np.linspace(low, high, 9)


def _finite_range(feature: Feature, base: float) -> tuple[float, float]:
    low = feature.lower if np.isfinite(feature.lower) else base - max(1.0, abs(base))
    high = feature.upper if np.isfinite(feature.upper) else base + max(1.0, abs(base))
    return (low, high) if low < high else (low - 1.0, high + 1.0)


def lift(ensemble: Ensemble, encoding: Encoding, missing: frozenset[int] = frozenset()) -> Ensemble:
    """The same trees with splits that test features, in coded values, instead of model columns.

    Parameters
    ----------
    ensemble : Ensemble
        Over model columns.
    encoding : Encoding
    missing : frozenset of int
        Features whose value is missing: the splits that it moves are decided by the preprocessing and the model's rule.

    Returns
    -------
    Ensemble
        Nodes and leaves keep their places. Splits that every value passes to one side have an infinite threshold.

    Raises
    ------
    DataError
        A feature is missing and the model has no rule for that.
    UnsupportedModelError
        The encoding of a numeric feature is not monotone.
    """
    space = encoding.space
    if ensemble.is_oblique and missing:
        raise DataError(f"{_named(space, missing)} missing (NaN), and the model has no rule for it: fill in a value")
    inner = np.flatnonzero(np.isin(ensemble.kind, (SplitKind.AXIS, SplitKind.SUBSET)))
    if missing:
        encoding = _with_missing(encoding, ensemble, missing)
    owner = encoding.column_feature[ensemble.feature[inner]]
    out = {
        name: getattr(ensemble, name).copy() for name in ("kind", "feature", "threshold", "left", "right", "set_index")
    }
    out["set_index"][:] = -1
    sets: list[BoolArray] = []
    still = inner[owner < 0]
    row = encoding.encode(space.to_frame(encoding.base))[0]
    if ensemble.missing_left is None and np.isnan(row[ensemble.feature[still]]).any():
        raise DataError(f"{_named(space, missing)} missing (NaN), and the model has no rule for it: fill in a value")
    _decide(out, still, _goes_left(ensemble, still, row))
    for i, feature in enumerate(space.features):
        nodes = inner[owner == i]
        if not len(nodes):
            continue
        out["feature"][nodes] = i
        if feature.discrete:
            _lift_discrete(ensemble, nodes, encoding, i, out, sets)
        else:
            _lift_numeric(ensemble, nodes, encoding, i, out)
    # a node that no feature moves is decided already; give it some feature for the sake of shape
    out["feature"][still] = 0
    if ensemble.is_oblique:
        oblique = lift_oblique(ensemble, encoding)
        at = ensemble.kind == SplitKind.OBLIQUE
        out["threshold"][at] = oblique.pop("threshold")[at]
        out |= oblique
    width = max((len(s) for s in sets), default=0)
    table = np.array([np.pad(s, (0, width - len(s))) for s in sets], bool).reshape(len(sets), width)
    # NaN passes no comparison, so where it is decided to go left has to be said once more
    missing_left = out["threshold"] == np.inf if missing else None
    return replace(ensemble, feature_names=space.names, sets=table, missing_left=missing_left, **out)


def _decide(out: dict[str, Any], nodes: IntArray, goes_left: BoolArray) -> None:
    out["kind"][nodes] = SplitKind.AXIS
    out["threshold"][nodes] = np.where(goes_left, np.inf, -np.inf)


def _goes_left(ensemble: Ensemble, nodes: IntArray, row: FloatArray) -> BoolArray:
    """Side that one row of model columns takes at each of `nodes`."""
    return ensemble._goes_left(row[None, :], np.zeros(len(nodes), np.int64), nodes)


def _with_missing(encoding: Encoding, ensemble: Ensemble, missing: frozenset[int]) -> Encoding:
    """The encoding of rows with missing values: they may move other columns (indicators) or be filled from others."""
    space, base = encoding.space, encoding.base.copy()
    base[list(missing)] = np.nan
    try:
        return probe(space, encoding.encode, base, ensemble.feature_names)
    except (ValueError, TypeError) as error:
        if isinstance(error, OcfError):
            raise
        raise DataError(f"{_named(space, missing)} missing (NaN), and the preprocessing refuses it: {error}") from None


def _named(space: FeatureSpace, missing: frozenset[int]) -> str:
    names = ", ".join(repr(space.names[i]) for i in sorted(missing))
    return f"feature {names} is" if len(missing) == 1 else f"features {names} are"


def _lift_discrete(
    ensemble: Ensemble,
    nodes: IntArray,
    encoding: Encoding,
    i: int,
    out: dict[str, Any],
    sets: list[BoolArray],
) -> None:
    n_levels = len(encoding.space.features[i].levels)
    rows = encoding.varied(i, np.arange(n_levels, dtype=np.float64))
    goes_left = np.array([_goes_left(ensemble, nodes, row) for row in rows])  # (n_levels, n_split_nodes)
    n_left = goes_left.sum(axis=0)
    level = np.arange(len(rows))[:, None]
    prefix = (goes_left == (level < n_left)).all(axis=0)
    suffix = (goes_left == (level >= len(rows) - n_left)).all(axis=0)
    if (prefix | suffix).all():  # such splits respect the order of the levels, even of categories
        out["kind"][nodes] = SplitKind.AXIS
        out["threshold"][nodes] = np.where(prefix, n_left, len(rows) - n_left) - 0.5
        _swap_children(out, nodes[~prefix])
        return
    out["kind"][nodes] = SplitKind.SUBSET
    out["threshold"][nodes] = np.nan
    unique, index = np.unique(goes_left.T, axis=0, return_inverse=True)
    out["set_index"][nodes] = len(sets) + index
    sets.extend(unique)


def _lift_numeric(ensemble: Ensemble, nodes: IntArray, encoding: Encoding, i: int, out: dict[str, Any]) -> None:
    feature = encoding.space.features[i]
    if np.any(ensemble.kind[nodes] == SplitKind.SUBSET):
        raise DataError(f"the model treats feature {feature.name!r} as categories: describe it as kind 'categorical'")
    for column in np.unique(ensemble.feature[nodes]):
        at = nodes[ensemble.feature[nodes] == column]
        thresholds, index = np.unique(ensemble.threshold[at], return_inverse=True)
        low, high = _monotone_range(encoding, i, int(column))
        ends = encoding.varied(i, np.array([low, high]))[:, column]
        rising = ends[0] <= ends[1]

        def left(values: FloatArray, column: int = column, thresholds: FloatArray = thresholds) -> BoolArray:
            return encoding.varied(i, values)[:, column] <= thresholds

        inside = _identity_at(encoding, i, int(column), thresholds, low, high)
        if inside:
            cuts = thresholds
        elif rising:
            cuts = _last_true(left, len(thresholds), low, high, feature.float_dtype)
        else:
            cuts = _last_true(lambda values: ~left(values), len(thresholds), low, high, feature.float_dtype)
        out["threshold"][at] = cuts[index]
        if not rising:
            _swap_children(out, at)


def _swap_children(out: dict[str, Any], nodes: IntArray) -> None:
    out["left"][nodes], out["right"][nodes] = out["right"][nodes], out["left"][nodes].copy()


def _monotone_range(encoding: Encoding, i: int, column: int) -> tuple[float, float]:
    """Widest tried range around the data in which the encoding of a numeric feature is finite and monotone."""
    feature = encoding.space.features[i]
    low, high = _finite_range(feature, encoding.base[i])
    for margin in (2.0 * (high - low), 0.0):
        values = np.linspace(low - margin, high + margin, 257)
        with np.errstate(all="ignore"):
            try:
                encoded = encoding.varied(i, values)[:, column]
            except ValueError:
                continue
        if np.isfinite(encoded).all():
            steps = np.diff(encoded)
            if (steps >= 0).all() or (steps <= 0).all():
                return float(values[0]), float(values[-1])
    raise UnsupportedModelError(
        f"the preprocessing of feature {feature.name!r} is not monotone, so a split of it is no single threshold"
    )


def _identity_at(encoding: Encoding, i: int, column: int, thresholds: FloatArray, low: float, high: float) -> bool:
    """Whether the column is the feature's value itself, so that thresholds carry over as they are."""
    values = np.concatenate([np.linspace(low, high, 33), thresholds, np.nextafter(thresholds, np.inf)])
    values = values[np.isfinite(values)]
    return bool(np.array_equal(encoding.varied(i, values)[:, column], values))


def _last_true(
    holds: Callable[[FloatArray], BoolArray], n: int, low: float, high: float, dtype: np.dtype[Any]
) -> FloatArray:
    """Largest number of a dtype in [low, high] where each of `n` monotone conditions holds; infinite: all or none."""

    def at(key: NDArray[Any]) -> FloatArray:
        return _from_key(key, dtype).astype(np.float64)

    start, stop = (_to_key(np.full(n, end, dtype)) for end in (low, high))
    none, everywhere = ~holds(at(start)), holds(at(stop))
    while np.any(start + 1 < stop):
        middle = (start & stop) + ((start ^ stop) >> 1)  # the mean, without overflow
        true = holds(at(middle))
        start, stop = np.where(true, middle, start), np.where(true, stop, middle)
    return np.where(none, -np.inf, np.where(everywhere, np.inf, at(start)))


def _to_key(value: NDArray[Any]) -> NDArray[Any]:
    """Integers in the order of the numbers of a dtype, one apart for neighbours."""
    bits = value.view(f"i{value.itemsize}")
    return np.where(bits >= 0, bits, np.iinfo(bits.dtype).min - bits)


def _from_key(key: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.where(key >= 0, key, np.iinfo(key.dtype).min - key).view(dtype)


def check_lift(lifted: Ensemble, ensemble: Ensemble, encoding: Encoding, seed: int = 0) -> None:
    """Send points at and next to every threshold through both ensembles: they must reach the same leaves.

    Raises
    ------
    ConformanceError
        Naming the feature and value at which they part.
    """
    rng = np.random.default_rng(seed)
    space = encoding.space
    rows: list[FloatArray] = []
    for i, feature in enumerate(space.features):
        if feature.discrete:
            values = np.arange(len(feature.levels), dtype=np.float64)
        else:
            cuts = np.unique(lifted.threshold[(lifted.feature == i) & (lifted.kind == SplitKind.AXIS)])
            cuts = cuts[np.isfinite(cuts)]
            values = np.concatenate([cuts, np.nextafter(cuts.astype(feature.float_dtype), np.inf).astype(np.float64)])
            if lifted.is_oblique:
                values = np.concatenate([values, np.linspace(*_finite_range(feature, encoding.base[i]), 64)])
        rows.append(values)
    count = max(1, *map(len, rows))  # scalers refuse a table without rows
    points = np.column_stack(
        [
            rng.permutation(np.resize(v, count)) if len(v) else np.full(count, encoding.base[i])
            for i, v in enumerate(rows)
        ]
    )
    frame = space.to_frame(points)
    points = space.from_frame(frame)  # a narrow dtype may have rounded
    wanted = ensemble.apply(encoding.encode(frame))
    found = lifted.apply(points)
    wrong = np.flatnonzero((wanted != found).any(axis=1) & ~lifted.doubtful(points))
    if len(wrong):
        raise ConformanceError(
            "the splits of the model could not be carried over to the features exactly; the first point that parts "
            f"them: {frame.iloc[int(wrong[0])].to_dict()}. Give ocf the preprocessed table instead of the Pipeline"
        )

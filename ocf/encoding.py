"""From model columns to features: splits are pulled back through whatever encodes the user's table.

A model sees columns: one-hot indicators, scaled numbers, codes. A user sees features. Which feature moves which column
is found by varying each feature alone, from several rows. A split of such a column becomes a split of the feature:

* of a discrete feature, by encoding each level and looking which levels go left;
* of a numeric feature, at the largest number that the encoding and the model together send left, found by bisection
  over all numbers of the column's dtype that the encoding takes: scalers compute in float32 where the table is float32.
  They are monotone in floating point too, so this boundary is exact.

That a column depends on one feature, and is monotone in it, cannot be told by trying: it is known by the classes of the
steps (`ocf.known_steps`). Through other steps the splits hold as far as was tried, within the range of the data, and
nothing is proven.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ocf.ensemble import BoolArray, Ensemble, FloatArray, IntArray, SplitKind
from ocf.errors import ConformanceError, DataError, OcfError, UnsupportedModelError
from ocf.features import Feature, FeatureSpace
from ocf.hyperplanes import lift_oblique
from ocf.lattice import Lattice, middle

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
        """Model columns of the base row with feature `i` at each of `values`, (n, n_model_columns)."""
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
        Whether each step of the encoding is one of `ocf.known_steps`.

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
                low, high = _finite_range(feature, base[i])
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
    low, high = _finite_range(feature, base)
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
    holes = np.isnan(encode(space.to_frame(base))[0])

    def takes(points: FloatArray) -> str:
        """Empty if the encoding takes rows and makes numbers of them; otherwise what it does."""
        with np.errstate(all="ignore"):
            try:
                encoded = encode(space.to_frame(points))
            except ValueError:
                return "refuses"
        return "makes no numbers of" if (np.isnan(encoded) & ~holes).any() else ""

    def varied(i: int, value: float) -> FloatArray:
        return np.where(np.arange(len(base)) == i, value, base)[None, :]

    ends = [varied(i, end) for i in numbers for end in domain[i]]
    if not ends or not takes(np.vstack(ends)):
        return domain
    for i in numbers:
        feature, lattice = space.features[i], Lattice.of(space.features[i])
        for side in range(2):
            does = takes(varied(i, domain[i, side]))
            if not does:
                continue
            good, bad = (int(lattice.keys(np.array([v]))[0]) for v in (base[i], domain[i, side]))
            while abs(bad - good) > 1:
                half = (good + bad) // 2
                said = takes(varied(i, float(lattice.values(np.array([half]))[0])))
                good, bad, does = (half, bad, does) if not said else (good, half, said)
            domain[i, side] = lattice.values(np.array([good]))[0]
            bound = (feature.lower, feature.upper)[side]
            beyond = bound < domain[i, 0] if side == 0 else bound > domain[i, 1]
            if beyond and (np.isfinite(bound) or does != "refuses"):
                raise DataError(
                    f"the bounds of feature {feature.name!r} reach to {bound:g}, and the preprocessing {does} values "
                    f"beyond {domain[i, side]:g}: set narrower bounds"
                )
    return domain


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
    numbers: dict[int, IntArray] = {}
    for i, feature in enumerate(space.features):
        nodes = inner[owner == i]
        if not len(nodes):
            continue
        out["feature"][nodes] = i
        if feature.discrete:
            _lift_discrete(ensemble, nodes, encoding, i, out, sets)
        elif np.any(ensemble.kind[nodes] == SplitKind.SUBSET):
            raise DataError(
                f"the model treats feature {feature.name!r} as categories: describe it as kind 'categorical'"
            )
        else:
            numbers[i] = nodes
    _lift_numbers(ensemble, numbers, encoding, out)
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
        return probe(space, encoding.encode, base, ensemble.feature_names, known=encoding.domain is not None)
    except (ValueError, TypeError) as error:
        cause = error.__cause__  # of the Pipeline's own error, if it is one
        if isinstance(error, OcfError) and not isinstance(cause, ValueError | TypeError):
            raise
        reason = cause or error
        raise DataError(f"{_named(space, missing)} missing (NaN), and the preprocessing refuses it: {reason}") from None


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


@dataclass(frozen=True)
class _Cuts:
    """Splits of one numeric feature, each column and threshold once.

    Attributes
    ----------
    column : (n,) int64
        Model column.
    threshold : (n,) float64
        Of the model.
    rising : (n,) bool
        Whether the column rises with the feature.
    low, high : int
        Keys of the ends of the range in which the column is monotone.
    """

    lattice: Lattice
    column: IntArray
    threshold: FloatArray
    rising: BoolArray
    low: IntArray
    high: IntArray


class _Columns:
    """Sides of splits of several numeric features, of all of them with each call of the encoding.

    No column depends on two features, so the splits of different features share the rows that are encoded.
    """

    def __init__(self, encoding: Encoding, cuts: dict[int, _Cuts]) -> None:
        self.encoding, self.cuts = encoding, cuts

    def __call__(self, keys: dict[int, IntArray]) -> dict[int, FloatArray]:
        """The splits' columns, each at a value of its feature."""
        base = self.encoding.base
        rows = np.tile(base, (max(map(len, keys.values())), 1))
        for i, own in keys.items():
            rows[: len(own), i] = self.cuts[i].lattice.values(own)
        with np.errstate(all="ignore"):  # scalers overflow at the ends of the line
            encoded = self.encoding.encode(self.encoding.space.to_frame(rows))
        return {i: encoded[np.arange(len(own)), self.cuts[i].column] for i, own in keys.items()}

    def below(self, keys: dict[int, IntArray]) -> dict[int, BoolArray]:
        """Whether each value lies on the lower side of its split: left where the column rises, right where it falls."""
        found = self(keys)
        return {i: (z <= self.cuts[i].threshold) == self.cuts[i].rising for i, z in found.items()}

    def last_below(self) -> dict[int, FloatArray]:
        """Largest number on the lower side of each split; infinite where all numbers are on one side."""
        low, high = ({i: getattr(c, end) for i, c in self.cuts.items()} for end in ("low", "high"))
        first, last = self.below(low), self.below(high)
        # most thresholds of most models carry over as they are
        near = {i: np.clip(c.lattice.at_most(c.threshold), c.low, c.high - 1) for i, c in self.cuts.items()}
        at, after = self.below(near), self.below({i: k + 1 for i, k in near.items()})
        start, stop = {}, {}
        for i in self.cuts:
            found = at[i] & ~after[i]
            split = first[i] & ~last[i] & ~found
            start[i] = np.where(found, near[i], low[i])
            stop[i] = np.where(split, high[i], start[i])
        while any(np.any(start[i] + 1 < stop[i]) for i in start):
            half = {i: middle(start[i], stop[i]) for i in start}
            true = self.below(half)
            for i in start:
                start[i], stop[i] = np.where(true[i], half[i], start[i]), np.where(true[i], stop[i], half[i])
        out = {}
        for i, c in self.cuts.items():
            found = at[i] & ~after[i]
            cut = np.where(found & (near[i] == c.lattice.at_most(c.threshold)), c.threshold, c.lattice.values(start[i]))
            out[i] = np.where(found, cut, np.where(~first[i], -np.inf, np.where(last[i], np.inf, cut)))
        return out


def _lift_numbers(ensemble: Ensemble, numbers: dict[int, IntArray], encoding: Encoding, out: dict[str, Any]) -> None:
    """Splits of numeric features, given the nodes of each."""
    if not numbers:
        return
    cuts, places = {}, {}
    for i, nodes in numbers.items():
        pairs = np.column_stack([ensemble.feature[nodes].astype(np.float64), ensemble.threshold[nodes]])
        unique, places[i] = np.unique(pairs, axis=0, return_inverse=True)
        cuts[i] = _cuts(encoding, i, unique[:, 0].astype(np.int64), unique[:, 1])
    columns = _Columns(encoding, cuts)
    ends = [columns({i: getattr(c, end) for i, c in cuts.items()}) for end in ("low", "high")]
    columns = _Columns(encoding, {i: replace(c, rising=ends[0][i] <= ends[1][i]) for i, c in cuts.items()})
    for i, cut in columns.last_below().items():
        nodes, place = numbers[i], places[i].ravel()
        out["threshold"][nodes] = cut[place]
        _swap_children(out, nodes[~columns.cuts[i].rising[place]])


def _cuts(encoding: Encoding, i: int, column: IntArray, threshold: FloatArray) -> _Cuts:
    lattice = Lattice.of(encoding.space.features[i])
    if encoding.domain is not None:
        ends = np.tile(encoding.domain[i], (len(column), 1))
    else:
        ranges = {int(j): _monotone_range(encoding, i, int(j)) for j in np.unique(column)}
        ends = np.array([ranges[j] for j in column.tolist()])
    low, high = lattice.keys(ends[:, 0]), lattice.keys(ends[:, 1])
    return _Cuts(lattice, column, threshold, np.ones(len(column), bool), low, np.maximum(high, low + 1))


def unsteady(lifted: Ensemble, ensemble: Ensemble, encoding: Encoding, reach: int = 8) -> tuple[str, ...]:
    """Numeric features whose encoding is not monotone in floating point next to some threshold, by name.

    Sums, products and comparisons are monotone to the last bit; logarithms, powers and interpolations may go back by
    one, which is looked for among the numbers next to each threshold.

    Parameters
    ----------
    lifted, ensemble, encoding
        What `lift` gave, and what it was given.
    reach : int
        How many numbers on each side of a threshold to look at.
    """
    cuts, keys, sides = {}, {}, {}
    axis = np.flatnonzero((lifted.kind == SplitKind.AXIS) & np.isfinite(lifted.threshold))
    for i, feature in enumerate(encoding.space.features):
        nodes = axis[lifted.feature[axis] == i]
        if feature.discrete or not len(nodes) or encoding.domain is None:
            continue
        pairs = np.column_stack([ensemble.feature[nodes].astype(np.float64), ensemble.threshold[nodes]])
        unique, first = np.unique(pairs, axis=0, return_index=True)
        chosen = nodes[first]
        cuts[i] = _cuts(encoding, i, unique[:, 0].astype(np.int64), unique[:, 1])
        keys[i] = cuts[i].lattice.at_most(lifted.threshold[chosen])
        sides[i] = lifted.left[chosen] == ensemble.left[chosen]
    columns, found = _Columns(encoding, cuts), set()
    for step in [k for k in range(-reach, reach + 2) if cuts]:
        tried = {i: np.clip(k + step, cuts[i].low, cuts[i].high) for i, k in keys.items()}
        for i, z in columns(tried).items():
            wanted = tried[i] <= keys[i]
            if np.any(((z <= cuts[i].threshold) == sides[i]) != wanted):
                found.add(i)
    return tuple(encoding.space.names[i] for i in sorted(found))


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
            lattice = Lattice.of(feature)
            keys = lattice.at_most(cuts[np.isfinite(cuts)])
            values = lattice.values(np.concatenate([keys, keys + 1]))
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

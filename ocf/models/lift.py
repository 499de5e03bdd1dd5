"""Splits of model columns pulled back to splits of features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import ConformanceError, DataError, OcfError, UnsupportedModelError
from ocf.features.lattice import Lattice, middle
from ocf.features.space import FeatureSpace
from ocf.models.encoding import Encoding, finite_range, probe
from ocf.models.oblique_encoding import lift_oblique
from ocf.trees.ensemble import Ensemble, SplitKind


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
    _lift_features(ensemble, {i: inner[owner == i] for i in np.unique(owner[owner >= 0]).tolist()}, encoding, out, sets)
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


def _lift_features(
    ensemble: Ensemble,
    nodes_of: dict[int, IntArray],
    encoding: Encoding,
    out: dict[str, Any],
    sets: list[BoolArray],
) -> None:
    """Splits that features move, given the nodes of each."""
    numbers: dict[int, IntArray] = {}
    for i, nodes in nodes_of.items():
        feature = encoding.space.features[i]
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


def _decide(out: dict[str, Any], nodes: IntArray, goes_left: BoolArray) -> None:
    out["kind"][nodes] = SplitKind.AXIS
    out["threshold"][nodes] = np.where(goes_left, np.inf, -np.inf)


def _goes_left(ensemble: Ensemble, nodes: IntArray, row: FloatArray) -> BoolArray:
    """Side that one row of model columns takes at each of `nodes`."""
    return ensemble.goes_left(row[None, :], np.zeros(len(nodes), np.int64), nodes)


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


#: How many numbers beside a guess to look for a split first: as far as rounding reaches where nearly equal numbers
#: cancel, and where they do not. A bisection within the nearer takes 11 steps, over all numbers of float64 it takes 64.
_REACHES = (2**24, 2**10)


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
        self._bisect(start, stop)
        out = {}
        for i, c in self.cuts.items():
            found = at[i] & ~after[i]
            cut = np.where(found & (near[i] == c.lattice.at_most(c.threshold)), c.threshold, c.lattice.values(start[i]))
            out[i] = np.where(found, cut, np.where(~first[i], -np.inf, np.where(last[i], np.inf, cut)))
        return out

    def _bisect(self, start: dict[int, IntArray], stop: dict[int, IntArray]) -> None:
        """Narrow keys on the lower and on the upper side of each split, in place, until none lies between them."""

        def split_at(keys: dict[int, IntArray]) -> None:
            at = {i: np.clip(k, start[i], stop[i]) for i, k in keys.items()}
            for i, below in self.below(at).items():
                start[i], stop[i] = np.where(below, at[i], start[i]), np.where(below, stop[i], at[i])

        def is_wide() -> bool:
            return any(np.any(start[i] + 1 < stop[i]) for i in start)

        if is_wide():
            guess = self._on_a_line()
            for reach in _REACHES:
                split_at({i: k - reach for i, k in guess.items()})
                split_at({i: k + reach for i, k in guess.items()})
        while is_wide():
            split_at({i: middle(start[i], stop[i]) for i in start})

    def _on_a_line(self) -> dict[int, IntArray]:
        """Keys at which each column would meet its threshold if it were linear, as scalers make it but for rounding."""
        space, base = self.encoding.space, self.encoding.base
        ends = {i: np.array(finite_range(space.features[i], base[i])) for i in self.cuts}
        keys = {i: c.lattice.keys(ends[i])[:, None].repeat(len(c.column), axis=1) for i, c in self.cuts.items()}
        low, high = (self({i: k[side] for i, k in keys.items()}) for side in range(2))
        out = {}
        for i, c in self.cuts.items():
            first, last = c.lattice.values(keys[i])
            with np.errstate(all="ignore"):
                met = first + (c.threshold - low[i]) / (high[i] - low[i]) * (last - first)
            out[i] = np.clip(c.lattice.keys(np.where(np.isfinite(met), met, first)), c.low, c.high)
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
    low, high = finite_range(feature, encoding.base[i])
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

    Parameters
    ----------
    lifted : Ensemble
        Over features.
    ensemble : Ensemble
        The same trees over model columns.
    encoding : Encoding
    seed : int
        Of the random values of the other features.

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
                values = np.concatenate([values, np.linspace(*finite_range(feature, encoding.base[i]), 64)])
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
    wrong = np.flatnonzero((wanted != found).any(axis=1) & ~lifted.uncertain(points))
    if len(wrong):
        raise ConformanceError(
            "the splits of the model could not be carried over to the features exactly; the first point that parts "
            f"them: {frame.iloc[int(wrong[0])].to_dict()}. Give ocf the preprocessed table instead of the Pipeline"
        )

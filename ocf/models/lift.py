"""Splits of model columns pulled back to splits of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import ConformanceError, DataError, ModelError, OcfError
from ocf.features.lattice import Lattice, middle
from ocf.features.number_dtypes import holds_gaps
from ocf.features.space import FeatureSpace
from ocf.models.encoding import Encoding, finite_range
from ocf.models.gaps import with_gaps
from ocf.models.oblique_encoding import as_hyperplanes, lift_oblique
from ocf.models.unfolding import Fold, unfold
from ocf.readers.transformers.flow import REACH, pieces
from ocf.support.messages import listed
from ocf.trees.ensemble import Ensemble, SplitKind
from ocf.trees.rounding import uncertain

#: Relative distance of a column's turning point from a threshold below which rounding might decide.
NEAR = 2.0**-40


@dataclass(frozen=True)
class Lifted:
    """Trees over features, and how they hang together with those over model columns.

    Attributes
    ----------
    ensemble : Ensemble
        Splits that every value passes to one side have an infinite threshold. Nodes and leaves keep their places,
        unless a column turns: then one split becomes several, and what stands below it is copied.
    node : (n_nodes,) int64
        Node of the model's that each stands for.
    leaf : (n_leaves,) int64
        Leaf of the model's that each stands for.
    unsteady : tuple of str
        Features next to whose thresholds rounding goes back and forth.
    """

    ensemble: Ensemble
    node: IntArray
    leaf: IntArray
    unsteady: tuple[str, ...] = ()

    def apply(self, coded: FloatArray) -> IntArray:
        """Leaf of the model that each coded row reaches in each tree, (n, n_trees)."""
        return self.leaf[self.ensemble.apply(coded)]


def why_unproven(lifted: Lifted) -> str:
    """Why nothing is proven through a preprocessing, in words; empty where proofs hold."""
    if not lifted.unsteady:
        return ""
    return (
        f"nothing is proven: rounding makes the preprocessing of {listed(lifted.unsteady)} go back and forth next to a "
        "threshold; give ocf the table after the preprocessing for a proof"
    )


def lift(
    ensemble: Ensemble,
    encoding: Encoding,
    missing: frozenset[int] = frozenset(),
    supplied: frozenset[int] = frozenset(),
) -> Lifted:
    """The same trees with splits that test features, in coded values, instead of model columns.

    Parameters
    ----------
    ensemble : Ensemble
        Over model columns.
    encoding : Encoding
    missing : frozenset of int
        Features whose value is missing: the splits that it moves are decided by the preprocessing and the model's rule.
    supplied : frozenset of int
        Features of which missing is a value like others, coded as `Feature.missing_code`: behind all of them.

    Returns
    -------
    Lifted

    Raises
    ------
    DataError
        A feature is missing and the model has no rule for that.
    UnsupportedModelError
        A split tests a column that depends on several features.
    """
    space = encoding.space
    if ensemble.is_oblique and missing | supplied:
        raise DataError(
            f"{_named(space, missing | supplied)} missing (NaN), and no rule for that is read in a model that splits "
            "on sums of columns or adds them to a score, not even of an imputer in front of it: fill in a value"
        )
    if missing:
        encoding = _with_missing(encoding, ensemble, missing)
    gaps: dict[int, FloatArray] = {}
    if supplied:
        encoding, gaps = with_gaps(encoding, partial(_with_missing, encoding, ensemble, asked=True), supplied)
    encoding.check_width(ensemble.feature_names)
    ensemble = as_hyperplanes(ensemble, encoding)
    inner = np.flatnonzero(np.isin(ensemble.kind, (SplitKind.AXIS, SplitKind.SUBSET)))
    encoding.refuse_mixed(ensemble.feature[inner].astype(np.int64), ensemble.feature_names)
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
    nodes_of = {i: inner[owner == i] for i in np.unique(owner[owner >= 0]).tolist()}
    gone = {i: _side_of_gap(ensemble, nodes_of[i], gaps[i], space.names[i]) for i in gaps if i in nodes_of}
    folds, unsteady = _lift_features(ensemble, nodes_of, encoding, out, sets, gone)
    # a node that no feature moves is decided already; give it some feature for the sake of shape
    out["feature"][still] = 0
    if ensemble.is_oblique:
        oblique = lift_oblique(ensemble, encoding)
        at = ensemble.kind == SplitKind.OBLIQUE
        out["threshold"][at] = oblique.pop("threshold")[at]
        out |= oblique | {"oblique_index": ensemble.oblique_index}
    width = max((len(s) for s in sets), default=0)
    table = np.array([np.pad(s, (0, width - len(s))) for s in sets], bool).reshape(len(sets), width)
    lifted = replace(ensemble, feature_names=space.names, sets=table, missing_left=None, **out)
    lifted, node = unfold(lifted, folds)
    if missing:  # NaN passes no comparison, so where it is decided to go left has to be said once more
        lifted = replace(lifted, missing_left=lifted.threshold == np.inf)
    leaf = ensemble.leaf[node[lifted.kind == SplitKind.LEAF]].astype(np.int64)
    return Lifted(lifted, node, leaf, tuple(space.names[i] for i in unsteady))


def _lift_features(
    ensemble: Ensemble,
    nodes_of: dict[int, IntArray],
    encoding: Encoding,
    out: dict[str, Any],
    sets: list[BoolArray],
    gone: dict[int, BoolArray],
) -> tuple[dict[int, Fold], tuple[int, ...]]:
    """Splits that features move, given the nodes of each, and which send a missing value left; as `_lift_numbers`."""
    numbers: dict[int, IntArray] = {}
    levels = encoding.levels_of([i for i in nodes_of if encoding.space.features[i].discrete])
    for i, nodes in nodes_of.items():
        feature = encoding.space.features[i]
        out["feature"][nodes] = i
        if feature.discrete:
            sides = np.array([_goes_left(ensemble, nodes, row) for row in levels[i]])
            _lift_discrete(nodes, np.vstack([sides, gone[i]]) if i in gone else sides, out, sets)
        elif np.any(ensemble.kind[nodes] == SplitKind.SUBSET):
            raise DataError(
                f"the model treats feature {feature.name!r} as categories: describe it as kind 'categorical'"
            )
        else:
            numbers[i] = nodes
    return _lift_numbers(ensemble, numbers, encoding, out, gone)


def _decide(out: dict[str, Any], nodes: IntArray, goes_left: BoolArray) -> None:
    out["kind"][nodes] = SplitKind.AXIS
    out["threshold"][nodes] = np.where(goes_left, np.inf, -np.inf)


def _goes_left(ensemble: Ensemble, nodes: IntArray, row: FloatArray) -> BoolArray:
    """Side that one row of model columns takes at each of `nodes`."""
    return ensemble.goes_left(row[None, :], np.zeros(len(nodes), np.int64), nodes)


def _with_missing(encoding: Encoding, ensemble: Ensemble, missing: frozenset[int], *, asked: bool = False) -> Encoding:
    """The encoding of rows with missing values: they may move other columns (indicators) or be filled from others.

    `asked`: they are not missing in the row, but the question lets values come and go.
    """
    space, base = encoding.space, encoding.base.copy()
    base[list(missing)] = np.nan
    try:
        found = replace(encoding, base=base)
        found.encode(space.to_frame(base))
        found.check_width(ensemble.feature_names)
    except (ValueError, TypeError) as error:
        cause = error.__cause__  # of the Pipeline's own error, if it is one
        if isinstance(error, OcfError) and not isinstance(cause, ValueError | TypeError):
            raise
        reason = cause or error
        becomes, remedy = (" or may become", "; list the others in may_become_missing") if asked else ("", "")
        raise DataError(
            f"{_named(space, missing)}{becomes} missing (NaN), and the preprocessing refuses it: {reason}{remedy}"
        ) from None
    return found


def _side_of_gap(ensemble: Ensemble, nodes: IntArray, row: FloatArray, name: str) -> BoolArray:
    """Side at each of `nodes` of model columns in which a feature is missing."""
    if ensemble.missing_left is None and np.isnan(row[ensemble.feature[nodes]]).any():
        raise DataError(
            f"feature {name!r} is or may become missing (NaN), and the model has no rule for it: fill in a value"
        )
    return _goes_left(ensemble, nodes, row)


def _named(space: FeatureSpace, missing: frozenset[int]) -> str:
    names = ", ".join(repr(space.names[i]) for i in sorted(missing))
    return f"feature {names} is" if len(missing) == 1 else f"features {names} are"


def _lift_discrete(nodes: IntArray, goes_left: BoolArray, out: dict[str, Any], sets: list[BoolArray]) -> None:
    """Splits of a discrete feature, given which of its levels go left at each, (n_levels, n_split_nodes)."""
    count, n_left = len(goes_left), goes_left.sum(axis=0)
    level = np.arange(count)[:, None]
    prefix = (goes_left == (level < n_left)).all(axis=0)
    suffix = (goes_left == (level >= count - n_left)).all(axis=0)
    if (prefix | suffix).all():  # such splits respect the order of the levels, even of categories
        out["kind"][nodes] = SplitKind.AXIS
        out["threshold"][nodes] = np.where(prefix, n_left, count - n_left) - 0.5
        _swap_children(out, nodes[~prefix])
        return
    out["kind"][nodes] = SplitKind.SUBSET
    out["threshold"][nodes] = np.nan
    unique, index = np.unique(goes_left.T, axis=0, return_inverse=True)
    out["set_index"][nodes] = len(sets) + index
    sets.extend(unique)


@dataclass(frozen=True)
class _Cuts:
    """Splits of one numeric feature, each column, threshold and piece of the line once.

    Attributes
    ----------
    split : (n,) int64
        Number of the column and threshold; pieces of one stand beside each other, from left to right.
    column : (n,) int64
        Model column.
    threshold : (n,) float64
        Of the model.
    rising : (n,) bool
        Whether the column rises with the feature in this piece.
    low, high : (n,) int64
        Keys of the ends of the piece, both included.
    missing_left : (n,) bool
        Whether a zero that a sparse matrix leaves out, which the model takes for missing, goes left.
    """

    lattice: Lattice
    split: IntArray
    column: IntArray
    threshold: FloatArray
    rising: BoolArray
    low: IntArray
    high: IntArray
    missing_left: BoolArray


#: How many numbers beside a guess to look for a split first: as far as rounding reaches where nearly equal numbers
#: cancel, and where they do not. A bisection within the nearer takes 11 steps, over all numbers of float64 it takes 64.
_REACHES = (2**24, 2**10)

#: How near to a half, or to a whole number, a threshold between two of them is taken for it: it is rounding of scaled
#: columns that parts them, and each would be a cut of its own.
HALF = 1e-3

#: Halvings of a span that one call of the encoding serves, and the rows up to which a call costs more than they do.
_HALVINGS, _FEW = 3, 2**14

#: Per numeric feature something of its cuts, or of those of them that are asked about.
_PerFeature = dict[int, NDArray[Any]]


class _Columns:
    """Sides of splits of several numeric features, of all of them with each call of the encoding.

    No column depends on two features, so the splits of different features share the rows that are encoded.
    """

    def __init__(self, encoding: Encoding, cuts: dict[int, _Cuts]) -> None:
        self.encoding = encoding
        self.cuts = cuts
        self.all: _PerFeature = {i: np.arange(len(c.column)) for i, c in cuts.items()}
        if cuts:
            self._low, self._high = self.at_several([self.ends("low"), self.ends("high")])
            self.cuts = {i: replace(c, rising=self._low[i] <= self._high[i]) for i, c in cuts.items()}

    def ends(self, which: str) -> _PerFeature:
        """Keys of the "low" or "high" ends of all pieces."""
        return {i: getattr(c, which) for i, c in self.cuts.items()}

    def at(self, keys: _PerFeature, chosen: _PerFeature | None = None) -> _PerFeature:
        """The columns of chosen cuts, or of all, each at a value of its feature."""
        chosen = chosen or self.all
        try:
            return self._at(keys, chosen, apart=False)
        except ModelError:
            # a product of features that no tree splits may overflow where all of them are at their ends
            return self._at(keys, chosen, apart=True)

    def at_several(self, probes: Sequence[_PerFeature], chosen: _PerFeature | None = None) -> list[_PerFeature]:
        """As `at` of each of some keys, by one call of the encoding where they are few."""
        chosen, n = chosen or self.all, len(probes)
        if n * max(map(len, chosen.values())) > _FEW:
            return [self.at(probe, chosen) for probe in probes]
        keys = {i: np.concatenate([probe[i] for probe in probes]) for i in probes[0]}
        found = self.at(keys, {i: np.tile(chosen[i], n) for i in keys})
        return [{i: z.reshape(n, -1)[k] for i, z in found.items()} for k in range(n)]

    def _at(self, keys: _PerFeature, chosen: _PerFeature, *, apart: bool) -> _PerFeature:
        """As `at`, with each feature varied `apart`, in rows of its own, or all at once."""
        sizes = [len(own) for own in keys.values()]
        starts = np.cumsum([0, *sizes[:-1]]) if apart else np.zeros(len(sizes), np.int64)
        rows = np.tile(self.encoding.base, (sum(sizes) if apart else max(sizes), 1))
        for (i, own), start in zip(keys.items(), starts.tolist(), strict=True):
            rows[start : start + len(own), i] = self.cuts[i].lattice.values(own)
        with np.errstate(all="ignore"):  # scalers overflow at the ends of the line
            encoded = self.encoding.encode(self.encoding.space.to_frame(rows))
        return {
            i: encoded[start + np.arange(len(own)), self.cuts[i].column[chosen[i]]]
            for (i, own), start in zip(keys.items(), starts.tolist(), strict=True)
        }

    def below(self, keys: _PerFeature, chosen: _PerFeature | None = None) -> _PerFeature:
        """Whether each value lies on the lower side of its split: left where the column rises, right where it falls."""
        return self._sides(self.at(keys, chosen), chosen)

    def below_several(self, probes: Sequence[_PerFeature], chosen: _PerFeature | None = None) -> list[_PerFeature]:
        """As `below` of each of some keys, by one call of the encoding."""
        return [self._sides(found, chosen) for found in self.at_several(probes, chosen)]

    def _sides(self, found: _PerFeature, chosen: _PerFeature | None) -> _PerFeature:
        out, chosen = {}, chosen or self.all
        for i, z in found.items():
            cuts, at = self.cuts[i], chosen[i]
            left = (z <= cuts.threshold[at]) | (np.isnan(z) & cuts.missing_left[at])
            out[i] = left == cuts.rising[at]
        return out

    def last_below(self) -> dict[int, FloatArray]:
        """Largest number on the lower side of each split in its piece; infinite where all are on one side."""
        if not self.cuts:
            return {}
        first, last = self._sides(self._low, None), self._sides(self._high, None)
        # most thresholds of most models carry over as they are
        near = {i: np.clip(c.lattice.at_most(c.threshold), c.low, c.high) for i, c in self.cuts.items()}
        behind = {i: np.minimum(k + 1, self.cuts[i].high) for i, k in near.items()}
        at, after = self.below_several([near, behind])
        found = {i: at[i] & ~after[i] for i in self.cuts}
        start = {i: np.where(found[i], near[i], c.low) for i, c in self.cuts.items()}
        stop = {i: np.where(first[i] & ~last[i] & ~found[i], c.high, start[i]) for i, c in self.cuts.items()}
        self._narrow(start, stop)
        while moving := {i: open_ for i in start if len(open_ := np.flatnonzero(start[i] + 1 < stop[i]))}:
            probes = _between(
                {i: start[i][at] for i, at in moving.items()}, {i: stop[i][at] for i, at in moving.items()}
            )
            self._close_in(probes, start, stop, moving)
        out, (last_values, moved) = {}, self._last_values(start)
        for i, c in self.cuts.items():
            own = found[i] & (near[i] == c.lattice.at_most(c.threshold)) & ~moved[i]
            cut = np.where(own, c.threshold, last_values[i])
            out[i] = np.where(found[i], cut, np.where(~first[i], -np.inf, np.where(last[i], np.inf, cut)))
        return out

    def _last_values(self, start: _PerFeature) -> tuple[dict[int, FloatArray], dict[int, BoolArray]]:
        """Numbers of the last keys below the splits; of whole ones where between them and the next a line would meet.

        So a margin counts from 5.5 where a model without steps has 5.5, too. The others are columns that are not the
        numbers themselves there, whose thresholds may lie between the same two by chance.
        """
        out = {i: self.cuts[i].lattice.values(keys) for i, keys in start.items()}
        moved = {i: np.zeros(len(keys), bool) for i, keys in start.items()}
        whole = {i: keys for i, keys in start.items() if self.cuts[i].lattice.dtype.kind in "iu"}
        if not whole:
            return out, moved
        behind = {i: np.minimum(keys + 1, self.cuts[i].high) for i, keys in whole.items()}
        here, after = self.at_several([whole, behind])
        for i in whole:
            with np.errstate(all="ignore"):
                part = (self.cuts[i].threshold - here[i]) / (after[i] - here[i])
                half = np.rint(2 * part) / 2
                part = np.where(np.abs(part - half) <= HALF, half, part)
            last = out[i]
            met = last + np.where((part > 0) & (part <= 1), part, 0.0)
            out[i] = np.maximum(last, np.minimum(met, np.nextafter(last + 1, -np.inf)))  # of 2**53 no float is next
            moved[i] = (here[i] != last) | ((behind[i] > whole[i]) & (after[i] != last + 1))
        return out, moved

    def _narrow(self, start: _PerFeature, stop: _PerFeature) -> None:
        """Bring keys below and above each split nearer to where it would lie if its column were linear, in place."""
        if not any(np.any(start[i] + 1 < stop[i]) for i in start):
            return
        guess = self._on_a_line()
        steps = [sign * reach for reach in _REACHES for sign in (-1, 1)]
        probes = [{i: np.clip(k + step, start[i], stop[i]) for i, k in guess.items()} for step in steps]
        self._close_in(probes, start, stop, self.all)

    def _close_in(
        self, probes: Sequence[_PerFeature], start: _PerFeature, stop: _PerFeature, chosen: _PerFeature
    ) -> None:
        """Move keys below and above chosen splits to those of some probes that lie between them, in place."""
        for keys, sides in zip(probes, self.below_several(probes, chosen), strict=True):
            for i, below in sides.items():
                at, key = chosen[i], keys[i]
                inside = (start[i][at] <= key) & (key <= stop[i][at])  # an earlier probe may have moved them
                start[i][at[inside & below]] = key[inside & below]
                stop[i][at[inside & ~below]] = key[inside & ~below]

    def _on_a_line(self) -> _PerFeature:
        """Keys at which each column would meet its threshold if it were linear, as scalers make it but for rounding."""
        space, base = self.encoding.space, self.encoding.base
        ends = {i: np.array(finite_range(space.features[i], base[i])) for i in self.cuts}
        keys = {i: c.lattice.keys(ends[i])[:, None].repeat(len(c.column), axis=1) for i, c in self.cuts.items()}
        low, high = self.at_several([{i: k[side] for i, k in keys.items()} for side in range(2)])
        out = {}
        for i, c in self.cuts.items():
            first, last = c.lattice.values(keys[i])
            with np.errstate(all="ignore"):
                met = first + (c.threshold - low[i]) / (high[i] - low[i]) * (last - first)
            out[i] = np.clip(c.lattice.keys(np.where(np.isfinite(met), met, first)), c.low, c.high)
        return out

    def rounded(self) -> _PerFeature:
        """Cuts of columns that are monotone but for rounding."""
        columns = self.encoding.columns
        inexact = {i: [not columns[j].exact for j in c.column.tolist()] for i, c in self.cuts.items()}
        return {i: np.flatnonzero(at) for i, at in inexact.items() if any(at)}

    def turning_at_threshold(self) -> set[int]:
        """Features of which a piece ends so near to a threshold that rounding might decide the side."""
        out: set[int] = set()
        chosen = self.rounded()
        for end in ("low", "high") if chosen else ():
            keys = {i: getattr(self.cuts[i], end)[at] for i, at in chosen.items()}
            for i, z in self.at(keys, chosen).items():
                t = self.cuts[i].threshold[chosen[i]]
                domain = self.cuts[i].lattice.keys(self.encoding.domain[i]).tolist()
                whole = [self.encoding.columns[j].span(*domain) for j in self.cuts[i].column[chosen[i]].tolist()]
                outer = np.array(whole)[:, 0 if end == "low" else 1]
                with np.errstate(invalid="ignore"):
                    near = np.abs(z - t) <= NEAR * np.maximum(np.abs(z), np.abs(t))
                out |= {i} if np.any(near & (keys[i] != outer)) else set()
        return out

    def wiggles(self, found: dict[int, FloatArray]) -> tuple[dict[tuple[int, int], tuple[float, ...]], set[int]]:
        """Where rounding makes a column go back next to a threshold.

        Sums, products and comparisons are monotone to the last bit; logarithms, powers and interpolations may go back
        by one. The numbers next to each threshold are tried one by one.

        Parameters
        ----------
        found : mapping of feature to (n_cuts,) float64
            As `last_below` gives them.

        Returns
        -------
        mapping of (feature, number of the cut) to the numbers after which the side changes
        set of features whose columns are not settled within `REACH` numbers of some threshold
        """
        chosen = {i: at[np.isfinite(found[i][at])] for i, at in self.rounded().items()}
        chosen = {i: at for i, at in chosen.items() if len(at)}
        if not chosen:
            return {}, set()
        steps = np.arange(1 - REACH, REACH + 1)
        keys = {
            i: np.clip(
                self.cuts[i].lattice.at_most(found[i][at])[:, None] + steps,
                self.cuts[i].low[at][:, None],
                self.cuts[i].high[at][:, None],
            )
            for i, at in chosen.items()
        }
        sides = self.below(
            {i: k.ravel() for i, k in keys.items()}, {i: np.repeat(at, len(steps)) for i, at in chosen.items()}
        )
        out, unsettled = {}, set()
        for i, at in chosen.items():
            below, lattice = sides[i].reshape(keys[i].shape), self.cuts[i].lattice
            for cut, own, row in zip(at.tolist(), keys[i], below, strict=True):
                flips = np.flatnonzero(row[1:] != row[:-1])
                if np.abs(flips - REACH + 1).max(initial=0) > REACH // 2:
                    unsettled.add(i)
                elif len(flips) > 1:
                    out[i, cut] = tuple(lattice.values(own[flips]).tolist())
        return out, unsettled


def _between(low: _PerFeature, high: _PerFeature) -> list[_PerFeature]:
    """Keys that halve the spans between others, and their halves in turn, from outside to inside of each."""
    half = {i: middle(low[i], high[i]) for i in low}
    probes, spans = [half], [(low, half), (half, high)]
    for _ in range(_HALVINGS - 1 if 2**_HALVINGS * max(map(len, low.values())) <= _FEW else 0):
        inner = [({i: middle(a[i], b[i]) for i in a}, a, b) for a, b in spans]
        probes += [m for m, _, _ in inner]
        spans = [span for m, a, b in inner for span in ((a, m), (m, b))]
    return probes


def _lift_numbers(
    ensemble: Ensemble,
    numbers: dict[int, IntArray],
    encoding: Encoding,
    out: dict[str, Any],
    gone: dict[int, BoolArray],
) -> tuple[dict[int, Fold], tuple[int, ...]]:
    """Splits of numeric features, given the nodes of each; those that turn, and the features whose rounding does."""
    cuts, places, gap_left = {}, {}, {}
    for i, nodes in numbers.items():
        side = gone.get(i, np.zeros(len(nodes), bool))
        absent = side if encoding.numbers is None or ensemble.missing_left is None else ensemble.missing_left[nodes]
        pairs = np.column_stack([ensemble.feature[nodes].astype(np.float64), ensemble.threshold[nodes], side, absent])
        unique, places[i] = np.unique(pairs, axis=0, return_inverse=True)
        gap_left[i] = unique[:, 2] > 0
        cuts[i] = _cuts(encoding, i, unique[:, 0].astype(np.int64), unique[:, 1], unique[:, 3] > 0)
    columns = _Columns(encoding, cuts)
    found = columns.last_below()
    wiggles, unsettled = columns.wiggles(found)
    folds: dict[int, Fold] = {}
    for i, nodes in numbers.items():
        own, place = columns.cuts[i], places[i].ravel()
        first, many = np.unique(own.split, return_index=True)[1], np.bincount(own.split)
        bent = {int(own.split[cut]) for j, cut in wiggles if j == i}
        bent |= set(np.flatnonzero((many > 1) | (i in gone)).tolist())
        out["threshold"][nodes] = found[i][first][place]
        falls = ~own.rising[first]
        for k in sorted(bent):
            span = range(int(first[k]), int(first[k] + many[k]))
            fold = _fold(own, span, {cut: wiggles.get((i, cut), (float(found[i][cut]),)) for cut in span})
            if i in gone:
                fold = fold.then(float(np.finfo(np.float64).max), bool(gap_left[i][k]))
            here = nodes[place == k]
            if len(fold.cuts) > 1:
                folds |= dict.fromkeys(here.tolist(), fold)
            out["threshold"][here] = fold.cuts[0] if fold.cuts else np.inf
            falls[k] = not fold.first_left
        _swap_children(out, nodes[falls[place] & ~np.isin(nodes, list(folds))])
    return folds, tuple(sorted(unsettled | columns.turning_at_threshold()))


def _fold(cuts: _Cuts, span: range, changes: dict[int, tuple[float, ...]]) -> Fold:
    """The pieces of one split joined: where along the line it changes sides.

    Parameters
    ----------
    cuts : _Cuts
    span : range
        The pieces of the split.
    changes : mapping of piece to (n,) tuple of float
        Numbers after which the side changes inside the piece; one infinite number where it does not.
    """
    sides: list[bool] = []
    ends: list[float] = []
    for cut in span:
        sides.append((changes[cut][0] > -np.inf) == bool(cuts.rising[cut]))
        for change in filter(np.isfinite, changes[cut]):
            ends.append(change)
            sides.append(not sides[-1])
        ends.append(float(cuts.lattice.values(cuts.high[[cut]])[0]))
    kept = [end for end, side, after in zip(ends[:-1], sides[:-1], sides[1:], strict=True) if side != after]
    return Fold(tuple(kept), sides[0])


def _cuts(encoding: Encoding, i: int, column: IntArray, threshold: FloatArray, missing_left: BoolArray) -> _Cuts:
    lattice = Lattice.of(encoding.space.features[i])
    first, last = lattice.keys(encoding.domain[i]).tolist()
    columns = {j: encoding.columns[j] for j in np.unique(column).tolist()}
    of_column = {j: pieces(c.breaks, *c.span(first, last)) for j, c in columns.items()}
    low = [of_column[j][0] for j in column.tolist()]
    high = [of_column[j][1] for j in column.tolist()]
    split = np.repeat(np.arange(len(column)), [len(k) for k in low])
    return _Cuts(
        lattice,
        split,
        column[split],
        threshold[split],
        np.ones(len(split), bool),
        np.concatenate(low),
        np.concatenate(high),
        missing_left[split],
    )


def _swap_children(out: dict[str, Any], nodes: IntArray) -> None:
    out["left"][nodes], out["right"][nodes] = out["right"][nodes], out["left"][nodes].copy()


def check_lift(
    lifted: Lifted, ensemble: Ensemble, encoding: Encoding, supplied: frozenset[int] = frozenset(), seed: int = 0
) -> None:
    """Send points at and next to every threshold through both ensembles: they must reach the same leaves.

    Parameters
    ----------
    lifted : Lifted
        Over features.
    ensemble : Ensemble
        The same trees over model columns.
    encoding : Encoding
    supplied : frozenset of int
        As in `lift`.
    seed : int
        Of the random values of the other features.

    Raises
    ------
    ConformanceError
        Naming the feature and value at which they part.
    """
    rng = np.random.default_rng(seed)
    space, trees = encoding.space, lifted.ensemble
    rows: list[FloatArray] = []
    for i, feature in enumerate(space.features):
        tested = np.any(trees.feature[trees.kind != SplitKind.LEAF] == i) or trees.is_oblique
        if feature.discrete:  # the encoder may refuse levels of a feature that no tree asks for
            values = np.arange(len(feature.levels) if tested else 0, dtype=np.float64)
        else:
            cuts = np.unique(trees.threshold[(trees.feature == i) & (trees.kind == SplitKind.AXIS)])
            lattice = Lattice.of(feature)
            keys = lattice.at_most(cuts[np.abs(cuts) < np.finfo(np.float64).max])
            values = lattice.values(np.concatenate([keys, keys + 1]))
            if trees.is_oblique:
                between = np.linspace(*finite_range(feature, encoding.base[i]), 64)
                values = np.concatenate([values, lattice.values(lattice.at_most(between))])
        rows.append(np.append(values, feature.missing_code) if i in supplied else values)
    count = max(1, *map(len, rows))  # scalers refuse a table without rows
    points = np.column_stack(
        [
            rng.permutation(np.resize(v, count)) if len(v) else np.full(count, encoding.base[i])
            for i, v in enumerate(rows)
        ]
    )
    frame = space.to_frame(points)
    points = space.from_frame(frame)  # a narrow dtype may have rounded
    points = np.where(np.isnan(points), [f.missing_code for f in space.features], points)
    wanted = ensemble.apply(encoding.encode(frame))
    found = lifted.apply(points)
    wrong = np.flatnonzero((wanted != found).any(axis=1) & ~uncertain(trees, points))
    if len(wrong):
        gapless = [space.names[i] for i in sorted(supplied) if not holds_gaps(space.features[i].dtype)]
        floats = f", or give {listed(gapless)} as floats: a gap makes another dtype of its column" if gapless else ""
        raise ConformanceError(
            "the splits of the model could not be carried over to the features exactly; the first point that parts "
            f"them: {frame.iloc[int(wrong[0])].to_dict()}. Give ocf the preprocessed table instead of the Pipeline"
            f"{floats}"
        )

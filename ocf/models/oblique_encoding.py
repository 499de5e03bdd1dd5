"""Oblique splits from model columns to features: each column becomes a line of its feature, or a number per level.

A split ``w . z <= t`` over the model columns z is written over the features x that the user knows. A column that a
numeric feature moves must be affine in it, ``z = a x + c`` (the values themselves, or a scaler); the columns of a
discrete feature contribute one number for each level; a column that nothing moves is a constant and goes to the
threshold; one that adds up columns at an earlier place is what those are there. What rounding may do to a and c, and to
such a sum, goes into the split's slack.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.errors import DataError, UnsupportedModelError
from ocf.models.encoding import Encoding, finite_range
from ocf.trees.ensemble import Ensemble, SplitKind

#: Numbers at which the encoding of a numeric feature is compared with a line.
_PROBES = 65


@dataclass(frozen=True)
class _Line:
    """``z = slope x + offset`` up to `slack` everywhere on the feature's range."""

    slope: float
    offset: float
    slack: float


def as_hyperplanes(ensemble: Ensemble, encoding: Encoding) -> Ensemble:
    """Splits of columns that add up others as hyperplanes, one row of one weight for each column, over model columns.

    Parameters
    ----------
    ensemble : Ensemble
        Over model columns.
    encoding : Encoding
    """
    added = np.array([c.mixture is not None for c in encoding.columns], bool)
    axis = np.flatnonzero(ensemble.kind == SplitKind.AXIS)
    nodes = axis[added[ensemble.feature[axis]]] if added.any() else axis[:0]
    if not len(nodes):
        return ensemble
    kind, feature, index = ensemble.kind.copy(), ensemble.feature.copy(), ensemble.oblique_index.copy()
    kind[nodes], feature[nodes] = SplitKind.OBLIQUE, -1
    columns, row = np.unique(ensemble.feature[nodes], return_inverse=True)
    index[nodes] = len(ensemble.oblique_slack) + row
    ends = ensemble.oblique_indptr[-1] + 1 + np.arange(len(columns))
    return replace(
        ensemble,
        kind=kind,
        feature=feature,
        oblique_index=index,
        oblique_indptr=np.append(ensemble.oblique_indptr, ends),
        oblique_indices=np.append(ensemble.oblique_indices, columns),
        oblique_data=np.append(ensemble.oblique_data, np.ones(len(columns))),
        oblique_codes=np.append(ensemble.oblique_codes, np.full(len(columns), -1, np.int32)),
        oblique_slack=np.append(ensemble.oblique_slack, np.zeros(len(columns))),
    )


def lift_oblique(ensemble: Ensemble, encoding: Encoding) -> dict[str, Any]:
    """The arrays of the oblique splits over features instead of model columns.

    Parameters
    ----------
    ensemble : Ensemble
        Over model columns.
    encoding : Encoding

    Returns
    -------
    dict
        ``threshold`` (of all nodes) and the weights of an `Ensemble`, in the rows that they had.

    Raises
    ------
    UnsupportedModelError
        The encoding of a numeric feature in a split is not affine.
    """
    threshold = ensemble.threshold.copy()
    at = np.flatnonzero(ensemble.kind == SplitKind.OBLIQUE)
    used = np.unique(np.concatenate([*(ensemble.oblique_entries(v)[0] for v in at.tolist()), np.zeros(0, np.int32)]))
    sums = np.array([encoding.columns[j].mixture is not None for j in used.tolist()], bool)
    encoding.refuse_mixed(used[~sums].astype(np.int64), ensemble.feature_names)
    tables = _Tables(encoding, used.astype(np.int64))
    indptr, indices, codes, data, slack = [0], [], [], [], []
    for row in range(len(ensemble.oblique_slack)):
        nodes = at[ensemble.oblique_index[at] == row]
        columns, _, weights = ensemble.oblique_entries(int(nodes[0])) if len(nodes) else (at[:0], at[:0], np.zeros(0))
        entries, shift, error = tables.lifted(columns.astype(np.int64), weights)
        error += float(ensemble.oblique_slack[row])
        moved = shift[shift != 0]
        if len(moved):
            size = float(np.abs(moved).sum() + np.abs(threshold[nodes]).max())
            threshold[nodes] = _moved(threshold[nodes], moved.sum())
            error += 2.0**-53 * (len(moved) + 2 + len(nodes)) * size
        kept = [(i, code, value) for (i, code), value in entries.items() if value]
        indices += [i for i, _, _ in kept]
        codes += [code for _, code, _ in kept]
        data += [value for _, _, value in kept]
        indptr.append(len(data))
        slack.append(error)
    return {
        "threshold": threshold,
        "oblique_indptr": np.array(indptr, np.int64),
        "oblique_indices": np.array(indices, np.int32),
        "oblique_codes": np.array(codes, np.int32),
        "oblique_data": np.array(data, np.float64),
        "oblique_slack": np.array(slack, np.float64),
    }


def _moved(threshold: FloatArray, by: float) -> FloatArray:
    """Thresholds less a number; those that differ go on to differ, in their order, for rows share a total."""
    distinct, place = np.unique(threshold, return_inverse=True)
    out = distinct - by
    for k in range(1, len(out)):
        out[k] = max(out[k], np.nextafter(out[k - 1], np.inf))
    return out[place.ravel()]


@dataclass(frozen=True)
class _Sum:
    """``entries . x + offset`` up to `slack` everywhere on the features' ranges; entries by feature and code."""

    entries: dict[tuple[int, int], float]
    offset: float
    slack: float


class _Tables:
    """Lines of the numeric features that move some columns, all varied at once, and level tables, each found once.

    Parameters
    ----------
    encoding : Encoding
        To the place of the columns.
    used : (n,) int64
        The columns.
    """

    def __init__(self, encoding: Encoding, used: IntArray) -> None:
        self._encoding = encoding
        self._levels: dict[int, FloatArray] = {}
        self._sums: dict[int, _Sum] = {}
        self._places: dict[int, _Tables] = {}
        self._values = np.tile(encoding.base, (_PROBES, 1))
        owners = [i for i in np.unique(encoding.column_feature[used]).tolist() if i >= 0]
        self._numbers = [i for i in owners if not encoding.space.features[i].discrete]
        for i in self._numbers:
            feature = encoding.space.features[i]
            values = np.linspace(*finite_range(feature, encoding.base[i]), _PROBES)
            self._values[:, i] = values.astype(feature.float_dtype).astype(np.float64)
        # no column that is asked for depends on two features, so one encoding serves all of them
        self._encoded = (
            encoding.encode(encoding.space.to_frame(self._values)) if self._numbers else np.empty((_PROBES, 0))
        )

    @cached_property
    def _constant(self) -> FloatArray:
        """All columns of the base row, (n_columns,)."""
        return self._encoding.encode(self._encoding.space.to_frame(self._encoding.base))[0]

    def lifted(self, columns: IntArray, weights: FloatArray) -> tuple[dict[tuple[int, int], float], FloatArray, float]:
        """Weights by feature and code, the constants that go to the threshold, and a bound on their error.

        Parameters
        ----------
        columns : (n,) int64
        weights : (n,) float64
        """
        encoding = self._encoding
        added = np.array([encoding.columns[j].mixture is not None for j in columns.tolist()], bool)
        owner = np.where(added, -2, encoding.column_feature[columns])
        shift = weights[owner == -1] * self._constant[columns[owner == -1]]
        entries: dict[tuple[int, int], float] = {}
        error = 0.0
        for i in np.unique(owner[owner >= 0]).tolist():
            own, w = columns[owner == i], weights[owner == i]
            if encoding.space.features[i].discrete:
                values = self.levels(i)[:, own]
                terms = values * w
                for code, value in enumerate(terms.sum(axis=1).tolist()):
                    entries[i, code] = value
                # one indicator at a time is exact
                if not np.isin(values, (0, 1)).all() or (terms != 0).sum(axis=1).max() > 1:
                    error += 2.0**-52 * len(own) * float(np.abs(terms).sum(axis=1).max())
                continue
            lines = [self.line(i, int(j)) for j in own]
            entries[i, -1] = sum(a.slope * b for a, b in zip(lines, w.tolist(), strict=True))
            shift = np.append(shift, [a.offset * b for a, b in zip(lines, w.tolist(), strict=True)])
            error += sum(a.slack * abs(b) for a, b in zip(lines, w.tolist(), strict=True))
        for j, by in zip(columns[added].tolist(), weights[added].tolist(), strict=True):
            total = self.sum_of(j)
            for key, value in total.entries.items():
                entries[key] = entries.get(key, 0.0) + by * value
            shift = np.append(shift, by * total.offset)
            error += abs(by) * total.slack
        return entries, shift, error

    def levels(self, i: int) -> FloatArray:
        """Model columns at each level of a discrete feature, (n_levels, n_columns)."""
        if i not in self._levels:
            n = len(self._encoding.space.features[i].levels)
            self._levels[i] = self._encoding.varied(i, np.arange(n, dtype=np.float64))
        return self._levels[i]

    def line(self, i: int, column: int) -> _Line:
        """The line of a column that a numeric feature moves."""
        feature = self._encoding.space.features[i]
        if not self._encoding.columns[column].affine:
            step = self._encoding.columns[column].bent_by or "the preprocessing"
            raise UnsupportedModelError(
                f"{step} makes no line of feature {feature.name!r}, so that what the model adds up of its column is no "
                "hyperplane in the feature: give ocf the table after that step, train the model without it, or, of a "
                "stack, with passthrough=False"
            )
        values, z = self._values[:, i], self._encoded[:, column]
        if np.array_equal(z, values):
            return _Line(1.0, 0.0, 0.0)
        slope = (z[-1] - z[0]) / (values[-1] - values[0])
        offset = z[0] - slope * values[0]
        # a scaler rounds twice or three times, in the precision of the column
        unit = 2.0 ** (-24 if feature.float_dtype == np.float32 else -53)
        size = float(np.abs(slope * values).max() + abs(offset))
        error = float(np.abs(z - (slope * values + offset)).max())
        if error > 64 * unit * size:
            raise UnsupportedModelError(
                f"the preprocessing makes no line of feature {feature.name!r}, so that what the model adds up of its "
                "column is no hyperplane in the feature: give ocf the table after it"
            )
        return _Line(float(slope), float(offset), 2 * error + 8 * unit * size)

    def sum_of(self, column: int) -> _Sum:
        """What a column that adds up others is over the features."""
        if column not in self._sums:
            mixture = self._encoding.columns[column].mixture
            assert mixture is not None
            used = np.flatnonzero(mixture.weights)
            inner = self._before(column)
            entries, shift, error = inner.lifted(used, mixture.weights[used])
            reach = np.zeros(len(mixture.weights))
            reach[used] = [inner.reach(j) for j in used.tolist()]
            # the weights of one feature in several columns were added up here, and rounded as well
            slack = error + mixture.error(reach)
            self._sums[column] = _Sum(entries, float(shift.sum()) + mixture.offset, slack)
        return self._sums[column]

    def _before(self, column: int) -> _Tables:
        """The tables at the place whose columns one adds up."""
        mixture, encoding = self._encoding.columns[column].mixture, self._encoding
        assert mixture is not None
        place = mixture.place
        if id(place) not in self._places:
            before = replace(encoding, encode=place.numbers, numbers=None, read=lambda *_: place.columns)
            tables = _Tables(before, np.arange(len(place.columns)))
            self._places[id(place)] = tables
        return self._places[id(place)]

    def reach(self, column: int) -> float:
        """Largest magnitude of a column, on thrice the features' ranges: a row asked about may lie outside.

        Raises
        ------
        DataError
            A number that moves it has no finite bounds.
        """
        shape, encoding = self._encoding.columns[column], self._encoding
        if shape.mixture is not None:
            used = np.flatnonzero(shape.mixture.weights)
            before = self._before(column)
            sizes = [before.reach(j) for j in used.tolist()]
            return float(shape.mixture.sizes[used] @ np.array(sizes).reshape(-1) + shape.mixture.offset_size)
        if shape.constant:
            return abs(float(self._constant[column]))
        feature = encoding.space.features[shape.feature]
        if shape.discrete:
            return float(np.abs(self.levels(shape.feature)[:, column]).max())
        if not (np.isfinite(feature.lower) and np.isfinite(feature.upper)):
            raise DataError(
                f"feature {feature.name!r}: a step that adds up columns needs finite bounds, for example "
                "bounds = [0, 100]"
            )
        values = self._encoded[:, column]
        return float(np.abs(values).max() + abs(values[-1] - values[0]))

"""Oblique splits from model columns to features: each column becomes a line of its feature, or a number per level.

A split ``w . z <= t`` over the model columns z is written over the features x that the user knows. A column that a
numeric feature moves must be affine in it, ``z = a x + c`` (the values themselves, or a scaler); the columns of a
discrete feature contribute one number for each level; a column that nothing moves is a constant and goes to the
threshold. What rounding may do to a and c goes into the split's slack.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ocf.arrays import FloatArray
from ocf.errors import UnsupportedModelError
from ocf.trees.ensemble import Ensemble, SplitKind

if TYPE_CHECKING:
    from ocf.models.encoding import Encoding


#: Numbers at which the encoding of a numeric feature is compared with a line.
_PROBES = 65


@dataclass(frozen=True)
class _Line:
    """``z = slope x + offset`` up to `slack` everywhere on the feature's range."""

    slope: float
    offset: float
    slack: float


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
        ``threshold`` (of all nodes) and the ``oblique_*`` arrays of an `Ensemble`.

    Raises
    ------
    UnsupportedModelError
        The encoding of a numeric feature in a split is not affine.
    """
    threshold = ensemble.threshold.copy()
    constant = encoding.encode(encoding.space.to_frame(encoding.base))[0]
    weighed = [ensemble.oblique_entries(v)[0] for v in np.flatnonzero(ensemble.kind == SplitKind.OBLIQUE).tolist()]
    encoding.refuse_mixed(np.concatenate([*weighed, np.zeros(0, np.int64)]).astype(int), ensemble.feature_names)
    owners = np.unique(encoding.column_feature[np.concatenate(weighed)]) if weighed else np.zeros(0, np.int64)
    tables = _Tables(encoding, [i for i in owners.tolist() if i >= 0 and not encoding.space.features[i].discrete])
    indptr, indices, codes, data, slack = [0], [], [], [], []
    for v in np.flatnonzero(ensemble.kind == SplitKind.OBLIQUE).tolist():
        entries, shift, error = _lifted_weights(ensemble, v, encoding, tables, constant)
        moved = shift[shift != 0]
        if len(moved):
            size = float(np.abs(moved).sum() + abs(threshold[v]))
            threshold[v] -= moved.sum()
            error += 2.0**-53 * (len(moved) + 2) * size
        kept = [(i, code, value) for (i, code), value in entries.items() if value]
        indices += [i for i, _, _ in kept]
        codes += [code for _, code, _ in kept]
        data += [value for _, _, value in kept]
        indptr.append(len(data))
        slack.append(error)
    order = np.flatnonzero(ensemble.kind == SplitKind.OBLIQUE)
    index = np.full(len(ensemble.kind), -1, np.int32)
    index[order] = np.arange(len(order))
    return {
        "threshold": threshold,
        "oblique_index": index,
        "oblique_indptr": np.array(indptr, np.int64),
        "oblique_indices": np.array(indices, np.int32),
        "oblique_codes": np.array(codes, np.int32),
        "oblique_data": np.array(data, np.float64),
        "oblique_slack": np.array(slack, np.float64),
    }


def _lifted_weights(
    ensemble: Ensemble, v: int, encoding: Encoding, tables: _Tables, constant: FloatArray
) -> tuple[dict[tuple[int, int], float], FloatArray, float]:
    """Weights of a node by feature and code, the constants that go to its threshold, and a bound on their error."""
    columns, _, weights = ensemble.oblique_entries(v)
    owner = encoding.column_feature[columns]
    shift = weights[owner < 0] * constant[columns[owner < 0]]
    entries: dict[tuple[int, int], float] = {}
    error = float(ensemble.oblique_slack[ensemble.oblique_index[v]])
    for i in np.unique(owner[owner >= 0]).tolist():
        own, w = columns[owner == i], weights[owner == i]
        if encoding.space.features[i].discrete:
            values = tables.levels(i)[:, own]
            terms = values * w
            for code, value in enumerate(terms.sum(axis=1).tolist()):
                entries[i, code] = value
            # one indicator at a time is exact
            if not np.isin(values, (0, 1)).all() or (terms != 0).sum(axis=1).max() > 1:
                error += 2.0**-52 * len(own) * float(np.abs(terms).sum(axis=1).max())
            continue
        lines = [tables.line(i, int(j)) for j in own]
        entries[i, -1] = sum(a.slope * b for a, b in zip(lines, w.tolist(), strict=True))
        shift = np.append(shift, [a.offset * b for a, b in zip(lines, w.tolist(), strict=True)])
        error += sum(a.slack * abs(b) for a, b in zip(lines, w.tolist(), strict=True))
    return entries, shift, error


class _Tables:
    """Lines of the numeric features `numbers`, all varied at once, and level tables, each found once."""

    def __init__(self, encoding: Encoding, numbers: list[int]) -> None:
        from ocf.models.encoding import finite_range

        self._encoding = encoding
        self._levels: dict[int, FloatArray] = {}
        self._values = np.tile(encoding.base, (_PROBES, 1))
        for i in numbers:
            feature = encoding.space.features[i]
            values = np.linspace(*finite_range(feature, encoding.base[i]), _PROBES)
            self._values[:, i] = values.astype(feature.float_dtype).astype(np.float64)
        # no column depends on two features, so one encoding serves all of them
        self._encoded = encoding.encode(encoding.space.to_frame(self._values)) if numbers else np.empty((_PROBES, 0))

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
            raise UnsupportedModelError(
                f"the preprocessing of feature {feature.name!r} is not linear, so an oblique split of its column is no "
                "hyperplane in the feature: give ocf the table after the preprocessing instead"
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
                f"the preprocessing of feature {feature.name!r} is not linear, so an oblique split of its column is no "
                "hyperplane in the feature: give ocf the table after the preprocessing instead"
            )
        return _Line(float(slope), float(offset), 2 * error + 8 * unit * size)

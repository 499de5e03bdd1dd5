"""Sums that floats hold exactly in whatever order they are added, and rows whose side rounding may decide."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.trees.ensemble import Ensemble, SplitKind

#: Whole numbers up to this one are floating-point numbers, and up to half of it even where their sum was rounded.
WHOLE = 2.0**53

#: Rows times nodes that are looked at together.
AT_ONCE = 2**20


def units(values: ArrayLike) -> FloatArray:
    """The largest power of two of which each value is a multiple, inf for zero and for what is not finite.

    Parameters
    ----------
    values : array_like of float
    """
    given = np.asarray(values, np.float64)
    fraction, exponent = np.frexp(np.where(np.isfinite(given), given, 0.0))
    whole = np.abs(fraction * WHOLE).astype(np.int64)
    lowest = np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
    return np.asarray(np.where(whole == 0, np.inf, lowest))


def unit_of_totals(weights: FloatArray, value_units: FloatArray, threshold: float) -> FloatArray:
    """Power of two of which a threshold, and all weighted sums of values that it is compared with, are multiples, (n,).

    Parameters
    ----------
    weights : (k,) float64
    value_units : (n, k) float64
        Of which the values are multiples.
    threshold : float
    """
    return np.asarray(np.minimum((units(weights) * value_units).min(axis=1, initial=np.inf), units(threshold)))


def is_exact(unit: Any, size: Any) -> Any:
    """Whether sums of multiples of a unit are exact, partial ones included.

    Parameters
    ----------
    unit : float or float array
    size : float or float array
        Sum of the magnitudes of what is added, at least, up to the rounding of that sum.
    """
    return (unit > 0) & (size <= WHOLE / 2 * unit)


def uncertain(ensemble: Ensemble, x: FloatArray) -> BoolArray:
    """Rows so close to an oblique split of their path that rounding may decide their side, (n,).

    Parameters
    ----------
    ensemble : Ensemble
    x : (n, n_features) float64
    """
    out = np.zeros(len(x), bool)
    if not ensemble.is_oblique:
        return out
    reached, nodes = ensemble.apply(x), np.flatnonzero(ensemble.kind == SplitKind.OBLIQUE)
    of_total = np.argsort(ensemble.oblique_index[nodes], kind="stable")
    for own in np.split(nodes[of_total], np.flatnonzero(np.diff(ensemble.oblique_index[nodes[of_total]])) + 1):
        features, codes, weights = ensemble.oblique_entries(int(own[0]))  # several nodes may share a total
        terms = ensemble.oblique_terms(int(own[0]), x)
        total, sizes = terms.sum(axis=1), np.abs(terms).sum(axis=1)
        for v in own[_near(ensemble, own, total, sizes)].tolist():
            gap = np.abs(total - ensemble.threshold[v])
            near = np.flatnonzero(gap <= 2 * ensemble.oblique_error_bound(v, sizes))
            if not ensemble.oblique_slack[ensemble.oblique_index[v]]:
                threshold = float(ensemble.threshold[v])
                unit = unit_of_totals(weights, np.where(codes < 0, units(x[near][:, features]), 1.0), threshold)
                near = near[~is_exact(unit, sizes[near] + abs(threshold))]
            out[near[np.isin(reached[near, ensemble.node_tree[v]], ensemble.leaves_below(v))]] = True
    return out


def _near(ensemble: Ensemble, nodes: IntArray, total: FloatArray, sizes: FloatArray) -> BoolArray:
    """To which of some nodes with the same total any row is near, (n_nodes,)."""
    parts = np.array_split(nodes, -(-nodes.size * total.size // AT_ONCE) or 1)
    bounds = (2 * ensemble.oblique_error_bound(own, sizes[:, None]) for own in parts)
    gaps = (np.abs(total[:, None] - ensemble.threshold[own]) for own in parts)
    return np.concatenate([(gap <= bound).any(axis=0) for gap, bound in zip(gaps, bounds, strict=True)])

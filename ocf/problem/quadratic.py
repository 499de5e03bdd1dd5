r"""Costs that couple changes: convex quadratic ones, as sums of squares, and the Mahalanobis distances.

.. math:: \delta' Q \delta = \sum_i d_i \delta_i^2 + \sum_k \bigl(\sum_i c_{ki} \delta_i\bigr)^2

The first part is as large as Q allows: being a sum over features, it prices cells by themselves, so that bounds from
cells are worth something. The second part is a sum of squares of few numbers, each of which a model approximates from
below by tangents, which converges much faster than tangents of the whole (Hijazi, Bonami and Ouorou, An outer-inner
approximation for separable mixed-integer nonlinear programs, 2014). A sparse Q whose diagonal dominates is the sum of
``|q_ij| (delta_i +- delta_j)**2`` and what is left of the diagonal; any other comes from eigenvectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocf.arrays import FloatArray
from ocf.errors import ProblemError
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace
from ocf.problem.costs import DISTANCES, Cost
from ocf.support.amounts import real_number
from ocf.support.messages import listed

#: Digits that are kept of coefficients: the cost is that of the digits, and exact fractions stay short.
DIGITS = 12

#: Relative size of an eigenvalue that counts as 0, and of one that counts as negative.
RANK, NEGATIVE = 1e-12, 1e-9

#: Relative spread of the data, squared, along a direction in which they lie flat, and a share in one that is none.
FLAT, _TINY = 1e-9, 1e-6

_MIX = "mix it with a norm, such as {'mahalanobis': 1, 'l1': 1}"


def quadratic_cost(names: Sequence[str], Q: ArrayLike, *, l0: float = 0.0, l1: float = 0.0, l2: float = 0.0) -> Cost:
    """Cost ``delta' Q delta`` of the changes, in the user's units, and perhaps norms besides.

    Parameters
    ----------
    names : sequence of str, (n,)
        Features with numbers; those that are not named cost nothing by this.
    Q : (n, n) array
        Positive semidefinite.
    l0, l1, l2 : float
        Coefficients of the norms.

    Raises
    ------
    ProblemError
        Q has another shape, or is no convex quadratic form.
    """
    matrix = np.asarray(Q, np.float64)
    if matrix.shape != (len(names), len(names)) or not np.isfinite(matrix).all():
        raise ProblemError(f"a quadratic cost of {len(names)} features needs a finite matrix of that size")
    matrix = (matrix + matrix.T) / 2
    # features are measured in units in which each costs 1 by itself
    size = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    unit = np.where(size > 0, size, 1.0)
    scaled = matrix / np.outer(unit, unit)
    pairs = _dominated(names, scaled, unit)
    if pairs is not None:
        return Cost(l0, l1, l2, *pairs)
    least = float(np.linalg.eigvalsh(scaled)[0])
    if least < -NEGATIVE:
        raise ProblemError("the quadratic cost is not convex: its matrix has a negative eigenvalue")
    share = max(least, 0.0)  # its eigenvector is no form then, where a share of almost all would leave a tiny one
    values, vectors = np.linalg.eigh(scaled - share * np.eye(len(names)))
    kept = values > RANK * max(float(values[-1]), 1.0)
    forms = (np.sqrt(values[kept])[:, None] * vectors[:, kept].T) * unit
    squares = [(name, _short(share * u * u)) for name, u in zip(names, unit, strict=True) if share > 0]
    terms = [tuple((n, _short(c)) for n, c in zip(names, form, strict=True) if _short(c)) for form in forms]
    return Cost(l0, l1, l2, squares=tuple(squares), forms=tuple(terms))


def _dominated(names: Sequence[str], scaled: FloatArray, unit: FloatArray) -> tuple[Any, Any] | None:
    """Squares and forms of two features each, for a sparse matrix whose diagonal of ones dominates; None for others."""
    rows, columns = np.nonzero(np.triu(scaled, 1))
    q = scaled[rows, columns]
    rest = np.diag(scaled) - np.bincount(rows, np.abs(q), len(unit)) - np.bincount(columns, np.abs(q), len(unit))
    # eigenvectors have n numbers each, pairs two, and fewer numbers are the better form
    if 4 * len(q) > len(unit) ** 2 or rest.min(initial=0.0) < -RANK:
        return None
    squares = [(names[i], _short(rest[i] * unit[i] ** 2)) for i in np.flatnonzero(rest > RANK).tolist()]
    forms = [
        ((names[i], _short(c * unit[i])), (names[j], _short(np.copysign(c, value) * unit[j])))
        for i, j, value, c in zip(rows.tolist(), columns.tolist(), q.tolist(), np.sqrt(np.abs(q)).tolist(), strict=True)
    ]
    return tuple(squares), tuple(forms)


def mahalanobis(
    space: FeatureSpace,
    coded: FloatArray,
    squared: float = 1.0,
    absolute: float = 0.0,
    *,
    l0: float = 0.0,
    l1: float = 0.0,
    l2: float = 0.0,
) -> Cost:
    r"""Mahalanobis distances by the covariance of known rows, and perhaps norms besides.

    .. math:: squared \cdot \delta' \Sigma^{-1} \delta + absolute \cdot \| R^{-1/2} S^{-1} \delta \|_1, \qquad
        \Sigma = S R S

    with S the standard deviations and R the correlations, so that both keep their meaning in other units. The second is
    linear: Kanamori, Takagi, Kobayashi and Arimura, DACE: distribution-aware counterfactual explanation (2020).

    Parameters
    ----------
    space : FeatureSpace
    coded : (n, n_features) float64
        Rows that lack a number, or hold a code in its place, are left out.
    squared : float
        Weight of the squared distance.
    absolute : float
        Weight of the sum of absolute values.
    l0, l1, l2 : float
        Coefficients of the norms.

    Raises
    ------
    ProblemError
        There are too few rows, or nothing prices a change: of a category, or along which the rows do not spread.
    """
    given, coded = len(coded), rows_with_numbers(space, coded)
    if len(coded) < 2:
        cause = f": {given - len(coded)} of {given} rows lack a number" if given > len(coded) else ""
        raise ProblemError(f"the Mahalanobis distance needs data{cause}: give the Explainer the training data")
    numeric = [i for i, feature in enumerate(space.features) if _takes_part(feature)]
    alone = not (l0 or l1 or l2)
    if alone:
        _refuse_unpriced(space)
    places: FloatArray = np.array(
        [
            space.features[i].positions[coded[:, i].astype(int)] if space.features[i].discrete else coded[:, i]
            for i in numeric
        ],
        np.float64,
    ).reshape(len(numeric), len(coded))
    spread: FloatArray = places.std(axis=1)
    size: FloatArray = np.where(spread > 0, spread, 1.0)
    correlations = np.cov(places / size[:, None]).reshape(len(numeric), len(numeric))
    if alone:
        _refuse_without_spread([space.features[i] for i in numeric], correlations)
    moving = np.flatnonzero(spread > 0)
    size, names = size[moving], [space.names[numeric[k]] for k in moving]
    own = np.linalg.pinv(correlations[np.ix_(moving, moving)], rcond=FLAT, hermitian=True)
    inverse = np.asarray(own, np.float64)
    if not squared:
        cost = Cost(l0, l1, l2, absolutes=_absolutes(names, inverse, absolute / size))
    else:
        cost = quadratic_cost(names, squared * inverse / np.outer(size, size), l0=l0, l1=l1, l2=l2)
        if absolute:
            cost = replace(cost, absolutes=_absolutes(names, inverse, absolute / size))
    return cost


def _refuse_unpriced(space: FeatureSpace) -> None:
    """Refuse a distance by itself where a feature without numbers may change, or where weights would have no effect."""
    bare = [f.name for f in space.features if not has_numbers(f) and f.action != "fixed" and f.cost is None]
    if bare:
        raise ProblemError(
            f"the Mahalanobis distance has no price for a change of {bare[0]!r}: {_MIX}"
            + ", or have indicator columns read one by one (groups=False)"
            * bool(space.reading is not None and bare[0] in space.reading.groups)
        )
    weighted = [f.name for f in space.features if _takes_part(f) and (f.weight_down, f.weight_up) != (1.0, 1.0)]
    if weighted:
        raise ProblemError(
            f"the Mahalanobis distance takes no weights, and {weighted[0]!r} has one: leave it out, or {_MIX}, which "
            "takes them"
        )


def _refuse_without_spread(features: Sequence[Feature], correlations: FloatArray) -> None:
    """Refuse a distance by itself where features may change along directions in which the data lie flat.

    Parameters
    ----------
    features : sequence of Feature, (n,)
    correlations : (n, n) float64
    """
    values, vectors = np.linalg.eigh(correlations)
    flat = vectors[:, values <= FLAT * values.max(initial=0.0)]
    taking_part = np.abs(flat).max(axis=1, initial=0.0) > _TINY
    free = [f.name for f, own in zip(features, taking_part, strict=True) if own and f.action != "fixed"]
    if free:
        raise ProblemError(
            "the data do not spread "
            + (f"in {free[0]!r}" if len(free) == 1 else f"apart in {listed(free)}, of which one follows from others")
            + f", so that the Mahalanobis distance has no price for such changes: let features stay, or {_MIX}"
        )


def _absolutes(
    names: Sequence[str], inverse: FloatArray, unit: FloatArray
) -> tuple[tuple[tuple[str, float], ...], ...]:
    """Rows of the symmetric root of a matrix, in other units."""
    values, vectors = np.linalg.eigh(inverse)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    # what is a rounding of 0 would only couple features that are not
    root[np.abs(root) <= RANK * np.abs(root).max(initial=0.0)] = 0.0
    rows = [tuple((n, _short(c)) for n, c in zip(names, row * unit, strict=True) if c) for row in root]
    return tuple(row for row in rows if row)


def parse_norm(norm: Any, space: FeatureSpace, coded: FloatArray) -> Cost:
    """Cost from a norm that may be, or be mixed with, ``"mahalanobis"`` and ``"mahalanobis_l1"``.

    Parameters
    ----------
    norm : str, sequence or mapping
        As `Cost.parse` takes it, or one of `DISTANCES` in its place.
    space : FeatureSpace
    coded : (n, n_features) float64
        Rows of the data, from which the covariance is estimated.
    """
    if not names_mahalanobis(norm):
        return _fitting(Cost.parse(norm), space)
    mix = {norm: 1.0} if isinstance(norm, str) else norm
    rest = {name: value for name, value in mix.items() if name not in DISTANCES}
    if rest:
        Cost.parse(rest)
    weights = [real_number(mix.get(name, 0.0)) for name in DISTANCES]
    for name in DISTANCES:
        if name in mix and not 0 < real_number(mix[name]) < np.inf:
            raise ProblemError(f"the weight of {name!r} is a positive number, not {mix[name]!r}")
    return mahalanobis(space, coded, *weights, **rest)


def names_mahalanobis(norm: Any) -> bool:
    """Whether a norm is, or is mixed with, one of `DISTANCES`."""
    return (
        norm in DISTANCES if isinstance(norm, str) else isinstance(norm, Mapping) and any(n in norm for n in DISTANCES)
    )


def rows_with_numbers(space: FeatureSpace, coded: FloatArray) -> FloatArray:
    """Coded rows that lack no number and hold no code in its place: those of which a covariance is taken.

    Parameters
    ----------
    space : FeatureSpace
    coded : (n, n_features) float64
    """
    lacks = [np.isnan(coded[:, i]) | f.is_special(coded[:, i]) for i, f in enumerate(space.features) if _takes_part(f)]
    return coded[~np.any(lacks, axis=0)] if lacks else coded


def _fitting(cost: Cost, space: FeatureSpace) -> Cost:
    """The cost, once what couples features names such with numbers, and none with a cost of its own."""
    for name in cost.coupled_names:
        feature = space.features[space.index(name)]
        if not has_numbers(feature):
            raise ProblemError(f"a cost of sums of changes needs numbers, and {name!r} is {feature.kind}")
        if feature.cost is not None:
            raise ProblemError(f"{name!r} has a cost of its own in place of the norm: leave it out of the one of sums")
    return cost


def has_numbers(feature: Feature) -> bool:
    """Whether differences of the feature's values are numbers of their own."""
    return not feature.discrete or (feature.kind == "ordinal" and feature.numeric_levels)


def _takes_part(feature: Feature) -> bool:
    """Whether a Mahalanobis distance counts the feature; one with a cost of its own costs that instead."""
    return has_numbers(feature) and feature.cost is None


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS - 1}e}")

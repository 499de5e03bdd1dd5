r"""General convex quadratic costs of changes, such as the Mahalanobis distance, as sums of squares.

.. math:: \delta' Q \delta = \sum_i d_i \delta_i^2 + \sum_k \bigl(\sum_i c_{ki} \delta_i\bigr)^2

The first part is as large as Q allows: being a sum over features, it prices cells by themselves, so that bounds from
cells are worth something. The second part is a sum of squares of few numbers, each of which a model approximates from
below by tangents, which converges much faster than tangents of the whole (Hijazi, Bonami and Ouorou, An outer-inner
approximation for separable mixed-integer nonlinear programs, 2014). A sparse Q whose diagonal dominates is the sum of
``|q_ij| (delta_i +- delta_j)**2`` and what is left of the diagonal; any other comes from eigenvectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocf.arrays import FloatArray
from ocf.errors import ProblemError
from ocf.features.feature import Feature
from ocf.features.space import FeatureSpace
from ocf.problem.costs import Cost

#: Digits that are kept of coefficients: the cost is that of the digits, and exact fractions stay short.
DIGITS = 12

#: Relative size of an eigenvalue that counts as 0, and of one that counts as negative.
RANK, NEGATIVE = 1e-12, 1e-9


def quadratic_cost(names: Sequence[str], Q: ArrayLike, **norms: float) -> Cost:
    """Cost ``delta' Q delta`` of the changes, in the user's units, and perhaps norms besides.

    Parameters
    ----------
    names : sequence of str, (n,)
        Features with numbers; those that are not named cost nothing by this.
    Q : (n, n) array
        Positive semidefinite.
    **norms : float
        Coefficients ``l0, l1, l2``.

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
    mix = {name: float(norms.get(name, 0.0)) for name in ("l0", "l1", "l2")}
    pairs = _dominated(names, scaled, unit)
    if pairs is not None:
        return Cost(mix["l0"], mix["l1"], mix["l2"], *pairs)
    least = float(np.linalg.eigvalsh(scaled)[0])
    if least < -NEGATIVE:
        raise ProblemError("the quadratic cost is not convex: its matrix has a negative eigenvalue")
    share = max(least, 0.0)  # its eigenvector is no form then, where a share of almost all would leave a tiny one
    values, vectors = np.linalg.eigh(scaled - share * np.eye(len(names)))
    kept = values > RANK * max(float(values[-1]), 1.0)
    forms = (np.sqrt(values[kept])[:, None] * vectors[:, kept].T) * unit
    squares = [(name, _short(share * u * u)) for name, u in zip(names, unit, strict=True) if share > 0]
    terms = [tuple((n, _short(c)) for n, c in zip(names, form, strict=True) if _short(c)) for form in forms]
    return Cost(mix["l0"], mix["l1"], mix["l2"], squares=tuple(squares), forms=tuple(terms))


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


def mahalanobis(space: FeatureSpace, coded: FloatArray, weight: float = 1.0, **norms: float) -> Cost:
    """Squared Mahalanobis distance by the covariance of known rows, times a weight, and perhaps norms besides.

    Parameters
    ----------
    space : FeatureSpace
    coded : (n, n_features) float64
        Rows that lack a number are left out.
    weight : float
    **norms : float

    Raises
    ------
    ProblemError
        There are too few rows, or nothing prices a change of category.
    """
    given, coded = len(coded), rows_with_numbers(space, coded)
    if len(coded) < 2:
        cause = f": {given - len(coded)} of {given} rows lack a number" if given > len(coded) else ""
        raise ProblemError(f"the Mahalanobis distance needs data{cause}: give the Explainer the training data")
    numeric = [i for i, feature in enumerate(space.features) if has_numbers(feature)]
    bare = [f.name for f in space.features if not has_numbers(f) and f.action != "fixed" and f.cost is None]
    if bare and not any(norms.values()):
        raise ProblemError(
            f"the Mahalanobis distance has no price for a change of {bare[0]!r}: mix it with a norm, such as "
            "{'mahalanobis': 1, 'l1': 1}"
            + ", or have indicator columns read one by one (groups=False)"
            * bool(space.reading is not None and bare[0] in space.reading.groups)
        )
    places = np.column_stack(
        [
            space.features[i].positions[coded[:, i].astype(int)] if space.features[i].discrete else coded[:, i]
            for i in numeric
        ]
    )
    spread = places.std(axis=0)
    moving = np.flatnonzero(spread > 0)
    covariance = np.cov(places[:, moving] / spread[moving], rowvar=False).reshape(len(moving), len(moving))
    inverse = np.linalg.pinv(covariance, rcond=1e-9, hermitian=True)
    names = [space.names[numeric[k]] for k in moving]
    return quadratic_cost(names, weight * inverse / np.outer(spread[moving], spread[moving]), **norms)


def parse_norm(norm: Any, space: FeatureSpace, coded: FloatArray) -> Cost:
    """Cost from a norm that may be, or be mixed with, ``"mahalanobis"``.

    Parameters
    ----------
    norm : str, sequence or mapping
        As `Cost.parse` takes it, or ``"mahalanobis"`` in its place.
    space : FeatureSpace
    coded : (n, n_features) float64
        Rows of the data, from which the covariance is estimated.
    """
    if not names_mahalanobis(norm):
        return _fitting(Cost.parse(norm), space)
    mix = {norm: 1.0} if isinstance(norm, str) else norm
    rest = {name: float(value) for name, value in mix.items() if name != "mahalanobis"}
    if rest:
        Cost.parse(rest)
    weight = float(mix["mahalanobis"])
    if not (np.isfinite(weight) and weight > 0):
        raise ProblemError(f"the weight of the Mahalanobis distance is a positive number, not {weight}")
    return mahalanobis(space, coded, weight, **rest)


def names_mahalanobis(norm: Any) -> bool:
    """Whether a norm is, or is mixed with, ``"mahalanobis"``."""
    return norm == "mahalanobis" if isinstance(norm, str) else isinstance(norm, Mapping) and "mahalanobis" in norm


def rows_with_numbers(space: FeatureSpace, coded: FloatArray) -> FloatArray:
    """Coded rows that lack no number, though perhaps a category: those of which a covariance is taken.

    Parameters
    ----------
    space : FeatureSpace
    coded : (n, n_features) float64
    """
    numeric = [has_numbers(feature) for feature in space.features]
    return coded[~np.isnan(coded[:, numeric]).any(axis=1)]


def _fitting(cost: Cost, space: FeatureSpace) -> Cost:
    """The cost, once its quadratic part names features with numbers."""
    for name in cost.squared_names:
        if not has_numbers(space.features[space.index(name)]):
            raise ProblemError(
                f"a quadratic cost needs numbers, and {name!r} is {space.features[space.index(name)].kind}"
            )
    return cost


def has_numbers(feature: Feature) -> bool:
    """Whether differences of the feature's values are numbers of their own."""
    return not feature.discrete or (feature.kind == "ordinal" and feature.numeric_levels)


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS - 1}e}")

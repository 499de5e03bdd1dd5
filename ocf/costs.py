"""What a change costs: separable costs that are constants per cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ocf.ensemble import FloatArray
from ocf.errors import ProblemError
from ocf.features import Feature, FeatureSpace
from ocf.words import nearest

NORMS = ("l0", "l1", "l2")


@dataclass(frozen=True)
class Cost:
    """A mix of norms: ``sum_i w_i (l0 [d_i != 0] + l1 |d_i| + l2 d_i**2) + sum q_ij d_i d_j``.

    ``d_i`` is the signed distance of feature i in units of its scale, ``w_i`` its weight in the direction of the
    change. `l2` is the squared Euclidean norm. A feature with a cost of its own (`Feature.cost`) costs that instead.
    Source: ocean, (30)-(32); fcca, (2).

    A convex quadratic form (see `ocf.quadratic`) may be added: ``sum_i squares_i delta_i**2`` and the squares of
    linear `forms` of the changes delta, in the user's units.

    The last term is the general quadratic distance ``d' Q d`` (oblique, (6)), which no weight touches: `pairs` holds
    its ``(name, name, q)`` with each pair of features once, so that q of a pair is twice the entry of the symmetric Q.
    Only models over values know it (``oblique``, ``hyperplanes``), and of continuous numbers only.
    """

    l0: float = 0.0
    l1: float = 0.0
    l2: float = 0.0
    squares: tuple[tuple[str, float], ...] = ()
    forms: tuple[tuple[tuple[str, float], ...], ...] = ()
    pairs: tuple[tuple[str, str, float], ...] = ()

    def __post_init__(self) -> None:
        mix = (self.l0, self.l1, self.l2)
        # lists, as JSON has them, become tuples
        object.__setattr__(self, "squares", tuple((n, float(d)) for n, d in self.squares))
        object.__setattr__(self, "forms", tuple(tuple((n, float(c)) for n, c in form) for form in self.forms))
        object.__setattr__(self, "pairs", tuple((str(a), str(b), float(q)) for a, b, q in self.pairs))
        some = any(mix) or self.squares or self.forms or self.pairs
        if not all(np.isfinite(m) and m >= 0 for m in mix) or not some:
            raise ProblemError(f"norm {asdict(self)} needs coefficients that are at least 0 and not all 0")
        if self.pairs:
            _check_semidefinite(self.pairs)

    @classmethod
    def quadratic(cls, q: pd.DataFrame, **mix: float) -> Cost:
        """Cost ``d' Q d`` of a symmetric positive semidefinite matrix with feature names as index and columns.

        Parameters
        ----------
        q : DataFrame (n, n)
            In units of the features' scales.
        mix : float
            Coefficients of ``l0``, ``l1`` and ``l2`` to add.

        Raises
        ------
        ProblemError
            It is not symmetric or not positive semidefinite.
        """
        values = q.to_numpy(np.float64)
        names = [str(name) for name in q.index]
        if values.shape[0] != values.shape[1] or names != [str(c) for c in q.columns]:
            raise ProblemError("Q needs the same feature names, in the same order, as index and as columns")
        if not np.array_equal(values, values.T):
            raise ProblemError("Q is not symmetric: take (Q + Q.T) / 2")
        rows, columns = np.nonzero(np.triu(values))
        pairs = [
            (names[i], names[j], (1.0 if i == j else 2.0) * values[i, j])
            for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
        ]
        return cls(*cls._coefficients(mix), pairs=tuple(pairs))

    def pair_matrix(self, names: Sequence[str]) -> FloatArray:
        """The symmetric Q of `pairs` over the features of those names, (n, n)."""
        place = {name: i for i, name in enumerate(names)}
        out = np.zeros((len(place), len(place)))
        for a, b, q in self.pairs:
            if a not in place or b not in place:
                raise ProblemError(f"the quadratic cost names a feature {nearest(a if a not in place else b, names)}")
            out[place[a], place[b]] += q / 2
            out[place[b], place[a]] += q / 2
        return out

    @classmethod
    def parse(cls, norm: str | Mapping[str, float] | Cost) -> Cost:
        """Cost from a norm's name (``"l1"``), a mix (``{"l0": 0.1, "l1": 1}``) or a Cost."""
        if isinstance(norm, Cost):
            return norm
        return cls(*cls._coefficients({norm: 1.0} if isinstance(norm, str) else norm))

    @staticmethod
    def _coefficients(mix: Mapping[str, float]) -> tuple[float, float, float]:
        """Coefficients of l0, l1 and l2."""
        for name in mix:
            if name not in NORMS:
                raise ProblemError(f"unknown norm {nearest(name, NORMS)}")
        return float(mix.get("l0", 0.0)), float(mix.get("l1", 0.0)), float(mix.get("l2", 0.0))

    def of(self, feature: Feature, origin: float, value: ArrayLike) -> FloatArray:
        """Cost of moving a feature from `origin` to each of `value` (coded); NaN stays NaN.

        Parameters
        ----------
        feature : Feature
        origin : float
        value : (n,) float64
        """
        if feature.cost is not None:
            values = np.asarray(value, np.float64)
            own = [np.nan if np.isnan(v) else float(feature.cost.amount(feature, origin, v)) for v in values.ravel()]
            return np.array(own).reshape(values.shape)
        d = feature.distance(origin, value)
        changed = np.asarray(value, np.float64) != origin  # division by the scale may have made a tiny d zero
        weight = np.where(d < 0, feature.weight_down, feature.weight_up)
        count = np.where(np.isnan(d), d, changed)
        cost = np.asarray(weight * (self.l0 * count + self.l1 * np.abs(d) + self.l2 * d * d))
        square = self._square(feature)
        return cost + square * (d * feature.scale) ** 2 if square else cost

    @cached_property
    def squared_names(self) -> tuple[str, ...]:
        """Features of the quadratic part."""
        return tuple(dict.fromkeys([n for n, _ in self.squares] + [n for form in self.forms for n, _ in form]))

    def _square(self, feature: Feature) -> float:
        return next((d for name, d in self.squares if name == feature.name), 0.0)

    def shares(self, space: FeatureSpace, origin: FloatArray, point: FloatArray) -> FloatArray:
        """What each feature adds to the cost of a coded row, (n_features,); Euler shares out squares of sums."""
        share = np.array(
            [
                0.0 if np.isnan(origin[i]) else self.of(feature, origin[i], point[i]).item()
                for i, feature in enumerate(space.features)
            ]
        )
        for form in self.forms:
            parts = [(i, c * self._change(space, i, origin, point)) for i, c in ((space.index(n), c) for n, c in form)]
            whole = sum(part for _, part in parts)
            for i, part in parts:
                share[i] += whole * part
        return share

    @staticmethod
    def _change(space: FeatureSpace, i: int, origin: FloatArray, point: FloatArray) -> float:
        if np.isnan(origin[i]) or point[i] == origin[i]:
            return 0.0
        feature = space.features[i]
        return feature.distance(origin[i], point[i]).item() * feature.scale

    def slope(self, feature: Feature, origin: float, value: float, step: float) -> tuple[float, float]:
        """First and second derivative of the cost along steps away from the origin, at a coded number."""
        weight = feature.weight_down if step < 0 else feature.weight_up
        d, unit = abs(value - origin) / feature.scale, abs(step) / feature.scale
        curved = weight * self.l2 + self._square(feature) * feature.scale**2
        return weight * self.l1 * unit + 2 * curved * d * unit, 2 * curved * unit * unit

    def total(self, space: FeatureSpace, origin: FloatArray, point: FloatArray) -> float:
        """Cost of moving a whole coded row; features that are missing in both cost nothing."""
        separable = float(self.shares(space, origin, point).sum())
        if not self.pairs:
            return separable
        distance = dict.fromkeys(space.names, 0.0)
        for i in np.flatnonzero((origin != point) & ~np.isnan(origin)):
            distance[space.names[i]] = space.features[i].distance(origin[i], point[i]).item()
        return separable + math.fsum(q * distance[a] * distance[b] for a, b, q in self.pairs)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict; `pairs` only where there are any."""
        out = asdict(self)
        if not self.pairs:
            del out["pairs"]
        return out


@lru_cache(maxsize=32)
def _check_semidefinite(pairs: tuple[tuple[str, str, float], ...]) -> None:
    names = sorted({name for a, b, _ in pairs for name in (a, b)})
    place = {name: i for i, name in enumerate(names)}
    q = np.zeros((len(names), len(names)))
    for a, b, value in pairs:
        q[place[a], place[b]] += value / 2
        q[place[b], place[a]] += value / 2
    if not np.isfinite(q).all():
        raise ProblemError("the quadratic cost has an entry that is not finite")
    lowest = float(np.linalg.eigvalsh(q)[0])
    if lowest < -1e-12 * max(1.0, float(np.abs(q).max()) * len(q)):
        raise ProblemError(
            f"the quadratic cost has the negative eigenvalue {lowest:.3g}: some change would cost less than nothing; "
            "raise its diagonal"
        )

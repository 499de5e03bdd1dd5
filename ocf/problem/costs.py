"""What a change costs: separable costs that are constants per cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ocf.arrays import FloatArray
from ocf.errors import ProblemError
from ocf.features.curve import Curve
from ocf.features.feature import Feature
from ocf.features.own_cost import amount_of
from ocf.features.space import FeatureSpace
from ocf.support.amounts import real_number
from ocf.support.messages import nearest

NORMS = ("l0", "l1", "l2")

#: Norms that are estimated from the data: the squared Mahalanobis distance, and the one of absolute values.
DISTANCES = ("mahalanobis", "mahalanobis_l1")

#: The greatest cost of a change of one feature: sums of such are numbers still.
GREATEST = 1e300

#: With those that are made of the data; see `ocf.problem.quadratic.parse_norm`.
KNOWN_NORMS = (*NORMS, *DISTANCES)


@dataclass(frozen=True)
class Cost:
    """A mix of norms: ``sum_i w_i (l0 [d_i != 0] + l1 |d_i| + l2 d_i**2) + sum q_ij d_i d_j``.

    A value that is missing or a code has no distance from the others, but a price: `ocf.features.special.Special`.
    ``d_i`` is the signed distance of feature i in units of its scale, ``w_i`` its weight in the direction of the
    change. `l2` is the squared Euclidean norm. A feature with a cost of its own (`Feature.cost`) costs that instead.
    Source: ocean, (30)-(32); fcca, (2).

    Costs that couple features (see `ocf.problem.quadratic`) may be added: ``sum_i squares_i delta_i**2``, the squares
    of linear `forms` of the changes delta, in the user's units, and the absolute values of others, `absolutes`.
    """

    l0: float = 0.0
    l1: float = 0.0
    l2: float = 0.0
    squares: tuple[tuple[str, float], ...] = ()
    forms: tuple[tuple[tuple[str, float], ...], ...] = ()
    absolutes: tuple[tuple[tuple[str, float], ...], ...] = ()

    def __post_init__(self) -> None:
        mix = (self.l0, self.l1, self.l2)
        # lists, as JSON has them, become tuples
        object.__setattr__(self, "squares", tuple((n, float(d)) for n, d in self.squares))
        for field in ("forms", "absolutes"):
            value = tuple(tuple((n, float(c)) for n, c in form) for form in getattr(self, field))
            object.__setattr__(self, field, value)
        if not all(np.isfinite(m) and m >= 0 for m in mix) or not (any(mix) or self.beyond_norms):
            said = ", ".join(f"{name} = {value:g}" for name, value in zip(NORMS, mix, strict=True))
            raise ProblemError(f"a norm needs coefficients that are finite, at least 0, and not all 0: {said}")

    @classmethod
    def parse(cls, norm: str | Mapping[str, float] | Cost) -> Cost:
        """Cost from a norm's name (``"l1"``), a mix (``{"l0": 0.1, "l1": 1}``) or a Cost."""
        if isinstance(norm, Cost):
            return norm
        if not isinstance(norm, str | Mapping):
            raise ProblemError(
                f"a norm is one of {', '.join(KNOWN_NORMS)}, or a mix such as {{'l0': 0.1, 'l1': 1}}, not {norm!r}"
            )
        return cls(*cls._coefficients({norm: 1.0} if isinstance(norm, str) else norm))

    @property
    def words(self) -> str:
        """Its norms: a name, or several with their coefficients."""
        mix = {name: getattr(self, name) for name in NORMS if getattr(self, name)}
        one = len(mix) == 1 and not (self.squares or self.couples)
        return next(iter(mix)) if one else " + ".join([*(f"{c:g} {name}" for name, c in mix.items())] or ["quadratic"])

    @staticmethod
    def _coefficients(mix: Mapping[str, float]) -> tuple[float, float, float]:
        """Coefficients of l0, l1 and l2."""
        for name in mix:
            if name not in NORMS:
                if name in DISTANCES:
                    raise ProblemError(
                        f"{name!r} is a distance for `Explainer.explain` of models of trees: give l0, l1, l2, or a mix "
                        "of these here"
                    )
                raise ProblemError(f"unknown norm {nearest(name, KNOWN_NORMS)}")
            if math.isnan(real_number(said := mix[name])):
                raise ProblemError(f"the coefficient of {name!r} in a norm is a number of at least 0, not {said!r}")
        l0, l1, l2 = (real_number(mix.get(name, 0.0)) for name in NORMS)
        return l0, l1, l2

    def of(self, feature: Feature, origin: float, value: ArrayLike) -> FloatArray:
        """Cost of moving a feature from `origin` to each of `value` (coded); NaN stays NaN.

        Infinite where there is no such move: see `Special`.

        Parameters
        ----------
        feature : Feature
        origin : float
        value : (n,) float64
        """
        special = feature.special
        if special is None or not len(feature.special_values):
            return self._along(feature, origin, value)
        values = np.asarray(value, np.float64)
        at_special = feature.is_special(values)
        if feature.is_special(origin):
            moved = np.where(at_special, np.inf, self._apart(special.supplying))
            return np.where(np.isnan(values), np.nan, np.where(values == origin, 0.0, moved))
        along = self._along(feature, origin, np.where(at_special, origin, values))
        return np.where(at_special, self._apart(special.becoming), along)

    def _apart(self, price: float | None) -> float:
        """Cost of a move between a special value and an ordinary one: l0 counts it, the others take the price."""
        if price is None:
            return np.inf
        return self.l0 + price * (self.l1 + self.l2 + self.beyond_norms)

    def _along(self, feature: Feature, origin: float, value: ArrayLike) -> FloatArray:
        """As `of`, among ordinary values."""
        values = np.asarray(value, np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            own = feature.cost
            cost = self._by_norms(feature, origin, values) if own is None else _own(own, feature, origin, values)
        if np.any(~(cost <= GREATEST) & np.isfinite(values) & ~np.isnan(origin)):  # NaN is the sum of infinite ones
            raise ProblemError(
                f"a change of {feature.name!r} from {feature.label(origin)!r} costs more than {GREATEST:g}, too much "
                "for a sum: is the row's value right? Otherwise make its cost smaller, by a larger scale for example, "
                "or fix the feature"
            )
        return cost

    def _by_norms(self, feature: Feature, origin: float, values: FloatArray) -> FloatArray:
        d = feature.distance(origin, values)
        weight = np.where(d < 0, feature.weight_down, feature.weight_up)
        # division by the scale may have made a tiny d zero
        cost = self.l0 * np.where(np.isnan(d), d, values != origin)
        for factor, term in ((self.l1, np.abs(d)), (self.l2, d * d)):
            if factor:  # 0 times an infinite distance is NaN
                cost = cost + factor * term
        square = self._square(feature)
        return weight * cost + square * (d * feature.scale) ** 2 if square else weight * cost

    @property
    def beyond_norms(self) -> bool:
        """Whether something is added to the norms."""
        return bool(self.squares or self.couples)

    @property
    def couples(self) -> bool:
        """Whether what a change costs depends on other changes."""
        return bool(self.forms or self.absolutes)

    @cached_property
    def coupled_names(self) -> tuple[str, ...]:
        """Features of what is added to the norms."""
        forms = (n for form in (*self.forms, *self.absolutes) for n, _ in form)
        return tuple(dict.fromkeys([*(n for n, _ in self.squares), *forms]))

    @cached_property
    def _squares(self) -> dict[str, float]:
        return dict(reversed(self.squares))

    def _square(self, feature: Feature) -> float:
        return self._squares.get(feature.name, 0.0)

    def shares(self, space: FeatureSpace, origin: FloatArray, point: FloatArray) -> FloatArray:
        """What each feature adds to the cost of a coded row, (n_features,); Euler shares out functions of sums.

        Parameters
        ----------
        space : FeatureSpace
        origin : (n_features,) float64
            Coded.
        point : (n_features,) float64
            Coded.
        """
        share = np.array(
            [
                0.0 if np.isnan(origin[i]) else self.of(feature, origin[i], point[i]).item()
                for i, feature in enumerate(space.features)
            ]
        )
        place = {name: space.index(name) for name in self.coupled_names}
        change = {name: self._change(space, i, origin, point) for name, i in place.items()}
        for k, form in enumerate((*self.forms, *self.absolutes)):
            parts = [(place[name], c * change[name]) for name, c in form]
            whole = sum(part for _, part in parts)
            slope = whole if k < len(self.forms) else np.sign(whole)
            for i, part in parts:
                share[i] += slope * part
        return share

    @staticmethod
    def _change(space: FeatureSpace, i: int, origin: FloatArray, point: FloatArray) -> float:
        if np.isnan(origin[i]) or point[i] == origin[i]:
            return 0.0
        feature = space.features[i]
        if feature.is_special(origin[i]) or feature.is_special(point[i]):
            return 0.0
        return feature.distance(origin[i], point[i]).item() * feature.scale

    def slope(self, feature: Feature, origin: float, value: float, step: float) -> tuple[float, float]:
        """First and second derivative of the cost along steps away from the origin, at a coded number.

        Parameters
        ----------
        feature : Feature
            Numeric or integer.
        origin : float
            The row's own value.
        value : float
            Where the derivatives are taken.
        step : float
            Signed change of the value per unit of the variable by which is derived.
        """
        weight = feature.weight_down if step < 0 else feature.weight_up
        d, unit = abs(value - origin) / feature.scale, abs(step) / feature.scale
        curved = weight * self.l2 + self._square(feature) * feature.scale**2
        return weight * self.l1 * unit + 2 * curved * d * unit, 2 * curved * unit * unit

    def total(self, space: FeatureSpace, origin: FloatArray, point: FloatArray) -> float:
        """Cost of moving a whole coded row; features that are missing in both cost nothing.

        Parameters
        ----------
        space : FeatureSpace
        origin : (n_features,) float64
            Coded.
        point : (n_features,) float64
            Coded.
        """
        return float(self.shares(space, origin, point).sum())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return asdict(self)


def form_matrix(forms: Sequence[Sequence[tuple[str, float]]], names: Sequence[str]) -> FloatArray:
    """Linear forms as rows over some features, (n_forms, n_names); other features are left out.

    Parameters
    ----------
    forms : sequence of forms
        As in `Cost.forms` and `Cost.absolutes`.
    names : sequence of str
        Of the columns.
    """
    column = {name: k for k, name in enumerate(names)}
    out = np.zeros((len(forms), len(names)))
    for k, form in enumerate(forms):
        for name, c in form:
            if name in column:
                out[k, column[name]] += c
    return out


def _own(curve: Curve, feature: Feature, origin: float, values: FloatArray) -> FloatArray:
    """What a feature's own cost makes of moves; infinite beyond what a float holds."""

    def rounded(value: float) -> float:
        try:
            return float(amount_of(curve, feature, origin, value))
        except OverflowError:
            return math.inf

    return np.array([np.nan if np.isnan(v) else rounded(v) for v in values.ravel()]).reshape(values.shape)

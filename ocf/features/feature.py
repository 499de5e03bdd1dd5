"""Features as the user knows them: kinds, units, bounds, grids, what may change and what a change costs.

Inside ocf a row is a vector of *coded* values, one per feature: the value itself for numeric and integer features,
the index of the level (0, 1, …) for binary, ordinal and categorical ones. `FeatureSpace` turns the user's table
into coded rows and back, in the user's columns, words and dtypes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from ocf.arrays import BoolArray, FloatArray
from ocf.errors import DataError, ProblemError
from ocf.features import times
from ocf.features.curve import Curve, exact
from ocf.features.number_dtypes import as_read, held, held_level, narrow_float
from ocf.features.special import Special
from ocf.features.value_grid import ValueGrid
from ocf.support.messages import nearest

Kind = Literal["numeric", "integer", "binary", "ordinal", "categorical"]

Action = Literal["free", "fixed", "increasing", "decreasing"]


@dataclass(frozen=True)
class Feature:
    """One thing about a row that a user can name and perhaps change.

    Attributes
    ----------
    name : str
    kind : {"numeric", "integer", "binary", "ordinal", "categorical"}
    columns : tuple of str
        Columns of the user's table that hold it: one, or one indicator per level.
    base : bool
        With indicator columns: whether the first level has none (all indicators zero mean the first level).
    dtype : str
        NumPy or pandas dtype of the column; a counterfactual value is always representable in it. ``"date"``,
        ``"datetime"``, ``"timedelta"`` and ``"decimal"`` are columns of Python's own objects.
    levels : tuple
        Values of binary, ordinal and categorical features, in order; empty for the others.
    lower, upper : float
        Bounds of numeric and integer features, in the user's units; days of dates and durations (`ocf.features.times`).
    step : float or None
        Grid of a numeric feature: admissible values are multiples of `step`. Days, of dates and durations.
    scale : float
        Distances are divided by it: for ordinal features with numeric levels and for numeric ones it is in the
        user's units, for the others in levels. Default: the range of the data.
    action : {"free", "fixed", "increasing", "decreasing"}
    weight_down, weight_up : float
        Weight of a change to a lower and to a higher value; a change of category costs `weight_up`.
    permitted : tuple or None
        Where a counterfactual may lie: ``(lowest, highest)`` for numeric and integer features, a tuple of levels
        for the others. Unlike the bounds it may exclude the row's own value.
    cost : Curve or None
        What a change costs, in place of the norm and the weights; negative for states that are preferred.
    special : Special or None
        Values that are no points on the line of the others: codes, and perhaps a missing value.
    none : bool
        Whether a column of objects holds None where a value is missing, and not NaN: imputers tell them apart.
    """

    name: str
    kind: Kind
    columns: tuple[str, ...] = ()
    base: bool = False
    dtype: str = "float64"
    levels: tuple[Any, ...] = ()
    lower: float = -math.inf
    upper: float = math.inf
    step: float | None = None
    scale: float = 1.0
    action: Action = "free"
    weight_down: float = 1.0
    weight_up: float = 1.0
    permitted: tuple[Any, ...] | None = None
    cost: Curve | None = None
    special: Special | None = None
    none: bool = False

    def __post_init__(self) -> None:
        if not self.columns:
            object.__setattr__(self, "columns", (self.name,))
        for fault in itertools.chain(_faults_of_kind(self), _faults_of_numbers(self)):
            raise DataError(f"feature {self.name!r}: {fault}")
        if self.cost is not None:
            self.check_curve(self.cost)

    @property
    def discrete(self) -> bool:
        """Whether coded values are indices of levels."""
        return self.kind in ("binary", "ordinal", "categorical")

    @cached_property
    def is_time(self) -> bool:
        """Whether the numbers are days, and the user has dates or durations."""
        return not self.discrete and times.is_time(self.dtype)

    @cached_property
    def numeric_levels(self) -> bool:
        """Whether the levels are numbers, so that distances between them have a meaning."""
        return all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in self.levels)

    @cached_property
    def positions(self) -> FloatArray:
        """Where each level lies for distances: its number, or its index. (n_levels,)."""
        if self.kind == "ordinal" and self.numeric_levels:
            return np.array(self.levels, np.float64)
        return np.arange(len(self.levels), dtype=np.float64)

    @cached_property
    def codes(self) -> dict[Any, int]:
        """Index of each level."""
        return {level: code for code, level in enumerate(self.levels)}

    # -- what levels and curves mean for this feature -----------------------------------------------------

    def position(self, code: float) -> Fraction:
        """Coded value in the user's units, exactly: the number itself, or that of the level.

        On a grid in a narrow column that is the number as it reads there: 0.6 of the float32 0.60000002.
        """
        if not self.discrete:
            return exact(code if self.step is None else as_read(code, self.dtype))
        level = self.levels[int(code)]
        if not isinstance(level, int | float | np.number | np.bool_):
            raise ProblemError(
                f"the levels of {self.name!r} are no numbers: name a level, such as {{{self.levels[0]!r}: 1}}"
            )
        return exact(float(level))

    def level_code(self, level: Any) -> int:
        """Code of a level, by itself or by its text (keys of TOML are texts)."""
        level = held_level(level, self.dtype)
        if level in self.codes:
            return self.codes[level]
        texts = {str(known): code for known, code in self.codes.items()}
        if str(level) in texts:
            return texts[str(level)]
        raise ProblemError(f"feature {self.name!r} has no level {nearest(level, self.levels)}")

    @property
    def level_cuts(self) -> FloatArray:
        """All codes of a discrete feature but the last: cuts that make every level a cell."""
        return np.arange(len(self.levels) - 1, dtype=np.float64)

    def check_curve(self, curve: Curve) -> None:
        """Refuse a curve that does not fit the feature."""
        if curve.levels is not None:
            if not self.discrete:
                raise ProblemError(f"{self.name!r} is {self.kind}: give it an amount per unit, or points")
            for level, _ in curve.levels:
                self.level_code(level)
        elif curve.between is not None:
            if not self.discrete or len(curve.between) != len(self.levels) - 1:
                raise ProblemError(f"{self.name!r} has {len(self.levels)} levels: 'between' has one amount less")
        elif self.discrete:
            for code in range(len(self.levels)):
                self.position(code)

    # -- special values -----------------------------------------------------------------------------------

    @property
    def missing_code(self) -> float:
        """Coded value of a missing value where that is a value like others: behind all of them."""
        return float(len(self.levels)) if self.discrete else math.inf

    @cached_property
    def special_values(self) -> FloatArray:
        """Coded special values, (n,)."""
        if self.special is None:
            return np.empty(0)
        codes = [float(self.codes[c] if self.discrete else c) for c in self.special.codes]
        return np.array(codes + [self.missing_code] * self.special.missing)

    @property
    def gap(self) -> Any:
        """What stands in the column where a value is missing."""
        return None if self.none else math.nan

    @property
    def n_codes(self) -> int:
        """Number of coded values of a discrete feature: its levels, and perhaps a missing value."""
        return len(self.levels) + (self.special is not None and self.special.missing)

    def is_special(self, value: ArrayLike) -> BoolArray:
        """Which coded values are special."""
        return np.zeros(np.shape(value), bool) if self.special is None else np.isin(value, self.special_values)

    @property
    def may_be_supplied(self) -> bool:
        """Whether an ordinary value may take the place of a special one."""
        return self.special is not None and self.special.supplying is not None and self.action != "fixed"

    @property
    def may_become_special(self) -> bool:
        """Whether a special value may take the place of an ordinary one."""
        return self.special is not None and self.special.becoming is not None and self.action != "fixed"

    # -- the grid of admissible coded values ---------------------------------------------------------------

    def at_most(self, value: ArrayLike) -> FloatArray:
        """Largest admissible coded value <= `value`, bounds aside."""
        return self._grid.at_most(np.asarray(value, np.float64))

    def above(self, value: ArrayLike) -> FloatArray:
        """Smallest admissible coded value > `value`, bounds aside; no end stays none, here and in its counterparts."""
        return self._grid.above(np.asarray(value, np.float64))

    def at_least(self, value: ArrayLike) -> FloatArray:
        """Smallest admissible coded value >= `value`, bounds aside."""
        below = self.at_most(value)
        return np.where(below == value, below, self.above(value))

    def between(self, low: float, high: float) -> FloatArray:
        """Admissible coded values of a feature with a grid, increasing, (n,).

        Parameters
        ----------
        low, high : float
            Finite ends.
        """
        return self._grid.between(low, high)

    @cached_property
    def _grid(self) -> ValueGrid:
        if self.discrete:
            return ValueGrid.of(1.0, np.dtype(np.float64))
        parts = [times.step_of(n) for n in times.PARTS if self.is_time and self.step == 1 / n]  # no short decimals
        return ValueGrid.of(grid_unit(self), self.float_dtype, parts[0] if parts else None)

    @property
    def float_dtype(self) -> np.dtype[Any]:
        """In which counterfactual values are representable: float64 unless the column is narrower."""
        return narrow_float(self.dtype) or np.dtype(np.float64)

    def permitted_codes(self) -> set[int] | None:
        """Codes of the permitted levels; None when all are or the feature is not discrete."""
        if self.permitted is None or not self.discrete:
            return None
        unknown = [v for v in self.permitted if v not in self.codes]
        if unknown:
            raise ProblemError(f"permitted range of {self.name!r}: no such level {nearest(unknown[0], self.levels)}")
        return {self.codes[v] for v in self.permitted}

    def permitting(self, allowed: Any) -> tuple[Any, ...]:
        """What a user permits, as `permitted` holds it.

        Raises
        ------
        ProblemError
            A text where a list is due, a range with its ends the wrong way round, or something that is no range.
        """
        return _permitting(self, allowed)

    def limits(self, origin: float) -> tuple[float, float]:
        """Lowest and highest coded value that a counterfactual of a row with value `origin` may take.

        The bounds are widened to the row's own value; the permitted range and the action are not. Of a special or
        missing value they are those of what may be supplied.
        """
        if self.is_special(origin) and not self.may_be_supplied:
            return origin, origin
        ordinary = not (math.isnan(origin) or self.is_special(origin))
        if self.discrete:
            low, high = 0.0, float(len(self.levels) - 1)
        else:
            low, high = (min(self.lower, origin), max(self.upper, origin)) if ordinary else (self.lower, self.upper)
            if self.permitted is not None:
                first, last = self._permitted_ends(origin)
                low, high = max(low, first), min(high, last)
        if not ordinary:
            return low, high
        if self.action in ("fixed", "increasing"):
            low = max(low, origin)
        if self.action in ("fixed", "decreasing"):
            high = min(high, origin)
        return low, high

    def ends(self, origin: float) -> tuple[float, float]:
        """First and last value of a number that a counterfactual may have, its own among them where it may stay.

        The first is above the last where there is none.
        """
        low, high = self.limits(origin)
        first, last = float(self.at_least(low)), float(self.at_most(high))
        return (min(first, origin), max(last, origin)) if low <= origin <= high else (first, last)

    def _permitted_ends(self, origin: float) -> tuple[float, float]:
        """Ends of the permitted range: numbers that the column can hold, where a grid does not say so by itself."""
        assert self.permitted is not None
        first, last = (float(end) for end in self.permitted)
        if self.kind != "numeric" or self.step is not None:
            return first, last
        low, high = float(self.at_least(first)), float(self.at_most(last))
        return (min(low, origin), max(high, origin)) if first <= origin <= last else (low, high)

    def nearest(
        self,
        lower: FloatArray,
        upper: FloatArray,
        origin: float,
        cost: Callable[[FloatArray], FloatArray] | None = None,
    ) -> FloatArray:
        """Admissible value nearest to the origin in each interval ``(lower, upper]``; NaN where there is none.

        Parameters
        ----------
        lower, upper : (n,) float64
            Coded values.
        origin : float
            The row's own coded value; it is always admissible as far as the grid goes.
        cost : callable, optional
            Of coded values. Permitted levels may leave a choice on both sides of the origin, with other weights; the
            cheapest is taken. Default: the distance in levels.
        """
        if len(self.special_values):
            return _nearest_with_special(self, lower, upper, origin, cost)
        return _nearest_ordinary(self, lower, upper, origin, cost)

    def distance(self, origin: float, value: ArrayLike) -> FloatArray:
        """Signed distance from the origin in units of `scale`; 1 for any change of category.

        Parameters
        ----------
        origin : float
            Coded value of the row.
        value : array_like of float
            Coded values; NaN gives NaN.
        """
        v = np.asarray(value, np.float64)
        if self.kind in ("categorical", "binary"):
            change = np.where(np.isnan(v), np.nan, np.sign(v - origin))
            return np.abs(change) if self.kind == "categorical" else change
        if self.kind == "ordinal":
            place = np.append(self.positions, np.nan)[np.where(np.isnan(v), len(self.levels), v).astype(int)]
            return np.asarray((place - self.positions[int(origin)]) / self.scale)
        return (v - origin) / self.scale

    def label(self, code: float) -> Any:
        """Coded value in the user's words and dtype."""
        if math.isnan(code) or code == self.missing_code:
            return None
        if self.discrete:
            return self.levels[int(code)]
        if self.is_time:
            return times.column_of(np.array([code], np.float64), self.dtype).iloc[0]
        if self.dtype == "decimal":
            return Decimal(repr(float(code)))
        return int(code) if self.kind == "integer" and float(code).is_integer() else float(code)


def _permitting(feature: Feature, allowed: Any) -> tuple[Any, ...]:
    """What a user permits; as `Feature.permitting`."""
    if isinstance(allowed, str) or not isinstance(allowed, Iterable):
        raise ProblemError(f"permitted range of {feature.name!r}: give a list, such as [{allowed!r}], not {allowed!r}")
    values = tuple(allowed)
    if feature.discrete:
        return tuple(held_level(v, feature.dtype) for v in values)
    if len(values) != 2:
        raise ProblemError(f"permitted range of {feature.name!r} must be (lowest, highest), not {values}")
    values = tuple(end if v is None else v for v, end in zip(values, (-math.inf, math.inf), strict=True))
    if feature.is_time:
        values = tuple(times.days(v, feature.dtype, feature.name) for v in values)
    if not all(isinstance(v, int | float | np.number | Decimal) for v in values):
        raise ProblemError(
            f"permitted range of {feature.name!r}: give two numbers, or None for no end, not {allowed!r}"
        )
    if not values[0] <= values[1]:
        raise ProblemError(
            f"permitted range of {feature.name!r} must be (lowest, highest), and {allowed!r} is the other way round"
        )
    return tuple(held(v, feature.dtype) for v in values)


def _nearest_ordinary(
    feature: Feature,
    lower: FloatArray,
    upper: FloatArray,
    origin: float,
    cost: Callable[[FloatArray], FloatArray] | None,
) -> FloatArray:
    """Nearest value in each interval of a feature without special values; as `Feature.nearest`."""
    low, high = feature.limits(origin)
    left = np.maximum(feature.above(lower), feature.at_least(low))
    right = np.minimum(feature.at_most(upper), feature.at_most(high))
    value = np.where(left > origin, left, np.where(right < origin, right, origin))
    # beyond the largest number there is none: only a code stands there
    value = np.where((left <= right) & np.isfinite(value), value, np.nan)
    stays = (lower < origin) & (origin <= upper) & (low <= origin) & (origin <= high)
    value = np.where(stays, origin, value)
    codes = feature.permitted_codes()
    if codes is not None:
        value = _nearest_code(codes, lower, upper, low, high, cost or (lambda code: np.abs(code - origin)))
    return value


def _nearest_code(
    codes: set[int],
    lower: FloatArray,
    upper: FloatArray,
    low: float,
    high: float,
    cost: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Cheapest of some codes in each interval; NaN where there is none."""
    allowed = np.array([c for c in sorted(codes) if low <= c <= high], np.float64)
    out = np.full(len(lower), np.nan)
    for code in allowed[np.argsort(-cost(allowed), kind="stable")]:  # the cheapest is written last
        out[(lower < code) & (code <= upper)] = code
    return out


def _typical(feature: Feature) -> float:
    """An ordinary value from which to look where the row has none."""
    low, high = feature.limits(math.nan)
    if feature.discrete:
        return low
    middle = (low + high) / 2 if math.isfinite(high - low) else min(max(0.0, low), high)
    below = float(feature.at_most(middle))
    return below if below >= low else float(feature.at_least(low))


def _nearest_with_special(
    feature: Feature,
    lower: FloatArray,
    upper: FloatArray,
    origin: float,
    cost: Callable[[FloatArray], FloatArray] | None,
) -> FloatArray:
    """As `Feature.nearest`, among ordinary and special values."""
    own = bool(feature.is_special(origin))
    if not own:
        value = replace(feature, special=None).nearest(lower, upper, origin, cost)
    elif feature.may_be_supplied and _typical(feature) <= feature.limits(math.nan)[1]:
        value = replace(feature, special=None, action="free").nearest(lower, upper, _typical(feature))
    else:
        value = np.full(len(lower), np.nan)
    for code in feature.special_values.tolist():
        here = (lower < code) & (code <= upper)
        if code == origin or (not own and feature.may_become_special):
            dearer = here if cost is None else here & ~(cost(value) <= cost(np.full(len(value), code)))
            value = np.where(dearer, code, value)
        else:
            value = np.where(here & (value == code), np.nan, value)
    return value


def _faults_of_kind(feature: Feature) -> Iterator[str]:
    """What is wrong with kind, action, levels and columns; the first fault may make the others meaningless."""
    for setting, value, allowed in (("kind", feature.kind, Kind), ("actionability", feature.action, Action)):
        if str(value) not in get_args(allowed):
            yield f"{setting} {value!r} is not one of {', '.join(get_args(allowed))}"
    kind, levels, columns = feature.kind, feature.levels, feature.columns
    if feature.discrete:
        if len(set(levels)) != len(levels) or not levels:
            yield "needs its distinct levels, for example levels = ['low', 'high']"
        if kind == "binary" and len(levels) != 2:
            yield f"a binary feature has two levels, not {len(levels)}"
        if kind == "ordinal" and feature.numeric_levels and list(levels) != sorted(levels):
            yield "numeric levels of an ordinal feature must increase"
    elif levels:
        yield f"levels belong to binary, ordinal and categorical features, not to {kind} ones"
    if kind == "categorical" and feature.action in ("increasing", "decreasing"):
        yield f"categories have no order, so the feature cannot be {feature.action}: use 'free' or 'fixed'"
    if len(columns) > 1 and len(columns) != len(levels) - feature.base:
        yield f"{len(columns)} indicator columns for {len(levels)} levels"


def _faults_of_numbers(feature: Feature) -> Iterator[str]:
    """What is wrong with scale, step, weights and bounds."""
    step, lower, upper = feature.step, feature.lower, feature.upper
    if not (math.isfinite(feature.scale) and feature.scale > 0):
        unsaid = "; of bounds without an end it cannot be told, so set it" if math.isinf(upper - lower) else ""
        yield f"scale {feature.scale} must be positive and finite{unsaid}"
    if step is not None and (feature.kind != "numeric" or not (math.isfinite(step) and step > 0)):
        yield f"step {step} must be positive, on a numeric feature"
    for weight in (feature.weight_down, feature.weight_up):
        if not (math.isfinite(weight) and weight >= 0):
            yield f"weight {weight} must be finite and at least 0"
    if feature.cost is not None and (feature.weight_down, feature.weight_up) != (1.0, 1.0):
        yield "a cost of its own takes the place of norm and weight: give one of them"
    if feature.special is not None:
        yield from feature.special.faults()
        codes = feature.special.codes
        if codes and feature.discrete and not (feature.kind == "ordinal" and set(codes) <= set(feature.levels)):
            yield f"the special values {list(codes)} are none of its levels, which stand beside each other anyway"
        if feature.special.missing and (len(feature.columns) > 1 or feature.base):
            yield "indicator columns hold no missing value"
    if math.isnan(lower) or math.isnan(upper):
        yield f"bounds [{lower}, {upper}] hold no value"
    if lower > upper:
        yield f"bounds [{lower}, {upper}] hold no value: the lowest comes first"


def has_grid(feature: Feature) -> bool:
    """Whether a numeric feature takes whole numbers or multiples of a step only.

    Parameters
    ----------
    feature : Feature
    """
    return not feature.discrete and grid_unit(feature) > 0


def grid_unit(feature: Feature) -> float:
    """Distance of neighbouring admissible values of a number; 0 where there is no grid.

    Parameters
    ----------
    feature : Feature
    """
    return 1.0 if feature.kind == "integer" else feature.step or 0.0


def rounds_its_grid(feature: Feature, origin: float, most_off: float = 0.0) -> bool:
    """Whether a narrow column rounds the values of its grid, so that they are no whole number of steps apart.

    In float32 0.6 is not 0.4 + 2 * 0.1, and 2**24 + 1 is no number at all. A multiple k of a step is held as it is
    where k times the odd part of the step fits into the digits of the dtype, as of 0.25 or 3. Open ends do not count.

    Parameters
    ----------
    feature : Feature
    origin : float
        Coded value of the row.
    most_off : float
        Part of a step that does not count, in columns of float32.
    """
    step = grid_unit(feature)
    if not step or feature.float_dtype == np.float64:
        return False
    odd = step.as_integer_ratio()[0]
    while odd % 2 == 0:
        odd //= 2
    most = max(abs(v) for v in (step, origin, *feature.limits(origin)) if np.isfinite(v)) / step
    digits = np.finfo(feature.float_dtype).nmant + 1
    counts = most > most_off * 2.0**digits or feature.float_dtype == np.float16
    return bool(most * odd > 2.0**digits and counts)


def permitted_span(feature: Feature) -> tuple[float, float]:
    """Ends of a feature's permitted range, or of its permitted levels' codes; infinite where everything is permitted.

    Parameters
    ----------
    feature : Feature
    """
    if feature.permitted is None:
        return -math.inf, math.inf
    ends = feature.permitted_codes() or feature.permitted
    return float(min(ends)), float(max(ends))

"""The independent check of constraints: what they say, written out again on raw values in exact fractions.

Part of `ocf.verify.check`: nothing here is shared with `ocf.problem.constraints`, the cells or the formulations. A
constraint is the dict that a result holds, a row is a dict of feature names to its values before and after.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from ocf.verify.times import days, is_time

#: Feature description, value before and after (numbers, or indices of levels); None where missing.
Change = tuple[Mapping[str, Any], float | None, float | None]


def broken(constraints: Sequence[Mapping[str, Any]], changes: Mapping[str, Change]) -> Iterator[str]:
    """A sentence for each constraint that a changed row does not meet.

    Parameters
    ----------
    constraints : sequence of dicts
        As ``Constraint.to_dict`` writes them.
    changes : mapping of feature name to (description, value before, value after)
    """
    for constraint in constraints:
        name = constraint["name"] or constraint["kind"]
        try:
            complaint = _CHECKS[constraint["kind"]](constraint, changes)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            complaint = f"cannot be checked: {error!r}"
        if complaint:
            yield f"The constraint {name!r} does not hold: {complaint}."


#: How narrow floats are called, also where they may be missing; equations are met as far as a column can hold numbers.
NARROW = {"halffloat[pyarrow]": "float16", "float[pyarrow]": "float32", "float16": "float16", "float32": "float32"}


def as_held(feature: Mapping[str, Any], number: float) -> float:
    """A number as the feature's column holds it.

    Parameters
    ----------
    feature : mapping
    number : float
    """
    with np.errstate(over="ignore"):
        return float(_float_dtype(feature).type(number))


def _float_dtype(feature: Mapping[str, Any]) -> np.dtype[Any]:
    """In which a feature's column holds numbers: float64 unless it is narrower."""
    return np.dtype(NARROW.get(str(feature.get("dtype", "")).lower(), "float64"))


def stands_apart(feature: Mapping[str, Any], value: float | None) -> bool:
    """Whether a value is missing, or a code that stands for something else than its number.

    Parameters
    ----------
    feature : mapping
    value : float or None
        As `ocf.verify.changes.value_of` reads it.
    """
    if value is None:
        return True
    codes = (feature.get("special") or {}).get("codes", ())
    return (feature["levels"][int(value)] if feature["levels"] else value) in codes


def _decimal(value: float) -> Fraction:
    """The number that a float is printed as."""
    return Fraction(repr(float(value)))


def _held(feature: Mapping[str, Any], value: float) -> Fraction:
    """The number that a column holds, or that of a level: costs are of these."""
    return _decimal(feature["levels"][int(value)] if feature["levels"] else value)


def _amount(feature: Mapping[str, Any], value: float) -> Fraction:
    """The same as it reads, on the grid of a narrow column: constraints are of these."""
    on_grid = not feature["levels"] and feature.get("step") is not None
    return Fraction(str(_float_dtype(feature).type(value))) if on_grid else _held(feature, value)


def _place(feature: Mapping[str, Any], level: Any) -> int:
    """Index of a level, by itself or by its text."""
    levels = feature["levels"]
    level = as_held(feature, level) if isinstance(level, float) else level
    for k, own in enumerate([*levels, *map(str, levels)]):
        if own == level or (k >= len(levels) and own == str(level)):
            return k % len(levels)
    raise ValueError(f"{level!r} is none of the levels of {feature['name']!r}")


def _has(feature: Mapping[str, Any], value: float, level: Any) -> bool:
    return _place(feature, level) == value


def _linear(said: Mapping[str, Any], changes: Mapping[str, Change]) -> str:
    total = room = Fraction(0)
    for name, level, coefficient in said["terms"]:
        feature, old, new = changes[name]
        if old is None or new is None:
            return f"{name!r} is missing"
        factor = _decimal(coefficient)
        if level is not None:
            total += factor * (_has(feature, new, level) - (said["relative"] and _has(feature, old, level)))
            continue
        total += factor * _amount(feature, new)
        if said["relative"]:
            total -= factor * _amount(feature, old)
        if feature["kind"] == "numeric" and feature["step"] is None:
            room += abs(factor) * Fraction(float(np.spacing(_float_dtype(feature).type(abs(new)))))
    bound, sense = _decimal(said["bound"]), said["sense"]
    # numbers can make an equation true only as far as the column can hold them
    if sense not in ("<=", ">=", "="):
        raise ValueError(f"{sense!r} compares nothing")
    holds = total <= bound if sense == "<=" else total >= bound if sense == ">=" else abs(total - bound) <= room
    return "" if holds else f"its sum is {float(total)!r}, which is not {sense} {said['bound']!r}"


def _is(feature: Mapping[str, Any], value: float | None, said: Any) -> bool:
    """Whether a value is what an implication says."""
    if value is None:
        return False
    levels = feature["levels"]
    if levels:
        if isinstance(said, Mapping):
            low, high = said.get("min"), said.get("max")
            first = 0 if low is None else _place(feature, low)
            last = len(levels) - 1 if high is None else _place(feature, high)
            return first <= value <= last
        return any(_has(feature, value, level) for level in (said if isinstance(said, list | tuple) else [said]))
    if isinstance(said, Mapping):
        low, high = said.get("min"), said.get("max")
    else:
        low, high = said if isinstance(said, list | tuple) else (said, said)
    return not ((low is not None and value < _end(feature, low)) or (high is not None and value > _end(feature, high)))


def _end(feature: Mapping[str, Any], said: Any) -> float:
    """A number, or the days of a date or a duration."""
    return days(said, feature["dtype"]) if isinstance(said, str) and is_time(feature) else as_held(feature, float(said))


def _implication(said: Mapping[str, Any], changes: Mapping[str, Change]) -> str:
    # each name is looked up, whether it matters or not
    conditions = [_is(changes[name][0], changes[name][2], what) for name, what in said["when"]]
    failing = [name for name, what in said["then"] if not _is(changes[name][0], changes[name][2], what)]
    if not failing or not all(conditions):
        return ""
    return f"its conditions hold, but not its consequence on {', '.join(map(repr, failing))}"


def _budget(said: Mapping[str, Any], changes: Mapping[str, Change]) -> str:
    faults = [fault for name, curve in said["costs"] if (fault := curve_fault(curve, changes[name][0]))]
    if faults:
        raise ValueError(faults[0])
    total = sum((curve_amount(curve, *changes[name]) for name, curve in said["costs"]), Fraction(0))
    return "" if total <= _decimal(said["limit"]) else f"the changes take {float(total)!r} of {said['limit']!r}"


def curve_fault(curve: Any, feature: Mapping[str, Any]) -> str:
    """Why a curve says nothing of the changes of a feature; empty where it does.

    Parameters
    ----------
    curve : object
        As ``Curve.to_plain`` writes it.
    feature : mapping
        The description of the feature.
    """
    levels = feature["levels"]
    try:
        if isinstance(curve, Mapping) and ("levels" in curve or "between" in curve):
            if not levels:
                return f"{feature['name']!r} has no levels"
            if "levels" in curve:
                amounts = [amount for level, amount in curve["levels"] if _place(feature, level) >= 0]
            elif len(amounts := curve["between"]) != len(levels) - 1:
                return f"{len(amounts)} amounts between {len(levels)} levels"
            return _unamounts(amounts)
        for k, _ in enumerate(levels):
            _amount(feature, k)
        if not isinstance(curve, Mapping):
            down, up = curve
            return _unamounts([down, up])
        points, steps = curve["points"], curve["steps"]
        ordered = all(a < b for (a, _), (b, _) in pairwise(points))
        if curve["of"] not in ("change", "value") or len(points) < (1 if steps else 2) or not ordered:
            return f"{curve!r} is no line through points"
        return _unamounts([number for point in points for number in point])
    except (KeyError, TypeError, ValueError) as error:
        return f"{curve!r} is no curve ({type(error).__name__}: {error})"


def _unamounts(amounts: Sequence[Any]) -> str:
    """The first that is no number, in words."""
    odd = [a for a in amounts if isinstance(a, bool | str) or not math.isfinite(a)]
    return f"{odd[0]!r} is no amount" if odd else ""


def curve_amount(curve: Any, feature: Mapping[str, Any], old: float | None, new: float | None) -> Fraction:
    """What a change takes by a curve as ``Curve.to_plain`` writes it.

    Parameters
    ----------
    curve : object
    feature : mapping
        The description of the feature.
    old, new : float or None
        Coded values; None is a missing one.
    """
    if old is None or new is None or old == new:
        return Fraction(0)
    if isinstance(curve, Mapping) and "levels" in curve:
        return sum((_decimal(amount) for level, amount in curve["levels"] if _has(feature, new, level)), Fraction(0))
    if isinstance(curve, Mapping) and "between" in curve:
        first, last = int(min(old, new)), int(max(old, new))
        return sum((_decimal(amount) for amount in curve["between"][first:last]), Fraction(0))
    change = _amount(feature, new) - _amount(feature, old)
    if not isinstance(curve, Mapping):
        down, up = curve
        return abs(change) * _decimal(up if change > 0 else down)
    x = change if curve["of"] == "change" else _amount(feature, new)
    points = [(_decimal(a), _decimal(b)) for a, b in curve["points"]]
    below = [p for p in points if p[0] <= x]
    above = [p for p in points if p[0] > x]
    if curve["steps"]:
        return below[-1][1] if below else Fraction(0)
    if not below or not above:
        return (below or above[:1])[-1][1]
    (a, left), (b, right) = below[-1], above[0]
    return left + (right - left) * (x - a) / (b - a)


def coupled_parts(norm: Mapping[str, Any], changes: Mapping[str, Change]) -> dict[str, Fraction]:
    """Squares of changes, and squares and absolute values of sums of changes, in the features' own units.

    Parameters
    ----------
    norm : mapping
        As ``Cost.to_dict`` writes it.
    changes : mapping of str to (mapping, float or None, float or None)
        By feature: itself, its old and its new value.

    Returns
    -------
    dict of feature name to Fraction
        What each adds; a function of a sum is shared out by Euler's rule.
    """
    parts: dict[str, Fraction] = {}

    def change(name: str) -> Fraction:
        feature, old, new = changes[name]
        return Fraction(0) if old is None or new is None else _held(feature, new) - _held(feature, old)

    def add(name: str, amount: Fraction) -> None:
        parts[name] = parts.get(name, Fraction(0)) + amount

    for name, factor in norm.get("squares", ()):
        add(name, _decimal(factor) * change(name) ** 2)
    for key in ("forms", "absolutes"):
        for form in norm.get(key, ()):
            terms = [(name, _decimal(factor) * change(name)) for name, factor in form]
            whole = sum((term for _, term in terms), Fraction(0))
            slope = whole if key == "forms" else (whole > 0) - (whole < 0)
            for name, term in terms:
                add(name, slope * term)
    return parts


def _max_changes(said: Mapping[str, Any], changes: Mapping[str, Change]) -> str:
    counted = said["among"] or list(changes)
    changed = [n for n in counted if changes[n][1] != changes[n][2]]
    return "" if len(changed) <= said["most"] else f"{len(changed)} features change: {', '.join(changed)}"


def _keeps(said: Mapping[str, Any], changes: Mapping[str, Change]) -> str:
    return "" if any(changes[n][1] == changes[n][2] for n in said["features"]) else "all of its features change"


def _between(feature: Mapping[str, Any], first: float | None, second: float | None) -> Fraction:
    """Distance of two different values, in units of the scale; 1 from a category, a code or what is missing."""
    kind, levels = feature["kind"], feature["levels"]
    unlike = kind in ("binary", "categorical") or stands_apart(feature, first) or stands_apart(feature, second)
    if unlike or first is None or second is None:
        return Fraction(1)
    if not levels:
        return abs(_amount(feature, first) - _amount(feature, second)) / _amount(feature, feature["scale"])
    numbers = kind == "ordinal" and all(isinstance(v, int | float) and not isinstance(v, bool) for v in levels)
    ends = [levels[int(v)] if numbers else v for v in (first, second)]
    return abs(_decimal(ends[0]) - _decimal(ends[1])) / _decimal(feature["scale"])


def _apart(said: Mapping[str, Any], changes: Mapping[str, Change]) -> str:
    total = Fraction(0)
    for name, other in said["point"]:
        feature, _, new = changes[name]
        total += Fraction(0) if new == other else _between(feature, new, other)
    return "" if total >= _decimal(said["distance"]) else f"the points are only {float(total)!r} apart"


_CHECKS = {
    "linear": _linear,
    "implication": _implication,
    "budget": _budget,
    "max_changes": _max_changes,
    "keeps": _keeps,
    "apart": _apart,
}

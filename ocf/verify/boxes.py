"""Boxes and ranges around an answer: what they say of themselves, and points of them to ask the model about.

Part of `ocf.verify.check`. That no box is larger is not checked: it would take the search again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from ocf.support import json_records as records
from ocf.support.json_dtypes import value_like
from ocf.verify.constraints import Change, as_held, stands_apart
from ocf.verify.times import is_time, moment_within

#: Widths and values that differ by less are the same.
SAME = 1e-6


def misboxed(box: Mapping[str, Any], changes: Mapping[str, Change]) -> Iterator[str]:
    """What a box says of itself that cannot be so.

    Parameters
    ----------
    box : mapping
        As a record has it.
    changes : mapping of feature name to (description, value before, value after)
    """
    ranges, width = box["ranges"], float(box["width"])
    if {*ranges} != {*changes} or not {*box["free"]} <= {*changes}:
        yield "The box has other features than the row."
        return
    yield from outside(ranges, changes)
    parts = {name: _part(ranges[name], name in box["free"], *changes[name]) for name in ranges}
    for name in box["free"]:
        if ranges[name] is None or not abs((parts[name] or 1.0) - 1.0) <= SAME:
            yield f"The box does not hold all of {name!r}, as it says."
    known = math.fsum(part for part in parts.values() if part is not None)
    if not known - SAME <= width <= known + [*parts.values()].count(None) + SAME:
        yield f"The sides of the box do not add up to its width {width!r}."
    bound = math.inf if box["bound"] is None else float(box["bound"])
    if bound < width - SAME or (box["proven"] and abs(bound - width) > SAME):
        yield f"The bound {bound!r} of the box does not fit its width {width!r}."


def outside(ranges: Mapping[str, Any], changes: Mapping[str, Change]) -> Iterator[str]:
    """Where an answer does not lie in its ranges, or these not in what their features hold.

    Parameters
    ----------
    ranges : mapping of feature name to ``{"lowest", "highest"}``, list of levels, or None
    changes : mapping of feature name to (description, value before, value after)
    """
    for name, held in ranges.items():
        if name not in changes:
            yield f"There is a range of {name!r}, which is no feature."
            continue
        feature, old, new = changes[name]
        apart = new is None or stands_apart(feature, new)
        if held is None or apart or new is None:
            inside = held is None and apart
        elif isinstance(held, list) != bool(feature["levels"]):
            inside = False
        elif isinstance(held, list):
            inside = feature["levels"][int(new)] in held and _are_admissible(held, feature, old)
        else:
            (low, high), (lower, upper) = _ends(held), _limits(feature, old, new)
            room = SAME * max(1.0, abs(new)) if is_time(feature) else 0.0
            inside = low - room <= new <= high + room and lower - room <= low and high <= upper + room
        if not inside:
            yield f"The range {held!r} of {name!r} does not hold the answer, or values that there are not."


def _limits(feature: Mapping[str, Any], old: float | None, new: float) -> tuple[float, float]:
    """Between which numbers, or indices of levels, an answer may lie."""
    if feature["levels"]:
        lower, upper = 0.0, len(feature["levels"]) - 1.0
    else:
        own = [new] if old is None else [old, new]
        lower, upper = min(float(feature["lower"]), *own), max(float(feature["upper"]), *own)
        if feature["permitted"] is not None:
            lower, upper = max(lower, float(feature["permitted"][0])), min(upper, float(feature["permitted"][1]))
    if old is None or stands_apart(feature, old):
        return lower, upper
    lower = old if feature["action"] in ("increasing", "fixed") else lower
    return lower, old if feature["action"] in ("decreasing", "fixed") else upper


def _are_admissible(held: Sequence[Any], feature: Mapping[str, Any], old: float | None) -> bool:
    """Whether these are levels that an answer may have, each once."""
    known = feature["levels"] if feature["permitted"] is None else feature["permitted"]
    low, high = _limits(feature, old, 0.0)
    once = all(level not in held[:k] for k, level in enumerate(held))
    return once and all(level in known and low <= feature["levels"].index(level) <= high for level in held)


def _ends(held: Mapping[str, Any]) -> tuple[float, float]:
    low, high = records.number(held["lowest"]), records.number(held["highest"])
    return -math.inf if low is None else low, math.inf if high is None else high


def _part(held: Any, free: bool, feature: Mapping[str, Any], old: float | None, new: float | None) -> float | None:
    """Which part of its admissible range a box covers of a feature; None where that takes more than the record has."""
    if held is None or feature["action"] == "fixed":
        return 1.0
    if isinstance(held, list) or is_time(feature):
        return 1.0 if free else None
    low, high, upper, lower = *_ends(held), float(feature["upper"]), float(feature["lower"])
    plain = feature.get("special") is None and feature["permitted"] is None and feature["step"] is None
    wide = math.isfinite(upper - lower) and upper - lower <= feature["scale"]
    if old is None or not (plain and wide and lower <= old <= upper):
        return 1.0 if free else None
    lower = old if feature["action"] == "increasing" else lower
    upper = old if feature["action"] == "decreasing" else upper
    if feature["kind"] == "integer":
        lower, upper = min(float(math.ceil(lower)), old), max(float(math.floor(upper)), old)
    return (high - low) / (upper - lower) if upper > lower else 1.0


def points_of(
    ranges: Mapping[str, Any], changes: Mapping[str, Change], answer: pd.DataFrame, number: int
) -> pd.DataFrame:
    """Corners and other points of a box, the same each time.

    Parameters
    ----------
    ranges, changes : mapping
        As in `outside`.
    answer : DataFrame (1, n_columns)
    number : int
        How many points.
    """
    rng = np.random.default_rng(0)
    table = pd.concat([answer] * number, ignore_index=True)
    places = {str(column): k for k, column in enumerate(table.columns)}
    for name, held in ranges.items():
        feature, _, new = changes[name]
        if held is None or new is None:
            continue
        if isinstance(held, list):
            codes = [feature["levels"].index(level) for level in held]
            chosen: list[Any] = [codes[k] for k in rng.integers(0, len(codes), number)]
        else:
            chosen = [_value(feature, *_ends(held), new, rng) for _ in range(number)]
        for k, column in enumerate(feature["columns"]):
            values, like = chosen, table.iloc[:, places[column]]
            if len(feature["columns"]) > 1 or feature["base"]:
                values = [int(code == k + feature["base"]) for code in chosen]
            elif feature["levels"]:
                values = [value_like(feature["levels"][code], like) for code in chosen]
            elif is_time(feature):
                values = [moment_within(value, like.iloc[0], feature["dtype"], *_ends(held)) for value in chosen]
            table.isetitem(places[column], _column(values, like))
    return table


def _value(feature: Mapping[str, Any], low: float, high: float, new: float, rng: np.random.Generator) -> float | int:
    """An end of a range, or an admissible value between them; the answer's own where one has no end."""
    low, high = (end if math.isfinite(end) else new for end in (low, high))
    value = (low, high, float(rng.uniform(low, high)))[rng.integers(0, 3)]
    if low < value < high:
        if feature["step"] is not None:
            step = Decimal(repr(feature["step"]))
            value = float(step * round(Decimal(repr(value)) / step))
        value = float(round(value)) if feature["kind"] == "integer" else value
        value = as_held(feature, value)
    codes = (feature.get("special") or {}).get("codes", ())
    value = value if low <= value <= high and value not in codes else new
    return int(value) if feature["kind"] == "integer" and value.is_integer() else value


def _column(values: Sequence[Any], like: pd.Series[Any]) -> Any:
    """Values in the dtype of a column, where that holds them."""
    if isinstance(like.dtype, pd.CategoricalDtype):
        known = [*like.dtype.categories]
        known += [value for value in dict.fromkeys(values) if value not in known]
        return pd.Series(pd.Categorical(values, categories=known, ordered=like.dtype.ordered))
    if like.dtype == object and any(isinstance(value, Decimal) for value in like):
        values = [value if isinstance(value, Decimal) else Decimal(repr(value)) for value in values]
    held = pd.Series(list(values), dtype=object)
    try:
        cast = held.astype(like.dtype)
        return cast if (cast.astype(object) == held).all() else pd.Series(list(values))
    except (TypeError, ValueError, OverflowError):
        return pd.Series(list(values))

"""Whether what a result says of its features, completions and margins can be so at all: a cost is worth nothing else.

Part of `ocf.verify.check`: nothing here is shared with `ocf.features`, which refuses such descriptions by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ocf.verify.constraints import NARROW, curve_fault
from ocf.verify.times import TIMES, is_time

#: Columns of Python's own objects, by the words of a record.
_OBJECTS = ("object", "object[nan]")


def misdescribed(record: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each description of a record that can not be so.

    Parameters
    ----------
    record : mapping
        Of one row, with features and norm.
    """
    features, columns = record["features"]["features"], record["features"]["columns"]
    held = [column for feature in features for column in feature["columns"]]
    for column in sorted({*held, *columns}):
        if column not in columns:
            yield f"Of the column {column!r}, which the table has not, features are described."
        elif held.count(column) != 1 or columns.count(column) != 1:
            yield f"The column {column!r} is described by {held.count(column)} features; it has to be one."
    names = [feature["name"] for feature in features]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{names.count(name)} features are called {name!r}."
    for feature in features:
        yield from (f"{feature['name']!r}: {fault}." for fault in _faults(feature))
        yield from _other_dtype(feature, record)
    norm = record["norm"]
    counted = [norm.get(part) for part in ("l0", "l1", "l2", "squares", "forms", "absolutes")]
    if not any(counted) or any(factor < 0 for _, factor in norm.get("squares") or ()):
        yield "The norm counts no change, or one as negative."
    yield from (
        f"A margin is claimed of {name!r}, which is no feature."
        for name in sorted({*(record.get("margins") or {})} - {*names})
    )
    if record.get("imputations") is not None:
        yield from _incompletable(record["imputations"], record["original"]["values"])


def _faults(feature: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the description of one feature."""
    levels, kind, step = feature["levels"], feature["kind"], feature["step"]
    if bool(levels) != (kind in ("binary", "ordinal", "categorical")):
        yield f"it is {kind} and has {len(levels)} levels"
    if any(level in levels[:k] for k, level in enumerate(levels)):
        yield "one of its levels occurs twice"
    indicators = len(feature["columns"]) > 1 or feature["base"]
    if not feature["columns"] or (indicators and len(feature["columns"]) != len(levels) - feature["base"]):
        yield f"{len(feature['columns'])} columns do not hold its {len(levels)} levels"
    if not 0 < feature["scale"] < math.inf:
        yield f"the scale {feature['scale']!r} is not above 0"
    weights = (feature["weight_down"], feature["weight_up"])
    if not all(0 <= weight < math.inf for weight in weights):
        yield f"one of the weights {list(weights)} is below 0"
    if step is not None and not (kind == "numeric" and 0 < step < math.inf):
        yield f"the step {step!r} is not above 0, or that of no number with decimals"
    if not float(feature["lower"]) <= float(feature["upper"]):
        yield f"the bounds [{feature['lower']!r}, {feature['upper']!r}] hold nothing"
    if feature["permitted"] is not None:
        yield from _not_permitted(feature)
    if feature.get("cost") is not None:
        if fault := curve_fault(feature["cost"], feature):
            yield f"its cost is none: {fault}"
        if weights != (1, 1):
            yield "it has weights beside a cost of its own"


def _not_permitted(feature: Mapping[str, Any]) -> Iterator[str]:
    """Why a permitted range is none."""
    permitted, levels = feature["permitted"], feature["levels"]
    if levels:
        if unknown := [level for level in permitted if level not in levels]:
            yield f"the permitted {unknown[0]!r} is none of its levels"
        return
    try:
        lowest, highest = map(float, permitted)
    except (TypeError, ValueError):
        lowest, highest = 1.0, 0.0
    if not lowest <= highest:
        yield f"the permitted range {list(permitted)} is no pair of numbers, the lowest first"


def _other_dtype(feature: Mapping[str, Any], record: Mapping[str, Any]) -> Iterator[str]:
    """Where the dtype of a description would make other numbers of those in the table."""
    if feature["levels"] or len(feature["columns"]) != 1 or feature["columns"][0] not in record["original"]["values"]:
        return
    (column,) = feature["columns"]
    said = feature.get("dtype", "float64")
    for which in ("original", "counterfactual"):
        table = record[which]
        value, dtype = (None, "") if table is None else (table["values"].get(column), table["dtypes"].get(column))
        held = str(dtype).lower()
        times = isinstance(value, str) and (held.startswith(TIMES) or held in _OBJECTS)
        narrow = NARROW.get(said.lower())
        if value is not None and (
            (is_time(feature) and not times) or (which == "original" and narrow != NARROW.get(held))
        ):
            yield f"{feature['name']!r} is described as {said}, but the {which} holds {value!r} as {dtype}."
            return


def _incompletable(said: Mapping[str, Any], row: Mapping[str, Any]) -> Iterator[str]:
    """Why completions are none of a row, or ask for fewer than their share."""
    lacking = sorted(column for column, value in row.items() if value is None)
    counts = {len(own) for own in said["values"].values()}
    wanted = max(1, math.ceil(said["share"] * max(counts, default=0) - 1e-9))
    if sorted(said["values"]) != lacking:
        yield f"Completions are those of {sorted(said['values'])}, but what the row lacks is {lacking}."
    elif len(counts) != 1 or 0 in counts or any(value is None for own in said["values"].values() for value in own):
        yield "Completions have to fill in every missing cell, and all of them as many."
    elif said["least"] != wanted:
        yield f"A share of {said['share']!r} of {max(counts)} completions is {wanted}, not {said['least']!r}."

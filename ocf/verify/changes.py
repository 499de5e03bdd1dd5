"""What changes between a row and its counterfactual: read from raw cells, priced, and held against the description.

Part of `ocf.verify.check`: a feature is a plain dict, a value is what stands in the table, and a distance is written
out again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pandas as pd

from ocf.errors import DataError
from ocf.support.json_dtypes import plain
from ocf.verify.constraints import Change, as_held, broken, coupled_parts, curve_amount, stands_apart
from ocf.verify.times import days, is_time

#: Relative difference below which two costs are the same number.
TOLERANCE = 1e-9


def close(a: float, b: float) -> bool:
    """Whether two costs are the same number; below `TOLERANCE` the difference counts by itself.

    Parameters
    ----------
    a, b : float
    """
    if not (math.isfinite(a) and math.isfinite(b)):
        return a == b
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b), TOLERANCE)


def cells_of(table: pd.DataFrame) -> dict[str, Any]:
    """Cells of a table of one row by column; as objects, so that no value takes another's type.

    Parameters
    ----------
    table : DataFrame (1, n_columns)
    """
    return dict(zip(map(str, table.columns), table.to_numpy(object)[0], strict=True))


def cost_of_changes(
    before: pd.DataFrame,
    after: pd.DataFrame,
    features: Sequence[Mapping[str, Any]],
    norm: Mapping[str, Any],
    constraints: Sequence[Mapping[str, Any]],
    problems: list[str],
) -> float | None:
    """Recompute the cost and check what may change; None when a value cannot be read.

    Parameters
    ----------
    before, after : DataFrame (1, n_columns)
    features, norm, constraints : sequence of mappings, mapping, sequence of mappings
        As `ocf.verify.check.verify` takes them.
    problems : list of str
        Takes what is wrong.
    """
    cost = 0.0
    readable = True
    changes: dict[str, Change] = {}
    first, second = cells_of(before), cells_of(after)
    for feature in features:
        try:
            old, new = value_of(first, feature), value_of(second, feature)
        except DataError as error:
            problems.append(str(error))
            readable = False
            continue
        changes[feature["name"]] = (feature, old, new)
        if old == new:
            problems += _unseen(feature, first, second)
        price, objections = priced(feature, norm, old, new)
        problems += objections
        readable = readable and price is not None
        cost += price or 0.0
    if readable:
        cost += float(sum(coupled_parts(norm, changes).values()))
        problems += broken(constraints, changes)
    return cost if readable else None


def _unseen(feature: Mapping[str, Any], first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    """Cells that are not the same, although their numbers are: whole numbers beyond 2**53, say."""
    for column in feature["columns"]:
        old, new = first[column], second[column]
        if not (old == new if pd.notna(old) and pd.notna(new) else pd.isna(old) and pd.isna(new)):
            yield f"{feature['name']!r}: {old!r} became {new!r}, which are one number to the cost and the bounds."


def priced(
    feature: Mapping[str, Any], norm: Mapping[str, Any], old: float | None, new: float | None
) -> tuple[float | None, list[str]]:
    """What a change costs by itself, and what is wrong with it; None: it has no price.

    Parameters
    ----------
    feature, norm : mapping
    old, new : float or None
        As `value_of` reads them.
    """
    if old == new and stands_apart(feature, old):
        return 0.0, []
    if old is None or new is None or stands_apart(feature, old) or stands_apart(feature, new):
        return _supplied(feature, norm, old, new)
    return _cost(feature, norm, old, new), list(_forbidden(feature, old, new))


def _supplied(
    feature: Mapping[str, Any], norm: Mapping[str, Any], old: float | None, new: float | None
) -> tuple[float | None, list[str]]:
    """What it costs to supply a value, or that one goes missing, and what is wrong with that; None: it has no price."""
    name, special = feature["name"], feature.get("special") or {}
    was, is_ = (stands_apart(feature, value) for value in (old, new))
    price = None if was and is_ else special.get("supplying" if was else "becoming")
    if price is None:
        said = "missing value must stay missing" if old is None or new is None else "special value must stay as it is"
        return None, [f"{name!r}: a {said}, but {old!r} became {new!r}."]
    problems = [f"{name!r} is fixed, but {old!r} became {new!r}."] if feature["action"] == "fixed" else []
    if new is not None and not is_:
        problems += _inadmissible(feature, new, None)
    beyond = bool(norm.get("squares") or norm.get("forms") or norm.get("absolutes"))
    return float(norm["l0"] + price * (norm["l1"] + norm["l2"] + beyond)), problems


def value_of(row: Mapping[Any, Any], feature: Mapping[str, Any]) -> float | None:
    """Number, or index of the level, that a row holds; None when it is missing.

    Parameters
    ----------
    row : mapping of column to cell
    feature : mapping

    Raises
    ------
    DataError
        It holds something else.
    """
    name, columns, levels = feature["name"], feature["columns"], feature["levels"]
    cells = [row[column] for column in columns]
    if len(columns) > 1 or feature["base"]:
        ones = [k for k, cell in enumerate(cells) if cell == 1]
        if any(pd.isna(cell) or cell not in (0, 1) for cell in cells) or len(ones) > 1 or not (ones or feature["base"]):
            raise DataError(f"{name!r}: its indicator columns must hold 0 and a single 1, not {cells}.")
        return float(ones[0] + bool(feature["base"])) if ones else 0.0
    cell = cells[0]
    if pd.isna(cell):
        return None
    if levels:
        if plain(cell) not in levels:
            raise DataError(f"{name!r}: {cell!r} is none of its levels.")
        return float(levels.index(plain(cell)))
    try:
        value = days(cell, feature["dtype"]) if is_time(feature) else float(cell)
    except (TypeError, ValueError, AttributeError):
        raise DataError(f"{name!r}: {cell!r} is not a number.") from None
    if math.isinf(value):
        raise DataError(f"{name!r}: {value} is not finite.")
    return value


def _forbidden(feature: Mapping[str, Any], old: float, new: float) -> Iterator[str]:
    """What the feature's description does not allow."""
    name, levels, action = feature["name"], feature["levels"], feature["action"]

    def word(value: float) -> str:
        return repr(levels[int(value)] if levels else value)

    change = f"{word(old)} became {word(new)}"
    if action == "fixed" and new != old:
        yield f"{name!r} is fixed, but {change}."
    if action == "increasing" and new < old:
        yield f"{name!r} may only increase, but {change}."
    if action == "decreasing" and new > old:
        yield f"{name!r} may only decrease, but {change}."
    yield from _inadmissible(feature, new, old)


def _inadmissible(feature: Mapping[str, Any], new: float, old: float | None) -> Iterator[str]:
    """Why a value may not be chosen in the place of another; None: there was none."""
    name, levels, permitted = feature["name"], feature["levels"], feature["permitted"]
    if levels:
        if permitted is not None and levels[int(new)] not in permitted:
            yield f"{name!r}: {levels[int(new)]!r} is none of the permitted levels {list(permitted)}."
        return
    # the grid and the bounds of the feature hold for values that were chosen, not for the row's own
    if new != old:
        lower, upper, step = float(feature["lower"]), float(feature["upper"]), feature["step"]
        own = [] if old is None else [old]
        if not min([lower, *own]) <= new <= max([upper, *own]):
            yield f"{name!r}: {new!r} is outside the bounds [{lower!r}, {upper!r}]."
        if feature["kind"] == "integer" and not new.is_integer():
            yield f"{name!r}: {new!r} is not a whole number."
        if step is not None and not _on_grid(feature, new, step):
            yield f"{name!r}: {new!r} is no multiple of {step!r}."
    if permitted is not None and not float(permitted[0]) <= new <= float(permitted[1]):
        yield f"{name!r}: {new!r} is outside the permitted range {list(permitted)}."


def _on_grid(feature: Mapping[str, Any], value: float, step: float) -> bool:
    """Whether a value is a multiple of the decimal that the step is written as, as nearly as the column can hold it."""
    unit = Decimal(repr(step))
    k = round(Decimal(repr(value)) / unit)
    for exact in (float(unit * near) for near in (k, k - 1, k + 1)):  # what reads as 8192 may be nearer to another one
        held = as_held(feature, exact)
        if value == held if held != exact else abs(value - exact) <= 4 * math.ulp(value):
            return True
    return False


def _cost(feature: Mapping[str, Any], norm: Mapping[str, float], old: float, new: float) -> float:
    """What one change costs: weight (l0 [d != 0] + l1 |d| + l2 d**2), d in units of the scale."""
    if new == old:
        return 0.0
    if feature.get("cost") is not None:
        return float(curve_amount(feature["cost"], feature, old, new))
    kind, levels = feature["kind"], feature["levels"]
    if kind in ("binary", "categorical"):
        distance = 1.0 if kind == "categorical" or new > old else -1.0
    elif kind == "ordinal" and all(isinstance(v, int | float) and not isinstance(v, bool) for v in levels):
        distance = (levels[int(new)] - levels[int(old)]) / feature["scale"]
    else:
        distance = (new - old) / feature["scale"]
    weight = feature["weight_down"] if distance < 0 else feature["weight_up"]
    # a change so small that its distance rounds to 0 is still a change
    mixed = norm["l0"] + norm["l1"] * abs(distance) + norm["l2"] * distance * distance
    return float(weight * mixed)

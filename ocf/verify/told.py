"""What a result tells a person beside cost and bound: its gap, its own verdict, the list of changes, and ties.

Part of `ocf.verify.check`, which recomputes the cost and asks the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ocf.errors import DataError
from ocf.support import json_records as records
from ocf.verify.changes import TOLERANCE, cells_of, close, priced, value_of
from ocf.verify.constraints import Change, coupled_parts, stands_apart


def misjudged(record: Mapping[str, Any]) -> Iterator[str]:
    """What a record says of its own quality and what does not follow from its cost and bound, or from its checks.

    Parameters
    ----------
    record : mapping
        Of one row.
    """
    cost, bound = records.number(record["cost"]), records.number(record["bound"])
    if "gap" in record:
        gap = records.number(record["gap"])
        gap, own = math.inf if gap is None else gap, _gap(cost, -math.inf if bound is None else bound)
        if gap != own and not (math.isfinite(own) and abs(gap - own) <= 2 * TOLERANCE * max(1.0, own)):
            yield f"The gap between bound and cost is {own!r}, not {gap!r} as claimed."
    found, said = record["counterfactual"] is not None, record.get("checks") or []
    if "verified" in record and record["verified"] != (found and not said):
        why = "there is no counterfactual" if not found else f"its checks say: {'; '.join(said) or 'nothing'}"
        yield f"It says verified: {str(record['verified']).lower()}, but {why}."
    elif found and said:
        yield f"It says of itself: {'; '.join(said)}."
    if record.get("conflict") and record["status"] != "infeasible":
        yield f"Wishes are said to conflict, but the status is {record['status']!r}."
    tables = [table["values"] for table in (record["counterfactual"], *record.get("ties", ())) if table is not None]
    yield from (
        f"Tie {k} is an answer that is there already." for k in range(1, len(tables)) if tables[k] in tables[:k]
    )


def _gap(cost: float | None, bound: float) -> float:
    """Relative distance of a bound from a cost; infinite without one."""
    if cost is None or math.isinf(bound):
        return math.inf
    distance = max(cost - bound, 0.0)
    return distance / abs(cost) if cost else math.inf if distance > TOLERANCE**2 else 0.0


def mislisted(record: Mapping[str, Any]) -> Iterator[str]:
    """What the list of changes, which a person reads, says otherwise than the row and the counterfactual.

    Parameters
    ----------
    record : mapping
        Of one row, with a counterfactual and a list.
    """
    before, after = (record[table]["values"] for table in ("original", "counterfactual"))
    names = [str(change["feature"]) for change in record["changes"]]
    listed = dict(zip(names, record["changes"], strict=True))
    columns = {feature["name"]: feature["columns"] for feature in record["features"]["features"]}
    moved = {name for name, own in columns.items() if any(before[column] != after[column] for column in own)}
    yield from (f"Feature {name!r} changes and is not among the changes." for name in sorted(moved - {*listed}))
    yield from (f"Feature {name!r} is among the changes and does not change." for name in sorted({*listed} - moved))
    yield from (f"Feature {n!r} is listed {names.count(n)} times." for n in sorted(listed) if names.count(n) > 1)
    try:
        changes = changes_to(record, record["counterfactual"])
    except DataError:  # of which the check of the changes tells
        return
    for name in sorted(moved & {*listed}):
        column, change = columns[name][0], listed[name]
        feature, first, second = changes[name]
        ends = [before[column], after[column]]
        if len(columns[name]) > 1 or feature["base"]:
            ends = [None if value is None else feature["levels"][int(value)] for value in (first, second)]
        if [change["from"], change["to"]] != ends:
            yield f"Feature {name!r} is listed as going from {change['from']!r} to {change['to']!r}, and does not."
        yield from _wrong_change(changes[name], change)
    yield from _wrong_costs(record["norm"], changes, listed)


def changes_to(record: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Change]:
    """What a record's features are in its row and in an answer, by name.

    Parameters
    ----------
    record : mapping
    table : mapping
        The counterfactual, or a tie.

    Raises
    ------
    DataError
        A cell is none of its feature's.
    """
    before, after = (cells_of(records.table_from_record(held, 0)) for held in (record["original"], table))
    return {f["name"]: (f, value_of(before, f), value_of(after, f)) for f in record["features"]["features"]}


def _wrong_change(change: Change, listed: Mapping[str, Any]) -> Iterator[str]:
    """Where the difference that is listed of a change is another."""
    feature, old, new = change
    if "change" not in listed or old is None or new is None:
        return
    said, levels, own = records.number(listed["change"]), feature["levels"], None
    if not stands_apart(feature, old) and not stands_apart(feature, new):
        if not levels:
            own = new - old
        elif feature["kind"] == "ordinal" and _are_numbers(levels):
            own = float(levels[int(new)]) - float(levels[int(old)])
    # days of dates are large numbers whose differences are small
    room = 4 * math.ulp(max(abs(old), abs(new)))
    if said is not own and (said is None or own is None or not (close(said, own) or abs(said - own) <= room)):
        yield f"Feature {feature['name']!r} is listed as changing by {said!r}, and changes by {own!r}."


def _are_numbers(levels: Any) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in levels)


def _wrong_costs(
    norm: Mapping[str, Any], changes: Mapping[str, Change], listed: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Where the costs that are listed of changes are others."""
    parts = coupled_parts(norm, changes)
    # what a function of a sum costs is shared out, and a sum near 0 has no share that is safe from rounding
    shared = {name for key in ("forms", "absolutes") for form in norm.get(key, ()) for name, _ in form}
    together = claimed = most = 0.0
    for name, change in listed.items():
        if name not in changes or "cost" not in change:
            continue
        price, _ = priced(changes[name][0], norm, *changes[name][1:])
        said = records.number(change["cost"])
        if said is None or price is None:
            yield f"Feature {name!r} is listed without a cost, or changes at none."
            continue
        own = price + float(parts.get(name, 0))
        if name in shared:
            together, claimed, most = together + own, claimed + said, max(most, abs(said))
        elif not close(own, said):
            yield f"The change of {name!r} costs {own!r}, not {said!r} as listed."
    if not close(together, claimed) and abs(together - claimed) > TOLERANCE * most:
        yield f"The changes of {', '.join(map(repr, sorted(shared)))} cost {together!r}, not {claimed!r} as listed."

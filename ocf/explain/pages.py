"""Explanations as HTML: what the templates beside this file are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocf.explain.text import (
    MOST_ROWS,
    answer,
    box,
    brief,
    change_rows,
    counts_by_status,
    headline,
    level,
    moved,
    notes,
    table_read,
    ties,
)
from ocf.support.pages import render
from ocf.support.wording import number

if TYPE_CHECKING:
    from ocf.explain.answer import Answer

ROOM = "ocf.explain"

#: Features in the table of frequent changes.
MOST_FEATURES = 12

#: Parts of the method that have a line of their own.
APART = ("why", "cross_check", "table", "other_gaps", "ties")


def to_fragment(e: Answer) -> str:
    """HTML for a notebook."""
    return render(ROOM, "fragment.html.j2", summary=None, answers=[_said(e)], rest=0)


def batch_to_fragment(explanations: Sequence[Answer]) -> str:
    """HTML of several for a notebook: counts, frequent changes, and the first rows."""
    shown = [_said(e) for e in explanations[:MOST_ROWS]]
    rest = len(explanations) - len(shown)
    return render(ROOM, "fragment.html.j2", summary=_summary(explanations), answers=shown, rest=rest)


def to_page(explanations: Sequence[Answer], path: str | Path | None = None) -> str:
    """Self-contained web page; written to `path` if one is given.

    Parameters
    ----------
    explanations : sequence of Answer
        At least one; several get a summary, a field to search them, and an order to choose.
    path : str or Path, optional
        Written over where it exists.
    """
    one = len(explanations) == 1
    title = f"Counterfactual of row {explanations[0].row}" if one else "Counterfactual explanations"
    summary = None if one else _summary(explanations)
    page = render(ROOM, "explanations.html.j2", title=title, summary=summary, answers=list(map(_said, explanations)))
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def _summary(explanations: Sequence[Answer]) -> dict[str, Any]:
    """Counts, and how often each feature changes where several rows have an answer."""
    found = [e for e in explanations if e.found]
    counts = Counter(str(name) for e in found for name in e.own_changes["feature"])
    frequent = counts.most_common(MOST_FEATURES) if len(found) > 1 else []
    return {
        "counted": counts_by_status(explanations),
        "read": [line.strip() for line in table_read(explanations)],
        "found": len(found),
        "frequent": frequent,
    }


def _said(e: Answer) -> dict[str, Any]:
    """What an article says of an answer."""
    return {
        "headline": headline(e),
        "label": f"{e.row}{f', no. {e.rank}' if e.rank > 1 else ''}",
        "brief": brief(e) or answer(e),
        "cost": "" if e.cost is None else number(e.cost),
        "sortable": "Infinity" if e.cost is None else repr(float(e.cost)),
        "status": e.status,
        "verified": e.verified,
        "notes": [*([e.message] if e.message else []), *notes(e)],
        "problems": e.checks,
        "changes": _changes(e),
        "waterfall": _waterfall(e),
        "ties": [*ties(e), *box(e)],
        "facts": _facts(e),
    }


def _changes(e: Answer) -> list[dict[str, Any]]:
    table = e.own_changes
    if table.empty:
        return []
    total = float(table["cost"].sum()) or 1.0
    return [
        {
            "name": name,
            "old": old,
            "old_words": old_words,
            "new": new,
            "new_words": new_words,
            "cost": cost,
            "share": share / total,
        }
        for (name, old_words, new_words, cost), old, new, share in zip(
            change_rows(e), table["from"], table["to"], table["cost"], strict=True
        )
    ]


def _waterfall(e: Answer) -> dict[str, Any] | None:
    """Bars of how the prediction moves from change to change, places and lengths as parts of the whole."""
    path = e.path
    if not path:
        return None
    # a probability has its own ends
    lowest, highest = (0.0, 1.0) if e.classes else (min(path), max(path))
    reach = (highest - lowest) or 1.0
    first = 0.0 if e.classes else 0.1  # a value's bars have no natural beginning
    scaled = [first + (1 - first) * (p - lowest) / reach for p in path]
    ends = [("as it is", 0.0, scaled[0], level(e, path[0])), ("with all changes", 0.0, scaled[-1], level(e, path[-1]))]
    steps = [
        (name, *sorted(scaled[k : k + 2]), moved(*path[k : k + 2])) for k, name in enumerate(e.own_changes["feature"])
    ]
    bars = [
        {"name": name, "start": start, "length": end - start, "said": said, "back": said.startswith("−")}
        for name, start, end, said in (ends[0], *steps, ends[1])
    ]
    return {"of": f"probability of {e.likely}" if e.classes else "value", "bars": bars}


def _facts(e: Answer) -> list[tuple[str, str]]:
    """How the answer came about."""
    facts = [
        ("bound", number(e.bound, 10)),
        ("cost", "" if e.cost is None else number(e.cost, 10)),
        ("method", ", ".join(f"{k} {v}" for k, v in e.method.items() if v not in ("", None, {}) and k not in APART)),
        ("chosen because", str(e.method.get("why", ""))),
        ("cross-check", _cross_check(e.method.get("cross_check", {}))),
        ("of those that cost the same", _of_equals(e.method.get("ties", {}))),
        ("seconds", ", ".join(f"{k} {number(v, 3)}" for k, v in e.times.items() if v)),
        ("size", ", ".join(f"{v:,} {k.replace('_', ' ')}" for k, v in e.sizes.items())),
        ("nodes", str(e.nodes)),
        ("refused points", str(e.refused)),
    ]
    return [(name, text) for name, text in facts if text not in ("", "0")]


def _of_equals(said: Mapping[str, Any]) -> str:
    """Which of the answers of the same cost this one is."""
    if not said:
        return ""
    order = ", then ".join({"l1": "the least by l1", "l0": "the fewest changes"}.get(n, n) for n in said["broken_by"])
    return f"{order}, {'proven' if said['proven'] else 'not proven within the time limit'}"


def _cross_check(check: Mapping[str, Any]) -> str:
    """What a second way of solving the row said."""
    if not check:
        return ""
    cost = "" if check["cost"] is None else f" for {number(check['cost'], 10)}"
    return f"{check['verdict']}: {check['solver']} on {check['formulation']}, {check['status']}{cost}"

"""Explanations as HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocf.explain.text import MOST_ROWS, change_rows, counted, headline, plausibility, ties
from ocf.support.pages import FRAGMENT_STYLE, PAGE_STYLE, bar_style
from ocf.support.wording import number

if TYPE_CHECKING:
    from ocf.explain.answer import Answer


def to_fragment(e: Answer) -> str:
    """HTML for a notebook."""
    return f'<div class="ocf"><style>{FRAGMENT_STYLE}</style>{_article(e)}</div>'


def batch_to_fragment(explanations: Sequence[Answer]) -> str:
    """HTML of several for a notebook: counts, frequent changes, and the first rows."""
    shown = explanations[:MOST_ROWS]
    rest = len(explanations) - len(shown)
    more = f'<p class="note">… and {rest} more; <code>to_html()</code> shows all.</p>' if rest else ""
    body = _overview(explanations) + "".join(map(_article, shown)) + more
    return f'<div class="ocf"><style>{FRAGMENT_STYLE}</style>{body}</div>'


def to_page(explanations: Sequence[Answer], path: str | Path | None = None) -> str:
    """Self-contained web page; written to `path` if one is given."""
    one = len(explanations) == 1
    title = f"Counterfactual of row {explanations[0].row}" if one else "Counterfactual explanations"
    page = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{FRAGMENT_STYLE}{PAGE_STYLE}</style></head>\n"
        f'<body><h1>{escape(title)}</h1>\n<main class="ocf">'
        + ("" if one else _overview(explanations))
        + "\n".join(map(_article, explanations))
        + "</main></body></html>\n"
    )
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def _overview(explanations: Sequence[Answer]) -> str:
    """Counts, and how often each feature changes."""
    found = [e for e in explanations if e.found]
    counts = Counter(name for e in found for name in e.changes["feature"])
    out = f"<p>{escape(counted(explanations))}</p>"
    if len(found) < 2 or not counts:
        return out
    rows = "".join(
        f"<tr><td>{escape(str(name))}{bar_style(n / len(found))}</td><td class=n>{n} of {len(found)}</td></tr>"
        for name, n in counts.most_common(12)
    )
    return f"{out}<table><tr><th>feature</th><th class=n>changes in</th></tr>{rows}</table>"


def _article(e: Answer) -> str:
    verified = '<span class="status">verified</span>' if e.verified else ""
    notes = f'<p class="note">{escape(e.message)}</p>' if e.message else ""
    notes += "".join(f'<p class="note">{escape(sentence)}</p>' for sentence in plausibility(e))
    others = "".join(f'<p class="note">{escape(sentence)}</p>' for sentence in ties(e))
    notes += "".join(f'<p class="wrong">not verified: {escape(problem)}</p>' for problem in e.checks)
    return (
        f'<article><h2>{escape(headline(e))}</h2><span class="status">{escape(e.status)}</span>{verified}'
        f"{notes}{_change_table(e)}{others}{_details(e)}</article>"
    )


def _change_table(e: Answer) -> str:
    changes = e.changes
    if changes.empty:
        return ""
    total = float(changes["cost"].sum()) or 1.0
    rows = "".join(
        f"<tr><td>{escape(name)}{bar_style(share / total)}</td>{_cell(old, old_word)}{_cell(new, new_word)}"
        f"<td class=n>{cost}</td></tr>"
        for (name, old_word, new_word, cost), old, new, share in zip(
            change_rows(e), changes["from"], changes["to"], changes["cost"], strict=True
        )
    )
    return f"<table class=changes><tr><th>feature</th><th>from</th><th>to</th><th class=n>cost</th></tr>{rows}</table>"


def _cell(value: Any, words: str) -> str:
    """Cell with the exact value as its tooltip; half a number would mislead, so only labels may break."""
    kind = "" if isinstance(value, str) else " class=whole"
    return f'<td{kind} title="{escape(str(value))}">{escape(words)}</td>'


def _details(e: Answer) -> str:
    """How the answer came about, folded away."""
    facts = [
        ("bound", number(e.bound, 10)),
        ("cost", "" if e.cost is None else number(e.cost, 10)),
        ("method", ", ".join(f"{k} {v}" for k, v in e.method.items() if v not in ("", None, {}) and k not in _APART)),
        ("chosen because", str(e.method.get("why", ""))),
        ("cross-check", _cross_check(e.method.get("cross_check", {}))),
        ("seconds", ", ".join(f"{k} {number(v, 3)}" for k, v in e.times.items() if v)),
        ("size", ", ".join(f"{v:,} {k.replace('_', ' ')}" for k, v in e.sizes.items())),
        ("nodes", str(e.nodes)),
        ("refused points", str(e.refused)),
    ]
    rows = "".join(f"<tr><td>{name}</td><td>{escape(text)}</td></tr>" for name, text in facts if text not in ("", "0"))
    return f"<details><summary>how it was found</summary><table>{rows}</table></details>"


#: Parts of the method that have a line of their own.
_APART = ("why", "cross_check")


def _cross_check(check: Mapping[str, Any]) -> str:
    """What a second way of solving the row said."""
    if not check:
        return ""
    cost = "" if check["cost"] is None else f" for {number(check['cost'], 10)}"
    return f"{check['verdict']}: {check['solver']} on {check['formulation']}, {check['status']}{cost}"

"""Explanations as text, as web pages without any network, and as plots."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ocf.errors import MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd

    from ocf.explanation import Explanation

#: Digits of numbers in text and pages; the tables and the JSON hold all of them.
DIGITS = 6

#: Rows that the text of a batch lists before it only counts the rest.
MOST_ROWS = 20


# -- words -----------------------------------------------------------------------------------------------------


def number(value: float, digits: int = 4) -> str:
    """Number for reading."""
    return f"{value:.{digits}g}"


def word(value: Any, other: Any = None, *, new: bool = False) -> str:
    """Value of a feature for reading: a label as it is, a number with a few digits.

    Parameters
    ----------
    value : object
    other : object
        The value it changes from or to: both are written with as many digits as tell them apart.
    new : bool
        Whether it is the value of the counterfactual. Where rounding it could put it on the other side of a
        split, the words say on which side of the rounded number it lies.
    """
    if value is None:
        return "missing"
    if isinstance(value, bool | str) or not isinstance(value, int | float):
        return str(value)
    exact = repr(value).removesuffix(".0")
    if isinstance(value, int) or len(exact) <= DIGITS + 2:
        return exact
    short = f"{value:.{DIGITS}g}"
    rounded = float(short)
    if rounded == value:
        return short
    if new and abs(value - rounded) <= 1e-6 * abs(value):
        return f"just {'over' if value > rounded else 'under'} {short}"
    if isinstance(other, int | float) and f"{other:.{DIGITS}g}" == short:
        return exact
    return f"about {short}" if new else short


def headline(e: Explanation) -> str:
    """The answer in one sentence."""
    return f"row {e.row}{f', no. {e.rank}' if e.rank > 1 else ''}: {answer(e)}"


def answer(e: Explanation) -> str:
    """The answer, without the row's label."""
    if e.status == "error":
        return "failed"
    if e.status == "interrupted":
        return "interrupted before it was finished"
    if e.status == "infeasible":
        return f"no admissible change gives {wanted(e)}{_by(e)}"
    if e.status == "unknown":
        return f"no change to {wanted(e)} was found within the limit; whether there is one is open"
    if e.cost is None:
        return f"{e.status}, without a cost"
    if e.changes.empty:
        return f"already {wanted(e)}, nothing has to change"
    decided = word(e.decided, e.predicted)
    if e.probability is not None:
        decided += _likely(e) if e.decided in _labels(e) else f", but {wanted(e)},"
    return f"{word(e.predicted, e.decided)} → {decided} for a cost of {number(e.cost)} ({_proof(e)})"


def wanted(e: Explanation) -> str:
    """The target in words."""
    if isinstance(e.target, tuple) and not e.classes:
        return interval(*e.target)
    words = " or ".join(str(label) for label in _labels(e))
    return words + _likely(e)


def _likely(e: Explanation) -> str:
    return "" if e.probability is None else f" with a probability of at least {e.probability!r}"


def _labels(e: Explanation) -> tuple[Any, ...]:
    return e.target if isinstance(e.target, tuple) else (e.target,)


def interval(lowest: float | None, highest: float | None) -> str:
    """Bounds of a value in words, all their digits as the user gave them; None is an open end."""
    low, high = (repr(float(b)).removesuffix(".0") if b is not None else "" for b in (lowest, highest))
    if not (low and high):
        return f"at least {low}" if low else f"at most {high}"
    return low if low == high else f"{low} to {high}"


def _by(e: Explanation) -> str:
    return f" (proven by {e.proved_by})" if e.proved_by else ""


def _proof(e: Explanation) -> str:
    if e.checks:  # nothing is proven of a result that contradicts its own claims
        return f"{e.status} as claimed, but NOT VERIFIED"
    if e.status == "optimal":
        by = f"proven by {e.proved_by}" if e.proved_by else "proven"
        return f"optimal, {by}: no smaller change does it"
    if math.isfinite(e.bound) and e.bound > 0:
        return f"not proven optimal: at least {number(e.bound)} is needed, gap {100 * e.gap:.3g} %"
    return "not proven optimal: no bound is known"


def remarks(e: Explanation) -> list[str]:
    """What a reader must not miss."""
    found = [e.message] if e.message else []
    return found + [f"NOT VERIFIED: {problem}" for problem in e.checks]


def plausibility(e: Explanation) -> list[str]:
    """How deep the counterfactual lies in the isolation forest, as a sentence; empty where nobody asked."""
    if e.plausibility is None:
        return []
    p = e.plausibility
    least = f", wanted at least {number(p['least'], 5)}" if p["least"] is not None else ""
    lacking = p["weight"] * (p["deepest"] - p["depth"])
    price = f"; what it lacks of the deepest, {number(p['deepest'], 5)}, costs {number(lacking)}" if p["weight"] else ""
    score = f"score {number(p['score'], 5)} of {p['library']}"
    return [f"average depth {number(p['depth'], 5)} in {p['trees']} isolation trees{least}{price}; {score}"]


def counted(explanations: Iterable[Explanation]) -> str:
    """Number of rows by status."""
    counts = Counter(e.status for e in explanations)
    total = sum(counts.values())
    parts = ", ".join(f"{n} {status}" for status, n in counts.most_common())
    return f"{total} row{'s' * (total != 1)}" + (f" ({parts})" if parts else "")


def _change_rows(e: Explanation, changes: pd.DataFrame | None = None) -> list[tuple[str, str, str, str]]:
    return [
        (str(name), word(old, new), word(new, old, new=True), number(cost))
        for name, old, new, cost in (e.changes if changes is None else changes)[
            ["feature", "from", "to", "cost"]
        ].itertuples(index=False)
    ]


def ties(e: Explanation) -> list[str]:
    """Other answers of the same cost, a sentence each; empty where nobody asked or there are none."""
    found = [f"for the same cost: {said}" for said in map(_ranges, e.ranges[:1]) if said]
    for k, table in enumerate(e.ties, 1):
        changes = (f"{name} {old} → {new}" for name, old, new, _ in _change_rows(e, e.changes_to(table)))
        said = _ranges(e.ranges[k]) if k < len(e.ranges) else ""
        found.append("or for the same cost: " + ", ".join(changes) + (f" ({said})" if said else ""))
    return found if e.ties_complete is not False else [*found, "there may be more answers of the same cost"]


def _ranges(ranges: Mapping[str, Any]) -> str:
    """Values that cost the same, in words."""
    return ", ".join(
        f"any {name} from {number(said['lowest'])} to {number(said['highest'])}"
        if isinstance(said, Mapping)
        else f"{name} any of {', '.join(map(str, said))}"
        for name, said in ranges.items()
    )


# -- text ------------------------------------------------------------------------------------------------------


def to_text(e: Explanation) -> str:
    """Headline, what must not be missed, and the table of changes."""
    lines = [headline(e), *(f"  {remark}" for remark in [*plausibility(e), *remarks(e)])]
    rows = _change_rows(e)
    if rows:
        lines += _columns([("feature", "from", "to", "cost"), *rows], right=(3,))
    lines += [f"  {other}" for other in ties(e)]
    return "\n".join(lines)


def batch_to_text(explanations: Sequence[Explanation]) -> str:
    """Counts and one line per row."""
    lines = [counted(explanations)]
    for e in explanations[:MOST_ROWS]:
        lines += [f"  {headline(e)}", *(f"    {remark}" for remark in remarks(e))]
    if len(explanations) > MOST_ROWS:
        lines.append(f"  … and {len(explanations) - MOST_ROWS} more")
    return "\n".join(lines)


def _columns(rows: Sequence[Sequence[str]], right: tuple[int, ...]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  " + "  ".join(row[k].rjust(w) if k in right else row[k].ljust(w) for k, w in enumerate(widths))
        for row in rows
    ]


# -- HTML ------------------------------------------------------------------------------------------------------

# Colours inside are the surrounding page's, so that a fragment also fits a notebook with a theme of its own.
_FRAGMENT_STYLE = """
.ocf{font:15px/1.5 system-ui,sans-serif;max-width:46rem;overflow-wrap:anywhere}
.ocf .whole{overflow-wrap:break-word}
.ocf article{border:1px solid rgba(128,128,128,.35);border-radius:8px;padding:.8rem 1rem;margin:0 0 1rem}
.ocf h2{font-size:1.05rem;font-weight:600;margin:0 0 .4rem;line-height:1.35}
.ocf p{margin:.2rem 0}
.ocf .note{opacity:.75}
.ocf .status{display:inline-block;font-size:.8rem;border:1px solid currentColor;border-radius:1rem;
padding:0 .6rem;margin:0 .4rem .3rem 0}
.ocf .wrong{border-left:4px solid #d33;padding-left:.6rem;font-weight:600}
.ocf table{border-collapse:collapse;width:100%;margin:.5rem 0;font-variant-numeric:tabular-nums;background:none}
.ocf th,.ocf td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;color:inherit;
border:0;border-bottom:1px solid rgba(128,128,128,.25);background:none;white-space:normal}
.ocf th{font-weight:600;font-size:.85rem;opacity:.75}
.ocf th.n,.ocf td.n{text-align:right;padding-right:0;white-space:nowrap}
.ocf .bar{height:4px;border-radius:2px;background:#4477aa;margin-top:.2rem}
.ocf summary{cursor:pointer;opacity:.75;font-size:.9rem}
.ocf details td{font-size:.85rem}
@media (max-width:480px){
.ocf .changes tr{display:grid;grid-template-columns:minmax(0,auto) minmax(0,1fr) auto;
padding:.3rem 0;border-bottom:1px solid rgba(128,128,128,.25)}
.ocf .changes tr:first-child{display:none}
.ocf .changes td{border:0;padding:0 .4rem 0 0}
.ocf .changes td:nth-child(1){grid-area:1/1/2/3;font-weight:600}
.ocf .changes td:nth-child(2){grid-area:2/1}
.ocf .changes td:nth-child(3){grid-area:2/2/3/4}
.ocf .changes td:nth-child(3)::before{content:"→ "}
.ocf .changes td:nth-child(4){grid-area:1/3}
.ocf .changes td:nth-child(4)::before{content:"cost ";opacity:.75}
}
"""

_PAGE_STYLE = """
:root{color-scheme:light dark}
body{margin:0 auto;padding:1.2rem;max-width:46rem;background:#fff;color:#1a1a1a}
h1{font:600 1.4rem/1.3 system-ui,sans-serif;margin:.2rem 0 .3rem}
@media (prefers-color-scheme:dark){body{background:#16181c;color:#e6e6e6}.ocf .bar{background:#77aadd}}
"""


def to_fragment(e: Explanation) -> str:
    """HTML for a notebook."""
    return f'<div class="ocf"><style>{_FRAGMENT_STYLE}</style>{_article(e)}</div>'


def batch_to_fragment(explanations: Sequence[Explanation]) -> str:
    """HTML of several for a notebook: counts, frequent changes, and the first rows."""
    shown = explanations[:MOST_ROWS]
    rest = len(explanations) - len(shown)
    more = f'<p class="note">… and {rest} more; <code>to_html()</code> shows all.</p>' if rest else ""
    body = _overview(explanations) + "".join(map(_article, shown)) + more
    return f'<div class="ocf"><style>{_FRAGMENT_STYLE}</style>{body}</div>'


def to_page(explanations: Sequence[Explanation], path: str | Path | None = None) -> str:
    """Self-contained web page; written to `path` if one is given."""
    one = len(explanations) == 1
    title = f"Counterfactual of row {explanations[0].row}" if one else "Counterfactual explanations"
    page = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_FRAGMENT_STYLE}{_PAGE_STYLE}</style></head>\n"
        f'<body><h1>{escape(title)}</h1>\n<main class="ocf">'
        + ("" if one else _overview(explanations))
        + "\n".join(map(_article, explanations))
        + "</main></body></html>\n"
    )
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def _overview(explanations: Sequence[Explanation]) -> str:
    """Counts, and how often each feature changes."""
    found = [e for e in explanations if e.found]
    counts = Counter(name for e in found for name in e.changes["feature"])
    out = f"<p>{escape(counted(explanations))}</p>"
    if len(found) < 2 or not counts:
        return out
    rows = "".join(
        f"<tr><td>{escape(str(name))}{_bar(n / len(found))}</td><td class=n>{n} of {len(found)}</td></tr>"
        for name, n in counts.most_common(12)
    )
    return f"{out}<table><tr><th>feature</th><th class=n>changes in</th></tr>{rows}</table>"


def _article(e: Explanation) -> str:
    verified = '<span class="status">verified</span>' if e.verified else ""
    notes = f'<p class="note">{escape(e.message)}</p>' if e.message else ""
    notes += "".join(f'<p class="note">{escape(sentence)}</p>' for sentence in plausibility(e))
    others = "".join(f'<p class="note">{escape(sentence)}</p>' for sentence in ties(e))
    notes += "".join(f'<p class="wrong">not verified: {escape(problem)}</p>' for problem in e.checks)
    return (
        f'<article><h2>{escape(headline(e))}</h2><span class="status">{escape(e.status)}</span>{verified}'
        f"{notes}{_change_table(e)}{others}{_details(e)}</article>"
    )


def _change_table(e: Explanation) -> str:
    changes = e.changes
    if changes.empty:
        return ""
    total = float(changes["cost"].sum()) or 1.0
    rows = "".join(
        f"<tr><td>{escape(name)}{_bar(share / total)}</td>{_cell(old, old_word)}{_cell(new, new_word)}"
        f"<td class=n>{cost}</td></tr>"
        for (name, old_word, new_word, cost), old, new, share in zip(
            _change_rows(e), changes["from"], changes["to"], changes["cost"], strict=True
        )
    )
    return f"<table class=changes><tr><th>feature</th><th>from</th><th>to</th><th class=n>cost</th></tr>{rows}</table>"


def _bar(share: float) -> str:
    return f'<div class="bar" style="width:{100 * min(max(share, 0.0), 1.0):.1f}%"></div>'


def _cell(value: Any, words: str) -> str:
    """Cell with the exact value as its tooltip; half a number would mislead, so only labels may break."""
    kind = "" if isinstance(value, str) else " class=whole"
    return f'<td{kind} title="{escape(str(value))}">{escape(words)}</td>'


def _details(e: Explanation) -> str:
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


# -- plot ------------------------------------------------------------------------------------------------------


def plot(e: Explanation, ax: Any = None) -> Any:
    """Bars of what each change costs, the dearest on top, each with its words."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingDependencyError("matplotlib", "plot", "Explanation.plot") from None
    changes = e.changes.sort_values("cost", kind="stable")
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 1.1 + 0.5 * max(len(changes), 1)), layout="constrained")
    ax.set_title(_plain_text(headline(e)), loc="left", fontsize="medium", wrap=True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    if changes.empty:
        ax.set_axis_off()
        return ax
    places = np.arange(len(changes))
    ax.barh(places, changes["cost"], height=0.55, color="#4477aa")
    ax.set_yticks(places, [_plain_text(str(name)) for name in changes["feature"]])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("cost of the change")
    room = float(changes["cost"].max()) or 1.0
    for place, cost, old, new in zip(places, changes["cost"], changes["from"], changes["to"], strict=True):
        words = f"{word(old, new)} → {word(new, old, new=True)}"
        ax.annotate(
            _plain_text(words), (cost, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize="small"
        )
    ax.set_xlim(0, 1.45 * room)  # the words stand to the right of the bars
    return ax


def _plain_text(text: str) -> str:
    """Text that matplotlib does not take for mathematics."""
    return text.replace("$", r"\$")

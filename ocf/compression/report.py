"""A compression as a web page without any network: rates, thresholds, a tree in words, and plots."""

from __future__ import annotations

import re
from html import escape
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ocf.compression.plots import plot_thresholds, plot_tradeoff, tradeoff
from ocf.compression.surrogate import SurrogateTree
from ocf.support.pages import FRAGMENT_STYLE, PAGE_STYLE, bar_style
from ocf.support.wording import number

if TYPE_CHECKING:
    from ocf.compression.discretizer import CounterfactualDiscretizer


_STYLE = """
.ocf figure{margin:.6rem 0;background:#fff;border-radius:8px;padding:.4rem;overflow-x:auto}
.ocf figure svg{display:block;width:100%;min-width:30rem;height:auto}
.ocf pre{overflow-x:auto;font:13px/1.5 ui-monospace,monospace;background:rgba(128,128,128,.1);padding:.6rem .8rem;
border-radius:8px}
.ocf .facts{display:flex;flex-wrap:wrap;gap:.4rem 1.6rem;margin:.4rem 0}
.ocf .facts b{display:block;font-size:1.25rem;font-weight:600}
.ocf .facts+p{margin-bottom:1rem}
.ocf .scroll{overflow-x:auto}
.ocf .scroll td,.ocf .scroll th{white-space:nowrap}
.ocf td.n,.ocf th.n{padding-left:.8rem}
"""


def to_page(discretizer: CounterfactualDiscretizer, X: Any, y: Any, path: str | Path | None = None) -> str:
    """Self-contained web page about a fitted discretizer; written to `path` if one is X.

    Parameters
    ----------
    discretizer : fitted CounterfactualDiscretizer
    X, y
        Rows on which the rates and the accuracy are measured, ideally the training rows.
    path : str or Path, optional
    """
    y = np.asarray(y)
    tree = SurrogateTree(discretizer).fit(X, y)
    accuracy = float(np.mean(tree.predict(X) == y))
    rates = tradeoff(discretizer, X, y, trees={"tree": SurrogateTree()})
    title = f"Compression of {len(discretizer.space_)} features"
    body = (
        _facts(discretizer, X, y)
        + f"<article><h2>Tree on these thresholds, right on {accuracy:.1%} of the rows</h2>"
        + f"<pre>{escape(str(tree))}</pre></article>"
        + f"<article><h2>Where the thresholds lie</h2>{_svg(plot_thresholds(discretizer))}</article>"
        + "<article><h2>What a higher Q costs</h2>"
        + f"{_svg(plot_tradeoff(rates))}<div class=scroll>{_rate_table(rates)}</div></article>"
        + f"<article><h2>Thresholds in use</h2>{_threshold_table(discretizer)}</article>"
    )
    page = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{FRAGMENT_STYLE}{PAGE_STYLE}{_STYLE}</style></head>\n"
        f'<body><h1>{escape(title)}</h1>\n<main class="ocf">{body}</main></body></html>\n'
    )
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def _facts(discretizer: CounterfactualDiscretizer, X: Any, y: Any) -> str:
    found = discretizer.metrics(X, y)
    facts = [
        ("thresholds", f"{found['thresholds']} of {len(discretizer.thresholds_)}"),
        ("features", f"{found['features']} of {len(discretizer.space_)}"),
        ("compression", f"{found['compression']:.1%}"),
        ("inconsistency", f"{found['inconsistency']:.1%}"),
        ("Q", f"{discretizer.Q:g}"),
    ]
    searches = ", ".join(f"{n} {status}" for status, n in discretizer.statuses_.items()) or "none"
    cells = "".join(f"<div><b>{escape(value)}</b>{escape(name)}</div>" for name, value in facts)
    return (
        f'<div class=facts>{cells}</div><p class="note">From {len(discretizer.rows_)} counterfactuals '
        f"({escape(searches)}) of {len(y)} rows. Compression: the share of rows that another row already stands for. "
        "Inconsistency: the share that no classifier on these thresholds can get right.</p>"
    )


def _threshold_table(discretizer: CounterfactualDiscretizer) -> str:
    kept = discretizer.thresholds_.query("kept").sort_values("multiplicity", ascending=False, kind="stable")
    if kept.empty:
        return "<p>None: no counterfactual changes anything.</p>"
    most = int(kept["multiplicity"].max())
    rows = "".join(
        f"<tr><td title='{escape(repr(value))}'>{escape(name)}{bar_style(count / most)}</td><td "
        f"class=n>{count}</td></tr>"
        for name, value, count in kept[["name", "threshold", "multiplicity"]].itertuples(index=False)
    )
    return f"<table><tr><th>threshold</th><th class=n>crossed by</th></tr>{rows}</table>"


def _rate_table(rates: Any) -> str:
    head = "".join(f"<th class=n>{escape(str(c))}</th>" for c in rates.columns)
    rows = "".join(
        f"<tr><td>{q:g}</td>" + "".join(f"<td class=n>{number(v, 3)}</td>" for v in row) + "</tr>"
        for q, row in zip(rates.index, rates.to_numpy(), strict=True)
    )
    return f"<table><tr><th>Q</th>{head}</tr>{rows}</table>"


def _svg(ax: Any) -> str:
    """The figure of an Axes as a piece of the page; closes it."""
    import matplotlib
    import matplotlib.pyplot as plt

    text = StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "ocf"}):
        ax.figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(ax.figure)
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    return f"<figure>{re.sub(r'<metadata>.*?</metadata>', '', svg, flags=re.S)}</figure>"

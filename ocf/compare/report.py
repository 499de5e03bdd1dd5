"""A comparison as a web page, as Markdown, and as files of raw rows."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from ocf.compare.figures import Chart, charts
from ocf.compare.frame import Comparison
from ocf.compare.outcomes import STATUSES
from ocf.compare.page import SCRIPT, STYLE
from ocf.compare.statistics import Interval
from ocf.compare.svg import key
from ocf.compare.tables import Share, Table, tables
from ocf.errors import DataError

logger = logging.getLogger(__name__)

#: Rows up to which a table is in the open; longer ones are folded.
OPEN_ROWS = 40


def write_report(c: Comparison, folder: Path) -> list[Path]:
    """Write ``report.html``, ``report.md``, ``runs.csv``, and ``runs.parquet`` where pandas has an engine for it.

    Raises
    ------
    DataError
        The disk is full, or the like.
    """
    found = tables(c)
    raw = raw_rows(c)
    writers: dict[str, Callable[[Path], Any]] = {
        "report.html": lambda path: path.write_text(to_html(c, found), encoding="utf-8"),
        "report.md": lambda path: path.write_text(to_markdown(c, found), encoding="utf-8"),
        "runs.csv": lambda path: raw.to_csv(path, index=False, lineterminator="\n"),
    }
    if _parquet():
        writers["runs.parquet"] = lambda path: raw.to_parquet(path, index=False)
    written = []
    for name, write in writers.items():
        path = folder / name
        try:
            write(path)
        except OSError as error:
            raise DataError(f"cannot write {path}: {error.strerror or error}; the results are kept") from None
        written.append(path)
    return written


def _parquet() -> bool:
    from importlib.util import find_spec

    return any(find_spec(name) for name in ("pyarrow", "fastparquet"))


def raw_rows(c: Comparison) -> pd.DataFrame:
    """All runs and relaxations as one table of plain values; lists become JSON."""
    frames = [f for f in (c.runs, c.relaxations) if len(f)]
    table = pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0].copy()
    for name in ("history", "checks"):
        table[name] = table[name].map(json.dumps)
    return table


# -- words -----------------------------------------------------------------------------------------------------


def summary(c: Comparison) -> str:
    """The comparison in one sentence."""
    counts = c.runs["status"].value_counts()
    states = ", ".join(f"{counts[s]} {s}" for s in STATUSES if s in counts)
    return (
        f"{len(c.methods)} methods on {c.runs['instance'].nunique()} instances: {len(c.runs)} runs ({states}), each "
        f"with {c.limit:g} s and {c.results.suite['suite']['limits']['memory'] / 1e9:.3g} GB."
    )


def remarks(c: Comparison) -> list[str]:
    """What a reader must know before believing the numbers."""
    sessions = c.results.of("session")
    last = sessions[-1] if sessions else {"unavailable": {}}
    out = [f"{name} is not available: {reason}" for name, reason in last["unavailable"].items()]
    out += [f"{s['data']}, {s['model']} was left out: {s['reason']}" for s in _latest_skipped(c)]
    incomplete = len(c.times) - len(c.complete)
    if incomplete:
        out.append(
            f"{incomplete} of {len(c.times)} instances have not been run with every method; ratios, profile and "
            "scatter plots leave them out."
        )
    if len(c.results.of("machine")) > 1:
        out.append("The runs were measured on different machines: times are not comparable between them.")
    if any(s["jobs"] != 1 for s in sessions):
        out.append("Several runs shared the machine at the same time, which makes times longer and less certain.")
    return out


def _latest_skipped(c: Comparison) -> list[dict[str, Any]]:
    """What the latest session could not run."""
    lines = c.results.lines
    start = max((k for k, line in enumerate(lines) if line["kind"] == "session"), default=0)
    return [line for line in lines[start:] if line["kind"] == "skipped"]


def facts(c: Comparison) -> list[tuple[str, str]]:
    """Machine, versions, dates, commands and checksum."""
    out = []
    for line in c.results.of("machine"):
        out += [(str(name), str(value)) for name, value in line["facts"].items()]
    for s in c.results.of("session"):
        load = ", ".join(f"{value:.1f}" for value in s["load"])
        out.append(("run", f"{s['date']}, load over 1, 5, 15 minutes {load}: {s['command']}"))
    for line in c.results.of("case"):
        f = line["facts"]
        score = f", test score {f['score']:.3f}" if "score" in f else ""
        size = f"{f['trees']} trees, {f['leaves']} leaves, {f['features']} features{score}; checksum {f['checksum']}"
        out.append((f"{line['data']}, {line['model']}", size))
    out.append(("suite", f"{c.results.suite['name']}, fingerprint {c.results.suite['fingerprint']}"))
    out.append(("SHA-256 of the raw results", c.results.checksum))
    return out


def cell(value: Any, form: str = ".3g") -> str:
    """A value for reading."""
    if isinstance(value, Interval):
        if math.isnan(value.value):
            return "–"
        return f"{cell(value.value, form)} [{cell(value.low, form)}, {cell(value.high, form)}]"
    if isinstance(value, Share):
        return f"{cell(value.value, form)} ({value.solved}/{value.of})" if value.of else "–"
    if isinstance(value, float):
        if math.isnan(value):
            return "–"
        if math.isinf(value):
            return "inf"
        return f"{value:{form}}"
    return str(value)


# -- page ------------------------------------------------------------------------------------------------------


def to_html(c: Comparison, found: list[Table]) -> str:
    """Self-contained web page."""
    suite = c.results.suite
    title = f"Comparison {suite['name']}"
    drawn = charts(c)
    *main, last = found
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(suite['suite']['description'])}</p>" if suite["suite"]["description"] else "",
        f"<p>{escape(summary(c))}</p>",
        _disagreements(c),
        "".join(f'<p class="note">{escape(text)}</p>' for text in remarks(c)),
        _facts(c),
        *map(_table, main),
        f'<h2>Figures</h2><div class="charts">{"".join(map(_chart, drawn))}</div>' if drawn else "",
        _table(last),
        _failures(c),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body><main>"
        + "\n".join(filter(None, body))
        + f"</main><script>{SCRIPT}</script></body></html>\n"
    )


def _disagreements(c: Comparison) -> str:
    if not c.disagreements:
        checked = len(c.runs[c.runs["found"]])
        return (
            f"<p>No disagreements: the user's own model confirmed {checked} solutions, their costs were recomputed, "
            "and no claim contradicts another.</p>"
        )
    items = "".join(
        f"<li><b>{escape(d.method)}</b> on {escape(d.instance)}: {escape(d.message)}</li>" for d in c.disagreements
    )
    return f'<section class="bad"><h2>DISAGREEMENTS: {len(c.disagreements)}</h2><ul>{items}</ul></section>'


def _facts(c: Comparison) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts(c))
    machines = c.results.of("machine")
    known = machines[0]["facts"] if machines else {}
    short = ", ".join(filter(None, [known.get("CPU"), f"{known.get('cores', '?')} cores", known.get("memory")]))
    head = f"<summary>Measured on {escape(short)}; versions, commands, checksum</summary>"
    return f"<details>{head}<dl>{rows}</dl></details>"


def _table(table: Table) -> str:
    names = list(table.frame.columns)
    texts = [any(isinstance(v, str) for v in table.frame[name]) for name in names]
    head = "".join(
        f'<th{" class=t" if text else ""} scope="col"><button type="button">{escape(str(name))}</button></th>'
        for name, text in zip(names, texts, strict=True)
    )
    rows = "".join(
        "<tr>" + "".join(_cell(v, table.formats.get(n, ".3g")) for n, v in zip(names, row, strict=True)) + "</tr>"
        for row in table.frame.itertuples(index=False)
    )
    content = (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(table.name)}"><table class="sortable">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
    if len(table.frame) > OPEN_ROWS:
        content = f"<details><summary>{len(table.frame)} rows</summary>{content}</details>"
    return f'<section><h2>{escape(table.name)}</h2>{content}<p class="caption">{escape(table.caption)}</p></section>'


def _cell(value: Any, form: str) -> str:
    if isinstance(value, Interval):
        if math.isnan(value.value):
            return '<td data-v="NaN">–</td>'
        range_ = f"{cell(value.low, form)} to {cell(value.high, form)}"
        return f'<td data-v="{value.value!r}">{cell(value.value, form)} <small>{range_}</small></td>'
    if isinstance(value, Share):
        solved = f" <small>{value.solved}/{value.of}</small>" if value.of else ""
        return f'<td data-v="{_sortable(value.value)}">{cell(value.value, form)}{solved}</td>'
    if isinstance(value, str):
        return f"<td class=t>{escape(value)}</td>"
    return f'<td data-v="{_sortable(float(value))}">{escape(cell(value, form))}</td>'


def _sortable(number: float) -> str:
    """Number as the page's script reads it."""
    return "NaN" if math.isnan(number) else "Infinity" if math.isinf(number) else repr(float(number))


def _chart(chart: Chart) -> str:
    legend = "".join(f"<span>{key(style)}{escape(text)}</span>" for style, text in chart.legend)
    return (
        f"<figure><h3>{escape(chart.name)}</h3>{chart.svg}"
        + (f'<div class="legend">{legend}</div>' if legend else "")
        + f'<figcaption class="caption">{escape(chart.caption)}</figcaption></figure>'
    )


def _failures(c: Comparison) -> str:
    """Runs that did not end well, with their messages."""
    bad = c.runs[c.runs["status"].isin(("memory out", "error", "wrong"))]
    if bad.empty:
        return ""
    names = ["method", "data", "model", "position", "status", "message"]
    table = Table("Runs that failed", "", bad[names].rename(columns={"position": "row"}), {})
    return _table(table)


# -- Markdown --------------------------------------------------------------------------------------------------


def to_markdown(c: Comparison, found: list[Table]) -> str:
    """The words and tables of the report."""
    suite = c.results.suite
    lines = [f"# Comparison {suite['name']}", "", suite["suite"]["description"], "", summary(c), ""]
    if c.disagreements:
        lines += [f"## DISAGREEMENTS: {len(c.disagreements)}", ""]
        lines += [f"- **{d.method}** on {d.instance}: {d.message}" for d in c.disagreements] + [""]
    lines += [f"- {text}" for text in remarks(c)] + [""]
    for table in found:
        lines += [f"## {table.name}", "", markdown_table(table), "", table.caption, ""]
    lines += ["## Measured on", ""] + [f"- {name}: {value}" for name, value in facts(c)]
    return "\n".join(lines) + "\n"


def markdown_table(table: Table) -> str:
    """A table in Markdown."""

    def line(cells: list[str]) -> str:
        return "| " + " | ".join(text.replace("|", "\\|").replace("\n", " ") for text in cells) + " |"

    names = list(table.frame.columns)
    rows = [
        line([cell(v, table.formats.get(n, ".3g")) for n, v in zip(names, row, strict=True)])
        for row in table.frame.itertuples(index=False)
    ]
    return "\n".join([line([str(n) for n in names]), "|" + "---|" * len(names), *rows])

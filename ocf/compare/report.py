"""A comparison as a web page, as Markdown, and as files of raw rows."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from ocf.compare.drawing import DASHES
from ocf.compare.figures import charts
from ocf.compare.frame import Comparison
from ocf.compare.outcomes import STATUSES
from ocf.compare.statistics import Interval
from ocf.compare.tables import Share, Table, tables
from ocf.compare.verdict import verdict
from ocf.errors import DataError, MissingDependencyError
from ocf.support.pages import render
from ocf.support.wording import NOTHING, plain_number

logger = logging.getLogger(__name__)

#: Rows up to which a table is in the open; longer ones are folded.
OPEN_ROWS = 40

#: Load for each core above which a machine is busy with other work; seconds of runs whose processor time tells of
#: that, too, and the share of a core below which it does.
BUSY, LONG, GRANTED = 0.5, 0.2, 0.8


def write_report(c: Comparison, folder: Path) -> list[Path]:
    """Write ``report.html``, ``report.md``, ``runs.csv``, and ``runs.parquet`` where pandas has an engine for it.

    Without matplotlib there is no page, and a warning names the command that installs it.

    Parameters
    ----------
    c : Comparison
    folder : Path
        It must exist; files of these names are replaced.

    Returns
    -------
    list of Path
        What is written.

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
    if can_write_parquet():
        writers["runs.parquet"] = lambda path: raw.to_parquet(path, index=False)
    written = []
    for name, write in writers.items():
        path = folder / name
        try:
            write(path)
        except MissingDependencyError as error:
            logger.warning("%s; then ocf compare report %s writes the page, too", error, folder)
            continue
        except OSError as error:
            raise DataError(f"cannot write {path}: {error.strerror or error}; the results are kept") from None
        written.append(path)
    return written


def can_write_parquet() -> bool:
    """Whether a package that writes Parquet files is installed."""
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
    return out + _loaded(c)


def _loaded(c: Comparison) -> list[str]:
    """That other work shared the machine, as far as its load or the runs' own processor time says."""
    loads = [s["load"][0] for s in c.results.of("session") if s["load"]]
    cores = [_cores(m["facts"].get("cores", "")) for m in c.results.of("machine")]
    busy = max(loads, default=0.0)
    long = c.runs[c.runs["wall"] >= LONG]
    share = float((long["cpu"] / long["wall"]).median()) if len(long) else 1.0
    signs = []
    if busy > BUSY * min(cores, default=1):
        signs.append(f"its load was {busy:.1f} when the runs began")
    if share < GRANTED:
        signs.append(f"the median run of {LONG:g} s or more got {share:.0%} of a core")
    if not signs:
        return []
    return [
        f"The machine had other work: {', and '.join(signs)}. Times are longer and less certain for that; the seconds "
        "of the processor (CPU) change less."
    ]


def _cores(text: str) -> int:
    """Number of cores from words such as ``"2 of 4"``; 1 where nothing is known."""
    return int(text.split()[0]) if text.split()[:1] and text.split()[0].isdigit() else 1


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
    """A value for reading.

    Parameters
    ----------
    value : object
        An `Interval`, a `Share`, a float, or what is shown as `str` shows it.
    form : str
        Format of floats.
    """
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
        if form.endswith("g"):
            return plain_number(value, int(form.strip(".g")))
        return f"{0.0 if abs(value) < NOTHING else value:{form}}"
    return str(value)


# -- page ------------------------------------------------------------------------------------------------------


def to_html(c: Comparison, found: list[Table]) -> str:
    """Self-contained web page.

    Parameters
    ----------
    c : Comparison
    found : list of Table
        As `tables` makes them; the figures stand before the last.

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    """
    suite = c.results.suite
    *main, last = map(_template_table, found)
    return render(
        "ocf.compare",
        "report.html.j2",
        title=f"Comparison {suite['name']}",
        description=suite["suite"]["description"],
        summary=summary(c),
        verdict=verdict(c),
        disagreements=c.disagreements,
        remarks=remarks(c),
        machine=_machine(c),
        facts=facts(c),
        tables=main,
        charts=charts(c),
        last_tables=[last, *_failures(c)],
        open_rows=OPEN_ROWS,
        line_dashes=DASHES,
    )


def _machine(c: Comparison) -> str:
    """The machine in a few words."""
    machines = c.results.of("machine")
    known = machines[0]["facts"] if machines else {}
    return ", ".join(filter(None, [known.get("CPU"), f"{known.get('cores', '?')} cores", known.get("memory")]))


def _template_table(table: Table) -> dict[str, Any]:
    """A table as the template takes it; what a row is about stands in one column."""
    names, n = list(table.frame.columns), table.labels
    texts = [any(isinstance(v, str) for v in table.frame[name]) for name in names]
    rows = []
    for row in table.frame.itertuples(index=False):
        cells = [_cell(v, table.formats.get(k, ".3g")) for k, v in zip(names, row, strict=True)]
        about = {"kind": "text", "text": cells[0]["text"], "more": ", ".join(cell["text"] for cell in cells[1:n])}
        rows.append([about if n > 1 else cells[0], *cells[n:]])
    heads = [(", ".join(map(str, names[:n])), texts[0]), *zip(names[n:], texts[n:], strict=True)]
    return {"name": table.name, "caption": table.caption, "heads": heads, "rows": rows, "folded": table.folded}


def _cell(value: Any, form: str) -> dict[str, str]:
    """Text of a cell, what stands behind it in small letters, and the number it is sorted by."""
    if isinstance(value, str):
        return {"kind": "text", "text": value, "more": ""}
    more = ""
    if isinstance(value, Interval):
        if not math.isnan(value.value):
            more = f"{cell(value.low, form)} to {cell(value.high, form)}"
        value = value.value
    elif isinstance(value, Share):
        more = f"{value.solved}/{value.of}" if value.of else ""
        value = value.value
    return {"kind": "number", "text": cell(value, form), "more": more, "sortable": _sortable(float(value))}


def _sortable(number: float) -> str:
    """Number as the page's script reads it."""
    return "NaN" if math.isnan(number) else "Infinity" if math.isinf(number) else repr(float(number))


def _failures(c: Comparison) -> list[dict[str, Any]]:
    """Table of the runs that did not end well, with their messages; none where all did."""
    bad = c.runs[c.runs["status"].isin(("memory out", "error", "wrong"))]
    if bad.empty:
        return []
    names = ["method", "data", "model", "position", "status", "message"]
    return [_template_table(Table("Runs that failed", "", bad[names].rename(columns={"position": "row"}), {}))]


# -- Markdown --------------------------------------------------------------------------------------------------


def to_markdown(c: Comparison, found: list[Table]) -> str:
    """The words and tables of the report.

    Parameters
    ----------
    c : Comparison
    found : list of Table
        As `ocf.compare.tables.tables` makes them of it.
    """
    suite = c.results.suite
    lines = [f"# Comparison {suite['name']}", "", *verdict(c), "", suite["suite"]["description"], "", summary(c), ""]
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

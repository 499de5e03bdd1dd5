"""Reports of results that were made by hand: the page, its words, and every file."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from ocf.compare import read
from ocf.compare.report import cell, facts, remarks, summary, to_html, to_markdown, write_report
from ocf.compare.statistics import Interval
from ocf.compare.tables import tables
from ocf.errors import DataError

from .synthetic import LIMIT, TIMES_OF, comparison, line, relaxation, standard, write


def test_page_holds_everything_and_asks_for_nothing(tmp_path: Path) -> None:
    folder = standard(tmp_path)
    c = comparison(folder)
    page = to_html(c, tables(c))
    assert "Made &lt;by hand&gt;." in page
    assert "No disagreements" in page
    assert page.index('class="verdict">box is the fastest') < page.index("<h2>Methods") < page.index("12 runs")
    assert page.index("No disagreements") < page.index("<h2>Methods")
    assert c.results.checksum in page
    assert not re.search(r"(src|href)=|url\(|@import|https?://", page)
    for name, value in facts(c):
        assert name in page
        assert value in page or "×" in value
    assert len(page) < 500_000


def test_markdown(tmp_path: Path) -> None:
    c = comparison(standard(tmp_path))
    text = to_markdown(c, tables(c))
    assert "3 methods on 4 instances: 12 runs (9 ok, 3 time out), each with 10 s and 2 GB." in text
    assert "| interval/highs | 3 | 4 |" in text
    assert "| interval/highs | box | 3 | 2 [2, 2] |" in text
    assert text.index("box is the fastest") < text.index("Made")
    assert text.count("\n## ") == 8


def test_files(tmp_path: Path) -> None:
    folder = standard(tmp_path)
    names = [path.name for path in write_report(comparison(folder), folder)]
    assert names[:3] == ["report.html", "report.md", "runs.csv"]
    raw = pd.read_csv(folder / "runs.csv")
    assert len(raw) == 20
    assert raw.loc[raw["kind"] == "run", "seconds"].tolist() == [
        min(t, LIMIT) for times in TIMES_OF.values() for t in times
    ]
    assert json.loads(raw["history"][0])[0] == [0.0, 0.0, "inf"]
    pytest.importorskip("pyarrow")
    assert names[3] == "runs.parquet"
    assert pd.read_parquet(folder / "runs.parquet")["cost"].equals(raw["cost"])


def test_without_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocf.compare.report.can_write_parquet", lambda: False)
    folder = standard(tmp_path)
    assert len(write_report(comparison(folder), folder)) == 3


def test_without_matplotlib_all_but_the_page_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    folder = standard(tmp_path)
    names = [path.name for path in write_report(comparison(folder), folder)]
    assert names[:2] == ["report.md", "runs.csv"]
    assert not (folder / "report.html").exists()
    assert "report.html needs the package 'matplotlib': pip install 'ocf[report]'" in caplog.text


def test_the_same_results_give_the_same_page(tmp_path: Path) -> None:
    c = comparison(standard(tmp_path))
    assert to_html(c, tables(c)) == to_html(c, tables(c))


def test_full_disk_keeps_the_results(tmp_path: Path) -> None:
    folder = standard(tmp_path)
    (folder / "report.md").symlink_to("/dev/full")
    with pytest.raises(DataError, match=r"report\.md: No space left on device; the results are kept"):
        write_report(comparison(folder), folder)
    assert len(read(folder).of("run")) == 12


def test_disagreements_are_on_top(tmp_path: Path) -> None:
    lines = [line("box", 0, 1.0), line("ocean/highs", 0, 1.0, cost=1.5, bound=1.5)]
    lines += [relaxation("ocean", 0, 1.1)]
    c = comparison(write(tmp_path, lines, ["box", "ocean/highs"]))
    assert [(d.method, d.message) for d in c.disagreements] == [
        ("ocean/highs", "it claims that 1.5 is optimal, against the verified solution of box that costs 1.0"),
        ("LP relaxation of ocean", "its LP bound 1.1 is above the verified solution of box that costs 1.0"),
    ]
    page = to_html(c, tables(c))
    assert page.index("DISAGREEMENTS: 2") < page.index("<h2>Methods")
    assert "## DISAGREEMENTS: 2" in to_markdown(c, tables(c))
    assert "(1 ok, 1 wrong)" in summary(c)
    assert "Runs that failed" in page


def test_remarks(tmp_path: Path) -> None:
    folder = standard(tmp_path, TIMES_OF | {"box": (0.5, 1.0, 2.0, math.nan)})
    with (folder / "results.jsonl").open("a") as file:
        for extra in (
            {
                "kind": "session",
                "date": "2",
                "command": "",
                "jobs": 2,
                "load": [1.0],
                "unavailable": {"gone": "not installed"},
            },
            {"kind": "machine", "id": "n", "facts": {"CPU": "Other"}},
            {"kind": "skipped", "data": "adult", "model": "m", "reason": "no folder"},
        ):
            file.write(json.dumps(extra) + "\n")
    found = "\n".join(remarks(comparison(folder)))
    for words in (
        "gone is not available: not installed",
        "adult, m was left out: no folder",
        "1 of 4 instances have not been run with every method",
        "measured on different machines",
        "Several runs shared the machine",
    ):
        assert words in found


@pytest.mark.parametrize("status", ["error", "memory out"])
def test_nothing_is_solved(tmp_path: Path, status: str) -> None:
    bad = {"status": status, "found": False, "cost": None, "bound": None, "gap": None, "answer": "", "history": []}
    lines = [line(m, k, 1.0, sizes={}, times={}, nodes=None, **bad) for m in ("box", "ocean/highs") for k in range(2)]
    c = comparison(write(tmp_path, lines, ["box", "ocean/highs"]))
    assert "Runs that failed" in to_html(c, tables(c))
    assert f"4 {status}" in to_markdown(c, tables(c))


def test_numbers_are_written_as_people_write_them() -> None:
    texts = [cell(v, f) for v, f in ((-3.96e-15, ".3g"), (12345.6, ".3g"), (0.000123456, ".3g"), (-1e-12, ".2%"))]
    assert texts == ["0", "12,300", "0.000123", "0.00%"]
    assert cell(Interval(1234.5, -1e-16, math.inf)) == "1,230 [0, inf]"


def test_a_loaded_machine_is_said(tmp_path: Path) -> None:
    assert not any("other work" in text for text in remarks(comparison(standard(tmp_path / "a"))) if "load" in text)
    folder = standard(tmp_path / "b")
    text = (folder / "results.jsonl").read_text()
    (folder / "results.jsonl").write_text(text.replace('"load": [0.5, 0.5, 0.5]', '"load": [2.5, 1.0, 1.0]'))
    (said,) = (text for text in remarks(comparison(folder)) if "other work" in text)
    assert "its load was 2.5 when the runs began, and the median run of 0.2 s or more got 50% of a core" in said


def test_pairs_are_folded_and_rows_named_in_one_column(tmp_path: Path) -> None:
    page = to_html(comparison(standard(tmp_path)), tables(comparison(standard(tmp_path))))
    ratios = page[page.index("<h2>Ratios") :]
    assert ratios.index("<details>") < ratios.index("<table")
    assert '<td class="t about">set <small>random forest 10 × 5, to 1 l1</small></td>' in page

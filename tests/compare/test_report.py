"""Reports of results that were made by hand: every table, and the words around them."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ocf.compare import read
from ocf.compare.drawing import Axis, Figure
from ocf.compare.figures import charts, primal_integrals
from ocf.compare.frame import Comparison, compare
from ocf.compare.report import facts, remarks, summary, to_html, to_markdown, write_report
from ocf.compare.tables import tables
from ocf.errors import DataError

from .synthetic import LIMIT, TIMES_OF, line, relaxation, standard, write


def comparison(folder: Path) -> Comparison:
    return compare(read(folder))


def table(folder: Path, name: str) -> pd.DataFrame:
    (found,) = (t for t in tables(comparison(folder)) if t.name == name)
    return found.frame.set_index(found.frame.columns[0])


def test_methods(tmp_path: Path) -> None:
    found = table(standard(tmp_path), "Methods")
    assert list(found.index) == ["box", "interval/highs", "ocean/highs"]
    row = found.loc["interval/highs"]
    assert (row["solved"], row["of"], row["time out"]) == (3, 4, 1)
    # (1 + 1)(2 + 1)(4 + 1)(10 + 1) = 330
    assert row["SGM"] == pytest.approx(330**0.25 - 1)
    assert row["PAR-2"] == pytest.approx((1 + 2 + 4 + 20) / 4)
    assert row["PAR-10"] == pytest.approx((1 + 2 + 4 + 100) / 4)
    assert (row["median"], row["maximum"], row["nodes"]) == (3.0, 10.0, 15.0)
    assert row["gap at limit"] == 0.75
    assert row["CPU"] == 1.5
    assert row["peak MB"] == 200.0
    assert "memory out" not in found
    # gap 1 for half the time, then (2 - 1) / 2 until the end: 3 / 4 of 1, 2, 4 and 10 s
    assert row["primal integral"] == pytest.approx(0.75 * (1 + 2 + 4 + 10) / 4)


def test_time_split(tmp_path: Path) -> None:
    found = table(standard(tmp_path), "Where the time goes")
    assert found.loc["box", "total"] == pytest.approx(7.5 / 4)
    assert found.loc["box", "outside solver"] == pytest.approx(0.5)


def test_ratios(tmp_path: Path) -> None:
    found = table(standard(tmp_path), "Ratios between methods").reset_index().set_index(["method", "against"])
    row = found.loc[("interval/highs", "ocean/highs")]
    # both solved 1 : 2 and 2 : 8; with penalties 4 : 100 as well
    assert row["both solved"] == 2
    assert row["ratio"].value == pytest.approx((1 / 2 * 1 / 4) ** (1 / 2))
    assert row["either solved"] == 3
    assert row["ratio with penalties"].value == pytest.approx((1 / 2 * 1 / 4 * 1 / 25) ** (1 / 3))
    assert row["ratio"].low <= row["ratio"].value <= row["ratio"].high
    assert found.loc[("interval/highs", "box")]["ratio"] == pytest.approx((2.0, 2.0, 2.0))


def test_bounds_and_sizes(tmp_path: Path) -> None:
    folder = standard(tmp_path)
    found = table(folder, "LP bounds")
    # every optimum is 1
    assert found.loc["interval", "bound / optimum"] == pytest.approx((0.8, 0.8, 0.8))
    assert found.loc["ocean", "median"] == 0.6
    sizes = table(folder, "Model size").loc["box"]
    assert [sizes[k] for k in ("rows", "columns", "nonzeros", "binaries")] == [30, 20, 90, 10]
    assert sizes["leaves left"] == 0.2


def test_instances(tmp_path: Path) -> None:
    found = table(standard(tmp_path), "Instances")
    assert found["box"].tolist() == [0.5, 1.0, 2.0, 4.0]
    assert math.isnan(found["interval/highs"].iloc[3])
    assert found["best cost"].tolist() == [1.0] * 4


def test_figures(tmp_path: Path) -> None:
    found = {chart.name: chart for chart in charts(comparison(standard(tmp_path)))}
    assert list(found) == [
        "Performance profile",
        "Cactus plot",
        "Scaling with trees",
        "Primal integral",
        *(f"Bound and solution over time: set, row {k}" for k in (3, 2, 1, 0)),
        "box against interval/highs",
        "box against ocean/highs",
        "interval/highs against ocean/highs",
    ]
    caption = found["Performance profile"].caption
    assert "τ runs from 1 to 9.2, past the largest ratio that occurs, 8" in caption
    assert "interval/highs 1, ocean/highs 2, box 0; 0 instances that nobody solved" in caption
    assert "not solved" in found["box against ocean/highs"].svg
    for chart in found.values():
        assert "nan" not in chart.svg
        assert "inf" not in re.sub("<title>.*?</title>|<text.*?</text>", "", chart.svg)


def test_scaling(tmp_path: Path) -> None:
    lines = [
        line("box", 10 * k + t, float(t * d), instance=f"i{k}{t}{d}", trees=t, depth=d, key=f"{k}{t}{d}")
        for k in range(3)
        for t in (1, 2)
        for d in (1, 2)
    ]
    found = {chart.name: chart for chart in charts(comparison(write(tmp_path, lines, ["box"])))}
    assert "Instances: 6 at 1, 6 at 2." in found["Scaling with trees"].caption
    # shifted by 1, at 2 trees and depths 1 and 2: 3 and 5, three times each
    assert f"box, trees 2: {15**0.5 - 1:.3g} s" in found["Scaling with trees"].svg
    assert f"box, depth 1: {6**0.5 - 1:.3g} s" in found["Scaling with depth"].svg


def test_integral_of_a_run_that_was_killed_counts_in_full(tmp_path: Path) -> None:
    killed = line("ocean/highs", 0, 99.0, found=False, cost=None, bound=None, gap=None, answer="", history=[])
    folder = write(tmp_path, [line("box", 0, 1.0), killed], ["box", "ocean/highs"])
    assert primal_integrals(comparison(folder)).to_numpy().tolist() == [[0.75, LIMIT]]


def test_page_holds_everything_and_asks_for_nothing(tmp_path: Path) -> None:
    folder = standard(tmp_path)
    c = comparison(folder)
    page = to_html(c, tables(c))
    assert "Made &lt;by hand&gt;." in page
    assert "No disagreements" in page
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


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("hollow", [True, False])
def test_every_mark_bears_its_words(count: int, hollow: bool) -> None:
    figure = Figure("marks", Axis("x", 0.0, 2.0), Axis("y", 1.0, 9.0, log=True))
    figure.dots([1.0, 2.0][:count], [1.0, 3.0][:count], 0, ["one", "two"][:count], hollow=hollow)
    svg = figure.render()
    assert [f"<title>{words}</title></path>" in svg for words in ("one", "two")] == [True, count == 2]


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


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"cost": 1.0 + 1e-12, "bound": 1.0 + 1e-12}, False),
        ({"answer": "infeasible", "found": False, "cost": None, "bound": "inf", "gap": None}, True),
        ({"answer": "feasible", "cost": 2.0, "bound": 1.5, "status": "time out"}, True),
        ({"answer": "feasible", "cost": 2.0, "bound": 0.9, "status": "time out"}, False),
        ({"answer": "unknown", "found": False, "cost": None, "bound": 1.5, "status": "time out"}, True),
        ({"checks": ["The changes cost 2.0, not 1.0 as claimed."], "status": "wrong"}, True),
        # a cheaper point that is not verified refutes nothing, and is itself wrong
        ({"cost": 0.5, "bound": 0.5, "checks": ["unsound"], "status": "wrong"}, True),
        # another model: not the same question
        ({"cost": 1.5, "bound": 1.5, "case": "other"}, False),
    ],
)
def test_claims_against_a_verified_solution(tmp_path: Path, changes: dict[str, Any], wrong: bool) -> None:
    folder = write(tmp_path, [line("box", 0, 1.0), line("ocean/highs", 0, 1.0, **changes)], ["box", "ocean/highs"])
    assert [d.method for d in comparison(folder).disagreements] == ["ocean/highs"] * wrong


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


def test_no_run_yet(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no run yet: run the suite first"):
        comparison(write(tmp_path, [], ["box"]))

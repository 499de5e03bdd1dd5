"""Across files: all papers' experiments by one command, and what stands above a table and in its CSV file."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

PAPERS = Path(__file__).parents[2] / "examples" / "papers"


def module(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of the experiments, which find each other in their folder."""
    monkeypatch.syspath_prepend(str(PAPERS))
    spec = importlib.util.spec_from_file_location(f"papers_{name}", PAPERS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    out = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, f"papers_{name}", out)
    spec.loader.exec_module(out)
    return out


def test_no_experiment_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {e.script for e in module("all", monkeypatch).EXPERIMENTS}
    there = {
        f"{path.parent.name}/{path.name}"
        for path in PAPERS.glob("*/*.py")
        if "def main(" in path.read_text() and "__main__" in path.read_text()
    }
    assert listed == there


def test_every_script_is_in_the_quick_run(monkeypatch: pytest.MonkeyPatch) -> None:
    every = module("all", monkeypatch)
    quick = every.chosen(every.EXPERIMENTS, None, True)
    assert {e.script for e in quick} == {e.script for e in every.EXPERIMENTS}
    assert [e.name for e in every.chosen(every.EXPERIMENTS, ["rules"], False)] == ["rules"]


def test_one_that_fails_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    every = module("all", monkeypatch)
    (tmp_path / "bad.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "good.py").write_text("import sys\nprint(sys.argv[1:])\n")
    names = (
        every.Experiment("bad", "bad.py", needs_data=False),
        every.Experiment("good", "good.py", ("--much",), ("--little",), needs_data=False),
        every.Experiment("data", "good.py"),
    )
    monkeypatch.setattr(every, "FOLDER", tmp_path)
    monkeypatch.setattr(every, "EXPERIMENTS", names)
    monkeypatch.setattr(sys, "argv", ["all.py", "--quick", "-o", str(tmp_path / "out")])
    monkeypatch.delenv("OCF_DATA", raising=False)
    with pytest.raises(SystemExit) as end:
        every.main()
    assert end.value.code == 1
    table = (tmp_path / "out" / "experiments.md").read_text()
    assert "| bad | failed (3) |" in table
    assert "| good | done |" in table
    assert "| data | left out" in table
    assert f"['-o', '{tmp_path / 'out' / 'good'}', '--little', '--quick']" in capfd.readouterr().out


def test_a_table_says_how_it_was_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = module("runs", monkeypatch)
    kept = runs.Runs(tmp_path)
    kept.add({"row": 1}, {"cost": 0.5})
    (tmp_path / "runs.jsonl").write_text((tmp_path / "runs.jsonl").read_text().replace(kept.days, "2026-02-28"))
    kept = runs.Runs(tmp_path)
    kept.add({"row": 3}, {"cost": 0.5})
    kept = runs.Runs(tmp_path)  # the third row's day does not count: nobody asks for it
    assert kept.get({"row": 1}) == {"cost": 0.5}
    script = str(PAPERS / "ocean" / "table4.py")
    words = [script, "--data", "/a/folder", "--rows", "3", "-o", str(tmp_path), "--data=/a/folder"]
    monkeypatch.setattr(sys, "argv", words)
    runs.publish(tmp_path, "table4", kept, "| a |\n", pd.DataFrame({"cost": [0.5]}), "3 rows a set")
    about = "2026-02-28, python examples/papers/ocean/table4.py --rows 3: 3 rows a set"
    assert (tmp_path / "table4.md").read_text() == f"{about}\n\n| a |\n"
    assert (tmp_path / "table4.csv").read_text().splitlines() == [f"# {about}", "cost", "0.5"]
    assert pd.read_csv(tmp_path / "table4.csv", comment="#").cost.tolist() == [0.5]
    kept.add({"row": 2}, {"cost": 0.5})
    assert kept.days.startswith("2026-02-28 to ")


def line(row: int, method: str = "box", status: str = "optimal", cost: float = 1.0, seconds: float = 1.0) -> str:
    """A line of a CSV file of OCEAN's experiments."""
    return f"AD,100,5,{method},l1,{row},300,{status},{cost:.6g},{seconds:g}"


def table(path: Path, *lines: str) -> Path:
    head = "# a day, a command: limits\nset,trees,depth,method,norm,row,limit,status,cost,seconds"
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def test_two_files_of_a_table_differ_in_what_got_worse(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compared = module("diff", monkeypatch)
    before = table(tmp_path / "a.csv", *(line(k) for k in range(4)), line(0, "OCEAN"))
    after = table(
        tmp_path / "b.csv",
        line(0, cost=1.000001),  # the last of six digits
        line(1, seconds=5.0),
        line(2, status="feasible", cost=1.5, seconds=301.0),
        line(3, seconds=0.2),
    )

    def ended(first: Path, second: Path) -> int:
        monkeypatch.setattr(sys, "argv", ["diff.py", str(first), str(second)])
        with pytest.raises(SystemExit) as end:
            compared.main()
        return int(end.value.code or 0)

    assert ended(before, after) == 7
    told = capsys.readouterr().out
    assert "| box | 4 | 4 | 3 |" in told
    assert "Contradictions" not in told
    assert "box on AD, trees 100 depth 5, row 1 norm l1: 1 s became 5 s" in told
    assert "row 2 norm l1: ok became time out (it took 1 s)" in told
    assert "Improvements: 1\n" in told
    assert "methods that only one of the two has: OCEAN" in told
    assert ended(before, before) == 0
    assert ended(before, table(tmp_path / "c.csv", line(0, cost=1.1))) == 6
    assert "the optimum was 1 and is 1.1" in capsys.readouterr().out
    assert ended(before, table(tmp_path / "d.csv", line(9))) == 2
    assert "no run in common" in capsys.readouterr().err


def test_milliseconds_are_read_as_seconds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    head = "# a day, a command: limits\nset,rows,solver,row,status,cost,ms\n"
    (tmp_path / "a.csv").write_text(head + "boston,30,highs,0,optimal,0.4,1500\n")
    runs = module("diff", monkeypatch).read(tmp_path / "a.csv").runs
    assert runs.seconds.tolist() == [1.5]
    assert runs.method.tolist() == ["highs"]


@pytest.mark.parametrize(
    "name",
    [
        *(f"ocean/{stem}.csv" for stem in ("table3", "table3-mace", "table4", "tableA2", "figure1", "figureF3")),
        *(f"oblique/table2{part}.csv" for part in ("", "-bounded", "-breast", "-spambase")),
        *(f"oblique/{stem}.csv" for stem in ("table3", "table3-round-last", "figure4")),
        "fcca/solvers.csv",
        "box/digits.csv",
        "box/improvements.csv",
    ],
)
def test_files_of_the_papers_can_be_compared(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    runs = module("diff", monkeypatch).read(PAPERS / name).runs
    assert not runs.duplicated(["instance", "method"]).any()
    assert len(runs) == len(pd.read_csv(PAPERS / name, comment="#"))


def test_every_table_beside_a_page_says_how_it_was_made() -> None:
    for path in PAPERS.glob("*/*.csv"):
        about = path.read_text().split("\n", 1)[0]
        assert re.match(rf"# \d{{4}}-\d\d-\d\d.*, python examples/papers/{path.parent.name}/\w+\.py", about), path.name
        assert " --data" not in about, path.name


#: Written by each experiment's quick form; those of the box paper have tests of their own.
WRITTEN = {
    "fcca": "tables-quick.csv",
    "fcca-solvers": "trees-quick.csv",
    "oblique-table1": "table1-quick.csv",
    "oblique-table2": "table2-quick.csv",
    "oblique-table3": "table3-quick.csv",
    "oblique-table6": "table6-quick.csv",
    "oblique-figure4": "figure4-quick.csv",
    "ocean-figure1": "figure1-quick.csv",
    "ocean-figures23": "figureF2.png",
    "ocean-figure4": "figure4.png",
    "ocean-table3": "table3-quick.png",
    "ocean-table4": "table4-quick.csv",
    "ocean-record": "record-quick.csv",
    "rules": "figures.csv",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder in which the oblique experiments keep their trees for each other."""
    return tmp_path_factory.mktemp("models")


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", WRITTEN)
def test_quick_experiments(tmp_path: Path, models: Path, name: str) -> None:
    folder = os.environ.get("OCF_DATA")
    if not folder:
        pytest.skip("OCF_DATA names no folder of data sets")
    words = [sys.executable, str(PAPERS / "all.py"), "--quick", "--only", name, "--data", folder, "-o", str(tmp_path)]
    around = os.environ | {"OCF_MODELS": str(models)}
    done = subprocess.run(words, capture_output=True, text=True, env=around, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / name / WRITTEN[name]).stat().st_size > 100


def test_every_quick_experiment_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    every = module("all", monkeypatch)
    quick = {e.name for e in every.chosen(every.EXPERIMENTS, None, True)}
    assert {name for name in quick if not name.startswith("box-")} == set(WRITTEN)

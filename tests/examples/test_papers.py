"""Across files: all papers' experiments by one command, and what stands above a table and in its CSV file."""

from __future__ import annotations

import importlib.util
import os
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


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("ocean-figure1", "figure1-quick.csv"),
        ("ocean-figure4", "figure4.png"),
        ("ocean-table3", "table3-quick.png"),
        ("ocean-table4", "table4-quick.csv"),
        ("ocean-record", "record-quick.csv"),
    ],
)
def test_quick_experiments_of_ocean(tmp_path: Path, name: str, written: str) -> None:
    folder = os.environ.get("OCF_DATA")
    if not folder:
        pytest.skip("OCF_DATA names no folder of data sets")
    words = [sys.executable, str(PAPERS / "all.py"), "--quick", "--only", name, "--data", folder, "-o", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / name / written).stat().st_size > 100

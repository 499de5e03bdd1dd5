"""The experiments of the box paper in their quick form: what they write, and that they resume."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "papers" / "box"


def run(script: str, output: Path, *options: str) -> str:
    """Run a script; its output. A failure shows what it wrote to stderr."""
    command = [sys.executable, str(FOLDER / script), "--quick", "-o", str(output), *options]
    environment = {k: v for k, v in os.environ.items() if k != "OCF_DATA"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def data() -> str:
    folder = os.environ.get("OCF_DATA")
    if not folder:
        pytest.skip("OCF_DATA names no folder of data sets")
    return folder


def records(output: Path) -> list[dict[str, dict[str, object]]]:
    return [json.loads(line) for line in (output / "runs.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_digits_of_scikit_learn(tmp_path: Path) -> None:
    text = run("digits.py", tmp_path)
    results = [record["result"] for record in records(tmp_path)]
    assert results
    assert all(r["proved"] and r["verified"] for r in results)
    assert all(0 < r["l2"] <= r["l1"] for r in results)  # type: ignore[operator]
    assert "4 versus 9" in text
    assert (tmp_path / "table3.md").read_text().strip() == text.strip()
    assert any(tmp_path.glob("epsilon-*.png"))
    before = (tmp_path / "runs.jsonl").read_text()
    run("digits.py", tmp_path)
    assert (tmp_path / "runs.jsonl").read_text() == before


@pytest.mark.data
def test_credit_denial(tmp_path: Path) -> None:
    text = run("credit.py", tmp_path, "--data", data())
    results = [record["result"] for record in records(tmp_path)]
    assert all(r["status"] == "optimal" and r["verified"] for r in results)
    assert "Client status" in text
    assert "Recommendation" in text
    for record in records(tmp_path):
        changed = set(record["result"]["changes"])  # type: ignore[call-overload]
        assert not changed & set(record["job"]["fixed"])  # type: ignore[call-overload]


@pytest.mark.data
def test_house_prices(tmp_path: Path) -> None:
    text = run("houses.py", tmp_path, "--data", data())
    changes = [record for record in records(tmp_path) if "table" in record["job"]]  # type: ignore[operator]
    by_table = {r["job"]["table"]: r["result"] for r in changes if "asking" not in r["job"]}  # type: ignore[call-overload,operator]
    assert set(by_table) == {"IV", "V", "VI", "VII", "VIII"}
    for table, low, high in (("V", 203_382, 250_000), ("VI", 211_442, 250_000), ("VII", 350_000, 376_669)):
        if by_table[table]["status"] == "optimal":
            assert low <= by_table[table]["new"] <= high  # type: ignore[operator]
    assert by_table["V"]["cost"] <= by_table["VI"]["cost"]  # type: ignore[operator]
    asked = pd.read_csv(tmp_path / "houses-asking-quick.csv", comment="#").sort_values("asking")
    assert asked.cost.is_monotonic_increasing  # a higher price never takes less
    assert (asked.new >= asked.asking).all()
    lots = pd.read_csv(tmp_path / "houses-lots-quick.csv", comment="#")
    assert (lots.least < lots.middle).all()
    assert (lots.middle < lots.greatest).all()
    assert "decision regions" in text
    assert (tmp_path / "figure7.png").stat().st_size > 10_000


@pytest.mark.data
def test_improvements_of_algorithm_5(tmp_path: Path) -> None:
    text = run("improvements.py", tmp_path, "--data", data())
    costs: dict[tuple[object, object], set[float]] = {}
    tasks: dict[object, int] = {}
    for record in records(tmp_path):
        job, result = record["job"], record["result"]
        if result["status"] == "optimal":
            costs.setdefault((job["trees"], job["row"]), set()).add(round(result["cost"], 9))  # type: ignore[call-overload]
        if job["trees"] == 5:
            tasks[job["step"]] = tasks.get(job["step"], 0) + result["tasks"]  # type: ignore[operator]
    assert costs
    assert all(len(found) == 1 for found in costs.values())  # all searches prove the same cost
    assert tasks["algorithm 5"] >= tasks["+ nearest first"] >= tasks["+ sums of best leaves"]
    assert "| box search |" in text
    assert (tmp_path / "improvements-quick.csv").read_text().startswith("# ")

"""The benchmark of Pipelines in its quick form: both ways find the same optima, and its table says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd

SCRIPT = Path(__file__).parents[2] / "examples" / "benchmarks" / "pipelines.py"


def small_set(folder: Path) -> None:
    """Some loans as a set of a folder, with fewer rows."""
    from ocf.compare.loans import SETTINGS, make_loans

    loans = make_loans()
    table = loans[list(SETTINGS)].assign(target=loans["granted"]).iloc[:200]
    facts = {}
    for name, setting in SETTINGS.items():
        own = table[name]
        ends = {"min": float(own.min()), "max": float(own.max())} if setting["kind"] == "numeric" else {}
        facts[name] = {"type": setting["kind"], "levels": sorted(own.unique().tolist()), **ends}
    table.to_csv(folder / "small.csv", index=False)
    (folder / "small.json").write_text(json.dumps({"features": facts, "target": {"desired": 1}}))


def test_the_price_of_a_pipeline(tmp_path: Path) -> None:
    small_set(tmp_path)
    output = tmp_path / "out"
    command = [sys.executable, str(SCRIPT), "--quick", "--data", str(tmp_path), "--sets", "small", "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads((output / "runs.jsonl").read_text())["result"]
    assert all(len(result[way]) == 2 and min(result[way]) > 0 for way in ("alone", "batch"))
    table = pd.read_csv(output / "pipelines.md", sep="|", skiprows=2, skipinitialspace=True)
    assert [line.strip() for line in table.iloc[1:, 1]] == ["small", "small"]

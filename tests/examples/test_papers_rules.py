from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocf.compare.datasets import Dataset

SCRIPT = Path(__file__).parents[2] / "examples" / "papers" / "rules" / "run.py"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with a small table in the place of diabetes and small models."""
    spec = importlib.util.spec_from_file_location("papers_rules", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "papers_rules", module)
    spec.loader.exec_module(module)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(size=300), "b": rng.uniform(size=300)})
    data = Dataset("diabetes", table, (table.a > 0.5).astype(int), {"b": {"actionability": "fixed"}})
    monkeypatch.setattr(module, "load_dataset", lambda *_: data)
    small = {
        "RF": RandomForestClassifier(10, random_state=0),
        "NN": make_pipeline(StandardScaler(), LogisticRegression()),
    }
    monkeypatch.setattr(module, "models", lambda _: small)
    return module


def test_a_command_that_was_stopped_goes_on(
    run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run.py", "-o", str(tmp_path), "--sets", "diabetes", "--rows", "1", "--timed", "0", "--limit", "1"]
    monkeypatch.setattr(sys, "argv", words)
    run.main()
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    assert len(lines) == 8  # two models, local and regional, two classes
    results = [json.loads(line)["result"] for line in lines]
    points = [result["greedy"] for result in results if "greedy" in result]
    assert points
    assert all(point["precision"] >= 0.9 and len(point["stable"]) == 3 for point in points)
    assert all(result["best"]["weight"] >= result["greedy"]["weight"] for result in results if "greedy" in result)
    assert "| diabetes | RF | local, greedy |" in capsys.readouterr().out

    (tmp_path / "runs.jsonl").write_text("\n".join([*lines[:-1], lines[-1][:20]]))  # killed while it wrote
    run.main()
    again = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines() if line.endswith("}")]
    assert len(again) == 8
    assert capsys.readouterr().err.splitlines() == ["diabetes NN regional 0 0"]


def test_cost_counts_bins(run: ModuleType) -> None:
    own = run.case("diabetes", "RF", None)
    row = pd.DataFrame({"a": [own.train.a.min()], "b": [0.5]})
    assert run.bin_cost(own, row, row) == 0
    assert run.bin_cost(own, row, row.assign(a=own.train.a.max())) == pytest.approx(0.9)

"""The benchmarks of Pipelines and of plausibility in their quick forms: all is proved, and their tables say so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "benchmarks"


def small_set(folder: Path) -> None:
    """Some loans as a set of a folder, with fewer rows."""
    from ocf.compare.loans import SETTINGS, make_loans

    loans = make_loans()
    table = loans[list(SETTINGS)].assign(target=loans["granted"]).iloc[:200]
    facts = {}
    for name, setting in SETTINGS.items():
        own = table[name]
        if "levels" in setting:
            facts[name] = {"type": "categorical", "levels": setting["levels"]}
        else:
            facts[name] = {"type": "numeric", "min": float(own.min()), "max": float(own.max())}
    table.to_csv(folder / "small.csv", index=False)
    (folder / "small.json").write_text(json.dumps({"features": facts, "target": {"desired": 1}}))


@pytest.mark.parametrize("name", ["pipelines", "plausibility"])
def test_the_price_of_what_stands_beside_a_model(name: str, tmp_path: Path) -> None:
    small_set(tmp_path)
    output = tmp_path / "out"
    script = str(FOLDER / f"{name}.py")
    command = [sys.executable, script, "--quick", "--data", str(tmp_path), "--sets", "small", "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads((output / "runs.jsonl").read_text())["result"]
    assert np.all(np.array(result["alone"]) > 0)
    assert np.all(np.array(result["batch"]) > 0)
    table = pd.read_csv(output / f"{name}.md", sep="|", skiprows=2, skipinitialspace=True)
    assert [line.strip() for line in table.iloc[1:, 1]] == ["small", "small"]

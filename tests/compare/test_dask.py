"""Across files: the example of a Dask cluster, as a user runs it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from ocf.compare import read

from .conftest import TINY

# looked for and not imported: every test process would load it
pytestmark = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs Dask")

EXAMPLE = Path(__file__).parents[2] / "examples" / "compare_on_dask.py"


@pytest.mark.slow
def test_example_spreads_a_suite_over_a_cluster(cache: Path, tmp_path: Path) -> None:
    suite = tmp_path / "tiny.toml"
    suite.write_text(TINY.replace("[2, 4]", "[2]"))
    command = [sys.executable, str(EXAMPLE), str(suite), str(tmp_path / "results")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "4 runs, 0 disagreements" in done.stdout
    results = read(tmp_path / "results")
    assert {r["status"] for r in results.of("run")} == {"ok"}
    assert results.of("session")[0]["jobs"] == 2
    assert (tmp_path / "results" / "report.html").exists()

"""Across files: `ocf compare` with the adapters of libraries as programs, the libraries being stand-ins."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from examples.test_peers_case import PEERS, TESTS, Modules, lending, written

from examples import test_peers_alibi, test_peers_dice, test_peers_oceanpy, test_peers_treecf
from ocf.compare import parse_suite, run_suite
from ocf.compare.client import close_all
from ocf.compare.frame import compare

SUITE = """
limits = {{ time = 600, memory = "2 GB" }}
report = {{ bounds = false }}
instances = [{{ data = "loans.csv", target_column = "granted", trees = 4, depth = 4, rows = 3, target = 1 }}]

[methods.ours]
solver = "box"

[methods."oceanpy CP"]
command = ["{python}", "{peers}/with_oceanpy.py"]
options = {{ backend = "cp" }}

[methods."oceanpy MaxSAT"]
command = ["{python}", "{peers}/with_oceanpy.py"]
options = {{ backend = "maxsat" }}

[methods."treecf exact"]
command = ["{python}", "{peers}/with_treecf.py"]
options = {{ backend = "exact" }}

[methods."DiCE genetic"]
command = ["{python}", "{peers}/with_dice.py"]
options = {{ method = "genetic", total = 4 }}

[methods."alibi prototypes"]
command = ["{python}", "{peers}/with_alibi.py"]
options = {{ iterations = 200, steps = 2 }}
"""

LIBRARIES: dict[str, tuple[str, Modules]] = {
    "oceanpy": ("test_peers_oceanpy", test_peers_oceanpy.MODULES),
    "treecf": ("test_peers_treecf", test_peers_treecf.MODULES),
    "dice-ml": ("test_peers_dice", test_peers_dice.MODULES),
    "alibi": ("test_peers_alibi", test_peers_alibi.MODULES),
}


@pytest.mark.slow
def test_exact_libraries_agree_and_others_never_undercut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, (source, modules) in LIBRARIES.items():
        written(tmp_path / "site", name, source, modules)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), str(TESTS)]))
    monkeypatch.setenv("OCF_CACHE", str(tmp_path / "cache"))
    table, granted = lending(1e5)
    table = table.assign(region="region " + table["region"].astype(str), granted=granted)
    table.to_csv(tmp_path / "loans.csv", index=False)
    text = SUITE.format(python=sys.executable, peers=PEERS)
    comparison = compare(run_suite(parse_suite(text, "suite", tmp_path), tmp_path / "results"))
    close_all()
    assert comparison.disagreements == []
    runs = comparison.runs.set_index(["method", "position"])
    assert len(runs) == 3 * 6
    ours = runs.loc["ours"]
    for method in ("oceanpy CP", "oceanpy MaxSAT", "treecf exact"):
        found = runs.loc[method]
        assert found["status"].tolist() == ["ok"] * 3, found["message"].tolist()
        assert found["cost"].tolist() == ours["cost"].tolist()
        assert found["solver_version"].tolist() == [method.split()[0] + " 1.2.3"] * 3
    for method in ("DiCE genetic", "alibi prototypes"):
        found = runs.loc[method]
        assert found["status"].tolist() == ["unproved"] * 3, found["message"].tolist()
        assert (found["cost"] >= ours["cost"]).all()

"""The experiments of FCCA: figures of the models that were run, whichever they are."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ocf.compare.datasets import Dataset

pytest.importorskip("matplotlib")

PAPERS = Path(__file__).parents[2] / "examples" / "papers"


def script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A script, which finds what it shares with others one folder up."""
    monkeypatch.syspath_prepend(str(PAPERS))
    spec = importlib.util.spec_from_file_location(name, PAPERS / "fcca" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return script("run", monkeypatch)


def fold(target: str, number: int) -> dict[str, Any]:
    """One fold of boston as a run leaves it."""
    shares = {"compression": 0.5, "inconsistency": 0.1}
    trees = {f"{what}, {tree}": 0.8 for what in ("accuracy", "features") for tree in ("CART", "optimal")}
    rows = [{"method": "FCCA", "Q": q, "thresholds": 3, **shares, **trees} for q in (0.0, 0.7)]
    thresholds = {"index": ["rooms"], "columns": [0, 0.5, 1], "data": [[1.0, None, 2.0]]}
    counted = {"set": "boston", "target": target, "fold": number, "rows": rows}
    return counted | {"map": thresholds, "guess_map": thresholds}


@pytest.mark.parametrize(
    ("targets", "drawn"),
    [
        (["forest"], {13, 14}),
        (["boosting"], {3, 4, 5, 6, 7}),
        (["boosting", "svm"], {3, 4, 5, 6, 7, 13, 14}),
    ],
)
def test_figures_of_the_models_that_were_run(
    run: ModuleType, tmp_path: Path, targets: list[str], drawn: set[int]
) -> None:
    run.draw([fold(target, 0) for target in targets], tmp_path)
    assert {int(path.name.split("-")[1]) for path in tmp_path.iterdir()} == drawn


def test_folds_of_the_authors_are_in_the_order_of_the_file(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.DataFrame({"a": np.arange(50.0)})
    data = Dataset("magic", table, pd.Series(np.repeat([0, 1], 25)), {"a": {"kind": "numeric"}})
    monkeypatch.setattr(run, "load_dataset", lambda *_: data)
    monkeypatch.setattr(run, "MOST_ROWS", 40)
    rows, y, external, y_external = run.prepared("magic", None, in_order=True)
    assert rows.a.is_monotonic_increasing
    assert rows.index.tolist() == list(range(40))
    assert external.index.tolist() == table.sample(n=10, random_state=100).index.tolist()
    assert (y == (rows.a >= 25)).all()
    assert (y_external == (external.a >= 25)).all()
    assert not run.prepared("magic", None)[0].a.is_monotonic_increasing
    units = {run.Unit("magic", "boosting", 0, {}, in_order).stem for in_order in (False, True)}
    assert len(units) == 2


def test_solvers_and_trees_of_a_small_table(
    run: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(size=(80, 2)), columns=["a", "b"])
    y = (table.a > 0.5).astype(int)
    solvers = script("solvers", monkeypatch)
    monkeypatch.setattr(solvers, "prepared", lambda *_: (table, y, table.iloc[:0], y.iloc[:0]))
    words = ["solvers.py", "--sets", "boston", "--rows", "2", "-o", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    solvers.main()
    shown = capsys.readouterr().out
    assert "| boston | " in shown
    runs = pd.read_csv(tmp_path / "solvers.csv", comment="#")
    assert runs.solver.tolist() == ["highs"] * 2 + ["scip"] * 2 + ["box"] * 2
    assert (runs.status == "optimal").all()
    assert runs.groupby("row").cost.agg(np.ptp).max() < 1e-9
    trees = pd.read_csv(tmp_path / "trees.csv", comment="#")
    assert trees.objective.nunique() == 1
    assert trees.n.tolist() == [80, 80]

    before = (tmp_path / "runs.jsonl").read_text()
    monkeypatch.setattr(solvers, "tree", lambda *_: pytest.fail("made again"))
    solvers.main()
    assert (tmp_path / "runs.jsonl").read_text() == before


def test_a_tree_that_is_not_proved_has_no_objective(run: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    solvers = script("solvers", monkeypatch)
    row = {"set": "boston", "n": 5, "thresholds": 2, "seconds": 1.0}
    ways = pd.DataFrame([row | {"method": "optimal", "objective": 7.0}, row | {"method": "flowoct", "objective": None}])
    assert "| boston | 5 | 2 | 7 / 1.0 | – / 1.0 |" in solvers.by_tree(ways)

"""The experiments of FCCA: figures of the models that were run, whichever they are."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("matplotlib")

PAPERS = Path(__file__).parents[2] / "examples" / "papers"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, which finds what it shares with others one folder up."""
    monkeypatch.syspath_prepend(str(PAPERS))
    spec = importlib.util.spec_from_file_location("papers_fcca", PAPERS / "fcca" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "papers_fcca", module)
    spec.loader.exec_module(module)
    return module


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

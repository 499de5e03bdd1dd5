"""The experiments of oblique trees on a small table: splits, runs that resume, and the tree that they share."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from ocf.compare.datasets import Dataset

PAPERS = Path(__file__).parents[2] / "examples" / "papers"


@pytest.fixture
def table6(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script, with a small table in the place of every set; it finds what it shares with others in its folder."""
    monkeypatch.syspath_prepend(str(PAPERS))
    monkeypatch.syspath_prepend(str(PAPERS / "oblique"))
    monkeypatch.delenv("OCF_MODELS", raising=False)
    script = importlib.import_module("table6")
    table = pd.DataFrame(np.random.default_rng(0).uniform(size=(60, 2)), columns=["a", "b"])
    data = Dataset("small", table, (table.a + table.b > 1).astype(int), {c: {"kind": "numeric"} for c in table})
    monkeypatch.setattr(sys.modules["common"], "load_dataset", lambda *_: data)
    yield script
    for name in ("table6", "common"):
        sys.modules.pop(name)


@pytest.fixture
def common(table6: ModuleType) -> ModuleType:
    """What the scripts share."""
    return sys.modules["common"]


def test_the_first_split_is_the_official_one_where_there_is_one(
    common: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(common.SETS, "Adult", common.Set("adult", 3, official=45))
    parts = [common.split("Adult", None, seed) for seed in range(3)]
    assert parts[0].train.index.tolist() == list(range(45))
    assert parts[0].test.index.tolist() == list(range(45, 60))
    assert [len(part.test) for part in parts[1:]] == [12, 12]
    assert set(parts[1].test.index) != set(parts[2].test.index)
    assert len(common.split("Breast", None).test) == 12
    assert common.split("Breast", None).train.index.tolist() != list(range(48))


def test_table_6_goes_on_and_its_first_tree_is_the_one_explained(
    table6: ModuleType, common: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCF_MODELS", str(tmp_path / "models"))
    words = ["table6.py", "--sets", "Breast", "--splits", "2", "-o", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    table6.main()
    made = pd.read_csv(tmp_path / "table6.csv", comment="#")
    assert made.model.tolist() == ["CART", "TAO", "RF"] * 2
    assert (made[made.model == "TAO"].train <= 10).all()  # a line parts the classes

    def never(*_: object, **__: object) -> None:
        raise AssertionError("made again")

    monkeypatch.setattr(table6, "errors", never)
    monkeypatch.setattr(common, "tao_cv", never)
    monkeypatch.setattr(sys, "argv", [*words[:-2], "-o", str(tmp_path)])
    table6.main()
    monkeypatch.setattr(sys, "argv", ["table6.py", "--tables-only", "-o", str(tmp_path)])
    table6.main()
    assert pd.read_csv(tmp_path / "table6.csv", comment="#").equals(made)
    assert (tmp_path / "table6.md").read_text().splitlines()[-1].startswith("| Breast | 2 | ")

    kept = tmp_path / "runs.jsonl"
    kept.write_text("\n".join(kept.read_text().splitlines()[:-1]) + "\n")
    table6.main()  # a split that lacks a model is left out
    assert (tmp_path / "table6.md").read_text().splitlines()[-1].startswith("| Breast | 1 | ")

    first, tree = common.split("Breast", None), common.tao("Breast", None)
    error = 100 * (1 - tree.score(first.test, first.y_test))
    assert error == pytest.approx(made[made.model == "TAO"].test.iloc[0], abs=1e-3)
    assert tree.n_leaves_ == made[made.model == "TAO"].leaves.iloc[0]


def test_large_sets_leave_out_one_part_and_the_others_five(common: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(common.SETS, "Letter", common.Set("letter", 1, large=True))
    monkeypatch.setitem(common.SETS, "Breast", common.Set("breast", 1))
    folds = [len(common.tao_cv(name, None).scores_) for name in ("Letter", "Breast")]
    assert folds == [1, 5]


def test_table_6_on_logarithms_is_of_oblique_trees_alone_and_of_numbers(
    table6: ModuleType, common: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCF_MODELS", str(tmp_path / "models"))
    monkeypatch.setattr(sys, "argv", ["table6.py", "--log", "--sets", "Breast", "--splits", "1", "-o", str(tmp_path)])
    table6.main()
    made = pd.read_csv(tmp_path / "table6-log.csv", comment="#")
    assert made.model.tolist() == ["TAO"]
    assert "| Breast | 1 | – / – | " in (tmp_path / "table6-log.md").read_text()
    assert not (tmp_path / "models").exists()
    the, tree = common.split("Breast", None), common.tao_cv("Breast", None, log=True)
    assert made.test.item() == pytest.approx(100 * (1 - tree.score(the.test, the.y_test)), abs=1e-3)
    assert np.array_equal(tree.predict(the.test), tree[-1].predict(np.log1p(the.test)))
    monkeypatch.setattr(sys, "argv", ["table6.py", "--log", "--sets", "Credit", "-o", str(tmp_path)])
    with pytest.raises(SystemExit):
        table6.main()

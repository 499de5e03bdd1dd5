"""The experiments of oblique trees on a small table: splits, runs that resume, and the tree that they share."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

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


def test_table_6_in_folds_is_of_oblique_trees_alone_and_leaves_the_kept_one(
    table6: ModuleType, common: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCF_MODELS", str(tmp_path / "models"))
    monkeypatch.setitem(common.SETS, "Breast", common.Set("breast_cancer_wisconsin", 2, large=True))
    words = ["table6.py", "--folds", "--sets", "Breast", "--splits", "1", "-o", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    table6.main()
    made = pd.read_csv(tmp_path / "table6-folds.csv", comment="#")
    assert made.model.tolist() == ["TAO"]
    assert not (tmp_path / "models").exists()
    tree = common.tao_cv("Breast", None, folds=True)
    assert tree.cv is None
    assert made.C.item() == pytest.approx(tree.C_, rel=1e-5)
    assert common.tao_cv("Breast", None).cv.get_n_splits() == 1


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


@pytest.fixture
def script(
    common: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[[str], ModuleType]]:
    """A script by its name, whose trees are kept for each other."""
    monkeypatch.setenv("OCF_MODELS", str(tmp_path / "models"))
    made: list[str] = []

    def imported(name: str) -> ModuleType:
        made.append(name)
        return importlib.import_module(name)

    yield imported
    for name in made:
        sys.modules.pop(name)


def never(*_: object, **__: object) -> None:
    raise AssertionError("made again")


def test_figure_4_goes_on_where_it_was(
    script: Callable[[str], ModuleType], common: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    y = pd.Series(np.repeat([7, 1], 40))
    pixels = np.zeros((80, 784))
    pixels[:, 295:310] = rng.integers(0, 60, (80, 15))
    pixels[y == 7, 300:303] += 150.0
    table = pd.DataFrame(pixels, columns=[f"p{k}" for k in range(784)])
    data = Dataset("digits", table, y, {c: {"kind": "numeric"} for c in table})
    monkeypatch.setattr(common, "load_dataset", lambda *_: data)
    figure4 = script("figure4")
    monkeypatch.setattr(figure4, "PAIRS", ((7, 1),))
    monkeypatch.setattr(figure4, "METHODS", {m: figure4.METHODS[m] for m in ("add", "instances")})
    words = ["figure4.py", "--quick", "-o", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    figure4.main()
    made = pd.read_csv(tmp_path / "figure4-quick.csv", comment="#")
    assert made.method.tolist() == list(figure4.METHODS)
    assert set(made.status) <= {"optimal", "infeasible", "feasible"}  # more ink does not make a 7 a 1
    text = (tmp_path / "figure4-quick.md").read_text()
    assert "1 a pair, 300 s an answer" in text
    assert "| 0.04 | " in text
    assert (tmp_path / "figure4.png").stat().st_size > 100

    more = pd.DataFrame({"pair": "7 → 1", "method": "add", "cost": [3.0, 1.0, 2.0], "ms": 1.0})
    assert "| 7 → 1 | 1, 2, 3 | 0.04 | – |" in figure4.table(more)

    before = (tmp_path / "runs.jsonl").read_text()
    monkeypatch.setattr(figure4, "run", never)
    monkeypatch.setattr(sys, "argv", words)
    figure4.main()
    assert (tmp_path / "runs.jsonl").read_text() == before
    assert pd.read_csv(tmp_path / "figure4-quick.csv", comment="#").equals(made)


def adult(rows: int) -> Dataset:
    """A table with the columns of Adult, in which a capital gain above 5,000 earns the income."""
    rng = np.random.default_rng(0)
    words = {
        "WorkClass": ["Private", "State"],
        "MaritalStatus": ["Married", "Never-married"],
        "Relationship": ["Own-child", "Wife"],
    }
    table = pd.DataFrame(
        {
            "Age": rng.integers(18, 80, rows),
            "Sex": rng.integers(0, 2, rows),
            "NativeCountry": rng.integers(0, 2, rows),
            **{c: rng.choice(levels, rows) for c, levels in words.items()},
            "EducationNumber": rng.integers(1, 5, rows),
            "CapitalGain": rng.integers(0, 10_000, rows),
            "CapitalLoss": rng.integers(0, 100, rows),
            "HoursPerWeek": rng.integers(20, 60, rows),
        }
    )
    facts: dict[str, dict[str, Any]] = {c: {"kind": "numeric"} for c in table}
    facts |= {c: {"kind": "categorical", "levels": levels} for c, levels in words.items()}
    facts |= {c: {"kind": "binary", "levels": [0, 1]} for c in ("Sex", "NativeCountry")}
    facts["EducationNumber"] = {"kind": "ordinal", "levels": [1, 2, 3, 4]}
    return Dataset("adult", table, (table.CapitalGain > 5000).astype(int), facts)


@pytest.mark.parametrize(
    ("options", "stem", "cost"), [((), "table1", (0.0, 1.0)), (("--raw",), "table1-raw", (1, 1e4))]
)
def test_table_1_goes_on_where_it_was(
    script: Callable[[str], ModuleType],
    common: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    stem: str,
    cost: tuple[float, float],
) -> None:
    monkeypatch.setattr(common, "load_dataset", lambda *_: adult(200))
    monkeypatch.setitem(common.SETS, "Adult", common.Set("adult", 2, official=160))
    table1 = script("table1")
    monkeypatch.setattr(sys, "argv", ["table1.py", *options, "-o", str(tmp_path)])
    table1.main()
    made = pd.read_csv(tmp_path / f"{stem}.csv", comment="#")
    assert made.columns.tolist() == ["feature", "source", *table1.LEVELS]
    assert "60 s a level" in (tmp_path / f"{stem}.md").read_text()
    kept = [json.loads(line)["result"] for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert all(result["status"] == "optimal" and result["verified"] for result in kept)
    assert cost[0] < kept[0]["cost"] < cost[1]
    monkeypatch.setattr(table1, "run", never)
    table1.main()
    assert pd.read_csv(tmp_path / f"{stem}.csv", comment="#").equals(made)


def test_feature_tweaking_loses_the_target_by_rounding_at_the_end(
    script: Callable[[str], ModuleType], common: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pd.DataFrame({"job": ["a", "b"] * 40, "age": np.tile([30.0, 40.0, 50.0, 60.0], 20)})
    facts: dict[str, dict[str, Any]] = {
        "job": {"kind": "categorical", "levels": ["a", "b"]},
        "age": {"kind": "numeric"},
    }
    by_job = Dataset("small", table, (table.job == "a").astype(int), facts)
    by_age = Dataset("small", table, (table.age > 45).astype(int), facts)
    tables23 = script("tables23")
    for data, found in ((by_job, False), (by_age, True)):
        monkeypatch.setattr(common, "load_dataset", lambda *_, data=data: data)
        common.split.cache_clear()
        common.cart.cache_clear()
        the, model = common.split("Credit", None), common.cart("Credit", None)
        low = the.test[model.predict(the.test) == 0].iloc[[0]]
        point = tables23.rounded_last(model, low, 1, the)
        assert (point is not None) is found
        assert point is None or model.predict(point).tolist() == [1]

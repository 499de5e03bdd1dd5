"""Cases: what is trained or read, which rows wait for the target, and what is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf.compare.datasets import load_dataset
from ocf.compare.recipes import RECIPES, Recipe, code_checksum, estimator, prepare
from ocf.errors import DataError, MissingDependencyError, OcfError, ProblemError

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=80), "colour": rng.choice(["red", "green"], 80), "id": range(80)})
    frame["wanted"] = np.where((frame["size"] > 0) | (frame["colour"] == "red"), "yes", "no")
    frame.loc[3, "size"] = np.nan
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path


def test_table_is_trained_on(table: Path) -> None:
    case = prepare(Recipe(str(table), trees=3, depth=3, target_column="wanted", drop=("id",)))
    assert set(case.explainer.space.names) == {"colour", "size"}
    assert case.facts["dropped_rows"] == 1
    assert (case.facts["trees"], case.facts["rows"]) == (3, 16)
    waiting = case.waiting("yes", 100)
    answers = case.explainer.model.native.predict(case.rows)
    assert waiting == [k for k, answer in enumerate(answers) if answer == "no"]
    assert case.waiting("yes", 1) == waiting[:1]
    assert case.waiting("opposite", 3) == [0, 1, 2]
    with pytest.raises(DataError, match="there is no row 16; there are 16"):
        case.row(16)


def test_regressor(table: Path) -> None:
    frame = pd.read_csv(table).dropna()
    frame["value"] = frame["size"] * 3 + (frame["colour"] == "red")
    frame.drop(columns=["id", "wanted"]).to_csv(table, index=False)
    case = prepare(Recipe(str(table), trees=3, depth=3, target_column="value"))
    values = case.explainer.model.native.predict(case.rows)
    assert case.waiting([1.0, float("inf")], 100) == np.flatnonzero(values < 1.0).tolist()


def test_favourable_class() -> None:
    case = prepare(Recipe("breast_cancer", trees=2, depth=2))
    assert case.target("desired") == 1
    assert case.target("opposite") == "opposite"
    with pytest.raises(ProblemError, match="names no favourable class"):
        prepare(Recipe("iris", trees=2, depth=2)).target("desired")


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_can_be_made(name: str) -> None:
    pytest.importorskip(RECIPES[name][0].partition(".")[0])
    model = estimator(Recipe("iris", name, trees=3, depth=2))
    fitted = model.fit(*(load_dataset("iris").table, load_dataset("iris").target))
    assert len(fitted.predict(load_dataset("iris").table)) == 150


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        (Recipe("nothing"), "data set 'nothing'; known: breast_cancer"),
        (Recipe("absent.csv", target_column="y"), "there is no file absent.csv"),
        (Recipe("iris", params={"leaf": 3}), "cannot be made with leaf"),
        (Recipe("iris", params={"max_depth": "deep"}), "cannot be trained"),
    ],
)
def test_what_cannot_be_prepared(recipe: Recipe, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OCF_DATA", raising=False)
    with pytest.raises(OcfError, match=words):
        prepare(recipe)


def test_column_that_is_not_there(table: Path) -> None:
    with pytest.raises(DataError, match="has no column 'wantd' \\(did you mean 'wanted'"):
        prepare(Recipe(str(table), target_column="wantd"))


def test_library_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECIPES, "absent", ("no_such_library", "X", "n", "d"))
    with pytest.raises(MissingDependencyError, match="no_such_library"):
        estimator(Recipe("iris", "absent"))


def test_cache_of_other_sources_is_not_used(tmp_path: Path) -> None:
    package = tmp_path / "compare" / "ocf"  # a folder of any name above the package
    package.mkdir(parents=True)
    found = set()
    for text in ("x = 1", "x = 2"):
        (package / "a.py").write_text(text)
        found.add(code_checksum.__wrapped__(package))
    assert len(found) == 2


def test_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCF_CACHE", str(tmp_path / "cache"))
    recipe = Recipe("iris", trees=2, depth=2)
    facts = prepare(recipe).facts
    (kept,) = (tmp_path / "cache").iterdir()
    with monkeypatch.context() as patch:
        patch.setattr("ocf.compare.recipes.estimator", None)
        assert prepare(recipe).facts == facts  # nothing is made a second time
    kept.write_bytes(b"damaged")
    assert prepare(recipe).facts == facts
    assert kept.stat().st_size > 1000
    monkeypatch.setenv("OCF_CACHE", "/dev/null/nowhere")
    assert prepare(recipe).facts == facts  # a cache that cannot be written only costs time


def test_model_file(table: Path, tmp_path: Path) -> None:
    skops_io = pytest.importorskip("skops.io")
    forest = RandomForestClassifier(2, max_depth=1, random_state=0).fit(pd.DataFrame({"x": [0.0, 1.0]}), ["a", "b"])
    skops_io.dump(forest, tmp_path / "m.skops")
    (tmp_path / "t.csv").write_text("x\n1\n1\n0\n")
    case = prepare(Recipe(str(tmp_path / "t.csv"), str(tmp_path / "m.skops")))
    answers = forest.predict(case.rows)
    assert case.waiting("b", 10) == [k for k, a in enumerate(answers) if a != "b"]

"""Across files: columns of words in a CSV. Pandas takes some words for missing values, and others for numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from command_line import Answer
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ocf.compare.recipes import Recipe, prepare
from ocf.explain.explainer import Explainer
from ocf.explain.explanation import Explanations
from ocf.models.tables import fit_columns, read_table
from ocf.models.user_model import as_user_model


def one_hot() -> Any:
    """A forest behind an encoder, which keeps the words."""
    encoded = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["k"]), remainder="passthrough")
    return make_pipeline(encoded, RandomForestClassifier(10, max_depth=4, random_state=0))


def fitted(words: list[str], folder: Path, model: Any) -> list[float | None]:
    """Files of a model that likes the first word, of its table, and of two rows that it refuses; what these cost."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=200).round(2), "k": rng.choice(words, 200)})
    wanted = ((table.k == words[0]) + table.a > 0.8).astype(int)
    model.fit(table, wanted)
    rows = table[(model.predict(table) == 0) & (table.k == words[0])].head(2)
    joblib.dump(model, folder / "model.joblib")
    table.to_csv(folder / "data.csv", index=False)
    table.to_parquet(folder / "data.parquet")
    table.assign(wanted=wanted).to_csv(folder / "labelled.csv", index=False)
    rows.to_csv(folder / "rows.csv", index=False)
    return [own.cost for own in Explainer(model, table).explain(rows)]


def costs(folder: Path, reference: str, *args: object) -> list[float | None]:
    """Of the command line's answers to the two rows."""
    start = ("solve", folder / "model.joblib", folder / "rows.csv", "--reference", folder / reference)
    answer = Answer(*start, "--trust-pickle", "-o", folder / "out.json", *args)
    assert answer.code == 0, answer.err
    return [own.cost for own in Explanations.from_json(folder / "out.json")]


@pytest.mark.parametrize(
    "words", [["NA", "x", "y"], ["None", "x"], ["1", "2", "3"], ["1", "A"], ["00501", "10001"], ["True", "False"]]
)
def test_levels_that_the_model_knows_stay_words(words: list[str], tmp_path: Path) -> None:
    said = fitted(words, tmp_path, one_hot())
    assert costs(tmp_path, "data.csv") == said
    for _ in range(2):
        assert costs(tmp_path, "data.csv", "--prepared", tmp_path / "kept.joblib") == said


def test_levels_of_the_reference_and_of_the_problem_file(tmp_path: Path) -> None:
    catboost = pytest.importorskip("catboost")  # it keeps no words
    model = catboost.CatBoostClassifier(
        5, depth=3, cat_features=["k"], verbose=False, thread_count=1, allow_writing_files=False
    )
    said = fitted(["NA", "x"], tmp_path, model)
    assert costs(tmp_path, "data.parquet") == said
    (tmp_path / "levels.toml").write_text('[features.k]\nlevels = ["NA", "x"]\n')
    assert costs(tmp_path, "data.csv", "--problem", tmp_path / "levels.toml") == said
    start = ("rules", tmp_path / "model.joblib", tmp_path / "rows.csv", "--reference", tmp_path / "data.parquet")
    answer = Answer(*start, "--trust-pickle", "--target", "1", "-o", tmp_path / "rules.json")
    assert answer.code in (0, 3), answer.err
    assert '"k": "NA"' in (tmp_path / "rules.json").read_text()


def test_other_words_for_a_missing_value_are_missing(tmp_path: Path) -> None:
    fitted(["None", "x"], tmp_path, one_hot())
    path = tmp_path / "rows.csv"
    path.write_text("k,a\nx,NA\nNA,nan\n,1\nNone,2\n")
    rows = fit_columns(read_table(path), as_user_model(tmp_path / "model.joblib", trust_pickle=True), path)
    assert rows.isna().to_numpy().tolist() == [[True, False], [True, True], [False, True], [False, False]]
    assert rows.a.dtype == float


def test_levels_of_a_table_that_is_trained_on(tmp_path: Path) -> None:
    fitted(["NA", "x", "y"], tmp_path, one_hot())
    data = str(tmp_path / "labelled.csv")
    for features, levels in (({}, ("x", "y")), ({"k": {"levels": ["NA", "x", "y"]}}, ("NA", "x", "y"))):
        case = prepare(Recipe(data, trees=2, depth=2, target_column="wanted", features=features))
        assert case.explainer.space.features[1].levels == levels
        assert (case.facts["dropped_rows"] > 0) == (not features)


def test_classes_that_a_csv_takes_for_missing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=200).round(2), "b": rng.normal(size=200).round(2)})
    classes = np.where(table.a + table.b > 0.5, "None", "some")
    joblib.dump(RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, classes), tmp_path / "model.joblib")
    data = tmp_path / "data.csv"
    table.assign(came_out=classes).to_csv(data, index=False)
    start = (tmp_path / "model.joblib", data, "--trust-pickle")
    answer = Answer("compress", *start, "--label", "came_out", "-o", tmp_path / "thresholds.json")
    assert answer.code == 0, answer.err
    first = str(np.flatnonzero(classes == "some")[0])
    wish = ("--rows", first, "--target", "None")
    answer = Answer("solve", *start, *wish, "--label", "came_out", "--plausibility", "on", "-o", tmp_path / "a.json")
    assert answer.code == 0, answer.err
    answer = Answer("rules", *start, *wish, "--labels", "came_out", "-o", tmp_path / "rules.json")
    assert answer.code in (0, 3), answer.err
    assert '"target": "None"' in (tmp_path / "rules.json").read_text()
    table.assign(came_out=["", *classes[1:]]).to_csv(data, index=False)
    assert "row 0 has no class" in Answer("compress", *start, "--label", "came_out").err


def test_classes_that_are_one_number(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=80).round(2)})
    classes = np.where(table.a > 0, "01", "1")
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(table, classes)
    joblib.dump(model, tmp_path / "model.joblib")
    came_out = np.where(table.index < 20, "1", classes)
    table.assign(came_out=came_out).to_csv(tmp_path / "data.csv", index=False)
    answer = Answer("compress", tmp_path / "model.joblib", tmp_path / "data.csv", "--trust-pickle")
    assert answer.code == 0, answer.err
    assert f"80 rows, {np.sum(model.predict(table) == came_out)} counterfactuals" in answer.out

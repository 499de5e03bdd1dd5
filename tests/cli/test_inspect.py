"""``ocf inspect``, ``init-problem``, ``verify`` and ``solvers``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from command_line import Answer, refused
from sklearn.ensemble import RandomForestClassifier


def test_verify_finds_a_lie(ask: Callable[..., Answer], files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    ask("--rows", "0:2", "-o", out)
    data = json.loads(out.read_text())
    data["rows"][1]["cost"] = data["rows"][1]["bound"] = 1e-6
    out.write_text(json.dumps(data))
    check = Answer("verify", out, "-m", files / "forest.skops")
    assert check.code == 6
    assert "row 1: " in check.out
    assert "2 rows checked: 1 hold, 1 do not" in check.out


def test_verify_counts_no_row_as_good_that_has_no_answer(
    ask: Callable[..., Answer], files: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    ask("--rows", "0:3", "-o", out)
    data = json.loads(out.read_text())
    for row, status in zip(data["rows"][1:], ("interrupted", "unknown"), strict=True):
        row |= {"status": status, "counterfactual": None, "cost": None, "bound": "-inf", "decided": None}
        row |= {"gap": "inf", "verified": False, "probabilities": row["probabilities"][:1]}
    out.write_text(json.dumps(data))
    check = Answer("verify", out, "-m", files / "forest.skops")
    assert check.out == "3 rows checked: 1 hold, 0 do not, 2 without an answer (1 interrupted, 1 unknown)\n"
    assert check.code == 5
    out.write_text(json.dumps(data | {"rows": []}))
    check = Answer("verify", out, "-m", files / "forest.skops")
    assert (check.out, check.code) == ("0 rows checked: 0 hold, 0 do not\n", 5)


def test_verify_refuses_other_files(files: Path, tmp_path: Path) -> None:
    model = files / "forest.skops"
    refused("verify", tmp_path / "none.json", "-m", model, words=["none.json"])
    refused("verify", files / "data.csv", "-m", model, words=["data.csv", "JSON"])
    refused("verify", files / "classes.json", "-m", model, words=["classes.json", "schema"])


def test_inspect(files: Path) -> None:
    text = Answer("inspect", files / "forest.skops", "--top", "2").out
    for word in ("RandomForestClassifier", "scikit-learn", "age, income, owner", "0, 1", "leaves", "3 of 3 features"):
        assert word in text
    assert "do not know" not in text
    assert "does not know their names" in Answer("inspect", files / "nameless.skops", "--top", "0").out
    assert "regressor" in Answer("inspect", files / "regressor.skops").out


def test_init_problem_gives_a_file_that_changes_nothing(
    ask: Callable[..., Answer], files: Path, write: Callable[[str, str], Path]
) -> None:
    answer = Answer("init-problem", files / "forest.skops", files / "labelled.csv", "--drop", "the label")
    assert answer.code == 0
    path = write("p.toml", answer.out)
    assert ask("--rows", "0:2", "--problem", path).out == ask("--rows", "0:2").out


def test_solvers_lists_what_there_is() -> None:
    text = Answer("solvers").out
    for name in ("interval", "ocean", "highs", "scip"):
        assert name in text


def test_binary_files_of_catboost(tmp_path: Path) -> None:
    catboost = pytest.importorskip("catboost")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(18, 80, 90), "job": rng.choice(["clerk", "smith", "cook"], 90)})
    settings = {"iterations": 3, "depth": 2, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    wanted = np.where((table["age"] > 50) ^ (table["job"] == "cook"), "yes", "no")
    model = catboost.CatBoostClassifier(**settings, cat_features=["job"]).fit(table, wanted)
    path, data, out = tmp_path / "m.cbm", tmp_path / "data.csv", tmp_path / "out.json"
    model.save_model(str(path))
    table.to_csv(data, index=False)
    text = " ".join(Answer("inspect", path, "--top", "0").out.split())
    for words in ("CatBoostClassifier", "age, job", "those of job are named by a table only"):
        assert words in text
    assert Answer("solve", path, data, "--rows", "0:3", "-o", out).code == 0
    assert "3 rows checked: 3 hold, 0 do not" in Answer("verify", out, "-m", path).out
    path.write_bytes(path.read_bytes()[:400])
    refused("inspect", path, words=["m.cbm", "CatBoost cannot open the file"])


def test_verify_says_once_that_it_has_another_model(ask: Callable[..., Answer], files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    ask("--rows", "0:3", "-o", out)
    data = pd.read_csv(files / "data.csv")
    forest = RandomForestClassifier(3, max_depth=2, random_state=0)
    joblib.dump(forest.fit(data.rename(columns={"age": "years"}), data["owner"]), tmp_path / "other.joblib")
    words = ["explains another model", "takes years, income, owner", "have age, income, owner"]
    refused("verify", out, "-m", tmp_path / "other.joblib", "--trust-pickle", words=words)
    joblib.dump(forest.fit(data, 1 - np.array(json.loads((files / "classes.json").read_text()))), tmp_path / "m.joblib")
    check = Answer("verify", out, "-m", tmp_path / "m.joblib", "--trust-pickle")
    assert check.code == 6
    lines = check.out.splitlines()
    assert [line.partition(":")[0] for line in lines[:3]] == ["row 0", "row 1", "row 2"]
    assert lines[3:] == [
        "3 rows checked: 0 hold, 3 do not",
        f"none holds: is {tmp_path / 'm.joblib'} the model that was explained?",
    ]


@pytest.fixture
def dummies(tmp_path: Path) -> Path:
    """A folder with a table of indicator columns, and a model of it."""
    rng = np.random.default_rng(0)
    raw = pd.DataFrame({"age": rng.integers(18, 80, 90), "job": rng.choice(["clerk", "cook", "smith"], 90)})
    table = pd.get_dummies(raw)
    forest = RandomForestClassifier(3, max_depth=3, random_state=0)
    joblib.dump(forest.fit(table, (raw["age"] > 50) ^ (raw["job"] == "cook")), tmp_path / "m.joblib")
    table.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


def test_inspect_tells_how_a_table_is_read_and_writes_it_down(dummies: Path) -> None:
    asked = ("inspect", dummies / "m.joblib", "--trust-pickle", "--top", "0")
    data, toml = dummies / "data.csv", dummies / "own.toml"
    answer = Answer(*asked, "--data", data, "--features-to", toml)
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()[-4:]
    assert lines[0] == f"{data}: read by 90 rows of data: 4 columns as 2 features"
    assert lines[2].startswith("  one category each: job (3 columns), recognised")
    shown = Answer("init-problem", dummies / "m.joblib", data, "--trust-pickle").out
    assert toml.read_text() == shown
    assert "[features.job]" in shown
    assert (
        "[features.job_clerk]"
        in Answer("init-problem", dummies / "m.joblib", data, "--trust-pickle", "--no-groups").out
    )
    refused(*asked, "--data", data, "--features-to", toml, words=["own.toml", "there already"])
    refused(*asked, "--features-to", dummies / "new.toml", words=["--data"])


def test_a_batch_begins_with_how_its_table_is_read(dummies: Path) -> None:
    asked = ("solve", dummies / "m.joblib", dummies / "data.csv", "--trust-pickle")
    some = Answer(*asked, "--rows", "0:2")
    assert some.err.startswith("read by 90 rows of data: 4 columns as 2 features\n  whole numbers: age\n")
    assert "--reference" not in some.err
    whole = Answer(*asked)
    assert "WARNING: bounds, scales and levels come from the rows that are asked about" in whole.err
    assert "--reference TABLE" in whole.err
    assert "--reference" not in Answer(*asked, "--reference", dummies / "data.csv").err
    apart = Answer(*asked, "--rows", "0:2", "--no-groups")
    assert "two values: job_clerk, job_cook, job_smith" in apart.err
    (dummies / "p.toml").write_text("[table]\ngroups = false\n")
    assert "two values: job_clerk" in Answer(*asked, "--rows", "0:1", "--problem", dummies / "p.toml").err
    # a table of the query alone
    pd.read_csv(dummies / "data.csv").head(2).to_csv(dummies / "two.csv", index=False)
    few = Answer("solve", dummies / "m.joblib", dummies / "two.csv", "--trust-pickle")
    assert "WARNING: bounds, scales and levels come from only 2 rows of data" in few.err
    assert few.err.count("--reference TABLE") == 1

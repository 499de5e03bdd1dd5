"""What the commands share: settings from flags and problem files, models and tables, and bad ones of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from command_line import Answer, refused
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from ocf.explain.explainer import Explainer
from ocf.explain.explanation import Explanation, Explanations

skops_io = pytest.importorskip("skops.io")


def test_the_settings_reach_the_explainer(
    ask: Callable[..., Answer], write: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    def explain(self: Explainer, rows: pd.DataFrame, **settings: Any) -> Explanations:
        seen.update(settings, n=len(rows))
        return Explanations([Explanation(0, "infeasible", rows.iloc[[0]])])

    monkeypatch.setattr(Explainer, "explain", explain)
    path = write(
        "p.toml",
        '[solve]\ntarget = 0\nnorm = "l0"\nseed = 7\nthreads = 2\nfeatures_to_vary = ["age"]\n'
        "options = { a = 1, b = 2 }",
    )
    flags = (
        "--target 1 --gap 0.1 --time-limit 5 --solver scip --formulation ocean --n-jobs 2 --option b=x --option c=true"
    )
    flags += " --n-explanations 3 --diversity distance --min-distance 0.2 --diagnose"
    answer = ask("--problem", path, *flags.split(), "--no-reduce", "--no-progress", "--rows", "-2:")
    assert answer.code == 3, answer.err
    assert seen == {
        "n": 2,
        "target": "1",
        "norm": "l0",
        "seed": 7,
        "threads": 2,
        "features_to_vary": ["age"],
        "options": {"a": 1, "b": "x", "c": True},
        "plausibility": None,
        "n_explanations": 3,
        "diversity": "distance",
        "min_distance": 0.2,
        "diagnose": True,
        "mip_gap": 0.1,
        "time_limit": 5.0,
        "solver": "scip",
        "formulation": "ocean",
        "n_jobs": 2,
        "reduce": False,
        "log": False,
        "progress": False,
        "checkpoint": None,
    }


def test_reference_data_give_the_scales(files: Path, changed: Callable[..., Path], tmp_path: Path) -> None:
    rows = changed(lambda t: t.iloc[[3]])
    out = tmp_path / "out.json"
    args = ("solve", files / "forest.skops", rows, "--reference", files / "labelled.csv", "--drop", "the label")
    assert Answer(*args, "-o", out).code == 0
    alone = Answer("solve", files / "forest.skops", files / "data.csv", "--rows", "3", "-o", tmp_path / "two.json")
    assert alone.code == 0
    assert Explanations.from_json(out)[0].cost == Explanations.from_json(tmp_path / "two.json")[0].cost


def test_reordered_columns_and_compressed_data_do_not_matter(
    ask: Callable[..., Answer], files: Path, changed: Callable[..., Path]
) -> None:
    expected = ask("--rows", "3").out
    path = changed(lambda t: t[["owner", "age", "income"]])
    assert Answer("solve", files / "forest.skops", path, "--rows", "3").out == expected
    assert Answer("solve", files / "forest.skops", files / "data.csv.gz", "--rows", "3").out == expected


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--solver", "higsh"], ["'higsh'", "did you mean 'highs'"]),
        (["--formulation", "intervall"], ["did you mean 'interval'"]),
        (["--norm", "l3"], ["'l3'", "l0, l1, l2"]),
        (["--norm", "l1=x"], ["l0=0.1,l1=1"]),
        (["--target", "2"], ["'2'", "0, 1"]),
        (["--rows", "1-3"], ["'1-3'", "0:10"]),
        (["--rows", "120"], ["no row 120", "0 to 119"]),
        (["--rows", "7:7"], ["selects none"]),
        (["--time-limit", "-1"], ["time_limit", "positive"]),
        (["--gap", "-1"], ["mip_gap"]),
        (["--threads", "0"], ["threads"]),
        (["--n-jobs", "0"], ["n_jobs"]),
        (["--n-explanations", "0"], ["n_explanations", "at least 1"]),
        (["--diversity", "regoin"], ["did you mean 'region'"]),
        (["--diversity", "distance", "--min-distance", "-1"], ["min_distance", "positive"]),
        (["--option", "x"], ["KEY=VALUE"]),
        (["--drop", "agee"], ["did you mean 'age'"]),
        (["--drop", "age"], ["misses", "age"]),
        (["--problem", "nowhere.toml"], ["nowhere.toml"]),
        (["-o", "out.xlsx"], [".json, .csv, .html"]),
        (["--rows", "x", "--rows"], ["--rows"]),
    ],
)
def test_bad_settings(ask: Callable[..., Answer], args: list[str], words: list[str]) -> None:
    answer = ask(*args)
    assert answer.code == 2, answer.out
    assert "Traceback" not in answer.err
    for word in words:
        assert word in answer.err


def test_opposite_needs_two_classes(files: Path) -> None:
    refused("solve", files / "three.skops", files / "data.csv", words=["'opposite'", "a, b, c"])
    assert Answer("solve", files / "three.skops", files / "data.csv", "--rows", "0", "--target", "c").code == 0


def test_targets_of_other_kinds(files: Path, tmp_path: Path, write: Callable[[str, str], Path]) -> None:
    three, data = files / "three.skops", files / "data.csv"
    both = Answer("solve", three, data, "--rows", "0:3", "--target", "a", "--target", "c", "-o", tmp_path / "o.json")
    assert (both.code, [e.target for e in Explanations.from_json(tmp_path / "o.json")]) == (0, [("a", "c")] * 3)
    likely = Answer("solve", three, data, "--rows", "0", "--target", "b", "--probability", "0.4")
    assert "b with a probability of at least 0.4" in likely.out
    regressor = ("solve", files / "regressor.skops", data, "--rows", "0:2")
    flags = Answer(*regressor, "--at-least", "0.2", "--at-most", "0.6")
    path = write("p.toml", "[solve]\nat_least = 0.2\nat_most = 0.6")
    assert (flags.code, flags.out) == (0, Answer(*regressor, "--problem", path).out)
    assert Answer(*regressor, "--at-least", "0.2", "--at-most", "0.6", "-o", tmp_path / "o.json").code == 0
    assert Answer("verify", tmp_path / "o.json", "--model", files / "regressor.skops").code == 0
    assert "at_least" in Answer("init-problem", files / "regressor.skops", data).out
    refused(*regressor, "--target", "1", "--at-least", "0.2", words=["at_least", "target"])
    refused(*regressor, "--at-least", "0.7", "--at-most", "0.6", words=["empty"])
    refused(*regressor, "--at-least", "0.7", "--probability", "0.6", words=["regressor", "probabilities"])
    for bounds in (("--at-least", "0.7"), ("--at-most", "0.7"), ("--at-least", "0.7", "--at-most", "0.9")):
        refused("solve", three, data, *bounds, words=["bounds", "value of a regressor", "a classifier", "a, b, c"])
    refused("export", three, data, "--target", "a", "--target", "b", "-o", tmp_path / "p.mps", words=["2 alternatives"])


def test_features_of_the_problem_file_must_exist(files: Path, write: Callable[[str, str], Path]) -> None:
    path = write("p.toml", "[features.agee]\nkind = 'integer'")
    refused("solve", files / "forest.skops", files / "data.csv", "--problem", path, words=["did you mean 'age'"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop(columns="owner"), ["misses", "owner"]),
        (lambda t: t.assign(**{"a b": 1, "id": 2}), ["does not take: a b, id", "--drop 'a b' --drop id"]),
        (lambda t: t.rename(columns={"owner": "ownr"}), ["misses", "owner", "ownr"]),
        (lambda t: t.assign(income=np.where(t.index == 2, np.inf, t.income)), ["'income'", "infinite"]),
        (lambda t: t.assign(income="much"), ["income"]),
        (lambda t: t.iloc[:0], ["no rows"]),
    ],
)
def test_tables_that_do_not_fit(
    files: Path,
    changed: Callable[..., Path],
    change: Callable[[pd.DataFrame], pd.DataFrame],
    words: list[str],
) -> None:
    refused("solve", files / "forest.skops", changed(change), words=words)


def test_wrong_width(files: Path) -> None:
    refused("solve", files / "nameless.skops", files / "labelled.csv", words=["4 columns", "fitted on 3", "--drop"])
    args = ("solve", files / "nameless.skops", files / "labelled.csv", "--drop", "the label", "--rows", "0")
    assert Answer(*args).code == 0


def test_missing_values_without_a_rule(files: Path, changed: Callable[..., Path], tmp_path: Path) -> None:
    from sklearn.ensemble import GradientBoostingClassifier

    table = pd.read_csv(files / "data.csv")
    model = GradientBoostingClassifier(n_estimators=2).fit(table, table["income"] > 50)
    skops_io.dump(model, tmp_path / "gb.skops")
    path = changed(lambda t: t.assign(income=np.where(t.index == 2, np.nan, t.income)))
    answer = Answer("solve", tmp_path / "gb.skops", path, "--rows", "0:4", "-o", tmp_path / "o.json")
    assert answer.code == 1
    assert "4 rows: 3 optimal, 1 error" in answer.err
    faulty = Explanations.from_json(tmp_path / "o.json")[2]
    assert faulty.status == "error"
    assert "'income'" in faulty.message
    assert "missing" in faulty.message
    refused("solve", tmp_path / "gb.skops", path, "--rows", "2", words=["income", "missing"])


def test_names_that_differ_by_blanks_or_case(files: Path, changed: Callable[..., Path]) -> None:
    rows = changed(lambda t: t.rename(columns={"income": " income", "age": "Age"}))
    words = ["misses columns", "'age' is 'Age', 'income' is ' income'"]
    refused("solve", files / "forest.skops", rows, words=words)


def test_unknown_category(files: Path, changed: Callable[..., Path], write: Callable[[str, str], Path]) -> None:
    rows = changed(lambda t: t.assign(owner=2))
    args = ("solve", files / "forest.skops", rows, "--reference", files / "data.csv")
    refused(*args, words=["'owner'", "unknown level", "0, 1"])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("table.csv", b"", ["it is empty", "first line should name the columns"]),
        ("table.csv", b'age,income,owner\n1,2,0\n3,"4,0\n5,6,0\n', ["a quotation mark in row 3", "is never closed"]),
        ("table.csv", bytes(range(256)), ["cannot be read"]),
        ("table.csv", b"age,income,owner\n1,2,0,\n3,4,0,\n", ["line 2 has 4 fields and the header 3", "commas"]),
        ("table.csv", b"age,income,owner\n1,2,0\n\n3,4,0,7,8\n", ["line 4 has 5 fields and the header 3", "commas"]),
        ("table.csv", b",age,income,owner\n0,1,2,0\n", ["--drop 'Unnamed: 0'"]),
        ("table.csv.gz", b"\x1f\x8b\x08", ["cannot be read"]),
        ("table.parquet", b"PAR1", ["if it is damaged, write it anew"]),
        ("table.xls", b"x", [".csv", ".parquet"]),
    ],
)
def test_damaged_tables(files: Path, tmp_path: Path, name: str, content: bytes, words: list[str]) -> None:
    (tmp_path / name).write_bytes(content)
    refused("solve", files / "forest.skops", tmp_path / name, words=[name, *words])
    refused("solve", files / "forest.skops", files / "data.csv", "--reference", tmp_path / name, words=[name, *words])


def test_tables_that_are_not_there(files: Path, tmp_path: Path) -> None:
    refused("solve", files / "forest.skops", tmp_path / "none.csv", words=["there is no file"])
    (tmp_path / "folder.csv").mkdir()
    refused("solve", files / "forest.skops", tmp_path / "folder.csv", words=["cannot be read"])


@pytest.mark.parametrize("suffix", ["skops", "json", "txt", "joblib"])
@pytest.mark.parametrize("damage", ["truncated", "empty", "random", "absent"])
def test_damaged_models(files: Path, tmp_path: Path, suffix: str, damage: str) -> None:
    path = tmp_path / f"model.{suffix}"
    whole = (files / ("forest.joblib" if suffix == "joblib" else "forest.skops")).read_bytes()
    content = {"truncated": whole[: len(whole) // 2], "empty": b"", "random": np.random.default_rng(0).bytes(500)}
    if damage != "absent":
        path.write_bytes(content[damage])
    for args in (["solve", path, files / "data.csv"], ["inspect", path]):
        refused(*args, "--trust-pickle", words=[path.name])


def test_models_that_cannot_be_explained(files: Path) -> None:
    data = files / "data.csv"
    refused("solve", files / "unfitted.joblib", data, "--trust-pickle", words=["fit"])
    refused("solve", files / "regressor.skops", data, words=["regressor", "--at-least"])
    refused("solve", files / "forest.joblib", data, words=["--trust-pickle"])
    assert Answer("solve", files / "forest.joblib", data, "--trust-pickle", "--rows", "0").code == 0


def test_plausibility_by_flag_and_by_problem_file(
    ask: Callable[..., Answer], files: Path, write: Callable[[str, str], Path], tmp_path: Path
) -> None:
    table = pd.read_csv(files / "data.csv").drop(columns="wanted", errors="ignore")
    forest = IsolationForest(n_estimators=5, max_samples=16, random_state=0).fit(table)
    skops_io.dump(forest, tmp_path / "isolation.skops")
    answers, few = [], ("--rows", "0:12")
    for args in (
        ("--plausibility", f"forest={tmp_path / 'isolation.skops'},quantile=0.2"),
        ("--problem", write("problem.toml", '[plausibility]\nforest = "isolation.skops"\nquantile = 0.2\n')),
    ):
        answer = ask(*args, *few)
        assert answer.code == 0, answer.err
        assert "in 5 isolation trees, wanted at least" in answer.out
        answers.append(answer.out)
    assert answers[0] == answers[1]
    out = tmp_path / "out.json"
    assert ask("--plausibility", f"forest={tmp_path / 'isolation.skops'}", "-o", out, *few).code == 0
    verify = ("verify", out, "--model", files / "forest.skops", "--forest")
    assert Answer(*verify, tmp_path / "isolation.skops").code == 0
    skops_io.dump(IsolationForest(n_estimators=5, max_samples=16, random_state=1).fit(table), tmp_path / "other.skops")
    assert "average depth" in Answer(*verify, tmp_path / "other.skops").out
    refused(*verify, files / "forest.skops", words=["isolation forest of scikit-learn or isotree"])
    assert "isolation trees" in ask("--problem", write("problem.toml", "[plausibility]\n"), *few).out


def test_labels_by_flag_and_by_problem_file(files: Path, write: Callable[[str, str], Path], tmp_path: Path) -> None:
    """The column of true classes is no input, and plausibility counts the rows by it."""
    start = ("solve", files / "forest.skops", files / "labelled.csv", "--rows", "0:2", "-o", tmp_path / "out.json")
    labels = pd.read_csv(files / "labelled.csv")["the label"]
    plausible = "[plausibility]\ntrees = 10\nsamples = 16\n"
    for args in (
        ("--label", "the label", "--problem", write("plain.toml", plausible)),
        ("--problem", write("label.toml", plausible + 'label = "the label"\nby = "label"\n')),
        ("--label", "the label", "--reference", files / "labelled.csv", "--plausibility", "trees=10,samples=16"),
    ):
        answer = Answer(*start, *args)
        assert answer.code == 0, answer.err
        for e in Explanations.from_json(tmp_path / "out.json"):
            assert e.plausibility["by"] == "label"
            assert e.plausibility["rows"] == (labels == e.target).sum()
            assert "the label" not in e.original.columns
    refused(*start, "--label", "the lable", words=["--label", "has no column 'the lable'", "did you mean 'the label'?"])
    refused(*start, "--label", "age", words=["misses columns that the model was fitted on: age"])
    refused(*start, "--label", "owner", "--drop", "the label", words=["misses columns", "owner"])
    bad = write("bad.toml", plausible + 'by = "labels"\n')
    refused(*start, "--problem", bad, words=["[plausibility]", "by", '"prediction" or "label"'])


def test_words_on_functions_by_flag_and_by_problem_file(
    files: Path, write: Callable[[str, str], Path], tmp_path: Path
) -> None:
    table = pd.read_csv(files / "data.csv")
    known = pd.read_csv(files / "labelled.csv")["the label"]
    model = make_pipeline(FunctionTransformer(np.nan_to_num), RandomForestClassifier(3, max_depth=3, random_state=0))
    joblib.dump(model.fit(table, known), tmp_path / "model.joblib")
    start = ("solve", tmp_path / "model.joblib", files / "data.csv", "--trust-pickle", "--rows", "0")
    refused(*start, words=["'functiontransformer'", "is not read", "monotone="])
    rising = write("rising.toml", '[monotone]\nfunctiontransformer = "increasing"\n')
    for args in (("--monotone", "functiontransformer=increasing"), ("--problem", rising)):
        answer = Answer(*start, *args)
        assert answer.code == 0, answer.err
        assert "this rests on your word that the step 'functiontransformer' is increasing" in answer.out
    assert Answer("regions", *start[1:-2], "--radius", "0.1", *args).code in (0, 3)
    falling = ("--problem", rising, "--monotone", "functiontransformer=decreasing")  # flags override the file
    refused(*start, *falling, words=["said to be decreasing, but within the bounds"])
    refused(*start, "--monotone", "functiontransformer", words=["--monotone", "STEP=increasing or STEP=decreasing"])
    refused(*start, "--monotone", "scale=increasing", words=["no FunctionTransformer 'scale'"])
    wrong = write("wrong.toml", '[monotone]\nfunctiontransformer = "rising"\n')
    refused(*start, "--problem", wrong, words=["[monotone]", "'rising' should be one of increasing, decreasing"])
    explainer = Explainer(model, table, rising)
    assert explainer.explain(table.iloc[[0]])[0].method["rests_on"].endswith("is increasing")

"""``ocf compress``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import Answer, refused
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier

from ocf import CounterfactualDiscretizer, ThresholdBinarizer
from ocf.cli import ExitCode
from ocf.problem.constraints import MaxChanges


@pytest.fixture(scope="module")
def cancer() -> tuple[pd.DataFrame, pd.Series]:
    table, classes = load_breast_cancer(return_X_y=True, as_frame=True)
    return table.iloc[:60], classes.iloc[:60]


@pytest.fixture(scope="module")
def model(cancer: tuple[pd.DataFrame, pd.Series]) -> GradientBoostingClassifier:
    return GradientBoostingClassifier(n_estimators=6, max_depth=1, random_state=0).fit(*cancer)


@pytest.fixture
def folder(cancer: tuple[pd.DataFrame, pd.Series], model: GradientBoostingClassifier, tmp_path: Path) -> Path:
    """Directory with a model and its data."""
    pytest.importorskip("skops.io").dump(model, tmp_path / "model.skops")
    table, classes = cancer
    table.assign(target=classes).to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


def test_compress_writes_thresholds_and_a_report(
    cancer: tuple[pd.DataFrame, pd.Series], model: GradientBoostingClassifier, folder: Path
) -> None:
    pytest.importorskip("matplotlib.pyplot").switch_backend("Agg")
    out, page, kept = folder / "thresholds.json", folder / "report.html", folder / "rows"
    args = (folder / "model.skops", folder / "data.csv", "--q", 0.7)
    answer = Answer("compress", *args, "-o", out, "--report", page, "--checkpoint", kept)
    assert answer.code == 0, answer.err
    assert "counterfactuals" in answer.out
    assert "Tree of depth 3" in answer.out
    document = json.loads(out.read_text())
    assert document["schema"] == "ocf.thresholds/1"
    assert document["settings"]["Q"] == 0.7
    fitted = CounterfactualDiscretizer(model, prefit=True, Q=0.7).fit(*cancer)
    applied = ThresholdBinarizer.from_json(out).transform(cancer[0])
    assert np.array_equal(applied, fitted.transform(cancer[0]))
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert len(kept.read_text().splitlines()) == 1 + len(fitted.rows_)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_compress_prints_what_the_disk_has_no_room_for(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib.pyplot").switch_backend("Agg")
    for name in ("full.json", "full.html"):
        (tmp_path / name).symlink_to("/dev/full")
    asked = ("compress", folder / "model.skops", folder / "data.csv")
    full = Answer(*asked, "-o", tmp_path / "full.json")
    assert full.code == 2
    assert f"cannot write {tmp_path / 'full.json'}" in full.err
    assert '"schema": "ocf.thresholds/1"' in full.out
    page = Answer(*asked, "--report", tmp_path / "full.html")
    assert (page.code, f"{tmp_path / 'full.html'} cannot be read or written" in page.err) == (2, True)


def test_compress_without_classes_takes_the_models_own(folder: Path) -> None:
    table = pd.read_csv(folder / "data.csv").drop(columns="target").iloc[:20]
    table.to_csv(folder / "rows.csv", index=False)
    answer = Answer("compress", folder / "model.skops", folder / "rows.csv")
    assert answer.code == 0, answer.err
    assert "20 rows, 20 counterfactuals" in answer.out
    assert "every row counts as classified correctly" in answer.err


@pytest.mark.slow
def test_compress_heeds_constraints_and_plausibility_of_the_problem_file(
    cancer: tuple[pd.DataFrame, pd.Series], model: GradientBoostingClassifier, folder: Path
) -> None:
    said = '[[constraints]]\nkind = "max_changes"\nmost = 1\n[plausibility]\ntrees = 4\nsamples = 16\nquantile = 0.7\n'
    (folder / "problem.toml").write_text(said)
    out = folder / "thresholds.json"
    args = (folder / "model.skops", folder / "data.csv", "--problem", folder / "problem.toml", "-o", out)
    answer = Answer("compress", *args)
    assert answer.code == 0, answer.err
    asked = {"constraints": [MaxChanges(1)], "plausibility": {"trees": 4, "samples": 16, "quantile": 0.7}}
    fitted = CounterfactualDiscretizer(model, prefit=True, **asked).fit(*cancer)
    document = json.loads(out.read_text())
    assert document["statuses"] == fitted.statuses_
    free = CounterfactualDiscretizer(model, prefit=True).fit(*cancer)
    for name in asked:
        part = CounterfactualDiscretizer(model, prefit=True, **{name: asked[name]}).fit(*cancer)
        assert part.to_dict() != free.to_dict()
    assert document["thresholds"] == fitted.to_dict()["thresholds"]


def test_compress_heeds_or_refuses_all_of_the_problem_file(
    cancer: tuple[pd.DataFrame, pd.Series], model: GradientBoostingClassifier, folder: Path
) -> None:
    problem, out = folder / "problem.toml", folder / "thresholds.json"
    args = ("compress", folder / "model.skops", folder / "data.csv", "--problem", problem, "-o", out)
    vary = sorted(set(CounterfactualDiscretizer(model, prefit=True).fit(*cancer).thresholds_["feature"]))[:1]
    problem.write_text(
        f'[solve]\nfeatures_to_vary = {json.dumps(vary)}\nnorm = "l2"\n[missing]\nspecial_values = [14.5]\n'
    )
    answer = Answer(*args)
    assert answer.code == 0, answer.err
    found = json.loads(out.read_text())
    assert [found["settings"][f"lambda{k}"] for k in range(3)] == [0, 0, 1]
    assert {own["feature"] for own in found["thresholds"]} <= {*vary}
    assert all(own["special"]["codes"] == [14.5] for own in found["space"]["features"])
    assert Answer(*args, "--norm", "l0").code == 0
    assert json.loads(out.read_text())["settings"]["lambda0"] == 1
    out.unlink()
    for said, named in (
        ('[monotone]\nstep = "increasing"', "[monotone]"),
        ("[solve]\ntarget = 1\nbox = true", "the target in [solve], [solve] box"),
        ("[missing]\ncost_of_supplying = 1", "[missing]"),
        ('[plausibility]\nlabel = "target"', "[plausibility] label"),
    ):
        problem.write_text(said)
        refused(*args, words=[f"problem.toml: this command takes no heed of {named}: leave that out"])
    assert not out.exists()


def test_compress_says_what_is_wrong(folder: Path) -> None:
    table = pd.read_csv(folder / "data.csv")
    table.assign(more=1).to_csv(folder / "more.csv", index=False)
    table.assign(target="x").to_csv(folder / "foreign.csv", index=False)
    for arguments, message in (
        (("data.csv", "--label", "nothing"), "data.csv has no column 'nothing'"),
        (("more.csv",), "say which holds the classes with --label"),
        (("foreign.csv",), "there is no class 'x'"),
        (("data.csv", "--drop", "mean radius"), "misses columns"),
        (("data.csv", "-o", "x.csv"), "should end in .json"),
        (("data.csv", "--norm", "l3"), "unknown norm"),
        (("data.csv", "--p0", "0.9", "--p1", "0.8"), "is above p1"),
        (("data.csv", "--solver", "gurobi"), "there is no solver"),
    ):
        refused("compress", folder / "model.skops", folder / arguments[0], *arguments[1:], words=[message])


def test_compress_reads_an_xgboost_file_with_categories(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": rng.integers(18, 80, 60), "purpose": pd.Categorical(rng.choice(["car", "tv", "house"], 60))}
    )
    granted = ((table["age"] > 40) | (table["purpose"] == "car")).astype(int)
    model = xgboost.XGBClassifier(n_estimators=3, max_depth=2, enable_categorical=True).fit(table, granted)
    model.save_model(tmp_path / "model.json")
    table.assign(granted=granted).to_csv(tmp_path / "train.csv", index=False)
    answer = Answer("compress", tmp_path / "model.json", tmp_path / "train.csv", "-o", tmp_path / "thresholds.json")
    assert answer.code == 0, answer.err
    assert "60 rows, 60 counterfactuals (60 optimal)" in answer.out
    found = json.loads((tmp_path / "thresholds.json").read_text())
    assert found["statuses"] == {"optimal": 60}
    binary = ThresholdBinarizer.from_json(tmp_path / "thresholds.json").transform(table)
    assert binary.shape[1] == len(found["thresholds"]) >= 2


def test_compress_within_a_limit_of_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    own = CounterfactualDiscretizer.fit

    def fit(self: CounterfactualDiscretizer, X: pd.DataFrame, y: np.ndarray) -> CounterfactualDiscretizer:
        asked.append(self.memory_limit)
        return own(self, X, y)

    monkeypatch.setattr(CounterfactualDiscretizer, "fit", fit)
    said = folder / "problem.toml"
    said.write_text('[solve]\nmemory_limit = "4GB"\n')
    args = ("compress", folder / "model.skops", folder / "data.csv", "--problem", said)
    assert Answer(*args).code == 0
    assert Answer(*args, "--memory-limit", "5GB").code == 0
    assert asked == ["4GB", "5GB"]
    refused(*args, "--memory-limit", "much", words=["memory_limit"])


def test_time_limits_that_are_none_are_refused(folder: Path) -> None:
    args = ("compress", folder / "model.skops", folder / "data.csv")
    for limit in ("nan", "-inf", "0"):
        answer = Answer(*args, "--time-limit", limit)
        assert answer.code == ExitCode.USAGE
        assert "time_limit must be a positive number of seconds" in answer.err
    assert Answer(*args, "--time-limit", "inf").code == ExitCode.SOLVED


def test_few_rows_are_told_with_a_remedy_that_there_is(folder: Path) -> None:
    table = pd.read_csv(folder / "data.csv")
    table.groupby("target").head(3).to_csv(folder / "few.csv", index=False)
    answer = Answer("compress", folder / "model.skops", folder / "few.csv")
    assert "or as DATA of ocf compress" in answer.err

"""Plots, the report and the command line of a compression."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import GradientBoostingClassifier
from typer.testing import CliRunner

from ocf import CounterfactualDiscretizer, GuessingThresholds, SurrogateTree, ThresholdBinarizer
from ocf.cli import app
from ocf.compression.plots import LEVELS, plot_thresholds, plot_tradeoff, threshold_map, tradeoff
from ocf.compression.report import to_page

pyplot = pytest.importorskip("matplotlib.pyplot")
pyplot.switch_backend("Agg")


@pytest.fixture(scope="module")
def data():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X.iloc[:60], y.iloc[:60]


@pytest.fixture(scope="module")
def model(data):
    return GradientBoostingClassifier(n_estimators=6, max_depth=1, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def fitted(data, model):
    return CounterfactualDiscretizer(model, prefit=True).fit(*data)


def test_the_map_says_up_to_which_q_thresholds_are_kept(data, fitted):
    table = threshold_map(fitted, bins=4)
    assert table.shape == (30, 4)
    counts = fitted.thresholds_["multiplicity"].to_numpy()
    for (name, value), count in zip(
        fitted.thresholds_[["feature", "threshold"]].itertuples(index=False, name=None), counts, strict=True
    ):
        feature = fitted.space_.features[fitted.space_.index(name)]
        cell = min(int((value - feature.lower) / (feature.upper - feature.lower) * 4), 3)
        reached = max(q for q in LEVELS if count >= np.quantile(counts, q))
        assert table.loc[name, cell] >= reached
    assert table.notna().sum().sum() <= len(counts)
    guessed = threshold_map(GuessingThresholds(fitted.estimator_).fit(*data), bins=4)
    assert set(guessed.to_numpy()[guessed.notna()]) == {0.0}


def test_plots_show_what_there_is(data, fitted):
    ax = plot_thresholds(fitted)
    assert ax.get_xlabel() == "place in the feature's range"
    few = plot_thresholds(fitted, most=2)
    assert len(few.get_yticks()) == 2
    assert "not shown" in few.get_title("left")
    nothing = CounterfactualDiscretizer(fitted.estimator_, prefit=True, p1=0.5).fit(*data)
    plot_thresholds(nothing)
    rates = tradeoff(fitted, *data, trees={"cart": SurrogateTree()})
    assert fitted.Q == 0.0
    assert rates.index.tolist() == list(LEVELS)
    assert rates["compression"].is_monotonic_increasing
    assert (rates["cart"] <= 1 - rates["inconsistency"] + 1e-12).all()
    assert len(plot_tradeoff(rates).lines) == 3
    pyplot.close("all")


def test_the_report_is_self_contained(data, fitted, tmp_path):
    path = tmp_path / "report.html"
    page = to_page(fitted, *data, path)
    assert path.read_text() == page == to_page(fitted, *data)
    assert "<svg" in page
    for outside in ("http-equiv", "<script", "<link", 'src="http', "@import"):
        assert outside not in page
    assert fitted.get_feature_names_out()[0].split(" > ")[0] in page
    empty = CounterfactualDiscretizer(fitted.estimator_, prefit=True, p1=0.5).fit(*data)
    assert "None: no counterfactual" in to_page(empty, *data)


# -- command line ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(data, model, tmp_path_factory):
    skops = pytest.importorskip("skops.io")
    folder = tmp_path_factory.mktemp("compress")
    skops.dump(model, folder / "model.skops")
    data[0].assign(target=data[1]).to_csv(folder / "data.csv", index=False)
    return folder


def run(*arguments):
    return CliRunner().invoke(app, ["compress", *map(str, arguments)])


def test_compress_writes_thresholds_and_a_report(data, files, fitted):
    out, page, kept = files / "thresholds.json", files / "report.html", files / "rows"
    result = run(
        files / "model.skops", files / "data.csv", "--q", 0.7, "-o", out, "--report", page, "--checkpoint", kept
    )
    assert result.exit_code == 0, result.output
    assert "counterfactuals" in result.stdout
    assert "Tree of depth 3" in result.stdout
    document = json.loads(out.read_text())
    assert document["schema"] == "ocf.thresholds/1"
    assert document["settings"]["Q"] == 0.7
    applied = ThresholdBinarizer.from_json(out).transform(data[0])
    assert np.array_equal(applied, fitted.set_params(Q=0.7).transform(data[0]))
    fitted.set_params(Q=0.0)
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert len(kept.read_text().splitlines()) == 1 + len(fitted.rows_)


def test_compress_without_classes_takes_the_models_own(files):
    table = pd.read_csv(files / "data.csv").drop(columns="target").iloc[:20]
    table.to_csv(files / "rows.csv", index=False)
    result = run(files / "model.skops", files / "rows.csv")
    assert result.exit_code == 0, result.output
    assert "20 rows, 20 counterfactuals" in result.stdout
    assert "every row counts as classified correctly" in result.stderr


def test_compress_says_what_is_wrong(files):
    table = pd.read_csv(files / "data.csv")
    table.assign(more=1).to_csv(files / "more.csv", index=False)
    table.assign(target="x").to_csv(files / "foreign.csv", index=False)
    for arguments, message in (
        (("data.csv", "--label", "nothing"), "--label: there is no column 'nothing'"),
        (("more.csv",), "say which holds the classes with --label"),
        (("foreign.csv",), "the model has no class 'x'"),
        (("data.csv", "--drop", "mean radius"), "misses columns"),
        (("data.csv", "-o", "x.csv"), "should end in .json"),
        (("data.csv", "--norm", "l3"), "unknown norm"),
        (("data.csv", "--p0", "0.9", "--p1", "0.8"), "is above p1"),
        (("data.csv", "--solver", "gurobi"), "there is no solver"),
    ):
        result = run(files / "model.skops", files / arguments[0], *arguments[1:])
        assert result.exit_code == 2, result.output
        assert message in " ".join(result.stderr.split())

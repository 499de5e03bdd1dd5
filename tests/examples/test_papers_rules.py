from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocf.compare.datasets import Dataset
from ocf.errors import DataError

SCRIPT = Path(__file__).parents[2] / "examples" / "papers" / "rules" / "run.py"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with a small table in the place of diabetes and small models."""
    spec = importlib.util.spec_from_file_location("papers_rules", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "papers_rules", module)
    spec.loader.exec_module(module)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(size=300), "b": rng.uniform(size=300)})
    data = Dataset("diabetes", table, (table.a > 0.5).astype(int), {"b": {"actionability": "fixed"}})
    monkeypatch.setattr(module, "load_dataset", lambda *_: data)
    small = {
        "RF": RandomForestClassifier(10, random_state=0),
        "NN": make_pipeline(StandardScaler(), LogisticRegression()),
    }
    monkeypatch.setattr(module, "models", lambda _: small)
    return module


def test_a_command_that_was_stopped_goes_on(
    run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run.py", "-o", str(tmp_path), "--sets", "diabetes", "--rows", "1", "--timed", "0", "--limit", "1"]
    words += ["--parts", "local", "regional"]
    monkeypatch.setattr(sys, "argv", words)
    run.main()
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    assert len(lines) == 8  # two models, local and regional, two classes
    told = pd.read_csv(tmp_path / "points.csv", comment="#")
    means = pd.read_csv(tmp_path / "figures.csv", comment="#")
    assert len(told) == len(means) > 0  # one row a class
    assert {"drawn", "variance 0.01", "deviation 0.05"} <= set(told)
    assert told.probability.round(4).tolist() == means.probability.tolist()
    assert (tmp_path / "figures.md").read_text().splitlines()[0].endswith("1 rows a class, 1 s for the largest rule")
    results = [json.loads(line)["result"] for line in lines]
    points = [result["greedy"] for result in results if "greedy" in result]
    assert points
    assert all(point["precision"] >= 0.9 and len(point["stable"]) == 3 for point in points)
    assert all(result["best"]["weight"] >= result["greedy"]["weight"] for result in results if "greedy" in result)
    assert "| diabetes | RF | local, greedy |" in capsys.readouterr().out

    (tmp_path / "runs.jsonl").write_text("\n".join([*lines[:-1], lines[-1][:20]]))  # killed while it wrote
    run.main()
    again = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines() if line.endswith("}")]
    assert len(again) == 8
    assert capsys.readouterr().err.splitlines() == ["diabetes NN regional 0 0"]


def test_cost_counts_bins(run: ModuleType) -> None:
    own = run.case("diabetes", "RF", None)
    row = pd.DataFrame({"a": [own.train.a.min()], "b": [0.5]})
    assert run.bin_cost(own, row, row) == 0
    assert run.bin_cost(own, row, row.assign(a=own.train.a.max())) == pytest.approx(0.9)


def test_californias_rules_are_of_the_forest_that_is_explained(
    run: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    names = ["MedInc", "HouseAge", "AveRooms", "AveBedrms", "Population", "AveOccup", "Latitude", "Longitude"]
    table = pd.DataFrame(rng.uniform(1, 40, (300, 8)), columns=names)
    prices = np.minimum(table.MedInc / 6, 5.0)
    monkeypatch.setattr(run, "load_dataset", lambda *_: Dataset("california", table, prices, {}))
    own = run.case("california-raw", "RF", "raw")
    coded = own.rules.space.from_frame(own.train)
    answers = own.model.predict(own.train)
    assert own.rules.forest.answers.tolist() == answers.tolist()
    leaf_values = own.rules.forest.partition.ensemble.scores(coded)[:, 0]
    np.testing.assert_allclose(leaf_values / (leaf_values[0] / answers[0]), answers, rtol=1e-9)
    assert own.train.TotalRooms.max() > 40
    assert len(own.train) + len(own.rows["below 1"]) < 300  # capped prices are left out
    assert (own.model.predict(own.rows["below 1"]) < 1).all()


def test_a_region_is_the_one_with_the_most_probable_rule(run: ModuleType) -> None:
    own = run.case("diabetes", "RF", None)
    row = own.rows[0].iloc[[0]]
    best = run.region(own, row, 1, 0.6)
    asked = {"method": "greedy", "prefer": "probable", "rule_level": 0.6}
    around = own.rules.regions(1, row, most=None)
    precise = [found[0].precision for g in around if (found := own.rules.regional(g, 1, **asked)).rules]
    assert own.rules.regional(best, 1, **asked)[0].precision == max(precise)


def test_sufficient_regions_serve_a_row_by_one_of_theirs(run: ModuleType) -> None:
    own = run.case("diabetes", "RF", None)
    given = run.sufficient_set(own, 0, 1, run.LEVEL)
    at = int(given.assign(own.rows[0].iloc[[0]])[0])
    result = run.explain(own, "diabetes", "sufficient", 0, 0, 5.0, 1000)
    assert at >= 0
    assert result["probable"]["precision"] == pytest.approx(given.rules[at][0].precision)
    frame = pd.DataFrame([("diabetes", "RF", "sufficient", 0, 0, result)], columns=[*"nkwlr", "result"])
    assert "| diabetes | RF | sufficient, *paper* |" in run.quality(frame)


def test_how_large_rules_are_is_measured_without_points(run: ModuleType) -> None:
    own = run.case("diabetes", "RF", None)
    result = run.explain(own, "diabetes", "largest", 0, 0, 60.0, 10_000)
    assert result["best_status"] == "optimal"
    assert result["best_bound"] == result["best"]["weight"] >= result["greedy"]["weight"]
    frame = pd.DataFrame([("diabetes", "RF", "largest", 0, 0, result)], columns=[*"nkwlr", "result"])
    assert "| diabetes | largest | 1 |" in run.size(frame)
    assert run.quality(frame) == ""
    done = {("diabetes", "RF", "largest", 0, 0): result}
    assert run.figures(done).empty
    assert run.sizes(done).status.tolist() == ["optimal"]
    assert run.sizes(done).largest.tolist() == [round(result["best"]["weight"], 4)]


def test_sets_are_timed_without_the_largest_rule(
    run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run.py", "-o", str(tmp_path), "--sets", "diabetes", "--parts", "sets", "--timed", "2"]
    monkeypatch.setattr(sys, "argv", words)
    run.main()
    rows = pd.read_csv(tmp_path / "seconds.csv", comment="#")
    assert rows.set_highs_agrees.all()
    assert rows.set_scip_agrees.all()
    assert "search_seconds" not in rows
    assert "2 rows a set, 6 s of the processor a model" in (tmp_path / "seconds.md").read_text()
    last = (tmp_path / "seconds.md").read_text().splitlines()[-1]
    assert last.startswith("| diabetes | 2 | ")
    assert last.count("(2)") == 2
    assert not (tmp_path / "figures.csv").exists()


def test_the_models_of_the_largest_rule_agree_with_the_search(
    run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run.py", "-o", str(tmp_path), "--sets", "diabetes", "--parts", "models", "--timed", "2", "--limit", "20"]
    monkeypatch.setattr(sys, "argv", words)
    run.main()
    rows = pd.read_csv(tmp_path / "seconds.csv", comment="#")
    for solver in run.SOLVERS:
        assert rows[f"box_{solver}_status"].isin(run.PROVED).all()
        np.testing.assert_allclose(rows[f"box_{solver}_weight"], rows.search_weight, rtol=1e-6)
    assert (tmp_path / "seconds.md").read_text().splitlines()[-1].count("(2)") == 5
    assert capsys.readouterr().err.splitlines() == ["diabetes RF models 0 0", "diabetes RF models 0 1"]

    def busy(ask: Any, limit: float, ended: Any) -> None:
        return None if isinstance(ask(limit), run.FoundBox) else (ask(limit), 1.0)

    monkeypatch.setattr(run, "by_processor", busy)
    assert run.time_models(run.case("diabetes", "RF", None), "diabetes", "models", 0, 0, 5.0) is None
    monkeypatch.setattr(run, "time_models", lambda *_: None)
    monkeypatch.setattr(sys, "argv", [*words, "--timed", "3"])
    run.main()
    assert capsys.readouterr().err.splitlines() == ["1 rows had too little of the processor: run the command again"]
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 2


def test_a_model_that_ends_at_its_limit_is_timed_without_an_answer(run: ModuleType) -> None:
    timed = run.Watch(60.0)

    def late(clock: float) -> None:
        raise run.SolverError("no rule within the limit")

    assert timed("set_scip", late) is None
    assert timed("greedy", lambda clock: 7) == 7
    assert timed.out["set_scip_error"] == "no rule within the limit"
    assert {"set_scip_seconds", "greedy_seconds"} <= set(timed.out)
    assert not timed.busy


def test_a_few_regions_hold_rows(run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["run.py", "-o", str(tmp_path), "--sets", "diabetes", "--parts", "covering", "--made-of", "30"]
    monkeypatch.setattr(sys, "argv", words)
    run.main()
    held = pd.read_csv(tmp_path / "covering.csv", comment="#")
    assert held.kind.tolist() == ["leaves"] * 2 + ["sufficient"] * 2
    assert held.regions.between(1, 5).all()
    assert held.coverage.between(0.1, 1).all()
    assert held.precision.between(0.9, 1).all()
    assert "sufficient rules of 30 training rows, no limit" in (tmp_path / "covering.md").read_text()


def test_a_users_own_table_is_a_set(run: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    pd.DataFrame({"a": [1, 2, None, 4], "word": ["x", "y", "y", "y"], "ill": ["no", "yes", "no", "yes"]}).to_csv(
        path, index=False
    )
    data = run.own_table(path)
    assert data.target.tolist() == [0, 1, 1]
    assert data.table.columns.tolist() == ["a", "word_x", "word_y"]
    with pytest.raises(DataError, match="must have two classes, not 4"):
        run.own_table(_written(path, {"b": [0, 1, 0, 1], "a": [1, 2, 3, 4]}))
    done = {(str(path), "RF", "local", 1, 0): {"probable": {"precision": 1.0, **dict.fromkeys(run.MEASURES, 1.0)}}}
    frame = pd.DataFrame([(*job, result) for job, result in done.items()], columns=[*"nkwlr", "result"])
    assert f"| {path} | RF | local, probable | 1 of 1 | 1.00" in run.quality(frame)
    assert "paper" not in run.quality(frame)


def test_propublicas_rows_are_those_that_it_kept(run: ModuleType, tmp_path: Path) -> None:
    kept = dict.fromkeys(run.PROPUBLICA, 1) | {"sex": "Male", "race": "Other", "c_charge_degree": "F", "name": "A"}
    kept |= {"days_b_screening_arrest": -30, "is_recid": 0, "score_text": "Low", "two_year_recid": 1}
    others = [{"days_b_screening_arrest": 31}, {"is_recid": -1}, {"c_charge_degree": "O"}, {"score_text": "N/A"}]
    rows = [kept, kept | {"two_year_recid": 0, "age": 7}, *(kept | other for other in others)]
    data = run.own_table(_written(tmp_path / "p.csv", rows))
    assert data.target.tolist() == [1, 0]
    assert data.table.age.tolist() == [1, 7]
    assert "name" not in data.table


def _written(path: Path, rows: Any) -> Path:
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def test_noise_is_smaller_where_the_levels_are_standard_deviations(run: ModuleType) -> None:
    own = run.case("diabetes", "RF", None)
    edge = own.rows[0].iloc[[0]].assign(a=0.6)
    kept = run.stability(own, edge, ("a",), 1, 0, np.array([0.0, 0.1, 1.0]))
    assert kept[0] == 1.0 >= kept[1] > kept[2]

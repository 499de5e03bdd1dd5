"""``ocf rules``."""

from __future__ import annotations

import json
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from command_line import Answer
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ocf import CounterfactualRules
from ocf.cli import ExitCode


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with two models of a bank that grants to earners above 50 with a job, and its customers."""
    folder = tmp_path_factory.mktemp("rules")
    rng = np.random.default_rng(0)
    n = 400
    numbers = pd.DataFrame(
        {"age": rng.integers(18, 80, n), "income": rng.uniform(0, 100, n).round(1), "job": rng.integers(0, 2, n)}
    )
    answers = np.where((numbers.income > 50) & (numbers.job == 1), "granted", "refused")
    network = make_pipeline(StandardScaler(), MLPClassifier((8,), solver="lbfgs", random_state=0))
    joblib.dump(network.fit(numbers, answers), folder / "network.joblib")
    joblib.dump(RandomForestClassifier(10, random_state=0).fit(numbers, answers), folder / "forest.joblib")
    numbers.to_csv(folder / "rows.csv", index=False)
    numbers.assign(answer=answers).to_csv(folder / "answers.csv", index=False)
    return folder


def run(folder: Path, *words: Any) -> Answer:
    paths = [folder / w if isinstance(w, str) and "." in w else w for w in words]
    return Answer("rules", *paths, "--trust-pickle", "--level", 0.4, "--time-limit", 1e6)


def poor(folder: Path, n: int) -> str:
    """The first customers who earn less and have a job, as ``--rows`` takes them."""
    table = pd.read_csv(folder / "rows.csv")
    return ",".join(map(str, table[(table.income < 30) & (table.job == 1)].index[:n]))


@pytest.mark.parametrize("model", ["network.joblib", "forest.joblib"])
def test_command_writes_rules(folder: Path, model: str) -> None:
    answer = run(folder, model, "rows.csv", "--rows", poor(folder, 2), "--target", "granted", "-o", "rules.json")
    assert answer.code == ExitCode.SOLVED, answer.err
    assert "2 rows: 2 with rules" in answer.err
    sets = json.loads((folder / "rules.json").read_text())["rule_sets"]
    assert [own["features"] for own in sets] == [["income"], ["income"]]
    answer = run(folder, model, "rows.csv", "--rows", poor(folder, 1), "--regional", "--target", "granted")
    assert answer.code in (ExitCode.SOLVED, ExitCode.INFEASIBLE)
    assert answer.out.startswith("where ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_rules_survive_a_disk_that_is_full(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "full.json").symlink_to("/dev/full")
    asked = ("forest.joblib", "rows.csv", "--rows", poor(folder, 1), "--target", "granted")
    answer = run(folder, *asked, "-o", tmp_path / "full.json")
    assert answer.code == ExitCode.USAGE
    assert "No space left on device" in answer.err
    assert json.loads(answer.out)["rule_sets"][0]["features"] == ["income"]


def test_command_gives_rows_the_best_of_the_leaves_around_them(folder: Path) -> None:
    rows = poor(folder, 3)
    words = ("--regional", "--target", "granted", "--rule-level", 0.4, "--method", "greedy", "-o", "regions.json")
    answer = run(folder, "forest.joblib", "rows.csv", "--rows", rows, *words)
    assert answer.code == ExitCode.SOLVED, answer.err
    sets = json.loads((folder / "regions.json").read_text())["rule_sets"]
    table = pd.read_csv(folder / "rows.csv")
    rules = CounterfactualRules(joblib.load(folder / "forest.joblib"), table, level=0.4, rule_level=0.4)
    asked = [table.iloc[[int(k)]] for k in rows.split(",")]
    best = {own.held: own[0].precision for own in (rules.regional_of(x, "granted", method="greedy") for x in asked)}
    assert [own["rules"][0]["precision"] for own in sets] == list(best.values())
    largest = [rules.regional(rules.region_of(x, "granted"), "granted", method="greedy") for x in asked]
    assert max(best.values()) > max(own[0].precision if own.rules else 0.0 for own in largest)


def test_command_covers_rows_by_a_few_regions(folder: Path) -> None:
    words = ("forest.joblib", "rows.csv", "--rows", "0:60", "--target", "granted", "--rule-level", 0.4, "--most", 2)
    asked = (*words, "--method", "greedy", "--cover")
    for kind in ("leaves", "sufficient"):
        answer = run(folder, *asked, kind, "-o", "cover.json")
        assert answer.code == ExitCode.SOLVED, answer.err
        assert "regions hold" in answer.err
        sets = json.loads((folder / "cover.json").read_text())["rule_sets"]
        assert 1 <= len(sets) <= 2
        assert all(own["held"] and own["rules"] for own in sets)
    assert "did you mean 'leaves'" in run(folder, *asked, "leafs").err
    assert "--cover needs --target" in run(folder, "forest.joblib", "rows.csv", "--cover", "leaves").err


def test_command_names_sets_of_decision_paths(folder: Path) -> None:
    words = ("forest.joblib", "rows.csv", "--rows", poor(folder, 1), "--sets", "paths", "--every-set", "-o", "s.json")
    answer = run(folder, *words, "--method", "greedy")
    assert answer.code == ExitCode.SOLVED, answer.err
    (own,) = json.loads((folder / "s.json").read_text())["rule_sets"]
    assert (own["features"], own["others"]) == (["income"], [])
    assert "did you mean 'paths'" in run(folder, "forest.joblib", "rows.csv", "--rows", "0", "--sets", "path").err


def test_command_tells_what_safety_costs(folder: Path) -> None:
    words = ("forest.joblib", "rows.csv", "--rows", poor(folder, 2), "--trade-off")
    for name in ("safe.csv", "safe.json"):
        answer = run(folder, *words, "3e-1,6e-1", "-o", name)
        assert answer.code == ExitCode.SOLVED, answer.err
        path = folder / name
        table = pd.read_csv(path) if path.suffix == ".csv" else pd.DataFrame(json.loads(path.read_text()))
        assert table.level.tolist() == [0.3, 0.6] * 2
        assert table.row.nunique() == 2
        assert (table.groupby("row").cost.diff().dropna() >= 0).all()
    assert "probability" in run(folder, *words, "6e-1").out
    assert "give probabilities, as" in run(folder, *words, "much").err


def test_columns_that_are_named_like_those_of_the_answer_keep_their_names(tmp_path: Path) -> None:
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)).round(2), columns=["row", "b"])
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, (table.row + table.b > 0).astype(int))
    joblib.dump(model, tmp_path / "m.joblib")
    table.to_csv(tmp_path / "t.csv", index=False)
    rows = ",".join(map(str, table.index[model.predict(table) == 0][:2]))
    words = ("--rows", rows, "--target", "1", "--trade-off", "5e-1", "-o", "o.json")
    answer = run(tmp_path, "m.joblib", "t.csv", *words)
    assert answer.code == ExitCode.SOLVED, answer.err
    found = pd.DataFrame(json.loads((tmp_path / "o.json").read_text()))
    assert found.columns.tolist() == ["ocf_row", "level", "probability", "cost", "reached", "rule", "row", "b"]
    assert ",".join(map(str, found.ocf_row)) == rows


def test_command_prefers_the_most_probable_rule(folder: Path) -> None:
    precision = {}
    for prefer in ("large", "probable"):
        words = ("forest.joblib", "rows.csv", "--rows", poor(folder, 1), "--prefer", prefer, "-o", f"{prefer}.csv")
        answer = run(folder, *words, "--rule-level", 0.6)
        assert answer.code == ExitCode.SOLVED, answer.err
        precision[prefer] = pd.read_csv(folder / f"{prefer}.csv")["precision"][0]
    assert 0.6 <= precision["large"] < precision["probable"]
    assert "did you mean 'large'" in run(folder, "forest.joblib", "rows.csv", "--rows", "0", "--prefer", "larg").err


def test_command_explains_labels(folder: Path) -> None:
    words = ("forest.joblib", "answers.csv", "--labels", "answer", "--rows", poor(folder, 1), "-o", "rules.csv")
    answer = run(folder, *words)
    assert answer.code == ExitCode.SOLVED, answer.err
    assert pd.read_csv(folder / "rules.csv")["feature"].tolist() == ["income"]


def test_labels_say_what_a_row_has_already(folder: Path, tmp_path: Path) -> None:
    table = pd.read_csv(folder / "answers.csv")
    first, second = map(int, poor(folder, 2).split(","))
    rich = int(table.index[table.answer == "granted"][0])
    table.loc[first, "answer"], table.loc[rich, "answer"] = "granted", "refused"  # the model says otherwise
    table.to_csv(tmp_path / "labels.csv", index=False)
    asked = ("forest.joblib", str(tmp_path / "labels.csv"), "--labels", "answer", "--rows", f"{first},{second},{rich}")
    rules = str(tmp_path / "rules.json")

    def statuses(*words: Any) -> list[str]:
        answer = run(folder, *asked, *words, "-o", rules)
        assert answer.code in (ExitCode.SOLVED, ExitCode.INFEASIBLE), answer.err
        return [
            (own["predicted"], own["status"] == "already") for own in json.loads(Path(rules).read_text())["rule_sets"]
        ]

    found = [("granted", True), ("refused", False), ("refused", False)]
    assert statuses("--target", "granted") == found
    assert statuses() == [(answer, False) for answer, _ in found]
    assert len(statuses("--target", "granted", "--regional")) == 2
    answer = run(folder, *asked, "--trade-off", "3e-1", "--method", "greedy", "-o", rules)
    assert answer.code == ExitCode.SOLVED, answer.err
    assert {own["row"] for own in json.loads(Path(rules).read_text())} == {first, second, rich}
    asks = ("--target", "granted", "--trade-off", "3e-1", "--method", "greedy", "-o", rules)
    answer = run(folder, *asked, *asks)
    assert answer.code == ExitCode.SOLVED, answer.err  # one has it already
    assert {own["row"] for own in json.loads(Path(rules).read_text())} == {second, rich}
    covered = run(folder, *asked[:-1], str(first), "--target", "granted", "--cover", "leaves")
    assert covered.code == ExitCode.SOLVED, covered.err
    table.loc[second, "answer"] = "perhaps"
    table.to_csv(tmp_path / "labels.csv", index=False)
    assert "'perhaps'" in run(folder, *asked, "--reference", "answers.csv", "-o", rules).err


def test_command_heeds_or_refuses_all_of_the_problem_file(folder: Path, tmp_path: Path) -> None:
    problem = tmp_path / "problem.toml"
    rows = pd.read_csv(folder / "rows.csv")
    rows.loc[rows.income < 20, "income"] = -9
    rows.to_csv(tmp_path / "coded.csv", index=False)
    words = ("forest.joblib", str(tmp_path / "coded.csv"), "--rows", poor(folder, 2), "-o", str(tmp_path / "r.json"))

    def ask(said: str, *more: Any) -> tuple[str, str]:
        problem.write_text(said)
        (tmp_path / "r.json").unlink(missing_ok=True)
        answer = run(folder, *words, "--problem", str(problem), *more)
        found = tmp_path / "r.json"
        return found.read_text() if found.exists() else "", answer.err

    of_all, of_one, plain = (
        [own["rules"] for own in json.loads(ask(said)[0])["rule_sets"]]
        for said in ("[missing]\nspecial_values = [-9]", "[features.income]\nspecial_values = [-9]", "")
    )
    assert of_all == of_one != plain
    cost = {}
    for norm in ("l0", "l1"):
        (point, *_) = json.loads(ask(f'[solve]\nnorm = "{norm}"\n', "--trade-off", "9e-1")[0])
        cost[norm] = point["cost"]
    assert cost["l0"] == 1 > cost["l1"]
    for said, named in (
        ('[monotone]\nstep = "increasing"', "[monotone]"),
        ('[[constraints]]\nkind = "max_changes"\nmost = 1', "[[constraints]]"),
        ("[plausibility]", "[plausibility]"),
        ('[solve]\nnorm = "l0"', "[solve] norm"),
    ):
        assert f"this command takes no heed of {named}: leave that out" in ask(said)[1]


def test_command_refuses_flags_that_another_leaves_without_effect(folder: Path) -> None:
    asked = ("forest.joblib", "rows.csv", "--rows", poor(folder, 1), "--target", "granted")
    for flag, idle in (
        (("--trade-off", "0.9"), ("--regional",)),
        (("--trade-off", "0.9"), ("--cover", "leaves")),
        (("--trade-off", "0.9"), ("--every-set",)),
        (("--trade-off", "0.9"), ("--rule-level", 0.5)),
        (("--cover", "leaves"), ("--regional",)),
    ):
        answer = run(folder, *asked, *flag, *idle)
        assert answer.code == ExitCode.USAGE
        assert f"{flag[0]} takes no heed of {idle[0]}: leave that out" in answer.err


def test_rows_that_no_region_covers_are_told_by_the_exit_code(folder: Path) -> None:
    asked = ("forest.joblib", "rows.csv", "--target", "granted", "--cover", "leaves", "--most", 1)
    answer = run(folder, *asked, "--rule-level", 0.9)
    assert "hold" in answer.err
    assert "100%" not in answer.err
    assert answer.code == ExitCode.INFEASIBLE
    granted = pd.read_csv(folder / "answers.csv").answer == "granted"
    kept = ",".join(map(str, granted.index[granted][:2]))
    assert run(folder, *asked, "--rows", kept).code == ExitCode.SOLVED  # they have the target already


def test_command_says_what_is_wrong(folder: Path) -> None:
    answer = run(folder, "forest.joblib", "answers.csv", "--labels", "anser")
    assert "answers.csv has no column 'anser'" in answer.err
    assert "there is no class 'grnted'" in run(folder, "forest.joblib", "rows.csv", "--target", "grnted").err
    answer = run(folder, "forest.joblib", "rows.csv", "--rows", poor(folder, 1), "--regional")
    assert answer.code == ExitCode.USAGE
    assert "--regional needs --target" in answer.err


def test_ctrl_c_writes_the_rules_of_finished_rows(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local, calls = CounterfactualRules.local, []

    def interrupted(self: CounterfactualRules, *args: Any, **settings: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return local(self, *args, **settings)

    monkeypatch.setattr(CounterfactualRules, "local", interrupted)
    words = ("forest.joblib", "rows.csv", "--rows", "0:3", "--target", "granted")
    answer = run(folder, *words, "-o", str(tmp_path / "rules.json"))
    assert answer.code == ExitCode.INTERRUPTED, answer.err
    assert len(json.loads((tmp_path / "rules.json").read_text())["rule_sets"]) == 1


def test_ctrl_c_writes_the_points_of_finished_rows(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trade_off, calls = CounterfactualRules.trade_off, []

    def interrupted(self: CounterfactualRules, *args: Any, **settings: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            with suppress(KeyboardInterrupt):  # as compiled kernels do
                signal.raise_signal(signal.SIGTERM)
        return trade_off(self, *args, **settings)

    monkeypatch.setattr(CounterfactualRules, "trade_off", interrupted)
    words = ("forest.joblib", "rows.csv", "--rows", poor(folder, 3), "--trade-off", "5e-1")
    answer = run(folder, *words, "-o", str(tmp_path / "points.csv"))
    assert answer.code == ExitCode.INTERRUPTED, answer.err
    assert "interrupted; the points of finished rows are written" in answer.err
    assert len(calls) == 2
    assert pd.read_csv(tmp_path / "points.csv").row.nunique() == 2


def test_ctrl_c_ends_the_choice_of_regions(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(CounterfactualRules, "regional", interrupted)
    words = ("forest.joblib", "rows.csv", "--target", "granted", "--cover", "leaves")
    answer = run(folder, *words, "-o", str(tmp_path / "rules.json"))
    assert answer.code == ExitCode.INTERRUPTED, answer.err
    assert "interrupted: no region was written" in answer.err
    assert not (tmp_path / "rules.json").exists()


def test_a_table_without_rules_has_its_header(folder: Path, tmp_path: Path) -> None:
    granted = pd.read_csv(folder / "answers.csv").answer == "granted"
    words = ("forest.joblib", "rows.csv", "--target", "granted", "--rows", str(granted.idxmax()))
    answer = run(folder, *words, "-o", str(tmp_path / "rules.csv"))
    assert answer.code == ExitCode.SOLVED, answer.err
    table = pd.read_csv(tmp_path / "rules.csv")
    assert table.empty
    assert table.columns[:3].tolist() == ["row", "rule", "feature"]

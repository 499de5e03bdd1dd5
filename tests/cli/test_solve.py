"""``ocf solve`` and ``ocf export``: answers, files, exit codes, interruptions."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from command_line import Answer, refused
from lightgbm import LGBMClassifier
from sklearn.ensemble import RandomForestClassifier

from ocf.cli.solve import exit_code
from ocf.explain.explainer import Explainer
from ocf.explain.explanation import Explanation, Explanations
from ocf.explain.tree_asking import TreeAsking
from ocf.problem.problem import Problem


def test_help_documents_the_exit_codes() -> None:
    codes = Answer("solve", "--help").out.split("Exit codes")[1]
    words = ("every row", "internal", "usage", "some row", "a limit, or", "a limit was", "verification", "interrupted")
    for code, said in zip((0, 1, 2, 3, 4, 5, 6, 130), words, strict=True):
        assert re.search(rf"(^|\s){code}\s+{said}".replace(" ", r"\s+"), codes), code


def test_solve_prints_text(ask: Callable[..., Answer]) -> None:
    answer = ask("--rows", "0:3")
    assert answer.code == 0
    for row in range(3):
        assert f"row {row}" in answer.out
    assert "3 rows: 3 optimal; 3 verified" in answer.err


def test_solve_writes_json_that_verifies(ask: Callable[..., Answer], files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    answer = ask("--rows", "5,1", "-o", out)
    assert (answer.code, answer.out) == (0, "")
    found = Explanations.from_json(out)
    assert [e.row for e in found] == [5, 1]
    check = Answer("verify", out, "--model", files / "forest.skops")
    assert (check.code, check.out) == (0, "2 rows checked: 2 hold, 0 do not\n")
    assert "2 verified" in Answer("verify", out, "--model", files / "forest.skops", "--progress").err


def test_solve_and_verify_take_one_output_of_several(files: Path, tmp_path: Path) -> None:
    table = pd.read_csv(files / "data.csv")
    labels = np.column_stack([table["age"] > 40, table["income"] > 50])
    forest = RandomForestClassifier(3, max_depth=3, random_state=0).fit(table, labels)
    joblib.dump(forest, tmp_path / "several.joblib")
    asked = (tmp_path / "several.joblib", files / "data.csv", "--rows", "3", "-o", tmp_path / "out.json")
    assert "output=0" in Answer("solve", *asked, "--trust-pickle").err
    assert Answer("solve", *asked, "--trust-pickle", "--model-output", "1").code == 0
    (found,) = Explanations.from_json(tmp_path / "out.json")
    before, after = forest.predict(table.iloc[[3]])[0, 1], forest.predict(found.counterfactual)[0, 1]
    assert before != after
    check = Answer("verify", tmp_path / "out.json", "--model", asked[0], "--trust-pickle", "--model-output", "1")
    assert (check.code, check.out) == (0, "1 rows checked: 1 hold, 0 do not\n")


def test_a_column_named_row_stays_beside_the_rows(files: Path, tmp_path: Path) -> None:
    table = pd.read_csv(files / "data.csv").rename(columns={"age": "row"})
    forest = RandomForestClassifier(3, max_depth=3, random_state=0).fit(table[["row", "income"]], table["income"] > 50)
    joblib.dump(forest, tmp_path / "forest.joblib")
    table[["row", "income"]].to_csv(tmp_path / "data.csv", index=False)
    asked = (tmp_path / "forest.joblib", tmp_path / "data.csv", "--rows", "3", "-o", tmp_path / "out.csv")
    assert Answer("solve", *asked, "--trust-pickle").code == 0
    names = (tmp_path / "out.csv").read_text().splitlines()[0].split(",")
    assert names[:3] == ["ocf_row", "row", "income"]


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no signal to one process")
def test_ctrl_c_while_answers_are_written_waits_for_that(
    ask: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Explanations.to_json

    def stopped(self: Explanations) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        return own(self)

    monkeypatch.setattr(Explanations, "to_json", stopped)
    answer = ask("--rows", "0:2", "-o", tmp_path / "out.json")
    assert answer.code == 0
    assert "the answers are being written: wait for that" in answer.err
    assert len(Explanations.from_json(tmp_path / "out.json")) == 2


def test_what_is_read_is_not_replaced(files: Path) -> None:
    path = files / "data.csv"
    before = path.read_bytes()
    refused("solve", files / "forest.skops", path, "-o", path, words=["this command reads or keeps"])
    assert path.read_bytes() == before


def test_solve_gives_several_answers_and_says_what_conflicts(
    ask: Callable[..., Answer], write: Callable[[str, str], Path]
) -> None:
    answer = ask("--rows", "3", "--n-explanations", "2", "--diversity", "features")
    assert answer.code == 0
    assert "row 3, no. 2: " in answer.out
    path = write("p.toml", "[solve]\nfeatures_to_vary = []\n")
    answer = ask("--rows", "3", "--problem", path, "--diagnose")
    assert answer.code == 3
    assert "is fixed" in answer.out


def test_solve_writes_csv_and_html(ask: Callable[..., Answer], tmp_path: Path) -> None:
    assert ask("--rows", "0:2", "-o", tmp_path / "out.csv").code == 0
    table = pd.read_csv(tmp_path / "out.csv", index_col="row")
    assert list(table["status"]) == ["optimal", "optimal"]
    assert {"age", "income", "owner", "cost"} <= set(table.columns)
    assert ask("--rows", "0", "-o", tmp_path / "out.html").code == 0
    assert "<html" in (tmp_path / "out.html").read_text()


def test_a_row_that_has_the_target_already_costs_nothing(
    ask: Callable[..., Answer], files: Path, tmp_path: Path
) -> None:
    has = json.loads((files / "classes.json").read_text()).index(1)
    assert ask("--rows", has, "--target", 1, "-o", tmp_path / "out.json").code == 0
    (found,) = Explanations.from_json(tmp_path / "out.json")
    assert (found.status, found.cost, len(found.changes)) == ("optimal", 0, 0)


def test_contradictory_ranges_are_infeasible(ask: Callable[..., Answer], write: Callable[[str, str], Path]) -> None:
    path = write("p.toml", "[features.income]\npermitted_range = [1e9, 2e9]")
    assert ask("--rows", "0", "--problem", path).code == 3
    path = write("reversed.toml", "[features.income]\npermitted_range = [60, 50]")
    answer = ask("--rows", "0", "--problem", path)
    assert answer.code == 2
    assert "'income' must be (lowest, highest), and [60, 50] is the other way round" in answer.err


def test_the_solver_log_goes_to_stderr(files: Path) -> None:
    command = [sys.executable, "-m", "ocf", "solve", files / "forest.skops", files / "data.csv"]
    command += ["--rows", "0", "--no-reduce", "--log", "--solver", "highs"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "HiGHS" in done.stderr
    assert done.stdout.startswith("row 0")
    assert "Running" not in done.stdout


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm"])
def test_models_of_other_libraries(kind: str, files: Path, tmp_path: Path) -> None:
    library = pytest.importorskip(kind)
    table = pd.read_csv(files / "data.csv")
    wanted = (table["income"] > 50).astype(int)
    if kind == "xgboost":
        path = tmp_path / "model.json"
        library.XGBClassifier(n_estimators=3, max_depth=2).fit(table, wanted).save_model(path)
    else:
        path = tmp_path / "model.txt"
        library.LGBMClassifier(n_estimators=3, max_depth=2, verbose=-1).fit(table, wanted).booster_.save_model(path)
    answer = Answer("solve", path, files / "data.csv", "--rows", "0:2")
    assert answer.code == 0, answer.err
    assert "3" in Answer("inspect", path).out


def test_completions_of_missing_values_come_from_a_table(
    tmp_path: Path, write: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 9, (120, 3)).astype(float), columns=["a", "b", "c"])
    wanted = (table["a"] + table["b"] > 9).astype(int)
    table = table.mask(rng.random(table.shape) < 0.2)
    model = library.XGBClassifier(n_estimators=4, max_depth=3).fit(table, wanted)
    model.save_model(tmp_path / "model.json")
    table.to_csv(tmp_path / "data.csv", index=False)
    first, second = (int(np.flatnonzero(table[own].isna() & (table.isna().sum(axis=1) == 1))[0]) for own in "ab")
    draws = {first: pd.DataFrame({"a": [3.0, 6.0, 7.0]}), second: pd.DataFrame({"b": [3.0, 6.0, 8.0]})}
    both = pd.concat([own.assign(row=row) for row, own in draws.items()])
    both.to_csv(tmp_path / "draws.csv", index=False)
    asked = ("solve", tmp_path / "model.json", tmp_path / "data.csv", "--target", "1", "--rows", f"{first},{second}")
    out = tmp_path / "out.json"
    explainer = Explainer(model, table)
    for share, flags in [
        (1.0, ("--imputations", tmp_path / "draws.csv")),
        (0.6, ("--imputations", tmp_path / "draws.csv", "--share", "0.6")),
        (0.6, ("--problem", write("p.toml", '[solve]\nimputations = "draws.csv"\nshare = 0.6\n'))),
    ]:
        answer = Answer(*asked, *flags, "-o", out)
        assert answer.code == 0, answer.err
        meant = explainer.explain(table.loc[[first, second]], 1, imputations=draws, share=share)
        assert [e.cost for e in Explanations.from_json(out)] == [e.cost for e in meant]
        check = Answer("verify", out, "--model", tmp_path / "model.json")
        assert (check.code, check.out) == (0, "2 rows checked: 2 hold, 0 do not\n")
    # of two files of that name the one beside the problem file is meant, wherever the command runs
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    draws[first].to_csv("draws.csv", index=False)
    assert Answer(*asked, "--problem", tmp_path / "p.toml", "-o", out).code == 0
    refused("export", *asked[1:3], "--problem", tmp_path / "p.toml", "-o", tmp_path / "p.json", words=["[solve] imput"])
    draws[first].to_csv(tmp_path / "one.csv", index=False)
    assert Answer(*asked[:-1], str(first), "--imputations", tmp_path / "one.csv").code == 0
    answer = Answer(*asked, "--imputations", tmp_path / "one.csv", "-o", out)
    assert answer.code == 1
    assert "2 rows: 1 optimal, 1 error; 1 verified" in answer.err
    assert f"row {second}: " in answer.err
    assert "lacks" in Explanations.from_json(out)[1].message
    both.assign(row=0.5).to_csv(tmp_path / "bad.csv", index=False)
    refused(*asked, "--imputations", tmp_path / "bad.csv", words=["'row'", "whole numbers"])
    refused(*asked, "--share", "0.5", words=["share", "imputations"])


def test_missing_values_and_codes_of_a_problem_file(tmp_path: Path, write: Callable[[str, str], Path]) -> None:
    library = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 9, (120, 3)).astype(float), columns=["a", "b", "c"])
    wanted = (table["a"] + table["b"] > 9).astype(int)
    table = table.mask(rng.random(table.shape) < 0.2).mask(rng.random(table.shape) < 0.15, -9.0)
    model = library.XGBClassifier(n_estimators=4, max_depth=3).fit(table, wanted)
    model.save_model(tmp_path / "model.json")
    table.to_csv(tmp_path / "data.csv", index=False)
    lacks = table.isna() | (table == -9)
    lacking = np.flatnonzero(lacks["a"] & ~lacks["b"] & (model.predict(table) == 0))[:3]
    path = write("p.toml", "[missing]\ncost_of_supplying = { a = 0.05 }\nspecial_values = [-9]\n")
    out = tmp_path / "out.json"
    rows = ",".join(map(str, lacking))
    answer = Answer(
        "solve", tmp_path / "model.json", tmp_path / "data.csv", "--rows", rows, "--target", "1", "--problem", path,
        "-o", out,
    )  # fmt: skip
    assert answer.code == 0, answer.err
    found = Explanations.from_json(out)
    explainer = Explainer(model, table, special_values=[-9], missing={"cost_of_supplying": {"a": 0.05}})
    assert [e.cost for e in found] == [e.cost for e in explainer.explain(table.iloc[lacking], 1)]
    assert any(e.cost == 0.05 and e.changes["feature"].tolist() == ["a"] for e in found)
    assert all(f["lower"] == 0.0 for f in found[0].to_dict()["features"]["features"])
    check = Answer("verify", out, "--model", tmp_path / "model.json")
    assert (check.code, check.out) == (0, "3 rows checked: 3 hold, 0 do not\n")
    for text, word in [("cost_of_supplying = -1", "at least 0"), ("special_values = ['a']", "list of numbers")]:
        bad = write("bad.toml", f"[missing]\n{text}\n")
        refused("solve", tmp_path / "model.json", tmp_path / "data.csv", "--problem", bad, words=["[missing]", word])


def test_the_gravest_exit_code_wins() -> None:
    row = pd.DataFrame({"age": [1]})

    def code(*kinds: str) -> int:
        rows = []
        for kind in kinds:
            status, _, note = kind.partition(" ")
            point = row if status in ("optimal", "feasible") else None
            rows.append(Explanation(0, status, row, point, verified=point is not None and note != "false"))
        return int(exit_code(Explanations(rows)))

    assert code() == code("optimal") == 0
    assert code("error") == 1
    assert code("optimal", "infeasible") == 3
    assert code("infeasible", "feasible") == 4
    assert code("feasible", "unknown") == 5
    assert code("unknown", "error") == 1
    assert code("error", "optimal false") == 6
    assert code("optimal false", "interrupted") == 130


def test_one_failing_row_does_not_lose_the_others(ask: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    pose, calls = TreeAsking.pose, iter(range(9))

    def sometimes(self: TreeAsking, *args: Any) -> Problem:
        if next(calls) == 1:
            raise ZeroDivisionError("oh")
        return pose(self, *args)

    monkeypatch.setattr(TreeAsking, "pose", sometimes)
    answer = ask("--rows", "0:3")
    assert answer.code == 1
    assert "3 rows: 2 optimal, 1 error; 2 verified" in answer.err
    assert "Traceback" not in answer.err


def test_errors_are_told_where_answers_go_to_a_file(
    ask: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = iter(range(9))

    def never(self: TreeAsking, *args: Any) -> Problem:
        raise ValueError(f"no {next(calls) // 2}")

    monkeypatch.setattr(TreeAsking, "pose", never)
    answer = ask("--rows", "0:9", "-o", tmp_path / "out.json")
    said = [line for line in answer.err.splitlines() if "no " in line]
    assert [line.partition(":")[0] for line in said] == ["row 0", "row 2", "row 4"]
    assert "and 2 other errors\n9 rows: 9 error; 0 verified" in answer.err


INTERRUPTED = """
import sys, time
from ocf.cli import main
from ocf.explain.tree_asking import TreeAsking

pose, count = TreeAsking.pose, 0

def slow(self, row, task):
    global count
    count += 1
    if count == 3:
        print("third row", file=sys.stderr, flush=True)
        try:
            time.sleep(10_000)
        except KeyboardInterrupt as error:  # as Numba words it where a kernel was at work
            raise SystemError("returned a result with an exception set") from error
    return pose(self, row, task)

TreeAsking.pose = slow
main()
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_finished_is_kept_and_gone_on_from(
    ask: Callable[..., Answer], files: Path, tmp_path: Path, number: signal.Signals
) -> None:
    out, kept = tmp_path / "out.json", tmp_path / "rows.jsonl"
    command = [sys.executable, "-c", INTERRUPTED, "solve", files / "forest.skops", files / "data.csv"]
    with subprocess.Popen(
        [*command, "--rows", "0:5", "-o", out, "--checkpoint", kept],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        while "third row" not in (line := process.stderr.readline()):
            assert line, "the batch ended before its third row"
        process.send_signal(number)
        _, err = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert f"kept in {kept}" in err
    found = Explanations.from_json(out)
    done = [e.status for e in found].index("interrupted")
    assert [e.status for e in found] == ["optimal"] * done + ["interrupted"] * (5 - done)
    assert len(kept.read_text().splitlines()) == 1 + done
    assert ask("--rows", "0:5", "-o", out, "--checkpoint", kept).code == 0
    again = Explanations.from_json(out)
    assert [e.status for e in again] == ["optimal"] * 5
    assert again[:done] == found[:done]
    refused(
        "solve",
        *(files / "forest.skops", files / "data.csv", "--rows", "0:4", "--checkpoint", kept),
        words=["different in the rows"],
    )


def test_results_survive_a_disk_that_fails(
    ask: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    answer = ask("--rows", "0", "-o", tmp_path / "out.json")
    assert answer.code == 2
    assert "No space left" in answer.err
    assert Explanations.from_json(answer.out)[0].status == "optimal"


@pytest.mark.parametrize("suffix", ["json", "mps"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_no_bug_of_export(files: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"out.{suffix}"
    out.symlink_to("/dev/full")
    answer = Answer("export", files / "forest.skops", files / "data.csv", "-o", out)
    assert answer.code == 2
    assert ("No space left" if suffix == "json" else "room on the disk") in answer.err
    assert (suffix == "json") == (answer.out != "")


@pytest.mark.parametrize("formulation", ["auto", "interval", "ocean"])
def test_export_writes_a_model_with_the_same_optimum(
    ask: Callable[..., Answer], files: Path, tmp_path: Path, formulation: str
) -> None:
    import highspy

    ask("--rows", "8", "-o", tmp_path / "out.json")
    (found,) = Explanations.from_json(tmp_path / "out.json")
    args = ("export", files / "forest.skops", files / "data.csv", "--row", "8", "--formulation", formulation)
    for name, flags in (("a.mps", []), ("b.lp", []), ("c.mps", ["--reduced"])):
        answer = Answer(*args, "-o", tmp_path / name, *flags)
        assert (answer.code, answer.out) == (0, "")
        highs = highspy.Highs()
        highs.silent()
        highs.readModel(str(tmp_path / name))
        highs.run()
        # HiGHS reports 0 for a model without columns, which is what reduction may leave; the constant is its optimum
        empty = highs.getNumCol() == 0
        assert ("decides everything" in answer.err) == empty
        optimum = highs.getObjectiveOffset()[1] if empty else highs.getInfo().objective_function_value
        assert optimum == pytest.approx(found.cost, rel=1e-6)
    assert "single_leaf" in (tmp_path / "a.mps").read_text() or formulation == "ocean"


def test_export_says_that_ties_are_the_models_own_affair(tmp_path: Path) -> None:
    import highspy

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 7, (60, 2)), columns=["a", "b"])
    granted = table.sum(axis=1) + 2 * rng.normal(size=60) > 6
    voting = RandomForestClassifier(4, min_samples_leaf=3, random_state=0).fit(table, granted)
    # every tree gives half of its rows, or a third of them: sums that round
    grid = pd.DataFrame(itertools.product(range(7), range(7)), columns=["a", "b"])
    row = table[~voting.predict(table)].iloc[[0]]
    least = (np.abs(grid - row.iloc[0]) / 6).sum(axis=1)[voting.predict(grid)].min()
    joblib.dump(voting, tmp_path / "m.joblib")
    row.to_csv(tmp_path / "row.csv", index=False)
    table.to_csv(tmp_path / "table.csv", index=False)
    asked = (tmp_path / "m.joblib", tmp_path / "row.csv", "--trust-pickle", "--reference", tmp_path / "table.csv")
    answer = Answer("export", *asked, "--target", "True", "-o", tmp_path / "m.mps")
    assert (answer.code, answer.out) == (0, "")
    assert "the model may refuse them" in answer.err
    highs = highspy.Highs()
    highs.silent()
    highs.readModel(str(tmp_path / "m.mps"))
    highs.run()
    assert highs.getInfo().objective_function_value <= least + 1e-9
    whole = RandomForestClassifier(4, random_state=0).fit(grid, grid["a"] + grid["b"] > 6)
    joblib.dump(whole, tmp_path / "m.joblib")
    assert "the model may refuse" not in Answer("export", *asked, "--target", "True", "-o", tmp_path / "w.mps").err


def test_a_table_with_the_names_that_lightgbm_was_fitted_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"b b": rng.integers(0, 9, 80), "c": rng.random(80)})
    model = LGBMClassifier(n_estimators=5, verbose=-1, min_child_samples=5).fit(table, table["b b"] > 4)
    joblib.dump(model, tmp_path / "m.joblib")
    model.booster_.save_model(tmp_path / "m.txt")
    table.to_csv(tmp_path / "table.csv", index=False)
    for name in ("m.joblib", "m.txt"):
        answer = Answer("solve", tmp_path / name, tmp_path / "table.csv", "--trust-pickle", "--rows", "0")
        assert answer.code == 0, answer.err
        assert "b b" in answer.out
    table.rename(columns={"c": "d"}).to_csv(tmp_path / "table.csv", index=False)
    refused("solve", tmp_path / "m.txt", tmp_path / "table.csv", words=["misses", "c; columns", "does not take: d"])


def test_export_of_the_question_itself(files: Path, tmp_path: Path) -> None:
    args = ("export", files / "forest.skops", files / "data.csv", "--row", "-1", "-o", tmp_path / "p.json")
    assert Answer(*args, "--norm", "l2", "--target", "1").code == 0
    problem = Problem.from_json((tmp_path / "p.json").read_text())
    assert (problem.cost.l2, problem.target.index) == (1, 1)


def test_export_refuses(files: Path, tmp_path: Path, write: Callable[[str, str], Path]) -> None:
    args = ("export", files / "forest.skops", files / "data.csv")
    refused(*args, "-o", tmp_path / "p.txt", words=[".mps, .lp, .json"])
    refused(*args, "-o", tmp_path / "p.mps", "--row", "500", words=["--row: there is no row 500"])
    path = write("p.toml", "[features.income]\npermitted_range = [1e9, 2e9]")
    refused(*args, "-o", tmp_path / "p.mps", "--problem", path, words=["infeasible"])


def test_what_is_prepared_is_kept_between_runs(
    files: Path, tmp_path: Path, write: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, data = tmp_path / "kept.ocf", files / "data.csv"
    asked = ("solve", files / "forest.skops", data, "--rows", "0:2", "--prepared", kept)
    refused(*asked, words=["--trust-pickle"])
    assert not kept.exists()
    first = Answer(*asked, "--trust-pickle")
    monkeypatch.setattr("ocf.models.rehearsal.rehearse", None)  # no model file is opened any more
    second = Answer(*asked, "--trust-pickle")
    assert second.out == first.out, second.err
    other = write("p.toml", '[features.income]\nactionability = "fixed"')
    again = ("solve", files / "forest.skops", data, "--prepared", kept, "--trust-pickle")
    refused(*again, "--problem", other, words=["another description of the features", "delete"])
    refused("solve", files / "three.skops", *again[2:], words=["another model:"])
    refused("solve", files / "forest.skops", files / "data.csv.gz", *again[3:], words=["training data"])
    asked_again = ("solve", files / "forest.skops", files / "data.csv.gz", *again[3:], "--rows", "0:2")
    assert Answer(*asked_again, "--reference", data).out == first.out
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])
    refused(*asked, "--trust-pickle", words=["damaged"])
    kept.write_bytes(b"nothing")
    refused(*asked, "--trust-pickle", words=["no prepared model"])


def test_the_largest_box_is_part_of_the_answer(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    answer = Answer("solve", files / "forest.skops", files / "data.csv", "--rows", "0:4", "--box", "-o", out)
    assert answer.code == 0
    found = Explanations.from_json(out)
    assert all(e.box is not None and e.box["proven"] for e in found)
    assert Answer("verify", out, "--model", files / "forest.skops").code == 0


def test_too_little_memory_is_said(files: Path) -> None:
    refused("solve", files / "forest.skops", files / "data.csv", "--memory-limit", "much", words=["4 GB"])
    answer = Answer("solve", files / "forest.skops", files / "data.csv", "--rows", "0", "--memory-limit", "1 GiB")
    assert answer.code == 0


def test_solve_answers_the_rows_beside_faulty_ones(files: Path, changed: Callable[..., Path], tmp_path: Path) -> None:
    data = changed(lambda t: t.astype(object).assign(age=[*t["age"][:2], "old", np.inf, *t["age"][4:]]))
    asked = (
        files / "forest.skops",
        data,
        "--reference",
        files / "data.csv",
        "--rows",
        "0:5",
        "-o",
        tmp_path / "o.json",
    )
    answer = Answer("solve", *asked, "--checkpoint", tmp_path / "rows.jsonl")
    assert answer.code == 1
    assert "5 rows: 3 optimal, 2 error; 3 verified" in answer.err
    assert "infinite value; replace it" in answer.err
    found = Explanations.from_json(tmp_path / "o.json")
    assert [e.row for e in found if e.status == "error"] == [2, 3]
    assert re.search("['\"]old['\"]", found[2].message)
    assert "infinite value; replace it" in found[3].message
    check = Answer("verify", tmp_path / "o.json", "--model", files / "forest.skops")
    assert "3 hold" in check.out
    assert "2 error" in check.out
    refused_as_a_whole = Answer("solve", *asked[:-3], "2:4")
    assert (refused_as_a_whole.code, "Traceback" in refused_as_a_whole.err) == (2, False)
    assert "'age' should hold numbers" in refused_as_a_whole.err

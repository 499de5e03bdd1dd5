"""The command line: every command, every exit code, and bad input."""

from __future__ import annotations

import json
import os
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
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from typer.testing import CliRunner

import ocf
from ocf.cli import app
from ocf.cli.solve import exit_code
from ocf.cli.tables import check_output, parse_norm, parse_options, parse_rows, parse_wish
from ocf.errors import DataError, ProblemError
from ocf.explain.explainer import Explainer
from ocf.explain.explanation import Explanation, Explanations
from ocf.problem.problem import Problem

skops_io = pytest.importorskip("skops.io")

COMMANDS = ("solve", "verify", "inspect", "init-problem", "export", "solvers")


class Answer:
    """Exit code and text of one run of ``ocf``."""

    def __init__(self, *args: object) -> None:
        result = CliRunner().invoke(app, [str(a) for a in args])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.code, self.out, self.err = result.exit_code, result.stdout, result.stderr


def refused(*args: object, words: list[str]) -> None:
    """Check that a run is refused with one clear message."""
    answer = Answer(*args)
    assert answer.code == 2, answer.err
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert answer.err.startswith("Error: ")
    assert answer.err.count("\n") == 1
    for word in words:
        assert word in answer.err


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with a small model in several formats, and its data."""
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 120),
            "income": rng.normal(50, 10, 120).round(2),
            "owner": rng.integers(0, 2, 120),
        }
    )
    wanted = ((table["age"] > 40) & (table["income"] > 48) | (table["owner"] == 1) & (table["income"] > 55)).astype(int)
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(table, wanted)
    skops_io.dump(forest, folder / "forest.skops")
    joblib.dump(forest, folder / "forest.joblib")
    joblib.dump(RandomForestClassifier(), folder / "unfitted.joblib")
    nameless = RandomForestClassifier(3, max_depth=2, random_state=0).fit(table.to_numpy(), wanted)
    skops_io.dump(nameless, folder / "nameless.skops")
    skops_io.dump(RandomForestRegressor(3, max_depth=2).fit(table, wanted), folder / "regressor.skops")
    skops_io.dump(
        RandomForestClassifier(3, max_depth=2, random_state=0).fit(
            table, np.array(["a", "b", "c"])[wanted + table.owner]
        ),
        folder / "three.skops",
    )
    table.to_csv(folder / "data.csv", index=False)
    table.to_csv(folder / "data.csv.gz", index=False)
    table.assign(**{"the label": wanted}).to_csv(folder / "labelled.csv", index=False)
    (folder / "classes.json").write_text(json.dumps(forest.predict(table).tolist()))
    return folder


@pytest.fixture
def ask(files: Path) -> Callable[..., Answer]:
    """``ocf solve`` on the forest and its data."""
    return lambda *args: Answer("solve", files / "forest.skops", files / "data.csv", *args)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    def make(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return make


@pytest.fixture
def changed(files: Path, tmp_path: Path) -> Callable[..., Path]:
    """The data after a change, as a CSV."""

    def make(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Path:
        change(pd.read_csv(files / "data.csv")).to_csv(tmp_path / "changed.csv", index=False)
        return tmp_path / "changed.csv"

    return make


# -- help and version


def test_version() -> None:
    answer = Answer("--version")
    assert (answer.code, answer.out) == (0, f"ocf {ocf.__version__}\n")


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_fits_80_columns(command: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    answer = Answer(*([command] if command else []), "--help")
    assert answer.code == 0
    assert max(map(len, answer.out.splitlines())) <= 80


def test_help_documents_the_exit_codes() -> None:
    text = Answer("solve", "--help").out
    for code in ("0", "1", "2", "3", "4", "5", "6", "130"):
        assert any(line.split()[:1] == [code] for line in text.splitlines())


def test_the_module_runs_and_starts_without_the_heavy_libraries() -> None:
    code = (
        "import sys; sys.argv = ['ocf', '--help']\n"
        "import runpy\n"
        "try: runpy.run_module('ocf', run_name='__main__')\n"
        "except SystemExit as e: print(e.code)\n"
        "print(sorted({'numpy', 'pandas', 'pyomo', 'sklearn', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["0", "[]"]


def test_no_command_shows_the_help_and_an_unknown_one_an_error() -> None:
    assert "init-problem" in Answer().out + Answer().err
    answer = Answer("solv")
    assert answer.code == 2
    assert "solve" in answer.err


# -- solve


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


def test_verify_refuses_other_files(files: Path, tmp_path: Path) -> None:
    model = files / "forest.skops"
    refused("verify", tmp_path / "none.json", "-m", model, words=["none.json"])
    refused("verify", files / "data.csv", "-m", model, words=["data.csv", "JSON"])
    refused("verify", files / "classes.json", "-m", model, words=["classes.json", "schema"])


def test_solve_writes_csv_and_html(ask: Callable[..., Answer], tmp_path: Path) -> None:
    assert ask("--rows", "0:2", "-o", tmp_path / "out.csv").code == 0
    table = pd.read_csv(tmp_path / "out.csv", index_col="row")
    assert list(table["status"]) == ["optimal", "optimal"]
    assert {"age", "income", "owner", "cost"} <= set(table.columns)
    assert ask("--rows", "0", "-o", tmp_path / "out.html").code == 0
    assert "<html" in (tmp_path / "out.html").read_text()


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


def test_a_row_that_has_the_target_already_costs_nothing(
    ask: Callable[..., Answer], files: Path, tmp_path: Path
) -> None:
    has = json.loads((files / "classes.json").read_text()).index(1)
    assert ask("--rows", has, "--target", 1, "-o", tmp_path / "out.json").code == 0
    (found,) = Explanations.from_json(tmp_path / "out.json")
    assert (found.status, found.cost, len(found.changes)) == ("optimal", 0, 0)


def test_contradictory_ranges_are_infeasible(ask: Callable[..., Answer], write: Callable[[str, str], Path]) -> None:
    path = write("p.toml", "[features.income]\npermitted_range = [60, 50]")
    assert ask("--rows", "0", "--problem", path).code == 3


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


# -- exit codes


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


def test_internal_errors_are_short_unless_asked(ask: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(Explainer, "explain", broken)
    answer = ask()
    assert answer.code == 1
    assert "internal error: ZeroDivisionError: oh" in answer.err
    assert "--debug" in answer.err
    assert "Traceback" not in answer.err
    monkeypatch.setenv("OCF_DEBUG", "1")
    assert "Traceback" in ask().err


def test_one_failing_row_does_not_lose_the_others(ask: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    pose, calls = Explainer.pose, iter(range(9))

    def sometimes(self: Explainer, *args: Any) -> Problem:
        if next(calls) == 1:
            raise ZeroDivisionError("oh")
        return pose(self, *args)

    monkeypatch.setattr(Explainer, "pose", sometimes)
    answer = ask("--rows", "0:3")
    assert answer.code == 1
    assert "3 rows: 2 optimal, 1 error; 2 verified" in answer.err
    assert "Traceback" not in answer.err


INTERRUPTED = """
import sys, time
from ocf.cli import main
from ocf.explain.explainer import Explainer

explain_row, count = Explainer.explain_row, 0

def slow(self, row, task):
    global count
    count += 1
    if count == 3:
        print("third row", file=sys.stderr, flush=True)
        time.sleep(10_000)
    return explain_row(self, row, task)

Explainer.explain_row = slow
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_keeps_finished_rows(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [sys.executable, "-c", INTERRUPTED, "solve", files / "forest.skops", files / "data.csv"]
    with subprocess.Popen(
        [*command, "--rows", "0:5", "-o", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        while "third row" not in (line := process.stderr.readline()):
            assert line, "the batch ended before its third row"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert [e.status for e in Explanations.from_json(out)] == ["optimal"] * 2 + ["interrupted"] * 3


# -- bad input


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
    refused("solve", three, data, "--at-least", "0.7", words=["a, b, c"])
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
    refused("solve", tmp_path / "gb.skops", path, words=["income", "missing"])


def test_unknown_category(files: Path, changed: Callable[..., Path], write: Callable[[str, str], Path]) -> None:
    rows = changed(lambda t: t.assign(owner=2))
    args = ("solve", files / "forest.skops", rows, "--reference", files / "data.csv")
    refused(*args, words=["'owner'", "unknown level", "0, 1"])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("table.csv", b"", ["cannot be read"]),
        ("table.csv", bytes(range(256)), ["cannot be read"]),
        ("table.csv.gz", b"\x1f\x8b\x08", ["cannot be read"]),
        ("table.parquet", b"PAR1", ["table.parquet"]),
        ("table.xls", b"x", [".csv", ".parquet"]),
    ],
)
def test_damaged_tables(files: Path, tmp_path: Path, name: str, content: bytes, words: list[str]) -> None:
    (tmp_path / name).write_bytes(content)
    refused("solve", files / "forest.skops", tmp_path / name, words=[name, *words])


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


def _dies(path: Path) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _aborts(path: Path) -> None:
    os.abort()


def _never_ends(path: Path) -> None:
    while True:
        pass


def _takes_all_memory(path: Path) -> None:
    held = []
    while True:
        held.append(np.empty(10**7))


_FAULTS: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "dies": (_dies, ["crashes the library", "signal 11, SIGSEGV"]),
    "aborts": (_aborts, ["crashes the library", "SIGABRT"]),
    "never ends": (_never_ends, ["not opened within 1 s of the processor"]),
    "takes all memory": (_takes_all_memory, ["takes more memory"]),
}
_OPENING = (
    "solve MODEL DATA",
    "solve GOOD DATA --plausibility forest=MODEL",
    "export MODEL DATA --row 8 --output OUT",
    "regions MODEL DATA --radius 1",
    "init-problem MODEL DATA",
    "verify RESULTS --model MODEL",
    "verify RESULTS --model GOOD --forest MODEL",
    "rules MODEL DATA",
    "compress MODEL DATA",
)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the child is a new interpreter, which knows no patch")
@pytest.mark.parametrize(
    ("fault", "command"), [*((fault, "inspect MODEL") for fault in _FAULTS), *(("dies", how) for how in _OPENING)]
)
def test_model_file_that_crashes_its_library(
    fault: str, command: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ocf.readers import skops_format

    good, path = files / "forest.skops", tmp_path / "hostile.skops"
    path.write_bytes(good.read_bytes())
    happens, words = _FAULTS[fault]
    here = os.getpid()

    def read(given: Path) -> Any:
        if given != path:
            return whole(given)
        assert os.getpid() != here, "the file was opened outside the child"
        return happens(given)

    whole = skops_format.read_skops
    monkeypatch.setattr(skops_format, "read_skops", read)
    monkeypatch.setattr("ocf.models.rehearsal.CPU_SECONDS", 1)
    monkeypatch.setattr("ocf.models.rehearsal.MEMORY_SHARE", 0.05)
    known: dict[str, object] = {
        "MODEL": path,
        "GOOD": good,
        "DATA": files / "data.csv",
        "RESULTS": files / "classes.json",
    }
    known |= {"OUT": tmp_path / "out.mps", "forest=MODEL": f"forest={path}"}
    refused(*(known.get(word, word) for word in command.split()), words=["hostile.skops", *words])


def test_file_that_waits_for_ever(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocf.readers.skops_format.read_skops", lambda path: signal.pause())
    monkeypatch.setattr("ocf.models.rehearsal.CPU_SECONDS", 1)
    monkeypatch.setattr("ocf.models.rehearsal.WALL_PER_CPU", 1)
    refused("inspect", files / "forest.skops", words=["forest.skops", "not opened within 1 s"])


def test_fork_after_openmp_threads_have_run(tmp_path: Path) -> None:
    """A fork has none of its parent's threads: one that waited for them would meet the limit of the clock."""
    rng = np.random.default_rng(0)
    model = HistGradientBoostingClassifier(max_iter=2).fit(rows := rng.normal(size=(3000, 3)), rows[:, 0] > 0)
    skops_io.dump(model, tmp_path / "model.skops")
    script = (
        "import sys; from pathlib import Path; from ocf.readers.files import load_model\n"
        "from ocf.models import rehearsal; import numpy as np\n"
        "rehearsal.CPU_SECONDS = 60; path = Path(sys.argv[1])\n"
        "load_model(path).predict(np.zeros((5000, 3))); rehearsal.rehearse(path)\n"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", script, tmp_path / "model.skops"], check=True, env=environment)


def test_output_is_checked_before_anything_else(
    ask: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Explainer, "__init__", lambda *_, **__: pytest.fail("the model was read first"))
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.json").mkdir()
    for path, word in (
        (tmp_path / "none" / "out.json", "no directory"),
        (tmp_path / "file" / "out.json", "no directory"),
        (tmp_path / "folder.json", "is a directory"),
    ):
        answer = ask("-o", path)
        assert answer.code == 2
        assert word in answer.err
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.W_OK)
    assert "no permission" in ask("-o", tmp_path / "out.json").err


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


# -- the other commands


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


@pytest.mark.parametrize("formulation", ["interval", "ocean"])
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


def test_export_of_the_question_itself(files: Path, tmp_path: Path) -> None:
    args = ("export", files / "forest.skops", files / "data.csv", "--row", "-1", "-o", tmp_path / "p.json")
    assert Answer(*args, "--norm", "l2", "--target", "1").code == 0
    problem = Problem.from_json((tmp_path / "p.json").read_text())
    assert (problem.cost.l2, problem.target.index) == (1, 1)


def test_export_refuses(files: Path, tmp_path: Path, write: Callable[[str, str], Path]) -> None:
    args = ("export", files / "forest.skops", files / "data.csv")
    refused(*args, "-o", tmp_path / "p.txt", words=[".mps, .lp, .json"])
    refused(*args, "-o", tmp_path / "p.mps", "--row", "500", words=["no row 500"])
    path = write("p.toml", "[features.income]\npermitted_range = [60, 50]")
    refused(*args, "-o", tmp_path / "p.mps", "--problem", path, words=["infeasible"])


def test_solvers_lists_what_there_is() -> None:
    text = Answer("solvers").out
    for name in ("interval", "ocean", "highs", "scip"):
        assert name in text


# -- the small parsers


def test_plausibility_by_flag_and_by_problem_file(
    ask: Callable[..., Answer], files: Path, write: Callable[[str, str], Path], tmp_path: Path
) -> None:
    table = pd.read_csv(files / "data.csv").drop(columns="wanted", errors="ignore")
    forest = IsolationForest(n_estimators=5, max_samples=16, random_state=0).fit(table)
    skops_io.dump(forest, tmp_path / "isolation.skops")
    answers = []
    for args in (
        ("--plausibility", f"forest={tmp_path / 'isolation.skops'},quantile=0.2"),
        ("--problem", write("problem.toml", '[plausibility]\nforest = "isolation.skops"\nquantile = 0.2\n')),
    ):
        answer = ask(*args)
        assert answer.code == 0, answer.err
        assert "in 5 isolation trees, wanted at least" in answer.out
        answers.append(answer.out)
    assert answers[0] == answers[1]
    out = tmp_path / "out.json"
    assert ask("--plausibility", f"forest={tmp_path / 'isolation.skops'}", "-o", out).code == 0
    verify = ("verify", out, "--model", files / "forest.skops", "--forest")
    assert Answer(*verify, tmp_path / "isolation.skops").code == 0
    skops_io.dump(IsolationForest(n_estimators=5, max_samples=16, random_state=1).fit(table), tmp_path / "other.skops")
    assert "average depth" in Answer(*verify, tmp_path / "other.skops").out
    refused(*verify, files / "forest.skops", words=["isolation forest of scikit-learn or isotree"])
    assert "isolation trees" in ask("--problem", write("problem.toml", "[plausibility]\n")).out


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("3", [3]),
        ("-1", [9]),
        ("0:3", [0, 1, 2]),
        (":", list(range(10))),
        ("8:", [8, 9]),
        ("::4", [0, 4, 8]),
        ("-2:", [8, 9]),
        ("2:99", list(range(2, 10))),
        ("1, 4,7", [1, 4, 7]),
        ("7,1,0:2,7", [7, 1, 0]),
    ],
)
def test_parse_rows(text: str, rows: list[int]) -> None:
    assert parse_rows(text, 10) == rows


@pytest.mark.parametrize("text", ["", ",", "a", "1.5", "1:2:3:4", "::0", "10", "-11", "5:5", "1,,2"])
def test_parse_rows_refuses(text: str) -> None:
    with pytest.raises(DataError, match="--rows"):
        parse_rows(text, 10)


def test_parse_norm() -> None:
    assert parse_norm("l1") == "l1"
    assert parse_norm("l0=0.1, l1=1") == {"l0": 0.1, "l1": 1.0}


def test_parse_wish() -> None:
    assert parse_wish("on") is True
    assert parse_wish("off") is False
    assert parse_wish("quantile=0.05, trees=50,required=false,forest=a.skops") == {
        "quantile": 0.05, "trees": 50, "required": False, "forest": "a.skops"
    }  # fmt: skip
    for text in ("quantile", "", "=3"):
        with pytest.raises(ProblemError, match="not understood"):
            parse_wish(text)


def test_parse_options() -> None:
    expected = {"a": 1, "b": 0.5, "c": True, "d": "x=y", "limits/e": -1}
    assert parse_options(["a=1", "b=0.5", "c=True", "d=x=y", "limits/e = -1"]) == expected
    with pytest.raises(ProblemError, match="KEY=VALUE"):
        parse_options(["=1"])


def test_check_output_accepts_new_and_old_files(tmp_path: Path) -> None:
    check_output(tmp_path / "new.JSON", (".json",))
    (tmp_path / "old.json").write_text("")
    check_output(tmp_path / "old.json", (".json",))

"""Across files: ``ocf compare`` from the command line, on the suites and solvers of this room's tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import Answer
from sklearn.ensemble import RandomForestClassifier

from ocf.compare import Results, read

from .conftest import TINY
from .synthetic import line, standard, write


def ran(*args: object) -> tuple[int, str, str]:
    answer = Answer("compare", *args)
    return answer.code, answer.out, answer.err


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a user's model and table."""
    skops_io = pytest.importorskip("skops.io")
    folder = tmp_path_factory.mktemp("own")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=60), "b": rng.integers(0, 9, 60)})
    skops_io.dump(RandomForestClassifier(3, max_depth=2, random_state=0).fit(table, table.a > 0), folder / "m.skops")
    table.assign(y=1).to_csv(folder / "t.csv", index=False)
    return folder


def test_run_report_and_diff(cache: Path, tmp_path: Path) -> None:
    suite, folder = tmp_path / "tiny.toml", tmp_path / "results"
    suite.write_text(TINY)
    code, out, err = ran(suite, "-o", folder, "--rows", 1, "--no-progress")
    assert (code, err) == (0, "")
    assert "2 methods on 2 instances: 4 runs (4 ok), each with 2000 s and 2 GB." in out
    before = (folder / "report.html").read_text()
    (folder / "report.html").unlink()
    assert ran("report", folder)[0] == 0
    assert (folder / "report.html").read_text() == before  # down to the bootstrap
    stamp = (folder / "report.html").stat().st_mtime_ns
    code, out, err = ran(suite, "-o", folder, "--rows", 1, "--no-progress")
    assert (code, err) == (0, "")
    assert "nothing was left to run" in out
    assert "No disagreements" in out
    assert (folder / "report.html").stat().st_mtime_ns == stamp
    code, out, err = ran("diff", folder, folder)
    assert code == 0
    assert "| box | 2 | 2 | 2 | 2 | 1 [1, 1] | 1 [1, 1] |" in out
    code, out, err = ran(suite, "-o", folder, "--time-limit", 1999)
    assert code == 2
    assert "holds results of another suite" in err


def test_own_model(cache: Path, own: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    code, _, err = ran(
        "--model", own / "m.skops", "--data", own / "t.csv", "--drop", "y", "--rows", 1, "-o", folder, "--method", "box"
    )
    assert code == 0, err
    (run,) = read(folder).of("run")
    assert (run["data"], run["model"], run["ask"]) == ("t", "m.skops", "to opposite l1")
    assert run["status"] == "ok"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "give either a suite"),
        (("smoke", "--model", "m.skops"), "give either a suite"),
        (("smokey",), "there is no suite 'smokey' (did you mean 'smoke'?)"),
        (("smoke", "--method", "ocean/hihgs"), "the suite has no method 'ocean/hihgs' (did you mean 'ocean/highs'?)"),
        (("smoke", "--only", "adult"), "the suite has no data set 'adult'; known: breast_cancer, wine"),
        (("smoke", "--target", "1"), "--target goes with --model"),
        (("smoke", "--time-limit", "0"), "--time-limit 0 should be a positive number"),
        (("smoke", "--memory-limit", "lots"), "--memory-limit: memory = 'lots' should be an amount"),
        (("smoke", "--jobs", "0"), "jobs is a number of runs at the same time"),
        (("smoke", "--data", "/no/such"), "the data folder '/no/such' does not exist"),
        (("--model", "m.skops"), "--model needs --data"),
        (("--model", "no.skops", "--data", "t.csv"), "there is no model file no.skops"),
        (("report", "/no/such"), "there are no results in /no/such"),
        (("diff", "/no/such", "/no/such"), "there are no results in /no/such"),
    ],
)
def test_bad_input(args: tuple[str, ...], words: str, tmp_path: Path) -> None:
    options = () if args[:1] in (("report",), ("diff",)) else ("-o", str(tmp_path))
    code, out, err = ran(*(args or ("run",)), *options)
    assert code == 2
    assert out == ""
    assert words in err
    assert err.startswith("Error: ")
    assert "Traceback" not in err


def test_disagreements_exit_with_6(tmp_path: Path) -> None:
    lines = [line("box", 0, 1.0), line("ocean/highs", 0, 1.0, cost=1.5, bound=1.5)]
    folder = write(tmp_path / "made", lines, ["box", "ocean/highs"])
    code, _, err = ran("report", folder)
    assert code == 6
    assert "Error: 1 DISAGREEMENTS" in err
    assert "it claims that 1.5 is optimal" in err
    assert "DISAGREEMENTS" in (folder / "report.html").read_text()


def test_lies_exit_with_6(with_liar: Callable[[str], Results], tmp_path: Path) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text(
        'report = { bounds = false }\ninstances = [{ data = "breast_cancer", trees = 2, depth = 2, rows = 1 }]\n'
        '[[methods]]\nsolver = "box"\n[[methods]]\nsolver = "liar"\nreduce = false\noptions = { lie = "infeasible" }'
    )
    code, _, err = ran(suite, "-o", tmp_path / "out")
    assert code == 6
    assert "it claims that no admissible change exists" in err


def test_regressions_exit_with_7(tmp_path: Path) -> None:
    before = standard(tmp_path / "a")
    after = standard(tmp_path / "b", {"box": (1.5, 3.0, 6.0, 99.0)})
    code, out, _ = ran("diff", before, after)
    assert code == 7
    assert "Regressions: 5" in out
    assert "Remarks: 1" in out


def test_suites_and_help() -> None:
    code, out, _ = ran("suites")
    assert code == 0
    for name in (
        "smoke",
        "ocean-100x5",
        "scaling-trees",
        "scaling-depth",
        "scaling-leaves",
        "plausibility",
        "boosting",
        "bench",
    ):
        assert f"{name}: " in out
    for command in ((), ("run",), ("report",), ("diff",), ("suites",)):
        code, out, _ = ran(*command, "--help")
        assert code == 0
        assert "Usage" in out

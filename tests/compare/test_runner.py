"""Runs: what they record, what they may use, and that nothing ends the whole."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from ocf.compare import Results, Suite, parse_suite, read, run_suite
from ocf.compare.frame import compare
from ocf.compare.suite import part
from ocf.errors import DataError, ProblemError

INSTANCE = """
limits = { time = 3600, memory = "700 MB", grace = 0.2 }
report = { bounds = false }
instances = [{ data = "breast_cancer", trees = 15, depth = 4, rows = 1 }]
"""


def liars(*lies: str, reduce: bool = True) -> str:
    return "".join(
        f'[[methods]]\nsolver = "liar"\nreduce = {str(reduce).lower()}\noptions = {{ lie = "{lie}" }}\nname = "{lie}"\n'
        for lie in lies
    )


def test_results_hold_all_that_a_report_needs(tiny_folder: Path) -> None:
    results = read(tiny_folder)
    runs = results.of("run")
    assert len(runs) == 8  # two forests, two rows, two methods
    assert len(results.of("relaxation")) == 4
    for run in runs:
        assert (run["status"], run["answer"], run["checks"]) == ("ok", "optimal", [])
        assert run["found"]
        assert run["cost"] == pytest.approx(run["bound"], rel=1e-9)
        assert run["seconds"] == run["times"]["total"] > 0
        assert run["peak_memory"] > 50e6
        assert run["wall"] >= run["seconds"]
    machine = results.of("machine")[0]["facts"]
    assert {"CPU", "cores", "memory", "Python", "ocf", "highspy", "solver highs"} <= set(machine)
    assert {r["machine"] for r in runs} == {results.of("machine")[0]["id"]}
    assert results.of("session")[0]["command"] == "ocf compare tiny.toml"
    assert [c["facts"]["trees"] for c in results.of("case")] == [2, 4]


def test_bounds_are_below_the_optimum(tiny_folder: Path) -> None:
    c = compare(read(tiny_folder))
    bounds = c.relaxations.set_index("instance")["bound"]
    assert (bounds <= c.optimum.reindex(bounds.index) * (1 + 1e-6)).all()
    assert (c.relaxations[["rows", "columns", "nonzeros", "binaries"]] > 0).all(axis=None)


def test_finished_runs_are_not_run_again(
    tiny: Suite, tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (tiny_folder / "results.jsonl").read_bytes()
    (tmp_path / "results.jsonl").write_bytes(before)
    with monkeypatch.context() as patch:
        patch.setattr("ocf.compare.runner.borrowed", None)  # not even a model is trained
        assert len(run_suite(tiny, tmp_path).of("run")) == 8
    assert (tmp_path / "results.jsonl").read_bytes() == before
    again = run_suite(tiny, tmp_path, rows=1)  # which these are is found out anew
    assert len(again.of("run")) == 8
    assert len(again.of("session")) == 2


def test_lines_of_a_cut_file_are_run_again(tiny: Suite, tiny_folder: Path, tmp_path: Path) -> None:
    lines = (tiny_folder / "results.jsonl").read_bytes().splitlines(keepends=True)
    assert json.loads(lines[-1])["kind"] == "finished"
    (tmp_path / "results.jsonl").write_bytes(b"".join(lines[:-2]) + lines[-2][:40])
    assert len(read(tmp_path).of("run")) == 7
    whole = run_suite(tiny, tmp_path)
    assert len({r["key"] for r in whole.of("run")}) == len(whole.of("run")) == 8


def test_a_run_that_is_missing_is_run_though_the_suite_was_finished(
    tiny: Suite, tiny_folder: Path, tmp_path: Path
) -> None:
    lines = (tiny_folder / "results.jsonl").read_bytes().splitlines(keepends=True)
    place = next(k for k, text in enumerate(lines) if json.loads(text)["kind"] == "run")
    (tmp_path / "results.jsonl").write_bytes(b"".join(lines[:place] + lines[place + 1 :]))
    assert len(run_suite(tiny, tmp_path).of("run")) == 8


def test_parts_go_into_the_folder_of_the_whole(tiny: Suite, tmp_path: Path) -> None:
    first = run_suite(part(tiny, methods=["box"]), tmp_path, rows=1)
    assert [r["method"] for r in first.of("run")] == ["box", "box"]
    assert len(run_suite(tiny, tmp_path, rows=1).of("run")) == 4


def test_another_suite_is_refused(tiny: Suite, tiny_folder: Path) -> None:
    before = (tiny_folder / "results.jsonl").read_bytes()
    with pytest.raises(DataError, match=r"holds results of another suite \('tiny'"):
        run_suite(replace(tiny, limits=replace(tiny.limits, time=2001.0)), tiny_folder)
    assert (tiny_folder / "results.jsonl").read_bytes() == before


def test_hangs_crashes_and_errors_are_rows(with_liar: Callable[[str], Results]) -> None:
    lies = ("crash", "leave", "fail", "eat")
    text = INSTANCE + liars(*lies, reduce=False) + '[[methods]]\nsolver = "box"\n'
    runs = {r["method"]: r for r in with_liar(text).of("run")}
    status = {name: (run["status"], run["message"]) for name, run in runs.items()}
    assert status["eat"] == ("memory out", "killed at 0.7 GB of memory")
    assert status["crash"][0] == "error"
    assert "SIGABRT" in status["crash"][1]
    assert status["leave"] == ("error", "the process ended by itself with exit code 3")
    assert status["fail"] == ("error", "internal error: ZeroDivisionError: oops")
    assert status["box"] == ("ok", "")
    assert runs["eat"]["peak_memory"] < 1.2e9


def test_a_run_that_hangs_is_killed(with_liar: Callable[[str], Results]) -> None:
    (run,) = with_liar(INSTANCE.replace("time = 3600", "time = 1") + liars("hang", reduce=False)).of("run")
    assert (run["status"], run["message"]) == ("time out", "killed after 1.2 s")


def test_lies_are_disagreements(with_liar: Callable[[str], Results]) -> None:
    text = INSTANCE + liars("cost", "target") + liars("early", "bound", "infeasible", reduce=False)
    c = compare(with_liar(text + '[[methods]]\nsolver = "box"\n'))
    found: dict[str, str] = {}
    for d in c.disagreements:  # a lie can be found out in several ways
        found[d.method] = f"{found.get(d.method, '')}{d.message}\n"
    assert set(found) == {"early", "bound", "cost", "target", "infeasible"}
    assert "is optimal, against the verified solution of box" in found["early"]
    assert found["bound"].startswith("its bound")
    assert "unverified: The changes cost" in found["cost"]
    assert "another target" in found["target"]
    assert "no admissible change exists" in found["infeasible"]
    statuses = dict(zip(c.runs["method"], c.runs["status"], strict=True))
    assert statuses == dict.fromkeys(found, "wrong") | {"box": "ok"}


# -- what cannot be run ----------------------------------------------------------------------------------------


def test_solver_that_is_not_installed_is_left_out(
    tiny: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from ocf.solvers import SOLVERS

    monkeypatch.setitem(SOLVERS, "absent", ("no_such_package", "Solver"))
    text = TINY_ONE + '[[methods]]\nsolver = ["absent", "highs"]\n'
    results = run_suite(parse_suite(text, "one"), tmp_path)
    assert [r["method"] for r in results.of("run")] == ["interval/highs"]
    assert "no_such_package" in results.of("session")[0]["unavailable"]["interval/absent"]
    assert "interval/absent is not available" in caplog.text
    with pytest.raises(ProblemError, match="yields no run: interval/absent: the solver 'absent' cannot be loaded"):
        run_suite(parse_suite(TINY_ONE + '[[methods]]\nsolver = "absent"\n', "one"), tmp_path / "none")


TINY_ONE = 'report = { bounds = false }\ninstances = [{ data = "breast_cancer", trees = 2, depth = 2, rows = 1 }]\n'


def test_case_that_cannot_be_prepared_is_left_out(cache: Path, tmp_path: Path) -> None:
    text = TINY_ONE.replace('"breast_cancer"', '["breast_cancr", "breast_cancer"]') + '[[methods]]\nsolver = "box"\n'
    results = run_suite(parse_suite(text, "one"), tmp_path)
    assert len(results.of("run")) == 1
    (skipped,) = results.of("skipped")
    assert "did you mean 'breast_cancer'?" in skipped["reason"]


def test_suite_without_a_run(cache: Path, tmp_path: Path) -> None:
    text = TINY_ONE.replace("rows = 1", 'rows = 1, target = "no"') + '[[methods]]\nsolver = "box"\n'
    with pytest.raises(ProblemError, match="'one' yields no run: breast_cancer: there is no class 'no'; known: 0, 1"):
        run_suite(parse_suite(text, "one"), tmp_path)


def test_missing_data_folder(tiny: Suite, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the data folder '/no/such' does not exist"):
        run_suite(tiny, tmp_path, data="/no/such")
    assert not (tmp_path / "results.jsonl").exists()


def test_model_that_has_changed_is_refused(tiny: Suite, tiny_folder: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (tiny_folder / "results.jsonl").read_text().splitlines()]
    for line in lines:
        if line["kind"] == "case":
            line["facts"]["checksum"] = "other"
    lines.remove(next(line for line in lines if line["kind"] == "run"))  # a finished suite is left alone
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(DataError, match="the trained model is not that of the results"):
        run_suite(tiny, tmp_path)


# -- interruptions ---------------------------------------------------------------------------------------------


def started(suite: Path, folder: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ocf", "compare", str(suite), "-o", str(folder), *options]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for_runs(process: subprocess.Popen[str], folder: Path, count: int) -> None:
    """Until so many runs are finished; the process goes on, since another one hangs."""
    while process.poll() is None:
        with suppress(DataError):
            if len(read(folder).of("run")) >= count:
                return
        time.sleep(0.1)
    raise AssertionError(f"the process ended with {process.returncode} before {count} runs were in {folder}")


def descendants(pid: int) -> set[int]:
    children = {int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    return children.union(*map(descendants, children))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes through /proc")
def test_interrupted_and_killed_runs_go_on(with_liar: Callable[[str], Results], tmp_path: Path) -> None:
    suite, folder = tmp_path / "suite.toml", tmp_path / "results"
    text = INSTANCE + '[[methods]]\nsolver = ["box", "highs"]\n' + liars("hang")
    suite.write_text(text)

    process = started(suite, folder)
    wait_for_runs(process, folder, 2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "the finished runs are in" in said
    assert "Traceback" not in said

    process = started(suite, folder)
    while len(descendants(process.pid)) < 2 and process.poll() is None:  # the server and the run that hangs
        time.sleep(0.1)
    family = descendants(process.pid)
    process.kill()
    process.communicate()
    while any(Path(f"/proc/{pid}").exists() for pid in family):  # for ever, were one left behind
        time.sleep(0.1)

    process = started(suite, folder, "--method", "box", "--method", "interval/highs")
    process.communicate()
    assert process.returncode == 0
    assert [r["method"] for r in read(folder).of("run")] == ["box", "interval/highs"]

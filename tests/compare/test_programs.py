"""Programs of others as methods: what they are told, and what becomes of right, wrong and missing answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from ocf.compare import Results, parse_suite, run_suite
from ocf.compare.frame import compare
from ocf.compare.programs import MOST_MESSAGE
from ocf.errors import ProblemError

#: A program that answers as its option says.
PROGRAM = """
import csv, json, os, sys, time

def harmless(case):
    # the row of the smallest tumour, which is benign to any model
    rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(open(case["data"]))]
    return min(rows, key=lambda row: row["worst area"])

def answer(case, asked):
    mode, row = case["options"]["mode"], asked["row"]
    good = harmless(case)
    if mode == "good":
        return {"status": "feasible", "counterfactual": good}
    if mode == "proud":
        sum(range(5_000_000))  # so that the processor's clock ticks
        return {"status": "optimal", "counterfactual": good}
    if mode == "row":
        return {"status": "feasible", "counterfactual": row}
    if mode == "cheap":
        return {"status": "feasible", "counterfactual": good, "cost": 1e-3}
    if mode == "none":
        return {"status": "infeasible"}
    if mode == "bound":
        return {"status": "feasible", "counterfactual": good, "bound": 1e6}
    if mode == "lost":
        return {"status": "unknown", "message": "nothing found"}
    if mode == "column":
        return {"status": "feasible", "counterfactual": {"no such": 1.0}}
    if mode == "words":
        return {"status": "splendid"}
    if mode == "crash":
        sys.exit("it broke")
    if mode == "abort":
        os.abort()
    if mode == "hang":
        time.sleep(10_000)
    while mode in ("chatter", "flood"):
        sys.stdout.write("x" * (1 if mode == "chatter" else 1 << 20))
        sys.stdout.flush()
        time.sleep(0.02 if mode == "chatter" else 0.0)
    if mode == "eat":
        eaten = []
        while True:
            eaten.append(bytearray(b"x" * 20_000_000))

case = json.loads(sys.stdin.readline())
assert case["protocol"] == 1
if case["options"]["mode"] == "unready":
    sys.exit("no licence")
print(json.dumps({"version": "tiny 1"}), flush=True)
for count, line in enumerate(sys.stdin):
    asked = json.loads(line)
    if case["options"]["mode"] == "garbage":
        print("Dear user,", flush=True)
    elif case["options"]["mode"] == "twice":
        said = json.dumps({"status": "unknown", "message": f"answer {count}"})
        print(said + chr(10) + said, flush=True)
    elif case["options"]["mode"] == "wordy":
        print(json.dumps({"status": "unknown", "message": "x" * 200_000}), flush=True)
    elif case["options"]["mode"] == "told":
        about = {key: case[key] for key in ("threads", "seed", "options")}
        asked["features"] = len(asked["features"]["features"])
        print(json.dumps({"status": "error", "message": json.dumps([about, asked, os.getpid()])}), flush=True)
    else:
        print(json.dumps(answer(case, asked)), flush=True)
"""

SUITE = """
name = "programs"
limits = { time = 3600, memory = "600 MB", grace = 0.2 }
report = { bounds = true }
instances = [{ data = "breast_cancer", trees = 4, depth = 2, rows = ROWS }]
"""

Run = Callable[..., dict[str, list[dict[str, Any]]]]


@pytest.fixture
def run(cache: Path, tmp_path: Path) -> Run:
    """Run methods of one program, one a mode, and give their lines by mode."""
    (tmp_path / "tiny.py").write_text(PROGRAM)

    def done(*modes: str, rows: int = 1, limit: float = 3600, more: str = "") -> dict[str, list[dict[str, Any]]]:
        text = SUITE.replace("ROWS", str(rows)).replace("3600", str(limit)) + more
        for mode in modes:
            text += f'[methods.{mode}]\ncommand = ["{sys.executable}", "tiny.py"]\noptions = {{ mode = "{mode}" }}\n'
        results: Results = run_suite(parse_suite(text, "suite.toml", tmp_path), tmp_path / "results")
        lines: dict[str, list[dict[str, Any]]] = {}
        for line in results.of("run"):
            lines.setdefault(line["method"], []).append(line)
        lines["all"] = [results]  # type: ignore[list-item]
        return lines

    return done


def test_an_answer_is_put_to_the_model_and_its_cost_is_computed(run: Run) -> None:
    found = run("good", "proud", more='[methods.ours]\nsolver = "box"\n')
    (good,), (proud,), (ours,) = found["good"], found["proud"], found["ours"]
    assert (good["status"], good["answer"], good["checks"], good["found"]) == ("unproved", "feasible", [], True)
    assert (good["solver_version"], good["bound"]) == ("tiny 1", "-inf")
    assert good["cost"] == proud["cost"] > ours["cost"]
    assert good["seconds"] == good["wall"] > 0
    assert proud["cpu"] > 0
    assert 10e6 < good["peak_memory"] < 600e6
    # by itself the claim looks right; held against our proof it is not
    assert proud["status"] == "ok"
    comparison = compare(found["all"][0])  # type: ignore[arg-type]
    assert [d.method for d in comparison.disagreements] == ["proud"]
    assert "claims that" in comparison.disagreements[0].message
    status = comparison.runs.set_index("method")["status"]
    assert (status["proud"], status["good"], status["ours"]) == ("wrong", "unproved", "ok")
    assert len(found["all"][0].of("relaxation")) == 1  # type: ignore[attr-defined]


def test_lies_are_wrong(run: Run) -> None:
    found = run("row", "cheap", "bound", "none", "good")
    status = {mode: found[mode][0]["status"] for mode in ("row", "cheap", "bound")}
    assert status == {"row": "wrong", "cheap": "wrong", "bound": "wrong"}
    assert "not 0.001 as claimed" in found["cheap"][0]["message"]
    assert "bound" in found["bound"][0]["message"]
    refuted = {d.method for d in compare(found["all"][0]).disagreements}  # type: ignore[arg-type]
    assert refuted == {"row", "cheap", "bound", "none"}


def test_what_is_no_answer_is_an_error(run: Run) -> None:
    modes = ("garbage", "words", "column", "crash", "abort", "unready", "twice")
    found = run(*modes, "lost", "wordy", rows=2)
    for mode in modes[:-1]:
        assert [line["status"] for line in found[mode]] == ["error", "error"], mode
    said = {mode: found[mode][-1]["message"] for mode in modes}
    assert said["garbage"].startswith("it answered no JSON: 'Dear user,'")
    assert "splendid" in said["words"] or "status" in said["words"]
    assert "'no such'" in said["column"]
    assert "exit code 1 (it broke)" in said["crash"]
    assert "SIGABRT" in said["abort"]
    assert "did not get ready" in said["unready"]
    assert "no licence" in found["unready"][0]["message"]
    assert [len(line["message"]) for line in found["wordy"]] == [MOST_MESSAGE + 1] * 2
    assert [line["message"] for line in found["twice"]] == ["answer 0", "answer 0"]  # started anew: nothing is mixed up
    assert [(line["status"], line["message"]) for line in found["lost"]] == [("unproved", "nothing found")] * 2


def test_time_and_memory_are_limited(run: Run, tmp_path: Path) -> None:
    found = run("hang", "chatter", "eat", limit=1.5)
    for mode in ("hang", "chatter"):
        assert (found[mode][0]["status"], found[mode][0]["message"]) == ("time out", "killed after 1.7 s"), mode
    assert found["eat"][0]["status"] in ("memory out", "time out")  # on a busy machine it does not eat so fast
    left = [p.info["cwd"] for p in psutil.process_iter(["cwd"])]
    assert str(tmp_path) not in left


def test_a_program_that_writes_without_end_is_stopped(run: Run) -> None:
    (line,) = run("flood")["flood"]
    assert (line["status"], line["message"]) == ("error", "it wrote more than 16,777,216 bytes for an answer")


def test_one_process_serves_all_rows_and_is_told_what_is_asked(run: Run) -> None:
    first, second = [json.loads(line["message"]) for line in run("told", rows=2)["told"]]
    case, asked, process = first
    assert process == second[2]
    assert asked["row"] != second[1]["row"]
    assert (case["threads"], case["seed"], case["options"]) == (1, 0, {"mode": "told"})
    assert asked["time_limit"] == 3600
    assert (asked["target"], asked["norm"]["l1"], asked["constraints"]) == (1, 1.0, [])
    assert asked["features"] == len(asked["row"]) == 30


ONCE = """
import json, sys
asked = json.load(open(sys.argv[1]))
message = f"{asked['options']['word']} {len(asked['row'])} {asked['model'][-6:]}"
print(json.dumps({"status": "unknown", "message": message}, indent=1))
"""


def test_a_program_may_read_a_file(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "once.py").write_text(ONCE)
    monkeypatch.setenv("A_PYTHON", sys.executable)
    text = SUITE.replace("ROWS", "1") + '[[methods]]\nname = "once"\ncommand = ["$A_PYTHON", "once.py", "{instance}"]\n'
    results = run_suite(parse_suite(text + 'options = { word = "read" }', "suite.toml", tmp_path), tmp_path / "results")
    (line,) = results.of("run")
    assert (line["status"], line["message"]) == ("unproved", "read 30 joblib")
    assert line["cpu"] > 0


def test_a_program_that_is_not_there_is_left_out(cache: Path, tmp_path: Path) -> None:
    text = SUITE.replace("ROWS", "1") + '[methods.box]\nsolver = "box"\n[methods.gone]\ncommand = ["./gone", "x"]\n'
    results = run_suite(parse_suite(text, "suite.toml", tmp_path), tmp_path / "results")
    assert [r["method"] for r in results.of("run")] == ["box"]
    assert results.of("session")[0]["unavailable"] == {"gone": "there is no program ./gone"}


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ('[[methods]]\ncommand = ["x"]', "needs a name"),
        ('[methods.x]\ncommand = ["x"]\nsolver = "box"', "a command goes with"),
        ('[methods.x]\ncommand = ["x"]\nreduce = false', "a command goes with"),
        ("[methods.x]\ncommand = []", "a list of words"),
        ('[methods.x]\ncommand = "x"', "a list of words"),
        ("[methods]\nx = 1", "each \\[methods.NAME\\]"),
        ('[methods.x]\ncommand = ["x"]\nthreads = [1, 2]', "would name 2 methods"),
    ],
)
def test_methods_that_mean_nothing_are_refused(method: str, says: str) -> None:
    with pytest.raises(ProblemError, match=says):
        parse_suite(SUITE.replace("ROWS", "1") + method, "suite.toml")


def test_named_methods_are_those_of_a_list() -> None:
    tables = parse_suite(SUITE.replace("ROWS", "1") + '[methods.a]\nsolver = "box"', "suite.toml").methods
    assert tables == parse_suite(SUITE.replace("ROWS", "1") + '[[methods]]\nname = "a"\nsolver = "box"', "s").methods

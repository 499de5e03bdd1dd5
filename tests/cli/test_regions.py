"""``ocf regions``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from command_line import Answer
from sklearn.ensemble import RandomForestRegressor

from ocf.cells.cell_problem import CellProblem


def test_the_command(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(80, 3)), columns=list("abc"))
    joblib.dump(RandomForestRegressor(5, max_depth=3, random_state=0).fit(x, x.a + x.b), tmp_path / "m.joblib")
    x.to_csv(tmp_path / "x.csv", index=False)

    def ask(*args: object) -> Answer:
        return Answer("regions", tmp_path / "m.joblib", tmp_path / "x.csv", "--trust-pickle", *args)

    done = ask("--at-least", 1, "--radius", 0.4, "-o", tmp_path / "r.csv", "--plot", tmp_path / "r.png")
    assert done.code == 0, done.err
    frame = pd.read_csv(tmp_path / "r.csv")
    assert f"{len(frame)} regions within a cost of 0.4" in done.err
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    cut = ask("--at-least", 1, "--radius", 0.4, "--limit", 2, "-o", tmp_path / "r.json")
    assert (cut.code, len(json.loads((tmp_path / "r.json").read_text()))) == (4, 2)
    assert "cut off by --limit: none cheaper than " in cut.err
    assert ask("--at-least", 1, "--radius", 0.4, "--row", 1).out.startswith("a_lowest,a_highest,")
    none = ask("--at-least", 99, "--radius", 0.4)
    assert (none.code, "there is no counterfactual, whatever the radius" in none.err) == (3, True)
    near = ask("--at-least", 1, "--radius", 1e-6)
    (cost,) = map(float, re.findall(r"the nearest counterfactual costs (\S+): give a --radius beyond", near.err))
    assert near.code == 3
    assert (ask("--at-least", 1, "--radius", 0.99 * cost).code, ask("--at-least", 1, "--radius", 1.01 * cost).code) == (
        3,
        0,
    )
    if Path("/dev/full").exists():
        (tmp_path / "full.csv").symlink_to("/dev/full")
        full = ask("--at-least", 1, "--radius", 0.4, "-o", tmp_path / "full.csv")
        assert (full.code, full.out) == (2, ask("--at-least", 1, "--radius", 0.4).out)
        assert "the results follow on stdout" in full.err
    for args, word in (
        (("--at-least", 1, "--radius", 0.4, "--axes", "a"), "two features"),
        (("--at-least", 1, "--radius", 0.4, "-o", tmp_path / "r.txt"), ".csv, .json"),
        (("--at-least", 1, "--radius", 0.4, "--row", 80), "no row 80"),
        (("--radius", 0.4), "--at-least"),
    ):
        failed = ask(*args)
        assert failed.code == 2
        assert word in failed.err


def test_ctrl_c_leaves_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(80, 3)), columns=list("abc"))
    joblib.dump(RandomForestRegressor(5, max_depth=3, random_state=0).fit(x, x.a + x.b), tmp_path / "m.joblib")
    x.to_csv(tmp_path / "x.csv", index=False)
    asked = (tmp_path / "m.joblib", tmp_path / "x.csv", "--trust-pickle", "--at-least", 1, "--radius", 0.4)
    whole, place, calls = Answer("regions", *asked).out.splitlines(), CellProblem.point, []

    def interrupted(self: CellProblem, choice: np.ndarray) -> np.ndarray:
        calls.append(choice)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return place(self, choice)

    monkeypatch.setattr(CellProblem, "point", interrupted)
    stopped = Answer("regions", *asked)
    assert stopped.code == 130
    assert stopped.out.splitlines() == whole[:4]  # the names, and three that were handed over
    assert "3 regions within a cost of 0.4; cut off by Ctrl-C: none cheaper than " in stopped.err


def test_a_problem_file_is_heeded_or_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(80, 3)), columns=list("abc"))
    joblib.dump(RandomForestRegressor(5, max_depth=3, random_state=0).fit(x, x.a + x.b), tmp_path / "m.joblib")
    x.to_csv(tmp_path / "x.csv", index=False)

    def ask(text: str) -> Answer:
        (tmp_path / "p.toml").write_text(text)
        given = ("--trust-pickle", "--at-least", 1, "--radius", 0.4, "--problem", tmp_path / "p.toml")
        return Answer("regions", tmp_path / "m.joblib", tmp_path / "x.csv", *given)

    timed = ask("[solve]\ntime_limit = 1e-9\n")
    assert (timed.code, "cut off by --time-limit" in timed.err) == (4, True)
    for text, named in (
        ("[solve]\nmargin = 0.1\n", "[solve] margin"),
        ('[solve]\nsolver = "highs"\n', "[solve] solver"),
        ("[missing]\ncost_of_supplying = 1.0\n", "[missing]"),
    ):
        refused = ask(text)
        assert (refused.code, f"takes no heed of {named}" in refused.err) == (2, True)

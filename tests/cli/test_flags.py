"""Hints of messages name flags that there are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from command_line import Answer, refused
from sklearn.ensemble import RandomForestClassifier

from ocf.cli.flags import FLAGS, SWITCHES, in_flags
from ocf.explain.diagnosis import ASK
from ocf.solve.outcome import Outcome, advised
from ocf.solvers.result import SolverOptions, Status


def test_the_flags_are_those_of_solve() -> None:
    words = Answer("solve", "--help").out
    assert [flag for flag in (*FLAGS.values(), *SWITCHES.values()) if f"{flag} " not in words] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("use solver='scip' or formulation='hyperplanes'", "use --solver scip or --formulation hyperplanes"),
        ("say so with trust_pickle=True.", "say so with --trust-pickle."),
        ("say so with --trust-pickle (trust_pickle=True in Python)", None),
        (
            "missing={'cost_of_supplying': {'age': 1.0, …}} lets it",
            "[missing] cost_of_supplying = {'age' = 1.0, …} of a problem file lets it",
        ),
        ("give it more (time_limit=2e+04), or wait", "give it more (--time-limit 2e+04), or wait"),
        ("the time limit=5 of my_solver='x'", None),
    ],
)
def test_settings_become_flags(words: str, said: str | None) -> None:
    assert in_flags(words) == (words if said is None else said)


@pytest.mark.parametrize("point", [None, np.zeros(1)])
def test_what_to_do_at_a_limit_is_said_in_flags(point: np.ndarray | None) -> None:
    status, cost = (Status.UNKNOWN, None) if point is None else (Status.FEASIBLE, 1.0)
    outcome = Outcome(status, point, cost, 0.0, {"solve": 1.0}, 3)
    said = in_flags(advised(outcome, SolverOptions(time_limit=60)).message)
    assert "--time-limit 600" in said
    assert ("--gap 0.05" if point is not None else "[solve] features_to_vary") in said
    assert "=0" not in said


def test_answers_and_errors_speak_of_flags(
    ask: Callable[..., Answer], write: Callable[[str, str], Path], files: Path, tmp_path: Path
) -> None:
    assert "diagnose=True" in ASK
    stuck = ask("--problem", write("p.toml", "[solve]\nfeatures_to_vary = []\n"), "--rows", "0:3")
    assert "ask with --diagnose" in stuck.out
    assert "diagnose=True" not in stuck.out
    keep = tmp_path / "prepared.ocf"
    assert ask("--rows", "0", "--prepared", keep, "--trust-pickle").code == 0
    refused("solve", files / "forest.skops", files / "data.csv", "--prepared", keep, words=["--trust-pickle"])


def test_features_that_look_like_settings_keep_their_names(tmp_path: Path) -> None:
    """A DictVectorizer names its columns so."""
    name = "formulation=tablet"
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.integers(0, 9, 80), "solver=x": rng.integers(0, 9, 80)})
    forest = RandomForestClassifier(5, max_depth=2, random_state=0).fit(table, table[name] > 4)
    joblib.dump(forest, tmp_path / "m.joblib")
    table.to_csv(tmp_path / "d.csv", index=False)
    row = int(np.flatnonzero(~forest.predict(table))[0])
    asked = ("solve", tmp_path / "m.joblib", tmp_path / "d.csv", "--trust-pickle", "--rows", str(row))
    answer = Answer(*asked, "--target", "True")
    assert answer.code == 0
    assert name in answer.out
    assert name in answer.err
    assert "--formulation" not in answer.out + answer.err

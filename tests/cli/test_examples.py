"""``ocf examples``."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from command_line import Answer, refused

from ocf import Explanations
from ocf.cli.examples import FILES
from ocf.compare.loans import SETTINGS
from ocf.compare.suite import load_suite
from ocf.problem.problem_file import read_problem_file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples") / "loans"
    done = Answer("examples", folder)
    assert done.code == 0, done.err
    assert [line.partition(":")[0] for line in done.out.splitlines()] == [str(folder / name) for name in FILES]
    return folder


def test_files_are_what_they_are_said_to_be(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == set(FILES)
    train, applicants = pd.read_csv(folder / "train.csv"), pd.read_csv(folder / "applicants.csv")
    assert list(applicants) == list(SETTINGS)
    assert list(train) == [*SETTINGS, "granted"]
    assert (len(train), len(applicants)) == (1000, 50)
    assert load_suite(folder / "suite.toml").name == "loans"
    said = read_problem_file(folder / "problem.toml")
    assert set(said.features) < set(SETTINGS)
    assert len(said.constraints) == 1


def test_applicants_are_refused_and_the_problem_file_is_heeded(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    model, applicants = folder / "model.json", folder / "applicants.csv"
    toml = folder / "problem.toml"
    done = Answer("solve", model, applicants, "--rows", "0:5", "--problem", toml, "-o", out)
    assert done.code == 0, done.err
    answers = Explanations.from_json(out)
    assert len(answers) == 5
    for answer in answers:
        assert (answer.predicted, answer.status, answer.verified) == (0, "optimal", True)
        assert 1 <= len(answer.changes) <= 2
        assert set(answer.changes["feature"]) <= set(SETTINGS) - {"age", "late_payments", "purpose"}


def test_files_that_exist_are_left_alone(folder: Path, tmp_path: Path) -> None:
    refused("examples", folder, words=["train.csv exists", "--force"])
    assert Answer("examples", folder, "--force").code == 0
    (tmp_path / "file").touch()
    refused("examples", tmp_path / "file", words=["is a file"])

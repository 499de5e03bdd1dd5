"""The README, run as it stands: each snippet by itself, each command line in a new folder."""

import re
from pathlib import Path

import pytest
from shell import paste, shell_lines
from shown import README, blocks, run

from ocf import Explanations


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120
    assert [language for language, _ in blocks(README)].count("python") > 1
    assert "text" in {language for language, _ in blocks(README)}


def test_snippets_are_complete_and_print_what_the_readme_shows() -> None:
    assert run(README, apart=True) == README.read_text(encoding="utf-8")


def test_every_command_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = list(shell_lines(blocks(README)))
    assert len(lines) > 8
    for line in lines:
        paste(line)
    answers = Explanations.from_json(tmp_path / "out.json")
    assert {(answer.status, answer.verified) for answer in answers} == {("optimal", True)}
    written = ["mine.toml", "boxes.csv", "boxes.png", "model.mps", "results/report.html"]
    assert all((tmp_path / name).stat().st_size for name in written)


def test_targets_of_make_exist() -> None:
    makefile = (README.parent / "Makefile").read_text()
    targets = re.findall(r"^make (\w+)", blocks(README)[0][1], re.MULTILINE)
    assert targets[:2] == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_extras_exist() -> None:
    import tomllib

    known = tomllib.loads((README.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extras in re.findall(r"(?:ocf|\.)\[([\w,-]+)\]", README.read_text(encoding="utf-8")):
        assert set(extras.split(",")) <= set(known)

"""The how-tos of docs/ that print what they show, run as they stand."""

import re
import tomllib
from pathlib import Path

import pytest

from ocf.problem.problem_file import read_problem_file

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("page", ["missing.md"])
def test_snippets_print_what_the_page_shows(page: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    namespace: dict[str, object] = {}
    printed = ""
    for language, content in blocks:
        if language == "python":
            exec(content, namespace)  # running the page is the point
            printed = capsys.readouterr().out
        elif language == "text":
            assert [line.rstrip() for line in printed.splitlines()] == content.splitlines()
        elif language == "toml":
            path = tmp_path / "p.toml"
            path.write_text(content, encoding="utf-8")
            assert read_problem_file(path).solve.keys() | {"special_values"} >= tomllib.loads(content).keys()
    assert len(blocks) > 5

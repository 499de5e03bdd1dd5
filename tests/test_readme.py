"""The README's first screen, run as it stands."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def blocks() -> list[tuple[str, str]]:
    """(language, text) of each fenced block, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_example_prints_what_the_readme_shows(capsys) -> None:
    (_, code), (_, shown) = blocks()[1:3]
    namespace: dict[str, object] = {}
    exec(code, namespace)  # running the README is the point
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == shown.splitlines()

    (_, code), (_, shown) = blocks()[3:5]
    with pytest.raises(Exception, match=re.escape(shown.strip().partition(": ")[2])) as error:
        exec(code, namespace)
    assert f"{error.type.__module__}.{error.type.__name__}" == shown.partition(":")[0]


def test_rules_example_prints_what_the_readme_shows(capsys) -> None:
    own = blocks()
    at = next(k for k, (_, text) in enumerate(own) if "CounterfactualRules" in text)
    exec(own[at][1], {})
    assert capsys.readouterr().out == own[at + 1][1]


def test_imports_exist() -> None:
    lines = [line for language, text in blocks() if language == "python" for line in text.splitlines()]
    own = [line for line in lines if re.match(r"(from|import) ocf\b", line)]
    assert len(own) > 3
    for line in own:
        exec(line, {})


def test_commands_exist() -> None:
    from typer.main import get_command

    from ocf.cli import app

    known = set(get_command(app).commands)
    used = set(re.findall(r"^ocf (\S+)", {k: v for k, v in blocks() if "ocf solve" in v}["sh"], re.MULTILINE))
    assert used <= known
    makefile = (README.parent / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", blocks()[0][1], re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)

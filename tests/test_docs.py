"""The manual: its snippets run and print what it shows, its links lead somewhere, and nothing is left out of it."""

import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from matplotlib import pyplot as plt
from shell import paste, shell_lines
from shown import DOCS, PAGES, ROOT, blocks, run, runs

import ocf
from ocf.compare.suite import load_suite
from ocf.problem.problem_file import read_problem_file

REFERENCE = DOCS / "reference"


@pytest.mark.parametrize("page", list(filter(runs, PAGES)), ids=lambda page: page.stem)
def test_snippets_run_and_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(page) == page.read_text(encoding="utf-8"), "python -m shown, in the folder tests, writes it anew"
    plt.close("all")


@pytest.mark.parametrize("page", [DOCS / "missing.md", REFERENCE / "problem-file.md"], ids=lambda page: page.stem)
def test_problem_files_of_the_page_are_read(page: Path, tmp_path: Path) -> None:
    files = [content for language, content in blocks(page) if language == "toml"]
    assert files
    for content in files:
        path = tmp_path / "p.toml"
        path.write_text(content, encoding="utf-8")
        known = {*read_problem_file(path).solve, "special_values", "solve", "features", "constraints", "monotone"}
        assert known >= tomllib.loads(content).keys()


def test_suites_of_the_page_are_read(tmp_path: Path) -> None:
    suites = [content for language, content in blocks(REFERENCE / "suite-file.md") if language == "toml"]
    names = []
    for suite in suites:
        (tmp_path / "s.toml").write_text(suite, encoding="utf-8")
        names.append(load_suite(tmp_path / "s.toml").name)
    assert names == ["forests", "peers"]


def bare(line: str) -> str:
    """A line of a shell without its comment."""
    return line.partition(" #")[0].rstrip()


def test_commands_of_the_page_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tried = {bare(line) for line in shell_lines(blocks(ROOT / "README.md"))} - {"ocf examples"}
    lines = [line for line in shell_lines(blocks(DOCS / "how-to/command-line.md")) if bare(line) not in tried]
    assert len(lines) > 3
    for line in lines:
        paste(line)


def links(page: Path) -> Iterator[str]:
    """Where the links of a page lead."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    yield from re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", text))


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        name, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        target = page.parent / name if name else page
        if target.parent.name in ("tutorial", "gallery"):  # made from examples/ when the manual is built
            made_from = "README.rst" if target.stem == "index" else f"{target.stem}.py"
            target = ROOT / "examples" / target.parent.name / made_from
        assert target.exists() or target.with_suffix(".md").exists(), link
        if anchor:
            heads = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}, link


def test_every_page_is_in_the_contents() -> None:
    listed = {DOCS / "index.md"}
    for page in PAGES:
        for contents in re.findall(r"^```\{toctree\}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S):
            names = [line for line in contents.splitlines() if line and not line.startswith(":")]
            listed |= {(page.parent / name).resolve().with_suffix(".md") for name in names}
    assert [str(page.relative_to(DOCS)) for page in PAGES if page not in listed] == []


def named() -> set[str]:
    """Names, with their modules, that the page on Python lists."""
    names, module = set(), ""
    for line in (REFERENCE / "api.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule::"):
            module = line.partition(":: ")[2].strip()
        elif re.fullmatch(r"   [\w.]+", line):
            names.add(f"{module}.{line.strip()}")
    return names


def test_every_public_name_has_a_page() -> None:
    found = named()
    for module in ("ocf", "ocf.oblique", "ocf.compare"):
        public = set(import_module(module).__all__) - {"__version__"}
        assert {f"{module}.{name}" for name in public} <= found
    errors = {name for name, value in vars(ocf.errors).items() if isinstance(value, type)}
    assert {f"ocf.errors.{name}" for name in errors} <= found


@pytest.mark.parametrize(
    ("page", "module"), [("problem-file.md", "ocf.problem.problem_file"), ("suite-file.md", "ocf.compare.suite")]
)
def test_every_section_of_a_file_has_a_table(page: str, module: str) -> None:
    text = (REFERENCE / page).read_text(encoding="utf-8")
    schemas = {name for name in vars(import_module(module)) if name.endswith("Settings")}
    assert len(schemas) > 3
    assert set(re.findall(rf"\{{ocf-settings\}} {re.escape(module)}:(\w+)", text)) == schemas
    for name in schemas:
        assert get_type_hints(getattr(import_module(module), name))


def test_exit_codes_are_all_told() -> None:
    from ocf.cli import ExitCode

    told = re.findall(r"^\| (\d+) \|", (REFERENCE / "command-line.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(code) for code in told] == [code.value for code in ExitCode]


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    newest, *_ = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest == version


def test_the_reference_holds_every_command_option_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(DOCS / "extensions")
    reference = import_module("ocf_reference")
    from typer.main import get_command

    from ocf.cli import app

    def check(group: Any, typed: str) -> None:
        for name, command in group.commands.items():
            assert f"## {typed} {name}\n" in page
            for option in command.params:
                if option.param_type_name == "option" and option.name != "help":
                    assert option.help, f"{typed} {name} {option.name}"
                    assert f"`{option.opts[0]}`" in page
            if getattr(command, "commands", None):
                check(command, f"{typed} {name}")

    page = reference.command_page()
    check(get_command(app), "ocf")
    assert "## ocf compare diff\n" in page
    schema = import_module("ocf.problem.problem_file").SolveSettings
    lines = reference.settings_table(schema, reference.documented("ocf.explain.explainer:Explainer.explain"))
    assert re.findall(r"^\| `(\w+)` \|", lines, re.MULTILINE) == list(get_type_hints(schema))
    assert "| `mip_gap` | Relative gap" in lines


def test_the_same_pythons_are_named_everywhere() -> None:
    """What is installed on, what is said, and what linter and type checker take for the oldest."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    stem = "Programming Language :: Python :: 3."
    minors = [int(c.removeprefix(stem)) for c in said["project"]["classifiers"] if c.startswith(stem)]
    oldest = minors[0]
    assert minors == list(range(oldest, oldest + len(minors)))
    assert said["project"]["requires-python"] == f">=3.{oldest}"
    assert said["tool"]["ruff"]["target-version"] == f"py3{oldest}"
    assert said["tool"]["mypy"]["python_version"] == f"3.{oldest}"
    assert f"Python 3.{oldest} or later" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"python3.{oldest}" in (ROOT / "Makefile").read_text(encoding="utf-8")

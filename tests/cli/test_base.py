"""The app itself: version, help, and errors of no command's own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from command_line import Answer

import ocf
from ocf.explain.explainer import Explainer

COMMANDS = ("solve", "verify", "inspect", "init-problem", "export", "solvers")


def test_version() -> None:
    answer = Answer("--version")
    assert (answer.code, answer.out) == (0, f"ocf {ocf.__version__}\n")


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_fits_80_columns(command: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    answer = Answer(*([command] if command else []), "--help")
    assert answer.code == 0
    assert max(map(len, answer.out.splitlines())) <= 80


def test_the_module_runs_and_starts_without_the_heavy_libraries() -> None:
    code = (
        "import sys; sys.argv = ['ocf', '--help']\n"
        "import runpy\n"
        "try: runpy.run_module('ocf', run_name='__main__')\n"
        "except SystemExit as e: print(e.code)\n"
        "print(sorted({'numpy', 'pandas', 'pyomo', 'sklearn', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["0", "[]"]


def test_no_command_shows_the_help_and_an_unknown_one_an_error() -> None:
    assert "init-problem" in Answer().out + Answer().err
    answer = Answer("solv")
    assert answer.code == 2
    assert "solve" in answer.err


def test_internal_errors_are_short_unless_asked(ask: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(Explainer, "explain", broken)
    answer = ask()
    assert answer.code == 1
    assert "internal error: ZeroDivisionError: oh" in answer.err
    assert "--debug" in answer.err
    assert "Traceback" not in answer.err
    monkeypatch.setenv("OCF_DEBUG", "1")
    assert "Traceback" in ask().err

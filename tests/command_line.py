"""One run of ``ocf``, and what a refusal must look like."""

from __future__ import annotations

from typer.testing import CliRunner

from ocf.cli import app


class Answer:
    """Exit code and text of one run of ``ocf``."""

    def __init__(self, *args: object) -> None:
        result = CliRunner().invoke(app, [str(a) for a in args])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.code, self.out, self.err = result.exit_code, result.stdout, result.stderr


def refused(*args: object, words: list[str]) -> None:
    """Check that a run is refused with one clear message."""
    answer = Answer(*args)
    assert answer.code == 2, answer.err
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert answer.err.startswith("Error: ")
    assert answer.err.count("\n") == 1
    for word in words:
        assert word in answer.err

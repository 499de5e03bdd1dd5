"""The progress bar: what it counts, and when it shows."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
import threading
import time

import pytest

from ocf.support.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(total: int, enabled: bool | None = None) -> ProgressBar:
    with ProgressBar(total, enabled) as bar:
        for status in ("infeasible", "optimal", "optimal")[:total]:
            bar.advance(status)
    return bar


def test_it_counts_by_status_whether_shown_or_not(capsys: pytest.CaptureFixture[str]) -> None:
    bar = run(3)
    assert bar.counts == {"optimal": 2, "infeasible": 1}
    assert bar.summary() == "2 optimal, 1 infeasible"
    assert capsys.readouterr() == ("", "")


def test_it_can_be_forced_and_writes_to_stderr_only(capsys: pytest.CaptureFixture[str]) -> None:
    run(3, enabled=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "3/3 rows" in err
    assert "2 optimal" in err


@pytest.mark.parametrize(("total", "enabled", "shown"), [(3, None, True), (1, None, False), (3, False, False)])
def test_on_a_terminal_it_shows_for_several_rows(
    monkeypatch: pytest.MonkeyPatch, total: int, enabled: bool | None, shown: bool
) -> None:
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    run(total, enabled)
    assert bool(stderr.getvalue()) is shown


def test_no_stderr_at_all_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert run(3).counts.total() == 3


def test_the_bar_is_taken_down_when_a_row_fails(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar(3, enabled=True)
    with pytest.raises(ZeroDivisionError), bar:
        raise ZeroDivisionError
    bar.advance("optimal")  # counts on, without a bar
    assert bar.counts == {"optimal": 1}


def test_rich_is_imported_only_for_a_bar() -> None:
    code = """
import sys
from ocf.support.progress import ProgressBar
with ProgressBar(5) as bar:
    bar.advance("optimal")
print("rich" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


class Heard(io.StringIO):
    """Takes lines, by either way, and tells when there are three."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.three = threading.Event()

    def write(self, text: str) -> int:
        self.lines += [text] if text.strip() else []
        if len(self.lines) >= 3:
            self.three.set()
        return len(text)


@pytest.mark.parametrize("enabled", [None, True])
def test_off_a_terminal_a_line_comes_every_so_often(monkeypatch: pytest.MonkeyPatch, enabled: bool | None) -> None:
    heard = Heard()
    monkeypatch.setattr("ocf.support.progress.FIRST", 1e-4)
    if enabled is None:
        monkeypatch.setattr("ocf.support.progress.logger.info", heard.write)
    else:
        monkeypatch.setattr(sys, "stderr", heard)
    with ProgressBar(4, enabled) as bar:
        bar.advance("optimal")
        heard.three.wait()  # no row need finish for that
    assert all(text.startswith(("0 of 4 rows after 0 s", "1 of 4 rows after ")) for text in heard.lines[:3])
    assert bar.line(30.0) == "1 of 4 rows after 30 s (1 optimal), about 90 s left"


@pytest.mark.parametrize(("total", "enabled", "terminal"), [(1, None, False), (4, False, False), (4, None, True)])
def test_no_line_where_nobody_asked_or_a_bar_is_shown(
    monkeypatch: pytest.MonkeyPatch, total: int, enabled: bool | None, terminal: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
    before = set(threading.enumerate())
    with ProgressBar(total, enabled):
        assert all(thread.name != "ocf-progress" for thread in set(threading.enumerate()) - before)


def test_no_line_comes_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocf.support.progress.FIRST", 1e-4)
    began, lines = threading.Event(), []

    def slow(line: str) -> None:
        began.set()
        time.sleep(0.05)
        lines.append(line)

    monkeypatch.setattr("ocf.support.progress.logger.info", slow)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    before = set(threading.enumerate())
    with ProgressBar(4):
        began.wait()
    assert lines
    assert all(thread.name != "ocf-progress" for thread in set(threading.enumerate()) - before)


def test_the_command_shows_the_lines() -> None:
    from ocf.cli.base import set_up_log

    before = logging.getLogger("ocf").level
    set_up_log(logging.WARNING)
    try:
        assert logging.getLogger("ocf.support.progress").isEnabledFor(logging.INFO)
        assert not logging.getLogger("ocf.explain.batch").isEnabledFor(logging.INFO)
    finally:
        set_up_log(before)
        logging.getLogger("ocf.support.progress").setLevel(logging.NOTSET)

"""The results file: every line on the disk, whatever happens."""

from __future__ import annotations

import errno
import json
import logging
import os
from pathlib import Path

import pytest

from ocf.compare.results import FILE, Writer, read
from ocf.errors import DataError

from .synthetic import line

SUITE = {"name": "s", "fingerprint": "f", "suite": {}}


def run(key: str, **more: object) -> dict[str, object]:
    return line("box", 0, 1.0, key=key, **more)


def written(folder: Path, *lines: dict[str, object]) -> Path:
    with Writer(folder, SUITE) as writer:
        for line in lines:
            writer.add(line)
    return folder / FILE


def test_lines_come_back(tmp_path: Path) -> None:
    written(tmp_path / "new", run("a", gap=float("inf"), cost=None, ä="ö"))
    found = read(tmp_path / "new")
    assert found.suite["fingerprint"] == "f"
    assert found.of("run") == [run("a", gap="inf", cost=None, ä="ö")]
    assert found.checksum == __import__("hashlib").sha256((tmp_path / "new" / FILE).read_bytes()).hexdigest()


def test_cut_last_line_is_left_out_and_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path, run("a"))
    with path.open("ab") as file:
        file.write(b'{"kind": "run", "key": "b", "co')
    with caplog.at_level(logging.WARNING):
        assert [r["key"] for r in read(tmp_path).of("run")] == ["a"]
    assert "the last line was cut off" in caplog.text
    written(tmp_path, run("b"))
    assert [r["key"] for r in read(tmp_path).of("run")] == ["a", "b"]


def test_first_line_that_was_cut_is_written_anew(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b'{"kind": "sui')
    written(tmp_path)
    assert read(tmp_path).suite["name"] == "s"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there are no results in"),
        (b"", "does not hold results of ocf compare"),
        (b'{"kind": "run"}\n', "does not hold results of ocf compare"),
        (b'{"kind": "suite", "schema": "ocf.compare/1"}\n', "line 1 is incomplete or damaged: `name` is missing"),
        (b'{"kind": "suite", "schema": "ocf.compare/1", "schema": 1}\n', "line 1 .*'schema' occurs twice"),
    ],
)
def test_files_that_hold_something_else(tmp_path: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / FILE).write_bytes(content)
    with pytest.raises(DataError, match=words):
        read(tmp_path)


def test_another_suite(tmp_path: Path) -> None:
    path = written(tmp_path, run("a"))
    before = path.read_bytes()
    with pytest.raises(DataError, match=r"holds results of another suite \('s', fingerprint f, not g\): give another"):
        Writer(tmp_path, SUITE | {"fingerprint": "g"})
    assert path.read_bytes() == before


def test_two_writers(tmp_path: Path) -> None:
    with Writer(tmp_path, SUITE), pytest.raises(DataError, match="another ocf compare is writing"):
        Writer(tmp_path, SUITE)


def test_disk_that_fills_up_keeps_the_finished_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def full(fd: int, data: bytes) -> int:
        if len(data) > 5:  # half a line goes in, and then nothing more
            return write(fd, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    with Writer(tmp_path, SUITE) as writer:
        writer.add(run("a"))
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(DataError, match=r"the disk is full\. The finished rows are kept; do the same"):
                writer.add(run("b"))
        assert [r["key"] for r in read(tmp_path).of("run")] == ["a"]
        writer.add(run("c"))
    assert [r["key"] for r in read(tmp_path).of("run")] == ["a", "c"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_disk_that_is_full(tmp_path: Path) -> None:
    (tmp_path / FILE).symlink_to("/dev/full")
    with pytest.raises(DataError, match="the disk is full"):
        Writer(tmp_path, SUITE)


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot write"):
        Writer(tmp_path / "file" / "folder", SUITE)


def test_every_line_is_synchronised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append((tmp_path / FILE).read_bytes()))
    written(tmp_path, run("a"))
    assert [len(s.splitlines()) for s in synced] == [1, 2]
    assert json.loads(synced[-1].splitlines()[-1])["key"] == "a"


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"x",
        b"[]",
        b'{"key": "b"}',
        b'{"kind": "run", "key": "b"}',
        b'{"kind": ["run"]}',
        json.dumps(run("b", cost="dear")).encode(),
        json.dumps(run("b", trees=[10])).encode(),
        json.dumps(run("b", times=[])).encode(),
        json.dumps(run("b")).encode()[:-1] + b', "key": "c"}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_a_line_that_cannot_be_read_is_kept_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture, bad: bytes) -> None:
    path = written(tmp_path, run("a"), run("b"), run("c"))
    lines = path.read_bytes().splitlines()
    spoilt = b"\n".join([*lines[:2], bad, lines[3]]) + b"\n"
    path.write_bytes(spoilt)
    found = read(tmp_path)  # a reader changes nothing
    assert [r["key"] for r in found.of("run")] == ["a", "c"]
    assert found.unreadable == (bad,)
    assert f"{path}, line 3" in caplog.text
    assert path.read_bytes() == spoilt
    with Writer(tmp_path, SUITE) as writer:
        assert [r["key"] for r in writer.lines[1:]] == ["a", "c"]
        writer.add(run("b"))
        with pytest.raises(DataError, match="another ocf compare is writing"):
            Writer(tmp_path, SUITE)
    assert (tmp_path / f"{FILE}.unreadable").read_bytes() == bad + b"\n"
    caplog.clear()
    assert [r["key"] for r in read(tmp_path).of("run")] == ["a", "c", "b"]
    assert not caplog.text

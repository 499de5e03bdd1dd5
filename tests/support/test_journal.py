"""Files of lines that only grow: whole lines or none, whatever strikes."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from ocf.errors import DataError
from ocf.support import journal
from ocf.support.journal import Journal

IN_USE = "somebody else has it"


def opened(path: Path) -> tuple[list[bytes], bytes]:
    own = Journal(path, IN_USE)
    own.close()
    return own.lines, own.tail


def test_lines_and_what_was_cut_off_behind_them(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    assert opened(path) == ([], b"")
    path.write_bytes(b"a\n\nb")
    own = Journal(path, IN_USE)
    assert (own.lines, own.tail) == ([b"a", b""], b"b")
    own.clean(())
    own.append(b"c")
    own.append(b"d", sync=True)
    own.close()
    assert path.read_bytes() == b"a\n\nc\nd\n"


def test_bad_lines_go_to_a_file_of_their_own_and_the_first_stays(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"bad\nbad\ngood\ncut")
    own = Journal(path, IN_USE)
    own.clean([b"bad"])
    own.append(b"more")
    if sys.platform != "win32":
        with pytest.raises(DataError, match=IN_USE):
            Journal(path, IN_USE)
    own.close()
    assert path.read_bytes() == b"bad\ngood\nmore\n"
    assert (tmp_path / "lines.unreadable").read_bytes() == b"bad\n"
    assert not (tmp_path / "lines.new").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no locks of this kind")
@pytest.mark.skipif(os.name == "nt", reason="Windows makes no links without rights of their own")
def test_a_file_behind_a_link_is_written_anew_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    real, link = tmp_path / "far" / "rows", tmp_path / "rows"
    real.write_bytes(b"head\nbad\ngood\n")
    link.symlink_to(real)
    journal = Journal(link, "in use")
    journal.clean([b"bad"])
    journal.append(b"more")
    journal.close()
    assert link.is_symlink()
    assert real.read_bytes() == b"head\ngood\nmore\n"


def test_a_file_that_was_replaced_while_it_was_opened_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    path, fresh = tmp_path / "lines", tmp_path / "fresh"
    path.write_bytes(b"old\n")
    fresh.write_bytes(b"new\n")
    lock = fcntl.flock

    def replaced_first(file: object, how: int) -> None:
        if fresh.exists():
            fresh.replace(path)
        lock(file, how)  # type: ignore[arg-type]

    monkeypatch.setattr(journal.fcntl, "flock", replaced_first)
    own = Journal(path, IN_USE)
    own.append(b"more")
    own.close()
    assert path.read_bytes() == b"new\nmore\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no locks of this kind")
def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(journal.fcntl, "flock", none)
    own = Journal(tmp_path / "lines", IN_USE)
    own.append(b"a")
    own.close()
    assert opened(tmp_path / "lines") == ([b"a"], b"")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full. The finished rows are kept; do the same"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error. The finished rows are kept"),
        (KeyboardInterrupt("by a key"), "by a key"),
    ],
)
def test_half_a_line_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, message: str
) -> None:
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        if len(data) > 5:
            return write(descriptor, data[:5])
        raise error

    own = Journal(tmp_path / "lines", IN_USE)
    own.append(b"whole line")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        with pytest.raises((DataError, KeyboardInterrupt), match=message):
            own.append(b"a longer line")
    own.append(b"another")
    own.close()
    assert opened(tmp_path / "lines") == ([b"whole line", b"another"], b"")


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot write .*: No such file"):
        Journal(tmp_path / "no" / "lines", IN_USE)

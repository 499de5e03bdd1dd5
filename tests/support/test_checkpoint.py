"""Checkpoints: nothing finished is lost, nothing foreign is taken over."""

from __future__ import annotations

import errno
import os
import sys

import pytest

from ocf.errors import DataError
from ocf.support.checkpoint import Checkpoint

ASKED = {"the model": "a", "norm": "l1"}


def write(path, rows=3):
    with Checkpoint(path, ASKED) as kept:
        for k in range(rows):
            kept.add(k, {"status": "optimal", "cost": k / 3})


def spoil_last(path):
    path.write_bytes(path.read_bytes()[:-2] + b"\n")


def test_rows_come_back_to_the_last_bit(tmp_path):
    path = tmp_path / "rows"
    write(path)
    with Checkpoint(path, ASKED) as kept:
        assert kept.done == {k: {"status": "optimal", "cost": k / 3} for k in range(3)}
        kept.add(3, {"status": "infeasible", "cost": None})
    with Checkpoint(path, ASKED) as kept:
        assert sorted(kept.done) == [0, 1, 2, 3]


@pytest.mark.parametrize("lost", range(1, 30))
def test_a_line_that_was_cut_off_is_dropped_and_written_anew(tmp_path, lost):
    path = tmp_path / "rows"
    write(path)
    path.write_bytes(path.read_bytes()[:-lost])
    with Checkpoint(path, ASKED) as kept:
        assert sorted(kept.done) == [0, 1]
        kept.add(2, {"status": "optimal"})
    with Checkpoint(path, ASKED) as kept:
        assert sorted(kept.done) == [0, 1, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no locks of this kind")
def test_a_file_that_is_in_use_is_refused_until_it_is_closed(tmp_path):
    path = tmp_path / "rows"
    write(path)
    spoil_last(path)  # it is written anew when it is opened, and locked still
    with Checkpoint(path, ASKED) as kept:
        with pytest.raises(DataError, match="in use, by another process or thread"), Checkpoint(path, ASKED):
            pass
        kept.add(2, {"status": "optimal"})
    with pytest.raises(DataError, match="different in the model:"), Checkpoint(path, ASKED | {"the model": "b"}):
        pass
    with Checkpoint(path, ASKED) as kept:  # nobody keeps it
        assert sorted(kept.done) == [0, 1, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no locks of this kind")
def test_a_file_that_could_not_be_replaced_is_free_again(tmp_path, monkeypatch):
    path = tmp_path / "rows"
    write(path)
    spoil_last(path)

    def replace(self, other):
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(type(path), "replace", replace)
        with pytest.raises(DataError, match="Permission denied") as kept, Checkpoint(path, ASKED):
            pass
    with Checkpoint(path, ASKED) as again:
        assert sorted(again.done) == [0, 1]
    assert kept.value.__traceback__ is not None  # who holds the error holds no file


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no locks of this kind")
def test_a_process_that_forked_meanwhile_holds_nothing(tmp_path):
    with Checkpoint(tmp_path / "rows", ASKED):
        (own,) = [fd for fd in range(3, 1000) if _leads_to(fd, tmp_path / "rows")]
        copy = os.dup(own)  # as a forked process has
    try:
        with Checkpoint(tmp_path / "rows", ASKED) as kept:
            assert kept.done == {}
    finally:
        os.close(copy)


def _leads_to(descriptor, path):
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def test_another_question_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "rows"
    write(path)
    before = path.read_bytes()
    with pytest.raises(DataError, match="different in the model:"), Checkpoint(path, ASKED | {"the model": "b"}):
        pass
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["nonsense", "nonsense\n", "{}\n", "[1]\n", '{"schema": "x", "fingerprint": "a"}\n'])
def test_other_files_are_refused_and_left_alone(tmp_path, text):
    path = tmp_path / "rows"
    path.write_text(text)
    with pytest.raises(DataError, match="give another path"), Checkpoint(path, ASKED):
        pass
    assert path.read_text() == text


@pytest.mark.parametrize(
    "line", ["x", "[]", "{}", '{"row": -1}', '{"row": "1"}', '{"row": 1, "row": 2}', '{"row": NaN}', "[" * 100_000]
)
def test_a_line_that_cannot_be_read_is_kept_aside_and_its_row_done_again(tmp_path, caplog, line):
    path = tmp_path / "rows"
    write(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], line, *lines[3:]]) + "\n")
    with Checkpoint(path, ASKED) as kept:
        assert sorted(kept.done) == [0, 2]
        kept.add(1, {"status": "optimal"})
    assert f"{path}, line 3" in caplog.text
    assert (tmp_path / "rows.unreadable").read_text() == line + "\n"
    caplog.clear()
    with Checkpoint(path, ASKED) as kept:
        assert sorted(kept.done) == [0, 1, 2]
    assert not caplog.text


def test_two_records_of_one_row_are_both_kept_aside(tmp_path):
    path = tmp_path / "rows"
    write(path)
    text = path.read_text()
    with Checkpoint(path, ASKED) as kept:
        kept.add(0, {"status": "optimal", "cost": 1.0})
    with Checkpoint(path, ASKED) as kept:
        assert sorted(kept.done) == [1, 2]
    assert len((tmp_path / "rows.unreadable").read_text().splitlines()) == 2
    path.write_text(text + text.splitlines()[-1] + "\n")  # one record, written twice
    with Checkpoint(path, ASKED) as kept:
        assert sorted(kept.done) == [0, 1, 2]


@pytest.mark.parametrize(
    ("told", "lie"), [("0.333", "0.133"), ('"optimal"', '"feasible"'), ('"check": ', '"check": 1')]
)
def test_a_line_that_was_edited_is_kept_aside(tmp_path, caplog, told, lie):
    path = tmp_path / "rows"
    write(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], lines[2].replace(told, lie, 1), *lines[3:]]) + "\n")
    with Checkpoint(path, ASKED) as kept:
        assert sorted(kept.done) == [0, 2]
    assert "line 3: it is not what was written" in caplog.text


def test_records_that_the_caller_refuses_are_kept_aside(tmp_path):
    path = tmp_path / "rows"
    write(path)

    def check(row, record):
        if record["cost"] > 0.5:
            raise DataError("too dear")

    with Checkpoint(path, ASKED, check) as kept:
        assert sorted(kept.done) == [0, 1]
    assert b"0.666" in (tmp_path / "rows.unreadable").read_bytes()


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(DataError, match=r"cannot write .*: No such file"), Checkpoint(tmp_path / "no" / "rows", ASKED):
        pass


def test_a_row_that_finds_no_room_is_not_kept(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with Checkpoint(tmp_path / "rows", ASKED) as kept:
        kept.add(0, {"status": "optimal"})
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(DataError, match=r"the disk is full\. The finished rows are kept"):
                kept.add(1, {"status": "optimal"})
        assert sorted(kept.done) == [0]
    monkeypatch.setattr(os, "write", full)  # of a file in which there is nothing yet, nothing is kept
    with pytest.raises(DataError, match=r"the disk is full$"), Checkpoint(tmp_path / "new", ASKED):
        pass
    monkeypatch.undo()
    with Checkpoint(tmp_path / "rows", ASKED) as kept:
        assert sorted(kept.done) == [0]


def test_without_a_path_rows_are_kept_in_memory():
    with Checkpoint(None, {}) as kept:
        kept.add(5, {"status": "optimal"})
    assert kept.done == {5: {"status": "optimal"}}

"""Finished rows in a file, so that an interrupted batch goes on where it stopped."""

from __future__ import annotations

import json
import logging
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from ocf.errors import DataError
from ocf.support.documents import as_table, fit, keep_aside, parse_json
from ocf.support.schemas import HeadSchema, RowSchema

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

#: Of the first line of a checkpoint file.
SCHEMA = "ocf.checkpoint/2"


class Checkpoint:
    """A file with one line of JSON for each finished row; without a path it keeps the rows in memory only.

    Each line is written and flushed as its row finishes. A last line that was cut off when the process died is
    dropped when the file is opened again. Any other line that cannot be read, or that differs from what was written, is
    reported and moved to the file ``NAME.unreadable`` beside it, so that its row is done again and nothing is lost.
    Where the system has locks of files (not on Windows), one process at a time uses it.

    Parameters
    ----------
    path : str or Path, optional
    fingerprint : str
        Of everything that the rows depend on. A file of another fingerprint is refused, never overwritten.
    check : callable, optional
        Row and record -> None; raises a DataError where the record cannot be one of these rows.

    Attributes
    ----------
    done : dict of int to dict
        Records of the finished rows.

    Raises
    ------
    DataError
        The file belongs to another question, its first line is damaged, another process uses it, or it cannot be
        written.
    """

    def __init__(
        self,
        path: str | Path | None,
        fingerprint: str,
        check: Callable[[int, dict[str, Any]], None] | None = None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.done: dict[int, dict[str, Any]] = {}
        self._fingerprint = fingerprint
        self._check = check
        self._file: IO[str] | None = None

    def __enter__(self) -> Checkpoint:
        if self.path is None:
            return self
        try:
            self._file = self._own(self.path)
            kept = self._read(self.path.read_bytes())
            if self.path.stat().st_size != len(kept):
                self._file = self._keep_only(kept, self._file)
            if not kept:
                self._write({"schema": SCHEMA, "fingerprint": self._fingerprint})
        except BaseException as error:
            self._close()
            if not isinstance(error, OSError):
                raise
            raise DataError(f"cannot use the checkpoint {self.path}: {error.strerror or error}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            _release(self._file)
            self._file = None

    def add(self, row: int, record: Mapping[str, Any]) -> None:
        """Keep the record of a finished row.

        Parameters
        ----------
        row : int
            Position in the batch.
        record : mapping
            JSON-ready.
        """
        self.done[row] = dict(record)
        if self._file is not None:
            line = {"row": row, **record}
            self._write({**line, "check": _checksum(line)})

    def _write(self, data: Mapping[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(data, allow_nan=False) + "\n")
        self._file.flush()

    def _own(self, path: Path) -> IO[str]:
        """Open a file to go on with, which nobody else goes on with meanwhile."""
        while True:
            file = path.open("a", encoding="utf-8")
            try:
                if _locked(file) and not (path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())):
                    file.close()
                    continue  # who had it has replaced it
                return file
            except BlockingIOError:
                file.close()
                raise DataError(
                    f"the checkpoint {self.path} is in use, by another process or thread: wait for its end, or give "
                    "another path"
                ) from None
            except BaseException:
                file.close()
                raise

    def _keep_only(self, kept: bytes, opened: IO[str]) -> IO[str]:
        """Leave nothing but these bytes in the file; what was there is there until they are on the disk."""
        assert self.path is not None
        path = self.path.with_name(self.path.name + ".new")
        with path.open("wb") as file:
            file.write(kept)
            file.flush()
            os.fsync(file.fileno())
        if fcntl is None:  # Windows replaces no open files
            opened.close()
            path.replace(self.path)
            return self._own(self.path)
        fresh = self._own(path)  # before anyone can see it
        try:
            path.replace(self.path)
        except BaseException:
            _release(fresh)
            raise
        _release(opened)
        return fresh

    def _read(self, data: bytes) -> bytes:
        """Take over the whole lines; returns those that can be read."""
        assert self.path is not None
        whole = data[: data.rfind(b"\n") + 1]
        if not whole and data.strip():
            raise self._foreign()
        head, *lines = whole.split(b"\n")[:-1] or [b""]
        if not whole:
            return b""
        self._check_head(head)
        rows = [self._row(line, f"{self.path}, line {number}") for number, line in enumerate(lines, 2)]
        twice = {row for row, lines_of in self._lines_of(rows, lines).items() if len(lines_of) > 1}
        for row in sorted(twice):
            logger.warning("%s: row %d has several records: they are put aside, and it is done again", self.path, row)
            del self.done[row]
        bad = [line for row, line in zip(rows, lines, strict=True) if row is None or row in twice]
        if bad:
            keep_aside(self.path, bad)
            logger.warning("%d lines of %s are moved to %s.unreadable", len(bad), self.path, self.path.name)
        good = [line for row, line in zip(rows, lines, strict=True) if row is not None and row not in twice]
        return b"".join(line + b"\n" for line in (head, *good))

    @staticmethod
    def _lines_of(rows: Sequence[int | None], lines: Sequence[bytes]) -> dict[int, set[bytes]]:
        """Distinct lines of each row."""
        found: dict[int, set[bytes]] = {}
        for row, line in zip(rows, lines, strict=True):
            if row is not None:
                found.setdefault(row, set()).add(line)
        return found

    def _row(self, line: bytes, where: str) -> int | None:
        """Row of a line whose record is taken over; None where it cannot be read."""
        try:
            return self._take(line, where)
        except DataError as error:
            logger.warning("%s: its row is done again", error)
            return None

    def _check_head(self, line: bytes) -> None:
        try:
            head = fit(parse_json(line, "the first line"), HeadSchema, "the first line")
        except DataError:
            raise self._foreign() from None
        if head.schema != SCHEMA:
            raise self._foreign()
        if head.fingerprint != self._fingerprint:
            raise DataError(
                f"the checkpoint {self.path} belongs to other data, another model or other settings: give "
                "another path, or delete it. A model with a random_state is the same on every fit"
            )

    def _take(self, line: bytes, where: str) -> int:
        """Take over the record of a line, and return its row.

        Raises
        ------
        DataError
            It is none.
        """
        record = dict(as_table(parse_json(line, where), where))
        if record.pop("check", None) != _checksum(record):
            raise DataError(f"{where}: it is not what was written")
        row = fit(record, RowSchema, where).row
        del record["row"]
        if self._check is not None:
            try:
                self._check(row, record)
            except DataError as error:
                raise DataError(f"{where}: {error}") from None
        self.done[row] = record
        return row

    def _foreign(self) -> DataError:
        return DataError(
            f"{self.path} is no checkpoint of this version of ocf, or its first line is damaged: give another path"
        )


def _locked(file: IO[str]) -> bool:
    """Keep a file from others until it is released; raises BlockingIOError where somebody has it.

    Returns
    -------
    bool
        Whether it is kept: some systems and some file systems have no locks.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        logger.debug("%s is not locked: %s", file.name, error)
        return False
    return True


def _release(file: IO[str]) -> None:
    """Close a file for all: a process that forked from this one may have it open still."""
    with file:
        file.flush()
        if fcntl is not None:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)


def _checksum(line: dict[str, Any]) -> int:
    """Of what a line says."""
    return zlib.crc32(json.dumps(line).encode())

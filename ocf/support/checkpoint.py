"""Finished rows in a file, so that an interrupted batch goes on where it stopped."""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ocf.errors import DataError
from ocf.support.documents import as_table, fit, parse_json
from ocf.support.journal import Journal
from ocf.support.messages import listed
from ocf.support.schemas import HeadSchema, RowSchema

logger = logging.getLogger(__name__)

#: How many of the parts that differ are named.
MOST_NAMES = 4

#: Of the first line of a checkpoint file.
SCHEMA = "ocf.checkpoint/3"


class Checkpoint:
    """A file with one line of JSON for each finished row; without a path it keeps the rows in memory only.

    Each line is written and flushed as its row finishes. A last line that was cut off when the process died is
    dropped when the file is opened again. Any other line that cannot be read, or that differs from what was written, is
    reported and moved to the file ``NAME.unreadable`` beside it, so that its row is done again and nothing is lost.
    Where the system has locks of files (not on Windows), one process at a time uses it.

    Parameters
    ----------
    path : str or Path, optional
    fingerprint : mapping of str to str
        Digests of all that the rows depend on, by what it is, in words; what may follow from the rest comes last. A
        file of another fingerprint is refused, never overwritten.
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
        fingerprint: Mapping[str, str],
        check: Callable[[int, dict[str, Any]], None] | None = None,
    ) -> None:
        self.path = None if path is None else Path(path)
        self.done: dict[int, dict[str, Any]] = {}
        self._fingerprint = dict(fingerprint)
        self._check = check
        self._journal: Journal | None = None

    def __enter__(self) -> Checkpoint:
        if self.path is None:
            return self
        who = "another process or thread: wait for its end, or give another path"
        self._journal = Journal(self.path, f"the checkpoint {self.path} is in use, by {who}")
        try:
            self._journal.clean(self._read(self._journal))
            if not self._journal.lines:
                self._write(self._journal, {"schema": SCHEMA, "fingerprint": self._fingerprint})
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def add(self, row: int, record: Mapping[str, Any]) -> None:
        """Keep the record of a finished row.

        Parameters
        ----------
        row : int
            Position in the batch.
        record : mapping
            JSON-ready.

        Raises
        ------
        DataError
            It cannot be written; see `ocf.support.journal.Journal.append`.
        """
        if self._journal is not None:
            line = {"row": row, **record}
            self._write(self._journal, {**line, "check": _checksum(line)})
        self.done[row] = dict(record)

    @staticmethod
    def _write(journal: Journal, data: Mapping[str, Any]) -> None:
        journal.append(json.dumps(data, allow_nan=False).encode())

    def _read(self, journal: Journal) -> list[bytes]:
        """Take over the lines that can be read; returns the others."""
        if not journal.lines:
            if journal.tail.strip():
                raise self._foreign()
            return []
        head, *lines = journal.lines
        self._check_head(head)
        rows = [self._row(line, f"{self.path}, line {number}") for number, line in enumerate(lines, 2)]
        twice = {row for row, lines_of in self._lines_of(rows, lines).items() if len(lines_of) > 1}
        for row in sorted(twice):
            logger.warning("%s: row %d has several records: they are put aside, and it is done again", self.path, row)
            del self.done[row]
        return [line for row, line in zip(rows, lines, strict=True) if row is None or row in twice]

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
                f"the checkpoint {self.path} belongs to another question, different in {self._differing(head)}: "
                "give another path, or delete it. A model with a random_state is the same on every fit"
            )

    def _differing(self, head: HeadSchema) -> str:
        """What of the fingerprint is not that of a file, in words; the last part only where nothing else is."""
        own = self._fingerprint
        names = [name for name, digest in own.items() if head.fingerprint.get(name) != digest]
        return listed([name for name in names if name != [*own][-1]] or names or ["its kind"], MOST_NAMES)

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


def _checksum(line: dict[str, Any]) -> int:
    """Of what a line says."""
    return zlib.crc32(json.dumps(line).encode())

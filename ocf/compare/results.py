"""The results file: one JSON line for each thing that is known, appended as it comes and never changed.

A line that cannot be read is reported and left out; whoever appends to the file moves such lines to
``results.jsonl.unreadable`` beside it and does their runs again.

The first line is the suite; then come ``session`` lines (date, command), ``machine`` lines, ``case`` lines (an
ensemble that was prepared), ``skipped`` lines (what could not be run), one line for each ``run`` and ``relaxation``,
and a ``finished`` line behind all that was asked for. A line is on the disk before the next run begins.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from ocf.compare.schemas import LINES
from ocf.errors import DataError
from ocf.support.documents import as_table, fit, parse_json
from ocf.support.journal import Journal
from ocf.support.json_dtypes import plain

logger = logging.getLogger(__name__)

#: Of the results file's first line.
SCHEMA = "ocf.compare/1"

#: Name of the results file in its folder.
FILE = "results.jsonl"


@dataclass(frozen=True)
class Results:
    """What a results file holds.

    Attributes
    ----------
    path : Path
    lines : list of dict
        In the order in which they were written.
    checksum : str
        SHA-256 of the file.
    unreadable : tuple of bytes
        Lines that are left out because they cannot be read.
    """

    path: Path
    lines: list[dict[str, Any]]
    checksum: str
    unreadable: tuple[bytes, ...] = ()

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Lines of one kind."""
        return [line for line in self.lines if line["kind"] == kind]

    @property
    def suite(self) -> dict[str, Any]:
        """The first line."""
        return self.lines[0]


def read(folder: str | Path) -> Results:
    """Read the results in a folder; lines that cannot be read are left out, with a warning for each.

    Raises
    ------
    DataError
        There are none, or the first line is damaged.
    """
    path = Path(folder)
    path = path / FILE if path.is_dir() else path
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"there are no results in {folder}: cannot read {path} ({error.strerror or error})") from None
    whole, _, rest = content.rpartition(b"\n")
    texts = whole.split(b"\n") if whole else []
    lines, unreadable = [_first(texts[0] if texts else b"", path)], []
    for number, text in enumerate(texts[1:], 2):
        try:
            lines.append(_line(text, f"{path}, line {number}"))
        except DataError as error:
            unreadable.append(text)
            logger.warning("%s: the line is left out; if it is a run, the same command runs it again", error)
    if rest:
        logger.warning("%s: the last line was cut off and is left out; that run will be run again", path)
    return Results(path, lines, hashlib.sha256(content).hexdigest(), tuple(unreadable))


def _first(text: bytes, path: Path) -> dict[str, Any]:
    """The line of the suite."""
    nothing = DataError(f"{path} does not hold results of ocf compare (schema {SCHEMA!r})")
    try:
        line = parse_json(text, f"{path}, line 1")
    except DataError as error:
        raise (error if text.startswith(b"{") else nothing) from None
    if not isinstance(line, dict) or line.get("schema") != SCHEMA or line.get("kind") != "suite":
        raise nothing
    fit(line, LINES["suite"], f"{path}, line 1")
    return line


def _line(text: bytes, where: str) -> dict[str, Any]:
    """Any other line."""
    line = dict(as_table(parse_json(text, where), where))
    kind = line.get("kind")
    if not isinstance(kind, str) or kind not in LINES or kind == "suite":
        raise DataError(f"{where}: {str(kind)[:40]!r} is no kind of line")
    fit(line, LINES[kind], where)
    return line


class Writer:
    """Appends lines to the results file of a folder, which it makes if need be; a context manager.

    Parameters
    ----------
    folder : Path
    suite : dict
        First line of a new file: ``name, fingerprint, suite``.

    Attributes
    ----------
    lines : list of dict
        What the file held when it was opened.

    Raises
    ------
    DataError
        The folder holds results of another suite, another process writes to it, or it cannot be written.
    """

    def __init__(self, folder: Path, suite: Mapping[str, Any]) -> None:
        self.path = folder / FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot write {self.path}: {error.strerror or error}") from None
        self._journal = Journal(self.path, f"another ocf compare is writing to {self.path}: wait for it, or give -o")
        try:
            self.lines = self._existing(suite)
        except BaseException:
            self._journal.close()
            raise

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.close()

    def _existing(self, suite: Mapping[str, Any]) -> list[dict[str, Any]]:
        if not self._journal.lines:
            self._journal.clean(())  # not even the first line was finished
            self.add({"kind": "suite", "schema": SCHEMA, **suite})
            return []
        found = read(self.path)
        if found.suite["fingerprint"] != suite["fingerprint"]:
            raise DataError(
                f"{self.path} holds results of another suite ({found.suite['name']!r}, fingerprint "
                f"{found.suite['fingerprint']}, not {suite['fingerprint']}): give another folder with -o, or delete it"
            )
        self._journal.clean(found.unreadable)
        return found.lines

    def add(self, line: Mapping[str, Any]) -> None:
        """Append one line; when this returns, it is on the disk.

        Raises
        ------
        DataError
            The disk is full, or the like; what was there before is still there.
        """
        data = json.dumps(plain(line), ensure_ascii=False, allow_nan=False)
        self._journal.append(data.encode(), sync=True)

"""Finished rows in a file, so that an interrupted batch goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from ocf.errors import DataError

#: Of the first line of a checkpoint file.
SCHEMA = "ocf.checkpoint/1"


class Checkpoint:
    """A file with one line of JSON for each finished row; without a path it keeps the rows in memory only.

    Each line is written and flushed as its row finishes. A last line that was cut off when the process died is
    dropped when the file is opened again.

    Parameters
    ----------
    path : str or Path, optional
    fingerprint : str
        Of everything that the rows depend on. A file of another fingerprint is refused, never overwritten.

    Attributes
    ----------
    done : dict of int to dict
        Records of the finished rows.

    Raises
    ------
    DataError
        The file belongs to another question, is damaged, or cannot be written.
    """

    def __init__(self, path: str | Path | None, fingerprint: str) -> None:
        self.path = None if path is None else Path(path)
        self.done: dict[int, dict[str, Any]] = {}
        self._fingerprint = fingerprint
        self._file: IO[str] | None = None

    def __enter__(self) -> Checkpoint:
        if self.path is None:
            return self
        try:
            kept = self._read(self.path.read_bytes()) if self.path.exists() else 0
            self._file = self.path.open("a", encoding="utf-8")
            self._file.truncate(kept)
            if not kept:
                self._write({"schema": SCHEMA, "fingerprint": self._fingerprint})
        except OSError as error:
            raise DataError(f"cannot use the checkpoint {self.path}: {error.strerror or error}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def add(self, row: int, record: Mapping[str, Any]) -> None:
        """Keep the record of a finished row."""
        self.done[row] = dict(record)
        if self._file is not None:
            self._write({"row": row, **record})

    def _write(self, data: Mapping[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(data, allow_nan=False) + "\n")
        self._file.flush()

    def _read(self, data: bytes) -> int:
        """Take over the whole lines; returns how many bytes they are."""
        whole = data[: data.rfind(b"\n") + 1]
        if not whole and data.strip():
            raise self._damaged(0)
        for number, line in enumerate(whole.splitlines()):
            try:
                record = json.loads(line)
                if number:
                    self.done[int(record.pop("row"))] = record
                elif record["schema"] != SCHEMA:
                    raise self._damaged(0)
                elif record["fingerprint"] != self._fingerprint:
                    raise DataError(
                        f"the checkpoint {self.path} belongs to other data, another model or other settings: give "
                        "another path, or delete it. A model with a random_state is the same on every fit"
                    )
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                if isinstance(error, DataError):
                    raise
                raise self._damaged(number) from None
        return len(whole)

    def _damaged(self, number: int) -> DataError:
        return DataError(f"{self.path} is no checkpoint of ocf, or line {number + 1} of it is damaged: delete it")

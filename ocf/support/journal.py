"""Files of lines that only grow, written by one process at a time, in which nothing finished is lost."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path

from ocf.errors import DataError
from ocf.support.documents import keep_aside

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)


class Journal:
    """Appends lines to a file, which is made if need be. What the lines say is for its users to check.

    Where the system has locks of files (not on Windows), one process or thread at a time has it.

    Parameters
    ----------
    path : Path
    in_use : str
        What the error says where somebody else has it.

    Attributes
    ----------
    lines : list of bytes
        Whole lines that it held when it was opened.
    tail : bytes
        What was cut off behind them when its writer died.

    Raises
    ------
    DataError
        Somebody else has the file, or it cannot be read or written.
    """

    def __init__(self, path: Path, in_use: str) -> None:
        self.path = path
        self._in_use = in_use
        with _telling(path):
            self._file = self._own(path)
            try:
                # a device has no size, and no end
                content = path.read_bytes() if self._size else b""
            except BaseException:
                self.close()
                raise
        *self.lines, self.tail = content.split(b"\n")

    def close(self) -> None:
        """Leave the file to others."""
        _release(self._file)

    def clean(self, bad: Sequence[bytes]) -> None:
        """Drop the tail, and move bad lines to the file ``NAME.unreadable`` beside this one; the first line stays.

        Parameters
        ----------
        bad : sequence of bytes

        Raises
        ------
        DataError
            It cannot be done; what was there is still there.
        """
        with _telling(self.path):
            if bad:
                aside, others = keep_aside(self.path, bad), set(self.lines).difference(bad)
                self._rewrite([*self.lines[:1], *filter(others.__contains__, self.lines[1:])])
                logger.warning("%d lines of %s are moved to %s", len(bad), self.path, aside.name)
            elif self.tail:
                os.ftruncate(self._file.fileno(), self._size - len(self.tail))

    def append(self, line: bytes, *, sync: bool = False) -> None:
        """Append a line, or nothing.

        Parameters
        ----------
        line : bytes
            Without its end.
        sync : bool
            Whether it is to be on the disk when this returns.

        Raises
        ------
        DataError
            The disk is full, or the like; what was there before is still there.
        """
        before, rest = self._size, line + b"\n"
        kept = ". The finished rows are kept; do the same again, once there is room, to go on" if before else ""
        with _telling(self.path, kept):
            try:
                while rest:
                    rest = rest[os.write(self._file.fileno(), rest) :]
                if sync:
                    os.fsync(self._file.fileno())
            except BaseException:
                with suppress(OSError):
                    os.ftruncate(self._file.fileno(), before)
                raise

    @property
    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _own(self, path: Path) -> FileIO:
        """Open a file to append to, which nobody else appends to meanwhile."""
        while True:
            with ExitStack() as opened:
                file = opened.enter_context(path.open("a+b", buffering=0))
                try:
                    locked = _lock(file)
                except BlockingIOError:
                    raise DataError(self._in_use) from None
                if not locked or (path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())):
                    opened.pop_all()
                    return file  # else who had it has replaced it

    def _rewrite(self, lines: Sequence[bytes]) -> None:
        """Put a file of these lines in the place of this one, which is there until they are on the disk."""
        own = self.path.resolve()  # where a link leads
        path = own.with_name(own.name + ".new")
        with path.open("wb") as file:
            file.writelines(line + b"\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        if fcntl is None:  # Windows replaces no open files
            self.close()
            path.replace(own)
            self._file = self._own(self.path)
            return
        fresh = self._own(path)  # before anyone can see it
        try:
            path.replace(own)
        except BaseException:
            _release(fresh)
            raise
        self.close()
        self._file = fresh


@contextmanager
def _telling(path: Path, then: str = "") -> Iterator[None]:
    """Errors of the system, as errors that name the file."""
    try:
        yield
    except OSError as error:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or error
        raise DataError(f"cannot write {path}: {reason}{then}") from None


def _lock(file: FileIO) -> bool:
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


def _release(file: FileIO) -> None:
    """Close a file for all: a process that forked from this one may have it open still."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)
    file.close()

"""A program of others that runs beside a comparison: lines of JSON in and out, under limits of time and memory."""

from __future__ import annotations

import json
import math
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import psutil

from ocf.compare import endings
from ocf.errors import OcfError
from ocf.support.documents import parse_json

#: Seconds between two looks at the memory of a program and of what it has started.
LOOK = 0.1

#: Bytes of an answer beyond which a program is killed.
MOST_BYTES = 1 << 24

#: Most characters of what a program said that a message repeats.
MOST_SAID = 120


class Ended(Exception):
    """A program did not answer: how it ended, as `ocf.compare.server.forked` names it, and a message."""

    def __init__(self, end: str, message: str) -> None:
        super().__init__(message)
        self.end = end


class Process:
    """A running program, its standard input and output in lines of JSON.

    Parameters
    ----------
    command : list of str
    folder : str
        In which it runs.
    memory : int
        Bytes of resident memory beyond which it is killed, with what it has started.
    watch : int, optional
        Descriptor whose end means that nobody waits for an answer any more: it is killed, and this process ends.

    Attributes
    ----------
    peak : int
        Most bytes of resident memory at a look.
    used : float
        Seconds of the processor until the last look.

    Raises
    ------
    Ended
        It cannot be started.
    """

    def __init__(self, command: list[str], folder: str, memory: int, watch: int | None = None) -> None:
        self.memory, self.watch = memory, watch
        self.peak, self.used = 0, 0.0
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=folder or None,
                start_new_session=True,  # what it starts is killed with it
            )
        except OSError as error:
            raise Ended("error", f"it cannot be started: {error.strerror or error}") from None
        self._said, self._looked = bytearray(), -math.inf

    @property
    def quiet(self) -> bool:
        """Whether it waits for a line: it runs, and has said nothing that it was not asked."""
        return self._process.poll() is None and not self._said and not self._readable(0.0)

    def ask(self, line: Mapping[str, Any], seconds: float) -> Any:
        """Send a line and wait for the line that answers it.

        Parameters
        ----------
        line : mapping
        seconds : float
            After which it is killed.

        Raises
        ------
        Ended
            It answers no JSON, or not at all; it is killed then.
        """
        deadline = time.monotonic() + seconds
        try:
            self._send(json.dumps(line, ensure_ascii=False).encode() + b"\n", deadline, seconds)
            seen = 0
            while (end := self._said.find(b"\n", seen)) < 0:
                seen = len(self._said)
                if not self._read(deadline, seconds):
                    raise Ended("crash", self._ending())
            said = bytes(self._said[:end])
            del self._said[: end + 1]
            return parsed(said)
        except BaseException:
            self.kill()
            raise

    def rest(self, seconds: float) -> Any:
        """All that it prints until it ends, as JSON.

        Parameters
        ----------
        seconds : float
            After which it is killed.

        Raises
        ------
        Ended
        """
        deadline, reaped = time.monotonic() + seconds, _children_cpu_seconds()
        try:
            while self._read(deadline, seconds):
                pass
            if self._process.wait(max(deadline - time.monotonic(), LOOK)) or not self._said:
                raise Ended("crash", self._ending())
            return parsed(bytes(self._said))
        except subprocess.TimeoutExpired:
            raise _timed_out(seconds) from None
        finally:
            self.kill()
            self.used = max(self.used, _children_cpu_seconds() - reaped)

    def _send(self, data: bytes, deadline: float, seconds: float) -> None:
        """Write without waiting for ever for a program that does not read."""
        assert self._process.stdin is not None
        pipe = self._process.stdin.fileno()
        os.set_blocking(pipe, False)
        while data:
            _, ready, _ = select.select([], [pipe], [], LOOK)
            try:
                data = data[os.write(pipe, data) :] if ready else data
            except BrokenPipeError:
                raise Ended("crash", self._ending()) from None
            if time.monotonic() > deadline:
                raise _timed_out(seconds)

    def _readable(self, seconds: float) -> bool:
        assert self._process.stdout is not None
        looked_at = [self._process.stdout.fileno()] + ([] if self.watch is None else [self.watch])
        ready, _, _ = select.select(looked_at, [], [], seconds)
        if self.watch in ready:
            self.kill()
            sys.exit(0)
        return looked_at[0] in ready

    def _read(self, deadline: float, seconds: float) -> bool:
        """Read what it says; False when it has closed its output. Looks after time and memory meanwhile."""
        assert self._process.stdout is not None
        if self._readable(LOOK):
            chunk = os.read(self._process.stdout.fileno(), 1 << 20)
            self._said += chunk
            if not chunk:
                return False
            if len(self._said) > MOST_BYTES:
                raise Ended("error", f"it wrote more than {MOST_BYTES:,} bytes for an answer")
        now = time.monotonic()
        if now > self._looked + LOOK:
            self._looked = now
            if self.look() > self.memory:
                raise Ended("memory", endings.large(self.memory))
        if now > deadline:
            raise _timed_out(seconds)
        return True

    def look(self) -> int:
        """Bytes of resident memory, of it and of what it has started; `peak` and `used` are brought up to date."""
        held, used = 0, 0.0
        with suppress(psutil.Error):
            own = psutil.Process(self._process.pid)
            for process in (own, *own.children(recursive=True)):
                with suppress(psutil.Error), process.oneshot():
                    held += process.memory_info().rss
                    used += sum(process.cpu_times()[:4])
        self.peak, self.used = max(self.peak, held), max(self.used, used)
        return held

    def _ending(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        code = self._process.poll()
        return "it closed its output without an answer" if code is None else endings.crashed("program", code)

    def kill(self) -> None:
        """End it and what it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


def _children_cpu_seconds() -> float:
    """Seconds of the processor that ended processes of this one have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _timed_out(seconds: float) -> Ended:
    return Ended("timeout", endings.late(seconds))


def parsed(said: bytes) -> Any:
    """JSON that a program said.

    Raises
    ------
    Ended
        It is none.
    """
    try:
        return parse_json(said, "the answer")
    except OcfError:
        raise Ended("error", f"it answered no JSON: {short(said.decode(errors='replace').strip())!r}") from None


def short(text: str, most: int = MOST_SAID) -> str:
    """The beginning of what a program said.

    Parameters
    ----------
    text : str
    most : int
        Characters that are left.
    """
    return text if len(text) <= most else text[:most] + "…"

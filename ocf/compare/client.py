"""The client's side of run servers: started when needed, kept for the next run, replaced when they die."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from typing import Any

from ocf.compare.keys import checksum, plain
from ocf.compare.recipes import Recipe
from ocf.errors import OcfError

#: Threads of numerical libraries in a run; the solver's are the method's own.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

#: Servers that are kept waiting in one process.
MOST_IDLE = 2


class ServerError(OcfError, RuntimeError):
    """A run server failed before it could run anything."""


class Client:
    """A server process for one case.

    Parameters
    ----------
    recipe : Recipe
    folder : str, optional
        Of data sets.

    Attributes
    ----------
    case, machine : dict
        As the server describes them.

    Raises
    ------
    ServerError
        The case cannot be prepared; the message says why.
    """

    def __init__(self, recipe: Recipe, folder: str | None) -> None:
        self.key = _key(recipe, folder)
        self._noise = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        environment = os.environ | dict.fromkeys(THREADS, "1")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ocf.compare.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._noise,
            env=environment,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the client to deal with
        )
        answer = self.ask({"recipe": plain(recipe), "folder": folder})
        self.case, self.machine = answer["case"], answer["machine"]

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for the answer.

        Raises
        ------
        ServerError
            The server says that it failed, or died.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request, ensure_ascii=False) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        except BaseException:  # Ctrl-C above all: the answer would be taken for that to the next request
            self.close()
            raise
        if not line:
            code, said = self._process.wait(), self._last_stderr_line()
            self.close()
            raise ServerError(f"the process that prepares runs died (exit code {code}){said}")
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            self.close()
            raise ServerError(answer["failed"])
        return answer

    def _last_stderr_line(self) -> str:
        self._noise.seek(0)
        lines = self._noise.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1][:300]}" if lines else ""

    def close(self) -> None:
        """End the server and what it runs."""
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._noise.close()


# -- servers that wait for the next run of this process --------------------------------------------------------

#: Servers that wait, the longest first.
idle: list[Client] = []
_lock = threading.Lock()


def _key(recipe: Recipe, folder: str | None) -> str:
    return checksum([recipe, folder])


@contextlib.contextmanager
def borrowed(recipe: Recipe, folder: str | None) -> Any:
    """A client for a case, from those of this process that wait, or a new one; kept afterwards.

    Parameters
    ----------
    recipe : Recipe
    folder : str or None
        Of data sets.
    """
    client = None
    with _lock:
        for waiting in idle:
            if waiting.key == _key(recipe, folder):
                client = waiting
                idle.remove(waiting)
                break
    client = client or Client(recipe, folder)
    yield client  # one that fails closes itself and is not put back
    with _lock:
        idle.append(client)
        surplus = [idle.pop(0) for _ in range(len(idle) - MOST_IDLE)]
    for old in surplus:
        old.close()


@atexit.register
def close_all() -> None:
    """End the servers that wait."""
    with _lock:
        while idle:
            idle.pop().close()

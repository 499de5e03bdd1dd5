"""The process behind runs: it loads a case once, and forks a process of its own for every run.

    python -m ocf.compare.server

Requests come on stdin and answers leave on stdout, one JSON line each; the first request names the case. The forked
process inherits the libraries, the compiled kernels and the case, so no run pays for them; the server itself never
solves anything, so that no run inherits a solver's threads or state. A run that exceeds its time or memory is killed;
one that crashes takes nothing else with it. When stdin ends, which it does however the client ends, the server stops
its run and ends too.

Not `multiprocessing`: its processes may not have children where they are daemons, as the workers of a Dask cluster are,
and its fork server starts the user's script again. Each run of its would also load the case: 100 trees on breast_cancer
took 5 to 9 s to load and warm up, a fork of the process that holds them 30 ms. And it does not tell the peak memory of
a process that was killed.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import psutil

from ocf.compare import endings

#: Seconds between two looks at a run's memory.
POLL = 0.02

#: Seconds that the compilation of all kernels may take, once on a machine.
REHEARSAL = 120.0

#: ``prctl`` option of Linux: a signal for when the parent dies.
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve requests until stdin ends."""
    # what libraries print must not get between the answers
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    server = None
    with ExitStack() as ending:
        for line in iter(_requests(0).readline, ""):
            request = json.loads(line)
            try:
                if server is None:
                    server = Server(request)
                    ending.callback(server.close)
                    answer: dict[str, Any] = server.describe()
                elif request["kind"] == "rows":
                    answer = {"rows": server.case.waiting(request["target"], request["count"])}
                else:
                    answer = server.run(request)
            except Exception as error:
                answer = {"failed": _message(error)}
            print(json.dumps(answer, ensure_ascii=False), file=answers, flush=True)


def _requests(fd: int) -> Any:
    # unbuffered below the text layer, so that `select` on the descriptor tells the truth
    return open(fd, encoding="utf-8", buffering=1, closefd=False)


def _message(error: BaseException) -> str:
    from ocf.errors import OcfError
    from ocf.support.messages import internal

    if isinstance(error, OcfError):
        return str(error)
    traceback.print_exc()
    return internal(error)


class Server:
    """One case, and runs on it.

    Parameters
    ----------
    request : dict
        ``recipe`` and ``folder``, as `ocf.compare.recipes.prepare` takes them.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        from ocf.compare import runs
        from ocf.compare.programs import Programs
        from ocf.compare.recipes import Recipe, prepare

        recipe = Recipe(**(request["recipe"] | {"drop": tuple(request["recipe"]["drop"])}))
        self.case = prepare(recipe, request["folder"])
        self._runs = runs
        self._programs = Programs(self.case, watch=0)
        self._warm = False

    def describe(self) -> dict[str, Any]:
        """Facts of the case and of this machine."""
        from ocf.compare.machine import machine

        return {"case": self.case.facts, "machine": machine()}

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """One run in a process of its own, checked when it has ended."""
        outcome = self._of_program(request) if "program" in request else self._forked(request)
        if outcome["end"] == "done" and request["kind"] == "run":
            outcome["verification"] = self._runs.check(self.case, request, outcome["value"])
        return outcome

    def _of_program(self, request: dict[str, Any]) -> dict[str, Any]:
        noise = _file_position(2)
        outcome = self._runs.ask_program(self.case, request, self._programs)
        if outcome["end"] == "crash" or (outcome["end"] == "error" and outcome["value"] is None):
            outcome["message"] += _tail(noise)
        return outcome

    def close(self) -> None:
        """End the programs that wait for instances."""
        self._programs.close()

    def _forked(self, request: dict[str, Any]) -> dict[str, Any]:
        if not self._warm:
            self._rehearse(request)
            self._runs.warm_up(self.case, request)
            self._warm = True
            gc.collect()
            gc.freeze()  # or the collector of the first run would touch, and so copy, every page
        self._runs.settle(self.case, request)
        limits = request["limits"]
        work = self._runs.relaxation if request["kind"] == "relaxation" else self._runs.explain
        noise = _file_position(2)
        outcome = forked(lambda: work(self.case, request), limits["time"] + limits["grace"], limits["memory"], watch=0)
        if outcome["end"] == "crash":
            outcome["message"] += _tail(noise)
        return outcome

    def _rehearse(self, request: dict[str, Any]) -> None:
        """Have all kernels compiled, once on a machine."""
        from ocf.compare.recipes import cache_folder, code_checksum

        done = cache_folder() / f"compiled-{code_checksum()}"
        if not done.exists():
            short = request | {"limits": request["limits"] | {"time": 1.0}}
            forked(lambda: self._runs.rehearsal(self.case, short), REHEARSAL, request["limits"]["memory"], watch=0)
            with suppress(OSError):
                done.parent.mkdir(parents=True, exist_ok=True)
                done.touch()


def forked(work: Callable[[], Any], seconds: float, memory: int, watch: int | None = None) -> dict[str, Any]:
    """Do some work in a forked process under limits.

    Parameters
    ----------
    work : callable
        Returns something JSON-ready.
    seconds : float
        Wall time after which the process is killed.
    memory : int
        Bytes of resident memory beyond which it is killed.
    watch : int, optional
        Descriptor whose end means that nobody waits for the answer any more: the process is killed, and this one ends.

    Returns
    -------
    dict
        ``end`` (``done, error, timeout, memory, crash``), ``value``, ``message``, ``wall`` and ``cpu`` (seconds),
        and ``peak_memory`` (bytes).
    """
    read, write = os.pipe()
    start = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads beside forks: the child uses none of them
        pid = os.fork()
    if pid == 0:
        os.close(read)
        _child(work, write)
    os.close(write)
    try:
        end, text = _read_until_end(pid, read, start + seconds, memory, watch)
    except BaseException:
        _kill(pid)
        raise
    finally:
        os.close(read)
    _, status, usage = os.wait4(pid, 0)
    unit = 1 if sys.platform == "darwin" else 1024
    out = {
        "wall": time.monotonic() - start,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_memory": usage.ru_maxrss * unit,
        "message": "",
        "value": None,
    }
    if end == "ended":
        return out | _ending(text, os.waitstatus_to_exitcode(status))
    return out | {"end": end, "message": endings.late(seconds) if end == "timeout" else endings.large(memory)}


def _child(work: Callable[[], Any], write: int) -> None:
    """The forked process: never returns."""
    code = 1
    try:
        os.setsid()  # what it starts is killed with it
        _die_with_parent()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        try:
            said = {"end": "done", "value": work()}
        except MemoryError:
            said = {"end": "memory", "message": "the memory of the machine is used up"}
        except BaseException as error:
            said = {"end": "error", "message": _message(error)}
        data = json.dumps(said, ensure_ascii=False).encode()
        while data:
            data = data[os.write(write, data) :]
        code = 0
    finally:
        os._exit(code)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _read_until_end(pid: int, read: int, deadline: float, memory: int, watch: int | None) -> tuple[str, bytes]:
    """Read what a process says until it ends or has to be ended."""
    chunks: list[bytes] = []
    looked_at = [read] if watch is None else [read, watch]
    while True:
        ready, _, _ = select.select(looked_at, [], [], POLL)
        if watch in ready:
            _kill(pid)
            sys.exit(0)
        if read in ready:
            chunk = os.read(read, 1 << 20)
            if not chunk:
                return "ended", b"".join(chunks)
            chunks.append(chunk)
        if time.monotonic() > deadline:
            _kill(pid)
            return "timeout", b""
        if resident(pid) > memory:
            _kill(pid)
            return "memory", b""


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def resident(pid: int) -> int:
    """Bytes of resident memory of a process; 0 where it has ended."""
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def _ending(text: bytes, code: int) -> dict[str, Any]:
    try:
        said: dict[str, Any] = json.loads(text)
        return said
    except ValueError:
        pass
    hint = ": the machine may have run out of memory" if -code == signal.SIGKILL else ""
    return {"end": "crash", "message": endings.crashed("process", code) + hint}


def _file_position(fd: int) -> int | None:
    """Where a file is to be written next; None of what is no file."""
    try:
        return os.lseek(fd, 0, os.SEEK_CUR)
    except OSError:
        return None


def _tail(start: int | None) -> str:
    """Last line that was printed to stderr since `start`."""
    if start is None:
        return ""
    with os.fdopen(os.dup(2), "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(start, size - 2000))
        lines = file.read().decode(errors="replace").strip().splitlines()
        file.seek(0, os.SEEK_END)
    return f" ({lines[-1][:200]})" if lines else ""


if __name__ == "__main__":
    main()

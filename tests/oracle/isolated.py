"""A function in a process of its own, with limits on memory and on the processor's time."""

from __future__ import annotations

import faulthandler
import os
import pickle
import resource
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ocf.errors import OcfError

#: Seconds of the processor that a call may take, and of the clock, which only a call that sleeps can meet.
CPU, WALL = 10.0, 300.0

#: Bytes of address space that a call may ask for beyond what its process has.
MEMORY = 2**30


class Ending(NamedTuple):
    """How a call ended.

    Attributes
    ----------
    end : {"done", "refused", "raised", "hang", "memory", "signal"}
        ``refused``: by an `OcfError`.
    value : object
        What it returned.
    words : str
        What it raised, or how it died.
    place : str
        Innermost function of ocf on the way to what it raised.
    """

    end: str
    value: Any = None
    words: str = ""
    place: str = ""


def run_isolated(call: Callable[[], Any], cpu: float = CPU, wall: float = WALL, memory: int = MEMORY) -> Ending:
    """Call a function in a forked child.

    A child that needs more of the processor's time than `cpu` is ended by the system, even inside native code.
    """
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which the child does not use
        pid = os.fork()
    if pid == 0:
        os.close(read)
        _child(call, write, cpu, memory)
    os.close(write)
    said = _said(read, time.monotonic() + wall)
    os.close(read)
    if said is None:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if said is None:
        return Ending("hang", words=f"no end after {wall:g} s of the clock")
    with suppress(EOFError, pickle.UnpicklingError):  # it died while it spoke
        return Ending(*pickle.loads(said))
    if code == -signal.SIGPROF:
        return Ending("hang", words=f"more than {cpu:g} s of the processor")
    died = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return Ending("signal", words=died)


def _said(read: int, deadline: float) -> bytes | None:
    """All that a child says; None where it does not end in time."""
    chunks = []
    while True:
        if not select.select([read], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            return None
        chunk = os.read(read, 1 << 20)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)


def _child(call: Callable[[], Any], write: int, cpu: float, memory: int) -> NoReturn:
    """The child's whole life."""
    try:
        faulthandler.disable()
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, cpu)
        said = pickle.dumps(tuple(_ending(call)))
        while said:
            said = said[os.write(write, said) :]
    finally:
        os._exit(0)


def _ending(call: Callable[[], Any]) -> Ending:
    try:
        return Ending("done", call())
    except OcfError as error:
        return Ending("refused", words=str(error))
    except MemoryError:
        return Ending("memory", words="the memory limit was met", place=_place())
    except BaseException as error:
        return Ending("raised", words=f"{type(error).__name__}: {str(error)[:300]}", place=_place())


def _place() -> str:
    """Innermost function of ocf in the traceback at hand, or of anything without one."""
    frames = traceback.extract_tb(sys.exc_info()[2])
    own = [f for f in frames if "/ocf/" in f.filename and "/site-packages/" not in f.filename] or frames[-1:]
    return f"{Path(own[-1].filename).name}:{own[-1].name}" if own else ""

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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ocf.errors import OcfError

#: Seconds of the processor that a call may take, and of the clock, which only a call that sleeps can meet.
CPU, WALL = 10.0, 300.0

#: Bytes of address space that a call may ask for beyond what its process has.
MEMORY = 2**30

#: Endings after which the process is as good as before.
SOUND = ("done", "refused")

#: Bytes for the length of what a child says.
LENGTH = 8


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
    return run_in_turn([call], cpu, wall, memory)[0]


def run_in_turn(
    calls: Sequence[Callable[[], Any]], cpu: float = CPU, wall: float = WALL, memory: int = MEMORY
) -> list[Ending]:
    """Call functions one after the other in a forked child, each with limits of its own.

    A child serves as long as they end well or are refused; after any other ending the next call gets a new one.
    """
    endings: list[Ending] = []
    while len(endings) < len(calls):
        endings += _endings(calls[len(endings) :], cpu, wall, memory)
    return endings


def _endings(calls: Sequence[Callable[[], Any]], cpu: float, wall: float, memory: int) -> list[Ending]:
    """What one child says of the first calls, the last of which may be how it died."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which the child does not use
        pid = os.fork()
    if pid == 0:
        os.close(read)
        _child(calls, write, cpu, memory)
    os.close(write)
    told: list[Ending] = []
    said: bytes | None = b""
    while len(told) < len(calls) and all(ending.end in SOUND for ending in told[-1:]):
        said = _said(read, time.monotonic() + wall)
        if not said:
            break
        told.append(Ending(*pickle.loads(said)))
    os.close(read)
    if said is None:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if said is None:
        told.append(Ending("hang", words=f"no end after {wall:g} s of the clock"))
    elif not said and code == -signal.SIGPROF:
        told.append(Ending("hang", words=f"more than {cpu:g} s of the processor"))
    elif not said:
        died = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        told.append(Ending("signal", words=died))
    return told


def _said(read: int, deadline: float) -> bytes | None:
    """What a child says next; nothing where it has died, and None where it does not speak in time."""
    length = _bytes(read, LENGTH, deadline)
    return length and _bytes(read, int.from_bytes(length, "big"), deadline)


def _bytes(read: int, count: int, deadline: float) -> bytes | None:
    """So many bytes, as `_said`."""
    got = b""
    while len(got) < count:
        if not select.select([read], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            return None
        chunk = os.read(read, count - len(got))
        if not chunk:
            return b""
        got += chunk
    return got


def _child(calls: Sequence[Callable[[], Any]], write: int, cpu: float, memory: int) -> NoReturn:
    """The child's whole life."""
    try:
        faulthandler.disable()
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        for call in calls:
            ending = _limited(call, cpu, memory)
            said = pickle.dumps(tuple(ending))
            said = len(said).to_bytes(LENGTH, "big") + said
            while said:
                said = said[os.write(write, said) :]
            if ending.end not in SOUND:
                break
    finally:
        os._exit(0)


def _limited(call: Callable[[], Any], cpu: float, memory: int) -> Ending:
    """How a call ends, from which on both limits are counted anew."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_PROF, cpu)
    return _ending(call)


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

"""Model files are opened in a child process first, so that one which crashes its library ends in a sentence.

ocf checks what it reads, but the libraries' own code then runs on it, and a fault there takes the process with it. So
before a command opens a model file, a child of its own loads it, reads its trees and compares them with the library
(`ocf.readers.conformance`, at about 2,000 points of a large model), within limits of memory and time. If the child dies
of a signal or meets a limit, the command ends with exit code 2 and says so. If it ends by itself, whether the model was
good or refused, the command goes on and opens the file as always, and every error it gives is the usual one.

The limits are generous: three quarters of the memory that is free, `cpu_limit` seconds of the processor, and ten times
as long by the clock. On Linux the child is a fork and takes some tenths of a second (0.3 to 0.6 s for a small model,
1 s for 100 trees of 700 nodes); elsewhere a fork is not safe, and a new interpreter takes some seconds. A fork copies
no threads, and OpenMP would wait for ever for those that its parent had, so the child works in a thread of its own.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ocf.errors import ModelError, OcfError

#: What the child may take of the processor, for a file of any size.
CPU_SECONDS = 300

_CPU_SECONDS_PER_MEGABYTE = 2

#: Wall clock beside the processor's: a loaded machine is slow, and a child that waits for something uses none.
WALL_PER_CPU = 10

#: What the child may take of the memory that is free.
MEMORY_SHARE = 0.75

#: Points at which a model is compared.
_POINTS = 2000

#: What the child says when it met the limit of memory without dying of it.
_NO_MEMORY = b"memory"


def rehearse(*paths: Path, trust_pickle: bool = False) -> None:
    """Open model files in a child process and compare the trees that are read with the library.

    Parameters
    ----------
    *paths : Path
        All model files that a command is going to open.
    trust_pickle : bool
        Whether they may be pickles.

    Raises
    ------
    ModelError
        The child crashed, or met a limit of memory or time; the message names the file and the signal or limit.
    """
    for path in paths:
        if path.is_file():  # what is no file gets its error when it is opened
            _rehearse_one(path, trust_pickle)


def cpu_limit(path: Path) -> int:
    """Seconds of the processor that the child may take for a file."""
    return CPU_SECONDS + _CPU_SECONDS_PER_MEGABYTE * (path.stat().st_size // 10**6)


def _rehearse_one(path: Path, trust_pickle: bool) -> None:
    seconds = cpu_limit(path)
    _import_early()
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_open_within_limits, args=(path, trust_pickle, seconds, sender), daemon=True)
    with warnings.catch_warnings():
        # Python warns of forks beside threads; the child uses none of its parent's
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    sender.close()
    try:
        child.join(WALL_PER_CPU * seconds)
        said = _last_word(receiver)
        if child.exitcode is None:
            raise ModelError(f"{path} was not opened within {WALL_PER_CPU * seconds} s: {_REMEDY}")
    finally:
        if child.is_alive():
            child.kill()
            child.join()
        receiver.close()
    if said == _NO_MEMORY:
        raise ModelError(
            f"{path} takes more memory to open than there is: {_REMEDY}, or use a machine with more memory"
        )
    if child.exitcode < 0:
        raise ModelError(f"{path} {_death(-child.exitcode, seconds)}: {_REMEDY}")


_REMEDY = "save the model again; the file is damaged, or made to do harm if it is of unknown origin"


def _import_early() -> None:
    """Import what the command needs anyway, so that a fork has it already."""
    for name in (
        "ocf.models.user_model",
        "ocf.readers.conformance",
        "ocf.readers.files",
        "ocf.readers.isolation",
        *_LIBRARY,
    ):
        import_module(name)


#: Numba and scikit-learn take a second to import; the boosting libraries take less.
_LIBRARY = ("numba", "sklearn.ensemble", "sklearn.pipeline", "sklearn.compose")


def _last_word(receiver: Connection) -> bytes:
    try:
        return receiver.recv_bytes(100) if receiver.poll() else b""
    except (EOFError, OSError):
        return b""


def _death(number: int, seconds: int) -> str:
    if number == getattr(signal, "SIGXCPU", None):
        return f"was not opened within {seconds} s of the processor"
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "unknown"
    return f"crashes the library that opens it (signal {number}, {name})"


# -- in the child ------------------------------------------------------------------------------------------


def _open_within_limits(path: Path, trust_pickle: bool, seconds: int, sender: Connection) -> None:
    """Open a file; the end of the process says how it went."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent, which gets it too, ends the child
    _be_silent()
    _limit(seconds)
    # OpenMP keeps a list of threads for the thread that asks for them; a fork has the list, but not the threads
    worker = threading.Thread(target=_open_and_tell, args=(path, trust_pickle, sender))
    worker.start()
    worker.join()


def _open_and_tell(path: Path, trust_pickle: bool, sender: Connection) -> None:
    try:
        open_model(path, trust_pickle)
    except MemoryError:
        sender.send_bytes(_NO_MEMORY)
    except OcfError as error:
        if isinstance(error.__cause__, MemoryError):
            sender.send_bytes(_NO_MEMORY)
    except Exception:  # the command will meet it itself, and say it
        return


def open_model(path: Path, trust_pickle: bool) -> None:
    """Load a model file, read it, and compare what was read with the library.

    Parameters
    ----------
    path : Path
    trust_pickle : bool
        Whether a pickle may be loaded, which runs code of the file.
    """
    from ocf.models.user_model import as_user_model
    from ocf.readers import linear
    from ocf.readers.conformance import check_conformance
    from ocf.readers.files import load_model
    from ocf.readers.isolation import is_isolation_forest, read_isolation_forest
    from ocf.readers.outputs import n_outputs

    native = load_model(path, trust_pickle=trust_pickle)
    last = native.steps[-1][1] if getattr(native, "steps", None) else native
    if is_isolation_forest(last):
        read_isolation_forest(last)
    elif linear.matches(last):
        linear.read(last)
    else:
        several = n_outputs(native)
        for output in range(several) if several > 1 else [None]:
            check_conformance(as_user_model(native, output=output).trees, most=_POINTS)


def _be_silent() -> None:
    """Let nothing but the parent speak."""
    faulthandler.disable()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


def _limit(seconds: int) -> None:
    """Set limits of memory and of the processor's time, where the system knows them."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    room = _free_memory()
    if room is not None:
        most, hard = int(MEMORY_SHARE * room) + _own_memory(), resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _free_memory() -> int | None:
    """Bytes that a process can get without pressing others out, where the system tells."""
    return _kilobytes(Path("/proc/meminfo"), "MemAvailable")


def _own_memory() -> int:
    """Bytes of data that the process already has; the limit counts them."""
    return _kilobytes(Path("/proc/self/status"), "VmData") or 0


def _kilobytes(path: Path, name: str) -> int | None:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), None)

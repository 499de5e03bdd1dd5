"""Compilation of the kernels: announced when it really happens, and kept on disk wherever there is a place for it.

Importing this module, as every module with kernels does for their decorators, has two effects. Numba gets a
temporary folder for its cache if neither the package nor the user's cache folder can be written, as in a read-only
install without a home, where it would refuse to define a cached function at all. And the first kernel that is
compiled rather than read from that cache is announced, once, as a warning of the logger ``ocf``: it takes a while.
Kernels decorated here are compiled anew when the source of any of them has changed.
"""

from __future__ import annotations

import atexit
import logging
import shutil
import tempfile
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core import event
from numba.core.types.misc import unliteral
from numba.misc.appdirs import AppDirs

logger = logging.getLogger(__name__)

#: What is said. Compiling takes some two minutes in all, half a minute of that for the first row.
MESSAGE = "compiling the search kernels for this machine, once; the first row takes up to a minute longer"

#: The files with kernels, and with the tuples and constants that they are compiled with.
KERNELS = (
    "cells/change_sets.py",
    "cells/incumbent.py",
    "cells/kernels.py",
    "cells/nearby.py",
    "cells/reduction.py",
    "cells/score_sum.py",
    "regional/forest.py",
    "rules/family_kernels.py",
    "rules/points.py",
    "solve/box_reach.py",
    "solve/fitted_rows.py",
    "solvers/box/bitsets.py",
    "solvers/box/branching.py",
    "solvers/box/cliques.py",
    "solvers/box/coupled_bounds.py",
    "solvers/box/dive.py",
    "solvers/box/instance.py",
    "solvers/box/points.py",
    "solvers/box/propagation.py",
    "solvers/box/quadratic.py",
    "solvers/box/relaxation.py",
    "solvers/box/squares.py",
    "solvers/box/sums.py",
    "support/loops.py",
    "support/numba_cache.py",
    "trees/traversal.py",
)


class Announcer(event.Listener):
    """Says once that kernels of this package are being compiled; Numba tells of compilations only, not of loading."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: Any) -> None:
        """Speak up at the first kernel of this package."""
        if not self.said and event.data["dispatcher"].py_func.__module__.partition(".")[0] == "ocf":
            self.said = True
            logger.warning(MESSAGE)

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


def keep_cache(places: Iterable[Path]) -> None:
    """Give Numba a temporary folder for its cache, unless it was given one or finds a place that can be written."""
    if config.CACHE_DIR or any(map(_writable, places)):
        return
    # of its own and for this process only: what is read from a cache is run
    config.CACHE_DIR = tempfile.mkdtemp(prefix="ocf-")
    atexit.register(shutil.rmtree, config.CACHE_DIR, ignore_errors=True)


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


ANNOUNCER = Announcer()

event.register("numba:compile", ANNOUNCER)

keep_cache([Path(__file__).parent / "__pycache__", Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)])


def sources() -> list[Path]:
    """The files with kernels; those of the solvers stand beside the package until it is installed."""
    package = Path(__file__).parents[1]
    return [home / name for name in KERNELS for home in (package, package.parent) if (home / name).exists()]


#: Of the contents of all files with kernels: an entry of the cache is of use to these only.
SOURCES = sha256(b"".join(path.read_bytes() for path in sources())).hexdigest()[:16]


#: The kernels of all modules that were imported, those that Python calls.
CALLED: list[Any] = []


def kernel(function: Callable[..., Any]) -> Any:
    """Decorate a kernel that Python calls and that neither makes nor returns arrays."""
    return _called(function, _nrt=False)


def array_kernel(function: Callable[..., Any]) -> Any:
    """Decorate a kernel that Python calls and that makes arrays."""
    return _called(function, _nrt=True)


def helper(function: Callable[..., Any]) -> Any:
    """Decorate a kernel that only kernels call and that neither makes nor returns arrays, nor calls what returns one.

    Nothing counts the references to arrays then, half of the code that there is to compile, and none are given back.
    """
    return _helping(function, _nrt=False)


def array_helper(function: Callable[..., Any]) -> Any:
    """Decorate a kernel that only kernels call and that makes arrays."""
    return _helping(function, _nrt=True)


def at_hand(kernel: Any) -> bool:
    """Whether a kernel was compiled for this machine before, here or by a process with the same cache; compiles none.

    Parameters
    ----------
    kernel : what `kernel` or `array_kernel` returned
    """
    if not hasattr(kernel, "overloads") or kernel.overloads:
        return True  # a plain function, with NUMBA_DISABLE_JIT, or loaded
    machine = kernel.targetctx.codegen().magic_tuple()
    return any(key[1] == machine for key in kernel._cache._cache_file._load_index())  # noqa: SLF001  # Numba has no name for it


def _called(function: Callable[..., Any], **options: bool) -> Any:
    made = njit(cache=True, nogil=True, no_cfunc_wrapper=True, error_model="numpy", **options)(function)
    CALLED.append(_cached(_by_types(made)))
    return CALLED[-1]


def _helping(function: Callable[..., Any], **options: bool) -> Any:
    """What kernels alone call is compiled into them, and needs neither a cache nor what translates arguments."""
    without = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
    return _by_types(njit(nogil=True, error_model="numpy", **without, **options)(function))


def _by_types(dispatcher: Any) -> Any:
    """Have a function be compiled once for all arguments of the same types; Numba does it anew for each constant."""
    if hasattr(dispatcher, "get_call_template"):
        template = dispatcher.get_call_template
        dispatcher.get_call_template = lambda args, kws: template(tuple(map(unliteral, args)), kws)
    return dispatcher


def _cached(dispatcher: Any) -> Any:
    """Have the entries of a kernel's cache be of these sources.

    Numba looks at the time stamp of the kernel's own file only. What was compiled into it from others, and the tuples
    that it takes, may have changed since.
    """
    if hasattr(
        getattr(dispatcher, "_cache", None), "_cache_file"
    ):  # there is none where NUMBA_DISABLE_JIT leaves functions as they are
        dispatcher._cache._cache_file._version += f" {SOURCES}"  # noqa: SLF001  # read before anything is unpickled
    return dispatcher

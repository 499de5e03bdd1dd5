"""Makes the oracle harness importable from every test, as ``oracle.instances`` and so on.

Random tests run the same examples every time, so that a red test is about the change at hand.
``HYPOTHESIS_PROFILE=explore`` draws new ones on every run.
"""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# the instances are tiny and the cores are shared: threads of the libraries would only get in each other's way
os.environ["OMP_NUM_THREADS"] = "1"

# who proves what is the same with and without a cache of kernels
os.environ.setdefault("OCF_COMPILE_FIRST", "1")

# jobs of a shell in the background ignore Ctrl-C, and so would the processes that some tests interrupt
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("repeat", derandomize=True, database=None, deadline=None, print_blob=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))

#: Names the file that is locked as long as the kernels are being compiled.
COMPILING = "OCF_TESTS_COMPILING"

#: Folders whose files share servers and results that take seconds to make: all their tests go to one process.
SHARING = ("compare",)

#: Files of long tests that share nothing: each test goes to whichever process is free, after the files.
LONG = (
    "oracle/test_agreement",
    "oracle/test_hostile",
    "oracle/test_plausibility",
    "oracle/test_tables",
    "solve/test_leaf_search",
    "transformers/test_exact",
)


def pytest_configure(config: pytest.Config) -> None:
    """Have the kernels compiled once while the test processes collect, and not by each of them."""
    if sys.platform == "win32" or hasattr(config, "workerinput") or config.getoption("dist", "no") != "loadfile":
        return
    import fcntl

    with tempfile.NamedTemporaryFile(prefix="ocf-compiling-", delete=False) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # what inherits the file holds the lock until it ends, however it ends
        command = [sys.executable, "-m", "ocf", "warm-up"]
        compiling = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=lock, stderr=lock)
    os.environ[COMPILING] = lock.name
    config.add_cleanup(lambda: (compiling.terminate(), compiling.wait(), Path(lock.name).unlink()))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Wait for the kernels; what stays to the end need not be gone over for garbage again and again."""
    gc.collect()
    gc.freeze()
    if hasattr(session.config, "workerinput") and COMPILING in os.environ:
        import fcntl

        with Path(os.environ[COMPILING]).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute by file, as `--dist loadfile` does, but some folders whole and long files test by test.

    Files go out by their number of tests, the largest first. A file of few tests that take minutes would come last and
    keep one process busy alone; its tests one by one fill up what the files leave.
    """
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = str(super()._split_scope(nodeid))
            if Path(file).parent.name in SHARING:
                return str(Path(file).parent)
            return nodeid if file.removesuffix(".py").endswith(LONG) else file

    return ByFile(config, log)

"""What a first start says and where the compiled kernels are kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba import config

from ocf.support import numba_cache as compiling

#: Uses one of the smallest kernels.
USE = (
    "import numpy as np; from ocf.cells.reduction import least_costs; print(all(least_costs(np.arange(2), np.ones(1))))"
)


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def test_a_cold_start_says_that_it_compiles_and_a_warm_one_does_not(tmp_path: Path) -> None:
    twice = USE + "; from ocf.solvers.box.bitsets import in_both; in_both(*np.zeros((3, 1), np.uint64))"
    cold, warm = (run(twice, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert cold.stderr == compiling.MESSAGE + "\n"
    assert (cold.stdout, warm.stdout, warm.stderr) == ("True\n", "True\n", "")


def test_functions_of_others_are_none_of_our_business() -> None:
    code = "import ocf.support.numba_cache, numba; numba.njit(eval('lambda x: x'))(1)"
    assert run(code).stderr == ""


def test_an_install_that_cannot_be_written_works() -> None:
    refuse = """
import pathlib, tempfile
honest = tempfile.TemporaryFile
def refusing(*args, dir=None, **kwargs):
    if "ocf-" not in str(dir):
        raise PermissionError(13, "read-only", str(dir))
    return honest(*args, dir=dir, **kwargs)
tempfile.TemporaryFile = refusing
"""
    code = refuse + USE + "; from numba import config; print(config.CACHE_DIR)"
    done = run(code, NUMBA_CACHE_DIR="")
    right, folder = done.stdout.split()
    assert right == "True"
    assert "ocf-" in folder
    assert not Path(folder).exists()  # removed at the end


def test_a_place_that_can_be_written_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(config, "CACHE_DIR", "")
    compiling.keep_cache([Path("/proc/nowhere"), tmp_path / "new"])
    assert config.CACHE_DIR == ""
    monkeypatch.setattr(config, "CACHE_DIR", "given")
    compiling.keep_cache([Path("/proc/nowhere")])
    assert config.CACHE_DIR == "given"

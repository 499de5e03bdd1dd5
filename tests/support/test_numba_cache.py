"""What a first start says and where the compiled kernels are kept."""

from __future__ import annotations

import ast
import os
import re
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


def test_the_sources_are_all_files_with_kernels() -> None:
    package = Path(compiling.__file__).parents[1]
    homes = (package, *(package.parent / room for room in ("solvers", "formulations")))
    found = {
        path
        for home in homes
        for path in home.rglob("*.py")
        if re.search(r"^@(array_)?(kernel|helper)$", path.read_text(), re.M)
    }
    assert found | {Path(compiling.__file__)} == set(compiling.sources())


def test_whether_a_kernel_is_at_hand_is_told_without_compiling_it(tmp_path: Path) -> None:
    ask = "from ocf.support.numba_cache import at_hand; from ocf.cells.reduction import least_costs as k; "
    before = run(
        ask + "print(at_hand(k), len(k.overloads)); " + USE + "; print(at_hand(k))", NUMBA_CACHE_DIR=str(tmp_path)
    )
    after = run(ask + "print(at_hand(k), len(k.overloads))", NUMBA_CACHE_DIR=str(tmp_path))
    other = run(
        ask + "print(at_hand(k))", NUMBA_CACHE_DIR=str(tmp_path), NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=""
    )
    assert (before.stdout, after.stdout, other.stdout) == ("False 0\nTrue\nTrue\n", "True 0\n", "False\n")


def kernels() -> dict[str, list[tuple[str, ast.FunctionDef]]]:
    """The decorator and the definition of each kernel, by name."""
    found: dict[str, list[tuple[str, ast.FunctionDef]]] = {}
    for path in compiling.sources():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if isinstance(mark, ast.Name) and mark.id.endswith(("kernel", "helper")):
                    found.setdefault(node.name, []).append((mark.id, node))  # type: ignore[union-attr]
    return found


def test_kernels_that_count_no_references_are_given_no_arrays_to_keep() -> None:
    """An array that such a kernel got from another would never be given back; one that it returned would be twice."""
    all_of_them = kernels()
    assert len(all_of_them) > 80
    givers = {
        name
        for name, several in all_of_them.items()
        for _, node in several
        if node.returns is not None and re.search("Array|ndarray", ast.unparse(node.returns))
    }
    assert {"places", "least_costs", "dive"} & givers == {"places", "least_costs"}
    for name, several in all_of_them.items():
        for mark, node in several:
            if mark.startswith("array_"):
                continue
            called = {c.func.id for c in ast.walk(node) if isinstance(c, ast.Call) and isinstance(c.func, ast.Name)}
            assert name not in givers, f"{name} returns arrays: mark it array_{mark}"
            assert not called & givers, f"{name} calls {called & givers}: mark it array_{mark}"


def test_a_changed_source_has_every_kernel_compiled_anew(tmp_path: Path) -> None:
    """A kernel whose own file stays is not read from a cache that holds another file's tuple, by then renamed."""
    kernels, shapes = tmp_path / "kernels.py", tmp_path / "shapes.py"
    kernels.write_text("from ocf.support.numba_cache import kernel\n@kernel\ndef first(pair):\n    return pair.one\n")
    shape = "from typing import NamedTuple\nclass {}(NamedTuple):\n    {}: float\n    {}: float\nmade = {}(1.0, 2.0)\n"
    begin = "import ocf.support.numba_cache as cache; cache.SOURCES = {!r}; "
    code = begin + "from kernels import first; from shapes import made; print(first(made), len(first.stats.cache_hits))"
    env = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}

    shapes.write_text(shape.format("Pair", "one", "two", "Pair"))
    said = [run(code.format("old"), **env).stdout for _ in range(2)]
    shapes.write_text(shape.format("Couple", "two", "one", "Couple"))

    assert said == ["1.0 0\n", "1.0 1\n"]
    assert run(code.format("new"), **env).stdout == "2.0 0\n"

"""Across files: every command opens a model in a child process first, whatever the file does to its library."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import refused


def _dies(path: Path) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _aborts(path: Path) -> None:
    os.abort()


def _never_ends(path: Path) -> None:
    while True:
        pass


def _takes_all_memory(path: Path) -> None:
    held = []
    while True:
        held.append(np.empty(10**7))


_FAULTS: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "dies": (_dies, ["crashes the library", "signal 11, SIGSEGV"]),
    "aborts": (_aborts, ["crashes the library", "SIGABRT"]),
    "never ends": (_never_ends, ["not opened within 1 s of the processor"]),
    "takes all memory": (_takes_all_memory, ["takes more memory"]),
}
_OPENING = (
    "solve MODEL DATA",
    "solve GOOD DATA --plausibility forest=MODEL",
    "export MODEL DATA --row 8 --output OUT",
    "regions MODEL DATA --radius 1",
    "init-problem MODEL DATA",
    "verify RESULTS --model MODEL",
    "verify RESULTS --model GOOD --forest MODEL",
    "rules MODEL DATA",
    "compress MODEL DATA",
)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the child is a new interpreter, which knows no patch")
@pytest.mark.parametrize(
    ("fault", "command"), [*((fault, "inspect MODEL") for fault in _FAULTS), *(("dies", how) for how in _OPENING)]
)
def test_model_file_that_crashes_its_library(
    fault: str, command: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ocf.readers import skops_format

    good, path = files / "forest.skops", tmp_path / "hostile.skops"
    path.write_bytes(good.read_bytes())
    happens, words = _FAULTS[fault]
    here = os.getpid()

    def read(given: Path) -> Any:
        if given != path:
            return whole(given)
        assert os.getpid() != here, "the file was opened outside the child"
        return happens(given)

    whole = skops_format.read_skops
    monkeypatch.setattr(skops_format, "read_skops", read)
    monkeypatch.setattr("ocf.models.rehearsal.CPU_SECONDS", 1)
    monkeypatch.setattr("ocf.models.rehearsal.MEMORY_SHARE", 0.05)
    known: dict[str, object] = {
        "MODEL": path,
        "GOOD": good,
        "DATA": files / "data.csv",
        "RESULTS": files / "classes.json",
    }
    known |= {"OUT": tmp_path / "out.mps", "forest=MODEL": f"forest={path}"}
    refused(*(known.get(word, word) for word in command.split()), words=["hostile.skops", *words])


def test_file_that_waits_for_ever(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocf.readers.skops_format.read_skops", lambda path: signal.pause())
    monkeypatch.setattr("ocf.models.rehearsal.CPU_SECONDS", 1)
    monkeypatch.setattr("ocf.models.rehearsal.WALL_PER_CPU", 1)
    refused("inspect", files / "forest.skops", words=["forest.skops", "not opened within 1 s"])

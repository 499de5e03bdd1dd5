"""Spoilt files of every format are refused with a sentence, or read as their own libraries read them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle.isolated import run_in_turn, run_isolated
from oracle.mutant_formats import FORMATS
from oracle.mutators import STRUCTURED, mutate

from ocf.errors import DataError

#: Mutants of each format; `python -m oracle.mutants` plays more.
COUNT = 60

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of the mutants of each format, by its name."""
    summary = tmp_path_factory.mktemp("mutants") / "summary.json"
    subprocess.run(
        [sys.executable, "-m", "oracle.mutants", "--count", str(COUNT), "--seed", "0", "--summary", str(summary)],
        cwd=Path(__file__).parent.parent,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        check=False,
        capture_output=True,
    )
    found: dict[str, Any] = json.loads(summary.read_text(encoding="utf-8"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_mutants_are_refused_or_read_alike(campaign: dict[str, Any], name: str) -> None:
    found = campaign[name]
    assert found["findings"] == {}
    # mutators that always or never spoil a file would show nothing
    assert found["refused"] > 0
    assert found["read"] > 0
    assert found["refused"] + found["read"] == COUNT


@pytest.mark.parametrize("kind", sorted(STRUCTURED))
def test_mutants_differ_from_the_good_file_and_repeat(kind: str, tmp_path: Path) -> None:
    form = next(f for f in FORMATS.values() if f.kind == kind)
    good = next(iter(form.seeds(tmp_path))).data
    first, again = ([mutate(np.random.default_rng([7, k]), kind, good) for k in range(40)] for _ in range(2))
    assert first == again
    assert sum(data != good for data, _ in first) > 30


def _eat() -> int:
    return len(bytearray(2**36))


def _refuse() -> None:
    raise DataError("so it is")


@pytest.mark.parametrize(
    ("call", "end"),
    [
        (lambda: 3, "done"),
        (_refuse, "refused"),
        (lambda: {}["x"], "raised"),
        (_eat, "memory"),
        (lambda: os.kill(os.getpid(), 11), "signal"),
        (lambda: sum(iter(int, 1)), "hang"),
    ],
)
def test_every_ending_is_told_apart(call: Any, end: str) -> None:
    assert run_isolated(call, cpu=0.5).end == end


def test_calls_in_turn_end_each_for_itself() -> None:
    calls = [lambda: 3, _refuse, lambda: os.kill(os.getpid(), 11), _eat, lambda: {}["x"], _refuse, lambda: 5]
    ends = [ending.end for ending in run_in_turn(calls)]
    assert ends == ["done", "refused", "signal", "memory", "raised", "refused", "done"]


def _work() -> int:
    begin = time.process_time()
    while time.process_time() < begin + 0.3:
        pass
    return os.getpid()


def test_a_process_serves_for_several_calls_and_counts_the_time_of_each() -> None:
    served = [ending.value for ending in run_in_turn([_work] * 3, cpu=0.5)]
    assert len(set(served)) == 1
    assert served[0] not in (None, os.getpid())

"""Amounts of memory in words, and what control groups leave of it."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from ocf.errors import ProblemError
from ocf.support import memory
from ocf.support.memory import free_memory, is_memory, parse_memory, resident


def test_amounts() -> None:
    assert [parse_memory(v) for v in ("4 GB", "512MiB", "1.5 gb", 1000)] == [4 * 10**9, 2**29, 15 * 10**8, 1000]
    with pytest.raises(ProblemError, match="should be an amount"):
        parse_memory("0 GB")
    assert is_memory("4 GB")
    assert not is_memory("much")


def test_a_process_holds_what_it_has_made() -> None:
    before = resident()
    held = bytearray(b"x" * 200_000_000)
    assert resident() - before > 0.5 * len(held)


def group(folder: Path, names: tuple[str, str, str], limit: str, used: int, cached: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 1\n{names[2]} {cached}\n")


@pytest.mark.parametrize("version", [1, 2])
def test_the_tightest_control_group_around_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    root, own = tmp_path / "cgroup", tmp_path / "own"
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    home, line = root / "memory", "4:memory:/job/step\n1:cpu:/other\n"
    if version == 2:
        names, home, line = ("memory.max", "memory.current", "inactive_file"), root, "0::/job/step\n"
    own.write_text(line)
    free = int(psutil.virtual_memory().available)
    group(home / "job" / "step", names, "max" if version == 2 else str(2**62), 5, 0)
    group(home / "job", names, "1000000", 700_000, 200_000)
    path = Path
    monkeypatch.setattr(memory, "GROUPS", root)
    monkeypatch.setattr(memory, "Path", lambda name: own if name == "/proc/self/cgroup" else path(name))
    assert free_memory() == 500_000 < free
    group(home / "job", names, "1000000", 1_200_000, 0)
    assert free_memory() == 0


def test_without_control_groups_the_machine_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "GROUPS", tmp_path)
    assert 0 < free_memory() <= psutil.virtual_memory().total

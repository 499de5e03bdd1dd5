"""Memory: amounts in words, what the machine has free, and what this process holds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from ocf.errors import ProblemError

#: Multiples of a byte that an amount may be written in.
UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}

#: Where Linux tells of control groups, which containers and job schedulers set limits by.
GROUPS = Path("/sys/fs/cgroup")


def parse_memory(value: Any, where: str = "memory") -> int:
    """Bytes from a number or from an amount such as ``"4 GB"`` or ``"512 MiB"``.

    Parameters
    ----------
    value : object
        A number of bytes, or a text with a unit.
    where : str
        Names the file or option in the message of an error.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return int(value)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMG]?i?B)\s*", str(value), re.IGNORECASE)
    if not found or float(found[1]) == 0:
        raise ProblemError(f'{where}: memory = {value!r} should be an amount such as "4 GB" or "512 MiB"')
    return int(float(found[1]) * UNITS[found[2].upper()])


def is_memory(value: Any) -> bool:
    """Whether a value is an amount that `parse_memory` reads."""
    try:
        return bool(parse_memory(value))
    except ProblemError:
        return False


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(psutil.Process().memory_info().rss)


def free_memory() -> int:
    """Bytes that the machine has free, or this process's control group where that leaves less."""
    return min([int(psutil.virtual_memory().available), *_free_in_groups(GROUPS, Path("/proc/self/cgroup"))])


def _free_in_groups(root: Path, own: Path) -> Iterator[int]:
    """What the limits of the control groups of this process leave, group by group.

    Parameters
    ----------
    root : Path
        Of the control groups.
    own : Path
        File that says in which groups the process is, as lines of ``number:controllers:path``.
    """
    try:
        lines = own.read_text().splitlines()
    except OSError:  # no Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            names, home = ("memory.max", "memory.current", "inactive_file"), root
        elif controllers == "memory":
            names, home = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"), root / "memory"
        else:
            continue
        for group in (home / path.lstrip("/"), *(home / path.lstrip("/")).parents):
            yield from _free_in(group, *names)
            if group == home:
                break


def _free_in(group: Path, limit: str, used: str, cached: str) -> Iterator[int]:
    """What the limit of a control group leaves; files that are only cached count as free."""
    try:
        most, held = int((group / limit).read_text()), int((group / used).read_text())
        rows = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):  # there is no limit, or no such group is seen from here
        return
    yield max(most - held + int(rows.get(cached, 0)), 0)

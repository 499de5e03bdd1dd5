"""Results that nothing had to run for, with times and costs that a test can work out by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from ocf.compare import read
from ocf.compare.frame import Comparison, compare
from ocf.compare.results import FILE, SCHEMA
from ocf.explain.answer import TIMES

LIMIT = 10.0


def line(method: str, row: int, seconds: float, **changes: Any) -> dict[str, Any]:
    """A run; one that takes more than `LIMIT` timed out."""
    solved = seconds <= LIMIT
    formulation, _, solver = method.partition("/")
    run: dict[str, Any] = {
        "kind": "run",
        "key": f"run:{row}:{method}",
        "instance": f"i{row}",
        "case": "same",
        "data": "set",
        "model": f"random forest {10 * (row % 2 + 1)} × 5",
        "family": "random_forest",
        "trees": 10 * (row % 2 + 1),
        "depth": 5,
        "seed": 0,
        "position": row,
        "ask": "to 1 l1",
        "method": method,
        "formulation": formulation,
        "solver": solver,
        "reduce": True,
        "threads": 1,
        "mip_gap": 0.0,
        "started": "2026-01-01T00:00:00+00:00",
        "machine": "m",
        "status": "ok" if solved else "time out",
        "message": "",
        "answer": "optimal" if solved else "feasible",
        "seconds": min(seconds, LIMIT),
        "times": dict.fromkeys(TIMES, 0.0) | {"solve": min(seconds, LIMIT) / 2, "total": min(seconds, LIMIT)},
        "cost": 1.0 if solved else 2.0,
        "bound": 1.0 if solved else 0.5,
        "gap": 0.0 if solved else 0.75,
        "found": True,
        "checks": [],
        "nodes": 10 * row,
        "refused": 0,
        "proved_by": solver if solved else "",
        "solver_version": "1",
        "sizes": {"leaves": 100, "leaves_left": 20, "rows": 30, "columns": 20, "nonzeros": 90, "binaries": 10},
        "history": [[0.0, 0.0, "inf"], [min(seconds, LIMIT) / 2, 0.5, 2.0], [min(seconds, LIMIT), 0.5, 1.0]],
        "wall": seconds,
        "cpu": seconds / 2,
        "peak_memory": 200_000_000,
    }
    return run | changes


def relaxation(formulation: str, row: int, bound: float) -> dict[str, Any]:
    """An LP relaxation."""
    run = line(f"{formulation}/highs", row, 0.1, kind="relaxation", key=f"relaxation:{row}:{formulation}", bound=bound)
    return run | {"found": False, "cost": None, "gap": None, "answer": "", "history": [], "nodes": None}


def write(folder: Path, lines: list[dict[str, Any]], methods: list[str], **changes: Any) -> Path:
    """A folder with a results file."""
    limits = {"time": LIMIT, "memory": 2 * 10**9, "grace": 1.0}
    suite = {
        "description": "Made <by hand>.",
        "methods": [{"name": m} for m in methods],
        "limits": limits,
        "shift": 1.0,
    }
    head: list[dict[str, Any]] = [
        {"kind": "suite", "schema": SCHEMA, "name": "made", "fingerprint": "f", "suite": suite | changes},
        {
            "kind": "session",
            "date": "2026-01-01",
            "command": "ocf compare made",
            "jobs": 1,
            "load": [0.5, 0.5, 0.5],
            "unavailable": {},
        },
        {"kind": "machine", "id": "m", "facts": {"CPU": "Made", "cores": "2", "memory": "1 GiB", "Python": "3"}},
    ]
    folder.mkdir(exist_ok=True)
    text = "".join(json.dumps(found) + "\n" for found in head + lines)
    (folder / FILE).write_text(text, encoding="utf-8")
    return folder


#: Seconds of three methods on four instances; more than the limit is a time-out.
TIMES_OF = {
    "interval/highs": (1.0, 2.0, 4.0, 99.0),
    "ocean/highs": (2.0, 8.0, 99.0, 99.0),
    "box": (0.5, 1.0, 2.0, 4.0),
}


def standard(folder: Path, times: dict[str, tuple[float, ...]] = TIMES_OF, **changes: Any) -> Path:
    """The four instances, with LP bounds of both formulations."""
    lines = [line(m, k, t) for m, row in times.items() for k, t in enumerate(row) if not math.isnan(t)]
    lines += [relaxation(f, k, b) for f, b in (("interval", 0.8), ("ocean", 0.6)) for k in range(4)]
    return write(folder, lines, list(times), **changes)


def comparison(folder: Path) -> Comparison:
    return compare(read(folder))

"""What results were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

#: Packages whose version bears on results.
PACKAGES = (
    "ocf",
    "highspy",
    "pyscipopt",
    "pyomo",
    "numba",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "joblib",
    "xgboost",
    "xgboost-cpu",
    "lightgbm",
)


def machine() -> dict[str, str]:
    """Host, processor, cores, memory, operating system, and the versions of Python, libraries and solvers."""
    facts = {
        "host": platform.node(),
        "CPU": _cpu(),
        "cores": _cores(),
        "memory": _memory(),
        "system": platform.platform(),
        "Python": platform.python_version(),
    }
    for name in PACKAGES:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            continue
    return facts | _solvers()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _cores() -> str:
    total = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else total
    return str(total) if usable == total else f"{usable} of {total}"


def _memory() -> str:
    return f"{psutil.virtual_memory().total / 2**30:.1f} GiB"


def _solvers() -> dict[str, str]:
    """Versions as the solvers themselves report them, where those differ from their packages'."""
    from ocf.errors import OcfError
    from ocf.solvers import SOLVERS, get_solver

    out = {}
    for name in SOLVERS:
        try:
            out[f"solver {name}"] = get_solver(name).version
        except OcfError:
            out[f"solver {name}"] = "not available"
    return out

"""Matrices written as MPS and LP files."""

from __future__ import annotations

import re
from pathlib import Path

import highspy
from highspy import HighsStatus

from ocf.errors import ProblemError, SolverError
from ocf.solvers.highs_api import pass_form
from ocf.solvers.standard_form import StandardForm


def write_model(form: StandardForm, path: str | Path) -> None:
    """Write a problem to a file, ``.mps`` or ``.lp`` by its suffix, with names where the form has them.

    The file is for reading and for bug reports: HiGHS writes 15 significant digits, one or two fewer than a
    float64 has.

    Parameters
    ----------
    form : StandardForm
    path : str or Path

    Raises
    ------
    ProblemError
        When the suffix is neither ``.mps`` nor ``.lp``.
    SolverError
        When the file is not written to its end.
    """
    path = Path(path)
    if path.suffix not in (".mps", ".lp"):
        raise ProblemError(f"cannot write {path.name!r}: the name must end in .mps or .lp")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    pass_form(highs, form, 1.0)
    for names, pass_name in ((form.column_names, highs.passColName), (form.row_names, highs.passRowName)):
        for i, name in enumerate(_safe_names(names or (), path.suffix)):
            pass_name(i, name)
    if highs.writeModel(str(path)) == HighsStatus.kError or not _is_whole(path):
        raise SolverError(f"HiGHS could not write {str(path)!r}: is there such a folder, and room on the disk?")


def _is_whole(path: Path) -> bool:
    """Whether a file has the last word of its format; HiGHS does not see that a disk is full."""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - 16, 0))
        return file.read(16).strip().lower().endswith((b"endata", b"end"))


def _safe_names(names: tuple[str, ...], suffix: str) -> list[str]:
    """Replace what a format reads as syntax, and number the names that this makes equal."""
    forbidden = r"\s" if suffix == ".mps" else r"[^A-Za-z0-9_.(),]"
    out: dict[str, None] = {}
    for name in names:
        safe = re.sub(forbidden, "_", name)
        candidate, n = safe, 1
        while candidate in out:
            n += 1
            candidate = f"{safe}_{n}"
        out[candidate] = None
    return list(out)

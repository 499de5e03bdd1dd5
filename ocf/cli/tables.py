"""What a command line gives: tables, rows, settings and output paths, read and checked before anything is solved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ocf.errors import DataError, ProblemError
from ocf.support.messages import listed

#: Column of a table of completions that says whose they are.
ROW = "row"


def parse_rows(text: str, n: int, flag: str = "--rows") -> list[int]:
    """Row positions from ``"3"``, ``"0:10"``, ``"-5:"``, ``"1,4,7"`` or a mix of these.

    Parameters
    ----------
    text : str
    n : int
        Rows of the table.
    flag : str
        The option that says them.

    Returns
    -------
    list of int
        In the order asked for, each once.

    Raises
    ------
    DataError
        Malformed, beyond the table, or selecting nothing.
    """
    rows: dict[int, None] = {}
    for part in text.split(","):
        try:
            numbers = [int(p) if p.strip() else None for p in part.split(":")]
        except ValueError:
            numbers = []
        if len(numbers) == 1 and numbers[0] is not None:
            row = numbers[0]
            if not -n <= row < n:
                raise DataError(f"{flag}: there is no row {row}; the table has {n} rows, 0 to {n - 1}")
            rows[row % n] = None
        elif len(numbers) in (2, 3) and numbers[2:] != [0]:
            rows |= dict.fromkeys(range(n)[slice(*numbers)])
        else:
            raise DataError(f"{flag} {text!r} is not understood: give one row (3), a range (0:10) or a list (1,4,7)")
    if not rows:
        raise DataError(f"{flag} {text!r} selects none of the table's {n} rows, 0 to {n - 1}")
    return list(rows)


def parse_norm(text: str) -> str | dict[str, float]:
    """Norm from ``"l1"`` or a mix such as ``"l0=0.1,l1=1"``."""
    if "=" not in text:
        return text
    parts = [part.partition("=") for part in text.split(",")]
    try:
        return {name.strip(): float(number) for name, _, number in parts}
    except ValueError:
        raise ProblemError(
            f"--norm {text!r} is not understood: give l0, l1, l2, mahalanobis, mahalanobis_l1 or a mix: l0=0.1,l1=1"
        ) from None


def parse_wish(text: str) -> bool | dict[str, Any]:
    """Wish for plausibility from ``"on"``, ``"off"`` or settings such as ``"quantile=0.05,trees=50"``."""
    if text in ("on", "off"):
        return text == "on"
    parts = [part.partition("=") for part in text.split(",")]
    if not all(name.strip() and equals for name, equals, _ in parts):
        raise ProblemError(
            f"--plausibility {text!r} is not understood: give on, off or settings: quantile=0.1,trees=50"
        )
    return {name.strip(): _option(value.strip()) for name, _, value in parts}


def parse_round_to(text: str) -> Any:
    """Grids of new values from ``"data"``, a number of digits, or ``"income=data,age=2"``."""
    if "=" not in text:
        return _option(text)
    return {name.strip(): _option(value.strip()) for name, _, value in (p.partition("=") for p in text.split(","))}


def parse_options(pairs: Sequence[str]) -> dict[str, Any]:
    """A solver's own options from ``KEY=VALUE`` pairs; values become bool, int, float or stay text."""
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (equals and key.strip()):
            raise ProblemError(f"--option {pair!r} is not understood: give KEY=VALUE, such as mip_rel_gap=0.01")
        options[key.strip()] = _option(value.strip())
    return options


def parse_monotone(pairs: Sequence[str]) -> dict[str, str]:
    """Words on functions from ``STEP=increasing`` and ``STEP=decreasing``."""
    said = {}
    for pair in pairs:
        step, equals, word = (part.strip() for part in pair.partition("="))
        if not (equals and step) or word not in ("increasing", "decreasing"):
            raise ProblemError(f"--monotone {pair!r} is not understood: give STEP=increasing or STEP=decreasing")
        said[step] = word
    return said


def read_imputations(path: Path) -> Any:
    """Completions of missing values: a table of them, or one by row where a column ``row`` counts rows from 0.

    Parameters
    ----------
    path : Path
        Of a table with the columns that rows miss, and a row for each completion. What a row of the data does not miss
        is left empty in its completions.

    Raises
    ------
    DataError
        The file cannot be read, or a row is no whole number.
    """
    from ocf.models.tables import read_table

    table = read_table(path)
    if ROW not in table.columns:
        return table
    rows = table[ROW]
    if not all(isinstance(row, int) and row >= 0 for row in rows.tolist()):
        raise DataError(f"{path}: the column 'row' counts rows of the data from 0, in whole numbers")
    return {
        row: own.drop(columns=ROW).dropna(axis=1, how="all").reset_index(drop=True) for row, own in table.groupby(ROW)
    }


def _option(text: str) -> bool | int | float | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def check_output(path: Path, suffixes: Sequence[str], inputs: Sequence[Path | None] = ()) -> None:
    """Refuse an output path that could not be written, before the work is done that it is for.

    Parameters
    ----------
    path : Path
    suffixes : sequence of str
        With their dots, in small letters.
    inputs : sequence of Path or None
        Other files of the command, which are not to be replaced.

    Raises
    ------
    DataError
        A suffix that is not among `suffixes`, a directory, a directory that does not exist, no permission, or one of
        the inputs.
    """
    if path.suffix.lower() not in suffixes:
        raise DataError(f"cannot write {path}: its name should end in {listed(list(suffixes))}")
    if path.is_dir():
        raise DataError(f"cannot write {path}: it is a directory")
    for own in filter(None, inputs):
        if path.resolve() == own.resolve() or (path.exists() and own.exists() and path.samefile(own)):
            raise DataError(f"cannot write {path}: this command reads or keeps {own} there; give another path")
    if not path.parent.is_dir():
        raise DataError(f"cannot write {path}: there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise DataError(f"cannot write {path}: no permission; give another path")

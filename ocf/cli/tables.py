"""What a command line gives: tables, rows, settings and output paths, read and checked before anything is solved."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocf.errors import DataError, ProblemError
from ocf.words import listed, nearest

if TYPE_CHECKING:
    import pandas as pd

    from ocf.model import UserModel

#: How the names of tables may end.
CSV = (".csv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip")
PARQUET = (".parquet", ".pq")


def read_table(path: Path) -> pd.DataFrame:
    """Table from a CSV (also compressed) or Parquet file; its columns are named by text.

    Raises
    ------
    DataError
        No such file, an unknown kind of file, or one that is damaged or empty.
    """
    import pandas as pd

    name = path.name.lower()
    if not name.endswith(CSV + PARQUET):
        raise DataError(f"{path} is no table that ocf reads: its name should end in {listed([*CSV, *PARQUET])}")
    try:
        table = _read_csv(path) if name.endswith(CSV) else pd.read_parquet(path)
    except FileNotFoundError:
        raise DataError(f"there is no file {path} (current directory: {Path.cwd()}): check the path") from None
    except ImportError:
        raise DataError(f"reading {path} needs a package for Parquet: pip install pyarrow, or save a CSV") from None
    except Exception as error:  # damaged files raise errors of many kinds
        reason = str(error).splitlines() or [type(error).__name__]
        raise DataError(f"{path} cannot be read as a table: {reason[0]}") from error
    if table.empty:
        raise DataError(f"{path} holds no rows")
    return table.rename(columns=str)


def _read_csv(path: Path) -> pd.DataFrame:
    """Table with every number as the float64 nearest to its decimal: next to a threshold the last bit counts."""
    import pandas as pd

    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    return pd.read_csv(path) if version >= (3, 1) else pd.read_csv(path, float_precision="round_trip")


def drop_columns(tables: Iterable[pd.DataFrame], names: Sequence[str]) -> list[pd.DataFrame]:
    """Tables without some columns; each name must occur in one of them."""
    tables = list(tables)
    known = list(dict.fromkeys(c for table in tables for c in table.columns))
    for name in names:
        if name not in known:
            raise DataError(f"--drop: there is no column {nearest(name, known)}")
    return [table.drop(columns=list(names), errors="ignore") for table in tables]


def fit_columns(table: pd.DataFrame, model: UserModel, path: Path) -> pd.DataFrame:
    """The table's columns in the model's order, if they are the model's.

    Raises
    ------
    DataError
        Columns are missing, or there are more than the model takes.
    """
    from ocf.model import table_columns

    found = tuple(table.columns)
    if model.columns is None:
        try:
            return table[list(table_columns(model, found))]
        except DataError as error:
            raise DataError(f"{path}: {error}; leave out those that are no inputs with --drop NAME") from None
    extra = [c for c in found if c not in model.columns]
    missing = [c for c in model.columns if c not in found]
    if missing:
        hint = f"; columns that the model does not take: {listed(extra)}" if extra else ""
        raise DataError(f"{path} misses columns that the model was fitted on: {listed(missing)}{hint}")
    if extra:
        flags = " ".join(f"--drop {shlex.quote(c)}" for c in extra[:12])
        raise DataError(
            f"{path} has columns that the model does not take: {listed(extra)}; leave them out with {flags}"
        )
    return table[list(model.columns)]


def parse_rows(text: str, n: int) -> list[int]:
    """Row positions from ``"3"``, ``"0:10"``, ``"-5:"``, ``"1,4,7"`` or a mix of these.

    Parameters
    ----------
    text : str
    n : int
        Rows of the table.

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
                raise DataError(f"--rows: there is no row {row}; the table has {n} rows, 0 to {n - 1}")
            rows[row % n] = None
        elif len(numbers) in (2, 3) and numbers[2:] != [0]:
            rows |= dict.fromkeys(range(n)[slice(*numbers)])
        else:
            raise DataError(f"--rows {text!r} is not understood: give one row (3), a range (0:10) or a list (1,4,7)")
    if not rows:
        raise DataError(f"--rows {text!r} selects none of the table's {n} rows, 0 to {n - 1}")
    return list(rows)


def parse_norm(text: str) -> str | dict[str, float]:
    """Norm from ``"l1"`` or a mix such as ``"l0=0.1,l1=1"``."""
    if "=" not in text:
        return text
    parts = [part.partition("=") for part in text.split(",")]
    try:
        return {name.strip(): float(number) for name, _, number in parts}
    except ValueError:
        raise ProblemError(f"--norm {text!r} is not understood: give l0, l1, l2 or a mix: l0=0.1,l1=1") from None


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


def parse_options(pairs: Sequence[str]) -> dict[str, Any]:
    """A solver's own options from ``KEY=VALUE`` pairs; values become bool, int, float or stay text."""
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (equals and key.strip()):
            raise ProblemError(f"--option {pair!r} is not understood: give KEY=VALUE, such as mip_rel_gap=0.01")
        options[key.strip()] = _option(value.strip())
    return options


def _option(text: str) -> bool | int | float | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def check_output(path: Path, suffixes: Sequence[str]) -> None:
    """Refuse an output path that could not be written, before the work is done that it is for.

    Raises
    ------
    DataError
        A suffix that is not among `suffixes`, a directory, a directory that does not exist, or no permission.
    """
    if path.suffix.lower() not in suffixes:
        raise DataError(f"cannot write {path}: its name should end in {listed(list(suffixes))}")
    if path.is_dir():
        raise DataError(f"cannot write {path}: it is a directory")
    if not path.parent.is_dir():
        raise DataError(f"cannot write {path}: there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise DataError(f"cannot write {path}: no permission; give another path")

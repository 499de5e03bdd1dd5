"""Tables as files: CSV and Parquet, with the columns that a model takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocf.errors import DataError
from ocf.support.messages import listed, nearest

if TYPE_CHECKING:
    import pandas as pd

    from ocf.models.user_model import UserModel


#: How the names of tables may end.
CSV = (".csv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zip")

PARQUET = (".parquet", ".pq")


def read_table(path: Path) -> pd.DataFrame:
    """Table from a CSV (also compressed) or Parquet file; its columns are named by text.

    Raises
    ------
    DataError
        No such file, an unknown kind of file, one that is damaged or empty, or lines longer than the header.
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
        remedy = "; if it is damaged, write it anew, or save the table as CSV" if name.endswith(PARQUET) else ""
        raise DataError(f"{path} cannot be read as a table: {_fault(error)}{remedy}") from error
    if table.empty:
        raise DataError(f"{path} holds no rows")
    return table.rename(columns=str)


def in_words(table: pd.DataFrame, path: Path, levels: Mapping[str, Iterable[Any]]) -> pd.DataFrame:
    """The table with its columns of words as they stand in a CSV, from which pandas reads "1" as a number.

    A word that stands for a missing value in a CSV, such as NA or None, is one where it is a level.

    Parameters
    ----------
    table : DataFrame
        As `read_table` gives it, perhaps without some columns.
    path : Path
        Its file; those that hold types are read as they are.
    levels : mapping of str to iterable
        By column, where they are known. Columns with other levels than words stay as they are.
    """
    import pandas as pd

    from ocf.models.words import words_of

    words = {name: own - {""} for name, own in words_of(levels).items() if name in table.columns}
    if not words or not path.name.lower().endswith(CSV):
        return table
    read = pd.read_csv(path, usecols=lambda name: name in words, dtype=str, keep_default_na=False)
    return table.assign(
        **{c: read[c].where(table[c].notna() | read[c].isin(words[c])) for c in read.columns if c in words}
    )


def said_levels(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Iterable[Any]]:
    """Levels that settings of features give, by feature.

    Parameters
    ----------
    settings : mapping of feature name to mapping
    """
    return {name: own["levels"] for name, own in settings.items() if "levels" in own}


def _read_csv(path: Path) -> pd.DataFrame:
    """Table with every number as the float64 nearest to its decimal: next to a threshold the last bit counts.

    Of lines longer than the header pandas takes the first fields for an index, and the others move to the left.
    """
    import pandas as pd

    header = pd.read_csv(path, header=None, nrows=1, dtype=str)
    marks = [mark for mark in (";", "\t", "|") if header.shape[1] == 1 and mark in str(header.iloc[0, 0])]
    if marks:
        raise ValueError(
            f"its header is a single field, {header.iloc[0, 0]!r}: save it with commas between the fields, in the "
            f"place of {marks[0]!r}, and with points in numbers"
        )
    names = header.iloc[0].dropna()
    if names.duplicated().any():
        twice = listed([repr(name) for name in names[names.duplicated()].unique()])
        raise ValueError(f"its header has {twice} more than once: give each column a name of its own")
    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    pd.read_csv(path, header=None, nrows=2, dtype=str)  # refuses a first line of data that is longer
    # read in parts, a column of numbers and words would hold both 1 and "1"
    if version >= (3, 1):
        return pd.read_csv(path, low_memory=False)
    return pd.read_csv(path, low_memory=False, float_precision="round_trip")


def _fault(error: Exception) -> str:
    """Why a file cannot be read as a table, in words."""
    from pandas.errors import EmptyDataError

    if isinstance(error, UnicodeDecodeError):
        return f"it is no UTF-8 (one of its bytes is {error.object[error.start]:#04x}): save it as UTF-8"
    if isinstance(error, EmptyDataError):
        return "it is empty: its first line should name the columns"
    unclosed = re.search(r"EOF inside string starting at row (\d+)", str(error))
    if unclosed:
        return f"a quotation mark in row {int(unclosed[1]) + 1}, the header being row 1, is never closed: take it away"
    longer = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
    if longer is None:
        return (str(error).splitlines() or [type(error).__name__])[0]
    header, line, found = longer.groups()
    return (
        f"line {line} has {found} fields and the header {header}; take the surplus commas away (one at the end of a "
        "line makes an empty field), or name every column in the header"
    )


def drop_columns(tables: Iterable[pd.DataFrame], names: Sequence[str]) -> list[pd.DataFrame]:
    """Tables without some columns; each name must occur in one of them.

    Parameters
    ----------
    tables : iterable of DataFrame
    names : sequence of str
        Columns to leave out.
    """
    tables = list(tables)
    known = list(dict.fromkeys(c for table in tables for c in table.columns))
    for name in names:
        if name not in known:
            raise DataError(f"--drop: there is no column {nearest(name, known)}")
    return [table.drop(columns=list(names), errors="ignore") for table in tables]


def label_column(
    table: pd.DataFrame, name: str, path: Path, classes: Sequence[Any], flag: str = "--label"
) -> pd.Series[Any]:
    """The column of a table that holds true classes, with the words that are classes; see `in_words`.

    Parameters
    ----------
    table : DataFrame
    name : str
    path : Path
        File of the table, which messages name.
    classes : sequence
        Of the model, as far as they are known.
    flag : str
        The option that names the column.

    Raises
    ------
    DataError
        There is none of that name.
    """
    if name not in table.columns:
        raise DataError(f"{flag}: {path} has no column {nearest(name, list(table.columns))}")
    return in_words(table[[name]], path, {name: classes})[name]


def fit_columns(
    table: pd.DataFrame, model: UserModel, path: Path, levels: Mapping[str, Iterable[Any]] | None = None
) -> pd.DataFrame:
    """The table's columns in the model's order, if they are the model's, with the words that are levels.

    Parameters
    ----------
    table : DataFrame
    model : UserModel
    path : Path
        File of the table, which messages name.
    levels : mapping of str to iterable, optional
        By column, beside those that the model knows; see `in_words`.

    Raises
    ------
    DataError
        Columns are missing, or there are more than the model takes.
    """
    from ocf.models.words import known_levels

    own = _model_columns(table, model, path)
    known = known_levels(model, tuple(own.columns))
    return in_words(own, path, {c: [*known.get(c, []), *(levels or {}).get(c, [])] for c in own.columns})


def _model_columns(table: pd.DataFrame, model: UserModel, path: Path) -> pd.DataFrame:
    from ocf.models.user_model import table_columns
    from ocf.readers.sklearn_common import by_known_name

    found = tuple(table.columns)
    if model.columns is None:
        try:
            return table[list(table_columns(model, found))]
        except DataError as error:
            raise DataError(f"{path}: {error}; leave out those that are no inputs with --drop NAME") from None
    by_name = by_known_name(found)
    missing = [c for c in model.columns if c not in by_name]
    own = [by_name[c] for c in model.columns if c in by_name]
    extra = [c for c in found if c not in own]
    if missing:
        hint = f"; columns that the model does not take: {listed(extra)}" if extra else ""
        alike = [f"{c!r} is {b!r}" for c in missing for b in extra if b.strip().casefold() == c.strip().casefold()]
        hint += f"; in its header {listed(alike)}" if alike else ""
        raise DataError(f"{path} misses columns that the model was fitted on: {listed(missing)}{hint}")
    if extra:
        flags = " ".join(f"--drop {shlex.quote(c)}" for c in extra[:12])
        raise DataError(
            f"{path} has columns that the model does not take: {listed(extra)}; leave them out with {flags}"
        )
    return table[own]

"""Groups of indicator columns, as ``pandas.get_dummies`` makes them of a category, recognised in a table.

Columns belong together where three things come together: their names have the stem before an underscore (or =) in
common, they hold the same dtype and nothing but 0 and 1 (or truth values), and in every row exactly one of them is 1,
or at most one where the first level was dropped. Indicators that have nothing to do with each other may keep apart by
chance, rare ones in particular: a group counts only where columns with as many ones, put into rows at random, hardly
would.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ocf.arrays import BoolArray
from ocf.features.number_dtypes import number_dtype

#: What stands between the stem of a name and a level: that of pandas, and that of DictVectorizer.
SEPARATORS = "_="

#: What the rows are called in which none of the columns is 1.
NONE = "(none)"

#: Largest probability with which unrelated columns would keep apart by chance.
CHANCE = 0.05

#: First words of names that ask a question each: such columns are no levels because at most one of them holds.
QUESTIONS = frozenset(("is", "has", "had", "was", "does", "did", "can", "any", "no", "not", "flag", "missing"))


def indicator_groups(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Settings of the groups of indicator columns in a table, as `ocf.features.inference.infer_space` takes them.

    The columns must not be interrupted by others where rows may have none of them.

    Returns
    -------
    dict of str to dict
        By the stem of the names: ``columns`` by level, and ``base`` where rows may have none of them.
    """
    held = dict(_indicators(table))
    found: dict[str, dict[str, Any]] = {}
    taken: set[str] = set()
    for base in (False, True):
        for sharing in _candidates({column: str(table[column].dtype) for column in held}):
            members = [column for column in sharing if column not in taken]
            if len(members) < 2 or not _apart(members, held, base=base):
                continue
            if base and not (_neighbours(members, list(table.columns)) and members[0].split("_")[0] not in QUESTIONS):
                continue
            taken.update(members)
            stem = _stem(members)
            bare = stem.rstrip(SEPARATORS) or stem
            name = bare if bare not in table.columns and bare not in found else f"{bare}_*"
            found[name] = {"columns": {column[len(stem) + 1 :]: column for column in members}}
            if base:
                found[name]["base"] = NONE
    return found


def _indicators(table: pd.DataFrame) -> Iterator[tuple[str, BoolArray]]:
    """Columns of 0 and 1 whose names have a stem, in the table's order."""
    for name in table.columns:
        column = table[name]
        number = number_dtype(str(column.dtype))
        if number is None or not set(SEPARATORS) & set(name[1:]) or column.isna().any():
            continue
        values = column.to_numpy(number)
        if number.kind == "b" or bool(((values == 0) | (values == 1)).all()):
            yield name, values.astype(bool)


def _candidates(dtypes: Mapping[str, str]) -> list[list[str]]:
    """Columns that share a stem and a dtype, the largest sets first: those of the shortest stems."""
    by_stem: dict[tuple[str, str], list[str]] = {}
    for name, dtype in dtypes.items():
        for place in range(1, len(name)):
            if name[place] in SEPARATORS:
                by_stem.setdefault((name[:place], dtype), []).append(name)
    return [by_stem[key] for key in sorted(by_stem, key=lambda key: len(key[0]))]


def _stem(members: Sequence[str]) -> str:
    """The longest stem that names have in common."""
    first = members[0]
    places = (k for k in range(len(first) - 1, 0, -1) if first[k] in SEPARATORS)
    return next(first[:k] for k in places if all(name.startswith(first[: k + 1]) for name in members))


def _apart(members: Sequence[str], held: Mapping[str, BoolArray], *, base: bool) -> bool:
    """Whether exactly one (or with a base at most one) of the columns is 1 in each row, and not by chance."""
    counts = [int(held[column].sum()) for column in members]
    rows = len(held[members[0]])
    if sum(counts) > rows or (sum(counts) < rows and not base):
        return False
    together = np.zeros(rows, np.int64)
    for column in members:
        together += held[column]
    return int(together.max()) == 1 and _chance(counts, rows) <= CHANCE


def _chance(counts: Sequence[int], rows: int) -> float:
    """Probability that columns with so many ones, each put into rows at random, share none."""
    logarithm, taken = 0.0, 0
    for count in counts:
        logarithm += _log_choices(rows - taken, count) - _log_choices(rows, count)
        taken += count
    return math.exp(logarithm)


def _log_choices(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _neighbours(members: Collection[str], columns: Sequence[str]) -> bool:
    """Whether columns stand side by side in the table."""
    places = [columns.index(column) for column in members]
    return max(places) - min(places) == len(places) - 1

"""Tables of one row, told apart by their values, columns and dtypes to the last bit."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

import numpy as np
import pandas as pd


def joined(tables: Iterable[pd.DataFrame]) -> Iterator[tuple[list[Hashable], pd.DataFrame]]:
    """Tables of one row as one table for each kind of columns, with the keys of its rows.

    Parameters
    ----------
    tables : iterable of DataFrame (1, n_columns)
        Those of which a value would change its type in the company of the others are left out.
    """
    groups: dict[Hashable, list[tuple[Hashable, pd.DataFrame]]] = {}
    for table in tables:
        key = row_key(table)
        groups.setdefault(key[0], []).append((key, table))
    for alike in groups.values():
        together = pd.concat([table for _, table in alike], ignore_index=True)
        if tuple(together.dtypes) == tuple(alike[0][1].dtypes):
            yield [key for key, _ in alike], together


def row_key(table: pd.DataFrame) -> tuple[Hashable, ...]:
    """Columns with their dtypes, and values by type and bits, of a table of one row."""
    dtypes = tuple(d if isinstance(d, np.dtype) else str(d) for d in table.dtypes.tolist())
    values = table.to_numpy(dtype=object)[0].tolist()
    # equality says too much or too little of floats: of the zeros, which a function may tell apart, and of NaN
    floats = np.array([v for v in values if isinstance(v, float)]).tobytes()
    others = tuple(v for v in values if not isinstance(v, float))
    return (tuple(table.columns.tolist()), dtypes), (tuple(map(type, values)), floats, others)

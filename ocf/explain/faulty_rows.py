"""Rows of a batch that cannot be read or asked about: found by halves, so that the others are answered."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from ocf.errors import OcfError

#: Rows, spread over the table, of which one must be sound: otherwise the fault is taken for the table's.
SPREAD = 100


def faulty_rows(frame: pd.DataFrame, read: Callable[[pd.DataFrame], object]) -> dict[int, str]:
    """What is wrong with single rows of a table, by their places.

    Parameters
    ----------
    frame : DataFrame (n, n_columns)
    read : callable
        Raises an `OcfError` of a table with a fault.

    Returns
    -------
    dict of int to str
        Empty where there is no fault, or where it is that of the table: a table of no rows has it as well, or no row
        is without one.
    """

    def fault(first: int, last: int) -> str:
        try:
            read(frame.iloc[first:last])
        except OcfError as error:
            return str(error)
        return ""

    n = len(frame)
    if fault(0, 0) or not fault(0, n):
        return {}
    if all(fault(k, k + 1) for k in np.unique(np.linspace(0, n - 1, SPREAD).astype(int)).tolist()):
        return {}
    found: dict[int, str] = {}
    left = [(0, n)]
    while left:
        first, last = left.pop()
        if said := fault(first, last):
            middle = (first + last) // 2
            if last - first > 1:
                left += [(middle, last), (first, middle)]
            else:
                found[first] = said
    return found

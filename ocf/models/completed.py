"""Completions of a row's missing values: tables in the user's columns, in which the model is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ocf.errors import DataError, ProblemError
from ocf.features.frames import table_of
from ocf.features.row_dtypes import conformed, exact_in
from ocf.features.space import FeatureSpace
from ocf.support.amounts import plain_value
from ocf.support.messages import listed, quoted


@dataclass(frozen=True, eq=False)
class Imputed:
    """Values of the columns that a row lacks, one row for each completion, and the share that must get the target.

    Attributes
    ----------
    values : DataFrame (n, n_missing)
        In the dtypes of the row's columns where these hold them.
    share : float
        Above 0 and at most 1.
    """

    values: pd.DataFrame
    share: float

    @property
    def least(self) -> int:
        """How many completions must get the target."""
        return max(1, int(np.ceil(self.share * len(self.values) - 1e-9)))

    def complete(self, row: pd.DataFrame) -> pd.DataFrame:
        """A table of one row that lacks these columns, as often as there are completions, with their values."""
        table = pd.concat([row] * len(self.values), ignore_index=True)
        names = [str(c) for c in table.columns]
        for column in self.values.columns:
            held: Any = self.values[column]
            table.isetitem(names.index(column), held)
        return table

    def common(self, answers: Any) -> Any:
        """What a model answers most often of the completions; of values the median."""
        answers = np.asarray(answers)
        if np.issubdtype(answers.dtype, np.floating):
            return float(np.median(answers))
        found, counts = np.unique(answers, return_counts=True)
        return found[counts.argmax()].item()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        held = self.values.astype(object).to_dict("list")
        values = {name: [plain_value(v) for v in own] for name, own in held.items()}
        return {"values": values, "share": self.share, "least": self.least}


def imputed(said: Any, share: float, row: pd.DataFrame, space: FeatureSpace) -> Imputed:
    """The completions of a row, checked and read as rows are.

    Parameters
    ----------
    said : table, or mapping of row label to table
        With the columns that the row lacks, and no others.
    share : float
    row : DataFrame (1, n_columns)
    space : FeatureSpace

    Raises
    ------
    DataError
        There are none for the row, its columns are others, or cells of theirs are missing too, or hold what no row may.
    """
    name = quoted(row.index[0])
    table = table_of(said.get(row.index[0]) if isinstance(said, Mapping) else said)
    if table is None:
        raise DataError(f"imputations: give row {name} a table of its missing columns, a row for each completion")
    if table.empty:
        raise DataError("imputations: the table holds no completion")
    table = table.rename(columns=str)
    lacking = [str(c) for c in row.columns[row.isna().to_numpy()[0]]]
    if not lacking:
        raise DataError(f"imputations: row {name} has no missing value to complete")
    if sorted(table.columns) != sorted(lacking):
        raise DataError(
            f"imputations: the table has the columns {listed(list(table.columns))}, but what row {name} "
            f"lacks is {listed(lacking)}: give these and no others"
        )
    gaps = np.argwhere(table.isna().to_numpy())
    if len(gaps):
        at, column = gaps[0].tolist()
        raise DataError(f"imputations: completion {at} still lacks {table.columns[column]!r}: fill in all of its cells")
    found = Imputed(table[lacking].reset_index(drop=True), share)
    try:
        space.from_frame(found.complete(row).rename(columns=str))
    except DataError as error:
        raise DataError(f"imputations: {error}") from None
    dtypes = row.rename(columns=str).dtypes
    typed = replace(found, values=pd.DataFrame({c: exact_in(found.values[c], dtypes[c]) for c in lacking}))
    return replace(found, values=conformed(typed.complete(row).rename(columns=str), space)[lacking])


def check_share(share: Any, given: bool) -> None:
    """Refuse a share that is none, or that nothing is a share of.

    Parameters
    ----------
    share : object
    given : bool
        Whether there are completions.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise ProblemError(
            f"share is the share of completions that must get the target, above 0 and at most 1: {share!r}"
        )
    if share != 1.0 and not given:
        raise ProblemError("share is that of imputations: give some")

"""Steps that fill in missing values, or say that they were missing.

A row keeps the values that it misses: a feature whose value is missing stays so, and whatever its column becomes is the
same for every counterfactual of the row. Of the others an imputer of NaN changes nothing. One of another number
(``missing_values=-9``) makes a hole in the line: at that number the column is what it is filled with.

Neighbours and regressions fill a value from the other columns, which no feature decides alone: such a column is refused
where a tree splits it, unless nothing moves the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ocf.readers.transformers.column import Column, mixed
from ocf.readers.transformers.flow import Flow, shown

CLASSES = ("SimpleImputer", "KNNImputer", "IterativeImputer", "MissingIndicator")


def read(name: str, step: Any, flow: Flow) -> tuple[Column, ...]:
    """Columns with their holes filled, and indicators of what was missing.

    Parameters
    ----------
    name : str
    step : imputer
        Fitted.
    flow : Flow
    """
    kind = type(step).__name__
    holed = _with_breaks(name, step, flow)
    if kind == "MissingIndicator":
        return tuple(_indicator(name, step, flow.columns[j], holed[j]) for j in step.features_)
    filled = holed if kind == "SimpleImputer" else _from_others(name, step, flow, holed)
    indicators: tuple[int, ...] = tuple(step.indicator_.features_) if step.add_indicator else ()
    kept = [filled[j] for j in np.flatnonzero(_kept_columns(step, len(filled)))]
    return (*kept, *(_indicator(name, step, flow.columns[j], holed[j]) for j in indicators))


def _with_breaks(name: str, step: Any, flow: Flow) -> tuple[Column, ...]:
    """Each column with a break where its missing values begin and end."""
    missing = step.missing_values
    if _is_nan(missing):

        def filled(j: int, column: Column) -> Column:
            if not column.partial:
                return column
            return mixed(
                f"{shown(name, step)} fills what a step before it makes NaN of feature {flow.named(j)}: put it before "
                "that step, or give ocf the table after it"
            )

        return flow.each(filled)
    if isinstance(missing, str):
        return flow.columns  # no number is a word
    return flow.each(lambda j, column: column.broken(flow.breaks_at(j, [float(missing)])))


def _indicator(name: str, step: Any, column: Column, holed: Column) -> Column:
    """Whether a column was missing: it never is where the imputer is of NaN and its feature has a value."""
    if column.number and not holed.mixed and _is_nan(step.missing_values):
        return Column()
    return holed.bent() if holed.number else holed


def _from_others(name: str, step: Any, flow: Flow, holed: tuple[Column, ...]) -> tuple[Column, ...]:
    """Columns of which a missing value is filled from the others."""
    out = []
    for j, column in enumerate(holed):
        if not column.mixed and flow.may_miss(j, step.missing_values) and not _fills_by_itself(step, flow, j):
            column = mixed(
                f"{shown(name, step)} fills missing values from the other columns, so that a split of what it fills "
                "depends on several features: fill in the value, or impute by SimpleImputer"
            )
        out.append(column)
    return tuple(out)


def _fills_by_itself(step: Any, flow: Flow, j: int) -> bool:
    """Whether nothing but a column's own feature moves what its missing values are filled with.

    IterativeImputer fills a single column by its first guess; of several it may go on where another row of the table is
    complete. KNNImputer takes each row by itself.
    """
    others = [column for k, column in enumerate(flow.columns) if k != j]
    return not others or (type(step).__name__ == "KNNImputer" and all(column.constant for column in others))


def _kept_columns(step: Any, width: int) -> Any:
    """Which columns are not left out for want of any value in the training table."""
    if step.keep_empty_features:
        return np.ones(width, bool)
    if type(step).__name__ == "KNNImputer":
        return vars(step)["_valid_mask"]
    statistics = step.statistics_ if type(step).__name__ == "SimpleImputer" else step.initial_imputer_.statistics_
    return np.array([not isinstance(value, float) or value == value for value in statistics])  # None is a value


def _is_nan(value: Any) -> bool:
    return not isinstance(value, str) and bool(pd.isna(value))

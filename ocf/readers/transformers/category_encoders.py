"""Encoders of the package category_encoders: OrdinalEncoder and OneHotEncoder.

They encode the columns of `cols` in their places and leave the others as they are; columns that do not vary in training
are left out with ``drop_invariant``.
"""

from __future__ import annotations

from typing import Any

from ocf.errors import UnsupportedModelError
from ocf.readers.transformers.column import Column
from ocf.readers.transformers.encoders import refuse_numbers
from ocf.readers.transformers.flow import Flow, shown

CLASSES = ("OrdinalEncoder (category_encoders)", "OneHotEncoder (category_encoders)")


def read(name: str, step: Any, flow: Flow) -> tuple[Column, ...]:
    """Each column, or what takes its place.

    Parameters
    ----------
    name : str
    step : encoder
        Fitted.
    flow : Flow
    """
    given = list(step.feature_names_in_)
    if len(given) != len(flow.columns):
        raise UnsupportedModelError(
            f"{shown(name, step)} was fitted on {len(given)} columns, and is given {len(flow.columns)}: fit it again"
        )
    behind: list[tuple[Any, Column]] = []
    for j, (label, column) in enumerate(zip(given, flow.columns, strict=True)):
        coded = label in list(step.cols or [])
        if coded and column.number:
            refuse_numbers(name, step, flow, j, quiet=False)
        behind += [(out, column) for out in (_labels(step, label) if coded else [label])]
    left_out = set(getattr(step, "invariant_cols", None) or []) if step.drop_invariant else set()
    return tuple(column for label, column in behind if label not in left_out)


def _labels(step: Any, label: Any) -> list[Any]:
    """Columns that take the place of one."""
    if type(step).__name__ == "OrdinalEncoder":
        return [label]
    own = next(m for m in step.mapping if m["col"] == label)
    return list(own["mapping"].columns)

"""Encoders of categories: each level has its own columns or its own number.

Behind a discrete feature whatever an encoder does is a function of the level. Behind a column of numbers each category
is a single number: the column is constant between two of them, if the encoder takes other numbers at all; one that
refuses them (``handle_unknown="error"``) takes the feature for categories, and then the feature has to be described so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ocf.errors import UnsupportedModelError
from ocf.readers.transformers.column import Column
from ocf.readers.transformers.flow import Flow, shown

CLASSES = ("OneHotEncoder", "OrdinalEncoder", "TargetEncoder")


def read(name: str, step: Any, flow: Flow) -> tuple[Column, ...]:
    """For each column those of its categories, or its number.

    Parameters
    ----------
    name : str
    step : encoder
        Fitted.
    flow : Flow
    """
    out: list[Column] = []
    for j, (column, width) in enumerate(zip(flow.columns, widths(step), strict=True)):
        if column.number:
            refuse_numbers(name, step, flow, j, quiet=getattr(step, "handle_unknown", "ignore") != "error")
            column = column.broken(flow.breaks_at(j, _numbers(step.categories_[j])), stepped=True)
        out += [column] * width
    return tuple(out)


def refuse_numbers(name: str, step: Any, flow: Flow, j: int, *, quiet: bool) -> None:
    """Refuse a column of numbers that a step takes for categories and of which it refuses all but those it knows.

    Parameters
    ----------
    name : str
    step : encoder
    flow : Flow
    j : int
        Place of the column.
    quiet : bool
        Whether the step takes numbers that it does not know.
    """
    feature = flow.source.space.features[flow.columns[j].feature]
    if feature.is_time:
        raise UnsupportedModelError(
            f"{shown(name, step)} takes the dates of feature {flow.named(j)} for categories: make them numbers in a "
            "FunctionTransformer, or text before the Pipeline is fitted"
        )
    if quiet and not flow.columns[j].partial:
        return
    raise UnsupportedModelError(
        f"{shown(name, step)} takes the numbers of feature {flow.named(j)} for categories, and refuses those that it "
        f"does not know: describe the feature as kind 'categorical' or 'ordinal', such as features={{{flow.named(j)}: "
        "{'kind': 'categorical'}}"
    )


def widths(step: Any) -> list[int]:
    """Columns that each column becomes."""
    if type(step).__name__ == "OneHotEncoder":
        return list(vars(step)["_n_features_outs"])  # infrequent and dropped categories are reckoned with
    if type(step).__name__ == "TargetEncoder" and step.target_type_ == "multiclass":
        return [len(step.classes_)] * len(step.categories_)
    return [1] * len(step.categories_)


def _numbers(categories: Any) -> list[float]:
    """Categories as numbers; what is none cannot be met by a column of numbers."""
    found = []
    for category in categories:
        if isinstance(category, int | float | np.number | np.bool_):
            found.append(float(category))
    return found

"""Steps whose columns depend on several features at once: each is refused where a tree splits one of its columns."""

from __future__ import annotations

from typing import Any

from ocf.readers.transformers.column import CONSTANT, Column, mixed
from ocf.readers.transformers.flow import Flow, shown

#: Class -> what it does, in words.
REASONS = {
    "Normalizer": "divides each row by its own length",
    "PCA": "adds up several columns",
    "IncrementalPCA": "adds up several columns",
    "SparsePCA": "adds up several columns",
    "TruncatedSVD": "adds up several columns",
    "FactorAnalysis": "adds up several columns",
    "FastICA": "adds up several columns",
    "GaussianRandomProjection": "adds up several columns",
    "SparseRandomProjection": "adds up several columns",
    "LinearDiscriminantAnalysis": "adds up several columns",
    "FeatureAgglomeration": "adds up several columns",
}

CLASSES = tuple(REASONS)


def read(name: str, step: Any, flow: Flow) -> tuple[Column, ...]:
    """As many columns as the step has, all refused, unless nothing moves those before it.

    Parameters
    ----------
    name : str
    step : transformer
        Fitted.
    flow : Flow
    """
    width = len(flow.columns) if type(step).__name__ == "Normalizer" else len(step.get_feature_names_out())
    if all(column.constant for column in flow.columns):
        return (CONSTANT,) * width
    return (refused(name, step, REASONS[type(step).__name__]),) * width


def refused(name: str, step: Any, what: str) -> Column:
    """A column that depends on several features.

    Parameters
    ----------
    name : str
    step : transformer
    what : str
        It does, in words.
    """
    return mixed(
        f"{shown(name, step)} {what}, so that a split of its columns depends on several features at once: give ocf the "
        "table after that step, or train the model without it"
    )

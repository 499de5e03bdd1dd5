"""Feature selectors: some columns are left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ocf.readers.transformers.column import Column
from ocf.readers.transformers.flow import Flow

CLASSES = (
    "SelectKBest", "SelectPercentile", "SelectFpr", "SelectFdr", "SelectFwe", "GenericUnivariateSelect",
    "SelectFromModel", "VarianceThreshold", "RFE", "RFECV", "SequentialFeatureSelector",
)  # fmt: skip


def read(name: str, step: Any, flow: Flow) -> tuple[Column, ...]:
    """The columns that are kept.

    Parameters
    ----------
    name : str
    step : selector
        Fitted.
    flow : Flow
    """
    return tuple(flow.columns[j] for j in np.flatnonzero(step.get_support()))

"""Steps that map each column of numbers by a monotone function: scalers, power and quantile transformers.

Sums, products and comparisons with constants round, and rounding is monotone: such a scaler is monotone to the last
bit. Powers, logarithms and interpolations may go back by a rounding, which `ocf.models.lift` looks for next to each
threshold.
"""

from __future__ import annotations

from typing import Any

from ocf.readers.transformers.column import Column
from ocf.readers.transformers.flow import Flow

#: ``a x + b``, and what clips it.
AFFINE = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")

#: Monotone but for rounding.
ROUNDED = ("PowerTransformer", "QuantileTransformer")

CLASSES = (*AFFINE, *ROUNDED)


def read(name: str, step: Any, flow: Flow) -> tuple[Column, ...]:
    """As many columns, each monotone in the one before it.

    Parameters
    ----------
    name : str
    step : transformer
        Fitted.
    flow : Flow
    """
    if type(step).__name__ in AFFINE and not getattr(step, "clip", False):
        return flow.columns
    exact = type(step).__name__ in AFFINE
    # Box-Cox is defined for positive numbers alone, and refuses all others
    return flow.each(lambda j, column: column.bent(exact=exact))

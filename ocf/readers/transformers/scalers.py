"""Steps that map each column of numbers by a monotone function: scalers, power and quantile transformers.

Sums, products and comparisons with constants round, and rounding is monotone: such a scaler is monotone to the last
bit. Powers, logarithms and interpolations may go back by a rounding, which `ocf.models.lift` looks for next to each
threshold.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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
        if not any(c.mixture for c in flow.columns):
            return flow.columns
        factor, shift = _line(step, len(flow.columns))
        return tuple(c.scaled(*line) for c, *line in zip(flow.columns, factor, shift, strict=True))
    exact = type(step).__name__ in AFFINE
    # Box-Cox is defined for positive numbers alone, and refuses all others
    return flow.without_mixtures(name, step).each(lambda j, column: column.bent(exact=exact))


def _line(step: Any, n: int) -> tuple[list[float], list[float]]:
    """``a`` and ``b`` of each column's ``a x + b``."""
    kind = type(step).__name__
    scale = 1.0 if step.scale_ is None else np.asarray(step.scale_, np.float64)
    factor, shift = (scale, step.min_) if kind == "MinMaxScaler" else (1.0 / scale, 0.0)
    if kind == "StandardScaler" and step.with_mean:
        shift = -np.asarray(step.mean_, np.float64) / scale
    if kind == "RobustScaler" and step.with_centering:
        shift = -np.asarray(step.center_, np.float64) / scale
    return np.broadcast_to(factor, n).tolist(), np.broadcast_to(shift, n).tolist()

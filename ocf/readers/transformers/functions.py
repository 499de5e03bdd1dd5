"""FunctionTransformer: functions of NumPy that are known, and others on the user's word.

Any function may be given, and what it does between two values cannot be told by trying. So it is read when it is one of
the functions below, without arguments; or when the user says that it is increasing or decreasing in each column
(``Explainer(…, monotone={"step": "increasing"})``), which the answer repeats.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ocf.errors import DataError, UnsupportedModelError
from ocf.features.lattice import Lattice
from ocf.readers.transformers.column import Column
from ocf.readers.transformers.flow import Flow, shown

CLASSES = ("FunctionTransformer",)

Function = Callable[..., Any]

#: Monotone to the last bit: rounded correctly, or a single product or comparison.
EXACT: tuple[Function, ...] = (
    np.floor, np.ceil, np.rint, np.trunc, np.negative, np.positive, np.degrees, np.radians, np.deg2rad, np.rad2deg,
    np.sign,
)  # fmt: skip

#: Monotone but for rounding.
ROUNDED: tuple[Function, ...] = (
    np.exp, np.exp2, np.expm1, np.cbrt, np.tanh, np.sinh, np.arctan, np.arcsinh,
)  # fmt: skip

#: Monotone where they are defined, which is an interval.
PARTIAL: tuple[Function, ...] = (
    np.log, np.log1p, np.log2, np.log10, np.sqrt, np.arcsin, np.arccos, np.arctanh, np.arccosh,
)  # fmt: skip

#: Monotone on either side of 0, to the last bit.
FOLDED: tuple[Function, ...] = (np.abs, np.fabs, np.square)

#: Numbers at which the user's word on a function is tried.
_TRIED = 257


def read(name: str, step: Any, flow: Flow) -> tuple[Column, ...]:
    """As many columns, each a function of the one before it.

    Parameters
    ----------
    name : str
    step : FunctionTransformer
    flow : Flow
    """
    path = "__".join((*flow.within, name))
    word = flow.source.monotone.get(path) or flow.source.monotone.get(name)
    function = step.func
    if function is None:
        return flow.columns
    if word is not None:
        _try_word(name, step, flow, word)
        return flow.each(lambda j, column: column.bent(exact=False))
    if not step.kw_args:
        if _is_one(function, EXACT):
            return flow.each(lambda j, column: column.bent())
        if _is_one(function, ROUNDED):
            return flow.each(lambda j, column: column.bent(exact=False))
        if _is_one(function, PARTIAL):
            return flow.each(lambda j, column: column.bent(exact=function is np.sqrt, partial=True))
        if _is_one(function, FOLDED):
            _refuse_wrapping(name, step, flow)
            return flow.each(lambda j, column: column.broken(flow.breaks_at(j, [0.0])))
    raise UnsupportedModelError(
        f"{shown(name, step)} is not read: its function may do anything; if it is monotone in each column, say so by "
        f"monotone={{{path!r}: 'increasing'}} or 'decreasing', or give ocf the table after that step"
    )


def _refuse_wrapping(name: str, step: Any, flow: Flow) -> None:
    """Refuse squares of whole numbers, which wrap round in their dtype."""
    for j, column in enumerate(flow.columns):
        kind = flow.dtype(j)
        if step.func is np.square and column.number and kind.lower().startswith(("int", "uint")):
            raise UnsupportedModelError(
                f"{shown(name, step)} multiplies numbers of feature {flow.named(j)} in {kind}, where large products "
                "wrap round: make the column float64 and fit the Pipeline again"
            )


def _is_one(function: Any, known: tuple[Function, ...]) -> bool:
    return any(function is f for f in known)


def _try_word(name: str, step: Any, flow: Flow, word: str) -> None:
    """Refuse a word that is not true of the numbers within the bounds: this can refute it, not prove it."""
    for j, column in enumerate(flow.columns):
        if not column.number:
            continue
        feature, base = flow.source.space.features[column.feature], flow.source.base[column.feature]
        low = feature.lower if np.isfinite(feature.lower) else base - max(1.0, abs(base))
        high = feature.upper if np.isfinite(feature.upper) else base + max(1.0, abs(base))
        values = np.unique(Lattice.of(feature).rounded(np.linspace(low, high, _TRIED)))
        before = flow.at(column.feature, values, j)
        behind = Flow(flow.source, (), lambda table: step.transform(flow.values(table)), flow.within)
        after = behind.at(column.feature, values, j)
        rising = np.diff(after[np.argsort(before, kind="stable")])
        if np.any(rising < 0 if word == "increasing" else rising > 0):
            raise DataError(
                f"{shown(name, step)} is said to be {word}, but within the bounds of feature {flow.named(j)} it is not"
            )

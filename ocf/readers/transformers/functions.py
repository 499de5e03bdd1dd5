"""FunctionTransformer: functions of NumPy that are known, and others on the user's word.

Any function may be given, and what it does between two values cannot be told by trying. So it is read when it is one of
the functions below, without arguments; or when the user says that it is increasing or decreasing in each column
(``Explainer(…, monotone={"step": "increasing"})``), which the answer repeats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray
from ocf.errors import DataError, UnsupportedModelError
from ocf.features.feature import Feature
from ocf.features.lattice import Lattice, finite_ends
from ocf.features.times import DAY
from ocf.readers.transformers.column import Column
from ocf.readers.transformers.flow import Flow, objects_of, shown

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
        behind = replace(flow, values=lambda table: step.transform(flow.values(table)))
        _refuse_mixing(name, step, behind, word)
        return flow.each(lambda j, column: _column_as_declared(name, step, flow, behind, word, j))
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


def _refuse_mixing(name: str, step: Any, behind: Flow, word: str) -> None:
    """Refuse a word on a function whose columns do not each follow the column in the same place, and no other row."""
    space, base = behind.source.space, behind.source.base
    tried = {i: _trial_values(f, base[i]) for i, f in enumerate(space.features) if not np.isnan(base[i])}
    tried = {i: values for i, values in tried.items() if len(values)}
    far = base.copy()  # for functions that look at two others at once
    for i, values in tried.items():
        far[i] = values[-1]
    moved = np.repeat(list(tried), [len(values) for values in tried.values()])
    for start in (base, far):
        rows = np.tile(start, (1 + len(moved), 1))
        rows[1 + np.arange(len(moved)), moved] = np.concatenate(list(tried.values()))
        alone, together = behind.values_at(start[None, :]), behind.values_at(rows)
        for j, column in enumerate(behind.columns):
            if column.mixed:
                continue
            # numbers, words and gaps alike
            found = pd.factorize(np.concatenate([objects_of(alone, j), objects_of(together, j)]))[0]
            if (found[1:][np.append(True, moved != column.feature)] != found[0]).any():
                raise DataError(
                    f"{shown(name, step)} is said to be {word} in each column, but what it makes of feature "
                    f"{behind.named(j)} follows other columns or rows too: give ocf the table after that step"
                )


def _trial_values(feature: Feature, base: float) -> FloatArray:
    """Values to which a feature is moved from that of the base row: its other levels, or two ends, the farther last."""
    if feature.discrete:
        codes = np.arange(len(feature.levels), dtype=np.float64)
        return codes[codes != base]
    return np.array(sorted(finite_ends(feature, base), key=lambda end: abs(end - base)))


def _column_as_declared(name: str, step: Any, flow: Flow, behind: Flow, word: str, j: int) -> Column:
    """Column j of numbers `behind` a function on the user's word, as far as trying does not refute it.

    Beyond the bounds the word need not be true: whole numbers wrap round in their dtype, squares turn at 0. There the
    column is not known from the first number on that refutes it.

    Raises
    ------
    DataError
        It is not true of the numbers within the bounds: this can refute it, not prove it.
    """
    column = flow.columns[j]
    feature, base = flow.source.space.features[column.feature], flow.source.base[column.feature]
    lattice = Lattice.of(feature)
    first, last = column.span(*lattice.keys(flow.source.domain()[column.feature]).tolist())
    inner = np.clip(lattice.keys(np.linspace(*finite_ends(feature, base), _TRIED)), first, last).tolist()
    apart = 2 ** (np.finfo(lattice.dtype).nmant // 2) if lattice.dtype.kind == "f" else 1  # more than rounding
    outer = np.array([*_spaced_keys(inner[0], first, apart), *_spaced_keys(inner[-1], last, apart)], np.int64)
    # far from 1970 a column of seconds holds no time of day that float64 does
    outer = np.clip(outer // DAY * DAY, first, last) if feature.is_time else outer
    keys = np.unique([*inner, *outer.tolist()])
    before = flow.at(column.feature, lattice.values(keys), j)
    after = behind.at(column.feature, lattice.values(keys), j) * (1 if word == "increasing" else -1)
    inside = (inner[0] <= keys) & (keys <= inner[-1])
    if np.any(np.diff(after[inside][np.argsort(before[inside], kind="stable")]) < 0):
        raise DataError(
            f"{shown(name, step)} is said to be {word}, but within the bounds of feature {flow.named(j)} it is not"
        )
    rises, stays = before[1:] > before[:-1], before[1:] == before[:-1]
    wrong = ~(stays | np.where(rises, after[1:] >= after[:-1], after[1:] <= after[:-1]))
    below, above = np.flatnonzero(wrong & (keys[1:] <= inner[0])), np.flatnonzero(wrong & (keys[:-1] >= inner[-1]))
    column = column.bent(exact=False)
    if not (len(below) or len(above)):
        return column
    start, stop = (keys[below[-1] + 1] if len(below) else first), (keys[above[0]] if len(above) else last)
    return replace(column, within=(int(start), int(stop)))


def _spaced_keys(bound: int, end: int, apart: int) -> list[int]:
    """Keys from a bound to the end of the line, each some eighth farther away than the one before it."""
    steps = {(end - bound) * eighths >> halvings for halvings in range(3, 67) for eighths in range(4, 9)}
    return [bound + step for step in steps if abs(step) >= apart]

"""Steps of a Pipeline whose shape is known by their class, so that proofs hold through them.

ocf probes what stands between the user's table and the trees. A probe can refute, never prove: a step may do anything
between two probes. So `optimal` and `infeasible` are claimed only where each step on the way is one of these:

* *monotone*: each column is a monotone function of its own column on all numbers that it takes (scalers, bins, power
  and quantile maps, some NumPy functions). In floating point this is exact for sums, products and comparisons;
  for others the numbers next to each threshold are looked at as well (`ocf.models.encoding`);
* *levels*: each column depends on one column of categories, whose levels are all tried (encoders);
* *imputers* of NaN, which leave rows without missing values as they are;
* *selectors*, and steps that hold other steps.

Classes are compared by name and library: a subclass may do something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ocf.features.space import FeatureSpace
from ocf.support.messages import listed

#: Each column is a monotone function of its own.
MONOTONE = (
    "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Binarizer", "PowerTransformer",
    "QuantileTransformer",
)  # fmt: skip

#: Each level of a category has its own columns or its own number.
LEVELS = ("OneHotEncoder", "OrdinalEncoder", "TargetEncoder")

#: A row without missing values stays as it is. The first depends on no other column where a value is missing.
IMPUTERS = ("SimpleImputer", "KNNImputer", "IterativeImputer")

#: Some columns are left out.
SELECTORS = (
    "SelectKBest", "SelectPercentile", "SelectFpr", "SelectFdr", "SelectFwe", "GenericUnivariateSelect",
    "SelectFromModel", "VarianceThreshold", "RFE", "RFECV", "SequentialFeatureSelector",
)  # fmt: skip

#: Monotone wherever they are defined, which is an interval.
FUNCTIONS: tuple[Callable[..., Any], ...] = (
    np.log, np.log1p, np.log2, np.log10, np.exp, np.exp2, np.expm1, np.sqrt, np.cbrt, np.tanh, np.sinh, np.arctan,
    np.arcsinh, np.floor, np.ceil, np.rint, np.trunc, np.negative, np.positive, np.degrees, np.radians,
)  # fmt: skip


class _Unknown(Exception):
    """A step of unknown shape, in words."""


@dataclass(frozen=True)
class _ColumnTracer:
    """Follows a table's columns through steps; `complete`: no value of it is missing."""

    complete: bool

    def through(self, name: str, step: Any, numbers: list[bool]) -> list[bool]:
        """Which columns behind a step carry numbers that may take any value, from which before it do.

        Raises
        ------
        _Unknown
        """
        if step is None or (isinstance(step, str) and step == "passthrough"):
            return numbers
        if isinstance(step, str) and step == "drop":
            return []
        kind = type(step).__name__ if type(step).__module__.split(".")[0] == "sklearn" else ""
        if kind == "Pipeline":
            for part, inner in step.steps:
                numbers = self.through(part, inner, numbers)
            return numbers
        if kind == "ColumnTransformer":
            return self._columns(name, step, numbers)
        if kind == "FeatureUnion":
            return [c for part, inner in step.transformer_list for c in self.through(part, inner, numbers)]
        if kind in SELECTORS:
            return [c for c, kept in zip(numbers, step.get_support(), strict=True) if kept]
        if kind in IMPUTERS or kind == "MissingIndicator":
            return self._filled(name, step, kind, numbers)
        if kind in LEVELS and not any(numbers):
            return [False] * _width(name, step)
        if kind in LEVELS:
            raise _Unknown(f"{_shown(name, step)} on columns of numbers")
        bins = kind == "KBinsDiscretizer" and step.encode == "ordinal"
        if kind in MONOTONE or bins or (kind == "FunctionTransformer" and _is_known(step)):
            return numbers
        raise _Unknown(_shown(name, step))

    def _columns(self, name: str, step: Any, numbers: list[bool]) -> list[bool]:
        places = getattr(step, "_transformer_to_input_indices", None)
        if places is None:
            raise _Unknown(_shown(name, step))
        out: list[bool] = []
        for part, inner, _ in step.transformers_:
            own = [numbers[j] for j in places.get(part, [])]
            out += self.through(part, inner, own) if own else []
        return out

    def _filled(self, name: str, step: Any, kind: str, numbers: list[bool]) -> list[bool]:
        if not _is_nan(step.missing_values):
            raise _Unknown(f"{_shown(name, step)} of missing_values={step.missing_values!r}")
        if kind == "MissingIndicator":
            return [False] * _width(name, step)
        if kind != "SimpleImputer" and not self.complete:
            raise _Unknown(f"{_shown(name, step)} where values are missing")
        width = _width(name, step)
        indicators = len(step.indicator_.features_) if step.add_indicator else 0
        if width - indicators != len(numbers):  # columns without any value are left out
            numbers = [any(numbers)] * (width - indicators)
        return numbers + [False] * indicators


def unknown_step(model: Any, numbers: Sequence[bool], *, complete: bool = True) -> str:
    """The first step between a table and the model whose shape is not known, in words; empty if there is none.

    Parameters
    ----------
    model : object
        A Pipeline that ends in the model, or a model, before which there is nothing.
    numbers : sequence of bool
        Which columns of the table carry numbers; the others hold levels, each of which is tried.
    complete : bool
        Whether no value is missing.
    """
    if not hasattr(model, "steps"):
        return ""
    flow = list(numbers)
    try:
        for name, step in model.steps[:-1]:
            flow = _ColumnTracer(complete).through(name, step, flow)
    except _Unknown as unknown:
        return str(unknown)
    return ""


def number_columns(space: FeatureSpace, columns: Sequence[str] | None) -> list[bool]:
    """Which columns of a model's table carry numbers, as `unknown_step` takes them.

    Parameters
    ----------
    space : FeatureSpace
    columns : sequence of str or None
        In the model's order; that of the space where the model knows none.
    """
    number = {c: not f.discrete for f in space.features for c in f.columns}
    return [number[c] for c in columns or space.columns]


def why_unproven(step: str, unsteady: tuple[str, ...]) -> str:
    """Why nothing is proven through a preprocessing, in words; empty where proofs hold.

    Parameters
    ----------
    step : str
        As `unknown_step` names it.
    unsteady : tuple of str
        Features next to whose thresholds rounding goes back and forth (`ocf.models.lift.unsteady`).
    """
    if step:
        return (
            f"nothing is proven through {step}, which ocf does not know by its class and can only try at some values; "
            "give ocf the table after that step for a proof"
        )
    if unsteady:
        return (
            f"nothing is proven: rounding makes the preprocessing of {listed(unsteady)} go back and forth next to a "
            "threshold; give ocf the table after the preprocessing for a proof"
        )
    return ""


def _shown(name: str, step: Any) -> str:
    kind = type(step).__name__
    return f"the step {name!r} ({kind})" if name != kind.lower() else f"the step {name!r}"


def _is_nan(value: Any) -> bool:
    return value is not None and not isinstance(value, str) and bool(pd.isna(value))


def _is_known(step: Any) -> bool:
    """Whether a FunctionTransformer's function is known."""
    return step.func is None or (not step.kw_args and any(step.func is known for known in FUNCTIONS))


def _width(name: str, step: Any) -> int:
    """How many columns a step gives."""
    try:
        return len(step.get_feature_names_out())
    except (AttributeError, ValueError):
        raise _Unknown(_shown(name, step)) from None

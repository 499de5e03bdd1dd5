"""Models that hold other models, as scikit-learn nests them: what is inside, and which steps stand before it.

A search holds its best estimator, a calibrated classifier one model per fold, a vote several; each of them may be a
Pipeline, and may hold models in turn. `opened` gives the same model behind all those Pipelines: it takes what their
steps make of a table, side by side, in the place of the table.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from ocf.errors import ModelError, UnsupportedModelError

#: Fitted members of each class that holds models, by the name of the attribute.
HOLDERS = {
    "BaseSearchCV": "best_estimator_",
    "FixedThresholdClassifier": "estimator_",
    "TunedThresholdClassifierCV": "estimator_",
    "CalibratedClassifierCV": "calibrated_classifiers_",
    "_CalibratedClassifier": "estimator",
    "TransformedTargetRegressor": "regressor_",
    "VotingClassifier": "estimators_",
    "VotingRegressor": "estimators_",
    "StackingClassifier": "estimators_",
    "StackingRegressor": "estimators_",
    "OneVsRestClassifier": "estimators_",
    "OneVsOneClassifier": "estimators_",
}

#: Steps before a model, outermost first.
Steps = tuple[tuple[str, Any], ...]


class Fitted(BaseEstimator):
    """An estimator that scikit-learn takes for fitted."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Do nothing.

        Parameters
        ----------
        X, y : object
            Not looked at.
        """
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


class Around(Fitted):
    """A model that stands for another one, on the same columns."""

    @property
    @abstractmethod
    def inner(self) -> Any:
        """The other model, fitted."""

    @property
    def called(self) -> str:
        """Its name in messages."""
        return type(self.inner).__name__

    @property
    def n_features_in_(self) -> int:
        """Columns that the model takes."""
        return int(self.inner.n_features_in_)

    @property
    def feature_names_in_(self) -> Any:
        """Their names, where the model knows them."""
        return self.inner.feature_names_in_


def name_of(model: Any) -> str:
    """What a model is called in messages: by its class, or by that of the model for which it stands.

    Parameters
    ----------
    model : object
    """
    return model.called if isinstance(model, Around) else type(model).__name__


class ColumnSpan(TransformerMixin, Fitted):
    """Some columns of a table: those that a model behind steps of its own gets to see.

    Parameters
    ----------
    first, last : int
        The columns are ``first:last``.
    width : int
        Of the table.
    names : tuple of str or None
        With which the model was fitted.
    """

    def __init__(self, first: int, last: int, width: int, names: tuple[str, ...] | None = None) -> None:
        self.first, self.last, self.width, self.names = first, last, width, names

    def transform(self, x: Any) -> Any:
        """The columns."""
        own = np.asarray(x)[:, self.first : self.last]
        return own if self.names is None else pd.DataFrame(own, columns=list(self.names))


def bare(native: Any) -> Any:
    """A model without scikit-learn's ice around it (FrozenEstimator)."""
    while type(native).__name__ == "FrozenEstimator":
        native = native.estimator
    return native


def holder_kind(native: Any) -> str:
    """Which of `HOLDERS` a model is; empty for all others."""
    for cls in type(native).__mro__:
        if cls.__module__.split(".")[0] == "sklearn" and cls.__name__ in HOLDERS:
            return cls.__name__
    return ""


def held(native: Any) -> list[Any]:
    """Fitted models that a model holds, without their ice.

    Raises
    ------
    ModelError
        It is not fitted.
    """
    kind = holder_kind(native)
    found = getattr(native, HOLDERS[kind], None)
    if found is None and kind == "FixedThresholdClassifier":  # around a model that was fitted before
        found = native.estimator
    if kind == "BaseSearchCV" and found is None:
        if getattr(native, "refit", True) is False:
            raise ModelError(
                f"this {type(native).__name__} was fitted with refit=False and holds no model: fit one with its "
                "best_params_, or search with refit=True"
            )
        raise ModelError(f"this {type(native).__name__} is not fitted: call its fit(X, y) first")
    if found is None:
        raise ModelError(f"this {type(native).__name__} is not fitted: call its fit(X, y) first")
    return [bare(one) for one in (found if isinstance(found, list | tuple) else [found])]


def _is_pipeline(native: Any) -> bool:
    return hasattr(native, "steps") and hasattr(native, "named_steps")


def holds_pipelines(native: Any) -> bool:
    """Whether a model, or the last step of a Pipeline, holds models of which some are Pipelines."""
    native = bare(native)
    if _is_pipeline(native):
        return holds_pipelines(native.steps[-1][1])
    return bool(holder_kind(native)) and any(flow.steps for flow in _innermost_models(native, ()))


def makes_arrays(native: Any) -> bool:
    """Whether a model, or one that it holds, makes an array of its table and hands on that."""
    native = bare(native)
    if _is_pipeline(native):
        return makes_arrays(native.steps[-1][1])
    kind = holder_kind(native)
    return kind == "OneVsOneClassifier" or (bool(kind) and any(map(makes_arrays, held(native))))


@dataclass(frozen=True)
class NestedModel:
    """The way of a table to a model inside another one.

    Attributes
    ----------
    steps : tuple of (name, transformer)
        Outermost first.
    model : estimator
        The first of the models behind them.
    """

    steps: Steps
    model: Any

    @property
    def key(self) -> tuple[Any, ...]:
        """Flows of one key make the same of a table; XGBoost takes what a sparse matrix leaves out for missing."""
        return (*(id(step) for _, step in self.steps), self.absent_is_missing)

    @property
    def absent_is_missing(self) -> bool:
        """Whether the model takes what a sparse matrix leaves out for missing values, and not for zeros."""
        return type(self.model).__module__.split(".")[0] == "xgboost"

    @property
    def pipeline(self) -> Any:
        """The steps and the model as one Pipeline."""
        from sklearn.pipeline import Pipeline

        names = [name for name, _ in self.steps]
        named = [(n if names.count(n) == 1 else f"{n} {k + 1}", s) for k, (n, s) in enumerate(self.steps)]
        return Pipeline([*named, ("model" if "model" not in names else "the model", self.model)])


def _innermost_models(native: Any, before: Steps) -> Iterator[NestedModel]:
    """The way to each model that holds no other."""
    native = bare(native)
    if _is_pipeline(native):
        yield from _innermost_models(native.steps[-1][1], (*before, *native.steps[:-1]))
    elif holder_kind(native):
        for member in held(native):
            yield from _innermost_models(member, before)
    else:
        yield NestedModel(before, native)


def flows_of(native: Any) -> tuple[NestedModel, ...]:
    """The different ways of a table to the models inside one."""
    found: dict[tuple[Any, ...], NestedModel] = {}
    for flow in _innermost_models(native, ()):
        found.setdefault(flow.key, flow)
    for stack, before in _on_tables(native, 0):
        if len(found) > 1 or any(len(flow.steps) > before for flow in found.values()):
            name = type(stack).__name__
            raise UnsupportedModelError(
                f"this {name} gives its final model the table as it is beside models behind Pipelines of their own: "
                f"put their steps before the whole, make_pipeline(steps, {name}(...)), or fit it with passthrough=False"
            )
    return tuple(found.values())


def _on_tables(native: Any, before: int) -> Iterator[tuple[Any, int]]:
    """Stacks within whose final models are given the table too, and how many steps stand before each."""
    native = bare(native)
    if _is_pipeline(native):
        yield from _on_tables(native.steps[-1][1], before + len(native.steps) - 1)
    elif holder_kind(native):
        if getattr(native, "passthrough", False):
            yield native, before
        for member in held(native):
            yield from _on_tables(member, before)


def opened(native: Any, flows: Sequence[NestedModel]) -> Any:
    """The same model behind all steps: it takes the columns of all flows, side by side.

    Parameters
    ----------
    native : object
        Never changed.
    flows : sequence of NestedModel
        Its own.

    Raises
    ------
    ModelError
        A model inside is not fitted.
    """
    ends, keys = [0], [flow.key for flow in flows]
    for flow in flows:
        width = getattr(flow.model, "n_features_in_", None)
        if width is None:
            raise ModelError(f"the {type(flow.model).__name__} inside this {type(native).__name__} is not fitted")
        ends.append(ends[-1] + int(width))

    def inside(model: Any, before: Steps) -> Any:
        model = bare(model)
        if _is_pipeline(model):
            return inside(model.steps[-1][1], (*before, *model.steps[:-1]))
        kind = holder_kind(model)
        if not kind:
            return behind(model, before)
        members = [inside(member, before) for member in held(model)]
        out = copy.copy(model)
        attribute = HOLDERS[kind]
        out.__dict__[attribute] = members if isinstance(getattr(model, attribute, None), list | tuple) else members[0]
        out.__dict__.pop("feature_names_in_", None)  # those of the table before the steps
        if "n_features_in_" in out.__dict__:
            out.__dict__["n_features_in_"] = ends[-1]
        return out

    def behind(model: Any, before: Steps) -> Any:
        if len(flows) == 1:
            return model
        from sklearn.pipeline import Pipeline

        k = keys.index(NestedModel(before, model).key)
        names = getattr(model, "feature_names_in_", None)
        named = None if names is None else tuple(map(str, names))
        return Pipeline([("columns", ColumnSpan(ends[k], ends[k + 1], ends[-1], named)), ("model", model)])

    return inside(native, ())

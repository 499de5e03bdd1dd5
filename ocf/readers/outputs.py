"""Models that predict several outputs at once: one of them, as a model of its own.

A `MultiOutputClassifier` or `MultiOutputRegressor` holds one model per output, which is what is explained. A tree or
forest fitted on several columns holds the values of all outputs in its leaves: `ModelOutput` is the user's own object,
asked for one column of its answers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ocf.errors import ModelError
from ocf.readers import xgboost
from ocf.readers.base import Rows, TreeModel, whole
from ocf.readers.nesting import Around, bare
from ocf.readers.sklearn_common import check_fitted

_HOLDERS = ("MultiOutputClassifier", "MultiOutputRegressor")

#: Whoever reads them refuses them, with the reason.
_CHAINS = ("ClassifierChain", "RegressorChain")


class ModelOutput(Around):
    """One output of a tree or forest of scikit-learn, or of an XGBoost model, that has several.

    Parameters
    ----------
    native : estimator
        Fitted; never changed.
    number : int
    """

    def __init__(self, native: Any, number: int) -> None:
        self.native, self.number = native, number

    @property
    def inner(self) -> Any:
        """The model."""
        return self.native

    @property
    def called(self) -> str:
        """Its name in messages."""
        return f"{type(self.native).__name__}'s output {self.number}"

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the output, where it has classes."""
        return np.arange(2) if xgboost.matches(self.native) else np.asarray(self.native.classes_[self.number])

    @property
    def estimators_(self) -> list[Any]:
        """The trees."""
        return list(getattr(self.native, "estimators_", [self.native]))

    def predict(self, rows: Rows) -> NDArray[Any]:
        """The model's own answers, of this output, (n,)."""
        return np.asarray(self.native.predict(rows))[:, self.number]

    @property
    def predict_proba(self) -> Callable[[Rows], NDArray[Any]]:
        """Rows -> the model's own probabilities of this output, where it has classes."""
        shown = self.native.predict_proba
        return lambda rows: _of_output(shown(rows), self.number)


def _of_output(shown: Any, number: int) -> NDArray[Any]:
    """Probabilities of one output: scikit-learn shows a list of tables, XGBoost a column for each second class."""
    if isinstance(shown, list):
        return np.asarray(shown[number])
    second = np.asarray(shown)[:, number]
    return np.column_stack([1 - second, second])


def n_outputs(model: Any) -> int:
    """How many outputs a model predicts at once; a Pipeline as many as its last step."""
    model = _final_estimator(model)
    if type(model).__name__ in _HOLDERS:
        return len(getattr(model, "estimators_", ())) or 1
    if xgboost.matches(model):
        return xgboost.count_targets(model)
    found = getattr(model, "n_outputs_", 1)
    return int(found) if isinstance(found, int | np.integer) else 1


def _final_estimator(model: Any) -> Any:
    model = bare(model)
    return _final_estimator(model.steps[-1][1]) if getattr(model, "steps", None) else model


def one_output(model: Any, output: int | str) -> Any:
    """A model of one output.

    Parameters
    ----------
    model : estimator or Pipeline
        Never changed.
    output : int or str
        Which of its outputs: their number, counted from 0.

    Raises
    ------
    ModelError
        The model is not fitted, or has no such output.
    """
    last = _final_estimator(model)
    if type(last).__name__ in _HOLDERS:
        check_fitted(last)
    count = n_outputs(model)
    counted = isinstance(output, int | np.integer) or (isinstance(output, str) and output.isdecimal())
    number = int(output) if counted else -1
    if type(last).__name__ in _CHAINS:
        return model
    if isinstance(output, bool) or not 0 <= number < count:
        many = f"the outputs 0 to {count - 1}, without names" if count > 1 else "a single output: leave output out"
        raise ModelError(f"there is no output {output!r}: this {type(last).__name__} predicts {many}")
    return model if count == 1 else _with_one_output(model, number)


def _with_one_output(model: Any, number: int) -> Any:
    model = bare(model)
    if getattr(model, "steps", None):
        out = copy.copy(model)
        name, last = model.steps[-1]
        out.steps = [*model.steps[:-1], (name, _with_one_output(last, number))]
        return out
    return bare(model.estimators_[number]) if type(model).__name__ in _HOLDERS else ModelOutput(model, number)


def matches(model: object) -> bool:
    """Whether the object is one output of a model."""
    return isinstance(model, ModelOutput)


def read(model: ModelOutput) -> TreeModel:
    """Ensemble of one output of a tree or forest, or of one target of XGBoost's.

    Parameters
    ----------
    model : ModelOutput

    Raises
    ------
    UnsupportedModelError
        It is no tree or forest of scikit-learn, and no XGBoost model.
    """
    if xgboost.matches(model.native):
        return xgboost.read_output(model, model.native, model.number)
    from ocf.readers.sklearn import read_output

    with whole(model.native):
        return read_output(model, model.native, model.number)

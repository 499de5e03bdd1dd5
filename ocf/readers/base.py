"""What a reader returns: the ensemble, and the user's own model to confirm every point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.errors import ModelError, OcfError
from ocf.trees.ensemble import Ensemble

#: Stands for every category of a column that no table has named yet.
UNSEEN = "a category that no table has"

#: Rows as the library takes them: an array (n, n_features) or a table with the model's columns.
Rows = NDArray[Any] | pd.DataFrame


@dataclass(frozen=True)
class TreeModel:
    """A model of a tree library beside the ensemble that was read from it.

    Attributes
    ----------
    ensemble : Ensemble
    native : object
        The user's own object; never changed.
    scores : callable
        Rows -> (n, n_outputs) float64: the library's own scores on the ensemble's scale (margins before the
        link; for forests the averaged probabilities or values). Used to check the reader.
    decide : callable
        Rows -> (n,) class indices (int64), or float64 values for regression: the library's own answer, as its
        ``predict`` gives it. This judges every counterfactual.
    library : str
        Name and version, such as ``"scikit-learn 1.7.0"``.
    categories : mapping of int to tuple
        For columns whose codes in the ensemble are not the user's own values: code ``c`` of column ``j``
        stands for ``categories[j][c]``. `scores` and `decide` take an array as codes and a table as the
        user's values.
    probabilities : callable or None
        Rows -> (n, n_classes) float64, as the library's ``predict_proba`` gives them; None without such.
    absent_is_missing : bool or None
        Whether the library takes what a sparse matrix leaves out for missing values, and not for zeros. None: some of
        the models that it holds do, and some do not.
    row_by_row : bool
        Whether the library adds up each row by itself. Linear algebra, as in the final model of a stack, follows the
        number of rows.
    naming : callable or None
        Of a library that keeps no names of categories: levels by column -> the same model, in which code ``c`` of
        column ``j`` stands for ``levels[j][c]``. Before that it knows no category of the user's.
    margin_scale : float
        What a score is multiplied by in the library's own ``decision_function``, where it has one.
    """

    ensemble: Ensemble
    native: Any
    scores: Callable[[Rows], FloatArray]
    decide: Callable[[Rows], NDArray[Any]]
    library: str
    categories: Mapping[int, tuple[Any, ...]] = field(default_factory=dict)
    probabilities: Callable[[Rows], FloatArray] | None = None
    absent_is_missing: bool | None = False
    row_by_row: bool = True
    naming: Callable[[Mapping[int, tuple[Any, ...]]], TreeModel] | None = None
    margin_scale: float = 1.0

    @property
    def classes(self) -> tuple[Any, ...]:
        """Class labels, by index; empty for regressors."""
        return self.ensemble.decision.classes

    @property
    def nameless(self) -> tuple[str, ...]:
        """Columns whose categories only a table can name."""
        return tuple(self.feature_names[j] for j, levels in self.categories.items() if levels == (UNSEEN,))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the model columns."""
        return self.ensemble.feature_names


def brief(cause: Exception) -> str:
    """Kind and first line of an error."""
    lines = str(cause).splitlines()
    return f"{type(cause).__name__}: {lines[0][:200]}" if lines else type(cause).__name__


@contextmanager
def whole(model: object) -> Iterator[None]:
    """Turn whatever a corrupt model raises into an error that says so.

    The parts of a model that ocf checks by name get an error of their own; this is for all others.

    Raises
    ------
    ModelError
        Something other than an error of ocf was raised inside.
    """
    try:
        yield
    except OcfError:
        raise
    except Exception as cause:
        library = type(model).__module__.split(".")[0]
        raise ModelError(
            f"this {type(model).__name__} lacks parts of a fitted one, or they do not fit each other ({brief(cause)}): "
            f"it is corrupt, or was saved by another version of {library}; fit it again with the version at hand"
        ) from cause

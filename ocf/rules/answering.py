"""The explained model's answers, asked of tables such as those it was fitted on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import FloatArray
from ocf.errors import ConformanceError, DataError
from ocf.features.frames import PANDAS, FrameKind
from ocf.features.space import FeatureSpace
from ocf.models.labels import class_array
from ocf.models.user_model import UserModel, working
from ocf.support.amounts import plain_value


class AnsweringModel:
    """A model that is asked about coded rows, or nothing that can be asked.

    Parameters
    ----------
    model : object with ``predict``, UserModel, or None
    space : FeatureSpace
    table : DataFrame (n, n_columns)
        The data.
    frames : FrameKind
        Of the data.
    array : bool
        Whether the data are an array, as which the model takes them.

    Attributes
    ----------
    model : object or None
        As it is asked.
    """

    def __init__(self, model: Any, space: FeatureSpace, table: pd.DataFrame, frames: FrameKind, array: bool) -> None:
        first = table.head(1)
        self.model = model.in_frames(frames, first) if isinstance(model, UserModel) else model
        self._space, self._frames, self._array = space, frames, array
        self._asked = _frames_asked(model, frames, first)
        self._categories = _category_dtypes(space, table)

    def table(self, coded: FloatArray) -> pd.DataFrame:
        """Table of coded rows, (n, n_features), with the labels and dtypes of the data's columns."""
        return self._frames.labelled(self._space.to_frame(coded).astype(self._categories))

    def predicted(self, coded: FloatArray) -> NDArray[Any]:
        """Answers to coded rows, (n,)."""
        return self._answers(self.table(coded))

    def first(self, coded: FloatArray) -> Any:
        """Answer to the first of coded rows; None without a model."""
        return None if self.model is None else plain_answer(self.predicted(coded[:1])[0])

    def to_data(self, table: pd.DataFrame, coded: FloatArray) -> NDArray[Any]:
        """Answers to the data, (n,), if the model gives them to what ocf makes of the coded rows too.

        Parameters
        ----------
        table : DataFrame (n, n_columns)
        coded : (n, n_features)
            The same, coded.

        Raises
        ------
        ConformanceError
            It does not, and would be asked about other values than those that rules name.
        """
        wanted, found = self._answers(self._frames.labelled(table)), self.predicted(coded)
        close = np.isclose(wanted, found) if wanted.dtype.kind == "f" else wanted == found
        others = np.flatnonzero(~(close | pd.isna(wanted)))
        if len(others):
            raise ConformanceError(
                f"the model answers {len(others)} of {len(table)} rows of the data otherwise than the table that ocf "
                f"makes of them (the first is row {others[0]}): fit it, and give it to ocf, on columns of plain "
                "numbers, truth values, words or categories"
            )
        return wanted

    def _answers(self, table: pd.DataFrame) -> NDArray[Any]:
        """Answers to a table in the user's columns and dtypes."""
        if isinstance(self.model, UserModel):
            decided = self.model.decide(table)
            classes = self.model.trees.ensemble.decision.classes
            return class_array([classes[k] for k in decided]) if classes else np.asarray(decided)
        with working(self.model, table):
            return np.asarray(self.model.predict(table.to_numpy() if self._array else self._asked.native(table)))


def distinct(answers: NDArray[Any]) -> tuple[Any, ...]:
    """The different answers, in order.

    Raises
    ------
    DataError
        They have none.
    """
    try:
        return tuple(plain_answer(v) for v in pd.unique(np.sort(answers)))
    except TypeError:
        raise DataError(
            "answers of several kinds, such as words and numbers, have no order: give words alone"
        ) from None


def plain_answer(value: Any) -> Any:
    """An answer as Python has it."""
    return plain_value(value)


def _category_dtypes(space: FeatureSpace, table: pd.DataFrame) -> dict[str, pd.CategoricalDtype]:
    """Dtypes of the columns of categories; levels that only the features have stand behind the others."""
    own = {f.columns[0]: (f.levels, table[f.columns[0]].dtype) for f in space.features if f.dtype == "category"}
    return {
        column: pd.CategoricalDtype(
            [*dtype.categories, *(v for v in levels if v not in dtype.categories)], dtype.ordered
        )
        for column, (levels, dtype) in own.items()
        if isinstance(dtype, pd.CategoricalDtype)
    }


def _frames_asked(model: Any, frames: FrameKind, table: pd.DataFrame) -> FrameKind:
    """In which kind of table a model is asked; see `UserModel.in_frames`.

    Parameters
    ----------
    model : object or None
    frames : FrameKind
        Of the data.
    table : DataFrame (n, n_columns)
        Some of the data.
    """

    def takes(kind: FrameKind) -> bool:
        try:
            model.predict(kind.native(table))
        except Exception:  # each library has its own errors
            return False
        return True

    if not frames or model is None or isinstance(model, UserModel):
        return PANDAS
    ways = (frames, PANDAS) if frames.library == "polars" else (PANDAS, frames)
    return next((kind for kind in ways if takes(kind)), PANDAS)

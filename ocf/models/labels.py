"""Labels of known rows: what came out, in the place of what the model says of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ocf.arrays import BoolArray
from ocf.errors import DataError, ProblemError
from ocf.problem.targets import Target, class_index


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of the data and their labels.

    Attributes
    ----------
    table : DataFrame (n, n_columns)
        In the user's columns.
    labels : list
        Class, or value, of each; None where it is not known.
    classes : tuple
        Class labels of the model; empty for a regressor.
    """

    table: pd.DataFrame
    labels: list[Any]
    classes: tuple[Any, ...]

    @classmethod
    def of(cls, table: pd.DataFrame | None, labels: Any, classes: tuple[Any, ...]) -> LabelledRows:
        """Rows with the labels that a user gives for them.

        Parameters
        ----------
        table : DataFrame (n, n_columns) or None
        labels : array_like (n,)
            Classes may be given by their texts, as files have them.
        classes : tuple

        Raises
        ------
        DataError
            There is no data, not a label for each row, or one that is no class of the model.
        """
        if table is None:
            raise DataError("labels are those of the rows of the data: give data, too")
        given = np.asarray(labels).ravel().tolist()
        if len(given) != len(table):
            raise DataError(f"there are {len(given)} labels for {len(table)} rows of the data: give one for each row")
        return cls(table, as_classes(given, classes), classes)

    def with_target(self, target: Target) -> pd.DataFrame:
        """Rows whose label is in a target."""
        return self.table[labelled(self.classes, target, self.labels)]


def as_classes(given: Iterable[Any], classes: tuple[Any, ...], what: str = "labels") -> list[Any]:
    """Classes of a model that a user names, None where a class is missing.

    Parameters
    ----------
    given : iterable
        Classes, or their texts, as files have them.
    classes : tuple
        Of the model; empty for a regressor, of which anything is a value.
    what : str
        What messages call them.

    Raises
    ------
    DataError
        One of them is no class of the model.
    """
    labels = [None if pd.isna(label) else label for label in given]
    if not classes:
        return labels
    try:
        named = {v: classes[class_index(v, classes, what)] for v in dict.fromkeys(labels) if v is not None}
    except ProblemError as error:
        raise DataError(str(error)) from error
    return [None if v is None else named[v] for v in labels]


def class_array(labels: Sequence[Any]) -> NDArray[Any]:
    """Classes as an array; NumPy by itself makes floats of whole numbers some of which are beyond int64.

    Parameters
    ----------
    labels : sequence
    """
    beyond = any(isinstance(label, int) and label > np.iinfo(np.int64).max for label in labels)
    return pd.Series(labels).to_numpy() if beyond else np.array(labels)


def labelled(classes: tuple[Any, ...], target: Target, labels: Sequence[Any]) -> BoolArray:
    """Which labels are in a target, (n,).

    Parameters
    ----------
    classes : tuple
        Of the model; empty for a regressor.
    target : Target
    labels : sequence
        Classes or values. What is no class is in no target.
    """
    if classes:
        place = {label: k for k, label in enumerate(classes)}
        answers = np.array([place.get(label, -1) for label in labels], np.int64)
        one_hot = np.eye(len(classes))[np.maximum(answers, 0)]
        return np.asarray(target.met_by(answers, one_hot) & (answers >= 0))
    return np.asarray(target.met_by(np.array([np.nan if v is None else v for v in labels], np.float64)))

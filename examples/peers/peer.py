"""What all adapters share: the lines of JSON, the forest behind a Pipeline, and its columns as numbers.

Standard library, NumPy, pandas, joblib and scikit-learn only, so that every environment has it.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import pandas as pd

Question = dict[str, Any]
Answer = dict[str, Any]


def serve(prepare: Callable[[Question], tuple[str, Callable[[Question], Answer]]]) -> None:
    """Answer the lines of ``ocf compare``.

    Parameters
    ----------
    prepare : callable
        Takes what is said of the case, and returns the version of the library and what answers an instance.
    """
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not get between the answers
    warnings.simplefilter("ignore")

    def say(line: Answer) -> None:
        print(json.dumps(line), file=answers, flush=True)

    version, answer = prepare(json.loads(sys.stdin.readline()))
    say({"version": version})
    for line in sys.stdin:
        try:
            say(answer(json.loads(line)))
        except Exception as error:
            say({"status": "error", "message": f"{type(error).__name__}: {error}"[:300]})


@dataclass(frozen=True)
class Column:
    """A column of the forest.

    Attributes
    ----------
    feature : dict
        Of the table, as ``features`` of an instance describes it.
    level : object
        The level that an indicator stands for; None of a column of numbers.
    """

    feature: dict[str, Any]
    level: Any = None


class Case:
    """A model of the comparison: a random forest on numbers, perhaps behind the one-hot encoding of categories.

    Parameters
    ----------
    said : dict
        First line of the protocol.

    Attributes
    ----------
    model, forest : object
        The user's own object, and the forest in it.
    data : DataFrame
        Training data.
    columns : list of Column
        Of the forest.
    binary : list of bool
        Which of them hold zeros and ones only.
    thresholds : list of arrays
        Of the forest, by column, sorted and distinct.
    """

    def __init__(self, said: Question) -> None:

        self.model = joblib.load(said["model"])
        self.data = read(said["data"], said["features"]["features"])
        self.options, self.seed, self.threads = said["options"], said["seed"], said["threads"]
        self.dtypes = self.data.dtypes
        last = getattr(self.model, "steps", [("", self.model)])[-1][1]
        self.forest: Any = last
        self.columns = self._columns({f["name"]: f for f in said["features"]["features"]})
        self.binary = [bool(np.isin(values, (0, 1)).all()) for values in self.encoded(self.data).T]
        self.thresholds = self._thresholds()

    def _thresholds(self) -> list[Any]:
        found: list[list[Any]] = [[] for _ in self.columns]
        for tree in self.forest.estimators_:
            inner = tree.tree_.children_left >= 0
            for column in np.unique(tree.tree_.feature[inner]):
                found[column].append(tree.tree_.threshold[inner & (tree.tree_.feature == column)])
        return [np.unique(np.concatenate(own)) if own else np.empty(0) for own in found]

    def table(self, row: dict[str, Any]) -> Any:
        """A row as a table of one row, in the dtypes of the data."""
        return pd.DataFrame([row])[list(self.data.columns)].astype(self.dtypes)

    def encoded(self, table: Any) -> Any:
        """What the forest gets to see of rows, (n, n_columns) float64."""
        steps = self.model[:-1] if hasattr(self.model, "steps") else None
        return np.asarray(steps.transform(table) if steps is not None else table, dtype=float)

    def _columns(self, by_name: dict[str, dict[str, Any]]) -> list[Column]:
        """Columns of the forest, in order."""
        if not hasattr(self.model, "steps"):
            return [Column(by_name[name]) for name in self.data.columns]
        (_, transform, encoded), *_ = self.model[0].transformers_
        found = [
            Column(by_name[name], level)
            for name, levels in zip(encoded, transform.categories_, strict=True)
            for level in levels
        ]
        return found + [Column(by_name[name]) for name in self.data.columns if name not in encoded]

    def target(self, asked: Question) -> int:
        """Index of the class that is wanted."""
        return self.forest.classes_.tolist().index(asked["target"])


def read(path: str, features: list[dict[str, Any]]) -> Any:
    """The table as it was written: levels that are words stay words, also where they look like numbers or gaps."""
    words = {f["name"]: str for f in features if f["levels"] and all(isinstance(v, str) for v in f["levels"])}
    return pd.read_csv(path, dtype=words, keep_default_na=False, na_values=[""])


def edges(threshold: float) -> tuple[float, float]:
    """The largest float64 that a forest of scikit-learn sends left of a threshold, and the next one.

    It casts values to float32 and tests ``<=``.
    """
    low = np.float32(threshold)
    if float(low) > threshold:
        low = np.nextafter(low, np.float32(-np.inf))
    high = np.nextafter(low, np.float32(np.inf))
    middle = (float(low) + float(high)) / 2
    left = middle if np.float32(middle) == low else float(np.nextafter(middle, -np.inf))
    return left, float(np.nextafter(left, np.inf))


def last_left(thresholds: Any) -> Any:
    """The largest float64 that a forest sends left of each threshold, (n,)."""
    return np.array([edges(threshold)[0] for threshold in thresholds])


def nearest(case: Case, row: Any, before: Any, after: Any, cuts: list[Any]) -> Any:
    """The point of the forest's columns that is nearest to the row among those with the same way through the trees.

    Parameters
    ----------
    case : Case
    row : (n_columns,) float64
        What the forest sees of the row.
    before, after : (n_columns,) float64
        Row and point in the units of the cuts.
    cuts : list of arrays
        Of each column, as many as the forest's thresholds and in the same order.
    """
    point = row.copy()
    for k, column in enumerate(case.columns):
        if column.level is not None or case.binary[k]:
            point[k] = round(after[k])
            continue
        was, now = np.searchsorted(cuts[k], np.array([before[k], after[k]]), side="left")
        if now > was:
            point[k] = edges(case.thresholds[k][now - 1])[1]
        elif now < was:
            point[k] = edges(case.thresholds[k][now])[0]
    return point


def as_row(case: Case, before: Any, after: Any) -> dict[str, Any]:
    """What changes in the table when the forest's columns do.

    Parameters
    ----------
    case : Case
    before, after : (n_columns,) float64
        What the forest sees of the row, and what it is to see.
    """
    changes: dict[str, Any] = {}
    for column, old, new in zip(case.columns, before, after, strict=True):
        if old != new and column.level is None:
            changes[column.feature["name"]] = float(new)
        elif old != new and new > 0.5:
            changes[column.feature["name"]] = column.level
    return {name: value.item() if hasattr(value, "item") else value for name, value in changes.items()}


def scales(columns: list[Column]) -> Any:
    """What one unit of each column costs under l1, (n_columns,); an indicator half, for two of them change."""
    return np.array([1 / c.feature["scale"] if c.level is None else 0.5 for c in columns])


def cost(columns: list[Column], before: Any, after: Any) -> float:
    """The l1 cost of a change."""
    return float(scales(columns) @ np.abs(np.asarray(after) - np.asarray(before)))

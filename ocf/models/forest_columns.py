"""What a fitted isolation forest sees of a table: the user's own columns, or those that the model sees.

A forest in a Pipeline brings its own steps along. Any other was fitted on one of the two, and its names tell on which;
where the steps before the model keep the names, its thresholds do, or it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from ocf.arrays import FloatArray
from ocf.errors import DataError
from ocf.models.user_model import UserModel, given_names, preprocessing_of
from ocf.readers.isolation import IsolationModel
from ocf.readers.transformers import Preprocessing, Ways
from ocf.support.messages import listed
from ocf.trees.ensemble import Ensemble, SplitKind

#: Table in the user's columns -> the same rows as a forest takes them.
Columns = Callable[[pd.DataFrame], Any]

#: Such a callable, and what of it is to be read.
Way = tuple[Columns, Ways]

#: Share of the values that lie among the thresholds of a forest which was fitted on such, at least, and of others, at
#: most; and by which part of the span of the thresholds values may lie beyond them.
FITTED, FOREIGN, BEYOND = 0.75, 0.25, 0.1


def way_to(native: Any, forest: IsolationModel, model: UserModel, rows: pd.DataFrame) -> Way:
    """The way from the user's table to what a fitted forest was fitted on.

    Parameters
    ----------
    native : estimator or Pipeline
        As the user has it.
    forest : IsolationModel
        The same, read.
    model : UserModel
    rows : DataFrame (n, n_columns)
        In the user's columns.

    Raises
    ------
    DataError
        It was fitted on neither the table nor on what the model sees of it, or it is not clear on which.
    """
    if hasattr(native, "steps"):
        return through_steps(native, model)
    names, width, seen = forest.names, forest.ensemble.n_features, model.trees.ensemble.n_features
    columns = tuple(map(str, rows.columns))
    of_table = set(names) <= set(columns) if names else len(columns) == width
    inner = _names_seen(model) or ()
    of_model = width == seen and (names is None or tuple(names) == inner)
    same = [inner.index(n) for n in names if n in inner] if names else [*range(seen)]
    # some of the columns that the model sees are not to be had, but must not be taken for those of the table either
    if of_table and len(same) == width:
        if not len(rows):
            raise DataError(
                "whether the isolation forest was fitted on the table or on what the model sees of it, under the same "
                "names, is told by rows of the target, of which the data have none: give data with such rows, or the "
                "forest in a Pipeline"
            )
        of_table = _is_of_table(forest, rows, model.encode(rows)[:, np.array(same, int)])
    if of_table:
        return _plain(names)
    if of_model:
        return _matrix(names, model), model.preprocessing
    shown = listed(names) if names else "without names"
    raise DataError(
        f"the isolation forest was fitted on {width} columns ({shown}), which are not those of the data "
        f"({listed(columns)}), nor, in their order, the {seen} that the model sees: fit it on the one or on the "
        "other, or give it in a Pipeline"
    )


def through_steps(pipeline: Any, model: UserModel) -> Way:
    """The way to what a Pipeline's isolation forest sees; it is given tables of the kind that the model is given.

    Parameters
    ----------
    pipeline : Pipeline
        Fitted.
    model : UserModel
    """
    before, names = pipeline[:-1], getattr(pipeline, "feature_names_in_", None)
    columns = None if names is None else tuple(map(str, names))

    def first(table: pd.DataFrame) -> Any:
        return model.frames.native(table[list(names)]) if names is not None else table.to_numpy()

    def given(table: pd.DataFrame) -> Any:
        if not before.steps:
            return first(table)
        encoded = before.transform(first(table))
        return encoded.toarray() if hasattr(encoded, "toarray") else encoded

    return given, preprocessing_of(columns, first, pipeline.steps[:-1]).heeding(model.preprocessing.monotone)


def _plain(names: tuple[str, ...] | None) -> Way:
    """The way to columns of the table itself; None: to all of them, as an array."""

    def plain(table: pd.DataFrame) -> Any:
        return table.to_numpy() if names is None else table[list(names)]

    return plain, preprocessing_of(names and tuple(map(str, names)), plain)


def _matrix(names: tuple[str, ...] | None, model: UserModel) -> Columns:
    """What the model sees of a table, under the names that the forest knows."""

    def matrix(table: pd.DataFrame) -> Any:
        encoded = (model.numbers or model.encode)(table)
        return encoded if names is None else pd.DataFrame(encoded, columns=list(names))

    return matrix


def _names_seen(model: UserModel) -> tuple[str, ...] | None:
    """Names of what a model sees: those that the steps before it give, or its own; None where it knows none."""
    from sklearn.pipeline import Pipeline

    ways = model.preprocessing
    if isinstance(ways, Preprocessing) and ways.steps:
        # steps of other libraries, and functions, may give none
        with suppress(AttributeError, ValueError, TypeError, NotImplementedError):
            return tuple(map(str, Pipeline(list(ways.steps)).get_feature_names_out()))
    return given_names(model.trees.ensemble.feature_names)


def _is_of_table(forest: IsolationModel, rows: pd.DataFrame, seen: FloatArray) -> bool:
    """Whether a forest is of the table, and not of what the model sees under the same names.

    Parameters
    ----------
    forest : IsolationModel
    rows : DataFrame (n, n_columns)
    seen : (n, n_columns of the forest) float64
        What the model sees of the rows, in the forest's order.

    Raises
    ------
    DataError
        That is not clear.
    """
    own = _numbers(rows if forest.names is None else rows[list(forest.names)])
    if own is None:
        return False
    other = ~((own == seen) | (np.isnan(own) & np.isnan(seen))).all(axis=0)
    if not other.any():
        return True
    if forest.names is None:
        raise DataError(
            f"the isolation forest takes {len(other)} columns without names: these may be those of the data, or the "
            "ones that the model sees of them; give it in a Pipeline, or fit it on a table with column names"
        )
    among = [_share_among(forest.ensemble, values, other) for values in (own, seen)]
    if max(among) < FITTED or min(among) > FOREIGN:
        raise DataError(
            f"the isolation forest takes {listed(forest.names)}, as the data has them and, with other values, the "
            "model: it is not clear on which it was fitted; give it in a Pipeline"
        )
    return among[0] > among[1]


def _numbers(table: pd.DataFrame) -> FloatArray | None:
    """A table as numbers, (n, n_columns); None where it holds others."""
    try:
        return table.to_numpy(np.float64)
    except (ValueError, TypeError):
        return None


def _share_among(trees: Ensemble, values: FloatArray, column: Any) -> float:
    """Share of the values of some columns, given by a mask, that lie among the thresholds of trees."""
    within, count = 0, 0
    for j in np.flatnonzero(column):
        at = trees.threshold[(trees.kind == SplitKind.AXIS) & (trees.feature == j)]
        known = values[~np.isnan(values[:, j]), j]
        if len(at):
            room = BEYOND * (at.max() - at.min())
            within += int(((at.min() - room <= known) & (known <= at.max() + room)).sum())
            count += len(known)
    return within / count if count else 0.0

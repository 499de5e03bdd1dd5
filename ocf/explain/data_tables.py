"""The data of an explainer: from a table to the features that a model takes, and what is told of that."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pandas as pd

from ocf.errors import DataError
from ocf.explain.faulty_rows import faulty_rows
from ocf.features.inference import infer_space
from ocf.features.reading import rows_of_data
from ocf.features.space import FeatureSpace
from ocf.models.user_model import UserModel, table_columns
from ocf.support.messages import listed

logger = logging.getLogger(__name__)

#: Tells at the level INFO how the table was read, before rows are solved.
reading_logger = logging.getLogger("ocf.reading")


def table_of_model(model: UserModel, table: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    """The data in the columns that the model takes.

    Parameters
    ----------
    model : UserModel
    table : DataFrame (n, n_columns)
    columns : tuple of labels
        Those that the model takes; the result has their order.

    Raises
    ------
    DataError
        It has others, too.
    """
    extra = [c for c in table.columns if c not in columns]
    if extra:
        raise DataError(f"the data has columns that the model does not take: {listed(extra)}; drop them")
    return table[list(columns)]


def space_of_table(
    model: UserModel, table: pd.DataFrame | None, features: Any, special_values: Any = None, *, groups: bool = True
) -> FeatureSpace:
    """The features of the data, as far as the settings leave them to be inferred.

    Parameters
    ----------
    model : UserModel
    table : DataFrame (n, n_columns) or None
        None is refused: there is nothing to infer features from.
    features : mapping of feature name to settings, FeatureSpace, or None
        See `ocf.features.inference.infer_space`; a FeatureSpace is taken as it is.
    special_values : sequence of number, or mapping of feature name to such, optional
    groups : bool
        Whether to recognise indicator columns of one category.
    """
    if isinstance(features, FeatureSpace):
        if special_values is not None:
            raise DataError("features is a FeatureSpace: say there which values are special")
        return features
    if table is None:
        raise DataError("give data (ideally the training data) or a FeatureSpace as features")
    own = table_of_model(model, table, table_columns(model, tuple(table.columns)))
    return infer_space(_without_refused(model, own), features, special_values, groups=groups)


def _without_refused(model: UserModel, table: pd.DataFrame) -> pd.DataFrame:
    """The table without categories that no row has and that the model refuses, as encoders do."""

    def read(rows: pd.DataFrame) -> object:
        return model.decide(rows) if len(rows) else None

    if table.empty:
        return table
    kept = {}
    for name in table.columns:
        column = table[name]
        if not isinstance(column.dtype, pd.CategoricalDtype):
            continue
        all_levels = column.cat.categories
        unused = all_levels.difference([*column.unique()], sort=False)
        levels = pd.Categorical([column.iloc[0], *unused], dtype=column.dtype)  # the model answers to the first row
        rows = table.iloc[np.zeros(len(levels), np.int64)].assign(**{name: levels})
        if len(unused) and (refused := faulty_rows(rows, read)):
            kept[name] = column.cat.set_categories(all_levels.difference([levels[k] for k in refused], sort=False))
    return table.assign(**kept)


def tell_of_reading(space: FeatureSpace) -> None:
    """Say how the table was read, and warn where the rows that are asked about were all there was to read."""
    reading_logger.info("%s", space)
    if space.reading is not None and space.reading.asked and not space.reading.few:
        logger.warning(
            "bounds, scales and levels come from the rows that are asked about, and proofs hold within them: "
            "--reference TABLE takes them from the training data"
        )


def warn_of_few(space: FeatureSpace) -> None:
    """Name what a few rows of data decide about in a warning."""
    if space.reading is not None and space.reading.few:
        logger.warning(
            "bounds, scales and levels come from only %s, and proofs hold within them: give the training data (data=; "
            "on the command line --reference TABLE, or as DATA of ocf compress), or say the bounds of features",
            rows_of_data(space.reading.rows),
        )

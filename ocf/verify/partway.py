"""What the user's model gives on the way from a row to its counterfactual, change by change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ocf.models.user_model import UserModel
from ocf.support.tolerances import PROOF_TOLERANCE


def partway_tables(
    original: pd.DataFrame, counterfactual: pd.DataFrame, features: Iterable[Sequence[str]]
) -> list[pd.DataFrame]:
    """The row with the first of its changes, with the first two, and so on, without the last.

    Parameters
    ----------
    original, counterfactual : DataFrame (1, n_columns)
        In the same columns.
    features : iterable of sequences of str
        Columns of each feature, in the order of the changes.
    """
    places = {str(c): k for k, c in enumerate(original.columns.tolist())}
    old, new = (table.to_numpy(dtype=object)[0] for table in (original, counterfactual))
    found = [original]
    for columns in features:
        moved = [places[c] for c in columns if not _same(old[places[c]], new[places[c]])]
        if moved:
            table = found[-1].copy()
            for k in moved:
                table.isetitem(k, counterfactual.iloc[:, k].array)
            found.append(table)
    return [table.copy() for table in found[1:-1]]  # each in one piece again: pandas puts pieces together slowly


def _same(old: Any, new: Any) -> bool:
    return bool(pd.isna(new)) if pd.isna(old) else not pd.isna(new) and bool(old == new)


def partway_shown(model: UserModel, tables: Iterable[pd.DataFrame]) -> tuple[tuple[float, ...], ...] | None:
    """What the user's model gives rows: the probabilities of all classes, or the value by itself.

    Parameters
    ----------
    model : UserModel
    tables : iterable of DataFrame (1, n_columns)

    Returns
    -------
    tuple of tuples, or None
        None of a classifier that shows no probabilities, or where it cannot be asked.
    """
    ask = model.probabilities if model.classes else lambda table: model.decide(table)[:, None]
    if ask is None:
        return None
    try:
        return tuple(tuple(map(float, ask(table)[0])) for table in tables)
    except Exception:  # the model is the user's, and these rows are nobody's
        return None


def misquoted_partway(
    claimed: Sequence[Sequence[float]] | None, shown: Sequence[Sequence[float]] | None
) -> Iterator[str]:
    """Which changes do not lead to what is claimed.

    Parameters
    ----------
    claimed, shown : sequence of sequences of float, or None
        As `partway_shown` gives them; nothing is claimed where the first is None.
    """
    if claimed is None:
        return
    if shown is None or len(shown) != len(claimed):
        yield f"Answers after {len(claimed)} changes are claimed, but there are {len(shown or ())} to ask for."
        return
    for k, (said, own) in enumerate(zip(claimed, shown, strict=True), 1):
        if len(said) != len(own) or not np.allclose(said, own, rtol=PROOF_TOLERANCE, atol=0):
            yield f"After {k} of the changes the model gives {list(own)}, not {list(said)} as claimed."

"""Whether the model answers otherwise where changed values fall short of the answer by less than their margins.

Part of `ocf.verify.check`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ocf.verify.asked import same

if TYPE_CHECKING:
    from ocf.models.user_model import UserModel


def fragile(
    model: UserModel,
    before: pd.DataFrame,
    after: pd.DataFrame,
    features: Sequence[Mapping[str, Any]],
    margins: Mapping[str, float],
    decided: Any,
) -> Iterator[str]:
    """Where the model answers otherwise once changed values, each and all, fall short by some of their margins.

    Parameters
    ----------
    model : UserModel
    before, after : DataFrame (1, n_columns)
    features : sequence of mappings
    margins : mapping of feature name to float
        In the user's units.
    decided : label, float or None
        What the model gives the counterfactual.
    """
    columns = {f["name"]: f["columns"][0] for f in features}
    moved = [f["name"] for f in features if f["name"] in margins and _moved(f, before, after)]
    for names in [[name] for name in moved] + [moved] * (len(moved) > 1):
        for part in (0.5, 0.999):
            short = after.copy()
            for name in names:
                column = columns[name]
                value = _short(before[column].iloc[0], after[column].iloc[0], part * margins[name])
                short[column] = pd.Series([value], short.index).astype(after[column].dtype)
            answer = model.decide(short)[0]
            answer = model.classes[int(answer)] if model.classes else float(answer)
            if decided is not None and not same(answer, decided):
                yield f"With {', '.join(map(repr, names))} short by {part:g} of the margin the model gives {answer!r}."


def _moved(feature: Mapping[str, Any], before: pd.DataFrame, after: pd.DataFrame) -> bool:
    """Whether one number became another; dates are not taken back, and codes have no way to go."""
    old, new = (table[feature["columns"][0]].iloc[0] for table in (before, after))
    numbers = all(isinstance(v, int | float | np.number) and bool(v == v) for v in (old, new))
    codes = (feature.get("special") or {}).get("codes", ())
    return bool(numbers and old != new and old not in codes and new not in codes)


def _short(old: Any, new: Any, by: float) -> Any:
    """A value that falls short of another on the way from the old one, in the dtype of its column."""
    if isinstance(new, int | np.integer):
        by = math.floor(by)
    short = max(old, new - by) if new > old else min(old, new + by)
    if isinstance(new, np.floating):
        short = type(new)(short)
        return np.nextafter(short, new) if abs(float(new) - float(short)) > by else short
    return short

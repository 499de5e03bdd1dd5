"""Words that a fitted model knows: levels of the table's columns of words, as encoders and libraries keep them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

import pandas as pd

from ocf.readers.transformers import SideBySide, category_encoders, containers, encoders, functions, imputers, scalers
from ocf.readers.transformers.flow import kind_of

if TYPE_CHECKING:
    from ocf.models.user_model import UserModel

#: Names in the table of the columns at some place before the model; None for those that a step has changed.
Names = Sequence[str | None]

#: Levels by column.
Levels = dict[str, list[Any]]


def known_levels(model: UserModel, columns: tuple[str, ...]) -> Levels:
    """Levels that a model was fitted on, by column of the table, where it takes the column as it is.

    Parameters
    ----------
    model : UserModel
        Its libraries may keep no levels of some columns.
    columns : tuple of str
        Of the table.
    """
    found: Levels = {}
    before = model.preprocessing
    ways = before.ways if isinstance(before, SideBySide) else (before,)
    given = [way.columns(columns) for way in ways]
    with suppress(AttributeError, KeyError, IndexError, TypeError):  # a step that is not fitted is refused later
        behind = [_through([step for _, step in way.steps], own, found) for way, own in zip(ways, given, strict=True)]
        if len(behind) == 1 and behind[0] is not None and model.trees.naming is None:
            _note(found, [(behind[0][j], levels) for j, levels in model.trees.categories.items()])
    return found


def words_of(levels: Mapping[str, Iterable[Any]]) -> dict[str, frozenset[str]]:
    """Levels of those columns alone that hold words and nothing else, but for missing values.

    Parameters
    ----------
    levels : mapping of str to iterable
        By column.
    """
    known = {name: frozenset(v for v in own if isinstance(v, str) or not pd.isna(v)) for name, own in levels.items()}
    return {name: own for name, own in known.items() if own and all(isinstance(v, str) for v in own)}


def _behind(step: Any, names: Names, found: Levels) -> Names | None:
    """Columns behind a step, None where their number is not told; levels of the encoders in it go into `found`."""
    kind = kind_of(step)
    if isinstance(step, str) and step == "drop":
        return []
    if step is None or isinstance(step, str) or (kind in functions.CLASSES and step.func is None):
        return names
    if kind in containers.CLASSES:
        return _behind_all(step, names, found)
    if kind in encoders.CLASSES:
        _note(found, zip(names, step.categories_, strict=False))
        return [None] * sum(encoders.widths(step))
    if kind in category_encoders.CLASSES:
        kept = getattr(step, "ordinal_encoder", step).mapping
        _note(found, [(own["col"], own["mapping"].index) for own in kept if own["col"] in names])
    if kind in imputers.CLASSES and len(step.get_feature_names_out()) == len(names):
        return names
    return [None] * len(names) if kind in scalers.CLASSES else None


def _behind_all(step: Any, names: Names, found: Levels) -> Names | None:
    """The same behind the steps that a step holds."""
    if kind_of(step).startswith("Pipeline"):
        return _through([inner for _, inner in step.steps], names, found)
    if type(step).__name__ == "FeatureUnion":
        parts = [_behind(inner, names, found) for _, inner in step.transformer_list]
    else:
        places = vars(step)["_transformer_to_input_indices"]
        parts = [
            _behind(inner, [names[j] for j in places.get(name, [])], found) for name, inner, _ in step.transformers_
        ]
    told = [part for part in parts if part is not None]
    return list(chain.from_iterable(told)) if len(told) == len(parts) else None


def _through(steps: Iterable[Any], names: Names, found: Levels) -> Names | None:
    """The same behind steps that follow each other."""
    behind: Names | None = names
    for step in steps:
        if behind is not None and not containers.is_sampler(step):
            behind = _behind(step, behind, found)
    return behind


def _note(found: Levels, pairs: Iterable[tuple[str | None, Iterable[Any]]]) -> None:
    for name, levels in pairs:
        if name is not None:
            found.setdefault(name, []).extend(levels)

"""What the user's model gives rows, and what that lacks of the target.

Part of `ocf.verify.check`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ocf.features.row_dtypes import exact_in
from ocf.verify.changes import close

if TYPE_CHECKING:
    from ocf.models.user_model import UserModel


def ask(model: UserModel, table: pd.DataFrame | None, which: str, problems: list[str]) -> Any:
    """Class label or value that the user's model gives a row; None when it cannot be asked.

    Parameters
    ----------
    model : UserModel
    table : DataFrame (1, n_columns) or None
    which : str
        What the row is, in words.
    problems : list of str
        What goes wrong is added.
    """
    if table is None:
        return None
    try:
        answer = model.decide(table)[0]
        return model.classes[int(answer)] if model.classes else float(answer)
    except Exception as error:  # the model is the user's: whatever it raises is a finding
        problems.append(f"The model cannot decide about the {which}: {type(error).__name__}: {error}")
        return None


def shown_by(model: UserModel, tables: Sequence[pd.DataFrame | None]) -> tuple[tuple[float, ...], ...] | None:
    """Probabilities that the user's model gives rows; None where it cannot be asked.

    Parameters
    ----------
    model : UserModel
    tables : sequence of DataFrame (1, n_columns)
        None of one that cannot be asked about.
    """
    show = model.probabilities
    if show is None or any(table is None for table in tables):
        return None
    try:
        return tuple(tuple(map(float, show(table)[0])) for table in tables if table is not None)
    except Exception:  # the model is the user's, and has decided about these rows already
        return None


def misquoted(claimed: Sequence[Sequence[float]] | None, shown: Sequence[Sequence[float]] | None) -> Iterator[str]:
    """Which probabilities are not those that the model gives.

    Parameters
    ----------
    claimed, shown : sequence of (n_classes,) sequences, or None
        Of the original and of the counterfactual.
    """
    if claimed is None:
        return
    if shown is None:
        yield "Probabilities are claimed, but the model shows none."
        return
    if len(claimed) != len(shown):
        yield f"There are probabilities of {len(claimed)} rows, not of {len(shown)}."
    for which, said, own in zip(("original", "counterfactual"), claimed, shown, strict=False):
        if len(said) != len(own) or not all(map(close, own, said)):
            yield f"The model gives the {which} the probabilities {list(own)}, not {list(said)} as claimed."


def completed(table: pd.DataFrame | None, imputations: Mapping[str, Any]) -> list[pd.DataFrame]:
    """The row with the values of each completion in the place of those that it lacks.

    Parameters
    ----------
    table : DataFrame (1, n_columns) or None
    imputations : mapping
        ``values`` by column, a list of one for each completion.
    """
    if table is None:
        return []
    filled = {name: _filled(own, table[name].dtype) for name, own in imputations["values"].items()}
    out = []
    for k in range(len(next(iter(filled.values())))):
        own = table.copy()
        for name, column in filled.items():
            own[name] = column.iloc[[k]].set_axis(own.index)
        out.append(own)
    return out


def _filled(values: Sequence[Any], dtype: Any) -> pd.Series[Any]:
    """Values of completions in the row's dtype; of dates and durations JSON keeps the text."""
    given = pd.Series(values)
    told = dtype.kind in "mM" and all(isinstance(value, str) for value in values)
    return given.astype(dtype) if told else exact_in(given, dtype)


def ask_each(
    model: UserModel, table: pd.DataFrame | None, imputations: Mapping[str, Any], which: str, problems: list[str]
) -> list[Any]:
    """What the user's model gives each completion of a row; nothing where it cannot be asked.

    Parameters
    ----------
    model : UserModel
    table : DataFrame (1, n_columns) or None
    imputations : mapping
        ``values`` by column, a list of one for each completion.
    which : str
        What the row is, in words.
    problems : list of str
        What goes wrong is added.
    """
    answers = [ask(model, own, which, problems) for own in completed(table, imputations)]
    return [] if any(answer is None for answer in answers) else answers


def most_given(model: UserModel, answers: Sequence[Any]) -> Any:
    """The class that is answered most often, of several the first of the model's; of values the median.

    Parameters
    ----------
    model : UserModel
    answers : sequence
        Class labels, or values.
    """
    if not answers:
        return None
    return max(model.classes, key=answers.count) if model.classes else float(np.median(answers))


def missed(model: UserModel, table: Any, decided: Any, target: Any, probability: float | None) -> Iterator[str]:
    """What a counterfactual lacks of the target.

    Parameters
    ----------
    model : UserModel
    table : DataFrame (1, n_columns) or None
        Asked about where a probability is wanted.
    decided : label or float
        What the model gives it.
    target : label, sequence of labels, or (lowest, highest)
    probability : float or None
        As in `ocf.verify.check.verify`.
    """
    classes = model.classes
    several = isinstance(target, list | tuple)
    if not classes:
        if not several or len(target) != 2:
            yield f"The model predicts a value, but the target {target!r} is no pair of bounds."
            return
        lowest, highest = target
        if lowest is not None and not decided >= float(lowest):
            yield f"The model gives the counterfactual {decided!r}, less than the wanted {lowest!r}."
        if highest is not None and not decided <= float(highest):
            yield f"The model gives the counterfactual {decided!r}, more than the wanted {highest!r}."
        return
    wanted = list(target) if several else [target]
    if probability is None:
        if not any(same(decided, label) for label in wanted):
            words = " or ".join(map(repr, wanted))
            yield f"The model gives the counterfactual {decided!r}, not the wanted {words}."
        return
    if model.probabilities is None:
        yield "A probability was wanted, but the model shows none."
        return
    shown = model.probabilities(table)[0]
    most = max((float(p) for p, c in zip(shown, classes, strict=True) if any(same(c, w) for w in wanted)), default=0.0)
    if not most >= probability:
        yield f"The model gives the wanted class a probability of {most!r}, less than the wanted {probability!r}."


def same(label: Any, other: Any) -> bool:
    """Whether two labels are one, or two values, which libraries may sum otherwise in a batch than by themselves.

    A label that went through JSON may have become its text.

    Parameters
    ----------
    label, other : label or float
    """
    if isinstance(label, float) and isinstance(other, float):
        return close(label, other)
    return bool(label == other) or str(label) == str(other)

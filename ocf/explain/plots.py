"""Explanations as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ocf.errors import DataError
from ocf.explain.text import chance, headline
from ocf.support.optional import optional
from ocf.support.wording import number, plain_text, word

if TYPE_CHECKING:
    from ocf.explain.answer import Answer


#: Colours of what was and of what would be.
OLD, NEW = "#bbbbbb", "#4477aa"


def plot(e: Answer, ax: Any = None, of: str = "changes") -> Any:
    """Bars of the changes, or of what the model gives before and after.

    Parameters
    ----------
    e : Answer
    ax : matplotlib Axes, optional
        By default those of a new figure.
    of : {"changes", "prediction"}
    """
    if of not in ("changes", "prediction"):
        raise DataError(f"plots are of 'changes' or of the 'prediction', not of {of!r}")
    return _changes(e, ax) if of == "changes" else _prediction(e, ax)


def _axes(e: Answer, ax: Any, bars: int) -> Any:
    """Axes with the headline above them and room for some bars."""
    plt = optional("matplotlib.pyplot", "plot", "Explanation.plot")
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 1.1 + 0.5 * max(bars, 1)), layout="constrained")
    ax.set_title(plain_text(headline(e)), loc="left", fontsize="medium", wrap=True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def _prediction(e: Answer, ax: Any) -> Any:
    """The probability of each class before and after, the wanted one on top, or the value."""
    if e.before is None:
        raise DataError("nothing is known of the prediction: the model has no predict_proba, or the row failed")
    if e.probabilities is None:
        names, rows = ["value"], [[e.before], *([] if e.after is None else [[e.after]])]
    else:
        names, rows = [str(label) for label in e.classes], [list(own) for own in e.probabilities]
        first = e.classes.index(e.likely)
        order = [*(k for k in range(len(names) - 1, -1, -1) if k != first), first]
        names, rows = [names[k] for k in order], [[own[k] for k in order] for own in rows]
    ax = _axes(e, ax, 2 * len(names))
    for values, colour, shift, label in zip(rows, (OLD, NEW), (0.2, -0.2), ("before", "after"), strict=False):
        places = np.arange(len(names)) + shift
        ax.barh(places, values, height=0.36, color=colour, label=label)
        for place, value in zip(places, values, strict=True):
            text = number(value) if e.probabilities is None else chance(value)
            ax.annotate(text, (value, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize="small")
    ax.set_yticks(np.arange(len(names)), [plain_text(name) for name in names])
    if e.probabilities is None:
        ax.set_xlabel("value")
        for bound in filter(None, e.target if isinstance(e.target, tuple) else ()):
            ax.axvline(bound, color="#cc3311", linewidth=1, linestyle="--")
    else:
        ax.set_xlabel("probability")
        ax.set_xlim(0, 1.15)  # the numbers stand to the right of the bars
        if e.probability is not None:
            ax.axvline(e.probability, color="#cc3311", linewidth=1, linestyle="--")
    ax.legend(loc="lower right", frameon=False)
    return ax


def _changes(e: Answer, ax: Any) -> Any:
    """Bars of what each change costs, the dearest on top, each with its words."""
    changes = e.own_changes.sort_values("cost", kind="stable")
    ax = _axes(e, ax, len(changes))
    if changes.empty:
        ax.set_axis_off()
        return ax
    places = np.arange(len(changes))
    ax.barh(places, changes["cost"], height=0.55, color=NEW)
    ax.set_yticks(places, [plain_text(str(name)) for name in changes["feature"]])
    ax.set_xlabel("cost of the change")
    room = float(changes["cost"].max()) or 1.0
    for place, cost, old, new in zip(places, changes["cost"], changes["from"], changes["to"], strict=True):
        words = f"{word(old, new)} → {word(new, old, new=True)}"
        ax.annotate(
            plain_text(words), (cost, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize="small"
        )
    ax.set_xlim(0, 1.45 * room)  # the words stand to the right of the bars
    return ax

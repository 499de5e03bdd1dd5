"""Explanations as pictures."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from ocf.errors import DataError
from ocf.explain.text import change_rows, headline, level, moved
from ocf.support.optional import optional
from ocf.support.wording import plain_text, word

if TYPE_CHECKING:
    from ocf.explain.answer import Answer


#: Colours of what was, of what would be, of a step back, and of what was wanted.
OLD, NEW, BACK, WANTED = "#bbbbbb", "#4477aa", "#ee8866", "#cc3311"


def plot(e: Answer, ax: Any = None, of: str = "changes") -> Any:
    """Bars of the changes, or of what the model gives before and after, or change by change.

    Parameters
    ----------
    e : Answer
    ax : matplotlib Axes, optional
        By default those of a new figure.
    of : {"changes", "prediction", "waterfall"}
    """
    drawn = {"changes": _changes, "prediction": _prediction, "waterfall": _waterfall}
    if of not in drawn:
        raise DataError(f"plots are of 'changes', of the 'prediction', or a 'waterfall' of it, not of {of!r}")
    return drawn[of](e, ax)


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
        places = [k + shift for k in range(len(names))]
        ax.barh(places, values, height=0.36, color=colour, label=label)
        for place, value in zip(places, values, strict=True):
            _beside(ax, level(e, value), value, place)
    ax.set_yticks(np.arange(len(names)), [plain_text(name) for name in names])
    ax.set_xlabel("value" if e.probabilities is None else "probability")
    if e.probabilities is not None:
        ax.set_xlim(0, 1.15)  # the numbers stand to the right of the bars
    _mark_wanted(e, ax)
    ax.legend(loc="lower right", frameon=False)
    return ax


def _waterfall(e: Answer, ax: Any) -> Any:
    """How the prediction moves from change to change, the row itself on top."""
    path = e.path
    if not path:
        raise DataError("nothing is known of the way to an answer: there is none, or the model has no predict_proba")
    names = [f"{name}\n{old} → {new}" for name, old, new, _ in change_rows(e)]
    ax = _axes(e, ax, len(path) + 1)
    lowest = 0.0 if e.classes else min(path) - 0.1 * (max(path) - min(path))
    last = len(path)
    for place, value, colour in ((0, path[0], OLD), (last, path[-1], NEW)):
        ax.barh(place, value - lowest, left=lowest, height=0.55, color=colour)
        _beside(ax, level(e, value), value, place)
    for place, (old, new) in enumerate(itertools.pairwise(path), 1):
        ax.barh(place, new - old, left=old, height=0.55, color=NEW if new >= old else BACK)
        ax.plot([old, old], [place - 1, place], color="#888888", linewidth=0.7)
        _beside(ax, moved(old, new), max(old, new), place)
    ax.plot([path[-1]] * 2, [last - 1, last], color="#888888", linewidth=0.7)
    ax.set_yticks(range(last + 1), ["as it is", *map(plain_text, names), "with all changes"], fontsize="small")
    ax.invert_yaxis()
    ax.set_xlabel(f"probability of {plain_text(str(e.likely))}" if e.classes else "value")
    reach = max(path) - lowest
    ax.set_xlim(lowest, lowest + 1.25 * reach if reach else None)  # the numbers stand to the right of the bars
    _mark_wanted(e, ax)
    return ax


def _beside(ax: Any, text: str, value: float, place: float) -> None:
    """Words to the right of a bar."""
    ax.annotate(
        plain_text(text), (value, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize="small"
    )


def _mark_wanted(e: Answer, ax: Any) -> None:
    """Lines at the probability, or at the ends of the interval, that was wanted."""
    ends = (e.probability,) if e.classes else e.target if isinstance(e.target, tuple) else ()
    for end in ends:
        if end is not None:
            ax.axvline(end, color=WANTED, linewidth=1, linestyle="--")


def _changes(e: Answer, ax: Any) -> Any:
    """Bars of what each change costs, the dearest on top, each with its words."""
    changes = e.own_changes.sort_values("cost", kind="stable")
    ax = _axes(e, ax, len(changes))
    if changes.empty:
        ax.set_axis_off()
        return ax
    places = range(len(changes))
    ax.barh(places, changes["cost"], height=0.55, color=NEW)
    ax.set_yticks(places, [plain_text(str(name)) for name in changes["feature"]])
    ax.set_xlabel("cost of the change")
    room = float(changes["cost"].max()) or 1.0
    for place, cost, old, new in zip(places, changes["cost"], changes["from"], changes["to"], strict=True):
        _beside(ax, f"{word(old, new)} → {word(new, old, new=True)}", cost, place)
    ax.set_xlim(0, 1.45 * room)  # the words stand to the right of the bars
    return ax

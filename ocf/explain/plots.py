"""Explanations as pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ocf.explain.text import headline
from ocf.support.optional import optional
from ocf.support.wording import plain_text, word

if TYPE_CHECKING:
    from ocf.explain.answer import Answer


# -- plot ------------------------------------------------------------------------------------------------------


def plot(e: Answer, ax: Any = None) -> Any:
    """Bars of what each change costs, the dearest on top, each with its words.

    Parameters
    ----------
    e : Answer
    ax : matplotlib Axes, optional
        By default those of a new figure.
    """
    plt = optional("matplotlib.pyplot", "plot", "Explanation.plot")
    changes = e.own_changes.sort_values("cost", kind="stable")
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 1.1 + 0.5 * max(len(changes), 1)), layout="constrained")
    ax.set_title(plain_text(headline(e)), loc="left", fontsize="medium", wrap=True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    if changes.empty:
        ax.set_axis_off()
        return ax
    places = np.arange(len(changes))
    ax.barh(places, changes["cost"], height=0.55, color="#4477aa")
    ax.set_yticks(places, [plain_text(str(name)) for name in changes["feature"]])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("cost of the change")
    room = float(changes["cost"].max()) or 1.0
    for place, cost, old, new in zip(places, changes["cost"], changes["from"], changes["to"], strict=True):
        words = f"{word(old, new)} → {word(new, old, new=True)}"
        ax.annotate(
            plain_text(words), (cost, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize="small"
        )
    ax.set_xlim(0, 1.45 * room)  # the words stand to the right of the bars
    return ax

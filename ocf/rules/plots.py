"""Plots of rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ocf.rules.conditions import Condition
from ocf.support.optional import optional
from ocf.support.wording import plain_text, word


def plot_conditions(conditions: Sequence[Condition], title: str, original: Mapping[str, Any], ax: Any = None) -> Any:
    """What a rule admits of each feature, on its range in the data, with the row's own value.

    Parameters
    ----------
    conditions : sequence of Condition
    title : str
    original : mapping of str to object
        Values of the row, by feature; empty for a region.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    plt = optional("matplotlib.pyplot", "plot", "RuleSet.plot")
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 1.3 + 0.5 * max(len(conditions), 1)), layout="constrained")
    ax.set_title(plain_text(title), loc="left", fontsize="medium")
    if conditions:
        ax.spines[["top", "right", "left", "bottom"]].set_visible(False)
    else:
        ax.set_axis_off()
    for place, condition in enumerate(reversed(conditions)):
        _plot_condition(ax, place, condition, original.get(condition.feature))
    ax.set_yticks(range(len(conditions)), [plain_text(c.feature) for c in reversed(conditions)])
    ax.tick_params(axis="y", length=0)
    ax.set_xticks([])
    ax.set_xlim(-0.02, 1.7)  # the words stand to the right of the bars
    ax.set_ylim(-0.6, max(len(conditions), 1) - 0.4)
    return ax


def _plot_condition(ax: Any, place: int, condition: Condition, value: Any) -> None:
    """Grey: the feature's range or levels. Blue: what the rule admits. Red: the row's own value."""
    ax.barh(place, 1.0, height=0.25, color="#dddddd")
    for left, right in _admitted(condition):
        ax.barh(place, max(right - left, 0.004), left=left, height=0.25, color="#4477aa")
    at = _position_on_bar(condition, value)
    if at is not None:
        ax.plot(at, place, "o", color="#ee6677", markersize=6)
    words = str(condition) if value is None else f"{condition}  (now {word(value)})"
    ax.annotate(plain_text(words), (1.03, place), va="center", fontsize="small")


def _admitted(condition: Condition) -> list[tuple[float, float]]:
    """What a condition admits, as parts of a bar from 0 to 1."""
    if condition.levels is not None:
        n = len(condition.known)
        return [(k / n, (k + 1) / n) for k, level in enumerate(condition.known) if level in condition.levels]
    ends = (
        0.0 if condition.lower is None else _position_on_bar(condition, condition.lower),
        1.0 if condition.upper is None else _position_on_bar(condition, condition.upper),
    )
    return [(left, right) for left, right in [ends] if left is not None and right is not None]


def _position_on_bar(condition: Condition, value: Any) -> float | None:
    """Where a value lies on a bar from 0 to 1; None for no value."""
    if value is None or (condition.levels is not None and value not in condition.known):
        return None
    if condition.levels is not None:
        return (condition.known.index(value) + 0.5) / len(condition.known)
    assert condition.span is not None
    low, high = condition.span
    return float(np.clip((value - low) / ((high - low) or 1.0), 0.0, 1.0))

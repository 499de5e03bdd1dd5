"""Pictures of a compression: where the thresholds lie, and what more of it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ocf.compression.thresholds import compares_numbers
from ocf.support.optional import optional
from ocf.support.wording import plain_text

if TYPE_CHECKING:
    from ocf.compression.discretizer import CounterfactualDiscretizer
    from ocf.compression.guessing import GuessingThresholds
    from ocf.features.feature import Feature


#: Values of Q at which the paper and the plots look.
LEVELS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)

#: Features that a map shows.
MOST = 40

#: Cells into which the range of a feature is cut.
BINS = 10

#: Inches of a figure below which keys stand under its plot.
NARROW = 5.0

#: Colours of the grids.
MAP_GRID, LINE_GRID = "#dddddd", "#e0e0e0"


def threshold_map(
    transformer: CounterfactualDiscretizer | GuessingThresholds, levels: Sequence[float] = LEVELS, bins: int = BINS
) -> pd.DataFrame:
    """Where thresholds lie, and up to which Q they are kept (fcca, figures 7-12).

    Parameters
    ----------
    transformer : fitted CounterfactualDiscretizer or GuessingThresholds
    levels : sequence of float
        Values of Q, increasing.
    bins : int

    Returns
    -------
    DataFrame (n_features, bins)
        By feature name and cell of its range: the largest of `levels` at which a threshold of the cell is kept; the
        smallest level for transformers without Q; NaN where there is none.
    """
    space, table = transformer.space_, transformer.thresholds_
    out = pd.DataFrame(np.nan, index=list(space.names), columns=range(bins))
    multiplicity = table["multiplicity"].to_numpy()
    limits = [np.quantile(multiplicity, q) if len(table) else 0.0 for q in levels]
    graded = hasattr(transformer, "Q")
    for name, value, count in table[["feature", "threshold", "multiplicity"]].itertuples(index=False):
        reached = max(q for q, limit in zip(levels, limits, strict=True) if count >= limit or q == levels[0])
        cell = _cell(space.features[space.index(name)], value, bins)
        level = reached if graded else levels[0]
        out.loc[name, cell] = np.nanmax([out.loc[name, cell], level])
    return out


def _cell(feature: Feature, value: float, bins: int) -> int:
    low, high = feature.lower, feature.upper
    if feature.discrete:
        levels = feature.levels if compares_numbers(feature) else range(len(feature.levels))
        low, high = float(levels[0]), float(levels[-1])
    share = (value - low) / (high - low) if high > low else 0.0
    return int(np.clip(share * bins, 0, bins - 1))


def plot_thresholds(
    transformer: Any, ax: Any = None, *, levels: Sequence[float] = LEVELS, bins: int = BINS, most: int = MOST
) -> Any:
    """Heat map of the thresholds: features against cells of their ranges.

    Parameters
    ----------
    transformer : fitted transformer, or what `threshold_map` gave
    ax : matplotlib Axes, optional
    levels, bins
        As in `threshold_map`.
    most : int
        Features to show; those with thresholds come first, the rest is counted in the title.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    """
    plt = optional("matplotlib.pyplot", "plot", "plot_thresholds")
    table = transformer if isinstance(transformer, pd.DataFrame) else threshold_map(transformer, levels, bins)
    table = table.set_axis(range(table.shape[1]), axis=1)
    used = table.notna().any(axis=1)
    shown = table[used] if used.sum() > most or len(table) > most else table
    hidden = len(table) - min(len(shown), most)
    shown = shown.iloc[:most]
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 1.4 + 0.26 * max(len(shown), 3)), layout="constrained")
    image = _heat_map(ax, shown, levels)
    if hidden:
        ax.set_title(f"{hidden} features without thresholds here are not shown", loc="left", fontsize="small")
    if np.nanmax(shown.to_numpy(np.float64), initial=levels[0]) > levels[0]:
        where = "bottom" if _is_narrow(ax) else "right"
        bar = ax.figure.colorbar(image, ax=ax, location=where, shrink=0.9)
        bar.set_ticks(range(len(levels)), labels=[f"{q:g}" for q in levels])
        bar.set_label("kept up to Q")
        bar.ax.tick_params(length=0)
    return ax


def _heat_map(ax: Any, shown: pd.DataFrame, levels: Sequence[float]) -> Any:
    """The image of a map of thresholds, with a grid between its cells."""
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm, ListedColormap

    colours = colormaps["viridis_r"](np.linspace(0.08, 0.88, len(levels)))
    order = {level: k for k, level in enumerate(levels)}
    values = shown.apply(lambda column: column.map(order)).to_numpy(np.float64)
    shape = (max(len(shown), 1), shown.shape[1])
    image = ax.imshow(
        values if len(shown) else np.full(shape, np.nan),
        aspect="auto",
        cmap=ListedColormap(colours),
        norm=BoundaryNorm(np.arange(len(levels) + 1) - 0.5, len(levels)),
        interpolation="none",
    )
    ax.set_yticks(range(len(shown)), [plain_text(str(name)) for name in shown.index], fontsize="small")
    ax.set_xticks(np.linspace(-0.5, shape[1] - 0.5, 6), ["0", "0.2", "0.4", "0.6", "0.8", "1"])
    ax.set_xlabel("place in the feature's range")
    ax.set_xticks(np.arange(shape[1] + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(shape[0] + 1) - 0.5, minor=True)
    ax.grid(which="minor", color=MAP_GRID, linewidth=0.6)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)
    return image


def tradeoff(discretizer: Any, X: Any, y: Any, levels: Sequence[float] = LEVELS, trees: Any = None) -> pd.DataFrame:
    """Table over Q: thresholds, features, compression, inconsistency, and the accuracy of trees.

    Parameters
    ----------
    discretizer : fitted CounterfactualDiscretizer
        Left as it was.
    X, y
        Training rows and their classes.
    levels : sequence of float
    trees : mapping of str to estimator, optional
        Unfitted, such as ``{"cart": SurrogateTree()}``: fitted on the binary features at each Q; their accuracy on
        these rows becomes a column of that name.

    Returns
    -------
    DataFrame
        One row per level, ``Q`` as the index.
    """
    from sklearn.base import clone

    before, rows = discretizer.Q, []
    try:
        for q in levels:
            discretizer.set_params(Q=q)
            row = discretizer.metrics(X, y)
            bits = np.asarray(discretizer.transform(X))
            for name, tree in (trees or {}).items():
                row[name] = float(np.mean(clone(tree).fit(bits, y).predict(bits) == np.asarray(y)))
            rows.append({"Q": q, **row})
    finally:
        discretizer.set_params(Q=before)
    return pd.DataFrame(rows).set_index("Q")


def plot_tradeoff(table: pd.DataFrame, ax: Any = None) -> Any:
    """Lines over Q of compression, inconsistency and the accuracy of trees.

    Parameters
    ----------
    table : DataFrame
        From `tradeoff`.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    plt = optional("matplotlib.pyplot", "plot", "plot_tradeoff")
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    rates = [c for c in table.columns if c not in ("features", "thresholds")]
    for k, name in enumerate(rates):
        style = {"compression": ("#4477aa", "-"), "inconsistency": ("#cc3311", "-")}
        colour, line = style.get(name, (("#228833", "#aa3377", "#ccbb44", "#66ccee")[k % 4], "--"))
        label = name if name in style else f"accuracy, {name}"
        ax.plot(table.index, table[name], color=colour, linestyle=line, marker="o", markersize=4, label=label)
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("Q")
    ax.set_ylabel("share of the rows")
    ax.grid(axis="y", color=LINE_GRID, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    if _is_narrow(ax):
        ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(0.0, -0.16), ncols=2)
    else:
        ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def _is_narrow(ax: Any) -> bool:
    """Whether keys stand under a plot, since there is no room beside it."""
    return bool(ax.figure.get_figwidth() < NARROW)

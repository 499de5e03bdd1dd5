"""A compression as a web page without any network: rates, thresholds, a tree in words, and plots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ocf.compression.plots import LINE_GRID, MAP_GRID, MOST, plot_thresholds, plot_tradeoff, threshold_map, tradeoff
from ocf.compression.surrogate import SurrogateTree
from ocf.support.optional import optional
from ocf.support.pages import render
from ocf.support.svg import inline_svg
from ocf.support.wording import number

if TYPE_CHECKING:
    import pandas as pd

    from ocf.compression.discretizer import CounterfactualDiscretizer

#: Inches of a figure: points of letters are about pixels in a window of 375.
WIDTH = 4.5


def to_page(discretizer: CounterfactualDiscretizer, X: Any, y: Any, path: str | Path | None = None) -> str:
    """Self-contained web page about a fitted discretizer; written to `path` if one is given.

    Parameters
    ----------
    discretizer : fitted CounterfactualDiscretizer
    X, y
        Rows on which the rates and the accuracy are measured, ideally the training rows.
    path : str or Path, optional

    Raises
    ------
    MissingDependencyError
        Without matplotlib.
    """
    y = np.asarray(y)
    tree = SurrogateTree(discretizer).fit(X, y)
    rates = tradeoff(discretizer, X, y, trees={"tree": SurrogateTree()})
    page = render(
        "ocf.compression",
        "compression.html.j2",
        title=f"Compression of {len(discretizer.space_)} features",
        facts=_facts(discretizer, X, y),
        explained=len(discretizer.rows_),
        searches=", ".join(f"{n} {status}" for status, n in discretizer.statuses_.items()) or "none",
        rows=len(y),
        accuracy=f"{np.mean(tree.predict(X) == y):.1%}",
        tree=str(tree),
        map=_map(discretizer),
        lines=_svg(plot_tradeoff(rates, _axes(3.6)), "What a higher Q costs"),
        rate_names=list(map(str, rates.columns)),
        rates=_rates(rates),
        thresholds=_thresholds(discretizer),
    )
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def _facts(discretizer: CounterfactualDiscretizer, X: Any, y: Any) -> list[tuple[str, str]]:
    found = discretizer.metrics(X, y)
    return [
        ("thresholds", f"{found['thresholds']} of {len(discretizer.thresholds_)}"),
        ("features", f"{found['features']} of {len(discretizer.space_)}"),
        ("compression", f"{found['compression']:.1%}"),
        ("inconsistency", f"{found['inconsistency']:.1%}"),
        ("Q", f"{discretizer.Q:g}"),
    ]


def _thresholds(discretizer: CounterfactualDiscretizer) -> list[tuple[str, str, int]]:
    """Name, exact value and multiplicity of the thresholds in use, the most frequent first."""
    kept = discretizer.thresholds_.query("kept").sort_values("multiplicity", ascending=False, kind="stable")
    columns = kept[["name", "threshold", "multiplicity"]]
    return [(name, repr(value), int(count)) for name, value, count in columns.itertuples(index=False)]


def _rates(rates: pd.DataFrame) -> list[list[str]]:
    return [
        [f"{q:g}", *(number(value, 3) for value in row)] for q, row in zip(rates.index, rates.to_numpy(), strict=True)
    ]


def _map(discretizer: CounterfactualDiscretizer) -> str:
    """Where the thresholds lie, a line for each feature."""
    table = threshold_map(discretizer)
    used = int(table.notna().any(axis=1).sum())
    lines = min(used if len(table) > MOST else len(table), MOST)
    return _svg(plot_thresholds(table, _axes(1.9 + 0.22 * max(lines, 3))), "Where the thresholds lie")


def _axes(height: float) -> Any:
    """Axes of a figure whose letters can be read on a telephone.

    Parameters
    ----------
    height : float
        Inches.
    """
    figure = optional("matplotlib.figure", "report", "the page of a compression")
    return figure.Figure(figsize=(WIDTH, height), layout="constrained").subplots()


def _svg(ax: Any, title: str) -> str:
    """The figure of an Axes as a piece of the page."""
    return inline_svg(ax.figure, title, colours=dict.fromkeys((MAP_GRID, LINE_GRID), "rgba(128,128,128,.35)"))

"""Explanations as pictures."""

from __future__ import annotations

import pytest

from ocf.explain.explanation import Explanation, Explanations

from .made import hostile


def test_plot(example: Explanation, several: Explanations) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for e in (example, several[1], hostile()):
        ax = e.plot()
        ax.figure.canvas.draw()
        plt.close(ax.figure)
    _, mine = plt.subplots()
    assert example.plot(ax=mine) is mine
    assert [t.get_text() for t in mine.get_yticklabels()] == ["age"]
    plt.close("all")

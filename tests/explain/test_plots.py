"""Explanations as pictures."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest

from ocf import Explainer
from ocf.errors import DataError
from ocf.explain.answers import failed
from ocf.explain.explanation import Explanation, Explanations

from .made import hostile, raised_sum


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


def test_plot_of_the_prediction(example: Explanation, prices, three) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def bars(e: Explanation) -> list[float]:
        ax = e.plot(of="prediction")
        ax.figure.canvas.draw()
        return [patch.get_width() for patch in ax.patches]

    assert example.probabilities is not None
    assert bars(example) == [p for own in example.probabilities for p in own[::-1]]
    table, model, explainer = prices
    dear = explainer.explain(table.iloc[[0]], target=(9000, None))[0]
    assert bars(dear) == [model.predict(table.iloc[[0]])[0], model.predict(dear.counterfactual)[0]]
    numbers, model = three
    row = numbers[model.predict(numbers) == "a"].iloc[[0]]
    assert len(bars(Explainer(model, data=numbers).explain(row, "c", probability=0.5)[0])) == 6
    with pytest.raises(DataError, match="predict_proba"):
        failed(0, pd.DataFrame({"a": [1]}), "error", "").plot(of="prediction")
    with pytest.raises(DataError, match="'changes'"):
        example.plot(of="cost")
    plt.close("all")


def test_waterfall_of_the_prediction(credit, several: Explanations) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    table, model, explainer = credit
    row = table[model.predict(table) == "refused"].iloc[[0]]
    granted = explainer.explain(row, "granted", probability=0.8)[0]
    for e in (granted, raised_sum()[0]):
        ax = e.plot(of="waterfall")
        ax.figure.canvas.draw()
        before, after, *steps = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches]
        assert (before[1], after[1]) == pytest.approx((e.before, e.after))
        assert before[0] == after[0] == ax.get_xlim()[0]
        assert [pytest.approx(step) for step in steps] == list(itertools.pairwise(e.path))
        plt.close(ax.figure)
    for unknown in (several[1], several[2]):
        with pytest.raises(DataError, match="the way to an answer"):
            unknown.plot(of="waterfall")

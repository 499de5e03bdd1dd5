"""Marks, and the words that they bear."""

from __future__ import annotations

import itertools

import pytest

from ocf.compare.drawing import Axis, Figure, apart


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("hollow", [True, False])
def test_every_mark_bears_its_words(count: int, hollow: bool) -> None:
    figure = Figure("marks", Axis("x", 0.0, 2.0), Axis("y", 1.0, 9.0, log=True))
    figure.dots([1.0, 2.0][:count], [1.0, 3.0][:count], 0, ["one", "two"][:count], hollow=hollow)
    svg = figure.render()
    assert [f"<title>{words}</title></path>" in svg for words in ("one", "two")] == [True, count == 2]


def test_marks_whose_words_would_run_into_each_other_are_left_out() -> None:
    trees = tuple((float(v), f"{v} trees") for v in (10, 20, 30, 40, 50, 60, 70, 80, 90, 100))
    axis = Axis("trees", 9.0, 110.0, log=True, ticks=trees)
    kept = [value for value, _ in apart(axis, across=True)]
    assert kept[-1] == 100.0
    assert kept[0] == 10.0
    assert all(b / a > 1.3 for a, b in itertools.pairwise(kept))
    assert len(apart(axis, across=False)) > len(kept)  # lines of text are less high than wide
    few = Axis("depth", 2.0, 6.0, ticks=((2.0, "2"), (4.0, "4"), (6.0, "6")))
    assert apart(few, across=True) == list(few.ticks)

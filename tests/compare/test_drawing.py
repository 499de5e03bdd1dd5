"""Marks, and the words that they bear."""

from __future__ import annotations

import pytest

from ocf.compare.drawing import Axis, Figure


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("hollow", [True, False])
def test_every_mark_bears_its_words(count: int, hollow: bool) -> None:
    figure = Figure("marks", Axis("x", 0.0, 2.0), Axis("y", 1.0, 9.0, log=True))
    figure.dots([1.0, 2.0][:count], [1.0, 3.0][:count], 0, ["one", "two"][:count], hollow=hollow)
    svg = figure.render()
    assert [f"<title>{words}</title></path>" in svg for words in ("one", "two")] == [True, count == 2]

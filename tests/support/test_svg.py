"""Figures as pieces of a page: its colours, its letters, and nothing that changes from one time to the next."""

from __future__ import annotations

from typing import Any

import pytest

from ocf.support.svg import inline_svg

matplotlib_figure = pytest.importorskip("matplotlib.figure")


def drawn() -> Any:
    figure = matplotlib_figure.Figure(figsize=(3, 2))
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], color="#4477aa")
    marks = ax.scatter([0, 1, 1], [0, 1, 0], marker="8", color="#cc3311", clip_on=False)
    marks.set_paths(marks.get_paths() * 3)
    marks.set_gid("marks")
    ax.set_xlabel("a < b & c")
    return figure


def test_figures_take_the_colours_of_the_page() -> None:
    svg = inline_svg(drawn(), "Two <lines>", colours={"#4477aa": "var(--m0)"})
    assert "#4477aa" not in svg
    assert "var(--m0)" in svg
    assert "#cc3311" in svg
    assert "#ffffff" not in svg  # no ground of its own
    assert "#000000" not in svg
    assert "<title>Two &lt;lines&gt;</title>" in svg
    assert ">a &lt; b &amp; c</text>" in svg


def test_figures_are_the_same_every_time() -> None:
    first = inline_svg(drawn(), "t")
    assert first == inline_svg(drawn(), "t")
    for foreign in ("http", "metadata", "xmlns", "<?xml", "<!DOCTYPE"):
        assert foreign not in first


def test_marks_bear_words() -> None:
    svg = inline_svg(drawn(), "t", tooltips={"marks": ["one", "two & three", "four"]})
    at = [svg.index(f"<title>{words}</title></path>") for words in ("one", "two &amp; three", "four")]
    assert at == sorted(at)
    with pytest.raises(ValueError, match="zip"):
        inline_svg(drawn(), "t", tooltips={"marks": ["one"]})


def test_names_that_are_kept_are_referred_to() -> None:
    svg = inline_svg(drawn(), "t")
    for part in svg.split('id="')[1:]:
        assert f"#{part.partition(chr(34))[0]}" in svg

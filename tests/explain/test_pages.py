"""Explanations as web pages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from ocf.explain.explanation import Explanation, Explanations

from .made import hostile

VOID = {"meta", "br", "hr", "img", "link"}


class Balanced(HTMLParser):
    """Checks that every tag is closed, and collects tags and links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [str(v) for k, v in attrs if k in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_pages_parse_and_need_no_network(several: Explanations, example: Explanation, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    pages = [example.to_html(), several.to_html(path), example._repr_html_(), several._repr_html_()]
    assert path.read_text(encoding="utf-8") == pages[1]
    for page in pages:
        seen = Balanced(page)
        assert seen.links == []
        assert "script" not in seen.tags
        assert not re.search(r"https?:|//|url\(|@import", page)
    assert "viewport" in pages[0]
    assert "r&lt;7&gt;" in pages[0]


def test_hostile_words_are_escaped() -> None:
    e = hostile()
    assert e.verified, e.checks
    for page in (e.to_html(), e._repr_html_(), Explanations([e, e]).to_html()):
        assert "script" not in Balanced(page).tags
        assert "<b>no" not in page
        assert "&lt;script&gt;" in page
    assert Explanation.from_json(e.to_json()) == e

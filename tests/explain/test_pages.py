"""Explanations as web pages."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import BROWSER, looked_at

from ocf.explain.explanation import Explanation, Explanations
from ocf.explain.region import CounterfactualRegion
from ocf.explain.text import change_rows

from .made import hostile
from .people import refused

#: Searches and sorts the rows in each frame, and measures it.
LOOK = """
const found = {};
for (const frame of document.querySelectorAll("iframe")) {
  const page = frame.contentDocument, view = {width: frame.clientWidth, scroll: page.documentElement.scrollWidth};
  found[frame.id] = view;
  const order = page.querySelector(".tools select"), search = page.querySelector(".tools input");
  if (!order) continue;
  const entries = () => [...page.querySelectorAll(".entry")];
  for (const key of ["cost", "-cost", "status", "place"]) {
    order.value = key;
    order.dispatchEvent(new Event("change"));
    view[key] = entries().map(e => e.dataset.place);
  }
  search.value = "INFEASIBLE";
  search.dispatchEvent(new Event("input"));
  view.shown = entries().filter(e => !e.hidden).map(e => e.dataset.place);
  view.said = page.querySelector(".tools output").textContent;
}
"""


def only(region: CounterfactualRegion, name: str) -> CounterfactualRegion:
    """The region, of which one feature alone counts."""
    return replace(region, ranges={name: region.ranges[name]})


VOID = {"meta", "br", "hr", "img", "link", "input"}


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
        assert page.count("<script") == (page is pages[1])  # searches and sorts the rows
        assert not re.search(r"https?:|//|url\(|@import", page)
    assert "viewport" in pages[0]
    assert "r&lt;7&gt;" in pages[0]


def test_hostile_words_are_escaped() -> None:
    e = hostile()
    assert e.verified, e.checks
    for page in (e.to_html(), e._repr_html_(), Explanations([e, e]).to_html()):
        Balanced(page)
        assert page.count("<script") == page.count('class="tools"')
        assert "<b>no" not in page
        assert "&lt;script&gt;" in page
    assert Explanation.from_json(e.to_json()) == e


@pytest.mark.skipif(BROWSER is None, reason="needs a Chromium browser: apt-get install chromium")
def test_rows_of_a_batch_are_searched_and_sorted(several: Explanations, tmp_path: Path) -> None:
    page = several.to_html()
    found = looked_at(page, LOOK, tmp_path)["w1440"]
    places = [str(k) for k in range(len(several))]
    costs = [math.inf if e.cost is None else e.cost for e in several]
    assert found["place"] == places
    assert found["cost"] == sorted(places, key=lambda k: costs[int(k)])
    assert found["-cost"] == sorted(places, key=lambda k: (math.isinf(costs[int(k)]), -costs[int(k)]))
    assert found["status"] == sorted(places, key=lambda k: several[int(k)].status)
    assert found["shown"] == [k for k in places if several[int(k)].status == "infeasible"]
    assert found["said"] == f"{len(found['shown'])} of {len(several)}"


@pytest.mark.skipif(BROWSER is None, reason="needs a Chromium browser: apt-get install chromium")
def test_no_page_is_wider_than_its_window(several: Explanations, tmp_path: Path) -> None:
    for number, page in enumerate((several.to_html(), several[0].to_html(), several._repr_html_())):
        for width, view in looked_at(page, LOOK, tmp_path / str(number)).items():
            assert view["scroll"] <= view["width"], (number, width)


def test_lines_of_a_page_say_what_is_not_proven_or_not_verified(example: Explanation) -> None:
    open_one = replace(example, status="feasible", checks=("The cost is another.",), verified=False)
    proven, other = Explanations([example, open_one]).to_html().split('<details class="entry"')[1:]
    lines = [part[: part.index("</summary>")] for part in (proven, other)]
    assert "feasible" not in lines[0].split(">", 1)[1]
    assert "not verified" not in lines[0]
    assert '<span class="status">feasible</span>' in lines[1]
    assert "not verified" in lines[1]


def test_text_of_a_batch_tells_what_changes(several: Explanations) -> None:
    lines = str(several).split("\n")
    for e in several:
        place = next(k for k, text in enumerate(lines) if text.startswith(f"  row {e.row}"))
        for name, old, new, _ in change_rows(e):
            assert f"{name} {old} → {new}" in lines[place + 1]


def test_regions_are_shown_as_they_are_found(credit) -> None:
    table, model, explainer = credit
    row = refused(table, model).iloc[[0]]
    nearest = explainer.explain(row, target="granted")[0]
    found = explainer.counterfactual_regions(row, target="granted", radius=1.5 * nearest.cost)
    page = found._repr_html_()
    Balanced(page)
    assert "1 region within" in page
    assert "found so far" in page
    for name in nearest.changes["feature"]:
        assert f"{name} " in page
    listed = len(found)
    page = found._repr_html_()
    assert listed > 1
    assert f"{listed} regions within" in page
    assert "all there are" in page
    assert page.count("<tr>") == 1 + min(listed, 10)


def test_departures_are_what_the_row_does_not_meet(credit) -> None:
    table, model, explainer = credit
    row = refused(table, model).iloc[[0]]
    nearest = explainer.explain(row, target="granted")[0]
    found = explainer.counterfactual_regions(row, target="granted", radius=1.5 * nearest.cost)
    names = list(explainer.space.names)
    for region in found:
        said = region.departures(explainer.space, found.problem.origin)
        outside = [n for n in names if not CounterfactualRegion.contains(only(region, n), row.iloc[0])]
        assert [next(n for n in names if text.startswith(f"{n} ")) for text in said] == outside

"""Across files: the report's page in a browser: it renders, its tables sort, nothing is wider than the window."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from browser import BROWSER, looked_at

from ocf.compare.report import to_html
from ocf.compare.tables import tables

from .synthetic import TIMES_OF, comparison, line, standard, write

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs a Chromium browser: apt-get install chromium")

#: Looks at the page in each frame.
LOOK = """
const found = {};
const column = (table, k) => [...table.tBodies[0].rows].map(row => row.cells[k].textContent);
for (const frame of document.querySelectorAll("iframe")) {
  const page = frame.contentDocument, root = page.documentElement, errors = [];
  const table = page.querySelector("table.sortable"), buttons = table.querySelectorAll("th button");
  const sorted = [];
  for (const k of [0, 0, 3, 3]) {
    buttons[k].click();
    sorted.push([buttons[k].parentElement.getAttribute("aria-sort"), ...column(table, k)]);
  }
  const width = frame.clientWidth;
  const outside = [...page.querySelectorAll("body *")].filter(e =>
    !e.closest(".wide") && !e.closest("svg") && e.getBoundingClientRect().right > width + 0.5).map(e => e.outerHTML);
  found[frame.id] = {
    width, scroll: root.scrollWidth, outside, sorted,
    figures: [...page.querySelectorAll("figure > svg")].map(e => e.getBoundingClientRect().width),
    ink: frame.contentWindow.getComputedStyle(page.body).color,
    paper: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
  };
}
"""


def report(folder: Path) -> str:
    c = comparison(folder)
    return to_html(c, tables(c))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report with everything that may be wide: long names, many methods, disagreements, failures."""
    many = {f"interval/highs option_{k}=a_rather_long_value": TIMES_OF["interval/highs"] for k in range(9)}
    folder = standard(tmp_path_factory.mktemp("page"), TIMES_OF | many)
    lines = [json.loads(text) for text in (folder / "results.jsonl").read_text().splitlines()][3:]
    lines += [line("ocean/highs", 5, 1.0, checks=["x" * 300], status="wrong", message="y" * 300)]
    return report(write(folder, lines, list(TIMES_OF | many)))


def test_page_in_light(page: str, tmp_path: Path) -> None:
    found = looked_at(page, LOOK, tmp_path, "--blink-settings=preferredColorScheme=1")
    for width in (375, 1440):
        view = found[f"w{width}"]
        assert view["width"] == width
        assert view["scroll"] <= width
        assert view["outside"] == []
        assert len(view["figures"]) >= 9
        assert min(view["figures"]) > 300  # of 420 units, so that letters of 13 units can be read
        assert view["paper"] == "rgb(255, 255, 255)"


def test_tables_sort(tmp_path: Path) -> None:
    found = looked_at(report(standard(tmp_path / "results")), LOOK, tmp_path)
    names = sorted(TIMES_OF)
    by_name, by_name_down, up, down = found["w1440"]["sorted"]
    assert by_name == ["ascending", *names]
    assert by_name_down == ["descending", *names[::-1]]
    assert up[0] == "ascending"
    assert down[0] == "descending"
    numbers = [float(text) for text in up[1:]]
    assert numbers == sorted(numbers)
    assert [float(text) for text in down[1:]] == numbers[::-1]


def test_page_in_dark(page: str, tmp_path: Path) -> None:
    view = looked_at(page, LOOK, tmp_path, "--blink-settings=preferredColorScheme=0")["w375"]
    ink, paper = ([int(v) for v in re.findall(r"\d+", view[k])] for k in ("ink", "paper"))
    assert min(ink) > 200
    assert max(paper) < 50

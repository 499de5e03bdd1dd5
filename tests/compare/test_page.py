"""Across files: the report's page in a browser: it renders, its tables sort, nothing is wider than the window."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from ocf.compare.report import to_html
from ocf.compare.tables import tables

from .synthetic import TIMES_OF, comparison, line, standard, write

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs a Chromium browser: apt-get install chromium")

#: Looks at the page in each frame and writes down what it finds; the page itself has no part in it.
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
document.body.innerHTML = "<pre id=found></pre>";
document.getElementById("found").textContent = JSON.stringify(found);
"""


def looked_at(page: str, tmp_path: Path, *flags: str) -> dict[str, Any]:
    """What a browser finds on a page that is shown in windows of 375 and 1440 pixels."""
    frames = "".join(
        f'<iframe id="w{w}" style="border:0;width:{w}px;height:900px" srcdoc="{escape(page)}"></iframe>'
        for w in (375, 1440)
    )
    path = tmp_path / "frames.html"
    path.write_text(f"<!DOCTYPE html><body>{frames}<script>window.onload = () => {{{LOOK}}}</script>", encoding="utf-8")
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1500,1000", profile]
    out = subprocess.run(
        [*command, *flags, "--dump-dom", path.as_uri()], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r'<pre id="found">(.*?)</pre>', out, re.DOTALL)
    assert found, out[-2000:]
    return dict(json.loads(unescape(found[1])))


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
    found = looked_at(page, tmp_path, "--blink-settings=preferredColorScheme=1")
    for width in (375, 1440):
        view = found[f"w{width}"]
        assert view["width"] == width
        assert view["scroll"] <= width
        assert view["outside"] == []
        assert len(view["figures"]) >= 9
        assert min(view["figures"]) > 300  # of 420 units, so that letters of 13 units can be read
        assert view["paper"] == "rgb(255, 255, 255)"


def test_tables_sort(tmp_path: Path) -> None:
    found = looked_at(report(standard(tmp_path / "results")), tmp_path)
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
    view = looked_at(page, tmp_path, "--blink-settings=preferredColorScheme=0")["w375"]
    ink, paper = ([int(v) for v in re.findall(r"\d+", view[k])] for k in ("ink", "paper"))
    assert min(ink) > 200
    assert max(paper) < 50

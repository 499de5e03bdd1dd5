"""The report of a compression."""

from __future__ import annotations

import pytest
from browser import BROWSER, looked_at

from ocf import CounterfactualDiscretizer
from ocf.compression.report import to_page

pytest.importorskip("matplotlib.pyplot").switch_backend("Agg")


def test_the_report_is_self_contained(data, fitted, tmp_path):
    path = tmp_path / "report.html"
    page = to_page(fitted, *data, path)
    assert path.read_text() == page == to_page(fitted, *data)
    assert "<svg" in page
    for outside in ("http-equiv", "<script", "<link", 'src="http', "@import"):
        assert outside not in page
    assert fitted.get_feature_names_out()[0].split(" > ")[0] in page
    empty = CounterfactualDiscretizer(fitted.estimator_, prefit=True, p1=0.5).fit(*data)
    assert "None: no counterfactual" in to_page(empty, *data)


@pytest.mark.skipif(BROWSER is None, reason="needs a Chromium browser: apt-get install chromium")
def test_the_report_fits_its_window(data, fitted, tmp_path):
    look = """
    const found = {};
    for (const frame of document.querySelectorAll("iframe")) {
      const all = [...frame.contentDocument.querySelectorAll("body *")], width = frame.clientWidth;
      const right = e => e.getBoundingClientRect().right, scale = e => e.clientWidth / e.viewBox.baseVal.width;
      found[frame.id] = {
        outside: all.filter(e => !e.closest("svg *") && right(e) > width + 0.5).map(e => e.outerHTML),
        hidden: all.filter(e => !e.closest("svg") && e.scrollWidth > e.clientWidth + 1 && e.clientWidth)
          .map(e => e.outerHTML),
        figures: all.filter(e => e.tagName == "svg").map(scale),
      };
    }
    """
    for width, view in looked_at(to_page(fitted, *data), look, tmp_path).items():
        assert view["outside"] == [], width
        assert view["hidden"] == [], width
        assert min(view["figures"]) > 0.8  # of 10-point letters

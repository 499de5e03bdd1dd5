"""The report of a compression."""

from __future__ import annotations

import pytest

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

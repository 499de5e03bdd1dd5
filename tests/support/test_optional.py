"""Packages that only some of the work needs."""

from __future__ import annotations

import pytest

from ocf.errors import MissingDependencyError
from ocf.support.optional import optional

matplotlib_figure = pytest.importorskip("matplotlib.figure")


def test_packages_that_are_missing_are_named() -> None:
    with pytest.raises(MissingDependencyError, match=r"a plot needs the package 'no_such': pip install 'ocf\[plot\]'"):
        optional("no_such.part", "plot", "a plot")
    assert optional("matplotlib.figure", "plot", "a plot") is matplotlib_figure

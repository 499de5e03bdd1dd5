"""The figures of a report."""

from __future__ import annotations

import re
from pathlib import Path

from ocf.compare.figures import charts, primal_integrals

from .synthetic import LIMIT, comparison, line, standard, write


def test_figures(tmp_path: Path) -> None:
    found = {chart.name: chart for chart in charts(comparison(standard(tmp_path)))}
    assert list(found) == [
        "Performance profile",
        "Cactus plot",
        "Scaling with trees",
        "Primal integral",
        *(f"Bound and solution over time: set, row {k}" for k in (3, 2, 1, 0)),
        "box against interval/highs",
        "box against ocean/highs",
        "interval/highs against ocean/highs",
    ]
    caption = found["Performance profile"].caption
    assert "τ runs from 1 to 9.2, past the largest ratio that occurs, 8" in caption
    assert "interval/highs 1, ocean/highs 2, box 0; 0 instances that nobody solved" in caption
    assert "not solved" in found["box against ocean/highs"].svg
    for chart in found.values():
        assert "nan" not in chart.svg
        assert "inf" not in re.sub("<title>.*?</title>|<text.*?</text>", "", chart.svg)


def test_scaling(tmp_path: Path) -> None:
    lines = [
        line("box", 10 * k + t, float(t * d), instance=f"i{k}{t}{d}", trees=t, depth=d, key=f"{k}{t}{d}")
        for k in range(3)
        for t in (1, 2)
        for d in (1, 2)
    ]
    found = {chart.name: chart for chart in charts(comparison(write(tmp_path, lines, ["box"])))}
    assert "Instances: 6 at 1, 6 at 2." in found["Scaling with trees"].caption
    # shifted by 1, at 2 trees and depths 1 and 2: 3 and 5, three times each
    assert f"box, trees 2: {15**0.5 - 1:.3g} s" in found["Scaling with trees"].svg
    assert f"box, depth 1: {6**0.5 - 1:.3g} s" in found["Scaling with depth"].svg


def test_integral_of_a_run_that_was_killed_counts_in_full(tmp_path: Path) -> None:
    killed = line("ocean/highs", 0, 99.0, found=False, cost=None, bound=None, gap=None, answer="", history=[])
    folder = write(tmp_path, [line("box", 0, 1.0), killed], ["box", "ocean/highs"])
    assert primal_integrals(comparison(folder)).to_numpy().tolist() == [[0.75, LIMIT]]


def test_time_against_leaves_has_the_exponent_of_its_power(tmp_path: Path) -> None:
    lines = [
        line(
            method, 10 * k + row, unit * leaves**power, instance=f"i{k}{row}", model=f"m{k}", key=f"{method}{k}{row}",
            sizes={"leaves": leaves},
        )
        for method, power, unit in (("box", 0.75, 2e-3), ("highs", 1.25, 1e-3))
        for k, leaves in enumerate((10, 100, 1000))
        for row in range(2)
    ]  # fmt: skip
    lines[-1] |= {"status": "time out", "seconds": LIMIT, "sizes": {}}
    found = {chart.name: chart for chart in charts(comparison(write(tmp_path, lines, ["box", "highs"])))}
    caption = found["Scaling with leaves"].caption
    assert "Exponents: box 0.75, highs 1." in caption
    assert "Models: 3, of 10 to 1,000 leaves." in caption
    assert "m0, row" in found["Scaling with leaves"].svg
    few = [own | {"sizes": {"leaves": 10 + k}} for k, own in enumerate(lines)]
    assert "Scaling with leaves" not in [
        chart.name for chart in charts(comparison(write(tmp_path / "few", few, ["box", "highs"])))
    ]

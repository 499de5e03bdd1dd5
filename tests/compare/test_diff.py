"""Two comparisons against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ocf.compare.diff import Difference, difference
from ocf.errors import ProblemError

from .synthetic import TIMES_OF, comparison, line, standard, write


def between(a: Path, b: Path) -> Difference:
    return difference(comparison(a), comparison(b))


def one(folder: Path, **changes: Any) -> Path:
    return write(folder, [line("box", 0, 1.0) | changes], ["box"])


def test_the_same(tmp_path: Path) -> None:
    folder = standard(tmp_path)
    found = between(folder, folder)
    assert [found.regressions, found.improvements, found.contradictions, found.remarks] == [[]] * 4
    assert {r.value for r in found.methods.frame["ratio"]} == {1.0}


def test_regressions_and_improvements(tmp_path: Path) -> None:
    before = standard(tmp_path / "a")
    after = standard(tmp_path / "b", TIMES_OF | {"box": (1.5, 3.0, 6.0, 99.0), "ocean/highs": (2.0, 2.0, 3.0, 99.0)})
    found = between(before, after)
    assert found.regressions == [
        "box is slower by a factor of 3 (95 %: 3 to 3)",
        "box on set, random forest 20 × 5, row 3 to 1 l1: ok became time out (it took 4 s)",
        "box on set, random forest 10 × 5, row 0 to 1 l1: 0.5 s became 1.5 s",
        "box on set, random forest 20 × 5, row 1 to 1 l1: 1 s became 3 s",
        "box on set, random forest 10 × 5, row 2 to 1 l1: 2 s became 6 s",
    ]
    assert found.improvements == [
        "ocean/highs on set, random forest 10 × 5, row 2 to 1 l1: time out became ok (in 3 s)",
        "ocean/highs on set, random forest 20 × 5, row 1 to 1 l1: 8 s became 2 s",
    ]
    table = found.methods.frame.set_index("method")
    assert table.loc["box", "ratio"] == pytest.approx((3.0, 3.0, 3.0))
    # 3, 3, 3 and 100 s for 4 s
    assert table.loc["box", "ratio with penalties"].value == pytest.approx((27 * 25) ** 0.25)
    assert (table.loc["box", "solved before"], table.loc["box", "solved after"]) == (4, 3)


def test_noise_is_no_regression(tmp_path: Path) -> None:
    # five times a hundredth of a second, and six tenths of a second of four
    fast = TIMES_OF | {"box": (0.01, 0.02, 2.0, 4.0)}
    slow = TIMES_OF | {"box": (0.05, 0.02, 2.0, 4.6)}
    assert between(standard(tmp_path / "a", fast), standard(tmp_path / "b", slow)).regressions == []


def test_other_optimum(tmp_path: Path) -> None:
    before = one(tmp_path / "a")
    found = between(before, one(tmp_path / "b", cost=0.9, bound=0.9))
    assert found.contradictions == ["box on set, random forest 10 × 5, row 0 to 1 l1: the optimum was 1.0 and is 0.9"]
    none = one(tmp_path / "c", answer="infeasible", found=False, cost=None, bound="inf")
    assert "optimal became infeasible" in between(before, none).contradictions[0]


def test_other_model(tmp_path: Path) -> None:
    found = between(one(tmp_path / "a"), one(tmp_path / "b", case="other", cost=0.9))
    assert not found.contradictions
    assert "1 instances are left out" in found.remarks[0]


def test_remarks(tmp_path: Path) -> None:
    limits = {"time": 20.0, "memory": 10**9, "grace": 1.0}
    found = between(standard(tmp_path / "a"), standard(tmp_path / "b", {"box": TIMES_OF["box"]}, limits=limits))
    assert found.remarks == [
        "the time limits differ: 10 s and 20 s",
        "methods that only one of the two has: interval/highs, ocean/highs",
    ]


def test_nothing_in_common(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="no run in common"):
        between(one(tmp_path / "a"), one(tmp_path / "b", method="ocean/highs"))

"""Claims against what another method has shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .synthetic import comparison, line, write


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"cost": 1.0 + 1e-12, "bound": 1.0 + 1e-12}, False),
        ({"answer": "infeasible", "found": False, "cost": None, "bound": "inf", "gap": None}, True),
        ({"answer": "feasible", "cost": 2.0, "bound": 1.5, "status": "time out"}, True),
        ({"answer": "feasible", "cost": 2.0, "bound": 0.9, "status": "time out"}, False),
        ({"answer": "unknown", "found": False, "cost": None, "bound": 1.5, "status": "time out"}, True),
        ({"checks": ["The changes cost 2.0, not 1.0 as claimed."], "status": "wrong"}, True),
        # a cheaper point that is not verified refutes nothing, and is itself wrong
        ({"cost": 0.5, "bound": 0.5, "checks": ["unsound"], "status": "wrong"}, True),
        # another model: not the same question
        ({"cost": 1.5, "bound": 1.5, "case": "other"}, False),
    ],
)
def test_claims_against_a_verified_solution(tmp_path: Path, changes: dict[str, Any], wrong: bool) -> None:
    folder = write(tmp_path, [line("box", 0, 1.0), line("ocean/highs", 0, 1.0, **changes)], ["box", "ocean/highs"])
    assert [d.method for d in comparison(folder).disagreements] == ["ocean/highs"] * wrong

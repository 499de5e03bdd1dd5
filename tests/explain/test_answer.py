"""What changes, and for what cost."""

from __future__ import annotations

from ocf.explain.explanation import Explanation


def test_changes(example: Explanation) -> None:
    changes = example.changes
    assert list(changes.columns) == ["feature", "from", "to", "change", "cost"]
    assert changes[["feature", "from", "to", "change"]].to_numpy(object).tolist() == [["age", 20, 85, 65.0]]
    assert changes["cost"].sum() == example.cost
    changes["cost"] = 0.0
    assert example.changes["cost"].sum() == example.cost

"""Files that are no results of ours, or cannot be read, are refused with the cause."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from ocf import Explainer
from ocf.errors import DataError
from ocf.verify.files import verify_file

MODEL: Any = SimpleNamespace(classes=("no", "yes"), columns=None)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "file.json is nested more than 64 levels"),
        ('{"schema": "ocf.explanation/1", "schema": 1}', "'schema' occurs twice"),
        ('{"schema": "ocf.explanations/1", "shared": [], "rows": []}', "shared: an object"),
        ("[]", "not an explanation"),
        ('{"schema": "other/1"}', "'other/1'"),
        ('{"schema": "ocf.explanation/1"}', "incomplete or damaged"),
        ('{"schema": "ocf.explanations/1", "rows": [{"row": 1}]}', "explanation 0 is incomplete"),
        (json.dumps({"schema": "ocf.explanation/1", "row": 1, "counterfactual": 5}), "incomplete or damaged"),
    ],
)
def test_foreign_files(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(DataError, match=sentence):
        verify_file(path, MODEL)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read"):
        verify_file(tmp_path / "none.json", MODEL)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not UTF-8"):
        verify_file(tmp_path / "binary.json", MODEL)


def test_a_row_that_has_the_target_may_have_to_change_all_the_same(tmp_path: Path) -> None:
    """It is not plausible, or not beyond a margin of the splits: no proof is refuted by the target alone."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.random(80) * 8, "b": rng.random(80) * 8})
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(table, (table.a > 4).astype(int))
    explainer = Explainer(tree, table)
    row = pd.DataFrame({"a": [tree.tree_.threshold[0] + 0.05], "b": [1.0]})
    asked: list[tuple[dict[str, Any], str]] = [
        ({"plausibility": {"trees": 5, "depth": 50.0}}, "infeasible"),
        ({"split_margin": 1.0}, "optimal"),
        ({"split_margin": 100.0}, "infeasible"),
    ]
    for settings, status in asked:
        found = explainer.explain(row, 1, **settings)
        assert (found[0].status, found[0].predicted) == (status, 1)
        found.to_json(tmp_path / "found.json")
        assert [check.problems for _, check in verify_file(tmp_path / "found.json", explainer.model)] == [()]
    record = explainer.explain(row, 1)[0].to_dict() | {"status": "infeasible", "bound": "inf"}
    record |= {"counterfactual": None, "cost": None, "decided": None, "changes": [], "partway": None, "gap": "inf"}
    (tmp_path / "lie.json").write_text(json.dumps(record | {"probabilities": record["probabilities"][:1]}))
    ((_, check),) = verify_file(tmp_path / "lie.json", explainer.model)
    assert any("has the target as it is" in problem for problem in check.problems)


def test_what_was_asked_excuses_no_more_than_it_says(tmp_path: Path) -> None:
    """A plausibility that was asked for is told of each answer, and prices of classes excuse nothing."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.random(80) * 8, "b": rng.random(80) * 8})
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(table, np.where(table.a > 4, 1, table.b > 4))
    explainer = Explainer(tree, table)
    row = table[tree.predict(table) == 1].iloc[[0]]

    def said(record: dict[str, Any]) -> tuple[str, ...]:
        (tmp_path / "found.json").write_text(json.dumps(record))
        ((_, check),) = verify_file(tmp_path / "found.json", explainer.model)
        return check.problems

    record = json.loads(explainer.explain(row, 1)[0].to_json())
    nothing = {"counterfactual": None, "cost": None, "decided": None, "changes": [], "partway": None, "gap": "inf"}
    nothing |= {"status": "infeasible", "bound": "inf", "probabilities": record["probabilities"][:1], "verified": False}
    own = record["method"]
    for asked in ({"class_costs": {"0": 0.0}}, {"plausibility": {"required": False}}, {"split_margin": 0.0}, 3):
        assert any("it is not infeasible" in p for p in said(record | nothing | {"method": own | {"asked": asked}}))
    untold = record | {"method": own | {"asked": {"plausibility": {"required": True}}}}
    assert any("the answer tells none" in p for p in said(untold))

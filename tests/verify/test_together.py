"""Results of one file that contradict each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.explain.explanation import Explanations
from ocf.verify.files import verify_file


@cache
def explained() -> tuple[Explainer, pd.DataFrame]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    model = RandomForestClassifier(10, max_depth=3, random_state=0).fit(table, (table.a + table.b > 1).astype(int))
    return Explainer(model, table), table[model.predict(table) == 0]


def problems(path: Path, found: Explanations, lie: Callable[[list[dict[str, Any]]], None]) -> list[str]:
    """What `ocf verify` says of the results once they are changed."""
    explainer, _ = explained()
    rows = [json.loads(json.dumps(e.to_dict())) for e in found]
    lie(rows)
    path.write_text(json.dumps(rows[0] if len(rows) == 1 else {"schema": "ocf.explanations/1", "rows": rows}))
    return [p for _, checked in verify_file(path, explainer.model) for p in checked.problems]


def swap(rows: list[dict[str, Any]]) -> None:
    rows[0]["rank"], rows[2]["rank"] = 3, 1


def repeat(rows: list[dict[str, Any]]) -> None:
    rows[1] = {**rows[0], "rank": 2}


def two_optima(rows: list[dict[str, Any]]) -> None:
    rows[1]["rank"] = 1


def infeasible(rows: list[dict[str, Any]]) -> None:
    rows[0].update(
        status="infeasible", counterfactual=None, cost=None, bound=None, decided=None, gap=None, verified=False,
        changes=[], ties=[], ranges=[], partway=None, probabilities=rows[0]["probabilities"][:1],
    )  # fmt: skip
    rows[0]["bound"] = "inf"


@pytest.mark.parametrize("diversity", ["region", "features", "distance"])
def test_answers_of_several_ranks_hold_together(diversity: str, tmp_path: Path) -> None:
    explainer, rows = explained()
    found = explainer.explain(rows.head(2), 1, n_explanations=3, diversity=diversity)
    assert problems(tmp_path / "found.json", found, lambda rows: None) == []
    lies = [(repeat, "which should be another"), (infeasible, "is called infeasible")]
    if diversity == "region":
        lies += [(swap, "called the cheapest"), (two_optima, "called the cheapest")]
    else:
        lies += [(swap, "stands not apart from as many"), (two_optima, "stands not apart from as many")]
    for lie, words in lies:
        said = problems(tmp_path / "found.json", found, lie)
        assert any(words in problem for problem in said), (lie, said)


def test_answers_to_other_questions_do_not_contradict_each_other(tmp_path: Path) -> None:
    explainer, rows = explained()
    asked: list[dict[str, Any]] = [{}, {"plausibility": True}, {"norm": "l0"}]
    found = Explanations(e for more in asked for e in explainer.explain(rows.head(2), 1, **more))
    assert len({e.cost for e in found if e.row == found[0].row}) > 1
    assert problems(tmp_path / "found.json", found, lambda rows: None) == []


@pytest.mark.parametrize("diversity", ["features", "distance"])
def test_constraints_of_ones_own_are_no_ranks(diversity: str, tmp_path: Path) -> None:
    explainer, rows = explained()
    keeps = [{"kind": "keeps", "features": ["c"]}]
    found = explainer.explain(rows.head(2), 1, n_explanations=3, diversity=diversity, constraints=keeps)
    assert max(e.rank for e in found) > 1
    assert problems(tmp_path / "found.json", found, lambda rows: None) == []

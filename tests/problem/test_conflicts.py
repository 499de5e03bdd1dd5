"""Why a row has no explanation."""

from __future__ import annotations

from typing import Any

import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.explain.diagnosis import ASK
from ocf.explain.explanation import Explanation
from ocf.problem.constraints import Constraint, Implication, Linear, MaxChanges


def test_a_smallest_set_of_wishes_that_conflict(explainer: Explainer, row: pd.DataFrame) -> None:
    free = explainer.explain(row)[0]
    wishes: dict[str, Any] = {
        "constraints": [
            MaxChanges(0, tuple(free.changes.feature), name="as it is"),
            Linear({"age": 1}, "<=", 100, name="harmless"),
            Implication({"flag": [0, 1]}, {"school": str(row.school.iloc[0])}, name="school"),
        ],
        "permitted_range": {"amount": (0, 50)},
        "features_to_vary": ["income", "debt", "school", "amount"],
    }
    found = explainer.explain(row, diagnose=True, **wishes)[0]
    assert found.status == "infeasible"
    assert found.conflict
    assert not any("harmless" in c or "'amount' must" in c for c in found.conflict)
    assert all(c in found.message for c in found.conflict)
    assert Explanation.from_json(found.to_json()).conflict == found.conflict
    # without any one of them the row can be explained
    kept = [c for c in wishes["constraints"] if any(repr(c.title) in said for said in found.conflict)]
    fixed = [n for n in explainer.space.names if any(said == f"{n!r} is fixed" for said in found.conflict)]

    def status(constraints: list[Constraint], still: list[str]) -> str:
        vary = [n for n in explainer.space.names if n not in still]
        return explainer.explain(row, constraints=constraints, features_to_vary=vary)[0].status

    assert len(kept) + len(fixed) == len(found.conflict)
    assert status(kept, fixed) == "infeasible"
    for constraint in kept:
        assert status([c for c in kept if c is not constraint], fixed) == "optimal"
    for name in fixed:
        assert status(kept, [n for n in fixed if n != name]) == "optimal"


def test_no_wish_in_the_way() -> None:
    x = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [0.0, 1.0, 0.0]})
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(pd.concat([x, x + 10]), [0, 0, 0, 1, 1, 1])
    explainer = Explainer(model, data=x)  # whose bounds keep away from the other class
    found = explainer.explain(x.iloc[[0]], target=1, constraints=MaxChanges(2), diagnose=True)[0]
    assert found.status == "infeasible"
    assert found.conflict == ()
    assert "out of reach" in found.message


def test_how_to_learn_why_is_said_where_wishes_may_be_why(explainer: Explainer, row: pd.DataFrame) -> None:
    fixed = {"features_to_vary": []}
    (alone,) = explainer.explain(row, **fixed)
    assert (alone.status, alone.message) == ("infeasible", ASK)
    together = explainer.explain(pd.concat([row, row]), **fixed)
    assert [e.message for e in together] == [ASK, ASK]
    assert "diagnose=True" in str(alone)
    assert ASK not in explainer.explain(row, diagnose=True, **fixed)[0].message
    x = pd.DataFrame({"a": [0.0, 1.0, 2.0]})
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(pd.concat([x, x + 10]), [0, 0, 0, 1, 1, 1])
    (free,) = Explainer(model, data=x).explain(x.iloc[[0]], target=1)
    assert (free.status, free.message) == ("infeasible", "")  # nothing was wished for

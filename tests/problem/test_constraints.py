"""Constraints as a user writes them: what they refuse, what they say, and what they do to an explanation."""

from __future__ import annotations

import itertools
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.errors import ProblemError
from ocf.explain.explanation import Explanations
from ocf.problem.constraints import Budget, Constraint, Implication, Linear, MaxChanges, checked, from_dict
from ocf.problem.problem import Problem
from ocf.solve.compile import compile_formulation
from ocf.solvers import get_solver
from ocf.solvers.model_files import write_model
from ocf.verify.files import verify_file

from .borrowers import EXAMPLES, value


@pytest.mark.parametrize("constraint", EXAMPLES, ids=lambda c: c.title)
def test_constraints_go_through_json_and_fit_the_features(constraint: Constraint, explainer: Explainer) -> None:
    assert from_dict(json.loads(json.dumps(constraint.to_dict()))) == constraint
    assert checked(constraint, explainer.space) == (constraint,)
    assert constraint.words()
    assert hash(constraint) == hash(from_dict(constraint.to_dict()))


def test_words() -> None:
    assert [c.words() for c in EXAMPLES[:4]] == [
        "income - 2.5 debt - 500 [job = smith] >= 1000",
        "(change of income) + (change of debt) <= 200",
        "if job is none then income <= 4000",
        "if school >= primary and flag is 1 then age >= 18 and job is one of clerk, smith",
    ]
    assert EXAMPLES[6].words() == "at most 2 changes"
    assert Implication({}, {"age": (18, 65)}).words() == "always age in (18, 65)"
    assert Implication({"age": (None, None)}, {"age": (18, None)}).words() == "if age is anything then age >= 18"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Linear({"incme": 1}, "<=", 1), "did you mean 'income'"),
        (lambda: Linear({"income": 1}, "<", 1), "one of <=, >=, ="),
        (lambda: Linear({"income": 0}, "<=", 1), "no terms"),
        (lambda: Linear({"income": "1"}, "<=", 1), "should be a number"),
        (lambda: Linear({"income": float("nan")}, "<=", 1), "should be a number"),
        (lambda: Linear({"income": 1}, "<=", float("inf")), "should be finite"),
        (lambda: Linear({"job": 1}, "<=", 1), "name a level"),
        (lambda: Linear({"job": {"smit": 1}}, "<=", 1), "did you mean 'smith'"),
        (lambda: Linear({"income": {"smith": 1}}, "<=", 1), "has no levels"),
        (lambda: Implication({"job": "smit"}, {"age": (0, 1)}), "did you mean 'smith'"),
        (lambda: Implication({"job": "smith"}, {}), "no consequence"),
        (lambda: Implication({"job": {"min": "clerk"}}, {"age": 20}), "have no order"),
        (lambda: Implication({"income": (2, 1)}, {"age": 20}), "is empty"),
        (lambda: Implication({"income": (1, 2, 3)}, {"age": 20}), "a number or a range"),
        (lambda: Implication({"income": {"least": 1}}, {"age": 20}), "'min' and 'max'"),
        (lambda: Implication("job", {"age": 20}), "maps features"),
        (lambda: Budget(1, {}), "names no feature"),
        (lambda: Budget(1, {"income": {"smith": 1}}), "give it an amount per unit"),
        (lambda: Budget(1, {"income": {"points": [[0, 0]]}}), "at least two points"),
        (lambda: Budget(1, {"income": {"points": [[0, 0], [0, 1]]}}), "share a number"),
        (lambda: Budget(1, {"income": {"points": 3}}), "pairs"),
        (lambda: Budget(1, {"income": {"points": [[0, 0], [1, 1]], "off": "value"}}), "did you mean 'of'"),
        (lambda: Budget(1, {"school": {"between": [1]}}), "one amount less"),
        (lambda: Budget(1, {"school": 1}), "no numbers"),
        (lambda: MaxChanges(-1), "at least 0"),
        (lambda: MaxChanges(1, "income"), "list of feature names"),
        (lambda: "income <= 3", "is no constraint"),
        (lambda: {"kind": "linar", "terms": {}}, "did you mean 'linear'"),
        (lambda: {"kind": "linear", "terms": {"income": 1}}, "needs 'sense'"),
    ],
)
def test_mistakes_are_named(make: Any, says: str, explainer: Explainer) -> None:
    with pytest.raises(ProblemError) as caught:
        checked([make()], explainer.space)
    assert says in str(caught.value)


def test_two_constraints_of_one_name_are_refused(explainer: Explainer) -> None:
    with pytest.raises(ProblemError, match="'money'"):
        checked([MaxChanges(1, name="money"), MaxChanges(2, name="money")], explainer.space)
    assert checked([MaxChanges(2), MaxChanges(2)], explainer.space) == (MaxChanges(2),)


def test_relations_in_user_units_through_scalers_and_one_hot_groups(explainer: Explainer, row: pd.DataFrame) -> None:
    free = explainer.explain(row)[0]
    bound = value(free, "income") - 2 * value(free, "debt") + 0.5
    wanted = Linear({"income": 1, "debt": -2, "job": {"smith": -500}}, ">=", round(float(bound), 1), name="solvent")
    for solver, formulation in itertools.product(("highs", "scip"), ("interval", "ocean")):
        found = explainer.explain(row, constraints=wanted, solver=solver, formulation=formulation)[0]
        assert found.status == "optimal"
        assert found.verified, found.checks
        assert found.cost > free.cost
        total = value(found, "income") - 2 * value(found, "debt") - 500 * value(found, "job_smith")
        assert total >= wanted.bound - 1e-9


def test_an_implication_and_a_budget_change_the_answer(explainer: Explainer, row: pd.DataFrame) -> None:
    free = explainer.explain(row)[0]
    changed = free.changes.feature.tolist()
    for solver in ("highs", "box"):
        others = explainer.explain(row, constraints=[MaxChanges(0, tuple(changed))], solver=solver)[0]
        assert others.verified
        assert not set(others.changes.feature) & set(changed)
        assert others.cost > free.cost
    job = explainer.explain(row, constraints=Implication({}, {"job": "smith"}))[0]
    assert value(job, "job_smith") == 1
    budget = Budget(
        0,
        {
            name: {"points": [[-1e-9, 1], [0, 0], [1e-9, 1]]}
            if name not in ("job", "school")
            else dict.fromkeys(explainer.space.features[explainer.space.index(name)].levels, 1)
            for name in changed
        },
        name="nothing of that",
    )
    assert explainer.explain(row, constraints=budget)[0].cost == pytest.approx(others.cost)


def test_contradictions_are_reported_by_name(
    explainer: Explainer, row: pd.DataFrame, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ProblemError, match="'rich'"):
        explainer.explain(row, constraints=Linear({"income": 1}, ">=", 20000, name="rich"))
    poor = Linear({"income": 1}, "<=", float(row.income.iloc[0]) / 2, name="poor")
    with caplog.at_level(logging.WARNING):
        found = explainer.explain(row, constraints=poor, features_to_vary=["debt", "job"])[0]
    assert "'poor' is broken by" in caplog.text
    caplog.clear()
    explainer.explain(row, constraints=poor, features_to_vary=["debt", "job"])
    assert "is broken by" not in caplog.text  # said once
    assert found.status == "infeasible"
    assert "'poor'" in found.message
    own = explainer.explain(row, constraints=[Linear({"age": 1}, "=", float(row.age.iloc[0]) + 1, name="older")])[0]
    assert "does not satisfy 'older'" in own.message


@pytest.mark.parametrize(
    "relation",
    [
        Linear({"a": 1, "b": -1}, "<=", 3, name="both"),
        Implication({}, {"a": {"max": 4}}, name="both"),
        Implication({"a": {"min": 4}}, {"b": {"max": 4}}, name="both"),
    ],
)
def test_a_row_that_misses_a_value_of_a_relation_is_named(relation: Constraint) -> None:
    x = pd.DataFrame({"a": [1.0, 2.0, 3.0, np.nan] * 5, "b": [0.0, 1.0, 2.0, 3.0] * 5})
    model = RandomForestClassifier(3, max_depth=2, random_state=0).fit(x, [0, 0, 1, 1] * 5)
    explainer = Explainer(model, data=x)
    rows = x.iloc[[3, 0]]
    failed, fine = explainer.explain(rows, target=1, constraints=relation)
    assert failed.status == "error"
    assert "'both'" in failed.message
    assert "misses" in failed.message
    assert fine.status == "optimal"


def test_the_box_search_says_what_it_cannot_do(explainer: Explainer, row: pd.DataFrame) -> None:
    free = explainer.explain(row)[0]
    relation = Linear({"income": 1, "debt": -1}, ">=", float(value(free, "income") - value(free, "debt")) + 1)
    found = explainer.explain(row, constraints=relation, solver="box")[0]
    assert found.status == "error"
    assert "does not know constraints that relate values inside cells: ask for 'auto' or one of highs" in found.message
    assert explainer.cells(explainer.problem(row, constraints=relation)).couples
    assert not explainer.cells(explainer.problem(row, constraints=MaxChanges(2))).couples


def test_problems_and_results_keep_their_constraints(explainer: Explainer, row: pd.DataFrame, tmp_path: Path) -> None:
    problem = explainer.problem(row, constraints=EXAMPLES)
    assert Problem.from_json(problem.to_json()).constraints == tuple(EXAMPLES)
    found = explainer.explain(row, constraints=[EXAMPLES[4], MaxChanges(3)])
    path = tmp_path / "found.json"
    found.to_json(path)
    assert Explanations.from_json(path) == found
    assert all(v.ok for _, v in verify_file(path, explainer.model))
    # a result that breaks its own constraint is found out
    path.write_text(path.read_text().replace('"most": 3', '"most": 0'))
    problems = verify_file(path, explainer.model)[0][1].problems
    assert any("max_changes" in p for p in problems)


def test_models_with_relations_are_written(explainer: Explainer, row: pd.DataFrame, tmp_path: Path) -> None:
    problem = explainer.problem(row, constraints=EXAMPLES[0])
    cells = explainer.cells(problem)
    assert cells.couples
    form = compile_formulation("interval", cells, names=True).instance(cells).form
    assert form.column_names is not None
    assert any("sliding" in name for name in form.column_names)
    write_model(form, tmp_path / "model.mps")
    assert get_solver("highs").solve(form).objective == pytest.approx(
        explainer.explain(row, constraints=EXAMPLES[0])[0].cost
    )

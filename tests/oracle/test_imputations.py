"""Counterfactuals that hold for all completions of a row's missing values, or a share, against all rows."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from oracle.gappy import LEVELS, MODELS, NORMS, NUMBERS, WORD, Gappy, gappy_table
from oracle.test_gaps import WHOLE
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.pipeline import make_pipeline

from ocf import Explainer, Explanations, Plausibility, Problem
from ocf.errors import DataError, ProblemError
from ocf.formulations import FORMULATIONS
from ocf.solvers import CELL_SOLVERS, SOLVERS
from ocf.verify.files import verify_file


def draws(row: pd.DataFrame, count: int, seed: int) -> pd.DataFrame:
    """Completions of a row."""
    rng = np.random.default_rng(seed)
    lacking = [c for c in row.columns if row[c].isna().iloc[0]]
    return pd.DataFrame(
        {c: rng.choice(LEVELS, count) if c == WORD else rng.integers(0, 6, count).astype(float) for c in lacking}
    )


#: Whether rows are deep enough in an isolation forest.
Deep = Callable[[pd.DataFrame], np.ndarray]


def best_of_all(asked: Gappy, completions: pd.DataFrame, least: int, target: Any, deep: Deep | None = None) -> float:
    """Cost of the cheapest change of the known features with which enough completions have the target."""
    names = [c for c in asked.row.columns if c not in completions.columns]
    choices = [asked.choices(name) for name in names]
    rows = list(itertools.product(*([v for v, _ in own] for own in choices)))
    cost = np.array([sum(parts) for parts in itertools.product(*([c for _, c in own] for own in choices))])
    met = np.zeros(len(rows), int)
    for k in range(len(completions)):
        table = pd.DataFrame({name: [row[j] for row in rows] for j, name in enumerate(names)})
        for name in completions.columns:
            table[name] = completions[name].iloc[k]
        table = table[list(asked.row.columns)]
        for name in table.columns:
            table[name] = table[name].astype(object if name == WORD else float)
        answers = np.asarray(asked.model.predict(table))
        good = answers >= target[0] if isinstance(target, tuple) else answers == target
        met += good if deep is None else good & deep(table)
    return float(cost[met >= least].min()) if (met >= least).any() else math.inf


def agree(
    found: Any, asked: Gappy, completions: pd.DataFrame, least: int, target: Any, deep: Deep | None = None
) -> None:
    best = best_of_all(asked, completions, least, target, deep)
    if math.isinf(best):
        assert found.status == "infeasible", found
        return
    assert found.status == "optimal", (found, found.message, best)
    assert found.cost == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert found.verified, found.checks
    assert found.imputations["least"] == least <= found.imputations["met"]
    for name in completions.columns:
        assert found.counterfactual[name].isna().all()


def asked_rows(table: pd.DataFrame, count: int) -> pd.DataFrame:
    gaps = table.isna().sum(axis=1)
    return table[(gaps >= 1) & (gaps <= 2)].iloc[:count]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_the_cheapest_change_for_all_completions_or_a_share(name: str, share: float) -> None:
    table, classes = gappy_table(11)
    model = MODELS[name]().fit(table, classes)
    explainer = Explainer(model, table, WHOLE)
    statuses = set()
    for k, norm in enumerate(NORMS):
        row = asked_rows(table, 8).iloc[[2 * k]]
        completions = draws(row, 5, k)
        for target in (0, 1):
            found = explainer.explain(row, target, NORMS[norm], imputations=completions, share=share)[0]
            least = 5 if share == 1.0 else 4
            agree(found, Gappy(model, row, NORMS[norm]), completions, least, target)
            statuses.add(found.status)
    assert "optimal" in statuses


@pytest.mark.parametrize(
    ("formulation", "solver"),
    [*itertools.product(FORMULATIONS, SOLVERS), *(("interval", name) for name in CELL_SOLVERS)],
)
def test_all_formulations_and_solvers(formulation: str, solver: str) -> None:
    table, classes = gappy_table(11)
    model = MODELS["hist"]().fit(table, classes)
    explainer = Explainer(model, table, WHOLE)
    row = asked_rows(table, 1)
    completions = draws(row, 4, 3)
    for reduce, share in itertools.product((True, False), (1.0, 0.5)):
        found = explainer.explain(
            row, "opposite", imputations=completions, share=share, formulation=formulation, solver=solver, reduce=reduce
        )[0]
        agree(found, Gappy(model, row, "l1"), completions, 4 if share == 1.0 else 2, found.target)


def test_a_model_without_a_rule_for_gaps_is_asked_about_completions_only() -> None:
    table, classes = gappy_table(4, missing=0.0)
    model = make_pipeline(MODELS["hist"]()[0], GradientBoostingClassifier(n_estimators=5, random_state=0))
    model.fit(table, classes)
    explainer = Explainer(model, table, WHOLE)
    row = table.iloc[[0]].assign(a=np.nan)
    with pytest.raises(DataError, match="no rule for it"):
        explainer.explain(row, 1)
    completions = draws(row, 6, 0)
    for target in (0, 1):
        agree(
            explainer.explain(row, target, imputations=completions)[0], Gappy(model, row, "l1"), completions, 6, target
        )


def test_values_of_a_regressor_and_constraints() -> None:
    table, classes = gappy_table(4, missing=0.0)
    value = classes + table["a"] / 3 - table["b"] / 4
    model = make_pipeline(MODELS["hist"]()[0], GradientBoostingRegressor(n_estimators=6, random_state=0))
    model.fit(table, value)
    explainer = Explainer(model, table, WHOLE)
    row = table.iloc[[1]].assign(c=np.nan)
    completions = draws(row, 4, 0)
    level = float(np.quantile(value, 0.7))
    found = explainer.explain(row, (level, None), imputations=completions, share=0.75)[0]
    agree(found, Gappy(model, row, "l1"), completions, 3, (level, None))
    most = [{"kind": "max_changes", "most": 1}]
    bound = explainer.explain(row, (level, None), imputations=completions, share=0.75, constraints=most)[0]
    assert bound.status == "infeasible" or (bound.verified and len(bound.changes) == 1 and bound.cost >= found.cost)


@pytest.mark.parametrize("name", ["forest behind imputers", "hist"])
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_enough_completions_are_deep_enough_as_well(name: str, share: float, tmp_path: Any) -> None:
    table, classes = gappy_table(11)
    model = MODELS[name]().fit(table, classes)
    explainer = Explainer(model, table, WHOLE)
    told, statuses = 0, set()
    for k, norm in enumerate(("l1", "l0")):
        row = asked_rows(table, 6).iloc[[3 * k]]
        completions = draws(row, 4, k)
        for target in (0, 1):
            wish = {"trees": 4, "samples": 16, "quantile": 0.6}
            asked = {"imputations": completions, "share": share}
            found = explainer.explain(row, target, NORMS[norm], plausibility=wish, **asked)[0]
            detector = explainer.prepared.detector(Plausibility(**wish), found.problem.target)

            def deep(t: pd.DataFrame, detector: Any = detector) -> np.ndarray:
                return detector.measure(t)[0] >= detector.least

            least = 4 if share == 1.0 else 3
            agree(found, Gappy(model, row, NORMS[norm]), completions, least, target, deep)
            statuses.add(found.status)
            free = explainer.explain(row, target, NORMS[norm], **asked)[0]
            told += free.status == "optimal" and found.cost != free.cost
            if found.status != "optimal":
                continue
            assert found.plausibility["depth"] >= detector.least
            path = tmp_path / "found.json"
            path.write_text(Explanations([found]).to_json())
            assert verify_file(path, explainer.model, detector.recount)[0][1].ok
            deeper = found.to_dict()
            deeper["plausibility"]["depth"] += 0.5
            path.write_text(
                json.dumps({"schema": json.loads(Explanations([found]).to_json())["schema"], "rows": [deeper]})
            )
            again = verify_file(path, explainer.model, detector.recount)[0][1]
            assert any("average depth" in problem for problem in again.problems)
            problem = found.problem
            assert Problem.from_json(problem.to_json()).to_json() == problem.to_json()
    assert told, "the forest never had a say"
    assert "optimal" in statuses


def test_answers_and_problems_survive_files(tmp_path: Any) -> None:
    table, classes = gappy_table(11)
    model = MODELS["forest behind indicators"]().fit(table, classes)
    explainer = Explainer(model, table, WHOLE)
    rows = asked_rows(table, 3)
    each = {label: draws(rows.loc[[label]], 4, 0) for label in rows.index}
    found = explainer.explain(rows, "opposite", imputations=each, share=0.75)
    path = tmp_path / "found.json"
    path.write_text(found.to_json())
    assert Explanations.from_json(found.to_json()) == found
    assert all(v.ok for _, v in verify_file(path, explainer.model))
    assert f"of 4 completions of {', '.join(each[rows.index[0]])} get it, at least 3 were wanted" in str(found[0])
    problem = found[0].problem
    again = Problem.from_json(problem.to_json())
    assert again.to_json() == problem.to_json()
    assert len(again.alternatives) > 1
    assert all(np.array_equal(a.gain, b.gain) for a, b in zip(again.alternatives, problem.alternatives, strict=True))
    claimed = found.to_dict()
    claimed["rows"][0]["imputations"]["least"] = 5
    path.write_text(json.dumps(claimed))
    assert any("completions is 3, not 5" in p for p in verify_file(path, explainer.model)[0][1].problems)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (lambda t: t.rename(columns={t.columns[0]: "z"}), "give these and no others"),
        (lambda t: t.assign(extra=1), "give these and no others"),
        (lambda t: t.reindex([0, 9]), "completion 1 still lacks"),
        (lambda t: t.iloc[:0], "holds no completion"),
        (lambda t: {"other": t}, "a table of its missing columns"),
        (lambda t: 3, "a table of its missing columns"),
    ],
)
def test_bad_completions_are_refused(said: Any, message: str) -> None:
    table, classes = gappy_table(11)
    explainer = Explainer(MODELS["hist"]().fit(table, classes), table, WHOLE)
    row = asked_rows(table, 1)
    with pytest.raises(DataError, match=message):
        explainer.explain(row, 1, imputations=said(draws(row, 3, 0)))


def test_what_does_not_go_with_completions_is_refused() -> None:
    table, classes = gappy_table(11)
    explainer = Explainer(MODELS["hist"]().fit(table, classes), table, WHOLE)
    row = asked_rows(table, 1)
    completions = draws(row, 3, 0)
    full = table.dropna().iloc[[0]]
    for share in (0, 1.5, True, "all"):
        with pytest.raises(ProblemError, match="above 0 and at most 1"):
            explainer.explain(row, 1, imputations=completions, share=share)
    with pytest.raises(ProblemError, match="share is that of imputations"):
        explainer.explain(row, 1, share=0.5)
    weighed = explainer.explain(row, 1, imputations=completions, plausibility={"weight": 0.1})[0]
    assert "each completion has a depth of its own" in weighed.message
    with pytest.raises(DataError, match="no missing value to complete"):
        explainer.explain(full, 1, imputations=completions)
    said = explainer.explain(row, 1, imputations=completions, missing=True)[0]
    assert "give one" in said.message
    assert set(NUMBERS) < set(table)

"""Two ways that agree, that are stopped, and that are made to disagree."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier

import ocf.solve.cell_forms
from ocf import Explainer, Explanation
from ocf.cli.base import ExitCode
from ocf.cli.solve import exit_code
from ocf.errors import ProblemError
from ocf.explain.explanation import Explanations
from ocf.oblique.tao import TAOClassifier
from ocf.solve.cross_check import compare, judged
from ocf.solve.method import Way
from ocf.solve.outcome import Outcome
from ocf.solvers.result import Status

from .oblique_cases import frame, random_tree

FIRST, SECOND = Way("interval", "box"), Way("ocean", "scip")


def outcome(status: Status, cost: float | None, bound: float) -> Outcome:
    return Outcome(status, None if cost is None else np.zeros(1), cost, bound, {"solve": 1.0})


OPTIMAL = outcome(Status.OPTIMAL, 2.0, 2.0)
INFEASIBLE = outcome(Status.INFEASIBLE, None, math.inf)
STOPPED = outcome(Status.FEASIBLE, 3.0, 1.0)
NOTHING = outcome(Status.UNKNOWN, None, -math.inf)


@pytest.mark.parametrize(
    ("first", "second", "verdict", "words"),
    [
        (OPTIMAL, OPTIMAL, "agrees", ""),
        (OPTIMAL, outcome(Status.OPTIMAL, 2.0 * (1 + 5e-10), 2.0 * (1 + 5e-10)), "agrees", ""),
        (INFEASIBLE, INFEASIBLE, "agrees", ""),
        (OPTIMAL, STOPPED, "open", "scip on ocean ended without a proof"),
        (NOTHING, INFEASIBLE, "open", "box on interval ended without a proof"),
        (OPTIMAL, outcome(Status.OPTIMAL, 2.0 * (1 + 5e-9), 2.0 * (1 + 5e-9)), "disagrees", "at least 2.00000001, box"),
        (outcome(Status.OPTIMAL, 2.1, 2.1), OPTIMAL, "disagrees", "box on interval claims at least 2.1, scip on ocean"),
        (INFEASIBLE, STOPPED, "disagrees", "no admissible change gives the target, scip on ocean found a point for 3"),
        (outcome(Status.FEASIBLE, 4.0, 3.5), STOPPED, "disagrees", "at least 3.5"),
        (outcome(Status.OPTIMAL, 0.0, 0.0), outcome(Status.OPTIMAL, 0.0, 0.0), "agrees", ""),
    ],
)
def test_verdicts(first: Outcome, second: Outcome, verdict: str, words: str) -> None:
    check = compare(FIRST, first, SECOND, second)
    assert check["verdict"] == verdict
    assert words in check["why"]
    assert bool(words) == bool(check["why"])
    after = judged(first, check)
    assert after.status is (Status.ERROR if verdict == "disagrees" else first.status)
    assert words in after.message


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(100, 3)), columns=list("abc"))
    forest = RandomForestClassifier(7, max_depth=3, random_state=0).fit(x, (x.sum(axis=1) > 0).astype(int))
    return Explainer(forest, data=x), x[forest.predict(x) == 0].iloc[:3]


@pytest.mark.parametrize(("formulation", "solver"), [("interval", "auto"), ("interval", "highs"), ("ocean", "scip")])
def test_ways_agree(small, formulation, solver) -> None:
    explainer, rows = small
    for e in explainer.explain(rows, target=1, formulation=formulation, solver=solver, cross_check=True):
        check = e.method["cross_check"]
        assert (e.status, e.verified, check["verdict"], check["status"]) == ("optimal", True, "agrees", "optimal")
        assert check["cost"] == pytest.approx(e.cost, rel=1e-9)
        assert check["solver"] != e.method["solver"]
        assert check["formulation"] != e.method["formulation"]
        assert Explanation.from_json(e.to_json()) == e
        assert f"agrees: {check['solver']} on {check['formulation']}" in e.to_html()


def test_a_disagreement_is_loud(small, monkeypatch) -> None:
    explainer, rows = small
    honest = ocf.solve.cell_forms.solve_alternatives

    def lying(alternatives, compiled, solver, *args, **kwargs):
        found = honest(alternatives, compiled, solver, *args, **kwargs)
        if solver.name != "scip":
            return found
        return replace(found, cost=None, point=None, bound=math.inf, status=Status.INFEASIBLE)

    monkeypatch.setattr(ocf.solve.cell_forms, "solve_alternatives", lying)
    found = explainer.explain(rows, target=1, cross_check=True)
    for e in found:
        assert e.status == "error"
        assert e.cost is not None
        assert e.method["cross_check"]["status"] == "infeasible"
        assert "scip on ocean claims no admissible change gives the target, box on interval found a point" in e.message
        assert "disagree" in str(e)
    assert exit_code(found) is ExitCode.UNVERIFIED
    assert exit_code(Explanations.from_json(found.to_json())) is ExitCode.UNVERIFIED


def test_leaf_by_leaf_and_the_whole_model_check_each_other() -> None:
    rng = np.random.default_rng(5)
    tree, table = random_tree(rng, 3, 3, 2), frame(rng, 3)
    explainer = Explainer(tree, data=table)
    target = 1 - int(tree.predict(table.iloc[[2]])[0])
    ways = {(name, solver) for name in ("oblique", "hyperplanes") for solver in ("auto", "scip", "highs")}
    for formulation, solver in sorted(ways):
        asked: dict[str, Any] = {"target": target, "formulation": formulation, "solver": solver}
        found = explainer.explain(table.iloc[[2]], cross_check=True, **asked)[0]
        check = found.method["cross_check"]
        assert check["verdict"] == "agrees"
        assert {check["formulation"], formulation} == {"oblique", "hyperplanes"}
        assert check["cost"] == pytest.approx(found.cost, rel=1e-8)
    forest = BaggingClassifier(TAOClassifier(2, init="random"), n_estimators=3, random_state=0)
    forest.fit(table, rng.integers(0, 2, len(table)))
    explainer = Explainer(forest, data=table)
    target = 1 - int(forest.predict(table.iloc[[2]])[0])
    found = explainer.explain(table.iloc[[2]], target=target, cross_check=True)[0]
    assert found.method["cross_check"]["solver"] != found.method["solver"]
    assert found.method["cross_check"]["formulation"] == "ocean_hyperplanes"
    assert found.method["cross_check"]["verdict"] == "agrees"
    ocean = explainer.explain(table.iloc[[2]], target=target, formulation="ocean", cross_check=True)[0]
    assert ocean.method["cross_check"]["formulation"] == "hyperplanes"
    assert ocean.method["cross_check"]["verdict"] == "agrees"
    # squares are met by tangents, which solvers of matrices take
    for asked, solver, other in (("auto", "box", "highs"), ("scip", "scip", "highs"), ("highs", "highs", "scip")):
        squares = explainer.explain(table.iloc[[2]], target=target, norm="l2", solver=asked, cross_check=True)[0]
        assert squares.method["cross_check"]["solver"] == other
        assert squares.method["cross_check"]["verdict"] == "agrees"
        assert squares.method["cross_check"]["formulation"] == "ocean_hyperplanes"
        assert solver in squares.method["solver"]
    with pytest.raises(ProblemError, match="nothing to check it by"):
        Explainer(tree, data=table).explain(table.iloc[[2]], target=1, split_margin=0.01, cross_check=True)

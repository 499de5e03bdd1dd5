"""The choice of a solver, with everything installed and with parts of it hidden."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from small_problems import random_problem

from ocf import Explainer
from ocf.cells.cell_problem import CellProblem
from ocf.errors import ProblemError, SolverError
from ocf.solve.method import Way, choose, second_way


@pytest.fixture
def cells() -> CellProblem:
    return random_problem(0)


@pytest.fixture
def coupled(cells: CellProblem, monkeypatch: pytest.MonkeyPatch) -> CellProblem:
    monkeypatch.setattr(CellProblem, "coupling", "linear constraints")
    return cells


def hide(monkeypatch: pytest.MonkeyPatch, packages: Iterable[str]) -> None:
    """Make imports of solvers' packages fail, as if they were not installed."""
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)
    for name in ("highs", "scip"):
        monkeypatch.delitem(sys.modules, f"ocf.solvers.{name}", raising=False)
        # the package keeps the module, too, and must have the same one again afterwards
        monkeypatch.delattr(f"ocf.solvers.{name}", raising=False)


def test_nothing_couples_the_features(cells: CellProblem) -> None:
    way = choose(cells)
    assert (way.formulation, way.solver) == ("interval", "box")
    assert way.why


def test_what_is_asked_for_is_given(cells: CellProblem) -> None:
    assert choose(cells, "ocean", "scip") == Way("ocean", "scip")
    assert choose(cells, "ocean", "box") == Way("interval", "box")
    assert choose(cells, "ocean").formulation == "ocean"
    assert choose(cells, "ocean").solver == "highs"
    with pytest.raises(SolverError, match="did you mean 'highs'"):
        choose(cells, "ocean", "higs")


def test_what_couples_features_goes_to_a_milp_solver(coupled: CellProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    way = choose(coupled)
    assert way.solver == "scip"  # which branches on the cells of the interval model
    assert choose(coupled, "ocean").solver == "highs"
    assert "linear constraints" in way.why
    with pytest.raises(ProblemError, match="'box' does not know linear constraints: ask for 'auto' or one of highs"):
        choose(coupled, "interval", "box")
    hide(monkeypatch, ["pyscipopt"])
    assert choose(coupled).solver == "highs"
    hide(monkeypatch, ["highspy"])
    with pytest.raises(SolverError, match="pip install highspy"):
        choose(coupled)


def test_the_check_shares_neither_formulation_nor_solver(
    cells: CellProblem, coupled: CellProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert second_way(coupled, Way("interval", "highs")) == Way("ocean", "scip")
    assert second_way(coupled, Way("ocean", "scip")) == Way("interval", "highs")
    monkeypatch.setattr(CellProblem, "coupling", "")
    assert second_way(cells, Way("interval", "box")) == Way("ocean", "scip")
    assert second_way(cells, Way("ocean", "highs")) == Way("interval", "box")
    hide(monkeypatch, ["pyscipopt"])
    assert second_way(cells, Way("interval", "box")) == Way("ocean", "highs")
    hide(monkeypatch, ["highspy"])
    with pytest.raises(SolverError, match="nothing here checks 'box'"):
        second_way(cells, Way("interval", "box"))


def test_the_box_search_needs_no_milp_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(100, 3)), columns=list("abc"))
    forest = RandomForestClassifier(7, max_depth=3, random_state=0).fit(x, (x.sum(axis=1) > 0).astype(int))
    rows = x[forest.predict(x) == 0].iloc[:3]
    with_all = Explainer(forest, data=x).explain(rows, target=1, solver="scip")
    hide(monkeypatch, ["highspy", "pyscipopt"])
    for reduce in (True, False):
        alone = Explainer(forest, data=x).explain(rows, target=1, reduce=reduce)
        for e, other in zip(alone, with_all, strict=True):
            assert (e.status, e.verified) == ("optimal", True)
            assert e.cost == pytest.approx(other.cost, rel=1e-9)
            assert e.method["solver"] == "box"
            assert e.method["why"] == "no MILP solver can be imported"
    (checked,) = Explainer(forest, data=x).explain(rows.iloc[[0]], target=1, cross_check=True)
    assert checked.status == "error"
    assert "pip install highspy pyscipopt" in checked.message

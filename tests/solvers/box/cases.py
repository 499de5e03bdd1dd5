"""What a search is given, and what must hold of every answer."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from ocf import Explainer
from ocf.arrays import FloatArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.forms import to_cells
from ocf.solve.compile import compile_formulation
from ocf.solvers.box import BoxResult
from ocf.solvers.cell_form import Compiled
from ocf.solvers.result import Status


def compiled(cells: CellProblem) -> Compiled:
    # the interval model is made for ensembles without empty leaves
    return compile_formulation("interval" if cells.partition.reachable.all() else "ocean", cells)


def check(cells: CellProblem, result: BoxResult, optimum: float, cutoff: float = np.inf) -> None:
    """What the result says is true."""
    if optimum >= cutoff * (1 - 1e-10) or not np.isfinite(optimum):
        assert result.status is Status.INFEASIBLE
        assert result.cells is None
        assert result.bound == cutoff
        assert result.message == ("cutoff" if np.isfinite(cutoff) else "")
        return
    assert result.status is Status.OPTIMAL
    assert result.cost == pytest.approx(optimum, rel=1e-9, abs=1e-300)
    assert result.bound == result.cost
    assert result.cells is not None
    assert cells.cost_of(result.cells) == result.cost
    leaves = cells.partition.leaves_at(result.cells)
    assert cells.open[cells.partition.offsets[:-1] + result.cells].all()
    assert cells.live[leaves].all()
    assert (cells.margins(leaves) >= 0).all()


@cache
def forest(rounded: bool) -> tuple[Explainer, FloatArray]:
    """A forest, and rows whose answers take some LPs; in a rounded table many points cost the same."""
    rng = np.random.default_rng(2 if rounded else 0)
    table = rng.normal(size=(150, 8 if rounded else 12))
    table = np.round(2 * table) if rounded else table
    classes = (table[:, 0] + table[:, 1] * table[:, 2] - table[:, 3] + rng.normal(size=150) > 0).astype(int)
    model = RandomForestClassifier(30 if rounded else 40, max_depth=5, random_state=0).fit(table, classes)
    return Explainer(model, data=table), table[model.predict_proba(table)[:, 1] < 0.2][:2]


@cache
def hard_problem(rounded: bool = False) -> CellProblem:
    explainer, rows = forest(rounded)
    return to_cells(explainer.problem(rows[1:], 1))

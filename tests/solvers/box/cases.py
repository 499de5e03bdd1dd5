"""What a search is given, and what must hold of every answer."""

from __future__ import annotations

import numpy as np
import pytest

from ocf.cells.cell_problem import CellProblem
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

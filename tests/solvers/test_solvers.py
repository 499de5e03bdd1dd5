"""The registry of solvers."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ocf.errors import OcfError, SolverError
from ocf.solvers import SOLVERS, available, get_solver, matrix_solver, other_matrix_solvers


def test_registry_names_the_nearest_solver():
    with pytest.raises(SolverError, match=r"no solver 'higs' \(did you mean 'highs'\?\)"):
        get_solver("higs")
    with pytest.raises(OcfError, match="no solver 'xyz'; known: highs"):
        get_solver("xyz")


def test_a_search_over_cells_takes_no_matrix() -> None:
    assert matrix_solver("highs").name == "highs"
    with pytest.raises(SolverError, match="'box' searches cells, and this needs one of matrices: highs or scip"):
        matrix_solver("box")
    with pytest.raises(SolverError, match="no solver"):
        matrix_solver("xyz")


def test_the_other_solvers_of_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOLVERS, "absent", ("ocf.solvers.no_such_module", "Absent"))
    monkeypatch.setitem(SOLVERS, "third", ("ocf.solvers.scip", "ScipSolver"))
    assert [solver.name for solver in other_matrix_solvers("highs")] == ["scip", "scip"]
    assert [solver.name for solver in other_matrix_solvers("scip")] == ["highs", "scip"]


def test_a_solver_that_cannot_be_loaded(monkeypatch):
    monkeypatch.setitem(SOLVERS, "absent", ("ocf.solvers.no_such_module", "Absent"))
    ready = available()
    assert not ready["absent"]
    assert "pip install" in ready["absent"].reason
    with pytest.raises(SolverError, match="cannot be loaded"):
        get_solver("absent")


def test_importing_the_package_imports_no_solver():
    code = "import sys, ocf.solvers; print([m for m in ('highspy', 'pyscipopt', 'pyomo') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"

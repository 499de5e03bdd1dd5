"""Every solver stops when it is asked to, and on Ctrl-C."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from ocf.solvers import Status


def test_interrupt_function(solver, market_split):
    asked = itertools.count()
    result = solver.solve(market_split, interrupt=lambda: next(asked) >= 5)
    assert result.status in (Status.FEASIBLE, Status.UNKNOWN)

    def fail() -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        solver.solve(market_split, interrupt=fail)


INTERRUPTED = """
import itertools, os, signal, sys, numpy as np, scipy.sparse as sp
from ocf.solvers import StandardForm, get_solver
signal.signal(signal.SIGINT, signal.default_int_handler)
arrays = np.load(sys.argv[2])
form = StandardForm(A=sp.csr_array(arrays["dense"]), c0=0, **{k: arrays[k] for k in arrays if k != "dense"})
solver = get_solver(sys.argv[1])
small = form.with_bounds(form.lower, np.where(form.integer, 0, form.upper))
solver.solve(small)
# the question comes while the solver runs, and Ctrl-C in the midst of it
asked = itertools.count()
def press() -> bool:
    if next(asked) == 5:
        os.kill(os.getpid(), signal.SIGINT)
    return False
try:
    solver.solve(form, interrupt=press)
    print("finished")
except KeyboardInterrupt:
    print("interrupted", solver.solve(small).status.name, flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_stops_the_solve_and_is_raised(solver, market_split, tmp_path):
    arrays = {k: getattr(market_split, k) for k in ("c", "row_lower", "row_upper", "lower", "upper", "integer")}
    np.savez(tmp_path / "form.npz", dense=market_split.A.toarray(), **arrays)
    command = [sys.executable, "-c", INTERRUPTED, solver.name, str(tmp_path / "form.npz")]
    child = subprocess.run(command, capture_output=True, text=True)
    assert child.stdout == "interrupted OPTIMAL\n", child.stderr
    assert child.returncode == 0

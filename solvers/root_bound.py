"""What the LP relaxation leaves of a model over cells, before a solver of matrices is asked.

The multipliers of one LP give the Lagrangian bound of every cell and every leaf (`ocf.solvers.box.propagation`). Those
with which nothing is cheap enough are closed, and the matrix is made anew of the rest: solvers fix columns by reduced
costs as well, but go on with the rows. The LP is solved over the columns of `ocf.solvers.box.cell_columns`, in a third
of the time that SCIP's takes for its own.

Random forests of 100 trees of depth 5, seconds of SCIP without and so, the LP included: breast cancer 7.4 and 5.7 (12
rows), students 6.8 and 6.0 (20). Of what takes SCIP a second and more most rows stay.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ocf.solvers.box.instance import copied, make_instance, whole
from ocf.solvers.box.propagation import MOST_ROUNDS, new_workspace, propagate
from ocf.solvers.box.relaxation import Relaxation, restricted
from ocf.solvers.cell_form import CellModel
from ocf.support.numba_cache import at_hand

#: Rows from which on it pays.
LEAST_ROWS = 500

#: Part of the time for the LP, at most.
SHARE = 0.2


class RootBound(NamedTuple):
    """What is left below a limit.

    Attributes
    ----------
    model : CellModel or None
        None: nothing is.
    bound : float
        No point costs less, or the limit where that is less.
    """

    model: CellModel | None
    bound: float


def fits(model: CellModel) -> bool:
    """Whether it is a model whose cells are whole numbers and say everything, large, and the kernels are compiled.

    Parameters
    ----------
    model : CellModel
    """
    large = model.reduced.form.n_rows >= LEAST_ROWS
    return large and model.has_whole_cells and model.compiled.slides is None and at_hand(propagate)


def root_bound(model: CellModel, limit: float, seconds: float | None = None) -> RootBound:
    """What of a model can cost less than a limit, by its LP relaxation.

    Parameters
    ----------
    model : CellModel
        That fits.
    limit : float
        Finite.
    seconds : float, optional
        Of which the LP takes a part at most.
    """
    cells = model.cells
    instance = make_instance(cells)
    domain = copied(whole(instance))
    relaxation = Relaxation(model.compiled, cells, instance, domain, reduced=model.reduced)
    if relaxation.infeasible or relaxation.decided:
        return RootBound(model, -math.inf)
    relaxation.lp.start(limit)
    found = relaxation.solve(domain, limit, None if seconds is None else SHARE * seconds)
    if found is None or found.multipliers is None:
        return RootBound(model, -math.inf)
    bound = propagate(instance, domain, found.multipliers, limit, new_workspace(instance), MOST_ROUNDS)
    if bound >= limit:
        return RootBound(None, limit)
    left = restricted(cells, instance, domain)
    return RootBound(CellModel(model.compiled, left, model.compiled.instance(left)), float(bound))

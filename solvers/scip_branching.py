"""SCIP branching as the box search does: on the cut of a feature whose two halves have the best bounds.

SCIP's own rules know the columns of a model and not what they stand for. Here its LP's multipliers give the Lagrangian
bound of any box of cells, by which many cuts are tried out at a node without an LP (`ocf.solvers.box.branching`), and
the children get what propagation leaves of them. The bounds are those of `ocf.solvers.box.relaxation`, rigorous
whatever SCIP's LP says.

Matrices come to SCIP whole where a constraint couples features, or where its own options are set; else
`ocf.solve.halved` branches so, and SCIP gets small boxes.

Random forests of 100 trees of depth 5, reduced interval models, seconds of the processor by SCIP's pseudo-costs and so,
and in brackets those of the box search: breast cancer, 20 rows, 57 and 25 (11). The first solve of its first row took
506 nodes and 95.
"""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
from pyscipopt import SCIP_RESULT, Branchrule

from ocf.arrays import FloatArray
from ocf.solvers.box.branching import CANDIDATES, candidate_cuts, restrict, try_cuts
from ocf.solvers.box.instance import Domain, assign, copied, make_instance, whole
from ocf.solvers.box.propagation import MOST_ROUNDS, new_workspace, propagate
from ocf.solvers.box.relaxation import Relaxation
from ocf.solvers.cell_form import CellModel
from ocf.support.numba_cache import at_hand

logger = logging.getLogger(__name__)

#: Priority among SCIP's rules, above all of them.
PRIORITY = 1_000_000


class CellBranching(Branchrule):
    """Branching on the cuts of features.

    Parameters
    ----------
    model : CellModel
        Whose form SCIP solves, perhaps with more rows below. There are columns left to choose.
    variables : list of Variable
        Of the columns.
    scale : float
        By which the objective was multiplied.
    """

    def __init__(self, model: CellModel, variables: list[Any], scale: float) -> None:
        super().__init__()
        self._instance = make_instance(model.cells)
        self._hull = whole(self._instance)
        self._relaxation = Relaxation(model.compiled, model.cells, self._instance, self._hull, reduced=model.reduced)
        self._original, self._scale = variables, scale
        self._variables: list[Any] = []
        self._domain, self._half = copied(self._hull), copied(self._hull)
        self._scratch, self._work = copied(self._hull), new_workspace(self._instance)
        self._lower, self._upper = model.reduced.form.lower.copy(), model.reduced.form.upper.copy()

    @staticmethod
    def fits(model: CellModel) -> bool:
        """Whether it is a model whose cells are whole numbers, and the kernels are compiled.

        Parameters
        ----------
        model : CellModel
        """
        return model.has_whole_cells and at_hand(try_cuts)

    def branchexeclp(self, allowaddcons: bool) -> dict[str, Any]:
        """Branch at a node whose LP is solved; SCIP's own rules do where there is no cut."""
        try:
            return {"result": self._branch()}
        except Exception:  # inside SCIP, where an exception ends the process
            logger.warning("branching on cells failed; SCIP branches itself", exc_info=True)
            return {"result": SCIP_RESULT.DIDNOTRUN}

    def branchexecps(self, allowaddcons: bool) -> dict[str, Any]:
        """Leave nodes whose LP is not solved, as where coefficients are huge, to SCIP's own rules."""
        return {"result": SCIP_RESULT.DIDNOTRUN}

    def branchexecext(self, allowaddcons: bool) -> dict[str, Any]:
        """Leave nodes with candidates from elsewhere to SCIP's own rules."""
        return {"result": SCIP_RESULT.DIDNOTRUN}

    def _branch(self) -> Any:
        scip, instance, domain = self.model, self._instance, self._domain
        if not self._variables:
            self._variables = [scip.getTransformedVar(variable) for variable in self._original]
        n = len(self._variables)
        x = np.fromiter((variable.getLPSol() for variable in self._variables), float, n)
        self._lower[:] = np.fromiter((variable.getLbLocal() for variable in self._variables), float, n)
        self._upper[:] = np.fromiter((variable.getUbLocal() for variable in self._variables), float, n)
        assign(domain, self._hull)
        self._relaxation.tighten(domain, self._lower, self._upper)
        multipliers, share = self._relaxation.multipliers(self._duals()), self._relaxation.shares(x)
        limit = scip.getPrimalbound() / self._scale
        bound = propagate(instance, domain, multipliers, limit, self._work, MOST_ROUNDS)
        if bound >= limit:
            return SCIP_RESULT.CUTOFF
        features, cuts = candidate_cuts(instance, domain, share, CANDIDATES)
        if not len(features):
            return SCIP_RESULT.DIDNOTRUN
        bound, best, *_ = try_cuts(
            instance, domain, multipliers, bound, limit, features, cuts, self._scratch, self._work
        )
        if bound == math.inf:
            return SCIP_RESULT.CUTOFF
        if best < 0:  # what is left of the box, if that is less than what SCIP has
            return SCIP_RESULT.BRANCHED if self._add_child(domain, bound, x) else SCIP_RESULT.DIDNOTRUN
        added = 0
        for beyond in (False, True):
            assign(self._half, domain)
            restrict(instance, self._half, features[best], cuts[best], beyond)
            own = propagate(instance, self._half, multipliers, limit, self._work, MOST_ROUNDS)
            if own < limit:
                added += self._add_child(self._half, max(own, bound), None)
        return SCIP_RESULT.BRANCHED if added else SCIP_RESULT.CUTOFF

    def _duals(self) -> FloatArray:
        """Multipliers of the form's rows, by the numbers that are their names; those that the LP has not got are 0."""
        duals = np.zeros(self._relaxation.form.n_rows)
        for row in self.model.getLPRowsData():
            dual = row.getDualsol()
            if dual == 0.0:
                continue  # a name takes longer than the rest
            name = row.name
            k = int(name) if name.isdecimal() else len(duals)
            if k < len(duals):
                duals[k] = dual / self._scale
        return duals

    def _add_child(self, domain: Domain, bound: float, x: FloatArray | None) -> bool:
        """Add a child of the node; where the LP's point is given, only if the child leaves it out."""
        lower, upper = self._relaxation.bounds_of(domain)
        raised, lowered = np.flatnonzero(lower > self._lower + 0.5), np.flatnonzero(upper < self._upper - 0.5)
        if x is not None and not ((x[raised] < 1 - 1e-6).any() or (x[lowered] > 1e-6).any()):
            return False
        estimate = (bound - self._relaxation.form.c0) * self._scale
        child = self.model.createChild(0.0, estimate)
        for k in raised:
            self.model.chgVarLbNode(child, self._variables[k], 1.0)
        for k in lowered:
            self.model.chgVarUbNode(child, self._variables[k], 0.0)
        return True

"""Cuts between trees as rows of a matrix: rounds of LPs before the solver, which then has the rows from its root on.

The cuts are the cliques of `ocf.solvers.box.cliques`, of whatever formulation has a column for each leaf. Every round
solves the LP from where the last one ended and adds what its point violates; what is slack in the end is left out. Why
the leaves of the others conflict is proved anew, pair by pair, and kept (`ocf.cells.leaf_conflicts`).

They are made on request only. Random forests of 100 trees of depth 5, seconds of the processor without and with them:
breast cancer, 20 rows, HiGHS 44 and 57, of which two of the three hardest 8.5 and 7.5, 6.9 and 5.0, SCIP 25 and 39;
spambase, six rows, HiGHS 2.7 and 3.7. Eight rounds with violations from 0.02 on raise the bound further; while HiGHS
still had its heuristics, they took longer than three.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ocf.arrays import FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.cells.leaf_conflicts import Conflict, clique_proof
from ocf.solvers.box.bitsets import make_bits
from ocf.solvers.box.cliques import conflicts, violated
from ocf.solvers.box.instance import make_instance
from ocf.solvers.highs_warm import WarmHighs
from ocf.solvers.result import SolverOptions
from ocf.solvers.standard_form import Reduced, StandardForm
from ocf.support.tolerances import with_ties

logger = logging.getLogger(__name__)

#: Most rounds, and most cuts of one.
ROUNDS, MOST_CUTS = 3, 60

#: Least violation of a cut between two trees that is of use; up to which a row of the LP counts as met with equality.
LEAST_VIOLATION, TIGHT = 0.05, 1e-6

#: Part of the time for all rounds, at most.
SHARE = 0.2

#: Most live leaves: the table of conflicts takes the square of them in bits, 50 MB here.
MOST_LEAVES = 20_000


@dataclass(frozen=True)
class RootCuts:
    """Cuts between trees: of the leaves of a clique one is chosen at most.

    Attributes
    ----------
    cliques : tuple of (n,) int64
        Leaves of the ensemble that conflict pairwise, which proves the cut.
    proofs : tuple of tuple of Conflict
        Why each two leaves of a clique conflict.
    rows : (n_cuts, n_cols) sparse array
    side : (n_cuts,) float64
        Rows and their upper sides, in the columns of the reduced form.
    bounds : tuple of float
        The LP's optimum before and after each round.
    seconds : float
        That the rounds took.
    """

    cliques: tuple[IntArray, ...]
    rows: Any
    side: FloatArray
    bounds: tuple[float, ...] = ()
    seconds: float = 0.0
    proofs: tuple[tuple[Conflict, ...], ...] = ()

    def added_to(self, form: StandardForm) -> StandardForm:
        """A form with the cuts below its rows."""
        names = [f"clique[{k}]" for k in range(len(self.side))]
        return form.append_rows(self.rows, -np.inf, self.side, names) if names else form

    def joined(self, others: RootCuts) -> RootCuts:
        """These and others."""
        rows = sp.vstack([self.rows, others.rows], format="csr")
        return replace(
            self, cliques=self.cliques + others.cliques, rows=rows, side=np.concatenate([self.side, others.side])
        )

    def tight_at(self, x: FloatArray) -> RootCuts:
        """Those that a point, (n_cols,), meets with equality."""
        return self._subset(np.flatnonzero(self.rows @ x > self.side - TIGHT))

    def proved_below(self, limit: float, cells: CellProblem) -> RootCuts:
        """These with their proofs that no point cheaper than a limit is lost; a cut that has none is left out.

        Parameters
        ----------
        limit : float
        cells : CellProblem
        """
        proofs = [clique_proof(cells, clique, limit) for clique in self.cliques]
        proved = np.array([k for k, proof in enumerate(proofs) if proof is not None], np.int64)
        if len(proved) < len(proofs):
            logger.error("%d cuts between trees had no proof and are left out", len(proofs) - len(proved))
        return replace(self._subset(proved), proofs=tuple(proof for proof in proofs if proof is not None))

    def _subset(self, places: IntArray) -> RootCuts:
        return replace(
            self,
            cliques=tuple(self.cliques[k] for k in places),
            rows=self.rows[places],
            side=self.side[places],
            proofs=tuple(self.proofs[k] for k in places) if self.proofs else (),
        )


def root_cuts(
    reduced: Reduced, cells: CellProblem, limit: float = math.inf, options: SolverOptions | None = None
) -> RootCuts:
    """Cuts between trees that the LP relaxation of a model over cells violates, and that stay tight.

    Parameters
    ----------
    reduced : Reduced
        `ocf.solvers.cell_form.Compiled.instance` of the cells; before the reduction its first columns are the leaves'.
    cells : CellProblem
        Not infeasible.
    limit : float
        Cost from which on a point is of no use: no cut removes a cheaper one.
    options : SolverOptions, optional
        Of the solver that comes after; the rounds take a part of its time.
    """
    begin, options = time.perf_counter(), options or SolverOptions()
    found, bounds = RootCuts((), sp.csr_array((0, reduced.form.n_cols)), np.zeros(0)), []
    form = reduced.form.relaxed()
    if form.Q is not None or form.n_cols == 0 or form.contradicts_itself() or cells.live.sum() > MOST_LEAVES:
        return found
    separation = _Separation(reduced, cells, limit)
    lp = WarmHighs(form, SolverOptions(threads=options.threads, seed=options.seed))
    for turn in range(ROUNDS + 1):
        spent = time.perf_counter() - begin
        answer = lp.solve(time_limit=None if options.time_limit is None else SHARE * options.time_limit - spent)
        if answer.x is None:  # too little time, or nothing is left: the solver itself will see
            break
        bounds.append(form.objective(answer.x))
        new = separation.violated_by(answer.x)
        if turn == ROUNDS or not len(new.side):
            found = found.tight_at(answer.x)
            break
        found = found.joined(new)
        lp.append_rows(new.rows, -np.inf, new.side)
    logger.info("%d cuts between trees; the LP relaxation's bounds: %s", len(found.side), bounds)
    found = found.proved_below(limit, cells)
    return replace(found, bounds=tuple(bounds), seconds=time.perf_counter() - begin)


class _Separation:
    """Which cliques a point of the LP violates."""

    def __init__(self, reduced: Reduced, cells: CellProblem, limit: float) -> None:
        instance = make_instance(cells)
        bits = make_bits(instance)
        self._trees, self._leaf = instance.trees, instance.leaf[bits.leaf]
        self._table = conflicts(instance, bits, with_ties(limit))
        # a leaf's y is a column, or 1 where it is the only one of its tree
        self._column, self._constant = reduced.P[self._leaf], reduced.x0[self._leaf]

    def violated_by(self, x: FloatArray) -> RootCuts:
        """The most violated cliques of a point of the reduced form."""
        y = self._column @ x + self._constant
        words = violated(self._trees, self._table, y, LEAST_VIOLATION, MOST_CUTS)
        member = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little", count=len(y)).astype(bool)
        rows = sp.csr_array(member.astype(float))
        cliques = tuple(np.sort(self._leaf[chosen]) for chosen in member)
        return RootCuts(cliques, rows @ self._column, 1.0 - rows @ self._constant)

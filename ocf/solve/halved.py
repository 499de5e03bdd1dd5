"""Solvers of matrices on models over cells: boxes are halved by LP bounds until a solver can end them in a moment.

Solvers know the columns of a model and not what they stand for, and spend most of their time on what does not help
here: HiGHS on cuts at the root, which cannot be turned off, SCIP on LPs with all rows. So what is large is halved as in
the box search, by the LP relaxation of the same model, which is HiGHS's whoever the solver is (`ocf.solvers.box`); a
solver gets the matrices of boxes with few leaves, and small problems whole. Seconds of the processor, random forests of
100 trees of depth 5 on breast cancer, 20 rows: HiGHS on whole matrices 27.6 and so 4.7, SCIP 10.4 and so 5.0, the box
search, which dives where these ask a solver, 4.8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ocf.arrays import IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.errors import MemoryLimitError, SolverError
from ocf.formulations.base import decode
from ocf.solve.method import BOUNDS_FROM, Way, usable_solver
from ocf.solvers import SOLVERS, Reduced, get_solver, matrix_solver
from ocf.solvers.box import solve_cells
from ocf.solvers.box.branching import try_cuts
from ocf.solvers.box.instance import count_changes
from ocf.solvers.box.points import best_rounding
from ocf.solvers.box.propagation import Multipliers
from ocf.solvers.box.relaxation import restricted
from ocf.solvers.box.shared import OpenNode, Shared
from ocf.solvers.box.solver import as_result
from ocf.solvers.box.worker import NodeRelaxation, Worker
from ocf.solvers.cell_form import CellModel, Compiled
from ocf.solvers.result import SolveResult, SolverOptions, Status
from ocf.support.messages import with_remark
from ocf.support.numba_cache import at_hand

#: Leaves, beyond one a tree, of the boxes that a solver ends. With 500 HiGHS takes 0.2 s in the mean, with 100 and
#: fewer 0.01 s. Seconds of HiGHS and of SCIP with none, 100 and 200 (the box search): breast cancer 4.6, 5.1, 4.9 and
#: 4.5, 5.1, 5.5 (4.8), students 2.1, 2.2, 2.5 and 2.1, 2.5, 3.0 (2.0), credit_default 1.1, 1.1, 1.3 and 1.1, 1.2, 1.1
#: (0.7).
SMALL = 100

#: Leaves with which the first LP takes no longer than a local search before it. Students' median by HiGHS is 0.08 s so,
#: and 0.10 without; with 1,500 the sum of breast cancer's 20 rows is 5.4 in the place of 4.8.
FEW = 1_000


def gets_boxes(way: Way, options: SolverOptions) -> bool:
    """Whether a way's solver gets boxes, and not matrices as they are, of problems without values inside cells.

    Whoever sets options of the solver, or asks for cuts at the root, means the solver's own search.

    Parameters
    ----------
    way : Way
    options : SolverOptions
    """
    plain = way.solver in SOLVERS and way.formulation == BOUNDS_FROM and not options.options
    return plain and options.cuts == "none" and usable_solver("highs") is not None


def can_be_halved(alternatives: Sequence[CellProblem]) -> bool:
    """Whether a box of cells tells what is cheapest in it, and the kernels are compiled that halve boxes.

    Parameters
    ----------
    alternatives : sequence of CellProblem
    """
    return all(cells.values is None for cells in alternatives) and at_hand(try_cuts) and at_hand(best_rounding)


class HalvedSolver:
    """A solver that gets small boxes; see `ocf.solvers.protocols.CellSolver`.

    Parameters
    ----------
    name : str
        Of `ocf.solvers.SOLVERS`.
    """

    def __init__(self, name: str) -> None:
        self.name, self.version = name, get_solver(name).version

    def refuses(self, cells: CellProblem) -> str:
        """Nothing: what a problem says is in its matrix."""
        return ""

    def check_options(self, raw: Mapping[str, Any]) -> None:
        """Refuse raw options that its solver does not take.

        Parameters
        ----------
        raw : mapping of str to object
            In the solver's own names.
        """
        get_solver(self.name).check_options(raw)

    def solve_cells(
        self,
        cells: CellProblem,
        options: SolverOptions | None = None,
        *,
        cutoff: float = np.inf,
        confirm: Callable[[IntArray], bool] | None = None,
        relaxation: Compiled | Callable[[], Compiled | None] | None = None,
        fewest: bool = False,
        incumbent: IntArray | None = None,
    ) -> SolveResult:
        """Find the cheapest choice of open cells; the result's `x` is that, (n_features,).

        Its solver is HiGHS, whose the LPs are, where no box was left to be ended.

        Parameters
        ----------
        cells, options, cutoff, confirm, relaxation, fewest, incumbent
            See `ocf.solvers.protocols.CellSolver.solve_cells`; without a relaxation boxes are dived in as by the box
            search.
        """
        options, ends = options or SolverOptions(), _Ends(self.name)
        found = solve_cells(
            cells,
            options,
            cutoff=cutoff,
            confirm=confirm,
            relaxation=relaxation,
            fewest=fewest,
            incumbent=incumbent,
            worker=partial(_Ending, ends),
        )
        who = self if ends.ended else get_solver("highs")
        result = as_result(found, who.name, who.version, options)
        said = with_remark(found.message, ends.said)
        counted = f"{result.raw_status}, {ends.ended} boxes ended by {self.name}"
        return replace(result, options=ends.settings, raw_status=counted, message=said)


@dataclass
class _Ends:
    """What a solver has made of the boxes of one search.

    Attributes
    ----------
    solver : str
    ended : int
        Boxes whose end it has come to.
    settings : mapping
        Its raw options.
    said : str
        What it said of the first box on which it failed.
    """

    solver: str
    ended: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    said: str = ""

    def note(self, result: SolveResult) -> None:
        """Keep what a result says of the solver.

        Parameters
        ----------
        result : SolveResult
        """
        self.settings = result.options
        if result.status is Status.ERROR and not self.said:
            self.said = f"{self.solver} failed on a box ({result.message}), which was halved on"


class _Ending(Worker):
    """Asks a solver about small boxes in the place of dives.

    Parameters
    ----------
    ends : _Ends
    search : Shared
    """

    unsearched = FEW

    def __init__(self, ends: _Ends, search: Shared) -> None:
        super().__init__(search)
        self._ends, self._solver = ends, matrix_solver(ends.solver)  # an object of this thread alone

    def before_lp(self, bound: float, multipliers: Multipliers) -> list[OpenNode] | None:
        """Small problems are for the solver as they are; in a small box the LP comes first, which closes most."""
        if self.search.generation or not self._is_small:
            return None
        return self.without_lp(bound, multipliers)

    def without_lp(self, bound: float, multipliers: Multipliers) -> list[OpenNode]:
        """What the solver leaves of a small box, the halves of a large one; dives where there is no matrix."""
        if self.search.compiled() is None:
            return super().without_lp(bound, multipliers)
        return self.after_lp(self.without_shares(bound, multipliers))

    def after_lp(self, relaxed: NodeRelaxation) -> list[OpenNode]:
        """What the solver leaves of a small box, the halves of a large one."""
        if not (self._is_small and self._ended()):
            return self.branch(relaxed)
        with self.search.turn:
            self._ends.ended += 1
        return []

    @property
    def _is_small(self) -> bool:
        return bool(self.domain.live.sum() - (len(self.instance.trees) - 1) <= SMALL)

    def _ended(self) -> bool:
        """Whether the solver has ended the box of `self.domain`; a point that it finds is put before the search."""
        search, compiled = self.search, self.search.compiled()
        assert compiled is not None  # else there is no LP
        cells = replace(restricted(search.cells, self.instance, self.domain), excluded=search.refusals())
        model, equals = CellModel(compiled, cells, compiled.instance(cells)), search.equals
        search.sizes = search.sizes or model.reduced.form.sizes
        result = self._asked(model, model.reduced, min(equals.limit, search.limit))
        fewer = search.fewest and count_changes(self.instance, self.domain) < equals.changes
        if fewer and result.status is Status.INFEASIBLE:  # nothing is cheaper, but something may change less
            few = compiled.with_few_changes(model.reduced, cells, equals.changes - 1)
            result = self._asked(model, few, search.limit)
        if result.status is Status.INFEASIBLE:
            return True
        leaves = None if result.x is None else model.reduced.restore(result.x)[: compiled.n_leaves]
        choice = None if leaves is None else decode(leaves, cells)
        admissible = choice is not None and self.offer(choice)
        return admissible and result.status is Status.OPTIMAL and not search.fewest

    def _asked(self, model: CellModel, matrix: Reduced, limit: float) -> SolveResult:
        """What the solver says of a matrix, below a limit."""
        own, cutoff = self.search.options, limit if np.isfinite(limit) else None
        options = SolverOptions(time_limit=self.search.seconds_left(), seed=own.seed, log=own.log)
        try:
            result = self._solver.solve(matrix.form, options, cutoff=cutoff, over=model)
        except SolverError as error:
            result = SolveResult(Status.ERROR, message=str(error))
        except MemoryLimitError:
            self.search.stop("memory limit")
            result = SolveResult(Status.UNKNOWN)
        with self.search.turn:
            self._ends.note(result)
        return result

"""One row's query of the leaves of an oblique tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from ocf.arrays import BoolArray, FloatArray
from ocf.formulations.oblique import closest_in_boxes
from ocf.problem.lines import LineBound
from ocf.problem.problem import Problem
from ocf.solve.leaf_answer import LeafAnswer, LeafClaim, LeafTask, Leaves
from ocf.solve.leaf_branching import LeafBranching
from ocf.solve.leaf_model import LeafModel
from ocf.solve.leaf_run import LeafRun
from ocf.solve.leaf_smooth import SmoothLeaves
from ocf.solve.method import branching_solvers
from ocf.solve.tree_search import TreeSearch
from ocf.solvers import CELL_SOLVERS, SOLVERS, matrix_solver, takes
from ocf.solvers.result import SolverOptions, Status
from ocf.solvers.standard_form import StandardForm
from ocf.support.tolerances import meets

#: Assignments of categories that a leaf may try before it settles for the bound of its solver.
MAX_ASSIGNMENTS = 50


class Query:
    """One row's question to a tree, leaf by leaf; keeps what a next, larger margin can start from.

    Parameters
    ----------
    search : TreeSearch
    problem : Problem
    options : SolverOptions
    solver : {"highs", "scip"}
        Solves every LP, QP and MILP of a leaf; integers with squares go to SCIP, and where these are separable
        `ocf.solve.leaf_branching` proves what it finds. With any other name, such as ``"auto"``, leaves without
        integers go to methods of our own and to HiGHS where they do not suffice, and the others to SCIP; integers
        with squares that are separable, and what a solver's tolerances leave open, go to `ocf.solve.leaf_branching`.
    """

    def __init__(self, search: TreeSearch, problem: Problem, options: SolverOptions, solver: str = "auto") -> None:
        self.run, self.options = LeafRun(options), options
        self.model = LeafModel(search, problem)
        self._asked_for, self._by_box = solver if solver in SOLVERS else "", solver in CELL_SOLVERS
        self._smooth = SmoothLeaves(self.model, options, self._asked_for)
        self._branching = LeafBranching(self.model, self._smooth, options)

    @cached_property
    def solvers(self) -> list[str]:
        """Who solves for all trees, and who goes on where that one fails or does not know all that is asked."""
        raw = self.options.options
        if self._asked_for or not takes("box", raw):
            return self.matrix_solvers
        return ["box"] if raw or self._by_box else ["box", *self.matrix_solvers]

    @cached_property
    def matrix_solvers(self) -> list[str]:
        """Those that solve a model of all trees."""
        return [self._asked_for] if self._asked_for else branching_solvers(self.options.options)

    @property
    def method_name(self) -> str:
        """What solved the leaves."""
        return self.run.method_name

    def restart(self) -> None:
        """Start the clock and the statistics anew; what an earlier answer left to start from stays."""
        self.run = LeafRun(self.options)

    def settle_by(self, judge: Callable[[FloatArray], bool] | None) -> None:
        """Ask the user's own model about single points whose side rounding decides; None asks nobody.

        Parameters
        ----------
        judge : callable, optional
            Whether the model gives the target to a coded point.
        """
        self._smooth.judge = judge

    def solve_leaf(
        self,
        leaf: Leaves,
        cutoff: float = np.inf,
        eps: float = 0.0,
        bounds: Sequence[LineBound] = (),
        held: Mapping[int, float] = MappingProxyType({}),
    ) -> LeafAnswer:
        """The cheapest point of a leaf, if it can be cheaper than the cutoff.

        Parameters
        ----------
        leaf : int or tuple of int
            A leaf, or one leaf per tree.
        cutoff : float
            Cost of the best point so far; inf without one.
        eps : float
            Margin by which every split of the path must hold, in units of its total.
        bounds : sequence of LineBound
            Of lines, where they are part of the target.
        held : mapping of int to float
            Numbers on a grid and listed features that are held at a coded value, unless nothing is gained by that.
        """
        model = self.model
        task = model.task(leaf, eps, bounds)
        task = task if task is None or not held else model.held(task, held)
        if task is None or model.domain.is_empty(task.lower, task.upper):
            return LeafAnswer.empty(leaf)
        if not len(task.place) and model.form is None and not model.relations:
            closest = self._closest(task)
            if closest.point is not None and self._smooth.rounding.reaches(leaf, closest.point):
                return closest
        if task.is_open(model.columns.integer):
            return self._with_integers(task, cutoff)
        return self._smooth.answer(task, cutoff, self.run)

    def _closest(self, task: LeafTask) -> LeafAnswer:
        """Theorem 3.3: without hyperplanes each feature is by itself."""
        domain, problem = self.model.domain, self.model.problem
        low, high = domain.box(task.leaf, task.eps)
        closest = closest_in_boxes(low[None], high[None], problem.origin[None])[0, 0]
        point = np.where(domain.number, closest, problem.origin)
        for i, column in domain.cheapest_levels(task.upper).items():
            point[i] = domain.columns.value[column]
        self.run.called("closed form")
        cost = self.model.cost_of(point)
        return LeafAnswer.solved(task.leaf, point, cost)

    # -- leaves with integers ---------------------------------------------------------------------------------

    def _with_integers(self, task: LeafTask, cutoff: float) -> LeafAnswer:
        """A leaf with integers: first where they are cheapest, then the choices that can be cheaper than that."""
        model = self.model
        held = self._held(task) if cutoff == np.inf else LeafAnswer.empty(task.leaf)
        limit = min(cutoff, held.cost)
        left = model.affordable(task, limit)
        if model.domain.is_empty(left.lower, left.upper):
            found = LeafAnswer.pruned(task.leaf, limit)
        elif left.is_open(model.columns.integer):
            return self._mixed(left, limit, held)
        else:
            found = self._smooth.answer(left, limit, self.run)
            if found.claim is LeafClaim.OPEN:  # the solver may see what duality within rounding does not
                return self._mixed(left, limit, held)
        best = found if found.cost < held.cost else held
        bound = min(found.bound, limit, best.cost)
        return LeafAnswer.pruned(task.leaf, bound) if best.point is None else best.bounded(bound)

    def _held(self, task: LeafTask) -> LeafAnswer:
        """The cheapest point with every listed feature at its cheapest level and every grid where it is, if any."""
        domain, columns = self.model.domain, self.model.columns
        if (columns.role == "moved").any():
            return LeafAnswer.open(task.leaf, domain.credit)
        x = np.clip(0.0, task.lower, task.upper)
        x[list(domain.cheapest_levels(task.upper).values())] = 1.0
        return self._smooth.answer(task.fixed(x, columns.integer), np.inf, self.run)

    def _mixed(self, task: LeafTask, cutoff: float, known: LeafAnswer) -> LeafAnswer:
        """The solver chooses the integers, the rest is solved again for each of its choices."""
        separable = self.model.form is None
        form = self._form(task)
        if separable and form.Q is not None:
            best = self._by_scip(form, task, cutoff, known) if self._asked_for else known
            return self._branching.answer(task, cutoff, best, self.run)
        best = replace(known, bound=np.inf) if known.point is not None else LeafAnswer.empty(task.leaf)
        name = "scip" if form.Q is not None else self.matrix_solvers[0]
        self.run.called(name)
        solver = matrix_solver(name)
        loose = form.integer & (form.lower < form.upper)
        binary = loose & (form.lower == 0) & (form.upper == 1)
        undecided = np.inf  # bound of the choices of which rounding left open what they cost, if they have a point
        for _ in range(MAX_ASSIGNMENTS):
            limit = min(cutoff, best.cost)
            left = self.run.seconds_left()
            if left is not None and left <= 0:
                return best.bounded(self.model.domain.credit)
            asked = replace(self.options, time_limit=left, presolve=False)
            result = solver.solve(form, asked, cutoff=limit if np.isfinite(limit) else None)
            self.run.note(result)
            bound = min(result.bound, undecided)
            if result.status is Status.INFEASIBLE:
                return best.searched(min(limit, bound), cutoff)
            if result.status is Status.ERROR and separable:
                break
            if result.x is None:
                return best.bounded(bound)
            found = self._smooth.answer(task.fixed(result.x, form.integer), np.inf, self.run)
            if found.cost < best.cost:
                best = replace(found, bound=best.bound)
            near = meets(result.bound, best.cost)
            # a later bound says nothing of a choice that is cut off with less than its proof
            if not near:
                undecided = min(undecided, self._left_open(found, result.x))
            settled = result.ended and not binary[loose].all()
            if separable and settled and not near:
                break
            if near or settled or not result.ended or self.options.mip_gap > 0:
                proven = near or (settled and result.bound >= best.cost * (1 - 1e-6) - 1e-12)
                return best.bounded(min(best.cost, undecided, np.inf if proven else result.bound))
            form = _cut_off(form, binary, result.x > 0.5)
        if separable:
            return self._branching.answer(task, cutoff, best, self.run)
        return best.bounded(min(result.bound, undecided))

    def _by_scip(self, form: StandardForm, task: LeafTask, cutoff: float, known: LeafAnswer) -> LeafAnswer:
        """SCIP's point of a leaf with squares, or the known one; its bound, within its tolerances, proves nothing."""
        self.run.called("scip")
        limit, left = min(cutoff, known.cost), self.run.seconds_left()
        if left is not None and left <= 0:
            return known
        # what SCIP cannot settle, the branching may in no time
        options = replace(self.options, time_limit=None if left is None else left / 2)
        result = matrix_solver("scip").solve(form, options, cutoff=limit if np.isfinite(limit) else None)
        self.run.note(result)
        if result.x is None:
            return known
        found = self._smooth.answer(task.fixed(result.x, form.integer), np.inf, self.run)
        return found if found.cost < known.cost else known

    def _left_open(self, found: LeafAnswer, x: FloatArray) -> float:
        """What a choice of integers costs at least, with what its numbers pay for leaving their values; inf if proven.

        Parameters
        ----------
        found : LeafAnswer
            With the integers fixed.
        x : (n_columns,) float64
            The solution that chose them.
        """
        columns = self.model.columns
        least = found.bound + float(columns.linear[(columns.role == "moved") & (x > 0.5)].sum())
        return np.inf if found.claim is not LeafClaim.OPEN or meets(least, found.cost) else least

    def _form(self, task: LeafTask) -> StandardForm:
        """The leaf's problem as a matrix, on the clock."""
        with self.run.timed("instance"):
            return self.model.standard_form(task)


def _cut_off(form: StandardForm, binary: BoolArray, chosen: BoolArray) -> StandardForm:
    """The same without the points with one choice of the binaries."""
    cut = np.zeros(form.n_cols)
    cut[binary] = np.where(chosen[binary], 1.0, -1.0)
    return form.append_rows(cut, -np.inf, float(chosen[binary].sum()) - 1.0)

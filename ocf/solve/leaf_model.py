"""The leaves of a tree, or choices of one leaf per tree, as one row sees them: each a problem over the same columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.formulations.blocks.columns import centred, quadratic_form, relation_rows
from ocf.problem.lines import LineBound
from ocf.problem.piecewise import exact_rows
from ocf.problem.problem import Problem
from ocf.solve.leaf_answer import LeafTask, Leaves
from ocf.solve.leaf_bounds import CheapBounds
from ocf.solve.leaf_domain import RowDomain
from ocf.solve.leaf_planes import RowPlanes
from ocf.solve.tree_search import TreeSearch
from ocf.solvers.standard_form import StandardForm
from ocf.support.tolerances import PROOF_TOLERANCE


class LeafModel:
    """What one row asks of the leaves.

    Parameters
    ----------
    search : TreeSearch
    problem : Problem
    """

    def __init__(self, search: TreeSearch, problem: Problem) -> None:
        self.search, self.tree, self.problem = search, search.tree, problem
        self.domain = RowDomain(search, problem)
        self.columns, self.origin = self.domain.columns, problem.origin
        self.matrix, self.matrix_is_old = search.matrix(problem, self.columns)
        self.planes = RowPlanes(search, self.matrix, self.domain)
        form = quadratic_form(problem)
        self.form = form if form.nnz else None
        self.relations = exact_rows(problem)
        self.relation_rows = relation_rows(problem, self.columns)
        self.bounds = CheapBounds(self.domain, self.planes, self.form)

    def cost_of(self, point: FloatArray) -> float:
        """What a point costs.

        Parameters
        ----------
        point : (n_features,) float64
            Coded.
        """
        return self.problem.cost.total(self.problem.space, self.origin, point)

    def task(self, leaf: Leaves, eps: float, bounds: Sequence[LineBound] = ()) -> LeafTask | None:
        """A leaf's problem; None where its bounds or the hyperplanes of its path admit nothing.

        Parameters
        ----------
        leaf : int or tuple of int
            A leaf, or one leaf per tree.
        eps : float
            Margin by which every split of the path must hold, in units of its total.
        bounds : sequence of LineBound
            Of lines.
        """
        lower, upper = self.domain.bounds(leaf, eps)
        rows = self.planes.path_rows(leaf, eps)
        rows = None if rows is None else self.planes.with_lines(rows, bounds)
        if rows is None or self.matrix.contradictory or self.domain.is_empty(lower, upper):
            return None
        return LeafTask(leaf, eps, *self.planes.not_implied(rows, lower, upper), lower, upper)

    @cached_property
    def weighed(self) -> BoolArray:
        """Which columns hyperplanes or constraints weigh, (n_columns,)."""
        out = np.zeros(self.columns.n, bool)
        for row in [*self.matrix.planes, *(row for row, _ in self.relation_rows)]:
            out |= row != 0
        return out

    @cached_property
    def whole(self) -> IntArray:
        """Numbers on a grid that hyperplanes or constraints weigh."""
        columns = self.columns
        return np.unique(columns.feature[columns.is_number & columns.integer & self.weighed])

    @cached_property
    def listed(self) -> IntArray:
        """Categories and other features of listed values that hyperplanes or constraints weigh."""
        return np.unique(self.columns.feature[(self.columns.role == "level") & self.weighed])

    def held(self, task: LeafTask, values: Mapping[int, float]) -> LeafTask:
        """The same with some numbers on a grid, and listed features, held where they are.

        Parameters
        ----------
        task : LeafTask
        values : mapping of int to float
            By feature, coded.
        """
        columns, lower, upper = self.columns, task.lower.copy(), task.upper.copy()
        for i, value in values.items():
            if i in self.domain.levels:
                own = columns.of(i)
                upper[own] = np.where(columns.value[own] == value, upper[own], 0.0)
                lower[own] = upper[own]
                continue
            for j in columns.of(i)[columns.is_number[columns.of(i)]].tolist():
                steps = np.rint((value - self.origin[i]) / columns.unit[j])
                steps = steps if columns.role[j] == "delta" else max(steps, 0.0)
                lower[j], upper[j] = max(lower[j], steps), min(upper[j], steps)
        return replace(task, lower=lower, upper=upper)

    def affordable(self, task: LeafTask, limit: float) -> LeafTask:
        """The same without the levels with which nothing is cheaper than a limit.

        Parameters
        ----------
        task : LeafTask
        limit : float
        """
        columns, lower, upper = self.columns, task.lower.copy(), task.upper.copy()
        least, most = self.domain.box_cost(lower, upper), limit + PROOF_TOLERANCE * abs(limit)
        for own in self.domain.levels.values():
            usable = own[upper[own] > 0]
            price = columns.linear[usable]
            upper[usable[least - price.min() + price > most]] = 0.0
            left = own[upper[own] > 0]
            if len(left) == 1:
                lower[left] = 1.0
        return replace(task, lower=lower, upper=upper)

    def standard_form(self, task: LeafTask) -> StandardForm:
        """A leaf's problem as a matrix: its hyperplanes, and the rows that every leaf has."""
        always, columns = self.matrix.always, self.columns
        # a solver keeps to rows within its tolerance, and the library to sums of its own within their slack
        side = task.side + (self.planes.slack[task.place] if task.eps == 0 else 0.0)
        planes, side = centred(columns, task.sign[:, None] * self.planes.over_columns[task.place], side)
        return replace(
            always,
            c=columns.linear,
            c0=0.0,
            A=sp.vstack([sp.csr_array(planes), always.A], format="csr") if len(planes) else always.A,
            row_lower=np.concatenate([np.full(len(task.place), -np.inf), always.row_lower]),
            row_upper=np.concatenate([side, always.row_upper]),
            lower=task.lower,
            upper=task.upper,
            integer=columns.integer,
            column_names=None,
        )

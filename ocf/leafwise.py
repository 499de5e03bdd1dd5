"""One tree, leaf by leaf: the driver of `ocf.formulations.oblique`.

::

    leaves with the target ──▶ lower bounds ──▶ cheapest first ──▶ LP, QP, MILP or MIQP ──▶ moved inside ──▶ proof
                                    │                                                          │
                                    └────── those that cannot beat the best so far are left ◀──┘

The bounds come from weak duality in float64 and hold whatever the solver's tolerances let through; a point is moved
off the hyperplanes by what the rounding of the tree's own dot products can amount to (`ocf.halfspaces`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from ocf.cells import Partition
from ocf.constraints import satisfied
from ocf.ensemble import BoolArray, FloatArray, IntArray, SplitKind
from ocf.formulations import hyperplanes
from ocf.formulations.oblique import (
    Columns,
    build,
    closest_in_boxes,
    columns_of,
    grid_unit,
    quadratic_form,
    relation_rows,
)
from ocf.halfspaces import UNIT, Polytope
from ocf.outcome import PROOF, Outcome
from ocf.problem import Problem
from ocf.solvers import SOLVERS, Solver, get_solver
from ocf.solvers.base import Claim
from ocf.solvers.family import HighsFamily, cleaned
from ocf.solvers.result import Progress, SolveResult, SolverOptions, Status
from ocf.solvers.standard_form import StandardForm, compile_model
from ocf.targets import Requirements
from ocf.value_rows import exact_rows

logger = logging.getLogger(__name__)

#: Choices of one leaf per tree that a global search may try.
MAX_CHOICES = 200

#: Assignments of categories that a leaf may try before it settles for the bound of its solver.
MAX_ASSIGNMENTS = 50


@dataclass(frozen=True, eq=False)
class LeafAnswer:
    """The cheapest point of one leaf.

    Attributes
    ----------
    leaf : int
    point : (n_features,) float64 or None
        Coded; the tree sends it to the leaf.
    cost : float
        Of the point; inf without one.
    bound : float
        No admissible point of the leaf is cheaper; inf where there is none at all.
    claim : {"solved", "pruned", "empty", "open"}
        ``"pruned"``: it cannot beat the best leaf. ``"open"``: a limit or the solver's tolerances left it undecided.
    """

    leaf: Leaves
    point: FloatArray | None
    cost: float
    bound: float
    claim: str


@dataclass(frozen=True, eq=False)
class Region:
    """Box ``(low, high]`` of single splits, sides of the oblique ones, and members of the unordered features."""

    low: FloatArray
    high: FloatArray
    path: Mapping[int, bool]
    member: BoolArray


#: A leaf, or one leaf per tree.
Leaves = int | tuple[int, ...]


class TreeSearch:
    """What all queries of one ensemble share: paths, boxes, and the compiled matrices.

    Parameters
    ----------
    part : Partition
    """

    def __init__(self, part: Partition) -> None:
        self.part = part
        self.tree = part.ensemble
        cells = part.offsets[:-1]
        # leaves below contradictory splits have boxes beyond the cells; they are never asked about
        low, high = (np.clip(ends, 0, part.widths - 1) for ends in (part.low, part.high))
        self.low = np.where(part.ordered, part.lower[cells + low], -np.inf)
        self.high = np.where(part.ordered, part.upper[cells + high], np.inf)
        self.split = part.ordered & (part.widths > 1)
        self.paths = self._paths()
        self._matrices: dict[tuple[Any, ...], _Matrix] = {}
        self._stiffness: dict[tuple[Any, ...], tuple[FloatArray, FloatArray]] = {}

    def _paths(self) -> list[dict[int, bool]]:
        """Oblique nodes above each leaf, and whether the path goes left."""
        tree, out = self.tree, [dict[int, bool]()] * self.tree.n_leaves
        stack: list[tuple[int, dict[int, bool]]] = [(int(root), {}) for root in tree.tree_offsets[:-1]]
        while stack:
            v, path = stack.pop()
            if tree.kind[v] == SplitKind.LEAF:
                out[int(tree.leaf[v])] = path
                continue
            for child, left in ((tree.left[v], True), (tree.right[v], False)):
                below = {**path, v: left} if tree.kind[v] == SplitKind.OBLIQUE else path
                stack.append((int(child), below))
        return out

    def region(self, leaves: Leaves) -> Region:
        """What a leaf, or the intersection of one leaf per tree, demands."""
        index = [leaves] if isinstance(leaves, int | np.integer) else list(leaves)
        path: dict[int, bool] = {}
        for k in index:
            path |= self.paths[k]
        member = np.asarray(self.part.member[index].all(axis=0))
        return Region(self.low[index].max(axis=0), self.high[index].min(axis=0), path, member)

    def stiffness(self, problem: Problem, form: Any, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each hyperplane ``z'Qz`` with ``2 Q z = w``, (n_planes,), and by how much that fails, (n_planes, n).

        The former is infinite where the hyperplane weighs features without a square, or Q is singular.
        """
        key = (problem.cost.squares, problem.cost.forms, weights.tobytes())
        if key not in self._stiffness:
            z, used = np.zeros_like(weights), np.flatnonzero(np.diff(form.indptr))
            try:
                z[:, used] = splu(form[used][:, used].tocsc()).solve(weights[:, used].T / 2).T
            except RuntimeError:  # singular
                z[:] = np.nan
            slope = (form @ z.T).T
            size = (z * slope).sum(axis=1)
            bare = np.delete(weights, used, axis=1).any(axis=1) | ~np.isfinite(size) | (size <= 0)
            # the product itself rounds by as much as this again
            miss = 2 * np.abs(weights - 2 * slope) + 1e-14 * (abs(form) @ np.abs(z).T).T
            self._stiffness[key] = np.where(bare, np.inf, size), np.where(bare[:, None], 0.0, miss)
        return self._stiffness[key]

    def matrix(self, problem: Problem, columns: Columns) -> tuple[_Matrix, bool]:
        """Compiled matrix of a problem, and whether it is an earlier query's."""
        if problem.constraints:  # their rows are this row's own
            return _Matrix.compile(problem), False
        form = (problem.cost.squares, problem.cost.forms)
        key = (columns.signature, columns.square.tobytes(), form, columns.integer.tobytes())
        old = key in self._matrices
        if not old:
            self._matrices[key] = _Matrix.compile(problem)
        return self._matrices[key], old


@dataclass(frozen=True, eq=False)
class _Matrix:
    """The hyperplanes as rows over the columns, the rows that every leaf has, and the quadratic costs."""

    planes: FloatArray
    place: Mapping[int, int]
    always: StandardForm
    relation_places: IntArray
    build_seconds: float
    compile_seconds: float

    @classmethod
    def compile(cls, problem: Problem) -> _Matrix:
        start = time.perf_counter()
        models = build(problem)
        built = time.perf_counter()
        form = compile_model(models.model, models.variables, names=True)
        assert form.row_names is not None
        rows = {name: r for r, name in enumerate(form.row_names)}
        planes = [rows[f"hyperplane[{v}]"] for v in models.nodes]
        rest = sorted(set(range(form.n_rows)) - set(planes))
        always = replace(
            form, A=form.A[rest], row_lower=form.row_lower[rest], row_upper=form.row_upper[rest], row_names=None
        )
        done = time.perf_counter()
        place = {v: r for r, v in enumerate(models.nodes)}
        relations = [rest.index(rows[f"relation[{r}]"]) for r in range(len(rest)) if f"relation[{r}]" in rows]
        return cls(form.A[planes].toarray(), place, always, np.array(relations, int), built - start, done - built)


class Query:
    """One row's question to a tree, leaf by leaf; keeps what a next, larger margin can start from.

    Parameters
    ----------
    search : TreeSearch
    problem : Problem
    options : SolverOptions
    solver : {"highs", "scip"}
        For leaves with integers. Continuous leaves go to HiGHS, integers with squares to SCIP.
    """

    def __init__(self, search: TreeSearch, problem: Problem, options: SolverOptions, solver: str = "highs") -> None:
        self.start = time.perf_counter()
        self.search, self.problem, self.options = search, problem, options
        self.solver = solver if solver in SOLVERS else "highs"
        self.tree, self.origin = search.tree, problem.origin
        self.columns = columns_of(problem)
        self.matrix, self.matrix_is_old = search.matrix(problem, self.columns)
        self.times = dict.fromkeys(("incumbent", "reduce", "instance", "solve", "confirm"), 0.0)
        self.results: list[SolveResult] = []
        self.solved = 0
        self.solver_names: set[str] = set()
        self.version = ""
        self._families: dict[Any, tuple[HighsFamily, FloatArray]] = {}
        self._multipliers: dict[Any, FloatArray] = {}
        self._demanded: dict[float, FloatArray] = {}
        self._prepare()

    def _prepare(self) -> None:
        columns, space = self.columns, self.problem.space
        listed = np.unique(columns.feature[columns.role == "level"])
        self.levels = {int(i): np.flatnonzero((columns.feature == i) & (columns.role == "level")) for i in listed}
        present = ~np.isnan(self.origin)
        # a feature without any admissible value has no column, and then there is no answer
        self.impossible = bool(np.setdiff1d(np.flatnonzero(present), columns.feature).size)
        number = present.copy()
        number[listed] = False
        grid = np.array([grid_unit(f) > 0 for f in space.features])
        self.number, self.smooth = number, np.flatnonzero(number & ~grid)
        self.grid = np.flatnonzero(number & grid)
        self.base = np.where(number, self.origin, 0.0)
        limits = np.array([f.limits(v) for f, v in zip(space.features, self.origin, strict=True)]).reshape(-1, 2)
        self.limits = limits[:, 0], limits[:, 1]
        self._price_numbers()
        self.relations = exact_rows(self.problem)
        self.relation_rows = relation_rows(self.problem, columns)
        # what levels that are preferred may give back, at most
        self.credit = sum(min(0.0, float(columns.linear[own].min())) for own in self.levels.values())
        form = quadratic_form(self.problem)
        self.form = form if form.nnz else None
        # weights of the numbers in each hyperplane
        self.weights = np.zeros((len(self.matrix.place), len(space)))
        for v, r in self.matrix.place.items():
            features, codes, data = self.tree.oblique_entries(v)
            np.add.at(self.weights[r], features[codes < 0], data[codes < 0])
        self.shift = self.weights @ self.base
        narrow = [i for i in self.smooth.tolist() if space.features[i].float_dtype != np.float64]
        self.narrow = {i: space.features[i].float_dtype for i in narrow}

    def restart(self) -> None:
        """Start the clock and the statistics anew; what an earlier answer left to start from stays."""
        self.start = time.perf_counter()
        self.times = dict.fromkeys(self.times, 0.0)
        self.results, self.solved = [], 0
        self.solver_names = set()

    @property
    def method_name(self) -> str:
        """What solved the leaves."""
        return "+".join(sorted(self.solver_names)) or "closed form"

    def _price_numbers(self) -> None:
        """Cost of each number's rise and fall, and of leaving its value, from the columns, (n,) each."""
        columns, n = self.columns, len(self.origin)
        self.a_down, self.a_up, self.q_down, self.q_up, self.leave_down, self.leave_up = np.zeros((6, n))
        for j in np.flatnonzero(columns.role != "level").tolist():
            i, role, unit = int(columns.feature[j]), columns.role[j], abs(float(columns.unit[j]))
            linear, square = float(columns.linear[j]), float(columns.square[j])
            if role == "moved":
                (self.leave_up if columns.value[j] > 0 else self.leave_down)[i] = linear
                continue
            if role in ("up", "delta"):
                self.a_up[i], self.q_up[i] = linear / unit, square / unit**2
            if role in ("down", "delta"):
                self.a_down[i], self.q_down[i] = linear / unit, square / unit**2

    # -- the leaves -------------------------------------------------------------------------------------------

    def box(self, leaf: Leaves, eps: float) -> tuple[FloatArray, FloatArray]:
        """Admissible closed interval of every number within a leaf, shrunk by eps at the leaf's own ends, (n,) each."""
        low, high = self.limits[0].copy(), self.limits[1].copy()
        region = self.search.region(leaf)
        special = np.flatnonzero(self.search.split & (np.isfinite(region.low) | np.isfinite(region.high)))
        features = self.problem.space.features
        for i in np.union1d(special, self.grid).tolist():
            if not self.number[i]:
                continue
            f, a, b = features[i], float(region.low[i]), float(region.high[i])
            left = f.above(a) if eps == 0 else f.at_least(a + eps)
            ends = [float(f.at_least(low[i])) if np.isfinite(low[i]) else low[i], float(left)]
            tops = [float(f.at_most(high[i])) if np.isfinite(high[i]) else high[i], float(f.at_most(b - eps))]
            stays = low[i] <= self.origin[i] <= high[i] and a < self.origin[i] <= b and eps == 0
            low[i], high[i] = max(ends), min(tops)
            if stays:  # the row's own value is admissible whatever the grid
                low[i], high[i] = min(low[i], self.origin[i]), max(high[i], self.origin[i])
        return low, high

    def allowed(self, leaf: Leaves, i: int) -> BoolArray:
        """Which listed values of feature i the leaf admits, over the columns of the feature."""
        values, region, part = self.columns.value[self.levels[i]], self.search.region(leaf), self.search.part
        if not part.ordered[i]:
            return region.member[part.member_offsets[i] + values.astype(np.int64)]
        return np.asarray((region.low[i] < values) & (values <= region.high[i]))

    def rows(self, leaf: Leaves, eps: float) -> tuple[IntArray, FloatArray, FloatArray, bool]:
        """Hyperplanes of a leaf's path: places, signs, upper sides over the columns, and whether none contradicts."""
        place, sign, side = [], [], []
        for v, left in self.search.region(leaf).path.items():
            t = float(self.tree.threshold[v])
            if v not in self.matrix.place:  # no column has a weight in it: its total is 0, which decides the split
                if (t >= 0) != left:
                    return np.zeros(0, int), np.zeros(0), np.zeros(0), False
                continue
            if not left and v in self._left_only:
                return np.zeros(0, int), np.zeros(0), np.zeros(0), False
            r, s = self.matrix.place[v], 1.0 if left else -1.0
            place.append(r)
            sign.append(s)
            side.append(s * (t - self.shift[r]) - eps)
        return np.array(place, int), np.array(sign), np.array(side), True

    @cached_property
    def _left_only(self) -> set[int]:
        """Nodes whose total has no positive term within the limits, and whose threshold is not negative.

        Rounding cannot make such a total positive. A closed half-space would let the total 0 through to the right.
        """
        out, tree = set(), self.tree
        low, high = self.limits
        for v in self.matrix.place:
            features, codes, weights = tree.oblique_entries(v)
            rises = ((weights > 0) & ~(high[features] <= 0)) | ((weights < 0) & ~(low[features] >= 0))
            positive = np.where(codes < 0, rises | np.isnan(self.origin[features]), weights > 0)
            if tree.threshold[v] >= 0 and not positive.any() and tree.oblique_slack[tree.oblique_index[v]] == 0:
                out.add(v)
        return out

    @cached_property
    def _nodes(self) -> dict[int, int]:
        return {r: v for v, r in self.matrix.place.items()}

    def bounds_of_columns(self, leaf: Leaves, eps: float) -> tuple[FloatArray, FloatArray]:
        """Bounds of the columns within a leaf."""
        columns = self.columns
        low, high = self.box(leaf, eps)
        unit = np.where(columns.unit != 0, np.abs(columns.unit), 1.0)
        rise_low = (low[columns.feature] - self.origin[columns.feature]) / unit
        rise_high = (high[columns.feature] - self.origin[columns.feature]) / unit
        whole = columns.integer & (columns.role != "level") & (columns.role != "moved")
        rise_low = np.where(whole & np.isfinite(rise_low), np.rint(rise_low), rise_low)
        rise_high = np.where(whole & np.isfinite(rise_high), np.rint(rise_high), rise_high)
        lower, upper = np.zeros(columns.n), np.ones(columns.n)
        for role, a, b in (
            ("delta", rise_low, rise_high),
            ("up", np.maximum(rise_low, 0.0), np.where(rise_low <= rise_high, np.maximum(rise_high, 0.0), -1.0)),
            ("down", np.maximum(-rise_high, 0.0), np.maximum(-rise_low, 0.0)),
        ):
            at = columns.role == role
            lower[at], upper[at] = a[at], b[at]
        for i, own in self.levels.items():
            upper[own] = self.allowed(leaf, i)
        return lower, upper

    def _empty(self, lower: FloatArray, upper: FloatArray) -> bool:
        """Whether bounds of columns leave some feature no value."""
        bare = any(not upper[own].any() for own in self.levels.values())
        return self.impossible or bare or bool((lower > upper).any())

    # -- lower bounds that need no solver ---------------------------------------------------------------------

    def cheap_bound(self, leaf: Leaves, eps: float) -> float:
        """What the leaf's box costs, or one hyperplane of its path with the limits alone, if that is more."""
        lower, upper = self.bounds_of_columns(leaf, eps)
        if self._empty(lower, upper):
            return np.inf
        place, sign, _, possible = self.rows(leaf, eps)
        if not possible:
            return np.inf
        demands = self._demands(eps)
        dearest = max([0.0, *demands[(sign < 0).astype(int), place].tolist()])
        return max(self._box_cost(lower, upper), dearest + self.credit)

    def _demands(self, eps: float) -> FloatArray:
        """Least cost of reaching the left and the right side of each hyperplane within the limits, (2, n_planes)."""
        if eps in self._demanded:
            return self._demanded[eps]
        columns, planes = self.columns, self.matrix.planes
        lower, upper = self._limit_bounds()
        number = np.isin(columns.role, ("delta", "up", "down"))
        at = np.clip(0.0, lower, upper)[number]
        linear, square = columns.linear[number], columns.square[number]
        threshold = np.array([self.tree.threshold[v] for v in self.matrix.place])
        out = np.empty((2, len(planes)))
        for k, s in enumerate((1.0, -1.0)):
            rows = s * planes
            w = rows[:, number]
            need = eps - s * (threshold - self.shift) - self._row_doubts(np.arange(len(planes)), lower, upper)
            need += sum(
                (rows[:, own[upper[own] > 0]].min(axis=1) for own in self.levels.values()), np.zeros(len(planes))
            )
            falls = columns.role[number] == "delta"
            room = np.where(w < 0, upper[number] - at, np.where(falls, at - lower[number], 0.0))
            above = (need + w @ at).tolist()
            out[k] = [_demand(*args, linear, square) for args in zip(above, np.abs(w), room, strict=True)]
            out[k] += self._form_demands(need)
        self._demanded[eps] = out
        return out

    def _form_demands(self, need: FloatArray) -> FloatArray:
        """Least cost of each hyperplane's need by the quadratic form alone, (n_planes,).

        ``d'Qd >= 2 z'Qd - z'Qz`` for any z. With z along ``Q^-1 w`` this is ``need**2 / w'Q^-1 w``, less what the
        solution of the linear system misses by anywhere within the limits.
        """
        if self.form is None:
            return np.zeros(len(need))
        size, miss = self.search.stiffness(self.problem, self.form, self.weights)
        reach = np.maximum(np.abs(self.limits[0] - self.origin), np.abs(self.limits[1] - self.origin))
        with np.errstate(invalid="ignore", over="ignore"):
            left = need - np.where(miss > 0, miss * reach, 0.0).sum(axis=1)
            out = np.where(left > 0, left**2 / (4 * size), 0.0)
        return np.where(np.isfinite(out), out, 0.0) * (1 - 1e-9)

    def _limit_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of the columns from the features' limits alone."""
        lower, upper = self.columns.lower.copy(), self.columns.upper.copy()
        upper[self.columns.role == "up"] = np.maximum(upper[self.columns.role == "up"], 0.0)
        return lower, upper

    def _box_cost(self, lower: FloatArray, upper: FloatArray) -> float:
        """Cost of the closest point of the box alone, without a quadratic form, which is at least 0."""
        columns = self.columns
        at = np.clip(0.0, lower, upper)
        number = np.isin(columns.role, ("delta", "up", "down"))
        total = float((columns.linear * at + columns.square * at * at)[number].sum())
        return total + float(sum(columns.linear[own][upper[own] > 0].min() for own in self.levels.values()))

    def _row_doubts(self, place: IntArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
        """Rounding of hyperplanes' totals anywhere in a box of the columns, (n,)."""
        reach = np.maximum(np.abs(lower), np.abs(upper))
        reach = np.where(np.isfinite(reach), reach, 0.0)
        sizes = np.abs(self.matrix.planes[place]) @ reach + np.abs(self.weights[place]) @ np.abs(self.base)
        doubts = [self.tree.oblique_doubt(self._nodes[r], size) for r, size in zip(place.tolist(), sizes, strict=True)]
        return 4.0 * np.array(doubts).reshape(-1)

    # -- one leaf ---------------------------------------------------------------------------------------------

    def solve_leaf(self, leaf: Leaves, cutoff: float = np.inf, eps: float = 0.0) -> LeafAnswer:
        """The cheapest point of a leaf, if it can be cheaper than the cutoff."""
        lower, upper = self.bounds_of_columns(leaf, eps)
        columns = self.columns
        empty = LeafAnswer(leaf, None, np.inf, np.inf, "empty")
        place, sign, side, possible = self.rows(leaf, eps)
        if not possible or self._empty(lower, upper):
            return empty
        keep = self._not_implied(place, sign, side, lower, upper)
        place, sign, side = place[keep], sign[keep], side[keep]
        task = _Task(leaf, eps, place, sign, side, lower, upper)
        if not len(place) and self.form is None and not self.relations:
            return self._closest(task)
        loose = columns.integer & (lower < upper)
        return self._mixed(task, cutoff) if loose.any() else self._smooth_part(task, cutoff)

    def _not_implied(
        self, place: IntArray, sign: FloatArray, side: FloatArray, lower: FloatArray, upper: FloatArray
    ) -> BoolArray:
        """Rows that the box does not already imply, and of parallel ones the tightest."""
        rows = sign[:, None] * self.matrix.planes[place]
        number = self.columns.role != "level"
        with np.errstate(invalid="ignore"):
            ends = np.where(rows == 0, 0.0, np.where(rows > 0, rows * upper, rows * lower))
        most = ends[:, number].sum(axis=1)
        for own in self.levels.values():
            most += rows[:, own[upper[own] > 0]].max(axis=1)
        keep = ~(most < side - self._row_doubts(place, lower, upper))
        tightest: dict[bytes, int] = {}
        for k in np.flatnonzero(keep).tolist():
            other = tightest.setdefault(rows[k].tobytes(), k)
            if other != k:
                loser = k if side[k] >= side[other] else other
                keep[loser] = False
                tightest[rows[k].tobytes()] = other if loser == k else k
        return keep

    def _closest(self, task: _Task) -> LeafAnswer:
        """Theorem 3.3: without hyperplanes each feature is by itself."""
        low, high = self.box(task.leaf, task.eps)
        point = np.where(self.number, closest_in_boxes(low[None], high[None], self.origin[None])[0, 0], self.origin)
        for i, own in self.levels.items():
            usable = own[task.upper[own] > 0]
            point[i] = self.columns.value[usable[self.columns.linear[usable].argmin()]]
        cost = self.problem.cost.total(self.problem.space, self.origin, point)
        return LeafAnswer(task.leaf, point, cost, cost, "solved")

    def _mixed(self, task: _Task, cutoff: float) -> LeafAnswer:
        """A leaf with integers: the solver chooses them, the rest is solved again for each of its choices."""
        form = self._form(task)
        best = LeafAnswer(task.leaf, None, np.inf, np.inf, "empty")
        name = "scip" if form.Q is not None else self.solver
        self.solver_names.add(name)
        solver = cast(Solver, get_solver(name))
        binary = form.integer & (form.lower == 0) & (form.upper == 1)
        for _ in range(MAX_ASSIGNMENTS):
            limit = min(cutoff, best.cost)
            left = self.remaining()
            if left is not None and left <= 0:
                return replace(best, bound=min(best.bound, 0.0) if best.point is None else 0.0, claim="open")
            result = solver.solve(
                form, replace(self.options, time_limit=left), cutoff=limit if np.isfinite(limit) else None
            )
            self._note(result)
            if result.status is Status.INFEASIBLE:
                claim = "solved" if best.point is not None else "pruned" if np.isfinite(cutoff) else "empty"
                return replace(best, bound=min(limit, result.bound), claim=claim)
            if result.x is None:
                return replace(best, bound=result.bound, claim="open")
            found = self._smooth_part(task.fixed(result.x, form.integer), np.inf)
            if found.cost < best.cost:
                best = replace(found, bound=best.bound)
            near = result.bound >= best.cost - PROOF * max(abs(best.cost), PROOF)
            settled = _finished(result) and not binary[form.integer].all()
            if near or settled or not _finished(result) or self.options.mip_gap > 0:
                proven = near or (settled and result.bound >= best.cost * (1 - 1e-6) - 1e-12)
                bound = best.cost if proven else min(result.bound, best.cost)
                return replace(best, bound=bound, claim="solved" if best.point is not None else "open")
            chosen = result.x[binary] > 0.5
            cut = np.zeros(form.n_cols)
            cut[binary] = np.where(chosen, 1.0, -1.0)
            form = form.append_rows(cut, -np.inf, float(chosen.sum()) - 1.0)
        return replace(best, bound=result.bound, claim="open")

    def _form(self, task: _Task) -> StandardForm:
        """The leaf's problem as a matrix."""
        begin = time.perf_counter()
        always, columns = self.matrix.always, self.columns
        planes = sp.csr_array(task.sign[:, None] * self.matrix.planes[task.place]) if len(task.place) else None
        form = replace(
            always,
            c=columns.linear,
            c0=0.0,
            A=always.A if planes is None else sp.vstack([planes, always.A], format="csr"),
            row_lower=np.concatenate([np.full(len(task.place), -np.inf), always.row_lower]),
            row_upper=np.concatenate([task.side, always.row_upper]),
            lower=task.lower,
            upper=task.upper,
            integer=columns.integer,
            column_names=None,
        )
        self.times["instance"] += time.perf_counter() - begin
        return form

    def _note(self, result: SolveResult) -> None:
        self.times["solve"] += result.seconds
        self.results.append(result)
        self.solved += 1
        self.version = result.version

    def remaining(self) -> float | None:
        """Seconds left."""
        if self.options.time_limit is None:
            return None
        return self.options.time_limit - (time.perf_counter() - self.start)

    # -- the continuous part of a leaf ------------------------------------------------------------------------

    def _smooth_part(self, task: _Task, cutoff: float) -> LeafAnswer:
        """A leaf whose integers are fixed: an LP or QP over the continuous features, with its proof."""
        point, spent = self._fixed_point(task)
        space = self.problem.space
        polytope, used = self._polytope(task, point)
        rest = np.setdiff1d(self.smooth, used)
        low, high = self._smooth_box(task)
        point[rest] = np.clip(self.origin[rest], low[rest], high[rest])
        spent += float(self._single_cost(rest, point).sum())
        begin = time.perf_counter()
        x, y, claim = self._cheapest(task, polytope, used, cutoff - spent)
        self.times["solve"] += time.perf_counter() - begin
        if claim is Claim.INFEASIBLE:
            return LeafAnswer(task.leaf, None, np.inf, np.inf, "empty")
        if x is None or y is None:
            bound = -np.inf if y is None else polytope.bound(y, x) + spent
            return LeafAnswer(task.leaf, None, np.inf, max(bound, 0.0), "pruned" if bound >= cutoff else "open")
        inside = self._inside(task, polytope, used, x, point)
        cost = np.inf
        if inside is not None:
            point[used] = inside
            cost = self.problem.cost.total(space, self.origin, point)
        reach = min(cost, cutoff) - spent
        outer = polytope.within(reach)
        outer = replace(
            outer,
            h=polytope.h + self._doubts(task, outer, used, point),
            k=polytope.k
            + self._relation_doubts(outer, np.maximum(np.abs(outer.lo), np.abs(outer.hi)), point, used, 1.0),
        )
        bound = max(outer.bound(y, x), -spent if self.credit == 0 else -np.inf) + spent
        if inside is None:
            return LeafAnswer(task.leaf, None, np.inf, bound, "open")
        bound = min(bound, cost)
        if cost - bound <= PROOF * max(abs(cost), PROOF):
            bound = cost
        return LeafAnswer(task.leaf, point, cost, bound, "solved" if bound == cost else "open")

    def _fixed_point(self, task: _Task) -> tuple[FloatArray, float]:
        """The point with its listed and grid features set, and what they cost."""
        point, columns = self.origin.copy(), self.columns
        spent = 0.0
        for i, own in self.levels.items():
            chosen = own[task.lower[own].argmax() if task.lower[own].any() else task.upper[own].argmax()]
            point[i] = columns.value[chosen]
            spent += float(columns.linear[chosen])
        for i in self.grid.tolist():
            own = columns.of(i)
            own = own[columns.role[own] != "moved"]
            steps = float((task.lower[own] * np.sign(columns.unit[own])).sum())
            f = self.problem.space.features[i]
            unit = grid_unit(f)
            point[i] = self.origin[i] if steps == 0 else float(f.at_most(self.origin[i] + (steps + 0.5) * unit))
        spent += float(self._single_cost(self.grid, point).sum())
        return point, spent

    def _single_cost(self, features: IntArray, point: FloatArray) -> FloatArray:
        """l1 and l2 cost of some numbers; with an l0 cost, that too."""
        d = point[features] - self.origin[features]
        out = np.where(
            d > 0,
            (self.a_up + 0 * self.a_up)[features] * d + self.q_up[features] * d * d,
            -self.a_down[features] * d + self.q_down[features] * d * d,
        )
        out = out + np.where(d > 0, self.leave_up[features], np.where(d < 0, self.leave_down[features], 0.0))
        return np.asarray(out)

    def _smooth_box(self, task: _Task) -> tuple[FloatArray, FloatArray]:
        """Box of the continuous features; those whose l0 binaries are closed stay at the origin."""
        low, high = self.box(task.leaf, task.eps)
        columns = self.columns
        for j in np.flatnonzero(columns.role == "moved").tolist():
            if task.upper[j] == 0:
                i = int(columns.feature[j])
                if columns.value[j] > 0:
                    high[i] = min(high[i], self.origin[i])
                else:
                    low[i] = max(low[i], self.origin[i])
        return low, high

    def _polytope(self, task: _Task, point: FloatArray) -> tuple[Polytope, IntArray]:
        """The continuous features that the rows or the quadratic form touch, and their polytope."""
        smooth = self.smooth
        g = task.sign[:, None] * self.weights[task.place]
        touched = g[:, smooth].any(axis=0)
        if self.form is not None:
            touched |= np.diff(self.form.indptr)[smooth] > 0
        for row, _ in self.relation_rows:
            touched |= np.isin(smooth, self.columns.feature[row != 0])
        used = smooth[touched]
        elsewhere = np.setdiff1d(np.arange(len(point)), used)
        h = np.zeros(len(task.place))
        for k, (r, s) in enumerate(zip(task.place.tolist(), task.sign.tolist(), strict=True)):
            v = self._nodes[r]
            features, codes, weights = self.tree.oblique_entries(v)
            fixed = np.isin(features, elsewhere)
            values = np.where(codes < 0, point[features], point[features] == codes)[fixed]
            h[k] = s * (float(self.tree.threshold[v]) - float(weights[fixed] @ values)) - task.eps
        low, high = self._smooth_box(task)
        q = None
        if self.form is not None:
            q = self.form[used][:, used]
        down, up, sides = self._bent_rows(task, used)
        return (
            Polytope(
                g[:, used],
                h,
                low[used],
                high[used],
                self.origin[used],
                self.a_down[used],
                self.a_up[used],
                self.q_down[used],
                self.q_up[used],
                q,
                down,
                up,
                sides,
            ),
            used,
        )

    def _bent_rows(self, task: _Task, used: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Relations over the falls and rises of the continuous features, the rest fixed: (r, n), (r, n), (r,)."""
        columns = self.columns
        down, up = np.zeros((2, len(self.relation_rows), len(used)))
        k = np.zeros(len(self.relation_rows))
        fixed = np.where(columns.integer, task.lower, 0.0)
        place = {i: c for c, i in enumerate(used.tolist())}
        for r, (row, side) in enumerate(self.relation_rows):
            k[r] = side - float(row[columns.integer] @ fixed[columns.integer])
            for j in np.flatnonzero((row != 0) & ~columns.integer).tolist():
                c = place[int(columns.feature[j])]
                if columns.role[j] in ("up", "delta"):
                    up[r, c] = row[j]
                if columns.role[j] in ("down", "delta"):
                    down[r, c] = row[j] if columns.role[j] == "down" else -row[j]
        return down, up, k

    def _cheapest(
        self, task: _Task, polytope: Polytope, used: IntArray, cutoff: float
    ) -> tuple[FloatArray | None, FloatArray | None, Claim]:
        """Point and multipliers that are optimal as far as the solver's tolerances go."""
        key = (task.leaf, task.place.tobytes(), task.lower[self.columns.integer].tobytes())
        if polytope.strictly_convex:
            y = polytope.ascend(self._multipliers.get(key))
            x = polytope.argmin(y @ polytope.G)
            bound = polytope.bound(y)
            if bound >= cutoff:
                return None, y, Claim.LIMIT
            size = np.abs(polytope.G) @ np.abs(x) + np.abs(polytope.h)
            if (polytope.G @ x - polytope.h <= 1e-11 * size).all() and polytope.cost(x) - bound <= 1e-10 * abs(bound):
                self._multipliers[key] = y
                return x, y, Claim.OPTIMAL
        if polytope.Q is not None and not len(polytope.k):
            found = polytope.active_set()
            if found is not None and polytope.bound(found[1], found[0]) >= polytope.cost(found[0]) * (1 - 1e-10):
                return *found, Claim.OPTIMAL
        point, multipliers, claim = self._by_highs(task, key, used)
        if point is None or multipliers is None:
            return point, multipliers, claim
        if polytope.Q is not None:
            found = None if len(polytope.k) else polytope.active_set(point, multipliers)
            point, multipliers = found or polytope.refine(point, multipliers)
        elif polytope.strictly_convex:
            multipliers = max(polytope.ascend(multipliers), multipliers, key=polytope.bound)
            better = polytope.argmin(multipliers @ polytope.G)
            near = np.abs(better - point).max() <= 1e-5 * np.abs(point - polytope.xbar).max()
            point = better if near else point
        return point, multipliers, claim

    def _by_highs(self, task: _Task, key: Any, used: IntArray) -> tuple[FloatArray | None, FloatArray | None, Claim]:
        """LP or QP of the leaf by HiGHS; a larger margin than before starts from the last basis."""
        columns = self.columns
        own = np.flatnonzero(np.isin(columns.feature, used) & (columns.role != "moved"))
        if key not in self._families:
            form = self._form(task)
            fixed = np.where(columns.integer, task.lower, 0.0)
            kept = np.concatenate([np.arange(len(task.place)), len(task.place) + self.matrix.relation_places])
            form = replace(
                form,
                c=form.c[own],
                Q=None if form.Q is None else form.Q[own][:, own],
                A=form.A[kept][:, own],
                row_lower=form.row_lower[kept],
                row_upper=form.row_upper[kept],
                lower=form.lower[own],
                upper=form.upper[own],
                integer=np.zeros(len(own), bool),
            )
            shift = np.concatenate(
                [task.sign * (self.matrix.planes[task.place] @ fixed), [row @ fixed for row, _ in self.relation_rows]]
            )
            # raw options are meant for the solver that was asked for
            options = self.options if self.solver == "highs" else replace(self.options, options={})
            self._families[key] = HighsFamily(form, options), np.asarray(shift)
        family, shift = self._families[key]
        lower, upper = self._opened(task, own)
        sides = np.concatenate([task.side, [side for _, side in self.relation_rows]])
        answer = family.solve(sides - shift, lower, upper, time_limit=self.remaining())
        self.solver_names.add(family.name)
        self.version = family.version
        self.solved += 1
        if answer.x is None or answer.multipliers is None:
            return None, None, answer.claim
        moved = np.zeros(len(self.origin))
        np.add.at(moved, columns.feature[own], columns.unit[own] * answer.x)
        return self.origin[used] + moved[used], cleaned(answer.multipliers), answer.claim

    def _opened(self, task: _Task, own: IntArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of columns, with those whose l0 binary is closed held at 0."""
        columns, lower, upper = self.columns, task.lower.copy(), task.upper.copy()
        for j in np.flatnonzero((columns.role == "moved") & (task.upper == 0)).tolist():
            role = "up" if columns.value[j] > 0 else "down"
            upper[(columns.feature == columns.feature[j]) & (columns.role == role)] = 0.0
        return lower[own], upper[own]

    def _doubts(self, task: _Task, polytope: Polytope, used: IntArray, point: FloatArray) -> FloatArray:
        """Rounding of each hyperplane's total anywhere in the polytope's box, (m,)."""
        reach = np.abs(point)
        reach[used] = np.maximum(np.abs(polytope.lo), np.abs(polytope.hi))
        reach = np.where(np.isfinite(reach), reach, 0.0)
        return np.array([self._total_doubt(r, reach) for r in task.place.tolist()])

    def _relation_doubts(
        self, polytope: Polytope, reach: FloatArray, point: FloatArray, used: IntArray, sign: float
    ) -> FloatArray:
        """Rounding of each relation's sum, plus (or minus) what an equation of numbers may miss by, (r,)."""
        reach = np.where(np.isfinite(reach), reach, 0.0) + np.abs(polytope.xbar)
        size = np.maximum(np.abs(polytope.K_up), np.abs(polytope.K_down)) @ reach + np.abs(polytope.k)
        at = point.copy()
        at[used] = reach if sign > 0 else at[used]
        allowed = np.array([float(row.allowance(self.problem.space, at)) for row in self.relations]).reshape(-1)
        rounding = 4 * (len(self.columns.feature) + 4) * UNIT * size
        # an equation has no room for a margin: what rounding takes from it is put right exactly, at the end
        equation = np.array([bool(row.slope) for row in self.relations], bool)
        return np.where(equation & (sign < 0), -0.5 * allowed, rounding + (allowed if sign > 0 else 0.0))

    def _settled(self, point: FloatArray, used: IntArray) -> FloatArray:
        """The point with its equations put right in exact arithmetic, by the number that moves the least for it."""
        space, out = self.problem.space, point.copy()
        for _ in range(8):
            broken = [row for row in self.relations if row.slope and not row.holds(space, out)]
            if not broken:
                break
            row = broken[0]
            movable = {i: float(s) for i, s in row.slope.items() if i in set(used.tolist()) and s != 0}
            if not movable:
                break
            i = max(movable, key=lambda k: abs(movable[k]))
            sign = 1.0 if row.parts[i].of(1.0) - row.parts[i].of(0.0) > 0 else -1.0
            out[i] -= sign * float(row.total(out) - row.limit) / abs(movable[i])
        return out

    def _total_doubt(self, r: int, reach: FloatArray) -> float:
        """Twice the rounding of a hyperplane's total: the tree's own, and that of the numbers here."""
        v = self._nodes[r]
        features, codes, weights = self.tree.oblique_entries(v)
        size = float(np.abs(weights) @ np.where(codes < 0, reach[features], 1.0))
        return 2.0 * float(self.tree.oblique_doubt(v, size))

    def _inside(
        self, task: _Task, polytope: Polytope, used: IntArray, x: FloatArray, point: FloatArray
    ) -> FloatArray | None:
        """The point moved to where the tree's own arithmetic has no doubt, and the tree's word for it."""
        whole = point.copy()
        strict = task.sign < 0
        least = self._doubts(task, polytope, used, point)

        def round_to(values: FloatArray) -> FloatArray:
            out = values.copy()
            for k, i in enumerate(used.tolist()):
                if i in self.narrow and values[k] != self.origin[i]:
                    out[k] = float(np.asarray(values[k]).astype(self.narrow[i]))
            return np.clip(out, polytope.lo, polytope.hi)

        def margin(values: FloatArray, factor: float) -> FloatArray:
            reach = np.abs(whole)
            reach[used] = np.abs(values)
            doubt = np.array([self._total_doubt(r, reach) for r in task.place.tolist()])
            # a total whose terms are all 0 has no doubt, and goes to the left of a threshold of 0
            doubt = np.where(strict & (doubt == 0), least, doubt)
            gaps = [
                float(np.spacing(np.abs(values[k]).astype(self.narrow[i]))) if i in self.narrow else 0.0
                for k, i in enumerate(used.tolist())
            ]
            rounded = np.abs(polytope.rows_at(values)[0]) @ np.array(gaps).reshape(-1)
            related = self._relation_doubts(polytope, np.abs(values), whole, used, -1.0)
            return np.concatenate([factor * doubt, np.where(related > 0, factor, 1.0) * related]) + rounded

        for factor in (1.0, 4.0, 64.0, 4096.0):
            found = polytope.move_inside(x, partial(margin, factor=factor), round_to)
            if found is None:
                continue
            whole[used] = found
            whole = self._settled(whole, used)
            found = whole[used]
            inside = np.array_equal(self.tree.apply(whole[None])[0], np.atleast_1d(task.leaf))
            if inside and satisfied(self.relations, self.problem.space, whole):
                return found
        return None


def _finished(result: SolveResult) -> bool:
    """Whether a solver searched to the end, if only within its tolerances."""
    return result.status is Status.OPTIMAL or (result.feasible and result.raw_status.lower() == "optimal")


@dataclass(frozen=True, eq=False)
class _Task:
    """One leaf's problem: its hyperplanes (place, sign, upper side over the columns) and bounds of the columns."""

    leaf: Leaves
    eps: float
    place: IntArray
    sign: FloatArray
    side: FloatArray
    lower: FloatArray
    upper: FloatArray

    def fixed(self, x: FloatArray, integer: BoolArray) -> _Task:
        """The same with the integer columns fixed at a solution's values."""
        whole = np.rint(x)
        return replace(self, lower=np.where(integer, whole, self.lower), upper=np.where(integer, whole, self.upper))


def _demand(need: float, w: FloatArray, room: FloatArray, linear: FloatArray, square: FloatArray) -> float:
    """Least cost of a total of ``w . move >= need`` with moves in [0, room]: l1 and l2 parts each by itself.

    A sum of costs is at least the sum of the least ones, so both may be added.
    """
    usable = (w > 0) & (room > 0)
    w, room, linear, square = w[usable], room[usable], linear[usable], square[usable]
    capacity = w * room
    if capacity.sum() < need:
        return np.inf
    return _linear_demand(need, w, capacity, linear) + _square_demand(need, w, room, square)


def _linear_demand(need: float, w: FloatArray, capacity: FloatArray, price: FloatArray) -> float:
    """Continuous knapsack: the best gain for its price first."""
    need -= float(capacity[price == 0].sum()) if (price == 0).any() else 0.0
    if need <= 0:
        return 0.0
    paid = price > 0
    rate = price[paid] / w[paid]
    order = np.argsort(rate)
    filled = np.minimum(np.cumsum(capacity[paid][order]), need)
    # a hair less, so that rounding never makes the bound too high
    return float((np.diff(filled, prepend=0.0) * rate[order]).sum()) * (1 - 1e-12)


def _square_demand(need: float, w: FloatArray, room: FloatArray, square: FloatArray) -> float:
    """Squares: every move grows with one multiplier until it meets its end."""
    free = square == 0
    need -= float((w * room)[free].sum()) if free.any() else 0.0
    if need <= 0 or free.all():
        return 0.0
    w, room, square = w[~free], room[~free], square[~free]
    with np.errstate(over="ignore"):
        ends = 2 * square * room / w  # multiplier at which a move meets its end
    order = np.argsort(ends)
    speed = w**2 / (2 * square)
    moving = speed.sum() - np.concatenate([[0.0], np.cumsum(speed[order])])
    stuck = np.concatenate([[0.0], np.cumsum(np.where(np.isfinite(room), w * room, 0.0)[order])])
    levels = np.append(ends[order], np.inf)
    for k in range(len(levels)):
        if moving[k] > 0:
            multiplier = (need - stuck[k]) / moving[k]
            if multiplier <= levels[k]:
                move = np.minimum(multiplier * w / (2 * square), room)
                return float((square * move**2).sum()) * (1 - 1e-9)
    return float((square * room**2).sum()) * (1 - 1e-9)


# -- all leaves ------------------------------------------------------------------------------------------------


def target_leaves(problem: Problem, part: Partition) -> IntArray:
    """Leaves of a single tree that the target accepts and some point reaches."""
    accepted = np.zeros(problem.ensemble.n_leaves, bool)
    for requirements in problem.target.alternatives(problem.ensemble):
        accepted |= (requirements.gain >= requirements.need).all(axis=1)
    return np.flatnonzero(accepted & part.reachable)


def _beyond_doubt(problem: Problem, leaf: Leaves) -> bool:
    """Whether rounding of the scores leaves no doubt that a leaf has the target."""
    return any(
        (r.gain[leaf] >= r.need + r.doubt).all() and r.curve is None
        for r in problem.target.alternatives(problem.ensemble)
    )


def solve_leaves(
    query: Query,
    confirm: Callable[[FloatArray], bool],
    *,
    leaves: Sequence[int] | None = None,
    eps: float = 0.0,
    offsets: FloatArray | None = None,
    every: bool = False,
) -> tuple[list[LeafAnswer], Outcome]:
    """Answer a query: leaf by leaf, the most promising first.

    Parameters
    ----------
    query : Query
    confirm : callable
        Whether the user's own model gives the target to a coded point.
    leaves : sequence of int, optional
        Default: those that the target accepts.
    eps : float
        Margin by which every split of the path must hold, in units of its total (section 3.9).
    offsets : (n_leaves,) float64, optional
        Cost of ending in each leaf, added when leaves are compared (class costs, section 3.9).
    every : bool
        Whether to solve leaves that cannot be the best (the diverse set of section 3.9).

    Returns
    -------
    list of LeafAnswer
        Cheapest first, the offsets included.
    Outcome
        Of the best leaf.
    """
    begin = time.perf_counter()
    chosen = list(target_leaves(query.problem, query.search.part) if leaves is None else leaves)
    extra = np.zeros(query.tree.n_leaves) if offsets is None else offsets
    bounds = {leaf: query.cheap_bound(leaf, eps) + float(extra[leaf]) for leaf in chosen}
    query.times["reduce"] += time.perf_counter() - begin
    answers: list[LeafAnswer] = []
    history: list[Progress] = []
    refused, asked = 0, set[Leaves]()

    def total(answer: LeafAnswer) -> float:
        return answer.cost + float(extra[answer.leaf])

    def agreed(answer: LeafAnswer) -> bool:
        assert answer.point is not None
        began = time.perf_counter()
        found = confirm(answer.point)
        query.times["confirm"] += time.perf_counter() - began
        return found

    waiting = sorted(chosen, key=lambda k: bounds[k])
    while waiting:
        best, done, pruned = np.inf, list(answers), list[LeafAnswer]()
        for answer in done:
            best = min(best, total(answer))
        for leaf in waiting:
            own = float(extra[leaf])
            left = query.remaining()
            if left is not None and left <= 0:
                answer = LeafAnswer(leaf, None, np.inf, max(bounds[leaf] - own, 0.0), "open")
            elif bounds[leaf] == np.inf:
                answer = LeafAnswer(leaf, None, np.inf, np.inf, "empty")
            elif bounds[leaf] >= best and not every:
                answer = LeafAnswer(leaf, None, np.inf, bounds[leaf] - own, "pruned")
            else:
                answer = query.solve_leaf(leaf, np.inf if every else best - own, eps)
            (pruned if answer.claim == "pruned" else done).append(answer)
            if total(answer) < best:
                best = total(answer)
                history.append(Progress(time.perf_counter() - query.start, -np.inf, best))
        # the user's model is asked about the best point only, or about all that will be shown
        shown = sorted((a for a in done if a.point is not None), key=total)[: None if every else 1]
        wrong = [a for a in shown if a.leaf not in asked and not agreed(a)]
        asked |= {a.leaf for a in shown}
        answers = [a for a in done if a not in wrong] + [
            _refused(query, a, bounds[a.leaf] - float(extra[a.leaf])) for a in wrong
        ]
        refused += len(wrong)
        waiting = [a.leaf for a in pruned] if wrong and not every else []
        if not waiting:
            answers += pruned
    answers.sort(key=lambda a: (total(a), a.bound + float(extra[a.leaf])))
    return answers, _outcome(query, answers, extra, refused, history)


def _refused(query: Query, answer: LeafAnswer, bound: float) -> LeafAnswer:
    """A leaf whose point the user's model refuses: all points of a leaf score alike, so that one speaks for all."""
    logger.info("the model refuses a point of leaf %d", answer.leaf)
    if _beyond_doubt(query.problem, answer.leaf):
        return LeafAnswer(answer.leaf, None, np.inf, bound, "open")
    return LeafAnswer(answer.leaf, None, np.inf, np.inf, "empty")


def _outcome(
    query: Query, answers: list[LeafAnswer], extra: FloatArray, refused: int, history: list[Progress]
) -> Outcome:
    best = answers[0] if answers and answers[0].point is not None else None
    own = float(extra[best.leaf]) if best else 0.0
    bound = min((a.bound + float(extra[a.leaf]) for a in answers), default=np.inf) - own
    undecided = any(a.claim == "open" for a in answers)
    message = ""
    if best is not None:
        bound = min(bound, best.cost)
        if best.cost - bound <= PROOF * max(abs(best.cost), PROOF):
            bound, status = best.cost, Status.OPTIMAL
        else:
            status = Status.FEASIBLE
            left = query.remaining()
            if left is None or left > 0:
                message = "rounding (a narrow dtype, or a solver's tolerance) leaves a gap to the proven bound"
    elif undecided:
        status = Status.UNKNOWN
    else:
        status = Status.INFEASIBLE
    history.append(Progress(time.perf_counter() - query.start, bound, best.cost + own if best else np.inf))
    sizes = {
        "leaves": query.tree.n_leaves,
        "leaves_left": len(answers),
        "leaves_solved": sum(a.claim in ("solved", "open") for a in answers),
        "rows": int(query.matrix.planes.shape[0]),
        "columns": query.columns.n,
        "binaries": int(query.columns.integer.sum()),
    }
    proven = status in (Status.OPTIMAL, Status.INFEASIBLE)
    return Outcome(
        status,
        best.point if best else None,
        best.cost if best else None,
        bound,
        dict(query.times),
        sum(r.nodes for r in query.results),
        refused,
        query.method_name if proven else "",
        tuple(query.results),
        sizes,
        tuple(history),
        message,
    )


# -- all trees at once -----------------------------------------------------------------------------------------


def solve_globally(query: Query, confirm: Callable[[FloatArray], bool]) -> Outcome:
    """Answer a query for an ensemble of any size, by one MILP or MIQP over all leaves.

    Parameters
    ----------
    query : Query
    confirm : callable
        Whether the user's own model gives the target to a coded point.
    """
    run = _Global(query, confirm)
    for requirements in query.problem.alternatives:
        run.search(requirements)
    return run.outcome()


class _Global:
    """State of one global search: the best choice of leaves, and what is proven of the others."""

    def __init__(self, query: Query, confirm: Callable[[FloatArray], bool]) -> None:
        self.query, self._confirm = query, confirm
        self.best: LeafAnswer | None = None
        self.bound = np.inf
        self.refused = 0
        self.message = ""
        self.history: list[Progress] = []

    @property
    def upper(self) -> float:
        return self.best.cost if self.best else np.inf

    def search(self, requirements: Requirements) -> None:
        """The cheapest point that meets one alternative of the target, if it beats the best so far."""
        query = self.query
        if query.impossible or (query.columns.lower > query.columns.upper).any():
            return
        models = hyperplanes.build(query.problem, requirements, query.search.part)
        form = compile_model(models.model, [*models.variables, *models.leaves])
        name = "scip" if form.Q is not None else query.solver
        solver = cast(Solver, get_solver(name))
        query.solver_names.add(name)
        first = models.columns.n
        offsets = query.tree.leaf_offsets
        for _ in range(MAX_CHOICES):
            left = query.remaining()
            if left is not None and left <= 0:
                self.bound = min(self.bound, 0.0)
                return
            options = replace(query.options, time_limit=left)
            cutoff = self.upper if np.isfinite(self.upper) else None
            result = solver.solve(form, options, cutoff=cutoff)
            query._note(result)
            if result.status is Status.INFEASIBLE:
                self.bound = min(self.bound, result.bound)
                return
            if result.x is None:
                self.bound, self.message = min(self.bound, result.bound), result.message
                return
            y = result.x[first : first + query.tree.n_leaves]
            chosen = tuple(int(a + y[a:b].argmax()) for a, b in pairwise(offsets.tolist()))
            self._take(chosen)
            near = result.bound >= self.upper - PROOF * max(abs(self.upper), PROOF)
            if near or not _finished(result) or query.options.mip_gap > 0:
                self.bound = min(self.bound, max(result.bound, 0.0))
                return
            cut = np.zeros(form.n_cols)
            cut[first + np.array(chosen)] = 1.0
            form = form.append_rows(cut, -np.inf, len(chosen) - 1.0)
        self.bound = min(self.bound, max(result.bound, 0.0))

    def _take(self, chosen: tuple[int, ...]) -> None:
        """Solve over the common region of the chosen leaves, exactly."""
        query = self.query
        answer = query.solve_leaf(chosen)
        if answer.point is None:
            # rows that a solver meets within its tolerance may have no common point
            self.bound = min(self.bound, answer.bound)
            return
        if answer.cost >= self.upper:
            self.bound = min(self.bound, answer.bound)
            return
        began = time.perf_counter()
        agreed = self._confirm(answer.point)
        query.times["confirm"] += time.perf_counter() - began
        if not agreed:
            self.refused += 1
            logger.info("the model refuses a point; its choice of leaves is cut off and the search goes on")
            return
        self.bound = min(self.bound, answer.bound)
        self.best = answer
        self.history.append(Progress(time.perf_counter() - query.start, -np.inf, answer.cost))

    def outcome(self) -> Outcome:
        """The answer."""
        query, best = self.query, self.best
        bound = min(self.bound, self.upper)
        if best is not None:
            met = best.cost - bound <= PROOF * max(abs(best.cost), PROOF)
            bound = best.cost if met else bound
            status = Status.OPTIMAL if met else Status.FEASIBLE
        else:
            status = Status.INFEASIBLE if bound == np.inf else Status.UNKNOWN
        proven = status in (Status.OPTIMAL, Status.INFEASIBLE)
        self.history.append(Progress(time.perf_counter() - query.start, bound, self.upper))
        sizes = {"leaves": query.tree.n_leaves, "columns": query.columns.n, "choices": len(query.results)}
        return Outcome(
            status,
            best.point if best else None,
            best.cost if best else None,
            bound,
            dict(query.times),
            sum(r.nodes for r in query.results),
            self.refused,
            query.method_name if proven else "",
            tuple(query.results),
            sizes,
            tuple(self.history),
            self.message,
        )

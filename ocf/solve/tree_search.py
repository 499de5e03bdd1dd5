"""What all queries of one ensemble's leaves share: paths, boxes, and compiled matrices."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse.linalg import splu

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.partition import Partition
from ocf.formulations.blocks.columns import MoveColumns
from ocf.formulations.oblique import build
from ocf.problem.problem import Problem
from ocf.solve.leaf_answer import Leaves
from ocf.solvers.standard_form import StandardForm, compile_model
from ocf.support.kept import Kept
from ocf.trees.ensemble import SplitKind

#: Of how many layouts of columns, and of how many quadratic costs, the matrices are kept.
MOST_MATRICES = 32


@dataclass(frozen=True, eq=False)
class Region:
    """Box ``(low, high]`` of single splits, sides of the oblique ones, and members of the unordered features."""

    low: FloatArray
    high: FloatArray
    path: Mapping[int, bool]
    member: BoolArray


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
        self._matrices: Kept[tuple[Any, ...], LeafMatrix] = Kept(MOST_MATRICES)
        self._stiffness: Kept[tuple[Any, ...], tuple[FloatArray, FloatArray]] = Kept(MOST_MATRICES)

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

        Parameters
        ----------
        problem : Problem
        form : (n_features, n_features) sparse float64
            Its quadratic form Q.
        weights : (n_planes, n_features) float64
            What each hyperplane weighs the numbers by.
        """
        key = (problem.cost.squares, problem.cost.forms, weights.tobytes())
        return self._stiffness.get(key, lambda: _stiffness(form, weights))

    def matrix(self, problem: Problem, columns: MoveColumns) -> tuple[LeafMatrix, bool]:
        """Compiled matrix of a problem, and whether it is an earlier query's.

        Parameters
        ----------
        problem : Problem
        columns : MoveColumns
            Of the problem.
        """
        if problem.constraints:  # their rows are this row's own
            return LeafMatrix.compile(problem), False
        form = (problem.cost.squares, problem.cost.forms)
        key = (columns.signature, columns.square.tobytes(), form, columns.integer.tobytes())
        old = key in self._matrices
        return self._matrices.get(key, lambda: LeafMatrix.compile(problem)), old


def _stiffness(form: Any, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """As `TreeSearch.stiffness`."""
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
    return np.where(bare, np.inf, size), np.where(bare[:, None], 0.0, miss)


@dataclass(frozen=True, eq=False)
class LeafMatrix:
    """The hyperplanes as rows over the columns, the rows that every leaf has, and the quadratic costs.

    `relations` are the constraints that have a row, at `relation_places` of the rows that every leaf has; others say
    something of features that cannot change. With `contradictory` none of the leaves has a point.
    """

    planes: FloatArray
    place: Mapping[int, int]
    always: StandardForm
    relations: IntArray
    relation_places: IntArray
    contradictory: bool
    build_seconds: float
    compile_seconds: float

    @classmethod
    def compile(cls, problem: Problem) -> LeafMatrix:
        """Build and compile the model of a problem."""
        start = time.perf_counter()
        models = build(problem)
        built = time.perf_counter()
        form = compile_model(models.model, models.variables, names=True)
        assert form.row_names is not None
        rows = {name: r for r, name in enumerate(form.row_names)}
        planes = [] if form.infeasible else [rows[f"hyperplane[{v}]"] for v in models.nodes]
        rest = sorted(set(range(form.n_rows)) - set(planes))
        always = replace(
            form, A=form.A[rest], row_lower=form.row_lower[rest], row_upper=form.row_upper[rest], row_names=None
        )
        done = time.perf_counter()
        place = {v: r for r, v in enumerate(models.nodes)}
        over_columns = form.A[planes].toarray() if planes else np.zeros((len(place), len(models.variables)))
        named = {r: f"relation[{r}]" for r in range(len(models.model.relation))}
        relations = {r: rest.index(rows[name]) for r, name in named.items() if name in rows}
        at, places = np.array([*relations], int), np.array([*relations.values()], int)
        return cls(over_columns, place, always, at, places, form.infeasible, built - start, done - built)

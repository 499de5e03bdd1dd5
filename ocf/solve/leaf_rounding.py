"""Where the rounding of a tree's own sums decides nothing: points moved there, and polytopes that allow for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.problem.rows import satisfied
from ocf.solve.leaf_answer import Leaves
from ocf.solve.leaf_model import LeafModel
from ocf.solve.leaf_polytope import ContinuousPart
from ocf.solve.move_inside import move_inside
from ocf.solve.polytope import UNIT, Polytope
from ocf.trees.rounding import uncertain

#: Part of its value, or of its range, by which rounding alone moves a number.
STAYS = 1e-13

#: Multiples of the error bounds by which a point is moved inside, in turn, until the tree takes it.
FACTORS = (1.0, 4.0, 64.0, 4096.0)


class LeafRounding:
    """Error bounds of a row's hyperplanes and relations.

    Parameters
    ----------
    model : LeafModel
    """

    def __init__(self, model: LeafModel) -> None:
        self.model = model
        # an equation has no room for a margin: what rounding takes from it is put right exactly, at the end
        self._equation = np.array([bool(row.slope) for row in model.relations], bool)

    def widened(self, part: ContinuousPart, cost: float) -> Polytope:
        """The polytope with all points of at most this cost that the tree, however it rounds, may take.

        Parameters
        ----------
        part : ContinuousPart
        cost : float
            Of the used features.
        """
        outer = part.polytope.within(cost)
        reach = np.maximum(np.abs(outer.lo), np.abs(outer.hi))
        size, rounding = self._relation_rounding(outer, reach)
        return replace(
            outer,
            h=outer.h + self._in_box(part, outer),
            k=outer.k + (rounding + self.allowances(part.completed(size))),
        )

    def inside(
        self, part: ContinuousPart, x: FloatArray, takes: Callable[[FloatArray], bool] | None = None
    ) -> FloatArray | None:
        """The whole point, moved to where rounding decides nothing; None unless the tree sends it to the leaf.

        Parameters
        ----------
        part : ContinuousPart
        x : (n,) float64
            Values of the used features.
        takes : callable, optional
            Whether a point will do, in the place of the tree.
        """
        model, takes = self.model, takes or partial(self.reaches, part.task.leaf)
        for whole in self.moved(part, x):
            whole = self._settled(whole, part.used)
            if takes(whole) and satisfied(model.relations, model.problem.space, whole):
                return whole
        return None

    def moved(self, part: ContinuousPart, x: FloatArray) -> Iterator[FloatArray]:
        """Whole points that rounding takes across no hyperplane and no relation but an equation, the nearest first.

        Before these one whose numbers stay where rounding alone moved them: relations between numbers that stay hold
        exactly, and are not asked for more.

        Parameters
        ----------
        part : ContinuousPart
        x : (n,) float64
            Values of the used features.
        """
        whole, least = part.point.copy(), self._in_box(part, part.polytope)
        attempts = [(_with_those_that_stay(part.polytope, x), 1.0, 0.0), *((x, factor, factor) for factor in FACTORS)]
        for start, factor, related in attempts:
            margin = partial(self._margin, part, whole, least, factor, related)
            found = move_inside(part.polytope, start, margin, partial(self._rounded, part))
            if found is not None:
                whole = part.completed(found)
                yield whole

    def unmoved(self, part: ContinuousPart) -> BoolArray:
        """Hyperplanes whose side rounding decides, once for all values of the used features, (m,).

        A weight of 0 adds nothing to a sum, in whatever order it is added.

        Parameters
        ----------
        part : ContinuousPart
        """
        place, room = part.task.place, part.polytope.h
        near = np.abs(room) <= self._in_box(part, part.polytope)
        own = ~part.polytope.G.any(axis=1) & ~self.model.planes.of_lines(place)
        return np.asarray(near & own & (self.model.planes.slack[place] == 0))

    def takes(self, part: ContinuousPart) -> bool | None:
        """Whether the point of a part without used features is in the leaf; None where rounding decides.

        Parameters
        ----------
        part : ContinuousPart
        """
        model, task, room = self.model, part.task, part.polytope.h
        if not satisfied(model.relations, model.problem.space, part.point):
            return False
        if task.eps > 0 and (room < 0).any():
            return False
        of_lines, error_bounds = model.planes.of_lines(task.place), self._in_box(part, part.polytope)
        if (room < -error_bounds)[of_lines].any():
            return False
        if (room < error_bounds)[of_lines].any() or uncertain(model.tree, part.point[None])[0]:
            return None
        return self.reaches(task.leaf, part.point)

    def reaches(self, leaf: Leaves, point: FloatArray) -> bool:
        """Whether the tree itself, apart from lines, sends a point to a leaf, or to one leaf per tree.

        Parameters
        ----------
        leaf : int or tuple of int
        point : (n_features,) float64
            Coded.
        """
        lines = self.model.tree.lines[:, 0]
        reached, wanted = self.model.tree.apply(point[None])[0], np.atleast_1d(leaf)
        return bool((np.delete(reached, lines) == np.delete(wanted, lines)).all())

    def _rounded(self, part: ContinuousPart, values: FloatArray) -> FloatArray:
        """Nearest values of the used features that their columns can hold."""
        narrow, out = self.model.domain.narrow, values.copy()
        for k, i in enumerate(part.used.tolist()):
            if i in narrow and values[k] != self.model.origin[i]:
                out[k] = float(np.asarray(values[k]).astype(narrow[i]))
        return np.clip(out, part.polytope.lo, part.polytope.hi)

    def _margin(
        self,
        part: ContinuousPart,
        whole: FloatArray,
        least: FloatArray,
        factor: float,
        related: float,
        values: FloatArray,
    ) -> FloatArray:
        """By how much hyperplanes and relations must hold at values of the used features, (m + r,).

        These are multiples of what rounding makes of their sums: `factor` for hyperplanes, and `related` for relations
        but equations, of which a miss is allowed for what their columns cannot hold.
        """
        task, polytope, narrow = part.task, part.polytope, self.model.domain.narrow
        reach = np.abs(whole)
        reach[part.used] = np.abs(values)
        error_bound = self.model.planes.error_bounds_at(task.place, reach)
        # a total whose terms are all 0 has no error, and goes to the left of a threshold of 0
        error_bound = np.where((task.sign < 0) & (error_bound == 0), least, error_bound)
        gaps = [
            float(np.spacing(np.abs(values[k]).astype(narrow[i]))) if i in narrow else 0.0
            for k, i in enumerate(part.used.tolist())
        ]
        rounded = np.abs(polytope.rows_at(values)[0]) @ np.array(gaps).reshape(-1)
        _, rounding = self._relation_rounding(polytope, np.abs(values))
        m = len(error_bound)
        unequal = related * rounding + np.sign(related) * rounded[m:]
        equal = -self.allowances(part.completed(values))
        return np.concatenate([factor * error_bound + rounded[:m], np.where(self._equation, equal, unequal)])

    def _in_box(self, part: ContinuousPart, polytope: Polytope) -> FloatArray:
        """Rounding of each hyperplane's total anywhere in the polytope's box, (m,)."""
        reach = np.abs(part.point)
        reach[part.used] = np.maximum(np.abs(polytope.lo), np.abs(polytope.hi))
        return self.model.planes.error_bounds_at(part.task.place, np.where(np.isfinite(reach), reach, 0.0))

    def _relation_rounding(self, polytope: Polytope, reach: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Magnitudes of the used features and of their origins, (n,), and rounding of each relation's sum, (r,)."""
        size = np.where(np.isfinite(reach), reach, 0.0) + np.abs(polytope.xbar)
        total = np.maximum(np.abs(polytope.K_up), np.abs(polytope.K_down)) @ size + np.abs(polytope.k)
        return size, 4 * (len(self.model.columns.feature) + 4) * UNIT * total

    def allowances(self, point: FloatArray) -> FloatArray:
        """What each relation may miss its limit by at a point, for the rounding of numbers, (r,).

        Parameters
        ----------
        point : (n_features,) float64
            Coded.
        """
        space = self.model.problem.space
        return np.array([float(row.allowance(space, point)) for row in self.model.relations]).reshape(-1)

    def _settled(self, point: FloatArray, used: IntArray) -> FloatArray:
        """The point with its equations put right in exact arithmetic, by the number that moves the least for it."""
        space, out = self.model.problem.space, point.copy()
        for _ in range(8):
            broken = [row for row in self.model.relations if row.slope and not row.holds(space, out)]
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


def _with_those_that_stay(polytope: Polytope, x: FloatArray) -> FloatArray:
    """A point whose coordinates are those of the origin where rounding alone tells them apart, (n,)."""
    width = polytope.hi - polytope.lo
    size = np.maximum(np.abs(polytope.xbar), np.where(np.isfinite(width), width, 0.0))
    return np.where(np.abs(x - polytope.xbar) <= STAYS * size, polytope.xbar, x)

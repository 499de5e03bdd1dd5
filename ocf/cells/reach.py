r"""How far a feature can move by itself where the cost couples it with others: at most as far as the dual norm allows.

A quadratic form :math:`\|C \delta\|_2^2` and a sum of absolute values :math:`\|A \delta\|_1` may be small for large
changes that go together, so that no cell has a price of its own. Yet a feature that moves by t costs at least what it
costs when all others move as it suits best. With v such that :math:`C' v = e_i`,

.. math:: |t| = |v' C \delta| \le \|v\|_2 \|C \delta\|_2, \qquad |t| \le \|v\|_\infty \|A \delta\|_1,

the former being an equality for the v of least norm: :math:`t^2 / (Q^{-1})_{ii}` (the projection of an ellipsoid). What
a v that is only nearly a solution misses is allowed for by the residual times the largest changes that there are, so
that the bound holds whatever the condition of the matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ocf.arrays import FloatArray, IntArray
from ocf.problem.costs import form_matrix

if TYPE_CHECKING:
    from ocf.problem.costs import Cost
    from ocf.problem.problem import Problem

#: Part of the bound that is given up for the rounding of its own numbers.
ROUNDING = 1e-9


def least_beyond(problem: Problem, ends: FloatArray, cell_feature: IntArray) -> FloatArray:
    """What a point in each cell costs at least beyond the cell's own cost, (n_cells,); 0 where nothing is known.

    Parameters
    ----------
    problem : Problem
    ends : (2, n_cells) float64
        Of the coded values of each cell; NaN where it has none.
    cell_feature : (n_cells,) int64
    """
    cost, space, origin = problem.cost, problem.space, problem.origin
    out = np.zeros(len(cell_feature))
    names = cost.coupled_names
    place = [space.index(name) for name in names]
    moves = []
    for i in place:
        feature, here = space.features[i], float(origin[i])
        own = ends[:, cell_feature == i]
        apart = np.isnan(own) | feature.is_special(own) | np.isnan(here) | bool(feature.is_special(here))
        moves.append(np.abs(np.where(apart, 0.0, feature.distance(here, np.where(apart, here, own)) * feature.scale)))
    most = np.array([m.max(initial=0.0) for m in moves])
    # a feature with a cost of its own has no square besides, see `Cost.of`
    single = {name: d for name, d in reversed(cost.squares) if space.features[space.index(name)].cost is None}
    squares, absolutes = _matrices(cost, names, single)
    for k, i in enumerate(place):
        step = moves[k].min(axis=0)
        quadratic = _projected(squares, k, step, most, 2.0)
        beyond = np.maximum(quadratic - single.get(names[k], 0.0) * step * step, 0.0)
        gain = beyond + _projected(absolutes, k, step, most, np.inf)
        out[cell_feature == i] = (1 - ROUNDING) * gain
    return out


def _matrices(cost: Cost, names: tuple[str, ...], single: Mapping[str, float]) -> tuple[FloatArray, FloatArray]:
    """Rows whose squares, and those whose absolute values, the cost adds; those of single features come first."""
    alone = [((name, float(np.sqrt(square))),) for name, square in single.items()]
    return form_matrix((*alone, *cost.forms), names), form_matrix(cost.absolutes, names)


def _projected(matrix: FloatArray, k: int, step: FloatArray, most: FloatArray, dual: float) -> FloatArray:
    """Least squared Euclidean norm (dual 2) or sum of absolutes (dual inf) of ``matrix @ d`` with ``|d[k]| = step``."""
    size = np.sqrt((matrix * matrix).sum(axis=0))
    if not len(matrix) or not size[k]:
        return np.zeros_like(step)
    unit = np.where(size > 0, size, 1.0)
    scaled, wanted = matrix / unit, np.arange(len(size)) == k
    v = np.linalg.lstsq(scaled.T, wanted.astype(float), rcond=1e-14)[0]
    rounding = 4 * len(matrix) * np.finfo(float).eps * (np.abs(scaled.T) @ np.abs(v))
    missed = (np.abs(scaled.T @ v - wanted) + rounding) @ (unit * most)
    reached = np.maximum(unit[k] * step - missed, 0.0) / np.linalg.norm(v, dual)
    return reached**2 if dual == 2.0 else reached

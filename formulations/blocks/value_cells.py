r"""Cells of numbers that have values as well: an order simplex of thresholds, tied to the columns of the numbers.

Nomenclature
------------
===================  ===================================================================================
``i, j``             number with a column, and its cells, counted from 0 on
``mu[i,j]``          := 1 if the point lies in a cell >= j (mu[i,0] = 1, mu[i,m_i] = 0)
``d[i]``             := change of number i: ``up[i] - down[i]``, or a single column
``a[i,j], b[i,j]``   := least and greatest change within cell j, within the bounds of i
``[z]+, [z]-``       := positive and negative part of z
===================  ===================================================================================

Model
-----
.. math::

    & \mu_{i,j-1} \ge \mu_{ij} & \text{(ocean, 15)} \\
    & a_{i0} + \textstyle\sum_j (a_{ij} - a_{i,j-1}) \mu_{ij} \le d_i, \quad
      d_i \le b_{i0} + \sum_j (b_{ij} - b_{i,j-1}) \mu_{ij} \\
    & [a_{i0}]_+ + \textstyle\sum_j ([a_{ij}]_+ - [a_{i,j-1}]_+) \mu_{ij} \le up_i, \quad
      [b_{i0}]_- + \sum_j ([b_{ij}]_- - [b_{i,j-1}]_-) \mu_{ij} \le down_i

The last row makes the cost of a choice of cells as tight as where cells have prices: with ``up - down`` alone a
fractional choice of cells on both sides of the row would cost nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyomo.environ as pyo

from ocf.arrays import FloatArray
from ocf.cells.partition import Partition
from ocf.formulations.blocks.cells import linear
from ocf.formulations.blocks.columns import MoveColumns
from ocf.problem.problem import Problem


def numbers_in_cells(part: Partition, columns: MoveColumns) -> list[int]:
    """The numbers that have a column and more than one cell.

    Parameters
    ----------
    part : Partition
    columns : MoveColumns
    """
    numbers = np.unique(columns.feature[columns.is_number])
    return [i for i in numbers.tolist() if part.ordered[i] and part.widths[i] > 1]


def add_value_cells(model: pyo.ConcreteModel, problem: Problem, part: Partition, columns: MoveColumns) -> None:
    """Add ``mu`` and what ties it to the columns ``x`` of a model.

    Parameters
    ----------
    model : pyomo ConcreteModel
    problem : Problem
        With finite bounds for every number that is split.
    part : Partition
    columns : MoveColumns
    """
    numbers = numbers_in_cells(part, columns)
    ends = {i: _ends(problem, part, columns, i) for i in numbers}
    model.mu = pyo.Var([(i, j) for i in numbers for j in range(1, int(part.widths[i]))], domain=pyo.Binary)
    for i, (low, high) in ends.items():
        least, most = low[0], high[-1]
        for j in range(1, len(low)):
            if low[j] > most:
                model.mu[i, j].setub(0)
            elif high[j - 1] < least:
                model.mu[i, j].setlb(1)

    @model.Constraint([(i, j) for i, j in model.mu if j > 1])
    def order(m: pyo.ConcreteModel, i: int, j: int) -> Any:  # ocean (15)
        return (0.0, linear([(1.0, m.mu[i, j - 1]), (-1.0, m.mu[i, j])]), None)

    rows = [row for i, (low, high) in ends.items() for row in _rows(model, columns, i, low, high)]

    @model.Constraint(range(len(rows)))
    def value_in_cell(_: pyo.Block, r: int) -> Any:
        return rows[r]


def _ends(problem: Problem, part: Partition, columns: MoveColumns, i: int) -> tuple[FloatArray, FloatArray]:
    """Least and greatest change of a number within each cell, the first and the last by its bounds, (m,) each."""
    feature, origin = problem.space.features[i], float(problem.origin[i])
    cuts = part.upper[part.cells_of(i)][:-1]
    # the row's own value is admissible on its side, whatever the grid
    left = np.where(origin <= cuts, np.maximum(feature.at_most(cuts), origin), feature.at_most(cuts))
    right = np.where(origin > cuts, np.minimum(feature.above(cuts), origin), feature.above(cuts))
    own = columns.of(i)
    own = own[columns.role[own] != "moved"]
    ends = np.stack([columns.unit[own] * columns.lower[own], columns.unit[own] * columns.upper[own]])
    least, most = float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())
    return np.append(least, right - origin), np.append(left - origin, most)


def _rows(
    model: pyo.ConcreteModel, columns: MoveColumns, i: int, low: FloatArray, high: FloatArray
) -> list[tuple[Any, ...]]:
    """The rows that tie one number to its cells, divided by what the number may change at most."""
    least, most = float(low[0]), float(high[-1])
    size = (most - least) or 1.0
    a, b = np.minimum(low, most) / size, np.maximum(high, least) / size
    own = columns.of(i)
    moves = {str(columns.role[j]): (float(columns.unit[j]) / size, model.x[j]) for j in own.tolist()}
    moves.pop("moved", None)

    def in_cell(change: list[tuple[float, Any]], end: FloatArray) -> tuple[Any, float]:
        """A change less what the cells' ends are, but for the first; and that."""
        steps = [(-d, model.mu[i, j]) for j, d in enumerate(np.diff(end).tolist(), start=1)]
        return linear([*change, *steps]), float(end[0])

    total = list(moves.values())
    (above, first), (below, last) = in_cell(total, a), in_cell(total, b)
    rows: list[tuple[Any, ...]] = [(first, above, None), (None, below, last)]
    if "up" in moves:
        above, first = in_cell([moves["up"]], np.maximum(a, 0.0))
        rows.append((first, above, None))
    if "down" in moves:
        unit, variable = moves["down"]
        above, first = in_cell([(-unit, variable)], np.maximum(-b, 0.0))
        rows.append((first, above, None))
    return rows

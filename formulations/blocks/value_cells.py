r"""Cells of numbers that have values as well: an order simplex of thresholds, tied to the columns of the numbers.

Nomenclature
------------
===================  ===================================================================================
``i, j``             number with a column, or a total that splits share; its cells, counted from 0 on
``mu[i,j]``          := 1 if the point lies in a cell >= j (mu[i,0] = 1, mu[i,m_i] = 0)
``x``                columns: ``up[i]`` and ``down[i]``, or one, for the change of a number, levels of the others
``w[i]``             weights of the columns; of a number its units, +1 of up and -1 of down
``a[i,j], b[i,j]``   := least and greatest ``w[i] . x`` within cell j, within the bounds
``[z]+, [z]-``       := positive and negative part of z, of each entry
===================  ===================================================================================

Model
-----
.. math::

    & \mu_{i,j-1} \ge \mu_{ij} & \text{(ocean, 15)} \\
    & a_{i0} + \textstyle\sum_j (a_{ij} - a_{i,j-1}) \mu_{ij} \le w_i \cdot x, \quad
      w_i \cdot x \le b_{i0} + \sum_j (b_{ij} - b_{i,j-1}) \mu_{ij} \\
    & [a_{i0}]_+ + \textstyle\sum_j ([a_{ij}]_+ - [a_{i,j-1}]_+) \mu_{ij} \le [w_i]_+ \cdot x, \quad
      [b_{i0}]_- + \sum_j ([b_{ij}]_- - [b_{i,j-1}]_-) \mu_{ij} \le [w_i]_- \cdot x

The last row, of columns that are not negative, makes the cost of a choice of cells as tight as where cells have prices:
without it a fractional choice of cells on both sides of the row would cost nothing.

A big-M for each threshold says less: its row is the second one with one threshold in the place of all. Forests behind a
PCA of breast cancer, 50 trees of depth 5 and 4 components, 100 of depth 4 and 5, take 2.7 and 4.4 s a row with SCIP so,
and 6.4 and 20 with a big-M.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from ocf.arrays import FloatArray
from ocf.cells.partition import Partition
from ocf.cells.totals import TotalCells
from ocf.formulations.blocks.cells import linear
from ocf.formulations.blocks.columns import MoveColumns, signed_parts
from ocf.formulations.blocks.splits import Side
from ocf.problem.problem import Problem

#: How far beyond its bounds a total's threshold is at least, in parts of their width, to be out of reach.
ROOM = 1e-9


class CellEnds(NamedTuple):
    """What has cells: a number or a total.

    Attributes
    ----------
    row : (n_cols,) float64
    low, high : (n_cells,) float64
        Least and greatest ``row . x`` within each cell, of the first and the last by the bounds.
    """

    row: FloatArray
    low: FloatArray
    high: FloatArray


def numbers_in_cells(part: Partition, columns: MoveColumns) -> list[int]:
    """The numbers that have a column and more than one cell.

    Parameters
    ----------
    part : Partition
    columns : MoveColumns
    """
    numbers = np.unique(columns.feature[columns.is_number])
    return [i for i in numbers.tolist() if part.ordered[i] and part.widths[i] > 1]


def add_value_cells(model: pyo.ConcreteModel, problem: Problem, cells: TotalCells, columns: MoveColumns) -> set[int]:
    """Add ``mu`` and what ties it to the columns ``x`` of a model; the numbers and totals that have cells.

    Parameters
    ----------
    model : pyomo ConcreteModel
    problem : Problem
        With finite bounds for every number that is split.
    cells : TotalCells
        Of the problem's trees.
    columns : MoveColumns
    """
    part = cells.partition
    axes = {i: ends_within(problem, cells, columns, i) for i in [*numbers_in_cells(part, columns), *cells.totals]}
    model.mu = pyo.Var([(i, j) for i in axes for j in range(1, int(part.widths[i]))], domain=pyo.Binary)
    for i, (_, low, high) in axes.items():
        least, most = low[0], high[-1]
        for j in range(1, len(low)):
            if low[j] > most:
                model.mu[i, j].setub(0)
            elif high[j - 1] < least:
                model.mu[i, j].setlb(1)

    @model.Constraint([(i, j) for i, j in model.mu if j > 1])
    def order(m: pyo.ConcreteModel, i: int, j: int) -> Any:  # ocean (15)
        return (0.0, linear([(1.0, m.mu[i, j - 1]), (-1.0, m.mu[i, j])]), None)

    rows = [row for i, ends in axes.items() for row in _rows(model, columns, i, ends)]

    @model.Constraint(range(len(rows)))
    def value_in_cell(_: pyo.Block, r: int) -> Any:
        return rows[r]

    return {*axes}


def ends_within(problem: Problem, cells: TotalCells, columns: MoveColumns, i: int) -> CellEnds:
    """The ends of the cells of a number or a total.

    Parameters
    ----------
    problem : Problem
        With finite bounds for every number that is weighed or split.
    cells : TotalCells
        Of the problem's trees.
    columns : MoveColumns
    i : int
        A feature of the cells.
    """
    if i in cells.totals:
        return _total(problem, cells, columns, i)
    return _number(problem, cells.partition, columns, i)


def _number(problem: Problem, part: Partition, columns: MoveColumns, i: int) -> CellEnds:
    """Changes of a number within its cells."""
    feature, origin = problem.space.features[i], float(problem.origin[i])
    cuts = part.upper[part.cells_of(i)][:-1]
    # the row's own value is admissible on its side, whatever the grid
    left = np.where(origin <= cuts, np.maximum(feature.at_most(cuts), origin), feature.at_most(cuts))
    right = np.where(origin > cuts, np.minimum(feature.above(cuts), origin), feature.above(cuts))
    own = columns.of(i)
    own = own[columns.role[own] != "moved"]
    ends = np.stack([columns.unit[own] * columns.lower[own], columns.unit[own] * columns.upper[own]])
    least, most = float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())
    row = np.zeros(columns.n)
    row[own] = columns.unit[own]
    # steps are rounded: a value at a bound may be beyond it by that
    room = float(np.abs(columns.unit[own][columns.integer[own]]).max(initial=0.0)) / 2
    return _ends(row, least, most, left - origin, right - origin, room)


def _total(problem: Problem, cells: TotalCells, columns: MoveColumns, i: int) -> CellEnds:
    """A total within its cells, less what it is of the row."""
    sides = [Side.of(problem, columns, v) for v in cells.nodes_of(i).tolist()]
    row, least, most = sides[0].row, sides[0].least, sides[0].most
    left, right = np.array([(side.left, side.right) for side in sides]).T
    # no corner of the bounds is on the wrong side by rounding
    return _ends(row, least, most, left, right, ROOM * (most - least))


def _ends(row: FloatArray, least: float, most: float, left: FloatArray, right: FloatArray, room: float) -> CellEnds:
    """Ends of cells by the sides of each cut; what is beyond the bounds by no more than some room is at them."""
    low = np.append(least, np.where(right > most + room, right, np.minimum(right, most)))
    high = np.append(np.where(left < least - room, left, np.maximum(left, least)), most)
    return CellEnds(row, low, high)


def _rows(model: pyo.ConcreteModel, columns: MoveColumns, i: int, ends: CellEnds) -> list[tuple[Any, ...]]:
    """The rows that tie what has cells to them, divided by how far it goes."""
    row, least, most = ends.row, float(ends.low[0]), float(ends.high[-1])
    size = (most - least) or 1.0
    a, b = np.minimum(ends.low, most) / size, np.maximum(ends.high, least) / size

    def in_cell(weights: FloatArray, end: FloatArray) -> tuple[Any, float]:
        """What weights make of the columns, less what the cells' ends are, but for the first; and that."""
        terms = [(float(weights[j]) / size, model.x[j]) for j in np.flatnonzero(weights).tolist()]
        steps = [(-d, model.mu[i, j]) for j, d in enumerate(np.diff(end).tolist(), start=1)]
        return linear([*terms, *steps]), float(end[0])

    (above, first), (below, last) = in_cell(row, a), in_cell(row, b)
    rows: list[tuple[Any, ...]] = [(first, above, None), (None, below, last)]
    for weights, end in zip(signed_parts(columns, row), (a, -b), strict=False):
        above, first = in_cell(weights, np.maximum(end, 0.0))
        rows.append((first, above, None))
    return rows

"""Blocks for the choice of one cell per feature, and its cost.

Nomenclature
------------
==========  =========================================================================================
``mu[i,j]``  := 1 if the point lies in a cell >= j of the ordered feature i, j = 1..m_i - 1
             (ocean's order simplex; mu[i,0] = 1 and mu[i,m_i] = 0 are constants)
``nu[i,j]``  := 1 if the point lies in cell j of the unordered feature i, j = 0..m_i - 1
==========  =========================================================================================
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.core.expr.numeric_expr import LinearExpression

from ocf.cells.cell_problem import CellProblem
from ocf.cells.partition import Partition
from ocf.errors import MemoryLimitError, TimeLimitError
from ocf.support.limits import check


def _not_of_limits(_: logging.LogRecord) -> bool:
    """Whether a log record of Pyomo is none about a limit, or Ctrl-C, that ended the building of a model."""
    return not isinstance(sys.exception(), TimeLimitError | MemoryLimitError | KeyboardInterrupt)


# Pyomo logs every exception of a rule as an error before it goes on
logging.getLogger("pyomo.core").addFilter(_not_of_limits)


def linear(terms: list[tuple[float, Any]], constant: float = 0.0) -> LinearExpression:
    """Sum of coefficient * variable; terms whose second part is a number go into the constant.

    Parameters
    ----------
    terms : list of (float, variable or number)
    constant : float

    Raises
    ------
    TimeLimitError, MemoryLimitError
        There is none left: a model grows sum by sum.
    """
    check()
    numbers = sum(c * v for c, v in terms if isinstance(v, int | float))
    pairs = [(c, v) for c, v in terms if not isinstance(v, int | float)]
    return LinearExpression(
        constant=constant + numbers, linear_coefs=[c for c, _ in pairs], linear_vars=[v for _, v in pairs]
    )


def cell_choice(part: Partition, *, integer: bool) -> pyo.Block:
    """Block with `mu`, `nu` and the constraints that make them a choice of one cell per feature.

    Parameters
    ----------
    part : Partition
    integer : bool
        Whether the variables are binary; a formulation whose leaf variables are binary may leave them continuous.
    """
    domain = pyo.Binary if integer else pyo.UnitInterval
    steps = [(i, j) for i in np.flatnonzero(part.ordered).tolist() for j in range(1, int(part.widths[i]))]
    levels = [(i, j) for i in np.flatnonzero(~part.ordered).tolist() for j in range(int(part.widths[i]))]
    block = pyo.Block(concrete=True)
    block.mu = pyo.Var(steps, domain=domain)
    block.nu = pyo.Var(levels, domain=domain)

    @block.Constraint([(i, j) for i, j in steps if j > 1])
    def order(b: pyo.Block, i: int, j: int) -> Any:  # ocean (15)
        return (0.0, linear([(1.0, b.mu[i, j - 1]), (-1.0, b.mu[i, j])]), None)

    @block.Constraint(np.flatnonzero(~part.ordered).tolist())
    def one_level(b: pyo.Block, i: int) -> Any:  # ocean (27)
        return (1.0, linear([(1.0, b.nu[i, j]) for j in range(int(part.widths[i]))]), 1.0)

    return block


def beyond(block: pyo.Block, part: Partition, i: int, j: int) -> Any:
    """Whether the point lies in a cell >= j of the ordered feature i: a variable, or 1.0 or 0.0 at the ends.

    Parameters
    ----------
    block : pyomo Block
        Of `cell_choice`.
    part : Partition
    i, j : int
        Feature, and cell counted within it.
    """
    if j <= 0:
        return 1.0
    return block.mu[i, j] if j < part.widths[i] else 0.0


def separable_cost(block: pyo.Block, cells: CellProblem) -> LinearExpression:
    """Cost of the chosen cells, linear in `mu` and `nu` (ocean, (29) and (31)); closed cells count as free.

    Parameters
    ----------
    block : pyomo Block
        Of `cell_choice`.
    cells : CellProblem
    """
    part = cells.partition
    cost = np.where(np.isfinite(cells.cost), cells.cost, 0.0)
    terms: list[tuple[float, Any]] = []
    constant = 0.0
    for i in range(part.n_features):
        own = cost[part.cells_of(i)]
        if part.ordered[i]:
            constant += own[0]
            terms += [(float(d), block.mu[i, j]) for j, d in enumerate(np.diff(own), start=1)]
        else:
            terms += [(float(c), block.nu[i, j]) for j, c in enumerate(own)]
    return linear(terms, float(constant))


def choice_variables(block: pyo.Block, part: Partition) -> tuple[tuple[tuple[Any, ...], ...], ...]:
    """Step and level variables per feature, as `Formulated` holds them.

    Parameters
    ----------
    block : pyomo Block
        Of `cell_choice`.
    part : Partition
    """
    steps = tuple(
        tuple(block.mu[i, j] for j in range(1, int(part.widths[i]))) if part.ordered[i] else ()
        for i in range(part.n_features)
    )
    levels = tuple(
        () if part.ordered[i] else tuple(block.nu[i, j] for j in range(int(part.widths[i])))
        for i in range(part.n_features)
    )
    return steps, levels

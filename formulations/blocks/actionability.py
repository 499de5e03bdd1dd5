r"""Relations between features whose values matter inside cells (ocean, table 1).

Fixed and monotone features close cells, and constraints on cells alone are requirements on trees of constraints
(`ocf.cells.sliding`), so that only rows with sliding features need a constraint of their own:

.. math:: \textstyle \sum_j f_{rj} y_j + \sum_s g_{rs} u_s \le limit_r

with ``f[r,j]`` what the anchor of cell j adds to row r, and ``g[r,s]`` what a unit of sliding adds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyomo.environ as pyo

from ocf.cells.sliding import Values
from ocf.formulations.blocks.cells import linear


def form_terms(
    values: Values, r: int, in_cell: Mapping[int, Any], slides: Mapping[int, Any]
) -> list[tuple[float, Any]]:
    """One of the sums of functions of the features, as terms of a linear expression.

    Parameters
    ----------
    values : Values
    r : int
        Its number among `Values.sums`.
    in_cell : mapping of int to variable
        By cell, the variable that says whether the point lies there.
    slides : mapping of int to variable
        By cell, how far the value moves within it.
    """
    row = values.sums[r]
    terms: list[tuple[float, Any]] = []
    moves: dict[int, tuple[float, Any]] = {}
    for j, y in in_cell.items():
        i = int(values.cell_feature[j])
        anchor = float(values.anchor[j])
        # a missing value, which may stand at infinity, has a part in the sum like others
        if i in row.parts and (math.isfinite(anchor) or values.problem.space.features[i].is_special(anchor)):
            terms.append((float(row.parts[i].of(anchor)), y))
            if j in slides:
                moves[id(slides[j])] = (float(values.gradient(j)[r]), slides[j])
    return [(c, v) for c, v in (*terms, *moves.values()) if c]


def relations(values: Values, in_cell: Mapping[int, Any], slides: Mapping[int, Any]) -> pyo.Constraint:
    """Constraint for each row with a feature that slides.

    Parameters
    ----------
    values : Values
    in_cell : mapping of cell to the variable that says whether the point lies in it (or in a cell like it)
    slides : mapping of cell to variable
    """
    rows = [r for r, row in enumerate(values.rows) if any(values.slides[i] for i in row.parts)]

    def rule(_: pyo.Block, r: int) -> Any:
        row = values.rows[r]
        terms = form_terms(values, r, in_cell, slides)
        if not terms:
            return pyo.Constraint.Feasible  # a limit below 0 is found out before any model is built
        size = max(abs(c) for c, _ in terms)
        scale = 2.0 ** -math.frexp(size)[1]
        limit = float(row.limit) + float(values.slack[r])
        return (None, linear([(c * scale, v) for c, v in terms]), limit * scale)

    return pyo.Constraint(rows, rule=rule)

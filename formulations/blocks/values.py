r"""Blocks for values inside cells, where a relation between features makes them matter.

Nomenclature
------------
==========  =========================================================================================
``y[j]``     := 1 if the point lies in cell j (the leaf of its constraint tree; see `ocf.cells.sliding`)
``u[s]``     := how far the value slides from the anchor of its cell, for a set s of cells of one
             feature that slide alike; in steps of whole numbers and grids, in scales otherwise
``w[j]``     := how far the value may slide in cell j
``e[i]``     := what feature i costs beyond the tangents at the anchors (strictly convex costs)
``z[k]``     := form k of a quadratic cost, ``sum_j f[k,j] y[j] + sum_s g[k,s] u[s]``
``q[k]``     := what its square costs
``t[k]``     := at least the absolute value of absolute form k, ``a_k(y, u)``
==========  =========================================================================================

.. math::

    u_s \le \textstyle\sum_{j \in s} w_j y_j \quad (1), \qquad
    e_i \ge \kappa_j \bar u (u_j - \bar u y_j / 2) \quad (2), \qquad
    q_k \ge \bar z (2 z_k - \bar z) \quad (3), \qquad
    t_k \ge \pm a_k(y, u) \quad (4)

(1) is tight: with one cell chosen, u is 0 or within that cell. (2) is the tangent at a slide of ``\bar u`` of the
part of the cost that is curved, ``\kappa_j u_j^2 / 2``; it holds in all cells, for elsewhere u and y are 0. Tangents
are added where a solution lies, until the cost is exact there (Duran and Grossmann 1986, outer approximation).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ocf.cells.sliding import Slides, Values
from ocf.formulations.blocks.actionability import form_terms, relations
from ocf.formulations.blocks.cells import linear


def add_values(model: pyo.ConcreteModel, values: Values, leaves: Sequence[Any]) -> Slides:
    """Add sliding values and the exact rows of relations to a formulation's model.

    Parameters
    ----------
    model : ConcreteModel
        Of any formulation; gets blocks ``sliding`` and ``actionability``.
    values : Values
        In which some feature slides.
    leaves : sequence of variables, one per leaf
    """
    in_cell = dict(zip(values.cell_leaf, leaves[values.constraint_leaves], strict=True))
    sets: dict[tuple[Any, ...], list[int]] = {}
    for j in np.flatnonzero([w > 0 for w in values.widths]).tolist():
        key = (int(values.cell_feature[j]), values.price(j), values.gradient(j))
        # a curved cost needs a slide of each cell's own
        sets.setdefault((*key, j) if key[1][1] else key, []).append(j)
    members = list(sets.values())
    curved = sorted({int(values.cell_feature[own[0]]) for (own, key) in zip(members, sets, strict=True) if key[1][1]})
    block = model.sliding = pyo.Block(concrete=True)
    whole = [values.whole(int(values.cell_feature[own[0]])) for own in members]
    most = [max(float(values.widths[j]) for j in own) for own in members]
    block.u = pyo.Var(
        range(len(members)),
        domain=lambda _, s: pyo.NonNegativeIntegers if whole[s] else pyo.NonNegativeReals,
        bounds=lambda _, s: (0.0, most[s]),
    )
    block.e = pyo.Var(curved, domain=pyo.NonNegativeReals)

    @block.Constraint(range(len(members)))
    def within_cell(b: pyo.Block, s: int) -> Any:  # (1)
        cells = [(-float(values.widths[j]), in_cell[j]) for j in members[s]]
        return (None, linear([(1.0, b.u[s]), *cells]), 0.0)

    forms = range(len(values.forms))
    block.z = pyo.Var(forms)
    block.q = pyo.Var(forms, domain=pyo.NonNegativeReals)
    of_cell = {j: s for s, own in enumerate(members) for j in own}
    slides = {j: block.u[s] for j, s in of_cell.items()}
    model.actionability = relations(values, in_cell, slides)

    @block.Constraint(forms)
    def form(b: pyo.Block, k: int) -> Any:
        return (0.0, linear([*form_terms(values, len(values.rows) + k, in_cell, slides), (-1.0, b.z[k])]), 0.0)

    absolutes = range(len(values.absolutes))
    block.t = pyo.Var(absolutes, domain=pyo.NonNegativeReals)
    terms = [form_terms(values, len(values.rows) + len(forms) + k, in_cell, slides) for k in absolutes]

    @block.Constraint(absolutes, (1.0, -1.0))
    def absolute(b: pyo.Block, k: int, sign: float) -> Any:  # (4)
        return (None, linear([*((sign * c, v) for c, v in terms[k]), (-1.0, b.t[k])]), 0.0)

    n, m = len(members) + len(curved), len(forms)
    cost = [float(values.price(own[0])[0]) for own in members] + [1.0] * len(curved) + [0.0] * m
    cost += [1.0] * (m + len(absolutes))
    return Slides(
        (
            *(block.u[s] for s in range(len(members))),
            *(block.e[i] for i in curved),
            *(block.z[k] for k in forms),
            *(block.q[k] for k in forms),
            *(block.t[k] for k in absolutes),
        ),
        tuple(cost),
        of_cell,
        {i: len(members) + k for k, i in enumerate(curved)},
        tuple((n + k, n + m + k) for k in forms),
        tuple(n + 2 * m + k for k in absolutes),
    )

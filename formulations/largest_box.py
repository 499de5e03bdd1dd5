"""The largest box around a point on which a model keeps its answer: the master of a method of cutting planes.

Source: this project. Which boxes keep the answer is not written down in advance: where a box does not, some point in it
refutes it, and so do all points that lie in the same leaves. Each such refutation is a box of cells without z, and a
row of the model.

Nomenclature
------------
=============  =====================================================================================
symbol         meaning
=============  =====================================================================================
``z[i]``       cell of the point on feature i
``w[i,j]``     := 1 if cell j of feature i belongs to the box; ``w[i,z[i]] = 1`` is a constant
``s[i,j]``     part of the admissible range of feature i that cell j adds to the box
``R_k``        a refutation: a box of cells, none of whose points has the answer
``L_k``        for each feature on which R_k does not hold ``z[i]``: (i, j) with the cell j of R_k that is nearest to
               ``z[i]``, or on a feature without an order the cell of the point that was found
=============  =====================================================================================

Model
-----
::

    max  sum s[i,j] w[i,j]                                                              (1)
    w[i,j] <= w[i,j']           j' next to j on the way to z[i], ordered features       (2)
    sum over L_k of w[i,j] <= |L_k| - 1         for each refutation                     (3)

Why it is right: a box that keeps the answer holds no point of R_k, so that on some feature it ends before R_k begins;
by (2) it does so where it lacks the nearest cell, which is (3). So no such box is lost, and the optimum of (1) bounds
them all. Once the optimal box is refuted by nothing it is the largest. There are finitely many boxes, and each round
removes one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyomo.environ as pyo

from ocf.formulations.blocks.cells import linear

#: A chain of cells on one feature, each with its part of the range, from the point outwards.
Chain = Sequence[tuple[int, float]]


@dataclass(frozen=True, eq=False)
class BoxMaster:
    """Model of the largest box, without refutations.

    Attributes
    ----------
    model : pyomo ConcreteModel
    columns : tuple of variables
        In the order of `cells`.
    cells : tuple of (int, int)
        Feature, and cell counted within it.
    """

    model: pyo.ConcreteModel
    columns: tuple[Any, ...]
    cells: tuple[tuple[int, int], ...]


def build(chains: Sequence[Sequence[Chain]]) -> BoxMaster:
    """Build the model of (1) and (2).

    Parameters
    ----------
    chains : sequence of sequences of chains, one for each feature
        The cells that may be added: of an ordered feature two chains, below and above the point's cell; of one without
        an order a chain of its own for each cell, which holds one level or several.
    """
    own = [(i, chain) for i, several in enumerate(chains) for chain in several if len(chain)]
    cells = tuple((i, j) for i, chain in own for j, _ in chain)
    model = pyo.ConcreteModel(name="largest_box")
    model.w = pyo.Var(cells, domain=pyo.Binary)
    steps = [(i, a, b) for i, chain in own for (a, _), (b, _) in pairwise(chain)]

    @model.Constraint(steps)
    def run(m: pyo.ConcreteModel, i: int, near: int, far: int) -> Any:  # (2)
        return (0.0, linear([(1.0, m.w[i, near]), (-1.0, m.w[i, far])]), None)

    parts = [(-share, model.w[i, j]) for i, chain in own for j, share in chain]
    model.width = pyo.Objective(expr=linear(parts))  # (1)
    return BoxMaster(model, tuple(model.w[c] for c in cells), cells)

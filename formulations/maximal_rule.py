"""The largest rule on a set of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyomo.environ as pyo

from ocf.arrays import FloatArray
from ocf.formulations.blocks.cell_diagrams import BoxChoices
from ocf.formulations.blocks.cells import linear
from ocf.formulations.blocks.shares import Conjunction, Literal
from ocf.formulations.blocks.tree_values import (
    SLACK,
    Branches,
    at_least_one,
    fixed_branch,
    no_branch,
    tree_values,
    trees_of,
)
from ocf.regional.forest import CellBox
from ocf.regional.query import ProbabilityQuery
from ocf.regional.splits import Split, open_sides

if TYPE_CHECKING:
    from ocf.formulations.blocks.tree_values import TreeValues


# -- maximal rule ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BoxModel:
    """Model of the maximal rule.

    Attributes
    ----------
    model : pyomo ConcreteModel
    query : ProbabilityQuery
    features : tuple of int
        S.
    cuts : dict of int to tuple of int
        Cuts of each ordered feature of S.
    choices : tuple of variables
        Those that `decode` reads.
    trees : TreeValues
    rows : dict of Conjunction to float
        Weights of rows, by when the box captures them.
    left_out : tuple of int
        Trees of whose shares the model knows no more than a bound, so that its boxes may be no rules.
    """

    model: pyo.ConcreteModel
    query: ProbabilityQuery
    features: tuple[int, ...]
    cuts: dict[int, tuple[int, ...]]
    choices: tuple[Any, ...]
    trees: TreeValues
    rows: dict[Conjunction, float]
    left_out: tuple[int, ...]

    def decode(self, values: FloatArray) -> CellBox:
        """The box at values of `choices`."""
        forest, free = self.query.forest, self.query.free
        chosen = {v.name: value > 0.5 for v, value in zip(self.choices, values, strict=True)}
        masks = [forest.cells_of(free, i).copy() for i in range(forest.partition.n_features)]
        for i in self.features:
            if i not in self.cuts:
                for level in np.flatnonzero(masks[i]):
                    masks[i][level] = chosen[self.model.gamma[i, int(level)].name]
                continue
            index = np.arange(len(masks[i]))
            for j in self.cuts[i]:
                if chosen[self.model.alpha[i, j].name]:
                    masks[i] &= index > j
                if chosen[self.model.beta[i, j].name]:
                    masks[i] &= index <= j
        return forest.region(masks)

    def assign(self, box: CellBox) -> None:
        """Give every variable its value at a box."""
        m, forest = self.model, self.query.forest
        for (i, j), variable in m.alpha.items():
            variable.set_value(float(box.low[i] > j))
        for (i, j), variable in m.beta.items():
            variable.set_value(float(box.high[i] <= j))
        for (i, level), variable in m.gamma.items():
            variable.set_value(float(forest.cells_of(box, i)[level]))
        for (i, code), variable in m.only.items():
            variable.set_value(
                float(all(code >> level & 1 for level in np.flatnonzero(forest.cells_of(box, i)).tolist()))
            )

        def holds(literal: Literal) -> bool:
            return (_variable(m, literal[0]).value > 0.5) == literal[1]

        self.trees.assign(lambda key: holds((key, True)))
        for g, conjunction in enumerate(self.rows):
            m.b[g].set_value(float(all(map(holds, conjunction))))
        for (r, *which), variable in m.apart.items():
            variable.set_value(float(all(map(holds, m.ways[r][tuple(which)]))))


def maximal_rule(
    query: ProbabilityQuery,
    features: Sequence[int],
    level: float,
    earlier: Sequence[CellBox] = (),
    above: float = 0.0,
    most: FloatArray | None = None,
) -> BoxModel:
    """Build the model of the maximal rule on S.

    Parameters
    ----------
    query : ProbabilityQuery
    features : sequence of int
        S.
    level : float
        The paper's pi_C.
    earlier : sequence of CellBox
        Boxes from which this one has to be disjoint.
    above : float
        Weight of a known box; those that capture less are left out as far as that makes the model smaller.
    most : (n_trees,) float64, optional
        Upper bounds of the trees' shares, which stand for those of trees that are left out; 1 by default.
    """
    features = tuple(sorted(features))
    part = query.forest.partition
    choice = BoxChoices(query, features, above)
    parts = trees_of(query, choice, partial(_branches, query, features))
    literals = {key for own in parts.groups for g in own for e in g.out for key, _ in e}
    literals |= {node.choice for diagram in parts.diagrams.values() for node in diagram.nodes}
    ordered = [i for i in features if part.ordered[i]]
    met = {i: {key[2] for key in literals if key[0] in ("alpha", "beta") and key[1] == i} for i in ordered}
    asked = (
        query.met_cuts(features, earlier) if parts.left_out else {i: query.cuts(i, met[i], earlier) for i in ordered}
    )
    cuts = {i: tuple(own.tolist()) for i, own in asked.items()}
    levels = [
        (i, int(k))
        for i in features
        if not part.ordered[i]
        for k in np.flatnonzero(query.forest.cells_of(query.free, i))
    ]
    model = pyo.ConcreteModel(name="maximal_rule")
    _box_choice(model, query, cuts, levels, sorted(key[1:] for key in literals if key[0] == "only"))
    for name, ends in (("alpha", model.alpha), ("beta", model.beta)):
        for place, variable in ends.items():
            if not choice.possible((name, *place)):
                variable.setub(0.0)  # (9)
    own = tree_values(model, lambda key: _variable(model, key), parts)
    terms, constant = own.total()
    constant += sum(1.0 if most is None else float(most[t]) for t in parts.left_out)
    model.precise = at_least_one(model, terms, (level - SLACK) * query.forest.n_trees - constant)  # (3)
    _set_apart(model, query, features, earlier)
    rows = _weighted_rows(query, features, cuts)
    _captured(model, rows)
    choices = (*model.alpha.values(), *model.beta.values(), *model.gamma.values())
    return BoxModel(model, query, features, cuts, choices, own, rows, parts.left_out)


def _branches(query: ProbabilityQuery, features: tuple[int, ...], split: Split) -> Branches:
    """When a split sends the box, or part of it, to either side."""
    i = split.feature
    if i not in features:
        return fixed_branch(open_sides(query, query.held, split))
    sides = open_sides(query, query.free, split)
    if not all(sides):
        return fixed_branch(sides)
    right_of, left_of = _keys(query, split)
    return Branches(
        frozenset([(right_of, False)]),
        frozenset([(left_of, False)]),
        ((frozenset([(left_of, True)]), False), (frozenset([(right_of, True)]), True)),
    )


def _captured(model: pyo.ConcreteModel, rows: dict[Conjunction, float]) -> None:
    """Which rows the box captures, and their weight as the objective."""
    model.b = pyo.Var(range(len(rows)), domain=pyo.UnitInterval)
    conditions = [(g, literal) for g, e in enumerate(rows) for literal in sorted(e, key=repr)]

    @model.Constraint(range(len(conditions)))
    def in_the_box(m: pyo.ConcreteModel, k: int) -> Any:  # (7)
        g, (key, positive) = conditions[k]
        sign = -1.0 if positive else 1.0
        return (None, linear([(1.0, m.b[g]), (sign, _variable(m, key))]), 0.0 if positive else 1.0)

    model.captured = pyo.Objective(expr=linear([(-w, model.b[g]) for g, w in enumerate(rows.values())]))


def _keys(query: ProbabilityQuery, split: Split) -> tuple[Any, Any]:
    """Keys of "the box lies right of the split" and "left of it"."""
    i = split.feature
    if split.cut >= 0:
        return ("alpha", i, split.cut), ("beta", i, split.cut)
    allowed = query.forest.cells_of(query.free, i)
    # a set of levels is coded as the bits of an integer
    right, left = (sum(1 << k for k in np.flatnonzero(m & allowed).tolist()) for m in (~split.left, split.left))
    return ("only", i, right), ("only", i, left)


def _variable(model: pyo.ConcreteModel, key: Any) -> Any:
    name, *index = key
    return getattr(model, name)[tuple(index)]


def _box_choice(
    model: pyo.ConcreteModel,
    query: ProbabilityQuery,
    cuts: dict[int, tuple[int, ...]],
    levels: list[tuple[int, int]],
    sets: list[tuple[int, int]],
) -> None:
    """Variables of a box that is not empty."""
    places = [(i, j) for i, own in cuts.items() for j in own]
    model.alpha = pyo.Var(places, domain=pyo.Binary)
    model.beta = pyo.Var(places, domain=pyo.Binary)
    model.gamma = pyo.Var(levels, domain=pyo.Binary)
    model.only = pyo.Var(sets, domain=pyo.UnitInterval)
    steps = [(i, j, k) for i, own in cuts.items() for j, k in pairwise(own)]

    @model.Constraint(steps)
    def left_end(m: pyo.ConcreteModel, i: int, j: int, k: int) -> Any:  # (4)
        return (0.0, linear([(1.0, m.alpha[i, j]), (-1.0, m.alpha[i, k])]), None)

    @model.Constraint(steps)
    def right_end(m: pyo.ConcreteModel, i: int, j: int, k: int) -> Any:  # (4)
        return (0.0, linear([(1.0, m.beta[i, k]), (-1.0, m.beta[i, j])]), None)

    @model.Constraint(places)
    def ends_in_order(m: pyo.ConcreteModel, i: int, j: int) -> Any:  # (4)
        return (None, linear([(1.0, m.alpha[i, j]), (1.0, m.beta[i, j])]), 1.0)

    @model.Constraint(sorted({i for i, _ in levels}))
    def some_level(m: pyo.ConcreteModel, i: int) -> Any:  # (5)
        return (1.0, linear([(1.0, m.gamma[i, k]) for at, k in levels if at == i]), None)

    outside = {(at, code): [k for i, k in levels if i == at and not code >> k & 1] for at, code in sets}

    @model.Constraint([(n, k) for n, key in enumerate(sets) for k in outside[key]])
    def no_other_level(m: pyo.ConcreteModel, n: int, k: int) -> Any:  # (6)
        return (None, linear([(1.0, m.only[sets[n]]), (1.0, m.gamma[sets[n][0], k])]), 1.0)

    @model.Constraint(range(len(sets)))
    def else_only(m: pyo.ConcreteModel, n: int) -> Any:  # (6)
        others = [(1.0, m.gamma[sets[n][0], k]) for k in outside[sets[n]]]
        return (1.0, linear([(1.0, m.only[sets[n]]), *others]), None)


def _set_apart(
    model: pyo.ConcreteModel, query: ProbabilityQuery, features: tuple[int, ...], earlier: Sequence[CellBox]
) -> None:
    """Constraints (8): on some feature the box lies left or right of each earlier one, or has none of its levels."""
    part = query.forest.partition
    model.ways = []
    for box in earlier:
        ways: dict[tuple[int, str], list[Literal]] = {}
        for i in features:
            if not part.ordered[i]:
                shared = np.flatnonzero(query.forest.cells_of(box, i) & query.forest.cells_of(query.free, i))
                ways[i, "other"] = [(("gamma", i, int(k)), False) for k in shared]
                continue
            if box.low[i] > query.free.low[i]:
                ways[i, "left"] = [(("beta", i, int(box.low[i] - 1)), True)]
            if box.high[i] < query.free.high[i]:
                ways[i, "right"] = [(("alpha", i, int(box.high[i])), True)]
        model.ways.append(ways)
    model.apart = pyo.Var([(r, *way) for r, ways in enumerate(model.ways) for way in ways], domain=pyo.Binary)
    conditions = [
        (r, *way, literal) for r, ways in enumerate(model.ways) for way, own in ways.items() for literal in own
    ]

    @model.Constraint(range(len(conditions)))
    def lies_apart(m: pyo.ConcreteModel, k: int) -> Any:  # (8)
        r, i, way, (key, positive) = conditions[k]
        sign = -1.0 if positive else 1.0
        return (None, linear([(1.0, m.apart[r, i, way]), (sign, _variable(m, key))]), 0.0 if positive else 1.0)

    model.somewhere = pyo.ConstraintList()  # (8)
    for r, ways in enumerate(model.ways):
        model.somewhere.add((1.0, linear([(1.0, model.apart[r, i, way]) for i, way in ways] or no_branch(model)), None))


def _weighted_rows(
    query: ProbabilityQuery, features: tuple[int, ...], cuts: dict[int, tuple[int, ...]]
) -> dict[Conjunction, float]:
    """Weight of the rows that lie in the box under the same conjunction of literals."""
    forest, weights = query.forest, query.weights(features)
    out: dict[Conjunction, float] = {}
    for r in np.flatnonzero((weights > 0) & forest.inside(query.free, features)):
        literals: list[Literal] = []
        for i in features:
            cell = int(forest.cells[r, i])
            if i not in cuts:
                literals.append((("gamma", i, cell), True))
                continue
            literals += [(("alpha", i, j), False) for j in cuts[i] if j >= cell][:1]
            literals += [(("beta", i, j), False) for j in cuts[i] if j < cell][-1:]
        key = frozenset(literals)
        out[key] = out.get(key, 0.0) + float(weights[r])
    return out

"""The smallest set of features whose change gives the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyomo.environ as pyo

from ocf.arrays import FloatArray
from ocf.errors import ProblemError
from ocf.formulations.blocks import tree_values as tree_value_blocks
from ocf.formulations.blocks.cell_diagrams import SetChoices
from ocf.formulations.blocks.cells import linear
from ocf.formulations.blocks.tree_values import (
    SLACK,
    Branches,
    at_least_one,
    either_branch,
    fixed_branch,
    is_shut,
    tree_values,
    trees_of,
)
from ocf.regional.query import ProbabilityQuery
from ocf.regional.splits import Split, open_sides

if TYPE_CHECKING:
    from ocf.formulations.blocks.tree_values import TreeValues


# -- minimal divergent explanation -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SetModel:
    """Model of the minimal divergent explanation.

    Attributes
    ----------
    model : pyomo ConcreteModel
    candidates : tuple of int
        Features of the variables `choices`, in order.
    choices : tuple of variables
    """

    model: pyo.ConcreteModel
    candidates: tuple[int, ...]
    choices: tuple[Any, ...]
    trees: TreeValues

    def decode(self, values: FloatArray) -> tuple[int, ...]:
        """S at values of `choices`."""
        return tuple(i for i, v in zip(self.candidates, values, strict=True) if v > 0.5)

    def assign(self, features: Sequence[int]) -> None:
        """Give every variable its value at S."""
        for i, s in zip(self.candidates, self.choices, strict=True):
            s.set_value(float(i in features))
        self.trees.assign(lambda i: i in features)


def minimal_set(query: ProbabilityQuery, candidates: Sequence[int], level: float | None) -> SetModel:
    """Build the model of the minimal divergent explanation.

    Parameters
    ----------
    query : ProbabilityQuery
    candidates : sequence of int
        Features that may be in S.
    level : float or None
        The paper's pi. None leaves (1) out and asks for the largest CDP alone.

    Raises
    ------
    ProblemError
        The model would be too large.
    """
    candidates = tuple(sorted(candidates))

    def branches(split: Split) -> Branches:
        held, free = (open_sides(query, region, split) for region in (query.held, query.free))
        if split.feature not in candidates:
            return fixed_branch(held)
        key = split.feature
        left, right = (either_branch(key, h, f) for h, f in zip(held, free, strict=True))
        out = []
        for shut_left in (False, True):
            conjunction = either_branch(key, is_shut(held, shut_left), is_shut(free, shut_left))
            if conjunction is not None:
                out.append((conjunction, shut_left))
        return Branches(left, right, tuple(out))

    model = pyo.ConcreteModel(name="minimal_divergent_explanation")
    model.s = pyo.Var(candidates, domain=pyo.Binary)
    parts = trees_of(query, SetChoices(query, candidates), branches)
    if parts.left_out:
        raise ProblemError(
            f"the mathematical model would have more than {tree_value_blocks.MOST_CONDITIONS:,} rows: search instead "
            "(sets='exhaustive'), or take fewer or shallower trees"
        )
    own = tree_values(model, lambda i: model.s[i], parts)
    terms, constant = own.total()
    n_trees = query.forest.n_trees
    if level is not None:
        model.divergent = at_least_one(model, terms, (level - SLACK) * n_trees - constant)  # (1)
    model.some_change = pyo.Constraint(expr=(1.0, linear([(1.0, model.s[i]) for i in candidates]), None))  # (2)
    size = [(1.0, model.s[i]) for i in candidates] if level is not None else []
    probable = [(-c / n_trees, v) for c, v in terms]
    model.size = pyo.Objective(expr=linear(size + probable, -constant / n_trees))
    return SetModel(model, candidates, tuple(model.s[i] for i in candidates), own)

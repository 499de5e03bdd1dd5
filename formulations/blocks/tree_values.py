"""A tree's value as a path through a decision diagram over conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from ocf.arrays import BoolArray
from ocf.formulations.blocks.cell_diagrams import Choices, share_diagram
from ocf.formulations.blocks.cells import linear
from ocf.formulations.blocks.diagrams import Diagram, Paths, paths
from ocf.formulations.blocks.shares import Conjunction, Group, Literal, Shares, group_rows, shares
from ocf.regional.query import ProbabilityQuery
from ocf.regional.splits import Split, split_at
from ocf.support.limits import check

#: By how much (1) and (3) are relaxed, so that rounding cuts off no probability that equals the level.
SLACK = 1e-7

#: States of the descent of a tree up to which its share becomes a diagram. Sets of 10 features never have over 2047.
MOST_STATES = 4096

#: Conditions of all groups of rows up to which ratios are linearised; each is a row of the matrix.
MOST_CONDITIONS = 100_000


class Branches(NamedTuple):
    """What it takes to go down a split and to be shut out there.

    Attributes
    ----------
    left, right : Conjunction or None
        When the side is open; None for never.
    out : tuple of (Conjunction, bool)
        When rows are shut out, and whether it is those on the left.
    """

    left: Conjunction | None
    right: Conjunction | None
    out: tuple[tuple[Conjunction, bool], ...]


ALWAYS: Conjunction = frozenset()


@dataclass(frozen=True, eq=False)
class TreeValues:
    """Shares of wanted rows in the cells of the trees, by diagrams or, where these are too large, by linearised ratios.

    Attributes
    ----------
    paths : Paths
        Of the trees with diagrams.
    shares : Shares
        Of the others.
    """

    paths: Paths
    shares: Shares

    def total(self) -> tuple[list[tuple[float, Any]], float]:
        """Sum of the shares over the trees, as linear terms and a constant."""
        (own, one), (others, two) = self.paths.total(), self.shares.total()
        return own + others, one + two

    def assign(self, choice: Callable[[Any], bool]) -> None:
        """Give every variable its value at given choices."""
        self.paths.assign(choice)
        self.shares.assign(lambda literal: choice(literal[0]) == literal[1])


def either_branch(key: Any, outside: bool, inside: bool) -> Conjunction | None:
    """When something holds that holds `outside` S, or `inside` it; None for never.

    Parameters
    ----------
    key : object
        Of the choice whether the feature is in S.
    outside, inside : bool
    """
    if outside and inside:
        return ALWAYS
    if not (outside or inside):
        return None
    return frozenset([(key, inside)])


# -- from the forest to groups of rows ---------------------------------------------------------------------


class TreeParts(NamedTuple):
    """What is said of each tree's share.

    Attributes
    ----------
    diagrams : dict of int to Diagram
        Of the trees that have small ones, by tree.
    groups : list of list of Group
        Rows of each of the trees whose ratio is linearised.
    left_out : tuple of int
        Trees of which nothing is said, as that would be too much.
    """

    diagrams: dict[int, Diagram]
    groups: list[list[Group]]
    left_out: tuple[int, ...]


def trees_of(query: ProbabilityQuery, choices: Choices, branches: Callable[[Split], Branches]) -> TreeParts:
    """Diagrams of the trees that have small ones, and groups of rows of the others, up to `MOST_CONDITIONS`.

    Parameters
    ----------
    query : ProbabilityQuery
    choices : Choices
    branches : callable
        `Branches` of a split.
    """
    diagrams: dict[int, Diagram] = {}
    groups: list[list[Group]] = []
    left_out: list[int] = []
    conditions = 0
    for t, root in enumerate(query.forest.arrays.trees.root.tolist()):
        check()
        diagram = share_diagram(query, t, choices, MOST_STATES)
        if diagram is not None:
            diagrams[t] = diagram
            continue
        own = group_rows(_tests(query, root, branches), query.wanted) if conditions <= MOST_CONDITIONS else []
        conditions += sum(len(g.out) for g in own)
        if conditions <= MOST_CONDITIONS:
            groups.append(own)
        else:
            left_out.append(t)
    return TreeParts(diagrams, groups, tuple(left_out))


def tree_values(model: pyo.ConcreteModel, value: Callable[[Any], Any], parts: TreeParts) -> TreeValues:
    """Blocks of the trees' shares, added to the model.

    Parameters
    ----------
    model : pyomo ConcreteModel
    value : callable
        0/1 variable of a choice's key.
    parts : TreeParts
    """
    own = TreeValues(paths(parts.diagrams, value), shares(parts.groups, value))
    model.paths, model.shares = own.paths.block, own.shares.block
    return own


def _tests(
    query: ProbabilityQuery, root: int, branches: Callable[[Split], Branches]
) -> Iterator[tuple[Conjunction, BoolArray]]:
    """When which rows are shut out, over the nodes of a tree that can be met."""
    node = query.forest.arrays.trees.node
    stack = [(root, ALWAYS)]
    while stack:
        k, path = stack.pop()
        if node[k, 0] < 0:
            continue
        split = split_at(query, k)
        goes_left = split.left[query.forest.cells[:, split.feature]]
        branch = branches(split)
        for conjunction, shuts_left in branch.out:
            when = _both(path, conjunction)
            if when is not None:
                yield when, goes_left == shuts_left
        for child, way in ((node[k, 2], branch.left), (node[k, 3], branch.right)):
            below = None if way is None else _both(path, way)
            if below is not None:
                stack.append((int(child), below))


def _both(a: Conjunction, b: Conjunction) -> Conjunction | None:
    """Conjunction of two, without literals that others imply; None when they contradict each other."""
    union = a | b
    if any((key, not positive) in union for key, positive in union):
        return None
    ends: dict[int, list[Literal]] = {}
    for literal in union:
        if isinstance(literal[0], tuple) and literal[0][0] != "only":
            ends.setdefault(literal[0][1], []).append(literal)
    for own in ends.values():
        needed = _needed(own)
        if needed is None:
            return None
        union = union - set(own) | needed
    return union


def _needed(literals: list[Literal]) -> set[Literal] | None:
    """Literals about the ends of the box on one feature, without those that others imply; None if contradictory.

    Right of a cut is right of all cuts before it, left of a cut is left of all cuts after it, and nothing is both.
    """

    def cuts(name: str, positive: bool) -> list[int]:
        return [key[2] for key, sign in literals if key[0] == name and sign == positive]

    i = literals[0][0][1]
    right = max(cuts("alpha", True), default=-1)
    not_right = min(cuts("alpha", False), default=np.inf)
    left = min(cuts("beta", True), default=np.inf)
    not_left = max(cuts("beta", False), default=-1)
    if right >= not_right or left <= not_left or right >= left:
        return None
    found: set[Literal] = set()
    if right >= 0:
        found.add((("alpha", i, right), True))
    if np.isfinite(left):
        found.add((("beta", i, left), True))
    if not_right < left:
        found.add((("alpha", i, not_right), False))
    if not_left > right:
        found.add((("beta", i, not_left), False))
    return found


def is_shut(sides: tuple[bool, bool], left: bool) -> bool:
    """Whether a region with these open sides shuts out the rows on one side.

    Parameters
    ----------
    sides : (bool, bool)
        Whether the region has cells left and right of the split.
    left : bool
        Whether the rows are those on the left.
    """
    return not sides[0] if left else not sides[1]


def fixed_branch(sides: tuple[bool, bool]) -> Branches:
    """Branches of a split whose sides no choice changes."""
    left, right = (ALWAYS if side else None for side in sides)
    return Branches(left, right, tuple((ALWAYS, shuts) for shuts in (False, True) if is_shut(sides, shuts)))


def at_least_one(model: pyo.ConcreteModel, terms: list[tuple[float, Any]], need: float) -> pyo.Constraint:
    """Constraint that a sum reaches a need, also where the sum has no terms.

    Parameters
    ----------
    model : pyomo ConcreteModel
    terms : list of (float, variable)
    need : float
    """
    if not terms and need <= 0:
        return pyo.Constraint(expr=(0.0, linear(no_branch(model)), None))
    return pyo.Constraint(expr=(need, linear(terms or no_branch(model)), None))


def no_branch(model: pyo.ConcreteModel) -> list[tuple[float, Any]]:
    """Terms of a sum that is 0."""
    if not hasattr(model, "nothing"):
        model.nothing = pyo.Var(bounds=(0.0, 0.0))
    return [(1.0, model.nothing)]

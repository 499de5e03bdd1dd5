r"""Local and regional counterfactual rules: minimal divergent explanations and maximal rules.

Source: Amoukou and Brunel, Local and Regional Counterfactual Rules: Summarized and Robust Recourses (2024), definitions
2.1 to 2.3. The paper searches subsets exhaustively and merges leaves greedily; these models find the optimum of the
definitions, over the estimates of `ocf.regional`. With a region in place of the row they are the regional versions.

Nomenclature
------------
=====================  ===============================================================================
``i, t, B``            feature, tree, number of trees
``held, free``         what holds outside S, and what S may take (`ocf.regional.Query`)
``s[i]``               := 1 if feature i is in S
``alpha[i,j]``         := 1 if the box lies right of cut j of the ordered feature i
``beta[i,j]``          := 1 if the box lies left of cut j
``gamma[i,l]``         := 1 if level l of the unordered feature i is in the box
``only[i,M]``          := 1 if all levels of the box are in the set M
``v[t]``               := share of wanted rows in the cell of tree t
``w[r]``               := weight of training row r given what is held (constant)
``b[g]``               := 1 if the rows g, alike to all cuts, lie in the box
=====================  ===============================================================================

Model of the minimal divergent explanation (definition 2.2)
-----------------------------------------------------------
.. math::

    \min\ & \textstyle\sum_i s_i - \frac1B \sum_t v_t \\
    \text{s.t. } & \textstyle\frac1B \sum_t v_t \ge \pi & & \quad (1) \\
    & \textstyle\sum_i s_i \ge 1, \quad s \in \{0, 1\} & & \quad (2)

As the probability lies between pi > 0 and 1, the objective is lexicographic: fewest features first, then the largest
CDP.

Model of the maximal rule (definition 2.3)
------------------------------------------
.. math::

    \max\ & \textstyle\sum_g w_g b_g \\
    \text{s.t. } & \textstyle\frac1B \sum_t v_t \ge \pi_C & & \quad (3) \\
    & \alpha_{ij} \ge \alpha_{i,j+1}, \quad \beta_{ij} \le \beta_{i,j+1}, \quad \alpha_{ij} + \beta_{ij} \le 1 & &
      \quad (4) \\
    & \textstyle\sum_l \gamma_{il} \ge 1 & & \quad (5) \\
    & only_{iM} \le 1 - \gamma_{il} \ (l \notin M), \quad only_{iM} \ge 1 - \textstyle\sum_{l \notin M} \gamma_{il} & &
      \quad (6) \\
    & b_g \le 1 - \alpha_{ij} \text{ right of } g, \quad b_g \le 1 - \beta_{ij} \text{ left of } g, \quad
      b_g \le \gamma_{il} & & \quad (7) \\
    & \text{for each earlier rule, some } i \in S \text{ on which the box lies apart from it} & & \quad (8) \\
    & \alpha_{ij} = 0, \ \beta_{ij} = 0 \text{ where all that lies beyond captures less than a known box} & &
      \quad (9) \\
    & \alpha, \beta, \gamma \in \{0, 1\}

Only cuts of splits that can be met are needed: a box can be widened between two of them, which changes no cell and
loses no row.

The shares
----------
A node is met if its path is: a split on a feature outside S lets pass what the held region allows, one on a feature in
S what the free region, or the box, allows. So the share of a tree is a function of the choices at the splits that are
met, and a walk of the tree makes a decision diagram of it (`blocks.cell_diagrams`); v is the value at the end of the
path through it (`blocks.diagrams`), which is the convex hull of each tree's share by itself. With a known box, whatever
captures less than it is left out of the diagrams, as in (9). Diagrams of sets never have more than ``2**K`` nodes.
Those of boxes grow with the number of cuts on the features of S: a tree whose walk has more than `MOST_STATES` states
has its ratio linearised instead (`blocks.shares`), with literals of the same choices, which is exact too but weak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from ocf.ensemble import BoolArray, FloatArray
from ocf.errors import ProblemError
from ocf.formulations.blocks.cell_diagrams import (
    BoxChoices,
    Choices,
    SetChoices,
    Split,
    open_sides,
    share_diagram,
    split_at,
)
from ocf.formulations.blocks.cells import linear
from ocf.formulations.blocks.diagrams import Diagram, Paths, paths
from ocf.formulations.blocks.shares import Conjunction, Group, Literal, Shares, group_rows, shares
from ocf.regional import Query, Region

#: By how much (1) and (3) are relaxed, so that rounding cuts off no probability that equals the level.
SLACK = 1e-7

#: States of the walk of a tree up to which its share becomes a diagram. Sets of 10 features never have more than 2047.
MOST_STATES = 4096

#: Conditions of all groups of rows up to which ratios are linearised; each is a row of the matrix.
MOST_CONDITIONS = 1_000_000


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


def minimal_set(query: Query, candidates: Sequence[int], level: float | None) -> SetModel:
    """Build the model of the minimal divergent explanation.

    Parameters
    ----------
    query : Query
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
            return _fixed(held)
        key = split.feature
        left, right = (_either(key, h, f) for h, f in zip(held, free, strict=True))
        out = []
        for shut_left in (False, True):
            conjunction = _either(key, _shuts(held, shut_left), _shuts(free, shut_left))
            if conjunction is not None:
                out.append((conjunction, shut_left))
        return Branches(left, right, tuple(out))

    model = pyo.ConcreteModel(name="minimal_divergent_explanation")
    model.s = pyo.Var(candidates, domain=pyo.Binary)
    own = _tree_values(model, lambda i: model.s[i], *_trees(query, SetChoices(query, candidates), branches))
    terms, constant = own.total()
    n_trees = query.forest.n_trees
    if level is not None:
        model.divergent = _at_least(model, terms, (level - SLACK) * n_trees - constant)  # (1)
    model.some_change = pyo.Constraint(expr=(1.0, linear([(1.0, model.s[i]) for i in candidates]), None))  # (2)
    size = [(1.0, model.s[i]) for i in candidates] if level is not None else []
    probable = [(-c / n_trees, v) for c, v in terms]
    model.size = pyo.Objective(expr=linear(size + probable, -constant / n_trees))
    return SetModel(model, candidates, tuple(model.s[i] for i in candidates), own)


def _either(key: Any, outside: bool, inside: bool) -> Conjunction | None:
    """When something holds that holds `outside` S, or `inside` it; None for never."""
    if outside and inside:
        return ALWAYS
    if not (outside or inside):
        return None
    return frozenset([(key, inside)])


# -- maximal rule ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BoxModel:
    """Model of the maximal rule.

    Attributes
    ----------
    model : pyomo ConcreteModel
    query : Query
    features : tuple of int
        S.
    cuts : dict of int to tuple of int
        Cuts of each ordered feature of S.
    choices : tuple of variables
        Those that `decode` reads.
    """

    model: pyo.ConcreteModel
    query: Query
    features: tuple[int, ...]
    cuts: dict[int, tuple[int, ...]]
    choices: tuple[Any, ...]
    trees: TreeValues
    rows: dict[Conjunction, float]

    def decode(self, values: FloatArray) -> Region:
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

    def assign(self, box: Region) -> None:
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
    query: Query, features: Sequence[int], level: float, earlier: Sequence[Region] = (), above: float = 0.0
) -> BoxModel:
    """Build the model of the maximal rule on S.

    Parameters
    ----------
    query : Query
    features : sequence of int
        S.
    level : float
        The paper's pi_C.
    earlier : sequence of Region
        Boxes from which this one has to be disjoint.
    above : float
        Weight of a known box; those that capture less are left out as far as that makes the model smaller.

    Raises
    ------
    ProblemError
        The model would be too large.
    """
    features = tuple(sorted(features))
    part = query.forest.partition
    choice = BoxChoices(query, features, above)

    def branches(split: Split) -> Branches:
        i = split.feature
        if i not in features:
            return _fixed(open_sides(query, query.held, split))
        sides = open_sides(query, query.free, split)
        if not all(sides):
            return _fixed(sides)
        right_of, left_of = _keys(query, split)
        return Branches(
            frozenset([(right_of, False)]),
            frozenset([(left_of, False)]),
            ((frozenset([(left_of, True)]), False), (frozenset([(right_of, True)]), True)),
        )

    diagrams, groups = _trees(query, choice, branches)
    literals = {key for own in groups for g in own for e in g.out for key, _ in e}
    literals |= {node.choice for diagram in diagrams.values() for node in diagram.nodes}
    ordered = [i for i in features if part.ordered[i]]
    cuts = {i: tuple(sorted(_cuts_of(query, i, literals, earlier))) for i in ordered}
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
    own = _tree_values(model, lambda key: _variable(model, key), diagrams, groups)
    terms, constant = own.total()
    model.precise = _at_least(model, terms, (level - SLACK) * query.forest.n_trees - constant)  # (3)
    _set_apart(model, query, features, earlier)
    rows = _weighted_rows(query, features, cuts)
    model.b = pyo.Var(range(len(rows)), domain=pyo.UnitInterval)
    conditions = [(g, literal) for g, e in enumerate(rows) for literal in sorted(e, key=repr)]

    @model.Constraint(range(len(conditions)))
    def in_the_box(m: pyo.ConcreteModel, k: int) -> Any:  # (7)
        g, (key, positive) = conditions[k]
        sign = -1.0 if positive else 1.0
        return (None, linear([(1.0, m.b[g]), (sign, _variable(m, key))]), 0.0 if positive else 1.0)

    model.captured = pyo.Objective(expr=linear([(-w, model.b[g]) for g, w in enumerate(rows.values())]))
    choices = (*model.alpha.values(), *model.beta.values(), *model.gamma.values())
    return BoxModel(model, query, features, cuts, choices, own, rows)


def _keys(query: Query, split: Split) -> tuple[Any, Any]:
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


def _cuts_of(query: Query, i: int, literals: set[Any], earlier: Sequence[Region]) -> set[int]:
    """Cuts of splits that can be met, and those between which earlier boxes lie."""
    low, high = query.free.low[i], query.free.high[i]
    ends = {int(j) for box in earlier for j in (box.low[i] - 1, box.high[i]) if low <= j < high}
    return {key[2] for key in literals if key[0] in ("alpha", "beta") and key[1] == i} | ends


def _box_choice(
    model: pyo.ConcreteModel,
    query: Query,
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


def _set_apart(model: pyo.ConcreteModel, query: Query, features: tuple[int, ...], earlier: Sequence[Region]) -> None:
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
        model.somewhere.add((1.0, linear([(1.0, model.apart[r, i, way]) for i, way in ways] or _nothing(model)), None))


def _weighted_rows(
    query: Query, features: tuple[int, ...], cuts: dict[int, tuple[int, ...]]
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


# -- from the forest to groups of rows ---------------------------------------------------------------------


def _trees(
    query: Query, choices: Choices, branches: Callable[[Split], Branches]
) -> tuple[dict[int, Diagram], list[list[Group]]]:
    """Diagrams of the trees that have small ones, by tree, and groups of rows of the others.

    Raises
    ------
    ProblemError
        There are more than `MOST_CONDITIONS`.
    """
    roots = query.forest.arrays.trees.root.tolist()
    found = {t: share_diagram(query, t, choices, MOST_STATES) for t in range(len(roots))}
    diagrams = {t: diagram for t, diagram in found.items() if diagram is not None}
    groups: list[list[Group]] = []
    conditions = 0
    for root in (root for t, root in enumerate(roots) if t not in diagrams):
        groups.append(group_rows(_tests(query, root, branches), query.wanted))
        conditions += sum(len(g.out) for g in groups[-1])
        if conditions > MOST_CONDITIONS:
            raise ProblemError(
                f"the mathematical model would have more than {MOST_CONDITIONS:,} rows: search instead "
                "(method='search', sets='exhaustive'), or take fewer or shallower trees"
            )
    return diagrams, groups


def _tree_values(
    model: pyo.ConcreteModel, value: Callable[[Any], Any], diagrams: dict[int, Diagram], groups: list[list[Group]]
) -> TreeValues:
    """Blocks of the trees' shares, added to the model."""
    own = TreeValues(paths(diagrams, value), shares(groups, value))
    model.paths, model.shares = own.paths.block, own.shares.block
    return own


def _tests(query: Query, root: int, branches: Callable[[Split], Branches]) -> Iterator[tuple[Conjunction, BoolArray]]:
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


def _shuts(sides: tuple[bool, bool], left: bool) -> bool:
    """Whether a region with these open sides shuts out the rows on one side."""
    return not sides[0] if left else not sides[1]


def _fixed(sides: tuple[bool, bool]) -> Branches:
    """Branches of a split whose sides no choice changes."""
    left, right = (ALWAYS if side else None for side in sides)
    return Branches(left, right, tuple((ALWAYS, shuts) for shuts in (False, True) if _shuts(sides, shuts)))


def _at_least(model: pyo.ConcreteModel, terms: list[tuple[float, Any]], need: float) -> pyo.Constraint:
    """Constraint that a sum reaches a need, also where the sum has no terms."""
    if not terms and need <= 0:
        return pyo.Constraint(expr=(0.0, linear(_nothing(model)), None))
    return pyo.Constraint(expr=(need, linear(terms or _nothing(model)), None))


def _nothing(model: pyo.ConcreteModel) -> list[tuple[float, Any]]:
    """Terms of a sum that is 0."""
    if not hasattr(model, "nothing"):
        model.nothing = pyo.Var(bounds=(0.0, 0.0))
    return [(1.0, model.nothing)]

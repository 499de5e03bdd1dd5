r"""The share of wanted rows in the cell of each tree, as a variable: the ratio of two sums of 0/1 choices, linearised.

Nomenclature
------------
===================  ===================================================================================
``t, g``             tree; group of its rows that the same conjunctions shut out, and alike wanted or not
``n[t,g]``           := rows in the group; ``W[t]``, ``U[t]`` := groups of wanted and of unwanted rows
``e = {literals}``   a conjunction: holds when all its literals do; shuts its rows out of the cell
``E[t,g]``           := conjunctions that shut the group out
``a[e]``             <= 1 only if all literals of e hold
``z[t,g]``           <= 1 only if the wanted group is in the cell
``v[t]``             <= share of wanted rows in the cell of tree t; 0 when the cell is empty
``p[t,g]``           >= v[t] times whether the unwanted group is in the cell
``q[t,g]``           <= (1 - v[t]) times whether the wanted group is in the cell
===================  ===================================================================================

Model
-----
.. math::

    & z_{tg} \le \textstyle\sum_{l \in e} (1 - l) & \forall t, g \in W_t, e \in E_{tg} & \quad (1) \\
    & a_e \le l & \forall e, l \in e & \quad (2) \\
    & q_{tg} \le z_{tg}, \quad q_{tg} \le 1 - v_t & \forall t, g \in W_t & \quad (3) \\
    & p_{tg} \ge v_t - \textstyle\sum_{e \in E_{tg}} a_e & \forall t, g \in U_t & \quad (4) \\
    & \textstyle\sum_{g \in U_t} n_{tg} p_{tg} \le \sum_{g \in W_t} n_{tg} q_{tg} & \forall t & \quad (5) \\
    & v_t \le \textstyle\sum_{g \in W_t} z_{tg} & \forall t & \quad (6) \\
    & 0 \le a, z, v, p, q \le 1

Why it is exact: with 0/1 literals, the share is ``v = k / (k + u)`` for k wanted and u unwanted rows in the cell, that
is ``u v = k (1 - v)``; (3) and (4) are the products on both sides, rounded to the side that keeps v small, and (5) says
``u v <= k (1 - v)``. So v can take every value from 0 to the true share and none above, which is all that a lower bound
on shares, or their maximisation, needs. (6) makes v = 0 where the cell holds no wanted row. Nothing but the literals
has to be a whole number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo

from ocf.arrays import BoolArray
from ocf.formulations.blocks.cells import linear

#: A choice, by any key, and whether it must be made or must not be.
Literal = tuple[Any, bool]
Conjunction = frozenset[Literal]


@dataclass(frozen=True)
class Group:
    """Rows of one tree that are shut out by the same conjunctions.

    Attributes
    ----------
    wanted : bool
    count : int
    out : tuple of Conjunction
        None of which implies another.
    """

    wanted: bool
    count: int
    out: tuple[Conjunction, ...]


def group_rows(tests: Iterable[tuple[Conjunction, BoolArray]], wanted: BoolArray) -> list[Group]:
    """Group the rows of a tree by the conjunctions that shut them out.

    Parameters
    ----------
    tests : iterable of (Conjunction, (n,) bool)
        A conjunction and the rows that it shuts out; the empty one shuts out always.
    wanted : (n,) bool
    """
    merged: dict[Conjunction, BoolArray] = {}
    for conjunction, rows in tests:
        merged[conjunction] = merged[conjunction] | rows if conjunction in merged else rows
    never = merged.pop(frozenset(), np.zeros(len(wanted), bool))
    found = sorted(merged, key=len)
    shut = np.array([wanted, *(merged[e] for e in found)])[:, ~never]
    patterns, counts = np.unique(np.packbits(shut, axis=0), axis=1, return_counts=True)
    groups: dict[tuple[bool, tuple[Conjunction, ...]], int] = {}
    for pattern, count in zip(np.unpackbits(patterns, axis=0, count=len(shut)).T, counts.tolist(), strict=True):
        key = bool(pattern[0]), _minimal([found[k] for k in np.flatnonzero(pattern[1:])])
        groups[key] = groups.get(key, 0) + count
    return [Group(is_wanted, count, out) for (is_wanted, out), count in groups.items()]


def _minimal(conjunctions: list[Conjunction]) -> tuple[Conjunction, ...]:
    """Those that no smaller one contains in itself: the others hold only when it does."""
    kept: list[Conjunction] = []
    for e in conjunctions:
        if not any(k <= e for k in kept):
            kept.append(e)
    return tuple(kept)


@dataclass(frozen=True, eq=False)
class Shares:
    """Block of the shares, with what is needed to sum them and to give all its variables their values.

    Attributes
    ----------
    block : pyomo Block
    trees : tuple of tuple of Group
    fixed : tuple of float or None
        Share of a tree that no choice can change.
    """

    block: pyo.Block
    trees: tuple[tuple[Group, ...], ...]
    fixed: tuple[float | None, ...]

    def total(self) -> tuple[list[tuple[float, Any]], float]:
        """Sum of the shares over the trees, as linear terms and a constant."""
        terms = [(1.0, self.block.v[t]) for t, share in enumerate(self.fixed) if share is None]
        return terms, float(sum(share for share in self.fixed if share is not None))

    def assign(self, holds: Callable[[Literal], bool]) -> None:
        """Give every variable its value at a choice of the literals."""
        b = self.block
        for k, e in enumerate(b.conjunctions):
            b.a[k].set_value(float(all(map(holds, e))))
        for t, groups in enumerate(self.trees):
            if self.fixed[t] is not None:
                continue
            inside = [not any(all(map(holds, e)) for e in g.out) for g in groups]
            hits = sum(g.count for g, i in zip(groups, inside, strict=True) if i and g.wanted)
            size = sum(g.count for g, i in zip(groups, inside, strict=True) if i)
            share = hits / size if size else 0.0
            b.v[t].set_value(share)
            for k, (g, i) in enumerate(zip(groups, inside, strict=True)):
                if g.wanted:
                    b.z[t, k].set_value(float(i))
                    b.q[t, k].set_value((1 - share) * i)
                else:
                    b.p[t, k].set_value(share * i)


def shares(trees: Sequence[Sequence[Group]], value: Callable[[Any], Any]) -> Shares:
    """Shares of wanted rows in the cells of trees.

    Parameters
    ----------
    trees : sequence of sequence of Group
    value : callable
        0/1 variable of a literal's key.
    """
    block = pyo.Block(concrete=True)
    fixed = tuple(_fixed_share(groups) for groups in trees)
    free = [(t, k, g) for t, groups in enumerate(trees) if fixed[t] is None for k, g in enumerate(groups)]
    wanted = {(t, k): g for t, k, g in free if g.wanted}
    unwanted = {(t, k): g for t, k, g in free if not g.wanted}
    block.conjunctions = list(dict.fromkeys(e for g in unwanted.values() for e in g.out))
    block.a = pyo.Var(range(len(block.conjunctions)), domain=pyo.UnitInterval)
    block.v = pyo.Var([t for t, share in enumerate(fixed) if share is None], domain=pyo.UnitInterval)
    block.z = pyo.Var(list(wanted), domain=pyo.UnitInterval)
    block.q = pyo.Var(list(wanted), domain=pyo.UnitInterval)
    block.p = pyo.Var(list(unwanted), domain=pyo.UnitInterval)
    _conjunctions_hold(block, wanted, value)
    _products(block, wanted, unwanted, trees)
    return Shares(block, tuple(tuple(groups) for groups in trees), fixed)


def _conjunctions_hold(block: pyo.Block, wanted: Mapping[tuple[int, int], Group], value: Callable[[Any], Any]) -> None:
    """Rows that are inside only if no conjunction shuts them out, and conjunctions only if their literals hold."""

    def counted(literal: Literal, sign: float) -> tuple[list[tuple[float, Any]], float]:
        """``sign * literal`` as terms and a constant."""
        key, positive = literal
        return ([(sign, value(key))], 0.0) if positive else ([(-sign, value(key))], sign)

    @block.Constraint([(t, k, j) for (t, k), g in wanted.items() for j in range(len(g.out))])
    def shut_out(b: pyo.Block, t: int, k: int, j: int) -> Any:  # (1)
        e = sorted(wanted[t, k].out[j], key=repr)
        parts = [counted(literal, 1.0) for literal in e]
        terms = [term for own, _ in parts for term in own]
        return (None, linear([(1.0, b.z[t, k]), *terms]), len(e) - sum(c for _, c in parts))

    @block.Constraint([(k, j) for k, e in enumerate(block.conjunctions) for j in range(len(e))])
    def all_hold(b: pyo.Block, k: int, j: int) -> Any:  # (2)
        terms, constant = counted(sorted(b.conjunctions[k], key=repr)[j], -1.0)
        return (None, linear([(1.0, b.a[k]), *terms]), -constant)


def _products(
    block: pyo.Block,
    wanted: Mapping[tuple[int, int], Group],
    unwanted: Mapping[tuple[int, int], Group],
    trees: Sequence[Sequence[Group]],
) -> None:
    """What the share of each tree is by the rows that are in its cell."""
    number = {e: k for k, e in enumerate(block.conjunctions)}

    @block.Constraint(list(wanted))
    def inside_only(b: pyo.Block, t: int, k: int) -> Any:  # (3)
        return (None, linear([(1.0, b.q[t, k]), (-1.0, b.z[t, k])]), 0.0)

    @block.Constraint(list(wanted))
    def rest_of_share(b: pyo.Block, t: int, k: int) -> Any:  # (3)
        return (None, linear([(1.0, b.q[t, k]), (1.0, b.v[t])]), 1.0)

    @block.Constraint(list(unwanted))
    def full_share(b: pyo.Block, t: int, k: int) -> Any:  # (4)
        out = [(1.0, b.a[number[e]]) for e in unwanted[t, k].out]
        return (0.0, linear([(1.0, b.p[t, k]), (-1.0, b.v[t]), *out]), None)

    @block.Constraint(list(block.v))
    def ratio(b: pyo.Block, t: int) -> Any:  # (5)
        more = [(float(g.count), b.p[t, k]) for k, g in enumerate(trees[t]) if not g.wanted]
        less = [(-float(g.count), b.q[t, k]) for k, g in enumerate(trees[t]) if g.wanted]
        return (None, linear(more + less), 0.0)

    @block.Constraint(list(block.v))
    def not_empty(b: pyo.Block, t: int) -> Any:  # (6)
        return (None, linear([(1.0, b.v[t]), *((-1.0, b.z[t, k]) for k, g in enumerate(trees[t]) if g.wanted)]), 0.0)


def _fixed_share(groups: Sequence[Group]) -> float | None:
    """The share if no choice changes it, else None."""
    wanted = [g for g in groups if g.wanted]
    if not wanted:
        return 0.0
    if any(g.out for g in groups) and not (len(wanted) == len(groups) and any(not g.out for g in wanted)):
        return None
    inside = [g for g in groups if not g.out]
    return sum(g.count for g in inside if g.wanted) / sum(g.count for g in inside)

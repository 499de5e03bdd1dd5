r"""A number that depends on 0/1 choices, as the value at the end of a path through a decision diagram: a convex hull.

Nomenclature
------------
===================  ===================================================================================
``u``                node of a diagram; asks for the choice ``k(u)``; on no path is a choice asked for twice
``e = (u, d)``       arc that leaves u where the choice is d = 0 or 1
``x[k]``             := choice k (a variable of the model)
``y[e]``             := 1 if the path takes arc e
``V[e]``             := value of the diagram if arc e ends it, else 0
===================  ===================================================================================

Model of one diagram
--------------------
.. math::

    & y_{r0} + y_{r1} = 1 & \text{for its root } r & \quad (1) \\
    & y_{u0} + y_{u1} = \textstyle\sum_{e \text{ into } u} y_e & \forall u \ne r & \quad (2) \\
    & \textstyle\sum_{u: k(u) = k} y_{u1} \le x_k, \; \sum_{u: k(u) = k} y_{u0} \le 1 - x_k & \forall k & \;\; (3) \\
    & \text{value} = \textstyle\sum_e V_e y_e, \quad y \ge 0

With 0/1 choices, (3) leaves one arc open at each node, hence one path. Without them the model is still tight: a flow is
a mean of paths, a path allows all values of the choices that it does not ask for, and (3) says that x is a mean of
points that the paths allow. So every solution is a mean of pairs of choices and their value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyomo.environ as pyo

from ocf.formulations.blocks.cells import linear


class End(NamedTuple):
    """End of a path; a class of its own, since the value 0.0 equals the index 0."""

    value: float


#: Where an arc leads to: the index of a node, an end, or nowhere: the arc is closed.
Place = int | End | None


class DiagramNode(NamedTuple):
    """A node of a diagram.

    Attributes
    ----------
    choice : hashable
        Key of the choice.
    down : pair of int, End or None
        Where it goes on without and with the choice.
    """

    choice: Any
    down: tuple[Place, Place]


@dataclass(frozen=True)
class Diagram:
    """A decision diagram.

    Attributes
    ----------
    nodes : tuple of DiagramNode
        Each after those that it leads to.
    root : int or End
        End if the value depends on nothing.
    """

    nodes: tuple[DiagramNode, ...]
    root: int | End

    def path(self, choice: Callable[[Any], bool]) -> list[tuple[int, int]]:
        """Arcs of the path of given choices."""
        arcs: list[tuple[int, int]] = []
        at: Place = self.root
        while isinstance(at, int):
            side = int(choice(self.nodes[at].choice))
            arcs.append((at, side))
            at = self.nodes[at].down[side]
        return arcs


class TooLarge(Exception):
    """A diagram would have more nodes than allowed."""


def reduced_diagram(
    start: Hashable, ask: Callable[[Any], float | tuple[Any, Hashable | None, Hashable | None]], most: int
) -> Diagram | None:
    """The diagram of a function, with equal parts shared and questions left out whose answers make no difference.

    Parameters
    ----------
    start : hashable
        State before any choice.
    ask : callable
        Of a state: the value, if no choice can change it any more, or the key of a choice and the states that follow
        without and with it, None for a choice that is not allowed. Equal states have equal futures.
    most : int
        States to visit at most.

    Returns
    -------
    Diagram or None
        None when there are more states.
    """
    nodes: dict[DiagramNode, int] = {}
    known: dict[Hashable, Place] = {}

    def place(state: Hashable | None) -> Place:
        if state is None:
            return None
        if state not in known:
            if len(known) >= most:
                raise TooLarge
            answer = ask(state)
            if isinstance(answer, float):
                known[state] = End(answer)
            else:
                choice, *ways = answer
                without, given = map(place, ways)
                known[state] = (
                    without if without == given else nodes.setdefault(DiagramNode(choice, (without, given)), len(nodes))
                )
        return known[state]

    try:
        root = place(start)
    except TooLarge:
        return None
    assert root is not None  # some choice is allowed
    return Diagram(tuple(nodes), root)


@dataclass(frozen=True, eq=False)
class Paths:
    """Block of the paths through diagrams.

    Attributes
    ----------
    block : pyomo Block
    diagrams : mapping of hashable to Diagram
    """

    block: pyo.Block
    diagrams: Mapping[Any, Diagram]

    def total(self) -> tuple[list[tuple[float, Any]], float]:
        """Sum of the values of all diagrams, as linear terms and a constant."""
        terms = []
        for (t, u, d), arc in self.block.y.items():
            down = self.diagrams[t].nodes[u].down[d]
            if isinstance(down, End) and down.value:
                terms.append((down.value, arc))
        return terms, sum((d.root.value for d in self.diagrams.values() if isinstance(d.root, End)), 0.0)

    def assign(self, choice: Callable[[Any], bool]) -> None:
        """Give every variable its value at given choices."""
        for variable in self.block.y.values():
            variable.set_value(0.0)
        for t, diagram in self.diagrams.items():
            for u, d in diagram.path(choice):
                self.block.y[t, u, d].set_value(1.0)


def paths(diagrams: Mapping[Any, Diagram], value: Callable[[Any], Any]) -> Paths:
    """Paths through diagrams.

    Parameters
    ----------
    diagrams : mapping of hashable to Diagram
    value : callable
        0/1 variable of a choice's key.
    """
    block = pyo.Block(concrete=True)
    nodes = [(t, u) for t, diagram in diagrams.items() for u in range(len(diagram.nodes))]
    arcs = [(t, u, d) for t, u in nodes for d in (0, 1) if diagrams[t].nodes[u].down[d] is not None]
    block.y = pyo.Var(arcs, domain=pyo.NonNegativeReals)
    balance: dict[tuple[Any, int], list[tuple[float, Any]]] = {node: [] for node in nodes}
    asking: dict[tuple[Any, Any, int], list[tuple[float, Any]]] = {
        (t, diagrams[t].nodes[u].choice, d): [] for t, u in nodes for d in (0, 1)
    }
    for (t, u, d), arc in block.y.items():
        choice, down = diagrams[t].nodes[u]
        balance[t, u].append((1.0, arc))
        asking[t, choice, d].append((1.0, arc))
        if isinstance(down[d], int):
            balance[t, down[d]].append((-1.0, arc))

    @block.Constraint(nodes)
    def goes_on(_: pyo.Block, t: Any, u: int) -> Any:  # (1), (2)
        start = float(u == diagrams[t].root)
        return (start, linear(balance[t, u]), start)

    questions = [question for question, terms in asking.items() if terms]

    @block.Constraint(range(len(questions)))
    def as_chosen(_: pyo.Block, k: int) -> Any:  # (3)
        _, choice, d = questions[k]
        return (None, linear([*asking[questions[k]], (-1.0 if d else 1.0, value(choice))]), 0.0 if d else 1.0)

    return Paths(block, diagrams)

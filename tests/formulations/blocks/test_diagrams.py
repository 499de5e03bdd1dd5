"""Decision diagrams and the paths through them, against tables of all choices."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.formulations.blocks.cells import linear
from ocf.formulations.blocks.diagrams import Diagram, End, paths, reduced_diagram
from ocf.solvers import Status, compile_model, get_solver

K = 4
seeds = st.integers(0, 10_000)


def random_table(rng: np.random.Generator) -> dict[tuple[bool, ...], float | None]:
    """A value for each of the choices, with few different values; None for those that are not allowed."""
    values = np.array([0.0, 1.0, 0.25, np.nan])
    chances = rng.dirichlet(np.ones(4))
    table = {
        x: float(v) for x, v in zip(product((False, True), repeat=K), rng.choice(values, 2**K, p=chances), strict=True)
    }
    table[(False,) * K] = 0.5
    return {x: None if np.isnan(v) else v for x, v in table.items()}


def diagram_of(table: dict[tuple[bool, ...], float | None], most: int = 100) -> Diagram | None:
    def state(known: tuple[bool, ...]) -> Any:
        left = [v for x, v in table.items() if x[: len(known)] == known]
        return None if all(v is None for v in left) else known

    def ask(known: tuple[bool, ...]) -> Any:
        if len(known) == K:
            return table[known]
        return len(known), state((*known, False)), state((*known, True))

    return reduced_diagram((), ask, most)


@settings(max_examples=40)
@given(seeds)
def test_paths_lead_to_the_values(seed: int) -> None:
    table = random_table(np.random.default_rng(seed))
    diagram = diagram_of(table)
    assert diagram is not None
    assert len(set(diagram.nodes)) == len(diagram.nodes) <= 2**K - 1
    assert all(node.down[0] != node.down[1] for node in diagram.nodes)
    for x, value in table.items():
        arcs = diagram.path(lambda k, x=x: x[k])
        end = diagram.root if not arcs else diagram.nodes[arcs[-1][0]].down[arcs[-1][1]]
        assert end == (None if value is None else End(value))


@settings(max_examples=60)
@given(seeds)
def test_relaxation_is_the_convex_hull(seed: int) -> None:
    """Whatever is paid for the choices and the value, the relaxation has the cost of the best choice."""
    rng = np.random.default_rng(seed)
    table = random_table(rng)
    diagram = diagram_of(table)
    assert diagram is not None
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(K), domain=pyo.Binary)
    own = paths({"only": diagram}, lambda k: model.x[k])
    model.paths = own.block
    terms, constant = own.total()
    price, of_value = rng.normal(size=K), rng.normal()
    model.cost = pyo.Objective(
        expr=linear(
            [*((float(p), model.x[k]) for k, p in enumerate(price)), *((of_value * c, v) for c, v in terms)],
            of_value * constant,
        )
    )
    result = get_solver("highs").solve_relaxation(compile_model(model, list(model.component_data_objects(pyo.Var))))
    assert result.status is Status.OPTIMAL
    best = min(price @ x + of_value * v for x, v in table.items() if v is not None)
    assert result.bound == pytest.approx(best, abs=1e-7)


def test_too_many_states_give_no_diagram() -> None:
    table = {x: float(sum(x)) for x in product((False, True), repeat=K)}
    assert diagram_of(table, most=10) is None
    assert diagram_of(table) is not None


def test_a_constant_has_no_nodes() -> None:
    diagram = diagram_of(dict.fromkeys(product((False, True), repeat=K), 0.0))
    assert diagram == Diagram((), End(0.0))
    assert paths({0: diagram}, lambda _: None).total() == ([], 0.0)

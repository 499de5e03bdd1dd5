r"""Linear models: support vector machines, logistic regression (fcca, section 4.3).

Source: Piccialli, Romero Morales and Salvatore, *Supervised feature compression based on counterfactual analysis*,
EJOR 2023, (16)-(18).

Nomenclature
------------
====================  ==================================================================================
``i, k, r``           feature, level, requirement (one for two classes; one per other class else)
``x0[i]``             := value of the row, ``s[i]`` the feature's scale
``u[i], v[i]``        := how far numeric feature i goes up and down, in units of its scale, >= 0; the columns
                      count in parts of it, whole numbers in steps (`LinearFormulated.unit`)
``a[i], b[i]``        := 1 if it goes up, if it goes down; only where a change as such costs
``m[i]``              := whole number of steps, for features with a grid (whole numbers among them); beyond the
                      row's own where that is on the grid, so that a solver meets small numbers
``h[i]``              := 1 if a feature leaves a value that is not on its grid; always 1 if the value is on it
``q[i], p[i]``        := at least the squares of u[i] and v[i], by tangents
``nu[i,k]``           := 1 if listed feature i takes value k, a level or a number on a grid that its column rounds
``g[r,i]``            := slope of requirement r in numeric feature i, in units of the feature
``G[i][k,r]``         := what value k of listed feature i adds to requirement r
``c[r], d[r]``        := constant of requirement r, and bound on the rounding of the library's own sum
``w+[i], w-[i]``      := weights of the directions
====================  ==================================================================================

Model
-----
.. math::

    \min\ & \textstyle\sum_i w^+_i (\lambda_0 a_i + \lambda_1 u_i + \lambda_2 q_i)
            + w^-_i (\lambda_0 b_i + \lambda_1 v_i + \lambda_2 p_i) + \sum_{i,k} c_{ik} \nu_{ik} & (16) \\
    \text{s.t. } & c_r + \textstyle\sum_i g_{ri} (x^0_i + s_i (u_i - v_i)) + \sum_{i,k} G_{ikr} \nu_{ik}
                   \ge \text{margin} - d_r & \forall r & \quad (17) \\
    & u_i \le U_i a_i, \quad v_i \le V_i b_i, \quad a_i + b_i \le 1 & \forall i & \quad (18) \\
    & x^0_i + s_i (u_i - v_i) = \text{step}_i\, m_i \ (+\ x^0_i (1 - h_i)) & \text{grids} & \quad (18) \\
    & \textstyle\sum_k \nu_{ik} = 1 & \forall i & \quad (18) \\
    & q_i \ge 2 \hat u u_i - \hat u^2, \quad p_i \ge 2 \hat v v_i - \hat v^2 & \forall \hat u, \hat v
      & \quad \text{(16), tangents}

The paper writes (17) for labels of plus and minus one with a margin of 1, that of support vectors; with margin 0 it is
the decision itself. The right-hand side is lowered by d so that no point is cut off to which the library itself gives
the class; the user's model decides about those within d of a tie.

The tangents make the quadratic part linear: every solution adds the tangents at its own point, so that the bound meets
the cost after a few rounds, with HiGHS as well as with SCIP, and with the binaries of l0 in the same model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyomo.environ as pyo

from ocf.arrays import FloatArray
from ocf.features.feature import grid_unit
from ocf.formulations.blocks.cells import linear

if TYPE_CHECKING:
    from ocf.problem.linear_problem import LinearProblem, Move

#: Places, as parts of the range of a move, where the squares have a tangent from the start.
TANGENTS = (0.05, 0.2, 0.5, 1.0)

#: Parts of a scale in which moves are counted where they are squared. Solvers meet a row within an absolute tolerance
#: of 1e-9 to 1e-7, which is much for the square of a tenth and nothing for that of a hundred.
FINE = 1024.0


class LinearMoves(NamedTuple):
    """What a solution says of each feature.

    Attributes
    ----------
    distances : dict of int to float
        By numeric feature that may move: how far it goes, in units of its scale.
    steps : dict of int to float
        Number of steps that make up the value, by feature that lies on its grid.
    levels : dict of int to int
        Which of its values each listed feature takes.
    """

    distances: dict[int, float]
    steps: dict[int, float]
    levels: dict[int, int]


@dataclass(frozen=True)
class LinearFormulated:
    """The model, and where its parts stand.

    Attributes
    ----------
    model : pyomo.environ.ConcreteModel
    up, down : dict of int to variable
        By numeric feature that may move; in units of ``scale / unit[i]``.
    square_up, square_down : dict of int to variable
        Empty without l2.
    levels : dict of int to tuple of variables
    steps, on_grid : dict of int to variable
        By feature that may move by whole steps: their number beyond `first`, and whether that is its value.
    unit : dict of int to float
        By numeric feature that may move.
    first : dict of int to float
        By feature that may move by whole steps: those of the row's value where it is on the grid, else 0.
    """

    model: pyo.ConcreteModel
    up: dict[int, Any]
    down: dict[int, Any]
    square_up: dict[int, Any]
    square_down: dict[int, Any]
    levels: dict[int, tuple[Any, ...]]
    steps: dict[int, Any]
    on_grid: dict[int, Any]
    unit: dict[int, float]
    first: dict[int, float]

    @property
    def columns(self) -> list[Any]:
        """The variables of `up`, `down`, their squares, `steps`, `on_grid` and `levels`, in this order."""
        parts = (self.up, self.down, self.square_up, self.square_down, self.steps, self.on_grid)
        return [*(v for part in parts for v in part.values()), *(v for own in self.levels.values() for v in own)]

    @cached_property
    def places(self) -> dict[str, dict[int, int]]:
        """Where in `columns` the variable of each feature stands, by the name of its part; of levels the first."""
        out: dict[str, dict[int, int]] = {}
        n = 0
        for name in ("up", "down", "square_up", "square_down", "steps", "on_grid"):
            out[name] = {i: n + k for k, i in enumerate(getattr(self, name))}
            n += len(out[name])
        ends = accumulate((len(own) for own in self.levels.values()), initial=n)
        return {**out, "levels": dict(zip(self.levels, ends, strict=False))}

    def decode(self, x: FloatArray) -> LinearMoves:
        """What the values of `columns`, (n_columns,), say."""
        at = self.places
        distances = {i: float(x[at["up"][i]]) / u - float(x[at["down"][i]]) / u for i, u in self.unit.items()}
        on_grid = [i for i, j in at["on_grid"].items() if x[j] > 0.5]
        steps = {i: self.first[i] + float(np.rint(x[at["steps"][i]])) for i in on_grid}
        levels = {i: int(np.argmax(x[j : j + len(self.levels[i])])) for i, j in at["levels"].items()}
        return LinearMoves(distances, steps, levels)

    def choice_columns(self, x: FloatArray) -> list[int]:
        """Columns that tell steps and levels at a solution, (n_columns,); of a level it is enough that it is taken."""
        at = self.places
        steps = [j for i in at["steps"] for j in (at["steps"][i], at["on_grid"][i])]
        return [*steps, *(at["levels"][i] + level for i, level in self.decode(x).levels.items())]


def build(problem: LinearProblem, margin: float = 0.0, slack: float = 1.0) -> LinearFormulated:
    """Build the model of a row.

    Parameters
    ----------
    problem : LinearProblem
    margin : float
        By how much the decision values must win; 1 for the margin of support vectors.
    slack : float
        Multiple of the rounding bound d that is taken off the right-hand side; -1 asks for a certain win.
    """
    model = pyo.ConcreteModel(name="linear")
    numeric = [i for i, move in enumerate(problem.moves) if move is not None]
    ranges = {i: move for i, move in enumerate(problem.moves) if move is not None}
    grid = [i for i in numeric if problem.takes_steps(i)]
    cost = problem.cost
    first = {i: _first_step(problem, i) for i in grid}
    unit = {i: _unit(problem, i) for i in numeric}
    ranges = {i: move.times(unit[i]) for i, move in ranges.items()}
    model.u = pyo.Var(numeric, bounds=lambda _, i: (0.0, ranges[i].up))
    model.v = pyo.Var(numeric, bounds=lambda _, i: (0.0, ranges[i].down))
    counted = numeric if cost.l0 else []
    model.a = pyo.Var(counted, domain=pyo.Binary)
    model.b = pyo.Var(counted, domain=pyo.Binary)
    squared = numeric if cost.l2 else []
    model.q = pyo.Var(squared, bounds=lambda _, i: (0.0, ranges[i].up ** 2))
    model.p = pyo.Var(squared, bounds=lambda _, i: (0.0, ranges[i].down ** 2))
    levels = [(i, k) for i, prices in enumerate(problem.value_costs) for k in range(len(prices))]
    open_level = {(i, k): np.isfinite(problem.value_costs[i][k]) for i, k in levels}
    model.nu = pyo.Var(levels, domain=pyo.Binary, bounds=lambda _, i, k: (0, int(open_level[i, k])))

    @model.Constraint(range(len(problem.constant)))
    def reaches_target(m: pyo.ConcreteModel, r: int) -> Any:  # (17)
        terms, constant = _requirement(m, problem, r, unit)
        size = max([abs(c) for c, _ in terms], default=0.0) or 1.0  # solvers' tolerances are absolute
        wanted = margin - slack * problem.error_bound[r] - constant
        return (wanted / size, linear([(c / size, x) for c, x in terms]), None) if terms else _decided(wanted <= 0)

    # of what starts on its grid the bounds of the steps say so; a presolve that meets both may cut the nearer end off
    free = [i for i in numeric if not (i in first and problem.starts_on_grid(i))]
    _moves(model, ranges, counted, free)
    _grids(model, problem, first, unit)

    @model.Constraint([i for i, prices in enumerate(problem.value_costs) if len(prices)])
    def one_level(m: pyo.ConcreteModel, i: int) -> Any:  # (18)
        return (1.0, linear([(1.0, m.nu[i, k]) for k in range(len(problem.value_costs[i]))]), 1.0)

    _first_tangents(model, ranges, squared)
    model.cost = pyo.Objective(expr=linear(_costs(model, problem, levels, unit)))  # (16)
    by = {name: {i: getattr(model, name)[i] for i in own} for name, own in _owners(numeric, squared, grid)}
    chosen = {
        i: tuple(model.nu[i, k] for k in range(len(prices)))
        for i, prices in enumerate(problem.value_costs)
        if len(prices)
    }
    return LinearFormulated(model, by["u"], by["v"], by["q"], by["p"], chosen, by["m"], by["h"], unit, first)


def _unit(problem: LinearProblem, i: int) -> float:
    """Units in which a feature's moves count, per scale: steps where they are many, as a solver sees none of 1e-9."""
    feature = problem.space.features[i]
    least = FINE if problem.cost.l2 else 1.0
    counts_steps = problem.takes_steps(i) and problem.starts_on_grid(i)
    return max(feature.scale / grid_unit(feature), least) if counts_steps else least


def _first_step(problem: LinearProblem, i: int) -> float:
    """Steps of the row's value; 0 where it is not on the grid."""
    step = grid_unit(problem.space.features[i])
    return float(round(float(problem.origin[i]) / step)) if problem.starts_on_grid(i) else 0.0


def tangent(move: float) -> tuple[float, float]:
    """Coefficient of the move and right-hand side of ``square - coefficient * move >= side`` at a point."""
    return 2 * move, -move * move


def _owners(numeric: list[int], squared: list[int], grid: list[int]) -> tuple[tuple[str, list[int]], ...]:
    return (("u", numeric), ("v", numeric), ("q", squared), ("p", squared), ("m", grid), ("h", grid))


def _decided(holds: bool) -> Any:
    return pyo.Constraint.Feasible if holds else pyo.Constraint.Infeasible


def _requirement(
    m: pyo.ConcreteModel, problem: LinearProblem, r: int, unit: Mapping[int, float]
) -> tuple[list[tuple[float, Any]], float]:
    """Terms and constant of a requirement at the row."""
    constant = problem.at_origin(r)
    terms: list[tuple[float, Any]] = []
    for i, move in enumerate(problem.moves):
        slope = problem.slopes[r, i] * problem.space.features[i].scale
        if move is not None and slope:
            terms += [(slope / unit[i], m.u[i]), (-slope / unit[i], m.v[i])]
        terms += [(float(g), m.nu[i, k]) for k, g in enumerate(problem.added(i, r)) if g]
    return terms, constant


def _moves(model: pyo.ConcreteModel, ranges: Mapping[int, Move], counted: list[int], free: list[int]) -> None:
    """How far numeric features that are `free` of a grid may go, and one way only where a change as such costs."""

    @model.Constraint(free)
    def within_limits(m: pyo.ConcreteModel, i: int) -> Any:  # (18): the permitted range may exclude the row's value
        low, high = ranges[i].low, ranges[i].high
        return (low, linear([(1.0, m.u[i]), (-1.0, m.v[i])]), high) if low > 0 or high < 0 else pyo.Constraint.Skip

    @model.Constraint(counted)
    def counts_up(m: pyo.ConcreteModel, i: int) -> Any:  # (18)
        return (None, linear([(1.0, m.u[i]), (-ranges[i].up, m.a[i])]), 0.0)

    @model.Constraint(counted)
    def counts_down(m: pyo.ConcreteModel, i: int) -> Any:  # (18)
        return (None, linear([(1.0, m.v[i]), (-ranges[i].down, m.b[i])]), 0.0)

    @model.Constraint(counted)
    def one_direction(m: pyo.ConcreteModel, i: int) -> Any:  # (18)
        return (None, linear([(1.0, m.a[i]), (1.0, m.b[i])]), 1.0)


def _first_tangents(model: pyo.ConcreteModel, ranges: Mapping[int, Move], squared: list[int]) -> None:
    """Tangents of the squares of moves that stand in the model from the start."""
    model.tangents = pyo.ConstraintList()
    for i in squared:
        for square, move, reach in ((model.q[i], model.u[i], ranges[i].up), (model.p[i], model.v[i], ranges[i].down)):
            for part in TANGENTS:
                coefficient, side = tangent(part * reach)
                model.tangents.add((side, linear([(1.0, square), (-coefficient, move)]), None))


def _grids(
    model: pyo.ConcreteModel, problem: LinearProblem, first: Mapping[int, float], unit: Mapping[int, float]
) -> None:
    """Features that take multiples of a step only, or keep their value."""
    grid, ends = list(first), {i: [steps - first[i] for steps in problem.steps(i)] for i in first}
    on = {i: problem.starts_on_grid(i) for i in grid}
    model.m = pyo.Var(grid, domain=pyo.Integers, bounds=lambda _, i: tuple(ends[i]) if on[i] else (None, None))
    model.h = pyo.Var(grid, domain=pyo.Binary, bounds=lambda _, i: (int(on[i]), 1))

    @model.Constraint(grid)
    def on_grid(m: pyo.ConcreteModel, i: int) -> Any:  # (18)
        feature, origin = problem.space.features[i], problem.origin[i]
        step = grid_unit(feature)
        ratio = feature.scale / step / unit[i]  # in steps, so that coefficients are of one size
        stays = [] if on[i] else [(origin / step, m.h[i])]
        return (0.0, linear([(ratio, m.u[i]), (-ratio, m.v[i]), (-1.0, m.m[i]), *stays]), 0.0)

    apart = [i for i in grid if not on[i]]

    @model.Constraint(apart)
    def grid_above(m: pyo.ConcreteModel, i: int) -> Any:  # (18): m is 0 when the value stays
        return (0.0, linear([(1.0, m.m[i]), (-ends[i][0], m.h[i])]), None)

    @model.Constraint(apart)
    def grid_below(m: pyo.ConcreteModel, i: int) -> Any:  # (18)
        return (None, linear([(1.0, m.m[i]), (-ends[i][1], m.h[i])]), 0.0)


def _costs(
    model: pyo.ConcreteModel, problem: LinearProblem, levels: list[tuple[int, int]], unit: Mapping[int, float]
) -> list[tuple[float, Any]]:
    terms: list[tuple[float, Any]] = []
    cost = problem.cost
    for i, move in enumerate(problem.moves):
        if move is None:
            continue
        feature = problem.space.features[i]
        for weight, names in ((feature.weight_up, ("a", "u", "q")), (feature.weight_down, ("b", "v", "p"))):
            for coefficient, name in zip((cost.l0, cost.l1 / unit[i], cost.l2 / unit[i] ** 2), names, strict=True):
                if coefficient:
                    terms.append((weight * coefficient, getattr(model, name)[i]))
    for i, k in levels:
        price: FloatArray = problem.value_costs[i]
        if np.isfinite(price[k]) and price[k]:
            terms.append((float(price[k]), model.nu[i, k]))
    return terms

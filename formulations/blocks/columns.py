"""Continuous and listed values of features as columns of a model over values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, get_type_hints

import numpy as np
import pyomo.environ as pyo
import scipy.sparse as sp

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.errors import ProblemError
from ocf.features.feature import Feature, grid_unit, rounds_its_grid
from ocf.features.lattice import Lattice
from ocf.formulations.blocks.cells import linear
from ocf.problem.costs import GREATEST
from ocf.problem.piecewise import Shape, exact_rows, level_amounts, shape_of, sides_of
from ocf.problem.problem import Problem
from ocf.trees.ensemble import Ensemble

#: Most values of a grid that may be listed one by one, where they are no whole number of steps from the origin.
MAX_LISTED = 5000


class MoveColumn(NamedTuple):
    """One column, with the fields of `MoveColumns`."""

    feature: int
    role: str
    value: float
    unit: float
    lower: float
    upper: float
    integer: bool
    linear: float
    square: float = 0.0


@dataclass(frozen=True, eq=False)
class MoveColumns:
    """The columns of a problem's leaf models.

    Attributes
    ----------
    feature : (n_cols,) int64
    role : (n_cols,) str
        ``"delta"``, ``"up"`` or ``"down"`` of a number's change, ``"level"`` of a listed value, ``"moved"`` of a binary
        without which a number does not move in one direction.
    value : (n_cols,) float64
        Coded value that a level stands for; 1 where `moved` opens the way up, -1 where down; NaN of a change.
    unit : (n_cols,) float64
        By how much x grows with the column; 0 for levels, and the most that `moved` opens, its big-M.
    lower, upper : (n_cols,) float64
    integer : (n_cols,) bool
    linear, square : (n_cols,) float64
        Cost of the column and of its square.
    """

    feature: IntArray
    role: Any
    value: FloatArray
    unit: FloatArray
    lower: FloatArray
    upper: FloatArray
    integer: BoolArray
    linear: FloatArray
    square: FloatArray

    @property
    def n(self) -> int:
        """Number of columns."""
        return len(self.feature)

    @cached_property
    def is_number(self) -> BoolArray:
        """Whether a column is a number's change, (n_cols,)."""
        return np.isin(self.role, ("delta", "up", "down"))

    def of(self, i: int) -> IntArray:
        """Columns of feature i."""
        return np.flatnonzero(self.feature == i)

    @property
    def signature(self) -> tuple[Any, ...]:
        """What two problems must share for the same matrix to serve both."""
        role = "".join(r[0] for r in self.role)
        return (self.feature.tobytes(), role, self.value.tobytes(), self.unit.tobytes())


def columns_of(problem: Problem) -> MoveColumns:
    """The columns of a problem: one or two for a number, one for each listed value of any other feature.

    A missing value, which stays missing, has no column, nor has a feature without any admissible value; with one of
    the latter there is no solution.

    Raises
    ------
    ProblemError
        A feature whose value is off its own grid, or whose column rounds the grid, has too many grid values to list,
        or the quadratic cost names a feature that is no number.
    """
    paired = {problem.space.names[i] for i in np.flatnonzero(np.diff(quadratic_form(problem).indptr))}
    relations = exact_rows(problem)
    columns: list[MoveColumn] = []
    for i, feature in enumerate(problem.space.features):
        origin = float(problem.origin[i])
        if np.isnan(origin):
            continue
        steps = grid_unit(feature)
        shape = Shape() if feature.discrete else shape_of(problem, relations, i, steps)
        if steps and feature.name in paired:
            raise ProblemError(
                f"the quadratic cost needs continuous numbers, and {feature.name!r} has a grid: declare it 'numeric' "
                "without a step, or take another norm"
            )
        off_steps = steps and (feature.at_most(origin) != origin or rounds_its_grid(feature, origin))
        if feature.discrete or shape.listed or off_steps:
            if feature.name in paired:
                raise ProblemError(f"the quadratic cost needs numbers on their grid, and {feature.name!r} is none")
            columns += _level_columns(problem, i, feature, origin)
        else:
            columns += _number_columns(problem, i, feature, origin, steps, shape)
    kinds = get_type_hints(MoveColumn)
    return MoveColumns(**{name: np.array([getattr(c, name) for c in columns], kind) for name, kind in kinds.items()})


def quadratic_form(problem: Problem) -> Any:
    """The symmetric Q of every quadratic part of the cost over changes in the user's units, (n, n) CSR array.

    Squares of listed features are part of what their levels cost.
    """
    cost, space = problem.cost, problem.space
    place = {name: space.index(name) for name in cost.coupled_names}
    listed = {feature.name for feature in space.features if feature.discrete}
    terms = [(k, place[name], c) for k, form in enumerate(cost.forms) for name, c in form]
    rows, columns, values = (list(t) for t in zip(*terms, strict=True)) if terms else ([], [], [])
    forms = sp.csr_array((np.array(values, float), (rows, columns)), shape=(len(cost.forms), len(space)))
    single = np.zeros(len(space))
    for name, q in cost.squares:
        single[place[name]] += 0.0 if name in listed else q
    out = sp.csr_array(forms.T @ forms + sp.diags_array(single))
    out.eliminate_zeros()
    out.sort_indices()
    return out


def _level_columns(problem: Problem, i: int, feature: Feature, origin: float) -> list[MoveColumn]:
    values = listed_values(feature, origin)
    cost = problem.cost.of(feature, origin, values)
    return [
        MoveColumn(i, "level", value, unit=0.0, lower=0.0, upper=1.0, integer=True, linear=price)
        for value, price in zip(values.tolist(), cost.tolist(), strict=True)
    ]


def listed_values(feature: Feature, origin: float) -> FloatArray:
    """Admissible coded values of a feature that is discrete, off its grid, or on one that its column rounds, (n,).

    Parameters
    ----------
    feature : Feature
    origin : float
        Coded value of the row.
    """
    low, high = feature.limits(origin)
    if feature.discrete:
        codes = feature.permitted_codes()
        allowed = range(len(feature.levels)) if codes is None else sorted(codes)
        return np.array([c for c in allowed if low <= c <= high], np.float64)
    if not has_few_values(feature, origin):
        if rounds_its_grid(feature, origin):
            raise ProblemError(
                f"feature {feature.name!r} has too many values on its grid to list, which {feature.dtype} rounds: "
                "narrow its permitted range, or give the column as float64"
            )
        raise ProblemError(
            f"feature {feature.name!r} has the value {origin!r}, which is off its grid, and too many grid values to "
            "list: narrow its permitted range, or put the value on the grid"
        )
    values = feature.between(low, high)
    return np.unique(np.append(values, origin) if low <= origin <= high else values)


def has_few_values(feature: Feature, origin: float, most: int = MAX_LISTED) -> bool:
    """Whether the values of a grid can be listed, if there are any.

    Parameters
    ----------
    feature : Feature
        With a grid.
    origin : float
        Coded value of the row.
    most : int
        Fewer are few. A narrow column may hold fewer than there are steps, of which a hundred may be one number of it.
    """
    low, high = feature.limits(origin)
    steps = (high - low) / grid_unit(feature)
    first, last = Lattice(feature.float_dtype).keys(np.array([low, high])).tolist()
    return steps < most or (last - first < most and steps < 100 * most)


def _number_columns(
    problem: Problem, i: int, feature: Feature, origin: float, steps: float, shape: Shape
) -> list[MoveColumn]:
    low, high = feature.limits(origin)
    unit = steps or 1.0
    if steps:
        low = float(feature.at_least(low)) if np.isfinite(low) else low
        high = float(feature.at_most(high)) if np.isfinite(high) else high
    # exact for whole numbers; a decimal grid is whole after division, up to rounding
    low, high = ((low - origin) / unit, (high - origin) / unit)
    if steps:
        low, high = (np.rint(v) if np.isfinite(v) else v for v in (low, high))
    size = unit / feature.scale
    cost, nan = problem.cost, np.nan
    whole = bool(steps)
    square = cost.l2 * size * size if cost.l2 else 0.0  # of a tiny scale it is no number
    if not square <= GREATEST:
        raise ProblemError(
            f"a change of {feature.name!r} by {unit:g} costs more than {GREATEST:g}, squared, too much for a sum: give "
            f"it a larger scale than {feature.scale:g}, or fix it"
        )
    down = (cost.l1 * size * feature.weight_down, square * feature.weight_down)
    up = (cost.l1 * size * feature.weight_up, square * feature.weight_up)
    leaves = (cost.l0 * feature.weight_down, cost.l0 * feature.weight_up)
    if shape.cost is not None:
        down, up = (shape.cost.rate_down * unit, 0.0), (shape.cost.rate_up * unit, 0.0)
        leaves = (shape.cost.jump_down, shape.cost.jump_up)
    smooth = down == up and down[0] == 0 and leaves == (0.0, 0.0)
    if smooth and not shape.split and not shape.counted:
        return [MoveColumn(i, "delta", nan, unit, low, high, whole, 0.0, up[1])]
    columns = [
        MoveColumn(i, "up", nan, unit, max(0.0, low), max(0.0, high) if low <= high else -1.0, whole, *up),
        MoveColumn(i, "down", nan, -unit, max(0.0, -high), max(0.0, -low), whole, *down),
    ]
    if leaves != (0.0, 0.0) or shape.counted:
        room = max(abs(low), abs(high))
        if not np.isfinite(room):
            raise ProblemError(
                f"counting changes needs finite bounds, and feature {feature.name!r} has none: give it some, for "
                "example bounds = [0, 100], or permitted_range, or take a norm without l0"
            )
        for way, price in ((1.0, leaves[1]), (-1.0, leaves[0])):
            columns.append(MoveColumn(i, "moved", way, unit=room, lower=0.0, upper=1.0, integer=True, linear=price))
    return columns


def build_columns(problem: Problem, columns: MoveColumns, name: str) -> tuple[pyo.ConcreteModel, list[Any]]:
    """Model with the columns of a problem, what ties them to each other, and their cost; and the columns.

    Parameters
    ----------
    problem : Problem
    columns : MoveColumns
    name : str
        Of the model.
    """
    model = pyo.ConcreteModel(name=name)
    model.x = pyo.Var(range(columns.n))
    x = [model.x[j] for j in range(columns.n)]
    for j, variable in enumerate(x):
        variable.setlb(columns.lower[j])
        variable.setub(columns.upper[j])
        variable.domain = pyo.Integers if columns.integer[j] else pyo.Reals
    listed = np.unique(columns.feature[columns.role == "level"]).tolist()

    @model.Constraint(listed)
    def one_level(_: pyo.Block, i: int) -> Any:  # section 3.8
        return (1.0, linear([(1.0, x[j]) for j in columns.of(i).tolist()]), 1.0)

    binaries = np.flatnonzero(columns.role == "moved").tolist()

    @model.Constraint(binaries)
    def moves_if_opened(_: pyo.Block, j: int) -> Any:  # l0
        own = columns.of(int(columns.feature[j]))
        mover = own[columns.role[own] == ("up" if columns.value[j] > 0 else "down")][0]
        return (None, linear([(1.0, x[mover]), (-float(columns.unit[j]), x[j])]), 0.0)

    relations = relation_rows(problem, columns)

    @model.Constraint(range(len(relations)))
    def relation(_: pyo.Block, r: int) -> Any:  # c(x) = 0 and d(x) >= 0, section 3.7
        row, side = relations[r]
        return (
            (None, linear([(c, x[j]) for j, c in enumerate(row.tolist()) if c]), side)
            if row.any()
            else (pyo.Constraint.Feasible if side >= 0 else pyo.Constraint.Infeasible)
        )

    model.cost = pyo.Objective(expr=_cost(problem, columns, x))  # E(x; xbar), section 3.6
    return model, x


def relation_rows(problem: Problem, columns: MoveColumns) -> list[tuple[FloatArray, float]]:
    """Coefficients of the columns in each row of the problem's constraints, and its upper side.

    Parameters
    ----------
    problem : Problem
    columns : MoveColumns

    Returns
    -------
    list of ((n_cols,) float64, float)
    """
    out = []
    for relation in exact_rows(problem):
        row, side = np.zeros(columns.n), relation.limit  # exact: what holds without a change must hold by its sign
        for i, part in relation.parts.items():
            own = columns.of(i)
            feature, origin = problem.space.features[i], float(problem.origin[i])
            level = own[columns.role[own] == "level"]
            if len(level):
                row[level] = level_amounts(relation, i, columns.value[level])
                continue
            side -= part.of(origin)
            if not len(own):
                continue
            found = sides_of(part.of, part.cuts, origin, feature.limits(origin), grid_unit(feature))
            assert found is not None
            for j in own.tolist():
                role, up = columns.role[j], columns.value[j] > 0
                if role == "moved":
                    row[j] = found.jump_up if up else found.jump_down
                else:
                    rate = found.rate_down if role == "down" else found.rate_up
                    row[j] = rate * abs(columns.unit[j])
        out.append((row, float(side)))
    return out


def node_row(ensemble: Ensemble, v: int, columns: MoveColumns, origin: FloatArray) -> tuple[FloatArray, float]:
    """Coefficients of the columns in the total of an oblique node, (n_cols,), and the part that is constant.

    Parameters
    ----------
    ensemble : Ensemble
    v : int
        The node.
    columns : MoveColumns
    origin : (n_features,) float64
        Coded values of the row.
    """
    weight = np.zeros(len(origin))
    indicator: dict[tuple[int, float], float] = {}
    for i, code, w in zip(*(a.tolist() for a in ensemble.oblique_entries(v)), strict=True):
        if code < 0:
            weight[i] += w
        else:
            indicator[i, float(code)] = indicator.get((i, float(code)), 0.0) + w
    level = columns.role == "level"
    out = np.where(columns.is_number, weight[columns.feature] * columns.unit, 0.0)
    if level.any():
        out[level] = weight[columns.feature[level]] * columns.value[level]
        out[level] += [
            indicator.get(key, 0.0)
            for key in zip(columns.feature[level].tolist(), columns.value[level].tolist(), strict=True)
        ]
    numbers = np.unique(columns.feature[~level])
    return out, float(weight[numbers] @ origin[numbers])


def centred(columns: MoveColumns, rows: FloatArray, sides: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same rows and right-hand sides in smaller numbers: a listed feature has one of its values.

    What its values have in common is constant, then. Of a column around 30,000 HiGHS called a dearer point optimal.

    Parameters
    ----------
    columns : MoveColumns
    rows : (m, n_cols) float64
    sides : (m,) float64
    """
    rows, sides = rows.copy(), sides.copy()
    for i in np.unique(columns.feature[columns.role == "level"]).tolist():
        own = columns.of(i)
        least, most = rows[:, own].min(axis=1), rows[:, own].max(axis=1)
        middle = (least + most) / 2
        middle[np.abs(middle) <= most - least] = 0.0
        rows[:, own] -= middle[:, None]
        sides -= middle
    return rows, sides


def signed_parts(columns: MoveColumns, row: FloatArray) -> list[FloatArray]:
    """The weights that add to a row, and those that take from it, as positive numbers; none where columns have no sign.

    What a row comes to is at most what its positive weights make of the columns, and what it falls to likewise.

    Parameters
    ----------
    columns : MoveColumns
    row : (n_cols,) float64
    """
    return [] if (columns.role[row != 0] == "delta").any() else [np.maximum(row, 0.0), np.maximum(-row, 0.0)]


def _cost(problem: Problem, columns: MoveColumns, x: list[Any]) -> Any:
    """Linear costs, squares, and the pairs of the general quadratic distance (6)."""
    total = linear([(c, v) for c, v in zip(columns.linear.tolist(), x, strict=True) if c])
    squares = [(q, v) for q, v in zip(columns.square.tolist(), x, strict=True) if q]
    expression = total + sum(q * v * v for q, v in squares) if squares else total
    q = sp.triu(quadratic_form(problem)).tocoo()
    if q.nnz:
        moves = [columns.of(i) for i in range(len(problem.origin))]
        change = {
            i: sum(float(columns.unit[j]) * x[j] for j in moves[i] if columns.role[j] != "moved")
            for i in np.unique(np.concatenate([q.row, q.col])).tolist()
        }
        entries = zip(q.row.tolist(), q.col.tolist(), q.data.tolist(), strict=True)
        expression = expression + sum((1 if i == j else 2) * v * change[i] * change[j] for i, j, v in entries)
    return expression

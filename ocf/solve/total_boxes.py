"""What the box search needs of trees of hyperplanes: cells of numbers and totals, and how the changes add up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ocf.arrays import BoolArray, FloatArray, IntArray
from ocf.cells.cell_problem import CellProblem, cell_values
from ocf.cells.partition import Partition, partition
from ocf.cells.totals import nodes_of_totals, with_totals
from ocf.errors import ProblemError
from ocf.formulations.blocks.columns import MoveColumns
from ocf.formulations.blocks.value_cells import ends_within
from ocf.problem.requirements import Requirements
from ocf.solve.leaf_choices import LeafChoices
from ocf.solve.leaf_model import LeafModel
from ocf.solve.stand_in import STAND_IN
from ocf.solvers import SOLVERS, get_solver
from ocf.solvers.box.coupled_bounds import Coupling
from ocf.solvers.box.solver import as_result
from ocf.solvers.box.totals import TotalsSearch, couple_totals
from ocf.solvers.result import SolveResult, Status
from ocf.trees.ensemble import SplitKind

#: Leaves times features and totals, of which the tables of a search have a number each.
MOST_ENTRIES = 20_000_000

#: Values of a number on a grid that have a cell each.
MOST_VALUES = 1_000

#: Categories, and values of listed numbers, that hyperplanes may weigh.
MOST_LEVELS = 300


class TotalBoxes(NamedTuple):
    """A problem over cells of numbers and totals; see `ocf.solvers.box.totals.TotalsSearch`.

    Attributes
    ----------
    cells : CellProblem
    coupling : Coupling
    whole : (n,) int64
        Categories, listed numbers and numbers on a grid that hyperplanes weigh, each cell of which has one value.
    """

    cells: CellProblem
    coupling: Coupling
    whole: IntArray

    def values_at(self, x: IntArray) -> dict[int, float]:
        """Coded values of the whole features at a choice of cells.

        Parameters
        ----------
        x : (n_features,) int64
        """
        part = self.cells.partition  # cells end at the values
        return {i: float(part.upper[part.offsets[i] + x[i]]) for i in self.whole.tolist()}


def refusal(model: LeafModel, requirements: Requirements) -> str:
    """Why the box search is none for trees of hyperplanes, in words; empty when it is.

    Parameters
    ----------
    model : LeafModel
    requirements : Requirements
    """
    columns, tree, part = model.columns, model.tree, model.search.part
    weighed = [*model.matrix.planes, *(row for row, _ in model.relation_rows)]
    if model.form is not None:
        return "costs that couple columns where trees weigh several together"
    if (columns.role == "moved").any():
        return "what counts changes (the norm l0, MaxChanges), where trees weigh several columns together"
    if np.isin(columns.feature, model.listed).sum() > MOST_LEVELS:
        return "so many categories, or listed values, that trees or constraints weigh together with other columns"
    squares = _squares(columns)[columns.feature[model.weighed & columns.is_number]]
    if (squares > 0).any() and (squares == 0).any():
        return "squares of some of the changes that trees weigh together"
    if (columns.linear < 0).any():
        return "changes that are worth something, where trees weigh several columns together"
    if requirements.curve is not None or len(tree.lines):
        return "scores that follow a curve or a line, where trees weigh several columns together"
    if any(_weights(columns, row, part.n_features) is None for row, _ in model.relation_rows):
        return "constraints that weigh rises and falls in two ways"
    bounded = np.isfinite(columns.lower) & np.isfinite(columns.upper)
    if any(row[~bounded].any() for row in weighed):
        return "sums of numbers without bounds"
    if (np.isnan(model.origin) & (part.widths > 1)).any():
        return "splits of missing values, where trees weigh several columns together"
    if len(nodes_of_totals(tree)) < (tree.kind == SplitKind.OBLIQUE).sum():
        return "hyperplanes beyond all numbers"
    if tree.n_leaves * (part.n_features + len(model.matrix.planes)) > MOST_ENTRIES:
        return "so many hyperplanes"
    return ""


def boxes_of_totals(
    model: LeafModel, requirements: Requirements, columns: MoveColumns | None = None, live: BoolArray | None = None
) -> TotalBoxes | None:
    """The problem of one alternative of a target; None where it has no point.

    Parameters
    ----------
    model : LeafModel
        Not refused.
    requirements : Requirements
    columns : MoveColumns, optional
        Of the model, within narrower bounds.
    live : (n_leaves,) bool, optional
        Which leaves are of use.
    """
    columns = model.columns if columns is None else columns
    problem, values = model.problem, _listed(model, columns)
    own = partition(model.tree, problem.space, values) if values else model.search.part
    total = with_totals(own, every=True)
    part, n = total.partition, total.n_features
    value, cost = cell_values(problem, own)
    of_totals = np.zeros(part.n_cells - len(cost))
    value, cost = np.append(value, of_totals), np.append(cost, of_totals)
    opened = np.isfinite(cost)
    ends = {i: ends_within(problem, total, columns, i) for i in total.totals}
    rows = [*(end.row for end in ends.values()), *(row for row, _ in model.relation_rows)]
    forms = np.array([_weights(columns, row, n) for row in rows]).reshape(-1, n)
    features = np.flatnonzero(forms.any(axis=0))
    ends |= {i: ends_within(problem, total, columns, i) for i in features.tolist()}
    low, high = np.zeros((2, part.n_cells))
    for i, end in ends.items():
        span, least, most = part.cells_of(i), end.low[0], end.high[-1]
        opened[span] &= (end.low <= most) & (end.high >= least)
        low[span], high[span], cost[span] = np.clip(end.low, least, most), np.clip(end.high, least, most), 0.0
    level = _opened_columns(part, columns, model.listed, opened)
    cost[np.isin(part.cell_feature, model.listed)] = 0.0
    alive = part.reachable if live is None else live & part.reachable
    alive = alive & ~np.isin(np.arange(len(alive)), problem.dead)
    cells = CellProblem(problem, part, requirements, value, np.where(opened, cost, np.inf), opened, alive)
    if cells.infeasible:
        return None
    of_line, none = model.domain.prices, np.zeros(len(level))
    prices = (
        np.append(of_line.a_up[features], columns.linear[level]),
        np.append(of_line.a_down[features], none),
        np.append(_squares(columns)[features], none),
    )
    forms = np.hstack([forms[:, features], np.array([row[level] for row in rows]).reshape(len(rows), len(level))])
    limits = np.array([side for _, side in model.relation_rows])
    totals = np.array(total.totals, int)
    coupling = couple_totals(cells, features, model.listed, prices, forms, totals, (low, high), limits)
    return TotalBoxes(cells, coupling, np.array(sorted(values), np.int64))


def _opened_columns(part: Partition, columns: MoveColumns, levels: IntArray, opened: BoolArray) -> IntArray:
    """Columns of the open cells of features that have one for each value; closes cells that are no column's."""
    out = []
    for i in levels.tolist():
        span, own = part.cells_of(i), columns.of(i)
        own = own[columns.upper[own] > 0]
        at = dict(zip(columns.value[own].tolist(), own.tolist(), strict=True))
        opened[span] &= np.isin(part.upper[span], [*at])
        out += [at[value] for value in part.upper[span][opened[span]].tolist()]
    return np.array(out, np.int64)


def search_boxes(
    choices: LeafChoices,
    requirements: Requirements,
    columns: MoveColumns | None = None,
    live: BoolArray | None = None,
    *,
    alone: bool = False,
) -> SolveResult | None:
    """Look for something cheaper than the best choice of leaves, and keep it there; None where the search is refused.

    Parameters
    ----------
    choices : LeafChoices
    requirements, columns, live
        As in `boxes_of_totals`.
    alone : bool
        Whether no other solver goes on.

    Raises
    ------
    ProblemError
        It is refused, and alone.
    """
    model, run, solver = choices.query.model, choices.run, get_solver("box")
    refused, isolation = refusal(model, requirements), model.problem.plausibility
    # beside 60 trees of an extended isolation forest the bound after 10 s is a quarter lower than SCIP's
    better_by_others = isolation is not None and isolation.forest.is_oblique
    if refused and alone:
        raise ProblemError(f"the solver 'box' does not know {refused}: ask for 'auto', {' or '.join(SOLVERS)}")
    if refused or not (alone or (STAND_IN.coupled_in_time() and not better_by_others)):
        return None
    with run.timed("instance"):
        found = boxes_of_totals(model, requirements, columns, live)
    if found is None:
        return SolveResult(Status.INFEASIBLE, bound=np.inf, solver=solver.name, version=solver.version)
    left = run.seconds_left()
    if left is not None and left <= 0:
        return SolveResult(Status.UNKNOWN, solver=solver.name, version=solver.version)
    options = replace(choices.query.options, time_limit=left)

    def place(leaves: IntArray, x: IntArray, least: Callable[[], float]) -> tuple[float, float]:
        return choices.cost_at(tuple(leaves.tolist()), found.values_at(x), least), choices.upper

    search = TotalsSearch(found.cells, found.coupling, found.whole, options, choices.upper, place)
    return as_result(search.run(), solver.name, solver.version, options)


def _listed(model: LeafModel, columns: MoveColumns) -> dict[int, FloatArray]:
    """Values of features that hyperplanes weigh and that are listed, or on a grid of not many values, within bounds.

    A hyperplane leaves few whole numbers beside each other: between two cells of a total there may be none.
    """
    out = {}
    for i in model.whole.tolist():
        own = columns.of(i)
        ends = columns.unit[own] * np.array([columns.lower[own], columns.upper[own]])
        room = np.abs(columns.unit[own]).min() / 2
        low, high = (float(end) + model.origin[i] for end in (ends.min(axis=0).sum(), ends.max(axis=0).sum()))
        if (high - low) / room < 2 * MOST_VALUES:
            out[i] = model.problem.space.features[i].between(low - room, high + room)
    return out | {i: np.sort(columns.value[columns.of(i)]) for i in model.listed.tolist()}


def _squares(columns: MoveColumns) -> FloatArray:
    """What the square of a number's change costs at least, whether it rises or falls, (n_features,)."""
    out, used = np.full(columns.feature.max(initial=-1) + 1, np.inf), columns.is_number & (columns.unit != 0)
    np.minimum.at(out, columns.feature[used], columns.square[used] / columns.unit[used] ** 2)
    return out


def _weights(columns: MoveColumns, row: FloatArray, n_features: int) -> FloatArray | None:
    """What a row over columns weighs the changes by, (n_features,); None where a rise weighs otherwise than a fall."""
    out, used = np.zeros(n_features), columns.is_number & (columns.unit != 0)
    weight = np.divide(row, columns.unit, out=np.zeros(columns.n), where=used)
    out[columns.feature[used]] = weight[used]
    return out if (out[columns.feature[used]] == weight[used]).all() else None

"""A formulation compiled once, and cut down to each row's reduced problem.

Building and compiling a Pyomo model takes longer than most rows take to solve. One model of the whole ensemble serves
all rows with the same target: costs are set per row, and what the reduction has closed or killed is substituted out
of the matrix.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from ocf.arrays import IntArray
from ocf.cells.cell_problem import CellProblem
from ocf.formulations import get_formulation
from ocf.solvers.cell_form import Compiled
from ocf.solvers.standard_form import compile_model
from ocf.support.limits import check

#: Seconds that it takes at least to import Pyomo.
IMPORTING = 0.5

#: Seconds of compiling for a second of building, at least.
COMPILING = 0.1


def compile_formulation(name: str, cells: CellProblem, *, names: bool = False) -> Compiled:
    """Build a formulation in Pyomo and compile it.

    Parameters
    ----------
    name : str
        As in `ocf.formulations.FORMULATIONS`.
    cells : CellProblem
        Any row's; its costs, closed cells and dead leaves do not matter, its target does.
    names : bool
        Whether to keep the names of variables and constraints, which solving does without.
    """
    check(ahead=0.0 if "pyomo.environ" in sys.modules else IMPORTING)
    start = time.perf_counter()
    formulated = get_formulation(name)(cells)
    slides = None
    if cells.values is not None and cells.couples:
        from ocf.formulations.blocks.values import add_values

        slides = add_values(formulated.model, cells.values, formulated.leaves)
    built = time.perf_counter()
    columns = list(formulated.leaves)
    groups: list[tuple[IntArray, ...]] = []
    for parts in (formulated.steps, formulated.levels):
        spans = []
        for variables in parts:
            spans.append(np.arange(len(columns), len(columns) + len(variables)))
            columns += variables
        groups.append(tuple(spans))
    if slides is not None:
        columns += slides.variables
    check(ahead=COMPILING * (built - start))
    form = compile_model(formulated.model, columns, names=names)
    end = time.perf_counter()
    return Compiled(
        name,
        form,
        len(formulated.leaves),
        len(cells.requirements.need),
        groups[0],
        groups[1],
        built - start,
        end - built,
        slides,
    )

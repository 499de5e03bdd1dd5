"""Mathematical models of the counterfactual problem, one file for each paper.

Adding a formulation is one file with ``build(cells: CellProblem) -> Formulated`` and one line in `FORMULATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from ocf.errors import ProblemError
from ocf.words import nearest

if TYPE_CHECKING:
    from ocf.cells import CellProblem
    from ocf.formulations.base import Formulated

#: Name -> module that has `build`.
FORMULATIONS = {
    "interval": "ocf.formulations.interval",
    "ocean": "ocf.formulations.ocean",
    "oae": "ocf.formulations.oae",
    "fcca": "ocf.formulations.fcca",
}


def get_formulation(name: str) -> Callable[[CellProblem], Formulated]:
    """The `build` function of a formulation.

    Raises
    ------
    ProblemError
        Unknown name.
    """
    if name not in FORMULATIONS:
        raise ProblemError(f"unknown formulation {nearest(name, FORMULATIONS)}")
    build: Callable[[CellProblem], Formulated] = import_module(FORMULATIONS[name]).build
    return build

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
}

#: Name -> module whose `build` makes the model of one leaf of a single tree; see `ocf.leafwise`.
LEAF_FORMULATIONS = {
    "oblique": "ocf.formulations.oblique",
}

#: Instead of a name: "oblique" for a single tree with oblique splits or a cost of pairs, "interval" otherwise.
AUTO = "auto"


def check_formulation(name: str) -> None:
    """Refuse a name that is no formulation.

    Raises
    ------
    ProblemError
        Unknown name.
    """
    known = {AUTO: "", **FORMULATIONS, **LEAF_FORMULATIONS}
    if name not in known:
        raise ProblemError(f"unknown formulation {nearest(name, known)}")


def get_formulation(name: str) -> Callable[[CellProblem], Formulated]:
    """The `build` function of a formulation.

    Raises
    ------
    ProblemError
        Unknown name, or a formulation that has no model of the whole problem.
    """
    if name in LEAF_FORMULATIONS:
        raise ProblemError(f"the formulation {name!r} has a model for each leaf, not one of the whole problem")
    if name not in FORMULATIONS:
        raise ProblemError(f"unknown formulation {nearest(name, FORMULATIONS)}")
    build: Callable[[CellProblem], Formulated] = import_module(FORMULATIONS[name]).build
    return build

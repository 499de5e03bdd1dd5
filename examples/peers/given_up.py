"""Which methods are given up on which forests: what the limit stopped twice, it would stop on larger ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: First rows of a cell: a method that the limit stopped on all of them is given up.
TRIED = 2

#: A data set, and the trees and the depth of its forest.
Cell = tuple[str, int, int]


def cells_given_up(runs: Iterable[Mapping[str, Any]], cells: Iterable[Cell]) -> set[tuple[str, int, int, str]]:
    """Of some cells, those on which a method is given up, with its name.

    Parameters
    ----------
    runs : iterable of mapping
        Of any cells: ``data``, ``trees``, ``depth``, ``method``, ``position`` and ``status``.
    cells : iterable of tuple
        That are asked about.
    """
    by_method: dict[tuple[str, int, int, str], list[Mapping[str, Any]]] = {}
    for run in runs:
        by_method.setdefault((run["data"], run["trees"], run["depth"], run["method"]), []).append(run)
    beyond = [key for key, own in by_method.items() if _stopped(own)]
    return {
        (data, trees, depth, method)
        for data, trees, depth in cells
        for of, fewer, flatter, method in beyond
        if of == data and fewer <= trees and flatter <= depth
    }


def _stopped(runs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the limit stopped the first rows of a cell."""
    first = sorted(runs, key=lambda run: run["position"])[:TRIED]
    return len(first) == TRIED and all(run["status"] in {"time out", "memory out"} for run in first)

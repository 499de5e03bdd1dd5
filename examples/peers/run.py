"""Run the suite cell by cell, the small models first, so that it can be stopped and taken up again anywhere.

A method that the limit stopped on both of a cell's first two rows is given up on this cell, and on the larger forests
of the data set.

PEERS=~/peers python run.py results --rows 3
PEERS=~/peers python run.py results-2 --rows 3 --methods "oceanpy MaxSAT" "treecf exact"
PEERS=~/peers python run.py results-3 --rows 10 --kept kept/2026-11-30.jsonl   # what is kept is not run again
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from given_up import TRIED, Cell, cells_given_up
from page import kept_before

from ocf.compare import load_suite, run_suite
from ocf.compare.recipes import prepare
from ocf.compare.results import FILE, read
from ocf.compare.suite import Grid, part
from ocf.errors import DataError, ProblemError

HERE = Path(__file__).parent


def size(grid: Grid) -> int:
    """Leaves that the trees of a cell may have, at most."""
    return grid.recipe.trees * 2**grid.recipe.depth


def cell_of(grid: Grid) -> Cell:
    """The cell that a grid of one cell is.

    Parameters
    ----------
    grid : Grid
    """
    return grid.recipe.data_label, grid.recipe.trees, grid.recipe.depth


def hopeful(grid: Grid, methods: list[str], folder: Path, kept: list[dict[str, Any]]) -> list[str]:
    """Methods that the results so far do not give up on a cell.

    Parameters
    ----------
    grid : Grid
        Of one cell.
    methods : list of str
    folder : path
        Of the results.
    kept : list of dict
        Runs that were kept before.
    """
    runs = [*kept, *(read(folder).of("run") if (folder / FILE).exists() else ())]
    cell = cell_of(grid)
    hopeless = cells_given_up(runs, [cell])
    return [method for method in methods if (*cell, method) not in hopeless]


def still_to_run(
    grid: Grid, positions: Sequence[int], methods: Sequence[str], kept: list[dict[str, Any]]
) -> dict[tuple[int, ...], list[str]]:
    """Methods, by the rows of a cell that they were not kept of.

    Parameters
    ----------
    grid : Grid
        Of one cell.
    positions : sequence of int
        Of the rows that are asked for.
    methods : sequence of str
    kept : list of dict
        Runs that were kept before.
    """
    cell = cell_of(grid)
    known = {(run["method"], run["position"]) for run in kept if (run["data"], run["trees"], run["depth"]) == cell}
    found: dict[tuple[int, ...], list[str]] = {}
    for method in methods:
        left = tuple(position for position in positions if (method, position) not in known)
        found.setdefault(left, []).append(method)
    return {left: own for left, own in found.items() if left}


def main() -> None:
    """Read the command line, and run."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=Path, help="of the results")
    words.add_argument("--rows", type=int, default=10, help="of each cell")
    words.add_argument("--methods", nargs="*", help="some of the suite's; all by default")
    words.add_argument("--sizes", nargs="*", help="trees and depth of some cells, such as 100x5; all by default")
    words.add_argument("--kept", type=Path, help="results kept before, which are not run again")
    said = words.parse_args()
    kept = kept_before(said.kept)[0] if said.kept else []
    whole = load_suite(HERE / "suite.toml")
    suite = part(whole, methods=said.methods)
    for grid in sorted(suite.grids, key=size):
        if said.sizes and f"{grid.recipe.trees}x{grid.recipe.depth}" not in said.sizes:
            continue
        print(f"{grid.recipe.data_label}, {grid.recipe.model_label}", file=sys.stderr, flush=True)
        try:
            waiting = prepare(grid.recipe).waiting(grid.ask.target, said.rows)
            for rows in sorted({min(TRIED, said.rows), said.rows}):
                left = hopeful(grid, [method.name for method in suite.methods], said.folder, kept)
                for positions, methods in still_to_run(grid, waiting[:rows], left, kept).items():
                    some = replace(part(whole, methods=methods), grids=(replace(grid, rows=positions),))
                    run_suite(some, said.folder, command=" ".join(sys.argv))
        except (DataError, ProblemError) as error:  # no table, or no environment of a method
            print(error, file=sys.stderr)


if __name__ == "__main__":
    main()

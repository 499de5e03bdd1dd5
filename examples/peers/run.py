"""Run the suite cell by cell, the small models first, so that it can be stopped and taken up again anywhere.

PEERS=~/peers python run.py results --rows 3
PEERS=~/peers python run.py results-2 --rows 3 --methods "oceanpy MaxSAT" "treecf exact"
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from ocf.compare import load_suite, run_suite
from ocf.compare.suite import Grid, part
from ocf.errors import ProblemError

HERE = Path(__file__).parent


def size(grid: Grid) -> int:
    """Leaves that the trees of a cell may have, at most."""
    return grid.recipe.trees * 2**grid.recipe.depth


def main() -> None:
    """Read the command line, and run."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=Path, help="of the results")
    words.add_argument("--rows", type=int, default=10, help="of each cell")
    words.add_argument("--methods", nargs="*", help="some of the suite's; all by default")
    words.add_argument("--sizes", nargs="*", help="trees and depth of some cells, such as 100x5; all by default")
    said = words.parse_args()
    suite = part(load_suite(HERE / "suite.toml"), methods=said.methods)
    for grid in sorted(suite.grids, key=size):
        if said.sizes and f"{grid.recipe.trees}x{grid.recipe.depth}" not in said.sizes:
            continue
        print(f"{grid.recipe.data_label}, {grid.recipe.model_label}", file=sys.stderr, flush=True)
        try:
            run_suite(replace(suite, grids=(grid,)), said.folder, rows=said.rows, command=" ".join(sys.argv))
        except ProblemError as error:  # no row waits for the target, or the like
            print(error, file=sys.stderr)


if __name__ == "__main__":
    main()

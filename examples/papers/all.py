"""All experiments of the five papers, one after the other; each goes on where it was stopped.

python examples/papers/all.py --data DIR -o out --quick    # `make papers`: small models and few rows
python examples/papers/all.py --data DIR -o out            # the papers' sizes: days

Each experiment writes into a folder of its own in the output folder. One that fails does not keep the others from
running; the command then ends with an error that names it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runs import arguments, markdown, write

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Experiment:
    """One command.

    Attributes
    ----------
    name : str
        Of its folder in the output folder.
    script : str
        Below ``examples/papers``.
    options : tuple of str
        At the paper's size.
    quick : tuple of str or None
        In the place of `options` with ``--quick``; None where ``--quick`` makes it the same as another.
    needs_data : bool
        Whether it reads the papers' data sets.
    """

    name: str
    script: str
    options: tuple[str, ...] = ()
    quick: tuple[str, ...] | None = ()
    needs_data: bool = True


#: Table 4 by the model of the paper.
BY_OCEAN = ("--methods", "OCEAN", "--rows-by", "label", "--points", "all", "plausible", "--time-limit", "60")

EXPERIMENTS = (
    Experiment("box-credit", "box/credit.py"),
    Experiment("box-digits", "box/digits.py", needs_data=False),
    Experiment("box-houses", "box/houses.py"),
    Experiment("box-improvements", "box/improvements.py"),
    Experiment("fcca", "fcca/run.py", quick=("--sets", "boston", "--no-targets")),
    Experiment("fcca-solvers", "fcca/solvers.py"),
    Experiment("oblique-table1", "oblique/table1.py"),
    Experiment("oblique-table2", "oblique/tables23.py"),
    Experiment("oblique-table3", "oblique/tables23.py", ("--trees", "CART"), ("--trees", "CART")),
    Experiment("oblique-table6", "oblique/table6.py"),
    Experiment("oblique-figure4", "oblique/figure4.py"),
    Experiment("ocean-figure1", "ocean/figure1.py"),
    Experiment("ocean-figureF3", "ocean/figure1.py", ("--plausible",), None),
    Experiment("ocean-figure4", "ocean/figure4.py", needs_data=False),
    Experiment("ocean-figures23", "ocean/figures23.py", needs_data=False),
    Experiment("ocean-table3", "ocean/table3.py"),
    Experiment("ocean-tableA1-trees", "ocean/table3.py", ("--forests", "trees"), None),
    Experiment("ocean-tableA1-depths", "ocean/table3.py", ("--forests", "depths"), None),
    Experiment("ocean-table4", "ocean/table4.py"),
    Experiment("ocean-table4-ocean", "ocean/table4.py", BY_OCEAN, None),
    Experiment("ocean-tableA2", "ocean/table4.py", ("--depths", "5", "6", "7", "8"), None),
    Experiment("ocean-record", "ocean/record.py"),
    Experiment("rules", "rules/run.py", quick=("--sets", "compas", "--models", "RF", "--rows", "1")),
)


def run(experiment: Experiment, output: Path, data: str | None, quick: bool) -> tuple[str, float, float]:
    """Run one experiment; how it ended, and its seconds by the clock and of the processor.

    Parameters
    ----------
    experiment : Experiment
    output : Path
        Folder of all experiments.
    data : str or None
        Folder of the data sets.
    quick : bool
    """
    options = (*(experiment.quick or ()), "--quick") if quick else experiment.options
    words = [sys.executable, str(FOLDER / experiment.script), "-o", str(output / experiment.name), *options]
    around = os.environ | ({"OCF_DATA": data} if data else {})
    begin = time.monotonic(), _processor()
    done = subprocess.run(words, env=around, check=False)
    ended = "done" if done.returncode == 0 else f"failed ({done.returncode})"
    return ended, time.monotonic() - begin[0], _processor() - begin[1]


def _processor() -> float:
    """Seconds of the processor that all experiments so far took."""
    used = os.times()
    return used.children_user + used.children_system


def chosen(experiments: Sequence[Experiment], only: Sequence[str] | None, quick: bool) -> list[Experiment]:
    """Experiments to run: those that are named, or all that differ.

    Parameters
    ----------
    experiments : sequence of Experiment
    only : sequence of str or None
        Their names.
    quick : bool
    """
    return [e for e in experiments if (only is None or e.name in only) and not (quick and e.quick is None)]


def main() -> None:
    parser = arguments(__doc__.split("\n")[0], "small models and few rows")
    parser.add_argument("--only", nargs="+", choices=[e.name for e in EXPERIMENTS], help="experiments (default: all)")
    args = parser.parse_args()
    rows = []
    for experiment in chosen(EXPERIMENTS, args.only, args.quick):
        if experiment.needs_data and not args.data:
            rows.append([experiment.name, "left out: needs --data or OCF_DATA", "", ""])
            continue
        print(f"== {experiment.name}", file=sys.stderr, flush=True)
        ended, *seconds = run(experiment, args.output, args.data, args.quick)
        rows.append([experiment.name, ended, *(f"{s:.0f}" for s in seconds)])
        print("== " + ", ".join(rows[-1]), file=sys.stderr, flush=True)
    write(args.output, "experiments.md", markdown(rows, ["experiment", "ended", "seconds", "of the processor"]))
    if any(ended.startswith("failed") for _, ended, *_ in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()

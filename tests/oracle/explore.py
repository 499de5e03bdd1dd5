"""Play thousands of random instances, of every library and kind of target, and keep what fails.

From the folder of the tests::

    OMP_NUM_THREADS=1 python -m oracle.explore --instances 100 --seed 1

plays that many of each library. A problem that fails is written to ``--failures``; one whose cause has been found
belongs in ``oracle/past``.

    OMP_NUM_THREADS=1 python -m oracle.explore --tables --instances 5000 --seed 1

plays random tables, in all their dtypes and Pipelines, against brute force through the user's own Pipeline. What is
false is printed with how to see it again, and written to ``tables.txt`` in that folder.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from oracle.harness import Case, check_case, prepare
from oracle.instances import LIBRARIES, REGRESSORS, Spec, layouts_of
from oracle.table_check import play_table
from oracle.tables import THEMES, spread


def kind_of(case: Case) -> str:
    """Kind of the target in a word."""
    question = case.instance.question
    if case.instance.spec.library in REGRESSORS:
        return "interval"
    if question.get("probability") is not None:
        return "probability"
    return "class set" if isinstance(question["target"], list) else "class"


def play(library: str, n: int, rng: np.random.Generator, seen: Counter[tuple[str, str]]) -> list[str]:
    """Check random instances of a library; what failed."""
    failures = []
    layouts = layouts_of(library)
    for _ in range(n):
        spec = Spec(library, layouts[rng.integers(len(layouts))], int(rng.integers(2**32)))
        try:
            case = prepare(spec)
            seen[kind_of(case), check_case(case)] += 1
        except Exception as error:  # whatever it is, it is a finding
            failures.append(f"{tuple(spec)}: {type(error).__name__}: {error}")
            print(f"FAILED {failures[-1]}", flush=True)
    return failures


def play_tables(n: int, seed: int, themes: list[str], folder: Path) -> int:
    """Check random tables and print what came out; how many claims are false."""
    seen: Counter[tuple[str, str]] = Counter()
    false = 0
    begin = time.perf_counter()
    with (folder / "tables.txt").open("a") as file:
        for k, (theme, number) in enumerate(spread(n, seed, themes), 1):
            claim = play_table(theme, number, seen)
            if claim is not None:
                false += 1
                print(f"FALSE {claim}", flush=True)
                print(claim, file=file, flush=True)
            if k % 100 == 0:
                print(f"{k} tables, {false} false claims, {time.perf_counter() - begin:.0f} s", flush=True)
    for (theme, answer), count in sorted(seen.items()):
        print(f"{theme}, {answer}: {count}")
    print(f"{n} tables, {false} false claims")
    return false


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--instances", type=int, default=100, help="of each library, or of tables in all")
    parser.add_argument("--tables", action="store_true", help="play tables through Pipelines instead")
    parser.add_argument("--themes", nargs="+", default=list(THEMES), choices=list(THEMES), metavar="NAME")
    parser.add_argument("--libraries", nargs="+", default=[*LIBRARIES, *REGRESSORS], metavar="NAME")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--failures", default="oracle-failures", help="folder for problems that fail")
    args = parser.parse_args()
    Path(args.failures).mkdir(parents=True, exist_ok=True)
    os.environ["OCF_FAILURES"] = args.failures
    warnings.simplefilter("ignore")
    if args.tables:
        raise SystemExit(bool(play_tables(args.instances, args.seed, args.themes, Path(args.failures))))
    seen: Counter[tuple[str, str]] = Counter()
    failures, begin = [], time.perf_counter()
    for library in args.libraries:
        failures += play(library, args.instances, np.random.default_rng([args.seed, *map(ord, library)]), seen)
        print(f"{library}: {sum(seen.values())} played, {time.perf_counter() - begin:.0f} s", flush=True)
    for (kind, answer), count in sorted(seen.items()):
        print(f"{kind}, {answer}: {count}")
    print(f"{sum(seen.values())} instances agree, {len(failures)} do not")
    raise SystemExit(bool(failures))


if __name__ == "__main__":
    main()

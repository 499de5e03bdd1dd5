"""Attack every format of file that ocf reads with spoilt copies of good files.

From the folder of the tests::

    OMP_NUM_THREADS=1 python -m oracle.mutants --count 20000 --seed 1 --formats results xgboost-json

plays that many mutants of each format. They are read in processes of their own, each with limits on memory and on the
processor's time, and must be refused by an `OcfError` with a sentence, or be read as its own library reads it. What is
not so (a signal, a hang, another exception, the memory limit, a silent difference) is a finding: the file and a line
on what is wrong go to the folder of ``--findings``, grouped by kind; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from oracle.isolated import SOUND, Ending, run_in_turn
from oracle.mutant_formats import FORMATS, Format, Seed
from oracle.mutators import mutate

#: Most files that are kept of one kind of finding.
KEPT = 5

#: Mutants that are read by one process, which costs as much as reading ten; one that is a finding ends it.
TOGETHER = 20


@dataclass
class Tally:
    """What became of the mutants of a format.

    Attributes
    ----------
    refused, read : int
    findings : Counter of str
        By kind.
    examples : dict of str to str
        The first of each kind, in a line.
    """

    refused: int = 0
    read: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def count(self, ending: Ending) -> bool:
        """Count a mutant; whether all is well with it."""
        if ending.end == "done":
            self.read += 1
        elif ending.end == "refused":
            self.refused += 1
        else:
            self.findings[kind_of(ending)] += 1
        return ending.end in SOUND


def warm_up() -> None:
    """Import what the judges need, so that no child pays for it."""
    from ocf.cells.forms import to_alternatives
    from ocf.compare import frame, report, results, suite, tables
    from ocf.explain.explainer import Explainer

    del to_alternatives, frame, report, results, suite, tables, Explainer
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)


def read_here(form: Format, good: Seed) -> None:
    """Read a good file in this process, so that all children find what is imported and compiled at first use."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / form.name
        path.write_bytes(good.data)
        form.judge(path, good)


def read_mutants(form: Format, mutants: Sequence[tuple[Seed, bytes]]) -> list[Ending]:
    """Let the judge of a format read mutants of seeds, one after the other in a process of their own."""
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        calls = []
        for k, (seed, data) in enumerate(mutants):
            path = Path(folder) / str(k) / form.name
            path.parent.mkdir()
            path.write_bytes(data)
            calls.append(partial(form.judge, path, seed))
        return list(map(_with_sentence, run_in_turn(calls)))


def _with_sentence(ending: Ending) -> Ending:
    """A refusal without a sentence is a finding."""
    if ending.end == "refused" and len(ending.words.split()) < 4:
        return ending._replace(end="raised", words=f"no sentence: {ending.words!r}")
    return ending


def kind_of(ending: Ending) -> str:
    """Findings of one cause have one kind: how it ended, what was raised, and where."""
    words = ending.words if ending.end in ("signal", "hang") else ending.words.split(":")[0]
    if ending.words.startswith("Difference"):
        words = re.sub(r"\d+|'.*'", "N", ending.words)
    return " ".join(filter(None, [ending.end, words, ending.place and f"in {ending.place}"]))


def keep(folder: Path, name: str, kind: str, number: int, data: bytes, line: str) -> None:
    """Write a mutant and a line about it to the folder of its kind."""
    place = folder / name.split(".")[0] / re.sub(r"[^A-Za-z0-9_.-]+", "-", kind)[:100]
    place.mkdir(parents=True, exist_ok=True)
    if sum(1 for _ in place.glob("*.mutant*")) < KEPT:
        (place / f"{number}.mutant{Path(name).suffix}").write_bytes(data)
        with (place / "what.txt").open("a", encoding="utf-8") as file:
            file.write(f"{number}: {line}\n")


def processor() -> float:
    """Seconds of the processor that this process and its children have taken."""
    return sum(os.times()[:4])


def play(name: str, count: int, seed: int, folder: Path | None) -> Tally:
    """Play mutants of one format."""
    form, tally = FORMATS[name], Tally()
    with tempfile.TemporaryDirectory() as scratch:
        seeds = list(form.seeds(Path(scratch)))
    for good in seeds:
        read_here(form, good)
        (ending,) = read_mutants(form, [(good, good.data)])
        if ending.end != "done":
            raise SystemExit(f"{name}: the good file {good.name!r} itself is not read: {ending}")
    for begin in range(0, count, TOGETHER):
        numbers = range(begin, min(begin + TOGETHER, count))
        mutants = [_mutant(name, seeds[number % len(seeds)], [seed, number]) for number in numbers]
        endings = read_mutants(form, [(good, data) for good, data, _ in mutants])
        for number, (good, data, words), ending in zip(numbers, mutants, endings, strict=True):
            if not tally.count(ending):
                line = f"{good.name}, {words[:200]}: {ending.words}"
                tally.examples.setdefault(kind_of(ending), f"mutant {number} of {line}")
                if folder is not None:
                    keep(folder / name, form.name, kind_of(ending), number, data, line)
    return tally


def _mutant(name: str, good: Seed, numbers: list[int]) -> tuple[Seed, bytes, str]:
    """A spoilt copy of a good file of a format, and what was done to it."""
    rng = np.random.default_rng([*numbers, *map(ord, name)])
    return good, *mutate(rng, FORMATS[name].kind, good.data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=200, help="of each format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--formats", nargs="+", default=list(FORMATS), choices=list(FORMATS), metavar="NAME")
    parser.add_argument("--findings", type=Path, default=None, help="folder for mutants that are findings")
    parser.add_argument("--summary", type=Path, default=None, help="JSON file for the counts")
    args = parser.parse_args()
    warm_up()
    total, summary = 0, {}
    for name in args.formats:
        begin = processor()
        tally = play(name, args.count, args.seed, args.findings)
        found = tally.findings.total()
        total += found
        seconds = processor() - begin
        counts = f"{tally.refused} refused, {tally.read} read, {found} findings"
        print(f"{name}: {counts} ({seconds:.0f} s of the processor)", flush=True)
        for kind, times in tally.findings.most_common():
            print(f"  {times} × {kind}\n      {tally.examples[kind]}", flush=True)
        summary[name] = {"refused": tally.refused, "read": tally.read, "findings": tally.examples}
        if args.summary is not None:
            args.summary.write_text(json.dumps(summary), encoding="utf-8")
    print(f"{args.count * len(args.formats)} mutants, {total} findings")
    raise SystemExit(bool(total))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()

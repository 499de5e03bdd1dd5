"""What all papers' experiments share: options, tables, runs that resume, and one thread for every sum."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import sklearn.tree  # noqa: F401 (loads the libraries that are limited next)
from threadpoolctl import threadpool_limits

threadpool_limits(1)

#: A solver knows limits by the clock only: one that got less of the processor than this share of its limit, because the
#: machine had other work, is asked again, with as much more time by the clock, up to so many times the limit and so
#: often. What then still got less says nothing of the method and is not kept.
ENOUGH, MOST, ATTEMPTS = 0.9, 10.0, 3

T = TypeVar("T")


class Runs:
    """Results of an experiment: one JSON line a run; a run that is there is not made again.

    Parameters
    ----------
    folder : Path
        Made if it is not there; holds ``runs.jsonl``.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "runs.jsonl"
        text = self.path.read_text() if self.path.exists() else ""
        whole, _, cut = text.rpartition("\n")
        if cut:  # the last line of a run that was killed
            self.path.write_text(whole + "\n" * bool(whole))
        records = [json.loads(line) for line in whole.splitlines()]
        self._done: dict[str, dict[str, Any]] = {key(record["job"]): record["result"] for record in records}
        self._made = {key(record["job"]): record["on"] for record in records if "on" in record}
        self._days: set[str] = set()

    @property
    def days(self) -> str:
        """The first and the last day on which the results that were asked for or added were made."""
        return " to ".join(sorted({min(self._days), max(self._days)})) if self._days else "an unknown day"

    def get(self, job: Mapping[str, Any]) -> dict[str, Any] | None:
        """Result of a job, if it has one."""
        which = key(job)
        if which in self._made:
            self._days.add(self._made[which])
        return self._done.get(which)

    def add(self, job: Mapping[str, Any], result: dict[str, Any]) -> None:
        """Keep the result of a job."""
        today = date.today().isoformat()
        with self.path.open("a") as file:
            file.write(json.dumps({"job": job, "on": today, "result": result}) + "\n")
        self._days.add(today)
        self._done[key(job)] = result

    def made(self, job: Mapping[str, Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Result of a job, which is made and kept if it has none."""
        result = self.get(job)
        if result is None:
            result = make()
            self.add(job, result)
        return result


def by_processor(ask: Callable[[float], T], limit: float, ended: Callable[[T], bool]) -> tuple[T, float] | None:
    """Answer within a limit of the processor, and the seconds it took; None where the machine was too busy to say.

    Parameters
    ----------
    ask : callable
        Takes its limit in seconds by the clock.
    limit : float
        Seconds of the processor.
    ended : callable
        Whether an answer needed no more time than it got.
    """
    clock = limit
    for _ in range(ATTEMPTS):
        begin, clock_begin = time.process_time(), time.monotonic()
        answer = ask(clock)
        used, waited = time.process_time() - begin, time.monotonic() - clock_begin
        if ended(answer) or used >= ENOUGH * limit or waited < ENOUGH * clock:
            return answer, used
        clock = min(clock * limit / used, limit * MOST)
    return None


def key(job: Mapping[str, Any]) -> str:
    """The same text for the same job, whatever the order of its entries."""
    return json.dumps(job, sort_keys=True)


def markdown(rows: Sequence[Sequence[object]], header: Sequence[str]) -> str:
    """Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def arguments(description: str, quick: str) -> argparse.ArgumentParser:
    """Options that all experiments take.

    Parameters
    ----------
    description : str
    quick : str
        What the minute's version leaves out.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", default=os.environ.get("OCF_DATA") or None, help="folder of the papers' data sets")
    parser.add_argument("--quick", action="store_true", help=f"a minute's version: {quick}")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for runs and results; resumes from it")
    return parser


def command(words: Sequence[str]) -> str:
    """A script's command as a README has it: without the folders of this machine.

    Parameters
    ----------
    words : sequence of str
        The script and its options, as in `sys.argv`.
    """
    script, *options = words
    shown = ["python", "/".join(["examples", "papers", *Path(script).resolve().parts[-2:]])]
    skipped = False
    for word in options:
        hidden = word in ("-o", "--output", "--data") or word.startswith(("--output=", "--data="))
        if not (hidden or skipped):
            shown.append(word)
        skipped = hidden and "=" not in word
    return shlex.join(shown)


def publish(folder: Path, stem: str, kept: Runs | None, text: str, results: pd.DataFrame, limits: str) -> None:
    """Write a table with the date, the command and its limits above it, and its runs as a CSV file.

    Parameters
    ----------
    folder : Path
    stem : str
        Of the files: ``stem.md`` and ``stem.csv``, which `pandas.read_csv` reads with ``comment="#"``.
    kept : Runs or None
        That the table was made from; None where all of it was made now.
    text : str
        The table in Markdown.
    results : DataFrame
        One row a run.
    limits : str
        How many rows, and how long each might take.
    """
    days = date.today().isoformat() if kept is None else kept.days
    about = f"{days}, {command(sys.argv)}: {limits}"
    write(folder, f"{stem}.md", f"{about}\n\n{text}")
    with (folder / f"{stem}.csv").open("w") as file:
        file.write(f"# {about}\n")
        results.to_csv(file, index=False, float_format="%.6g")


def write(folder: Path, name: str, text: str) -> None:
    """Write a table and show it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    print(text)

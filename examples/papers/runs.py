"""What all papers' experiments share: options, tables, runs that resume, and one thread for every sum."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sklearn.tree  # noqa: F401 (loads the libraries that are limited next)
from threadpoolctl import threadpool_limits

threadpool_limits(1)


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

    def get(self, job: Mapping[str, Any]) -> dict[str, Any] | None:
        """Result of a job, if it has one."""
        return self._done.get(key(job))

    def add(self, job: Mapping[str, Any], result: dict[str, Any]) -> None:
        """Keep the result of a job."""
        with self.path.open("a") as file:
            file.write(json.dumps({"job": job, "result": result}) + "\n")
        self._done[key(job)] = result


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


def write(folder: Path, name: str, text: str) -> None:
    """Write a table and show it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    print(text)

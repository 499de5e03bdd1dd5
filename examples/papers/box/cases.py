"""What the experiments share: options, results that resume, words for values, and how a change is told."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1]))

import pandas as pd
import runs
from runs import Runs, markdown

from ocf import Explanation
from ocf.support.progress import ProgressBar


class Words:
    """Words for the values of a data set's features, from its JSON file.

    Parameters
    ----------
    name : str
    folder : str or None
        Of the data sets.
    """

    def __init__(self, name: str, folder: str | None) -> None:
        facts = json.loads((Path(folder or ".") / f"{name}.json").read_text())
        self.labels: dict[str, dict[str, str]] = {
            feature: fact["labels"] for feature, fact in facts["features"].items() if "labels" in fact
        }

    def of(self, feature: str, value: Any) -> str:
        """The label of a value, or the value."""
        if isinstance(value, str):
            return value
        text = f"{float(value):.4g}" if abs(value) < 1e5 else f"{float(value):.0f}"
        return self.labels.get(feature, {}).get(text, text)


def changes(explanation: Explanation) -> dict[str, list[Any]]:
    """Changed features with their old and new value, JSON-ready."""
    plain = json.loads(explanation.changes.to_json(orient="records", double_precision=15))
    return {change["feature"]: [change["from"], change["to"]] for change in plain}


def run_all(
    kept: Runs, jobs: Sequence[Mapping[str, Any]], run: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Results of all jobs, each made once and kept."""
    results = []
    with ProgressBar(len(jobs)) as bar:
        for job in jobs:
            result = kept.get(job)
            if result is None:
                result = run(job)
                kept.add(job, result)
            results.append({**job, **result})
            bar.advance(str(result["status"]))
    return results


def side_by_side(rows: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Markdown table of lines that each fill some columns; columns in the order in which they appear."""
    columns = list(dict.fromkeys(column for _, cells in rows for column in cells))
    return markdown([[name, *(cells.get(c, "") for c in columns)] for name, cells in rows], ["", *columns])


def arguments(description: str) -> argparse.ArgumentParser:
    """Options that all experiments take."""
    parser = runs.arguments(description, "fewer rows, smaller models")
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds per row")
    parser.add_argument("--threads", type=int, default=1, help="threads of the box search")
    return parser


def long_table(results: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> pd.DataFrame:
    """One line per change."""
    return pd.DataFrame(
        [
            {**{k: result[k] for k in keys}, "feature": feature, "from": before, "to": after}
            for result in results
            for feature, (before, after) in result["changes"].items()
        ]
    )

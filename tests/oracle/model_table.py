"""Every kind of model against brute force; ``python -m oracle.model_table`` tells of it.

What stands in ``docs/models.md`` is what was tried: "exact" where the answer was proven and brute force through the
user's own object found nothing better, and the words of the refusal elsewhere.
"""

from __future__ import annotations

import itertools
import re
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from oracle.model_cases import CLASS, LIBRARIES, RISK, ModelCase

from ocf import Explainer
from ocf.errors import OcfError

PAGE = Path(__file__).parents[2] / "docs" / "models.md"

_HEAD = """# Models

Each model is read by its class (`ocf.readers`), in its library's own arithmetic, and held against the library on both
sides of every threshold when an Explainer is built: a version of a library that computes otherwise is refused with the
feature and the value. This page is made by `python -m oracle.model_table`, in the folder `tests`, which fits a model of
each kind, asks for a counterfactual and holds the answer against brute force through the model itself.

*exact*: `optimal`, proven, and nothing better was found. A number leads to the words of a refusal below, which come
when the Explainer is built or before. What may stand in front of a model is on the page of transformers.
"""


@cache
def cases(library: str) -> dict[str, ModelCase]:
    """Cases of a library by their names."""
    return LIBRARIES[library]()


class NotExact(AssertionError):
    """An answer that brute force contradicts."""


def tried(case: ModelCase) -> str:
    """ "exact", or the words of the refusal.

    Raises
    ------
    NotExact
        The answer is not proven, or brute force finds a better one.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = case.fitted()
            explainer = Explainer(model, case.table)
        except OcfError as error:
            return " ".join(str(error).split())
        _check(case, model, explainer)
    return "exact"


def _check(case: ModelCase, model: Any, explainer: Explainer) -> None:
    shown = np.asarray(model.predict(case.table)).ravel()
    if case.asks == CLASS:
        target: Any = shown[np.argmax(shown != shown[0])].item()
        row, met = case.table.iloc[[0]], lambda said: said == target
    elif case.asks == RISK:
        bound = float(np.quantile(shown, 0.3, method="nearest"))
        target, row, met = (None, bound), case.table.iloc[[int(np.argmax(shown))]], lambda said: said <= bound
    else:
        bound = float(np.quantile(shown, 0.7, method="nearest"))
        target, row, met = (bound, None), case.table.iloc[[int(np.argmin(shown))]], lambda said: said >= bound
    answer = explainer.explain(row, target=target, norm="l0", progress=False)[0]
    if answer.status != "optimal" or not answer.verified:
        raise NotExact(f"{answer.status}: {answer.message or answer.checks}")
    grid = _grid(case.table, row, explainer)
    good = grid[met(np.asarray(model.predict(grid)).ravel())].astype(object)
    least = (good != row.iloc[0]).sum(axis=1).min()
    if answer.cost != least:
        raise NotExact(f"the answer costs {answer.cost}, brute force finds {least}")


def _grid(table: pd.DataFrame, row: pd.DataFrame, explainer: Explainer) -> pd.DataFrame:
    """All combinations of a row's and the table's values, and of numbers on both sides of thresholds."""
    values: list[Any] = []
    for j, name in enumerate(table.columns):
        own = table[name].unique()
        if table[name].dtype.kind == "f":
            cuts = explainer.prepared.ensemble.threshold[explainer.prepared.ensemble.feature == j]
            cuts = cuts[np.isfinite(cuts)]
            own = np.unique(np.r_[cuts, np.nextafter(cuts, np.inf), own if name == "colour" else own[:8], row[name]])
        values.append(own)
    return pd.DataFrame(itertools.product(*values), columns=table.columns)


def page(found: dict[tuple[str, str], str]) -> str:
    """The page, from what was tried of (library, case)."""
    notes: dict[str, int] = {}
    lines = [_HEAD, "| library | model | what is asked | |", "|---|---|---|---|"]
    for (library, name), words in found.items():
        said = words if words == "exact" else f"[{notes.setdefault(words, len(notes) + 1)}]"
        lines.append(f"| {library} | {name} | {cases(library)[name].asks} | {said} |")
    return "\n".join([*lines, "", *(f"{number}. {words}" for words, number in notes.items())]) + "\n"


def told() -> dict[tuple[str, str], str]:
    """What the page tells of each case."""
    text = PAGE.read_text(encoding="utf-8")
    words = dict(re.findall(r"^(\d+)\. (.*)$", text, re.M))
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {(row[0], row[1]): words.get(row[3].strip("[]"), row[3]) for row in rows[2:]}


def main() -> None:
    """Try all and write the page."""
    found = {}
    for library in LIBRARIES:
        for name, case in cases(library).items():
            found[library, name] = tried(case)
            print(f"{library} | {name}: {found[library, name][:100]}", file=sys.stderr, flush=True)
    PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()

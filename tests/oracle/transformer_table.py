"""Every transformer in front of every model, against brute force; ``python -m oracle.transformer_table`` tells of it.

What stands in ``docs/transformers.md`` is what was tried: "exact" where the answer was proven and brute force through
the user's own Pipeline found nothing better, and the words of the refusal elsewhere.
"""

from __future__ import annotations

import re
import sys
import warnings
from importlib import import_module
from pathlib import Path

from oracle.table_check import check_table
from oracle.transformer_cases import CASES, MODELS, Case

from ocf import Explainer
from ocf.errors import OcfError
from ocf.readers.transformers import READERS

PAGE = Path(__file__).parents[2] / "docs" / "transformers.md"

_HEAD = """# Transformers in front of a model

Each step of a Pipeline is read by its class (`ocf.readers.transformers`), and nothing is found out by trying. This page
is made by `python -m oracle.transformer_table`, in the folder `tests`, which fits every pair of a transformer and a
model, asks for a counterfactual and holds the answer against brute force through the Pipeline itself. The models stand
for the ways to compare: float32 with `<=` (scikit-learn's trees, and CatBoost's), float64 with `<=` (histograms and
LightGBM) and float32 with `<` (XGBoost).

*exact*: `optimal` or `infeasible`, proven, and nothing better was found. A number leads to the words of a refusal
below. *feasible* and *unknown*: next to some threshold rounding goes back and forth, as where a spline turns right at
it, so that nothing is proven, and the answer says so. A refusal of columns that mix features concerns trees that split
these columns. Splits of columns that add up others (PCA and its kin) are hyperplanes in the features, of which brute
force knows no cells: it tries points of a grid here, and the corners of the regions in
`tests/readers/transformers/test_mixtures.py`. Any other class is refused when the Explainer is built: *the step 'name'
(Class) is not read*. A number's 0 that a sparse matrix leaves out takes the way of missing values where the model is
XGBoost's, as it does there.
"""


#: What stands in a cell as it is.
STATED = ("exact", "feasible", "unknown")


def refusal(case: Case, model: str) -> str:
    """The words with which a Pipeline is refused; empty where it is read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            Explainer(case.fitted(MODELS[model]()), case.table, case.settings, monotone=case.monotone)
        except OcfError as error:
            return str(error)
    return ""


def tried(case: Case, model: str) -> str:
    """ "exact", or the words of the refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = check_table(case.asked(MODELS[model]()))
    if said.startswith("refused"):
        return refusal(case, model) or said
    return "exact" if said in ("optimal", "infeasible") else said


def told() -> dict[tuple[str, str], str]:
    """What the page tells of each pair of a transformer and a model."""
    text = PAGE.read_text(encoding="utf-8")
    words = dict(re.findall(r"^(\d+)\. (.*)$", text, re.M))
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    cells = {(row[0], model): cell for row in rows[2:] for model, cell in zip(rows[0][1:], row[1:], strict=True)}
    return {pair: words.get(cell.strip("[]"), cell) for pair, cell in cells.items()}


def plain(words: str) -> str:
    """A refusal from the name of the step on."""
    head, found, rest = words.partition("the step")
    return found + rest if head.startswith("model column") else words


def page(cells: dict[tuple[str, str], str]) -> str:
    """The page, from what was tried of (case, model)."""
    notes: dict[str, int] = {}
    lines = [_HEAD, f"| transformer | {' | '.join(MODELS)} |", "|---" * (len(MODELS) + 1) + "|"]
    for case in CASES:
        shown = []
        for model in MODELS:
            words = plain(cells[case, model])
            shown.append(words if words in STATED else f"[{notes.setdefault(words, len(notes) + 1)}]")
        lines.append(f"| {case} | {' | '.join(shown)} |")
    lines += ["", *(f"{number}. {words}" for words, number in notes.items()), "", "Classes that are read:", ""]
    for name in READERS:
        lines.append(f"- {', '.join(f'`{c}`' for c in import_module(name).CLASSES)}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Try all and write the page."""
    cells = {}
    for case in CASES:
        for model in MODELS:
            cells[case, model] = tried(CASES[case], model)
            print(f"{case} | {model}: {cells[case, model][:100]}", file=sys.stderr, flush=True)
    PAGE.write_text(page(cells), encoding="utf-8")


if __name__ == "__main__":
    main()

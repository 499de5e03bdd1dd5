"""The command ``ocf examples``: a model and a table to try the others on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ocf.cli.base import guarded
from ocf.errors import DataError
from ocf.support.optional import optional

if TYPE_CHECKING:
    import pandas as pd

PROBLEM = """\
# what an applicant may change, and what counts as a small change; every key: ocf init-problem, and the manual

[solve]
target = 1

[features.age]
kind = "integer"
actionability = "fixed"

[features.employed]
kind = "integer"
actionability = "increasing"

[features.late_payments]
kind = "integer"
actionability = "fixed"

[features.purpose]
kind = "categorical"
levels = ["business", "car", "education", "furniture"]
actionability = "fixed"

[features.income]
kind = "integer"
step = 100

[features.amount]
kind = "integer"
step = 100

[features.savings]
kind = "integer"
step = 100
weight = [1.0, 2.0]                # saving more is twice as dear as spending

[[constraints]]
kind = "max_changes"
most = 2
"""

SUITE = """\
name = "loans"
description = "Loans and a small forest, put to two methods"

[limits]
time = 20

[[instances]]
data = ["loans"]
model = ["random_forest"]
trees = 20
depth = 4
rows = 2
target = "desired"

[[methods]]
formulation = "interval"
solver = ["box", "highs"]
"""

#: More of it makes a loan more likely (1) or less (-1): few rows do not always teach that.
DIRECTIONS = {"income": 1, "employed": 1, "savings": 1, "open_credits": -1, "late_payments": -1, "amount": -1}


@guarded
def examples(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write; it is made if need be.")] = Path(),
    force: Annotated[bool, typer.Option("--force", metavar="", help="Write over files that exist.")] = False,
) -> None:
    """Write a model and a table of loans to FOLDER, to try the other commands on.

    The loans are generated, of no real person. Needs XGBoost and LightGBM, extras of ocf.
    """
    from ocf.compare.loans import SETTINGS, make_loans

    xgboost = optional("xgboost", "xgboost", "ocf examples")
    lightgbm = optional("lightgbm", "lightgbm", "ocf examples")
    _check_free(folder, force)
    train, applicants = make_loans(1000, seed=0), make_loans(400, seed=1)[list(SETTINGS)]
    rates = train.drop(columns="granted").select_dtypes("number")
    grants = xgboost.XGBClassifier(
        n_estimators=40, max_depth=4, learning_rate=0.2, enable_categorical=True, n_jobs=1,
        monotone_constraints=DIRECTIONS,
    ).fit(*_inputs(train.drop(columns="rate"), "granted"))  # fmt: skip
    rate = lightgbm.LGBMRegressor(n_estimators=40, max_depth=4, n_jobs=1, verbose=-1).fit(*_inputs(rates, "rate"))

    folder.mkdir(parents=True, exist_ok=True)
    refused = applicants[grants.predict(_with_categories(applicants)) == 0].head(50)
    train.drop(columns="rate").to_csv(folder / "train.csv", index=False)
    refused.to_csv(folder / "applicants.csv", index=False)
    refused[[c for c in refused if c in rates]].to_csv(folder / "rates.csv", index=False)
    grants.save_model(folder / "model.json")
    rate.booster_.save_model(folder / "rates.txt")
    (folder / "problem.toml").write_text(PROBLEM, encoding="utf-8")
    (folder / "suite.toml").write_text(SUITE, encoding="utf-8")
    for name, words in FILES.items():
        typer.echo(f"{folder / name}: {words}")


#: What is written, and what each file is.
FILES = {
    "train.csv": "1,000 loans, granted (1) or not (0)",
    "applicants.csv": "50 applications that model.json refuses",
    "model.json": "XGBoost, trained on train.csv: grants or refuses",
    "rates.csv": "the same applications, numbers alone",
    "rates.txt": "LightGBM: the rate of interest, in per cent",
    "problem.toml": "what may change, at which cost",
    "suite.toml": "a comparison of methods",
}


def _check_free(folder: Path, force: bool) -> None:
    """Refuse to write over files before anything is trained."""
    if folder.is_file():
        raise DataError(f"{folder} is a file: give a folder")
    there = [name for name in FILES if (folder / name).exists()]
    if there and not force:
        raise DataError(f"{folder / there[0]} exists: give another folder, or --force to write over it")


def _inputs(table: pd.DataFrame, target: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    return _with_categories(table.drop(columns=target)), table[target]


def _with_categories(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose columns of words are categories, as XGBoost wants them."""
    words = table.select_dtypes(exclude="number").columns
    return table.astype(dict.fromkeys(words, "category"))

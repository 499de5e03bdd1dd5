"""Options that several commands share, and what is loaded by them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ocf.cli.tables import parse_monotone, parse_options, read_imputations
from ocf.errors import ModelError, ProblemError
from ocf.models.tables import drop_columns, fit_columns, label_column, read_table, said_levels
from ocf.support.messages import listed

if TYPE_CHECKING:
    import pandas as pd

    from ocf.explain.explainer import Explainer
    from ocf.features.space import FeatureSpace
    from ocf.problem.problem_file import ProblemFile


# -- arguments and options that commands share -----------------------------------------------------------------
# Defaults stand in the help and not in the signature: an option that is not given leaves the problem file's alone.

RUN, OUT = "How to solve", "Output"

Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="XGBoost, LightGBM, CatBoost, ONNX or treelite file, skops, joblib or pickle."
    ),
]

Data = Annotated[Path, typer.Argument(metavar="DATA", help="Table: CSV (.csv, .csv.gz) or Parquet.")]

TrustPickle = Annotated[
    bool, typer.Option("--trust-pickle", metavar="", help="Load joblib and pickle, which can run any code.")
]

Drop = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Leave out a column; may be repeated.")]

Reference = Annotated[
    Path | None, typer.Option(metavar="TABLE", help="Training data: gives bounds, scales, categories; default DATA.")
]

ProblemToml = Annotated[
    Path | None, typer.Option("--problem", metavar="TOML", help="Problem file (ocf init-problem); flags override it.")
]

Target = Annotated[
    list[str] | None,
    typer.Option(metavar="CLASS", help="Class that is wanted; repeat it for any of several; default the opposite."),
]

Probability = Annotated[
    float | None, typer.Option(metavar="P", help="Least probability of the class; default: the model's decision.")
]

AtLeast = Annotated[
    float | None, typer.Option(metavar="VALUE", help="Of a regressor: least value that is wanted, and/or …")
]

AtMost = Annotated[float | None, typer.Option(metavar="VALUE", help="… the greatest.")]

ModelOutput = Annotated[
    str | None,
    typer.Option("--model-output", metavar="N", help="Which output of a model of several, counted from 0."),
]

Norm = Annotated[
    str | None,
    typer.Option(
        metavar="NORM",
        help="l0, l1 (default), l2 (squared), mahalanobis (squared), mahalanobis_l1, or a mix: l0=0.1,l1=1.",
    ),
]

Plausible = Annotated[
    str | None,
    typer.Option(
        "--plausibility",
        metavar="WISH",
        help="Keep to points that are no outliers to an isolation forest: on, or settings such as "
        "quantile=0.1,trees=50 (also depth, weight, required, samples, seed, forest=FILE).",
    ),
]

Label = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Column of true classes, no input: plausibility counts rows by it, not by the model."
    ),
]

Monotone = Annotated[
    list[str] | None,
    typer.Option(
        metavar="STEP=WORD",
        help="Your word that a function in the Pipeline is increasing or decreasing; may be repeated.",
    ),
]

Groups = Annotated[
    bool | None,
    typer.Option(
        "--groups/--no-groups",
        help="Whether indicator columns of one category (get_dummies) are recognised; default on.",
    ),
]

Imputations = Annotated[
    Path | None,
    typer.Option(
        metavar="TABLE",
        help="Completions of missing values: their columns, a row for each; a column row tells whose they are.",
    ),
]

Share = Annotated[
    float | None, typer.Option(metavar="SHARE", help="Least share of the completions that get the target; default all.")
]

Rows = Annotated[str | None, typer.Option(metavar="ROWS", help="Counted from 0: 3, 0:10 or 1,4,7; default all.")]

RowTimeLimit = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="For each row; default 60, inf for none.", rich_help_panel=RUN)
]

MemoryLimit = Annotated[
    str | None,
    typer.Option(metavar="AMOUNT", help="Such as 4GB; default 3/4 of what is free.", rich_help_panel=RUN),
]

Prepared = Annotated[
    Path | None,
    typer.Option(
        "--prepared",
        metavar="FILE",
        help="Keeps what is prepared for MODEL: made if it is not there, else read; needs --trust-pickle.",
    ),
]

ShowProgress = Annotated[
    bool | None, typer.Option(metavar="", help="Progress bar; default on a terminal.", rich_help_panel=OUT)
]

FORMULATION_HELP = "interval (default), or another of ocf solvers."

# -- from the command line to a question -------------------------------------------------------------------


def wanted(
    target: list[str] | None, probability: float | None, at_least: float | None, at_most: float | None
) -> dict[str, Any]:
    """Settings of the target, from the flags for it.

    Parameters
    ----------
    target : list of str or None
    probability : float or None
    at_least, at_most : float or None
    """
    from ocf.problem.problem_file import with_interval

    labels = target[0] if target and len(target) == 1 else target or None
    flags = {"target": labels, "at_least": at_least, "at_most": at_most, "probability": probability}
    return with_interval({key: value for key, value in flags.items() if value is not None})


def told(
    path: Path | None,
    flags: Mapping[str, Any],
    options: Sequence[str] = (),
    monotone: Sequence[str] = (),
    label: str | None = None,
    groups: bool | None = None,
    heeded: Collection[str] | None = None,
) -> ProblemFile:
    """What the problem file says, overridden by the flags that were given.

    Parameters
    ----------
    path : Path or None
        Of the problem file.
    flags : mapping of str to object
        Settings of `Explainer.explain`; None for those that were not given.
    options : sequence of str
        ``KEY=VALUE`` of the solver.
    monotone : sequence of str
        ``STEP=WORD``.
    label : str, optional
    groups : bool, optional
    heeded : collection of str, optional
        What the command heeds of a problem file, as in `ProblemFile.beyond`; by default everything.
    """
    from ocf.problem.problem_file import ProblemFile, read_problem_file

    said = ProblemFile() if path is None else read_problem_file(path)
    beyond = [] if heeded is None else said.beyond(heeded)
    if beyond:
        raise ProblemError(f"{path}: this command takes no heed of {listed(beyond)}: leave that out of the file")
    solve = said.solve | {key: value for key, value in flags.items() if value is not None}
    solve["options"] = said.solve.get("options", {}) | parse_options(options)
    _check_names(solve)
    return replace(
        said,
        solve=solve,
        monotone=said.monotone | parse_monotone(monotone),
        label=label or said.label,
        groups=said.groups if groups is None else groups,
    )


def with_files(settings: Mapping[str, Any], *, trust_pickle: bool) -> dict[str, Any]:
    """Settings of `Explainer.explain` with an isolation forest and completions in the place of their files.

    Parameters
    ----------
    settings : mapping
    trust_pickle : bool
    """
    from ocf.models.plausibility import Plausibility
    from ocf.models.rehearsal import rehearse
    from ocf.readers.files import load_model

    wish = settings.get("plausibility")
    if isinstance(wish, Mapping) and "forest" in wish:
        path = Path(wish["forest"])
        rehearse(path, trust_pickle=trust_pickle)
        wish = {**wish, "forest": load_model(path, trust_pickle=trust_pickle)}
    draws = settings.get("imputations")
    completions = {} if draws is None else {"imputations": read_imputations(Path(draws))}
    return {**settings, "plausibility": Plausibility.parse(wish), **completions}


def of_problem(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What of the settings makes the problem of a row."""
    from ocf.explain.question import OF_PROBLEM

    return {key: settings[key] for key in OF_PROBLEM if key in settings}


def _check_names(settings: Mapping[str, Any]) -> None:
    """Refuse an unknown norm, formulation or solver before a model is loaded."""
    from ocf.formulations import check_formulation
    from ocf.problem.costs import DISTANCES, Cost
    from ocf.solve.method import AUTO
    from ocf.solvers import get_solver

    norm = settings.get("norm", "l1")
    if norm not in DISTANCES:
        rest = {k: v for k, v in norm.items() if k not in DISTANCES} or "l1" if isinstance(norm, dict) else norm
        Cost.parse(rest)
    check_formulation(settings.get("formulation", "auto"))
    if settings.get("solver", AUTO) != AUTO:
        get_solver(settings["solver"])


def load(
    model_path: Path,
    data_path: Path,
    reference_path: Path | None,
    drop: list[str],
    said: ProblemFile,
    trust_pickle: bool,
    output: str | None = None,
    prepared: Path | None = None,
    *,
    itself: bool = False,
) -> tuple[Explainer, pd.DataFrame]:
    """The explainer, and the table of rows to ask it about.

    Parameters
    ----------
    model_path, data_path : Path
    reference_path : Path or None
        Data to infer features from; by default `data_path`.
    drop : sequence of str
        Columns to leave out.
    said : ProblemFile
        Settings of features, words on functions, the column of true classes, and codes.
    trust_pickle : bool
    output : str, optional
        Of a model that has several.
    prepared : Path, optional
        File that keeps the explainer: made if it is not there, else read.
    itself : bool
        Whether features are inferred from the very rows that are asked about.
    """
    from ocf.explain import saved
    from ocf.explain.explainer import Explainer
    from ocf.features.inference import infer_space
    from ocf.models.rehearsal import rehearse
    from ocf.models.user_model import as_user_model

    paths = [data_path] if reference_path is None else [data_path, reference_path]
    tables = drop_columns(map(read_table, paths), drop)
    *_, labelled = tables
    if said.label is not None:
        tables = [table.drop(columns=said.label, errors="ignore") for table in tables]
    described = [drop, replace(said, solve={}, constraints=()), output]
    made_of = {} if prepared is None else _made_of(model_path, paths[-1], described)
    if prepared is not None and prepared.exists():
        explainer = saved.load(Explainer, prepared, trust_pickle=trust_pickle, made_of=made_of)
        return explainer, fit_columns(tables[0], explainer.model, data_path, _levels(explainer.space))
    if prepared is not None and not trust_pickle:
        raise ModelError(f"{prepared} will hold a pickle, which is read with --trust-pickle only: say so now")
    rehearse(model_path, trust_pickle=trust_pickle)
    model = as_user_model(model_path, trust_pickle=trust_pickle, output=output)
    labels = None if said.label is None else label_column(labelled, said.label, paths[-1], model.classes)
    reference = fit_columns(tables[-1], model, paths[-1], said_levels(said.features))
    space = infer_space(reference, said.features, said.special_values, groups=said.groups is not False)
    if itself and space.reading is not None:
        space = replace(space, reading=replace(space.reading, asked=True))
    explainer = Explainer(
        model,
        data=reference,
        features=space,
        labels=labels,
        monotone=said.monotone,
        memory_limit=said.solve.get("memory_limit"),
    )
    if prepared is not None:
        saved.save(explainer, prepared, made_of)
    return explainer, fit_columns(tables[0], model, data_path, _levels(space))


def _levels(space: FeatureSpace) -> dict[str, Sequence[Any]]:
    return {feature.name: feature.levels for feature in space.features}


def _made_of(model: Path, table: Path, said: Sequence[Any]) -> dict[str, str]:
    """What an explainer is made of, in words, with a checksum of each."""
    from hashlib import file_digest

    from ocf.compare.keys import checksum

    found = {}
    for what, path in (("model", model), ("table of training data", table)):
        with path.open("rb") as file:
            found[what] = file_digest(file, "sha256").hexdigest()[:16]
    return found | {"description of the features": checksum(said)}

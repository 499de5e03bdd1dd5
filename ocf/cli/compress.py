"""The command ``ocf compress``."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ocf.cli.base import ExitCode, complain, deliver, guarded, writing
from ocf.cli.options import (
    OUT,
    RUN,
    Data,
    Drop,
    MemoryLimit,
    Model,
    ProblemToml,
    RowTimeLimit,
    ShowProgress,
    TrustPickle,
    told,
    with_files,
)
from ocf.cli.tables import check_output, parse_norm
from ocf.errors import DataError, ModelError
from ocf.models.tables import drop_columns, fit_columns, label_column, read_table
from ocf.support.interruption import sigterm_as_ctrl_c
from ocf.support.messages import listed

if TYPE_CHECKING:
    import pandas as pd

    from ocf.compression.discretizer import CounterfactualDiscretizer
    from ocf.models.user_model import UserModel
    from ocf.problem.problem_file import ProblemFile

COUNTERFACTUALS = "Counterfactuals"

#: What a problem file may say beside features.
HEEDED = (
    "norm", "features_to_vary", "plausibility", "constraints", "special_values", "groups", "formulation", "solver",
    "time_limit", "memory_limit", "n_jobs",
)  # fmt: skip


# long: most of it is the list of the command's options, which are its documentation too
@guarded
def compress(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Thresholds as .json.", rich_help_panel=OUT),
    ] = None,
    q: Annotated[
        float,
        typer.Option("--q", metavar="Q", min=0, max=1, help="Keep the more frequent thresholds: 0 all, 1 the top."),
    ] = 0.0,
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The true classes; default the one column that MODEL does not take."),
    ] = None,
    p0: Annotated[
        float,
        typer.Option(
            metavar="P", min=0, max=1, help="Least probability of a row's class.", rich_help_panel=COUNTERFACTUALS
        ),
    ] = 0.5,
    p1: Annotated[
        float,
        typer.Option(metavar="P", min=0, max=1, help="Largest probability.", rich_help_panel=COUNTERFACTUALS),
    ] = 1.0,
    norm: Annotated[
        str | None,
        typer.Option(
            metavar="NORM", help="Mix of l0, l1 and l2 (squared); default l0=0.1,l1=1.", rich_help_panel=COUNTERFACTUALS
        ),
    ] = None,
    merge: Annotated[
        float,
        typer.Option(
            metavar="PART", min=0, max=1, help="Merge thresholds within this part of the range (linear models)."
        ),
    ] = 0.0,
    drop: Drop = None,
    problem: ProblemToml = None,
    trust_pickle: TrustPickle = False,
    solver: Annotated[str | None, typer.Option(metavar="NAME", help="See ocf solvers.", rich_help_panel=RUN)] = None,
    formulation: Annotated[
        str | None, typer.Option(metavar="NAME", help="See ocf solvers.", rich_help_panel=RUN)
    ] = None,
    time_limit: RowTimeLimit = None,
    memory_limit: MemoryLimit = None,
    n_jobs: Annotated[
        int | None,
        typer.Option(metavar="N", help="Rows at the same time, -1: one per core; default 1.", rich_help_panel=RUN),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keeps finished rows: run again to go on.", rich_help_panel=RUN),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="HTML", help="Page with thresholds, rules and plots.", rich_help_panel=OUT)
    ] = None,
    progress: ShowProgress = None,
) -> None:
    """Compress the features of DATA to the thresholds that counterfactuals of MODEL cross.

    Prints the thresholds, and a small tree on them. Without true classes in DATA every row counts as classified
    correctly. In Python, ocf.ThresholdBinarizer.from_json(FILE).transform(table) applies the thresholds.
    """
    for path, suffixes in ((output, (".json",)), (report, (".html",))):
        if path is not None:
            check_output(path, suffixes, (model, data, problem, checkpoint))
    flags = {
        "norm": None if norm is None else parse_norm(norm), "formulation": formulation, "solver": solver,
        "time_limit": time_limit, "memory_limit": memory_limit, "n_jobs": n_jobs,
    }  # fmt: skip
    said = told(problem, flags, heeded=HEEDED)
    settings = with_files(said.settings, trust_pickle=trust_pickle)
    read = _load(model, trust_pickle)
    (table,) = drop_columns([read_table(data)], drop or [])
    if not read.classes:
        raise ModelError("the model is a regressor; compress needs a classifier")
    rows, classes = _rows(table, read, label, data)
    asked = {
        "p0": p0, "p1": p1, "Q": q, "merge": merge, "progress": progress, "checkpoint": checkpoint,
        **_asked(said, settings, read, rows),
    }  # fmt: skip
    discretizer = _fitted(read, rows, classes, asked)
    _show(discretizer, rows, classes)
    delivered = output is None or deliver(discretizer.to_json() + "\n", output)
    if report is not None:
        from ocf.compression.report import to_page

        with writing(report):
            to_page(discretizer, rows, classes, report)
    if not delivered:
        raise typer.Exit(ExitCode.USAGE)


def _load(path: Path, trust_pickle: bool) -> UserModel:
    from ocf.models.additive import as_linear_model, is_linear
    from ocf.models.rehearsal import rehearse
    from ocf.models.user_model import as_user_model
    from ocf.readers.files import load_model

    rehearse(path, trust_pickle=trust_pickle)
    native = load_model(path, trust_pickle=trust_pickle)
    if is_linear(native):
        return as_linear_model(native)
    return as_user_model(native)


def _rows(table: pd.DataFrame, model: UserModel, label: str | None, path: Path) -> tuple[pd.DataFrame, Any]:
    """The model's columns, and the classes: of the label column, or the model's own without one."""
    from ocf.models.labels import as_classes, class_array

    if label is None:
        extra = _extra_columns(table, model)
        if len(extra) > 1:
            raise DataError(
                f"{path} has columns that the model does not take: {listed(extra)}; say which holds the classes with "
                "--label COLUMN, and leave out the others with --drop COLUMN"
            )
        label = extra[0] if extra else None
    if label is None:
        typer.echo("no column of true classes: every row counts as classified correctly", err=True)
        rows = fit_columns(table, model, path)
        return rows, class_array(model.classes)[model.decide(rows)]
    given = as_classes(label_column(table, label, path, model.classes), model.classes, f"column {label!r}")
    if None in given:
        raise DataError(f"column {label!r}: row {given.index(None)} has no class; leave such rows out, or fill them in")
    return fit_columns(table.drop(columns=label), model, path), class_array(given)


def _extra_columns(table: pd.DataFrame, model: UserModel) -> list[str]:
    """Columns that the model does not take; the last ones where it knows no names."""
    if model.columns is not None:
        return [c for c in table.columns if c not in model.columns]
    width = getattr(model.native, "n_features_in_", None) or len(model.trees.feature_names)
    return list(table.columns[int(width) :])


def _asked(said: ProblemFile, settings: dict[str, Any], model: UserModel, rows: pd.DataFrame) -> dict[str, Any]:
    """What the problem file and the flags say of features, of counterfactuals and of the search for them."""
    from ocf.explain.data_tables import space_of_table
    from ocf.explain.question import Question
    from ocf.problem.costs import Cost

    space = space_of_table(model, rows, said.features, said.special_values, groups=said.groups is True)
    vary = Question(features_to_vary=settings.pop("features_to_vary", "all"))
    cost = Cost.parse(settings.pop("norm", {"l0": 0.1, "l1": 1.0}))
    if settings.get("time_limit") == math.inf:
        settings["time_limit"] = None
    del settings["options"]  # of solvers; a problem file's are refused
    lambdas = {"lambda0": cost.l0, "lambda1": cost.l1, "lambda2": cost.l2}
    return {"features": vary.space_of(space), **lambdas, **settings}


def _fitted(model: UserModel, rows: pd.DataFrame, classes: Any, settings: dict[str, Any]) -> CounterfactualDiscretizer:
    from ocf.compression.discretizer import CounterfactualDiscretizer

    try:
        with sigterm_as_ctrl_c():
            return CounterfactualDiscretizer(model.native, prefit=True, **settings).fit(rows, classes)
    except KeyboardInterrupt:
        kept = settings["checkpoint"]
        complain(
            f"interrupted; finished rows are kept in {kept}, run the same command to go on"
            if kept
            else "interrupted; with --checkpoint FILE finished rows are kept"
        )
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _show(discretizer: CounterfactualDiscretizer, rows: pd.DataFrame, classes: Any) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from ocf.compression.surrogate import SurrogateTree

    facts = discretizer.metrics(rows, classes)
    searches = ", ".join(f"{n} {status}" for status, n in discretizer.statuses_.items()) or "none"
    console = Console()
    console.print(
        f"{len(rows)} rows, {len(discretizer.rows_)} counterfactuals ({searches})\n"
        f"{facts['thresholds']} thresholds on {facts['features']} of {len(discretizer.space_)} features, "
        f"of {len(discretizer.thresholds_)} found\n"
        f"compression {facts['compression']:.1%}, inconsistency {facts['inconsistency']:.1%}\n",
        highlight=False,
    )
    table = Table("threshold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("counterfactuals", justify="right")
    kept = discretizer.thresholds_.query("kept").sort_values("multiplicity", ascending=False, kind="stable")
    for name, count in kept[["name", "multiplicity"]].head(20).itertuples(index=False):
        table.add_row(escape(name), str(count))
    if len(kept) > 20:
        table.caption = f"and {len(kept) - 20} more"
    console.print(table)
    tree = SurrogateTree(discretizer).fit(rows, classes)
    accuracy = float((tree.predict(rows) == classes).mean())
    console.print(f"Tree of depth 3 on these thresholds, right on {accuracy:.1%} of the rows:", highlight=False)
    console.print(str(tree), markup=False, highlight=False, soft_wrap=True)

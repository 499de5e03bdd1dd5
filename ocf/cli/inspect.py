"""Commands that look at models, data and results: ``inspect``, ``init-problem``, ``verify`` and ``solvers``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ocf.cli.base import ExitCode, guarded
from ocf.cli.options import Data, Drop, Groups, Model, ModelOutput, ShowProgress, TrustPickle
from ocf.cli.tables import check_output
from ocf.errors import DataError

if TYPE_CHECKING:
    from rich.table import Table

    from ocf.features.space import FeatureSpace
    from ocf.models.user_model import UserModel
    from ocf.trees.ensemble import Ensemble


@guarded
def inspect(
    model: Model,
    top: Annotated[int, typer.Option(metavar="N", min=0, help="Features to list, those with most thresholds.")] = 10,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="TABLE", help="Show how this table is read as well.")
    ] = None,
    features_to: Annotated[
        Path | None,
        typer.Option("--features-to", metavar="TOML", help="Write the features of TABLE to a problem file to edit."),
    ] = None,
    drop: Drop = None,
    groups: Groups = None,
    trust_pickle: TrustPickle = False,
    model_output: ModelOutput = None,
) -> None:
    """Show what a model file holds, and how ocf reads the table that goes with it."""
    from rich.console import Console

    from ocf.models.rehearsal import rehearse
    from ocf.models.user_model import as_user_model

    if features_to is not None:
        if data is None:
            raise DataError("--features-to writes the features of a table: name that with --data")
        check_output(features_to, (".toml",))
        if features_to.exists():
            raise DataError(f"{features_to} is there already: remove it to have it anew")
    rehearse(model, trust_pickle=trust_pickle)
    read = as_user_model(model, trust_pickle=trust_pickle, output=model_output)
    console = Console()
    console.print(_facts(read))
    if top > 0:
        console.print()
        console.print(_thresholds(read.trees.ensemble, top))
    if data is not None:
        space = _space_of(read, data, drop, groups)
        typer.echo(f"\n{data}: {space}")
        if features_to is not None:
            from ocf.problem.problem_template import write_problem_file

            features_to.write_text(write_problem_file(space, read.trees.ensemble.decision.classes), encoding="utf-8")


@guarded
def init_problem(
    model: Model,
    data: Data,
    drop: Drop = None,
    groups: Groups = None,
    trust_pickle: TrustPickle = False,
    model_output: ModelOutput = None,
) -> None:
    """Print a problem file with the features inferred from DATA, to be edited.

    For example: ocf init-problem model.skops train.csv > problem.toml
    """
    from ocf.models.rehearsal import rehearse
    from ocf.models.user_model import as_user_model
    from ocf.problem.problem_template import write_problem_file

    rehearse(model, trust_pickle=trust_pickle)
    read = as_user_model(model, trust_pickle=trust_pickle, output=model_output)
    space = _space_of(read, data, drop, groups)
    typer.echo(write_problem_file(space, read.trees.ensemble.decision.classes), nl=False)


def _space_of(model: UserModel, path: Path, drop: list[str] | None, groups: bool | None) -> FeatureSpace:
    """The features of a table in a file, as `ocf.Explainer` reads them."""
    from ocf.features.inference import infer_space
    from ocf.models.tables import drop_columns, fit_columns, read_table

    (table,) = drop_columns([read_table(path)], drop or [])
    return infer_space(fit_columns(table, model, path), groups=groups is not False)


@guarded
def verify(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="JSON that ocf solve -o wrote.")],
    model: Annotated[Path, typer.Option("--model", "-m", metavar="MODEL", help="The model file that was explained.")],
    forest: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Isolation forest that was asked for: depths are counted again too."),
    ] = None,
    trust_pickle: TrustPickle = False,
    model_output: ModelOutput = None,
    progress: ShowProgress = None,
) -> None:
    """Check results once more: the model predicts again, costs and constraints are computed from raw values.

    Exit code 0 when every row has an answer and everything holds, 6 when something does not, 5 when all answers hold,
    but some rows have none, because they failed, were interrupted or reached a limit, or there are no rows.
    """
    from collections import Counter

    from ocf.explain.explanation import Explanations
    from ocf.models.rehearsal import rehearse
    from ocf.models.user_model import as_user_model
    from ocf.verify.files import verify_file

    rehearse(*(path for path in (model, forest) if path is not None), trust_pickle=trust_pickle)
    user_model = as_user_model(model, trust_pickle=trust_pickle, output=model_output)
    recount = None
    if forest is not None:
        from ocf.models.detector import recounter
        from ocf.readers.files import load_model

        recount = recounter(load_model(forest, trust_pickle=trust_pickle), user_model)
    found = verify_file(results, user_model, recount, progress=progress)
    if all(check.ok for _, check in found):
        Explanations.from_json(results)  # what cannot be read again is refused
    failed = [(row, check) for row, check in found if not check.ok]
    for row, check in failed:
        typer.echo(f"row {row}: {' '.join(check.problems)}")
    open_rows = Counter(check.status for _, check in found if check.ok and not check.answered)
    hold = len(found) - len(failed) - open_rows.total()
    said = ", ".join(f"{n} {status}" for status, n in open_rows.most_common())
    without = f", {open_rows.total()} without an answer ({said})" if said else ""
    typer.echo(f"{len(found)} rows checked: {hold} hold, {len(failed)} do not{without}")
    if len(failed) > 1 and len(failed) == len(found):
        typer.echo(f"none holds: is {model} the model that was explained?")
    raise typer.Exit(ExitCode.UNVERIFIED if failed else ExitCode.UNKNOWN if said or not found else ExitCode.SOLVED)


@guarded
def solvers() -> None:
    """List the formulations, and the solvers that can be used here."""
    from importlib import import_module

    from rich.console import Console
    from rich.markup import escape

    from ocf.formulations import FORMULATIONS
    from ocf.solvers import available

    console = Console()
    table = _table("formulation", "what it is")
    for name, module in FORMULATIONS.items():
        title = (import_module(module).__doc__ or "").strip().splitlines() or [""]
        table.add_row(name, escape(title[0]))
    console.print(table)
    table = _table("solver", "usable here")
    for name, usable in available().items():
        table.add_row(name, "yes" if usable else escape(usable.reason))
    console.print(table)


# -- tables ------------------------------------------------------------------------------------------------


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column)
    return table


def _facts(model: UserModel) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    ensemble = model.trees.ensemble
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in {
        "model": _kind(model.native),
        "library": model.trees.library,
        "trees": f"{ensemble.n_trees:,}",
        "nodes": f"{len(ensemble.kind):,}, of which {ensemble.n_leaves:,} are leaves",
        "depth": f"{int(ensemble.depth.max())}",
        "features": _features(model),
        "categories": _categories(model),
        "classes": ", ".join(map(str, ensemble.decision.classes)) or "none: a regressor",
        "decision": _decision(ensemble),
        "missing values": "refused: the model has no rule for them"
        if ensemble.missing_left is None
        else "each split sends them left or right",
        "arithmetic": f"scores are summed in {ensemble.precision}",
        "size for ocf": _size(ensemble),
    }.items():
        if value:
            table.add_row(name, escape(value))
    return table


def _categories(model: UserModel) -> str:
    """What is to be said of columns whose categories the file does not name; empty if there are none."""
    from ocf.support.messages import listed

    unnamed = model.trees.nameless
    if not unnamed:
        return ""
    return f"those of {listed(unnamed)} are named by a table only; the trees are shown for one that is in none"


def _kind(native: Any) -> str:
    steps = getattr(native, "steps", None)
    if steps:
        return f"{type(native).__name__}: {' → '.join(type(step).__name__ for _, step in steps)}"
    return type(native).__name__


def _features(model: UserModel) -> str:
    from ocf.support.messages import listed

    count = model.trees.ensemble.n_features
    if model.columns is None:
        return f"{count}; the model does not know their names"
    encoded = f" (encoded as {count})" if len(model.columns) != count else ""
    return f"{len(model.columns)}{encoded}: {listed(model.columns)}"


def _size(ensemble: Ensemble) -> str:
    from ocf.solve.size import size_of

    size = size_of(ensemble)
    said = f"{sum(size.thresholds):,} thresholds, about {size.memory / 1e9:.1f} GB of memory"
    if size.with_boxes > size.memory:
        said += f" (with own costs, plausibility or boxes around answers {size.with_boxes / 1e9:.1f} GB)"
    return said


def _decision(ensemble: Ensemble) -> str:
    rule = ensemble.decision
    if rule.final is not None:
        return f"what {rule.final.trees.n_trees} trees say that are given {len(rule.final.inputs)} of its scores"
    if rule.margin is not None:
        sign = "≥" if rule.tie_is_positive else ">"
        return f"{rule.classes[1]} when what the model makes of its members' scores is {sign} {rule.threshold:g}"
    if rule.totals and rule.kind == "value":
        return "the value is what the model makes of its members' scores"
    if rule.kind == "argmax":
        return "class of the largest score, the first of them on a tie"
    if rule.kind == "threshold":
        sign = "≥" if rule.tie_is_positive else ">"
        return f"{rule.classes[1]} when the score is {sign} {rule.threshold:g}, else {rule.classes[0]}"
    return "the score is the value"


def _thresholds(ensemble: Ensemble, top: int) -> Table:
    """Features by how finely the trees cut them."""
    import numpy as np
    from rich.markup import escape

    from ocf.trees.ensemble import SplitKind

    table = _table("feature", "splits", "thresholds", "lowest", "highest")
    for column in table.columns[1:]:
        column.justify = "right"
    axis = ensemble.kind == SplitKind.AXIS
    splits = np.bincount(ensemble.feature[ensemble.feature >= 0], minlength=ensemble.n_features)
    cuts = [np.unique(ensemble.threshold[axis & (ensemble.feature == j)]) for j in range(ensemble.n_features)]
    order = sorted(range(ensemble.n_features), key=lambda j: (-len(cuts[j]), -splits[j], j))
    used = [j for j in order if splits[j]]
    for j in used[:top]:
        ends = [f"{cuts[j][k]:g}" for k in (0, -1)] if len(cuts[j]) else ["by level", ""]
        table.add_row(escape(ensemble.feature_names[j]), f"{splits[j]:,}", f"{len(cuts[j]):,}", *ends)
    table.caption = f"{len(used)} of {ensemble.n_features} features are used" + (
        f"; the {top} with most thresholds are shown" if len(used) > top else ""
    )
    return table

"""The command ``ocf regions``."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ocf.cli import options
from ocf.cli.base import ExitCode, deliver, guarded, writing
from ocf.cli.flags import in_flags
from ocf.cli.tables import check_output, parse_norm, parse_rows
from ocf.errors import DataError
from ocf.support.interruption import sigterm_as_ctrl_c
from ocf.support.messages import counted
from ocf.support.optional import optional

if TYPE_CHECKING:
    import pandas as pd

    from ocf.explain.explainer import Explainer
    from ocf.explain.regions import Regions

EXIT_CODES = """\
[bold]Exit codes[/]
  [cyan]0[/]  these are all the regions within the radius
  [cyan]1[/]  internal error
  [cyan]2[/]  usage, model or data error
  [cyan]3[/]  there is none
  [cyan]4[/]  a limit cut the list off; stderr says up to which cost it is complete
[cyan]130[/]  interrupted; what was found until then is listed
"""


# long: most of it is the list of the command's options, which are its documentation too
@guarded
def regions(
    model: options.Model,
    data: options.Data,
    radius: Annotated[float, typer.Option(metavar="COST", min=0.0, help="List regions that this cost reaches.")],
    row: Annotated[int, typer.Option(metavar="ROW", help="Row, counted from 0; -1 is the last.")] = 0,
    target: options.Target = None,
    probability: options.Probability = None,
    at_least: options.AtLeast = None,
    at_most: options.AtMost = None,
    problem: options.ProblemToml = None,
    norm: options.Norm = None,
    drop: options.Drop = None,
    reference: options.Reference = None,
    monotone: options.Monotone = None,
    groups: options.Groups = None,
    trust_pickle: options.TrustPickle = False,
    prepared: options.Prepared = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Most regions to list.")] = 1000,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="List what is found until then.")] = None,
    memory_limit: options.MemoryLimit = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help=".csv or .json; default CSV to stdout."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw them over two features: .png, .svg or .pdf.")
    ] = None,
    axes: Annotated[
        str | None, typer.Option(metavar="X,Y", help="Features of the plot; default those that vary most.")
    ] = None,
    held: Annotated[
        bool, typer.Option("--held", metavar="", help="Plot with the other features at the row's values.")
    ] = False,
) -> None:
    """List all boxes around a row of DATA in which the model gives the TARGET.

    Each line is a box: NAME_lowest and NAME_highest of a numeric feature, both inclusive, and the levels of others.
    """
    for path, suffixes in ((output, (".csv", ".json")), (plot, (".png", ".svg", ".pdf"))):
        if path is not None:
            check_output(path, suffixes, (model, data, problem, reference, prepared))
    from ocf.explain.regions import INTERRUPTION

    x, y = _axes(axes)
    flags = {
        **options.wanted(target, probability, at_least, at_most),
        "norm": None if norm is None else parse_norm(norm),
        "time_limit": time_limit,
        "memory_limit": memory_limit,
    }
    said = options.told(problem, flags, monotone=monotone or [], groups=groups, heeded=_heeded())
    settings = options.with_files(said.settings, trust_pickle=trust_pickle)
    explainer, table = options.load(model, data, reference, drop or [], said, trust_pickle, prepared=prepared)
    (place,) = parse_rows(str(row), len(table), "--row")
    found = explainer.counterfactual_regions(
        table.iloc[[place]],
        **options.of_problem(settings),
        radius=radius,
        limit=limit,
        time_limit=settings.get("time_limit"),
        memory_limit=settings.get("memory_limit"),
    )
    try:
        with sigterm_as_ctrl_c():
            len(found)
    except KeyboardInterrupt:
        found.stop()
    delivered = deliver(_text(found.to_frame(), output), output)
    if plot is not None:
        _draw(found, plot, x, y, held)
    by = "Ctrl-C" if found.cut == INTERRUPTION else f"--{found.cut.replace(' ', '-')}"
    cut = "" if found.complete else f"; cut off by {by}: none cheaper than {found.complete_to:.6g} is missing"
    typer.echo(f"{counted(len(found), 'region')} within a cost of {radius:g}{cut}", err=True)
    if found.complete and not len(found):
        typer.echo(_beyond(explainer, table.iloc[[place]], settings), err=True)
    if found.cut == INTERRUPTION:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if not delivered:
        raise typer.Exit(ExitCode.USAGE)
    if not found.complete:
        raise typer.Exit(ExitCode.FEASIBLE)
    raise typer.Exit(ExitCode.SOLVED if len(found) else ExitCode.INFEASIBLE)


def _beyond(explainer: Explainer, row: pd.DataFrame, settings: Mapping[str, Any]) -> str:
    """What there is outside of a radius that holds no region."""
    limits = {name: settings[name] for name in ("time_limit", "memory_limit") if settings.get(name) is not None}
    asked = {**options.of_problem(settings), "margin": 0.0, "missing": False}
    with sigterm_as_ctrl_c():
        (answer,) = explainer.explain(row, **asked, **limits, break_ties=False)
    if answer.status == "interrupted":
        raise typer.Exit(ExitCode.INTERRUPTED)
    if answer.status == "infeasible":
        return "there is no counterfactual, whatever the radius"
    if answer.cost is None:
        return in_flags(f"whether there is a counterfactual beyond is not known: {answer.message}")
    nearest = (
        "the nearest counterfactual costs" if answer.status == "optimal" else "a counterfactual is known that costs"
    )
    return f"{nearest} {answer.cost:.6g}: give a --radius beyond that"


def _heeded() -> list[str]:
    """What the command heeds of a problem file: regions end at thresholds, and what is missing stays."""
    from ocf.explain.question import OF_PROBLEM

    of_regions = [name for name in OF_PROBLEM if name not in ("margin", "missing")]
    return [*of_regions, "time_limit", "memory_limit", "label", "monotone", "special_values", "groups"]


def _axes(text: str | None) -> tuple[str | None, str | None]:
    names = [] if text is None else [name.strip() for name in text.split(",")]
    if len(names) not in (0, 2):
        raise DataError(f"--axes {text!r} is not understood: give two features, X,Y")
    x, y = islice([*names, None, None], 2)
    return x, y


def _text(table: pd.DataFrame, path: Path | None) -> str:
    """CSV, with the levels of a region joined by bars, or JSON records, with lists of them."""
    if path is not None and path.suffix.lower() == ".json":
        import json

        from ocf.support.json_dtypes import plain

        return json.dumps(plain(table.to_dict("records")), indent=1) + "\n"
    joined = table.map(lambda v: "|".join(map(str, v)) if isinstance(v, tuple) else v)
    text: str = joined.to_csv(index=False, lineterminator="\n")
    return text


def _draw(found: Regions, path: Path, x: str | None, y: str | None, held: bool) -> None:
    figure = optional("matplotlib.figure", "plot", "ocf regions --plot").Figure(figsize=(7, 5), layout="constrained")
    found.plot(x, y, figure.subplots(), held=held)
    with writing(path):
        figure.savefig(path, dpi=150)

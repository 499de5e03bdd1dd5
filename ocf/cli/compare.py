"""``ocf compare``: run a suite, build its report again, compare two runs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from ocf.cli.base import ExitCode, complain, guarded
from ocf.cli.options import Drop, Reference, TrustPickle
from ocf.errors import ProblemError

if TYPE_CHECKING:
    from ocf.compare.frame import Comparison
    from ocf.compare.suite import Suite

#: The command that is meant when none is named.
RUN = "run"

HELP = """\
Put methods to the same instances and report who proves what, how fast.

[bold]ocf compare[/] SUITE -o results/ is short for [bold]ocf compare run[/] SUITE -o results/, where SUITE is a TOML
file or the name of a built-in suite ([bold]ocf compare suites[/]); see [bold]ocf compare run --help[/].
"""

EXIT_CODES = """\
[bold]Exit codes[/]
  [cyan]0[/]  everything that could be run has been run; no claim contradicts another
  [cyan]1[/]  internal error
  [cyan]2[/]  usage, suite or data error; disk full (finished runs are kept)
  [cyan]6[/]  DISAGREEMENTS: an unverified point, or claims that contradict each other
  [cyan]7[/]  ocf compare diff: regressions
[cyan]130[/]  interrupted; finished runs are kept, the same command goes on
"""


class _Group(TyperGroup):
    """Commands, one of which is meant when the first word is none of them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command that is meant before the arguments."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = [RUN, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_Group, no_args_is_help=True, rich_markup_mode="rich", help=HELP, epilog=EXIT_CODES)

MODEL, LIMIT = "Your own model instead of a suite", "Parts and limits"


# long: most of it is the list of the command's options, which are its documentation too
@app.command(RUN, epilog=EXIT_CODES)
@guarded
def run(
    suite: Annotated[
        str | None, typer.Argument(metavar="[SUITE]", help="TOML file, or a built-in suite; not with --model.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="For results and report; default NAME-results."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Folder of data sets (default OCF_DATA); with --model, the table of rows."),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Rows of each grid at most; more can follow.", rich_help_panel=LIMIT),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Only this method, such as interval/highs; may be repeated.", rich_help_panel=LIMIT
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="DATASET", help="Only this data set; may be repeated.", rich_help_panel=LIMIT),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Of a run; makes it another suite.", rich_help_panel=LIMIT)
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(metavar="AMOUNT", help='Of a run: "4 GB"; makes it another suite.', rich_help_panel=LIMIT),
    ] = None,
    jobs: Annotated[
        int,
        typer.Option(metavar="N", help="Runs at a time, -1: one per core. 1 gives the best times."),
    ] = 1,
    progress: Annotated[bool | None, typer.Option(metavar="", help="Progress bar; default on a terminal.")] = None,
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="A model file; rows from --data.", rich_help_panel=MODEL)
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="CLASS", help="Default the opposite.", rich_help_panel=MODEL)
    ] = None,
    norm: Annotated[
        str | None, typer.Option(metavar="NORM", help="l0, l1 (default), l2 or a mix.", rich_help_panel=MODEL)
    ] = None,
    reference: Reference = None,
    drop: Drop = None,
    trust_pickle: TrustPickle = False,
) -> None:
    """Run a suite, or go on with it, and write its report."""
    from ocf.compare.runner import run_suite
    from ocf.compare.suite import limited, load_suite, part
    from ocf.support.memory import parse_memory

    if (suite is None) == (model is None):
        raise ProblemError("give either a suite (ocf compare suites lists the built-in ones) or --model and --data")
    if model is None:
        own = {"--target": target, "--norm": norm, "--reference": reference, "--drop": drop or None}
        for flag, value in own.items():
            if value is not None:
                raise ProblemError(f"{flag} goes with --model; a suite says it in its file")
        chosen, folder = load_suite(str(suite)), data
    else:
        chosen, folder = _own(model, data, target, norm, reference, drop or [], trust_pickle), None
    memory = None if memory_limit is None else parse_memory(memory_limit, "--memory-limit")
    if time_limit is not None and not time_limit > 0:
        raise ProblemError(f"--time-limit {time_limit:g} should be a positive number of seconds")
    chosen = part(limited(chosen, time=time_limit, memory=memory), method, only)
    where = output or Path(f"{Path(chosen.name).stem}-results")
    command = shlex.join(["ocf", *sys.argv[1:]])
    try:
        run_suite(chosen, where, data=folder, rows=rows, jobs=jobs, progress=progress, command=command)
    except KeyboardInterrupt:
        typer.echo(f"interrupted; the finished runs are in {where}, the same command goes on with the others", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    _report(where, current=True)


@app.command("report")
@guarded
def report(folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Of the results.")]) -> None:
    """Build the report of finished runs again."""
    _report(folder)


@app.command("diff", epilog=EXIT_CODES)
@guarded
def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="Folder of the results before.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Folder of the results after.")],
) -> None:
    """Compare two runs of one suite and name what has got worse."""
    from ocf.compare.diff import difference
    from ocf.compare.report import markdown_table

    found = difference(_load(first), _load(second))
    typer.echo(f"{markdown_table(found.methods)}\n\n{found.methods.caption}")
    for name, lines in (
        ("CONTRADICTIONS", found.contradictions),
        ("Regressions", found.regressions),
        ("Improvements", found.improvements),
        ("Remarks", found.remarks),
    ):
        if lines:
            typer.echo("\n".join([f"\n{name}: {len(lines)}", *(f"- {line}" for line in lines)]))
    if found.contradictions:
        raise typer.Exit(ExitCode.UNVERIFIED)
    raise typer.Exit(ExitCode.REGRESSED if found.regressions else ExitCode.SOLVED)


@app.command("suites")
@guarded
def suites() -> None:
    """List the built-in suites."""
    from ocf.compare.suite import built_in, load_suite

    for name in built_in():
        suite = load_suite(name)
        typer.echo(f"{name}: {suite.description}")


# -- what the commands share -----------------------------------------------------------------------------------


def _load(folder: Path) -> Comparison:
    from ocf.compare.frame import compare
    from ocf.compare.results import read

    return compare(read(folder))


def _is_current(folder: Path) -> bool:
    """Whether the page of a folder was written after its last result."""
    from ocf.compare.results import FILE

    page, results = folder / "report.html", folder / FILE
    return page.is_file() and page.stat().st_mtime_ns >= results.stat().st_mtime_ns


def _report(folder: Path, *, current: bool = False) -> None:
    """Write the report and say what it says; exits with 6 on disagreements.

    With `current` a page that has all results is left as it is.
    """
    from ocf.compare.report import summary, write_report
    from ocf.compare.verdict import verdict

    comparison = _load(folder)
    written = [] if current and _is_current(folder) else write_report(comparison, folder)
    typer.echo("\n".join([*verdict(comparison), summary(comparison)]))
    if written:
        typer.echo(f"{written[0]} (also {', '.join(path.name for path in written[1:])})")
    else:
        typer.echo(f"nothing was left to run; {folder / 'report.html'} is as it was")
    if comparison.disagreements:
        complain(f"{len(comparison.disagreements)} DISAGREEMENTS")
        for d in comparison.disagreements:
            typer.echo(f"- {d.method} on {d.instance}: {d.message}", err=True)
        raise typer.Exit(ExitCode.UNVERIFIED)


def _own(
    model: str,
    data: str | None,
    target: str | None,
    norm: str | None,
    reference: Path | None,
    drop: list[str],
    trust_pickle: bool,
) -> Suite:
    """Suite of the user's own model: every formulation and solver that there is."""
    from ocf.cli.tables import parse_norm
    from ocf.compare.recipes import RECIPES, Recipe
    from ocf.compare.suite import Ask, Grid, Suite, all_methods

    if data is None:
        raise ProblemError("--model needs --data, the table whose rows are to be explained")
    if model in RECIPES or not Path(model).exists():
        raise ProblemError(f"there is no model file {model}; a model that is trained here belongs in a suite")
    recipe = Recipe(data, model, drop=tuple(drop), reference=str(reference or ""), trust_pickle=trust_pickle)
    recipe.check()
    ask: dict[str, Any] = {"target": target or "opposite", "norm": parse_norm(norm or "l1")}
    return Suite(Path(model).stem, "", (Grid(recipe, Ask(**ask)),), tuple(all_methods()))

"""Commands about rows: ``ocf solve`` and ``ocf export``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ocf.cli.base import ExitCode, deliver, guarded, tell_how_tables_are_read
from ocf.cli.flags import in_flags
from ocf.cli.options import (
    FORMULATION_HELP,
    OUT,
    RUN,
    AtLeast,
    AtMost,
    Data,
    Drop,
    Groups,
    Imputations,
    Label,
    MemoryLimit,
    Model,
    ModelOutput,
    Monotone,
    Norm,
    Plausible,
    Prepared,
    Probability,
    ProblemToml,
    Reference,
    Rows,
    RowTimeLimit,
    Share,
    ShowProgress,
    Target,
    TrustPickle,
    load,
    of_problem,
    told,
    wanted,
    with_files,
)
from ocf.cli.tables import check_output, parse_norm, parse_round_to, parse_rows, parse_wish
from ocf.errors import ProblemError
from ocf.support.interruption import sigterm_as_ctrl_c, uninterrupted
from ocf.support.messages import counted

if TYPE_CHECKING:
    from ocf.cells.cell_problem import CellProblem
    from ocf.explain.explainer import Explainer
    from ocf.explain.explanation import Explanation, Explanations
    from ocf.problem.problem import Problem


EXIT_CODES = """\
[bold]Exit codes[/]
  [cyan]0[/]  every row is solved and verified
  [cyan]1[/]  internal error, or a row failed
  [cyan]2[/]  usage, model or data error
  [cyan]3[/]  some row is proven infeasible
  [cyan]4[/]  a limit, or the gap asked for, was reached with a feasible point
  [cyan]5[/]  a limit was reached with nothing
  [cyan]6[/]  verification failed, or --cross-check found two different answers
[cyan]130[/]  interrupted; finished rows are kept
When several apply, the first of 130, 6, 1, 5, 4, 3 is given.
"""

#: Different errors of rows that are told where the answers go to a file.
FEW = 3

#: Exit codes that rows can bring about, the gravest first.
GRAVEST = (
    ExitCode.INTERRUPTED,
    ExitCode.UNVERIFIED,
    ExitCode.INTERNAL,
    ExitCode.UNKNOWN,
    ExitCode.FEASIBLE,
    ExitCode.INFEASIBLE,
)

_BY_STATUS = {
    "optimal": ExitCode.SOLVED,
    "feasible": ExitCode.FEASIBLE,
    "infeasible": ExitCode.INFEASIBLE,
    "unknown": ExitCode.UNKNOWN,
    "error": ExitCode.INTERNAL,
    "interrupted": ExitCode.INTERRUPTED,
}


# long: most of it is the list of the command's options, which are its documentation too
@guarded
def solve(
    model: Model,
    data: Data,
    rows: Rows = None,
    target: Target = None,
    probability: Probability = None,
    at_least: AtLeast = None,
    at_most: AtMost = None,
    problem: ProblemToml = None,
    norm: Norm = None,
    plausibility: Plausible = None,
    imputations: Imputations = None,
    share: Share = None,
    drop: Drop = None,
    reference: Reference = None,
    label: Label = None,
    monotone: Monotone = None,
    groups: Groups = None,
    trust_pickle: TrustPickle = False,
    model_output: ModelOutput = None,
    prepared: Prepared = None,
    formulation: Annotated[str | None, typer.Option(metavar="NAME", help=FORMULATION_HELP, rich_help_panel=RUN)] = None,
    solver: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="auto (default), or one of ocf solvers.", rich_help_panel=RUN),
    ] = None,
    time_limit: RowTimeLimit = None,
    memory_limit: MemoryLimit = None,
    gap: Annotated[
        float | None,
        typer.Option(metavar="GAP", help="Relative gap at which to stop; default 0, a proof.", rich_help_panel=RUN),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="Threads of the solver; default 1.", rich_help_panel=RUN)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of the solver; default 0.", rich_help_panel=RUN)
    ] = None,
    n_jobs: Annotated[
        int | None,
        typer.Option(metavar="N", help="Rows at the same time, -1: one per core; default 1.", rich_help_panel=RUN),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="The solver's own option; may be repeated.", rich_help_panel=RUN),
    ] = None,
    n_optimal: Annotated[
        int | None,
        typer.Option(metavar="N", help="Optimal answers to list where several tie; default 1.", rich_help_panel=RUN),
    ] = None,
    round_to: Annotated[
        str | None,
        typer.Option(metavar="GRID", help="New values on the data's own grid (data), or with so many digits (2)."),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(metavar="M", help="How far new values stand from thresholds that they pass, in units of scales."),
    ] = None,
    n_explanations: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Answers to each row: the best, then the best that differ; default 1.",
            rich_help_panel=RUN,
        ),
    ] = None,
    diversity: Annotated[
        str | None,
        typer.Option(metavar="HOW", help="How they differ: features (default), region, distance.", rich_help_panel=RUN),
    ] = None,
    min_distance: Annotated[
        float | None,
        typer.Option(metavar="D", help="With distance: how far apart, l1 in units of scales.", rich_help_panel=RUN),
    ] = None,
    diagnose: Annotated[
        bool,
        typer.Option(
            "--diagnose", metavar="", help="Name what conflicts where a row is infeasible.", rich_help_panel=RUN
        ),
    ] = False,
    box: Annotated[
        bool,
        typer.Option(
            "--box",
            metavar="",
            help="The largest box around each answer with its decision, constraints aside.",
            rich_help_panel=RUN,
        ),
    ] = False,
    break_ties: Annotated[
        bool | None,
        typer.Option(
            "--break-ties/--first-of-ties",
            metavar="",
            help="Of answers that cost the same the least by l1, then the fewest changes (default), or any.",
            rich_help_panel=RUN,
        ),
    ] = None,
    cross_check: Annotated[
        bool,
        typer.Option("--cross-check", metavar="", help="Solve twice, by independent ways.", rich_help_panel=RUN),
    ] = False,
    cuts: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN", help="Cuts between trees for HiGHS and SCIP: none (default), root.", rich_help_panel=RUN
        ),
    ] = None,
    no_reduce: Annotated[
        bool,
        typer.Option("--no-reduce", metavar="", help="No incumbent, no reduction: solver only.", rich_help_panel=RUN),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help=".json, .csv or .html; default text to stdout.", rich_help_panel=OUT
        ),
    ] = None,
    log: Annotated[
        bool, typer.Option("--log", metavar="", help="Show the solver's log on stderr.", rich_help_panel=OUT)
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep finished rows in FILE; the same command goes on from it.",
            rich_help_panel=OUT,
        ),
    ] = None,
    progress: ShowProgress = None,
) -> None:
    """Find the cheapest change of each row of DATA that gives it the TARGET."""
    if output is not None:
        own = (model, data, problem, reference, checkpoint, imputations, prepared)
        check_output(output, (".json", ".csv", ".html"), own)
    flags = {
        **wanted(target, probability, at_least, at_most),
        "norm": None if norm is None else parse_norm(norm),
        "plausibility": None if plausibility is None else parse_wish(plausibility),
        "imputations": imputations,
        "share": share,
        "formulation": formulation,
        "solver": solver,
        "time_limit": time_limit,
        "memory_limit": memory_limit,
        "mip_gap": gap,
        "threads": threads,
        "seed": seed,
        "n_jobs": n_jobs,
        "cuts": cuts,
        "reduce": False if no_reduce else None,
        "box": box or None,
        "cross_check": cross_check or None,
        "n_optimal": n_optimal,
        "break_ties": break_ties,
        "round_to": None if round_to is None else parse_round_to(round_to),
        "margin": margin,
        "n_explanations": n_explanations,
        "diversity": diversity,
        "min_distance": min_distance,
        "diagnose": diagnose or None,
    }
    said = told(problem, flags, option or [], monotone or [], label, groups)
    settings = with_files(said.settings, trust_pickle=trust_pickle)
    begin = time.perf_counter()
    itself = reference is None and rows is None
    explainer, table = load(
        model, data, reference, drop or [], said, trust_pickle, model_output, prepared, itself=itself
    )
    chosen = table if rows is None else table.iloc[parse_rows(rows, len(table))]
    tell_how_tables_are_read()
    with _stdout_to_stderr() if log else nullcontext(), sigterm_as_ctrl_c():
        explanations = explainer.explain(chosen, **settings, log=log, progress=progress, checkpoint=checkpoint)
    code = exit_code(explanations)
    if code is ExitCode.INTERRUPTED and checkpoint is not None:
        typer.echo(f"finished rows are kept in {checkpoint}: run the same command to go on", err=True)
    with uninterrupted(_tell_of_writing) if output is not None else nullcontext():
        code = code if _write(explanations, output) else ExitCode.USAGE
    if output is not None:  # else they have been read by now
        for line in _errors(explanations):
            typer.echo(line, err=True)
    typer.echo(f"{_counted(explanations)} in {time.perf_counter() - begin:.1f} s", err=True)
    raise typer.Exit(code)


@guarded
def export(
    model: Model,
    data: Data,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", help=".mps or .lp for solvers, .json to replay with ocf."),
    ],
    row: Annotated[int, typer.Option(metavar="ROW", help="Row, counted from 0; -1 is the last.")] = 0,
    target: Target = None,
    probability: Probability = None,
    at_least: AtLeast = None,
    at_most: AtMost = None,
    problem: ProblemToml = None,
    norm: Norm = None,
    plausibility: Plausible = None,
    drop: Drop = None,
    reference: Reference = None,
    label: Label = None,
    monotone: Monotone = None,
    groups: Groups = None,
    trust_pickle: TrustPickle = False,
    model_output: ModelOutput = None,
    formulation: Annotated[str | None, typer.Option(metavar="NAME", help=FORMULATION_HELP)] = None,
    reduced: Annotated[
        bool, typer.Option("--reduced/--full", metavar="", help="What reduction leaves, or the row's whole problem.")
    ] = False,
) -> None:
    """Write the optimisation problem of one row of DATA to a file."""
    check_output(output, (".mps", ".lp", ".json"), (model, data, problem, reference))
    flags = {
        **wanted(target, probability, at_least, at_most),
        "norm": None if norm is None else parse_norm(norm),
        "plausibility": None if plausibility is None else parse_wish(plausibility),
        "formulation": formulation,
    }
    said = told(problem, flags, [], monotone or [], label, groups, _heeded_by_export())
    settings = with_files(said.settings, trust_pickle=trust_pickle)
    explainer, table = load(model, data, reference, drop or [], said, trust_pickle, model_output)
    asked = explainer.problem(table.iloc[parse_rows(str(row), len(table), "--row")], **of_problem(settings))
    if output.suffix.lower() != ".json":
        _write_form(explainer, asked, settings.get("formulation"), output, reduced)
    elif not deliver(asked.to_json() + "\n", output):
        raise typer.Exit(ExitCode.USAGE)


def _heeded_by_export() -> list[str]:
    """What export takes of a problem file: how a row is solved does no harm, but completions make another problem."""
    from ocf.explain.question import SETTINGS

    harmless = [name for name in SETTINGS if name not in ("imputations", "share")]
    return [*harmless, "label", "monotone", "special_values", "groups"]


# -- answers -----------------------------------------------------------------------------------------------


def exit_code(explanations: Explanations) -> ExitCode:
    """Exit code of a batch: the gravest of its rows'."""
    codes = {_row_code(explanation) for explanation in explanations}
    return next((code for code in GRAVEST if code in codes), ExitCode.SOLVED)


def _row_code(explanation: Explanation) -> ExitCode:
    if explanation.found and not explanation.verified:
        return ExitCode.UNVERIFIED
    if explanation.method.get("cross_check", {}).get("verdict") == "disagrees":
        return ExitCode.UNVERIFIED
    return _BY_STATUS[explanation.status]


def _write(explanations: Explanations, path: Path | None) -> bool:
    """Write results to a file or stdout; False when the file could not be written and stdout had to do."""
    suffix = "" if path is None else path.suffix.lower()
    if suffix == ".json":
        text = explanations.to_json() + "\n"
    elif suffix == ".csv":
        table = explanations.to_frame()
        label = "row"
        while label in table.columns:
            label = f"ocf_{label}"
        text = table.to_csv(index_label=label, lineterminator="\n")
    elif suffix == ".html":
        text = explanations.to_html()
    else:
        from ocf.explain.text import to_text

        text = "".join(f"{to_text(explanation, in_flags)}\n\n" for explanation in explanations)
    return deliver(text, path)


def _errors(explanations: Explanations) -> list[str]:
    """What errors say, each once with its first row, the first few of them."""
    first = dict[str, object]()
    for explanation in explanations:
        if explanation.status == "error":
            first.setdefault(explanation.message, explanation.row)
    said = [f"row {row}: {message}" for message, row in first.items()]
    more = [f"and {counted(len(said) - FEW, 'other error')}"] if len(said) > FEW else []
    return [*said[:FEW], *more]


def _tell_of_writing() -> None:
    typer.echo("the answers are being written: wait for that, or ask again to stop without them", err=True)


def _counted(explanations: Explanations) -> str:
    from ocf.support.progress import ProgressBar

    counts = ProgressBar(len(explanations), enabled=False)
    for explanation in explanations:
        counts.advance(explanation.status)
    verified = sum(explanation.verified for explanation in explanations)
    return f"{counted(len(explanations), 'row')}: {counts.summary()}; {verified} verified"


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Send what solvers print from C to stderr, where logs belong."""
    import ctypes

    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        if os.name == "posix":
            ctypes.CDLL(None).fflush(None)  # C keeps a buffer of its own when stdout is a file or a pipe
        os.dup2(saved, 1)
        os.close(saved)


# -- files for solvers -------------------------------------------------------------------------------------


def _write_form(explainer: Explainer, problem: Problem, formulation: str | None, path: Path, reduced: bool) -> None:
    from ocf.solve.compile import compile_formulation
    from ocf.solve.method import AUTO, BOUNDS_FROM
    from ocf.solvers.model_files import write_model

    cells = explainer.cells(problem)
    if cells.infeasible:
        raise ProblemError("this row is infeasible: no model is left to write; a .json file still keeps the question")
    if reduced:
        cells = _reduced(cells)
    formulation = BOUNDS_FROM if formulation in (None, AUTO) else formulation
    form = compile_formulation(formulation, cells, names=True).instance(cells).form
    write_model(form, path)
    size = f"{form.n_rows} rows, {form.n_cols} columns ({int(form.integer.sum())} of them whole numbers)"
    note = "" if form.n_cols else "; reduction decides everything, the objective's constant is the optimum"
    typer.echo(f"{path}: {size}{note}", err=True)
    if cells.requirements.error_bound.any() or cells.requirements.curve is not None:
        typer.echo(
            "points whose scores tie within rounding fit the file, and the model may refuse them: ask it about a "
            "solver's point, or take `ocf solve`, which does and goes on without it",
            err=True,
        )


def _reduced(cells: CellProblem) -> CellProblem:
    """What an incumbent leaves of a problem, with the same optimum."""
    import numpy as np

    from ocf.cells.incumbent import find_incumbent
    from ocf.cells.reduction import reduce

    incumbent = find_incumbent(cells)
    # reduction keeps what is cheaper than its limit; the margin keeps the incumbent itself
    left = reduce(cells, np.inf if incumbent is None else incumbent.cost * (1 + 1e-6) + 1e-9)
    if left.proved:
        raise ProblemError("the reduction alone proves that this row is infeasible: export it with --full")
    return left.cells

"""The command ``ocf rules``: counterfactual rules of rows, or of the regions around them."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ocf.cli.base import ExitCode, complain, deliver, guarded
from ocf.cli.flags import in_flags
from ocf.cli.options import (
    OUT,
    RUN,
    Data,
    Drop,
    Groups,
    MemoryLimit,
    ProblemToml,
    Rows,
    ShowProgress,
    TrustPickle,
    told,
)
from ocf.cli.tables import check_output, parse_rows
from ocf.errors import DataError, ModelError, ProblemError
from ocf.models.tables import drop_columns, fit_columns, in_words, label_column, read_table, said_levels
from ocf.support.interruption import Interruption, is_interruption, raise_if_asked, sigterm_as_ctrl_c
from ocf.support.messages import counted, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pandas as pd
    from numpy.typing import NDArray

    from ocf.rules.explainer import CounterfactualRules
    from ocf.rules.objects import RuleSets

#: What a problem file may say beside features, and with --trade-off the norm.
HEEDED = ("target", "features_to_vary", "special_values", "groups", "time_limit", "memory_limit")

EXIT_CODES = """\
[bold]Exit codes[/]
  [cyan]0[/]  every row has a rule, or the target already
  [cyan]1[/]  internal error
  [cyan]2[/]  usage, model or data error
  [cyan]3[/]  for some row no rule is precise enough, or with --cover it is in no region
[cyan]130[/]  interrupted; the rules or points of finished rows are written, with --cover nothing
"""


# long: most of it is the list of the command's options, which are its documentation too
@guarded
def rules(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="Any model file that ocf reads; with --trust-pickle, anything that predicts."
        ),
    ],
    data: Data,
    rows: Rows = None,
    target: Annotated[
        str | None, typer.Option(metavar="TARGET", help="Class, or LOW:HIGH for numbers; default the opposite.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Explain the answers in this column, not the model's.")
    ] = None,
    problem: ProblemToml = None,
    drop: Drop = None,
    reference: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="Training data, to estimate from; default DATA.")
    ] = None,
    groups: Groups = None,
    trust_pickle: TrustPickle = False,
    regional: Annotated[
        bool,
        typer.Option(
            "--regional",
            metavar="",
            help="Rules of regions, not of rows: for each row that one around it whose rule is the most probable.",
        ),
    ] = False,
    cover: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="A few regions with a rule each that together hold the rows: leaves of the forest, or sufficient "
            "(boxes on few features that keep the answer).",
        ),
    ] = None,
    most: Annotated[int, typer.Option(metavar="N", min=1, help="With --cover: regions at most.")] = 10,
    trade_off: Annotated[
        str | None,
        typer.Option(
            metavar="P,P,…", help="What safety costs: for each of these probabilities the cheapest point in a rule."
        ),
    ] = None,
    level: Annotated[
        float, typer.Option(metavar="P", help="Probability that changing a set of features must reach.")
    ] = 0.9,
    rule_level: Annotated[
        float | None, typer.Option(metavar="P", help="Probability that a rule must reach; default 0.9.")
    ] = None,
    n_rules: Annotated[int, typer.Option(metavar="N", help="Disjoint rules of each row.")] = 1,
    prefer: Annotated[
        str, typer.Option(metavar="WHICH", help="The rule that covers most (large), or the most probable (probable).")
    ] = "large",
    sets: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Sets of features to try: exhaustive or milp (all of the candidates), or paths (of the trees' paths).",
            rich_help_panel=RUN,
        ),
    ] = "exhaustive",
    every_set: Annotated[
        bool, typer.Option("--every-set", metavar="", help="Name all smallest sets of features that reach --level.")
    ] = False,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="search (the largest rule), milp, or greedy.", rich_help_panel=RUN)
    ] = "search",
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="For each rule; default 1.", rich_help_panel=RUN)
    ] = None,
    memory_limit: MemoryLimit = None,
    candidates: Annotated[
        int, typer.Option(metavar="K", help="Consider sets of the K most used features.", rich_help_panel=RUN)
    ] = 10,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the forest.", rich_help_panel=RUN)] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help=".json or .csv; default text to stdout.", rich_help_panel=OUT
        ),
    ] = None,
    progress: ShowProgress = None,
) -> None:
    """Find ranges of values that give each row of DATA the TARGET with high probability.

    For example: ocf rules model.json applicants.csv --rows 0:10 --target 1 --reference train.csv --drop granted
    """
    from ocf.features.inference import infer_space
    from ocf.rules.explainer import CounterfactualRules
    from ocf.rules.finding import TIME_LIMIT

    if output is not None:
        check_output(output, (".json", ".csv"), (model, data, problem, reference))
    stated = {"--regional": regional, "--cover": cover, "--every-set": every_set, "--rule-level": rule_level}
    if trade_off is not None:
        _refuse_beside("--trade-off", stated)
    elif cover is not None:
        _refuse_beside("--cover", {"--regional": regional})
    flags = {"target": target, "time_limit": time_limit, "memory_limit": memory_limit}
    said = told(problem, flags, groups=groups, heeded=HEEDED if trade_off is None else (*HEEDED, "norm"))
    (table, *others) = drop_columns([read_table(p) for p in (data, reference) if p is not None], drop or [])
    train = others[0] if others else table
    native = _load(model, trust_pickle)
    answers, own = _answers(native, labels, (train, reference or data), (table, data))
    table, train = (t.drop(columns=[labels], errors="ignore") for t in (table, train))
    known = said_levels(said.features)
    table, train = (_own(t, native, path, known) for t, path in ((table, data), (train, reference or data)))
    found = CounterfactualRules(
        native, train, answers,
        features=infer_space(train, said.features, said.special_values, groups=said.groups is not False),
        features_to_vary=said.solve.get("features_to_vary", "all"), memory_limit=said.solve.get("memory_limit"),
        level=level, rule_level=0.9 if rule_level is None else rule_level, candidates=candidates, seed=seed,
    )  # fmt: skip
    table = in_words(table, data, {feature.name: feature.levels for feature in found.space.features})
    places = slice(None) if rows is None else parse_rows(rows, len(table))
    chosen = table.iloc[places]
    wanted = _target(said.solve.get("target"), found)
    settings: dict[str, Any] = {
        "n_rules": n_rules, "prefer": prefer, "sets": sets, "every_set": every_set, "method": method,
        "time_limit": said.solve.get("time_limit", TIME_LIMIT),
    }  # fmt: skip
    if own is not None:
        settings["answers"] = own.iloc[places].tolist()
    if trade_off is not None:
        settings["norm"] = said.solve.get("norm", "l1")
        _trade_off(found, chosen, wanted, trade_off, output, settings)
    uncovered = False
    if cover is not None:
        answer, uncovered = _covering(found, chosen, wanted, {"kind": cover, "most": most, **settings})
    else:
        if regional and wanted is None:
            raise ProblemError("--regional needs --target: a region has no answer of its own")
        ask = found.regional_many if regional else found.local_many
        with sigterm_as_ctrl_c():
            answer = ask(chosen, wanted, progress=progress, **settings)
    delivered = _write(answer, output)
    missing = sum(own.status == "none" for own in answer)
    of_regions = regional or cover is not None
    what = "region" if of_regions else "row"
    typer.echo(
        f"{counted(len(answer), what)}: {len(answer) - missing} with rules or the target already, {missing} without",
        err=True,
    )
    if answer.interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if not delivered:
        raise typer.Exit(ExitCode.USAGE)
    raise typer.Exit(ExitCode.INFEASIBLE if missing or uncovered else ExitCode.SOLVED)


def _refuse_beside(flag: str, others: dict[str, Any]) -> None:
    """Refuse flags that another one leaves without effect."""
    idle = [name for name, value in others.items() if value is not None and value is not False]
    if idle:
        raise ProblemError(f"{flag} takes no heed of {listed(idle)}: leave that out")


def _load(path: Path, trust_pickle: bool) -> Any:
    """A model that ocf reads, or anything else that predicts."""
    from ocf.models.rehearsal import rehearse
    from ocf.models.user_model import as_user_model
    from ocf.readers.files import load_model

    rehearse(path, trust_pickle=trust_pickle)
    native = load_model(path, trust_pickle=trust_pickle)
    try:
        return as_user_model(native)
    except ModelError:
        if not hasattr(native, "predict"):
            raise
        return native


def _answers(
    model: Any, labels: str | None, train: tuple[pd.DataFrame, Path], rows: tuple[pd.DataFrame, Path]
) -> tuple[NDArray[Any] | None, pd.Series[Any] | None]:
    """Answers of the training data, and of the rows where these have them; None where the model says them.

    Parameters
    ----------
    model : object
    labels : str or None
        Column that holds the answers.
    train, rows : (DataFrame, Path)
        Tables and their files.
    """
    if labels is None:
        return None, None
    classes = getattr(model, "classes", getattr(model, "classes_", ()))
    own = label_column(rows[0], labels, rows[1], classes, "--labels") if labels in rows[0].columns else None
    return label_column(train[0], labels, train[1], classes, "--labels").to_numpy(), own


def _own(table: pd.DataFrame, model: Any, path: Path, known: Mapping[str, Iterable[Any]]) -> pd.DataFrame:
    """The table with just the model's columns."""
    from ocf.models.user_model import UserModel

    if isinstance(model, UserModel):
        return fit_columns(table, model, path, known)
    names = list(getattr(model, "feature_names_in_", table.columns))
    missing = [n for n in names if n not in table.columns]
    if missing:
        raise DataError(f"{path} misses columns that the model was fitted on: {listed(missing)}")
    return table[names]


def _target(text: Any, rules: CounterfactualRules) -> Any:
    """Class, or interval of numbers, as the command line or a problem file says it."""
    if not rules.regression or not isinstance(text, str):
        return text
    low, colon, high = text.partition(":")
    try:
        ends = float(low or "-inf"), float(high or "inf")
    except ValueError:
        colon = ""
    if not colon:
        raise ProblemError(f"--target {text!r} is not understood: the answers are numbers, so give LOW:HIGH")
    return ends


def _covering(
    rules: CounterfactualRules, rows: pd.DataFrame, target: Any, settings: dict[str, Any]
) -> tuple[RuleSets, bool]:
    """Rules of a few regions that together hold the rows, and whether some row that lacks the target is in none."""
    if target is None:
        raise ProblemError("--cover needs --target: a region has no answer of its own")
    with _ending_at_ctrl_c("interrupted: no region was written, since they are chosen for all rows together"):
        found = rules.regional_set(rows, target, **settings)
    typer.echo(str(found).splitlines()[0], err=True)
    return found.rules, found.coverage < 1 and bool(rules.lacks(rows, target, settings.get("answers")).any())


@contextmanager
def _ending_at_ctrl_c(message: str) -> Iterator[None]:
    """End the command with a message where it is interrupted, whatever became of the exception that said so."""
    try:
        with sigterm_as_ctrl_c(), Interruption():
            yield
            raise_if_asked()
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interruption(error):
            raise
        complain(message)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _trade_off(
    rules: CounterfactualRules,
    rows: pd.DataFrame,
    target: Any,
    levels: str,
    path: Path | None,
    settings: dict[str, Any],
) -> NoReturn:
    """Write the cheapest point in a rule for each probability and row, and end the command."""
    try:
        asked = [float(word) for word in levels.split(",")]
    except ValueError:
        raise ProblemError(f"--trade-off {levels!r} is not understood: give probabilities, as 0.5,0.7,0.9") from None
    answers = settings.pop("answers", None)
    own = answers or [None] * len(rows)
    parts: list[pd.DataFrame] = []
    try:
        with _ending_at_ctrl_c("interrupted; the points of finished rows are written"):
            for k in range(len(rows)):
                parts.append(rules.trade_off(rows.iloc[[k]], target, levels=asked, answer=own[k], **settings))
                raise_if_asked()
    except typer.Exit:
        _write_points(parts, rows.index, path)
        raise
    if not _write_points(parts, rows.index, path):
        raise typer.Exit(ExitCode.USAGE)
    without = [k for k, part in enumerate(parts) if not len(part)]
    known = None if answers is None else [own[k] for k in without]
    lacking = bool(without) and (target is None or bool(rules.lacks(rows.iloc[without], target, known).any()))
    raise typer.Exit(ExitCode.INFEASIBLE if lacking else ExitCode.SOLVED)


def _write_points(parts: list[pd.DataFrame], index: pd.Index[Any], path: Path | None) -> bool:
    """Write the points of rows, if there are any; False when the file could not be written and stdout had to do.

    Parameters
    ----------
    parts : list of DataFrame
        Of each row that is finished.
    index : Index (n,)
        Labels of all rows.
    path : Path or None
    """
    import json

    import pandas as pd

    from ocf.support.json_dtypes import plain

    if not parts:
        return True
    columns = set().union(*(part.columns for part in parts))
    label = "row"
    while label in columns or (label == "row" and "level" not in columns):  # as `trade_off` names its columns
        label = f"ocf_{label}"
    table = (
        pd.concat(parts, keys=index[: len(parts)], names=[label, None]).reset_index(level=label).reset_index(drop=True)
    )
    if path is None:
        text = table.to_string(index=False) + "\n"
    elif path.suffix.lower() == ".json":
        text = json.dumps(plain(table.to_dict("records")), ensure_ascii=False)
    else:
        text = table.to_csv(index=False, lineterminator="\n")
    return deliver(text, path)


def _write(answer: RuleSets, path: Path | None) -> bool:
    """Write the rules; False when the file could not be written and stdout had to do."""
    if path is None:
        text = in_flags(f"{answer}\n")
    elif path.suffix.lower() == ".json":
        text = answer.to_json() + "\n"
    else:
        text = answer.to_frame().to_csv(index=False, lineterminator="\n")
    return deliver(text, path)

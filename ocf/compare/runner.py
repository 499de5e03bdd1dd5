"""Runs a suite: every run in a process of its own, every result on the disk before the next."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ocf.compare import plan
from ocf.compare.client import ServerError, borrowed, close_all
from ocf.compare.keys import checksum
from ocf.compare.methods import Method, unavailable
from ocf.compare.outcomes import result
from ocf.compare.plan import Job
from ocf.compare.recipes import Recipe, stamps
from ocf.compare.results import Results, Writer, read
from ocf.compare.suite import Suite
from ocf.errors import DataError, ProblemError
from ocf.support.progress import ProgressBar

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Survey:
    """What is known of a case before its runs.

    Attributes
    ----------
    recipe : Recipe
    facts : dict
        See `ocf.compare.recipes.Case`; empty when it could not be prepared.
    rows : dict
        Positions of the rows that wait, by the checksum of the target.
    failed : str
        Why it could not be prepared.
    """

    recipe: Recipe
    facts: dict[str, Any]
    rows: dict[str, list[int]]
    failed: str = ""


def run_suite(
    suite: Suite,
    folder: str | Path,
    *,
    data: str | None = None,
    rows: int | None = None,
    jobs: int | None = None,
    progress: bool | None = None,
    command: str = "",
) -> Results:
    """Run what is not yet among a folder's results.

    Parameters
    ----------
    suite : Suite
    folder : path
        Of the results; made if need be.
    data : str, optional
        Folder of data sets; default the environment variable ``OCF_DATA``.
    rows : int, optional
        Rows of each grid at most; more can be added later in the same folder.
    jobs : int, optional
        Runs at the same time; default 1, or what `joblib.parallel_config` says, so that a Dask or Ray cluster can
        take them.
    progress : bool, optional
        Progress bar on stderr; by default on a terminal.
    command : str
        As it was called, for the report.

    Returns
    -------
    Results

    Raises
    ------
    ProblemError, DataError
        The suite yields no run, the folder holds results of another suite, or the disk is full.
    KeyboardInterrupt
        On Ctrl-C; what is finished is in the results.
    """
    if not hasattr(os, "fork"):
        raise ProblemError("ocf compare needs processes that fork, which this system has not: use Linux, macOS or WSL")
    if data is not None and not Path(data).is_dir():
        raise DataError(f"the data folder {data!r} does not exist: give the folder that holds NAME.csv and NAME.json")
    folder = Path(folder)
    reasons = [(method, unavailable(method)) for method in suite.methods]
    methods = [method for method, reason in reasons if not reason]
    missing = {method.name: reason for method, reason in reasons if reason}
    for name, reason in missing.items():
        logger.warning("the method %s is not available and is left out: %s", name, reason)
    header = {"name": suite.name, "fingerprint": suite.fingerprint, "suite": suite.to_dict()}
    asked = _checksum_of_runs(suite, methods, data, rows)
    with Writer(folder, header) as writer, _servers():
        if _is_finished(writer, asked):
            return read(folder)
        surveys = _survey_all(suite, data, rows, jobs)
        todo = list(plan.jobs(suite, plan.instances(suite, _waiting(surveys), rows), methods))
        if not todo:
            raise ProblemError(_reason_for_no_run(suite, surveys, missing))
        writer.add(_session(command, jobs, missing, todo))
        _say(writer, surveys)
        _run(writer, todo, data, jobs, progress)
        if not any(s.failed for s in surveys):
            writer.add({"kind": "finished", "asked": asked, "keys": [job.key for job in todo]})
    return read(folder)


def _checksum_of_runs(suite: Suite, methods: Sequence[Method], data: str | None, rows: int | None) -> str:
    """Checksum of what is to be run: instances and methods, and the files that they come from."""
    return checksum([suite.grids, methods, suite.bounds, rows, [stamps(grid.recipe, data) for grid in suite.grids]])


def _is_finished(writer: Writer, asked: str) -> bool:
    """Whether all of it is among the results, so that nothing need be prepared to find out what is missing."""
    there = {line["key"] for line in writer.lines if line["kind"] in ("run", "relaxation")}
    ends = [line for line in writer.lines if line["kind"] == "finished" and line["asked"] == asked]
    return bool(ends) and there.issuperset(ends[-1]["keys"])


@contextlib.contextmanager
def _servers() -> Iterator[None]:
    try:
        yield
    finally:
        close_all()


def _run(writer: Writer, todo: Sequence[Job], data: str | None, jobs: int | None, progress: bool | None) -> None:
    """Run the jobs whose results are not there yet."""
    done = {line["key"] for line in writer.lines if line["kind"] in ("run", "relaxation")}
    machines = {line["id"] for line in writer.lines if line["kind"] == "machine"}
    left = [(job, data) for job in todo if job.key not in done]
    with ProgressBar(len(left), enabled=progress, unit="runs") as bar:
        for line, machine in spread(execute, left, jobs):
            if machine and line["machine"] not in machines:
                machines.add(line["machine"])
                writer.add({"kind": "machine", "id": line["machine"], "facts": machine})
            writer.add(line)
            bar.advance(line["status"])


def spread(work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], jobs: int | None) -> Iterator[Any]:
    """Results of tasks as they end, in any order, through whatever backend joblib is configured for.

    Parameters
    ----------
    work : callable
        Called with the items of a task as its arguments; maybe in another process.
    tasks : sequence of tuple
    jobs : int or None
        Tasks at the same time; -1 for one per core, None for what `joblib.parallel_config` says, or else 1.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    if jobs is not None and (jobs == 0 or jobs < -1):
        raise ProblemError(f"jobs is a number of runs at the same time, or -1 for one per core, not {jobs}")
    calls = (delayed(work)(*task) for task in tasks)
    try:
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    except ValueError:  # Ray's backend has no generators: hand out a few at a time, and wait for all of them
        parallel = Parallel(n_jobs=jobs, batch_size=1)
        size = 2 * max(effective_n_jobs(jobs), 1)
        listed = list(calls)
        for k in range(0, len(listed), size):
            yield from parallel(listed[k : k + size])
        return
    yield from parallel(calls)


# -- before the runs -------------------------------------------------------------------------------------------


def _survey_all(suite: Suite, data: str | None, rows: int | None, jobs: int | None) -> list[Survey]:
    """Cases of the suite, in its order."""
    wanted: dict[str, dict[str, tuple[Any, int]]] = {}
    recipes: dict[str, Recipe] = {}
    for grid in suite.grids:
        key = checksum(grid.recipe)
        recipes[key] = grid.recipe
        count = grid.rows if isinstance(grid.rows, int) else 0
        count = count if rows is None else min(count, rows)
        target = checksum(grid.ask.target)
        most = max(count, wanted.get(key, {}).get(target, (None, 0))[1])
        wanted.setdefault(key, {})[target] = (grid.ask.target, most)
    tasks = [(recipe, data, wanted[key]) for key, recipe in recipes.items()]
    found = {checksum(s.recipe): s for s in spread(survey, tasks, jobs)}
    return [found[key] for key in recipes]


def survey(recipe: Recipe, data: str | None, wanted: Mapping[str, tuple[Any, int]]) -> Survey:
    """Prepare a case and find the rows that wait for each target.

    Parameters
    ----------
    recipe : Recipe
    data : str or None
    wanted : mapping of the target's checksum to (target, rows)
    """
    try:
        with borrowed(recipe, data) as client:
            rows = {
                key: client.ask({"kind": "rows", "target": target, "count": count})["rows"]
                for key, (target, count) in wanted.items()
            }
            return Survey(recipe, client.case, rows)
    except ServerError as error:
        return Survey(recipe, {}, {}, str(error))


def _waiting(surveys: Iterable[Survey]) -> dict[tuple[str, str], list[int]]:
    return {(checksum(s.recipe), target): rows for s in surveys for target, rows in s.rows.items()}


def _reason_for_no_run(suite: Suite, surveys: Sequence[Survey], missing: Mapping[str, str]) -> str:
    """Why there is no run."""
    reasons = [f"{s.recipe.data_label}: {s.failed}" for s in surveys if s.failed]
    if len(missing) == len(suite.methods):
        reasons += [f"{name}: {reason}" for name, reason in missing.items()]
    why = "; ".join(dict.fromkeys(reasons)) or "every row has its target already: choose another target"
    return f"the suite {suite.name!r} yields no run: {why}"


def _session(command: str, jobs: int | None, missing: Mapping[str, str], todo: Sequence[Job]) -> dict[str, Any]:
    from joblib import effective_n_jobs

    return {
        "kind": "session",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "jobs": effective_n_jobs(jobs),
        "load": [round(value, 2) for value in os.getloadavg()],
        "unavailable": dict(missing),
        "planned": len(todo),
    }


def _say(writer: Writer, surveys: Iterable[Survey]) -> None:
    """Record the cases, and check that those of an earlier session are the same still."""
    known = {line["recipe"]: line for line in writer.lines if line["kind"] == "case"}
    for s in surveys:
        key, about = checksum(s.recipe), {"data": s.recipe.data_label, "model": s.recipe.model_label}
        if s.failed:
            logger.warning("%s, %s cannot be run: %s", *about.values(), s.failed)
            writer.add({"kind": "skipped", **about, "reason": s.failed})
        elif key not in known:
            writer.add({"kind": "case", "recipe": key, **about, "facts": s.facts})
        elif known[key]["facts"]["checksum"] != s.facts["checksum"]:
            raise DataError(
                f"{s.recipe.data_label}: the data or the trained model is not that of the results in {writer.path}: "
                "give another folder with -o"
            )


# -- one run ---------------------------------------------------------------------------------------------------


def execute(job: Job, data: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Do one run, wherever this is called, and give its line of the results and the facts of the machine.

    Parameters
    ----------
    job : Job
    data : str or None
        Folder of data sets.
    """
    start = datetime.now(UTC).isoformat(timespec="milliseconds")
    try:
        with borrowed(job.instance.recipe, data) as client:
            outcome = client.ask(job.request())
            machine, case = client.machine, client.case["checksum"]
    except ServerError as error:
        outcome = {"end": "error", "message": str(error), "value": None, "wall": 0.0, "cpu": 0.0, "peak_memory": 0}
        machine, case = {}, ""
    about = {"started": start, "machine": checksum(machine) if machine else "", "case": case}
    return {**job.facts(), **about, **result(job, outcome)}, machine

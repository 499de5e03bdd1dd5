"""Methods that are programs of others: each in its own environment, spoken to in lines of JSON, and believed nothing.

A program is started once for a case. The first line that it reads tells of the case, and it answers with any table when
it is ready; then each line is an instance (`question`) and is answered by a `ProgramAnswer`. Starting, importing and
reading the model are so left out of the time of a run, as they are for methods of ocf. A command with ``{instance}``
among its words is started anew for every instance; the word is replaced by the path of a file that holds case and
instance, and the answer is all that it prints.

What it answers becomes the record of an explanation (`record`), whose point `ocf.compare.runs.check` puts to the user's
own model and whose cost it computes again.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ocf.compare.process import Ended, Process, short
from ocf.errors import OcfError
from ocf.support import json_records as records
from ocf.support.documents import Label, fit
from ocf.support.json_dtypes import plain

if TYPE_CHECKING:
    from ocf.compare.recipes import Case
    from ocf.problem.problem import Problem

#: Version of what is said between a comparison and a program.
PROTOCOL = 1

#: Seconds that a program may take until it is ready for instances.
STARTING = 300.0

#: Most characters of a program's message that are kept.
MOST_MESSAGE = 10_000

#: Stands in a command for the path of a file that holds the instance.
PLACE = "{instance}"

#: What of an answer's record a program is told, beside the row.
TOLD = ("features", "norm", "target", "probability", "constraints")


class ProgramAnswer(msgspec.Struct):
    """What a program answers.

    Attributes
    ----------
    status : {"optimal", "feasible", "infeasible", "unknown", "error"}
    counterfactual : dict or None
        Values by column; columns that are left out keep the row's.
    cost : float or None
        Held against the cost computed here. Left out by programs that count otherwise.
    bound : float or None
        Below which no admissible point costs; of an optimal answer its cost by default.
    message : str
    """

    status: Literal["optimal", "feasible", "infeasible", "unknown", "error"]
    counterfactual: dict[str, Label] | None = None
    cost: float | None = None
    bound: float | None = None
    message: str = ""


def located(command: tuple[str, ...]) -> list[str]:
    """A command with ``~`` and ``$NAMES`` of the environment in the place of what they stand for."""
    return [os.path.expandvars(Path(word).expanduser() if word.startswith("~") else word) for word in command]


def missing(command: tuple[str, ...], folder: str) -> str:
    """Why a command cannot be run here; empty when it can.

    Parameters
    ----------
    command : tuple of str
    folder : str
        From which relative paths count.
    """
    program = located(command)[0]
    found = shutil.which(str(Path(folder) / program) if os.sep in program else program)
    return "" if found else f"there is no program {program}"


class Programs:
    """The programs that answer about one case; each is started when it is first asked.

    Parameters
    ----------
    case : Case
    watch : int, optional
        As `ocf.compare.process.Process` takes it.
    """

    def __init__(self, case: Case, watch: int | None = None) -> None:
        self.case, self.watch = case, watch
        self._running: dict[str, tuple[Process, str]] = {}
        self._refused: dict[str, str] = {}
        self._folder: TemporaryDirectory[str] | None = None

    def run(self, request: Mapping[str, Any], asked: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
        """Put an instance to a program.

        Parameters
        ----------
        request : mapping
            As `ocf.compare.plan.Job.request` makes it.
        asked : mapping
            Record of an explanation that holds the question.
        problem : Problem
            The same question.

        Returns
        -------
        dict
            As `ocf.compare.server.forked` gives it; ``value`` is the record of an explanation.
        """
        program, limits = request["program"], request["limits"]
        line = question(asked, limits["time"])
        seconds = limits["time"] + limits["grace"]
        out: dict[str, Any] = {"end": "done", "message": "", "value": None, "cpu": 0.0, "peak_memory": 0}
        process, version, used, begin = None, "", 0.0, time.monotonic()
        try:
            if any(PLACE in word for word in program["command"]):
                path = self._written(self._case_description(program) | line)
                begin = time.monotonic()
                process = self._process(program, limits["memory"], path)
                said = process.rest(seconds)
            else:
                process, version = self._ready(program, limits["memory"])
                process.look()
                used, begin = process.used, time.monotonic()
                said = process.ask(line, seconds)
            out["wall"] = time.monotonic() - begin
            out["value"] = record(said, asked, problem) | {
                "times": {"total": out["wall"]},
                "method": {"solver_version": version},
            }
        except Ended as ended:
            out |= {"end": ended.end, "message": str(ended), "wall": time.monotonic() - begin}
        if process:
            process.look()
            out |= {"cpu": process.used - used, "peak_memory": process.peak}
        return out

    def _ready(self, program: Mapping[str, Any], memory: int) -> tuple[Process, str]:
        """A program that waits for instances, and its version; one that did not get ready is not started again."""
        key = json.dumps(program, sort_keys=True)
        if key in self._refused:
            raise Ended("error", self._refused[key])
        if key in self._running and self._running[key][0].quiet:
            return self._running[key]
        self._end(key)
        try:
            process = self._process(program, memory)
            said = process.ask(self._case_description(program), STARTING)
            if not isinstance(said, dict) or "failed" in said:
                process.kill()
                raise Ended("error", short(str(said["failed"] if isinstance(said, dict) else said)))
        except Ended as ended:
            self._refused[key] = f"it did not get ready: {ended}"
            raise Ended("error", self._refused[key]) from None
        self._running[key] = process, str(said.get("version", ""))
        return self._running[key]

    def _process(self, program: Mapping[str, Any], memory: int, path: str = "") -> Process:
        words = [word.replace(PLACE, path) for word in program["command"]]
        return Process(words, program["folder"], memory, self.watch)

    def _case_description(self, program: Mapping[str, Any]) -> dict[str, Any]:
        """What a program is told of the case, with the model and the table in files."""
        folder = self._files()
        return {
            "protocol": PROTOCOL,
            "model": str(folder / "model.joblib"),
            "data": str(folder / "data.csv"),
            "features": self.case.explainer.space.to_dict(),
            **{key: program[key] for key in ("threads", "seed", "options")},
        }

    def _files(self) -> Path:
        import joblib

        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="ocf-case-")
            joblib.dump(self.case.explainer.model.native, Path(self._folder.name) / "model.joblib")
            self.case.reference.to_csv(Path(self._folder.name) / "data.csv", index=False)
        return Path(self._folder.name)

    def _written(self, whole: Mapping[str, Any]) -> str:
        path = self._files() / "instance.json"
        path.write_text(json.dumps(whole, ensure_ascii=False), encoding="utf-8")
        return str(path)

    def _end(self, key: str) -> None:
        if key in self._running:
            self._running.pop(key)[0].kill()

    def close(self) -> None:
        """End all programs, and remove the files they were given."""
        for key in list(self._running):
            self._end(key)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def question(asked: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """An instance as a program is told it.

    Parameters
    ----------
    asked : mapping
        Record of an explanation that holds the question.
    seconds : float
        That the program may take.
    """
    return {"row": asked["original"]["values"], **{key: asked[key] for key in TOLD}, "time_limit": seconds}


def record(said: Any, asked: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
    """What a program answered as the record of an explanation.

    Parameters
    ----------
    said : object
        A `ProgramAnswer`, before it is known to be one.
    asked : mapping
        Record of an explanation that holds the question.
    problem : Problem
        The same question.

    Raises
    ------
    Ended
        It is no answer.
    """
    try:
        answer = fit(said, ProgramAnswer, "the answer")
        table = None if answer.counterfactual is None else _changed(asked["original"], answer.counterfactual)
        cost = None if table is None else _cost(table, problem)
    except OcfError as error:
        raise Ended("error", f"{error}") from None
    proven = {"optimal": cost, "infeasible": math.inf}.get(answer.status)
    bound = next((b for b in (answer.bound, proven) if b is not None), -math.inf)
    cost = cost if answer.cost is None or cost is None else answer.cost
    gap = math.inf if cost is None or math.isinf(bound) else (cost - bound) / max(abs(cost), 1e-300)
    message = short(answer.message, MOST_MESSAGE)
    about = {"status": answer.status, "counterfactual": table, "changes": None, "message": message}
    rest = {key: value for key, value in asked.items() if key not in ("verified", "checks")}  # which no program says
    return {**rest, **about, **plain({"cost": cost, "bound": bound, "gap": gap})}


def _changed(original: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The row with its changes, and the dtypes that hold them."""
    dtypes = dict(original["dtypes"])
    for column, value in changes.items():
        if column not in dtypes:
            raise OcfError(f"it answered a column {column!r} that the row does not have")
        if isinstance(value, float) and not value.is_integer() and "int" in str(dtypes[column]):
            dtypes[column] = "float64"
    return {"values": {**original["values"], **changes}, "dtypes": dtypes}


def _cost(table: Mapping[str, Any], problem: Problem) -> float | None:
    """Cost of a point; None of one that is outside the features, which the check tells of."""
    row = records.table_from_record(table, 0)
    try:
        return float(problem.costs(problem.space.from_frame(row))[0])
    except OcfError:
        return None

"""What the lines of a results file must hold; see `ocf.support.schemas`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ocf.support.documents import Count
from ocf.support.schemas import Amount, MaybeNumber, Number

#: How a run can end, and what it can answer.
Status = Literal["ok", "unproved", "time out", "memory out", "error", "wrong"]
Answer = Literal["", "optimal", "feasible", "infeasible", "unknown", "error", "interrupted"]


class LimitsSchema(Struct):
    """Limits of a suite."""

    time: Annotated[float, Meta(gt=0)]
    memory: Annotated[float, Meta(gt=0)]


class NamedSchema(Struct):
    """A method of a suite."""

    name: str


class SuiteSchema(Struct):
    """A suite."""

    methods: list[NamedSchema]
    limits: LimitsSchema
    shift: Annotated[float, Meta(gt=0)]
    description: str


class SuiteLine(Struct):
    """First line of a results file."""

    name: str
    fingerprint: str


class SessionLine(Struct):
    """A session."""

    date: str
    command: str
    jobs: int
    load: list[float]
    unavailable: dict[str, str]


class MachineLine(Struct):
    """A machine."""

    id: str
    facts: dict[str, Any]


class CaseFacts(Struct):
    """What is known of a case."""

    checksum: str


class CaseLine(Struct):
    """An ensemble that was prepared."""

    recipe: str
    data: str
    model: str
    facts: CaseFacts


class SkippedLine(Struct):
    """What could not be run."""

    data: str
    model: str
    reason: str


class RunLine(Struct):
    """A run, or an LP relaxation."""

    key: str
    instance: str
    case: str
    data: str
    model: str
    family: str
    trees: Count | None
    depth: Count | None
    seed: int
    position: Count
    ask: str
    method: str
    formulation: str
    solver: str
    reduce: bool
    threads: int
    mip_gap: float
    started: str
    machine: str
    status: Status
    message: str
    answer: Answer
    seconds: Amount
    times: dict[str, float]
    cost: MaybeNumber
    bound: MaybeNumber
    gap: MaybeNumber
    found: bool
    checks: list[str]
    nodes: float | None
    refused: float | None
    proved_by: str
    solver_version: str
    sizes: dict[str, float | None]
    history: list[tuple[Number, Number, Number]]
    wall: Amount
    cpu: Amount
    peak_memory: Amount


class FinishedLine(Struct):
    """That all runs of what was asked for are there."""

    asked: str
    keys: list[str]


#: By the kind of line.
LINES: dict[str, type[Struct]] = {
    "suite": SuiteLine,
    "session": SessionLine,
    "machine": MachineLine,
    "case": CaseLine,
    "skipped": SkippedLine,
    "finished": FinishedLine,
    "run": RunLine,
    "relaxation": RunLine,
}

"""What to say of a row that is infeasible: the wishes of the user's that conflict."""

from __future__ import annotations

from dataclasses import replace

from ocf.explain.explanation import Explanation
from ocf.problem.conflicts import conflict, reasons
from ocf.problem.problem import Problem
from ocf.solve.engine import Engine, infeasible
from ocf.solve.prepared import PreparedModel
from ocf.solve.task import AskedRow, Task
from ocf.support.messages import with_remark

#: Of an infeasible row that nobody asked to diagnose.
ASK = "to learn which of your wishes stand in the way, ask with diagnose=True"

#: Of an infeasible row.
NO_CONFLICT = "no wish stands in the way: the target is out of reach within the bounds of the features"

#: Of wishes that conflict, after questions that a limit has left open.
FEWER = "fewer may do: a limit has left some questions open"


def with_hint(explanations: list[Explanation]) -> list[Explanation]:
    """Explanations of a row; of one that is infeasible with how to learn why, where wishes of the user's may be why."""
    first = explanations[0]
    if first.status != "infeasible" or not (isinstance(first.problem, Problem) and reasons(first.problem)):
        return explanations
    return [replace(first, message=with_remark(first.message, ASK)), *explanations[1:]]


def diagnosed(
    prepared: PreparedModel,
    engine: Engine[Problem],
    row: AskedRow,
    task: Task,
    problem: Problem,
    explanation: Explanation,
) -> Explanation:
    """The explanation of an infeasible row with the wishes that conflict.

    Parameters
    ----------
    prepared : PreparedModel
    engine : Engine
        That answers the task.
    row : AskedRow
    task : Task
    problem : Problem
        Of the row.
    explanation : Explanation
    """
    detector = prepared.detector(task.plausibility, problem.target)

    answers = list[bool | None]()

    def hopeless(relaxed: Problem) -> bool:
        answers.append(infeasible(engine, relaxed, task, prepared.judge(row, relaxed, detector)))
        return answers[-1] is True

    if row.imputed is None:  # where nothing is fixed, values may be supplied that are not otherwise
        p = problem
        with task.within_limits(anew=True):
            problem = prepared.problem(
                row.coded, p.target, p.cost, task.space, p.constraints, task.plausibility, fixed=True
            )
    found = conflict(problem, hopeless)
    said = "these cannot hold together" if len(found) > 1 else "what stands in the way"
    words = f"{said}: {'; '.join(found)}" if found else NO_CONFLICT
    if found and None in answers:
        words = f"{words} ({FEWER})"
    return replace(explanation, conflict=found, message=with_remark(explanation.message, words))
